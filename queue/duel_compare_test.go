package queue

import (
	"errors"
	"fmt"
	"slices"
)

// compare takes the oracle through the event that the subject has seen, and compares all that can be seen of both.
func (d *duel) compare(kind eventKind, slow func() error) error {
	d.started = d.started[:0]
	return d.compareHinted(kind, nil, slow)
}

func (d *duel) compareHinted(kind eventKind, hint func(*oSession) bool, slow func() error) error {
	d.settled = d.subject.TakeSettled()
	d.oracle.grants = d.oracle.grants[:0]
	for _, s := range d.settled {
		if s.Verdict.Started {
			d.oracle.grants = append(d.oracle.grants, s.Owner.(int))
		}
	}
	d.oracle.hint = func(ses *oSession) bool {
		return hint != nil && hint(ses) || len(ses.waiters) > 0 && len(d.oracle.grants) > 0 && ses.waiters[0].id == d.oracle.grants[0]
	}
	d.oracle.lately = max(d.oracle.lately, d.oracle.count(oActive))
	d.oracle.turn()
	slowErr := slow()
	snap := d.subject.Snapshot(d.now)
	before := d.order
	d.order = nil
	d.subject.Order(func(p Placed) bool { d.order = append(d.order, p); return true })
	for _, check := range [...]func() error{
		func() error { return slowErr },
		d.compareSettled,
		d.compareEnded,
		func() error { return d.compareSnapshot(snap) },
		d.compareOrder,
		d.checkInvariants,
		func() error {
			return d.watch.look(look{kind: kind, before: before, after: d.order, old: d.snap, new: snap, started: d.started, ended: d.ended, moves: d.subject.Moves(),
				now: d.now, activeOf: func(name string) int { return d.oracle.activeOf(&oPrincipal{name: name}) }})
		},
	} {
		if err := check(); err != nil {
			return err
		}
	}
	d.snap = snap
	return nil
}

// checkInvariants looks at every fourth step: the scan of a whole timing wheel would be most of what a history costs.
func (d *duel) checkInvariants() error {
	if d.steps++; d.steps%4 != 0 {
		return nil
	}
	return d.subject.CheckInvariants()
}

// compareSettled pairs the answers to held requests.
func (d *duel) compareSettled() error {
	for _, s := range d.settled {
		id := s.Owner.(int)
		want, ok := d.oracle.settled[id]
		if !ok {
			return fmt.Errorf("oracle: held request %d was answered %v, want no answer", id, s.Verdict.Outcome)
		}
		delete(d.oracle.settled, id)
		if (s.Response != nil) != (s.Verdict.Outcome == Admitted) {
			return fmt.Errorf("shape: response %v with outcome %v", s.Response != nil, s.Verdict.Outcome)
		}
		if err := same(s.Verdict, want); err != nil {
			return fmt.Errorf("oracle: held request %d: %w", id, err)
		}
		if s.Verdict.Outcome == Admitted {
			d.responses = append(d.responses, pair{s.Response, want.response, want.response.ses.key, want.response.size})
		}
		if s.Verdict.Started {
			d.started = append(d.started, want.response.ses.key)
		}
	}
	for id, want := range d.oracle.settled {
		return fmt.Errorf("oracle: held request %d got no answer, want %v", id, want.outcome)
	}
	return nil
}

func (d *duel) compareEnded() error {
	d.ended = d.ended[:0]
	for _, e := range d.subject.TakeEnded() {
		d.ended = append(d.ended, oEnd{e.Class, e.Reason, e.Started, e.Wait, e.Duration, e.Bytes})
	}
	want := d.oracle.ended
	d.oracle.ended = nil
	slices.SortFunc(d.ended, oEnd.compare)
	slices.SortFunc(want, oEnd.compare)
	if !slices.Equal(d.ended, want) {
		return fmt.Errorf("oracle: ended %+v, want %+v", d.ended, want)
	}
	return nil
}

func (d *duel) compareSnapshot(snap Snapshot) error {
	var active, waiting, stopped [Classes]int
	if err := d.compareOperated(snap); err != nil {
		return err
	}
	paused, held := 0, 0
	o := d.oracle
	oldest := d.now
	for _, ses := range o.sessions {
		switch ses.state {
		case oWaiting:
			waiting[ses.class]++
			oldest = min(oldest, ses.since)
		case oParked:
			waiting[ses.class]++
			stopped[ses.class]++
		case oActive:
			active[ses.class]++
		case oPaused:
			paused++
		}
		held += len(ses.waiters)
	}
	switch {
	case snap.Active != active:
		return fmt.Errorf("oracle: active %v, want %v", snap.Active, active)
	case snap.Stopped != stopped:
		return fmt.Errorf("oracle: %v paused by the operator, want %v", snap.Stopped, stopped)
	case snap.Waiting != waiting:
		return fmt.Errorf("oracle: waiting %v, want %v", snap.Waiting, waiting)
	case snap.Paused != paused || snap.Held != held:
		return fmt.Errorf("oracle: %d paused, %d held, want %d, %d", snap.Paused, snap.Held, paused, held)
	case snap.Counts != o.counts:
		return fmt.Errorf("oracle: counts %+v, want %+v", snap.Counts, o.counts)
	case snap.OldestWait != d.now-oldest:
		return fmt.Errorf("oracle: oldest wait %v, want %v", snap.OldestWait, d.now-oldest)
	case snap.Draining != o.draining || snap.Policy != o.policy:
		return errors.New("oracle: another policy or drain")
	case snap.Slots != o.slots:
		return fmt.Errorf("oracle: %d slots in force, want %d", snap.Slots, o.slots)
	}
	if err := d.compareWindows(snap); err != nil {
		return err
	}
	if free := d.subject.FreeSlots(); o.policy.Queues() && !o.waves() {
		want := 0
		if len(o.contending()) == 0 && !o.draining && d.now >= o.gather && !o.halted() && o.policy.Mode != ModeRejectNew {
			_, want = o.free()
		}
		if free != want {
			return fmt.Errorf("oracle: %d slots free for newcomers, want %d", free, want)
		}
	}
	return nil
}

func (d *duel) compareOrder() error {
	want := d.oracle.merged()
	for i := range max(len(want), len(d.order)) {
		if i >= len(want) || i >= len(d.order) {
			return fmt.Errorf("oracle: the order has %d sessions, want %d", len(d.order), len(want))
		}
		w := want[i]
		p := Placed{Key: w.key, Number: d.order[i].Number, Class: w.class, Lifted: w.lifted, SizeBytes: w.size, Arrival: w.arrival,
			Since: w.since, Protocol: w.protocol, Held: len(w.waiters), Members: len(w.members)}
		if p != d.order[i] {
			return fmt.Errorf("oracle: at position %d stands %+v, want %+v\norder %s\nwant  %s", i+1, d.order[i], p, d.names(), oracleNames(want))
		}
	}
	return nil
}

func (d *duel) names() (out string) {
	for _, p := range d.order {
		out += fmt.Sprintf(" %s/%s/%s", p.Key.Principal, p.Key.Object, p.Key.Client)
	}
	return out
}

func oracleNames(order []*oSession) (out string) {
	for _, ses := range order {
		out += fmt.Sprintf(" %s/%s/%s(turns from %d, F %v)", ses.key.Principal, ses.key.Object, ses.key.Client, ses.who.lanes[ses.lifted].round, ses.finish)
	}
	return out
}

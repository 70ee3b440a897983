package queue

import (
	"fmt"
	"slices"
)

// This file plays the operator's actions, the gate and the view in the histories.

// actionFrom makes an action.
func actionFrom(e event) Action {
	kinds := [8]ActionKind{MoveFront, MoveBack, MoveClass, PauseIt, PauseIt, ResumeIt, ResumeIt, KickIt}
	return Action{Kind: kinds[e.x>>5], Class: Class(e.y % Classes)}
}

// ofOperator makes an event one of a time in which an operator is busy with few sessions.
func (e *event) ofOperator(draw number) {
	switch draw(8) {
	case 0, 1:
		e.kind = evAct
	case 2:
		if e.kind == evDrain {
			e.kind = evGate
		}
	}
	if draw(4) > 0 {
		e.who %= 6
	}
}

func (d *duel) act(e event) error {
	key, action := askFrom(e, d.now).Key, actionFrom(e)
	err := d.subject.Act(d.now, key, action)
	return d.compare(e.kind, func() error {
		if want := d.oracle.act(key, action); want != (err == nil) {
			return fmt.Errorf("oracle: %v of %v: %v, want it done: %v", action.Kind, key, err, want)
		} else if want {
			d.oracle.seen.acts++
		}
		return nil
	})
}

func (d *duel) gate(e event) error {
	open := e.x%3 > 0
	d.subject.SetGate(d.now, open)
	return d.compare(e.kind, func() error { d.oracle.setGate(open); return nil })
}

// compareOperated: counts of a dry run are within what the oracle can know, then they are the core's.
func (d *duel) compareOperated(snap Snapshot) error {
	o := d.oracle
	if n := snap.Counts.WouldWait; n < o.wouldLow || n > o.wouldHigh {
		return fmt.Errorf("oracle: %d sessions would have waited, want %d..%d", n, o.wouldLow, o.wouldHigh)
	}
	if snap.Counts.WouldWaitFor < o.counts.WouldWaitFor || snap.Counts.WouldWait == o.counts.WouldWait && snap.Counts.WouldWaitFor != o.counts.WouldWaitFor {
		return fmt.Errorf("oracle: sessions would have waited for %v, before %v", snap.Counts.WouldWaitFor, o.counts.WouldWaitFor)
	}
	o.wouldLow, o.wouldHigh = snap.Counts.WouldWait, snap.Counts.WouldWait
	o.counts.WouldWait, o.counts.WouldWaitFor = snap.Counts.WouldWait, snap.Counts.WouldWaitFor
	return d.compareViews()
}

// compareViews: what the operator is shown agrees with the order, piece by piece.
func (d *duel) compareViews() error {
	if d.steps%4 != 1 {
		return nil
	}
	all := ListQuery{Active: true, Waiting: true, Remembered: true}
	rows, err := d.listing(all, 2)
	if err != nil {
		return err
	}
	positions, listed := 0, map[Key]Shown{}
	for _, s := range rows {
		if listed[s.Key] = s; s.Position > 0 {
			if positions++; s.Position != positions {
				return fmt.Errorf("view: %v is listed as number %d with position %d", s.Key, positions, s.Position)
			}
		}
		if one, ok := d.core.Show(d.now, s.Key); !ok || one != s {
			return fmt.Errorf("view: %v is listed as %+v and shown as %+v", s.Key, s, one)
		}
		if key, ok := d.core.KeyOf(s.ID); !ok || key != s.Key {
			return fmt.Errorf("view: id of %v leads to %v", s.Key, key)
		}
	}
	if err := d.comparePrincipals(rows); err != nil {
		return err
	}
	for _, ses := range d.oracle.sessions {
		if err := d.oracle.agrees(ses, listed[ses.key]); err != nil {
			return err
		}
	}
	if len(listed) != len(d.oracle.sessions) {
		return fmt.Errorf("view: %d sessions are listed, want %d", len(listed), len(d.oracle.sessions))
	}
	return nil
}

// listing is a listing in pieces of few sessions, none of which is there twice.
func (d *duel) listing(q ListQuery, visit int) (rows []Shown, err error) {
	seen := map[Key]bool{}
	for p := (Page{More: true}); p.More; {
		shown, visited := len(p.Sessions), p.Visited
		d.core.ListInto(d.now, &q, &p, 3, visit)
		if p.Visited > visited+visit || p.Matched != len(p.Sessions) || p.Matched > shown+3 {
			return nil, fmt.Errorf("view: a piece looked at %d sessions and showed %d, %d and 3 were allowed", p.Visited-visited, p.Matched-shown, visit)
		}
		rows = p.Sessions
	}
	for _, s := range rows {
		if seen[s.Key] {
			return nil, fmt.Errorf("view: %v is listed twice", s.Key)
		}
		seen[s.Key] = true
	}
	return rows, nil
}

// comparePrincipals: the listing of one principal is what a listing of all shows of it, in the same order, and so is its count. So is that of all of one class.
func (d *duel) comparePrincipals(rows []Shown) error {
	roster := map[string]bool{"nobody": true, "": true} // the latter is all
	for name := range d.core.Principals {
		if roster[name] {
			return fmt.Errorf("view: %s is named twice", name)
		}
		roster[name] = true
	}
	for _, s := range rows {
		if !roster[s.Key.Principal] {
			return fmt.Errorf("view: %s has sessions and is not named", s.Key.Principal)
		}
	}
	query := ListQuery{Active: d.steps%3 > 0, Waiting: d.steps%5 > 0, Remembered: d.steps%7 > 0, OneClass: d.steps%8 < 4, Class: Class(d.steps / 8 % Classes)}
	for name := range roster {
		query.Principal = name
		got, err := d.listing(query, 2)
		if err != nil {
			return err
		}
		want := slices.DeleteFunc(slices.Clone(rows), func(s Shown) bool {
			wanted := map[ShownState]bool{ShownActive: query.Active, ShownWaiting: query.Waiting, ShownRemembered: query.Remembered}[s.State]
			return !wanted || name != "" && s.Key.Principal != name || query.OneClass && s.Class != query.Class
		})
		if !slices.Equal(got, want) {
			return fmt.Errorf("view: %+v lists %+v, want %+v", query, got, want)
		}
		count, told := d.core.CountOf(query)
		if !told {
			page := Page{More: true}
			for page.More {
				d.core.ListInto(d.now, &query, &page, 0, 2)
			}
			count = page.Matched
		}
		if count != len(want) || told != (name == "nobody" || name == "" || !query.OneClass) {
			return fmt.Errorf("view: of %+v %d are counted, want %d", query, count, len(want))
		}
	}
	return nil
}

// agrees compares what is shown of a session with what it is.
func (o *oracle) agrees(ses *oSession, s Shown) error {
	state := map[oState]ShownState{oWaiting: ShownWaiting, oParked: ShownWaiting, oActive: ShownActive, oPaused: ShownRemembered}[ses.state]
	position := slices.Index(o.merged(), ses) + 1
	if s.State != state || s.Position != position || s.Stopped != ses.stopped || s.Class != ses.class || s.Held != len(ses.waiters) || s.SizeBytes != ses.size ||
		s.Arrival != ses.arrival || s.Since != ses.since {
		return fmt.Errorf("view: %v is shown as %+v, it is %v at %d, class %v", ses.key, s, state, position, ses.class)
	}
	all, common := o.free()
	free := common
	if ses.class == Interactive {
		free = all
	}
	want := map[Why]bool{}
	switch {
	case ses.state == oParked:
		want[WhyOperator] = true
	case ses.state != oWaiting:
		want[WhyNone] = true
	case o.gateShut:
		want[WhyGate] = true
	case o.policy.Mode == ModeQueueAll:
		want[WhyMode] = true
	case o.waves():
		want[WhyTurn] = true
	case o.barred(ses.class):
		want[WhyWindow] = true
	case o.now < o.gather || o.now < o.grace && ses.newcomer():
		want[WhyGrace] = true
	case o.standsBack(ses):
		want[WhyYielded] = true
	case all == 0 && !o.draining:
		want[WhySlots] = true
	case free == 0:
		want[WhyReserve] = true
	default:
		unsure, hint := false, o.hint
		o.hint = func(*oSession) bool { unsure = true; return true }
		if o.mayTake(ses) || unsure {
			want[WhyTurn] = true
		}
		o.hint = hint
		if !want[WhyTurn] || unsure {
			want[WhyOrder], want[WhyShare] = true, true
		}
	}
	if !want[s.Why] {
		return fmt.Errorf("view: %v waits for %q, want one of %v", ses.key, s.Why, want)
	}
	return nil
}

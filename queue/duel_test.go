package queue

import (
	"fmt"
	"slices"
	"time"
)

// subject is what a history drives: a scheduler, or one with a fault (negative_test.go).
type subject interface {
	Ask(time.Duration, Ask) (*Response, Verdict)
	Hold(time.Duration, Ask, any) (*Waiter, *Response, Verdict)
	Withdraw(time.Duration, *Waiter) (Verdict, bool)
	Depart(time.Duration, *Waiter) bool
	Progress(time.Duration, *Response, int64)
	Finish(time.Duration, *Response, int64, int64, bool)
	Abandon(time.Duration, *Response)
	Leave(time.Duration, Key)
	Tick(time.Duration)
	Configure(time.Duration, Policy) error
	Drain(time.Duration)
	Grace(time.Duration, time.Duration)
	Shuffle(time.Duration, Class, time.Duration, uint64)
	SetWindows(time.Duration, WindowPlan) error
	SetGate(time.Duration, bool)
	Act(time.Duration, Key, Action) error
	TakeSettled() []Settled
	TakeEnded() []End
	Snapshot(time.Duration) Snapshot
	Order(func(Placed) bool)
	FreeSlots() int
	Moves() Moves
	CheckInvariants() error
}

// noShowOf, knows and choiceOf are the only looks of the histories into the core: the CheckIn that a departure set, which nobody is
// told; which of the sessions paused at one moment was forgotten; who was chosen to yield under fair-sojourn, which depends on
// estimates.
func noShowOf(s *Scheduler, key Key) (noShow, checkAt time.Duration) {
	ses := coreSession(s, key)
	return ses.noShowAt, ses.checkAt()
}

func knows(s *Scheduler, key Key) bool {
	ses := coreSession(s, key)
	return ses != nil
}

func coreSession(s *Scheduler, key Key) *session { return s.sessions.find(&key) }

// choiceOf reads the choice without session.yieldTo, which forgets a choice that is void.
func choiceOf(s *Scheduler, key Key) (head Key, chosen bool) {
	ses := coreSession(s, key)
	if ses == nil || ses.stay == nil || ses.stay.yieldTo == nil {
		return Key{}, false
	}
	to := ses.stay.yieldTo
	if to.state != waiting || to.since != ses.stay.yieldSince {
		return Key{}, false
	}
	return to.key(), true
}

// duel plays one history on a subject and on the oracle and compares them after every step.
type duel struct {
	core      *Scheduler
	subject   subject
	oracle    *oracle
	now       time.Duration
	responses []pair
	waiters   []waiterPair
	lastID    int
	watch     watch
	order     []Placed // after the last step
	snap      Snapshot
	ended     []oEnd // scratch
	started   []Key  // sessions that the core gave a slot in this step
	settled   []Settled
	steps     int
}

type pair struct {
	core *Response
	slow *oResponse
	key  Key
	size int64
}

type waiterPair struct {
	core *Waiter
	slow *oWaiter
	id   int
	key  Key
	size int64
}

// result is what a history says when it passed.
type result struct {
	steps, starts, undecided int
	seen                     seen
}

// play runs a history; wrap makes the subject of the scheduler, nil: the scheduler itself. The error names the check.
func play(h history, wrap func(*Scheduler) subject) (res result, err error) {
	policy := policyOf(h.policy)
	s, err := New(policy)
	if err != nil {
		return res, err
	}
	d := &duel{core: s, subject: s, oracle: newOracle(policy)}
	d.oracle.coreChose = func(key Key) (Key, bool) { return choiceOf(s, key) }
	d.oracle.coreKnows = func(key Key) bool { return knows(s, key) }
	if wrap != nil {
		d.subject = wrap(s)
	}
	d.watch.policy(policy)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		res.starts, res.undecided, res.seen = int(d.oracle.counts.Started), d.oracle.undecided, d.oracle.seen
	}()
	for i, e := range h.events {
		res.steps++
		if err := d.step(e); err != nil {
			return res, fmt.Errorf("event %d (%s at %v): %w", i, eventNames[e.kind], d.now, err)
		}
	}
	if err := d.runDown(); err != nil {
		return res, fmt.Errorf("run-down at %v: %w", d.now, err)
	}
	return res, nil
}

func (d *duel) step(e event) error {
	d.now += e.pause()
	d.oracle.now = d.now
	switch e.kind {
	case evAsk, evHold:
		return d.ask(e)
	case evProgress, evFinish, evAbandon:
		return d.respond(e)
	case evWithdraw, evDepart:
		return d.unhold(e)
	case evTick:
		for range e.ticks() {
			d.now += TickEvery
			if err := d.tick(); err != nil {
				return err
			}
		}
		return nil
	case evConfigure:
		return d.configure(policyOf(e.policyTo))
	case evLeave:
		key := askFrom(e, d.now).Key
		d.subject.Leave(d.now, key)
		return d.compare(e.kind, func() error { d.oracle.leave(key); return nil })
	case evDrain:
		if e.x%4 > 0 {
			return nil // else few histories would live long
		}
		d.subject.Drain(d.now)
		return d.compare(e.kind, func() error { d.oracle.drain(); return nil })
	case evGrace:
		gather, until := d.now+time.Duration(e.x%8)*time.Second, d.now+time.Duration(e.y%32)*4*time.Second
		d.subject.Grace(gather, until)
		d.oracle.gather, d.oracle.grace = gather, max(gather, until)
	case evShuffle:
		class, length := Class(e.x%Classes), time.Duration(e.y%64)*time.Second
		d.subject.Shuffle(d.now, class, length, uint64(e.who))
		d.oracle.turn()
		d.oracle.shuffled[class] = oShuffle{d.now, d.now + length}
	case evWindows:
		return d.setWindows(e)
	case evAct:
		return d.act(e)
	case evGate:
		return d.gate(e)
	}
	return nil
}

func (d *duel) ask(e event) error {
	a := askFrom(e, d.now)
	var (
		w    *Waiter
		r    *Response
		v    Verdict
		want oAnswer
		slow *oWaiter
	)
	if e.kind == evAsk {
		r, v = d.subject.Ask(d.now, a)
	} else {
		d.lastID++
		w, r, v = d.subject.Hold(d.now, a, d.lastID)
	}
	if (r != nil) != (v.Outcome == Admitted) {
		return fmt.Errorf("shape: response %v with outcome %v", r != nil, v.Outcome)
	}
	d.started = d.started[:0]
	if v.Started {
		d.started = append(d.started, a.Key)
	}
	d.oracle.coreSaid = &v
	admitted := v.Outcome == Admitted || v.Outcome == RangesBusy || v.Outcome == Ready
	hint := func(ses *oSession) bool { return ses.key == a.Key && admitted }
	return d.compareHinted(e.kind, hint, func() error {
		if e.kind == evAsk {
			want = d.oracle.ask(a)
		} else {
			want, slow = d.oracle.hold(a, d.lastID)
		}
		if (slow != nil) != (w != nil) {
			return fmt.Errorf("oracle: held %v, want %v (%v, want %v)", w != nil, slow != nil, v.Outcome, want.outcome)
		}
		if err := same(v, want); err != nil {
			return fmt.Errorf("oracle: %v: %w", a.Key, err)
		}
		if r != nil {
			d.responses = append(d.responses, pair{r, want.response, a.Key, want.response.size})
		}
		if w != nil {
			d.waiters = append(d.waiters, waiterPair{w, slow, d.lastID, a.Key, a.SizeBytes})
		}
		return nil
	})
}

// same compares what both sides answer for.
func same(v Verdict, want oAnswer) error {
	got := oAnswer{outcome: v.Outcome, class: v.Class, position: v.Position, yielded: v.Yielded, started: v.Started, arrival: v.Arrival}
	want.response = nil
	if want.yielded && want.position == 0 { // still runs: it has no place yet, and no rule says what it is told
		got.position, got.arrival = 0, want.arrival
	}
	if want.outcome != Queued && want.outcome != Admitted && want.outcome != RangesBusy && want.outcome != Ready {
		got.arrival, want.arrival = 0, 0
	}
	if got != want {
		return fmt.Errorf("answer %+v, want %+v", got, want)
	}
	return nil
}

func (d *duel) respond(e event) error {
	if len(d.responses) == 0 {
		return nil
	}
	i := int(e.who) % len(d.responses)
	p := d.responses[i]
	if e.kind == evProgress {
		n := int64(e.y) + 1
		d.subject.Progress(d.now, p.core, n)
		return d.compare(e.kind, func() error { d.oracle.progress(p.slow, n); return nil })
	}
	if e.x%16 != 0 { // else it is ended once more later, which must do nothing
		d.responses = slices.Delete(d.responses, i, i+1)
	}
	if e.kind == evAbandon {
		d.subject.Abandon(d.now, p.core)
		return d.compare(e.kind, func() error { d.oracle.abandon(p.slow); return nil })
	}
	first, end := delivered(p.slow.asked, p.size)
	complete := e.y%8 != 1
	if e.y%8 == 2 {
		end -= (end - first) / 3
	}
	d.subject.Finish(d.now, p.core, first, end, complete)
	return d.compare(e.kind, func() error { d.oracle.finish(p.slow, first, end, complete); return nil })
}

func (d *duel) unhold(e event) error {
	if len(d.waiters) == 0 {
		return nil
	}
	i := int(e.who) % len(d.waiters)
	w := d.waiters[i]
	d.waiters = slices.Delete(d.waiters, i, i+1)
	if e.kind == evDepart {
		held := d.subject.Depart(d.now, w.core)
		return d.compare(e.kind, func() error {
			if want := d.oracle.depart(w.slow, func(key Key) (time.Duration, time.Duration) { return noShowOf(d.core, key) }); held != want {
				return fmt.Errorf("oracle: departed %v, want %v", held, want)
			}
			return nil
		})
	}
	v, held := d.subject.Withdraw(d.now, w.core)
	d.oracle.coreSaid = &v
	return d.compare(e.kind, func() error {
		want, ok := d.oracle.withdraw(w.slow)
		if ok != held {
			return fmt.Errorf("oracle: withdrawn %v, want %v", held, ok)
		}
		if held {
			return same(v, want)
		}
		return nil
	})
}

func (d *duel) tick() error {
	d.subject.Tick(d.now)
	d.oracle.now = d.now
	slots := d.subject.Snapshot(d.now).Slots
	return d.compare(evTick, func() error {
		d.oracle.tick(slots)
		return d.oracle.fault
	})
}

func (d *duel) configure(p Policy) error {
	if err := d.subject.Configure(d.now, p); err != nil {
		return err
	}
	d.watch.policy(p)
	slots := d.subject.Snapshot(d.now).Slots
	return d.compare(evConfigure, func() error { d.oracle.configure(p, slots); return nil })
}

// runDown lets every client leave: everything must return to zero.
func (d *duel) runDown() error {
	for len(d.responses) > 0 {
		if err := d.respond(event{kind: evAbandon, x: 1}); err != nil {
			return err
		}
	}
	for len(d.waiters) > 0 {
		if err := d.unhold(event{kind: evDepart}); err != nil {
			return err
		}
		for len(d.responses) > 0 {
			if err := d.respond(event{kind: evAbandon, x: 1}); err != nil {
				return err
			}
		}
	}
	for _, wait := range []time.Duration{2 * time.Minute, 8 * time.Minute, time.Second, 10 * time.Minute, 10 * time.Minute} {
		d.now += wait
		if err := d.tick(); err != nil {
			return err
		}
	}
	if err := d.subject.CheckInvariants(); err != nil {
		return err
	}
	s := d.snap
	if s.ActiveTotal() != 0 || s.WaitingTotal() != 0 || s.Paused != 0 || s.Held != 0 || len(d.order) != 0 || len(d.oracle.sessions) != 0 {
		return fmt.Errorf("zero: after everybody left %d are active, %d wait, %d paused, %d held", s.ActiveTotal(), s.WaitingTotal(), s.Paused, s.Held)
	}
	return nil
}

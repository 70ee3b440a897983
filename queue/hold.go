package queue

import "time"

// Hold decides as Ask does, but a request that must wait (Queued, RangesBusy) stays as a waiter: its client counts as
// present. Its answer comes from TakeSettled with this owner, unless Withdraw takes it back first. A request that peeks is never held.
func (s *Scheduler) Hold(now time.Duration, a Ask, owner any) (*Waiter, *Response, Verdict) {
	now = s.advance(now)
	ses, r, verdict := s.decide(now, &a)
	if verdict.Outcome != Queued && verdict.Outcome != RangesBusy || ses.yielding || a.Peek {
		return nil, r, verdict
	}
	w := &Waiter{owner: owner, session: ses, asked: a.Range, validator: a.Validator, place: uint8(a.place)}
	if ses.present == nil {
		ses.present = &presence{index: -1}
	}
	ses.present.waiters.push(w)
	s.held++
	verdict.Held = true
	switch ses.state {
	case waiting:
		s.appear(ses)
		s.plan(ses)
	case parked:
		s.plan(ses)
	}
	return w, nil, verdict
}

// appear and vanish keep the list of waiting sessions whose clients are here.
func (s *Scheduler) appear(ses *session) {
	if ses.present != nil && ses.present.index < 0 && ses.present.waiters.count > 0 {
		ses.present.index = len(s.present)
		s.present = append(s.present, ses)
	}
}

func (s *Scheduler) vanish(ses *session) {
	if ses.present == nil || ses.present.index < 0 {
		return
	}
	i, last := ses.present.index, len(s.present)-1
	s.present[i] = s.present[last]
	s.present[i].present.index = i
	s.present[last] = nil
	s.present = s.present[:last]
	ses.present.index = -1
}

// release takes a held request away from its session.
func (s *Scheduler) release(w *Waiter) {
	ses := w.session
	ses.present.waiters.remove(w)
	s.held--
	if ses.present.waiters.count == 0 {
		s.vanish(ses)
		ses.present = nil
	}
}

// Depart ends a held request whose client left; false as of Withdraw. A plain client's session with nobody else present leaves the line: it is remembered
// as after a pause, so that a client that timed out comes back to its old arrival, while nobody waits behind an absent one and nothing counts it as
// waiting. A protocol client is not expected to stay connected: its session waits on until its no-show.
func (s *Scheduler) Depart(now time.Duration, w *Waiter) bool {
	now = s.advance(now)
	ses := w.session
	if ses == nil {
		return false
	}
	s.release(w)
	switch {
	case ses.state == active || ses.present != nil:
	case ses.protocol:
		s.contact(now, ses)
	default:
		s.record(End{Class: ses.class, Reason: ReasonCancelled, Wait: now - ses.since, Promised: ses.promisedWait()})
		s.unwait(now, ses)
		ses.principal.live--
		s.remember(now, ses)
		s.dispatch(now)
	}
	return true
}

// Withdraw ends a held request without a slot because its wait is over. The session keeps its place until
// the told CheckIn, half of it and a margin have passed. A waiter that was settled before is left alone: the answer is
// in TakeSettled, and false is returned.
func (s *Scheduler) Withdraw(now time.Duration, w *Waiter) (Verdict, bool) {
	now = s.advance(now)
	ses := w.session
	if ses == nil {
		return Verdict{}, false
	}
	s.release(w)
	if ses.state != active {
		verdict := s.contact(now, ses)
		verdict.Held = true
		return verdict, true
	}
	verdict := rangesBusy(ses)
	verdict.Held = true
	return verdict, true
}

package queue

import "time"

// PreemptAfter is how long a session has its slot before it can be asked to give it up.
const PreemptAfter = time.Minute

// choose marks at most one active session to give its slot up to the head of the order at its next range. It is done on a tick
// that ends without a free slot for the head, and only for a head whose client is here or about to come: no slot is emptied for
// an absent one.
func (s *Scheduler) choose(now time.Duration) {
	if s.draining || s.waiting.count == 0 || s.halted() || s.waves() {
		return
	}
	head := s.front(false)
	if head == nil || s.freeFor(head.class) > 0 || s.mustStandBack(head) || !s.expected(now, head) {
		return
	}
	if ses := s.victim(now, head); ses != nil {
		ses.stay.yieldTo, ses.stay.yieldSince = head, head.since
	}
}

// victim returns the active session that the head of the order may have the slot of, nil when there is none.
func (s *Scheduler) victim(now time.Duration, head *session) *session {
	if !s.policy.Preempt {
		return nil
	}
	var best *session
	for _, ses := range s.active {
		if now-ses.since >= PreemptAfter && !s.calendar.restricted(ses.class) && ses.protocol && !ses.yielding && !ses.stopped && ses.yieldTo() == nil && s.outranks(head, ses) &&
			(best == nil || s.yieldsBefore(ses, best)) {
			best = ses
		}
	}
	return best
}

// takesOver reports whether a slot is, or may be, given up to the head of the order: its client should come soon.
func (s *Scheduler) takesOver(now time.Duration, head *session) bool {
	if !s.policy.Preempt || head == nil || s.calendar.bars[head.class] {
		return false
	}
	for _, ses := range s.active {
		if ses.yieldTo() == head {
			return true
		}
	}
	return s.victim(now, head) != nil
}

// outranks reports whether the head may have the slot of an active session: it is of a higher class, or below its principal's
// share while the other is above it, or would end later than under equal sharing because of it.
func (s *Scheduler) outranks(head, ses *session) bool {
	switch {
	case !s.usable(ses, head):
		return false
	case ses.class > head.class:
		return true
	case int(ses.principal.active) > s.policy.PerPrincipal && int(head.principal.active) < s.policy.PerPrincipal:
		return true
	default:
		return s.fair.on && ses.class == head.class && ses.order > head.order && s.late(head)
	}
}

// usable reports whether the head may have the slot of an active session: one of an interactive session may be of the reserve.
func (s *Scheduler) usable(ses, head *session) bool {
	others := len(s.active) - s.byClass[active][Interactive]
	return head.class == Interactive || ses.class != Interactive || others < s.slots()-s.policy.Reserve
}

// late reports whether a waiting session, should it wait for the next slot that opens, ends later than under equal sharing, by more
// than a slot is held before it can be asked back: that is the slip that is not worth interrupting others for.
func (s *Scheduler) late(head *session) bool {
	if s.model.peak == 0 || s.model.n == 0 {
		return false
	}
	opens := s.model.opens + float64(head.remaining())*float64(len(s.active))/s.model.peak
	return opens > s.finishesAfter(head.order)/s.model.peak+PreemptAfter.Seconds()
}

// yieldsBefore orders the sessions that could give way: the lowest class, then the principal most above its share, then the one
// with the most bytes to come, which is delayed least by waiting.
func (s *Scheduler) yieldsBefore(a, b *session) bool {
	if a.class != b.class {
		return a.class > b.class
	}
	if a.principal.active != b.principal.active && max(int(a.principal.active), int(b.principal.active)) > s.policy.PerPrincipal {
		return a.principal.active > b.principal.active
	}
	if x, y := a.remaining(), b.remaining(); x != y {
		return x > y
	}
	return a.number > b.number
}

// mustYield reports whether a chosen session has to give its slot up: the head still waits, no slot freed meanwhile, and its
// own is of use to the head. Otherwise the choice is void.
func (s *Scheduler) mustYield(ses *session) bool {
	if s.mustHalt(ses) {
		return true
	}
	head := ses.yieldTo()
	if head != nil && !s.halted() && !s.waves() && !s.calendar.bars[head.class] && !s.calendar.restricted(ses.class) && s.policy.Preempt && !s.draining && !ses.stay.leaving && s.freeFor(head.class) == 0 && s.usable(ses, head) {
		return true
	}
	ses.stay.yieldTo, ses.yielding = nil, false
	return false
}

// yieldAt answers the next request of a chosen session.
func (s *Scheduler) yieldAt(now time.Duration, ses *session) (Verdict, bool) {
	if !s.mustYield(ses) {
		s.settleActive(ses)
		return Verdict{}, false
	}
	if ses.stay.running > 0 {
		// The slot goes with the last response.
		ses.yielding = true
		return Verdict{
			Outcome: Queued, Class: ses.class, Yielded: true, Position: s.waiting.count + 1, CheckIn: rangesCheck, Arrival: ses.arrival,
		}, true
	}
	s.yield(now, ses)
	verdict := s.contact(now, ses)
	verdict.Yielded = true
	return verdict, true
}

// keepYielding ends the yielding of a session that need not give way any more.
func (s *Scheduler) keepYielding(ses *session) {
	if ses.yielding {
		s.mustYield(ses)
	}
}

// yield gives the slot up. The session waits anew from now on, without the age it had, and takes no slot while the head it gave
// way to waits: asking earlier than the head it would take the slot back at once.
func (s *Scheduler) yield(now time.Duration, ses *session) {
	if s.mustHalt(ses) {
		s.halt(now, ses)
		return
	}
	head, since := ses.stay.yieldTo, ses.stay.yieldSince
	s.freeSlot(now, ses, ReasonYielded)
	s.fair.end(ses)
	ses.arrival, ses.waitedMillis, ses.ticketed = now, 0, false
	ses.stay.yieldTo, ses.stay.yieldSince, ses.stay.charged = head, since, nil
	s.join(now, ses)
	s.moves.Yielded[ses.lifted]++
	if ses.present == nil {
		ses.told = true // with the answer to its last request
		s.expect(now, ses, rangesCheck)
	} else {
		s.plan(ses)
	}
	s.dispatch(now)
}

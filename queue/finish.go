package queue

import "time"

// begin starts a response of an active session that has a place for it.
func (s *Scheduler) begin(ses *session, asked RangeAsk) *Response {
	ses.asked(asked)
	ses.running++
	s.due.clear(ses)
	s.activeChanges++
	return &Response{session: ses, asked: asked}
}

// Progress notes n more delivered bytes of a running response; they feed the measured rate and the estimates.
func (s *Scheduler) Progress(now time.Duration, r *Response, n int64) {
	now = s.advance(now)
	if r.done || n <= 0 {
		return
	}
	r.bytes += n
	r.session.bytes += n
	r.session.openBytes += n
	s.rate.add(now, n)
}

// Finish ends a response. The bytes [first, end) of the object count as delivered only when complete is true: the
// response reached its end. The slot stays for the next range until Policy.IdleFor (TailHold after tail reads only).
// Calls after the first do nothing.
func (s *Scheduler) Finish(now time.Duration, r *Response, first, end int64, complete bool) {
	now = s.advance(now)
	if !s.close(r) {
		return
	}
	ses := r.session
	if complete && r.asked.Kind != RangeMulti {
		ses.covered = ses.covered.add(max(first, 0), min(end, ses.size))
	}
	s.settleActive(ses)
	if ses.running > 0 {
		return
	}
	switch {
	case ses.complete():
		s.stop(now, ses, ReasonCompleted)
	case ses.leaving:
		s.stop(now, ses, ReasonCancelled)
	case ses.start < 0:
		s.due.set(ses, now+min(TailHold, s.policy.IdleFor))
	default:
		s.due.set(ses, now+s.policy.IdleFor)
	}
}

// Abandon ends a response whose client left: none of its bytes count, and when it was the session's last one the slot
// is free at once. The place in time and the coverage are kept as after a pause.
func (s *Scheduler) Abandon(now time.Duration, r *Response) {
	now = s.advance(now)
	if !s.close(r) {
		return
	}
	ses := r.session
	s.settleActive(ses)
	switch {
	case ses.running > 0:
	case ses.leaving:
		s.stop(now, ses, ReasonCancelled)
	default:
		s.pause(now, ses, ReasonCancelled)
	}
}

func (s *Scheduler) close(r *Response) bool {
	if r.done {
		return false
	}
	r.done = true
	r.session.running--
	r.session.openBytes -= r.bytes
	s.activeChanges++
	return true
}

// settleActive gives the free places of an active session to its held requests, first come first.
func (s *Scheduler) settleActive(ses *session) {
	for ses.waiters.head != nil && ses.running < s.policy.RangesPerSession {
		w := ses.waiters.head
		s.answer(w, s.begin(ses, w.asked), s.admittedVerdict(ses))
	}
}

func (s *Scheduler) admittedVerdict(ses *session) Verdict {
	started := !ses.announced
	ses.announced = true
	return Verdict{Outcome: Admitted, Class: ses.class, Started: started, Waited: ses.wait, Arrival: ses.arrival}
}

func (s *Scheduler) answer(w *Waiter, r *Response, v Verdict) {
	w.session.waiters.remove(w)
	s.held--
	v.Held = true
	s.settled = append(s.settled, Settled{Owner: w.owner, Response: r, Verdict: v})
}

func (s *Scheduler) answerAll(ses *session, v Verdict) {
	for ses.waiters.head != nil {
		s.answer(ses.waiters.head, nil, v)
	}
}

// stop ends an active session for good.
func (s *Scheduler) stop(now time.Duration, ses *session, reason Reason) {
	s.freeSlot(now, ses, reason)
	s.drop(ses)
	s.dispatch(now)
}

// pause frees the slot and remembers the session.
func (s *Scheduler) pause(now time.Duration, ses *session, reason Reason) {
	s.freeSlot(now, ses, reason)
	s.remember(now, ses)
	s.dispatch(now)
}

func (s *Scheduler) freeSlot(now time.Duration, ses *session, reason Reason) {
	s.record(End{
		Class: ses.class, Reason: reason, Started: true, Wait: ses.wait, Promised: ses.promised,
		Duration: now - ses.since, Bytes: ses.bytes,
	})
	last := len(s.active) - 1
	s.active[ses.activeIndex] = s.active[last]
	s.active[ses.activeIndex].activeIndex = ses.activeIndex
	s.active[last] = nil
	s.active = s.active[:last]
	s.byClass[active][ses.class]--
	ses.principal.active--
	ses.principal.live--
	ses.bytes, ses.wait, ses.promised = 0, 0, -1
	s.due.clear(ses)
	s.activeChanges++
}

// stopWaiting ends a wait. Only a wait that the policy ended is remembered; held requests are answered by the caller.
func (s *Scheduler) stopWaiting(now time.Duration, ses *session, reason Reason) {
	if reason == ReasonPolicy {
		s.answerAll(ses, Verdict{Outcome: PerRequest, Class: ses.class})
	}
	s.record(End{Class: ses.class, Reason: reason, Wait: now - ses.since, Promised: ses.promised})
	s.unwait(now, ses)
	ses.principal.live--
	ses.promised = -1
	if reason == ReasonPolicy {
		s.remember(now, ses)
		return
	}
	s.drop(ses)
}

func (s *Scheduler) record(e End) {
	s.counts.Ended[e.Reason]++
	s.ended = append(s.ended, e)
}

// remember turns a session that holds nothing into a paused one.
func (s *Scheduler) remember(now time.Duration, ses *session) {
	ses.state, ses.since, ses.leaving = paused, now, false
	s.byClass[paused][ses.class]++
	s.paused.push(ses)
	s.due.set(ses, now+PauseMemory)
}

// wakePaused lets a remembered session wait again at its old arrival. The turn its principal paid for the slot it gave up
// is returned: otherwise it would wait behind the first session of everybody else.
func (s *Scheduler) wakePaused(now time.Duration, ses *session) {
	if l := ses.charged; l != nil {
		ses.charged = nil
		if l.round > 0 {
			l.round--
		}
		if len(l.queue) > 0 {
			s.needRepair(l)
		}
	}
	s.counts.Rejoined++
	s.paused.remove(ses)
	s.byClass[paused][ses.class]--
	s.due.clear(ses)
	s.join(now, ses)
}

// forget drops a paused session.
func (s *Scheduler) forget(ses *session) {
	s.paused.remove(ses)
	s.byClass[paused][ses.class]--
	s.due.clear(ses)
	s.drop(ses)
}

// drop takes a session that is in no index any more out of the books.
func (s *Scheduler) drop(ses *session) {
	delete(s.sessions, ses.key)
	if p := ses.principal; p.refs > 1 {
		p.refs--
	} else {
		p.refs = 0
		delete(s.principals, p.name)
	}
}

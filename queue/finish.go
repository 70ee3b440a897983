package queue

import "time"

// begin starts a response of an active session that has a place for it.
func (s *Scheduler) begin(ses *session, asked RangeAsk, validator string, place uint8) *Response {
	ses.validate(validator)
	ses.asked(asked)
	ses.stay.running++
	s.activeChanges++
	return &Response{session: ses, asked: asked, place: place}
}

// Progress notes n more delivered bytes of a running response; they feed the measured rate and the estimates.
func (s *Scheduler) Progress(now time.Duration, r *Response, n int64) {
	s.advance(now)
	if r.done || n <= 0 || r.session.state == gone {
		return
	}
	r.bytes += n
	r.session.stay.bytes += n
	r.session.stay.openBytes += n
	s.rate.add(n)
	if s.fair.on {
		s.deliver(n)
	}
}

// Finish ends a response. The bytes [first, end) of the object count as delivered only when complete is true: the
// response reached its end; of a bundle they are of the object that was asked for. The slot stays for the next range until Policy.IdleFor
// (TailHold after tail reads only, BundleHold of a bundle).
// Calls after the first do nothing.
func (s *Scheduler) Finish(now time.Duration, r *Response, first, end int64, complete bool) {
	now = s.advance(now)
	if !s.close(r) {
		return
	}
	ses := r.session
	if b := ses.stay.bundle; b != nil && complete && r.asked.Kind != RangeMulti {
		b.deliver(int(r.place), end-max(first, 0))
	} else if complete && r.asked.Kind != RangeMulti {
		ses.stay.covered = ses.stay.covered.add(max(first, 0), min(end, ses.size))
	}
	s.keepYielding(ses)
	s.settleActive(ses)
	if ses.stay.running > 0 {
		return
	}
	switch {
	case ses.yielding && ses.held() > 0: // more of it is wanted, though it has to wait for it
		s.yield(now, ses)
	case ses.complete():
		s.stop(now, ses, ReasonCompleted)
	case ses.stay.leaving:
		s.stop(now, ses, ReasonCancelled)
	case ses.yielding:
		s.yield(now, ses)
	case ses.stay.bundle != nil:
		ses.stay.idleAt = now + min(BundleHold, s.policy.IdleFor)
	case ses.stay.start < 0:
		ses.stay.idleAt = now + min(TailHold, s.policy.IdleFor)
	default:
		ses.stay.idleAt = now + s.policy.IdleFor
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
	s.keepYielding(ses)
	s.settleActive(ses)
	switch {
	case ses.stay.running > 0:
	case ses.stay.leaving:
		s.stop(now, ses, ReasonCancelled)
	case ses.yielding && ses.held() > 0:
		s.yield(now, ses)
	default:
		s.pause(now, ses, ReasonCancelled)
	}
}

func (s *Scheduler) close(r *Response) bool {
	if r.done {
		return false
	}
	r.done = true
	if r.session.state == gone { // it was kicked
		return false
	}
	r.session.stay.running--
	r.session.stay.openBytes -= r.bytes
	s.activeChanges++
	return true
}

// settleActive gives the free places of an active session to its held requests, first come first.
func (s *Scheduler) settleActive(ses *session) {
	for ses.present != nil && ses.stay.running < s.policy.RangesPerSession && !ses.yielding {
		w := ses.present.waiters.head
		s.answer(w, s.begin(ses, w.asked, w.validator, w.place), s.admittedVerdict(ses))
	}
}

func (s *Scheduler) admittedVerdict(ses *session) Verdict {
	started := !ses.stay.announced
	ses.stay.announced = true
	return Verdict{Outcome: Admitted, Class: ses.class, Started: started, Waited: ses.stay.wait, Arrival: ses.arrival}
}

func (s *Scheduler) answer(w *Waiter, r *Response, v Verdict) {
	s.release(w)
	v.Held = true
	s.settled = append(s.settled, Settled{Owner: w.owner, Response: r, Verdict: v})
}

func (s *Scheduler) answerAll(ses *session, v Verdict) {
	for ses.present != nil {
		s.answer(ses.present.waiters.head, nil, v)
	}
}

// stop ends an active session for good.
func (s *Scheduler) stop(now time.Duration, ses *session, reason Reason) {
	s.freeSlot(now, ses, reason)
	if reason == ReasonCompleted {
		s.fair.complete(ses)
		s.model.done(ses)
	} else {
		s.fair.leave(ses)
	}
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
	st := ses.stay
	if st.bundle != nil && reason == ReasonCompleted {
		s.model.growth.learn(st.bundle)
	}
	s.record(End{
		Class: ses.class, Reason: reason, Started: true, Wait: st.wait, Promised: ses.promisedWait(),
		Duration: now - ses.since, Bytes: st.bytes,
	})
	s.entered[active].remove(ses.ageKey())
	last := len(s.active) - 1
	s.active[st.activeIndex] = s.active[last]
	s.active[st.activeIndex].stay.activeIndex = st.activeIndex
	s.active[last] = nil
	s.active = s.active[:last]
	s.byClass[active][ses.class]--
	s.calendar.ends(ses)
	s.rebar()
	ses.principal.active--
	s.fill(ses.principal)
	ses.principal.live--
	s.model.freed(ses)
	st.bytes, st.wait, ses.promised = 0, 0, -1
	ses.yielding, st.yieldTo = false, nil
	s.activeChanges++
	s.slotChanges++
}

// stopWaiting ends a wait. Only a wait that the policy ended is remembered; held requests are answered by the caller.
func (s *Scheduler) stopWaiting(now time.Duration, ses *session, reason Reason) {
	if reason == ReasonPolicy {
		s.answerAll(ses, Verdict{Outcome: PerRequest, Class: ses.class})
	}
	s.record(End{Class: ses.class, Reason: reason, Wait: now - ses.since, Promised: ses.promisedWait()})
	s.unwait(now, ses)
	ses.principal.live--
	if reason == ReasonPolicy {
		s.remember(now, ses)
		return
	}
	s.fair.leave(ses)
	s.drop(ses)
}

func (s *Scheduler) record(e End) {
	s.counts.Ended[e.Reason]++
	s.ended = append(s.ended, e)
}

// remember turns a session that holds nothing into a paused one.
func (s *Scheduler) remember(now time.Duration, ses *session) {
	ses.state, ses.since, ses.promised = paused, now, -1
	if ses.stay != nil {
		ses.stay.leaving, ses.stay.yieldTo = false, nil
	}
	ses.inHistory = true
	s.fair.leave(ses)
	ses.order = 0
	s.byClass[paused][ses.class]++
	s.paused.push(ses)
	s.entered[paused].insert(ses.ageKey(), 0, ses)
	s.due.set(s.now, ses, s.dueOf(ses))
}

// wakePaused lets a remembered session wait again at its old arrival.
func (s *Scheduler) wakePaused(now time.Duration, ses *session) {
	if ses.stay != nil {
		s.giveBack(ses)
	}
	s.counts.Rejoined++
	s.paused.remove(ses)
	s.entered[paused].remove(ses.ageKey())
	s.byClass[paused][ses.class]--
	s.join(now, ses)
	if ses.state == waiting {
		s.moves.Returned[ses.lifted]++
	}
}

// forget drops a paused session.
func (s *Scheduler) forget(ses *session) {
	s.paused.remove(ses)
	s.entered[paused].remove(ses.ageKey())
	s.byClass[paused][ses.class]--
	s.drop(ses)
}

// drop takes a session that is in no list any more out of the books.
func (s *Scheduler) drop(ses *session) {
	s.due.remove(ses)
	s.sessions.remove(ses)
	ses.state = gone
	if ses.object.refs--; ses.object.refs == 0 {
		delete(s.objects, ses.object.name)
	}
	if p := ses.principal; p.refs > 1 {
		p.refs--
	} else {
		p.refs = 0
		delete(s.principals, p.name)
	}
}

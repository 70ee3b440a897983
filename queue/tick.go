package queue

import (
	"fmt"
	"math"
	"time"
)

// shareGrace is the number of ticks a slot stays unclaimed before a principal over its share may take it although
// another one's absent session heads the queue.
const shareGrace = 20

// Tick expires, lifts, measures and hands out slots. Its cost is that of what changed, at most 192 + n/2048 due sessions
// a tick and the first few hundred of the order for the estimates; it never sorts or walks the whole queue.
func (s *Scheduler) Tick(now time.Duration) {
	now = s.advance(now)
	s.rate.roll(now)
	s.expelled.expire(now)
	s.settleWindows()
	s.influx.turn(s)
	s.expireActive(now)
	s.due.expire(now, expireFloor+s.sessions.count/expireShare, s.dueOf, s.expireOne)
	s.repair()
	s.stretch(now)
	s.model.refresh(s, now, true)
	if s.contenders(false) > 0 && !s.halted() {
		s.rate.note(now, s.model.peak)
	}
	all, common := s.free()
	candidates := s.contenders(common == 0)
	if all > 0 && candidates > 0 && s.counts.Started == s.startsTick {
		s.unclaimed++
	} else {
		s.unclaimed, s.inGrace = 0, 0
	}
	if s.ticked < s.gatherUntil {
		s.unclaimed, s.inGrace = 0, 0 // nobody could start since the last tick
	}
	if s.haltSeen {
		s.unclaimed, s.inGrace, s.haltSeen = 0, 0, s.halted()
	}
	if s.ticked = now; now < s.graceUntil {
		s.inGrace = s.unclaimed
	}
	s.startsTick = s.counts.Started
	s.dispatch(now)
	s.choose(now)
}

// A tick handles no more than this many due sessions: expireFloor and one of expireShare.
const (
	expireFloor = 192
	expireShare = 2048
)

// expireActive frees the slots of sessions without responses for too long; they are few, and none may wait for others' no-shows.
func (s *Scheduler) expireActive(now time.Duration) {
	for i := len(s.active) - 1; i >= 0; i-- {
		if ses := s.active[i]; ses.stay.running == 0 && ses.stay.idleAt <= now {
			s.rest(now, ses)
		}
	}
}

// expireOne handles a waiting or paused session whose due time has come.
func (s *Scheduler) expireOne(ses *session) {
	now := s.now
	switch ses.state {
	case waiting, parked:
		switch {
		case ses.held() > 0 || ses.noShowAt > now:
		case ses.state == parked: // the operator's word outlives a client that sleeps for a minute, and one that waits it out with its ticket in hand
			s.record(End{Class: ses.class, Reason: ReasonNoShow, Wait: now - ses.since, Promised: ses.promisedWait()})
			s.unwait(now, ses)
			ses.principal.live--
			s.remember(now, ses)
			return
		default:
			s.stopWaiting(now, ses, ReasonNoShow)
			return
		}
		s.lift(now, ses)
		s.plan(ses)
	case paused:
		s.forget(ses)
	}
}

// Configure puts another policy in force from the next decision. Active sessions keep their slots even when there are
// now more of them than slots. Waiting sessions that the policy no longer makes sessions leave for per-request
// admission. On an error nothing changed.
func (s *Scheduler) Configure(now time.Duration, policy Policy) error {
	if err := policy.Validate(); err != nil {
		return fmt.Errorf("cannot change the queue's policy: %w", err)
	}
	now = s.advance(now)
	old, halted := s.policy, s.halted()
	s.policy, s.lowered = policy, s.sessions.count
	s.extra = min(s.extra, s.elastic())
	s.moves.Configured++
	relift := old.AgingEvery != policy.AgingEvery
	rebuild := old.Strategy != policy.Strategy || relift && policy.Strategy == SmallestFirst
	if rebuild {
		// The orders of the old strategy cannot be changed by the rules of the new one.
		s.reorder()
	}
	for _, ses := range s.waiting.collect() {
		switch {
		case !policy.session(ses.decidedBy()):
			s.stopWaiting(now, ses, ReasonPolicy)
		case relift:
			s.lift(now, ses)
			s.plan(ses)
		case rebuild: // those that an operator had moved age again
			s.plan(ses)
		}
	}
	for ses := s.parked.head; ses != nil; {
		next := ses.link.next
		if !policy.session(ses.decidedBy()) {
			s.stopWaiting(now, ses, ReasonPolicy)
		}
		ses = next
	}
	s.haltChanged(now, halted)
	if old.IdleFor != policy.IdleFor {
		for ses := s.paused.head; ses != nil; ses = ses.link.next {
			s.due.set(now, ses, s.dueOf(ses))
		}
	}
	for _, ses := range s.active {
		s.keepYielding(ses)
		s.settleActive(ses)
	}
	for _, p := range s.principals {
		s.fill(p)
	}
	s.rebar()
	s.activeChanges++
	s.slotChanges++
	s.model.refresh(s, now, true)
	s.dispatch(now)
	return nil
}

// Drain ends every wait and gives no slot any more; active sessions continue, their next ranges included. It cannot be
// undone.
func (s *Scheduler) Drain(now time.Duration) {
	now = s.advance(now)
	s.draining = true
	for _, ses := range s.waiting.collect() {
		s.answerAll(ses, Verdict{Outcome: Draining, Class: ses.class, CheckIn: drainCheck})
		s.stopWaiting(now, ses, ReasonDrained)
	}
	for s.parked.head != nil {
		ses := s.parked.head
		s.answerAll(ses, Verdict{Outcome: Draining, Class: ses.class, CheckIn: drainCheck})
		s.stopWaiting(now, ses, ReasonDrained)
	}
	for s.paused.head != nil {
		s.forget(s.paused.head)
	}
}

// FreeSlot reports whether a new session of any class could start now without waiting. O(1).
func (s *Scheduler) FreeSlot() bool { return s.FreeSlots() > 0 }

// FreeSlots returns how many new sessions of any class could start now without waiting, if its window is open: the free slots outside the reserve,
// none while anybody waits whose window is, nor while Grace gathers those who come back. Under Shared nothing ever waits here, so the answer is math.MaxInt. O(1).
func (s *Scheduler) FreeSlots() int {
	if !s.policy.Queues() || s.waves() {
		return math.MaxInt
	}
	if s.contenders(false) > 0 || s.draining || s.gathering() || s.halted() || s.policy.Mode == ModeRejectNew {
		return 0
	}
	_, common := s.free()
	return common
}

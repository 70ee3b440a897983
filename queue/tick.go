package queue

import (
	"fmt"
	"math"
	"time"
)

// shareGrace is the number of ticks a slot stays unclaimed before a principal over its share may take it although
// another one's absent session heads the queue.
const shareGrace = 20

// Tick expires, lifts, re-marks and hands out slots. Its cost is that of what changed, and of the marks while slots are
// free; it never sorts or walks the whole queue for its own sake.
func (s *Scheduler) Tick(now time.Duration) {
	now = s.advance(now)
	s.rate.roll(now)
	s.expire(now)
	s.repair()
	s.model.refresh(s, now)
	all, common := s.free()
	candidates := s.trees[Interactive].len()
	if common > 0 {
		candidates = s.waiting.count
	}
	if all > 0 && candidates > 0 && s.counts.Started == s.startsTick {
		s.unclaimed++
	} else {
		s.unclaimed = 0
	}
	s.startsTick = s.counts.Started
	s.dispatch(now)
}

// expire handles every session whose due time has come.
func (s *Scheduler) expire(now time.Duration) {
	for ses := s.due.first(); ses != nil && ses.due <= now; ses = s.due.first() {
		switch ses.state {
		case waiting:
			if ses.waiters.count == 0 && ses.noShowAt <= now {
				s.stopWaiting(now, ses, ReasonNoShow)
				continue
			}
			if lifted := s.liftedClass(now, ses); lifted != ses.lifted {
				s.unlane(ses)
				s.enlane(ses, lifted)
			}
			s.plan(ses)
		case active:
			s.freeSlot(now, ses, ReasonIdle)
			s.remember(now, ses)
		default:
			s.forget(ses)
		}
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
	old := s.policy
	s.policy = policy
	relift := old.AgingEvery != policy.AgingEvery
	for ses := s.waiting.head; ses != nil; {
		next := ses.link.next
		switch {
		case !policy.session(ses.size):
			s.stopWaiting(now, ses, ReasonPolicy)
		case relift:
			if lifted := s.liftedClass(now, ses); lifted != ses.lifted {
				s.unlane(ses)
				s.enlane(ses, lifted)
			}
			s.plan(ses)
		}
		ses = next
	}
	for _, ses := range s.active {
		s.settleActive(ses)
	}
	s.repair()
	s.activeChanges++
	s.model.refresh(s, now)
	s.dispatch(now)
	return nil
}

// Drain ends every wait and gives no slot any more; active sessions continue, their next ranges included. It cannot be
// undone.
func (s *Scheduler) Drain(now time.Duration) {
	now = s.advance(now)
	s.draining = true
	for s.waiting.head != nil {
		ses := s.waiting.head
		s.answerAll(ses, Verdict{Outcome: Draining, Class: ses.class, CheckIn: drainCheck})
		s.stopWaiting(now, ses, ReasonDrained)
	}
	for s.paused.head != nil {
		s.forget(s.paused.head)
	}
	s.repair()
	s.mark()
}

// FreeSlot reports whether a new session of any class could start now without waiting. O(1).
func (s *Scheduler) FreeSlot() bool { return s.FreeSlots() > 0 }

// FreeSlots returns how many new sessions of any class could start now without waiting: the free slots outside the reserve,
// none while anybody waits. Under Shared nothing ever waits here, so the answer is math.MaxInt. O(1).
func (s *Scheduler) FreeSlots() int {
	if s.policy.Strategy == Shared {
		return math.MaxInt
	}
	if s.waiting.count > 0 || s.draining {
		return 0
	}
	_, common := s.free()
	return common
}

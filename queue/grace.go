package queue

import "time"

// GatherFor is the recommended length of the gathering after a restart; the package documentation says why.
const GatherFor = 5 * time.Second

// lateMargin is how long after half its CheckIn past its time a client that has not come keeps others back in the grace after a restart.
const lateMargin = 2 * time.Second

// graceCheck is the longest CheckIn near the front in the grace, and how far ahead of its time a client is waited for then.
const graceCheck = 5 * time.Second

// graceWalk bounds how far into the order a session looks for those it must let go first in the grace.
const graceWalk = 4096

// gatherSpread is over how much of the time behind the gathering the heads are told to come.
const gatherSpread = time.Second / 2

// Grace is for the time after a restart, when clients that held places come back one by one. Until gather no session takes a slot:
// everybody gets a place and an estimate that includes the rest of that time. From gather until until only those who held places take
// slots (their tickets prove them, or they were paused here), and in their order: one may when fewer of the others that may and whose clients
// are here or come within 5 s stand before it than a quarter of the free slots, rounded up. So up to four slots are given strictly in order. Whose
// client is half its CheckIn and 2 s over its time is not waited for any more. Both are on the clock of now; a time that is over turns its part off, and a later call
// replaces both. until is at least gather.
func (s *Scheduler) Grace(gather, until time.Duration) {
	s.gatherUntil, s.graceUntil = gather, max(gather, until)
	s.slotChanges++
}

// gathering reports whether nobody takes a slot yet, so that all who come back can stand in their order first.
func (s *Scheduler) gathering() bool { return s.now < s.gatherUntil }

// newcomer reports whether a session has no place from before the restart.
func (s *session) newcomer() bool { return !s.ticketed && !s.inHistory }

// awaited reports whether the client of a waiting session is here, was told to come soon, or is not late by a wide margin yet: the slot that it is first
// for is kept for it in the grace.
func (s *session) awaited(now time.Duration) bool {
	return s.held() > 0 || s.noShowAt == 0 || s.checkAt() <= now+graceCheck && now <= s.noShowAt-noShowMargin+lateMargin
}

// soonInGrace bounds the CheckIn of a session near the front: slots are kept for those in front, so these must not stay away for long, which they would if
// the first second after the restart showed a low rate.
func (s *Scheduler) soonInGrace(ahead int, checkIn time.Duration) time.Duration {
	if s.now < s.graceUntil && ahead < 4*s.slots() {
		return min(checkIn, graceCheck)
	}
	return checkIn
}

// firstOfReturned reports whether a waiting session is near enough to the front of those that came back to take one of the free slots.
func (s *Scheduler) firstOfReturned(ses *session, all, common int) bool {
	slots := all
	if ses.class != Interactive {
		slots = common
	}
	onlyInteractive := common == 0
	head := s.front(onlyInteractive)
	over := s.overShare(ses, head)
	if over && s.missed() < shareGrace {
		return false
	}
	ahead, steps := 0, 0
	for other := range s.walkOrder {
		if other == ses {
			return true
		}
		if steps++; steps == graceWalk {
			break
		}
		switch {
		case s.calendar.bars[other.class], onlyInteractive && other.lifted != Interactive, other.newcomer(), !other.awaited(s.now), other.yieldTo() != nil:
		case !over && s.overShare(other, head):
		default:
			if ahead++; ahead >= (slots+3)/4 {
				return false
			}
		}
	}
	return s.marked(ses, all, common) // too many newcomers stand before it to count those who are none
}

package queue

import (
	"cmp"
	"slices"
	"time"
)

// join starts a wait: the session takes its place by its arrival.
func (s *Scheduler) join(now time.Duration, ses *session) {
	ses.state, ses.since, ses.noShowAt, ses.told = waiting, now, 0, false
	ses.sample = promise{}
	ses.principal.live++
	s.waiting.bytes[ses.class] += ses.weight()
	if ses.stopped {
		ses.lifted = s.liftedClass(now, ses)
		s.parkNew(ses)
		return
	}
	s.byClass[waiting][ses.class]++
	s.waiting.push(ses)
	s.enlane(ses, s.liftedClass(now, ses))
	if ses.arrival == now {
		s.influx.note(s, ses)
	}
	s.appear(ses)
	s.orderChanges++
}

// unwait takes a session out of everything that waiting put it into, but for the books.
func (s *Scheduler) unwait(now time.Duration, ses *session) {
	if ses.state == parked {
		s.parked.remove(ses)
		s.entered[parked].remove(ses.ageKey())
		s.byClass[parked][ses.class]--
		s.waiting.bytes[ses.class] -= ses.weight()
		ses.hasWaited(s.aged(now, ses))
		s.orderChanges++
		return
	}
	s.unlane(ses)
	s.moves.Left[ses.lifted]++
	s.leaveWait(now, ses)
}

func (s *Scheduler) leaveWait(now time.Duration, ses *session) {
	s.vanish(ses)
	s.waiting.remove(ses)
	s.waiting.bytes[ses.class] -= ses.weight()
	s.byClass[waiting][ses.class]--
	ses.hasWaited(s.aged(now, ses))
	s.orderChanges++
}

// dueOf is when something must happen to a session without a contact: its no-show unless a held request makes it present, its next
// lift, the end of its memory; never when nothing.
func (s *Scheduler) dueOf(ses *session) time.Duration {
	switch ses.state {
	case paused:
		return ses.since + s.memory(ses)
	case parked:
		if ses.held() == 0 {
			return ses.noShowAt
		}
		return never
	case waiting:
		at := never
		if ses.held() == 0 {
			at = ses.noShowAt
		}
		return min(at, s.nextLift(ses))
	default:
		return never
	}
}

// plan puts a waiting session where the wheel comes by in time.
func (s *Scheduler) plan(ses *session) {
	if at := s.dueOf(ses); at != never {
		s.due.set(s.now, ses, at)
	}
}

// admit turns a waiting session into an active one and charges its class and its principal.
func (s *Scheduler) admit(now time.Duration, ses *session) {
	s.calibration.judge(s, now, ses)
	s.charge(int(ses.lifted))
	s.moves.Granted[ses.lifted]++
	charged := s.served(ses)
	s.fair.begin(ses)
	if ses.stay == nil {
		ses.stay = &stay{start: -1}
	}
	st := ses.stay
	if st.bundle != nil {
		st.bundle.begin()
	}
	st.charged = charged
	st.wait = now - ses.since
	s.leaveWait(now, ses)
	ses.state, ses.since = active, now
	s.entered[active].insert(ses.ageKey(), 0, ses)
	st.bytes, st.openBytes, st.announced, st.weighed = 0, 0, false, false
	st.activeIndex = len(s.active)
	s.active = append(s.active, ses)
	s.byClass[active][ses.class]++
	s.calendar.begins(ses)
	s.rebar()
	ses.principal.active++
	s.fill(ses.principal)
	s.activeChanges++
	s.slotChanges++
	s.counts.Started++
}

// dispatch gives free slots to present sessions, the first in the order first.
func (s *Scheduler) dispatch(now time.Duration) {
	if s.waves() {
		s.waveAll(now)
		return
	}
	for len(s.present) > 0 && !s.draining && !s.gathering() && !s.halted() {
		all, common := s.free()
		if all == 0 {
			return
		}
		if all*len(s.present) > manyPresent {
			s.dispatchMany(now)
			return
		}
		var (
			best      *session
			bestAhead int
		)
		for _, ses := range s.present {
			if common == 0 && ses.class != Interactive {
				continue
			}
			if ahead, _ := s.place(ses, common == 0); (best == nil || ahead < bestAhead) && s.eligible(ses) {
				best, bestAhead = ses, ahead
			}
		}
		if best == nil {
			return
		}
		s.admit(now, best)
		s.settleActive(best)
	}
}

// manyPresent is how many places dispatch looks up before it orders all present sessions once instead.
const manyPresent = 4096

// dispatchMany does as dispatch for many slots and many held requests at once: the present sessions are put in order once, and
// grants do not change that order any more.
func (s *Scheduler) dispatchMany(now time.Duration) {
	for _, ses := range s.presentInOrder() {
		if all, _ := s.free(); all == 0 {
			return
		}
		if s.eligible(ses) {
			s.admit(now, ses)
			s.settleActive(ses)
		}
	}
}

// presentInOrder returns the present sessions, the first in the order first.
func (s *Scheduler) presentInOrder() []*session {
	type placed struct {
		ses   *session
		ahead int
	}
	order := make([]placed, 0, len(s.present))
	for _, ses := range s.present {
		ahead, _ := s.place(ses, false)
		order = append(order, placed{ses, ahead})
	}
	slices.SortFunc(order, func(a, b placed) int { return cmp.Compare(a.ahead, b.ahead) })
	out := make([]*session, len(order))
	for i := range order {
		out[i] = order[i].ses
	}
	return out
}

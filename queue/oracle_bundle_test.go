package queue

import "time"

// This file is the oracle's bundles (X5), peeks (V4) and the time after a restart (X8).

// oMember is one object of a bundle; histories have too few of them to be lumped.
type oMember struct{ size, got int64 }

// bundled says whether a request is for one of several objects: what the first request of a session was.
func (o *oracle) bundled(ses *oSession, a *Ask) bool {
	if ses != nil {
		return ses.members != nil
	}
	return a.Bundle && !a.Protocol
}

// describe is what a request says about the bytes: the object's size, or one of several.
func (s *oSession) describe(a *Ask) int64 {
	if s.members == nil {
		return a.SizeBytes
	}
	m := s.members[a.Member]
	if m == nil {
		m = &oMember{}
		s.members[a.Member] = m
	}
	if s.state != oActive && m.got == m.size {
		m.got = 0
	}
	m.size = a.SizeBytes
	m.got = min(m.got, m.size)
	s.largest = max(s.largest, a.SizeBytes)
	sum := int64(0)
	for _, m := range s.members {
		sum += m.size
	}
	return sum
}

// toCome is what no response of a bundle has brought to its end.
func (s *oSession) toCome() (sum int64) {
	for _, m := range s.members {
		sum += m.size - m.got
	}
	return sum
}

// judgedBy is what the policy looks at.
func (s *oSession) judgedBy() int64 {
	if s.members != nil {
		return s.largest
	}
	return s.size
}

// rest ends the slot of a session without responses for too long.
func (o *oracle) rest(ses *oSession) {
	reason := ReasonIdle
	if ses.members != nil && ses.toCome() == 0 {
		reason = ReasonCompleted
		if len(ses.members) > 1 {
			o.seen.bundles++
		}
	}
	o.freeSlot(ses, reason)
	o.remember(ses)
}

// forgottenAt is when a paused session is.
func (o *oracle) forgottenAt(ses *oSession) time.Duration {
	if ses.members != nil && ses.toCome() == 0 {
		return ses.since + min(o.policy.IdleFor, 10*time.Minute)
	}
	return ses.since + 10*time.Minute
}

// peek answers a request that takes nothing.
func (o *oracle) peek(ses *oSession) oAnswer {
	switch {
	case ses.state == oActive && ses.running >= o.policy.RangesPerSession:
		return oAnswer{outcome: RangesBusy, class: ses.class, arrival: ses.arrival}
	case ses.state == oActive:
	case !o.peekTakes(ses):
		return o.contact(ses)
	default:
		o.expects(ses)
		o.seen.ready++
	}
	return oAnswer{outcome: Ready, class: ses.class, arrival: ses.arrival}
}

// newcomer has no place from before the restart.
func (s *oSession) newcomer() bool { return !s.ticketed && !s.returned }

// overdue says that the client of a waiting session is half its CheckIn and 2 s over its time, or comes in more than 5 s.
func (o *oracle) overdue(ses *oSession) bool {
	if len(ses.waiters) > 0 || ses.noShow == 0 {
		return false
	}
	return o.now > ses.noShow-15*time.Second+2*time.Second || ses.checkAt > o.now+5*time.Second
}

// inGrace is who of those that came back takes a slot: nobody before whom more than a quarter of the free slots of others stand who may
// take them and are expected.
func (o *oracle) inGrace(ses *oSession, before []*oSession, slots int, over func(*oSession) bool) bool {
	if over(ses) && o.unclaimed < 20 {
		return false
	}
	ahead := 0
	for _, other := range before {
		if !other.newcomer() && o.overdue(other) {
			o.seen.overdue++
		}
		if !other.newcomer() && !o.overdue(other) && !other.blockedBy.waits() && (over(ses) || !over(other)) {
			ahead++
		}
	}
	return ahead < (slots+3)/4
}

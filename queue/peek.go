package queue

import "time"

// rangesBusy is the answer while all places of an active session are taken.
func rangesBusy(ses *session) Verdict {
	return Verdict{Outcome: RangesBusy, Class: ses.class, Waited: ses.stay.wait, CheckIn: rangesCheck, Arrival: ses.arrival}
}

// peek answers a request that must take nothing. A session that was chosen to give its slot up does so at a request for bytes, not here.
func (s *Scheduler) peek(now time.Duration, ses *session) Verdict {
	switch {
	case ses.state == active && ses.stay.running >= s.policy.RangesPerSession:
		return rangesBusy(ses)
	case ses.state == active:
		return Verdict{Outcome: Ready, Class: ses.class, Waited: ses.stay.wait, CheckIn: headFloor, Arrival: ses.arrival}
	case ses.state == parked || !s.eligible(ses) && !s.waves():
		return s.contact(now, ses)
	}
	s.expect(now, ses, headFloor)
	return Verdict{Outcome: Ready, Class: ses.class, Waited: now - ses.since, CheckIn: headFloor, Arrival: ses.arrival}
}

package queue

import "time"

// Elastic slots keep the link full although sessions with slow clients hold slots: they open while somebody waits, no slot is
// free and the link is not full, and close when it is.
const (
	stretchBelow = 0.95             // of the capacity: below it a slot opens
	shrinkAbove  = 0.98             // of the capacity: above it one closes
	stretchEvery = time.Second      // at most one opens in it
	shrinkEvery  = 10 * time.Second // at most one closes in it while somebody waits
)

// elastic is how many slots may open beyond the base.
func (s *Scheduler) elastic() int { return max(0, s.policy.SessionsElastic-s.policy.Sessions) }

// stretch opens or closes an elastic slot. Active sessions are never touched by a closing one.
func (s *Scheduler) stretch(now time.Duration) {
	room := s.elastic()
	if room == 0 {
		return
	}
	rate, capacity := s.rate.last(now), s.rate.capacity
	if band := float64(s.policy.BandBytesPerSecond); band > 0 {
		capacity = band
	}
	since := now - s.stretched
	switch {
	case s.waiting.count == 0:
		s.extra = max(0, min(s.extra, len(s.active)-s.policy.Sessions))
	case rate < stretchBelow*capacity:
		if all, common := s.free(); since >= stretchEvery && (all == 0 || common == 0 && s.lines[Interactive].count == 0) {
			extra := min(max(s.extra, len(s.active)-s.policy.Sessions)+1, room)
			if extra != s.extra {
				s.extra, s.stretched = extra, now
				s.slotChanges++
			}
		}
	case rate >= shrinkAbove*capacity && s.extra > 0 && since >= shrinkEvery:
		s.extra--
		s.stretched = now
		s.slotChanges++
	}
}

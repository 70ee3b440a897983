package queue

import "time"

// Elastic slots keep the link full although sessions with slow clients hold slots: they open while somebody waits, no slot is
// free and the link is not full, or would not be without the sessions that end soon, and close when it is.
//
// When what waits takes less time than one slow client needs for a file, they open although the link is full: a slow client that
// starts last would hold the end of the whole queue back by its own time, so the last ones all start and those that are slow are
// found early enough.
const (
	stretchBelow = 0.95             // of the capacity: below it a slot opens
	shrinkAbove  = 0.98             // of the capacity: above it one closes
	stretchEvery = time.Second      // at most one opens in it
	shrinkEvery  = 10 * time.Second // at most one closes in it while somebody waits
	slowMatters  = 0.02             // share of slow clients from which on the end of the queue is stretched
)

// elastic is how many slots may open beyond the base.
func (s *Scheduler) elastic() int { return max(0, s.policy.SessionsElastic-s.policy.Sessions) }

// stretch opens or closes an elastic slot. Active sessions are never touched by a closing one.
func (s *Scheduler) stretch(now time.Duration) {
	room := s.elastic()
	if room == 0 || s.halted() {
		return
	}
	rate, capacity := s.rate.last(now), s.rate.capacity
	if band := float64(s.policy.BandBytesPerSecond); band > 0 {
		capacity = band
	}
	since := now - s.stretched
	switch {
	case s.contenders(false) == 0:
		s.extra = max(0, min(s.extra, len(s.active)-s.policy.Sessions))
		s.rebar()
	case rate < stretchBelow*capacity || s.linkFrees() || s.lastOnes(capacity):
		if all, common := s.free(); since >= stretchEvery && (all == 0 || common == 0 && s.contenders(true) == 0) {
			extra := min(max(s.extra, len(s.active)-s.policy.Sessions)+1, room)
			if extra != s.extra {
				s.extra, s.stretched = extra, now
				s.slotChanges++
				s.rebar()
			}
		}
	case rate >= shrinkAbove*capacity && s.extra > 0 && since >= shrinkEvery:
		s.extra--
		s.stretched = now
		s.slotChanges++
		s.rebar()
	}
}

// linkFrees reports whether soon only sessions that cannot fill the link run.
func (s *Scheduler) linkFrees() bool {
	m := &s.model
	return m.slowNow > 0 && m.peak > 0 && m.sharing <= m.endingShared
}

// lastOnes reports whether the link serves what waits in less time than one slow client needs for a file, that is with n files of
// b bytes n b / capacity < b / slowRate.
func (s *Scheduler) lastOnes(capacity float64) bool {
	m := &s.model
	return m.slowShare >= slowMatters && m.slowRate > 0 && float64(s.contenders(false)) < capacity/m.slowRate
}

// foresee finds when the elastic slots will open for the last ones.
func (m *model) foresee(s *Scheduler) {
	m.lastFrom, m.lastAt = 0, 0
	if s.elastic() == 0 || m.slowShare < slowMatters || m.slowRate == 0 {
		return
	}
	waiting := float64(s.waiting.count)
	last := min(m.peak/m.slowRate, waiting)
	if m.lastFrom = max(s.waiting.count-int(last), 1); m.lastFrom == 1 {
		return
	}
	var bytes int64
	for c := range s.lines {
		bytes += s.lines[c].bytes()
	}
	m.lastAt = m.startOf(m.lastFrom, bytes-s.lastBytes(last/waiting))
}

// lastBytes is the sum of the sizes of that share of each class's sessions, the last of its order.
func (s *Scheduler) lastBytes(share float64) (bytes int64) {
	for c := range s.lines {
		l := &s.lines[c]
		if l.count > 0 {
			bytes += l.bytes() - l.firstBytes(l.count-int(share*float64(l.count)))
		}
	}
	return bytes
}

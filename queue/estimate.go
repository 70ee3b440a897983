package queue

import (
	"math"
	"slices"
	"time"
)

// model is the forecast of slot releases, made anew when active sessions changed or it is a tick old.
type model struct {
	made    bool
	at      time.Duration
	changes uint64
	peak    float64 // bytes per second, 0 = unknown
	slack   float64 // peak over mean, the honest widening of the interval, 1.25..3
	// opens are the times from `at` when the slots open, ascending, 0 for free ones: all slots, and those that classes
	// below Interactive may use.
	opensAll, opensCommon    []float64 // seconds
	endingAll, endingCommon  int       // sessions that end within EndingSoon
	scratchOwn, scratchOther []float64
}

// refresh recomputes the forecast when it is stale. O(slots x log slots).
func (m *model) refresh(s *Scheduler, now time.Duration) {
	if m.made && m.changes == s.activeChanges && now-m.at < TickEvery {
		return
	}
	m.made, m.at, m.changes = true, now, s.activeChanges
	peak, mean := s.rate.measured(now)
	m.slack = 2
	if mean > 0 {
		m.slack = min(max(peak/mean, 1.25), 3)
	}
	m.peak = max(peak, float64(s.policy.BandBytesPerSecond))
	people, others := m.scratchOwn[:0], m.scratchOther[:0]
	running := 0
	for _, ses := range s.active {
		if ses.running > 0 {
			running++
		}
	}
	m.endingAll, m.endingCommon = 0, 0
	for _, ses := range s.active {
		opens := math.Inf(1)
		if m.peak > 0 {
			opens = float64(ses.remaining()) * float64(max(running, 1)) / m.peak
		}
		soon := opens <= EndingSoon.Seconds()
		if soon {
			m.endingAll++
		}
		if ses.class == Interactive {
			people = append(people, opens)
			continue
		}
		others = append(others, opens)
		if soon {
			m.endingCommon++
		}
	}
	slices.Sort(people)
	all, common := s.free()
	m.opensAll = append(append(append(m.opensAll[:0], make([]float64, all)...), people...), others...)
	// Interactive sessions beyond the reserve sit on slots that others could use.
	usable := s.policy.Sessions - s.policy.Reserve
	beyond := min(max(0, usable-common-len(others)), len(people))
	m.opensCommon = append(append(append(m.opensCommon[:0], make([]float64, common)...), others...), people[:beyond]...)
	slices.Sort(m.opensAll)
	slices.Sort(m.opensCommon)
	m.scratchOwn, m.scratchOther = people, others
}

// startAfter returns in how many seconds the slot for the session with that many sessions and bytes ahead opens, when
// each of those takes a slot as it opens and keeps it for hold = mean size / (rate per download) seconds: the least T
// with sum over slots of (floor((T-open)/hold)+1 where open <= T) > ahead. +Inf when it cannot be told.
func startAfter(opens []float64, ahead int, hold float64) float64 {
	if len(opens) == 0 || math.IsInf(opens[len(opens)-1], 1) && ahead >= len(opens) {
		return math.Inf(1)
	}
	if ahead == 0 || hold <= 0 {
		return opens[min(ahead, len(opens)-1)]
	}
	low, high := 0.0, opens[len(opens)-1]+hold*(float64(ahead/len(opens))+1)
	if ahead < len(opens) {
		high = opens[ahead]
	}
	if math.IsInf(high, 1) {
		return high
	}
	const precision = 0.005
	for high-low > precision {
		middle := (low + high) / 2
		openings := 0.0
		for _, open := range opens {
			if open > middle {
				break
			}
			openings += math.Floor((middle-open)/hold) + 1
		}
		if openings > float64(ahead) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// contact notes that the client of a waiting session is here and returns what it is told.
func (s *Scheduler) contact(now time.Duration, ses *session) Verdict {
	if ses.noShowAt == 0 {
		s.counts.Queued++
	}
	s.model.refresh(s, now)
	ahead, bytes := s.place(ses, false)
	v := Verdict{Outcome: Queued, Class: ses.class, Position: ahead + 1, Waited: now - ses.since, Arrival: ses.arrival}
	s.estimate(ses, ahead, bytes, &v)
	if v.EstimateKnown && ses.promised < 0 {
		ses.promised = v.Waited + v.StartsIn
	}
	windowAll, windowCommon := s.windows()
	if ses.class != Interactive {
		windowAll = windowCommon
	}
	v.CheckIn = s.check(ses, v, ses.marked != unmarked || ahead < windowAll)
	ses.noShowAt = now + v.CheckIn + v.CheckIn/2 + noShowMargin
	s.plan(ses)
	return v
}

// check is when a waiting client asks again: at the first contact soon (a crowd that comes at once is spread over a few
// seconds, as far as none of it starts before), then halfway to the start, spread per session over the last quarter before that.
func (s *Scheduler) check(ses *session, v Verdict, head bool) time.Duration {
	half, floor := v.StartsIn/2, checkFloor
	if !v.EstimateKnown {
		half = unknownCheck
	}
	if ses.noShowAt == 0 {
		crowd := min(max(half-firstCheck, 0), firstSpread)
		return firstCheck + time.Duration(mix(ses.number)%1024)*(crowd/1024)
	}
	if head {
		floor = headFloor
		if !v.EstimateKnown {
			half = checkFloor
		}
	}
	half = min(half, checkCeiling)
	spread := time.Duration(mix(ses.number)%1024) * (half / 4096)
	return max(half-spread, floor)
}

// estimate fills in the forecast for a session with that many sessions and bytes ahead.
func (s *Scheduler) estimate(ses *session, ahead int, bytes int64, v *Verdict) {
	opens := s.model.opensCommon
	if ses.class == Interactive {
		opens = s.model.opensAll
	}
	if s.model.peak == 0 {
		return
	}
	hold := 0.0
	if ahead > 0 {
		downloads := float64(min(s.policy.Sessions, len(s.active)+s.waiting.count))
		hold = float64(bytes) / float64(ahead) * downloads / s.model.peak
	}
	start := startAfter(opens, ahead, hold)
	if math.IsInf(start, 1) || start > (365*24*time.Hour).Seconds() {
		return
	}
	v.EstimateKnown = true
	v.StartsIn = time.Duration(start * float64(time.Second))
	v.EarliestIn = v.StartsIn * 3 / 4
	v.LatestIn = time.Duration(start*s.model.slack*float64(time.Second)) + TickEvery
}

// limitCheck is the Retry-After of a request that a full queue refuses.
func (s *Scheduler) limitCheck(key Key) time.Duration {
	var h uint64 = 14695981039346656037
	for _, part := range [...]string{key.Principal, key.Object, key.Client} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return limitCheckLow + time.Duration(mix(h)%1024)*((limitCheckHigh-limitCheckLow)/1024)
}

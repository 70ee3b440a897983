package admission

import (
	"sort"
	"time"
)

// The measure of the release rate: at most that many releases, none older than that.
const (
	meterReleases = 256
	meterWindow   = time.Minute
	meterLeast    = time.Second // a shorter history would be extrapolated too far
)

// meter remembers the times of the last releases.
type meter struct {
	times [meterReleases]time.Duration
	count int
	next  int
}

func (m *meter) add(now time.Duration) {
	m.times[m.next] = now
	m.next = (m.next + 1) % meterReleases
	m.count = min(m.count+1, meterReleases)
}

// perSecond returns releases over the time since the oldest of them, 0 when there was none within the window. The times ascend, so
// the oldest within the window is found by bisection: a refusal costs 8 looks whatever the history.
func (m *meter) perSecond(now time.Duration) float64 {
	recent := m.count
	if recent > 0 && now-m.at(recent) > meterWindow {
		recent -= sort.Search(m.count, func(i int) bool { return now-m.at(m.count-i) <= meterWindow })
	}
	if recent == 0 {
		return 0
	}
	return float64(recent) / max(now-m.at(recent), meterLeast).Seconds()
}

// at returns the time of the i-th last release, i from 1.
func (m *meter) at(i int) time.Duration {
	return m.times[(m.next-i+meterReleases)%meterReleases]
}

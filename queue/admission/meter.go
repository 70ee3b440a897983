package admission

import "time"

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

// perSecond returns releases over the time since the oldest of them, 0 when there was none within the window.
func (m *meter) perSecond(now time.Duration) float64 {
	recent, oldest := 0, now
	for i := 1; i <= m.count; i++ {
		at := m.times[(m.next-i+meterReleases)%meterReleases]
		if now-at > meterWindow {
			break
		}
		recent, oldest = i, at
	}
	if recent == 0 {
		return 0
	}
	return float64(recent) / max(now-oldest, meterLeast).Seconds()
}

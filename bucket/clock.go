package bucket

import "time"

// Clock is the time a governor lives in. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns monotonic time since the clock's origin, never negative.
	Now() time.Duration
	// NewTimer returns an unarmed one-shot timer that calls f on a goroutine of its own when it fires. f may be called
	// late, and once more after Stop.
	NewTimer(f func()) Timer
}

// Timer is a one-shot timer.
type Timer interface {
	// Reset arms the timer to fire once, after d, instead of whenever it was to fire before. It must not call f itself.
	Reset(d time.Duration)
	// Stop disarms the timer. It does not wait for a call of f that has begun.
	Stop()
}

// SystemClock returns the process's monotonic clock, with its origin at the call. Steps of the wall clock do not move it.
func SystemClock() Clock { return systemClock{origin: time.Now()} }

type systemClock struct{ origin time.Time }

func (c systemClock) Now() time.Duration { return time.Since(c.origin) }

func (c systemClock) NewTimer(f func()) Timer {
	timer := time.AfterFunc(time.Hour, f)
	timer.Stop()
	return systemTimer{timer}
}

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) Reset(d time.Duration) { t.timer.Reset(d) }
func (t systemTimer) Stop()                 { t.timer.Stop() }

package client

import (
	"context"
	"time"
)

// systemClock is the clock of the process.
type systemClock struct{}

// Now returns the time with a monotonic reading.
func (systemClock) Now() time.Time { return time.Now() }

// Sleep waits on a timer of the runtime.
func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// silence calls a function once nothing has been heard for a term. It stays on the runtime's timers: an injected clock
// knows only waits of the whole download, and this one runs beside every request.
type silence struct {
	timer *time.Timer
	term  time.Duration
}

func newSilence(term time.Duration, call func()) silence {
	return silence{timer: time.AfterFunc(term, call), term: term}
}

// heard starts the term anew.
func (s silence) heard() { s.timer.Reset(s.term) }

// stop ends the watch; a call that has begun is not waited for.
func (s silence) stop() { s.timer.Stop() }

// beat is a ticker that runs only while something moves; its zero value stands still.
type beat struct {
	ticker *time.Ticker
}

// run starts or stops the beat.
func (b *beat) run(wanted bool, every time.Duration) {
	if wanted && b.ticker == nil {
		b.ticker = time.NewTicker(every)
	}
	if !wanted && b.ticker != nil {
		b.ticker.Stop()
		b.ticker = nil
	}
}

// c is the channel of the beat, nil while it stands still.
func (b *beat) c() <-chan time.Time {
	if b.ticker == nil {
		return nil
	}
	return b.ticker.C
}

package drip

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// TestX1_AnOutageIsOutlastedByWhatIsThere: while no origin can be reached the bytes that a drip has are made to last, so that its client hears something all the time; when
// one is back the next piece is fetched at once, whatever the pauses of failed fetches were.
func TestX1_AnOutageIsOutlastedByWhatIsThere(t *testing.T) {
	for _, store := range []int{0, 1 << 20} {
		for _, before := range []time.Duration{2 * time.Second, 9 * time.Second, 13 * time.Second} {
			var away atomic.Bool
			in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: store, Fetchers: 2, Shut: away.Load}, func(t *testing.T, w *world) {
				fetches := 0
				s := w.begin(1, huge, 0, huge-1, answers(func(context.Context, *fetch) error {
					if away.Load() {
						return errAway
					}
					fetches++
					return nil
				}))
				w.pass(before)
				away.Store(true)
				last, silence, longest := s.c.got(), time.Duration(0), time.Duration(0)
				for range 90 * time.Second / Step {
					w.pass(Step)
					if silence += Step; s.c.got() != last {
						last, silence = s.c.got(), 0
					}
					longest = max(longest, silence)
				}
				if longest > Period+Step {
					t.Errorf("store %d, after %v: %v without a byte", store, before, longest)
				}
				if s.c.cuts != 0 {
					t.Errorf("cut")
				}
				n, had := fetches, s.c.got()
				away.Store(false)
				w.pass(time.Minute)
				if fetches == n || s.c.got() < had+10*1024 {
					t.Errorf("store %d, after %v: %d fetches and %d bytes in the minute after the outage", store, before, fetches-n, s.c.got()-had)
				}
			})
		}
	}
}

// TestX1_FetchesBeginAtOnceWhenAnOriginIsBack: one that stood without a byte does not wait for the end of its pause.
func TestX1_FetchesBeginAtOnceWhenAnOriginIsBack(t *testing.T) {
	var away atomic.Bool
	in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 0, Fetchers: 2, Shut: away.Load}, func(t *testing.T, w *world) {
		away.Store(true)
		s := w.begin(1, huge, 0, huge-1, answers(func(context.Context, *fetch) error {
			if away.Load() {
				return errAway
			}
			return nil
		}))
		w.pass(3 * time.Minute)
		if s.c.got() != 0 {
			t.Fatal("bytes of nowhere")
		}
		away.Store(false)
		w.pass(2 * Period)
		if s.c.got() == 0 {
			t.Error("it still waits")
		}
	})
}

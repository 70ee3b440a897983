package drip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

var errAway = errors.New("origin is away")

// A failure that may pass is tried again, ever more seldom, and then it goes on where it was.
func TestX2_TransientFailureIsTriedAgainWithBackoff(t *testing.T) {
	for _, store := range []int{0, 1 << 20} {
		in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: store, Fetchers: 2}, func(t *testing.T, w *world) {
			var tries []time.Duration
			away := true
			s := w.begin(1, huge, 9, huge-1, answers(func(context.Context, *fetch) error {
				tries = append(tries, w.now())
				if away {
					return errAway
				}
				return nil
			}))
			w.pass(10 * time.Minute)
			if s.c.got() != 0 || s.c.cuts != 0 || w.d.Snapshot().Failed != uint64(len(tries)) {
				t.Fatalf("%d bytes, %d cuts, %+v", s.c.got(), s.c.cuts, w.d.Snapshot())
			}
			if len(tries) < 15 || len(tries) > 25 {
				t.Errorf("%d tries in 10 minutes", len(tries))
			}
			for i := 5; i < len(tries); i++ {
				if d := tries[i] - tries[i-1]; d < 28*time.Second || d > 36*time.Second {
					t.Errorf("try %d after %v", i, d)
				}
			}
			away = false
			w.pass(time.Minute)
			if s.c.got() < 12*1024 {
				t.Errorf("%d bytes a minute later", s.c.got())
			}
			n := len(tries)
			away = true
			w.pass(2 * time.Minute)
			if d := tries[n+1] - tries[n]; d > 5*time.Second {
				t.Errorf("the first try again after %v", d) // a success forgets the failures before
			}
		})
	}
}

// ErrChanged and ErrRefused are the answer to one client. Those who shared the fetch make their own.
func TestX2_ChangedAndRefusedCutOnlyWhoseFetchItWas(t *testing.T) {
	for _, err := range []error{ErrChanged, ErrRefused, fmt.Errorf("cannot fetch: %w", ErrRefused)} {
		in(t, Settings{BytesPerSecond: 1024, Limit: 40, StoreBytes: 1 << 20, Fetchers: 2}, func(t *testing.T, w *world) {
			var bad, good []*seat
			for i := range 20 {
				answer := answers(slow(10 * time.Millisecond))
				if i%4 != 0 {
					answer = answers(func(context.Context, *fetch) error { <-time.After(10 * time.Millisecond); return err })
				}
				s := w.begin(1, huge, int64(i), huge-1, answer)
				if i%4 != 0 {
					bad = append(bad, s)
				} else {
					good = append(good, s)
				}
			}
			w.pass(2 * time.Minute)
			cut := 0
			for _, s := range bad {
				cut += s.c.cuts
				if s.c.cuts > 0 != (s.o.count() > 0) {
					t.Errorf("%v: cut %d times after %d fetches", err, s.c.cuts, s.o.count())
				}
			}
			for _, s := range good {
				if s.c.cuts != 0 || s.c.got() < 1000 {
					t.Errorf("%v: a good one was cut %d times, %d bytes", err, s.c.cuts, s.c.got())
				}
			}
			if s := w.d.Snapshot(); cut == 0 || s.Cut != uint64(cut) || s.Running != 20-cut || s.Joined != 20 {
				t.Errorf("%v: %d cut, %+v", err, cut, s)
			}
		})
	}
}

// The object changes under many clients: all are cut, none gets a byte of the other object.
func TestX2_ChangedObjectCutsAllInTheEnd(t *testing.T) {
	in(t, Settings{BytesPerSecond: 8192, Limit: 40, StoreBytes: 1 << 20, Fetchers: 8}, func(t *testing.T, w *world) {
		changed := false
		for i := range 30 {
			w.begin(1, huge, int64(i)*3000, huge-1, answers(func(context.Context, *fetch) error {
				if changed {
					return ErrChanged
				}
				return nil
			}))
		}
		w.pass(5 * Period)
		changed = true
		w.pass(time.Minute)
		for i, s := range w.all {
			if s.c.cuts != 1 {
				t.Errorf("client %d was cut %d times", i, s.c.cuts)
			}
		}
		if s := w.d.Snapshot(); s.Cut != 30 || s.Running != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestX2_PanicOfAFetchIsContained(t *testing.T) {
	told := make(chan any, 100)
	in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 1 << 20, Fetchers: 1, OnPanic: func(v any) { told <- v }}, func(t *testing.T, w *world) {
		mad := true
		s := w.begin(1, huge, 0, huge-1, answers(func(context.Context, *fetch) error {
			if mad {
				panic("out of order")
			}
			return nil
		}))
		other := w.begin(2, huge, 0, huge-1)
		w.pass(3 * Period)
		if len(told) == 0 || w.d.Snapshot().Failed == 0 || s.c.cuts != 0 || other.c.got() == 0 {
			t.Fatalf("%d told, %+v", len(told), w.d.Snapshot())
		}
		mad = false
		w.pass(6 * Period)
		if s.c.got() == 0 {
			t.Error("it does not go on")
		}
	})
}

// Sinks, sources and observers are called under the lock. One that panics loses its own drip; nobody else notices.
func TestX2_PanicUnderTheLockCutsItsDripAlone(t *testing.T) {
	for what, spoil := range map[string]func(*Start, *seat){
		"sink":   takes(func(int) (int, error) { panic("mad sink") }),
		"sent":   func(s *Start, _ *seat) { s.Sent = func(int64) { panic("mad observer") } },
		"source": func(s *Start, x *seat) { s.Source = &madSource{x.o, 1} },
	} {
		told := 0
		set := Settings{BytesPerSecond: 8192, Limit: 40, StoreBytes: 1 << 20, Fetchers: 1, OnPanic: func(any) { told++ }}
		in(t, set, func(t *testing.T, w *world) {
			var mad *seat
			for i := range 9 {
				change := func(*Start, *seat) {}
				if i == 4 {
					change = spoil
				}
				s := w.begin(byte(i), huge, 0, huge-1, change, func(_ *Start, x *seat) {
					if i != 4 || what != "source" {
						x.o.answer = slow(time.Second) // all hurry
					}
				})
				if i == 4 {
					mad = s
				}
			}
			for range 30 * visitTicks {
				func() {
					defer func() {
						if v := recover(); v != nil {
							told++ // whoever ticks contains it as well
						}
					}()
					w.tick()
				}()
			}
			late := w.begin(4, huge, 3*PieceBytes, huge-1)
			w.pass(4 * Period)
			if mad.c.cuts != 1 || told != 1 || late.c.got() == 0 {
				t.Errorf("%s: cut %d times, %d told, a late one got %d bytes", what, mad.c.cuts, told, late.c.got())
			}
			for i, s := range w.all {
				if s != mad && (s.c.got() == 0 || s.c.cuts != 0 || w.now()-s.c.moved > 30*time.Second) {
					t.Errorf("%s: client %d got %d bytes, the last %v ago", what, i, s.c.got(), w.now()-s.c.moved)
				}
			}
		})
	}
}

// madSource panics when it is asked for more than some pieces.
type madSource struct {
	*origin
	good int
}

func (m *madSource) Piece(first, last int64) Piece {
	if m.good--; m.good < 0 {
		panic("mad source")
	}
	return m.origin.Piece(first, last)
}

// Close ends fetches that hang, and those that wait for a fetcher never run.
func TestX2_CloseEndsHangingFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Settings{BytesPerSecond: 1024, Limit: 40, StoreBytes: 1 << 20, Fetchers: 2})
		for i := range 10 {
			w.begin(byte(i), huge, 0, huge-1, answers(waitFor(nil)))
		}
		w.pass(2 * Period)
		began := w.now()
		w.d.Close()
		if w.now() != began {
			t.Error("Close waited")
		}
		w.pass(2 * Period)
		for i, s := range w.all {
			if s.c.got() != 0 || s.c.cuts != 0 {
				t.Errorf("client %d: %d bytes, %d cuts", i, s.c.got(), s.c.cuts)
			}
		}
		if s := w.d.Snapshot(); s.Failed != 2 {
			t.Errorf("%+v", s)
		}
		w.end()
	})
}

// A fetch that nobody waits for any more is not made, and is no failure; whoever comes in that moment is not punished.
func TestX2_StoppedDripsFetchIsNotMade(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 40, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		made := 0
		w.begin(1, huge, 0, huge-1, answers(waitFor(gate)))
		w.pass(Period)
		gone := w.begin(2, huge, 0, huge-1, answers(func(context.Context, *fetch) error { made++; return nil }))
		w.pass(Period + Step)
		if gone.o.count() != 1 {
			t.Fatal("it asked for nothing")
		}
		w.stop(gone)
		close(gate)
		w.pass(Period)
		if s := w.d.Snapshot(); made != 0 || s.Failed != 0 || s.StoreBytes != PieceBytes {
			t.Errorf("%d made, %+v", made, s)
		}
		back := w.begin(2, huge, 0, huge-1)
		w.pass(2 * Period)
		if back.c.got() == 0 {
			t.Error("the next one gets nothing")
		}
	})
}

// Many goroutines join, begin, stop and leave while it ticks and fetches. For -race; no failure may show that no origin made.
func TestX2_I1_ConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Settings{BytesPerSecond: 1 << 16, Limit: 20, PerPrincipal: 6, StoreBytes: 6 * PieceBytes, Fetchers: 3})
		done := make(chan struct{})
		const workers = 16
		for worker := range workers {
			go func() {
				defer func() { done <- struct{}{} }()
				r := rand.New(rand.NewPCG(uint64(worker), 3))
				for range 200 {
					x := w.d.Join(fmt.Sprint(r.IntN(4)))
					if x == nil {
						<-time.After(Step)
						continue
					}
					first := r.Int64N(1 << 20)
					c := &client{object: 1, at: first, from: first}
					o := &origin{object: 1, size: 2 << 20, answer: slow(time.Duration(r.IntN(3)) * time.Second)}
					x.Begin(Start{Object: [32]byte{1}, First: first, Last: 2<<20 - 1, SizeBytes: 2 << 20, Sink: c, Source: o})
					<-time.After(time.Duration(r.Int64N(int64(4 * Period))))
					offset, idle := x.Stop()
					c.shut = true
					if r.IntN(2) == 0 {
						x.Leave()
					} else {
						go x.Leave()
					}
					if offset != c.at || !idle || c.cuts != 0 || len(c.faults) > 0 || o.bad != "" {
						t.Errorf("stopped at %d, the client has %d; cuts %d, %v %s", offset, c.at, c.cuts, c.faults, o.bad)
					}
				}
			}()
		}
		for left := workers; left > 0; {
			select {
			case <-done:
				left--
			case <-time.After(Step):
				w.d.Tick(w.now())
				CheckInvariants(t, w.d)
				if n := w.d.Snapshot().Failed; n != 0 {
					t.Fatalf("%d fetches failed", n)
				}
			}
		}
		synctest.Wait()
		w.end()
	})
}

package drip

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
)

// edge draws a number below n, often one beside a border of pieces.
func edge(r *rand.Rand, n int64) int64 {
	v := r.Int64N(n)
	if r.IntN(2) == 0 {
		v = v/PieceBytes*PieceBytes + r.Int64N(3) - 1
	}
	return min(max(v, 0), n-1)
}

// Whatever the range, the sink, the store and the rate: the client gets all bytes of its range but the last, in order, each once.
func TestX2_I4_BytesAreThoseOfTheRangeInOrderOnce(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 4))
		set := Settings{BytesPerSecond: 1 << (8 + r.IntN(12)), Limit: 100, StoreBytes: []int{0, PieceBytes, 3*PieceBytes + 77, 1 << 20}[r.IntN(4)], Fetchers: 1 + r.IntN(3)}
		in(t, set, func(t *testing.T, w *world) {
			var told [8]int64
			for i := range told {
				object := byte(r.IntN(3))
				size := int64(object)*20_000 + 3*PieceBytes - 1 + int64(object)%2
				first := edge(r, size)
				last := first + edge(r, size-first)
				w.begin(object, size, first, last, func(s *Start, x *seat) {
					s.Sent = func(n int64) { told[i] += n }
					x.c.take = clumsy(r, i%4)
					if r.IntN(3) == 0 {
						s.PieceFirst = first / PieceBytes * PieceBytes
						s.Piece = fill(object, s.PieceFirst, make([]byte, min(PieceBytes, size-s.PieceFirst)))
					}
				})
			}
			for i := 0; i < 60_000 && slices.ContainsFunc(w.all, func(s *seat) bool { return s.c.at < s.Last }); i++ {
				w.tick()
			}
			for i, s := range w.all {
				want := s.Last
				if s.c.at != want || told[i] != s.c.got() {
					t.Fatalf("seed %d, client %d: %d-%d dripped up to %d, told %d", seed, i, s.First, s.Last, s.c.at, told[i])
				}
				if offset, idle := w.stop(s); offset != want || !idle {
					t.Fatalf("stopped at %d of %d, idle %v", offset, want, idle)
				}
			}
		})
	}
}

// clumsy returns what a sink takes: all, a part, nothing for most of the time, one byte.
func clumsy(r *rand.Rand, kind int) func(int) (int, error) {
	switch kind {
	case 1:
		return func(n int) (int, error) { return 1 + r.IntN(n), nil }
	case 2:
		return func(n int) (int, error) { return n * r.IntN(2), nil }
	case 3:
		return func(n int) (int, error) {
			if r.IntN(2) == 0 {
				return r.IntN(n + 1), nil
			}
			return n, nil
		}
	}
	return nil
}

func TestX2_LastByteIsNeverDripped(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1 << 20, Limit: 10, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		for _, n := range []int64{1, 2, 3, 9} {
			w.begin(1, 100, 50, 50+n-1)
		}
		for range 400 {
			w.tick()
		}
		for _, s := range w.all {
			if s.c.at != s.Last {
				t.Errorf("%d-%d: dripped up to %d", s.First, s.Last, s.c.at)
			}
		}
	})
}

// A visit gives at most an eighth of what is left, so the end comes ever slower.
func TestX2_NearTheEndItSlowsDown(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1 << 20, Limit: 1, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		s := w.begin(1, 16000, 0, 15999)
		visits := 0
		for before := s.c.at; s.c.at < s.Last; before = s.c.at {
			left := s.Last - s.c.at + 1
			for range visitTicks {
				w.tick()
			}
			visits++
			if n := s.c.at - before; n > max(left/8, 1) || n < 1 {
				t.Fatalf("%d bytes with %d left", n, left)
			}
		}
		if visits < 60 {
			t.Errorf("over after %d visits", visits)
		}
	})
}

const visitTicks = int(Period / Step)

func TestX2_RateBeyondAllBoundsIsStillARate(t *testing.T) {
	in(t, Settings{BytesPerSecond: math.MaxInt64, Limit: 2, StoreBytes: PieceBytes, Fetchers: 1}, func(t *testing.T, w *world) {
		a, b := w.begin(1, 1<<30, 0, 1<<30-1), w.begin(2, 1<<30, 0, 1<<30-1)
		w.pass(4 * Period)
		if a.c.got() < PieceBytes || b.c.got() < mostFetch { // the second finds no room in the store
			t.Errorf("%d and %d bytes", a.c.got(), b.c.got())
		}
	})
}

// I2: nothing before Begin, nothing after Stop, whatever is on its way.
func TestX2_I2_NothingAfterStop(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		quiet := w.join("a")
		gate := make(chan struct{})
		s := w.begin(1, 1<<20, 5, 1<<20-1, answers(waitFor(gate)))
		w.pass(Period)
		if offset, idle := w.stop(s); offset != 5 || !idle {
			t.Fatalf("%d, %v", offset, idle)
		}
		close(gate)
		w.pass(2 * Period)
		if offset, idle := w.stop(s); offset != 5 || !idle || s.c.got() != 0 {
			t.Fatalf("again: %d, %v", offset, idle)
		}
		if offset, idle := quiet.Stop(); offset != 0 || !idle {
			t.Fatalf("never begun: %d, %v", offset, idle)
		}
		if w.d.Snapshot().StoreBytes != PieceBytes {
			t.Error("what was fetched is not kept")
		}
	})
}

func TestX2_BeginAfterTheEndTellsWhereToGoOn(t *testing.T) {
	for _, how := range []string{"close", "leave", "both"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 1 << 20, Fetchers: 1})
			x := w.join("a")
			if how != "leave" {
				w.d.Close()
				w.d.Close()
			}
			if how != "close" {
				x.Leave()
			}
			x.Begin(Start{First: 777, Last: 1 << 19, SizeBytes: 1 << 20, Sink: &client{shut: true}, Source: &origin{size: 1 << 20}})
			w.pass(2 * Period)
			if offset, idle := x.Stop(); offset != 777 || !idle {
				t.Errorf("%s: the response goes on at %d (idle %v), nothing of it was sent", how, offset, idle)
			}
			if w.d.Snapshot().Running != 0 {
				t.Errorf("%s: it runs", how)
			}
			w.end()
		})
	}
}

// A drip that begins again starts from nothing: neither bytes granted to the first run nor its failures are carried over.
func TestX2_SecondBeginStartsAfresh(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		s := w.begin(1, 1<<20, 0, 1<<20-1)
		s.granted, s.waits, s.credit, s.fails, s.retryAt = 99, true, 5000, 3, 1<<60
		w.stop(s)
		s.c.shut, s.c.at, s.c.from = false, 100, 100
		s.Begin(Start{Object: [32]byte{1, 1}, First: 100, Last: 1<<20 - 1, SizeBytes: 1 << 20, Sink: s.c, Source: s.o})
		if s.granted != 0 || s.waits || s.credit != 0 || s.fails != 0 {
			t.Errorf("carried over: %d granted, waits %v, credit %v, %d failures", s.granted, s.waits, s.credit, s.fails)
		}
		w.pass(2 * Period)
		if s.c.got() == 0 {
			t.Error("nothing came")
		}
		s.Begin(Start{First: 5}) // it runs: nothing
		if offset, _ := w.stop(s); offset == 5 {
			t.Error("a running drip began again")
		}
	})
}

func TestX2_I1_StopAndLeaveTwice(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 2, PerPrincipal: 1, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		a := w.begin(1, 1<<20, 0, 1<<20-1)
		b := w.begin(2, 1<<20, 0, 1<<20-1)
		for range 3 {
			w.stop(a)
			a.Leave()
			w.check()
		}
		if s := w.d.Snapshot(); s.Joined != 1 || s.Running != 1 {
			t.Fatalf("%+v", s)
		}
		b.Leave() // without Stop: it does not run on
		b.c.shut = true
		w.pass(2 * Period)
		if s := w.d.Snapshot(); s.Joined != 0 || s.Running != 0 {
			t.Fatalf("%+v", s)
		}
	})
}

var errSink = errors.New("the socket is broken")

func TestX2_FailingSinkCutsItsDripAlone(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 2, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		bad := w.begin(1, 1<<20, 0, 1<<20-1, takes(func(int) (int, error) { return 0, errSink }))
		good := w.begin(1, 1<<20, 0, 1<<20-1)
		w.pass(5 * Period)
		if s := w.d.Snapshot(); bad.c.cuts != 1 || good.c.cuts != 0 || s.Cut != 1 || s.Running != 1 || s.Joined != 2 {
			t.Errorf("cuts %d and %d, %+v", bad.c.cuts, good.c.cuts, s)
		}
		if good.c.got() == 0 {
			t.Error("the other one got nothing")
		}
	})
}

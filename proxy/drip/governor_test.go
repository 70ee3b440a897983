package drip

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
)

// ceiling checks B1 on samples of a sum that only grows: between any two of them it grew by no more than rate x time + burst.
type ceiling struct {
	limit bucket.Limit
	least float64 // min over the samples of sum - rate x time
	began bool
}

func (c *ceiling) sample(sum uint64, now time.Duration) (excess float64) {
	level := float64(sum) - float64(c.limit.BytesPerSecond)*now.Seconds()
	if !c.began || level < c.least {
		c.least, c.began = level, true
	}
	return level - c.least - float64(c.limit.Burst())
}

// B1 holds for drips together with greedy streams, they write no more than they were granted, and every drip gets on.
func TestB1_DripsAndGreedyStreamsShareOneGovernor(t *testing.T) {
	limit := bucket.Limit{BytesPerSecond: bucket.MinBytesPerSecond}
	in(t, Settings{BytesPerSecond: 1024, Limit: 100, StoreBytes: 1 << 20, Fetchers: 4}, func(t *testing.T, w *world) {
		g := bucket.NewGovernor(limit, bucket.Limit{}, bucket.SystemClock())
		defer g.Close()
		gone := make(chan struct{})
		var group sync.WaitGroup
		taken := make([]int64, 6)
		for i := range taken {
			group.Go(func() {
				s := g.Open(fmt.Sprint("greedy", i))
				defer s.Close()
				for {
					n, err := s.Take(1<<20, gone)
					if err != nil {
						return
					}
					taken[i] += n
				}
			})
		}
		r := rand.New(rand.NewPCG(1, 1))
		var paces []*bucket.Stream
		for i := range 20 {
			paces = append(paces, g.Open(fmt.Sprint("waits", i%3)))
			w.begin(byte(i%3), huge, r.Int64N(1<<20), huge-1, paced(paces[i]))
			w.tick()
		}
		c := ceiling{limit: limit}
		for range 600 {
			w.tick()
			if excess := c.sample(g.Snapshot().GrantedBytes, w.now()); excess > 1e-3 {
				t.Fatalf("B1 exceeded by %v bytes", excess)
			}
		}
		close(gone)
		group.Wait()
		var sum int64
		for i, s := range w.all {
			if _, idle := w.stop(s); !idle {
				paces[i].Close()
			}
			sum += s.c.got()
			if s.c.got() < 5000 || s.c.longest > 10*time.Second {
				t.Errorf("drip %d: %d bytes, nothing for %v", i, s.c.got(), s.c.longest)
			}
			paces[i].Close()
		}
		for _, n := range taken {
			sum += n
			if n == 0 {
				t.Error("a greedy stream got nothing")
			}
		}
		if granted := int64(g.Snapshot().GrantedBytes); sum > granted || sum < granted*9/10 {
			t.Errorf("%d bytes moved of %d granted", sum, granted)
		}
		if s := g.Snapshot(); s.Waiting != 0 {
			t.Errorf("%d still wait", s.Waiting)
		}
	})
}

// hogs are streams that ask for a byte again whenever they got one.
type hogs []*bucket.Stream

func newHogs(g *bucket.Governor) (h hogs) {
	for i := range 4 {
		h = append(h, g.Open(fmt.Sprint("hog", i)))
	}
	return h
}

func (h hogs) ask() {
	for _, s := range h {
		if _, done, _ := s.Poll(); done {
			_, _, _ = s.Begin(1)
		}
	}
}

func (h hogs) close() {
	for _, s := range h {
		s.Close()
	}
}

// untilItWaits ticks until the governor makes the drip wait.
func (h hogs) untilItWaits(w *world, d *seat) {
	w.t.Helper()
	for range 100 * visitTicks {
		h.ask()
		w.tick()
		if d.waits {
			return
		}
	}
	w.t.Fatal("it never waits")
}

// Stop while the governor has not answered says that the stream is not free, and what comes afterwards is not written.
func TestB3_StopWhileTheGovernorHasNotAnswered(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 1}, bucket.Limit{}, bucket.SystemClock())
		defer g.Close()
		s := g.Open("a")
		d := w.begin(1, huge, 0, huge-1, paced(s))
		h := newHogs(g)
		h.untilItWaits(w, d)
		before := d.c.got()
		if _, idle := w.stop(d); idle {
			t.Fatal("the stream is called free")
		}
		s.Close()
		h.close()
		w.pass(2 * Period)
		if d.c.got() != before || g.Snapshot().Waiting != 0 {
			t.Errorf("%d bytes after the end, %+v", d.c.got()-before, g.Snapshot())
		}
	})
}

// A governor without the right to grant stops the drip; it goes on by itself when the right is back. One that becomes unlimited lets go at once.
func TestB5_RevokedGovernorStopsDripsUntilRestored(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 4, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 1}, bucket.Limit{}, bucket.SystemClock())
		defer g.Close()
		s := g.Open("a")
		d := w.begin(1, huge, 0, huge-1, paced(s))
		h := newHogs(g)
		defer h.close()
		h.untilItWaits(w, d)
		g.Revoke()
		w.pass(Period) // a grant before may still be written
		before := d.c.got()
		w.pass(4 * Period)
		if n := d.c.got() - before; n != 0 || d.waits || d.c.cuts != 0 {
			t.Errorf("%d bytes without the right, waits %v, %d cuts", n, d.waits, d.c.cuts)
		}
		g.Restore()
		for _, x := range h { // their answers, without asking again
			_, _, _ = x.Poll()
		}
		w.pass(4 * Period)
		if d.c.got() == before {
			t.Error("nothing after the right came back")
		}
		h.untilItWaits(w, d)
		g.Configure(bucket.Limit{}, bucket.Limit{})
		before = d.c.got()
		w.pass(4 * Period)
		if n := d.c.got() - before; n < 3*4096 {
			t.Errorf("%d bytes in 4 periods without a limit", n)
		}
		w.stop(d)
		s.Close()
	})
}

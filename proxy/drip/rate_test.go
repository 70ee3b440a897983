package drip

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// waitFor answers a fetch when the channel is closed, or the dripper is.
func waitFor(c <-chan struct{}) func(context.Context, *fetch) error {
	return func(ctx context.Context, _ *fetch) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// slow answers a fetch after a time.
func slow(d time.Duration) func(context.Context, *fetch) error {
	return func(context.Context, *fetch) error { <-time.After(d); return nil }
}

const huge = 1 << 40

// aloneRate is what a client gets at most, in bytes a second, whose pieces find no room in the store.
var aloneRate = float64(mostFetch/aloneVisits) / Period.Seconds()

// Every client gets its rate, all together no more than the budget, and nobody waits 5 s for a byte.
func TestX2_RateOfEachAndBudgetOfAll(t *testing.T) {
	for _, c := range []struct {
		clients      int
		rate, budget int64
		store        int
	}{
		{1, 1024, 1 << 20, 1 << 20}, {1, 1024, 100, 1 << 20}, {1, 1, 1 << 20, 0}, {10, 1024, 1 << 20, 1 << 20}, {10, 1024, 5000, 1 << 20},
		{10, 1024, 7, 1 << 20}, {1000, 1024, 1 << 20, 4 << 20}, {1000, 1024, 50_000, 32 << 20}, {1000, 1024, 700, 1 << 20}, {1000, 1024, 250, 0},
	} {
		t.Run(fmt.Sprintf("%d clients, %d each, %d together", c.clients, c.rate, c.budget), func(t *testing.T) {
			set := Settings{BytesPerSecond: c.rate, Limit: 4096, StoreBytes: c.store, Fetchers: 1000, Budget: func() int64 { return c.budget }}
			in(t, set, func(t *testing.T, w *world) {
				w.deep = c.clients < 1000
				r := rand.New(rand.NewPCG(1, uint64(c.clients)))
				for i := range c.clients {
					w.begin(byte(i), huge, r.Int64N(huge/2), huge-1)
					if i%40 == 0 {
						w.tick()
					}
				}
				w.pass(Period)
				before := w.d.Snapshot().Bytes
				for _, s := range w.all {
					s.c.from, s.c.longest = s.c.at, 0
				}
				const span = 32 * time.Second
				w.pass(span)
				share := min(float64(c.rate), float64(c.budget)/float64(c.clients))
				for i, s := range w.all {
					got := float64(s.c.got())
					if most := share*(span+2*Period).Seconds() + 1; got > most || got < min(share, aloneRate)*(span-2*Period).Seconds() {
						t.Fatalf("client %d got %v bytes in %v at %v bytes/s", i, got, span, share)
					}
					if longest := max(s.c.longest, w.now()-s.c.moved); longest > 5*time.Second {
						t.Fatalf("client %d: nothing for %v", i, longest)
					}
				}
				if sum := w.d.Snapshot().Bytes - before; float64(sum) > float64(c.budget)*(span+Period).Seconds() {
					t.Errorf("%d bytes in %v of a budget of %d bytes/s", sum, span, c.budget)
				}
			})
		})
	}
}

// A drip comes at least every 5 s while the origin answers, also at the borders of pieces and when it answers slowly.
func TestX2_VisitAtLeastEveryFiveSecondsWhenTheOriginIsSlow(t *testing.T) {
	for _, store := range []int{0, 1 << 20} {
		in(t, Settings{BytesPerSecond: 3000, Limit: 4, StoreBytes: store, Fetchers: 4}, func(t *testing.T, w *world) {
			for i := range 3 {
				w.begin(byte(i), huge, 16000+int64(i), huge-1, answers(slow(2*time.Second)))
				w.tick()
			}
			w.pass(2 * time.Minute)
			for _, s := range w.all {
				if s.c.longest > 5*time.Second || float64(s.c.got()) < 0.9*110*aloneRate {
					t.Errorf("store of %d: nothing for %v, %d bytes", store, s.c.longest, s.c.got())
				}
			}
		})
	}
}

// A ticker drops ticks when its goroutine is late. The wheel follows the time and not the number of ticks.
func TestX2_LostTicksLoseNoVisit(t *testing.T) {
	for _, every := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, time.Second, Period, 20 * time.Second} {
		in(t, Settings{BytesPerSecond: 1024, Limit: 40, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
			for i := range 3 {
				w.begin(byte(i), huge, 0, huge-1)
				w.tick()
			}
			w.every = every
			w.pass(2 * time.Minute)
			for _, s := range w.all {
				if s.c.longest > max(5*time.Second, every+time.Second) {
					t.Errorf("a tick every %v: nothing for %v", every, s.c.longest)
				}
				if s.c.got() > 124*1024 {
					t.Errorf("a tick every %v: %d bytes", every, s.c.got())
				}
			}
		})
	}
}

func TestX2_TimeThatStandsOrGoesBackGivesNothingMore(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 40, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		s := w.begin(1, huge, 0, huge-1)
		w.pass(3 * Period)
		before := s.c.got()
		for i := range 100 {
			w.d.Tick(w.now() - time.Duration(i%3)*time.Second)
			w.check()
		}
		if n := s.c.got() - before; n > 4096 {
			t.Errorf("%d bytes in no time", n)
		}
		w.pass(2 * Period)
		if s.c.longest > 5*time.Second {
			t.Errorf("nothing for %v", s.c.longest)
		}
	})
}

// The budget changes at the worst moments; the sum stays below its integral and two periods.
func TestX2_ChangingBudgetIsKept(t *testing.T) {
	var budget int64
	in(t, Settings{BytesPerSecond: 1 << 20, Limit: 40, StoreBytes: 1 << 20, Fetchers: 4, Budget: func() int64 { return budget }}, func(t *testing.T, w *world) {
		budget = 10_000
		s := w.begin(1, huge, 0, huge-1)
		var allowed float64
		for i := range 1600 {
			budget = 10
			if i%visitTicks == 15 {
				budget = 10_000 // just when it is visited
			}
			allowed += float64(budget) * Step.Seconds()
			w.tick()
			if got := float64(s.c.got()); got > allowed+2*10_000 {
				t.Fatalf("%v bytes of %v after %v", got, allowed, w.now())
			}
		}
		if float64(s.c.got()) < allowed/20 {
			t.Errorf("%d bytes of %v", s.c.got(), allowed)
		}
	})
}

// Clients that come and go change everybody's share: it still sums up to the budget at most.
func TestX2_ComingAndGoingKeepsTheBudget(t *testing.T) {
	const budget = 20_000
	in(t, Settings{BytesPerSecond: 1 << 20, Limit: 400, StoreBytes: 1 << 20, Fetchers: 50, Budget: func() int64 { return budget }}, func(t *testing.T, w *world) {
		r := rand.New(rand.NewPCG(8, 8))
		var live []*seat
		for i := range 1600 {
			w.deep = i%25 == 0
			if r.IntN(3) == 0 {
				for range r.IntN(20) {
					live = append(live, w.begin(byte(r.IntN(4)), huge, r.Int64N(100_000), huge-1))
				}
			}
			for len(live) > 0 && r.IntN(3) == 0 || len(live) > 300 {
				i := r.IntN(len(live))
				w.stop(live[i])
				live[i].Leave()
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			w.tick()
			if got, most := float64(w.d.Snapshot().Bytes), budget*(w.now()+Period).Seconds(); got > most {
				t.Fatalf("%v bytes of %v after %v", got, most, w.now())
			}
		}
	})
}

// At the least rate, a byte a visit, with fetches that come late: still within the budget.
func TestX2_LeastBudgetWithLatePieces(t *testing.T) {
	const budget = 12
	in(t, Settings{BytesPerSecond: 1024, Limit: 4096, StoreBytes: 0, Fetchers: 100, Budget: func() int64 { return budget }}, func(t *testing.T, w *world) {
		r := rand.New(rand.NewPCG(2, 2))
		for i := range 40 {
			w.begin(byte(i), huge, 0, huge-1, takes(func(n int) (int, error) { return n * r.IntN(2), nil }))
			w.tick()
		}
		start, before := w.now(), w.d.Snapshot().Bytes
		w.pass(5 * time.Minute)
		if got, most := float64(w.d.Snapshot().Bytes-before), budget*(w.now()-start+2*Period).Seconds(); got > most {
			t.Errorf("%v bytes of %v", got, most)
		}
	})
}

func TestX2_JoinLimits(t *testing.T) {
	budget := int64(math.MaxInt64)
	in(t, Settings{BytesPerSecond: 1024, Limit: 20, PerPrincipal: 7, StoreBytes: 0, Fetchers: 1, Budget: func() int64 { return budget }}, func(t *testing.T, w *world) {
		join := func(principal string, want int) []*seat {
			t.Helper()
			var list []*seat
			for {
				x := w.d.Join(principal)
				if x == nil {
					break
				}
				w.all = append(w.all, &seat{Drip: x})
				list = append(list, w.all[len(w.all)-1])
				w.check()
			}
			if len(list) != want {
				t.Fatalf("%d places of %s, want %d", len(list), principal, want)
			}
			return list
		}
		a := join("a", 7)
		join("b", 7)
		join("c", 6)
		a[0].Leave()
		a[0].Leave()
		join("c", 1)
		join("d", 0)
		if got := w.d.Snapshot().Limit; got != 20 {
			t.Errorf("limit %d", got)
		}
		for _, s := range w.all {
			s.Leave()
		}
		budget = 2 // 2 bytes/s are 8 visits of a byte
		join("a", 7)
		join("b", 1)
		for _, s := range w.all {
			s.Leave()
		}
		for _, budget = range []int64{0, -1, math.MinInt64} {
			join("a", 0)
			if got := w.d.Snapshot().Limit; got != 0 {
				t.Errorf("limit %d with a budget of %d", got, budget)
			}
		}
	})
	in(t, Settings{BytesPerSecond: 1024, Limit: 0, Fetchers: 1}, func(t *testing.T, w *world) {
		if w.d.Join("a") != nil {
			t.Error("a place where there is none")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Settings{BytesPerSecond: 1024, Limit: 5, Fetchers: 1})
		w.d.Close()
		if w.d.Join("a") != nil {
			t.Error("a place after Close")
		}
		w.end()
	})
}

// A budget that goes away, or below zero, leaves the byte of each visit.
func TestX2_BudgetThatGoesAwayLeavesAByteAVisit(t *testing.T) {
	budget := int64(1 << 20)
	in(t, Settings{BytesPerSecond: 1024, Limit: 5, StoreBytes: 1 << 20, Fetchers: 1, Budget: func() int64 { return budget }}, func(t *testing.T, w *world) {
		s := w.begin(1, huge, 0, huge-1)
		w.pass(Period)
		for _, budget = range []int64{0, -5, math.MinInt64} {
			w.pass(Period)
			before := s.c.got()
			w.pass(10 * Period)
			if n := s.c.got() - before; n != 10 {
				t.Errorf("budget %d: %d bytes in 10 visits", budget, n)
			}
		}
		budget = math.MaxInt64
		before := s.c.got()
		w.pass(10 * Period)
		if n := s.c.got() - before; n < 8*4096 || n > 11*4096 {
			t.Errorf("without a bound: %d bytes in 10 visits", n)
		}
	})
}

func TestX2_SettingsAreJudged(t *testing.T) {
	good := Settings{BytesPerSecond: 1, Limit: 0, Fetchers: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(*Settings){
		func(s *Settings) { s.BytesPerSecond = 0 }, func(s *Settings) { s.Limit = -1 }, func(s *Settings) { s.PerPrincipal = -1 },
		func(s *Settings) { s.StoreBytes = -1 }, func(s *Settings) { s.Fetchers = 0 },
	} {
		bad := good
		spoil(&bad)
		if d, err := New(bad); err == nil || d != nil {
			t.Errorf("accepted: %+v", bad)
		}
	}
}

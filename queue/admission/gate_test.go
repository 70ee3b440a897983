package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is moved by hand.
type clock struct{ now atomic.Int64 }

func (c *clock) read() time.Duration  { return time.Duration(c.now.Load()) }
func (c *clock) pass(d time.Duration) { c.now.Add(int64(d)) }
func settings(capacity, each int) Settings {
	return Settings{Capacity: capacity, PerPrincipal: each, WaitLimit: 64, WaitPerPrincipal: 8, Timeout: 20 * time.Second}
}

// failer is what a plain test and a property test share.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newGate(t failer, s Settings) (*Gate, *clock) {
	t.Helper()
	c := &clock{}
	g, err := New(s, c.read)
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

func acquire(t failer, g *Gate, name string) Place {
	t.Helper()
	p, err := g.Acquire(name, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// result is what a waiting request got.
type result struct {
	place Place
	err   error
}

// wait starts a request that must wait, inside a bubble.
func wait(g *Gate, name string, gone <-chan struct{}) <-chan result {
	out := make(chan result, 1)
	go func() {
		p, err := g.Acquire(name, gone)
		out <- result{p, err}
	}()
	synctest.Wait()
	return out
}

func answered(t failer, from <-chan result) (result, bool) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-from:
		return r, true
	default:
		return result{}, false
	}
}

func TestA1_CapacityAndPrincipalLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, settings(3, 2))
		a, b := acquire(t, g, "p"), acquire(t, g, "p")
		third := wait(g, "p", nil)
		if _, ok := answered(t, third); ok {
			t.Fatal("a principal exceeded its limit")
		}
		c := acquire(t, g, "q") // the other principal passes the one at its limit
		other := wait(g, "q", nil)
		a.Release()
		a.Release()
		Place{}.Release()
		r, ok := answered(t, third)
		if !ok || r.err != nil {
			t.Fatalf("the waiter got %v %v", r, ok)
		}
		if _, ok := answered(t, other); ok {
			t.Fatal("one release made two places")
		}
		b.Release()
		o, ok := answered(t, other)
		if !ok {
			t.Fatal("the place was not handed on")
		}
		for _, p := range []Place{c, r.place, o.place} {
			p.Release()
		}
		if s := g.Snapshot(); s.Active != 0 || s.Waiting != 0 || len(g.principals) != 0 {
			t.Fatalf("left over: %+v", s)
		}
	})
}

func TestA1_PrincipalsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, settings(1, 1))
		first := acquire(t, g, "first")
		type waiting struct {
			name string
			out  <-chan result
		}
		var all []waiting
		for _, name := range []string{"a", "a", "a", "b", "b", "c"} { // a came first with everything
			all = append(all, waiting{name, wait(g, name, nil)})
		}
		var order strings.Builder
		for place := first; ; {
			place.Release()
			next := slices.IndexFunc(all, func(w waiting) bool {
				r, ok := answered(t, w.out)
				if ok {
					place = r.place
				}
				return ok
			})
			if next < 0 {
				break
			}
			order.WriteString(all[next].name)
			all = slices.Delete(all, next, next+1)
		}
		if order.String() != "abcaba" {
			t.Fatalf("turns were %s", order.String())
		}
	})
}

func TestA1_WaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(1, 1)
		s.WaitLimit, s.WaitPerPrincipal = 3, 2
		g, _ := newGate(t, s)
		acquire(t, g, "first")
		wait(g, "p", nil)
		wait(g, "p", nil)
		var busy *BusyError
		if _, err := g.Acquire("p", nil); !errors.As(err, &busy) || busy.Reason != Full {
			t.Fatalf("the third of a principal got %v", err)
		}
		wait(g, "q", nil)
		if _, err := g.Acquire("r", nil); !errors.As(err, &busy) {
			t.Fatalf("the fourth got %v", err)
		}
		if s := g.Snapshot(); s.Rejected != 2 || s.Waiting != 3 || len(g.principals) != 3 {
			t.Fatalf("%+v", s)
		}
		g.Drain()
		synctest.Wait()
	})
}

func TestA1_WaitEndsAfterTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := newGate(t, settings(1, 1))
		acquire(t, g, "first")
		early := wait(g, "p", nil)
		c.pass(time.Second)
		late := wait(g, "q", nil)
		c.pass(19 * time.Second)
		g.Tick(c.read())
		r, ok := answered(t, early)
		var busy *BusyError
		if !ok || !errors.As(r.err, &busy) || busy.Reason != Timeout || busy.RetryAfter < 20*time.Second {
			t.Fatalf("after its term: %v %v", r.err, ok)
		}
		if _, ok := answered(t, late); ok {
			t.Fatal("the later one ended with it")
		}
		if s := g.Snapshot(); s.TimedOut != 1 || s.Waiting != 1 {
			t.Fatalf("%+v", s)
		}
		g.Drain()
		if r, ok := answered(t, late); !ok || !errors.Is(r.err, ErrDraining) {
			t.Fatalf("draining: %v", r.err)
		}
		if _, err := g.Acquire("p", nil); !errors.Is(err, ErrDraining) {
			t.Fatalf("draining: %v", err)
		}
	})
}

func TestP6_ACancelledWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, settings(1, 1))
		first := acquire(t, g, "first")
		gone := make(chan struct{})
		out := wait(g, "p", gone)
		close(gone)
		if r, ok := answered(t, out); !ok || !errors.Is(r.err, ErrCancelled) {
			t.Fatalf("cancelled: %v", r.err)
		}
		if s := g.Snapshot(); s.Cancelled != 1 || s.Waiting != 0 {
			t.Fatalf("%+v", s)
		}
		// Departure and turn at the same moment: whoever wins, the place comes back.
		for range 200 {
			gone := make(chan struct{})
			out := wait(g, "p", gone)
			var both sync.WaitGroup
			both.Go(func() { close(gone) })
			both.Go(first.Release)
			both.Wait()
			if r, ok := answered(t, out); !ok {
				t.Fatal("no answer")
			} else if r.err == nil {
				r.place.Release()
			}
			first = acquire(t, g, "first")
		}
		first.Release()
		if s := g.Snapshot(); s.Active != 0 || s.Waiting != 0 {
			t.Fatalf("left over: %+v", s)
		}
	})
}

func TestA1_ConfigureActsFromTheNextDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, settings(1, 1))
		first := acquire(t, g, "p")
		out := wait(g, "p", nil)
		if err := g.Configure(settings(2, 2)); err != nil {
			t.Fatal(err)
		}
		r, ok := answered(t, out)
		if !ok || r.err != nil {
			t.Fatal("the new capacity was not handed out")
		}
		if err := g.Configure(settings(1, 1)); err != nil {
			t.Fatal(err)
		}
		if s := g.Snapshot(); s.Active != 2 || s.Capacity != 1 {
			t.Fatalf("%+v", s)
		}
		out = wait(g, "q", nil)
		first.Release()
		if _, ok := answered(t, out); ok {
			t.Fatal("admitted above the lowered capacity")
		}
		r.place.Release()
		if r, ok := answered(t, out); !ok || r.err != nil {
			t.Fatal("the waiter was forgotten")
		}
		if g.Configure(Settings{}) == nil || g.Snapshot().Capacity != 1 {
			t.Fatal("impossible settings were taken")
		}
	})
}

func TestA2_RetryAfterFollowsTheMeasuredReleases(t *testing.T) {
	s := settings(1, 1)
	s.WaitLimit = 0
	for _, c := range []struct {
		name     string
		releases int
		every    time.Duration
		low      time.Duration
	}{
		{"unmeasured: one term", 0, 0, 20 * time.Second},
		{"ten seconds each", 5, 10 * time.Second, 8 * time.Second}, // 5 releases, the oldest 40 s ago
		{"fast: the floor", 300, 10 * time.Millisecond, 2 * time.Second},
		{"outside the window: one term", 1, 2 * time.Minute, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, clock := newGate(t, s)
			for i := range c.releases {
				acquire(t, g, "p").Release()
				if i < c.releases-1 || c.releases == 1 {
					clock.pass(c.every)
				}
			}
			acquire(t, g, "p")
			seen := map[time.Duration]bool{}
			for range 50 {
				_, err := g.Acquire("q", nil)
				var busy *BusyError
				if !errors.As(err, &busy) || busy.RetryAfter < c.low || busy.RetryAfter > c.low*5/4 {
					t.Fatalf("got %v, want %v and up to a quarter", err, c.low)
				}
				seen[busy.RetryAfter] = true
			}
			if c.low > retryFloor && len(seen) < 25 {
				t.Fatalf("50 refusals carry %d times", len(seen))
			}
		})
	}
}

func TestA2_RetryAfterIsAtMostTenMinutes(t *testing.T) {
	s := settings(1, 1)
	s.Timeout, s.WaitLimit = time.Hour, 0
	g, _ := newGate(t, s)
	acquire(t, g, "p")
	_, err := g.Acquire("q", nil)
	if want := fmt.Sprintf("cannot admit request: busy (full), retry after %v", 10*time.Minute); err == nil || err.Error() != want {
		t.Fatalf("got %q, want %q", err, want)
	}
}

func TestA1_UncontendedAcquireDoesNotAllocate(t *testing.T) {
	g, _ := newGate(t, settings(2, 2))
	acquire(t, g, "warm").Release()
	if n := testing.AllocsPerRun(200, func() { p, _ := g.Acquire("p", nil); p.Release() }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestL2_SettingsErrorsNameFieldRuleAndExample(t *testing.T) {
	err := Settings{Capacity: 0, PerPrincipal: 5, WaitLimit: -1, WaitPerPrincipal: -1}.Validate()
	for _, want := range []string{"Capacity 0: must be at least 1, for example 16", "PerPrincipal 5: must be 1..1", "WaitLimit -1", "WaitPerPrincipal -1", "Timeout 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func BenchmarkA1_Uncontended(b *testing.B) {
	g, _ := newGate(b, settings(4, 4))
	b.ReportAllocs()
	for b.Loop() {
		p, _ := g.Acquire("p", nil)
		p.Release()
	}
}

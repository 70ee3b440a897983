package admission

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestA1_EnterNeverBlocksAndTellsOfTheAnswer(t *testing.T) {
	g, c := newGate(t, settings(1, 1))
	first, w, err := g.Enter("a", nil)
	if w != nil || err != nil {
		t.Fatalf("an empty gate answered %v, %v", w, err)
	}
	var told []*Wait
	note := func(w *Wait) { told = append(told, w) }
	enter := func(name string) *Wait {
		t.Helper()
		_, w, err := g.Enter(name, note)
		if w == nil || err != nil {
			t.Fatalf("%s: a full gate answered %v, %v", name, w, err)
		}
		if _, ok, err := w.Poll(); ok || err != nil {
			t.Fatalf("%s was answered at once: %v", name, err)
		}
		return w
	}
	b, d, e := enter("b"), enter("d"), enter("e")
	first.Release()
	if !slices.Equal(told, []*Wait{b}) {
		t.Fatalf("%d waits were told of one release", len(told))
	}
	second, ok, err := b.Poll()
	if !ok || err != nil {
		t.Fatalf("the wait whose turn came answered %v, %v", ok, err)
	}
	d.Cancel() // still waits
	second.Release()
	if !slices.Equal(told, []*Wait{b, e}) {
		t.Fatal("the place did not pass over the wait that was cancelled")
	}
	e.Cancel() // has its place already: it goes on
	if s := g.Snapshot(); s.Active != 0 || s.Waiting != 0 || s.Cancelled != 2 || len(g.principals) != 0 {
		t.Fatalf("left over: %+v", s)
	}
	last, _, _ := g.Enter("a", nil)
	f := enter("f")
	c.pass(20 * time.Second)
	g.Tick(c.read())
	var busy *BusyError
	if _, ok, err := f.Poll(); !ok || !errors.As(err, &busy) || busy.Reason != Timeout {
		t.Fatalf("after its term the wait answered %v, %v", ok, err)
	}
	h := enter("h")
	g.Drain()
	if _, ok, err := h.Poll(); !ok || !errors.Is(err, ErrDraining) {
		t.Fatalf("a drain answered %v, %v", ok, err)
	}
	if _, w, err := g.Enter("i", note); w != nil || !errors.Is(err, ErrDraining) {
		t.Fatalf("a drained gate answered %v, %v", w, err)
	}
	last.Release()
	if s := g.Snapshot(); s.Active != 0 || s.Waiting != 0 {
		t.Fatalf("left over: %+v", s)
	}
}

// TestA2_ASeededGateRepeatsItself: with clock and random source given, refusals are repeatable, and differ with the seed.
func TestA2_ASeededGateRepeatsItself(t *testing.T) {
	refusals := func(seed uint64) (all []time.Duration) {
		c := &clock{}
		random := rand.New(rand.NewPCG(seed, 0))
		s := settings(1, 1)
		s.WaitLimit = 0
		g, err := NewWith(s, Options{Clock: c.read, Random: random.Int64N})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			p, _, _ := g.Enter("a", nil)
			var busy *BusyError
			if _, _, err := g.Enter("b", nil); !errors.As(err, &busy) {
				t.Fatalf("a full gate answered %v", err)
			}
			all = append(all, busy.RetryAfter)
			c.pass(3 * time.Second)
			p.Release()
		}
		return all
	}
	if a := refusals(1); !slices.Equal(a, refusals(1)) || slices.Equal(a, refusals(2)) {
		t.Error("refusals do not follow the seed")
	}
}

// TestA2_RateIsThatOfTheLastMinute compares the bisection with a count.
func TestA2_RateIsThatOfTheLastMinute(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	var (
		m    meter
		all  []time.Duration
		now  time.Duration
		seen int
	)
	for range 3000 {
		now += time.Duration(random.Int64N(int64(time.Second)) * random.Int64N(3))
		if random.IntN(200) == 0 {
			now += 90 * time.Second
		}
		if random.IntN(4) > 0 {
			m.add(now)
			all = append(all, now)
		}
		recent := all[max(0, len(all)-meterReleases):]
		for len(recent) > 0 && now-recent[0] > meterWindow {
			recent = recent[1:]
		}
		want := 0.0
		if len(recent) > 0 {
			want = float64(len(recent)) / max(now-recent[0], meterLeast).Seconds()
			seen++
		}
		if got := m.perSecond(now); got != want {
			t.Fatalf("at %v: %v releases a second, want %v", now, got, want)
		}
	}
	if seen < 100 || seen == 3000 {
		t.Fatalf("the history had releases %d times of 3000", seen)
	}
}

func TestA1_UncontendedEnterDoesNotAllocate(t *testing.T) {
	g, _ := newGate(t, settings(4, 4))
	g.Enter("p", nil)
	note := func(*Wait) {}
	if n := testing.AllocsPerRun(200, func() { p, _, _ := g.Enter("p", note); p.Release() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

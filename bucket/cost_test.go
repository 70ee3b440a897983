package bucket

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestB4_UnlimitedTakesNoLock(t *testing.T) {
	clock := newLateClock(0)
	g := NewGovernor(Limit{}, Limit{}, clock)
	defer g.Close()
	g.mu.Lock() // whoever needs it hangs, and the test times out
	defer g.mu.Unlock()
	if allocs := testing.AllocsPerRun(100, func() {
		s := g.Open("a")
		if n, err := s.Take(1<<40, nil); !g.Unlimited() || s != nil || n != 1<<40 || err != nil {
			t.Fatal("unlimited traffic is paced")
		}
		s.Close()
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if clock.armed.Load() != 0 {
		t.Error("a timer was armed")
	}
}

func TestB4_StreamOfAGovernorThatBecameUnlimitedTakesNoLock(t *testing.T) {
	g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
	s := g.Open("a")
	g.Configure(Limit{}, Limit{})
	g.mu.Lock()
	n, err := s.Take(1<<30, nil)
	g.mu.Unlock()
	if n != 1<<30 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	s.Close()
	g.Close()
}

func TestB4_GrantAtOnceAllocatesNothingAndArmsNoTimer(t *testing.T) {
	clock := newLateClock(0)
	g := NewGovernor(Limit{MaxBytesPerSecond}, Limit{MaxBytesPerSecond}, clock)
	defer g.Close()
	s := g.Open("a")
	defer s.Close()
	gone := make(chan struct{})
	if allocs := testing.AllocsPerRun(1000, func() {
		if n, err := s.Take(100, gone); n != 100 || err != nil {
			t.Fatal(n, err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations a grant", allocs)
	}
	if n := clock.armed.Load(); n != 0 {
		t.Errorf("timer armed %d times", n)
	}
}

func TestB4_WaitingAllocatesNothing(t *testing.T) {
	for name, limits := range map[string][2]Limit{
		"shared": {{100 << 20}, {}}, "own": {{}, {100 << 20}}, "both": {{100 << 20}, {90 << 20}},
	} {
		clock := newLateClock(0)
		g := NewGovernor(limits[0], limits[1], clock)
		s := g.Open("a")
		gone := make(chan struct{})
		for clock.armed.Load() < 3 {
			s.Take(100_000, gone)
		}
		before := clock.armed.Load()
		if allocs := testing.AllocsPerRun(50, func() {
			if n, err := s.Take(100_000, gone); n != 100_000 || err != nil {
				t.Fatal(n, err)
			}
		}); allocs != 0 {
			t.Errorf("%s: %v allocations a wait", name, allocs)
		}
		if clock.armed.Load() == before {
			t.Errorf("%s: nothing waited", name)
		}
		s.Close()
		g.Close()
	}
}

// Wake-ups follow the quanta, not the streams: 50 waiting streams cost one timer, armed once for each quantum.
func TestB4_OneTimerForAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newLateClock(MaxLateness)
		g := NewGovernor(Limit{10 << 20}, Limit{}, clock)
		defer g.Close()
		gone := make(chan struct{})
		done := make(chan int64)
		for range 50 {
			go func() { done <- greedy(t, g, "a", 1<<30, gone) }()
		}
		<-time.After(10 * time.Second)
		close(gone)
		for range 50 {
			<-done
		}
		quanta := int64(g.Snapshot().GrantedBytes) / g.core.quantum
		if n := clock.armed.Load(); n > quanta+1 {
			t.Errorf("%d armings for %d quanta", n, quanta)
		}
	})
}

func BenchmarkUnlimited(b *testing.B) {
	g := NewGovernor(Limit{}, Limit{}, SystemClock())
	s := g.Open("a")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Take(1<<20, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTakeAtOnce(b *testing.B) {
	g := NewGovernor(Limit{MaxBytesPerSecond}, Limit{MaxBytesPerSecond}, SystemClock())
	defer g.Close()
	s := g.Open("a")
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Take(1, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// benchTurns lets the streams ask without pause in virtual time; a step is a grant with its wake-up.
func benchTurns(b *testing.B, c *core, streams []*Stream) {
	var now time.Duration
	for _, s := range streams {
		c.ask(s, 1<<30, now)
	}
	b.ReportAllocs()
	for b.Loop() {
		for s := c.answered; s != nil; s = c.answered {
			c.answered, s.next = s.next, nil
			c.ask(s, 1<<30, now)
		}
		at, _ := c.wake()
		now = max(now, at)
		c.pump(now)
	}
}

func benchStreams(c *core, n, streams int) (all []*Stream) {
	for i := range n * streams {
		s := &Stream{}
		c.open(s, string(rune('a'+i%n)))
		all = append(all, s)
	}
	return all
}

func BenchmarkTurns(b *testing.B) {
	c := newCore(Limit{125_000_000}, Limit{}, 0)
	benchTurns(b, c, benchStreams(c, 64, 2))
}

func BenchmarkTurnsWithinPrincipals(b *testing.B) {
	c := newCore(Limit{125_000_000}, Limit{10_000_000}, 0)
	benchTurns(b, c, benchStreams(c, 64, 2))
}

// Half of the streams are of a group that gets a quarter.
func BenchmarkTurnsWithAGroup(b *testing.B) {
	c := newCore(Limit{125_000_000}, Limit{}, 0)
	c.configureGroup(0, Limit{31_250_000}, 0)
	streams := benchStreams(c, 64, 2)
	for i := range streams[:64] {
		c.join(streams[2*i], 0)
	}
	benchTurns(b, c, streams)
}

package bucket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lateClock is the system clock with timers that fire late by a random part of late, and a count of armings.
type lateClock struct {
	Clock
	late  time.Duration
	armed atomic.Int64
}

type lateTimer struct {
	Timer
	clock *lateClock
}

func newLateClock(late time.Duration) *lateClock { return &lateClock{Clock: SystemClock(), late: late} }

func (c *lateClock) NewTimer(f func()) Timer { return lateTimer{c.Clock.NewTimer(f), c} }

func (t lateTimer) Reset(d time.Duration) {
	t.clock.armed.Add(1)
	t.Timer.Reset(d + time.Duration(rand.Int64N(int64(t.clock.late)+1)))
}

// greedy takes without pause until gone is closed and returns its bytes.
func greedy(t *testing.T, g *Governor, key string, want int64, gone <-chan struct{}) int64 {
	s := g.Open(key)
	defer s.Close()
	var sum int64
	for {
		n, err := s.Take(want, gone)
		if errors.Is(err, ErrCancelled) {
			return sum
		}
		if err != nil {
			t.Error(err)
			return sum
		}
		sum += n
	}
}

// flow runs greedy streams in virtual time with late timers and returns what they got beyond the burst, as a fraction of
// rate*duration, and per principal. tune may damage the governor first.
func flow(t *testing.T, total, own Limit, principals, streams int, duration time.Duration, tune func(*Governor)) (float64, map[string]int64) {
	var fraction float64
	got := map[string]int64{}
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(total, own, newLateClock(MaxLateness))
		defer g.Close()
		shared, released := newBound(total, 0), newBound(total, 0)
		if g.core.total.maxLag > 0 {
			released.slack = MaxLateness
		}
		g.core.observe = func(d grant) {
			if !total.Off() {
				shared.grant(d.bytes, d.shared)
				released.grant(d.bytes, d.released)
			}
		}
		if tune != nil {
			tune(g)
		}
		gone := make(chan struct{})
		var group sync.WaitGroup
		var mu sync.Mutex
		for i := range principals * streams {
			group.Go(func() {
				key := fmt.Sprint("p", i%principals)
				n := greedy(t, g, key, 1<<30, gone)
				mu.Lock()
				got[key] += n
				mu.Unlock()
			})
		}
		<-time.After(duration)
		close(gone)
		group.Wait()
		snapshot := g.Snapshot()
		if snapshot.Waiting != 0 {
			t.Errorf("%d still wait", snapshot.Waiting)
		}
		if shared.faults+released.faults > 0 {
			t.Errorf("B1 exceeded: charges by %v, releases by %v billionths", shared.worst, released.worst)
		}
		rate, burst := float64(total.BytesPerSecond), total.Burst()
		if total.Off() {
			rate, burst = float64(own.BytesPerSecond)*float64(principals), own.Burst()*int64(principals)
		}
		fraction = (float64(snapshot.GrantedBytes) - float64(burst)) / (rate * duration.Seconds())
	})
	return fraction, got
}

func TestB1_LateWakeUpsLoseNoRate(t *testing.T) {
	for _, c := range []struct {
		rate     int64
		duration time.Duration
	}{
		{MinBytesPerSecond, 400 * time.Second},
		{1 << 20, 100 * time.Second},
		{64 << 20, 60 * time.Second},
		{125_000_000, 30 * time.Second},
		{170_000_000, 30 * time.Second},
		{180_000_000, 30 * time.Second},
		{400_000_000, 15 * time.Second},
		{1_250_000_000, 15 * time.Second},
		{12_500_000_000, 5 * time.Second},
		{MaxBytesPerSecond, 150 * time.Millisecond},
	} {
		for _, streams := range []int{1, 3} {
			duration := c.duration
			if c.rate == MaxBytesPerSecond && streams > 1 {
				continue // a hundred and fifty thousand quanta once are enough
			}
			fraction, _ := flow(t, Limit{c.rate}, Limit{}, streams, 1, duration, nil)
			// The streams stop in mid-quantum: up to a burst and 3 ms of rate may stand ungranted at the end.
			tail := (float64(Limit{c.rate}.Burst())/float64(c.rate) + MaxLateness.Seconds()) / duration.Seconds()
			if fraction < 0.999-tail || fraction > 1 {
				t.Errorf("%d bytes/s, %d streams: %.5f of the rate", c.rate, streams, fraction)
			}
		}
	}
}

func TestB1_LateWakeUpsLoseNoRateOfPrincipals(t *testing.T) {
	for _, rate := range []int64{1 << 20, 125_000_000, 1_250_000_000} {
		fraction, _ := flow(t, Limit{}, Limit{rate}, 3, 2, 10*time.Second, nil)
		if fraction < 0.998 || fraction > 1 {
			t.Errorf("%d bytes/s each: %.5f of the rate", rate, fraction)
		}
	}
}

// Negative control: without head-room and without lag the same timers do lose rate.
func TestB1_LateWakeUpsWouldLoseRateOtherwise(t *testing.T) {
	for _, rate := range []int64{125_000_000, 1_250_000_000} {
		fraction, _ := flow(t, Limit{rate}, Limit{}, 1, 1, 5*time.Second, func(g *Governor) {
			g.core.quantum = Limit{rate}.Burst()
			g.core.total.maxLag = 0
		})
		if fraction > 0.95 {
			t.Errorf("%d bytes/s: %.5f of the rate without a remedy", rate, fraction)
		}
	}
}

func TestB2_PrincipalsShareEqually(t *testing.T) {
	const total = 64 << 20
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{total}, Limit{}, newLateClock(MaxLateness))
		defer g.Close()
		gone := make(chan struct{})
		var one, many int64
		var group sync.WaitGroup
		group.Go(func() { n := greedy(t, g, "one", 1<<30, gone); atomic.AddInt64(&one, n) })
		for range 7 {
			group.Go(func() { n := greedy(t, g, "many", 1<<30, gone); atomic.AddInt64(&many, n) })
		}
		<-time.After(10 * time.Second)
		close(gone)
		group.Wait()
		if d := one - many; d > 2*g.core.quantum || d < -2*g.core.quantum {
			t.Errorf("1 stream got %d, 7 streams of another principal %d", one, many)
		}
	})
}

func TestB2_SlowReaderLeavesItsShare(t *testing.T) {
	const total = 64 << 20
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{total}, Limit{}, newLateClock(MaxLateness))
		defer g.Close()
		gone := make(chan struct{})
		var fast, slow int64
		var group sync.WaitGroup
		group.Go(func() { fast = greedy(t, g, "fast", 1<<30, gone) })
		group.Go(func() {
			s := g.Open("slow")
			defer s.Close()
			for range 20 { // reads 100 KB, then its socket is full for half a second
				n, err := s.Take(100_000, nil)
				if err != nil {
					t.Error(err)
				}
				slow += n
				<-time.After(500 * time.Millisecond)
			}
		})
		<-time.After(10 * time.Second)
		close(gone)
		group.Wait()
		if slow < 1_900_000 || fast+slow < total*10*999/1000 {
			t.Errorf("slow %d, fast %d of %d", slow, fast, total*10)
		}
	})
}

func TestB2_BothLimitsHold(t *testing.T) {
	total, own := Limit{64 << 20}, Limit{48 << 20}
	fraction, got := flow(t, total, own, 2, 3, 10*time.Second, nil)
	if fraction < 0.998 || fraction > 1 {
		t.Errorf("two principals got %.4f of the total", fraction)
	}
	if d := got["p0"] - got["p1"]; d > 4<<20 || d < -4<<20 {
		t.Errorf("unequal shares: %v", got)
	}
	_, got = flow(t, total, own, 1, 3, 10*time.Second, nil)
	if n := got["p0"]; n > 10*own.BytesPerSecond+own.Burst() || n < 10*own.BytesPerSecond*998/1000 {
		t.Errorf("one principal got %d, its limit is %d", n, 10*own.BytesPerSecond)
	}
}

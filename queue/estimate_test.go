package queue

import (
	"strings"
	"testing"
	"time"
)

func containsText(text, part string) bool { return strings.Contains(text, part) }

// TestQ8_EqualDownloadsStartWhenPromised compares what newcomers are told with a fleet that then behaves as the model
// says: 4 slots, 8 MiB/s, equal files.
func TestQ8_EqualDownloadsStartWhenPromised(t *testing.T) {
	const rate, size = 8 * mib, 16 * mib
	p := testPolicy(4)
	p.BandBytesPerSecond = rate
	h := newHarness(t, p)
	var running []*Response
	for i := range 4 {
		r, _ := h.want(Admitted, askOf(name("a", i), "o").sized(size))
		running = append(running, r)
	}
	promised := map[Key]time.Duration{}
	for i := range 20 {
		a := askOf(name("p", i), "o").sized(size)
		_, _, v := h.hold(a)
		if !v.EstimateKnown || v.Position != i+1 || v.EarliestIn > v.StartsIn || v.LatestIn < v.StartsIn {
			t.Fatalf("newcomer %d is told %+v", i, v)
		}
		promised[a.Key] = v.StartsIn
	}
	for len(running) > 0 {
		h.pass(TickEvery)
		share := int64(rate/2) / int64(len(running))
		var still []*Response
		for _, r := range running {
			h.s.Progress(h.now, r, share)
			if r.bytes < size {
				still = append(still, r)
				continue
			}
			h.finish(r, 0, size, true)
		}
		for _, settled := range h.s.TakeSettled() {
			key := settled.Owner.(Key)
			if diff := (h.now - promised[key]).Abs(); diff > time.Second {
				t.Errorf("%s started at %v, promised %v", key.Principal, h.now, promised[key])
			}
			still = append(still, settled.Response)
		}
		running = still
		h.s.Tick(h.now)
		h.check()
	}
	if n := h.snap().Counts.Ended[ReasonCompleted]; n != 24 {
		t.Fatalf("%d completed", n)
	}
}

func TestQ8_NoRateNoEstimate(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("p", "o"))
	_, v := h.want(Queued, askOf("q", "o"))
	if v.EstimateKnown || v.StartsIn != 0 {
		t.Fatalf("an estimate out of nothing: %+v", v)
	}
}

func TestQ8_RateIsThePeakSecondOfTheLastMinute(t *testing.T) {
	var m rateMeter
	for i := range 10 {
		bytes := int64(100)
		if i == 3 {
			bytes = 900
		}
		m.add(bytes / 2)
		m.roll(time.Duration(i)*time.Second + 500*time.Millisecond)
		m.add(bytes / 2)
		m.roll(time.Duration(i+1) * time.Second)
	}
	if peak, mean := m.measured(10 * time.Second); peak != 900 || mean != 180 {
		t.Fatalf("peak %v, mean %v", peak, mean)
	}
	if peak, _ := m.measured(65 * time.Second); peak != 100 {
		t.Fatalf("an old peak stays: %v", peak)
	}
	// A tick that is late by a factor of ten is no peak.
	m.add(1000)
	m.roll(20 * time.Second)
	if peak, _ := m.measured(79 * time.Second); peak != 100 {
		t.Fatalf("a late tick made the peak %v", peak)
	}
}

func TestQ9_CheckIsHalfwayAndSpread(t *testing.T) {
	p := testPolicy(1)
	p.BandBytesPerSecond = mib
	h := newHarness(t, p)
	h.want(Admitted, askOf("p", "o"))
	seen, first := map[time.Duration]bool{}, map[time.Duration]bool{}
	for i := range 40 {
		a := askOf(name("q", i), "o").sized(2 * mib)
		_, v := h.want(Queued, a)
		if v.CheckIn < 2*time.Second || v.CheckIn > 6*time.Second || v.CheckIn > max(v.StartsIn/2, 2*time.Second) {
			t.Fatalf("a newcomer that starts in %v first checks in %v", v.StartsIn, v.CheckIn)
		}
		first[v.CheckIn.Truncate(time.Second)] = true
		_, v = h.want(Queued, a)
		half := min(v.StartsIn/2, 5*time.Minute)
		if v.CheckIn > half || v.CheckIn < half*3/4-time.Millisecond {
			t.Fatalf("starts in %v, check in %v", v.StartsIn, v.CheckIn)
		}
		seen[v.CheckIn] = true
	}
	if len(seen) < 35 {
		t.Fatalf("40 sessions come back at %d different times", len(seen))
	}
	if len(first) < 4 {
		t.Fatalf("a crowd of newcomers first comes back in the seconds %v", first)
	}
	far := askOf("z", "o").sized(1 << 40)
	h.want(Queued, far)
	h.want(Queued, askOf("z2", "o"))
	if _, v := h.want(Queued, askOf("z2", "o")); v.CheckIn > 5*time.Minute || v.CheckIn < 225*time.Second {
		t.Fatalf("far from its start it checks in %v", v.CheckIn)
	}
}

func TestQ9_HeadsMayComeFromOneSecond(t *testing.T) {
	p := testPolicy(1)
	p.BandBytesPerSecond = 100 * mib
	h := newHarness(t, p)
	h.want(Admitted, askOf("p", "o")) // ends within a second by the model: its slot counts for the marks
	h.tick(TickEvery)
	h.want(Queued, askOf("q", "o"))
	if _, v := h.want(Queued, askOf("q", "o")); v.CheckIn != time.Second {
		t.Fatalf("the head checks in %v", v.CheckIn)
	}
}

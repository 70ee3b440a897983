package queue

import (
	"math"
	"testing"
	"time"
)

// crowded lets bulk sessions come every minute for some hours before a window that opens 10 h after the start: sizes of 1, 2, 3 and 4 GiB in turn.
func crowded(t *testing.T, strategy Strategy, hours int) *harness {
	t.Helper()
	p := banded(2)
	p.Strategy, p.AgingEvery = strategy, 0
	h := newHarness(t, p)
	h.windows(shutting(Bulk, 0, opens(10*time.Hour)))
	for i := range hours * 60 {
		h.hold(askOf(name("p", i), name("o", i)).in(Bulk).sized(int64(1+i%4) << 30))
		h.jump(time.Minute)
	}
	return h
}

// jump lets that much time pass in one tick.
func (h *harness) jump(d time.Duration) {
	h.t.Helper()
	h.pass(d)
	h.s.Tick(h.now)
	h.check()
}

// told is what a newcomer of that size is told.
func (h *harness) told(bytes int64) Verdict {
	h.t.Helper()
	_, v := h.want(Queued, askOf("new", name("o", int(bytes>>20))).in(Bulk).sized(bytes))
	if !v.EstimateKnown {
		h.t.Fatalf("nothing was told: %+v", v)
	}
	return v
}

// TestW1_NewcomersBeforeTheOpeningWidenTheInterval: of those who come as others have, the smaller ones go ahead of a big download, and hardly any of the smallest.
func TestW1_NewcomersBeforeTheOpeningWidenTheInterval(t *testing.T) {
	for _, strategy := range []Strategy{FairSojourn, SmallestFirst} {
		h := crowded(t, strategy, 2)
		big, small := h.told(5<<30), h.told(1<<29)
		// 60 came an hour, of 2.5 GiB each: as many until it starts are so many hours of 10 MiB/s, of which a part is taken.
		want := influxShare * big.StartsIn.Hours() * 60 * 2.5 * 1024 / 10 / 3600
		margin := (big.LatestIn - big.StartsIn).Hours()
		if margin < 0.95*want || margin > 1.1*want {
			t.Errorf("%s: the p90 of a big download lies %.1f h behind its p50, want about %.1f", strategy, margin, want)
		}
		if margin := small.LatestIn - small.StartsIn; margin > time.Minute {
			t.Errorf("%s: the p90 of the smallest download lies %v behind its p50: nobody goes ahead of it", strategy, margin)
		}
		if early := big.StartsIn - big.EarliestIn; early > big.StartsIn/2 {
			t.Errorf("%s: newcomers moved the early end by %v", strategy, early)
		}
	}
}

// TestW1_NobodyExpectsNewcomersWhereTheyStandBehind: under ordered nobody is overtaken by size.
func TestW1_NobodyExpectsNewcomersWhereTheyStandBehind(t *testing.T) {
	h := crowded(t, Ordered, 2)
	v := h.told(5 << 30)
	// 300 GiB ahead are 8.5 h, whose interval is a quarter before anything was learned.
	if margin := v.LatestIn - v.StartsIn; margin > 5*time.Hour {
		t.Errorf("the p90 lies %v behind the p50", margin)
	}
}

// TestW1_ArrivalsOfAnotherOrderAreForgotten: samples compare with nothing in an order that was made anew.
func TestW1_ArrivalsOfAnotherOrderAreForgotten(t *testing.T) {
	h := crowded(t, SmallestFirst, 1)
	if h.s.influx.n[Bulk] == 0 {
		t.Fatal("nothing is remembered")
	}
	p := h.s.policy
	p.Strategy = FairSojourn
	h.configure(p)
	if h.s.influx.n[Bulk] != 0 {
		t.Errorf("%d samples of the order before are left", h.s.influx.n[Bulk])
	}
	if v := h.told(5 << 30); v.LatestIn < v.StartsIn {
		t.Errorf("%+v", v)
	}
}

// TestW1_ArrivalsAreCountedBySpans: what is counted is what came in as long a time before; scaled up when less is remembered, from half an hour on; and a pause of
// days forgets it all.
func TestW1_ArrivalsAreCountedBySpans(t *testing.T) {
	h := crowded(t, SmallestFirst, 1)
	ses := h.session(askOf("p59", "o59").Key)
	h.s.influx.turn(h.s)
	gib := func(within time.Duration) float64 {
		return h.s.influx.ahead(h.s, ses, within.Seconds()) / (1 << 30)
	}
	// It has 4 GiB: of the sizes of the last 60, those of 1, 2 and 3 GiB go ahead, 1.5 GiB on the average of all.
	for within, sessions := range map[time.Duration]float64{15 * time.Minute: 15, 30 * time.Minute: 30, time.Hour: 60, 2 * time.Hour: 120, 0: 0, -time.Hour: 0} {
		if got, want := gib(within), sessions*1.5; math.Abs(got-want) > want*0.1 {
			t.Errorf("%.1f GiB go ahead within %v, want %.1f", got, within, want)
		}
	}
	h.jump(4 * time.Hour)
	if got, want := gib(5*time.Hour), 60*1.5; math.Abs(got-want) > 1 {
		t.Errorf("%.1f GiB within 5 h, want %.1f: as many as came in the last five", got, want)
	}
	if got := gib(2 * time.Hour); got != 0 {
		t.Errorf("%.1f GiB within 2 h, of which nobody came in the last", got)
	}
	h.jump(100 * time.Hour)
	if got := gib(90 * time.Hour); got != 0 {
		t.Errorf("%.1f GiB after days without an arrival", got)
	}
}

// TestW1_VirtualTimeEndsOvertaking: under fair-sojourn whoever comes late enough has a later F, however small.
func TestW1_VirtualTimeEndsOvertaking(t *testing.T) {
	h := crowded(t, FairSojourn, 2)
	f := &h.s.influx
	ses := h.session(askOf("p119", "o119").Key)
	before := f.ahead(h.s, ses, 8*3600)
	for i := range f.virtual { // as if V had grown by 2 GiB in this span and the one before
		f.virtual[i] = h.s.fair.v - 2<<30
	}
	after := f.ahead(h.s, ses, 8*3600)
	if before == 0 || after >= before/2 || after == 0 {
		t.Errorf("%.0f GiB go ahead while V stands, %.0f while it grows", before/(1<<30), after/(1<<30))
	}
}

// TestW1_ALookCountsNothing: a log of calls has no looks, so they must leave what is foretold as it is, also between the half hour and its tick.
func TestW1_ALookCountsNothing(t *testing.T) {
	h := crowded(t, FairSojourn, 1)
	before := h.s.influx
	h.pass(influxEvery + time.Second)
	if _, found := h.s.Show(h.now, askOf("p59", "o59").Key); !found {
		t.Fatal("the session is not shown")
	}
	h.s.List(h.now, ListQuery{Waiting: true}, Mark{}, 10, 100)
	h.s.Overview(h.now)
	if h.s.influx != before {
		t.Error("a look began a span of arrivals")
	}
	h.jump(0)
	if h.s.influx == before {
		t.Error("a tick began no span: this shows nothing")
	}
}

package queue

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// shutting returns the plan in which a class has that share now, and edges of it at times with shares.
func shutting(c Class, share int, edges ...WindowEdge) WindowPlan {
	p := OpenPlan()
	p.Shares[c] = share
	for _, e := range edges {
		e.Class = c
		p.Edges = append(p.Edges, e)
	}
	return p
}

func opens(at time.Duration) WindowEdge { return WindowEdge{At: at, Share: WholeShare, Seed: 7} }
func shuts(at time.Duration) WindowEdge { return WindowEdge{At: at} }

func (h *harness) windows(p WindowPlan) {
	h.t.Helper()
	h.must(h.s.SetWindows(h.now, p))
	h.check()
}

// banded is testPolicy with a band, so that everything can be estimated.
func banded(slots int) Policy {
	p := testPolicy(slots)
	p.BandBytesPerSecond = 10 * mib
	return p
}

func TestW1_AShutClassStartsNobodyAndOthersTakeItsTurn(t *testing.T) {
	h := newHarness(t, banded(2))
	h.windows(shutting(Bulk, 0, opens(time.Hour)))
	_, v := h.want(Queued, askOf("a", "1").in(Bulk))
	if v.Position != 1 || v.StartsIn < time.Hour || v.EarliestIn < time.Hour || v.LatestIn < v.StartsIn {
		t.Errorf("a session of a class that opens in 1 h was told %+v", v)
	}
	if n := h.s.FreeSlots(); n != 2 {
		t.Errorf("%d slots are free for newcomers of open classes, want 2", n)
	}
	h.want(Admitted, askOf("b", "2"))
	h.want(Admitted, askOf("c", "3").in(Background))
	h.want(Queued, askOf("d", "4"))
	if _, v = h.want(Queued, askOf("a", "1").in(Bulk)); v.Position != 2 {
		t.Errorf("the session of the shut class stands at %d, want behind all others", v.Position)
	}
}

func TestW1_ASlotIsNeverMarkedForAShutClass(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.windows(shutting(Bulk, 0))
	h.hold(askOf("a", "1").in(Bulk))
	h.tick(time.Minute)
	if h.s.unclaimed != 0 {
		t.Errorf("%d ticks count as if a client had not come", h.s.unclaimed)
	}
	h.want(Admitted, askOf("b", "2").in(Background))
}

func TestW1_OpeningStartsThoseThatWaitAtTheNextTick(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.windows(shutting(Bulk, 0, opens(10*time.Second)))
	h.hold(askOf("a", "1").in(Bulk))
	h.tick(9500 * time.Millisecond)
	if len(h.s.TakeSettled()) != 0 {
		t.Fatal("it started before the window opened")
	}
	h.tick(500 * time.Millisecond)
	if settled := h.s.TakeSettled(); len(settled) != 1 || settled[0].Response == nil || settled[0].Response.Outside() {
		t.Errorf("at the opening the held request was answered %+v", settled)
	}
	if w := h.snap().Windows[Bulk]; w.Share != WholeShare || w.Changes || w.Outside != 0 {
		t.Errorf("the window is %+v after the last edge", w)
	}
}

// TestW1_AContactBetweenTicksSeesTheEdge: no start outside, to the nanosecond.
func TestW1_AContactBetweenTicksSeesTheEdge(t *testing.T) {
	h := newHarness(t, testPolicy(2))
	h.windows(shutting(Bulk, WholeShare, shuts(10*time.Second), opens(20*time.Second)))
	h.now = 10*time.Second - 1
	h.want(Admitted, askOf("a", "1").in(Bulk))
	h.now = 10 * time.Second
	h.want(Queued, askOf("a", "2").in(Bulk))
	h.now = 20*time.Second - 1
	h.want(Queued, askOf("a", "2").in(Bulk))
	h.now = 20 * time.Second
	h.want(Admitted, askOf("a", "2").in(Bulk))
}

func TestW1_StartedOnesFinishAndAreNotAskedForTheirSlot(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.windows(shutting(Bulk, WholeShare, shuts(2*time.Minute)))
	long := askOf("a", "1").in(Bulk)
	r, _ := h.want(Admitted, long.bytes(Bounded(0, mib-1)))
	h.tick(3 * time.Minute)
	h.hold(askOf("b", "2")) // of a higher class, and here: it would get the slot at the next range
	h.tick(time.Minute)
	h.finish(r, 0, mib, true)
	r, _ = h.want(Admitted, long.bytes(OpenFrom(mib)))
	h.finish(r, mib, long.SizeBytes, true)
	if settled := h.s.TakeSettled(); len(settled) != 1 || settled[0].Response == nil {
		t.Error("the other one did not start after the end")
	}
	if got := h.reasons(); len(got) != 1 || got[0] != ReasonCompleted {
		t.Errorf("the started one ended %v, want completed", got)
	}
}

func TestW1_AShareBoundsWhatBeginsOutside(t *testing.T) {
	h := newHarness(t, testPolicy(4))
	inside, _ := h.want(Admitted, askOf("a", "0").in(Bulk))
	h.windows(shutting(Bulk, 300)) // ceil(0.3 x 4) = 2, and who started before does not count
	first, _ := h.want(Admitted, askOf("a", "1").in(Bulk))
	h.want(Admitted, askOf("a", "2").in(Bulk))
	if inside.Outside() || !first.Outside() {
		t.Error("who began outside its window is told wrongly")
	}
	h.want(Queued, askOf("a", "3").in(Bulk))
	h.want(Admitted, askOf("b", "4").in(Background)) // the free slot is the next class's
	h.finish(first, 0, 100*mib, true)
	h.want(Admitted, askOf("a", "3").in(Bulk))
	if w := h.snap().Windows[Bulk]; w.Outside != 2 || w.Share != 300 {
		t.Errorf("the window is %+v, want two begun outside", w)
	}
}

// TestW1_AgingLiftsNobodyPastAWindow: a session whose applied class is shut waits, however old; after the opening it has the age of its open time.
func TestW1_AgingLiftsNobodyPastAWindow(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	h.windows(shutting(Bulk, WholeShare, shuts(90*time.Second), opens(time.Hour)))
	r, _ := h.want(Admitted, askOf("a", "1"))
	old := askOf("b", "2").in(Bulk)
	h.hold(old)
	lifted := func() Class { return h.session(old.Key).lifted }
	h.tick(80 * time.Second)
	if lifted() != Release {
		t.Fatalf("after 80 s it stands in %v", lifted())
	}
	h.tick(20 * time.Second)
	if lifted() != Bulk {
		t.Fatalf("its window shut, and it stands in %v", lifted())
	}
	h.tick(30 * time.Minute)
	h.finish(r, 0, 100*mib, true)
	h.tick(time.Minute)
	if len(h.s.TakeSettled()) != 0 || lifted() != Bulk {
		t.Fatalf("a lifted session of a shut class passed its window, in %v", lifted())
	}
	if aged := h.session(old.Key).waited(); aged != 90*time.Second {
		t.Errorf("aging counts %v, want the 90 s before it shut", aged)
	}
}

// TestW1_AClassPaysNothingForItsShutTime: between the classes it takes its place as one that was empty.
func TestW1_AClassPaysNothingForItsShutTime(t *testing.T) {
	p := testPolicy(1)
	p.Weights = [Classes]int{1, 1, 1, 1}
	h := newHarness(t, p)
	h.windows(shutting(Bulk, 0, opens(time.Hour)))
	r, _ := h.want(Admitted, askOf("a", "0"))
	for i := range 4 {
		h.hold(askOf("b", name("bulk", i)).in(Bulk))
	}
	for i := range 20 {
		h.hold(askOf("a", name("release", i)))
	}
	h.starts(r, 10)
	h.now = time.Hour
	h.s.Tick(h.now)
	h.check()
	var order []Class
	h.s.Order(func(p Placed) bool { order = append(order, p.Class); return len(order) < 6 })
	if fmt.Sprint(order) != "[release bulk release bulk release bulk]" && fmt.Sprint(order) != "[bulk release bulk release bulk release]" {
		t.Errorf("after the opening the order is %v, want turn and turn about", order)
	}
}

func TestX8_AnOpeningShufflesNewcomersAndKeepsThoseThatWait(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.windows(shutting(Bulk, 0, opens(time.Minute)))
	h.want(Admitted, askOf("z", "0"))
	for i := range 5 {
		h.pass(time.Second)
		h.want(Queued, askOf(name("early", i), "o").in(Bulk))
	}
	h.now = time.Minute
	for i := range 60 {
		h.pass(50 * time.Millisecond)
		_, v := h.want(Queued, askOf(name("late", i), "o").in(Bulk))
		if v.Arrival < time.Minute || v.Arrival >= time.Minute+OpeningShuffle {
			t.Fatalf("a newcomer of the opening has the arrival %v", v.Arrival)
		}
	}
	var order []string
	inversions := 0
	h.s.Order(func(p Placed) bool { order = append(order, p.Key.Principal); return true })
	for i, who := range order[:5] {
		if who != name("early", i) {
			t.Errorf("position %d is %s, want those that waited first and in their order", i+1, who)
		}
	}
	for i, who := range order[6:] {
		if who < order[5+i] {
			inversions++
		}
	}
	if inversions < 10 {
		t.Errorf("newcomers stand in the order of their networks: %d inversions", inversions)
	}
}

// TestW1_EstimatesKnowTheEdges: a queue longer than the rest of its window goes on in the next one.
func TestW1_EstimatesKnowTheEdges(t *testing.T) {
	h := newHarness(t, banded(1)) // 100 MiB at 10 MiB/s: ten seconds each
	h.windows(shutting(Bulk, WholeShare, shuts(65*time.Second), opens(time.Hour), shuts(2*time.Hour)))
	h.want(Admitted, askOf("z", "0").in(Bulk))
	for i := range 10 {
		_, v := h.want(Queued, askOf("a", name("o", i)).in(Bulk))
		want := time.Duration(i+1) * 10 * time.Second
		if want >= 65*time.Second { // the seventh would start at 70 s
			want = time.Hour + time.Duration(i-6)*10*time.Second
		}
		if off := (v.StartsIn - want).Abs(); !v.EstimateKnown || off > 6*time.Second {
			t.Errorf("session %d was told %v, want %v", i, v.StartsIn, want)
		}
		if v.EarliestIn > v.StartsIn || v.LatestIn < v.StartsIn || v.EarliestIn > 65*time.Second && v.EarliestIn < time.Hour {
			t.Errorf("session %d: interval %v..%v around %v", i, v.EarliestIn, v.LatestIn, v.StartsIn)
		}
	}
}

func TestW1_AClassThatNeverOpensHasNoEstimateAndIsAskedSeldom(t *testing.T) {
	h := newHarness(t, banded(1))
	h.windows(shutting(Bulk, 0))
	h.want(Queued, askOf("a", "1").in(Bulk))
	h.pass(3 * time.Second)
	_, v := h.want(Queued, askOf("a", "1").in(Bulk))
	if v.EstimateKnown || v.CheckIn < 3*time.Minute {
		t.Errorf("told a start %v, to come in %v", v.EstimateKnown, v.CheckIn)
	}
}

func TestW1_PlansAreValidatedWhole(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	good := shutting(Bulk, 0, opens(time.Hour))
	h.windows(good)
	many := OpenPlan()
	many.Edges = make([]WindowEdge, MaxWindowEdges+1)
	for i, bad := range []WindowPlan{
		{Shares: [Classes]int{0, 0, 0, 1001}}, {Shares: [Classes]int{-1}}, many,
		{Edges: []WindowEdge{{At: 2}, {At: 1}}}, {Edges: []WindowEdge{{Class: Classes}}}, {Edges: []WindowEdge{{Share: 1001}}},
	} {
		if err := h.s.SetWindows(h.now, bad); err == nil {
			t.Errorf("plan %d was taken", i)
		}
	}
	if w := h.snap().Windows[Bulk]; w != (WindowState{Changes: true, ChangesAt: time.Hour}) {
		t.Errorf("after refused plans the window is %+v", w)
	}
	h.windows(OpenPlan())
	h.want(Admitted, askOf("a", "1").in(Bulk))
}

// TestW1_BigQueuesAreForetoldInTheFluidLimit compares far starts of a queue that nobody follows with what can be written down.
func TestW1_BigQueuesAreForetoldInTheFluidLimit(t *testing.T) {
	p := banded(4)
	p.QueueLimit, p.QueuePerPrincipal, p.Weights = 1<<20, 1<<20, [Classes]int{1, 1, 1, 1}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, s: s}
	const n, each = 3000, 10.0 // seconds of the whole link for one
	h.must(s.SetWindows(0, shutting(Bulk, 0, opens(n/2*each*time.Second), shuts(3*n*each*time.Second))))
	for i := range n + 4 {
		s.Ask(0, askOf("a", name("release", i)))
	}
	for i := range n {
		s.Ask(0, askOf("b", name("bulk", i)).in(Bulk))
	}
	h.tick(time.Second)
	h.now = walkEvery + time.Second
	s.Tick(h.now) // the forecast is made anew
	// Release alone until the opening, then turn and turn about, then the rest of bulk alone.
	at := func(start float64, got time.Duration) {
		t.Helper()
		if off := math.Abs(got.Seconds() - start); off > 0.03*start+60 {
			t.Errorf("told %v, want %v s", got, start)
		}
	}
	_, v := s.Ask(h.now, askOf("b", name("bulk", n-1)).in(Bulk))
	at(2*n*each-20, v.StartsIn)
	_, v = s.Ask(h.now, askOf("b", name("bulk", 100)).in(Bulk))
	at(n/2*each+200*each, v.StartsIn)
	_, v = s.Ask(h.now, askOf("a", name("release", 1000)))
	at(1000*each, v.StartsIn)
	_, v = s.Ask(h.now, askOf("a", name("release", n-1)))
	at(2*n*each-n/2*each, v.StartsIn)
}

package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestQ4_FreedSlotsFollowTheWeights(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	for i := range 40 {
		for c := range Class(Classes) {
			h.hold(askOf(name("p", i), name("o", int(c))).in(c))
		}
	}
	var got [Classes]int
	for _, k := range h.starts(r, 60) {
		got[k.Object[1]-'0']++
	}
	// The session that ran first was of class release and is charged to it.
	for c, want := range [Classes]int{32, 16, 8, 4} {
		if got[c] < want-1 || got[c] > want+1 {
			t.Fatalf("60 starts went %v to the classes, want 32/16/8/4, one more or less", got)
		}
	}
}

func TestQ4_ReserveIsForInteractiveOnly(t *testing.T) {
	p := testPolicy(4)
	p.Reserve = 1
	h := newHarness(t, p)
	for i := range 3 {
		h.want(Admitted, askOf("p", name("o", i)).in(Bulk))
	}
	h.want(Queued, askOf("p", "o3").in(Release))
	h.tick(2 * time.Second)
	h.want(Queued, askOf("p", "o3").in(Release))
	h.want(Admitted, askOf("people", "o").in(Interactive))
	h.want(Queued, askOf("people", "o2").in(Interactive))
}

// fairTurns checks that of starts[i], all from principals that wait throughout, nobody is two turns ahead of another.
func fairTurns(starts []string, principals int) error {
	counts := map[string]int{}
	for i, p := range starts {
		counts[p]++
		low := i
		for _, n := range counts {
			low = min(low, n)
		}
		if len(counts) < principals {
			low = 0
		}
		if counts[p] > low+1 {
			return fmt.Errorf("start %d is turn %d of %s while another has %d", i, counts[p], p, low)
		}
	}
	return nil
}

func TestQ3_PrincipalsTakeTurnsAndEachIsFIFO(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	lengths := []int{9, 6, 6}
	var arrivals []string
	for p, n := range lengths { // everything of one principal before the next one comes
		for i := range n {
			h.hold(askOf(name("p", p), name("o", i)))
			h.now += time.Millisecond
			arrivals = append(arrivals, name("p", p))
		}
	}
	var turns []string
	next := map[string]int{}
	for _, k := range h.starts(r, 18) {
		if want := name("o", next[k.Principal]); k.Object != want {
			t.Fatalf("%s started %s before %s", k.Principal, k.Object, want)
		}
		next[k.Principal]++
		turns = append(turns, k.Principal)
	}
	if err := fairTurns(turns, 3); err != nil {
		t.Fatal(err)
	}
	// Negative control: the same check refuses plain arrival order.
	if err := fairTurns(arrivals[:18], 3); err == nil {
		t.Fatal("the fairness check accepts an order by arrival alone")
	}
}

func TestQ3_OneSessionPrincipalsAreServedByArrival(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	for i := range 50 {
		h.hold(askOf(name("p", i), "o"))
		h.now += time.Millisecond
	}
	for i, k := range h.starts(r, 50) {
		if k.Principal != name("p", i) {
			t.Fatalf("start %d went to %s", i, k.Principal)
		}
	}
}

func TestQ3_TheTurnOfAVanishedSessionGoesToTheNextOfItsPrincipal(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "o"))
	for _, object := range []string{"0", "1", "2"} {
		h.hold(askOf("a", object))
		h.hold(askOf("b", object))
	}
	h.s.Leave(h.now, Key{"a", "1", "c"})
	h.tick(TickEvery)
	if ahead, _ := h.s.place(h.session(Key{"a", "2", "c"}), false); ahead != 2 {
		t.Fatalf("%d ahead of the second session of a, want it to have the second turn", ahead)
	}
}

func TestQ3_ANewPrincipalEarnsNothingByItsAbsence(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	for i := range 30 {
		h.hold(askOf("old", name("o", i)))
	}
	h.now += time.Second
	h.starts(r, 10)
	for i := range 5 {
		h.hold(askOf("new", name("o", i)))
	}
	var turns []string
	for ahead := range 10 { // they alternate from the first turn on
		var at *session
		for ses := range h.s.sessions.all {
			if n, _ := h.s.place(ses, false); ses.state == waiting && n == ahead {
				at = ses
			}
		}
		turns = append(turns, at.principal.name)
	}
	if err := fairTurns(turns, 2); err != nil {
		t.Fatalf("%v: %v", turns, err)
	}
}

func TestQ5_AgingCountsEarlierWaits(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	first, _ := h.want(Admitted, askOf("first", "o"))
	h.hold(askOf("p", "o").in(Background))
	h.tick(40 * time.Second)
	h.finish(first, 0, 100*mib, true)
	h.s.Abandon(h.now, h.s.TakeSettled()[0].Response)
	h.want(Admitted, askOf("second", "o"))
	h.tick(5 * time.Minute) // remembered, not waiting
	h.hold(askOf("p", "o").in(Background))
	for _, step := range []struct {
		after time.Duration
		want  Class
	}{{19 * time.Second, Background}, {time.Second, Bulk}} {
		h.tick(step.after)
		if got := h.session(Key{"p", "o", "c"}).lifted; got != step.want {
			t.Fatalf("after 40 s and %v it waits as %v, want %v", step.after, got, step.want)
		}
	}
}

func TestQ5_AgingLiftsAClassButNotAboveRelease(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	h.want(Admitted, askOf("first", "o"))
	h.hold(askOf("p", "o").in(Background))
	lifted := func() Class { return h.session(Key{"p", "o", "c"}).lifted }
	for _, step := range []struct {
		after time.Duration
		want  Class
	}{{59 * time.Second, Background}, {time.Second, Bulk}, {time.Minute, Release}, {time.Hour, Release}} {
		h.tick(step.after)
		if lifted() != step.want {
			t.Fatalf("at %v it waits as %v, want %v", h.now, lifted(), step.want)
		}
	}
	if h.snap().Waiting[Background] != 1 {
		t.Fatal("aging changed the applied class")
	}
	p.AgingEvery = 0
	h.configure(p)
	if lifted() != Background {
		t.Fatal("switching aging off keeps the lift")
	}
}

func TestQ6_ShareLimitsOnlyWhileAnotherHeadsTheQueue(t *testing.T) {
	p := testPolicy(4)
	p.PerPrincipal = 2
	h := newHarness(t, p)
	for i := range 3 { // nobody else waits: beyond the share
		h.want(Admitted, askOf("big", name("o", i)))
	}
	other, _ := h.want(Admitted, askOf("other", "o"))
	h.hold(askOf("big", "o3"))
	h.hold(askOf("big", "o4"))
	h.finish(other, 0, 100*mib, true) // big heads the queue: its share does not bind
	got := h.s.TakeSettled()
	if len(got) != 1 || got[0].Owner.(Key).Object != "o3" {
		t.Fatalf("the head should start beyond its share, got %v", got)
	}
	h.want(Queued, askOf("small", "o")) // nobody of small is present, yet it heads the queue by turn
	if h.s.front(false).principal.name != "small" {
		t.Fatal("small should head the queue")
	}
	h.finish(got[0].Response, 0, 100*mib, true)
	if got := h.s.TakeSettled(); len(got) != 0 {
		t.Fatalf("big went on beyond its share while another headed the queue: %v", got)
	}
	h.want(Admitted, askOf("small", "o"))
}

func TestQ6_OverShareTakesASlotTheAbsentHeadLeaves(t *testing.T) {
	p := testPolicy(2)
	p.PerPrincipal = 1
	h := newHarness(t, p)
	h.want(Admitted, askOf("big", "o0"))
	r, _ := h.want(Admitted, askOf("x", "o"))
	h.pass(time.Second)
	h.want(Queued, askOf("absent", "o"))
	h.session(Key{"absent", "o", "c"}).noShowAt = time.Hour // was told to come much later
	h.s.plan(h.session(Key{"absent", "o", "c"}))
	h.hold(askOf("big", "o1"))
	h.finish(r, 0, 100*mib, true)
	h.tick(5 * time.Second)
	if got := h.s.TakeSettled(); len(got) != 0 {
		t.Fatalf("over the share at %v: %v", h.now, got)
	}
	h.tick(6 * time.Second)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("the slot stays empty for a client that does not come: %v", got)
	}
}

func TestQ7_NoSlotIsHeldForAnAbsentClient(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	for i := range 5 {
		h.want(Queued, askOf(name("p", i), "o"))
		h.pass(time.Millisecond)
	}
	h.finish(r, 0, 100*mib, true)
	h.want(Queued, askOf("p2", "o")) // third: outside twice the one free slot
	h.want(Admitted, askOf("p1", "o"))
	h.want(Queued, askOf("p0", "o")) // its slot was not held
}

func TestQ7_MarksWidenWhileASlotStaysUnclaimed(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	for i := range 20 {
		h.want(Queued, askOf(name("p", i), "o"))
		h.pass(time.Millisecond)
	}
	h.finish(r, 0, 100*mib, true)
	h.want(Queued, askOf("p9", "o"))
	h.tick(5 * TickEvery)
	h.want(Admitted, askOf("p9", "o"))
	if h.s.Tick(h.now + TickEvery); h.s.unclaimed != 0 {
		t.Fatal("a claimed slot narrows the marks again")
	}
}

func TestQ7_PresentClientTakesAFreedSlotAtOnce(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	_, _, v := h.hold(askOf("p", "o"))
	if v.Outcome != Queued || !v.Held || v.Position != 1 {
		t.Fatalf("verdict %+v", v)
	}
	h.finish(r, 0, 100*mib, true)
	got := h.s.TakeSettled()
	if len(got) != 1 || got[0].Verdict.Outcome != Admitted {
		t.Fatalf("settled %+v", got)
	}
}

// TestQ8_PositionsAreTheOrderOfTheStarts is the oracle of place: with every client present, what it counts is what
// happens.
func TestQ8_PositionsAreTheOrderOfTheStarts(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	rnd := uint64(1)
	for i := range 120 {
		rnd = mix(rnd)
		h.hold(askOf(name("p", int(rnd%7)), name("o", i)).in(Class(rnd >> 8 % Classes)).sized(int64(1 + rnd>>16%1000)))
		h.now += time.Millisecond
	}
	type placed struct {
		key   Key
		ahead int
		bytes int64
		size  int64
	}
	var all []placed
	for ses := range h.s.sessions.all {
		if ses.state == waiting {
			ahead, bytes := h.s.place(ses, false)
			all = append(all, placed{ses.key(), ahead, bytes, ses.size})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return a.ahead - b.ahead })
	var sum int64
	for i, k := range h.starts(r, len(all)) {
		if all[i].ahead != i || all[i].key != k || all[i].bytes != sum {
			t.Fatalf("start %d is %v; counted %d ahead with %d bytes for %v, want %d bytes", i, k, all[i].ahead, all[i].bytes, all[i].key, sum)
		}
		sum += all[i].size
	}
}

package queue

import (
	"slices"
	"testing"
	"time"
)

func TestQ1_SmallAndUnknownObjectsNeedNoSession(t *testing.T) {
	p := testPolicy(1)
	p.SessionMinBytes = 10
	h := newHarness(t, p)
	h.want(PerRequest, askOf("p", "o").sized(10))
	h.want(PerRequest, askOf("p", "o").sized(-1))
	h.want(Admitted, askOf("p", "o").sized(11))
}

func TestQ1_FurtherRangesWaitBeyondTheLimit(t *testing.T) {
	p := testPolicy(1)
	p.RangesPerSession = 2
	h := newHarness(t, p)
	first, _ := h.want(Admitted, askOf("p", "o").bytes(Bounded(0, 9)))
	h.want(Admitted, askOf("p", "o").bytes(Bounded(10, 19)))
	if _, v := h.want(RangesBusy, askOf("p", "o").bytes(Bounded(20, 29))); v.CheckIn <= 0 {
		t.Fatal("a busy session names no time to ask again")
	}
	w, _, v := h.hold(askOf("p", "o").bytes(Bounded(20, 29)))
	if v.Outcome != RangesBusy || w == nil {
		t.Fatalf("verdict %+v", v)
	}
	h.finish(first, 0, 10, true)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("settled %+v", got)
	}
	if snap := h.snap(); snap.ActiveTotal() != 1 || snap.Held != 0 {
		t.Fatalf("%+v", snap)
	}
}

func TestQ3_SwitchToSharedKeepsActiveAndFreesHeld(t *testing.T) {
	p := testPolicy(1)
	h := newHarness(t, p)
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.hold(askOf("p", "o2"))
	p.Strategy = Shared
	h.configure(p)
	got := h.s.TakeSettled()
	if len(got) != 1 || got[0].Verdict.Outcome != PerRequest {
		t.Fatalf("settled %+v", got)
	}
	h.want(Admitted, askOf("p", "o"))
	h.want(PerRequest, askOf("p", "o3"))
	if !h.s.FreeSlot() {
		t.Fatal("under shared nothing waits for a slot")
	}
	h.finish(r, 0, 1, true)
	p.Strategy = Ordered
	h.configure(p)
	if _, v := h.want(Queued, askOf("p", "o2")); v.Arrival != 0 {
		t.Fatalf("the switch lost its arrival: %v", v.Arrival)
	}
}

func TestQ13_Completion(t *testing.T) {
	const size = 100
	type part struct {
		asked      RangeAsk
		first, end int64
		complete   bool
	}
	for _, c := range []struct {
		name  string
		parts []part
		done  bool
	}{
		{"whole object", []part{{RangeAsk{}, 0, 100, true}}, true},
		{"cut short", []part{{RangeAsk{}, 0, 100, false}}, false},
		{"ranges in any order", []part{{Bounded(0, 29), 0, 30, true}, {Bounded(60, 98), 60, 99, true}, {Bounded(30, 59), 30, 60, true}, {Bounded(99, 99), 99, 100, true}}, true},
		{"hole", []part{{Bounded(0, 29), 0, 30, true}, {OpenFrom(31), 31, 100, true}}, false},
		{"resumed in the middle", []part{{OpenFrom(40), 40, 100, true}}, true},
		{"tail first", []part{{Suffix(10), 90, 100, true}}, false},
		{"bounded tail first", []part{{Bounded(90, 99), 90, 100, true}}, false},
		{"tail, then the rest", []part{{Suffix(10), 90, 100, true}, {Bounded(0, 89), 0, 90, true}}, true},
		{"one bounded range over everything", []part{{Bounded(0, 99), 0, 100, true}}, true},
		{"suffix over everything", []part{{Suffix(200), 0, 100, true}}, true},
		{"several ranges at once cover nothing", []part{{RangeAsk{Kind: RangeMulti}, 0, 100, true}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, testPolicy(1))
			for _, part := range c.parts {
				r, _ := h.want(Admitted, askOf("p", "o").sized(size).bytes(part.asked))
				h.finish(r, part.first, part.end, part.complete)
				h.finish(r, 0, size, true) // a second end does nothing
			}
			if done := slices.Equal(h.reasons(), []Reason{ReasonCompleted}); done != c.done {
				t.Fatalf("completed %v, want %v", done, c.done)
			}
		})
	}
}

func TestQ13_NotCompleteWhileAResponseRuns(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	a, _ := h.want(Admitted, askOf("p", "o").sized(100))
	b, _ := h.want(Admitted, askOf("p", "o").sized(100).bytes(Bounded(5, 9)))
	h.finish(a, 0, 100, true)
	if h.snap().ActiveTotal() != 1 {
		t.Fatal("the session ended under a running response")
	}
	h.finish(b, 5, 9, false)
	if h.snap().ActiveTotal() != 0 {
		t.Fatal("the session did not end with its last response")
	}
}

func TestO2_ChangedValidatorForgetsCoverage(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o").sized(100).bytes(Bounded(0, 49)))
	h.finish(r, 0, 50, true)
	r, _ = h.want(Admitted, askOf("p", "o").sized(100).valid(`"2"`).bytes(Bounded(50, 98)))
	h.finish(r, 50, 99, true)
	r, _ = h.want(Admitted, askOf("p", "o").sized(100).valid(`"2"`).bytes(Bounded(0, 49)))
	h.finish(r, 0, 50, true)
	if h.snap().ActiveTotal() != 1 {
		t.Fatal("byte 99 is missing")
	}
	r, _ = h.want(Admitted, askOf("p", "o").sized(100).valid(`"2"`).bytes(Suffix(1)))
	h.finish(r, 99, 100, true)
	if h.snap().ActiveTotal() != 0 {
		t.Fatal("all bytes of the new validator are there")
	}
}

func TestQ14_IdlePauseKeepsArrivalAndCoverage(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o").sized(100).bytes(Bounded(0, 49)))
	h.finish(r, 0, 50, true)
	h.tick(29 * time.Second)
	h.want(Queued, askOf("q", "later"))
	h.tick(time.Second)
	if got := h.reasons(); !slices.Equal(got, []Reason{ReasonIdle}) {
		t.Fatalf("ended %v", got)
	}
	q, _ := h.want(Admitted, askOf("q", "later"))
	h.want(Queued, askOf("q", "later2"))
	h.pass(time.Minute)
	_, v := h.want(Queued, askOf("p", "o").sized(100).bytes(OpenFrom(50)))
	if v.Position != 1 || v.Arrival != 0 {
		t.Fatalf("rejoined at position %d, arrival %v", v.Position, v.Arrival)
	}
	h.finish(q, 0, 100*mib, true)
	r, _ = h.want(Admitted, askOf("p", "o").sized(100).bytes(OpenFrom(50)))
	h.finish(r, 50, 100, true)
	if got := h.reasons(); got[len(got)-1] != ReasonCompleted {
		t.Fatalf("the covered first half was forgotten: %v", got)
	}
}

func TestQ14_RejoinsBeforeEverybodyWhoCameLater(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.pass(time.Second)
	for i := range 5 {
		h.want(Queued, askOf(name("q", i), "o"))
		h.want(Queued, askOf("p", name("later", i)))
	}
	h.s.Abandon(h.now, r)
	h.check()
	h.want(Admitted, askOf("q0", "o"))
	if _, v := h.want(Queued, askOf("p", "o")); v.Position != 1 {
		t.Fatalf("rejoined at position %d", v.Position)
	}
	if _, v := h.want(Queued, askOf("p", "later0")); v.Position != 6 {
		t.Fatalf("its principal's next session is at position %d, want it one turn later", v.Position)
	}
}

func TestQ14_PauseMemoryEnds(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.finish(r, 0, 1, true)
	h.tick(30*time.Second + PauseMemory + time.Second)
	if h.s.sessions.count != 0 || len(h.s.principals) != 0 {
		t.Fatalf("%d sessions are remembered", h.s.sessions.count)
	}
}

func TestQ15_TailReadsKeepTheSlotFiveSeconds(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o").bytes(Suffix(100)))
	h.finish(r, 100*mib-100, 100*mib, true)
	h.tick(TailHold - time.Second)
	if h.snap().ActiveTotal() != 1 {
		t.Fatal("the slot was lost too early")
	}
	h.tick(time.Second)
	if snap := h.snap(); snap.ActiveTotal() != 0 || snap.Paused != 1 {
		t.Fatalf("after 5 s: %+v", snap)
	}
}

func TestQ12_NoShowIsDroppedAndJoinsTheEnd(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "o"))
	_, v := h.want(Queued, askOf("p", "o"))
	due := v.CheckIn + v.CheckIn/2 + 15*time.Second
	h.tick(due - time.Second)
	h.want(Queued, askOf("q", "o"))
	if h.snap().WaitingTotal() != 2 {
		t.Fatal("dropped too early")
	}
	h.tick(1500 * time.Millisecond)
	if got := h.reasons(); !slices.Equal(got, []Reason{ReasonNoShow}) {
		t.Fatalf("ended %v", got)
	}
	if _, v := h.want(Queued, askOf("p", "o")); v.Position != 2 {
		t.Fatalf("came back at position %d", v.Position)
	}
}

func TestQ11_HeldClientIsPresentAndKeepsItsPlaceAfterwards(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "o"))
	w, _, _ := h.hold(askOf("p", "o"))
	h.tick(time.Minute)
	if h.snap().WaitingTotal() != 1 {
		t.Fatal("a held client was taken for a no-show")
	}
	v, ok := h.s.Withdraw(h.now, w)
	h.check()
	if !ok || v.Outcome != Queued || v.Waited != time.Minute {
		t.Fatalf("verdict %+v %v", v, ok)
	}
	if _, again := h.s.Withdraw(h.now, w); again {
		t.Fatal("withdrawn twice")
	}
	h.tick(v.CheckIn + v.CheckIn/2 + noShowMargin - time.Second)
	if h.snap().WaitingTotal() != 1 {
		t.Fatal("its place was lost early")
	}
	h.tick(2 * time.Second)
	if h.snap().WaitingTotal() != 0 {
		t.Fatal("its place was never lost")
	}
}

func TestP6_AbandonFreesTheSlotAtOnceAndRemembers(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.hold(askOf("q", "o"))
	h.s.Abandon(h.now, r)
	h.check()
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("settled %+v", got)
	}
	if got := h.reasons(); !slices.Equal(got, []Reason{ReasonCancelled}) {
		t.Fatalf("ended %v", got)
	}
	if h.snap().Paused != 1 {
		t.Fatal("the client's place in time is forgotten")
	}
}

// A later request of a held session may be the one that gets it the slot (here by asking in a higher class): the held ones
// start with it, and before it.
func TestQ11_HeldRequestsStartWithTheSessionThatALaterRequestStarts(t *testing.T) {
	p := testPolicy(2)
	p.Reserve, p.RangesPerSession = 1, 1
	h := newHarness(t, p)
	h.want(Admitted, askOf("p", "o"))
	h.hold(askOf("q", "o"))
	h.want(RangesBusy, askOf("q", "o").in(Interactive))
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil || !got[0].Verdict.Started {
		t.Fatalf("settled %+v", got)
	}
}

func TestQ17_LimitsRefuseInsteadOfGrowing(t *testing.T) {
	p := testPolicy(1)
	p.QueueLimit, p.QueuePerPrincipal = 4, 2
	h := newHarness(t, p)
	h.want(Admitted, askOf("p", "o0"))
	h.want(Queued, askOf("p", "o1"))
	if _, v := h.want(LimitReached, askOf("p", "o2")); v.CheckIn < limitCheckLow || v.CheckIn > limitCheckHigh {
		t.Fatalf("retry after %v", v.CheckIn)
	}
	h.want(Queued, askOf("q", "o0"))
	h.want(Queued, askOf("q", "o1"))
	h.want(LimitReached, askOf("r", "o0"))
	if got := h.snap().Counts.Refused; got != 2 {
		t.Fatalf("refused %d", got)
	}
}

func TestQ17_PausedSessionsMakeWay(t *testing.T) {
	p := testPolicy(2)
	p.QueueLimit, p.QueuePerPrincipal = 4, 4
	h := newHarness(t, p)
	for i := range 50 {
		r, _ := h.want(Admitted, askOf("p", name("o", i)))
		h.s.Abandon(h.now, r)
		h.check()
	}
	if h.s.sessions.count != 4 {
		t.Fatalf("%d sessions are kept", h.s.sessions.count)
	}
}

func TestQ17_OverLongKeysAreHashed(t *testing.T) {
	long := string(make([]byte, 5000))
	k := Key{long, long + "x", "c"}.Bounded()
	if len(k.Principal) > MaxKeyBytes || k.Principal == k.Object || k.Client != "c" || k.Bounded() != k {
		t.Fatalf("bounded to %q", k)
	}
}

func TestL1_DrainAnswersWaitingAndLetsActiveGoOn(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.hold(askOf("q", "o"))
	h.want(Queued, askOf("z", "o"))
	h.s.Drain(h.now)
	h.check()
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Verdict.Outcome != Draining || got[0].Verdict.CheckIn != 2*time.Second {
		t.Fatalf("settled %+v", got)
	}
	h.want(Draining, askOf("z", "o"))
	second, _ := h.want(Admitted, askOf("p", "o").bytes(Bounded(1, 2)))
	h.finish(r, 0, 100*mib, true)
	h.finish(second, 1, 3, true)
	if snap := h.snap(); snap.ActiveTotal() != 0 || h.s.FreeSlot() {
		t.Fatal("a draining queue offers slots")
	}
}

func TestQ18_AnEarlierNowMovesNothing(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.now = time.Hour
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.want(Queued, askOf("q", "o"))
	h.now = 0
	h.s.Tick(h.now)
	h.finish(r, 0, 1, true)
	h.s.Tick(h.now)
	if snap := h.snap(); snap.ActiveTotal() != 1 || snap.WaitingTotal() != 1 || snap.OldestWait != 0 {
		t.Fatalf("%+v", snap)
	}
}

func TestS1_PolicyErrorsNameFieldRuleAndExample(t *testing.T) {
	bad := DefaultPolicy(4)
	bad.Sessions, bad.Weights[2], bad.IdleFor, bad.QueueLimit = 0, 0, 0, 0
	err := bad.Validate()
	for _, want := range []string{
		"Sessions 0: must be a whole number 1..1024, for example 16", "Weights.bulk 0: must be a whole number 1..1000, for example 2",
		"IdleFor 0s: must be a duration 1s..1h, for example 30s", "QueueLimit 0",
	} {
		if err == nil || !containsText(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for _, n := range []int{1, 3, 4, 16, 1024} {
		if err := DefaultPolicy(n).Validate(); err != nil {
			t.Errorf("default policy of %d: %v", n, err)
		}
	}
}

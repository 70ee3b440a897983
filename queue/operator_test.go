package queue

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// act does what an operator does and fails unless the error is that one.
func (h *harness) act(kind ActionKind, a Ask, want error) {
	h.t.Helper()
	h.to(Action{Kind: kind}, a, want)
}

func (h *harness) to(action Action, a Ask, want error) {
	h.t.Helper()
	if err := h.s.Act(h.now, a.Key, action); !errors.Is(err, want) || (want == nil) != (err == nil) {
		h.t.Fatalf("%s of %s: %v, want %v", action.Kind, a.Key.Object, err, want)
	}
	h.check()
}

// order is who waits, in the order, by their objects.
func (h *harness) order() (out []string) {
	h.s.Order(func(p Placed) bool { out = append(out, p.Key.Object); return true })
	return out
}

func (h *harness) wantOrder(want ...string) {
	h.t.Helper()
	if got := h.order(); !slices.Equal(got, want) {
		h.t.Fatalf("order %v, want %v", got, want)
	}
}

// queued lets objects of one principal each wait behind one that has the only slot, and returns that one's response.
func queued(h *harness, objects ...string) *Response {
	h.t.Helper()
	r, _ := h.want(Admitted, askOf("first", "running"))
	for _, o := range objects {
		h.pass(time.Second)
		h.want(Queued, askOf("p"+o, o))
	}
	return r
}

func TestX7_MoveFrontAndBackWithinTheClass(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		t.Run(strategy.String(), func(t *testing.T) {
			p := testPolicy(1)
			p.Strategy = strategy
			h := newHarness(t, p)
			r := queued(h, "a", "b", "c")
			h.want(Queued, askOf("pd", "d").in(Bulk))
			h.wantOrder("d", "a", "b", "c") // bulk has had no slot yet
			h.act(MoveFront, askOf("pc", "c"), nil)
			h.wantOrder("d", "c", "a", "b")
			h.act(MoveBack, askOf("pa", "a"), nil)
			h.wantOrder("d", "c", "b", "a")
			if got := h.session(askOf("pa", "a").Key).arrival; got != h.now {
				t.Errorf("moved to the back, its arrival is %v, want now", got)
			}
			h.pass(time.Second)
			h.want(Queued, askOf("pe", "e")) // comes behind
			h.act(MoveFront, askOf("pe", "e"), nil)
			h.wantOrder("d", "e", "c", "b", "a")
			h.finish(r, 0, 100*mib, true)
			h.want(Queued, askOf("pa", "a")) // four stand before it, the window is two
			h.want(Admitted, askOf("pe", "e"))
			if c := h.snap().Counts; c.Moved != 3 {
				t.Errorf("%d moves are counted", c.Moved)
			}
		})
	}
}

// TestX7_MovingASessionLeavesItsPrincipalsOthersWhereTheyAre: many sessions of one principal, of which one is moved.
func TestX7_MovingASessionLeavesItsPrincipalsOthersWhereTheyAre(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "running"))
	for i := range 3 {
		h.pass(time.Second)
		h.want(Queued, askOf("many", name("m", i)))
		h.want(Queued, askOf("few", name("f", i)))
	}
	h.wantOrder("m0", "f0", "m1", "f1", "m2", "f2")
	h.act(MoveFront, askOf("few", "f2"), nil)
	h.wantOrder("f2", "m0", "f0", "m1", "f1", "m2")
	h.act(MoveBack, askOf("few", "f0"), nil)
	h.wantOrder("f2", "m0", "f1", "m1", "m2", "f0")
	h.finish(r, 0, 100*mib, true)
	r, _ = h.want(Admitted, askOf("few", "f2")) // and pays no turn
	h.wantOrder("m0", "f1", "m1", "m2", "f0")
	h.finish(r, 0, 100*mib, true)
	h.want(Admitted, askOf("many", "m0"))
	h.wantOrder("f1", "m1", "m2", "f0")
}

func TestX7_MoveToAnyClassStaysWhateverTheClientSays(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	queued(h, "a", "b")
	h.to(Action{Kind: MoveClass, Class: Interactive}, askOf("pb", "b"), nil)
	h.wantOrder("b", "a")
	if _, v := h.want(Queued, askOf("pb", "b").in(Bulk)); v.Class != Interactive || v.Position != 1 {
		t.Fatalf("told %+v", v)
	}
	h.to(Action{Kind: MoveClass, Class: Background}, askOf("pb", "b"), nil)
	if ses := h.session(askOf("pb", "b").Key); ses.lifted != Background {
		t.Fatalf("it stands in %v", ses.lifted)
	}
	for range 4 {
		h.tick(20 * time.Second)
		h.want(Queued, askOf("pb", "b").in(Release))
	}
	if ses := h.session(askOf("pb", "b").Key); ses.class != Background || ses.lifted != Bulk { // it ages as others of the class do
		t.Fatalf("of %v it stands in %v", ses.class, ses.lifted)
	}
	h.to(Action{Kind: MoveClass, Class: Classes}, askOf("pb", "b"), ErrUnknownAction)
	h.to(Action{Kind: actionCount}, askOf("pb", "b"), ErrUnknownAction)
}

func TestX7_OnlyWaitingSessionsMove(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r := queued(h, "a")
	h.act(MoveFront, askOf("first", "running"), ErrNotWaiting)
	h.act(MoveBack, askOf("nobody", "x"), ErrUnknownSession)
	h.act(PauseIt, askOf("pa", "a"), nil)
	h.act(MoveFront, askOf("pa", "a"), ErrNotWaiting)
	h.s.Abandon(h.now, r)
	h.act(MoveBack, askOf("first", "running"), ErrNotWaiting)
	if c := h.snap().Counts; c.Moved != 0 {
		t.Errorf("%d refused moves are counted", c.Moved)
	}
}

func TestX7_APausedWaitingSessionKeepsItsPlaceAndHoldsNobodyUp(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r := queued(h, "a", "b", "c")
	arrival := h.session(askOf("pa", "a").Key).arrival
	h.act(PauseIt, askOf("pa", "a"), nil)
	h.act(PauseIt, askOf("pa", "a"), nil) // once more is no error, and nothing new
	h.wantOrder("b", "c")
	snap := h.snap()
	if snap.WaitingTotal() != 3 || snap.Stopped[Release] != 1 || snap.Counts.Paused != 1 {
		t.Fatalf("%+v", snap)
	}
	h.finish(r, 0, 100*mib, true)
	if _, v := h.want(Queued, askOf("pa", "a")); v.Position != 0 || v.EstimateKnown || v.CheckIn <= 0 || v.Arrival != arrival {
		t.Fatalf("a free slot, but it is paused; told %+v", v)
	}
	r, _ = h.want(Admitted, askOf("pb", "b"))
	for range 20 { // its client polls: it is no no-show, for however long
		h.tick(30 * time.Second)
		h.want(Queued, askOf("pa", "a"))
	}
	h.want(Queued, askOf("pd", "d"))
	h.act(ResumeIt, askOf("pa", "a"), nil)
	h.wantOrder("a", "d") // c was a no-show meanwhile
	h.finish(r, 0, 100*mib, true)
	h.want(Admitted, askOf("pa", "a"))
	h.act(ResumeIt, askOf("pa", "a"), ErrNotPaused)
}

func TestX7_APausedSessionWhoseClientIsGoneIsANoShow(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	queued(h, "a")
	h.act(PauseIt, askOf("pa", "a"), nil)
	h.want(Queued, askOf("pa", "a"))
	h.tick(2 * time.Minute)
	if snap := h.snap(); snap.Counts.Ended[ReasonNoShow] != 1 || snap.WaitingTotal() != 0 || snap.Stopped != [Classes]int{} {
		t.Fatalf("%+v", snap)
	}
}

func TestX7_HeldRequestsOfAPausedSessionWaitOnAndStartWithResume(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "running"))
	w, _, v := h.hold(askOf("pa", "a"))
	if w == nil || !v.Held {
		t.Fatal("not held")
	}
	h.act(PauseIt, askOf("pa", "a"), nil)
	h.finish(r, 0, 100*mib, true)
	if got := h.s.TakeSettled(); len(got) != 0 {
		t.Fatalf("a paused session got %+v", got)
	}
	if !h.s.FreeSlot() {
		t.Fatal("the slot is kept for a paused session")
	}
	h.act(ResumeIt, askOf("pa", "a"), nil)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("resumed with a free slot, it got %+v", got)
	}
}

func TestX7_APausedActiveSessionGivesItsSlotUpAtItsNextRange(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	first, _ := h.want(Admitted, askOf("first", "running").bytes(Bounded(0, mib-1)))
	h.pass(time.Second)
	w, _, _ := h.hold(askOf("pa", "a"))
	if w == nil {
		t.Fatal("not held")
	}
	h.act(PauseIt, askOf("first", "running"), nil)
	if snap := h.snap(); snap.ActiveTotal() != 1 {
		t.Fatal("a running response is cut by a pause")
	}
	h.finish(first, 0, mib, true)
	if got := h.s.TakeSettled(); len(got) != 0 {
		t.Fatal("the slot goes before the next range is asked for")
	}
	_, v := h.want(Queued, askOf("first", "running").bytes(OpenFrom(mib)))
	if v.Position != 0 || v.Yielded || v.Arrival != 0 {
		t.Fatalf("told %+v", v)
	}
	got := h.s.TakeSettled()
	if len(got) != 1 || got[0].Response == nil {
		t.Fatalf("the slot went to %+v", got)
	}
	if reasons := h.reasons(); !slices.Equal(reasons, []Reason{ReasonPaused}) {
		t.Fatalf("ended %v", reasons)
	}
	h.act(ResumeIt, askOf("first", "running"), nil)
	h.wantOrder("running")
	h.finish(got[0].Response, 0, 100*mib, true)
	r, v := h.want(Admitted, askOf("first", "running").bytes(OpenFrom(mib))) // what was covered is known
	if v.Arrival != 0 {
		t.Fatalf("it lost its arrival: %+v", v)
	}
	h.finish(r, mib, 100*mib, true)
	if reasons := h.reasons(); reasons[len(reasons)-1] != ReasonCompleted {
		t.Fatalf("ended %v", reasons)
	}
}

func TestX7_AnActiveSessionResumedInTimeKeepsItsSlot(t *testing.T) {
	p := testPolicy(1)
	p.RangesPerSession = 1
	h := newHarness(t, p)
	r, _ := h.want(Admitted, askOf("first", "running").bytes(Bounded(0, mib-1)))
	w, _, _ := h.hold(askOf("first", "running").bytes(OpenFrom(mib))) // waits for the only place
	if w == nil {
		t.Fatal("not held")
	}
	h.act(PauseIt, askOf("first", "running"), nil)
	h.act(ResumeIt, askOf("first", "running"), nil)
	h.finish(r, 0, mib, true)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("the next range got %+v", got)
	}
	if c := h.snap().Counts; c.Paused != 1 || c.Resumed != 1 {
		t.Errorf("%+v", c)
	}
}

func TestX7_ActiveSessionsOfPlainClientsCannotBePaused(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	plain := askOf("first", "running")
	plain.Protocol = false
	r, _ := h.want(Admitted, plain)
	h.act(PauseIt, plain, ErrNotPausable)
	h.s.Abandon(h.now, r)
	h.act(PauseIt, plain, ErrNotPausable) // remembered
	h.act(ResumeIt, plain, ErrNotPaused)
}

func TestX7_AKickedWaitingSessionIsToldOnceAndJoinsAtTheEnd(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	queued(h, "a", "b")
	h.act(KickIt, askOf("pa", "a"), nil)
	h.wantOrder("b")
	if reasons := h.reasons(); !slices.Equal(reasons, []Reason{ReasonKicked}) {
		t.Fatalf("ended %v", reasons)
	}
	ticket := askOf("pa", "a")
	ticket.Ticketed, ticket.Arrival = true, time.Second
	if _, v := h.want(Kicked, ticket); v.CheckIn <= 0 {
		t.Fatalf("told %+v", v)
	}
	h.want(Kicked, ticket) // the same request may ask twice
	h.pass(5 * time.Second)
	if _, v := h.want(Queued, ticket); v.Position != 2 || v.Arrival != h.now {
		t.Fatalf("with the ticket of before it joined as %+v", v)
	}
	if c := h.snap().Counts; c.Kicked != 1 {
		t.Errorf("%d kicks", c.Kicked)
	}
}

func TestX7_AKickedActiveSessionFreesItsSlotAtOnce(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "running"))
	w, _, _ := h.hold(askOf("pa", "a"))
	if w == nil {
		t.Fatal("not held")
	}
	h.act(KickIt, askOf("first", "running"), nil)
	got := h.s.TakeSettled()
	if len(got) != 1 || got[0].Response == nil {
		t.Fatalf("the slot went to %+v", got)
	}
	h.s.Progress(h.now, r, 5) // of a response that is being cut: nothing of it counts
	h.finish(r, 0, 100*mib, true)
	h.s.Abandon(h.now, r)
	h.check()
	if snap := h.snap(); snap.ActiveTotal() != 1 || snap.Counts.Ended[ReasonKicked] != 1 || snap.Counts.Ended[ReasonCompleted] != 0 {
		t.Fatalf("%+v", snap)
	}
	h.want(Kicked, askOf("first", "running"))
}

func TestX7_KickAnswersHeldRequestsAtOnce(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "running"))
	h.hold(askOf("pa", "a"))
	h.hold(askOf("pa", "a"))
	h.act(KickIt, askOf("pa", "a"), nil)
	got := h.s.TakeSettled()
	if len(got) != 2 || got[0].Verdict.Outcome != Kicked || got[1].Verdict.Outcome != Kicked {
		t.Fatalf("settled %+v", got)
	}
	h.pass(time.Millisecond)
	h.want(Queued, askOf("pa", "a")) // it was told
}

func TestX7_TheMemoryOfKickedSessionsIsBounded(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "running"))
	for i := range 2 * maxExpelled {
		a := askOf("p", name("o", i))
		h.s.Ask(h.now, a)
		if err := h.s.Act(h.now, a.Key, Action{Kind: KickIt}); err != nil {
			t.Fatal(err)
		}
	}
	h.check()
	if n := len(h.s.expelled.byKey); n != maxExpelled {
		t.Fatalf("%d are remembered, want %d", n, maxExpelled)
	}
	h.want(Kicked, askOf("p", name("o", 2*maxExpelled-1)))
	h.want(Queued, askOf("p", name("o", 0)))
	h.now += expelledFor
	h.s.Tick(h.now)
	if n := len(h.s.expelled.byKey) + len(h.s.expelled.order); n != 0 {
		t.Fatalf("%d are remembered after their tickets are void", n)
	}
}

package queue

import (
	"testing"
	"time"
)

// What random histories found, each as the shortest story of it.

// yieldingWithHeld returns a session with one place for responses that was told to yield while its response runs and another
// request of it is held, and that response; the head it is to yield to waits.
func yieldingWithHeld(t *testing.T) (h *harness, x Ask, w *Waiter, r *Response) {
	t.Helper()
	p := testPolicy(1)
	p.RangesPerSession, p.AgingEvery = 1, time.Minute
	h = newHarness(t, p)
	x = askOf("x", "o").in(Bulk)
	r, _ = h.want(Admitted, x)
	w, _, v := h.hold(x)
	if v.Outcome != RangesBusy {
		t.Fatalf("outcome %v", v.Outcome)
	}
	h.pass(PreemptAfter)
	h.want(Queued, askOf("head", "o"))
	h.tick(4 * time.Second) // its client is about to come again
	if _, v := h.want(Queued, x); !v.Yielded {
		t.Fatal("it was not told to yield")
	}
	return h, x, w, r
}

// wantWaiting fails unless the session waits with its held request.
func wantWaiting(t *testing.T, h *harness, key Key) {
	t.Helper()
	for p := range h.s.Order {
		if p.Key == key && p.Held == 1 {
			return
		}
	}
	t.Fatalf("the held request of %v is lost: %+v", key, h.snap())
}

func TestQ16_Q19_AYieldingSessionThatCompletesKeepsItsHeldRequest(t *testing.T) {
	h, x, _, r := yieldingWithHeld(t)
	h.finish(r, 0, x.SizeBytes, true)
	wantWaiting(t, h, x.Key)
}

func TestQ16_Q19_AYieldingSessionThatIsAbandonedKeepsItsHeldRequest(t *testing.T) {
	h, x, _, r := yieldingWithHeld(t)
	h.s.Abandon(h.now, r)
	h.check()
	wantWaiting(t, h, x.Key)
}

func TestQ5_Q16_ASessionThatYieldedWithAHeldRequestAges(t *testing.T) {
	h, x, _, r := yieldingWithHeld(t)
	h.finish(r, 0, 10, true)
	other, _ := h.want(Admitted, askOf("head", "o"))
	h.tick(time.Minute)
	for p := range h.s.Order {
		if p.Key == x.Key && p.Lifted != Release {
			t.Fatalf("it waits a minute and stands in %v", p.Lifted)
		}
	}
	h.s.Abandon(h.now, other)
	h.check()
}

func TestQ16_AHeadThatHadItsSlotIsNotWaitedForAgain(t *testing.T) {
	p := testPolicy(1)
	p.Preempt = true
	h := newHarness(t, p)
	x, head, other := askOf("x", "o").in(Bulk), askOf("head", "o"), askOf("other", "o")
	r, _ := h.want(Admitted, x)
	h.pass(PreemptAfter)
	h.want(Queued, head)
	h.tick(4 * time.Second)
	h.finish(r, 0, 10, true)
	if _, v := h.want(Queued, x); !v.Yielded {
		t.Fatal("it was not told to yield")
	}
	r, _ = h.want(Admitted, head)
	h.pass(time.Second)
	h.s.Abandon(h.now, r)
	r, _ = h.want(Admitted, other)
	h.pass(time.Second)
	h.want(Queued, head) // another wait of it, and it is away when the slot frees
	h.s.Abandon(h.now, r)
	h.want(Admitted, x)
}

func TestQ5_AContactDoesNotPutOffALift(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	h.want(Admitted, askOf("p", "o"))
	w, _, _ := h.hold(askOf("q", "o").in(Background))
	h.pass(time.Minute) // the tick is late, and the client comes before it
	h.s.Withdraw(h.now, w)
	h.tick(TickEvery)
	for placed := range h.s.Order {
		if placed.Lifted != Bulk {
			t.Fatalf("after a minute it stands in %v", placed.Lifted)
		}
	}
}

func TestQ7_Q17_ALoweredLimitHidesNobody(t *testing.T) {
	p := testPolicy(1)
	h := newHarness(t, p)
	r, _ := h.want(Admitted, askOf("p", "o"))
	for i := range 5 {
		h.want(Queued, askOf(name("absent", i), "o"))
	}
	h.hold(askOf("last", "o"))
	p.QueueLimit, p.QueuePerPrincipal = 2, 2
	h.configure(p)
	h.s.Abandon(h.now, r)
	h.tick(4 * TickEvery)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("two seconds after the slot freed nobody has it: %+v", got)
	}
}

func TestX4_Q16_AChangeClosesElasticSlotsBeforeItJudgesChoices(t *testing.T) {
	p := testPolicy(2)
	p.SessionsElastic, p.BandBytesPerSecond = 3, 1<<30
	h := newHarness(t, p)
	x := askOf("x", "o").in(Bulk)
	r, _ := h.want(Admitted, x)
	h.want(Admitted, askOf("y", "o"))
	z, _, _ := h.hold(askOf("z", "o"))
	h.tick(3 * time.Second)
	if z.session != nil || h.snap().Slots != 3 {
		t.Fatalf("no elastic slot opened: %+v", h.snap())
	}
	h.pass(PreemptAfter)
	h.want(Queued, askOf("head", "o"))
	h.tick(4 * time.Second) // its client is about to come again
	if _, v := h.want(Queued, x); !v.Yielded {
		t.Fatal("it was not told to yield")
	}
	p.Sessions, p.SessionsElastic, p.PerPrincipal = 3, 3, 3
	h.configure(p) // as many slots in force as before: the head waits on
	h.finish(r, 0, 10, true)
	if got := h.reasons(); len(got) != 1 || got[0] != ReasonYielded {
		t.Fatalf("ended %v, want a yield", got)
	}
}

// TestQ18_LateTicksDoWhatWasDueInOrder: the ring key of a lane is that of the session that was lifted into it first.
func TestQ18_LateTicksDoWhatWasDueInOrder(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	h.want(Admitted, askOf("p", "o"))
	h.hold(askOf("q", "1").in(Bulk))
	h.pass(100 * time.Millisecond)
	h.hold(askOf("r", "1").in(Bulk))
	h.pass(100 * time.Millisecond)
	h.hold(askOf("q", "2").in(Bulk))
	h.pass(2 * time.Minute)
	h.tick(TickEvery)
	var got []string
	for placed := range h.s.Order {
		got = append(got, placed.Key.Principal+placed.Key.Object)
	}
	if want := "[q1 r1 q2]"; len(got) != 3 || want != "["+got[0]+" "+got[1]+" "+got[2]+"]" {
		t.Fatalf("order %v, want %s", got, want)
	}
}

func TestQ16_AVoidYieldIsOverForTheNextRequestToo(t *testing.T) {
	h, x, w, r := yieldingWithHeld(t)
	h.s.Withdraw(h.now, w)
	h.s.Leave(h.now, askOf("head", "o").Key)
	h.want(Queued, askOf("other", "o"))
	h.tick(4 * time.Second)
	h.pass(time.Second)
	h.s.Leave(h.now, askOf("other", "o").Key)
	if w, _, v := h.hold(x); v.Outcome != RangesBusy || w == nil {
		t.Fatalf("outcome %v, held %v: it has nobody to yield to", v.Outcome, w != nil)
	}
	h.s.Abandon(h.now, r)
	h.check()
}

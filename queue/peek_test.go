package queue

import (
	"testing"
	"time"
)

func (a Ask) peeking() Ask { a.Peek = true; return a }

// TestV4_APeekTakesNothing: it is told that it is its turn, and the slot goes to whoever asks for it.
func TestV4_APeekTakesNothing(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	page := askOf("p", "o")
	page.Protocol = false
	_, v := h.want(Ready, page.peeking())
	if v.CheckIn != time.Second || v.Class != Release || v.Position != 0 || v.Started {
		t.Fatalf("%+v", v)
	}
	if snap := h.snap(); snap.ActiveTotal() != 0 || snap.WaitingTotal() != 1 || snap.Held != 0 || snap.Counts.Started != 0 || snap.Counts.Queued != 0 {
		t.Fatalf("%+v", snap)
	}
	h.pass(time.Second)
	r, _ := h.want(Admitted, askOf("q", "o")) // nothing is held for it
	if _, v := h.want(Queued, page.peeking()); v.Position != 1 || v.Waited != time.Second || h.snap().Counts.Queued != 1 {
		t.Fatalf("%+v, %d were told to wait", v, h.snap().Counts.Queued)
	}
	if w, _, v := h.hold(page.peeking()); w != nil || v.Held || v.Outcome != Queued {
		t.Fatalf("a peek is held: %+v", v)
	}
	h.s.Abandon(h.now, r)
	if h.snap().ActiveTotal() != 0 {
		t.Fatal("a peek counts as present")
	}
	h.want(Ready, page.peeking())
	if _, v := h.want(Admitted, page); !v.Started || v.Waited != time.Second || v.Arrival != 0 {
		t.Fatalf("%+v", v)
	}
}

// TestV4_APeekIsAContact: who peeks keeps the place; who stops is a no-show.
func TestV4_APeekIsAContact(t *testing.T) {
	for _, free := range []bool{false, true} {
		h := newHarness(t, testPolicy(1))
		page := askOf("p", "o").peeking()
		want := Ready
		if !free {
			h.want(Admitted, askOf("first", "o"))
			want = Queued
		}
		var last time.Duration
		for range 20 {
			_, v := h.want(want, page)
			last = v.CheckIn + v.CheckIn/2 + noShowMargin
			h.tick(v.CheckIn + v.CheckIn/2 + 10*time.Second)
		}
		if h.snap().WaitingTotal() != 1 {
			t.Fatal("it lost its place")
		}
		h.want(want, page)
		h.tick(last + time.Second)
		if got := h.reasons(); len(got) != 1 || got[0] != ReasonNoShow {
			t.Fatalf("ended %v", got)
		}
	}
}

func TestV4_APeekOfAnActiveSessionAsksForARangesPlace(t *testing.T) {
	p := testPolicy(1)
	p.RangesPerSession, p.AgingEvery = 1, 0
	h := newHarness(t, p)
	a := askOf("p", "o").in(Bulk)
	r, _ := h.want(Admitted, a)
	h.want(RangesBusy, a.peeking())
	h.finish(r, 0, 10, true)
	h.want(Ready, a.peeking())
	h.pass(PreemptAfter)
	r, _ = h.want(Admitted, a)
	h.want(Queued, askOf("head", "o"))
	h.tick(4 * time.Second)
	h.finish(r, 0, 10, true)
	h.want(Ready, a.peeking()) // it has to give way, but at a request for bytes
	if h.snap().ActiveTotal() != 1 {
		t.Fatal("a peek gave the slot up")
	}
	h.tick(31 * time.Second)
	if got := h.reasons(); len(got) < 1 || got[len(got)-1] != ReasonIdle && got[0] != ReasonIdle {
		t.Fatalf("a peek is no response, the idle time goes on: ended %v", got)
	}
}

func TestV4_APeekAnswersWhatARequestWouldBeAnswered(t *testing.T) {
	p := testPolicy(1)
	p.SessionMinBytes, p.QueueLimit, p.QueuePerPrincipal = mib, 2, 1
	h := newHarness(t, p)
	h.want(PerRequest, askOf("p", "small").sized(mib).peeking())
	h.want(Admitted, askOf("p", "o"))
	h.want(LimitReached, askOf("p", "2").peeking())
	h.want(Queued, askOf("q", "o").peeking())
	h.want(LimitReached, askOf("r", "o").peeking())
	h.s.Drain(h.now)
	h.want(Draining, askOf("r", "o").peeking())
	h.want(Ready, askOf("p", "o").peeking()) // ranges of active sessions go on
}

// TestV4_X5_APageOfABundle and V4_X8: what is asked for is known, and nobody is ready while those who held places come back.
func TestV4_X5_APageOfABundle(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.s.Grace(GatherFor, 0)
	h.want(Queued, layer("p", 1, mib).peeking())
	h.tick(GatherFor)
	h.want(Ready, layer("p", 2, mib).peeking())
	h.wantBytes(layer("p", 0, 0).Key, 2*mib, 2*mib)
	h.want(Admitted, layer("p", 1, mib))
}

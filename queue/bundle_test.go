package queue

import (
	"testing"
	"time"
)

// layer is a request of a plain client for one object of a repository.
func layer(principal string, member uint64, bytes int64) Ask {
	return Ask{Key: Key{principal, "repository", "address"}, Class: Release, SizeBytes: bytes, Bundle: true, Member: member}
}

// done ends a response that has all its bytes.
func (h *harness) done(r *Response, bytes int64) {
	h.t.Helper()
	h.s.Progress(h.now, r, bytes)
	h.finish(r, 0, bytes, true)
}

// bytesOf is the size of a session, and what of it is to come.
func (h *harness) bytesOf(k Key) (size, remaining int64) {
	h.t.Helper()
	ses := h.session(k)
	if ses == nil {
		h.t.Fatalf("%v has no session", k)
	}
	return ses.size, ses.remaining()
}

func (h *harness) wantBytes(k Key, size, remaining int64) {
	h.t.Helper()
	if s, r := h.bytesOf(k); s != size || r != remaining {
		h.t.Fatalf("at %v the bundle has %d bytes, %d to come, want %d and %d", h.now, s, r, size, remaining)
	}
}

func TestX5_LayersAskedAtOnceTakeOneSlotAndRunTogether(t *testing.T) {
	p := testPolicy(1)
	p.RangesPerSession = 3
	h := newHarness(t, p)
	var running []*Response
	for i := range uint64(3) {
		r, v := h.want(Admitted, layer("p", i, 10*mib))
		if v.Started != (i == 0) {
			t.Fatalf("layer %d: %+v", i, v)
		}
		running = append(running, r)
	}
	h.want(RangesBusy, layer("p", 3, 10*mib))
	fourth, _, v := h.hold(layer("p", 4, 5*mib))
	if v.Outcome != RangesBusy || fourth == nil {
		t.Fatalf("the layer beyond the places: %+v", v)
	}
	other, _, _ := h.hold(layer("q", 0, 10*mib))
	h.wantBytes(running[0].session.key(), 45*mib, 45*mib)
	h.s.Progress(h.now, running[0], 4*mib)
	h.wantBytes(running[0].session.key(), 45*mib, 41*mib)
	h.s.Progress(h.now, running[0], 6*mib)
	h.finish(running[0], 0, 10*mib, true)
	settled := h.s.TakeSettled()
	if len(settled) != 1 || settled[0].Response == nil || fourth.session != nil || other.session == nil {
		t.Fatalf("a free place starts %+v", settled)
	}
	h.wantBytes(settled[0].Response.session.key(), 45*mib, 35*mib)
	if n := len(h.s.TakeEnded()); n != 0 || h.snap().ActiveTotal() != 1 {
		t.Fatalf("%d stays ended, %d active", n, h.snap().ActiveTotal())
	}
}

// TestX5_LaterLayersWithinTheHoldWaitForNobody, and the slot is free BundleHold after the last of them.
func TestX5_LaterLayersWithinTheHoldWaitForNobody(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	first := layer("p", 0, 10*mib)
	r, _ := h.want(Admitted, first)
	waiter, _, _ := h.hold(layer("q", 0, mib))
	for i := range uint64(5) {
		h.pass(time.Second)
		h.done(r, 10*mib)
		h.tick(BundleHold - TickEvery)
		r, _ = h.want(Admitted, layer("p", i+1, 10*mib))
	}
	h.pass(time.Second)
	h.done(r, 10*mib)
	h.tick(BundleHold - TickEvery)
	if waiter.session == nil {
		t.Fatal("the slot is free before the hold is over")
	}
	h.tick(TickEvery)
	ended := h.s.TakeEnded()
	if waiter.session != nil || len(ended) != 1 || ended[0].Reason != ReasonCompleted || ended[0].Bytes != 60*mib {
		t.Fatalf("after the hold: %+v", ended)
	}
}

// TestX5_APausedBundleIsRemembered for the idle time when it has all it asked for, else for PauseMemory; it rejoins at its old arrival.
func TestX5_APausedBundleIsRemembered(t *testing.T) {
	for name, one := range map[string]struct {
		complete bool
		reason   Reason
		memory   time.Duration
	}{
		"complete":   {true, ReasonCompleted, DefaultPolicy(1).IdleFor},
		"incomplete": {false, ReasonIdle, PauseMemory},
	} {
		h := newHarness(t, testPolicy(1))
		h.pass(time.Minute)
		r, _ := h.want(Admitted, layer("p", 0, 10*mib))
		h.finish(r, 0, 10*mib, one.complete)
		h.tick(BundleHold)
		if got := h.reasons(); len(got) != 1 || got[0] != one.reason || h.snap().Paused != 1 {
			t.Fatalf("%s: ended %v with %d remembered", name, got, h.snap().Paused)
		}
		h.want(Admitted, layer("other", 0, 10*mib))
		h.want(Queued, layer("q", 0, 10*mib))
		h.tick(one.memory - 2*TickEvery)
		h.want(Queued, layer("q", 0, 10*mib))
		if _, v := h.want(Queued, layer("p", 1, 5*mib)); v.Position != 1 || v.Arrival != time.Minute {
			t.Fatalf("%s: it comes back as %+v", name, v)
		}
		h.s.Leave(h.now, layer("p", 0, 0).Key)
	}
}

// TestX5_ACompleteBundleIsForgottenAfterTheIdleTime, an incomplete one is not.
func TestX5_ACompleteBundleIsForgottenAfterTheIdleTime(t *testing.T) {
	h := newHarness(t, testPolicy(2))
	for i, complete := range []bool{true, false} {
		r, _ := h.want(Admitted, layer(name("p", i), 0, 10*mib))
		h.finish(r, 0, 10*mib, complete)
	}
	h.tick(BundleHold + DefaultPolicy(1).IdleFor - TickEvery)
	if n := h.snap().Paused; n != 2 {
		t.Fatalf("%d are remembered", n)
	}
	h.tick(2 * TickEvery)
	if n := h.snap().Paused; n != 1 {
		t.Fatalf("%d are remembered", n)
	}
	p := testPolicy(2)
	p.IdleFor = time.Second
	r, _ := h.want(Admitted, layer("late", 0, 10*mib))
	h.done(r, 10*mib)
	h.tick(BundleHold)
	h.configure(p) // a shorter time holds for those who are remembered too
	h.tick(2 * time.Second)
	if n := h.snap().Paused; n != 1 {
		t.Fatalf("%d are remembered", n)
	}
}

func TestX5_AMemberAskedAgainIsCountedOnce(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "o"))
	key := layer("p", 0, 0).Key
	for range 5 { // a client that polls
		h.want(Queued, layer("p", 1, 10*mib))
		h.want(Queued, layer("p", 2, 20*mib))
		h.wantBytes(key, 30*mib, 30*mib)
	}
	h.want(Queued, layer("p", 1, 12*mib)) // another size is the size it has now
	h.wantBytes(key, 32*mib, 32*mib)
}

func TestX5_ABundleThatComesBackAddsUpAgain(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, layer("p", 1, 10*mib))
	key := layer("p", 0, 0).Key
	h.done(r, 10*mib)
	h.wantBytes(key, 10*mib, 0)
	h.tick(BundleHold)
	h.want(Admitted, askOf("other", "o"))
	h.want(Queued, layer("p", 2, 5*mib))
	h.wantBytes(key, 15*mib, 5*mib)
	h.want(Queued, layer("p", 1, 10*mib))
	h.wantBytes(key, 15*mib, 15*mib)
}

// TestX5_WhatAClientDidNotGetCountsAsToCome: broken and abandoned responses give their bytes back, repeated bytes count no more than the object has.
func TestX5_WhatAClientDidNotGetCountsAsToCome(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	key := layer("p", 0, 0).Key
	ask := func(m uint64) *Response { r, _ := h.want(Admitted, layer("p", m, 10*mib)); return r }
	keep, broken, abandoned := ask(0), ask(0), ask(1)
	h.s.Progress(h.now, broken, 3*mib)
	h.s.Progress(h.now, abandoned, 5*mib)
	h.wantBytes(key, 20*mib, 12*mib)
	h.finish(broken, 0, 3*mib, false)
	h.s.Abandon(h.now, abandoned)
	h.wantBytes(key, 20*mib, 20*mib)
	part := ask(1)
	h.s.Progress(h.now, part, 4*mib)
	h.finish(part, 6*mib, 10*mib, true)
	h.wantBytes(key, 20*mib, 16*mib)
	h.done(ask(1), 10*mib)
	h.done(ask(1), 10*mib)
	h.wantBytes(key, 20*mib, 10*mib)
	h.s.Progress(h.now, keep, 20*mib)
	h.wantBytes(key, 20*mib, 0)
	h.finish(keep, 0, 20*mib, true)
	h.wantBytes(key, 20*mib, 0)
}

func TestX5_AVanishedClientFreesTheSlotAtOnce(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	a, _ := h.want(Admitted, layer("p", 0, 10*mib))
	b, _ := h.want(Admitted, layer("p", 1, 10*mib))
	waiter, _, _ := h.hold(layer("q", 0, mib))
	h.s.Abandon(h.now, a)
	h.check()
	if waiter.session == nil {
		t.Fatal("a response of it still runs")
	}
	h.s.Abandon(h.now, b)
	h.check()
	if got := h.reasons(); waiter.session != nil || len(got) != 1 || got[0] != ReasonCancelled || h.snap().Paused != 1 {
		t.Fatalf("ended %v with %d remembered", got, h.snap().Paused)
	}
}

// TestX5_AHeldBundleWaitsWhileOneOfItsRequestsIsHeld: a client that ends one of several requests is still here.
func TestX5_AHeldBundleWaitsWhileOneOfItsRequestsIsHeld(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "o"))
	one, _, _ := h.hold(layer("p", 0, 10*mib))
	two, _, _ := h.hold(layer("p", 1, 10*mib))
	if snap := h.snap(); snap.WaitingTotal() != 1 || snap.Held != 2 {
		t.Fatalf("%+v", snap)
	}
	h.s.Depart(h.now, one)
	h.tick(time.Minute)
	if h.snap().WaitingTotal() != 1 {
		t.Fatal("it does not wait any more")
	}
	h.s.Abandon(h.now, r)
	if settled := h.s.TakeSettled(); len(settled) != 1 || settled[0].Response == nil || two.session != nil {
		t.Fatalf("the slot goes to %+v", settled)
	}
	h.wantBytes(layer("p", 0, 0).Key, 20*mib, 20*mib)
}

// TestX5_ASmallLayerTouchesNothing: neither a waiting nor an active bundle, nor one that is none yet.
func TestX5_ASmallLayerTouchesNothing(t *testing.T) {
	p := testPolicy(1)
	p.SessionMinBytes = mib
	h := newHarness(t, p)
	h.want(PerRequest, layer("p", 9, mib))
	if h.snap().ActiveTotal() != 0 {
		t.Fatal("a small object took a slot")
	}
	r, _ := h.want(Admitted, layer("p", 0, 10*mib))
	held, _, _ := h.hold(layer("q", 0, 10*mib))
	for _, who := range []string{"p", "q"} {
		h.want(PerRequest, layer(who, 9, mib))
		h.want(PerRequest, layer(who, 9, -1))
		h.wantBytes(layer(who, 0, 0).Key, 10*mib, 10*mib)
	}
	h.done(r, 10*mib)
	h.tick(BundleHold)
	if held.session != nil {
		t.Fatal("small objects kept the slot")
	}
	p.SessionMinBytes = 20 * mib
	h.want(Queued, layer("p", 1, 11*mib))
	h.want(Queued, layer("p", 2, 12*mib))
	h.configure(p) // 33 MiB in all, but each of them is a single request now
	if snap := h.snap(); snap.WaitingTotal() != 0 || snap.Paused != 1 {
		t.Fatalf("%+v", snap)
	}
}

func TestX5_ASharedStrategyTakesNoMoreLayers(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, layer("p", 0, 10*mib))
	p := testPolicy(1)
	p.Strategy = Shared
	h.configure(p)
	h.want(PerRequest, layer("p", 1, 10*mib))
	h.done(r, 10*mib)
	h.tick(BundleHold)
	if h.snap().ActiveTotal() != 0 {
		t.Fatal("the slot is kept")
	}
}

// TestX5_SizeOrdersKnowWhatIsKnown: a new layer moves a waiting bundle back under a size order, and nowhere under ordered.
func TestX5_SizeOrdersKnowWhatIsKnown(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		p := testPolicy(1)
		p.Strategy = strategy
		h := newHarness(t, p)
		h.want(Admitted, askOf("first", "o"))
		h.want(Queued, layer("p", 0, 10*mib))
		h.pass(time.Second)
		h.want(Queued, layer("q", 0, 15*mib))
		_, v := h.want(Queued, layer("p", 1, 10*mib))
		want := 2
		if strategy == Ordered {
			want = 1
		}
		if v.Position != want {
			t.Errorf("%v: position %d, want %d", strategy, v.Position, want)
		}
		bytes := int64(0)
		for c := range h.s.lines {
			bytes += h.s.lines[c].bytes()
		}
		if bytes != 35*mib {
			t.Errorf("%v: the order sums up to %d bytes", strategy, bytes)
		}
	}
}

// TestX5_OfALongLaneTheBytesStayRight: a session in the middle of a lane of many grows.
func TestX5_OfALongLaneTheBytesStayRight(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "o"))
	one := func(i int, m uint64) Ask {
		a := layer("p", m, mib)
		a.Key.Object = name("repository", i)
		return a
	}
	for i := range 100 {
		h.want(Queued, one(i, 0))
		h.pass(time.Millisecond)
	}
	for i := range 100 {
		h.want(Queued, one((i*37)%100, 1))
		if got, want := h.s.lines[Release].bytes(), int64(101+i)*mib; got != want {
			t.Fatalf("after %d more objects the order sums up to %d bytes, want %d", i+1, got, want)
		}
	}
	if got := h.s.lines[Release].firstBytes(50); got != 100*mib {
		t.Errorf("the first 50 have %d bytes", got)
	}
}

// TestX5_BeyondSixtyFourObjectsTheRestIsOne: memory is bounded, and what is asked again still counts once.
func TestX5_BeyondSixtyFourObjectsTheRestIsOne(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	first, _ := h.want(Admitted, askOf("first", "o"))
	for range 3 {
		for i := range uint64(100) {
			h.want(Queued, layer("p", i, mib))
		}
	}
	h.wantBytes(layer("p", 0, 0).Key, 100*mib, 100*mib)
	if n := len(h.session(layer("p", 0, 0).Key).bundle().members); n != maxMembers+1 {
		t.Fatalf("%d objects are told apart", n)
	}
	h.s.Leave(h.now, layer("p", 0, 0).Key)
	h.s.Abandon(h.now, first)
	r, _ := h.want(Admitted, layer("big", 0, 1<<62))
	for i := range uint64(100) {
		if r, v := h.ask(layer("big", i, 1<<62)); r == nil && v.Outcome != RangesBusy {
			t.Fatalf("%+v", v)
		}
	}
	if size := r.session.size; size <= 0 || r.session.remaining() != size {
		t.Fatalf("sizes that an origin makes up sum to %d", size)
	}
}

// TestX5_TheFirstRequestDecidesWhatASessionIs: protocol clients have no bundles, and nothing turns one session into the other.
func TestX5_TheFirstRequestDecidesWhatASessionIs(t *testing.T) {
	h := newHarness(t, testPolicy(2))
	a := layer("p", 0, 10*mib)
	a.Protocol = true
	r, _ := h.want(Admitted, a)
	h.done(r, 10*mib)
	if h.snap().ActiveTotal() != 0 {
		t.Fatal("a protocol client's download is no bundle: it is complete")
	}
	b := layer("q", 0, 10*mib)
	r, _ = h.want(Admitted, b)
	b.Protocol, b.Bundle, b.Member = true, false, 1
	h.want(Admitted, b)
	if ses := r.session; ses.protocol || ses.bundle() == nil || ses.size != 20*mib {
		t.Fatalf("the bundle is protocol %v with %d bytes", ses.protocol, ses.size)
	}
}

func TestX5_OtherSessionsCostNoMore(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "o"))
	h.want(Queued, askOf("second", "o"))
	if ses := h.session(askOf("second", "o").Key); ses.stay != nil {
		t.Error("a waiting session of one object has a stay")
	}
}

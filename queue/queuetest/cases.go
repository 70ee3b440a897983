package queuetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

var cases = []suiteCase{
	{"Q2_SlotsAreNeverExceeded", 8, slots(2), slotsAreNeverExceeded},
	{"Q10_WaitingClientsGetTheFacts", 8, slots(1), waitingClientsGetTheFacts},
	{"Q7_HeldClientStartsWhenASlotFrees", 8, slots(1), heldClientStartsWhenASlotFrees},
	{"Q11_HoldEndsAndThePlaceStays", 8, slots(1), holdEndsAndThePlaceStays},
	{"Q11_HoldLimitAndZeroWaitAnswerAtOnce", 1, slots(1), holdLimitAnswersAtOnce},
	{"Q11_HeldRequestFollowsThePolicy", 8, slots(1), heldRequestFollowsThePolicy},
	{"Q1_HeldRangeTakesTheFreedPlace", 8, slots(1), heldRangeTakesTheFreedPlace},
	{"Q3_StrategyChangesWhileClientsWait", 8, slots(1), strategyChangesWhileClientsWait},
	{"Q16_SlotIsYieldedAtARangeBoundary", 8, slots(1), slotIsYieldedAtARangeBoundary},
	{"P6_GoneClientLeavesItsHold", 8, slots(1), goneClientLeavesItsHold},
	{"P6_AbandonFreesTheSlotAtOnce", 8, slots(1), abandonFreesTheSlot},
	{"Q12_NoShow", 8, slots(1), noShow},
	{"Q14_IdlePauseKeepsArrival", 8, slots(1), idlePauseKeepsArrival},
	{"X5_ABundleHasOnePlace", 8, slots(1), bundleHasOnePlace},
	{"V4_APeekTakesNothing", 8, slots(1), peekTakesNothing},
	{"X6_X7_TheOperatorFindsAndMovesSessions", 8, slots(1), operatorMoves},
	{"X7_APausedSessionWaitsUntilItIsResumed", 8, slots(1), operatorPauses},
	{"X7_KickEndsAWait", 8, slots(1), operatorKicks},
	{"X7_ModesChangeWhileClientsWait", 8, slots(1), modesChange},
	{"U7_AShutGateKeepsPlaces", 8, slots(1), gateShuts},
	{"L1_Drain", 8, slots(1), drain},
	{"Q19_EveryWayOutReturnsToZero", 8, slots(1), everyWayOut},
	{"Q19_ConcurrentFleetCompletes", 64, slots(4), concurrentFleet},
}

func slotsAreNeverExceeded(t *testing.T, s Subject) {
	if !s.Queue.FreeSlot() {
		t.Fatal("an empty queue has no free slot")
	}
	a, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	admit(t, s, queue.Admitted, ask("p", "2"))
	if s.Queue.FreeSlot() {
		t.Fatal("a full queue has a free slot")
	}
	admit(t, s, queue.Queued, ask("p", "3"))
	if _, v := admit(t, s, queue.Admitted, ask("p", "1")); v.Started { // the ranges of an active session need no slot
		t.Fatal("a further range started the session again")
	}
	a.Finish(0, 1, true)
	admit(t, s, queue.Queued, ask("p", "3")) // a running response still holds it
}

func waitingClientsGetTheFacts(t *testing.T, s Subject) {
	admit(t, s, queue.Admitted, ask("p", "1"))
	for i := range 3 {
		_, v := admit(t, s, queue.Queued, ask(fmt.Sprint("q", i), "1"))
		want := time.Duration(i+1) * time.Second // one file a second
		if v.Position != i+1 || !v.EstimateKnown || (v.StartsIn-want).Abs() > 100*time.Millisecond || v.EarliestIn > v.StartsIn || v.LatestIn < v.StartsIn {
			t.Fatalf("newcomer %d is told %+v", i, v)
		}
		if v.CheckIn != 2*time.Second || v.Class != queue.Release || v.Held {
			t.Fatalf("newcomer %d is told %+v", i, v)
		}
	}
	if snap := s.Queue.Snapshot(); snap.Waiting[queue.Release] != 3 || snap.Active[queue.Release] != 1 {
		t.Fatalf("snapshot %+v", snap)
	}
}

func heldClientStartsWhenASlotFrees(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	first := hold(s, ask("q", "1"), time.Minute, nil)
	s.Advance(time.Second)
	second := hold(s, ask("r", "1"), time.Minute, nil)
	none(t, s, first)
	g.Finish(0, size, true) // no tick: at once
	a := got(t, s, first, queue.Admitted)
	if !a.verdict.Held || !a.verdict.Started || a.verdict.Waited != time.Second {
		t.Fatalf("verdict %+v", a.verdict)
	}
	none(t, s, second)
	a.grant.Finish(0, size, true)
	got(t, s, second, queue.Admitted).grant.Finish(0, size, true)
	empty(t, s)
}

func holdEndsAndThePlaceStays(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	held := hold(s, ask("q", "1"), 10*time.Second, nil)
	s.Advance(9 * time.Second)
	none(t, s, held)
	s.Advance(time.Second)
	a := got(t, s, held, queue.Queued)
	if !a.verdict.Held || a.verdict.Position != 1 || a.verdict.CheckIn <= 0 || a.verdict.Waited != 10*time.Second {
		t.Fatalf("verdict %+v", a.verdict)
	}
	admit(t, s, queue.Queued, ask("r", "1"))
	if _, v := admit(t, s, queue.Queued, ask("q", "1")); v.Position != 1 || v.Waited != 10*time.Second {
		t.Fatalf("came back to %+v", v)
	}
	g.Finish(0, size, true)
	if s.Queue.FreeSlot() {
		t.Fatal("a newcomer would pass those who wait")
	}
	admit(t, s, queue.Admitted, ask("q", "1"))
}

func holdLimitAnswersAtOnce(t *testing.T, s Subject) {
	admit(t, s, queue.Admitted, ask("p", "1"))
	first := hold(s, ask("q", "1"), time.Minute, nil)
	if a := got(t, s, hold(s, ask("r", "1"), time.Minute, nil), queue.Queued); a.verdict.Held {
		t.Fatal("held beyond the limit")
	}
	if a := got(t, s, hold(s, ask("q", "2"), 0, nil), queue.Queued); a.verdict.Held {
		t.Fatal("held for no time")
	}
	none(t, s, first)
	s.Queue.Drain()
	got(t, s, first, queue.Draining)
}

func heldRequestFollowsThePolicy(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	p := slots(1)()
	held := hold(s, ask("q", "1"), time.Minute, nil)
	p.SessionMinBytes = size
	if err := s.Queue.Configure(p); err != nil {
		t.Fatal(err)
	}
	got(t, s, held, queue.PerRequest)
	p.SessionMinBytes = 0
	if err := s.Queue.Configure(p); err != nil {
		t.Fatal(err)
	}
	held = hold(s, ask("q", "1"), time.Minute, nil)
	p.Strategy = queue.Shared
	if err := s.Queue.Configure(p); err != nil {
		t.Fatal(err)
	}
	got(t, s, held, queue.PerRequest)
	if s.Queue.Snapshot().ActiveTotal() != 1 {
		t.Fatal("the active session lost its slot")
	}
	p.Sessions = 0
	if err := s.Queue.Configure(p); err == nil {
		t.Fatal("an impossible policy was taken")
	}
	g.Finish(0, size, true)
	empty(t, s)
}

func heldRangeTakesTheFreedPlace(t *testing.T, s Subject) {
	var grants []Grant
	for range 4 {
		g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
		grants = append(grants, g)
	}
	admit(t, s, queue.RangesBusy, ask("p", "1"))
	over := hold(s, ask("p", "1"), time.Second, nil)
	s.Advance(time.Second)
	got(t, s, over, queue.RangesBusy)
	held := hold(s, ask("p", "1"), time.Minute, nil)
	none(t, s, held)
	grants[0].Finish(0, 1, true)
	got(t, s, held, queue.Admitted).grant.Finish(0, 1, true)
	for _, g := range grants[1:] {
		g.Finish(0, size, true)
	}
	empty(t, s)
}

func strategyChangesWhileClientsWait(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	large, small := ask("q", "1"), ask("r", "1")
	large.SizeBytes, small.SizeBytes = 4*size, size/2
	first := hold(s, large, time.Minute, nil)
	s.Advance(time.Second)
	second := hold(s, small, time.Minute, nil)
	p := slots(1)()
	p.Strategy = queue.SmallestFirst
	if err := s.Queue.Configure(p); err != nil {
		t.Fatal(err)
	}
	none(t, s, first) // the active session keeps its slot
	none(t, s, second)
	g.Finish(0, size, true)
	a := got(t, s, second, queue.Admitted)
	none(t, s, first)
	a.grant.Finish(0, size/2, true)
	got(t, s, first, queue.Admitted).grant.Finish(0, 4*size, true)
	empty(t, s)
}

func slotIsYieldedAtARangeBoundary(t *testing.T, s Subject) {
	low := ask("p", "1")
	low.Class, low.Protocol, low.Range = queue.Background, true, queue.Bounded(0, size/2-1)
	g, _ := admit(t, s, queue.Admitted, low)
	s.Advance(queue.PreemptAfter)
	head := hold(s, ask("q", "1"), time.Hour, nil)
	s.Advance(queue.TickEvery)
	low.Range = queue.Bounded(size/2, size-1)
	if _, v := admit(t, s, queue.Queued, low); !v.Yielded || v.CheckIn <= 0 {
		t.Fatalf("the next range is told %+v", v)
	}
	none(t, s, head) // the slot is free with the last running response
	g.Finish(0, size/2, true)
	a := got(t, s, head, queue.Admitted)
	if _, v := admit(t, s, queue.Queued, low); v.Position != 1 {
		t.Fatalf("who yielded waits as %+v", v)
	}
	a.grant.Finish(0, size, true)
	rest, _ := admit(t, s, queue.Admitted, low)
	rest.Finish(size/2, size, true) // what was delivered before counts: the session is complete
	empty(t, s)
	ended := s.Ended()
	if len(ended) != 3 || ended[0].Reason != queue.ReasonYielded || ended[1].Reason != queue.ReasonCompleted || ended[2].Reason != queue.ReasonCompleted {
		t.Fatalf("ended %+v", ended)
	}
}

func goneClientLeavesItsHold(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	gone := make(chan struct{})
	held := hold(s, ask("q", "1"), time.Minute, gone)
	close(gone)
	got(t, s, held, queue.Gone)
	if snap := s.Queue.Snapshot(); snap.Held != 0 || snap.WaitingTotal() != 0 || snap.Paused != 1 {
		t.Fatalf("%d held, %d waiting, %d remembered: who left should not wait, but be remembered", snap.Held, snap.WaitingTotal(), snap.Paused)
	}
	s.Advance(time.Second)
	later := hold(s, ask("r", "1"), time.Minute, nil)
	none(t, s, later)
	back := hold(s, ask("q", "1"), time.Minute, nil) // X1: it timed out and asks again: its old arrival counts
	none(t, s, back)
	g.Finish(0, size, true)
	second := got(t, s, back, queue.Admitted)
	none(t, s, later)
	second.grant.Finish(0, size, true)
	got(t, s, later, queue.Admitted).grant.Finish(0, size, true)
	empty(t, s)
}

func abandonFreesTheSlot(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	held := hold(s, ask("q", "1"), time.Minute, nil)
	g.Progress(100)
	g.Abandon()
	g.Finish(0, size, true) // after the end: nothing
	got(t, s, held, queue.Admitted).grant.Finish(0, size, true)
	empty(t, s)
	ended := s.Ended()
	if len(ended) != 2 || ended[0].Reason != queue.ReasonCancelled || ended[0].Bytes != 100 || !ended[0].Started || ended[1].Reason != queue.ReasonCompleted {
		t.Fatalf("ended %+v", ended)
	}
}

func noShow(t *testing.T, s Subject) {
	admit(t, s, queue.Admitted, ask("p", "1"))
	admit(t, s, queue.Queued, ask("q", "1"))
	s.Advance(17 * time.Second)
	if s.Queue.Snapshot().WaitingTotal() != 1 {
		t.Fatal("dropped early")
	}
	s.Advance(2 * time.Second)
	if ended := s.Ended(); len(ended) != 1 || ended[0].Reason != queue.ReasonNoShow || ended[0].Started {
		t.Fatalf("ended %+v", ended)
	}
}

func idlePauseKeepsArrival(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	g.Finish(0, size/2, true)
	s.Advance(30*time.Second + time.Second)
	if ended := s.Ended(); len(ended) != 1 || ended[0].Reason != queue.ReasonIdle {
		t.Fatalf("ended %+v", ended)
	}
	admit(t, s, queue.Admitted, ask("q", "1"))
	admit(t, s, queue.Queued, ask("r", "1"))
	half := ask("p", "1")
	half.Range = queue.OpenFrom(size / 2)
	if _, v := admit(t, s, queue.Queued, half); v.Position != 1 {
		t.Fatalf("rejoined at position %d", v.Position)
	}
}

// bundleHasOnePlace: layers of one client run together, later ones need no wait, and the slot is free a little after the last.
func bundleHasOnePlace(t *testing.T, s Subject) {
	layer := func(who string, member uint64) queue.Ask {
		a := ask(who, "repository")
		a.Bundle, a.Member = true, member
		return a
	}
	first, _ := admit(t, s, queue.Admitted, layer("p", 1))
	second, _ := admit(t, s, queue.Admitted, layer("p", 2))
	one, two := hold(s, layer("q", 1), time.Minute, nil), hold(s, layer("q", 2), time.Minute, nil)
	if snap := s.Queue.Snapshot(); snap.ActiveTotal() != 1 || snap.WaitingTotal() != 1 || snap.Held != 2 {
		t.Fatalf("%d active, %d waiting, %d held", snap.ActiveTotal(), snap.WaitingTotal(), snap.Held)
	}
	first.Finish(0, size, true)
	second.Finish(0, size, true)
	third, v := admit(t, s, queue.Admitted, layer("p", 3))
	if v.Started {
		t.Fatal("a further layer started the session again")
	}
	third.Finish(0, size, true)
	none(t, s, one)
	s.Advance(queue.BundleHold + queue.TickEvery)
	for _, held := range []<-chan answer{one, two} {
		got(t, s, held, queue.Admitted).grant.Finish(0, size, true)
	}
	if ended := s.Ended(); len(ended) != 1 || ended[0].Reason != queue.ReasonCompleted {
		t.Fatalf("ended %+v", ended)
	}
	s.Advance(queue.BundleHold + queue.TickEvery)
	empty(t, s)
}

// peekTakesNothing: a peeking request learns its turn, holds nothing and is never held.
func peekTakesNothing(t *testing.T, s Subject) {
	page := ask("p", "1")
	page.Peek = true
	if _, v := admit(t, s, queue.Ready, page); v.CheckIn <= 0 {
		t.Fatalf("%+v", v)
	}
	g, _ := admit(t, s, queue.Admitted, ask("q", "1"))
	if a := got(t, s, hold(s, page, time.Minute, nil), queue.Queued); a.verdict.Held || a.verdict.Position != 1 {
		t.Fatalf("%+v", a.verdict)
	}
	g.Finish(0, size, true)
	if n := s.Queue.Snapshot().ActiveTotal(); n != 0 {
		t.Fatalf("%d active: the slot went to a page", n)
	}
	admit(t, s, queue.Ready, page)
	g, _ = admit(t, s, queue.Admitted, ask("p", "1"))
	g.Finish(0, size, true)
	empty(t, s)
}

func drain(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	held := hold(s, ask("q", "1"), time.Minute, nil)
	s.Queue.Drain()
	if a := got(t, s, held, queue.Draining); a.verdict.CheckIn != 2*time.Second {
		t.Fatalf("verdict %+v", a.verdict)
	}
	admit(t, s, queue.Draining, ask("r", "1"))
	g2, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	g.Finish(0, size, true)
	g2.Finish(0, size, true)
	if s.Queue.FreeSlot() {
		t.Fatal("a draining queue offers slots")
	}
	empty(t, s)
}

func everyWayOut(t *testing.T, s Subject) {
	type way struct {
		name   string
		reason queue.Reason
		out    func(g Grant, a queue.Ask)
	}
	for i, w := range []way{
		{"end of response", queue.ReasonCompleted, func(g Grant, _ queue.Ask) { g.Finish(0, size, true) }},
		{"error", queue.ReasonIdle, func(g Grant, _ queue.Ask) { g.Finish(0, 10, false); s.Advance(31 * time.Second) }},
		{"client left", queue.ReasonCancelled, func(g Grant, _ queue.Ask) { g.Abandon() }},
		{"cancel", queue.ReasonCancelled, func(g Grant, a queue.Ask) { s.Queue.Leave(a.Key); g.Finish(0, 10, false) }},
	} {
		a := ask(fmt.Sprint("p", i), "1")
		g, _ := admit(t, s, queue.Admitted, a)
		w.out(g, a)
		empty(t, s)
		if ended := s.Ended(); len(ended) != i+1 || ended[i].Reason != w.reason {
			t.Fatalf("%s: ended %+v", w.name, ended)
		}
	}
}

func concurrentFleet(t *testing.T, s Subject) {
	const fleet = 40
	var now, peak, done atomic.Int64
	var all sync.WaitGroup
	for i := range fleet {
		all.Go(func() {
			g, v := s.Queue.Hold(ask(fmt.Sprint("p", i%5), fmt.Sprint(i)), time.Hour, nil)
			if v.Outcome != queue.Admitted {
				t.Errorf("client %d got %v", i, v.Outcome)
				return
			}
			for n := now.Add(1); ; {
				old := peak.Load()
				if n <= old || peak.CompareAndSwap(old, n) {
					break
				}
			}
			g.Progress(size)
			now.Add(-1)
			g.Finish(0, size, true)
			g.Finish(0, size, true)
			done.Add(1)
		})
	}
	all.Wait()
	if done.Load() != fleet || peak.Load() > 4 {
		t.Fatalf("%d of %d done, %d at once on 4 slots", done.Load(), fleet, peak.Load())
	}
	empty(t, s)
	var bytes int64
	for _, e := range s.Ended() {
		bytes += e.Bytes
	}
	if bytes != fleet*size {
		t.Fatalf("%d bytes recorded, want %d", bytes, fleet*size)
	}
}

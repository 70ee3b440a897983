package queue

import (
	"testing"
	"time"
)

// TestX7_APauseOutlivesAClientThatStaysAway: its session was dropped as a no-show, and a ticket brought it back to its old place without the pause.
func TestX7_APauseOutlivesAClientThatStaysAway(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r, _ := h.want(Admitted, askOf("first", "running"))
	h.pass(time.Second)
	a := askOf("pa", "a")
	_, told := h.want(Queued, a)
	h.act(PauseIt, a, nil)
	h.want(Queued, a)
	for range 120 {
		h.tick(TickEvery)
	}
	if snap := h.snap(); snap.WaitingTotal() != 0 || snap.Counts.Ended[ReasonNoShow] != 1 {
		t.Fatalf("%+v", snap)
	}
	h.finish(r, 0, 100*mib, true)
	a.Ticketed, a.Arrival = true, told.Arrival
	if _, v := h.want(Queued, a); v.Position != 0 || v.Arrival != told.Arrival {
		t.Fatalf("the slot is free and it is paused: %+v", v)
	}
	if s, _ := h.s.Show(h.now, a.Key); s.Why != WhyOperator || !s.Stopped {
		t.Errorf("%+v", s)
	}
	h.act(ResumeIt, a, nil)
	h.want(Admitted, a)
	h.check()
}

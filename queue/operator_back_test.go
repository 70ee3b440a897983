package queue

import (
	"testing"
	"time"
)

// TestX7_AnOldTicketDoesNotUndoAMoveToTheBack: a client that keeps the ticket of before, stays away until its session is dropped and comes back.
func TestX7_AnOldTicketDoesNotUndoAMoveToTheBack(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("first", "running"))
	h.pass(time.Second)
	_, before := h.want(Queued, askOf("pa", "a"))
	for _, o := range []string{"b", "c"} {
		h.pass(time.Second)
		h.hold(askOf("p"+o, o))
	}
	h.act(MoveBack, askOf("pa", "a"), nil)
	h.wantOrder("b", "c", "a")
	moved := h.now
	h.tick(3 * time.Minute) // it does not come: dropped
	h.wantOrder("b", "c")
	h.hold(askOf("pd", "d"))
	old := askOf("pa", "a")
	old.Ticketed, old.Arrival = true, before.Arrival
	_, after := h.want(Queued, old)
	h.wantOrder("b", "c", "a", "d")
	if after.Arrival != moved {
		t.Errorf("its arrival is %v, want %v, when it was moved", after.Arrival, moved)
	}
	h.act(MoveFront, askOf("pa", "a"), nil) // the operator thinks better of it
	h.wantOrder("a", "b", "c", "d")
	front := h.session(askOf("pa", "a").Key).arrival
	h.tick(3 * time.Minute)
	again := askOf("pa", "a")
	again.Ticketed, again.Arrival = true, front
	if _, v := h.want(Queued, again); v.Arrival != front {
		t.Errorf("moved to the front its arrival was %v, then %v", front, v.Arrival)
	}
	h.check()
}

package queue

import (
	"testing"
	"time"
)

// TestX7_Q5_AMovedSessionAgesAgainWhenTheStrategyEndsItsMove: its next lift was planned by nobody, so that a held client, who makes no contact, was never lifted.
func TestX7_Q5_AMovedSessionAgesAgainWhenTheStrategyEndsItsMove(t *testing.T) {
	p := testPolicy(1)
	p.AgingEvery = time.Minute
	h := newHarness(t, p)
	h.want(Admitted, askOf("first", "running"))
	h.hold(askOf("a", "a").in(Bulk))
	h.hold(askOf("b", "b").in(Bulk))
	h.act(MoveFront, askOf("b", "b"), nil)
	h.tick(62 * time.Second) // the lift that was planned before is void
	p.Strategy = SmallestFirst
	h.configure(p)
	for range 10 {
		h.tick(TickEvery)
	}
	h.check()
	for _, name := range []string{"a", "b"} {
		if ses := h.session(askOf(name, name).Key); ses.lifted != Release {
			t.Errorf("%s stands in %v", name, ses.lifted)
		}
	}
}

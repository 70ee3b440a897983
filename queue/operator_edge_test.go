package queue

import (
	"testing"
	"time"
)

// movedByAge lets a bulk session age into release and be moved to the front of it, behind a running session that holds the only slot.
func movedByAge(t *testing.T, strategy Strategy) (h *harness, running *Response) {
	t.Helper()
	p := testPolicy(1)
	p.Strategy, p.AgingEvery, p.Preempt = strategy, time.Minute, false
	h = newHarness(t, p)
	running, _ = h.want(Admitted, askOf("first", "running"))
	h.hold(askOf("old", "old").in(Bulk))
	h.tick(61 * time.Second)
	h.hold(askOf("new", "new"))
	h.act(MoveFront, askOf("old", "old"), nil)
	if ses := h.session(askOf("old", "old").Key); ses.lifted != Release {
		t.Fatalf("it stands in %v", ses.lifted)
	}
	return h, running
}

// TestX7_W1_AMovedSessionDoesNotStayAmongThoseOfAnotherClassOutsideAWindow: a session that age lifted and the operator moved stood on in the class that age gave it
// when a window parted the two classes.
func TestX7_W1_AMovedSessionDoesNotStayAmongThoseOfAnotherClassOutsideAWindow(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		t.Run(strategy.String()+", its own class shuts", func(t *testing.T) {
			h, running := movedByAge(t, strategy)
			h.windows(shutting(Bulk, 0, opens(h.now+time.Hour)))
			h.finish(running, 0, 100*mib, true)
			settled := h.s.TakeSettled()
			if len(settled) != 1 || settled[0].Response == nil || settled[0].Verdict.Class != Release {
				t.Fatalf("the slot went to %+v", settled)
			}
			h.finish(settled[0].Response, 0, 100*mib, true)
			h.tick(time.Hour)
			if settled = h.s.TakeSettled(); len(settled) != 1 || settled[0].Response == nil {
				t.Fatalf("at the opening %+v", settled)
			}
		})
		t.Run(strategy.String()+", the class of its age shuts", func(t *testing.T) {
			h, running := movedByAge(t, strategy)
			h.windows(shutting(Release, 0, opens(h.now+8*time.Hour)))
			h.finish(running, 0, 100*mib, true)
			settled := h.s.TakeSettled()
			if len(settled) != 1 || settled[0].Response == nil || settled[0].Verdict.Class != Bulk {
				t.Fatalf("a session of an open class waits for the window of another one: %+v", settled)
			}
		})
	}
}

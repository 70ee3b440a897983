package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestX6_TheForecastOfEmptyingIsNotBeforeAStartThatIsTold: while a class is outside its window, who stands last in the order is not who starts last.
func TestX6_TheForecastOfEmptyingIsNotBeforeAStartThatIsTold(t *testing.T) {
	for _, one := range []struct {
		name string
		plan WindowPlan
	}{
		{"no windows", OpenPlan()},
		{"a share", shutting(Bulk, 100)},
		{"a share until an edge", shutting(Bulk, 100, opens(20*time.Hour))},
		{"shut for a while", shutting(Bulk, 0, opens(time.Minute))},
	} {
		t.Run(one.name, func(t *testing.T) {
			p := banded(10)
			p.Reserve, p.AgingEvery = 0, 0
			h := newHarness(t, p)
			h.windows(one.plan)
			for i := range 10 {
				h.want(Admitted, askOf("r", fmt.Sprint("running", i)))
			}
			for i := range 40 {
				h.want(Queued, askOf(fmt.Sprint("b", i), fmt.Sprint("b", i)).in(Bulk))
				if i%4 != 0 {
					h.want(Queued, askOf(fmt.Sprint("a", i), fmt.Sprint("a", i)))
					h.want(Queued, askOf(fmt.Sprint("z", i), fmt.Sprint("z", i)).in(Background))
				}
			}
			h.tick(0)
			o := h.s.Overview(h.now)
			if !o.EmptyKnown {
				t.Fatal("there is no forecast")
			}
			page := h.s.List(h.now, ListQuery{Waiting: true}, Mark{}, 1000, 1000)
			for i, s := range page.Sessions {
				if !s.EstimateKnown || s.StartsIn > o.EmptyIn {
					t.Fatalf("session %d of %s starts in %v (known: %v), the queue is empty in %v", i, s.Class, s.StartsIn, s.EstimateKnown, o.EmptyIn)
				}
			}
		})
	}
}

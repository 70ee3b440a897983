package admission

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestQ19_AnyHistoryKeepsTheLimits runs random requests, departures, releases and settings against the limits, with a
// recount as the oracle.
func TestQ19_AnyHistoryKeepsTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) { // TB alone: a bubble knows no deadline
			g, c := newGate(rt, settings(3, 2))
			limit := 3
			held := map[string][]Place{}
			type waiting struct {
				name string
				gone chan struct{}
				out  <-chan result
			}
			var waiters []waiting
			collect := func() {
				waiters = slices.DeleteFunc(waiters, func(w waiting) bool {
					r, ok := answered(rt, w.out)
					if ok && r.err == nil {
						held[w.name] = append(held[w.name], r.place)
					}
					return ok
				})
				active := 0
				for name, places := range held {
					active += len(places)
					if len(places) > 2 {
						rt.Fatalf("%s holds %d places", name, len(places))
					}
				}
				if s := g.Snapshot(); s.Active != active || s.Waiting != len(waiters) || active > max(limit, 3) {
					rt.Fatalf("%d places and %d waiters, snapshot %+v", active, len(waiters), s)
				}
			}
			names := []string{"a", "b", "c"}
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				name := rapid.SampledFrom(names).Draw(rt, "name")
				switch rapid.IntRange(0, 4).Draw(rt, "event") {
				case 0, 1:
					gone := make(chan struct{})
					waiters = append(waiters, waiting{name, gone, wait(g, name, gone)})
				case 2:
					if places := held[name]; len(places) > 0 {
						held[name] = places[1:]
						places[0].Release()
					}
				case 3:
					if len(waiters) > 0 {
						close(waiters[0].gone)
					}
				default:
					c.pass(7 * time.Second)
					g.Tick(c.read())
				}
				collect()
			}
			g.Drain()
			collect()
			for _, places := range held {
				for _, p := range places {
					p.Release()
				}
			}
			if s := g.Snapshot(); s.Active != 0 || s.Waiting != 0 || len(g.principals) != 0 || g.turns.head != nil {
				rt.Fatalf("left over: %+v", s)
			}
		})
	})
}

//go:build gate

package house_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	replacePerSecond = 2000
	replaceWorkers   = 128
	// replaceReached is the share of the load that must really have been sent for the run to count.
	replaceReached = 0.9
)

// replacing is one run: a set of addresses after another behind the name while the load goes on.
type replacing struct {
	t       *testing.T
	names   *nameServer
	sidecar *sidecar
	load    *load
	rows    []string
	timed   int // requests whose times are in rows already

	mu                   sync.Mutex
	samples, shut, early int // dumps; those with a coming generation short of its gate; those of them with that generation active
	worst                string
}

// TestGateUpstreamReplaceSet is acceptance 5.3: the endpoint set behind the name is replaced while 2,000 small requests a second are due, whatever becomes of those before.
//
//   - No request fails in any phase.
//   - A set of which no address can be connected (one hangs, one refuses) is not activated for as long as that is so: the old one serves. It is when one address
//     of it is up, with the other two still hanging and refusing.
//   - Each dump of the debug page is held to it: while a generation warms up with fewer connections than its gate needs, the number of the active one stands.
//   - After each phase the old set has no connection any more, by the kernel's list, and its generation is retired.
func TestGateUpstreamReplaceSet(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	addresses := originAddresses(t, 6, false)
	var origins []*webOrigin
	for i, address := range addresses {
		origins = append(origins, newOrigin(t, s, string(rune('a'+i)), address, 5*time.Minute))
	}
	first, second := addresses[:3], addresses[3:]
	for _, o := range origins[:3] {
		o.start()
	}
	r := &replacing{t: t, names: startNames(t)}
	r.names.set(poolName, first...)
	r.sidecar = startSidecar(t, buildSidecar(t), poolOrigin(portOf(addresses[0])), false, poolVariables(r.names, nil))
	within(t, 20*time.Second, "the pool has coverage", func() bool { return r.sidecar.pool().of(t, seriesCovered) == 1 })
	r.load = &load{address: r.sidecar.listen, path: "/tiny", size: kib, perSecond: replacePerSecond, workers: replaceWorkers}
	r.load.start()
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() { defer close(watched); r.watch(stop) }()
	pause(3 * time.Second)

	open := blackHole(t, second[2])
	r.phase("none of the new set can be connected", second, false, 8*time.Second)
	origins[3].start()
	r.settled("one of it comes up, one hangs, one refuses", first, 30*time.Second)
	origins[4].start()
	open()
	origins[5].start()
	pause(3 * time.Second)
	r.phase("back to the first set", first, true, 20*time.Second)
	r.settled("the other set is gone", second, 30*time.Second)
	r.phase("one taken out, one of the others in", []string{first[0], first[1], second[0]}, true, 20*time.Second)
	r.settled("the one taken out is gone", first[2:], 30*time.Second)
	before := r.sidecar.pool()
	for range 5 { // a burst is one reinit, two when it begins while one runs
		r.sidecar.reload()
	}
	within(t, 20*time.Second, "SIGHUP makes a generation", func() bool {
		return r.sidecar.pool().of(t, seriesGeneration) > before.of(t, seriesGeneration)
	})
	pause(3 * time.Second)
	after := r.sidecar.pool()
	r.row("SIGHUP, five times", after)
	if n := after.of(t, generationsThat("activated")) - before.of(t, generationsThat("activated")); n < 1 || n > 2 {
		t.Errorf("five signals made %d generations", n)
	}
	pause(2 * time.Second)
	r.load.finish()
	close(stop)
	<-watched
	r.judge()
}

// watch looks at the debug page until stop, and holds each look to the gate.
func (r *replacing) watch(stop <-chan struct{}) {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-stop:
			tick.Stop()
			return
		case <-tick.C:
		}
		d := r.sidecar.dump()
		r.mu.Lock()
		r.samples++
		for _, g := range d.Groups {
			for _, gen := range g.Generations {
				if gen.State != "warmup" {
					continue
				}
				if gen.GateHave < gen.GateNeed {
					r.shut++
					if g.Generation >= gen.ID {
						r.early++
						r.worst = d.String()
					}
				}
			}
		}
		r.mu.Unlock()
	}
}

// phase changes the name's addresses and waits until the new set serves, or, when it cannot, for as long as limit that it does not.
func (r *replacing) phase(what string, addresses []string, can bool, limit time.Duration) {
	r.t.Helper()
	before := r.sidecar.pool()
	generation := before.of(r.t, seriesGeneration)
	r.names.set(poolName, addresses...)
	if can {
		within(r.t, limit, what, func() bool { return r.sidecar.pool().of(r.t, seriesGeneration) > generation })
	} else {
		within(r.t, limit, "a generation warms up", func() bool {
			return r.sidecar.pool().of(r.t, generationsThat("begun")) > before.of(r.t, generationsThat("begun"))
		})
		for end := time.Now().Add(limit); time.Now().Before(end); pause(50 * time.Millisecond) {
			if now := r.sidecar.pool().of(r.t, seriesGeneration); now != generation {
				r.t.Fatalf("generation %d was activated: %s", now, r.sidecar.dump())
			}
		}
	}
	r.row(what, r.sidecar.pool())
}

// settled waits until nothing of the old addresses is connected any more and their generation is retired.
func (r *replacing) settled(what string, old []string, limit time.Duration) {
	r.t.Helper()
	within(r.t, limit, what, func() bool {
		left := 0
		connected := establishedTo(r.t)
		for _, address := range old {
			left += connected[address]
		}
		page := r.sidecar.pool()
		gone := page.of(r.t, generationsThat("activated")) - page.of(r.t, generationsThat("retired"))
		return left == 0 && gone <= 1+page.of(r.t, generationsThat("begun"))-page.of(r.t, generationsThat("activated"))-page.of(r.t, generationsThat("abandoned"))
	})
	r.row(what, r.sidecar.pool())
}

// row notes a state after a phase.
func (r *replacing) row(what string, page poolPage) {
	due, ok := r.load.counts()
	d := r.sidecar.dump()
	var state []string
	for _, g := range d.Groups {
		for _, gen := range g.Generations {
			state = append(state, fmt.Sprintf("%d %s (%d endpoints, %d writers, gate %d/%d)", gen.ID, gen.State, gen.Endpoints, gen.Writers, gen.GateHave, gen.GateNeed))
		}
	}
	slowest, n := r.load.slowest(r.timed)
	r.timed = n
	r.rows = append(r.rows, fmt.Sprintf("| %.0f s | %s | %d | %d | %v | %s | %d, %d, %d |\n", time.Since(r.load.begun).Seconds(), what, due, due-ok, slowest.Round(time.Millisecond), strings.Join(state, "; "),
		page.of(r.t, generationsThat("activated")), page.of(r.t, generationsThat("retired")), page.of(r.t, generationsThat("abandoned"))))
}

// judge prints the table and holds the counts to what they must be.
func (r *replacing) judge() {
	t := r.t
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf("\n| at | phase | requests | failed | slowest in it | generations | activated, retired, abandoned |\n|---|---|---|---|---|---|---|\n%s", strings.Join(r.rows, ""))
	t.Logf("load: %.0f requests/s reached of %d due, %d in all, %d failed %v; median %v, 99 %% %v, slowest %v; answers by origin %v", r.load.rate(), replacePerSecond, r.load.due,
		r.load.due-r.load.ok, r.load.failures(), r.load.quantile(0.5).Round(10*time.Microsecond), r.load.quantile(0.99).Round(100*time.Microsecond),
		r.load.quantile(1).Round(time.Millisecond), r.load.seen())
	t.Logf("debug page: %d looks, %d with a coming generation short of its gate, %d of them with that generation active already", r.samples, r.shut, r.early)
	if r.load.ok != r.load.due {
		t.Errorf("%d requests failed: %v", r.load.due-r.load.ok, r.load.failures())
	}
	if r.load.rate() < replaceReached*replacePerSecond {
		t.Errorf("only %.0f requests/s were reached: the machine is too busy to judge", r.load.rate())
	}
	if r.shut == 0 || r.early > 0 {
		t.Errorf("%d looks at a generation short of its gate, %d of an early activation: %s", r.shut, r.early, r.worst)
	}
	for _, name := range []string{"a", "b", "c", "d"} { // each served in its time
		if r.load.seen()[name] == 0 {
			t.Errorf("origin %s answered nothing", name)
		}
	}
}

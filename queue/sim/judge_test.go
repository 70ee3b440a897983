package sim

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// TestX3_WithoutAdmissionTheSimulationIsTheReference proves link and reference against each other: a place for everybody, one request for
// the whole object, one client a principal is processor sharing, and the two ways to compute it have nothing in common.
func TestX3_WithoutAdmissionTheSimulationIsTheReference(t *testing.T) {
	for seed := range uint64(5) {
		s := fleet(150, func(s *Settings) {
			s.Seed, s.RangeBytes, s.RangesAtOnce, s.Slow = seed, 1<<40, 1, Share{0.3, 1e6}
			s.Arrivals = Arrivals{Kind: Poisson, Load: 1.1}
			s.Gate = admission.Settings{Capacity: 1000, PerPrincipal: 1000, WaitLimit: 1, WaitPerPrincipal: 1, Timeout: time.Second}
		})
		pop := populate(&s)
		reference := sharing(pop.persons, float64(s.LinkBytesPerSecond))
		r, err := newRun(&s, queue.Shared, pop, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.loop(); err != nil {
			t.Fatal(err)
		}
		for i := range r.clients {
			if got := r.clients[i].finished.Seconds(); !near(got, reference[i], 1e-3) {
				t.Fatalf("seed %d: client %d is done at %v, by the reference at %v", seed, i, got, reference[i])
			}
		}
		if out := r.result(pop, reference); !near(float64(out.MeanVsSharing), 1, 1e-6) || out.LaterThanSharing != 0 || out.LinkBusy.Known() {
			t.Errorf("seed %d: mean %v of the reference, %d later, link %v busy though nobody waits", seed, out.MeanVsSharing, out.LaterThanSharing, out.LinkBusy)
		}
	}
}

// TestX3_WhoGivesUpIsNotLeftOut: a strategy whose clients give up must not look the better for it.
func TestX3_WhoGivesUpIsNotLeftOut(t *testing.T) {
	s := fleet(100, func(s *Settings) { s.Plain, s.Size = []PlainMix{{"curl", 0.5}}, Sizes{1e9, 1e9} })
	r := simulated(t, s, queue.Ordered)
	if r.FailedClients < 20 || r.LaterThanSharing < r.FailedClients {
		t.Fatalf("%d failed, %d later", r.FailedClients, r.LaterThanSharing)
	}
	// All done one after another halve the mean; the failed ones are as late as under sharing at least.
	if failed := float64(r.FailedClients) / 100; float64(r.MeanVsSharing) < failed || r.MaxLaterRatio < 1 {
		t.Errorf("%v failed, mean %v of sharing, at most %v later", failed, r.MeanVsSharing, r.MaxLaterRatio)
	}
	s.Plain[0].Part, s.Hold, s.Arrivals.Over = 1, 0, time.Second
	s.Size = Sizes{1e12, 1e12}
	if r := simulated(t, s, queue.Ordered); r.Waits[0].Never != r.FailedClients || r.FailedClients < 80 {
		t.Errorf("%d failed, %d without a byte", r.FailedClients, r.Waits[0].Never)
	}
}

// TestX3_WhereNothingWasIsNoNumber: nobody done, nobody waiting, nothing promised are null and not zero.
func TestX3_WhereNothingWasIsNoNumber(t *testing.T) {
	s := fleet(20, func(s *Settings) { s.BreaksPerGiB, s.RequestFaults, s.Faults = 1000, 0, 0 })
	for _, strategy := range everyStrategy {
		r := simulated(t, s, strategy)
		if r.FailedClients != 20 || r.FirstDoneSeconds.Known() || r.DrainRatio.Known() || !near(float64(r.MeanVsSharing), 1, 0.01) || r.LaterThanSharing != 20 {
			t.Errorf("%s: %d failed, first done %v, drain %v, mean %v, %d later", strategy, r.FailedClients, r.FirstDoneSeconds, r.DrainRatio, r.MeanVsSharing, r.LaterThanSharing)
		}
		text, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(text), `"firstDoneSeconds":null`) {
			t.Errorf("%s: %v, %s", strategy, err, text)
		}
	}
	r := simulated(t, fleet(1, nil), queue.Ordered)
	if r.LinkBusy.Known() || r.IdleSlots.Known() || r.StartsWithinTolerance.Known() || !near(float64(r.MeanVsSharing), 1, 1e-6) {
		t.Errorf("one client: link %v busy, slots %v idle, starts %v, mean %v", r.LinkBusy, r.IdleSlots, r.StartsWithinTolerance, r.MeanVsSharing)
	}
}

func TestQ8_PromisesAreJudgedEvenWithoutAStart(t *testing.T) {
	const minute = time.Minute
	told := promise{at: 0, startsIn: 100 * minute, latestIn: 120 * minute} // within: 90..110
	for _, one := range []struct {
		now                        time.Duration
		gone                       bool
		starts, within, ends, held uint64
		open                       uint64
	}{
		{100 * minute, false, 1, 1, 1, 1, 0},
		{110 * minute, false, 1, 1, 1, 1, 0},
		{89 * minute, false, 1, 0, 1, 1, 0},
		{111 * minute, false, 1, 0, 1, 1, 0},
		{121 * minute, false, 1, 0, 1, 0, 0},
		{100 * minute, true, 0, 0, 0, 0, 1}, // nothing was due
		{111 * minute, true, 1, 0, 0, 0, 0}, // the start is broken, the bound unknown
		{121 * minute, true, 1, 0, 1, 0, 0},
	} {
		var v verdicts
		l := ledger{kept: []promise{told}, thin: 3}
		v.judge(&l, one.now, one.gone)
		const h = 3
		if v.starts[h] != 8*one.starts || v.within[h] != 8*one.within || v.ends[h] != 8*one.ends || v.held[h] != 8*one.held || v.open != 8*one.open {
			t.Errorf("at %v (gone %v): %+v", one.now, one.gone, v)
		}
		if len(l.kept) != 0 || l.thin != 0 {
			t.Errorf("the ledger was not emptied: %+v", l)
		}
	}
}

// TestQ8_PromisesKeptAreBounded: however often a client asks, memory is bounded and the count of what was told stays right.
func TestQ8_PromisesKeptAreBounded(t *testing.T) {
	var (
		l ledger
		v verdicts
	)
	const told, most = 100_000, 64
	for i := range told {
		l.note(promise{at: time.Duration(i), startsIn: time.Hour, latestIn: time.Hour}, most)
		if len(l.kept) > most {
			t.Fatalf("%d are kept after %d answers", len(l.kept), i+1)
		}
	}
	for i := range l.kept { // evenly from all of them
		if want := time.Duration(i) << l.thin; l.kept[i].at != want {
			t.Fatalf("promise %d is the answer at %d, want %d", i, l.kept[i].at, want)
		}
	}
	v.judge(&l, time.Hour, false)
	if n := float64(v.starts[3]); math.Abs(n-told) > told/most*2 {
		t.Errorf("%v of %d promises were counted", n, told)
	}
	if promisesEach(1000) < 1000 || promisesEach(MaxClients)*MaxClients > 1<<24 {
		t.Errorf("%d kept of each of 1000 clients, %d of each of the most", promisesEach(1000), promisesEach(MaxClients))
	}
}

// TestTheBalanceOfTheLinkIsProved is the negative control of the conservation of bytes.
func TestTheBalanceOfTheLinkIsProved(t *testing.T) {
	for _, off := range []int64{0, 1e6, -1e6} {
		s := fleet(5, nil)
		r, err := newRun(&s, queue.Ordered, populate(&s), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.meter.delivered = off
		if err := r.loop(); (err == nil) != (off == 0) {
			t.Errorf("%d bytes off: %v", off, err)
		}
	}
}

func TestArrivalsInWavesKeepTheLoad(t *testing.T) {
	s := fleet(2000, func(s *Settings) { s.Arrivals = Arrivals{Kind: Poisson, PerHour: 100, Waves: Waves{0.4, time.Hour}} })
	pop, last, atTheHour := populate(&s), time.Duration(0), 0
	for i := range pop.persons {
		at := pop.persons[i].arrival
		if at < last {
			t.Fatal("arrivals are not in order")
		}
		if last = at; at > time.Hour/2 && at%time.Hour < waveJitter {
			atTheHour++
		}
	}
	if atTheHour < 780 || atTheHour > 840 || last < 18*time.Hour || last > 23*time.Hour {
		t.Errorf("%d of 2000 come at the full hour, the last at %v", atTheHour, last)
	}
}

// TestImpossibleIsSaidAtOnce: what cannot end is not simulated for months of virtual time first.
func TestImpossibleIsSaidAtOnce(t *testing.T) {
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Clients, s.LinkBytesPerSecond, s.Size = 1000, 1000, Sizes{MaxSize, MaxSize} },
		func(s *Settings) { s.Arrivals = Arrivals{Kind: Poisson, PerHour: 1e-9} },
		func(s *Settings) { s.Arrivals.Over = MaxDuration },
	} {
		s := fleet(10, change)
		if err := feasible(&s, populate(&s)); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "limit") {
			t.Errorf("got %v", err)
		}
		if _, err := Run(s, queue.Ordered, nil); !errors.Is(err, ErrTooLong) {
			t.Errorf("got %v", err)
		}
	}
}

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// stormy is everything at once: classes, principals, plain clients behind shared addresses, leavers, a failing network, slow readers.
func stormy(seed uint64) Settings {
	return fleet(120, func(s *Settings) {
		s.Seed, s.Size = seed, Sizes{2e7, 6e8}
		s.Arrivals = Arrivals{Kind: Ramp, Over: 2 * time.Minute}
		s.Classes = []Mix{
			{Class: queue.Interactive, Part: 1, Size: Sizes{1e6, 5e7}}, {Class: queue.Release, Part: 2}, {Class: queue.Bulk, Part: 3, ClientsPerPrincipal: 8},
			{Class: queue.Background, Part: 1},
		}
		s.Plain = []PlainMix{{"curl", 0.1}, {"apt", 0.1}, {"git-lfs", 0.1}, {"aria2", 0.1}, {"impatient", 0.1}}
		s.NATClients, s.LeaveWaiting, s.LeaveMidway, s.BreaksPerGiB = 3, 0.1, 0.1, 0.3
		s.Slow = Share{0.1, 2e6}
		s.ClientsPerPrincipal = 3
		s.Policy = queue.DefaultPolicy(4)
		s.Policy.SessionsElastic = 8
		s.Gate.Capacity, s.Gate.PerPrincipal = 4, 2
	})
}

func traceOf(t *testing.T, s Settings, strategy queue.Strategy) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := Run(s, strategy, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestQ18_SameSeedSameTraceToTheByte(t *testing.T) {
	for _, strategy := range everyStrategy {
		first := traceOf(t, stormy(3), strategy)
		if !bytes.Equal(first, traceOf(t, stormy(3), strategy)) {
			t.Errorf("%s: two runs of one seed differ", strategy)
		}
		if bytes.Equal(first, traceOf(t, stormy(4), strategy)) {
			t.Errorf("%s: two seeds give one trace", strategy)
		}
		last := 0.0
		for line := range bytes.Lines(first) {
			var at float64
			if _, err := fmt.Sscan(string(line), &at); err != nil || at < last {
				t.Fatalf("%s: %q comes after %v s: %v", strategy, line, last, err)
			}
			last = at
		}
		if bytes.Count(first, []byte{'\n'}) < 500 {
			t.Errorf("%s: the trace has %d bytes only", strategy, len(first))
		}
	}
}

func TestCompareIsRunSideBySide(t *testing.T) {
	s := stormy(5)
	traces := map[queue.Strategy]*bytes.Buffer{}
	for _, strategy := range everyStrategy {
		traces[strategy] = &bytes.Buffer{}
	}
	results, err := Compare(s, everyStrategy, func(strategy queue.Strategy) io.Writer { return traces[strategy] })
	if err != nil {
		t.Fatal(err)
	}
	for i, strategy := range everyStrategy {
		if results[i].Name != strategy.String() || !bytes.Equal(traces[strategy].Bytes(), traceOf(t, s, strategy)) {
			t.Errorf("result %d is %s, want %s with the trace of Run", i, results[i].Name, strategy)
		}
	}
}

// TestQ19_StormsLeaveNothingBehind: whatever happens, bytes are conserved and every counter returns to zero; Run itself proves the
// latter, and the core's invariants on the way.
func TestQ19_StormsLeaveNothingBehind(t *testing.T) {
	for seed := range uint64(6) {
		s := stormy(100 + seed)
		for _, strategy := range everyStrategy {
			pop := populate(&s)
			r, err := newRun(&s, strategy, pop, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.loop(); err != nil {
				t.Fatalf("seed %d: %v", s.Seed, err)
			}
			var useful int64
			for i := range r.clients {
				c := &r.clients[i]
				useful += c.have
				if c.phase == done && c.have != c.size {
					t.Errorf("seed %d, %s: client %d is done with %d of %d bytes", s.Seed, strategy, i, c.have, c.size)
				}
			}
			if useful+r.meter.repeated != r.meter.delivered {
				t.Errorf("seed %d, %s: delivered %d bytes, %d of use and %d repeated", s.Seed, strategy, r.meter.delivered, useful, r.meter.repeated)
			}
			if r.judge.rises.Unexplained != 0 {
				t.Errorf("seed %d, %s: unexplained rises %+v", s.Seed, strategy, r.judge.rises)
			}
		}
	}
}

// TestX3_MassUpdateAgainstSharing is acceptance 3.1 in small.
func TestX3_MassUpdateAgainstSharing(t *testing.T) {
	s := fleet(320, func(s *Settings) { s.RangeBytes = 64 << 20 })
	for strategy, most := range map[queue.Strategy]float64{queue.Ordered: 0.68, queue.SmallestFirst: 0.56, queue.FairSojourn: 0.60, queue.Shared: 1.0} {
		r := simulated(t, s, strategy)
		if !(float64(r.MeanVsSharing) <= most) || r.FailedClients != 0 || !(r.LinkBusy >= 0.99) || !(r.IdleSlots <= 0.01) || r.DeliveredBytes == 0 || r.RepeatedBytes != 0 {
			t.Errorf("%s: mean %v of sharing, %d failed, link %v busy, slots %v idle, %d bytes repeated", strategy, r.MeanVsSharing, r.FailedClients,
				r.LinkBusy, r.IdleSlots, r.RepeatedBytes)
		}
		if strategy == queue.FairSojourn && r.LaterThanSharing != 0 {
			t.Errorf("fair-sojourn: %d later than under equal sharing, at most by %v", r.LaterThanSharing, r.MaxLaterRatio)
		}
		if !near(r.DrainRatio, 1, 0.01) {
			t.Errorf("%s: the last is done at %v of the ideal", strategy, r.DrainRatio)
		}
	}
}

// TestQ3_EqualFilesHalveTheMean: n files of b bytes end at b/R..nb/R instead of all at nb/R.
func TestQ3_EqualFilesHalveTheMean(t *testing.T) {
	s := fleet(200, func(s *Settings) { s.Size, s.Arrivals.Over, s.RangeBytes = Sizes{1e9, 1e9}, time.Second, 64<<20 })
	for _, strategy := range []queue.Strategy{queue.Ordered, queue.SmallestFirst, queue.FairSojourn} {
		r := simulated(t, s, strategy)
		// 16 at a time: (n/16 + 1) / 2 rounds of the n/16.
		if want := (200.0/16 + 1) / 2 / (200.0 / 16); !near(float64(r.MeanVsSharing), want, 0.02) || r.LaterThanSharing != 0 {
			t.Errorf("%s: %v of equal sharing, want %v; %d later", strategy, r.MeanVsSharing, want, r.LaterThanSharing)
		}
	}
}

// TestX4_ElasticSlotsKeepTheLinkFull is acceptance 3.2 in small: with slow readers fixed slots lose the link.
func TestX4_ElasticSlotsKeepTheLinkFull(t *testing.T) {
	slow := func(elastic int) Settings {
		return fleet(160, func(s *Settings) {
			s.Size, s.Slow, s.Policy.SessionsElastic = Sizes{5e8, 2e9}, Share{0.2, 1e6}, elastic
		})
	}
	fixed, elastic := simulated(t, slow(16), queue.Ordered), simulated(t, slow(128), queue.Ordered)
	if fixed.MostSlots != 16 || elastic.MostSlots <= 16 || elastic.ElasticSlotSeconds <= 0 {
		t.Errorf("slots: fixed %d, elastic %d for %v slot-seconds", fixed.MostSlots, elastic.MostSlots, elastic.ElasticSlotSeconds)
	}
	if fixed.LinkBusy > 0.8 || elastic.LinkBusy < 0.9 || elastic.MakespanSeconds > 0.9*fixed.MakespanSeconds {
		t.Errorf("link busy: fixed %v, elastic %v; last done %v and %v", fixed.LinkBusy, elastic.LinkBusy, fixed.MakespanSeconds, elastic.MakespanSeconds)
	}
}

func TestQ12_NoShowsDoNotStopTheOthers(t *testing.T) {
	s := fleet(120, func(s *Settings) { s.LeaveWaiting, s.LeaveMidway = 0.2, 0.1 })
	for _, strategy := range everyStrategy {
		r := simulated(t, s, strategy)
		if r.LeftClients < 12 || r.FailedClients != 0 || r.LinkBusy < 0.98 {
			t.Errorf("%s: %d left, %d failed, link %v busy", strategy, r.LeftClients, r.FailedClients, r.LinkBusy)
		}
	}
}

func TestC1_BrokenRangesAreAskedAgainWithinTheBudget(t *testing.T) {
	s := fleet(60, func(s *Settings) { s.BreaksPerGiB = 0.5 })
	r := simulated(t, s, queue.Ordered)
	if r.RepeatedBytes == 0 || r.FailedClients != 0 || r.DoneClients != 60 {
		t.Errorf("%d bytes repeated, %d failed", r.RepeatedBytes, r.FailedClients)
	}
	s.Faults = 0
	if r := simulated(t, s, queue.Ordered); r.FailedClients == 0 {
		t.Error("nobody failed without a budget")
	}
	s.Faults, s.RequestFaults = 1000, 0
	if r := simulated(t, s, queue.Ordered); r.FailedClients == 0 {
		t.Error("nobody failed without a budget for one range")
	}
}

// TestQ11_PlainClientsAreHeldAndGiveUp: a client without repetitions fails exactly when its turn is beyond the hold.
func TestQ11_PlainClientsAreHeldAndGiveUp(t *testing.T) {
	plain := func(clients int, profile string, size int64) Settings {
		return fleet(clients, func(s *Settings) {
			s.Size, s.Plain, s.Arrivals.Over = Sizes{size, size}, []PlainMix{{profile, 1}}, time.Second
			s.HoldPerPrincipal = 0
		})
	}
	// 15 slots of 20 MB at 125 MB/s: all are done within the hold.
	if r := simulated(t, plain(60, "curl", 20e6), queue.Ordered); r.FailedClients != 0 {
		t.Errorf("%d of 60 failed though their turn came within the hold", r.FailedClients)
	}
	once := simulated(t, plain(60, "curl", 500e6), queue.Ordered)
	again := simulated(t, plain(60, "git-lfs", 500e6), queue.Ordered)
	if once.FailedClients < 30 || again.FailedClients >= once.FailedClients {
		t.Errorf("of 60, %d failed without repetitions and %d with", once.FailedClients, again.FailedClients)
	}
	impatient := plain(60, "impatient", 20e6)
	impatient.LinkBytesPerSecond = 10e6
	if r := simulated(t, impatient, queue.Ordered); r.FailedClients == 0 {
		t.Error("nobody lost patience")
	}
}

// TestQ1_ClientsBehindOneAddressShareASession: their responses run within one slot.
func TestQ1_ClientsBehindOneAddressShareASession(t *testing.T) {
	s := fleet(64, func(s *Settings) {
		s.Plain, s.NATClients, s.Size = []PlainMix{{"curl", 1}}, 4, Sizes{50e6, 50e6}
	})
	together := simulated(t, s, queue.Ordered)
	s.NATClients = 0
	apart := simulated(t, s, queue.Ordered)
	if together.DoneClients != 64 || together.Waits[0].Max != 0 || apart.Waits[0].Max == 0 {
		t.Errorf("longest wait together %v with %d done, apart %v", together.Waits[0].Max, together.DoneClients, apart.Waits[0].Max)
	}
}

func TestQ16_LongDownloadsGiveWay(t *testing.T) {
	busy := func(preempt bool) Settings {
		return fleet(60, func(s *Settings) {
			s.Policy = queue.DefaultPolicy(4)
			s.Policy.Reserve, s.Policy.Preempt = 0, preempt
			s.Arrivals = Arrivals{Kind: Ramp, Over: 40 * time.Minute}
			s.Classes = []Mix{{Class: queue.Interactive, Part: 3, Size: Sizes{5e7, 2e8}}, {Class: queue.Bulk, Part: 7, Size: Sizes{6e9, 12e9}}}
		})
	}
	with, without := simulated(t, busy(true), queue.Ordered), simulated(t, busy(false), queue.Ordered)
	if with.Preemptions == 0 || without.Preemptions != 0 {
		t.Fatalf("preemptions: %d with, %d without", with.Preemptions, without.Preemptions)
	}
	if a, b := with.Waits[0], without.Waits[0]; a.Class != "interactive" || a.P90 >= b.P90 {
		t.Errorf("people wait %v s with preemption, %v s without (p90)", a.P90, b.P90)
	}
}

// TestQ8_TheCoreJudgesItsPromisesAsTheSimulationDoes: the core samples one answer a session, the simulation takes all.
func TestQ8_TheCoreJudgesItsPromisesAsTheSimulationDoes(t *testing.T) {
	r := simulated(t, fleet(300, nil), queue.Ordered)
	if !r.StartsWithinTolerance.Known() || !r.P90Holds.Known() || r.CoreJudged == 0 {
		t.Fatalf("nothing was promised in %d answers; the core judged %d", r.Answers, r.CoreJudged)
	}
	if !near(r.StartsWithinTolerance, r.CoreWithin, 0.1) || !near(r.P90Holds, r.CoreHeld, 0.1) {
		t.Errorf("starts as promised: %v here, %v in the core; p90: %v and %v", r.StartsWithinTolerance, r.CoreWithin, r.P90Holds, r.CoreHeld)
	}
	var n uint64
	for _, h := range r.Horizons {
		n += h.Promises
	}
	if n+r.UnknownAnswers != r.Answers {
		t.Errorf("%d answers, %d of them without estimate and %d promises judged, though everybody started", r.Answers, r.UnknownAnswers, n)
	}
}

// TestQ9_ExplainKnowsItsCauses: the negative control of the count of risen positions.
func TestQ9_ExplainKnowsItsCauses(t *testing.T) {
	policy := queue.DefaultPolicy(4)
	var none, moved queue.Moves
	var r Rises
	if rest := r.explain(3, queue.Bulk, &none, &none, &policy, 10); rest != 3 {
		t.Errorf("a rise of 3 without any move leaves %d unexplained", rest)
	}
	moved.Arrived[queue.Interactive] = 2
	if rest := r.explain(5, queue.Bulk, &none, &moved, &policy, 10); rest != 3 || r.Arrivals != 2 {
		t.Errorf("two arrivals leave %d of 5 unexplained, %d put down to them", rest, r.Arrivals)
	}
	moved.Configured = 1
	if rest := r.explain(5, queue.Bulk, &none, &moved, &policy, 10); rest != 0 || r.Policy != 3 {
		t.Errorf("a change of policy leaves %d unexplained", rest)
	}
}

func TestSimulationThatDoesNotEndSaysSo(t *testing.T) {
	s := fleet(50, func(s *Settings) { s.Limit = time.Minute })
	_, err := Run(s, queue.Ordered, nil)
	if !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
	if _, err := Compare(s, everyStrategy, nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("Compare: got %v", err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestTraceThatCannotBeWrittenIsAnError(t *testing.T) {
	if _, err := Run(fleet(10, nil), queue.Ordered, broken{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

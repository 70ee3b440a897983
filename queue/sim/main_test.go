package sim

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/arkvory/sidecar/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var everyStrategy = []queue.Strategy{queue.Ordered, queue.SmallestFirst, queue.FairSojourn, queue.Shared}

// fleet is a small mass update; invariants are proved every few virtual minutes.
func fleet(clients int, change func(*Settings)) Settings {
	s := NewSettings()
	s.Clients, s.Size, s.InvariantsEvery, s.RangeBytes = clients, Sizes{4e8, 2e9}, 10*time.Minute, 32<<20
	if change != nil {
		change(&s)
	}
	return s
}

// simulated runs a fleet and checks what holds for every one: bytes are conserved, everybody ends in one way, the core's own judgement of
// its promises is near the simulation's.
func simulated(t *testing.T, s Settings, strategy queue.Strategy) Result {
	t.Helper()
	r, err := Run(s, strategy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.DoneClients + r.FailedClients + r.LeftClients; n != s.Clients {
		t.Errorf("%s: %d clients ended, of %d", strategy, n, s.Clients)
	}
	if r.LinkBusy > 1+1e-9 || r.IdleSlots < 0 || r.IdleSlots > 1 || r.DoneClients > 0 && !(r.DrainRatio > 0.999999) {
		t.Errorf("%s: impossible measures: link %v busy, slots %v idle, drain ratio %v", strategy, r.LinkBusy, r.IdleSlots, r.DrainRatio)
	}
	if r.Rises.Unexplained != 0 {
		t.Errorf("%s: %d places that positions rose are unexplained: %+v", strategy, r.Rises.Unexplained, r.Rises)
	}
	if strategy == queue.Shared && (r.StartsWithinTolerance.Known() || r.P90Holds.Known() || r.Answers != 0) {
		t.Errorf("shared promised something: %d answers", r.Answers)
	}
	return r
}

func near[T ~float64](a, b T, tolerance float64) bool { return math.Abs(float64(a-b)) <= tolerance }

// TestX3_SharingIsTheClosedFormula compares the reference with what can be written down.
func TestX3_SharingIsTheClosedFormula(t *testing.T) {
	const second = time.Second
	stay := func(size int64, rate float64, arrival time.Duration) person {
		return person{size: size, rate: rate, arrival: arrival, leaveAt: never}
	}
	for _, one := range []struct {
		name   string
		people []person
		want   []float64
	}{
		{"n equal files end together at nb/R", []person{stay(100, 1e9, 0), stay(100, 1e9, 0), stay(100, 1e9, 0), stay(100, 1e9, 0)}, []float64{40, 40, 40, 40}},
		// b1 <= b2 <= b3: the i-th ends at (sum of the smaller ones + (n-i+1) b_i) / R.
		{"sizes one after another", []person{stay(10, 1e9, 0), stay(20, 1e9, 0), stay(50, 1e9, 0)}, []float64{3, 5, 8}},
		{"an arrival in mid-download", []person{stay(100, 1e9, 0), stay(20, 1e9, 5*second)}, []float64{12, 9}},
		{"an idle link between two", []person{stay(10, 1e9, 0), stay(10, 1e9, 60*second)}, []float64{1, 61}},
		{"a slow one leaves its share", []person{stay(10, 1, 0), stay(90, 1e9, 0)}, []float64{10, 10}},
		{"two rates, then one", []person{stay(2, 1, 0), stay(36, 1e9, 0)}, []float64{2, 3.8}},
		{"own rates alone", []person{stay(10, 2, 0), stay(10, 1, 0)}, []float64{5, 10}},
		{"one vanishes with half a share", []person{stay(100, 1e9, 0), {size: 100, rate: 1e9, leaveAt: 2 * second}}, []float64{11, math.NaN()}},
		{"one vanishes after its bytes", []person{stay(20, 1e9, 0), {size: 100, rate: 1e9, leaveAt: never, leaveAfter: 5}}, []float64{2.5, math.NaN()}},
	} {
		got := sharing(one.people, 10)
		for i, want := range one.want {
			if !near(got[i], want, 1e-9) && !(math.IsNaN(want) && math.IsNaN(got[i])) {
				t.Errorf("%s: done at %v, want %v", one.name, got, one.want)
				break
			}
		}
	}
}

func TestB2_FillSharesByWeightUpToCaps(t *testing.T) {
	for _, one := range []struct {
		capacity float64
		flows    []flow
		want     []float64
	}{
		{12, []flow{{weight: 1, cap: 100}, {weight: 1, cap: 100}, {weight: 1, cap: 100}}, []float64{4, 4, 4}},
		{12, []flow{{weight: 1, cap: 1}, {weight: 1, cap: 100}, {weight: 1, cap: 100}}, []float64{1, 5.5, 5.5}},
		{12, []flow{{weight: 1, cap: 1}, {weight: 1, cap: 5}, {weight: 1, cap: 100}}, []float64{1, 5, 6}},
		{12, []flow{{weight: 3, cap: 100}, {weight: 1, cap: 100}}, []float64{9, 3}},
		{100, []flow{{weight: 1, cap: 7}, {weight: 5, cap: 8}}, []float64{7, 8}},
		{12, nil, nil},
	} {
		fill(one.capacity, one.flows)
		for i, want := range one.want {
			if !near(one.flows[i].rate, want, 1e-9) {
				t.Errorf("%v of %v: want %v", one.flows, one.capacity, one.want)
			}
		}
	}
}

// TestB2_PrincipalsShareBeforeTheirClients: two clients of one principal get together what the other principal's one gets.
func TestB2_PrincipalsShareBeforeTheirClients(t *testing.T) {
	clients := make([]client, 3)
	for i := range clients {
		clients[i] = client{id: int32(i), ownRate: 1e9, person: &person{}}
	}
	clients[1].principal, clients[2].principal = 1, 1
	l := link{capacity: 120, clients: clients, parties: make([]party, 2), next: never}
	for i, responses := range []int{4, 1, 2} {
		for range responses {
			l.begin(int32(i), transfer{stop: 1000})
		}
		l.plan(int32(i), 0)
	}
	l.settle(0)
	if a, b, c := clients[0].rate, clients[1].rate, clients[2].rate; !near(a, 60, 1e-9) || !near(b, 20, 1e-9) || !near(c, 40, 1e-9) {
		t.Errorf("rates are %v %v %v, want 60 20 40", a, b, c)
	}
	// 1000 bytes a response: 4 at 60, 1 at 20, 2 at 40 bytes/s; the second one's end comes first, the third one's is at the same time.
	if l.next != 50*time.Second || l.nextLive != 1 {
		t.Errorf("the next end is %v of client %d", l.next, l.nextLive)
	}
}

func TestEventsComeInOrderAndDoNotAllocate(t *testing.T) {
	var q events
	var before event
	for seed := range uint64(8) { // thousands planned at first, then about as many planned as taken, as in a run
		random := source(seed, 7)
		var at time.Duration
		q, before = events{}, event{}
		for range 2000 {
			at += time.Duration(random.Int64N(1000))
			q.push(event{at: at})
		}
		for len(q.heap) > 0 {
			e := q.pop()
			if e.before(&before) {
				t.Fatalf("seed %d: %v came after %v", seed, e, before)
			}
			before = e
			if random.IntN(100) < 97 {
				q.push(event{at: e.at + time.Duration(random.IntN(3000))})
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { q.push(event{at: before.at}); q.pop() }); n != 0 {
		t.Errorf("an event allocates %v times", n)
	}
}

func TestSettingsNameFieldRuleAndExample(t *testing.T) {
	for _, one := range []struct {
		field  string
		change func(*Settings)
	}{
		{"Clients", func(s *Settings) { s.Clients = 0 }},
		{"Size", func(s *Settings) { s.Size = Sizes{9, 3} }},
		{"LinkBytesPerSecond", func(s *Settings) { s.LinkBytesPerSecond = 0 }},
		{"ClientBytesPerSecond", func(s *Settings) { s.ClientBytesPerSecond = -1 }},
		{"Slow.Part", func(s *Settings) { s.Slow = Share{1.5, 1e6} }},
		{"Slow.Part", func(s *Settings) { s.Slow.Part = math.NaN() }},
		{"Slow.BytesPerSecond", func(s *Settings) { s.Slow = Share{0.5, 0} }},
		{"ClientsPerPrincipal", func(s *Settings) { s.ClientsPerPrincipal = 0 }},
		{"Arrivals.Kind", func(s *Settings) { s.Arrivals.Kind = "flood" }},
		{"Arrivals.Over", func(s *Settings) { s.Arrivals.Over = -1 }},
		{"Arrivals.Load", func(s *Settings) { s.Arrivals = Arrivals{Kind: Poisson} }},
		{"Classes.release", func(s *Settings) { s.Classes = []Mix{{Class: queue.Release, Part: 1}, {Class: queue.Release, Part: 1}} }},
		{"Classes", func(s *Settings) { s.Classes = []Mix{{Class: queue.Release}} }},
		{"Classes.Class", func(s *Settings) { s.Classes = []Mix{{Class: 9, Part: 1}} }},
		{"Hold", func(s *Settings) { s.Hold = 26 * time.Second }},
		{"RangesAtOnce", func(s *Settings) { s.RangesAtOnce = 0 }},
		{"RangeBytes", func(s *Settings) { s.RangeBytes = 1 }},
		{"Jitter", func(s *Settings) { s.Jitter = 2 }},
		{"Plain.Profile", func(s *Settings) { s.Plain = []PlainMix{{"wgte", 0.1}} }},
		{"Plain", func(s *Settings) { s.Plain = []PlainMix{{"curl", 0.7}, {"apt", 0.7}} }},
		{"LeaveWaiting", func(s *Settings) { s.LeaveWaiting = -0.1 }},
		{"BreaksPerGiB", func(s *Settings) { s.BreaksPerGiB = math.NaN() }},
		{"Limit", func(s *Settings) { s.Limit = 0 }},
	} {
		s := NewSettings()
		one.change(&s)
		err := s.Validate()
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != one.field || fault.Rule == "" || fault.Example == "" {
			t.Errorf("want a fault of %s, got %v", one.field, err)
		}
		if _, err := Run(s, queue.Ordered, nil); err == nil {
			t.Errorf("%s: invalid settings were simulated", one.field)
		}
	}
	s := NewSettings()
	s.Clients, s.Policy.Sessions, s.Gate.Capacity = 0, 0, 0
	var (
		field  *FieldError
		policy *queue.PolicyError
	)
	if err := s.Validate(); !errors.As(err, &field) || !errors.As(err, &policy) || len(fmt.Sprint(err)) < 100 {
		t.Errorf("not all faults at once: %v", err)
	}
}

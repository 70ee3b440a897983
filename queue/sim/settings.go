package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
	"github.com/arkvory/sidecar/queue/window"
)

// Bounds of the settings.
const (
	MaxClients  = 1 << 20
	MaxSize     = 1 << 50
	MaxDuration = 10 * 365 * 24 * time.Hour
)

// Sizes is a uniform distribution of object sizes in bytes, both ends included.
type Sizes struct{ Low, High int64 }

// Share is a part of the clients that is slower than the others.
type Share struct {
	Part           float64 // of the clients, 0..1
	BytesPerSecond int64   // of one such client
}

// ArrivalKind is how clients come.
type ArrivalKind string

// The ways clients come.
const (
	Burst   ArrivalKind = "burst"   // evenly spread over Arrivals.Over
	Poisson ArrivalKind = "poisson" // independently, at Arrivals.PerHour or by Arrivals.Load
	Ramp    ArrivalKind = "ramp"    // at a rate that grows from nothing over Arrivals.Over
)

// Arrivals says when clients come. The first moment is 0.
type Arrivals struct {
	Kind    ArrivalKind
	Over    time.Duration // Burst, Ramp: when the last has come
	PerHour float64       // Poisson: clients an hour; 0 = by Load
	Load    float64       // Poisson without PerHour: mean bytes asked a second / link
	Waves   Waves         // Poisson: some of them wait for the full hour
}

// Waves lets a part of the clients come together, as jobs of a timetable do: at the next full period after they would have come.
type Waves struct {
	Part  float64       // of the clients, 0..1
	Every time.Duration // 1 s or more; the hour for most
}

// Mix is one class of the population.
type Mix struct {
	Class               queue.Class
	Part                float64 // of the clients, relative to the other classes
	Size                Sizes   // zero = Settings.Size
	ClientsPerPrincipal int     // 0 = Settings.ClientsPerPrincipal
}

// PlainMix is a part of the clients that are no protocol clients.
type PlainMix struct {
	Profile string  // name of a profile, see Profiles
	Part    float64 // of all clients, 0..1
}

// Settings describe one fleet, its link and the policy it meets. A value; NewSettings gives the defaults.
type Settings struct {
	Clients              int
	Size                 Sizes
	LinkBytesPerSecond   int64
	ClientBytesPerSecond int64 // what one client can take; 0 = the whole link
	Slow                 Share
	Arrivals             Arrivals
	Classes              []Mix // empty = all Release
	ClientsPerPrincipal  int   // successive clients that share a principal

	Policy           queue.Policy           // its Strategy is replaced by each one simulated
	Windows          map[string]window.Spec // by class; a class that is absent is always open
	Begin            time.Time              // of the wall clock at the first moment; windows need it
	Gate             admission.Settings
	Hold             time.Duration // of plain clients, 0..25 s
	HoldLimit        int
	HoldPerPrincipal int

	RangeBytes    int64   // of protocol clients
	RangesAtOnce  int     // of one protocol client
	Jitter        float64 // a client returns up to this part later than told
	Faults        int     // real faults an operation survives
	RequestFaults int     // real faults one range survives

	Plain        []PlainMix
	NATClients   int     // plain clients behind one address that download the same object under one key; 0, 1 = none
	LeaveWaiting float64 // part of the clients that vanish at a random moment if they then still wait
	LeaveMidway  float64 // part of the clients that vanish in mid-download
	BreaksPerGiB float64 // broken connections a GiB transferred

	Seed            uint64
	Limit           time.Duration // longest virtual time
	InvariantsEvery time.Duration // virtual time between proofs of the core's invariants; 0 = never
}

// NewSettings returns the fleet of the mass update: 1000 clients of 4..20 GB, 1 Gbit/s, 16 slots.
func NewSettings() Settings {
	const slots = 16
	policy := queue.DefaultPolicy(slots)
	return Settings{
		Clients: 1000, Size: Sizes{4e9, 20e9}, LinkBytesPerSecond: 125e6,
		Arrivals: Arrivals{Kind: Burst, Over: 10 * time.Second}, ClientsPerPrincipal: 1, Policy: policy,
		Gate: admission.Settings{Capacity: slots, PerPrincipal: 4, WaitLimit: 64, WaitPerPrincipal: 8, Timeout: 20 * time.Second},
		Hold: 20 * time.Second, HoldLimit: 64, HoldPerPrincipal: 32,
		RangeBytes: 8 << 20, RangesAtOnce: 4, Jitter: 0.1, Faults: 20, RequestFaults: 5,
		Seed: 1, Limit: 60 * 24 * time.Hour,
	}
}

// FieldError says which field of the settings breaks which rule.
type FieldError struct{ Field, Value, Rule, Example string }

// Error names the field, the value, the rule and a value that would do.
func (e *FieldError) Error() string {
	return fmt.Sprintf("cannot use %s %s: must be %s, for example %s", e.Field, e.Value, e.Rule, e.Example)
}

// checker collects faults.
type checker struct{ faults []error }

func (c *checker) must(ok bool, field string, value any, rule, example string) {
	if !ok {
		c.faults = append(c.faults, &FieldError{field, fmt.Sprint(value), rule, example})
	}
}

func (c *checker) part(field string, value float64, example string) {
	c.must(value >= 0 && value <= 1, field, value, "a share 0..1", example)
}

func (c *checker) sizes(field string, s Sizes) {
	c.must(s.Low >= 1 && s.Low <= s.High && s.High <= MaxSize, field, fmt.Sprintf("%d..%d", s.Low, s.High), "bytes from low to high, 1..2^50", "4GB..20GB")
}

// Validate returns every fault at once, each naming the field, the rule and an example; nil when the settings can be simulated.
func (s Settings) Validate() error {
	c := &checker{}
	c.must(s.Clients >= 1 && s.Clients <= MaxClients, "Clients", s.Clients, "1..1048576", "1000")
	c.sizes("Size", s.Size)
	c.must(s.LinkBytesPerSecond >= 1e3 && s.LinkBytesPerSecond <= 1e15, "LinkBytesPerSecond", s.LinkBytesPerSecond, "1e3..1e15", "125000000")
	c.must(s.ClientBytesPerSecond == 0 || s.ClientBytesPerSecond >= 1000, "ClientBytesPerSecond", s.ClientBytesPerSecond, "0 (the link) or at least 1000", "12500000")
	c.part("Slow.Part", s.Slow.Part, "0.2")
	c.must(s.Slow.Part == 0 || s.Slow.BytesPerSecond >= 1000, "Slow.BytesPerSecond", s.Slow.BytesPerSecond, "at least 1000", "1000000")
	c.must(s.ClientsPerPrincipal >= 1, "ClientsPerPrincipal", s.ClientsPerPrincipal, "at least 1", "10")
	s.validateArrivals(c)
	s.validateClients(c)
	_, faults := s.compileWindows()
	c.faults = append(c.faults, faults...)
	c.must(len(s.Windows) == 0 || !s.Begin.IsZero(), "Begin", "missing", "the time at which the run begins when there are windows", "2027-03-27T18:00:00+01:00")
	var sum float64
	seen := [queue.Classes]bool{}
	for _, m := range s.Classes {
		if c.must(m.Class < queue.Classes, "Classes.Class", uint8(m.Class), "a class", "release"); m.Class >= queue.Classes {
			continue
		}
		name := "Classes." + m.Class.String()
		c.must(!seen[m.Class], name, "twice", "named once", "release:40,bulk:60")
		seen[m.Class] = true
		c.must(m.Part >= 0 && m.Part <= 1e6, name+".Part", m.Part, "0..1e6", "0.4")
		c.must(m.ClientsPerPrincipal >= 0, name+".ClientsPerPrincipal", m.ClientsPerPrincipal, "0 or more", "10")
		if m.Size != (Sizes{}) {
			c.sizes(name+".Size", m.Size)
		}
		sum += m.Part
	}
	c.must(len(s.Classes) == 0 || sum > 0, "Classes", "without clients", "at least one part above 0", "release:40,bulk:60")
	return errors.Join(errors.Join(c.faults...), s.Policy.Validate(), s.Gate.Validate())
}

func (s Settings) validateArrivals(c *checker) {
	a := s.Arrivals
	switch a.Kind {
	case Burst, Ramp:
		c.must(a.Waves == Waves{}, "Arrivals.Waves", a.Kind, "used with poisson arrivals only", "poisson: 95%")
		c.must(a.Over >= 0 && a.Over <= MaxDuration, "Arrivals.Over", a.Over, "0..10 years", "10s")
	case Poisson:
		c.must(a.PerHour >= 0 && !math.IsInf(a.PerHour, 0), "Arrivals.PerHour", a.PerHour, "0 (by Load) or clients an hour", "120")
		c.must(a.PerHour > 0 || a.Load > 0 && a.Load <= 100, "Arrivals.Load", a.Load, "above 0 up to 100 when PerHour is 0", "0.95")
		c.part("Arrivals.Waves.Part", a.Waves.Part, "0.4")
		c.must(a.Waves.Part == 0 || a.Waves.Every >= time.Second && a.Waves.Every <= MaxDuration, "Arrivals.Waves.Every", a.Waves.Every, "1s..10 years", "1h")
	default:
		c.must(false, "Arrivals.Kind", a.Kind, "burst, poisson or ramp", "burst")
	}
}

func (s Settings) validateClients(c *checker) {
	c.must(s.Hold >= 0 && s.Hold <= 25*time.Second, "Hold", s.Hold, "0s..25s", "20s")
	c.must(s.HoldLimit >= 0, "HoldLimit", s.HoldLimit, "0 or more", "64")
	c.must(s.HoldPerPrincipal >= 0, "HoldPerPrincipal", s.HoldPerPrincipal, "0 (no limit) or more", "32")
	c.must(s.RangeBytes >= 1<<16, "RangeBytes", s.RangeBytes, "at least 65536", "8388608")
	c.must(s.RangesAtOnce >= 1 && s.RangesAtOnce <= maxAtOnce, "RangesAtOnce", s.RangesAtOnce, fmt.Sprintf("1..%d", maxAtOnce), "4")
	c.must(s.Jitter >= 0 && s.Jitter <= 1, "Jitter", s.Jitter, "0..1", "0.1")
	c.must(s.Faults >= 0, "Faults", s.Faults, "0 or more", "20")
	c.must(s.RequestFaults >= 0, "RequestFaults", s.RequestFaults, "0 or more", "5")
	c.part("LeaveWaiting", s.LeaveWaiting, "0.1")
	c.part("LeaveMidway", s.LeaveMidway, "0.05")
	c.must(s.BreaksPerGiB >= 0 && s.BreaksPerGiB <= 1e3, "BreaksPerGiB", s.BreaksPerGiB, "0..1000", "0.1")
	c.must(s.NATClients >= 0, "NATClients", s.NATClients, "0 or more", "5")
	c.must(s.Limit > 0 && s.Limit <= MaxDuration, "Limit", s.Limit, "above 0 up to 10 years", "720h")
	c.must(s.InvariantsEvery >= 0, "InvariantsEvery", s.InvariantsEvery, "0 (never) or a duration", "10m")
	var sum float64
	for _, p := range s.Plain {
		_, ok := FindProfile(p.Profile)
		c.must(ok, "Plain.Profile", p.Profile, "one of "+profileNames(), "curl")
		c.part("Plain.Part", p.Part, "0.1")
		sum += p.Part
	}
	c.must(sum <= 1+1e-9, "Plain", sum, "shares of all profiles up to 1", "curl:0.5,apt:0.5")
}

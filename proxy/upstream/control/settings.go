package control

import (
	"fmt"
	"time"
)

// FloorMode is how the target of ready connections is found.
type FloorMode uint8

// Modes of the floor.
const (
	Adaptive FloorMode = iota // follows activity
	Static                    // FloorStatic per endpoint
)

// FallbackPolicy is the switch of U8.
type FallbackPolicy uint8

// Policies of the fallback.
const (
	FallbackOff      FallbackPolicy = iota // the group is neither resolved nor dialled
	FallbackOnOutage                       // kept ready, used in an outage of all others
	FallbackAlways                         // used instead of the others
)

// Settings are the knobs of the pool. Every recovery strategy has its own: what is 0 or false is off. Durations are positive unless 0 is named.
type Settings struct {
	// Floor. FloorMin is the least per endpoint, FloorStatic the target under Static. FloorIdle is the time without exchanges after which the target sinks to
	// FloorMin, FloorHold the time it is kept after a demand.
	FloorMode           FloorMode
	FloorMin            int
	FloorStatic         int
	FloorMax            int // the most per endpoint, 0: no bound but the ceiling; more than the shell keeps unused would be dialled and closed in turn
	FloorIdle           time.Duration
	FloorHold           time.Duration
	FloorPerCore, Cores int // ceiling of the sum of targets: FloorPerCore * Cores, and half of MaxConnections
	MaxConnections      int // all connections, those being dialled included

	// Dials at once: refill and shadow of a group, on demand of a group, all.
	DialsRefill, DialsDemand, DialsAll int
	// Pauses after a failed dial. The first FastTries wait up to FastDelay, then up to Base, 2 Base, 4 Base ... Max, each drawn uniformly from FastDelay/2 on.
	FastTries           int
	FastDelay           time.Duration
	BackoffBase         time.Duration
	BackoffMax          time.Duration
	Outage              bool // while a group has no coverage: OutageBase and OutageMax instead
	OutageBase          time.Duration
	OutageMax           time.Duration
	Hedge               time.Duration // a dial that runs longer counts as failing: nobody waits for it alone
	Shadow              int           // reserve writers of a group with one endpoint, 0: none
	ShadowEvery         time.Duration
	RestShort           time.Duration // an idle close before this age makes the endpoint rest
	RestBase, RestMax   time.Duration // pause between refills of a resting endpoint
	Stagger             time.Duration // between dials of a generation that warms up; 0: none
	Settle              time.Duration // from a trigger to its generation: bursts are one
	Spacing             time.Duration // from the end of one reinit of a group to its next
	WarmupLimit         time.Duration
	RetryBase, RetryMax time.Duration // from a warm-up given up to the next try
	RetryTries          int           // tries of a signal or setting; changed addresses are tried for ever
	GatePercent         int           // of the floor, 1..100
	DrainTTL            time.Duration // a draining writer without movement is closed after it
	ResolveEvery        time.Duration
	ResolveMin          time.Duration
	ResolveMax          time.Duration
	ResolveRetry        time.Duration // after a failed or negative answer and, at most, in an outage
	KeepNegative        time.Duration // how long the last good addresses outlive negative answers
	KeepUnanswered      time.Duration // and failures of the resolver
	MaxEndpoints        int           // of a group; more addresses are left out
	Silent              time.Duration // probe after this time without traffic, 0: never
	SlowStart           time.Duration // growth of a new endpoint's weight from a tenth, 0: none
	DegradeAfter        int           // failures in a row
	QuarantineAfter     int           // failures in a row, 0: no quarantine
	QuarantineMin       time.Duration
	QuarantineMax       time.Duration
	RateWindow          time.Duration // failure shares are counted over one to two of these
	RateSamples         int           // at least so many observations for a share
	DegradeHold         time.Duration // least time in Degraded
	Fallback            FallbackPolicy
	FallbackAfter       time.Duration // without coverage until the fallback is used
	FallbackBack        time.Duration // with coverage until it is left
}

// Default returns the settings of the product contract for a process with the given number of cores.
func Default(cores int) Settings {
	return Settings{
		FloorMode: Adaptive, FloorMin: 1, FloorStatic: 4, FloorIdle: 90 * time.Second, FloorHold: 180 * time.Second,
		FloorPerCore: 64, Cores: max(1, cores), MaxConnections: 4096,
		DialsRefill: 8, DialsDemand: 64, DialsAll: 256,
		FastTries: 3, FastDelay: 100 * time.Millisecond, BackoffBase: 500 * time.Millisecond, BackoffMax: 30 * time.Second,
		Hedge: time.Second, Outage: true, OutageBase: 250 * time.Millisecond, OutageMax: 3 * time.Second,
		Shadow: 1, ShadowEvery: 15 * time.Minute,
		RestShort: 30 * time.Second, RestBase: time.Second, RestMax: 30 * time.Second,
		Stagger: 10 * time.Millisecond, Settle: 100 * time.Millisecond, Spacing: time.Second,
		WarmupLimit: 30 * time.Second, RetryBase: 5 * time.Second, RetryMax: 5 * time.Minute, RetryTries: 5, GatePercent: 80,
		DrainTTL: 90 * time.Second, ResolveEvery: 30 * time.Second, ResolveMin: 5 * time.Second, ResolveMax: 5 * time.Minute, ResolveRetry: 5 * time.Second,
		KeepNegative: 5 * time.Minute, KeepUnanswered: time.Hour, MaxEndpoints: 64,
		Silent: 15 * time.Second, SlowStart: 30 * time.Second, DegradeAfter: 3, QuarantineAfter: 5,
		QuarantineMin: 2 * time.Second, QuarantineMax: time.Minute, RateWindow: 15 * time.Second, RateSamples: 20, DegradeHold: 10 * time.Second,
		Fallback: FallbackOff, FallbackAfter: 10 * time.Second, FallbackBack: 30 * time.Second,
	}
}

// Validate returns the first rule that the settings break, with the field, its value and the rule.
func (s *Settings) Validate() error {
	for _, n := range []struct {
		name           string
		is, least, top int
	}{
		{"FloorMin", s.FloorMin, 1, 4096}, {"FloorStatic", s.FloorStatic, 1, 4096}, {"FloorMax", s.FloorMax, 0, 1048576}, {"FloorPerCore", s.FloorPerCore, 1, 65536}, {"Cores", s.Cores, 1, 65536},
		{"MaxConnections", s.MaxConnections, 1, 1048576}, {"DialsRefill", s.DialsRefill, 1, 1024}, {"DialsDemand", s.DialsDemand, 1, 65536}, {"DialsAll", s.DialsAll, 1, 65536},
		{"FastTries", s.FastTries, 0, 16}, {"Shadow", s.Shadow, 0, 16}, {"RetryTries", s.RetryTries, 1, 1024}, {"GatePercent", s.GatePercent, 1, 100},
		{"MaxEndpoints", s.MaxEndpoints, 1, 1024}, {"DegradeAfter", s.DegradeAfter, 1, 1024}, {"QuarantineAfter", s.QuarantineAfter, 0, 1024},
		{"RateSamples", s.RateSamples, 1, 1048576}, {"FloorMode", int(s.FloorMode), 0, int(Static)}, {"Fallback", int(s.Fallback), 0, int(FallbackAlways)},
	} {
		if n.is < n.least || n.is > n.top {
			return fmt.Errorf("cannot use pool settings: %s is %d, want %d..%d", n.name, n.is, n.least, n.top)
		}
	}
	for _, d := range []struct {
		name   string
		is     time.Duration
		mayOff bool
	}{
		{"FloorIdle", s.FloorIdle, false}, {"FloorHold", s.FloorHold, false}, {"FastDelay", s.FastDelay, false}, {"Hedge", s.Hedge, false}, {"ShadowEvery", s.ShadowEvery, false},
		{"RestShort", s.RestShort, false}, {"Stagger", s.Stagger, true}, {"Settle", s.Settle, true}, {"Spacing", s.Spacing, false}, {"WarmupLimit", s.WarmupLimit, false},
		{"DrainTTL", s.DrainTTL, false}, {"ResolveEvery", s.ResolveEvery, false}, {"ResolveRetry", s.ResolveRetry, false}, {"KeepNegative", s.KeepNegative, false},
		{"KeepUnanswered", s.KeepUnanswered, false}, {"Silent", s.Silent, true}, {"SlowStart", s.SlowStart, true}, {"RateWindow", s.RateWindow, false},
		{"DegradeHold", s.DegradeHold, true}, {"FallbackAfter", s.FallbackAfter, false}, {"FallbackBack", s.FallbackBack, false},
	} {
		if d.is < 0 || d.is == 0 && !d.mayOff {
			return fmt.Errorf("cannot use pool settings: %s is %v, want a positive duration", d.name, d.is)
		}
	}
	for _, p := range []struct {
		name       string
		least, top time.Duration
	}{
		{"Backoff", s.BackoffBase, s.BackoffMax}, {"Outage", s.OutageBase, s.OutageMax}, {"Rest", s.RestBase, s.RestMax}, {"Retry", s.RetryBase, s.RetryMax},
		{"Resolve", s.ResolveMin, s.ResolveMax}, {"Quarantine", s.QuarantineMin, s.QuarantineMax},
	} {
		if p.least <= 0 || p.top < p.least {
			return fmt.Errorf("cannot use pool settings: %s range is %v..%v, want 0 < first <= second", p.name, p.least, p.top)
		}
	}
	if s.QuarantineAfter > 0 && s.DegradeAfter > s.QuarantineAfter {
		return fmt.Errorf("cannot use pool settings: DegradeAfter is %d, want at most QuarantineAfter %d", s.DegradeAfter, s.QuarantineAfter)
	}
	return nil
}

// ceiling is the most that the targets may add up to: C = min(FloorPerCore * Cores, MaxConnections / 2), at least one per group. The half leaves room for the
// generation that is to come.
func (s *Settings) ceiling(groups int) int {
	return max(min(s.FloorPerCore*s.Cores, s.MaxConnections/2), groups)
}

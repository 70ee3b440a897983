package control

import (
	"net/netip"
	"slices"
	"time"
)

// Totals count since New.
type Totals struct {
	Dials                              [Reserve + 1]int64 // by Purpose
	Connected, DialFailures            int64
	Lost                               [losses]int64 // by Loss
	Demoted, Closed, DrainExpired      int64
	Unveiled                           int64 // shadows that were promoted
	Begun, Activated                   int64 // generations
	Abandoned, GivenUp                 int64 // warm-ups that did not pass, and signals or settings not tried again
	Retired                            int64
	Degraded, Quarantined, Recovered   int64
	Probes, ProbeFailures              int64
	Resolves, ResolveFailures, Expired int64
	FallbackIn, FallbackOut            int64
	Refused                            int64 // settings that Validate refused
}

// Snapshot is the state of the pool for readiness, metrics and the debug page. It shares nothing with the Control.
type Snapshot struct {
	Covered    bool
	Why        Cause
	Fallback   bool    // in use
	Balance    float64 // of the fallback, 0..1
	Revision   uint64  // of the view
	Open       int     // connections, dials included
	Dialing    int
	Warm       int // shadows included
	Active     int
	Draining   int
	FloorLimit int // ceiling of the sum of targets
	Groups     []GroupStatus
	Totals     Totals
}

// GroupStatus is the state of one group.
type GroupStatus struct {
	Name        string
	Fallback    bool
	Serving     bool
	Why         Cause
	Generation  GenerationID // the active one, 0: none
	Generations []GenerationStatus
	Endpoints   []EndpointStatus
	Pending     bool   // a reinit waits for its turn or its time
	Tries       int    // warm-ups given up in a row
	Problem     string // why the last one was given up
	Names       string // why the last resolution failed
	RefillDials int
	DemandDials int
	Want        int
}

// GenerationStatus is the state of one generation that is not retired.
type GenerationStatus struct {
	ID         GenerationID
	State      GenerationState
	Reason     Reason
	Fresh      bool
	Age        time.Duration
	Endpoints  int
	Writers    int // in any state
	Have, Need int // the gate, of a coming generation
}

// EndpointStatus is the state of one endpoint.
type EndpointStatus struct {
	ID                              EndpointID
	Addr                            netip.AddrPort
	Current, Coming                 bool // in the active, in the coming generation
	Health                          Health
	Resting                         bool // no connection, trusted
	Target, Lent                    int
	Outstanding                     int
	Dialing, Warm, Active, Draining int
	Shadows                         int // of Warm
	Weight                          uint32
	Failures                        int           // in a row, of dials or exchanges
	Retry                           time.Duration // until the next dial or probe of a failing one
	Rests                           int
	Latency                         time.Duration
	Cause                           string // of the last failure
}

// Snapshot returns the state as of the last Step. O(endpoints).
func (c *Control) Snapshot() Snapshot {
	s := Snapshot{Covered: c.view.Covered, Why: c.view.Why, Fallback: c.fallback.on, Balance: c.fallback.balance, Revision: c.view.Revision, Open: len(c.writers),
		Dialing: c.count[Dialing], Warm: c.count[Warm], Active: c.count[Active], Draining: c.count[Draining], FloorLimit: c.set.ceiling(len(c.groups)), Totals: c.totals}
	for _, g := range c.groups {
		s.Groups = append(s.Groups, c.groupStatus(g))
	}
	return s
}

func (c *Control) groupStatus(g *group) GroupStatus {
	s := GroupStatus{Name: g.Name, Fallback: g.Fallback, Serving: c.serves(g), Why: g.state, Tries: g.tries, Problem: g.why, Names: g.cause,
		RefillDials: g.refillDials, DemandDials: g.demandDials, Want: g.want}
	s.Pending = g.active != nil && g.next == nil && (g.asked || !slices.Equal(g.active.addrs, g.wanted))
	if g.active != nil {
		s.Generation = g.active.id
	}
	for _, gen := range g.generations() {
		one := GenerationStatus{ID: gen.id, State: gen.state, Reason: gen.reason, Fresh: gen.fresh, Age: c.now - gen.began, Endpoints: len(gen.endpoints), Writers: gen.writers}
		if gen == g.next {
			one.Have, one.Need = c.gate(gen)
		}
		s.Generations = append(s.Generations, one)
	}
	for _, e := range g.endpoints {
		one := EndpointStatus{ID: e.id, Addr: e.addr, Current: e.current != nil, Coming: e.coming != nil, Health: e.health, Resting: c.resting(e), Target: max(e.target, e.ahead), Lent: e.lent,
			Outstanding: e.act.outstanding, Dialing: e.n[Dialing], Warm: e.n[Warm], Active: e.n[Active], Draining: e.n[Draining], Shadows: e.shadows,
			Failures: max(e.dialFails, e.exchangeFails), Rests: e.rests, Latency: e.latency, Cause: e.cause}
		if c.choosable(e) {
			one.Weight = e.weight
		}
		switch {
		case e.health == Quarantined:
			one.Retry = max(0, e.until-c.now)
		case e.dialFails > 0:
			one.Retry = max(0, c.retryTime(e)-c.now)
		case e.exchangeFails > 0:
			one.Retry = max(0, e.probeAt-c.now)
		}
		s.Endpoints = append(s.Endpoints, one)
	}
	return s
}

// generations lists those that are not retired, the oldest first.
func (g *group) generations() []*generation {
	out := append([]*generation(nil), g.old...)
	if g.active != nil {
		out = append(out, g.active)
	}
	if g.next != nil {
		out = append(out, g.next)
	}
	return out
}

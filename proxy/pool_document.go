package proxy

import (
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// poolDocument adds to the counts of connections what the readiness page shows of the pool.
func (p *Proxy) poolDocument(d admin.Pool) admin.Pool {
	u := p.upstreamState()
	ok, why := p.pool.Covered()
	d.Covered, d.Reason, d.Fallback = ok, why.String(), u.Fallback
	d.Generation, d.Activated, d.Retired, d.Abandoned = u.Generation, u.Generations[1], u.Generations[2], u.Generations[3]
	d.Waiting, d.Floor = u.Waiting, u.Floor
	d.Writers = admin.PoolWriters{Dialing: u.Writers[0], Warm: u.Writers[1], Active: u.Writers[2], Draining: u.Writers[3]}
	d.Endpoints = admin.PoolEndpoints{Healthy: u.Endpoints[control.Healthy], Degraded: u.Endpoints[control.Degraded], Quarantined: u.Endpoints[control.Quarantined]}
	return d
}

// The debug page of the pool: all of its state, as of at most a tick ago. It is for trusted callers: it holds names, addresses and the network's error texts, and no secret.
type (
	poolDump struct {
		Covered        bool             `json:"covered"`
		Reason         string           `json:"reason"`
		Fallback       bool             `json:"fallback"`
		Balance        float64          `json:"fallbackBalance"`
		Connections    int              `json:"connections"`
		Writers        map[string]int   `json:"writers"`
		FloorLimit     int              `json:"floorLimit"`
		Groups         []groupDump      `json:"groups"`
		Dials          map[string]int64 `json:"dials"`
		DialFailures   int64            `json:"dialFailures"`
		Lost           map[string]int64 `json:"lost"`
		Demoted        int64            `json:"demoted"`
		DrainExpired   int64            `json:"drainExpired"`
		ShadowsUsed    int64            `json:"shadowsUsed"`
		Begun          int64            `json:"generationsBegun"`
		Activated      int64            `json:"generationsActivated"`
		Abandoned      int64            `json:"generationsAbandoned"`
		Retired        int64            `json:"generationsRetired"`
		Degraded       int64            `json:"endpointsDegraded"`
		Quarantined    int64            `json:"endpointsQuarantined"`
		Recovered      int64            `json:"endpointsRecovered"`
		Probes         int64            `json:"probes"`
		ProbeFailures  int64            `json:"probeFailures"`
		Resolves       int64            `json:"resolutions"`
		ResolveFailure int64            `json:"resolutionFailures"`
		FallbackIn     int64            `json:"fallbackIn"`
		FallbackOut    int64            `json:"fallbackOut"`
	}
	groupDump struct {
		Name        string           `json:"name"`
		Fallback    bool             `json:"fallback"`
		Serving     bool             `json:"serving"`
		Reason      string           `json:"reason"`
		Generation  uint64           `json:"generation"`
		Pending     bool             `json:"reinitPending"`
		Tries       int              `json:"warmupsGivenUp"`
		Problem     string           `json:"problem"`
		Names       string           `json:"resolutionProblem"`
		Generations []generationDump `json:"generations"`
		Endpoints   []endpointDump   `json:"endpoints"`
	}
	generationDump struct {
		ID         uint64  `json:"id"`
		State      string  `json:"state"`
		Reason     string  `json:"reason"`
		AgeSeconds float64 `json:"ageSeconds"`
		Endpoints  int     `json:"endpoints"`
		Writers    int     `json:"writers"`
		Have       int     `json:"gateHave"`
		Need       int     `json:"gateNeed"`
	}
	endpointDump struct {
		Address       string         `json:"address"`
		Health        string         `json:"health"`
		Resting       bool           `json:"resting"`
		Weight        uint32         `json:"weight"`
		Target        int            `json:"floor"`
		Lent          int            `json:"lent"`
		Outstanding   int            `json:"exchanges"`
		Writers       map[string]int `json:"writers"`
		Shadows       int            `json:"shadows"`
		Failures      int            `json:"failuresInRow"`
		RetrySeconds  float64        `json:"retrySeconds"`
		LatencyMillis float64        `json:"latencyMilliseconds"`
		Cause         string         `json:"cause"`
	}
)

func upstreamDump(s *control.Snapshot) poolDump {
	t := &s.Totals
	d := poolDump{Covered: s.Covered, Reason: s.Why.String(), Fallback: s.Fallback, Balance: s.Balance, Connections: s.Open, FloorLimit: s.FloorLimit,
		Writers: writersDump(s.Dialing, s.Warm, s.Active, s.Draining), Dials: map[string]int64{}, DialFailures: t.DialFailures, Lost: map[string]int64{},
		Demoted: t.Demoted, DrainExpired: t.DrainExpired, ShadowsUsed: t.Unveiled, Begun: t.Begun, Activated: t.Activated, Abandoned: t.Abandoned, Retired: t.Retired,
		Degraded: t.Degraded, Quarantined: t.Quarantined, Recovered: t.Recovered, Probes: t.Probes, ProbeFailures: t.ProbeFailures, Resolves: t.Resolves,
		ResolveFailure: t.ResolveFailures, FallbackIn: t.FallbackIn, FallbackOut: t.FallbackOut}
	for why, n := range t.Dials {
		d.Dials[control.Purpose(why).String()] = n
	}
	for why, n := range t.Lost {
		d.Lost[control.Loss(why).String()] = n
	}
	for _, g := range s.Groups {
		one := groupDump{Name: g.Name, Fallback: g.Fallback, Serving: g.Serving, Reason: g.Why.String(), Generation: uint64(g.Generation), Pending: g.Pending, Tries: g.Tries,
			Problem: g.Problem, Names: g.Names}
		for _, gen := range g.Generations {
			one.Generations = append(one.Generations, generationDump{ID: uint64(gen.ID), State: gen.State.String(), Reason: gen.Reason.String(), AgeSeconds: seconds(gen.Age),
				Endpoints: gen.Endpoints, Writers: gen.Writers, Have: gen.Have, Need: gen.Need})
		}
		for _, e := range g.Endpoints {
			one.Endpoints = append(one.Endpoints, endpointDump{Address: e.Addr.String(), Health: e.Health.String(), Resting: e.Resting, Weight: e.Weight, Target: e.Target,
				Lent: e.Lent, Outstanding: e.Outstanding, Writers: writersDump(e.Dialing, e.Warm, e.Active, e.Draining), Shadows: e.Shadows, Failures: e.Failures,
				RetrySeconds: seconds(e.Retry), LatencyMillis: milliseconds(e.Latency), Cause: e.Cause})
		}
		d.Groups = append(d.Groups, one)
	}
	return d
}

func writersDump(dialing, warm, active, draining int) map[string]int {
	return map[string]int{"dialing": dialing, "warm": warm, "active": active, "draining": draining}
}

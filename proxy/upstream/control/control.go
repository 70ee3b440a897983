package control

import (
	"math"
	"net/netip"
	"time"
)

// never is a wake-up that does not come.
const never = time.Duration(math.MaxInt64)

// passes bounds how often one event is planned: an activation or a switch of the fallback changes what the rest of the plan rests on.
const passes = 4

// Control is the control plane of the pool. Not safe for concurrent use: one goroutine owns it. The zero value is not usable; see New.
//
// Invariants, checked by CheckInvariants:
//
//	I1  a writer stands in one endpoint and one generation; every counter equals a recount
//	I2  connections <= MaxConnections and dials within DialsRefill, DialsDemand (a group) and DialsAll, except what a lowered setting found running
//	I3  a group has at most one active and one coming generation; at most one generation of the pool warms up while another of its group is active
//	I4  active writers belong to the active generation of their group and to no quarantined endpoint; warm ones that are no shadows to a coming generation
//	I5  an outgoing generation has only draining writers and dials that will be closed; a retired one has none
//	I6  sum of targets of the active sets <= C, of a coming set <= C; a target is at least FloorMin unless C forbids it
//	I7  never all endpoints of an active generation are quarantined
//	I8  a quarantine has a probe running or due within QuarantineMax
//	I9  the fallback is in use only under a policy that allows it; its balance stands in 0..1
//	I10 Next is after the last event's time
//	I11 the view holds exactly the choosable writers of the serving groups, and its revision rises with each change
type Control struct {
	set       Settings
	random    func() float64
	groups    []*group
	endpoints map[EndpointID]*endpoint
	writers   map[WriterID]*writer

	lastWriter     WriterID
	lastEndpoint   EndpointID
	lastGeneration GenerationID

	now, wake time.Duration
	out       []Command
	count     [writerStates]int
	warming   *generation // the one reinit that runs
	turn      int         // group whose reinit is looked at first
	wantAny   int
	fallback  fallback
	drainDue  time.Duration // earliest end of a drain TTL
	loadedAt  time.Duration // last report of the data plane
	cramped   bool          // MaxConnections kept a floor from being refilled
	draining  bool
	stopped   bool
	grand     grand
	view      *View
	totals    Totals
	scratch   []*endpoint
}

// grand is what a lowered setting found running; it only shrinks.
type grand struct{ open, dials int }

// group is one origin name.
type group struct {
	Group
	id        GroupID
	endpoints []*endpoint // all that are known, by id
	active    *generation
	next      *generation // bootstrap or warm-up
	old       []*generation

	wanted  []netip.AddrPort // the last good addresses, nil before them and after they expired
	literal bool
	expired bool

	resolving                    bool
	resolveAt, resolvedAt        time.Duration
	negativeSince, unansweredFor time.Duration // first bad answer since the last good one, never: none
	cause                        string        // text of the last bad answer

	pending  Reason // of the next reinit
	asked    bool   // a reinit was asked for although the addresses may be the same
	fresh    bool
	reinitAt time.Duration // earliest start
	endedAt  time.Duration // end of the last warm-up, either way
	tries    int           // warm-ups given up in a row
	why      string        // of the last one given up

	want        int
	refillDials int // and shadow
	demandDials int
	state       Cause // as last computed
}

// New returns the control plane of the given groups without any address. Random returns uniform numbers in [0, 1); it is called by Step only. New fails when the
// settings break a rule, when there is no group but a fallback, or more than one fallback. The first Step (a Tick) brings the first commands.
func New(groups []Group, set Settings, random func() float64) (*Control, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	c := &Control{set: set, random: random, endpoints: map[EndpointID]*endpoint{}, writers: map[WriterID]*writer{}, wake: 0, drainDue: never, view: &View{Why: CauseUnresolved}}
	equal := 0
	for i, g := range groups {
		c.groups = append(c.groups, &group{Group: g, id: GroupID(i), negativeSince: never, unansweredFor: never, state: CauseUnresolved})
		if !g.Fallback {
			equal++
		}
	}
	if equal == 0 || len(groups)-equal > 1 {
		return nil, errGroups
	}
	return c, nil
}

// Step takes one event at the monotonic time now and returns what is to be done, in order. A time before the last one counts as the last one. The slice is valid
// until the next Step. O(endpoints), plus the writers that change.
func (c *Control) Step(now time.Duration, e Event) []Command {
	c.out = c.out[:0]
	c.now = max(c.now, now)
	c.fallback.advance(c)
	c.apply(e)
	again := !c.stopped
	for i := 0; again && i < passes; i++ {
		c.wake = never
		again = c.plan()
	}
	if again {
		c.later(c.now + time.Millisecond)
	}
	c.grand.open = min(c.grand.open, len(c.writers))
	c.grand.dials = min(c.grand.dials, c.count[Dialing])
	c.publish()
	return c.out
}

// Next returns the time at which a Tick has something to do; false when none will by the passing of time alone.
func (c *Control) Next() (time.Duration, bool) { return c.wake, c.wake != never }

// later asks for a Tick at t.
func (c *Control) later(t time.Duration) {
	if t > c.now {
		c.wake = min(c.wake, t)
	}
}

// due reports whether t has come, and asks for a Tick at t when it has not.
func (c *Control) due(t time.Duration) bool {
	c.later(t)
	return c.now >= t
}

// plan compares what is with what should be and orders the difference. It reports whether it changed something that an earlier part of it rests on.
func (c *Control) plan() bool {
	if c.draining {
		c.planDemand()
		c.planDrains()
		return false
	}
	for _, g := range c.groups {
		c.planNames(g)
	}
	for _, g := range c.groups {
		c.planHealth(g)
	}
	c.planReinits()
	c.planFloors()
	again := c.planGates()
	again = c.fallback.plan(c) || again
	if again {
		return true
	}
	c.planDemand()
	c.planRefill()
	c.planShadows()
	c.planTrims()
	c.planDrains()
	c.planProbes()
	return false
}

// do appends a command.
func (c *Control) do(o Command) { c.out = append(c.out, o) }

// off reports whether a group is a fallback that the policy does not use.
func (c *Control) off(g *group) bool { return g.Fallback && c.set.Fallback == FallbackOff }

// serves reports whether exchanges run on a group now.
func (c *Control) serves(g *group) bool { return g.Fallback == c.fallback.on }

// group returns the group with an id, nil when there is none.
func (c *Control) group(id GroupID) *group {
	if id < 0 || int(id) >= len(c.groups) {
		return nil
	}
	return c.groups[id]
}

// between draws uniformly from low to high; high when it is below low.
func (c *Control) between(low, high time.Duration) time.Duration {
	if high <= low {
		return high
	}
	return low + time.Duration(c.random()*float64(high-low))
}

// doubled returns base * 2^n, at most limit.
func doubled(base, limit time.Duration, n int) time.Duration {
	for ; n > 0 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}

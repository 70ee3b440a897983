package control

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// generation is one endpoint set of a group, from its first dial to its last writer.
type generation struct {
	id        GenerationID
	group     *group
	state     GenerationState
	reason    Reason
	fresh     bool // nothing is carried over
	addrs     []netip.AddrPort
	endpoints []*endpoint // families in turn, IPv6 first
	began     time.Duration
	activated time.Duration
	nextDial  time.Duration
	writers   int // that belong to it, in any state
}

// compareAddr orders addresses for comparison of sets.
func compareAddr(a, b netip.AddrPort) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Port(), b.Port()))
}

// interleave orders addresses so that families alternate, IPv6 first (RFC 8305 section 4): a family that cannot be reached costs every second dial, not the first
// half of them.
func interleave(addrs []netip.AddrPort) []netip.AddrPort {
	var six, four []netip.AddrPort
	for _, a := range addrs {
		if a.Addr().Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	out := make([]netip.AddrPort, 0, len(addrs))
	for i := range max(len(six), len(four)) {
		if i < len(six) {
			out = append(out, six[i])
		}
		if i < len(four) {
			out = append(out, four[i])
		}
	}
	return out
}

// begin makes a generation of the group's wanted addresses. Endpoints that are known stay the same objects.
func (c *Control) begin(g *group, state GenerationState, why Reason, fresh bool) *generation {
	c.lastGeneration++
	gen := &generation{id: c.lastGeneration, group: g, state: state, reason: why, fresh: fresh, addrs: g.wanted, began: c.now, nextDial: c.now}
	for _, addr := range interleave(g.wanted) {
		i := slices.IndexFunc(g.endpoints, func(e *endpoint) bool { return e.addr == addr })
		if i < 0 {
			c.lastEndpoint++
			e := &endpoint{id: c.lastEndpoint, group: g, addr: addr, cold: true, rampFrom: never, act: activity{sunk: true, remembered: c.set.FloorMin}, rolled: c.now}
			c.endpoints[e.id] = e
			i = len(g.endpoints)
			g.endpoints = append(g.endpoints, e)
		}
		g.endpoints[i].coming = gen
		gen.endpoints = append(gen.endpoints, g.endpoints[i])
	}
	g.next = gen
	g.asked, g.fresh = false, false
	c.totals.Begun++
	return gen
}

// planReinits begins what is to begin: a first set at once, a further one when no other warms up and its time has come.
func (c *Control) planReinits() {
	for i := range c.groups {
		g := c.groups[(c.turn+i)%len(c.groups)]
		switch {
		case len(g.wanted) == 0:
		case g.active == nil:
			if g.next == nil || !slices.Equal(g.next.addrs, g.wanted) {
				c.bootstrap(g)
			}
		case g.next != nil || c.warming != nil: // its end plans again
		case g.asked && g.resolving: // the answer plans again
		case !g.asked && slices.Equal(g.active.addrs, g.wanted):
			g.tries = 0
		case c.due(c.reinitTime(g)):
			c.warmUp(g)
			c.turn = (int(g.id) + 1) % len(c.groups)
		}
	}
}

// reinitTime is when the next reinit of a group may begin. A pause after a failed one ends early when the group has nothing to lose any more.
func (c *Control) reinitTime(g *group) time.Duration {
	if g.state != CauseCovered && g.tries > 0 {
		return min(g.reinitAt, g.endedAt+c.set.Spacing)
	}
	return g.reinitAt
}

// bootstrap begins the first set, or replaces one that was not activated yet; connections to addresses in both go along.
func (c *Control) bootstrap(g *group) {
	old := g.next
	if old != nil {
		for _, e := range old.endpoints {
			e.coming = nil
		}
	}
	gen := c.begin(g, Bootstrap, ReasonStart, false)
	if old == nil {
		return
	}
	for _, e := range gen.endpoints {
		for _, w := range e.writers {
			if w.gen == old {
				c.retag(w, gen)
			}
		}
	}
	c.abandon(old)
}

// warmUp begins the set that is to replace the active one. New endpoints start with an equal share of the group's present target, so that the gate asks for what
// the traffic needs.
func (c *Control) warmUp(g *group) {
	why := g.pending
	if !g.asked {
		why = ReasonAddresses
	}
	sum := 0
	for _, e := range g.active.endpoints {
		sum += e.act.desired(c.now, &c.set)
	}
	share := (sum + len(g.wanted) - 1) / len(g.wanted)
	c.warming = c.begin(g, Warmup, why, g.fresh)
	for _, e := range c.warming.endpoints {
		if e.current == nil {
			e.act.inherit(c.now, c.set.FloorHold, share)
		}
	}
}

// gate returns how many writers a coming generation has and how many it needs. At bootstrap, and when the active generation has no coverage to lose, one is enough.
func (c *Control) gate(gen *generation) (have, need int) {
	for _, e := range gen.endpoints {
		n, target := e.live(gen), gen.goal(e)-e.lent
		if e.rests > 0 {
			target = min(target, 1)
			if n == 0 && c.resting(e) && (!gen.fresh || e.verified >= gen.id) {
				n = 1
			}
		}
		have += min(n, gen.goal(e)) // what is beyond the floor is trimmed as soon as it is not needed
		need += target
	}
	if gen.state == Bootstrap || gen.group.state != CauseCovered {
		return have, 1
	}
	return have, max(1, (need*c.set.GatePercent+99)/100)
}

// planGates activates what passes the gate, whole, and gives up what cannot. It reports whether it did.
func (c *Control) planGates() bool {
	again := false
	for _, g := range c.groups {
		gen := g.next
		if gen == nil {
			continue
		}
		have, need := c.gate(gen)
		switch {
		case have >= need:
			c.activate(gen)
			again = true
		case gen.state == Bootstrap:
		case c.due(gen.began+c.set.WarmupLimit) || have == 0 && !slices.Equal(gen.addrs, g.wanted) && gen.failed():
			c.giveUp(gen, fmt.Sprintf("gate: %d of %d writers ready", have, need))
			again = true
		}
	}
	return again
}

// failed reports whether no endpoint of the generation could be connected.
func (gen *generation) failed() bool {
	return !slices.ContainsFunc(gen.endpoints, func(e *endpoint) bool { return e.dialFails == 0 })
}

// activate makes a coming generation the active one: in this one step its writers are put up for choice and the old one's begin to drain.
func (c *Control) activate(gen *generation) {
	g, old := gen.group, gen.group.active
	c.totals.Activated++
	gen.state, gen.activated = Current, c.now
	g.active, g.next, g.tries, g.why = gen, nil, 0, ""
	g.endedAt, g.reinitAt = c.now, max(g.reinitAt, c.now+c.set.Spacing)
	if c.warming == gen {
		c.warming = nil
	}
	c.do(Command{Do: DoActivate, Group: g.id, Generation: gen.id})
	if !slices.ContainsFunc(gen.endpoints, func(e *endpoint) bool { return !e.cold }) {
		// A set that is new as a whole has nobody to take the load while it grows.
		for _, e := range gen.endpoints {
			e.cold = false
		}
	}
	for _, e := range gen.endpoints {
		e.current, e.coming = gen, nil
		for _, w := range e.writers {
			if old != nil && w.gen == old && !gen.fresh {
				c.retag(w, gen)
			}
			if w.gen == gen && w.state == Warm && !w.shadow {
				c.promote(w)
			}
		}
	}
	if old != nil {
		c.leave(old)
	}
}

// leave lets a generation go out: what is for choice drains, the rest is closed, dials are closed when they end.
func (c *Control) leave(old *generation) {
	g := old.group
	old.state = Outgoing
	g.old = append(g.old, old)
	for _, e := range old.endpoints {
		if e.current == old {
			e.current = nil
		}
		if e.coming == old {
			e.coming = nil
		}
		for i := len(e.writers) - 1; i >= 0; i-- {
			switch w := e.writers[i]; {
			case w.gen != old:
			case w.state == Active:
				c.demote(w)
			case w.state == Warm:
				c.close(w)
			}
		}
		c.forget(e)
	}
	c.retire(old)
}

// abandon drops a coming generation. What it warmed was never for choice and is closed.
func (c *Control) abandon(gen *generation) {
	if gen.group.next == gen {
		gen.group.next = nil
	}
	if c.warming == gen {
		c.warming = nil
	}
	c.leave(gen)
}

// giveUp abandons a warm-up that cannot pass and plans the next try. Changed addresses are tried for as long as they stand; a signal or setting RetryTries times.
func (c *Control) giveUp(gen *generation, why string) {
	g := gen.group
	c.totals.Abandoned++
	c.abandon(gen)
	g.why = why
	g.tries++
	g.endedAt = c.now
	if g.asked || !slices.Equal(gen.addrs, g.wanted) {
		// Something newer waits: it is not what failed.
		g.tries, g.reinitAt = 0, c.now+c.set.Spacing
		return
	}
	pause := doubled(c.set.RetryBase, c.set.RetryMax, g.tries-1)
	g.reinitAt = c.now + c.between(pause/2, pause)
	switch {
	case gen.reason == ReasonAddresses:
	case g.tries < c.set.RetryTries:
		g.ask(gen.reason, gen.fresh)
	default:
		c.totals.GivenUp++
		g.tries = 0
	}
}

// retire reports an outgoing generation whose last writer is gone.
func (c *Control) retire(gen *generation) {
	if gen.state != Outgoing || gen.writers > 0 {
		return
	}
	g := gen.group
	i := slices.Index(g.old, gen)
	if i < 0 {
		return
	}
	g.old = slices.Delete(g.old, i, i+1)
	c.totals.Retired++
	c.do(Command{Do: DoRetire, Group: g.id, Generation: gen.id})
}

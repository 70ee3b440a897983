package control

import (
	"slices"
	"time"
)

// retryTime is when an endpoint that could not be connected is tried again.
func (c *Control) retryTime(e *endpoint) time.Duration {
	if c.outage(e.group) {
		return min(e.retryAt, e.outageAt)
	}
	return e.retryAt
}

// mayDial reports whether an endpoint may be dialled now. One that was never connected, or that fails, is tried by one dial at a time, a failing one after its
// pause; one that rests is refilled by one at a time too, while an exchange that waits does not wait for the rest.
func (c *Control) mayDial(e *endpoint, gen *generation, why Purpose) bool {
	g := e.group
	if e.health == Quarantined || len(c.writers) >= c.set.MaxConnections || c.count[Dialing] >= c.set.DialsAll {
		return false
	}
	if why == OnDemand {
		if g.demandDials >= c.set.DialsDemand {
			return false
		}
	} else if g.refillDials >= c.set.DialsRefill || gen.state != Current && !c.due(gen.nextDial) {
		return false
	}
	if c.doubtful(e) {
		return e.n[Dialing] == 0 && (e.dialFails == 0 || c.due(c.retryTime(e))) && (why == OnDemand || c.mayTry(e))
	}
	if why != OnDemand && e.rests > 0 {
		return e.n[Dialing] == 0 && c.due(e.restUntil)
	}
	return true
}

// doubtful reports whether nothing says that an endpoint can be connected, or a dial to it hangs.
func (c *Control) doubtful(e *endpoint) bool { return e.dialFails > 0 || e.verified == 0 || c.hangs(e) }

// hangs reports whether the oldest dial to an endpoint has run for Hedge.
func (c *Control) hangs(e *endpoint) bool {
	if e.n[Dialing] == 0 {
		return false
	}
	i := slices.IndexFunc(e.writers, func(w *writer) bool { return w.state == Dialing })
	return c.due(e.writers[i].dialled + c.set.Hedge)
}

// mayTry keeps dials that may hang until their time limit from taking the refill dials of endpoints that answer: half of them, and a quarter for a family of which
// nothing is connected while the other family is.
func (c *Control) mayTry(e *endpoint) bool {
	doubts, kin := 0, 0
	proven := [2]bool{}
	family := func(o *endpoint) int {
		if o.addr.Addr().Is4() {
			return 1
		}
		return 0
	}
	for _, o := range e.group.endpoints {
		if o.n[Active]+o.n[Warm] > 0 {
			proven[family(o)] = true
		}
		if c.doubtful(o) && o.n[Dialing] > 0 {
			doubts++
			if family(o) == family(e) {
				kin++
			}
		}
	}
	if !proven[0] && !proven[1] {
		return true
	}
	return doubts < max(1, c.set.DialsRefill/2) && (proven[family(e)] || kin < max(1, c.set.DialsRefill/4))
}

// planRefill dials what the floors lack: first groups without coverage, then the generation that warms up, then the rest.
func (c *Control) planRefill() {
	c.cramped = false
	for _, g := range c.groups {
		if gen := g.presentSet(); gen != nil && g.state != CauseCovered {
			c.refill(gen)
		}
	}
	if c.warming != nil {
		c.refill(c.warming)
	}
	for _, g := range c.groups {
		crowded := c.warming != nil && g == c.warming.group && g.state == CauseCovered && len(c.writers)+c.set.DialsRefill > c.set.MaxConnections
		if gen := g.presentSet(); gen != nil && !crowded {
			c.refill(gen)
		}
	}
	if c.cramped {
		c.makeRoom()
	}
}

// refill dials for one generation, one for each endpoint in turn until nothing more may be dialled.
func (c *Control) refill(gen *generation) {
	for more := true; more; {
		more = false
		for _, e := range gen.endpoints {
			owner := gen
			if gen.state == Warmup && !gen.fresh && e.current != nil {
				owner = e.current // carried over: the connection serves at once
			}
			if e.live(gen)+e.dialling(gen) >= gen.goal(e) {
				continue
			}
			c.cramped = c.cramped || len(c.writers) >= c.set.MaxConnections
			if !c.mayDial(e, owner, Refill) {
				continue
			}
			if e.rests > 0 {
				e.restUntil = c.now + c.restPause(e)
			}
			c.dial(e, owner, Refill)
			if owner.state != Current && c.set.Stagger > 0 {
				gen.nextDial = c.now + c.set.Stagger
				c.later(gen.nextDial)
			}
			more = true
		}
	}
}

// dropShadow closes a reserve writer, for what must be goes before what is kept for worse times. It reports whether there was one.
func (c *Control) dropShadow() bool {
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			for i := 0; i < len(e.writers) && e.shadows > 0; i++ {
				if w := e.writers[i]; w.shadow && w.state == Warm {
					c.close(w)
					return true
				}
			}
		}
	}
	return false
}

// makeRoom takes a writer out of choice when MaxConnections leaves a floor or a warm-up no room and no exchange waits: of the endpoint that has most beyond its floor
// and its exchanges, else, for a warm-up, of the generation that it replaces, never the last one.
func (c *Control) makeRoom() {
	waiting := c.wantAny
	var most *endpoint
	surplus := 0
	for _, g := range c.groups {
		waiting += g.want
		for _, e := range g.endpoints {
			if n := e.n[Active] - max(e.target, e.ahead, e.act.outstanding) - e.lent; n > surplus {
				most, surplus = e, n
			}
		}
	}
	if waiting > 0 || c.count[Draining] >= c.set.DialsRefill || c.dropShadow() {
		return
	}
	if most == nil && c.warming != nil {
		sum := 0
		for _, e := range c.warming.group.active.endpoints {
			sum += e.n[Active]
			if most == nil || e.n[Active] > most.n[Active] {
				most = e
			}
		}
		if sum <= 1 {
			return
		}
	}
	if most != nil {
		c.trim(most, 1)
	}
}

// planDemand dials for exchanges that wait. Connections on their way to endpoints that answer count for them.
func (c *Control) planDemand() {
	coming := 0
	for _, g := range c.groups {
		if !c.serves(g) {
			continue
		}
		n := c.underway(g)
		own := min(g.want, n)
		coming += n - own
		for need := g.want - own; need > 0 && c.serveOne(g); need-- {
		}
	}
	for need := c.wantAny - coming; need > 0 && c.serveOne(nil); need-- {
	}
}

// underway counts dials that will serve exchanges of a group soon.
func (c *Control) underway(g *group) int {
	n := 0
	if gen := g.presentSet(); gen != nil {
		for _, e := range gen.endpoints {
			if e.health != Quarantined && !c.doubtful(e) {
				n += e.dialling(gen)
			}
		}
	}
	return n
}

// serveOne finds a writer for one exchange that waits: a shadow at once, else a dial to the endpoint with the least load for its weight. A nil group is any that
// serves. It reports whether there was one.
func (c *Control) serveOne(only *group) bool {
	var best *endpoint
	for _, g := range c.groups {
		gen := g.presentSet()
		if gen == nil || !c.serves(g) || only != nil && g != only {
			continue
		}
		for _, e := range gen.endpoints {
			if e.shadows > 0 && gen.state == Current {
				c.unveil(e)
				return true
			}
			if c.mayDial(e, gen, OnDemand) && (best == nil || c.lighter(e, best)) {
				best = e
			}
		}
	}
	if best == nil {
		return false
	}
	gen := best.group.presentSet()
	c.dial(best, gen, OnDemand)
	best.act.note(c.now, best.live(gen)+best.n[Dialing])
	return true
}

// lighter reports whether a is the better place for one more exchange than b.
func (c *Control) lighter(a, b *endpoint) bool {
	if fa, fb := c.doubtful(a), c.doubtful(b); fa != fb {
		return fb
	}
	loadOf := func(e *endpoint) uint64 { return uint64(max(e.act.outstanding, e.n[Active]) + e.n[Dialing]) }
	return loadOf(a)*uint64(c.weightOf(b)) < loadOf(b)*uint64(c.weightOf(a))
}

// unveil promotes the oldest shadow.
func (c *Control) unveil(e *endpoint) {
	for _, w := range e.writers {
		if w.shadow && w.state == Warm {
			c.totals.Unveiled++
			c.promote(w)
			e.act.note(c.now, e.n[Active])
			return
		}
	}
}

// planShadows keeps reserve writers beside a single endpoint and rotates them; a new one stands before the old one goes. When nothing else is left the shadow serves.
func (c *Control) planShadows() {
	for _, g := range c.groups {
		gen := g.active
		if gen == nil {
			continue
		}
		for _, e := range gen.endpoints {
			want := 0
			if len(gen.endpoints) == 1 && e.rests == 0 {
				want = c.set.Shadow
			}
			if e.shadows > 0 && e.n[Active] == 0 {
				c.unveil(e)
			}
			c.keepShadows(e, gen, want)
		}
	}
}

// keepShadows brings the shadows of an endpoint to a number.
func (c *Control) keepShadows(e *endpoint, gen *generation, want int) {
	young, coming := 0, 0
	for i := len(e.writers) - 1; i >= 0; i-- {
		w := e.writers[i]
		switch {
		case !w.shadow:
		case w.state == Dialing:
			coming++
		case want == 0:
			c.close(w)
		case !c.due(w.ready + c.set.ShadowEvery):
			young++
		}
	}
	room := c.warming == nil && 4*len(c.writers) < 3*c.set.MaxConnections
	for ; room && young+coming < want && e.n[Active] >= e.target && e.dialFails == 0 && c.mayDial(e, gen, Reserve); coming++ {
		c.dial(e, gen, Reserve)
	}
	for i := 0; i < len(e.writers) && e.shadows > want; {
		if w := e.writers[i]; w.shadow && w.state == Warm {
			c.close(w)
		} else {
			i++
		}
	}
}

// planTrims takes writers out of choice that neither the floor nor the recent peak needs, the oldest first.
func (c *Control) planTrims() {
	for _, g := range c.groups {
		if g.active == nil {
			continue
		}
		for _, e := range g.active.endpoints {
			c.trim(e, e.n[Active]-max(g.active.goal(e), e.act.peak()))
		}
	}
}

// trim demotes the n oldest writers of an endpoint that are for choice.
func (c *Control) trim(e *endpoint, n int) {
	for i := 0; i < len(e.writers) && n > 0; i++ {
		if w := e.writers[i]; w.state == Active {
			c.demote(w)
			n--
		}
	}
}

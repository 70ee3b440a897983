package control

import "time"

// restTrust is how many RestMax a last good contact covers an endpoint without a connection.
const restTrust = 2

// resting reports whether an endpoint without a connection may be trusted to take one: nothing failed since its last good contact, which the pauses of refill keep
// fresh. An origin that closes idle connections at once is so covered without holding one all the time.
func (c *Control) resting(e *endpoint) bool {
	return e.restful && !c.stopped && e.n[Active]+e.n[Warm] == 0 && e.dialFails == 0 && c.now < c.trustedUntil(e)
}

// trustedUntil is when the trust in an endpoint that rests ends.
func (c *Control) trustedUntil(e *endpoint) time.Duration { return e.contact + restTrust*c.set.RestMax }

// failLimit is the number of failures in a row from which an endpoint gives no coverage.
func (c *Control) failLimit() int { return max(c.set.QuarantineAfter, c.set.DegradeAfter) }

// alive reports whether an endpoint can serve: connected or resting, not quarantined, not failing without end.
func (c *Control) alive(e *endpoint) bool {
	gen := e.current
	if gen == nil {
		gen = e.coming
	}
	return e.health != Quarantined && e.exchangeFails < c.failLimit() && (e.live(gen) > 0 || c.resting(e))
}

// causeOf says whether a group has coverage: an active generation with an endpoint that is alive.
func (c *Control) causeOf(g *group) Cause {
	switch {
	case c.draining:
		return CauseDraining
	case c.off(g):
		return CauseOff
	case g.expired:
		return CauseExpired
	case len(g.wanted) == 0:
		return CauseUnresolved
	case g.active == nil && g.next == nil:
		return CauseConnecting
	}
	gen := g.active
	if gen == nil {
		gen = g.next
	}
	best := CauseUnreachable
	for _, e := range gen.endpoints {
		switch {
		case gen == g.active && c.alive(e):
			return CauseCovered
		case e.dialFails == 0 && e.exchangeFails == 0 && e.health != Quarantined:
			best = min(best, CauseConnecting)
		case e.n[Active] > 0:
			best = min(best, CauseFailing)
		}
	}
	return best
}

// outage reports whether a group is to be tried at the pace of an outage.
func (c *Control) outage(g *group) bool { return c.set.Outage && g.state != CauseCovered }

// covered says whether sessions may start, and why (not): one serving group with coverage is enough.
func (c *Control) covered() (bool, Cause) {
	if c.draining {
		return false, CauseDraining
	}
	best := causes
	for _, g := range c.groups {
		if c.serves(g) {
			best = min(best, g.state)
		}
	}
	return best == CauseCovered, best
}

// Covered is the admission gate of U7: whether sessions may start, and the cause. Without it waiting clients keep their places and running exchanges go on.
func (c *Control) Covered() (bool, Cause) { return c.view.Covered, c.view.Why }

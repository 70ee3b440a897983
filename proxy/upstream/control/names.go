package control

import (
	"net/netip"
	"slices"
	"time"
)

// planNames asks for the addresses of a group when their time has come, and lets the last good ones go when nothing confirmed them for too long.
func (c *Control) planNames(g *group) {
	if c.off(g) {
		if len(g.wanted) > 0 || g.active != nil || g.next != nil {
			c.tearDown(g)
		}
		g.literal, g.expired, g.resolveAt = false, false, 0
		return
	}
	if len(g.wanted) > 0 && c.due(min(after(g.negativeSince, c.set.KeepNegative), after(g.unansweredFor, c.set.KeepUnanswered))) {
		c.tearDown(g)
		g.expired = true
		c.totals.Expired++
	}
	if g.resolving || g.literal && len(g.wanted) > 0 {
		return
	}
	at := g.resolveAt
	if g.state != CauseCovered {
		at = min(at, g.resolvedAt+c.set.ResolveRetry)
	}
	if c.due(at) {
		g.resolving = true
		c.totals.Resolves++
		c.do(Command{Do: DoResolve, Group: g.id})
	}
}

// after is a time with a term added, never when it is never.
func after(t, term time.Duration) time.Duration {
	if t == never {
		return never
	}
	return t + term
}

// resolved takes the answer of a resolver.
func (c *Control) resolved(g *group, r Resolved) {
	g.resolving = false
	g.resolvedAt = c.now
	addrs := c.clean(g, r.Addrs)
	answer := r.Answer
	if answer == Addresses && len(addrs) == 0 {
		answer = Negative
	}
	if answer != Addresses {
		// The last good set stays for a bounded time: a name server that stumbles must not take living origins away.
		c.totals.ResolveFailures++
		g.cause = r.Cause
		g.resolveAt = c.now + c.between(c.set.ResolveRetry/2, c.set.ResolveRetry)
		if answer == Negative {
			g.negativeSince = min(g.negativeSince, c.now)
		} else {
			g.unansweredFor = min(g.unansweredFor, c.now)
		}
		return
	}
	g.negativeSince, g.unansweredFor, g.expired, g.cause = never, never, false, ""
	g.literal = r.TTL < 0
	term := c.set.ResolveEvery
	if r.TTL > 0 {
		term = min(max(r.TTL, c.set.ResolveMin), c.set.ResolveMax)
	}
	g.resolveAt = c.now + c.between(term-term/10, term)
	if slices.Equal(addrs, g.wanted) {
		return
	}
	if g.active != nil {
		g.tries = 0
		c.trigger(g)
	}
	g.wanted = addrs
}

// clean returns the usable addresses, sorted, each once, at most MaxEndpoints; known ones go first when there are more.
func (c *Control) clean(g *group, addrs []netip.AddrPort) []netip.AddrPort {
	out := make([]netip.AddrPort, 0, len(addrs))
	for _, a := range addrs {
		if a.IsValid() && a.Port() > 0 && !a.Addr().IsUnspecified() {
			out = append(out, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
		}
	}
	slices.SortFunc(out, compareAddr)
	out = slices.Compact(out)
	if len(out) <= c.set.MaxEndpoints {
		return out
	}
	known := func(a netip.AddrPort) int {
		if slices.Contains(g.wanted, a) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b netip.AddrPort) int { return known(a) - known(b) })
	out = out[:c.set.MaxEndpoints]
	slices.SortFunc(out, compareAddr)
	return out
}

// tearDown takes a group out of use: no addresses, no choosable writer; exchanges finish.
func (c *Control) tearDown(g *group) {
	g.wanted, g.asked, g.fresh, g.tries = nil, false, false, 0
	if g.next != nil {
		c.abandon(g.next)
	}
	if g.active != nil {
		old := g.active
		g.active = nil
		c.leave(old)
	}
	g.negativeSince, g.unansweredFor = never, never
}

package control

import (
	"slices"
	"time"
)

// tally counts what exchanges and probes said.
type tally struct{ good, bad, server int }

// tally sums both windows.
func (e *endpoint) tally() tally {
	a, b := e.window[0], e.window[1]
	return tally{a.good + b.good, a.bad + b.bad, a.server + b.server}
}

// count adds to the present window; the first observation after a silence begins it.
func (e *endpoint) count(now time.Duration, t tally) {
	if e.window == [2]tally{} {
		e.rolled = now
	}
	w := &e.window[0]
	w.good, w.bad, w.server = w.good+t.good, w.bad+t.bad, w.server+t.server
}

// Shares of failures that degrade and quarantine, and of server errors that degrade an endpoint whose siblings have less than half as many; in percent.
const (
	degradeShare    = 20
	quarantineShare = 50
	serverShare     = 50
)

// memoryOfQuarantine is how many QuarantineMax after its end a quarantine still makes the next one longer.
const memoryOfQuarantine = 5

// observed takes what exchanges said of an endpoint.
func (c *Control) observed(e *endpoint, o Observed) {
	good, bad, server := max(0, o.Successes), max(0, o.Failures), max(0, o.ServerErrors)
	if good+bad == 0 {
		return
	}
	e.count(c.now, tally{good, bad, min(server, good)})
	e.heard = c.now
	if o.Latency > 0 {
		if e.latency == 0 {
			e.latency = o.Latency
		}
		e.latency += (o.Latency - e.latency) / 8
	}
	if good > 0 {
		e.exchangeFails, e.restful, e.contact = 0, true, c.now
	} else {
		c.failed(e, "exchanges failed")
	}
}

// failed counts one more failure of an exchange or probe in a row.
func (c *Control) failed(e *endpoint, cause string) {
	e.exchangeFails++
	e.restful, e.cause = false, cause
	base, limit := c.set.BackoffBase, c.set.BackoffMax
	if c.outage(e.group) {
		base, limit = c.set.OutageBase, c.set.OutageMax
	}
	e.probeAt = c.now + c.backoff(e.exchangeFails, base, limit)
}

// probed takes the answer of a probe. One on a connection of its own answers for connecting too.
func (c *Control) probed(e *endpoint, err error) {
	anew := e.probeAnew
	e.probing = false
	e.heard = c.now
	switch {
	case err == nil:
		e.count(c.now, tally{good: 1})
		e.exchangeFails, e.restful, e.contact = 0, true, c.now
		if anew {
			e.dialFails, e.retryAt, e.outageAt = 0, 0, 0
		}
		if e.health == Quarantined {
			c.totals.Recovered++
			e.health, e.healthAt, e.released = Healthy, c.now, c.now
			e.window = [2]tally{}
		}
		return
	case e.health == Quarantined:
		e.cause = err.Error()
		c.confine(e, min(2*e.quarantine, c.set.QuarantineMax))
	case anew:
		c.dialFailed(e, c.now, err)
	default:
		e.count(c.now, tally{bad: 1})
		c.failed(e, err.Error())
	}
	c.totals.ProbeFailures++
}

// confine sets the length of a quarantine: the probe comes between its half and its whole.
func (c *Control) confine(e *endpoint, length time.Duration) {
	e.quarantine = min(max(length, c.set.QuarantineMin), c.set.QuarantineMax)
	e.until = c.now + c.between(e.quarantine/2, e.quarantine)
}

// verdict judges an endpoint by failures in a row and by shares.
func (c *Control) verdict(e *endpoint) (bad, worst bool) {
	row, dead := max(e.dialFails, e.exchangeFails), e.exchangeFails
	if e.n[Active]+e.n[Warm] == 0 {
		dead = row // an origin that takes no further connection may serve well on those that it has
	}
	t := e.tally()
	n := t.good + t.bad
	enough := n >= c.set.RateSamples
	bad = row >= c.set.DegradeAfter || enough && t.bad*100 >= n*degradeShare || enough && c.outlier(e, t)
	worst = c.set.QuarantineAfter > 0 && (dead >= c.set.QuarantineAfter || enough && t.bad*100 >= n*quarantineShare)
	return bad || worst, worst
}

// outlier reports whether an endpoint answers with server errors while its siblings do not. An error that all give is the object's or the application's, not the
// endpoint's.
func (c *Control) outlier(e *endpoint, t tally) bool {
	if t.server*100 < (t.good+t.bad)*serverShare || e.current == nil {
		return false
	}
	var rest tally
	for _, o := range e.current.endpoints {
		if o != e {
			other := o.tally()
			rest.good, rest.bad, rest.server = rest.good+other.good, rest.bad+other.bad, rest.server+other.server
		}
	}
	n := rest.good + rest.bad
	return n >= c.set.RateSamples && rest.server*200 < n*serverShare
}

// planHealth moves the endpoints of a group between healthy, degraded and quarantined, and says whether the group has coverage.
func (c *Control) planHealth(g *group) {
	for _, e := range g.endpoints {
		if e.window != [2]tally{} && c.due(e.rolled+c.set.RateWindow) {
			e.window[1], e.window[0] = e.window[0], tally{}
			if c.now >= e.rolled+2*c.set.RateWindow {
				e.window[1] = tally{}
			}
			e.rolled = c.now
		}
		if e.rests > 0 && e.n[Active]+e.n[Warm] > e.act.outstanding && c.due(e.spareSince+c.set.RestShort) {
			e.rests = 0 // an unused connection outlived the short life
		}
		if e.health != Quarantined {
			c.judge(e)
		}
	}
	// Never all of a group: whoever could serve may, when nobody else can.
	for _, e := range g.endpoints {
		if e.health == Quarantined && (c.set.QuarantineAfter == 0 || !c.othersAlive(e)) {
			e.health, e.healthAt, e.released = Degraded, c.now, c.now
		}
	}
	g.state = c.causeOf(g)
}

// judge applies the verdict to an endpoint that is not quarantined.
func (c *Control) judge(e *endpoint) {
	bad, worst := c.verdict(e)
	switch {
	case worst && (e.current != nil || e.coming != nil) && c.othersAlive(e):
		c.isolate(e)
	case bad && e.health == Healthy:
		e.health, e.healthAt = Degraded, c.now
		c.totals.Degraded++
	case bad:
	case e.health == Degraded && c.due(e.healthAt+c.set.DegradeHold):
		e.health, e.healthAt = Healthy, c.now
	}
}

// isolate begins a quarantine: what is for choice drains, bound exchanges finish.
func (c *Control) isolate(e *endpoint) {
	length := c.set.QuarantineMin
	if e.quarantine > 0 && c.now-e.released < memoryOfQuarantine*c.set.QuarantineMax {
		length = 2 * e.quarantine
	}
	e.health, e.healthAt, e.cold = Quarantined, c.now, true
	c.confine(e, length)
	c.totals.Quarantined++
	for i := len(e.writers) - 1; i >= 0; i-- {
		switch w := e.writers[i]; w.state {
		case Active:
			c.demote(w)
		case Warm:
			c.close(w)
		}
	}
}

// othersAlive reports whether another endpoint of the same set can serve.
func (c *Control) othersAlive(e *endpoint) bool {
	gen := e.current
	if gen == nil {
		gen = e.coming
	}
	return gen != nil && slices.ContainsFunc(gen.endpoints, func(o *endpoint) bool { return o != e && c.alive(o) })
}

// planProbes asks quarantined endpoints whose time has come, failing ones at the pace of the backoff, and silent ones.
func (c *Control) planProbes() {
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			if e.probing {
				continue
			}
			if wants, anew := c.wantsProbe(e); wants {
				e.probing, e.probeAnew = true, anew
				c.totals.Probes++
				c.do(Command{Do: DoProbe, Group: g.id, Endpoint: e.id, Addr: e.addr, Anew: anew})
			}
		}
	}
}

// wantsProbe reports whether an endpoint is to be asked now, and whether on a connection of its own.
func (c *Control) wantsProbe(e *endpoint) (wants, anew bool) {
	gen := e.current
	switch {
	case gen == nil && e.coming == nil:
		return false, false
	case e.health == Quarantined:
		return c.due(e.until), true
	case gen == nil:
		return false, false
	case e.dialFails > 0 && e.n[Dialing] == 0 && e.live(gen) >= gen.goal(e):
		return c.due(c.retryTime(e)), true // no dial is wanted that could tell
	case e.live(gen) == 0:
		return e.exchangeFails > 0 && gen.goal(e) == 0 && c.due(e.probeAt), true
	case e.exchangeFails > 0 && c.outage(e.group):
		return c.due(min(e.probeAt, e.heard+c.set.OutageMax)), false
	case e.exchangeFails > 0:
		return c.due(e.probeAt), false
	}
	return c.set.Silent > 0 && c.due(e.heard+c.set.Silent), false
}

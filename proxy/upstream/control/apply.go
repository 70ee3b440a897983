package control

import (
	"errors"
	"time"
)

var errGroups = errors.New("cannot build upstream pool: want at least one group that is no fallback and at most one fallback")

// apply changes the state by one event; plan draws the conclusions.
func (c *Control) apply(e Event) {
	switch e := e.(type) {
	case DialDone:
		c.dialDone(e)
	case WriterLost:
		c.lost(e)
	case Load:
		c.load(e)
	case Demand:
		c.demanded(e)
	case Observed:
		if p := c.endpoints[e.Endpoint]; p != nil {
			c.observed(p, e)
		}
	case ProbeDone:
		if p := c.endpoints[e.Endpoint]; p != nil {
			c.probed(p, e.Err)
		}
	case Resolved:
		if g := c.group(e.Group); g != nil {
			c.resolved(g, e)
		}
	case Reinit:
		for _, g := range c.groups {
			if e.Group == AnyGroup || e.Group == g.id {
				g.ask(e.Reason, e.Fresh)
				g.tries = 0
				c.trigger(g)
				g.resolveAt = min(g.resolveAt, c.now)
			}
		}
	case Configure:
		c.configure(e.Settings)
	case Drain:
		c.draining = true
	case Stop:
		c.stop()
	}
}

// ask notes that the next generation is wanted although the addresses may be the same. What was asked before and has not begun is part of it.
func (g *group) ask(why Reason, fresh bool) {
	g.asked, g.pending = true, why
	g.fresh = g.fresh || fresh
}

// trigger sets the earliest start of a reinit. Triggers within Settle of the first one are one; a pause after a failed one ends.
func (c *Control) trigger(g *group) {
	at := max(c.now+c.set.Settle, g.endedAt+c.set.Spacing)
	if g.reinitAt > c.now {
		at = min(at, g.reinitAt)
	}
	g.reinitAt = at
}

func (c *Control) configure(set Settings) {
	if set.Validate() != nil {
		c.totals.Refused++
		return
	}
	c.set = set
	c.grand = grand{open: len(c.writers), dials: c.count[Dialing]}
}

// stop closes everything; a dial that still ends well is closed by dialDone, for its writer is not known any more.
func (c *Control) stop() {
	c.stopped, c.draining = true, true
	c.wake = never
	for _, g := range c.groups {
		for i := len(g.endpoints) - 1; i >= 0; i-- {
			for e := g.endpoints[i]; len(e.writers) > 0; {
				c.close(e.writers[len(e.writers)-1])
			}
		}
		g.state = CauseDraining
	}
}

func (c *Control) dialDone(d DialDone) {
	w := c.writers[d.Writer]
	if w == nil {
		if d.Err == nil {
			c.do(Command{Do: DoClose, Writer: d.Writer})
		}
		return
	}
	if w.state != Dialing {
		return
	}
	e := w.ep
	if d.Err != nil {
		c.totals.DialFailures++
		c.dialFailed(e, w.dialled, d.Err)
		c.remove(w)
		return
	}
	w.ready = c.now
	e.dialFails, e.retryAt, e.outageAt = 0, 0, 0
	e.contact, e.restful = c.now, true
	if e.n[Active]+e.n[Warm] == 0 {
		e.heard = max(e.heard, c.now)
	}
	e.verified = max(e.verified, w.gen.id)
	c.totals.Connected++
	switch {
	case w.gen.state == Outgoing || e.health == Quarantined:
		c.close(w)
	case w.shadow || w.gen.state != Current:
		c.setState(w, Warm)
	default:
		c.setState(w, Warm)
		c.promote(w)
	}
}

// dialFailed counts a failure once for all dials that ran at its time: eight dials into one outage are one failure, not eight steps of the backoff.
func (c *Control) dialFailed(e *endpoint, began time.Duration, err error) {
	e.cause = err.Error()
	e.restful = false
	e.rests = 0 // it did not close an idle connection, it went away
	if e.dialFails > 0 && began < e.failedAt {
		return
	}
	e.dialFails++
	e.failedAt = c.now
	e.retryAt = c.now + c.backoff(e.dialFails, c.set.BackoffBase, c.set.BackoffMax)
	e.outageAt = c.now + c.backoff(e.dialFails, c.set.OutageBase, c.set.OutageMax)
	if e.dialFails >= c.set.DegradeAfter {
		e.cold = true
	}
}

// backoff is the pause after the n-th failure in a row: full jitter over FastDelay for the first FastTries, then over base 2^(n-FastTries-1).
func (c *Control) backoff(n int, base, limit time.Duration) time.Duration {
	top := c.set.FastDelay
	if n > c.set.FastTries {
		top = doubled(base, limit, n-c.set.FastTries-1)
	}
	return c.between(min(c.set.FastDelay/2, top), top)
}

func (c *Control) lost(l WriterLost) {
	w := c.writers[l.Writer]
	if w == nil || w.state == Dialing {
		return
	}
	e := w.ep
	c.totals.Lost[min(l.Why, losses-1)]++
	switch l.Why {
	case IdleClosed, Unsolicited:
		e.contact = c.now
		if l.Idle < c.set.RestShort && w.ready >= e.restedAt {
			e.rests++
			e.restedAt = c.now
			e.restUntil = c.now // the first is replaced at once, as after a restart
			if e.rests > 1 {
				e.restUntil += c.restPause(e)
			}
		}
		e.spareSince = c.now
	case Spent:
		e.contact = c.now
	case Broken, TimedOut:
		e.count(c.now, tally{bad: 1})
		e.heard = c.now
		// Connections that one incident took down together are one failure in a row.
		if w.ready >= e.brokeAt {
			e.brokeAt = c.now
			c.failed(e, "exchange "+l.Why.String())
		}
	}
	c.remove(w)
}

// restPause is the pause between refills of an endpoint that closed its last connections early.
func (c *Control) restPause(e *endpoint) time.Duration {
	top := doubled(c.set.RestBase, c.set.RestMax, e.rests-1)
	return c.between(top/2, top)
}

func (c *Control) load(l Load) {
	if l.Complete {
		c.loadedAt = c.now
		c.drainDue = min(c.drainDue, c.now)
	}
	for _, one := range l.Endpoints {
		e := c.endpoints[one.Endpoint]
		if e == nil {
			continue
		}
		e.act.report(c.now, max(0, one.Outstanding), max(0, one.Peak, one.Outstanding))
		if one.Moved {
			e.heard = c.now
		}
	}
	for _, id := range l.Moved {
		if w := c.writers[id]; w != nil && w.state == Draining {
			w.moved = c.now
		}
	}
	for _, id := range l.Free {
		if w := c.writers[id]; w != nil && w.state == Draining {
			c.close(w)
		}
	}
}

func (c *Control) demanded(d Demand) {
	want := max(0, d.Want)
	if d.Group == AnyGroup {
		c.wantAny = want
	} else if g := c.group(d.Group); g != nil {
		g.want = want
	} else {
		return
	}
	if want == 0 || c.draining {
		return
	}
	for _, g := range c.groups {
		if g.active == nil || !c.serves(g) || d.Group != AnyGroup && d.Group != g.id {
			continue
		}
		for _, e := range g.active.endpoints {
			e.act.recover(c.now, c.set.FloorHold)
		}
	}
}

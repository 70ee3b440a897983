package sim

import (
	"time"

	"github.com/arkvory/sidecar/queue"
)

// request is one GET of a plain client: of the whole object, or of what it misses when it resumes. It is held for its turn.
func (r *run) request(c *client) {
	if c.held != nil || len(c.waits) > 0 || c.running() {
		return
	}
	c.hold++
	if r.strategy == queue.Shared {
		r.enterWhole(c)
		return
	}
	c.ask.Range = queue.RangeAsk{}
	if c.have > 0 {
		c.ask.Range = queue.OpenFrom(c.have)
	}
	var (
		response *queue.Response
		verdict  queue.Verdict
	)
	p := &r.parties[c.principal]
	if r.set.Hold > 0 && len(r.held) < r.set.HoldLimit && (r.set.HoldPerPrincipal == 0 || int(p.held) < r.set.HoldPerPrincipal) {
		var held *queue.Waiter
		if held, response, verdict = r.core.Hold(r.now, c.ask, c); held != nil {
			c.held, c.until, c.listed = held, r.now+r.set.Hold, len(r.held)
			r.held = append(r.held, c.id)
			p.held++
			r.patience(c)
			r.trace.line(r.now, c, "held", int64(verdict.Position), 0)
			return
		}
	} else {
		response, verdict = r.core.Ask(r.now, c.ask)
	}
	if response != nil {
		r.admitted(c, verdict)
		r.begin(c, transfer{response: response, first: c.have, end: c.size})
		return
	}
	r.answered(c, verdict)
}

// patience plans the moment at which a silent client ends its request.
func (r *run) patience(c *client) {
	r.events.push(event{at: r.now + c.profile.Patience, client: c.id, stamp: c.hold, kind: eventPatience})
}

func (r *run) unhold(c *client) {
	last := len(r.held) - 1
	r.held[c.listed] = r.held[last]
	r.clients[r.held[c.listed]].listed = c.listed
	r.held = r.held[:last]
	r.parties[c.principal].held--
	c.held = nil
}

func (r *run) enterWhole(c *client) {
	place, wait, err := r.gate.Enter(c.key.Principal, c.notify)
	switch {
	case err != nil:
		r.refused(c, err)
	case wait != nil:
		c.waits = append(c.waits, wait)
		r.patience(c)
	default:
		r.begin(c, transfer{gate: place, first: c.have, end: c.size})
	}
}

// answered deals with a 503 of the queue, and with a policy that needs no session.
func (r *run) answered(c *client, verdict queue.Verdict) {
	switch verdict.Outcome {
	case queue.PerRequest:
		r.enterWhole(c)
		return
	case queue.Queued:
		r.told(c, verdict)
	}
	r.again(c, verdict.CheckIn)
	r.note(c)
}

// impatient ends a request that heard nothing for too long.
func (r *run) impatient(c *client) {
	switch {
	case c.held != nil:
		r.core.Depart(r.now, c.held)
		r.unhold(c)
	case len(c.waits) > 0:
		r.cancelWaits(c)
	default:
		return
	}
	r.trace.line(r.now, c, "impatient", 0, 0)
	r.reconnect(c)
}

// again repeats a refused request as the profile does, or gives up.
func (r *run) again(c *client, retryAfter time.Duration) {
	if pause, ok := r.attempt(c, c.profile.Delays); ok {
		if c.profile.Obeys && retryAfter > 0 && retryAfter <= c.profile.UpTo {
			pause = wholeSeconds(retryAfter)
		}
		r.wake(c, pause)
	}
}

// reconnect repeats a request that broke, or that its client ended.
func (r *run) reconnect(c *client) {
	delays := c.profile.Reconnects
	if delays == nil {
		delays = c.profile.Delays
	}
	if pause, ok := r.attempt(c, delays); ok {
		r.wake(c, pause)
	}
}

// attempt uses up one repetition; false: there was none left, and the client gave up.
func (r *run) attempt(c *client, delays []time.Duration) (time.Duration, bool) {
	if c.attempt >= len(delays) {
		r.over(c, failed)
		return 0, false
	}
	c.attempt++
	return delays[c.attempt-1], true
}

// finishWhole ends a plain client's response: it has its object, vanishes, goes on after a break, or is ended by it.
func (r *run) finishWhole(c *client, x transfer, complete bool) {
	c.have += x.stop
	switch {
	case complete:
		r.over(c, done)
	case c.leaveAfter > 0 && c.have >= c.leaveAfter:
		r.over(c, left)
	case !c.profile.Resumes:
		r.meter.repeated += c.have
		c.have = 0
		r.over(c, failed)
	default:
		r.reconnect(c)
		c.backoff = c.phase == present
	}
}

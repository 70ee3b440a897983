package sim

import (
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// faultPause is how long a protocol client waits after a real fault.
const faultPause = time.Second

// refill lets a protocol client ask for ranges up to its number at once. Waiting it asks for one, and for the others when that
// one is admitted.
func (r *run) refill(c *client) {
	for c.phase == present && r.now >= c.quiet && c.wants() {
		limit := r.set.RangesAtOnce
		if c.probing {
			limit = 1
		}
		if len(c.transfers)+len(c.waits) >= limit || int64(len(c.waits)) >= c.ranges-c.next+int64(len(c.redo)) {
			return
		}
		a, _ := c.take()
		if !r.askRange(c, a) {
			return
		}
	}
}

// askRange asks for one range and reports whether the client may ask for the next one.
func (r *run) askRange(c *client, a again) bool {
	first, end := c.span(a.rank, r.set.RangeBytes)
	if r.strategy == queue.Shared {
		return r.enterRange(c, a, first, end)
	}
	c.ask.Range = queue.Bounded(first, end-1)
	response, verdict := r.core.Ask(r.now, c.ask)
	switch verdict.Outcome {
	case queue.Admitted:
		r.admitted(c, verdict)
		r.begin(c, transfer{response: response, first: first, end: end, rank: a.rank, faults: a.faults})
		return true
	case queue.PerRequest:
		return r.enterRange(c, a, first, end)
	case queue.RangesBusy:
		c.give(a)
		if !c.running() {
			r.wake(c, r.later(verdict.CheckIn))
		}
		return false
	}
	c.give(a)
	r.told(c, verdict)
	r.wake(c, r.later(verdict.CheckIn))
	return false
}

// enterRange asks the per-request gate.
func (r *run) enterRange(c *client, a again, first, end int64) bool {
	place, wait, err := r.gate.Enter(c.key.Principal, c.notify)
	switch {
	case err != nil:
		c.give(a)
		r.refused(c, err)
		return false
	case wait != nil:
		c.give(a) // whichever wait is answered first takes the next range
		c.waits = append(c.waits, wait)
		return true
	}
	c.probing = false
	r.begin(c, transfer{gate: place, first: first, end: end, rank: a.rank, faults: a.faults})
	return true
}

// refused pauses the client as a whole for the told time; then it tries with one request.
func (r *run) refused(c *client, err error) {
	busy, ok := err.(*admission.BusyError)
	if !ok {
		busy = &admission.BusyError{RetryAfter: 2 * time.Second}
	}
	r.meter.refused++
	r.trace.line(r.now, c, "refused", int64(busy.RetryAfter), 0)
	if !c.protocol {
		r.again(c, busy.RetryAfter)
		return
	}
	c.probing = true
	r.wake(c, r.later(busy.RetryAfter))
}

// fromGate takes the answer of a wait.
func (r *run) fromGate(c *client, w *admission.Wait) {
	i := 0
	for i < len(c.waits) && c.waits[i] != w {
		i++
	}
	if i == len(c.waits) {
		return // cancelled with its client
	}
	place, ok, err := w.Poll()
	if !ok {
		return
	}
	c.waits = append(c.waits[:i], c.waits[i+1:]...)
	switch {
	case err != nil:
		r.refused(c, err)
	case !c.protocol:
		r.begin(c, transfer{gate: place, first: c.have, end: c.size})
	default:
		c.probing = false
		if a, wants := c.take(); wants {
			first, end := c.span(a.rank, r.set.RangeBytes)
			r.begin(c, transfer{gate: place, first: first, end: end, rank: a.rank, faults: a.faults})
			r.refill(c)
		} else {
			place.Release()
		}
	}
	r.note(c)
}

func (r *run) cancelWaits(c *client) {
	for _, w := range c.waits {
		w.Cancel()
	}
	c.waits = c.waits[:0]
}

// finishRange counts a range, or asks for a broken one again while the budget lasts.
func (r *run) finishRange(c *client, x transfer, complete bool) {
	if !complete {
		r.meter.repeated += x.stop
		c.faults++
		if c.faults > r.set.Faults || x.faults+1 > r.set.RequestFaults {
			r.over(c, failed)
			return
		}
		c.redo = append(c.redo, again{x.rank, x.faults + 1})
		if !c.running() {
			c.backoff = true
			r.wake(c, faultPause)
			return
		}
	} else {
		c.have += x.end - x.first
	}
	switch {
	case c.have == c.size:
		r.over(c, done)
	case c.leaveAfter > 0 && c.have >= c.leaveAfter:
		r.over(c, left)
	default:
		r.refill(c)
	}
}

package control

import (
	"net/netip"
	"slices"
	"time"
)

// writer is one connection, from its Dial to its removal.
type writer struct {
	id      WriterID
	ep      *endpoint
	gen     *generation // whose activation makes it choosable
	state   WriterState
	purpose Purpose
	shadow  bool
	dialled time.Duration
	ready   time.Duration
	moved   time.Duration // while draining: last sign of life of its exchange
}

// endpoint is one address of one group. It outlives generations: what is known of its health, and connections that are carried over, stay.
type endpoint struct {
	id      EndpointID
	group   *group
	addr    netip.AddrPort
	current *generation // the active generation that has it
	coming  *generation // the bootstrap or warm-up that has it
	writers []*writer   // by id
	n       [writerStates]int
	shadows int // of n[Warm]

	// Connecting.
	dialFails                   int // in a row
	failedAt, retryAt, outageAt time.Duration
	verified                    GenerationID  // the newest generation for which a dial ended well
	contact                     time.Duration // last good contact
	restful                     bool          // nothing failed since the last good contact
	rests                       int           // idle closes before RestShort, each by a connection made after the one before
	restedAt, restUntil         time.Duration
	spareSince                  time.Duration // since then an unused connection stands, when there is one

	// Floor.
	act            activity
	target, ahead  int // in the present set, in the one that warms up
	share          int // of an allocation
	lent, lendNow  int // writers kept for siblings that cannot be connected
	lentAt         time.Duration
	health         Health
	healthAt       time.Duration
	until          time.Duration // of the quarantine
	quarantine     time.Duration // its length
	released       time.Duration // when the last one ended
	exchangeFails  int           // in a row
	brokeAt        time.Duration
	window         [2]tally // now and before
	rolled         time.Duration
	latency        time.Duration // smoothed
	heard, probeAt time.Duration
	probing        bool
	probeAnew      bool
	cold           bool          // the next time it is choosable its weight grows slowly
	rampFrom       time.Duration // never: full weight
	weight         uint32
	listed         []WriterID // as it stands in the view
	stale          bool       // listed differs from the active writers
	cause          string
}

// live is the number of connections that count for a generation: those for choice, and warm ones that are no reserve.
func (e *endpoint) live(gen *generation) int {
	if gen == nil || !gen.fresh || gen.state == Current {
		return e.n[Active] + e.n[Warm] - e.shadows
	}
	n := 0
	for _, w := range e.writers {
		if w.gen == gen && (w.state == Active || w.state == Warm && !w.shadow) {
			n++
		}
	}
	return n
}

// dialling is the number of connections on their way for a generation.
func (e *endpoint) dialling(gen *generation) int {
	n := 0
	if e.n[Dialing] == 0 {
		return 0
	}
	for _, w := range e.writers {
		if w.state == Dialing && !w.shadow && (w.gen == gen || !gen.fresh && w.gen.state != Outgoing) {
			n++
		}
	}
	return n
}

// dial begins a connection. The caller has asked mayDial.
func (c *Control) dial(e *endpoint, gen *generation, why Purpose) {
	c.lastWriter++
	w := &writer{id: c.lastWriter, ep: e, gen: gen, purpose: why, shadow: why == Reserve, dialled: c.now}
	c.writers[w.id] = w
	e.writers = append(e.writers, w)
	gen.writers++
	e.n[Dialing]++
	c.count[Dialing]++
	if why == OnDemand {
		e.group.demandDials++
	} else {
		e.group.refillDials++
	}
	c.totals.Dials[why]++
	c.do(Command{Do: DoDial, Group: e.group.id, Generation: gen.id, Endpoint: e.id, Writer: w.id, Addr: e.addr, Purpose: why})
}

// setState moves a writer between states and keeps every counter.
func (c *Control) setState(w *writer, to WriterState) {
	e := w.ep
	if w.state == Dialing {
		if w.purpose == OnDemand {
			e.group.demandDials--
		} else {
			e.group.refillDials--
		}
	}
	if w.state == Active || to == Active {
		e.stale = true
	}
	if w.shadow {
		if w.state == Warm {
			e.shadows--
		}
		if to == Warm {
			e.shadows++
		} else if to != writerStates {
			w.shadow = false
		}
	}
	e.n[w.state]--
	c.count[w.state]--
	w.state = to
	if to < writerStates {
		e.n[to]++
		c.count[to]++
	}
}

// promote puts a warm writer up for choice.
func (c *Control) promote(w *writer) {
	e := w.ep
	if e.cold && e.n[Active] == 0 {
		c.ramp(e)
	}
	c.setState(w, Active)
	e.spareSince = max(e.spareSince, c.now)
	// An exchange that waited has its writer; the shell's next Demand says how many still wait.
	if e.group.want > 0 {
		e.group.want--
	} else if c.wantAny > 0 && c.serves(e.group) {
		c.wantAny--
	}
	c.do(Command{Do: DoPromote, Group: e.group.id, Generation: w.gen.id, Endpoint: e.id, Writer: w.id})
}

// demote takes a writer out of choice; its exchange goes on.
func (c *Control) demote(w *writer) {
	c.setState(w, Draining)
	w.moved = c.now
	c.drainDue = min(c.drainDue, c.now+c.set.DrainTTL)
	c.totals.Demoted++
	c.do(Command{Do: DoDemote, Group: w.ep.group.id, Generation: w.gen.id, Endpoint: w.ep.id, Writer: w.id})
}

// close ends a writer that carries nothing, or whose time is over.
func (c *Control) close(w *writer) {
	c.do(Command{Do: DoClose, Group: w.ep.group.id, Generation: w.gen.id, Endpoint: w.ep.id, Writer: w.id})
	c.totals.Closed++
	c.remove(w)
}

// remove forgets a writer, and its generation and endpoint when it was the last that they waited for.
func (c *Control) remove(w *writer) {
	c.setState(w, writerStates)
	e := w.ep
	if i, found := slices.BinarySearchFunc(e.writers, w.id, func(o *writer, id WriterID) int { return int(int64(o.id) - int64(id)) }); found {
		e.writers = slices.Delete(e.writers, i, i+1)
	}
	delete(c.writers, w.id)
	c.untag(w)
	c.forget(e)
}

// untag takes a writer out of its generation.
func (c *Control) untag(w *writer) {
	gen := w.gen
	gen.writers--
	c.retire(gen)
}

// retag carries a writer over into another generation.
func (c *Control) retag(w *writer, gen *generation) {
	gen.writers++
	c.untag(w)
	w.gen = gen
}

// forget drops an endpoint that no generation has and no connection leads to.
func (c *Control) forget(e *endpoint) {
	if e.current != nil || e.coming != nil || len(e.writers) > 0 || c.endpoints[e.id] == nil {
		return
	}
	delete(c.endpoints, e.id)
	g := e.group
	g.endpoints = slices.DeleteFunc(g.endpoints, func(o *endpoint) bool { return o == e })
}

// planDrains closes draining writers whose exchange stood still for DrainTTL. That it stood still is the word of a complete Load made after the term: a process that was
// stopped for minutes, or a shell that is late, must not cut exchanges that move.
func (c *Control) planDrains() {
	if !c.due(c.drainDue) {
		return
	}
	c.drainDue = never
	if c.count[Draining] == 0 {
		return
	}
	for _, g := range c.groups {
		for i := len(g.endpoints) - 1; i >= 0; i-- {
			e := g.endpoints[i]
			for j := len(e.writers) - 1; j >= 0 && e.n[Draining] > 0; j-- {
				w := e.writers[j]
				if w.state != Draining {
					continue
				}
				if end := w.moved + c.set.DrainTTL; c.loadedAt >= end {
					c.totals.DrainExpired++
					c.close(w)
				} else if end > c.now {
					c.drainDue = min(c.drainDue, end)
				}
			}
		}
	}
	c.later(c.drainDue)
}

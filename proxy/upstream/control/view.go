package control

import (
	"net/netip"
	"slices"
)

// Weights: whole is an endpoint at full weight. A new one grows from a tenth in tenths over SlowStart; a degraded one has a quarter.
const (
	whole   = 100
	tenth   = 10
	quarter = 4
)

// Choice is one endpoint for choice. Writers are its connections for choice, by age, empty when it rests; the slice is immutable.
type Choice struct {
	Endpoint EndpointID
	Group    GroupID
	Addr     netip.AddrPort
	Weight   uint32 // 1..100
	Writers  []WriterID
	upTo     uint32 // sum of weights up to and with this one
}

// View is what the data plane may know: immutable, made to stand behind an atomic pointer. Revision rises with each change of anything in it.
type View struct {
	Revision  uint64
	Covered   bool  // the admission gate
	Why       Cause // CauseCovered, or why not
	Fallback  bool  // the choices are those of the fallback
	Exhausted bool  // MaxConnections are open or being opened: an exchange without a free writer would wait for another's end
	Choices   []Choice
}

// View returns the present view, never nil. It is a new pointer only when something changed.
func (c *Control) View() *View { return c.view }

// choosable reports whether an endpoint stands in the view.
func (c *Control) choosable(e *endpoint) bool {
	return e.current != nil && e.health != Quarantined && c.serves(e.group) && (e.n[Active] > 0 || c.resting(e))
}

// ramp begins the slow start of an endpoint that is choosable again or for the first time, when somebody else can take the load, and not while its group is just
// starting as a whole.
func (c *Control) ramp(e *endpoint) {
	e.cold = false
	e.rampFrom = never
	gen := e.current
	young := gen != nil && gen.reason == ReasonStart && c.now-gen.activated < c.set.SlowStart
	if c.set.SlowStart > 0 && !young && c.othersAlive(e) {
		e.rampFrom = c.now
	}
}

// weightOf is the present weight.
func (c *Control) weightOf(e *endpoint) uint32 {
	weight := uint32(whole)
	if e.rampFrom != never {
		if c.due(e.rampFrom + c.set.SlowStart) {
			e.rampFrom = never
		} else {
			step := c.set.SlowStart/(tenth-1) + 1
			n := (c.now - e.rampFrom) / step
			weight = tenth * (1 + uint32(n))
			c.later(e.rampFrom + (n+1)*step)
		}
	}
	if e.health == Degraded {
		weight = max(1, weight/quarter)
	}
	return weight
}

// publish makes a new view when the present one is not true any more.
func (c *Control) publish() {
	for _, g := range c.groups {
		if !c.stopped {
			g.state = c.causeOf(g)
		}
	}
	old := c.view
	covered, why := c.covered()
	exhausted := len(c.writers) >= c.set.MaxConnections
	changed := covered != old.Covered || why != old.Why || exhausted != old.Exhausted || c.fallback.on != old.Fallback
	i := 0
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			if c.resting(e) {
				c.later(c.trustedUntil(e))
			}
			if !c.choosable(e) {
				continue
			}
			e.weight = c.weightOf(e)
			if e.stale {
				e.stale = false
				if list := e.active(); !slices.Equal(list, e.listed) {
					e.listed, changed = list, true
				}
			}
			changed = changed || i >= len(old.Choices) || old.Choices[i].Endpoint != e.id || old.Choices[i].Weight != e.weight
			i++
		}
	}
	if !changed && i == len(old.Choices) {
		return
	}
	v := &View{Revision: old.Revision + 1, Covered: covered, Why: why, Fallback: c.fallback.on, Exhausted: exhausted, Choices: make([]Choice, 0, i)}
	sum := uint32(0)
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			if !c.choosable(e) {
				continue
			}
			sum += e.weight
			v.Choices = append(v.Choices, Choice{Endpoint: e.id, Group: g.id, Addr: e.addr, Weight: e.weight, Writers: e.listed, upTo: sum})
		}
	}
	c.view = v
}

// active lists the writers for choice.
func (e *endpoint) active() []WriterID {
	out := make([]WriterID, 0, e.n[Active])
	for _, w := range e.writers {
		if w.state == Active {
			out = append(out, w.id)
		}
	}
	return out
}

// Pick chooses an endpoint for one exchange: two are drawn by weight, and the one with fewer outstanding exchanges for its weight is taken (the power of two
// choices, Mitzenmacher 2001). Outstanding returns the number of running exchanges of v.Choices[i], negative when it can take none now (no free writer); it is
// asked for two, and for the others only when both can take none. Pick returns the index, -1 when no endpoint can take one. Random is 64 uniform bits. It allocates
// nothing and is safe for concurrent use.
func Pick(v *View, random uint64, outstanding func(i int) int) int {
	n := len(v.Choices)
	if n == 0 {
		return -1
	}
	a := v.draw(uint32(random))
	load := outstanding(a)
	if n == 1 {
		if load < 0 {
			return -1
		}
		return a
	}
	b := v.draw(uint32(random >> 32))
	if b == a {
		if b++; b == n {
			b = 0
		}
	}
	other := outstanding(b)
	switch {
	case load < 0 && other < 0:
		for i := range n {
			if i != a && i != b && outstanding(i) >= 0 {
				return i
			}
		}
		return -1
	case load < 0:
		return b
	case other < 0:
		return a
	case uint64(other)*uint64(v.Choices[a].Weight) < uint64(load)*uint64(v.Choices[b].Weight):
		return b
	}
	return a
}

// draw returns an index by weight for 32 uniform bits: the first whose running sum is above the drawn number.
func (v *View) draw(random uint32) int {
	low, high := 0, len(v.Choices)-1
	x := uint32(uint64(random) * uint64(v.Choices[high].upTo) >> 32)
	for low < high {
		if mid := (low + high) / 2; x < v.Choices[mid].upTo {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

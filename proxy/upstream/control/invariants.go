package control

import (
	"fmt"
	"slices"
)

// CheckInvariants recounts everything and returns the first invariant that does not hold, nil when all do. O(writers); for tests and simulations, between two
// Steps.
func (c *Control) CheckInvariants() error {
	for _, check := range [...]func() error{c.checkCounters, c.checkBounds, c.checkGenerations, c.checkFloors, c.checkHealth, c.checkView} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkCounters is I1.
func (c *Control) checkCounters() error {
	var all [writerStates]int
	seen := map[*writer]bool{}
	tagged := map[*generation]int{}
	known := 0
	for _, g := range c.groups {
		refill, demand := 0, 0
		for _, e := range g.endpoints {
			known++
			var n [writerStates]int
			shadows := 0
			for i, w := range e.writers {
				if seen[w] || w.ep != e || c.writers[w.id] != w || i > 0 && e.writers[i-1].id >= w.id {
					return fmt.Errorf("I1: writer %d stands in a wrong place", w.id)
				}
				seen[w] = true
				n[w.state]++
				tagged[w.gen]++
				if w.shadow && w.state == Warm {
					shadows++
				}
				if w.state == Dialing && w.purpose == OnDemand {
					demand++
				} else if w.state == Dialing {
					refill++
				}
			}
			if n != e.n || shadows != e.shadows || c.endpoints[e.id] != e || e.group != g {
				return fmt.Errorf("I1: endpoint %d counts %v and %d shadows, has %v and %d", e.id, e.n, e.shadows, n, shadows)
			}
			if len(e.writers) == 0 && e.current == nil && e.coming == nil {
				return fmt.Errorf("I1: endpoint %d is kept for nothing", e.id)
			}
			for s, k := range n {
				all[s] += k
			}
		}
		if refill != g.refillDials || demand != g.demandDials {
			return fmt.Errorf("I1: group %d counts %d and %d dials, has %d and %d", g.id, g.refillDials, g.demandDials, refill, demand)
		}
		for _, gen := range g.generations() {
			if tagged[gen] != gen.writers {
				return fmt.Errorf("I1: generation %d counts %d writers, has %d", gen.id, gen.writers, tagged[gen])
			}
			delete(tagged, gen)
		}
	}
	if all != c.count || len(seen) != len(c.writers) || known != len(c.endpoints) || len(tagged) > 0 {
		return fmt.Errorf("I1: pool counts %v of %d writers, %d endpoints, has %v of %d, %d; %d generations are retired and have writers",
			c.count, len(c.writers), len(c.endpoints), all, len(seen), known, len(tagged))
	}
	return nil
}

// checkBounds is I2, I9 and I10.
func (c *Control) checkBounds() error {
	if n := len(c.writers); n > max(c.set.MaxConnections, c.grand.open) {
		return fmt.Errorf("I2: %d connections, at most %d", n, c.set.MaxConnections)
	}
	if n := c.count[Dialing]; n > max(c.set.DialsAll, c.grand.dials) {
		return fmt.Errorf("I2: %d dials, at most %d", n, c.set.DialsAll)
	}
	for _, g := range c.groups {
		if g.refillDials > max(c.set.DialsRefill, c.grand.dials) || g.demandDials > max(c.set.DialsDemand, c.grand.dials) {
			return fmt.Errorf("I2: group %d has %d refill and %d demand dials", g.id, g.refillDials, g.demandDials)
		}
	}
	f := c.fallback
	if f.balance < 0 || f.balance > 1 || f.on && (c.set.Fallback == FallbackOff || c.second() == nil) && !c.draining {
		return fmt.Errorf("I9: fallback on %v with balance %v", f.on, f.balance)
	}
	if at, ok := c.Next(); ok && at <= c.now {
		return fmt.Errorf("I10: next tick at %v, now %v", at, c.now)
	}
	return nil
}

// checkGenerations is I3, I4 and I5.
func (c *Control) checkGenerations() error {
	warming := 0
	for _, g := range c.groups {
		if g.active != nil && (g.active.state != Current || g.active.group != g) {
			return fmt.Errorf("I3: active generation %d is %v", g.active.id, g.active.state)
		}
		if g.next != nil {
			if (g.next.state == Warmup) != (g.active != nil) || g.next.state != Warmup && g.next.state != Bootstrap {
				return fmt.Errorf("I3: coming generation %d is %v", g.next.id, g.next.state)
			}
			if g.next.state == Warmup {
				warming++
				if c.warming != g.next {
					return fmt.Errorf("I3: generation %d warms up without leave", g.next.id)
				}
			}
		}
		for _, old := range g.old {
			if old.state != Outgoing || old.writers == 0 {
				return fmt.Errorf("I5: generation %d is %v with %d writers", old.id, old.state, old.writers)
			}
		}
		for _, e := range g.endpoints {
			if err := g.checkWriters(e); err != nil {
				return err
			}
		}
	}
	if warming > 1 || warming == 0 && c.warming != nil {
		return fmt.Errorf("I3: %d generations warm up", warming)
	}
	return nil
}

func (g *group) checkWriters(e *endpoint) error {
	if e.current != nil && e.current != g.active || e.coming != nil && e.coming != g.next {
		return fmt.Errorf("I3: endpoint %d stands in a generation that is gone", e.id)
	}
	for _, w := range e.writers {
		switch {
		case w.gen.state == Outgoing && w.state != Draining && w.state != Dialing:
			return fmt.Errorf("I5: writer %d of outgoing generation %d is %v", w.id, w.gen.id, w.state)
		case w.state == Active && (w.gen != g.active || e.current != g.active || e.health == Quarantined):
			return fmt.Errorf("I4: writer %d is for choice in generation %d, endpoint %v", w.id, w.gen.id, e.health)
		case w.state == Warm && !w.shadow && w.gen != g.next:
			return fmt.Errorf("I4: writer %d is warm in generation %d", w.id, w.gen.id)
		case w.shadow && w.gen != g.active && w.state == Warm:
			return fmt.Errorf("I4: shadow %d belongs to generation %d", w.id, w.gen.id)
		}
	}
	return nil
}

// checkFloors is I6.
func (c *Control) checkFloors() error {
	if c.draining {
		return nil
	}
	limit := c.set.ceiling(len(c.groups))
	present, sets := 0, 0
	least := 0
	for _, g := range c.groups {
		if gen := g.presentSet(); gen != nil {
			for _, e := range gen.endpoints {
				present += e.target
				sets++
				if e.target < c.set.FloorMin {
					least++
				}
			}
		}
	}
	coming := 0
	if c.warming != nil {
		for _, e := range c.warming.endpoints {
			coming += e.ahead
		}
	}
	if present > limit || coming > limit {
		return fmt.Errorf("I6: targets sum to %d and %d, at most %d", present, coming, limit)
	}
	if least > 0 && present < limit {
		return fmt.Errorf("I6: %d of %d targets are below the least, %d of %d are spent", least, sets, present, limit)
	}
	return nil
}

// checkHealth is I7 and I8.
func (c *Control) checkHealth() error {
	for _, g := range c.groups {
		for _, gen := range []*generation{g.active, g.next} {
			if gen != nil && !slices.ContainsFunc(gen.endpoints, func(e *endpoint) bool { return e.health != Quarantined }) && gen == g.active {
				return fmt.Errorf("I7: all endpoints of generation %d are quarantined", gen.id)
			}
		}
		for _, e := range g.endpoints {
			if e.health == Quarantined && !e.probing && !c.draining && (e.until <= c.now || e.until > c.now+max(e.quarantine, c.set.QuarantineMax)) {
				return fmt.Errorf("I8: endpoint %d is quarantined until %v, now %v", e.id, e.until, c.now)
			}
		}
	}
	return nil
}

// checkView is I11.
func (c *Control) checkView() error {
	v := c.view
	i, sum := 0, uint32(0)
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			if !c.choosable(e) {
				continue
			}
			if i >= len(v.Choices) {
				return fmt.Errorf("I11: endpoint %d is missing", e.id)
			}
			got := v.Choices[i]
			sum += got.Weight
			if got.Endpoint != e.id || got.Weight == 0 || got.Weight > whole || got.upTo != sum || !slices.Equal(got.Writers, e.active()) {
				return fmt.Errorf("I11: choice %d is %+v, want endpoint %d with %v", i, got, e.id, e.active())
			}
			i++
		}
	}
	if i != len(v.Choices) || v.Fallback != c.fallback.on {
		return fmt.Errorf("I11: %d choices, want %d", len(v.Choices), i)
	}
	if covered, why := c.covered(); covered != v.Covered || why != v.Why {
		return fmt.Errorf("I11: covered %v %v, view says %v %v", covered, why, v.Covered, v.Why)
	}
	return nil
}

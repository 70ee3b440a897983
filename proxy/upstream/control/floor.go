package control

import "time"

// activity is what the floor of one endpoint follows.
type activity struct {
	outstanding int
	cur, prev   int           // highest outstanding of this window of FloorIdle and of the one before
	rolled      time.Duration // start of this window
	idleSince   time.Duration // while outstanding is 0
	holdUntil   time.Duration
	busy        int // highest target by peak since the last sink
	remembered  int // target that a demand brings back at once
	sunk        bool
}

// report takes a load of the data plane.
func (a *activity) report(now time.Duration, outstanding, peak int) {
	if a.outstanding > 0 && outstanding == 0 || outstanding == 0 && peak > 0 {
		a.idleSince = now
	}
	a.outstanding = outstanding
	a.note(now, peak)
}

// note lets the peak rise and ends a sink.
func (a *activity) note(now time.Duration, n int) {
	if n == 0 {
		return
	}
	if a.sunk {
		a.sunk, a.rolled = false, now
	}
	if a.outstanding == 0 {
		a.idleSince = now
	}
	a.cur = max(a.cur, n)
}

// recover brings the target back at once and holds it.
func (a *activity) recover(now, hold time.Duration) {
	if a.sunk {
		a.sunk, a.rolled, a.idleSince = false, now, now
	}
	a.holdUntil = now + hold
}

// inherit gives a new endpoint its share of what the group needs.
func (a *activity) inherit(now, hold time.Duration, share int) {
	a.remembered = max(1, share)
	a.recover(now, hold)
}

// peak is the highest number of exchanges at once over the last one to two windows.
func (a *activity) peak() int { return max(a.cur, a.prev, a.outstanding) }

// byPeak is the peak and a quarter more, at least one more.
func byPeak(peak, least int) int {
	if peak == 0 {
		return least
	}
	return max(least, peak+(peak+3)/4)
}

// desired is the target before the ceiling of the sum.
func (a *activity) desired(now time.Duration, set *Settings) int {
	want := a.unbounded(now, set)
	if set.FloorMax > 0 {
		want = min(want, max(set.FloorMax, set.FloorMin))
	}
	return want
}

// unbounded is the target that activity asks for.
func (a *activity) unbounded(now time.Duration, set *Settings) int {
	if set.FloorMode == Static {
		return max(set.FloorStatic, set.FloorMin)
	}
	if a.sunk {
		return set.FloorMin
	}
	want := byPeak(a.peak(), set.FloorMin)
	if now < a.holdUntil {
		want = max(want, a.remembered)
	}
	return want
}

// advance rolls the windows and sinks the floor of an endpoint that was idle for FloorIdle and is not held.
func (c *Control) advance(a *activity) {
	if a.sunk {
		return
	}
	a.busy = max(a.busy, byPeak(a.peak(), c.set.FloorMin))
	if a.outstanding == 0 {
		if end := max(a.idleSince+c.set.FloorIdle, a.holdUntil); c.due(end) {
			a.remembered = max(a.busy, c.set.FloorMin)
			a.cur, a.prev, a.busy, a.sunk = 0, 0, 0, true
			return
		}
	} else {
		c.later(a.holdUntil)
	}
	if c.due(a.rolled + c.set.FloorIdle) {
		a.prev = a.cur
		if c.now >= a.rolled+2*c.set.FloorIdle {
			a.prev = a.outstanding
		}
		a.cur, a.rolled = a.outstanding, c.now
		c.later(a.rolled + c.set.FloorIdle)
	}
}

// planFloors computes the target of every endpoint: what activity asks for, under the ceiling, and what failing siblings leave over.
func (c *Control) planFloors() {
	present := c.scratch[:0]
	for i, more := 0, true; more; i++ {
		more = false
		for _, g := range c.groups {
			if gen := g.presentSet(); gen != nil && i < len(gen.endpoints) {
				present = append(present, gen.endpoints[i])
				more = true
			}
		}
	}
	c.scratch = present
	ceiling := c.set.ceiling(len(c.groups))
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			e.target, e.ahead, e.lendNow = 0, 0, 0
		}
	}
	c.allocate(present, ceiling)
	for _, e := range present {
		e.target = e.share
	}
	for _, g := range c.groups {
		if gen := g.presentSet(); gen != nil {
			c.lend(gen)
		}
	}
	if gen := c.warming; gen != nil {
		for _, e := range present {
			if e.group != gen.group {
				ceiling -= e.target // theirs stays theirs when this set becomes active
			}
		}
		c.allocate(gen.endpoints, max(1, ceiling))
		for _, e := range gen.endpoints {
			e.ahead = e.share
		}
		c.lend(gen)
	}
	for _, g := range c.groups {
		for _, e := range g.endpoints {
			if e.lendNow >= e.lent {
				e.lent, e.lentAt = e.lendNow, c.now
			} else if c.due(e.lentAt + lendHold) {
				e.lent, e.lentAt = e.lendNow, c.now
			}
		}
	}
}

// presentSet is the active generation, or the one that bootstraps.
func (g *group) presentSet() *generation {
	if g.active != nil {
		return g.active
	}
	return g.next
}

// goal is how many writers a generation wants of an endpoint. One that is carried over must have at once what both sets want of it.
func (gen *generation) goal(e *endpoint) int {
	switch {
	case gen.state == Warmup:
		return e.ahead + e.lent
	case e.coming != nil && !e.coming.fresh:
		return max(e.target, e.ahead) + e.lent
	}
	return e.target + e.lent
}

// allocate gives every endpoint the share that it desires; when the sum is above the ceiling, one each in turn until it is spent.
func (c *Control) allocate(list []*endpoint, ceiling int) {
	sum := 0
	for _, e := range list {
		c.advance(&e.act)
		e.share = e.act.desired(c.now, &c.set)
		sum += e.share
	}
	if sum <= ceiling {
		return
	}
	for _, e := range list {
		e.share = 0
	}
	given := 0
	for round := 1; given < ceiling; round++ {
		for _, e := range list {
			if given < ceiling && e.act.desired(c.now, &c.set) >= round {
				given++
				e.share = round
			}
		}
	}
}

// lendHold is how long writers that stand in for a sibling are kept after it came back, so that one that comes and goes moves nothing.
const lendHold = 30 * time.Second

// lend spreads the writers that failing endpoints lack over those that can be connected: refill goes to the same endpoint first, then to the group.
func (c *Control) lend(gen *generation) {
	missing, able := 0, 0
	for _, e := range gen.endpoints {
		switch {
		case e.health == Quarantined || e.dialFails > 0 && e.dialFails >= c.set.FastTries || c.hangs(e):
			missing += max(0, gen.goal(e)-e.lent-e.live(gen))
		case c.canLend(e):
			able++
		}
	}
	if missing == 0 || able == 0 {
		return
	}
	share, rest := missing/able, missing%able
	for _, e := range gen.endpoints {
		if e.health == Quarantined || !c.canLend(e) {
			continue
		}
		n := share
		if rest > 0 {
			n++
			rest--
		}
		e.lendNow = max(e.lendNow, n)
	}
}

// canLend reports whether an endpoint holds connections well.
func (c *Control) canLend(e *endpoint) bool { return e.rests == 0 && !c.doubtful(e) }

package bucket

import "time"

// sweepBatch is how many idle principals a call may remove. Each call leaves at most one, so the removal keeps up.
const sweepBatch = 4

// grant is what the core tells an observer of each grant.
type grant struct {
	principal string
	bytes     int64
	released  time.Duration // the moment of the decision
	shared    time.Duration // the moment the shared bucket was charged
	own       time.Duration // the moment the principal's bucket was charged
	group     *group
	grouped   time.Duration // the moment the group's bucket was charged
}

// core is the governor without lock, clock and wake-ups: events with their moment go in, streams to be woken come out in
// the list of answered ones. now never decreases.
//
// Invariants between events, besides those of principal and group: I1 waiting is the number of streams in the principals' queues and
// lanes, held of those in lanes; I2 if the ring is not empty the shared bucket, and nothing else, cannot serve its head yet; I3 no parked principal is due; I4 a
// principal that is known, has no stream and whose bucket is full goes within a bounded number of calls.
type core struct {
	total        account
	totalLimit   Limit
	perPrincipal Limit
	quantum      int64 // 0: no limit is on

	fresh   account // of a principal that never took a byte: its level is at least anyone's
	known   map[string]*principal
	ring    principals
	parked  parking
	idle    principals
	groups  [Groups]group
	waiting int
	held    int
	granted uint64
	refusal error // what every request gets instead of a quantum: ErrRevoked, ErrClosed or nil

	answered *Stream // to be woken, linked by next
	observe  func(grant)
}

func newCore(total, perPrincipal Limit, now time.Duration) *core {
	c := &core{known: make(map[string]*principal), perPrincipal: perPrincipal, totalLimit: total}
	c.total, c.fresh = newAccount(total, now), newAccount(perPrincipal, now)
	c.quantum = quantumOf(total, perPrincipal)
	for i := range c.groups {
		c.groups[i].index = i
	}
	return c
}

func quantumOf(total, perPrincipal Limit) int64 {
	shared, own := total.Quantum(), perPrincipal.Quantum()
	if shared == 0 || own == 0 {
		return shared + own
	}
	return min(shared, own)
}

// open adds a stream to a principal, which is found with what its bucket holds, or made. A new one is like one that has been
// there for ever: a forgotten one was full, so forgetting it gave it nothing, even if the limit changed meanwhile.
func (c *core) open(s *Stream, key string) {
	p := c.known[key]
	if p == nil {
		p = &principal{key: key, account: c.fresh}
		c.known[key] = p
	} else if p.place == placeIdle {
		c.idle.remove(p)
	}
	p.streams++
	s.owner = p
}

// shut ends a stream. A request of it that waits is answered with ErrClosed. Only the first call counts.
func (c *core) shut(s *Stream, now time.Duration) {
	if s.closed {
		return
	}
	s.closed = true
	if s.waiting {
		c.withdraw(s)
		c.answer(s, 0, ErrClosed)
	}
	p := s.owner
	p.streams--
	if p.streams == 0 {
		c.idle.push(p, placeIdle)
	}
	c.sweep(sweepBatch, now)
	c.pump(now)
}

// ask puts a request into its principal's queue and serves whatever can be served. The caller looks at s.waiting.
func (c *core) ask(s *Stream, want int64, now time.Duration) {
	s.want, s.asked, s.granted, s.err = want, now, 0, nil
	if c.refusal != nil {
		s.err = c.refusal
		return
	}
	s.waiting = true
	c.waiting++
	if s.group != nil {
		s.group.waiting++
	}
	p := s.owner
	p.push(s)
	if p.place == placeNone {
		c.settle(p, now)
	}
	c.pump(now)
}

// cancel takes back a request that still waits; those behind it may be served by that.
func (c *core) cancel(s *Stream, now time.Duration) {
	if !s.waiting {
		return
	}
	c.withdraw(s)
	if p := s.owner; p.place == placeParked {
		c.parked.remove(p)
		c.settle(p, now)
	}
	c.pump(now)
}

// withdraw removes a waiting stream from its queue, and its principal from the turns if it was the last one.
func (c *core) withdraw(s *Stream) {
	c.unwait(s)
	if s.held {
		c.unhold(s)
		return
	}
	p := s.owner
	p.remove(s)
	if p.head != nil {
		return
	}
	switch p.place {
	case placeRing:
		c.ring.remove(p)
	case placeParked:
		c.parked.remove(p)
	}
}

// unwait ends the waiting of a stream.
func (c *core) unwait(s *Stream) {
	s.waiting = false
	c.waiting--
	if g := s.group; g != nil {
		g.waiting--
		g.uncall(s)
	}
}

// settle gives a principal with a queue and no place the place that its bucket allows.
func (c *core) settle(p *principal, now time.Duration) {
	if p.head == nil {
		return
	}
	if due := p.account.when(c.need(p.head)); due > now {
		c.parked.push(p, due)
		return
	}
	c.ring.push(p, placeRing)
}

func (c *core) need(s *Stream) int64 {
	n := s.want
	if c.quantum > 0 {
		n = min(n, c.quantum)
	}
	if g := s.group; g != nil && g.most > 0 {
		n = min(n, g.most)
	}
	return n
}

// pump grants, turn by turn, all that can be granted at now.
func (c *core) pump(now time.Duration) {
	for len(c.parked) > 0 && c.parked[0].due <= now {
		p := c.parked[0]
		c.parked.remove(p)
		c.ring.push(p, placeRing)
	}
	for {
		if c.held > 0 {
			c.call(now)
		}
		p := c.ring.head
		if p == nil {
			return
		}
		s := p.head
		n := c.need(s)
		shared, own := c.total.when(n), p.account.when(n)
		switch {
		case own > now: // the queue's head changed after it got its place in the ring
			c.ring.remove(p)
			c.parked.push(p, own)
		case s.group != nil && s.group.bars(s, n, now):
			c.hold(s)
		case shared > now:
			return
		default:
			due := max(s.asked, shared, own)
			if s.group != nil {
				due = max(due, s.group.account.when(n))
			}
			c.grant(s, n, due, now)
		}
	}
}

// grant gives the ring's head its quantum, which was due at a moment not after now, and what is left of its queue another place.
func (c *core) grant(s *Stream, n int64, due, now time.Duration) {
	p := s.owner
	g := grant{principal: p.key, bytes: n, released: now, group: s.group}
	g.shared = c.total.charge(n, s.asked, due, now)
	g.own = p.account.charge(n, s.asked, due, now)
	c.granted += uint64(n)
	c.ring.remove(p)
	p.remove(s)
	c.unwait(s)
	if s.group != nil {
		g.grouped = s.group.account.charge(n, s.asked, due, now)
		s.group.granted += uint64(n)
	}
	c.answer(s, n, nil)
	c.settle(p, now)
	if c.observe != nil {
		c.observe(g)
	}
}

// answer hands a result to the shell, which wakes the stream.
func (c *core) answer(s *Stream, n int64, err error) {
	s.granted, s.err = n, err
	s.next = c.answered
	c.answered = s
}

// wake returns the moment at which pump can next grant something, and whether anybody waits for it. A parked principal
// that comes due while the ring waits for the shared bucket needs no wake-up of its own.
func (c *core) wake() (time.Duration, bool) {
	if p := c.ring.head; p != nil {
		return c.total.when(c.need(p.head)), true
	}
	at := never
	if c.held > 0 {
		at = c.wakeHeld()
	}
	if len(c.parked) > 0 {
		p := c.parked[0]
		at = min(at, max(p.due, c.total.when(c.need(p.head))))
	}
	return at, c.waiting > 0
}

// refuse answers all that wait, and all that ask later, with err; nil lets them ask again.
func (c *core) refuse(err error) {
	c.refusal = err
	if err == nil {
		return
	}
	for _, p := range c.known {
		c.refuseQueue(&p.queue, err)
		if p.lanes == nil {
			continue
		}
		for i := range p.lanes {
			c.refuseQueue(&p.lanes[i].queue, err)
		}
	}
}

func (c *core) refuseQueue(q *queue, err error) {
	for s := q.head; s != nil; s = q.head {
		c.withdraw(s)
		c.answer(s, 0, err)
	}
}

// configure changes both limits at now. Those waiting keep their order; principals that the old limit parked
// come after those in the ring, in the order they were due.
func (c *core) configure(total, perPrincipal Limit, now time.Duration) {
	c.total.configure(total, now)
	c.totalLimit, c.perPrincipal = total, perPrincipal
	c.quantum = quantumOf(total, perPrincipal)
	c.refit()
	c.fresh.configure(perPrincipal, now)
	for _, p := range c.known {
		p.account.configure(perPrincipal, now)
	}
	for len(c.parked) > 0 {
		p := c.parked[0]
		c.parked.remove(p)
		c.ring.push(p, placeRing)
	}
	c.pump(now)
}

// sweep forgets up to most principals without streams whose buckets are full. The first ones closed were the first to
// refill, but for differences below the 100 ms that a bucket takes to fill.
func (c *core) sweep(most int, now time.Duration) {
	for ; most > 0 && c.idle.head != nil && c.idle.head.account.full(now); most-- {
		p := c.idle.head
		c.idle.remove(p)
		delete(c.known, p.key)
	}
}

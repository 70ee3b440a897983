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
}

// core is the governor without lock, clock and wake-ups: events with their moment go in, streams to be woken come out in
// the list of answered ones. now never decreases.
//
// Invariants between events, besides those of principal: I1 waiting is the number of streams in the principals' queues;
// I2 if the ring is not empty the shared bucket cannot serve its head yet; I3 no parked principal is due; I4 a
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
	waiting int
	granted uint64
	refusal error // what every request gets instead of a quantum: ErrRevoked, ErrClosed or nil

	answered *Stream // to be woken, linked by next
	observe  func(grant)
}

func newCore(total, perPrincipal Limit, now time.Duration) *core {
	c := &core{known: make(map[string]*principal), perPrincipal: perPrincipal, totalLimit: total}
	c.total, c.fresh = newAccount(total, now), newAccount(perPrincipal, now)
	c.quantum = quantumOf(total, perPrincipal)
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
	p := s.owner
	p.remove(s)
	s.waiting = false
	c.waiting--
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
	if c.quantum == 0 {
		return s.want
	}
	return min(s.want, c.quantum)
}

// pump grants, turn by turn, all that can be granted at now.
func (c *core) pump(now time.Duration) {
	for len(c.parked) > 0 && c.parked[0].due <= now {
		p := c.parked[0]
		c.parked.remove(p)
		c.ring.push(p, placeRing)
	}
	for p := c.ring.head; p != nil; p = c.ring.head {
		s := p.head
		n := c.need(s)
		shared, own := c.total.when(n), p.account.when(n)
		if own > now {
			// The queue's head changed after it got its place in the ring.
			c.ring.remove(p)
			c.parked.push(p, own)
			continue
		}
		if shared > now {
			return
		}
		waited := s.asked < now
		due := max(s.asked, shared, own)
		g := grant{principal: p.key, bytes: n, released: now}
		g.shared = c.total.charge(n, due, now, waited)
		g.own = p.account.charge(n, due, now, waited)
		c.granted += uint64(n)
		c.ring.remove(p)
		p.remove(s)
		s.waiting = false
		c.waiting--
		c.answer(s, n, nil)
		c.settle(p, now)
		if c.observe != nil {
			c.observe(g)
		}
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
	if len(c.parked) > 0 {
		p := c.parked[0]
		return max(p.due, c.total.when(c.need(p.head))), true
	}
	return 0, false
}

// refuse answers all that wait, and all that ask later, with err; nil lets them ask again.
func (c *core) refuse(err error) {
	c.refusal = err
	if err == nil {
		return
	}
	for _, p := range c.known {
		for p.head != nil {
			s := p.head
			c.withdraw(s)
			c.answer(s, 0, err)
		}
	}
}

// configure changes both limits at now. Those waiting keep their order; principals that the old limit parked
// come after those in the ring, in the order they were due.
func (c *core) configure(total, perPrincipal Limit, now time.Duration) {
	c.total.configure(total, now)
	c.totalLimit, c.perPrincipal = total, perPrincipal
	c.quantum = quantumOf(total, perPrincipal)
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

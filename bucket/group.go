package bucket

import "time"

// Groups is how many groups a governor has; they are numbered from 0.
const Groups = 8

// group is a set of streams with a limit of its own, of any number of principals. Guarded by the governor's lock.
//
// Invariants: I1 lanes holds the lanes with streams, and is empty while the group has no limit; I2 reserved is the sum over the called streams, and never more
// than the bucket holds; I3 after an event the bucket cannot cover the first lane's quantum beside what is reserved, or that would exceed most.
type group struct {
	index   int
	limit   Limit
	account account
	most    int64 // greatest quantum of a stream, 0 without a limit
	lanes   lanes // those that the group keeps waiting, in their turns
	waiting int   // streams of the group that wait, for whatever
	granted uint64

	reserved int64  // for streams that were called
	epoch    uint64 // calls of earlier epochs are void
}

// lane is the queue of a principal's streams that wait for the bucket of a group.
type lane struct {
	queue
	prev, next *lane
}

// callAt returns when the first lane can be called with n bytes. Room for a late wake-up is left as for a single quantum.
func (g *group) callAt(n int64) time.Duration {
	if g.reserved > 0 && g.reserved+n > g.most {
		return never
	}
	return g.account.when(g.reserved + n)
}

// bars reports whether a stream whose turn has come at the shared bucket has to wait for its group: it is short, or others of it wait for their turns there.
func (g *group) bars(s *Stream, n int64, now time.Duration) bool {
	if !g.account.on || g.called(s) {
		return false
	}
	return g.lanes.head != nil || g.account.when(g.reserved+n) > now
}

func (g *group) called(s *Stream) bool { return s.reserved > 0 && s.epoch == g.epoch }

// uncall ends what a call reserved.
func (g *group) uncall(s *Stream) {
	if g.called(s) {
		g.reserved -= s.reserved
	}
	s.reserved = 0
}

// uncallAll ends all calls: quanta have changed. Who was called takes its turn at the group anew.
func (g *group) uncallAll() {
	g.epoch++
	g.reserved = 0
}

// fit sets the greatest quantum of the group, by the formula of the package doc; quantum is that of the other limits, 0 for none.
func (g *group) fit(total Limit, quantum int64) {
	switch burst := g.limit.Burst(); {
	case g.limit.Off():
		g.most = 0
	case quantum == 0 || total.Off():
		g.most = g.limit.Quantum()
	case !g.limit.hasHeadroom():
		g.most = burst
	default: // neither rate is above 1 TiB/s and the quantum not above 1 MiB: this fits
		meanwhile := g.limit.BytesPerSecond*quantum/total.BytesPerSecond + 2*g.limit.lateBytes()
		g.most = max(burst-meanwhile, (burst+1)/2)
	}
}

// join makes a stream one of a group, before it asks for the first time.
func (c *core) join(s *Stream, index int) {
	s.group = &c.groups[index]
	if s.owner.lanes == nil {
		s.owner.lanes = new([Groups]lane)
	}
}

// hold lets the first stream of the ring's head wait for its group. A principal that had nothing else to ask for is owed the turn that it used for this.
func (c *core) hold(s *Stream) {
	p := s.owner
	p.remove(s)
	l := &p.lanes[s.group.index]
	if l.head == nil {
		s.group.lanes.push(l)
	}
	l.push(s)
	s.held = true
	c.held++
	if p.head == nil {
		c.ring.remove(p)
		p.owed = true
	}
}

// unhold takes a stream out of its lane.
func (c *core) unhold(s *Stream) {
	g, l := s.group, &s.owner.lanes[s.group.index]
	l.remove(s)
	if l.head == nil {
		g.lanes.remove(l)
	}
	s.held = false
	c.held--
}

// call gives those whose turn has come at their group back to their principals, with the tokens reserved that they need there.
func (c *core) call(now time.Duration) {
	for i := range c.groups {
		g := &c.groups[i]
		for l := g.lanes.head; l != nil; l = g.lanes.head {
			s := l.head
			n := c.need(s)
			if g.callAt(n) > now {
				break
			}
			c.unhold(s)
			if l.head != nil { // the principal's next one has the turn after those of the others
				g.lanes.remove(l)
				g.lanes.push(l)
			}
			s.reserved, s.epoch = n, g.epoch
			g.reserved += n
			c.comeBack(s, now)
		}
	}
}

// comeBack puts a called stream before the others of its principal. A principal that is owed a turn has it now; else it has its next one as everybody.
func (c *core) comeBack(s *Stream, now time.Duration) {
	p := s.owner
	p.pushFront(s)
	owed := p.owed
	switch {
	case p.place == placeRing && !owed:
		return
	case p.place == placeRing:
		c.ring.remove(p)
	case p.place == placeParked:
		c.parked.remove(p)
	}
	p.owed = false
	c.settle(p, now)
	if owed && p.place == placeRing {
		c.ring.remove(p)
		c.ring.pushFront(p, placeRing)
	}
}

// configureGroup changes the limit of a group at now. Those who wait for a limit that goes are the first of their principals.
func (c *core) configureGroup(index int, l Limit, now time.Duration) {
	g := &c.groups[index]
	g.limit = l
	g.account.configure(l, now)
	g.fit(c.totalLimit, c.quantum)
	g.uncallAll()
	if l.Off() {
		c.release(g, now)
	}
	c.pump(now)
}

// release gives all that a group keeps waiting back to their principals.
func (c *core) release(g *group, now time.Duration) {
	for l := g.lanes.head; l != nil; l = g.lanes.head {
		p := l.head.owner
		for s := l.tail; s != nil; s = l.tail {
			c.unhold(s)
			p.pushFront(s)
		}
		if p.place == placeParked {
			c.parked.remove(p)
		}
		if p.place == placeNone {
			c.settle(p, now)
		}
	}
}

// refit takes over a change of the other limits.
func (c *core) refit() {
	for i := range c.groups {
		c.groups[i].fit(c.totalLimit, c.quantum)
		c.groups[i].uncallAll()
	}
}

// drain empties the buckets that others may have spent from.
func (c *core) drain(now time.Duration) {
	c.total.drain(now)
	for i := range c.groups {
		c.groups[i].account.drain(now)
		c.groups[i].uncallAll()
	}
}

// wakeHeld returns the moment at which one that waits for its group can next be granted something, never when another one has to be served before.
func (c *core) wakeHeld() time.Duration {
	at := never
	for i := range c.groups {
		g := &c.groups[i]
		if g.lanes.head == nil {
			continue
		}
		n := c.need(g.lanes.head.head)
		at = min(at, max(g.callAt(n), c.total.when(n)))
	}
	return at
}

// queue is a linked list through the streams themselves.
type queue struct{ head, tail *Stream }

func (q *queue) push(s *Stream) {
	s.prev, s.next = q.tail, nil
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.next = s
	}
	q.tail = s
}

func (q *queue) pushFront(s *Stream) {
	s.prev, s.next = nil, q.head
	if q.head == nil {
		q.tail = s
	} else {
		q.head.prev = s
	}
	q.head = s
}

func (q *queue) remove(s *Stream) {
	if s.prev == nil {
		q.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		q.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// lanes is a linked list through the lanes themselves.
type lanes struct{ head, tail *lane }

func (l *lanes) push(n *lane) {
	n.prev, n.next = l.tail, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
}

func (l *lanes) remove(n *lane) {
	if n.prev == nil {
		l.head = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
}

package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// line is the waiting sessions of one class in their order. Exactly one of the two trees is in use: turns under Ordered, sizes
// under a size order.
type line struct {
	turns tree[*lane]
	sizes tree[*session]
	count int
	round int64  // Ordered: turn of the last session that took a slot
	pass  uint64 // stride pass of the class's next slot
}

func (l *line) bytes() int64 { return l.turns.bytes() + l.sizes.bytes() }

// firstBytes returns the sizes of the first n sessions together.
func (l *line) firstBytes(n int) int64 {
	if l.turns.root != nil {
		return l.turns.firstBytes(n)
	}
	return l.sizes.firstBytes(n)
}

// lineCursor walks the sessions of a class in their order; the class must not change meanwhile.
type lineCursor struct {
	turns treeCursor[*lane]
	sizes treeCursor[*session]
}

func (l *line) cursor() lineCursor { return l.cursorAt(0) }

// cursorAt begins behind that many sessions.
func (l *line) cursorAt(n int) lineCursor { return lineCursor{l.turns.cursor(n), l.sizes.cursor(n)} }

// next returns the next session, nil at the end.
func (c *lineCursor) next() *session {
	if e := c.turns.entry(); e != nil {
		c.turns.advance()
		return e.item.at(int(e.turn - e.item.round))
	}
	if e := c.sizes.entry(); e != nil {
		c.sizes.advance()
		return e.item
	}
	return nil
}

// first returns the session at the front of the class, nil when there is none.
func (l *line) first() *session {
	c := l.cursor()
	return c.next()
}

// key returns the place of a waiting session in the order of its class.
func (s *Scheduler) orderKey(ses *session) orderKey {
	if s.policy.Strategy != Ordered {
		return ses.laneKey()
	}
	l := s.laneOf(ses)
	return l.turnKey(l.index(ses.laneKey()))
}

// sizeOrder is the static key of a session under the size orders.
//
//	smallest-first  arrival + AgingEvery log2(size)   every AgingEvery waited counts as much as half the size
//	fair-sojourn    V(join) + remaining bytes          finish under equal sharing, kept while the session lives
func (s *Scheduler) sizeOrder(ses *session) int64 {
	if ses.moved {
		return ses.order
	}
	switch s.policy.Strategy {
	case SmallestFirst:
		if s.policy.AgingEvery == 0 {
			return ses.size
		}
		return int64(ses.arrival) + int64(float64(s.policy.AgingEvery)*math.Log2(float64(max(ses.size, 1))))
	case FairSojourn:
		if ses.order != 0 {
			return ses.order
		}
		return s.fair.join(ses)
	default:
		return 0
	}
}

// enlane adds a waiting session to the order of that class.
func (s *Scheduler) enlane(ses *session, class Class) {
	c := &s.lines[class]
	if c.count == 0 {
		c.pass = max(c.pass, s.lastPass)
	}
	c.count++
	ses.lifted = class
	ses.order = s.sizeOrder(ses)
	l := ses.principal.needLane(class)
	if s.policy.Strategy != Ordered {
		l.add(ses)
		c.sizes.insert(ses.laneKey(), ses.weight(), ses)
		return
	}
	if l.count == 0 {
		l.round = max(l.round, c.round)
		l.arrival, l.number = int64(ses.arrival), ses.number
	} else if int64(ses.arrival) < l.arrival {
		s.forward(c, l, ses)
	}
	i := l.index(ses.laneKey())
	l.add(ses)
	c.turns.insert(l.turnKey(int(l.count)-1), ses.weight(), l)
	if i < int(l.count)-1 {
		s.stales(l, i)
	}
}

// forward moves a lane to the place in the ring of a session that came before the one that made it non-empty: a returning holder of an old place must
// not stand behind other principals' because a newcomer of his own was faster. It costs the length of the lane, and a crowd that returns in any order
// does so rarely: for each session that is the earliest yet.
func (s *Scheduler) forward(c *line, l *lane, ses *session) {
	bytes := make([]int64, l.count)
	for i := range bytes { // all are out before the key changes: the tree reads the number from the lane
		bytes[i], _ = c.turns.remove(l.turnKey(i))
	}
	l.arrival, l.number = int64(ses.arrival), ses.number
	for i, n := range bytes {
		c.turns.insert(l.turnKey(i), n, l)
	}
}

// resize gives a waiting session another size. Under Ordered that moves nobody: only estimates read it.
func (s *Scheduler) resize(ses *session, size int64) {
	s.waiting.bytes[ses.class] -= ses.weight()
	ses.size = size
	s.waiting.bytes[ses.class] += ses.weight()
	l := s.laneOf(ses)
	if l.count > 1 {
		l.many.setBytes(ses.laneKey(), ses.weight())
	}
	s.rebyte(l, l.index(ses.laneKey()), 1)
}

// giveBack returns the turn that a session paid for a slot it gave up: otherwise it would wait behind the first session of
// everybody else.
func (s *Scheduler) giveBack(ses *session) {
	l := ses.stay.charged
	ses.stay.charged = nil
	if l == nil || l.round == 0 {
		return
	}
	l.round--
	if l.count == 0 || s.policy.Strategy != Ordered {
		return
	}
	turns := &s.lines[l.class].turns
	bytes, _ := turns.remove(l.turnKey(int(l.count)))
	turns.insert(l.turnKey(0), bytes, l)
	s.stales(l, 0)
}

// unlane takes a waiting session out of the order of its class.
func (s *Scheduler) unlane(ses *session) {
	if s.unlaneApart(ses) {
		return
	}
	c, l := &s.lines[ses.lifted], ses.principal.lane(ses.lifted)
	c.count--
	if s.policy.Strategy != Ordered {
		c.sizes.remove(ses.laneKey())
		l.drop(ses)
		return
	}
	i := l.index(ses.laneKey())
	c.turns.remove(l.turnKey(int(l.count) - 1))
	l.drop(ses)
	if i < int(l.count) {
		s.stales(l, i)
	}
}

// served takes a session that gets a slot out of its lane and moves the lane's turn on. The turn that is used up is the first,
// whichever session of the lane used it. It returns the lane that paid a turn: none when the operator gave the session its place.
func (s *Scheduler) served(ses *session) *lane {
	if s.unlaneApart(ses) {
		return nil
	}
	c, l := &s.lines[ses.lifted], ses.principal.lane(ses.lifted)
	if s.policy.Strategy != Ordered {
		s.unlane(ses)
		c.round = max(c.round, l.round)
		l.round++
		return l
	}
	c.count--
	i := l.index(ses.laneKey())
	if lag := c.round - 1 - l.round; lag > 0 {
		s.shift(c, l, lag)
	}
	c.round = max(c.round, l.round)
	c.turns.remove(l.turnKey(0))
	l.drop(ses)
	l.round++
	if i > 0 {
		s.stales(l, 0)
	}
	return l
}

// shift moves all turns of a lane that was passed over by that many rounds: an absence earns nothing. It costs no more than the
// rounds that went by.
func (s *Scheduler) shift(c *line, l *lane, by int64) {
	n := int(min(by, int64(l.count)))
	from := l.round + by + int64(l.count) - int64(n)
	for i := range n {
		bytes, _ := c.turns.remove(l.turnKey(i))
		c.turns.insert(orderKey{from + int64(i), l.arrival, l.number}, bytes, l)
	}
	l.round += by
	if l.count > 1 {
		s.stales(l, 0)
	}
}

// stales notes that the turns of a lane from index i on may carry the bytes of a neighbour. Short lanes are put right at once,
// long ones a piece each tick: only estimates read these bytes.
func (s *Scheduler) stales(l *lane, i int) {
	if left := int(l.count) - i; left <= 32 {
		s.rebyte(l, i, left)
		if int(l.stale) >= i {
			l.stale = -1
		}
		return
	}
	if l.stale < 0 || i < int(l.stale) {
		l.stale = int32(i)
	}
	if !l.listed {
		l.listed = true
		s.staleLanes = append(s.staleLanes, l)
	}
}

// rebyte gives n turns of a lane from index i on the sizes of their sessions.
func (s *Scheduler) rebyte(l *lane, i, n int) {
	if n <= 0 || l.count == 0 {
		return
	}
	turns := &s.lines[l.class].turns
	if l.count == 1 {
		turns.setBytes(l.turnKey(0), l.one.weight())
		return
	}
	for at := l.many.cursor(i); n > 0 && at.entry() != nil; n-- {
		turns.setBytes(l.turnKey(i), at.entry().bytes)
		at.advance()
		i++
	}
}

// repair puts a bounded number of stale byte sums right.
func (s *Scheduler) repair() {
	const budget = 256
	for left := budget; left > 0 && len(s.staleLanes) > 0; {
		l := s.staleLanes[0]
		if l.stale >= 0 && l.stale < l.count && s.policy.Strategy == Ordered {
			n := min(left, int(l.count-l.stale))
			s.rebyte(l, int(l.stale), n)
			l.stale += int32(n)
			left -= n
			if l.stale < l.count {
				break
			}
		}
		l.stale, l.listed = -1, false
		s.staleLanes = slices.Delete(s.staleLanes, 0, 1)
		left--
	}
}

// reorder builds all orders anew under the policy in force: sessions enter by arrival, rounds and passes stay. O(n log n).
func (s *Scheduler) reorder() {
	s.reunite()
	all := make([]*session, 0, s.waiting.count)
	for ses := range s.waiting.all {
		all = append(all, ses)
		l := ses.principal.needLane(ses.lifted)
		l.one, l.many, l.count, l.stale = nil, tree[*session]{}, 0, -1
	}
	slices.SortFunc(all, func(a, b *session) int {
		if a.arrival != b.arrival {
			return cmp.Compare(a.arrival, b.arrival)
		}
		return cmp.Compare(a.number, b.number)
	})
	for c := range s.lines {
		s.lines[c].turns, s.lines[c].sizes, s.lines[c].count = tree[*lane]{}, tree[*session]{}, 0
	}
	s.fair.restart(s)
	s.influx.forget(s.fair.v)
	passes := [Classes]uint64{}
	for c := range s.lines {
		passes[c] = s.lines[c].pass
	}
	for _, ses := range all {
		s.enlane(ses, ses.lifted)
	}
	for c := range s.lines {
		s.lines[c].pass = passes[c]
	}
}

// liftedClass is the class after aging: one class a full AgingEvery of waiting, never above Release.
func (s *Scheduler) liftedClass(now time.Duration, ses *session) Class {
	if s.policy.AgingEvery == 0 || ses.class <= Release {
		return ses.class
	}
	steps := (ses.waited() + s.aged(now, ses)) / s.policy.AgingEvery
	return s.calendar.liftable(ses.class, Class(max(int64(Release), int64(ses.class)-int64(steps))))
}

// lift moves a session into the class that aging gives it. One that the operator moved stays where it is, unless a window parts the class it stands in from
// its own: then it goes back to where it may start, by its arrival.
func (s *Scheduler) lift(now time.Duration, ses *session) {
	apart := ses.lifted != ses.class && (s.calendar.restricted(ses.class) || s.calendar.restricted(ses.lifted))
	if ses.moved && !apart || ses.state == parked {
		return
	}
	if lifted := s.liftedClass(now, ses); lifted != ses.lifted {
		s.unlane(ses)
		s.enlane(ses, lifted)
		s.moves.Lifted[lifted]++
	}
}

func (s *Scheduler) stride(class int) uint64 { return strideUnit / uint64(s.policy.Weights[class]) }

// charge moves the class's pass by one slot. A class whose clients were absent keeps at most one turn of the lightest
// class as credit, so that it cannot take slots in a row for it later.
func (s *Scheduler) charge(class int) {
	var longest uint64
	least := s.lines[class].pass
	for c := range s.lines {
		longest = max(longest, s.stride(c))
		if s.lines[c].count > 0 && !s.calendar.bars[c] {
			least = min(least, s.lines[c].pass)
		}
	}
	s.lastPass = max(s.lastPass, least)
	if served := s.lines[class].pass; served > longest {
		for c := range s.lines {
			s.lines[c].pass = max(s.lines[c].pass, served-longest)
		}
	}
	s.lines[class].pass += s.stride(class)
}

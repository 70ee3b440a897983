package queue

// Places that an operator gives. Under a size order a moved session stands in the order with a key next to that of the first or the last. Under Ordered a
// session's turn follows from its lane, so a moved one gets a lane of its own, apart from its principal's, of one turn that no grant to others shifts: the
// principal's other sessions stay where they are and pay nothing for it.

// strayOf names the sessions of one principal in one class that stand apart.
type strayOf struct {
	principal *principal
	class     Class
}

// laneOf returns the lane that a waiting session stands in.
func (s *Scheduler) laneOf(ses *session) *lane {
	if ses.moved {
		if l := s.apart[ses]; l != nil {
			return l
		}
	}
	return ses.principal.lane(ses.lifted)
}

// enlaneFirst adds a session that is in no order before all others of a class, and takes its arrival before that of the first.
func (s *Scheduler) enlaneFirst(ses *session, class Class) {
	c := &s.lines[class]
	first := c.first()
	if first == nil {
		s.enlane(ses, class)
		return
	}
	ses.arrival = min(ses.arrival, first.arrival-1)
	if s.policy.Strategy == Ordered {
		key := c.turns.at(0).key()
		s.enlaneApart(ses, class, orderKey{turn: key.turn, arrival: key.arrival - 1})
		return
	}
	s.enlaneBy(ses, class, first.order)
}

// enlaneLast adds a session that is in no order behind all others of a class. Its arrival is now.
func (s *Scheduler) enlaneLast(ses *session, class Class) {
	c := &s.lines[class]
	if c.count == 0 {
		s.enlane(ses, class)
		return
	}
	if s.policy.Strategy == Ordered {
		last := c.turns.at(c.count - 1).key()
		key := orderKey{last.turn, int64(ses.arrival), s.number + 1}
		if !last.before(key) {
			key.turn++
		}
		s.enlaneApart(ses, class, key)
		return
	}
	last := c.sizes.at(c.count - 1).key()
	order := last.turn
	if !last.before(orderKey{order, int64(ses.arrival), ses.number}) {
		order++
	}
	s.enlaneBy(ses, class, order)
}

// enlaneBy adds a session to a size order with a key that is not its own. To the virtual system of equal sharing it is then one with that F.
func (s *Scheduler) enlaneBy(ses *session, class Class, order int64) {
	if s.fair.on {
		s.fair.leave(ses)
		if order > s.fair.v {
			s.fair.n++
			s.fair.next = 0
		}
	}
	ses.order, ses.moved = order, true
	s.enlane(ses, class)
}

// enlaneApart adds a session to the order of its class under Ordered, in a lane of its own with that turn and place in the ring.
func (s *Scheduler) enlaneApart(ses *session, class Class, key orderKey) {
	c := &s.lines[class]
	c.count++
	ses.lifted, ses.moved, ses.order = class, true, 0
	s.number++ // no other lane has it: a principal's lane may still have the number of this session
	l := &lane{round: key.turn, arrival: key.arrival, number: s.number, one: ses, count: 1, stale: -1, class: class, used: true}
	if s.apart == nil {
		s.apart, s.strays = map[*session]*lane{}, map[strayOf]*tree[*lane]{}
	}
	s.apart[ses] = l
	c.turns.insert(l.turnKey(0), ses.weight(), l)
	of := strayOf{ses.principal, class}
	if s.strays[of] == nil {
		s.strays[of] = &tree[*lane]{}
	}
	s.strays[of].insert(l.turnKey(0), 0, l)
}

// unlaneApart takes a session that stands apart out of the order of its class; false when it does not.
func (s *Scheduler) unlaneApart(ses *session) bool {
	if !ses.moved {
		return false
	}
	ses.moved = false
	l := s.apart[ses]
	if l == nil {
		return false
	}
	delete(s.apart, ses)
	of := strayOf{ses.principal, ses.lifted}
	strays := s.strays[of]
	strays.remove(l.turnKey(0))
	if strays.root == nil {
		delete(s.strays, of)
	}
	c := &s.lines[ses.lifted]
	c.count--
	c.turns.remove(l.turnKey(0))
	return true
}

// straysBefore counts the sessions of a principal in a class that stand apart, before a place in the order of the class or, without one, all of them.
func (s *Scheduler) straysBefore(p *principal, class Class, end orderKey, within bool) int {
	strays := s.strays[strayOf{p, class}]
	switch {
	case strays == nil:
		return 0
	case within:
		return strays.before(end)
	default:
		return strays.len()
	}
}

// reunite dissolves all lanes of single sessions; the caller builds the orders anew.
func (s *Scheduler) reunite() {
	for ses := range s.waiting.all {
		ses.moved = false
	}
	s.apart, s.strays = nil, nil
}

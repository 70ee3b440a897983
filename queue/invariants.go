package queue

import (
	"errors"
	"fmt"
)

// CheckInvariants recounts everything and returns the first invariant that does not hold, nil when all do. O(n log n);
// for tests and simulations. It may only be called between calls of the other methods.
func (s *Scheduler) CheckInvariants() error {
	for _, check := range [...]func() error{s.checkStates, s.checkActive, s.checkWaiting, s.checkDue, s.checkWindows, s.checkOperated} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkStates is I1 and I5.
func (s *Scheduler) checkStates() error {
	var byClass [stateCount][Classes]int
	type sums struct{ refs, live, active int }
	principals := map[*principal]sums{}
	held := 0
	sessions := 0
	objects := map[*object]int{}
	for ses := range s.sessions.all {
		key := ses.key()
		if s.sessions.find(&key) != ses {
			return fmt.Errorf("I1: session %d is filed under another key", ses.number)
		}
		if ses.state >= stateCount {
			return fmt.Errorf("I1: session %d is gone and still filed", ses.number)
		}
		sessions++
		if b := ses.bundle(); b != nil && (ses.size != b.size() || b.left() < 0 || len(b.members) > maxMembers+1 || ses.protocol) {
			return fmt.Errorf("I1: session %d of %d bytes has %d objects of %d, %d of them to come", ses.number, ses.size, len(b.members), b.size(), b.left())
		}
		objects[ses.object]++
		byClass[ses.state][ses.class]++
		sum := principals[ses.principal]
		sum.refs++
		if ses.state != paused {
			sum.live++
		}
		if ses.state == active {
			sum.active++
		}
		principals[ses.principal] = sum
		held += ses.held()
	}
	if sessions != s.sessions.count {
		return fmt.Errorf("I1: %d sessions are filed, counter says %d", sessions, s.sessions.count)
	}
	for o, n := range objects {
		if o.refs != n || s.objects[o.name] != o {
			return fmt.Errorf("I1: an object has %d sessions, counter says %d", n, o.refs)
		}
	}
	if len(objects) != len(s.objects) {
		return fmt.Errorf("I1: %d objects have sessions, %d are known", len(objects), len(s.objects))
	}
	if byClass != s.byClass {
		return fmt.Errorf("I1: sessions by state and class are %v, counters say %v", byClass, s.byClass)
	}
	if held != s.held {
		return fmt.Errorf("I1: %d held requests, counter says %d", held, s.held)
	}
	if len(principals) != len(s.principals) {
		return fmt.Errorf("I1: %d principals have sessions, %d are known", len(principals), len(s.principals))
	}
	for p, sum := range principals {
		if sum != (sums{int(p.refs), int(p.live), int(p.active)}) {
			return fmt.Errorf("I1: a principal has %v sessions, counters say %d, %d, %d", sum, p.refs, p.live, p.active)
		}
		if full := sum.active >= s.policy.PerPrincipal; full != (p.fullIndex >= 0) || full && s.full[p.fullIndex] != p {
			return fmt.Errorf("I1: a principal with %d active sessions is in the wrong place of those at their share", sum.active)
		}
	}
	if total(byClass[active]) != len(s.active) || total(byClass[waiting]) != s.waiting.count || total(byClass[paused]) != s.paused.count ||
		total(byClass[parked]) != s.parked.count {
		return errors.New("I1: lists and states disagree")
	}
	if limit := max(s.policy.QueueLimit, s.lowered); s.sessions.count > limit {
		return fmt.Errorf("I5: %d sessions exceed the limit %d", s.sessions.count, limit)
	}
	return nil
}

// checkActive is I2, I3 and I7 for a policy that was not lowered below what is active; a lowered one is for the caller.
func (s *Scheduler) checkActive() error {
	for i, ses := range s.active {
		st := ses.stay
		if ses.state != active || st == nil || st.activeIndex != i {
			return fmt.Errorf("I1: active entry %d is not active", i)
		}
		if st.running < 0 || st.openBytes < 0 || st.running == 0 && st.openBytes != 0 {
			return fmt.Errorf("I1: session %d has %d responses with %d open bytes", ses.number, st.running, st.openBytes)
		}
		if ses.held() > 0 && st.running < s.policy.RangesPerSession && !ses.yielding {
			return fmt.Errorf("I7: session %d holds requests with a free place", ses.number)
		}
		if ses.yielding && st.running == 0 {
			return fmt.Errorf("I7: session %d was told to give way and did not", ses.number)
		}
		if len(st.covered) > maxIntervals {
			return fmt.Errorf("I1: session %d has %d intervals", ses.number, len(st.covered))
		}
	}
	for i, ses := range s.present {
		if ses.state != waiting || ses.held() == 0 || ses.present.index != i {
			return fmt.Errorf("I7: present entry %d does not wait with held requests", i)
		}
	}
	return nil
}

// checkWaiting is I4: lanes, orders and lists hold the same sessions in the same order.
func (s *Scheduler) checkWaiting() error {
	ordered := s.policy.Strategy == Ordered
	inLines, inLanes, present := 0, 0, 0
	for c := range s.lines {
		l := &s.lines[c]
		if err := l.turns.check(); err != nil {
			return fmt.Errorf("I4: turns of class %d: %w", c, err)
		}
		if err := l.sizes.check(); err != nil {
			return fmt.Errorf("I4: sizes of class %d: %w", c, err)
		}
		if n := l.turns.len() + l.sizes.len(); n != l.count || ordered && l.sizes.len() > 0 || !ordered && l.turns.len() > 0 {
			return fmt.Errorf("I4: class %d counts %d, its orders %d and %d", c, l.count, l.turns.len(), l.sizes.len())
		}
		cur, n := l.cursor(), 0
		for ses := cur.next(); ses != nil; ses = cur.next() {
			if ses.state != waiting || int(ses.lifted) != c || ses.lifted > ses.class {
				return fmt.Errorf("I4: session %d does not belong into class %d", ses.number, c)
			}
			if rank, _ := s.rankInLine(ses); rank != n {
				return fmt.Errorf("I4: session %d has rank %d, is at %d", ses.number, rank, n)
			}
			n++
		}
		inLines += n
	}
	for _, p := range s.principals {
		for c := range Class(Classes) {
			l := p.lane(c)
			if l == nil {
				continue
			}
			if l.count > 1 && l.many.len() != int(l.count) || l.count <= 1 && l.many.root != nil || (l.count == 1) != (l.one != nil) {
				return errors.New("I4: a lane is not what it counts")
			}
			for i := range int(l.count) {
				ses := l.at(i)
				if ses.principal != p || ses.lifted != c || l.index(ses.laneKey()) != i {
					return fmt.Errorf("I4: session %d is in a wrong lane or place", ses.number)
				}
				if ordered && s.lines[c].turns.find(l.turnKey(i)) == nil {
					return fmt.Errorf("I4: session %d has no turn %d", ses.number, l.round+int64(i))
				}
			}
			inLanes += int(l.count)
		}
	}
	inLanes += len(s.apart)
	members := s.fair.others.len()
	for ses := range s.waiting.all {
		if ses.order > s.fair.v {
			members++
		}
		if ses.held() > 0 {
			present++
		}
	}
	if s.fair.on && members != s.fair.n {
		return fmt.Errorf("I1: %d sessions share the link in the virtual system, counter says %d", members, s.fair.n)
	}
	if inLines != s.waiting.count || inLanes != s.waiting.count || present != len(s.present) {
		return fmt.Errorf("I4: %d sessions wait, %d in orders, %d in lanes; %d present, %d listed", s.waiting.count, inLines, inLanes, present, len(s.present))
	}
	return nil
}

// checkDue is I6: nothing that nobody attends to stays for ever.
func (s *Scheduler) checkDue() error {
	inWheel := 0
	for i := range s.due.slots {
		for ses := s.due.slots[i]; ses != nil; ses = ses.wheelNext {
			if ses.state >= stateCount || int(ses.wheelSlot-1)%wheelSlots != i {
				return fmt.Errorf("I6: session %d stands in a wrong slot of the wheel", ses.number)
			}
			inWheel++
		}
	}
	if inWheel != s.due.count {
		return fmt.Errorf("I6: %d in the wheel, counter says %d", inWheel, s.due.count)
	}
	for ses := range s.sessions.all {
		attended := (ses.state == waiting || ses.state == parked) && ses.held() > 0
		if ses.state == active {
			if attended = ses.stay.running > 0 || ses.stay.idleAt > 0; !attended {
				return fmt.Errorf("I6: session %d has a slot, no response and no end", ses.number)
			}
			continue
		}
		due := s.dueOf(ses)
		if !attended && (due == never || ses.wheelSlot == 0 || int64(due/TickEvery) < int64(ses.wheelSlot)-1 && int64(ses.wheelSlot)-1 != s.due.cursor) {
			return fmt.Errorf("I6: session %d would stay for ever in state %d", ses.number, ses.state)
		}
	}
	return nil
}

// check proves the tree: keys in order, leaves linked, counts and sums of every node.
func (t *tree[T]) check() error {
	if t.root == nil {
		return nil
	}
	var last *treeEntry[T]
	leaf := t.root
	for leaf.inner != nil {
		leaf = leaf.inner.kids[0]
	}
	n := 0
	for ; leaf != nil; leaf = leaf.next {
		for i := range leaf.entries {
			if last != nil && !last.key().before(leaf.entries[i].key()) {
				return errors.New("entries are out of order")
			}
			last = &leaf.entries[i]
			n++
		}
	}
	count, _, err := t.root.check()
	if err == nil && count != n {
		err = fmt.Errorf("%d entries in the tree, %d in its leaves", count, n)
	}
	return err
}

func (n *treeNode[T]) check() (count int, bytes int64, err error) {
	if n.inner == nil {
		count, bytes = n.totals()
		if count == 0 {
			err = errors.New("a leaf is empty")
		}
		return count, bytes, err
	}
	for i := range n.inner.n {
		c, b, err := n.inner.kids[i].check()
		if err != nil {
			return 0, 0, err
		}
		if c != int(n.inner.counts[i]) || b != n.inner.sums[i] {
			return 0, 0, fmt.Errorf("a child has %d entries of %d bytes, its parent says %d of %d", c, b, n.inner.counts[i], n.inner.sums[i])
		}
		if n.inner.kids[i].first().before(n.inner.firsts[i]) || i > 0 && !n.inner.firsts[i-1].before(n.inner.firsts[i]) {
			return 0, 0, errors.New("a separator is out of order")
		}
		count, bytes = count+c, bytes+b
	}
	return count, bytes, nil
}

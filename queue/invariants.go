package queue

import (
	"errors"
	"fmt"
)

// CheckInvariants recounts everything and returns the first invariant that does not hold, nil when all do. O(n log n);
// for tests and simulations. It may only be called between calls of the other methods.
func (s *Scheduler) CheckInvariants() error {
	for _, check := range [...]func() error{s.checkStates, s.checkActive, s.checkWaiting, s.checkDue} {
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
	for key, ses := range s.sessions {
		if key != ses.key {
			return fmt.Errorf("I1: session %d is filed under another key", ses.number)
		}
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
		held += ses.waiters.count
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
		if sum != (sums{p.refs, p.live, p.active}) {
			return fmt.Errorf("I1: a principal has %v sessions, counters say %d, %d, %d", sum, p.refs, p.live, p.active)
		}
	}
	if total(byClass[active]) != len(s.active) || total(byClass[waiting]) != s.waiting.count || total(byClass[paused]) != s.paused.count {
		return errors.New("I1: lists and states disagree")
	}
	if len(s.sessions) > s.policy.QueueLimit {
		return fmt.Errorf("I5: %d sessions exceed the limit %d", len(s.sessions), s.policy.QueueLimit)
	}
	return nil
}

// checkActive is I2, I3 and I7 for a policy that was not lowered below what is active; a lowered one is for the caller.
func (s *Scheduler) checkActive() error {
	for i, ses := range s.active {
		if ses.state != active || ses.activeIndex != i {
			return fmt.Errorf("I1: active entry %d is not active", i)
		}
		if ses.running < 0 || ses.openBytes < 0 || ses.running == 0 && ses.openBytes != 0 {
			return fmt.Errorf("I1: session %d has %d responses with %d open bytes", ses.number, ses.running, ses.openBytes)
		}
		if ses.waiters.count > 0 && ses.running < s.policy.RangesPerSession {
			return fmt.Errorf("I7: session %d holds requests with a free place", ses.number)
		}
		if len(ses.covered) > maxIntervals {
			return fmt.Errorf("I1: session %d has %d intervals", ses.number, len(ses.covered))
		}
	}
	return nil
}

// checkWaiting is I4: lanes, trees and lists hold the same sessions in the same order.
func (s *Scheduler) checkWaiting() error {
	inTrees := 0
	for c := range s.trees {
		var cur cursor
		cur.reset(&s.trees[c])
		var before *session
		for ses := cur.next(); ses != nil; ses = cur.next() {
			if ses.state != waiting || int(ses.lifted) != c {
				return fmt.Errorf("I4: session %d does not belong into class %d", ses.number, c)
			}
			if before != nil && !before.node.order.before(ses.node.order) {
				return fmt.Errorf("I4: sessions %d and %d are out of order", before.number, ses.number)
			}
			before = ses
			inTrees++
		}
	}
	inLanes := 0
	for _, p := range s.principals {
		for c := range p.lanes {
			l := &p.lanes[c]
			for i, ses := range l.queue {
				if ses.state != waiting || ses.principal != p || int(ses.lifted) != c {
					return fmt.Errorf("I4: session %d is in a wrong lane", ses.number)
				}
				if !l.listed && ses.node.order.round != l.round+uint64(i) {
					return fmt.Errorf("I4: session %d has round %d in lane round %d at %d", ses.number, ses.node.order.round, l.round, i)
				}
				if i > 0 {
					b := l.queue[i-1]
					if b.arrival > ses.arrival || b.arrival == ses.arrival && b.number > ses.number || !b.node.order.before(ses.node.order) {
						return fmt.Errorf("I4: sessions %d and %d of one principal are out of order", b.number, ses.number)
					}
				}
				inLanes++
			}
		}
	}
	if inTrees != s.waiting.count || inLanes != s.waiting.count {
		return fmt.Errorf("I4: %d sessions wait, %d in trees, %d in lanes", s.waiting.count, inTrees, inLanes)
	}
	return nil
}

// checkDue is I6: nothing that nobody attends to stays for ever.
func (s *Scheduler) checkDue() error {
	for i, ses := range s.due {
		if ses.dueIndex != i || s.sessions[ses.key] != ses {
			return fmt.Errorf("I6: due entry %d is wrong", i)
		}
		if parent := (i - 1) / 2; i > 0 && s.due.less(i, parent) {
			return fmt.Errorf("I6: due entry %d is out of order", i)
		}
	}
	for _, ses := range s.sessions {
		attended := ses.state == waiting && ses.waiters.count > 0 || ses.state == active && ses.running > 0
		if !attended && ses.dueIndex < 0 {
			return fmt.Errorf("I6: session %d would stay for ever in state %d", ses.number, ses.state)
		}
	}
	return nil
}

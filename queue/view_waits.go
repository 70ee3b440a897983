package queue

import (
	"slices"
	"time"
)

// waitBook is the waiting sessions by applied class, the longest wait first, and the bytes of each class. Who begins to wait comes last in its class, so a
// list that costs nothing beyond a session's links holds almost all; those that get another class while they wait, or are resumed, come between others: only
// these stand in a tree.
type waitBook struct {
	lists  [Classes]list
	others [Classes]tree[*session]
	bytes  [Classes]int64 // parked ones included; each session at most 4 TiB
	count  int
}

// push takes in a session whose class and start of the wait are set.
func (b *waitBook) push(ses *session) {
	b.count++
	if tail := b.lists[ses.class].tail; tail != nil && ses.ageKey().before(tail.ageKey()) {
		b.others[ses.class].insert(ses.ageKey(), 0, ses)
		return
	}
	b.lists[ses.class].push(ses)
}

// remove takes a session out; class and start of the wait are those it came in with.
func (b *waitBook) remove(ses *session) {
	b.count--
	if others := &b.others[ses.class]; others.root != nil {
		if _, found := others.remove(ses.ageKey()); found {
			return
		}
	}
	b.lists[ses.class].remove(ses)
}

// oldest returns the session of a class that has waited longest, nil when none waits.
func (b *waitBook) oldest(class Class) *session {
	first := b.lists[class].head
	if b.others[class].root != nil {
		if other := b.others[class].at(0).item; first == nil || other.ageKey().before(first.ageKey()) {
			return other
		}
	}
	return first
}

// all calls yield with every waiting session by the start of the wait, then by number; the book must not change meanwhile.
func (b *waitBook) all(yield func(*session) bool) {
	var heads [Classes]*session
	var others [Classes]treeCursor[*session]
	for c := range heads {
		heads[c], others[c] = b.lists[c].head, b.others[c].cursor(0)
	}
	for {
		var first *session
		class, tree := 0, false
		for c := range heads {
			if at := heads[c]; at != nil && (first == nil || at.ageKey().before(first.ageKey())) {
				first, class, tree = at, c, false
			}
			if e := others[c].entry(); e != nil && (first == nil || e.item.ageKey().before(first.ageKey())) {
				first, class, tree = e.item, c, true
			}
		}
		if first == nil {
			return
		}
		if tree {
			others[class].advance()
		} else {
			heads[class] = first.link.next
		}
		if !yield(first) {
			return
		}
	}
}

// collect returns what all yields, for a loop that changes the book.
func (b *waitBook) collect() []*session {
	return slices.AppendSeq(make([]*session, 0, b.count), b.all)
}

// oldestWait is the longest wait for a slot of a class.
func (s *Scheduler) oldestWait(now time.Duration, class Class) time.Duration {
	if ses := s.waiting.oldest(class); ses != nil {
		return now - ses.since
	}
	return 0
}

// reage gives a waiting or parked session another class and size in the books; its places are the caller's.
func (s *Scheduler) reage(ses *session, class Class, size int64) {
	s.byClass[ses.state][ses.class]--
	s.waiting.bytes[ses.class] -= ses.weight()
	if ses.state == waiting && ses.class != class {
		s.waiting.remove(ses)
		ses.class = class
		s.waiting.push(ses)
	}
	ses.class, ses.size = class, size
	s.byClass[ses.state][class]++
	s.waiting.bytes[class] += ses.weight()
}

package queue

// A listing of one principal or class goes through their sessions only. Those of a principal that wait stand in its lanes, at most one in each class, and under
// Ordered apart from them where an operator moved one; those of a class in its line and, lifted by age, in lines above it. Each of these strands is in the order
// of its line, so that merging them by their places gives the order of the queue without a look at the others.

// strand is waiting sessions in the line of one class, the first in the order of the line first: a lane, those of a principal that stand apart, or all of the line.
type strand struct {
	class  int
	lane   *lane
	strays *tree[*lane]
	whole  *line
	cursor lineCursor // of a whole line: behind the head
	count  int
	at     int      // how many are behind
	head   *session // the one at that index, nil at the end
	ahead  int      // sessions before it in the merged order
}

// session returns the one at index i of a lane or of those apart.
func (t *strand) session(i int) *session {
	if t.strays != nil {
		return t.strays.at(i).item.one
	}
	return t.lane.at(i)
}

// seek goes to index i.
func (t *strand) seek(s *Scheduler, i int) {
	if t.whole != nil && (t.head == nil || i != t.at+1) {
		t.cursor = t.whole.cursorAt(i)
	}
	t.at, t.head = i, nil
	if i >= t.count {
		return
	}
	if t.whole == nil {
		t.head = t.session(i)
		t.ahead, _ = s.place(t.head, false)
		return
	}
	t.head, t.ahead = t.cursor.next(), i // its rank is known
	for c := range s.lines {
		t.ahead += s.before(c, t.class, i)
	}
}

// from is the index of the first session that is not among the first n of the line.
func (t *strand) from(s *Scheduler, n int) int {
	l := &s.lines[t.class]
	switch {
	case n >= l.count:
		return t.count
	case t.whole != nil:
		return n
	}
	var key orderKey
	if s.policy.Strategy == Ordered {
		key = l.turns.at(n).key()
	} else {
		key = l.sizes.at(n).key()
	}
	switch {
	case t.strays != nil:
		return t.strays.before(key)
	case s.policy.Strategy == Ordered:
		return t.lane.turnsBefore(key)
	default:
		return t.lane.index(key)
	}
}

// strands are those that a listing goes through.
type strands struct {
	all [2 * Classes]strand
	n   int
}

func (t *strands) add(one strand) {
	t.all[t.n] = one
	t.n++
}

// strandsOf are those of a principal.
func (s *Scheduler) strandsOf(p *principal) (t strands) {
	for c := range Class(Classes) {
		if l := p.lane(c); l != nil && l.count > 0 {
			t.add(strand{class: int(c), lane: l, count: int(l.count)})
		}
		if strays := s.strays[strayOf{p, c}]; strays != nil {
			t.add(strand{class: int(c), strays: strays, count: strays.len()})
		}
	}
	return t
}

// strandsIn are the lines in which sessions of a class may stand: its own, and as many above it as any were lifted through. That is known without a look at them,
// as nobody stands below his class: by as many as the lines down to one hold more than wait of their classes, sessions were lifted into them from below.
func (s *Scheduler) strandsIn(class Class) (t strands) {
	lifted := 0
	for c := range s.lines[:class+1] {
		if lifted == 0 {
			t = strands{}
		}
		if l := &s.lines[c]; l.count > 0 {
			t.add(strand{class: c, whole: l, count: l.count})
		}
		lifted += s.lines[c].count - s.byClass[waiting][c]
	}
	return t
}

// walk calls yield with the sessions that have at least skip others before them, and how many, in the merged order, until it returns false. O(log n) for each.
func (t *strands) walk(s *Scheduler, skip int, yield func(ses *session, ahead int) bool) {
	taken, _ := s.firstOfOrder(max(skip, 0))
	all := t.all[:t.n]
	for i := range all {
		all[i].seek(s, all[i].from(s, taken[all[i].class]))
	}
	for {
		var first *strand
		for i := range all {
			if one := &all[i]; one.head != nil && (first == nil || one.ahead < first.ahead) {
				first = one
			}
		}
		if first == nil || first.ahead >= skip && !yield(first.head, first.ahead) {
			return
		}
		first.seek(s, first.at+1)
	}
}

// alongStrands is inOrder for a query of a principal or a class.
func (l *lister) alongStrands(t strands) (whole bool) {
	next := &l.page.Next
	l.resume()
	whole = true
	var last *session
	t.walk(l.s, next.Position, func(ses *session, ahead int) bool {
		if l.full() {
			whole = false
			return false
		}
		l.look(ses, ahead)
		next.Position, last = ahead+1, ses
		return true
	})
	if last != nil {
		next.ID = l.s.idOf(last)
	}
	return whole
}

// alongLanes counts the waiting sessions of one principal, in no order: the mark's position is how many were looked at.
func (l *lister) alongLanes(t strands) (whole bool) {
	next := &l.page.Next
	behind := 0
	for i := range t.all[:t.n] {
		one := &t.all[i]
		for ; next.Position-behind < one.count; next.Position++ {
			if l.full() {
				return false
			}
			l.look(one.session(next.Position-behind), 0)
		}
		behind += one.count
	}
	return true
}

// Principals calls yield with the names of the principals that have sessions, in no order, until it returns false. Yield may call the scheduler, and a shell may
// give its lock back in it: who has sessions all the while is named once; who comes or goes meanwhile may be named, or not.
func (s *Scheduler) Principals(yield func(name string) bool) {
	for name := range s.principals { // a map may change under its iteration (Go specification, For statements with range clause)
		if !yield(name) {
			return
		}
	}
}

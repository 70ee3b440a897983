package queue

import "time"

// ListQuery says which sessions a listing shows.
type ListQuery struct {
	Active, Waiting, Remembered bool   // the states
	OneClass                    bool   // only of Class
	Class                       Class  // applied
	Principal                   string // only of this one, by its name; empty = of all
}

// listPhase is the part of a listing that a mark stands in.
type listPhase uint8

// The parts in their order: active sessions by their start, waiting ones by their place, those that an operator paused by the start of their wait, remembered
// ones by the start of their pause.
const (
	listActive listPhase = iota
	listOrder
	listParked
	listRemembered
	listEnd
)

// Mark is the place in a listing behind the sessions shown so far. The zero value is its beginning. A place in the order follows the session it was made
// behind; when that waits no more it is the number of those before it, so that a moving queue may show a session twice or not at all, an unmoved one never.
type Mark struct {
	Phase    uint8
	Position int           // in the order: sessions before the mark
	ID       SessionID     // in the order: the session before it, 0 = none
	Since    time.Duration // in the other parts: what the last session is filed by
	Number   uint64
}

// Page is a piece of a listing.
type Page struct {
	Sessions []Shown
	Next     Mark // where the listing goes on
	More     bool // it may: nothing else is known of what follows
	Matched  int  // sessions that the query matches, shown or, with a limit of 0, only counted
	Visited  int  // sessions that were looked at
}

// List shows up to limit sessions behind a mark, and looks at no more than visit of them; with a limit of 0 it counts, and its marks are those of a count. It
// changes nothing. O((visit + shown) log n), of those that it looks at: of one principal its own, and all that are remembered if it has remembered ones.
func (s *Scheduler) List(now time.Duration, q ListQuery, from Mark, limit, visit int) (p Page) {
	p.Next = from
	s.ListInto(now, &q, &p, limit, visit)
	return p
}

// ListInto is List from where a page ends: it appends up to limit sessions to those of the page, and adds to its numbers.
func (s *Scheduler) ListInto(now time.Duration, q *ListQuery, p *Page, limit, visit int) {
	l := lister{s: s, now: s.advance(now), query: q, limit: p.Matched + limit, visit: p.Visited + visit, count: limit == 0, page: p}
	p.More = false
	wanted := [listEnd]bool{q.Active, q.Waiting, q.Waiting, q.Remembered}
	if q.Principal != "" {
		who := s.principals[q.Principal]
		if who == nil {
			p.Next = Mark{Phase: uint8(listEnd)}
			return
		}
		l.principal = who
		waits := who.live > who.active
		wanted = [listEnd]bool{q.Active && who.active > 0, q.Waiting && waits, q.Waiting && waits, q.Remembered && who.refs > who.live}
	}
	for ; p.Next.Phase < uint8(listEnd); p.Next = (Mark{Phase: p.Next.Phase + 1}) {
		phase := listPhase(p.Next.Phase)
		if !wanted[phase] {
			continue
		}
		whole := true
		switch phase {
		case listActive:
			whole = l.byAge(&s.entered[active])
		case listOrder:
			whole = l.waiting()
		case listParked:
			whole = l.byAge(&s.entered[parked])
		default:
			whole = l.byAge(&s.entered[paused])
		}
		if !whole {
			p.More = true
			return
		}
	}
}

// lister is one call of List.
type lister struct {
	s            *Scheduler
	now          time.Duration
	query        *ListQuery
	principal    *principal // nil = all
	limit, visit int        // of the page's numbers
	count        bool       // nothing is shown, and limit does not count
	page         *Page
}

// full reports whether the page can take no more.
func (l *lister) full() bool {
	return l.page.Visited >= l.visit || !l.count && l.page.Matched >= l.limit
}

// look takes one session in.
func (l *lister) look(ses *session, ahead int) {
	l.page.Visited++
	if l.query.OneClass && ses.class != l.query.Class || l.principal != nil && ses.principal != l.principal {
		return
	}
	l.page.Matched++
	if !l.count {
		l.page.Sessions = append(l.page.Sessions, l.s.show(l.now, ses, ahead))
	}
}

// byAge lists the sessions of a state; false when the page was full before their end.
func (l *lister) byAge(t *tree[*session]) bool {
	next := &l.page.Next
	skip := 0
	if next.Number > 0 {
		skip = t.before(orderKey{int64(next.Since), 0, next.Number + 1})
	}
	for at := t.cursor(skip); at.entry() != nil; at.advance() {
		if l.full() {
			return false
		}
		ses := at.entry().item
		l.look(ses, 0)
		next.Since, next.Number = ses.since, ses.number
	}
	return true
}

// waiting lists the sessions of the order.
func (l *lister) waiting() (whole bool) {
	switch {
	case l.principal != nil && l.count:
		return l.alongLanes(l.s.strandsOf(l.principal))
	case l.principal != nil:
		return l.alongStrands(l.s.strandsOf(l.principal))
	case l.query.OneClass:
		return l.alongStrands(l.s.strandsIn(l.query.Class))
	default:
		return l.inOrder()
	}
}

// resume finds the place of the mark again: behind its session, wherever that stands now.
func (l *lister) resume() {
	next := &l.page.Next
	if ses := l.s.sessions.byHash[uint64(next.ID)]; next.ID != 0 && ses != nil && ses.state == waiting {
		ahead, _ := l.s.place(ses, false)
		next.Position = ahead + 1
	}
}

// inOrder lists the waiting sessions by their places.
func (l *lister) inOrder() (whole bool) {
	next := &l.page.Next
	l.resume()
	whole = true
	var last *session
	l.s.walkFrom(next.Position, func(ses *session) bool {
		if l.full() {
			whole = false
			return false
		}
		l.look(ses, next.Position)
		next.Position++
		last = ses
		return true
	})
	if last != nil {
		next.ID = l.s.idOf(last)
	}
	return whole
}

// Show describes the session of a key; false when there is none. O(log n).
func (s *Scheduler) Show(now time.Duration, key Key) (Shown, bool) {
	now = s.advance(now)
	key = key.Bounded()
	ses := s.sessions.find(&key)
	if ses == nil {
		return Shown{}, false
	}
	ahead := 0
	if ses.state == waiting {
		ahead, _ = s.place(ses, false)
	}
	return s.show(now, ses, ahead), true
}

// walkFrom calls yield with the waiting sessions from a place in the merged order on, 0 = the first, until it returns false. Those before it are not
// enumerated: of each class as many stand there as have a lesser pass.
func (s *Scheduler) walkFrom(skip int, yield func(*session) bool) {
	var (
		passes  [Classes]uint64
		strides [Classes]uint64
		cursors [Classes]lineCursor
		next    [Classes]*session
	)
	taken, rest := s.firstOfOrder(max(skip, 0))
	for c := range s.lines {
		strides[c] = s.stride(c)
		passes[c], cursors[c] = s.lines[c].pass+uint64(taken[c])*strides[c], s.lines[c].cursorAt(taken[c])
		next[c] = cursors[c].next()
	}
	group := s.calendar.group
	for {
		best := -1
		for c := range next {
			if next[c] != nil && (best < 0 || group[c] < group[best] || group[c] == group[best] && passes[c] < passes[best]) {
				best = c
			}
		}
		if best < 0 {
			return
		}
		if rest--; rest < 0 && !yield(next[best]) {
			return
		}
		next[best] = cursors[best].next()
		passes[best] += strides[best]
	}
}

// firstOfOrder returns how many sessions of each class are among the first n of the merged order, but for the last few of them, which it returns as rest: fewer
// than there are classes.
func (s *Scheduler) firstOfOrder(n int) (taken [Classes]int, rest int) {
	if n == 0 {
		return taken, 0
	}
	for group := uint8(0); group <= Classes; group++ {
		sum, highest := 0, uint64(0)
		for c := range s.lines {
			if s.calendar.group[c] == group {
				sum += s.lines[c].count
				highest = max(highest, s.lines[c].pass+uint64(s.lines[c].count)*s.stride(c))
			}
		}
		if sum <= n { // all of the group
			for c := range s.lines {
				if s.calendar.group[c] == group {
					taken[c] = s.lines[c].count
				}
			}
			n -= sum
			continue
		}
		low := uint64(0) // the highest pass below which no more than n stand
		for high := highest + 1; low+1 < high; {
			if middle := low + (high-low)/2; s.below(group, middle, &taken) <= n {
				low = middle
			} else {
				high = middle
			}
		}
		return taken, n - s.below(group, low, &taken)
	}
	return taken, n
}

// below counts the sessions of a group of classes whose pass is less than that, by class in taken.
func (s *Scheduler) below(group uint8, pass uint64, taken *[Classes]int) (sum int) {
	for c := range s.lines {
		if s.calendar.group[c] != group {
			continue
		}
		l, stride := &s.lines[c], s.stride(c)
		taken[c] = 0
		if pass > l.pass {
			taken[c] = int(min((pass-l.pass+stride-1)/stride, uint64(l.count)))
		}
		sum += taken[c]
	}
	return sum
}

// CountOf returns how many sessions a query matches, where counters tell it: not of a class of one principal. O(1).
func (s *Scheduler) CountOf(q ListQuery) (n int, told bool) {
	if q.Principal != "" {
		p := s.principals[q.Principal]
		switch {
		case p == nil:
			return 0, true
		case q.OneClass:
			return 0, false
		}
		for _, of := range [...]struct {
			wanted bool
			n      int32
		}{{q.Active, p.active}, {q.Waiting, p.live - p.active}, {q.Remembered, p.refs - p.live}} {
			if of.wanted {
				n += int(of.n)
			}
		}
		return n, true
	}
	for state, wanted := range [stateCount]bool{active: q.Active, waiting: q.Waiting, parked: q.Waiting, paused: q.Remembered} {
		for c, of := range s.byClass[state] {
			if wanted && (!q.OneClass || Class(c) == q.Class) {
				n += of
			}
		}
	}
	return n, true
}

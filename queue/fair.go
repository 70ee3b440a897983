package queue

// fairShare is the virtual system of fair-sojourn: all sessions share the link equally there. Its virtual time V grows by the
// delivered bytes divided by the sessions in it; a session that joins with m bytes to come finishes when V reaches F = V + m, and
// leaves then. Whoever is served in the order of F finishes no later than under equal sharing on one server (Friedman and
// Henderson, "Fairness and efficiency in web server protocols", 2003). It is kept only under FairSojourn.
//
// The members are the waiting sessions with F > V, which stand in the orders of their classes by F, and those in others: active
// ones, and completed ones that equal sharing would still serve.
type fairShare struct {
	on     bool
	v      int64 // bytes that each member has got
	rest   int64 // delivered bytes not yet shared out, less than members
	n      int   // members
	next   int64 // the least F of a member, 0 = to be looked for
	others tree[tag]
}

// tag is a member that does not wait, by its session's number.
type tag uint64

func (t tag) orderNumber() uint64 { return uint64(t) }

// mostBytes bounds what a member counts for, so that no size that an origin makes up carries F beyond its type.
const mostBytes = 1 << 60

// join makes a session a member and returns its F.
func (f *fairShare) join(ses *session) int64 {
	finish := f.v + min(max(ses.remaining(), 1), mostBytes)
	if ses.stay != nil {
		ses.stay.countedFrom = max(ses.stay.start, 0)
	}
	f.n++
	if f.next > 0 {
		f.next = min(f.next, finish)
	}
	return finish
}

// begin notes that a member stops waiting because it got a slot, end that it waits again.
func (f *fairShare) begin(ses *session) {
	if f.on && ses.order > f.v {
		f.others.insert(orderKey{ses.order, 0, ses.number}, ses.order>>10, tag(ses.number))
		ses.virtual = true
	}
}

func (f *fairShare) end(ses *session) {
	if ses.virtual && ses.order > f.v {
		f.others.remove(orderKey{ses.order, 0, ses.number})
	}
	ses.virtual = false
}

// leave takes out a session that will not complete, after it was taken out of the orders.
func (f *fairShare) leave(ses *session) {
	if f.on && ses.order > f.v {
		f.n--
		if ses.order == f.next {
			f.next = 0
		}
	}
	f.end(ses)
}

// complete corrects F of a session that has all its bytes: it counted from offset 0, and its client began later. The bytes before
// are never delivered; kept, they would slow V down for ever, and let whoever comes later with less overtake without end.
func (f *fairShare) complete(ses *session) {
	never := ses.stay.start - ses.stay.countedFrom
	if !f.on || !ses.virtual || ses.order <= f.v || never <= 0 {
		return
	}
	f.leave(ses)
	if finish := ses.order - never; finish > f.v {
		f.others.insert(orderKey{finish, 0, ses.number}, finish>>10, tag(ses.number))
		f.n++
		if f.next > 0 {
			f.next = min(f.next, finish)
		}
	}
}

// deliver shares bytes out among the members.
func (s *Scheduler) deliver(bytes int64) {
	f := &s.fair
	for bytes += f.rest; ; {
		if f.n == 0 {
			f.rest = 0
			return
		}
		if f.next == 0 {
			f.next = s.nextFinish()
		}
		n := int64(f.n)
		if gap := f.next - f.v; gap > bytes/n {
			f.v += bytes / n
			f.rest = bytes % n
			return
		} else {
			bytes -= gap * n
		}
		f.v, f.next = f.next, 0
		for f.others.root != nil && f.others.at(0).turn <= f.v {
			f.others.remove(f.others.at(0).key())
		}
		f.n = f.others.len()
		for c := range s.lines {
			f.n += s.lines[c].count - s.finished(c)
		}
	}
}

// finished counts the waiting sessions of a class whose F is not after V: under equal sharing they would be done.
func (s *Scheduler) finished(class int) int {
	n, _ := s.lines[class].sizes.rank(orderKey{turn: s.fair.v + 1, arrival: -1 << 63})
	return n
}

func (s *Scheduler) nextFinish() int64 {
	next := int64(1<<63 - 1)
	if s.fair.others.root != nil {
		next = s.fair.others.at(0).turn
	}
	for c := range s.lines {
		if i := s.finished(c); i < s.lines[c].count {
			next = min(next, s.lines[c].sizes.at(i).turn)
		}
	}
	return next
}

// finishesAfter returns how many bytes equal sharing delivers until V reaches finish. Waiting sessions before it count half of
// what it has to come itself.
func (s *Scheduler) finishesAfter(finish int64) float64 {
	f := &s.fair
	if finish <= f.v {
		return 0
	}
	gap := float64(finish - f.v)
	before, sum := f.others.rank(orderKey{turn: finish})
	total := max(float64(sum)*1024-float64(before)*float64(f.v), 0) + float64(f.others.len()-before)*gap
	for c := range s.lines {
		n, _ := s.lines[c].sizes.rank(orderKey{turn: finish, arrival: -1 << 63})
		total += float64(max(n-s.finished(c), 0))*gap/2 + float64(s.lines[c].count-n)*gap
	}
	return total
}

// restart makes the virtual system anew: empty, or under FairSojourn with the sessions that have slots; the waiting ones join as
// they are put in order.
func (f *fairShare) restart(s *Scheduler) {
	*f = fairShare{on: s.policy.Strategy == FairSojourn}
	for ses := range s.waiting.all {
		ses.virtual, ses.order = false, 0
	}
	for ses := s.parked.head; ses != nil; ses = ses.link.next {
		ses.virtual, ses.order = false, 0
	}
	for _, ses := range s.active {
		ses.virtual, ses.order = false, 0
		if f.on {
			ses.order = f.join(ses)
			f.begin(ses)
		}
	}
}

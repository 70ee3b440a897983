package queue

// fairShare is the virtual system of fair-sojourn: all sessions share the link equally there. Its virtual time V grows by the
// delivered bytes divided by the sessions in it; a session that joins with m bytes to come finishes when V reaches F = V + m, and
// leaves then. Whoever is served in the order of F finishes no later than under equal sharing on one server (Friedman and
// Henderson, "Fairness and efficiency in web server protocols", 2003). It is kept only under FairSojourn.
type fairShare struct {
	on      bool
	v       int64 // bytes each session in it has got
	rest    int64 // delivered bytes not yet shared out, less than the sessions in it
	members tree[*session]
}

// join puts a session into the virtual system and returns its F.
func (f *fairShare) join(ses *session) int64 {
	finish := f.v + max(ses.remaining(), 1)
	f.members.insert(orderKey{finish, 0, ses.number}, finish>>10, ses)
	ses.virtual = true
	return finish
}

// leave takes a session out that will not complete.
func (f *fairShare) leave(ses *session) {
	if ses.virtual {
		f.members.remove(orderKey{ses.order, 0, ses.number})
		ses.virtual = false
	}
}

// deliver shares bytes out.
func (f *fairShare) deliver(bytes int64) {
	for bytes += f.rest; ; {
		n := int64(f.members.len())
		if n == 0 {
			f.rest = 0
			return
		}
		first := f.members.at(0)
		if gap := first.key.turn - f.v; gap <= bytes/n {
			bytes -= gap * n
			f.v = first.key.turn
			first.item.virtual = false
			f.members.remove(first.key)
			continue
		}
		f.v += bytes / n
		f.rest = bytes % n
		return
	}
}

// finishesAfter returns how many bytes the virtual system delivers until V reaches finish.
func (f *fairShare) finishesAfter(finish int64) int64 {
	before, sum := f.members.rank(orderKey{turn: finish})
	if finish <= f.v {
		return 0
	}
	return max((sum<<10)-int64(before)*f.v, 0) + int64(f.members.len()-before)*(finish-f.v)
}

// restart makes the virtual system anew: empty, or under FairSojourn with the sessions that have slots; the waiting ones join as
// they are put in order.
func (f *fairShare) restart(s *Scheduler) {
	on := s.policy.Strategy == FairSojourn
	for ses := s.waiting.head; ses != nil; ses = ses.link.next {
		ses.virtual = false
	}
	for _, ses := range s.active {
		ses.virtual = false
	}
	*f = fairShare{on: on}
	if on {
		for _, ses := range s.active {
			ses.order = f.join(ses)
		}
	}
}

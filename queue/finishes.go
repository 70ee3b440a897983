package queue

// Finishes reports whether a request goes on with what its session holds a slot for: the session is active and was sent less with that slot than it has, and the
// object is one that a bundle has asked for before. It is false for one that keeps its slot by asking for the same again, or for ever more of a repository. It changes
// nothing: the request is no contact of its client. O(1), of a bundle O(its objects).
func (s *Scheduler) Finishes(a *Ask) bool {
	key := a.Key.Bounded()
	ses := s.sessions.find(&key)
	if ses == nil || ses.state != active || ses.stay.bytes >= ses.size {
		return false
	}
	b := ses.bundle()
	return b == nil || b.knows(a.Member)
}

// knows reports whether an object was asked for before; of those beyond maxMembers, whether one with its place in the lump was.
func (b *bundle) knows(hash uint64) bool {
	for i := range min(len(b.members), maxMembers) {
		if b.members[i].hash == hash {
			return true
		}
	}
	return b.lumped[hash/64%4]&(1<<(hash%64)) != 0
}

package queue

// HasSlot reports whether the session of a key holds a slot, and changes nothing: the request is no contact of its client. O(1).
func (s *Scheduler) HasSlot(key Key) bool {
	key = key.Bounded()
	ses := s.sessions.find(&key)
	return ses != nil && ses.state == active
}

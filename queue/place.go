package queue

// place counts the sessions ahead of a waiting one and the sum of their sizes, without enumerating them: its rank in
// its class, and of every other class those whose stride pass comes first. Classes below Interactive are left out when
// onlyInteractive is set.
func (s *Scheduler) place(ses *session, onlyInteractive bool) (ahead int, bytes int64) {
	ahead, bytes = s.rankInLine(ses)
	own, rank := int(ses.lifted), ahead
	for c := range s.lines {
		if n := s.before(c, own, rank); n > 0 && (!onlyInteractive || c == int(Interactive)) {
			ahead += n
			bytes += s.lines[c].firstBytes(n)
		}
	}
	return ahead, bytes
}

// rankInLine counts the sessions ahead of a waiting one in its class, and their bytes.
func (s *Scheduler) rankInLine(ses *session) (count int, bytes int64) {
	if s.policy.Strategy == Ordered {
		return s.lines[ses.lifted].turns.rank(s.orderKey(ses))
	}
	return s.lines[ses.lifted].sizes.rank(ses.laneKey())
}

// before counts the sessions of another class c that come before the one of that rank in class own.
func (s *Scheduler) before(c, own, rank int) int {
	if c == own || s.lines[c].count == 0 {
		return 0
	}
	switch theirs, ours := s.calendar.group[c], s.calendar.group[own]; {
	case theirs > ours: // shut for longer
		return 0
	case theirs < ours: // all of them start before the class opens, as far as is known now
		return s.lines[c].count
	}
	pass := s.lines[own].pass + uint64(rank)*s.stride(own)
	if pass < s.lines[c].pass {
		return 0
	}
	diff, stride := pass-s.lines[c].pass, s.stride(c)
	n := diff / stride
	if diff%stride != 0 || c < own {
		n++
	}
	return int(min(n, uint64(s.lines[c].count)))
}

// walkOrder calls yield with the waiting sessions in the merged order until it returns false.
func (s *Scheduler) walkOrder(yield func(*session) bool) { s.walkFrom(0, yield) }

// slots is how many sessions may be active now.
func (s *Scheduler) slots() int { return s.policy.Sessions + s.extra }

// free counts the free slots: all of them, and those a class below Interactive may take.
func (s *Scheduler) free() (all, common int) {
	all = max(0, s.slots()-len(s.active))
	others := len(s.active) - s.byClass[active][Interactive]
	return all, min(all, max(0, s.slots()-s.policy.Reserve-others))
}

// freeFor counts the free slots that a session of the class may take.
func (s *Scheduler) freeFor(class Class) int {
	all, common := s.free()
	if class == Interactive {
		return all
	}
	return common
}

// missed counts the ticks in a row in which a free slot found nobody. When the grace after a restart ends they begin anew: it kept
// the newcomers at the front away, and they are to have their turn before the window widens past them.
func (s *Scheduler) missed() uint64 {
	if s.now < s.graceUntil {
		return s.unclaimed
	}
	return s.unclaimed - s.inGrace
}

// windows are how many sessions at the front of the order may take a slot: twice the slots that are free or about to
// be, more with every tick that a slot stayed unclaimed.
func (s *Scheduler) windows() (all, common int) {
	all, common = s.free()
	factor := 2 * (1 + int(min(s.missed(), MaxQueueLimit)))
	all, common = (all+s.model.endingAll)*factor, (common+s.model.endingCommon)*factor
	return min(all, MaxQueueLimit), min(common, MaxQueueLimit)
}

// front returns the first waiting session that could use a slot now, nil when there is none.
func (s *Scheduler) front(onlyInteractive bool) *session {
	best := -1
	for c := range s.lines {
		if s.lines[c].count == 0 || s.calendar.bars[c] || onlyInteractive && c != int(Interactive) {
			continue
		}
		if best < 0 || s.lines[c].pass < s.lines[best].pass {
			best = c
		}
	}
	if best < 0 {
		return nil
	}
	return s.lines[best].first()
}

// overShare reports whether the principal has its share while somebody else's session heads the queue.
func (s *Scheduler) overShare(ses, head *session) bool {
	return head != nil && head.principal != ses.principal && int(ses.principal.active) >= s.policy.PerPrincipal
}

// passedOver counts, of the sessions ahead of a waiting one, those whose principals have their share: they may not take the
// slot, so they do not stand before it. Principals at their share are few: each has that many slots.
func (s *Scheduler) passedOver(ses, head *session, onlyInteractive bool) (n int) {
	key := s.orderKey(ses)
	own := int(ses.lifted)
	rank, _ := s.rankInLine(ses)
	for c := range s.lines {
		if s.lines[c].count == 0 || s.calendar.bars[c] || onlyInteractive && c != int(Interactive) {
			continue
		}
		end, within := key, true
		if c != own {
			ahead := s.before(c, own, rank)
			if within = ahead < s.lines[c].count; within && s.policy.Strategy == Ordered {
				end = s.lines[c].turns.at(ahead).key()
			} else if within {
				end = s.lines[c].sizes.at(ahead).key()
			}
		}
		for _, p := range s.full {
			if p == head.principal {
				continue
			}
			n += s.straysBefore(p, Class(c), end, within)
			l := p.lane(Class(c))
			if l == nil || l.count == 0 {
				continue
			}
			switch {
			case !within:
				n += int(l.count)
			case s.policy.Strategy == Ordered:
				n += l.turnsBefore(end)
			default:
				n += l.index(end)
			}
		}
	}
	return n
}

// turnsBefore counts the lane's turns before a place in the order of its class.
func (l *lane) turnsBefore(end orderKey) int {
	n := end.turn - l.round
	if (orderKey{0, l.arrival, l.number}).before(orderKey{0, end.arrival, end.number}) {
		n++
	}
	return int(min(max(n, 0), int64(l.count)))
}

// eligible reports whether a waiting session whose client is present may take a slot now.
func (s *Scheduler) eligible(ses *session) bool {
	all, common := s.free()
	if all == 0 || s.draining || s.halted() || ses.state == parked || ses.class != Interactive && common == 0 {
		return false
	}
	switch {
	case s.mustStandBack(ses):
		return false
	case s.now < s.graceUntil:
		return s.firstOfReturned(ses, all, common)
	default:
		return s.marked(ses, all, common)
	}
}

// mustStandBack keeps a session from a slot for a reason of its own.
func (s *Scheduler) mustStandBack(ses *session) bool {
	if s.gathering() || s.now < s.graceUntil && ses.newcomer() {
		return true
	}
	if s.calendar.bars[ses.class] {
		return true
	}
	head := ses.yieldTo()
	return head != nil && !s.calendar.bars[head.class] // a head that must wait for its window keeps nobody back
}

// marked reports whether a waiting session is near enough to the front of the order to take one of the free slots.
func (s *Scheduler) marked(ses *session, all, common int) bool {
	window, windowCommon := s.windows()
	if ses.class != Interactive {
		window = windowCommon
	}
	onlyInteractive := common == 0
	head := s.front(onlyInteractive)
	ahead, _ := s.place(ses, onlyInteractive)
	ahead -= s.barredBefore(ses, onlyInteractive)
	if s.overShare(ses, head) {
		return s.missed() >= shareGrace && ahead < window
	}
	if ahead < window || len(s.full) == 0 {
		return ahead < window
	}
	return ahead-s.passedOver(ses, head, onlyInteractive) < window
}

// fill keeps the list of principals at their share.
func (s *Scheduler) fill(p *principal) {
	full := int(p.active) >= s.policy.PerPrincipal
	switch {
	case full && p.fullIndex < 0:
		p.fullIndex = int32(len(s.full))
		s.full = append(s.full, p)
	case !full && p.fullIndex >= 0:
		last := len(s.full) - 1
		s.full[p.fullIndex] = s.full[last]
		s.full[p.fullIndex].fullIndex = p.fullIndex
		s.full[last] = nil
		s.full = s.full[:last]
		p.fullIndex = -1
	}
}

package queue

import (
	"slices"
	"time"
)

// join starts a wait: the session takes its place by its arrival.
func (s *Scheduler) join(now time.Duration, ses *session) {
	ses.state, ses.since, ses.noShowAt = waiting, now, 0
	ses.principal.live++
	s.byClass[waiting][ses.class]++
	s.waiting.push(ses)
	s.enlane(ses, s.liftedClass(now, ses))
}

// unwait takes a session out of everything that waiting put it into.
func (s *Scheduler) unwait(now time.Duration, ses *session) {
	s.unlane(ses)
	s.waiting.remove(ses)
	s.byClass[waiting][ses.class]--
	s.due.clear(ses)
	ses.waited += now - ses.since
	ses.marked = unmarked
}

// liftedClass is the class after aging: one class a full AgingEvery of waiting, never above Release.
func (s *Scheduler) liftedClass(now time.Duration, ses *session) Class {
	if s.policy.AgingEvery == 0 || ses.class <= Release {
		return ses.class
	}
	steps := (ses.waited + now - ses.since) / s.policy.AgingEvery
	return Class(max(int64(Release), int64(ses.class)-int64(steps)))
}

// plan sets when something must happen to a waiting session without a contact: its no-show unless a held request makes
// it present, and its next lift.
func (s *Scheduler) plan(ses *session) {
	at := time.Duration(-1)
	if ses.waiters.count == 0 {
		at = ses.noShowAt
	}
	if every := s.policy.AgingEvery; every > 0 && ses.lifted > Release {
		steps := (ses.waited+s.now-ses.since)/every + 1
		if lift := ses.since - ses.waited + steps*every; at < 0 || lift < at {
			at = lift
		}
	}
	if at < 0 {
		s.due.clear(ses)
		return
	}
	s.due.set(ses, at)
}

// enlane adds a waiting session to the lane of its principal in that class, and to the tree of the class.
func (s *Scheduler) enlane(ses *session, class Class) {
	t, l := &s.trees[class], &ses.principal.lanes[class]
	if t.len() == 0 {
		s.passes[class] = max(s.passes[class], s.lastPass)
	}
	if len(l.queue) == 0 {
		l.round = max(l.round, s.rounds[class])
	}
	i, _ := l.find(ses)
	round := l.round
	switch {
	case i == 0 && len(l.queue) > 0 && l.round < l.queue[0].node.order.round: // in the gap before the first
	case i < len(l.queue):
		round = l.queue[i].node.order.round
		s.needRepair(l)
	case i > 0:
		round = l.queue[i-1].node.order.round + 1
	}
	l.queue = slices.Insert(l.queue, i, ses)
	ses.lifted = class
	t.insert(ses, orderKey{round, int64(ses.arrival), ses.number})
}

// unlane takes a waiting session out of its lane and tree.
func (s *Scheduler) unlane(ses *session) {
	l := &ses.principal.lanes[ses.lifted]
	s.trees[ses.lifted].remove(ses)
	i, _ := l.find(ses)
	if i == 0 {
		l.queue[0] = nil
		l.queue = l.queue[1:]
	} else {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	switch {
	case len(l.queue) == 0:
		l.queue = nil
	case i < len(l.queue) && i > 0 || l.queue[0].node.order.round != l.round:
		s.needRepair(l)
	}
}

func (s *Scheduler) needRepair(l *lane) {
	if !l.listed {
		l.listed = true
		s.repairs = append(s.repairs, l)
	}
}

// repair gives the sessions of changed lanes the rounds round, round+1, ... again. Doing it once a tick keeps the cost
// of a principal whose clients all vanish at one pass over its lane.
func (s *Scheduler) repair() {
	for _, l := range s.repairs {
		l.listed = false
		for i, ses := range l.queue {
			if round := l.round + uint64(i); ses.node.order.round != round {
				t := &s.trees[ses.lifted]
				order := ses.node.order
				t.remove(ses)
				order.round = round
				t.insert(ses, order)
			}
		}
	}
	s.repairs = s.repairs[:0]
}

func (s *Scheduler) stride(class int) uint64 { return strideUnit / uint64(s.policy.Weights[class]) }

// place counts the sessions ahead of a waiting one and the sum of their sizes, without enumerating them: its rank in
// its class, and of every other class those whose stride pass comes first. Classes below Interactive are left out when
// onlyInteractive is set.
func (s *Scheduler) place(ses *session, onlyInteractive bool) (ahead int, bytes int64) {
	own := int(ses.lifted)
	ahead, bytes = s.trees[own].ahead(ses)
	pass := s.passes[own] + uint64(ahead)*s.stride(own)
	for c := range s.trees {
		if c == own || s.trees[c].len() == 0 || onlyInteractive && c != int(Interactive) || pass < s.passes[c] {
			continue
		}
		diff, stride := pass-s.passes[c], s.stride(c)
		n := diff / stride
		if diff%stride != 0 || c < own {
			n++
		}
		if count := min(int(n), s.trees[c].len()); count > 0 {
			ahead += count
			bytes += s.trees[c].firstBytes(count)
		}
	}
	return ahead, bytes
}

// free counts the free slots: all of them, and those a class below Interactive may take.
func (s *Scheduler) free() (all, common int) {
	all = max(0, s.policy.Sessions-len(s.active))
	others := len(s.active) - s.byClass[active][Interactive]
	return all, min(all, max(0, s.policy.Sessions-s.policy.Reserve-others))
}

// windows are how many sessions at the front of the order may take a slot: twice the slots that are free or about to
// be, more with every tick that a slot stayed unclaimed.
func (s *Scheduler) windows() (all, common int) {
	all, common = s.free()
	factor := 2 * (1 + int(s.unclaimed))
	all, common = (all+s.model.endingAll)*factor, (common+s.model.endingCommon)*factor
	return min(all, s.policy.QueueLimit), min(common, s.policy.QueueLimit)
}

// front returns the first waiting session that could use a slot now, nil when there is none.
func (s *Scheduler) front(onlyInteractive bool) *session {
	best := -1
	for c := range s.trees {
		if s.trees[c].len() == 0 || onlyInteractive && c != int(Interactive) {
			continue
		}
		if best < 0 || s.passes[c] < s.passes[best] {
			best = c
		}
	}
	if best < 0 {
		return nil
	}
	first := s.trees[best].root
	for first.node.left != nil {
		first = first.node.left
	}
	return first
}

// overShare reports whether the principal has its share while somebody else's session heads the queue.
func (s *Scheduler) overShare(ses, head *session) bool {
	return head != nil && head.principal != ses.principal && ses.principal.active >= s.policy.PerPrincipal
}

// mark sets anew which waiting sessions may take a slot when their clients come. Sessions over their principal's share
// are passed over; once a slot has stayed unclaimed for shareGrace ticks they get what the others leave of the window.
func (s *Scheduler) mark() {
	for _, ses := range s.marks {
		ses.marked = unmarked
	}
	clear(s.marks)
	s.marks = s.marks[:0]
	windowAll, windowCommon := s.windows()
	if windowAll == 0 || s.waiting.count == 0 {
		return
	}
	var (
		passes = s.passes
		next   [Classes]*session
		head   *session
		spare  []*session
		common int // marked below Interactive
	)
	for c := range s.trees {
		s.cursors[c].reset(&s.trees[c])
		next[c] = s.cursors[c].next()
	}
	for len(s.marks) < windowAll {
		best := -1
		for c := range next {
			if next[c] != nil && (best < 0 || passes[c] < passes[best]) && (c == int(Interactive) || common < windowCommon) {
				best = c
			}
		}
		if best < 0 {
			break
		}
		ses := next[best]
		next[best] = s.cursors[best].next()
		passes[best] += s.stride(best)
		if head == nil {
			head = ses
		}
		if s.overShare(ses, head) {
			if s.unclaimed >= shareGrace && len(spare) < windowAll {
				spare = append(spare, ses)
			}
			continue
		}
		s.setMark(ses, markedFirst, &common)
	}
	for _, ses := range spare {
		if len(s.marks) < windowAll && (ses.class == Interactive || common < windowCommon) {
			s.setMark(ses, markedSpare, &common)
		}
	}
}

func (s *Scheduler) setMark(ses *session, m mark, common *int) {
	ses.marked = m
	s.marks = append(s.marks, ses)
	if ses.class != Interactive {
		*common++
	}
}

// eligible reports whether a waiting session whose client is present may take a slot now.
func (s *Scheduler) eligible(ses *session) bool {
	if s.draining {
		return false
	}
	all, common := s.free()
	windowAll, windowCommon := s.windows()
	if ses.class != Interactive {
		all, windowAll = common, windowCommon
	}
	if all == 0 {
		return false
	}
	if ses.marked == unmarked {
		if ahead, _ := s.place(ses, common == 0); ahead >= windowAll {
			return false
		}
	}
	return ses.marked == markedSpare || !s.overShare(ses, s.front(common == 0))
}

// take gives a waiting session whose client is present a slot when it may have one.
func (s *Scheduler) take(now time.Duration, ses *session) bool {
	if !s.eligible(ses) {
		return false
	}
	s.admit(now, ses)
	return true
}

// admit turns a waiting session into an active one and charges its class and its principal.
func (s *Scheduler) admit(now time.Duration, ses *session) {
	c := int(ses.lifted)
	s.charge(c)
	l := &ses.principal.lanes[c]
	if s.rounds[c] > 0 {
		l.round = max(l.round, s.rounds[c]-1)
	}
	s.rounds[c] = max(s.rounds[c], l.round)
	l.round++
	ses.charged = l
	ses.wait = now - ses.since
	s.unwait(now, ses)
	ses.state, ses.since, ses.bytes, ses.openBytes = active, now, 0, 0
	ses.announced = false
	ses.activeIndex = len(s.active)
	s.active = append(s.active, ses)
	s.byClass[active][ses.class]++
	ses.principal.active++
	s.activeChanges++
	s.counts.Started++
}

// charge moves the class's pass by one slot. A class whose clients were absent keeps at most one turn of the lightest
// class as credit, so that it cannot take slots in a row for it later.
func (s *Scheduler) charge(class int) {
	var longest uint64
	least := s.passes[class]
	for c := range s.trees {
		longest = max(longest, s.stride(c))
		if s.trees[c].len() > 0 {
			least = min(least, s.passes[c])
		}
	}
	s.lastPass = max(s.lastPass, least)
	if served := s.passes[class]; served > longest {
		for c := range s.passes {
			s.passes[c] = max(s.passes[c], served-longest)
		}
	}
	s.passes[class] += s.stride(class)
}

// dispatch gives free slots to present sessions at the front of the order, and marks the others there.
func (s *Scheduler) dispatch(now time.Duration) {
	for !s.draining {
		s.mark()
		if all, _ := s.free(); all == 0 || s.held == 0 {
			return
		}
		i := slices.IndexFunc(s.marks, func(ses *session) bool { return ses.waiters.count > 0 && s.eligible(ses) })
		if i < 0 {
			return
		}
		ses := s.marks[i]
		s.admit(now, ses)
		s.settleActive(ses)
	}
}

package queue

import (
	"cmp"
	"slices"
	"time"
)

// This file is the oracle's ways out: ends of responses, sessions and waits, and what is remembered.

func (o *oracle) progress(r *oResponse, n int64) {
	if r.done || n <= 0 || r.ses.state == oDropped {
		return
	}
	r.bytes += n
	r.ses.bytes += n
	r.ses.open += n
	o.rated = true
	o.share(n)
}

func (o *oracle) close(r *oResponse) bool {
	if r.done {
		return false
	}
	r.done = true
	if r.ses.state == oDropped { // it was kicked
		return false
	}
	r.ses.running--
	r.ses.open -= r.bytes
	return true
}

// finish is Finish.
func (o *oracle) finish(r *oResponse, first, end int64, complete bool) {
	if !o.close(r) {
		return
	}
	ses := r.ses
	switch m := ses.members[r.member]; {
	case !complete || r.asked.Kind == RangeMulti:
	case ses.members != nil:
		m.got = min(m.got+max(end-max(first, 0), 0), m.size)
	default:
		ses.cover(max(first, 0), min(end, ses.size))
	}
	o.reconsider(ses)
	o.fill(ses)
	switch {
	case ses.running > 0:
	case ses.complete() && len(ses.waiters) == 0:
		o.stop(ses, ReasonCompleted)
	case ses.leaving:
		o.stop(ses, ReasonCancelled)
	case ses.givesUp():
		o.yield(ses)
	case ses.members != nil:
		ses.due = o.now + min(2*time.Second, o.policy.IdleFor)
	case ses.start < 0:
		ses.due = o.now + min(5*time.Second, o.policy.IdleFor)
	default:
		ses.due = o.now + o.policy.IdleFor
	}
}

// abandon is Abandon.
func (o *oracle) abandon(r *oResponse) {
	if !o.close(r) {
		return
	}
	ses := r.ses
	o.reconsider(ses)
	o.fill(ses)
	switch {
	case ses.running > 0:
	case ses.leaving:
		o.stop(ses, ReasonCancelled)
	case len(ses.waiters) > 0: // it yields, and somebody is here
		o.yield(ses)
	default:
		o.freeSlot(ses, ReasonCancelled)
		o.remember(ses)
		o.dispatch()
	}
}

// leave is Leave.
func (o *oracle) leave(key Key) {
	ses := o.sessions[key]
	switch {
	case ses == nil:
	case ses.state == oWaiting, ses.state == oParked:
		o.answerAll(ses, Gone)
		o.leaveOrder(ses)
		o.end(oEnd{Class: ses.class, Reason: ReasonCancelled, Wait: o.now - ses.since})
		o.drop(ses)
	case ses.state == oPaused:
		o.drop(ses)
	case ses.running > 0:
		o.answerAll(ses, Gone)
		ses.leaving = true
	default:
		o.stop(ses, ReasonCancelled)
	}
}

// drain is Drain.
func (o *oracle) drain() {
	o.draining = true
	for _, ses := range o.all() {
		switch ses.state {
		case oWaiting, oParked:
			o.answerAll(ses, Draining)
			o.leaveOrder(ses)
			o.end(oEnd{Class: ses.class, Reason: ReasonDrained, Wait: o.now - ses.since})
			o.drop(ses)
		case oPaused:
			o.drop(ses)
		}
	}
}

// configure is Configure of a valid policy; slots are those in force afterwards.
func (o *oracle) configure(p Policy, slots int) {
	old, halted := o.policy, o.halted()
	o.policy, o.slots = p, slots
	o.rated = o.rated || p.BandBytesPerSecond > 0
	if old.Strategy != p.Strategy || p.Strategy == SmallestFirst && old.AgingEvery != p.AgingEvery {
		o.restrategy()
	}
	for _, ses := range o.bySince(oWaiting) {
		switch {
		case !o.queues(ses.judgedBy()):
			o.endByPolicy(ses)
		case old.AgingEvery != p.AgingEvery:
			o.move(ses, o.liftedClass(ses))
		}
	}
	for _, ses := range o.bySince(oParked) {
		if !o.queues(ses.judgedBy()) {
			o.endByPolicy(ses)
		}
	}
	o.haltChange(halted)
	for _, ses := range o.all() {
		if ses.state == oActive {
			o.reconsider(ses)
			o.fill(ses)
		}
	}
	o.dispatch()
}

// endByPolicy ends a wait that the policy no longer wants; the place in time is kept.
func (o *oracle) endByPolicy(ses *oSession) {
	o.answerAll(ses, PerRequest)
	o.leaveOrder(ses)
	o.end(oEnd{Class: ses.class, Reason: ReasonPolicy, Wait: o.now - ses.since})
	o.remember(ses)
}

func (o *oracle) stop(ses *oSession, reason Reason) {
	o.freeSlot(ses, reason)
	if reason == ReasonCompleted {
		o.completeVirtual(ses)
	} else {
		o.unghost(ses)
	}
	o.drop(ses)
	o.dispatch()
}

func (o *oracle) freeSlot(ses *oSession, reason Reason) {
	o.end(oEnd{Class: ses.class, Reason: reason, Started: true, Wait: ses.wait, Duration: o.now - ses.since, Bytes: ses.bytes})
	ses.bytes, ses.wait, ses.due = 0, 0, 0
	ses.chosenFor, ses.yielding, ses.halting = oStay{}, oStay{}, false
	ses.state = oDropped
}

// remember keeps the place in time and the coverage for PauseMemory.
func (o *oracle) remember(ses *oSession) {
	o.unghost(ses)
	ses.finish = 0
	o.entries++
	ses.state, ses.since, ses.leaving, ses.entered = oPaused, o.now, false, o.entries
	ses.blockedBy, ses.returned = oStay{}, true
}

// drop forgets a session, and its principal's turns with the last one.
func (o *oracle) drop(ses *oSession) {
	ses.state = oDropped
	delete(o.sessions, ses.key)
	for _, other := range o.sessions {
		if other.who == ses.who {
			return
		}
	}
	delete(o.who, ses.who.name)
}

func (o *oracle) end(e oEnd) {
	o.counts.Ended[e.Reason]++
	o.ended = append(o.ended, e)
}

// fill starts held requests of an active session as long as it has places.
func (o *oracle) fill(ses *oSession) {
	for len(ses.waiters) > 0 && ses.running < o.policy.RangesPerSession && !ses.givesUp() {
		w := ses.waiters[0]
		ses.waiters = ses.waiters[1:]
		w.ses = nil
		o.grants = slices.DeleteFunc(o.grants, func(id int) bool { return id == w.id })
		o.settled[w.id] = o.begin(ses, w.asked, w.validator, w.member)
	}
}

func (o *oracle) answerAll(ses *oSession, outcome Outcome) {
	for _, w := range ses.waiters {
		w.ses = nil
		o.settled[w.id] = oAnswer{outcome: outcome, class: ses.class}
	}
	ses.waiters = nil
}

// cover marks the bytes [first, end) as delivered, one by one.
func (s *oSession) cover(first, end int64) {
	if end > int64(len(s.covered)) {
		s.covered = append(s.covered, make([]bool, end-int64(len(s.covered)))...)
	}
	for i := first; i < end; i++ {
		s.covered[i] = true
	}
}

func (s *oSession) isCovered(i int64) bool { return i < int64(len(s.covered)) && s.covered[i] }

// complete is Q13: every byte from the start to the last one, and no response runs.
func (s *oSession) complete() bool {
	if s.running > 0 || s.start < 0 || s.members != nil {
		return false
	}
	for i := s.start; i < s.size; i++ {
		if !s.isCovered(i) {
			return false
		}
	}
	return true
}

// remaining counts the bytes still to deliver.
func (s *oSession) remaining() int64 {
	if s.members != nil {
		return max(s.toCome()-s.open, 0)
	}
	left := s.size - max(s.start, 0) - s.open
	for i := max(s.start, 0); i < int64(len(s.covered)); i++ {
		if s.covered[i] {
			left--
		}
	}
	return max(left, 0)
}

// all are the sessions by number: the order in which nothing depends on anything.
func (o *oracle) all() []*oSession {
	out := make([]*oSession, 0, len(o.sessions))
	for _, ses := range o.sessions {
		out = append(out, ses)
	}
	slices.SortFunc(out, func(a, b *oSession) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return out
}

// bySince are the sessions of a state in the order they entered it.
func (o *oracle) bySince(state oState) []*oSession {
	out := slices.DeleteFunc(o.all(), func(ses *oSession) bool { return ses.state != state })
	if state == oWaiting { // those who began to wait at one moment by their number, which all already has them by
		slices.SortStableFunc(out, func(a, b *oSession) int { return cmp.Compare(a.since, b.since) })
		return out
	}
	slices.SortFunc(out, func(a, b *oSession) int { return a.entered - b.entered })
	return out
}

func (o *oracle) oldestPaused() *oSession {
	paused := o.bySince(oPaused)
	for _, ses := range paused { // of those paused at one moment any may be the oldest
		if ses.since == paused[0].since && !o.coreKnows(ses.key) {
			return ses
		}
	}
	if len(paused) > 0 {
		return paused[0]
	}
	return nil
}

func (o *oracle) count(state oState) (n int) {
	for _, ses := range o.sessions {
		if ses.state == state {
			n++
		}
	}
	return n
}

// live counts the active and waiting sessions of a principal.
func (o *oracle) live(name string) (n int) {
	for _, ses := range o.sessions {
		if ses.who.name == name && ses.state != oPaused {
			n++
		}
	}
	return n
}

func (o *oracle) activeOf(p *oPrincipal) (n int) {
	for _, ses := range o.sessions {
		if ses.who.name == p.name && ses.state == oActive {
			n++
		}
	}
	return n
}

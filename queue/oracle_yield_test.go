package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// This file is the oracle's preemption (Q16) and virtual time of equal sharing (X3).

// choose is what a tick does about a head without a slot: at most one active session is to give its slot up for it.
func (o *oracle) choose() {
	order := o.contending()
	if !o.policy.Preempt || o.draining || o.halted() || o.waves() || len(order) == 0 {
		return
	}
	h := order[0]
	if o.policy.Strategy == FairSojourn {
		o.believeChoice(h)
		return
	}
	if o.slotFor(h) || o.standsBack(h) || len(h.waiters) == 0 && (h.noShow == 0 || h.checkAt > o.now+2*time.Second) {
		return // its client is neither here nor about to come
	}
	var fit []*oSession
	for _, ses := range o.sessions {
		if o.mayChoose(ses, h) {
			fit = append(fit, ses)
		}
	}
	if len(fit) == 0 {
		return
	}
	above := func(ses *oSession) int { return max(0, o.activeOf(ses.who)-o.policy.PerPrincipal) }
	slices.SortFunc(fit, func(a, b *oSession) int {
		return -cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(above(a), above(b)), cmp.Compare(a.remaining(), b.remaining()),
			cmp.Compare(a.number, b.number))
	})
	fit[0].chosenFor = oStay{h, h.since}
}

// believeChoice takes over what the core chose under fair-sojourn, where that depends on estimates, and checks that the rules
// allow it: at most one, for the head, of a lower class or above its share or with a later finish.
func (o *oracle) believeChoice(h *oSession) {
	chosen := 0
	for _, ses := range o.all() {
		head, ok := o.coreChose(ses.key)
		if ses.state != oActive || !ok || ses.chosenFor.waits() && ses.chosenFor.ses.key == head {
			continue
		}
		chosen++
		later := ses.class == h.class && ses.finish > h.finish
		if chosen > 1 || head != h.key || o.slotFor(h) || o.standsBack(h) || !o.mayChoose(ses, h) && !(later && o.lent(ses)) {
			o.fault = fmt.Errorf("oracle: %v may not be chosen to yield to %v, head is %v", ses.key, head, h.key)
		}
		ses.chosenFor = oStay{h, h.since}
	}
}

// slotFor reports whether a slot is free for a waiting session.
func (o *oracle) slotFor(h *oSession) bool {
	all, common := o.free()
	return common > 0 || all > 0 && h.class == Interactive
}

// usable reports whether the slot of an active session is one that the head may have: a slot that an interactive session holds
// is of no use to others while they have all of theirs. When slots were lowered below what is active, sessions give theirs up
// one after another until the head can start.
func (o *oracle) usable(ses, h *oSession) bool {
	others := 0
	for _, other := range o.sessions {
		if other.state == oActive && other.class != Interactive {
			others++
		}
	}
	return h.class == Interactive || ses.class != Interactive || others < o.slots-o.policy.Reserve
}

func (o *oracle) mayChoose(ses, h *oSession) bool {
	if !o.lent(ses) {
		return false
	}
	share := o.policy.PerPrincipal
	lower := ses.class > h.class
	shared := o.activeOf(ses.who) > share && o.activeOf(h.who) < share
	return (lower || shared) && o.usable(ses, h)
}

// yields reports whether an active session that asks gives its slot up instead.
func (o *oracle) yields(ses *oSession) bool {
	if o.mustYield(ses) {
		ses.yielding = ses.chosenFor
		return true
	}
	ses.chosenFor, ses.yielding, ses.halting = oStay{}, oStay{}, false
	o.fill(ses)
	return false
}

// lent reports whether the slot of a session may be asked back at all.
func (o *oracle) lent(ses *oSession) bool {
	return ses.state == oActive && !ses.stopped && !o.restricted(ses.class) && ses.protocol && o.now-ses.since >= time.Minute && !ses.chosenFor.waits() && ses.yielding.ses == nil
}

// mustYield reports whether the choice of a session still holds: its head waits, no slot freed for it, and this one is of use to it.
func (o *oracle) mustYield(ses *oSession) bool {
	h := ses.chosenFor
	return h.waits() && !o.halted() && !o.waves() && !o.barred(h.ses.class) && !o.restricted(ses.class) && !o.slotFor(h.ses) && o.usable(ses, h.ses) && o.policy.Preempt && !o.draining && !ses.leaving
}

// reconsider ends the yielding of a session that need not any more.
func (o *oracle) reconsider(ses *oSession) {
	ses.halting = ses.halting && o.mustHalt(ses)
	if ses.yielding.ses != nil && !o.mustYield(ses) {
		ses.chosenFor, ses.yielding = oStay{}, oStay{}
	}
}

// yield takes the slot of a session that gave it up; it waits anew.
func (o *oracle) yield(ses *oSession) {
	if o.mustHalt(ses) {
		o.halt(ses)
		return
	}
	head := ses.yielding
	o.freeSlot(ses, ReasonYielded)
	ses.arrival, ses.waited, ses.charged, ses.ticketed = o.now, 0, nil, false
	o.join(ses)
	ses.blockedBy = head
	if len(ses.waiters) == 0 { // it was told with the answer to its last request
		ses.told, ses.noShow, ses.checkAt = true, o.now+3*time.Second+15*time.Second, o.now+2*time.Second
	}
	o.dispatch()
}

// enterVirtual starts the session's turn in the system that shares the link equally. It is kept only under fair-sojourn, and
// F while the session lives, over a yield too.
func (o *oracle) enterVirtual(ses *oSession) {
	o.unghost(ses)
	if o.policy.Strategy == FairSojourn {
		ses.finish, ses.from = o.virtual+max(ses.remaining(), 1), max(ses.start, 0)
		o.ghosts = append(o.ghosts, ses)
	}
}

// completeVirtual takes the bytes that a completed session never asked for off its F.
func (o *oracle) completeVirtual(ses *oSession) {
	if slices.Contains(o.ghosts, ses) {
		ses.finish -= max(ses.start-ses.from, 0)
	}
	o.ghosts = slices.DeleteFunc(o.ghosts, func(g *oSession) bool { return g.finish <= o.virtual })
}

func (o *oracle) unghost(ses *oSession) {
	o.ghosts = slices.DeleteFunc(o.ghosts, func(g *oSession) bool { return g == ses })
}

// share hands delivered bytes out in the virtual system, one to each session in it at a time; who has all leaves.
func (o *oracle) share(n int64) {
	for o.pool += n; len(o.ghosts) > 0 && o.pool >= int64(len(o.ghosts)); {
		o.pool -= int64(len(o.ghosts))
		o.virtual++
		o.ghosts = slices.DeleteFunc(o.ghosts, func(g *oSession) bool { return g.finish <= o.virtual })
	}
	if len(o.ghosts) == 0 {
		o.pool = 0
	}
}

// restrategy is a change of the strategy: all who wait enter the orders anew by arrival. Rounds, passes and the turns of lanes
// stay; the virtual system starts with those who have slots.
func (o *oracle) restrategy() {
	o.virtual, o.pool, o.ghosts = 0, 0, nil
	for _, ses := range o.all() {
		ses.finish = 0
		if ses.state == oActive {
			o.enterVirtual(ses)
		}
	}
	queue := slices.DeleteFunc(o.all(), func(ses *oSession) bool { return ses.state != oWaiting })
	slices.SortStableFunc(queue, func(a, b *oSession) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, ses := range queue {
		ses.state, ses.moved, ses.apart = oDropped, false, nil
	}
	passes := o.passes
	for _, ses := range queue {
		ses.state = oWaiting
		o.enter(ses, ses.lifted)
		o.enterVirtual(ses)
	}
	o.passes = passes
}

package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// This file is the oracle's order: who stands where, and who may take a slot.

// class returns the waiting sessions that stand in the class, in their order.
func (o *oracle) class(c Class) []*oSession {
	var out []*oSession
	for _, ses := range o.sessions {
		if ses.state == oWaiting && ses.lifted == c {
			out = append(out, ses)
		}
	}
	byArrival := func(a, b *oSession) int {
		return cmp.Or(cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.number, b.number))
	}
	slices.SortFunc(out, byArrival)
	switch o.policy.Strategy {
	case SmallestFirst:
		slices.SortStableFunc(out, func(a, b *oSession) int { return cmp.Compare(o.sizeKey(a), o.sizeKey(b)) })
	case FairSojourn:
		slices.SortStableFunc(out, func(a, b *oSession) int { return cmp.Compare(a.finish, b.finish) })
	default:
		turns := map[*oSession]uint64{}
		index := map[*oPrincipal]uint64{}
		for _, ses := range out {
			if ses.apart != nil {
				turns[ses] = ses.apart.round
				continue
			}
			turns[ses] = ses.who.lanes[c].round + index[ses.who]
			index[ses.who]++
		}
		slices.SortStableFunc(out, func(a, b *oSession) int {
			x, y := a.laneIn(c), b.laneIn(c)
			return cmp.Or(cmp.Compare(turns[a], turns[b]), cmp.Compare(x.ringArrival, y.ringArrival), cmp.Compare(x.ringNumber, y.ringNumber))
		})
	}
	return out
}

// sizeKey is the place of a session under smallest-first: each AgingEvery waited counts like half the size.
func (o *oracle) sizeKey(ses *oSession) float64 {
	if ses.moved {
		return ses.order
	}
	if o.policy.AgingEvery == 0 {
		return float64(ses.size)
	}
	return float64(ses.arrival) + float64(o.policy.AgingEvery)*math.Log2(float64(ses.size))
}

func (o *oracle) stride(c int) uint64 { return 1 << 30 / uint64(o.policy.Weights[c]) }

// merged is the order over all classes: the class with the least pass is next, the higher one on a tie.
func (o *oracle) merged() []*oSession {
	var lists [Classes][]*oSession
	for c := range lists {
		lists[c] = o.class(Class(c))
	}
	o.rebar()
	passes := o.passes
	var out []*oSession
	for _, group := range o.groups() {
		for {
			best := -1
			for _, c := range group {
				if len(lists[c]) > 0 && (best < 0 || passes[c] < passes[best]) {
					best = int(c)
				}
			}
			if best < 0 {
				break
			}
			out = append(out, lists[best][0])
			lists[best] = lists[best][1:]
			passes[best] += o.stride(best)
		}
	}
	return out
}

// join starts a wait.
func (o *oracle) join(ses *oSession) {
	ses.state, ses.since, ses.told, ses.noShow = oWaiting, o.now, false, 0
	o.entries++
	ses.entered = o.entries
	if ses.stopped {
		ses.state = oParked
		return
	}
	o.enter(ses, o.liftedClass(ses))
	if ses.finish == 0 {
		o.enterVirtual(ses)
	}
}

// enter puts a session into a class. Its state is waiting, but it is in no class yet.
func (o *oracle) enter(ses *oSession, c Class) {
	o.rebar()
	l := &ses.who.lanes[c]
	classEmpty, laneEmpty := true, true
	for _, other := range o.sessions {
		if other != ses && other.state == oWaiting && other.lifted == c {
			classEmpty = false
			laneEmpty = laneEmpty && (other.who != ses.who || other.apart != nil)
		}
	}
	if classEmpty {
		o.passes[c] = max(o.passes[c], o.lastPass)
	}
	if laneEmpty && o.policy.Strategy == Ordered {
		l.round = max(l.round, o.rounds[c])
		l.ringArrival, l.ringNumber = ses.arrival, ses.number
	} else if o.policy.Strategy == Ordered && ses.arrival < l.ringArrival {
		l.ringArrival, l.ringNumber = ses.arrival, ses.number
	}
	ses.lifted = c
}

// move puts a waiting session into another class.
func (o *oracle) move(ses *oSession, c Class) {
	if ses.lifted != c && (!ses.moved || ses.lifted != ses.class && (o.restricted(ses.class) || o.restricted(ses.lifted))) {
		ses.moved, ses.apart = false, nil
		o.enter(ses, c)
	}
}

// reclass is what a request of a waiting session says about its class and size: with another one it joins its lane anew, at
// its old arrival.
func (o *oracle) reclass(ses *oSession, class Class, size int64) {
	if ses.state == oParked {
		if ses.size != size {
			o.unghost(ses)
			ses.finish = 0
		}
		ses.class, ses.size = class, size
		return
	}
	if ses.class == class && (ses.size == size || o.policy.Strategy == Ordered) {
		ses.size = size // which moves nobody
		return
	}
	if ses.size != size {
		ses.size = size
		o.enterVirtual(ses)
	}
	ses.class, ses.moved, ses.apart = class, false, nil
	o.enter(ses, o.liftedClass(ses))
}

// liftedClass is Q5: a class up each AgingEvery of waiting, never above release.
func (o *oracle) liftedClass(ses *oSession) Class {
	c, waited := ses.class, ses.waited
	if ses.state == oWaiting {
		waited += o.aged(ses)
	}
	if o.policy.AgingEvery == 0 || o.restricted(c) {
		return c
	}
	for ; c > Release && waited >= o.policy.AgingEvery; c-- {
		waited -= o.policy.AgingEvery
	}
	for ; c < ses.class && o.restricted(c); c++ { // nobody stands among those outside their window
	}
	return c
}

// leaveOrder ends the waiting of a session; the caller says what it is then.
func (o *oracle) leaveOrder(ses *oSession) {
	ses.waited += o.aged(ses)
	ses.state, ses.moved, ses.apart = oDropped, false, nil
	ses.blockedBy = oStay{}
	o.unghost(ses)
}

// giveTurnBack undoes the turn that was paid for a slot given up in a pause.
func (o *oracle) giveTurnBack(ses *oSession) {
	if l := ses.charged; l != nil && l.round > 0 {
		l.round--
	}
	ses.charged = nil
}

// free counts the free slots, and those of them that classes below interactive may take.
func (o *oracle) free() (all, common int) {
	people, others := 0, 0
	for _, ses := range o.sessions {
		switch {
		case ses.state != oActive:
		case ses.class == Interactive:
			people++
		default:
			others++
		}
	}
	all = max(0, o.slots-people-others)
	return all, min(all, max(0, o.slots-o.policy.Reserve-others))
}

// standsBack reports whether a session takes no slot for a reason of its own: it gave one up to a head that still waits, or it is
// a newcomer in the grace after a restart.
func (o *oracle) standsBack(ses *oSession) bool {
	return o.barred(ses.class) || ses.blockedBy.waits() && !o.barred(ses.blockedBy.ses.class) || o.now < o.gather || o.now < o.grace && ses.newcomer()
}

// mayTake reports whether a waiting session whose client is present takes a slot now.
func (o *oracle) mayTake(ses *oSession) bool {
	if o.draining || o.halted() || o.standsBack(ses) {
		return false
	}
	all, common := o.free()
	order := o.contending()
	if common == 0 {
		order = slices.DeleteFunc(order, func(other *oSession) bool { return other.lifted != Interactive })
	}
	slots := all
	if ses.class != Interactive {
		slots = common
	}
	if slots == 0 || !slices.Contains(order, ses) {
		return false
	}
	head := order[0]
	over := func(other *oSession) bool {
		return other.who != head.who && o.activeOf(other.who) >= o.policy.PerPrincipal
	}
	if o.now < o.grace {
		return o.inGrace(ses, order[:slices.Index(order, ses)], slots, over)
	}
	unclaimed := o.lateUnclaimed
	ahead, everybody := 0, 0
	for _, other := range order[:slices.Index(order, ses)] {
		everybody++
		if !over(other) {
			ahead++
		}
	}
	if over(ses) {
		if unclaimed < 20 {
			return false
		}
		ahead = everybody
	}
	factor := 2 * (1 + unclaimed)
	switch {
	case ahead < slots*factor:
		return true
	case !o.rated || ahead >= (slots+max(o.slots, o.lately))*factor: // the forecast may be a tick old
		return false
	}
	o.undecided++
	return o.hint(ses)
}

// admit gives a slot to a waiting session and lets its class and its principal pay for it.
func (o *oracle) admit(ses *oSession) {
	o.payPass(int(ses.lifted))
	c := ses.lifted
	l := &ses.who.lanes[c]
	if ses.apart != nil {
		l = nil // nobody pays for a place that the operator gave
	} else {
		if o.rounds[c] > 0 && o.policy.Strategy == Ordered {
			l.round = max(l.round, o.rounds[c]-1)
		}
		o.rounds[c] = max(o.rounds[c], l.round)
		l.round++
	}
	ses.charged, ses.moved, ses.apart = l, false, nil
	ses.slots++
	ses.wait = o.now - ses.since
	ses.waited += o.aged(ses)
	ses.outside = o.restricted(ses.class)
	ses.state, ses.since, ses.due, ses.announced = oActive, o.now, 0, false
	ses.blockedBy = oStay{}
	o.counts.Started++
	if o.now < o.grace {
		o.seen.returned++
	}
}

// payPass moves the pass of a class by one slot. Absence earns at most a stride of the lightest class.
func (o *oracle) payPass(c int) {
	o.rebar()
	var longest uint64
	least := o.passes[c]
	for d := range o.passes {
		longest = max(longest, o.stride(d))
		if len(o.class(Class(d))) > 0 && !o.barred(Class(d)) {
			least = min(least, o.passes[d])
		}
	}
	o.lastPass = max(o.lastPass, least)
	for d := range o.passes {
		if o.passes[c] > longest {
			o.passes[d] = max(o.passes[d], o.passes[c]-longest)
		}
	}
	o.passes[c] += o.stride(c)
}

// dispatch gives free slots to held requests, the first that may take one in the order at a time.
func (o *oracle) dispatch() {
	if o.waves() {
		for _, ses := range o.merged() {
			if len(ses.waiters) > 0 && o.takes(ses) {
				o.admit(ses)
				o.fill(ses)
			}
		}
		return
	}
	for {
		i, order := -1, o.merged()
		if all, _ := o.free(); all > 0 {
			i = slices.IndexFunc(order, func(ses *oSession) bool { return len(ses.waiters) > 0 && o.mayTake(ses) })
		}
		if i < 0 {
			return
		}
		o.admit(order[i])
		o.fill(order[i])
	}
}

// tick is Tick; slots are those in force after it.
func (o *oracle) tick(slots int) {
	o.expireExpelled()
	o.settleWindows()
	o.expire()
	o.slots = slots
	all, common := o.free()
	usable := 0
	for _, ses := range o.sessions {
		if ses.state == oWaiting && (ses.lifted == Interactive || common > 0) && !o.barred(ses.class) {
			usable++
		}
	}
	if all > 0 && usable > 0 && o.counts.Started == o.startsAt {
		o.unclaimed++
		o.lateUnclaimed++
	} else {
		o.unclaimed, o.lateUnclaimed = 0, 0
	}
	if o.tickedAt < o.gather {
		o.unclaimed, o.lateUnclaimed = 0, 0
	}
	if o.haltSeen {
		o.unclaimed, o.lateUnclaimed, o.haltSeen = 0, 0, o.halted()
	}
	if o.tickedAt = o.now; o.now < o.grace {
		o.lateUnclaimed = 0
	}
	o.startsAt = o.counts.Started
	o.dispatch()
	o.choose()
	o.lately = o.count(oActive)
}

// dueAt is when something happens to a session by itself; false: nothing will.
func (o *oracle) dueAt(ses *oSession) (time.Duration, bool) {
	switch ses.state {
	case oActive:
		return ses.due, ses.running == 0
	case oPaused:
		return o.forgottenAt(ses), true
	}
	at, found := ses.noShow, len(ses.waiters) == 0
	if every := o.policy.AgingEvery; every > 0 && ses.state == oWaiting && !ses.moved && ses.lifted > Release && !o.restricted(ses.class) {
		to := ses.lifted - 1
		for to >= Release && o.restricted(to) {
			to--
		}
		lift := max(ses.since, o.windows.opened[ses.class]) - ses.waited + time.Duration(ses.class-to)*every
		if to >= Release && (!found || lift < at) {
			at, found = lift, true
		}
	}
	return at, found
}

// expire does what is due, the earliest first.
func (o *oracle) expire() {
	for {
		var next *oSession
		var at time.Duration
		for _, ses := range o.all() {
			if due, ok := o.dueAt(ses); ok && due <= o.now && (next == nil || due < at) {
				next, at = ses, due
			}
		}
		switch {
		case next == nil:
			return
		case next.state == oPaused:
			o.drop(next)
		case next.state == oActive:
			o.rest(next)
		case len(next.waiters) == 0 && next.noShow <= o.now:
			parked := next.state == oParked
			o.leaveOrder(next)
			o.end(oEnd{Class: next.class, Reason: ReasonNoShow, Wait: o.now - next.since})
			if parked {
				o.remember(next)
			} else {
				o.drop(next)
			}
		default:
			o.move(next, o.liftedClass(next))
		}
	}
}

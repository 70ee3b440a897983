package queue

import (
	"time"
)

// This file is the oracle's operator and modes (X7) and gate (U7).

// oOperated is what an operator did to a session.
type oOperated struct {
	stopped bool   // paused: parked when it would wait
	halting bool   // active: it was told to give its slot up, or ranges of it wait that get no place any more
	pinned  bool   // its class is the operator's
	moved   bool   // its place is
	apart   *oLane // the lane of its own that it stands in then, under ordered
	order   float64
}

// oExpelled is a key of a kicked session, or of one that was moved back.
type oExpelled struct {
	at, until time.Duration
	met, back bool
}

type oDesk struct {
	gateShut, haltSeen  bool
	expelled            map[Key]*oExpelled
	wouldLow, wouldHigh uint64 // bounds of Counts.WouldWait
}

func (o *oracle) halted() bool { return o.gateShut || o.policy.Mode == ModeQueueAll }
func (o *oracle) waves() bool  { return o.policy.Mode == ModeDryRun && !o.halted() && !o.draining }

// queues says whether an object of that size is a session.
func (o *oracle) queues(size int64) bool {
	return o.policy.Strategy != Shared && o.policy.Mode != ModePassThrough && size > o.policy.SessionMinBytes
}

// takes says whether a session whose client is present starts now, and counts it when it does so only in a dry run.
func (o *oracle) takes(ses *oSession) bool {
	if ses.state == oParked {
		return false
	}
	if !o.waves() {
		return o.mayTake(ses)
	}
	unsure, hint := false, o.hint
	o.hint = func(*oSession) bool { unsure = true; return true }
	may := o.mayTake(ses)
	o.hint = hint
	if !may {
		o.wouldLow++
		o.seen.waved++
	}
	if !may || unsure {
		o.wouldHigh++
	}
	return true
}

// refusedAnew is what a download without a session is told when it may not join.
func (o *oracle) refusedAnew(a *Ask) (oAnswer, bool) {
	if e := o.expelled[a.Key]; e != nil && e.back {
		a.Arrival = max(a.Arrival, e.at)
	} else if e != nil {
		if a.Ticketed && a.Arrival <= e.at {
			a.Ticketed = false
		}
		if !e.met {
			e.met, e.until = true, o.now+time.Second
		}
		if o.now <= e.until {
			return oAnswer{outcome: Kicked, class: a.Class}, true
		}
	}
	if o.policy.Mode == ModeRejectNew && !a.Ticketed {
		o.counts.RejectedNew++
		return oAnswer{outcome: Rejected, class: a.Class}, true
	}
	return oAnswer{}, false
}

func (o *oracle) expireExpelled() {
	for key, e := range o.expelled {
		if o.now-e.at >= 17*time.Minute {
			delete(o.expelled, key)
		}
	}
}

// haltChange is what a change of the mode or the gate does besides.
func (o *oracle) haltChange(was bool) { o.haltSeen = o.haltSeen || was || o.halted() }

func (o *oracle) setGate(open bool) {
	if o.gateShut == !open {
		return
	}
	was := o.halted()
	o.gateShut = !open
	o.haltChange(was)
	for _, ses := range o.all() {
		if ses.state == oActive {
			o.reconsider(ses)
			o.fill(ses)
		}
	}
	o.dispatch()
}

func (o *oracle) mustHalt(ses *oSession) bool {
	return ses.stopped && !o.draining && !ses.leaving && o.policy.Queues()
}

// givesUp says that an active session starts no more responses.
func (s *oSession) givesUp() bool { return s.yielding.ses != nil || s.halting }

// laneIn is the lane that a session stands in, in a class.
func (s *oSession) laneIn(c Class) *oLane {
	if s.apart != nil {
		return s.apart
	}
	return &s.who.lanes[c]
}

// peekTakes says whether a request that peeks would start its session.
func (o *oracle) peekTakes(ses *oSession) bool {
	return ses.state == oWaiting && (o.waves() || o.mayTake(ses))
}

// halt takes the slot of a paused session.
func (o *oracle) halt(ses *oSession) {
	o.freeSlot(ses, ReasonPaused)
	o.join(ses)
	if len(ses.waiters) == 0 {
		ses.told, ses.noShow, ses.checkAt = true, o.now+37500*time.Millisecond, o.now+15*time.Second
	}
	o.dispatch()
}

// unpark lets a parked session wait for a slot.
func (o *oracle) unpark(ses *oSession) {
	o.giveTurnBack(ses)
	ses.state = oWaiting
	o.enter(ses, o.liftedClass(ses))
	if ses.finish == 0 {
		o.enterVirtual(ses)
	}
}

// act is Act; false when it is refused.
func (o *oracle) act(key Key, a Action) bool {
	ses := o.sessions[key]
	if ses == nil {
		return false
	}
	switch a.Kind {
	case PauseIt:
		return o.pauseIt(ses)
	case ResumeIt:
		return o.resumeIt(ses)
	case KickIt:
		o.kick(ses)
		return true
	}
	if ses.state != oWaiting {
		return false
	}
	o.counts.Moved++
	c := ses.lifted
	ses.state, ses.moved, ses.apart = oDropped, false, nil
	rest := o.class(c)
	switch {
	case a.Kind == MoveClass:
		ses.state, ses.class, ses.pinned = oWaiting, a.Class, true
		o.enter(ses, o.liftedClass(ses))
	case a.Kind == MoveFront:
		o.moveFront(ses, c, rest)
		if e := o.expelled[ses.key]; e != nil && e.back {
			delete(o.expelled, ses.key)
		}
	default:
		ses.arrival, ses.ticketed = o.now, false
		o.moveBack(ses, c, rest)
		o.expel(ses, true, true)
	}
	ses.state = oWaiting
	o.dispatch()
	return true
}

// laneAndTurn is where a session stands under ordered, of all those of its class.
func (o *oracle) laneAndTurn(ses *oSession, all []*oSession) (*oLane, uint64) {
	if ses.apart != nil {
		return ses.apart, ses.apart.round
	}
	l := &ses.who.lanes[ses.lifted]
	turn := l.round
	for _, other := range all {
		if other == ses {
			break
		}
		if other.who == ses.who && other.apart == nil {
			turn++
		}
	}
	return l, turn
}

func (o *oracle) moveFront(ses *oSession, c Class, rest []*oSession) {
	if len(rest) == 0 {
		ses.state = oWaiting
		o.enter(ses, c)
		return
	}
	first := rest[0]
	ses.arrival = min(ses.arrival, first.arrival-1)
	ses.moved, ses.lifted = true, c
	if o.policy.Strategy == Ordered {
		l, turn := o.laneAndTurn(first, rest)
		o.number++
		ses.apart = &oLane{round: turn, ringArrival: l.ringArrival - 1, ringNumber: o.number}
		return
	}
	o.orderLike(ses, first, 0)
}

func (o *oracle) moveBack(ses *oSession, c Class, rest []*oSession) {
	if len(rest) == 0 {
		ses.state = oWaiting
		o.enter(ses, c)
		return
	}
	last := rest[len(rest)-1]
	ses.moved, ses.lifted = true, c
	if o.policy.Strategy == Ordered {
		l, turn := o.laneAndTurn(last, rest)
		o.number++
		if l.ringArrival > o.now {
			turn++
		}
		ses.apart = &oLane{round: turn, ringArrival: o.now, ringNumber: o.number}
		return
	}
	more := 0
	if last.arrival > o.now || last.arrival == o.now && last.number > ses.number {
		more = 1
	}
	o.orderLike(ses, last, more)
}

// orderLike gives a session the key of another one in a size order.
func (o *oracle) orderLike(ses, other *oSession, more int) {
	if o.policy.Strategy == FairSojourn {
		o.unghost(ses)
		if ses.finish = other.finish + int64(more); ses.finish > o.virtual {
			o.ghosts = append(o.ghosts, ses)
		}
		return
	}
	ses.order = o.sizeKey(other) + float64(more)
}

func (o *oracle) pauseIt(ses *oSession) bool {
	switch {
	case ses.stopped:
		return true
	case ses.state == oWaiting:
		ses.stopped, ses.state, ses.moved, ses.apart = true, oParked, false, nil
		ses.blockedBy = o.kept(ses)
	case ses.state == oActive && ses.protocol && ses.members == nil && !ses.leaving:
		ses.stopped, ses.halting = true, ses.yielding.ses != nil || len(ses.waiters) > 0
		ses.chosenFor, ses.yielding = oStay{}, oStay{}
	default:
		return false
	}
	o.counts.Paused++
	o.dispatch()
	return true
}

// kept is the head that a session gave way to and still stands back for.
func (o *oracle) kept(ses *oSession) oStay {
	if ses.blockedBy.waits() {
		return ses.blockedBy
	}
	return oStay{}
}

func (o *oracle) resumeIt(ses *oSession) bool {
	if !ses.stopped {
		return false
	}
	ses.stopped = false
	o.counts.Resumed++
	switch ses.state {
	case oParked:
		o.unpark(ses)
	case oActive:
		ses.halting = false
		o.fill(ses)
	}
	o.dispatch()
	return true
}

func (o *oracle) expel(ses *oSession, met, back bool) {
	if o.expelled == nil {
		o.expelled = map[Key]*oExpelled{}
	}
	o.expelled[ses.key] = &oExpelled{at: o.now, met: met, until: o.now - 1, back: back}
	o.expireExpelled()
}

func (o *oracle) kick(ses *oSession) {
	o.counts.Kicked++
	o.expel(ses, len(ses.waiters) > 0, false)
	o.answerAll(ses, Kicked)
	switch ses.state {
	case oWaiting, oParked:
		o.leaveOrder(ses)
		o.end(oEnd{Class: ses.class, Reason: ReasonKicked, Wait: o.now - ses.since})
		o.drop(ses)
		o.dispatch()
	case oActive:
		o.stop(ses, ReasonKicked)
	default:
		o.drop(ses)
	}
}

package queue

import (
	"errors"
	"time"
)

// Faults of an operator's action. The session is as it was.
var (
	// ErrUnknownSession: there is no session of that key or id.
	ErrUnknownSession = errors.New("cannot act on the session: it is not in the queue any more")
	// ErrNotWaiting: only a session that waits, and that no operator paused, can be moved.
	ErrNotWaiting = errors.New("cannot move the session: it does not wait for a slot")
	// ErrNotPausable: an active session of a plain client has no range boundary to stop at, a remembered one does nothing.
	ErrNotPausable = errors.New("cannot pause the session: only waiting ones and active ones of protocol clients can be paused")
	// ErrNotPaused: no operator paused it.
	ErrNotPaused = errors.New("cannot resume the session: no operator paused it")
	// ErrUnknownAction: Action.Kind or Action.Class is none of those there are.
	ErrUnknownAction = errors.New("cannot act on the session: no such action")
)

// ActionKind is what an operator does with a session.
type ActionKind uint8

// The actions.
const (
	MoveFront ActionKind = iota // next in the class it stands in
	MoveBack                    // behind all that wait in the class it stands in; its arrival is now
	MoveClass                   // into Action.Class, for as long as it lives
	PauseIt                     // it starts at no contact, or gives its slot up at its next range
	ResumeIt                    // undoes PauseIt
	KickIt                      // out: it may join anew, at the end
	actionCount
)

var actionNames = [actionCount]string{"front", "back", "class", "pause", "resume", "kick"}

// String returns the name used in logs.
func (k ActionKind) String() string {
	if k >= actionCount {
		return "unknown"
	}
	return actionNames[k]
}

// Actions is the number of kinds.
const Actions = ActionKind(actionCount)

// Action is one operator's action on one session.
type Action struct {
	Kind  ActionKind
	Class Class // of MoveClass
}

// Act carries an operator's action out on the session of a key. On an error (one of those above, unwrapped) nothing changed. O(log n), and O(sessions with
// slots) when it frees one.
//
// A moved session is not lifted by age. What its client says about its class no longer counts after MoveClass; a new size, a change of the strategy,
// MoveClass, a pause and a start end what MoveFront and MoveBack did, except that the arrival stays. Pausing a paused session changes nothing and is no error.
func (s *Scheduler) Act(now time.Duration, key Key, a Action) error {
	now = s.advance(now)
	key = key.Bounded()
	ses := s.sessions.find(&key)
	switch {
	case a.Kind >= actionCount, a.Kind == MoveClass && a.Class >= Classes:
		return ErrUnknownAction
	case ses == nil:
		return ErrUnknownSession
	}
	switch a.Kind {
	case PauseIt:
		return s.pauseIt(now, ses)
	case ResumeIt:
		return s.resumeIt(now, ses)
	case KickIt:
		s.kick(now, ses)
		return nil
	default:
		return s.move(now, ses, a)
	}
}

// move is the actions that change the place of a waiting session.
func (s *Scheduler) move(now time.Duration, ses *session, a Action) error {
	if ses.state != waiting {
		return ErrNotWaiting
	}
	s.counts.Moved++
	s.moves.Operated++
	s.orderChanges++
	switch class := ses.lifted; a.Kind {
	case MoveClass:
		s.unlane(ses)
		s.reage(ses, a.Class, ses.size)
		ses.pinned = true
		s.enlane(ses, s.liftedClass(now, ses))
	case MoveFront:
		s.unlane(ses)
		s.enlaneFirst(ses, class)
		s.expelled.forgetBack(ses.key())
	default:
		s.unlane(ses)
		ses.arrival, ses.ticketed = now, false
		s.enlaneLast(ses, class)
		s.expelled.addBack(now, ses.key())
	}
	ses.sample = promise{checkDeci: ses.sample.checkDeci} // what it was told was about another place
	s.plan(ses)
	s.dispatch(now)
	return nil
}

// pauseIt stops a session: a waiting one leaves the order, an active one its slot at the next range.
func (s *Scheduler) pauseIt(now time.Duration, ses *session) error {
	switch {
	case ses.stopped:
		return nil
	case ses.state == waiting:
		ses.stopped = true
		s.park(ses)
	case ses.state == active && ses.protocol && ses.bundle() == nil && !ses.stay.leaving:
		ses.stopped, ses.stay.yieldTo = true, nil
		ses.yielding = ses.yielding || ses.held() > 0 // ranges that wait for a place: that place is not given any more
		s.orderChanges++
	default:
		return ErrNotPausable
	}
	s.counts.Paused++
	s.dispatch(now)
	return nil
}

// resumeIt lets a stopped session go on: at its old arrival, or with the slot that it still has.
func (s *Scheduler) resumeIt(now time.Duration, ses *session) error {
	if !ses.stopped {
		return ErrNotPaused
	}
	ses.stopped = false
	s.counts.Resumed++
	switch ses.state {
	case parked:
		s.unpark(now, ses)
	case active:
		ses.yielding = false
		s.settleActive(ses)
	}
	s.dispatch(now)
	return nil
}

// park takes a waiting session out of the order and from the slots: nobody waits behind it. Under fair-sojourn it stays among those that share the link.
func (s *Scheduler) park(ses *session) {
	s.unlane(ses)
	s.fair.begin(ses)
	s.moves.Left[ses.lifted]++
	s.vanish(ses)
	s.waiting.remove(ses)
	s.byClass[waiting][ses.class]--
	s.parkNew(ses)
	ses.sample = promise{checkDeci: ses.sample.checkDeci}
	s.plan(ses)
}

// parkNew puts a session that is in no list among the parked ones.
func (s *Scheduler) parkNew(ses *session) {
	ses.state = parked
	s.parked.push(ses)
	s.entered[parked].insert(ses.ageKey(), 0, ses)
	s.byClass[parked][ses.class]++
	s.orderChanges++
}

// unpark puts a parked session back into the order, at its arrival.
func (s *Scheduler) unpark(now time.Duration, ses *session) {
	s.parked.remove(ses)
	s.entered[parked].remove(ses.ageKey())
	s.byClass[parked][ses.class]--
	s.fair.end(ses)
	if ses.stay != nil {
		s.giveBack(ses)
	}
	ses.state = waiting
	s.byClass[waiting][ses.class]++
	s.waiting.push(ses)
	s.enlane(ses, s.liftedClass(now, ses))
	s.moves.Returned[ses.lifted]++
	s.appear(ses)
	s.plan(ses)
	s.orderChanges++
}

// halt takes the slot of a session that the operator paused; it waits at its old arrival until it is resumed.
func (s *Scheduler) halt(now time.Duration, ses *session) {
	s.freeSlot(now, ses, ReasonPaused)
	s.join(now, ses)
	if ses.present == nil {
		ses.told = true // with the answer to its last request
		s.expect(now, ses, parkedCheck)
	} else {
		s.plan(ses)
	}
	s.dispatch(now)
}

// parkedCheck is when the client of a parked session asks again, less a quarter at most.
const parkedCheck = unknownCheck

// contactParked is contact of a session that the operator paused: it has no place and no start.
func (s *Scheduler) contactParked(now time.Duration, ses *session) Verdict {
	if !ses.told {
		ses.told = true
		s.counts.Queued++
	}
	v := Verdict{Outcome: Queued, Class: ses.class, Waited: now - ses.since, Arrival: ses.arrival}
	v.CheckIn = parkedCheck - time.Duration(mix(ses.number)%1024)*(parkedCheck/4096)
	s.expect(now, ses, v.CheckIn)
	return v
}

// haltAt answers the next request of an active session that the operator paused. The slot goes with its last response.
func (s *Scheduler) haltAt(now time.Duration, ses *session) Verdict {
	if ses.stay.running > 0 {
		ses.yielding = true
		return Verdict{Outcome: Queued, Class: ses.class, CheckIn: rangesCheck, Arrival: ses.arrival}
	}
	s.halt(now, ses)
	return s.contactParked(now, ses)
}

// mustHalt reports whether an active session gives its slot up because the operator paused it. When the process stops it may go on, and while nobody queues.
func (s *Scheduler) mustHalt(ses *session) bool {
	return ses.stopped && !s.draining && !ses.stay.leaving && s.policy.Queues()
}

// kick ends a session. The shell cuts the responses that run: to this core they are over.
func (s *Scheduler) kick(now time.Duration, ses *session) {
	s.counts.Kicked++
	met := ses.held() > 0
	s.answerAll(ses, s.kickedVerdict(now, ses.class))
	s.expelled.add(now, ses.key(), met)
	switch ses.state {
	case waiting, parked:
		s.stopWaiting(now, ses, ReasonKicked)
		s.dispatch(now)
	case active:
		s.stop(now, ses, ReasonKicked)
	default:
		s.forget(ses)
	}
}

// kickedCheck is when the client of a kicked session may come again.
const kickedCheck = unknownCheck

func (s *Scheduler) kickedVerdict(now time.Duration, class Class) Verdict {
	return Verdict{Outcome: Kicked, Class: class, CheckIn: kickedCheck, Arrival: now}
}

// Bounds of what is remembered of kicked sessions.
const (
	maxExpelled   = 4096             // beyond it the oldest is forgotten
	expelledFor   = 17 * time.Minute // a ticket is valid for 15 min and may be 2 min ahead: until then it would bring the old place back
	expelledEchos = time.Second      // one request may ask twice: all that come so soon after the first get its answer
)

// expulsions are the keys of kicked sessions: their next contact is told so, and their tickets do not bring the old place back. So they are of sessions that were moved
// back: a client that stays away until its session is dropped, and comes with a ticket of before, has the place that the operator gave it.
type expulsions struct {
	byKey map[Key]*expulsion
	order []*expulsion // the oldest first; those that were replaced by a later one are in it too
}

type expulsion struct {
	key   Key
	at    time.Duration
	met   bool          // a request of it was told
	until time.Duration // met: those up to then are told as well
	back  bool          // it was moved back, not kicked: nobody is told, and at is the earliest arrival of its tickets
}

func (x *expulsions) addBack(now time.Duration, key Key) {
	x.add(now, key, true)
	x.byKey[key].back = true
}

// forgetBack is for a session that is moved to the front afterwards.
func (x *expulsions) forgetBack(key Key) {
	if e := x.byKey[key]; e != nil && e.back {
		delete(x.byKey, key)
	}
}

func (x *expulsions) add(now time.Duration, key Key, met bool) {
	if x.byKey == nil {
		x.byKey = map[Key]*expulsion{}
	}
	e := &expulsion{key: key, at: now, met: met, until: now - 1}
	x.byKey[key] = e
	x.order = append(x.order, e)
	x.expire(now)
}

// expire forgets what is old or too much.
func (x *expulsions) expire(now time.Duration) {
	n := 0
	for ; n < len(x.order) && (now-x.order[n].at >= expelledFor || len(x.order)-n > maxExpelled); n++ {
		if e := x.order[n]; x.byKey[e.key] == e {
			delete(x.byKey, e.key)
		}
		x.order[n] = nil
	}
	x.order = x.order[n:] // append moves it to the front of new memory now and then
}

// answerExpelled is what the request of a download without a session is told when the operator kicked it; false: nothing. A ticket of before is void.
func (s *Scheduler) answerExpelled(now time.Duration, a *Ask) (Verdict, bool) {
	e := s.expelled.byKey[a.Key]
	if e == nil {
		return Verdict{}, false
	}
	if e.back {
		a.Arrival = max(a.Arrival, e.at)
		return Verdict{}, false
	}
	if a.Ticketed && a.Arrival <= e.at {
		a.Ticketed = false
	}
	if !e.met {
		e.met, e.until = true, now+expelledEchos
	}
	if now > e.until {
		return Verdict{}, false
	}
	return s.kickedVerdict(now, a.Class), true
}

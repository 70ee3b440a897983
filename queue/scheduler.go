package queue

import (
	"fmt"
	"time"
)

// Times of the rules that no setting changes.
const (
	PauseMemory    = 10 * time.Minute       // place in time and coverage of a paused session
	BundleHold     = 2 * time.Second        // slot of a bundle without responses: its client asks for the next object at once, or there is none
	TailHold       = 5 * time.Second        // slot of a session that read only the tail, without responses
	EndingSoon     = 5 * time.Second        // a session that ends within it counts as a free slot for the marks
	TickEvery      = 500 * time.Millisecond // cadence the shell calls Tick at
	firstCheck     = 2 * time.Second
	firstSpread    = 4 * time.Second // over which newcomers of one moment are spread
	checkFloor     = 2 * time.Second
	headFloor      = time.Second
	checkCeiling   = 5 * time.Minute
	noShowMargin   = 15 * time.Second
	drainCheck     = 2 * time.Second
	rangesCheck    = 2 * time.Second
	unknownCheck   = 15 * time.Second // next check while no estimate can be made
	limitCheckLow  = 30 * time.Second // a full queue: spread between the two by key
	limitCheckHigh = time.Minute
)

// strideUnit over a weight is what one slot costs a class; the largest weight still leaves 20 bits of precision.
const strideUnit = 1 << 30

// Settled is a held request that got its answer: Response is set exactly when Verdict.Outcome is Admitted.
type Settled struct {
	Owner    any // as given to Hold
	Response *Response
	Verdict  Verdict
}

// Scheduler is the queue's state machine. Its invariants, which CheckInvariants proves:
//
//	I1 every session is in exactly one state; sums over classes, principals and indexes agree
//	I2 active <= max(slots in force, active when they were last lowered or a dry run ended)
//	I3 active outside Interactive <= max(slots in force - Reserve, the same when they were last lowered or a dry run ended)
//	I4 a lane is ordered by (arrival, number); the order of a class holds its lanes' turns without a gap, or its sessions
//	I5 active and waiting (parked ones included) <= max(QueueLimit, the same when it was last lowered); with paused <= that bound + paused eviction
//	I6 an active session without a response, and every waiting, parked or paused session without a held request, has a due time
//	I7 a session with held requests is waiting or parked, or active with all its places taken
//	I8 outside the window of a class its waiting sessions, and no others, stand in its order; active ones that began outside are counted
//
// It has no lock, clock or goroutine: the shell that owns it serialises calls and passes now, monotonic since any fixed
// moment. A now before the last one counts as the last one.
type Scheduler struct {
	policy   Policy
	draining bool
	now      time.Duration
	number   uint64 // last given

	sessions   index
	principals map[string]*principal
	objects    map[string]*object
	waiting    waitBook
	paused     list // by start of the pause
	parked     list // paused by the operator, in no order
	active     []*session
	present    []*session   // waiting sessions with held requests, in no order
	full       []*principal // principals at their share
	due        dueWheel

	lines      [Classes]line
	lastPass   uint64 // pass of the last slot given
	staleLanes []*lane
	fair       fairShare

	apart     map[*session]*lane         // Ordered: lanes of single sessions that the operator moved
	strays    map[strayOf]*tree[*lane]   // the same by principal and class, in the order of the class
	entered   [stateCount]tree[*session] // active, paused and parked sessions by when they became that; parked ones by start of the wait
	expelled  expulsions
	gateShut  bool          // the upstream serves no new session
	haltSeen  bool          // since the last tick nobody got a slot for a time, because of mode or gate
	haltEnded time.Duration // when that was so last: promises of before are void

	lowered       int                      // sessions when the policy last changed: a lowered limit holds for newcomers
	byClass       [stateCount][Classes]int // by applied class
	held          int
	unclaimed     uint64 // ticks in a row that ended with a free slot, somebody waiting and nobody come
	inGrace       uint64 // those of them in the grace after a restart, when newcomers take no slot: they count only in it
	startsTick    uint64 // starts seen by the last tick
	extra         int    // elastic slots open now
	stretched     time.Duration
	rate          rateMeter
	model         model
	calibration   calibration
	activeChanges uint64
	slotChanges   uint64
	orderChanges  uint64

	counts                  Counts
	promises                Promises
	moves                   Moves
	ticked                  time.Duration // the last tick
	gatherUntil, graceUntil time.Duration
	shuffles                [Classes]shuffle
	calendar                calendar
	influx                  influx
	settled                 []Settled
	ended                   []End
}

// New returns an empty scheduler, or the policy's faults.
func New(policy Policy) (*Scheduler, error) {
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("cannot create the queue: %w", err)
	}
	s := &Scheduler{policy: policy, sessions: newIndex(), principals: map[string]*principal{}, objects: map[string]*object{}, calendar: newCalendar()}
	s.fair.on = policy.Strategy == FairSojourn
	s.haltSeen = s.halted()
	return s, nil
}

// Policy returns the rules in force.
func (s *Scheduler) Policy() Policy { return s.policy }

// Ask decides about one request without holding it. The response is not nil exactly when the outcome is Admitted; the
// caller then owes it one Finish or Abandon.
func (s *Scheduler) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	now = s.advance(now)
	_, r, verdict := s.decide(now, &a)
	return r, verdict
}

// decide is Ask; the session is nil when the request has none.
func (s *Scheduler) decide(now time.Duration, a *Ask) (*session, *Response, Verdict) {
	ses, verdict := s.enter(now, a)
	if ses == nil {
		return nil, nil, verdict
	}
	if a.Peek {
		return ses, nil, s.peek(now, ses)
	}
	if ses.state == active && s.mustHalt(ses) {
		return ses, nil, s.haltAt(now, ses)
	}
	if ses.state == active && (ses.yielding || ses.stay.yieldTo != nil) {
		if verdict, yields := s.yieldAt(now, ses); yields {
			return ses, nil, verdict
		}
	}
	if ses.state == waiting || ses.state == parked {
		switch {
		case s.eligible(ses):
		case ses.state == parked || !s.waves():
			return ses, nil, s.contact(now, ses)
		default:
			s.wave(now)
		}
		s.admit(now, ses)
		s.settleActive(ses) // requests of the same session that were held before come first
	}
	if ses.stay.running >= s.policy.RangesPerSession {
		return ses, nil, rangesBusy(ses)
	}
	return ses, s.begin(ses, a.Range, a.Validator, uint8(a.place)), s.admittedVerdict(ses)
}

// enter finds or makes the session of a request; nil with a verdict when it has none.
func (s *Scheduler) enter(now time.Duration, a *Ask) (*session, Verdict) {
	a.Key = a.Key.Bounded()
	if a.Class >= Classes {
		a.Class = Background
	}
	ses := s.sessions.find(&a.Key)
	if a.Bundle = ses.asBundle(a); a.Bundle && !s.policy.session(a.SizeBytes) {
		return nil, Verdict{Outcome: PerRequest, Class: a.Class} // a small object between big ones leaves its bundle alone
	}
	if ses != nil && ses.state == active {
		s.refresh(ses, a)
		return ses, Verdict{}
	}
	if !s.policy.session(a.SizeBytes) {
		if ses != nil && (ses.state == waiting || ses.state == parked) {
			s.stopWaiting(now, ses, ReasonPolicy)
		}
		return nil, Verdict{Outcome: PerRequest, Class: a.Class}
	}
	if s.draining {
		return nil, Verdict{Outcome: Draining, Class: a.Class, CheckIn: drainCheck}
	}
	if ses == nil {
		if verdict, kicked := s.answerExpelled(now, a); kicked {
			return nil, verdict
		}
		if s.policy.Mode == ModeRejectNew && !a.Ticketed {
			return nil, s.rejected(a)
		}
	}
	if ses == nil || ses.state == paused {
		if !s.room(a.Key.Principal) {
			s.counts.Refused++
			return nil, Verdict{Outcome: LimitReached, Class: a.Class, CheckIn: s.limitCheck(a.Key)}
		}
	}
	if ses == nil {
		ses = s.create(now, a)
	} else {
		s.refresh(ses, a)
	}
	if ses.state == paused {
		s.wakePaused(now, ses)
	}
	return ses, Verdict{}
}

// room reports whether one more session may live. Paused sessions only remember: they make way, the oldest first.
func (s *Scheduler) room(name string) bool {
	live := s.waiting.count + s.parked.count + len(s.active)
	if live >= s.policy.QueueLimit {
		return false
	}
	if s.policy.Mode == ModeDryRun {
		return true // which delays nobody
	}
	if p := s.principals[name]; p != nil && int(p.live) >= s.policy.QueuePerPrincipal {
		return false
	}
	return true
}

func (s *Scheduler) create(now time.Duration, a *Ask) *session {
	for s.paused.count > 0 && s.sessions.count >= s.policy.QueueLimit {
		s.forget(s.paused.head)
	}
	p := s.principals[a.Key.Principal]
	if p == nil {
		p = &principal{name: a.Key.Principal, fullIndex: -1}
		s.principals[p.name] = p
	}
	p.refs++
	o := s.objects[a.Key.Object]
	if o == nil {
		o = &object{name: a.Key.Object}
		s.objects[o.name] = o
	}
	o.refs++
	s.number++
	ses := &session{
		principal: p, object: o, client: a.Key.Client, number: s.number, class: a.Class, protocol: a.Protocol, size: a.SizeBytes,
		arrival: now, promised: -1, ticketed: a.Ticketed,
	}
	if a.Bundle {
		ses.stay = &stay{start: -1, bundle: &bundle{}}
		ses.size = ses.describe(a)
	}
	switch {
	case a.Ticketed:
		ses.arrival = min(a.Arrival, now)
	default:
		ses.arrival = s.drawArrival(now, a)
	}
	s.sessions.add(ses)
	s.join(now, ses)
	s.moves.Arrived[ses.lifted]++
	return ses
}

// refresh takes over what a later request says about the object and the class.
func (s *Scheduler) refresh(ses *session, a *Ask) {
	ses.protocol = ses.protocol || a.Protocol && !a.Bundle
	if ses.pinned {
		a.Class = ses.class
	}
	size := ses.describe(a)
	switch ses.state {
	case active:
		if size >= 0 && size != ses.size {
			ses.size = size
			s.activeChanges++
		}
	case paused:
		s.byClass[paused][ses.class]--
		ses.class, ses.size = a.Class, size
		s.byClass[paused][ses.class]++
	default:
		if ses.size == size && ses.class == a.Class {
			return
		}
		s.orderChanges++
		if ses.state == waiting && s.policy.Strategy == Ordered && ses.class == a.Class {
			s.resize(ses, size)
			return
		}
		if ses.state == waiting {
			s.unlane(ses)
		}
		if ses.size != size {
			s.fair.leave(ses)
			ses.order = 0
		}
		s.reage(ses, a.Class, size)
		if ses.state == parked {
			return
		}
		s.enlane(ses, s.liftedClass(s.now, ses))
		s.moves.Reclassed[ses.lifted]++
		s.plan(ses)
	}
}

// validate forgets start and coverage when the object is another one than before.
func (s *session) validate(validator string) {
	if s.stay == nil || validator == "" || validator == s.stay.validator {
		return
	}
	if s.stay.validator != "" {
		s.stay.covered, s.stay.start = nil, -1
	}
	s.stay.validator = validator
}

// Leave cancels a session on its client's word: a waiting one at once, an active one with its last response. Its place
// in time is forgotten. A key without a session is left alone; held requests of it are answered Gone.
func (s *Scheduler) Leave(now time.Duration, key Key) {
	now = s.advance(now)
	key = key.Bounded()
	ses := s.sessions.find(&key)
	switch {
	case ses == nil:
	case ses.state == waiting, ses.state == parked:
		s.answerAll(ses, Verdict{Outcome: Gone, Class: ses.class, Held: true})
		s.stopWaiting(now, ses, ReasonCancelled)
	case ses.state == paused:
		s.forget(ses)
	case ses.running() > 0:
		s.answerAll(ses, Verdict{Outcome: Gone, Class: ses.class, Held: true})
		ses.stay.leaving = true
	default:
		s.stop(now, ses, ReasonCancelled)
	}
}

// TakeSettled hands over the held requests answered since the last call. The shell calls it after every other call.
func (s *Scheduler) TakeSettled() []Settled {
	out := s.settled
	s.settled = nil
	return out
}

// TakeEnded hands over the records of stays that ended since the last call.
func (s *Scheduler) TakeEnded() []End {
	out := s.ended
	s.ended = nil
	return out
}

func (s *Scheduler) advance(now time.Duration) time.Duration {
	if s.now = max(s.now, now); s.calendar.next <= s.now {
		s.turnWindows()
	}
	return s.now
}

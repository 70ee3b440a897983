package queue

import (
	"fmt"
	"time"
)

// Times of the rules that no setting changes.
const (
	PauseMemory    = 10 * time.Minute       // place in time and coverage of a paused session
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
//	I2 active <= max(slots in force, active when they were last lowered)
//	I3 active outside Interactive <= max(slots in force - Reserve, the same when they were last lowered)
//	I4 a lane is ordered by (arrival, number); the order of a class holds its lanes' turns without a gap, or its sessions
//	I5 active and waiting <= max(QueueLimit, the same when it was last lowered); with paused <= that bound + paused eviction
//	I6 an active session without a response, and every waiting or paused session without a held request, has a due time
//	I7 a session with held requests is waiting, or active with all its places taken
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
	waiting    list // by start of the wait
	paused     list // by start of the pause
	active     []*session
	present    []*session   // waiting sessions with held requests, in no order
	full       []*principal // principals at their share
	due        dueWheel

	lines      [Classes]line
	lastPass   uint64 // pass of the last slot given
	staleLanes []*lane
	fair       fairShare

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

	counts     Counts
	promises   Promises
	moves      Moves
	graceUntil time.Duration
	shuffles   [Classes]shuffle
	settled    []Settled
	ended      []End
}

// New returns an empty scheduler, or the policy's faults.
func New(policy Policy) (*Scheduler, error) {
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("cannot create the queue: %w", err)
	}
	s := &Scheduler{policy: policy, sessions: newIndex(), principals: map[string]*principal{}, objects: map[string]*object{}}
	s.fair.on = policy.Strategy == FairSojourn
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
	if ses.state == active && (ses.yielding || ses.stay.yieldTo != nil) {
		if verdict, yields := s.yieldAt(now, ses); yields {
			return ses, nil, verdict
		}
	}
	if ses.state == waiting {
		if !s.eligible(ses) {
			return ses, nil, s.contact(now, ses)
		}
		s.admit(now, ses)
		s.settleActive(ses) // requests of the same session that were held before come first
	}
	if ses.stay.running >= s.policy.RangesPerSession {
		return ses, nil, Verdict{Outcome: RangesBusy, Class: ses.class, Waited: ses.stay.wait, CheckIn: rangesCheck, Arrival: ses.arrival}
	}
	return ses, s.begin(ses, a.Range, a.Validator), s.admittedVerdict(ses)
}

// Hold decides as Ask does, but a request that must wait (Queued, RangesBusy) stays as a waiter: its client counts as
// present. Its answer comes from TakeSettled with this owner, unless Withdraw takes it back first.
func (s *Scheduler) Hold(now time.Duration, a Ask, owner any) (*Waiter, *Response, Verdict) {
	now = s.advance(now)
	ses, r, verdict := s.decide(now, &a)
	if verdict.Outcome != Queued && verdict.Outcome != RangesBusy || ses.yielding {
		return nil, r, verdict
	}
	w := &Waiter{owner: owner, session: ses, asked: a.Range, validator: a.Validator}
	if ses.present == nil {
		ses.present = &presence{index: -1}
	}
	ses.present.waiters.push(w)
	s.held++
	verdict.Held = true
	if ses.state == waiting {
		s.appear(ses)
		s.plan(ses)
	}
	return w, nil, verdict
}

// appear and vanish keep the list of waiting sessions whose clients are here.
func (s *Scheduler) appear(ses *session) {
	if ses.present != nil && ses.present.index < 0 && ses.present.waiters.count > 0 {
		ses.present.index = len(s.present)
		s.present = append(s.present, ses)
	}
}

func (s *Scheduler) vanish(ses *session) {
	if ses.present == nil || ses.present.index < 0 {
		return
	}
	i, last := ses.present.index, len(s.present)-1
	s.present[i] = s.present[last]
	s.present[i].present.index = i
	s.present[last] = nil
	s.present = s.present[:last]
	ses.present.index = -1
}

// release takes a held request away from its session.
func (s *Scheduler) release(w *Waiter) {
	ses := w.session
	ses.present.waiters.remove(w)
	s.held--
	if ses.present.waiters.count == 0 {
		s.vanish(ses)
		ses.present = nil
	}
}

// Depart ends a held request whose client left; false as of Withdraw. A plain client's session with nobody else present leaves the line: it is remembered
// as after a pause, so that a client that timed out comes back to its old arrival, while nobody waits behind an absent one and nothing counts it as
// waiting. A protocol client is not expected to stay connected: its session waits on until its no-show.
func (s *Scheduler) Depart(now time.Duration, w *Waiter) bool {
	now = s.advance(now)
	ses := w.session
	if ses == nil {
		return false
	}
	s.release(w)
	switch {
	case ses.state != waiting || ses.present != nil:
	case ses.protocol:
		s.contact(now, ses)
	default:
		s.record(End{Class: ses.class, Reason: ReasonCancelled, Wait: now - ses.since, Promised: ses.promisedWait()})
		s.unwait(now, ses)
		ses.principal.live--
		s.remember(now, ses)
		s.dispatch(now)
	}
	return true
}

// Withdraw ends a held request without a slot because its wait is over. The session keeps its place until
// the told CheckIn, half of it and a margin have passed. A waiter that was settled before is left alone: the answer is
// in TakeSettled, and false is returned.
func (s *Scheduler) Withdraw(now time.Duration, w *Waiter) (Verdict, bool) {
	now = s.advance(now)
	ses := w.session
	if ses == nil {
		return Verdict{}, false
	}
	s.release(w)
	if ses.state == waiting {
		verdict := s.contact(now, ses)
		verdict.Held = true
		return verdict, true
	}
	return Verdict{Outcome: RangesBusy, Class: ses.class, Held: true, Waited: ses.stay.wait, CheckIn: rangesCheck, Arrival: ses.arrival}, true
}

// enter finds or makes the session of a request; nil with a verdict when it has none.
func (s *Scheduler) enter(now time.Duration, a *Ask) (*session, Verdict) {
	a.Key = a.Key.Bounded()
	if a.Class >= Classes {
		a.Class = Background
	}
	ses := s.sessions.find(&a.Key)
	if ses != nil && ses.state == active {
		s.refresh(ses, a)
		return ses, Verdict{}
	}
	if !s.policy.session(a.SizeBytes) {
		if ses != nil && ses.state == waiting {
			s.stopWaiting(now, ses, ReasonPolicy)
		}
		return nil, Verdict{Outcome: PerRequest, Class: a.Class}
	}
	if s.draining {
		return nil, Verdict{Outcome: Draining, Class: a.Class, CheckIn: drainCheck}
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
	live := s.waiting.count + len(s.active)
	if live >= s.policy.QueueLimit {
		return false
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
	switch {
	case a.Ticketed:
		ses.arrival = min(a.Arrival, now)
	default:
		ses.arrival = s.shuffles[a.Class].arrival(now, hashOf(a.Key))
	}
	s.sessions.add(ses)
	s.join(now, ses)
	s.moves.Arrived[ses.lifted]++
	return ses
}

// refresh takes over what a later request says about the object and the class.
func (s *Scheduler) refresh(ses *session, a *Ask) {
	ses.protocol = ses.protocol || a.Protocol
	ses.validate(a.Validator)
	switch ses.state {
	case active:
		if a.SizeBytes >= 0 {
			ses.size = a.SizeBytes
		}
	case paused:
		s.byClass[paused][ses.class]--
		ses.class, ses.size = a.Class, a.SizeBytes
		s.byClass[paused][ses.class]++
	default:
		if ses.size == a.SizeBytes && ses.class == a.Class {
			return
		}
		s.unlane(ses)
		s.byClass[waiting][ses.class]--
		if ses.size != a.SizeBytes {
			s.fair.leave(ses)
			ses.order = 0
		}
		ses.class, ses.size = a.Class, a.SizeBytes
		s.byClass[waiting][ses.class]++
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
	case ses.state == waiting:
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
	s.now = max(s.now, now)
	return s.now
}

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
//	I2 active <= max(Sessions, active when Sessions was last lowered)
//	I3 active outside Interactive <= max(Sessions-Reserve, the same when they were last lowered)
//	I4 within a lane the order is (arrival, number), and the tree of the class keeps it
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

	sessions   map[Key]*session
	principals map[string]*principal
	waiting    list // by start of the wait
	paused     list // by start of the pause
	active     []*session
	due        dueHeap

	trees    [Classes]tree
	rounds   [Classes]uint64 // round of the last session that took a slot
	passes   [Classes]uint64 // stride pass of the class's next slot
	lastPass uint64          // pass of the last slot given
	repairs  []*lane

	byClass       [stateCount][Classes]int // by applied class
	held          int
	marks         []*session
	unclaimed     uint64 // ticks in a row that ended with a free slot, somebody waiting and nobody come
	startsTick    uint64 // starts seen by the last tick
	cursors       [Classes]cursor
	rate          rateMeter
	model         model
	activeChanges uint64

	counts     Counts
	moves      Moves
	graceUntil time.Duration
	settled    []Settled
	ended      []End
}

// New returns an empty scheduler, or the policy's faults.
func New(policy Policy) (*Scheduler, error) {
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("cannot create the queue: %w", err)
	}
	return &Scheduler{policy: policy, sessions: map[Key]*session{}, principals: map[string]*principal{}}, nil
}

// Policy returns the rules in force.
func (s *Scheduler) Policy() Policy { return s.policy }

// Ask decides about one request without holding it. The response is not nil exactly when the outcome is Admitted; the
// caller then owes it one Finish or Abandon.
func (s *Scheduler) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	now = s.advance(now)
	ses, verdict := s.enter(now, &a)
	if ses == nil {
		return nil, verdict
	}
	if ses.state == waiting {
		if !s.take(now, ses) {
			return nil, s.contact(now, ses)
		}
		s.settleActive(ses) // requests of the same session that were held before come first
	}
	if ses.running >= s.policy.RangesPerSession {
		return nil, Verdict{Outcome: RangesBusy, Class: ses.class, Waited: ses.wait, CheckIn: rangesCheck, Arrival: ses.arrival}
	}
	return s.begin(ses, a.Range), s.admittedVerdict(ses)
}

// Hold decides as Ask does, but a request that must wait (Queued, RangesBusy) stays as a waiter: its client counts as
// present. Its answer comes from TakeSettled with this owner, unless Withdraw takes it back first.
func (s *Scheduler) Hold(now time.Duration, a Ask, owner any) (*Waiter, *Response, Verdict) {
	r, verdict := s.Ask(now, a)
	if verdict.Outcome != Queued && verdict.Outcome != RangesBusy {
		return nil, r, verdict
	}
	ses := s.sessions[a.Key.Bounded()]
	w := &Waiter{owner: owner, session: ses, asked: a.Range}
	ses.waiters.push(w)
	s.held++
	verdict.Held = true
	if ses.state == waiting {
		s.plan(ses)
	}
	return w, nil, verdict
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
	ses.waiters.remove(w)
	s.held--
	switch {
	case ses.state != waiting || ses.waiters.head != nil:
	case ses.protocol:
		s.contact(now, ses)
	default:
		s.record(End{Class: ses.class, Reason: ReasonCancelled, Wait: now - ses.since, Promised: ses.promised})
		s.unwait(now, ses)
		ses.principal.live--
		ses.promised = -1
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
	ses.waiters.remove(w)
	s.held--
	if ses.state == waiting {
		verdict := s.contact(now, ses)
		verdict.Held = true
		return verdict, true
	}
	return Verdict{Outcome: RangesBusy, Class: ses.class, Held: true, Waited: ses.wait, CheckIn: rangesCheck, Arrival: ses.arrival}, true
}

// enter finds or makes the session of a request; nil with a verdict when it has none.
func (s *Scheduler) enter(now time.Duration, a *Ask) (*session, Verdict) {
	a.Key = a.Key.Bounded()
	if a.Class >= Classes {
		a.Class = Background
	}
	ses := s.sessions[a.Key]
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
	if p := s.principals[name]; p != nil && p.live >= s.policy.QueuePerPrincipal {
		return false
	}
	return true
}

func (s *Scheduler) create(now time.Duration, a *Ask) *session {
	for s.paused.count > 0 && len(s.sessions) >= s.policy.QueueLimit {
		s.forget(s.paused.head)
	}
	p := s.principals[a.Key.Principal]
	if p == nil {
		p = &principal{name: a.Key.Principal}
		s.principals[p.name] = p
	}
	p.refs++
	s.number++
	ses := &session{
		key: a.Key, number: s.number, principal: p, class: a.Class, protocol: a.Protocol, size: a.SizeBytes, validator: a.Validator,
		arrival: now, start: -1, dueIndex: -1, promised: -1,
	}
	s.sessions[ses.key] = ses
	s.join(now, ses)
	return ses
}

// refresh takes over what a later request says about the object and the class.
func (s *Scheduler) refresh(ses *session, a *Ask) {
	ses.protocol = ses.protocol || a.Protocol
	if a.Validator != "" && a.Validator != ses.validator {
		if ses.validator != "" {
			ses.covered, ses.start = nil, -1
		}
		ses.validator = a.Validator
	}
	if ses.state == active {
		if a.SizeBytes >= 0 {
			ses.size = a.SizeBytes
		}
		return
	}
	if ses.state == paused {
		s.byClass[paused][ses.class]--
		ses.class, ses.size = a.Class, a.SizeBytes
		s.byClass[paused][ses.class]++
		return
	}
	if ses.size == a.SizeBytes && ses.class == a.Class {
		return
	}
	s.unlane(ses)
	s.byClass[waiting][ses.class]--
	ses.class, ses.size = a.Class, a.SizeBytes
	s.byClass[waiting][ses.class]++
	s.enlane(ses, s.liftedClass(s.now, ses))
}

// Leave cancels a session on its client's word: a waiting one at once, an active one with its last response. Its place
// in time is forgotten. A key without a session is left alone; held requests of it are answered Gone.
func (s *Scheduler) Leave(now time.Duration, key Key) {
	now = s.advance(now)
	ses := s.sessions[key.Bounded()]
	switch {
	case ses == nil:
	case ses.state == waiting:
		s.answerAll(ses, Verdict{Outcome: Gone, Class: ses.class, Held: true})
		s.stopWaiting(now, ses, ReasonCancelled)
	case ses.state == paused:
		s.forget(ses)
	case ses.running > 0:
		s.answerAll(ses, Verdict{Outcome: Gone, Class: ses.class, Held: true})
		ses.leaving = true
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

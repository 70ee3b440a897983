package queue

import (
	"hash/maphash"
	"time"
)

// The operator's view reads and changes nothing: what it tells does not depend on when it was asked before, and a replay of the calls needs none of it. Each
// call does a bounded amount of work (see Page.Visited); a shell may let others have the lock between two of them.

// SessionID names a session to the operator: a hash of its key under a seed of the process, the same for as long as the process lives.
type SessionID uint64

// IDSeed is what ids are made by.
func (s *Scheduler) IDSeed() maphash.Seed { return s.sessions.seed }

// UseIDSeed makes the ids those of another scheduler of the process. It must come before the first request.
func (s *Scheduler) UseIDSeed(seed maphash.Seed) {
	if s.sessions.count == 0 {
		s.sessions.seed = seed
	}
}

// KeyOf returns the key of the session with that id; false when there is none. Of two sessions whose ids are the same, which among a million has a
// probability of 1 in 30 million, only one is found. O(1).
func (s *Scheduler) KeyOf(id SessionID) (Key, bool) {
	if ses := s.sessions.byHash[uint64(id)]; ses != nil {
		return ses.key(), true
	}
	return Key{}, false
}

// idOf returns the id of a session.
func (s *Scheduler) idOf(ses *session) SessionID {
	key := ses.key()
	return SessionID(s.sessions.hash(&key))
}

// ShownState is the state of a session as the operator sees it.
type ShownState uint8

// The states.
const (
	ShownWaiting    ShownState = iota // for a slot, or for the operator that paused it
	ShownActive                       // with a slot
	ShownRemembered                   // its place in time is kept for PauseMemory, nothing else
)

// String returns the name in documents.
func (s ShownState) String() string {
	switch s {
	case ShownWaiting:
		return "waiting"
	case ShownActive:
		return "active"
	case ShownRemembered:
		return "remembered"
	default:
		return "unknown"
	}
}

// Why says what a waiting session waits for.
type Why uint8

// The causes, in the order in which they are looked at: the first that holds is told.
const (
	WhyNone     Why = iota // it does not wait
	WhyOperator            // an operator paused it
	WhyGate                // the upstream serves no new session
	WhyMode                // ModeQueueAll
	WhyWindow              // its class is outside its window
	WhyGrace               // after a restart others come first, or nobody starts yet
	WhyYielded             // it gave its slot up and waits for the head to start
	WhyTurn                // it starts at its next contact
	WhySlots               // no slot is free
	WhyReserve             // what is free is reserved for interactive ones
	WhyShare               // its principal has its share
	WhyOrder               // others come first
)

var whyNames = [...]string{"", "operator", "gate", "mode", "window", "grace", "yielded", "turn", "slots", "reserve", "share", "order"}

// String returns the word in documents, empty for WhyNone.
func (w Why) String() string {
	if int(w) >= len(whyNames) {
		return "unknown"
	}
	return whyNames[w]
}

// Shown is one session as the operator sees it.
type Shown struct {
	ID        SessionID
	Key       Key
	Number    uint64
	State     ShownState
	Class     Class // applied
	StandsIn  Class // class it waits in, after aging
	Protocol  bool
	Stopped   bool // an operator paused it
	Held      int  // held requests
	Members   int  // objects of a bundle, 0 = it is none
	SizeBytes int64
	SentBytes int64         // of the object or bundle: delivered to the end of a response, or by one that runs
	Arrival   time.Duration // place in time, on the clock of now; may be negative
	Since     time.Duration // start of the state
	Waited    time.Duration // waiting: so far; active: for the slot it has

	// Of waiting ones.
	Position int // in the order, from 1; 0 = in none
	Why      Why
	// The start, as Verdict has it.
	EstimateKnown                  bool
	StartsIn, EarliestIn, LatestIn time.Duration
}

// show describes a session. Ahead is the number of sessions before a waiting one.
func (s *Scheduler) show(now time.Duration, ses *session, ahead int) Shown {
	v := Shown{
		ID: s.idOf(ses), Key: ses.key(), Number: ses.number, Class: ses.class, StandsIn: ses.class, Protocol: ses.protocol,
		Stopped: ses.stopped, Held: ses.held(), Members: ses.members(), SizeBytes: ses.size, SentBytes: ses.sent(), Arrival: ses.arrival, Since: ses.since,
	}
	switch ses.state {
	case active:
		v.State, v.Waited = ShownActive, ses.stay.wait
	case paused:
		v.State = ShownRemembered
	case parked:
		v.Waited, v.Why = now-ses.since, WhyOperator
	case waiting:
		v.Waited, v.StandsIn, v.Position, v.Why = now-ses.since, ses.lifted, ahead+1, s.why(ses, ahead)
		if !s.halted() {
			_, bytes := s.place(ses, false)
			var told Verdict
			s.foretell(now, ses, ahead, bytes, &told)
			v.EstimateKnown, v.StartsIn, v.EarliestIn, v.LatestIn = told.EstimateKnown, told.StartsIn, told.EarliestIn, told.LatestIn
		}
	}
	return v
}

// sent counts the bytes of a session that were delivered.
func (s *session) sent() int64 {
	st := s.stay
	switch {
	case st == nil:
		return 0
	case st.bundle != nil:
		return min(st.bundle.size()-st.bundle.left()+st.openBytes, s.size)
	default:
		return min(st.covered.bytesFrom(0)+st.openBytes, max(s.size, 0))
	}
}

// Work of telling why: beyond these bounds what is told is less exact, WhyOrder where a longer look might find WhyTurn.
const (
	whyFull  = 64  // principals at their share that are passed over one by one
	whyGrace = 256 // places in the order that are walked in the grace
)

// why says what a waiting session with that many before it waits for.
func (s *Scheduler) why(ses *session, ahead int) Why {
	all, common := s.free()
	slots := all
	if ses.class != Interactive {
		slots = common
	}
	var head *session
	switch {
	case s.gateShut:
		return WhyGate
	case s.policy.Mode == ModeQueueAll:
		return WhyMode
	case s.waves():
		return WhyTurn
	case s.calendar.bars[ses.class]:
		return WhyWindow
	case s.gathering(), s.now < s.graceUntil && ses.newcomer():
		return WhyGrace
	case s.mustStandBack(ses):
		return WhyYielded
	case all == 0:
		return WhySlots
	case slots == 0:
		return WhyReserve
	case s.now < s.graceUntil && ahead >= whyGrace:
		return WhyOrder
	}
	if head = s.front(common == 0); len(s.full) > whyFull && !s.overShare(ses, head) {
		if window, windowCommon := s.windows(); ahead >= max(window, windowCommon) {
			return WhyOrder
		}
	}
	switch {
	case s.eligible(ses):
		return WhyTurn
	case s.overShare(ses, head):
		return WhyShare
	default:
		return WhyOrder
	}
}

// Overview is what the operator sees of the queue at a glance.
type Overview struct {
	Snapshot
	GateOpen        bool
	Gathering       bool                   // nobody starts yet after a restart
	Grace           bool                   // those who held places before it come first
	OldestWaitOf    [Classes]time.Duration // for a slot, by applied class
	WaitingBytes    [Classes]int64         // sizes of waiting sessions by applied class, each at most 4 TiB
	RemainingBytes  int64                  // that active sessions have to come
	EmptyKnown      bool                   // whether the next one is known
	EmptyIn         time.Duration          // when the last one of the order starts; 0 = nobody waits. Those that an operator paused do not count
	EstimatedAt     time.Duration          // when the forecast behind it was made
	RememberedTotal int
}

// Overview returns the state for the operator. O(active sessions).
func (s *Scheduler) Overview(now time.Duration) Overview {
	now = s.advance(now)
	o := Overview{
		Snapshot: s.Snapshot(now), GateOpen: !s.gateShut, Gathering: s.gathering(), Grace: now < s.graceUntil, EstimatedAt: s.model.at, RememberedTotal: s.paused.count,
	}
	for c := range Class(Classes) {
		o.OldestWaitOf[c] = s.oldestWait(now, c)
	}
	o.WaitingBytes = s.waiting.bytes
	for _, ses := range s.active {
		o.RemainingBytes += min(ses.remaining(), 1<<50)
	}
	o.EmptyIn, o.EmptyKnown = s.emptyIn(now)
	return o
}

// emptyIn is when the last session of the order starts. With windows that is not always the one that stands last: a class outside its window goes at its own pace,
// so the last of each class is looked at.
func (s *Scheduler) emptyIn(now time.Duration) (in time.Duration, known bool) {
	if s.waiting.count == 0 {
		return 0, true
	}
	if s.halted() {
		return 0, false
	}
	if !s.calendar.some {
		return s.startsIn(now, s.last())
	}
	for c := range s.lines {
		l := &s.lines[c]
		if l.count == 0 {
			continue
		}
		cursor := l.cursorAt(l.count - 1)
		start, known := s.startsIn(now, cursor.next())
		if !known {
			return 0, false
		}
		in = max(in, start)
	}
	return in, true
}

// startsIn is when a waiting session starts, as its client would be told.
func (s *Scheduler) startsIn(now time.Duration, ses *session) (time.Duration, bool) {
	ahead, bytes := s.place(ses, false)
	var told Verdict
	s.foretell(now, ses, ahead, bytes, &told)
	return told.StartsIn, told.EstimateKnown
}

// last returns the session at the end of the order, which is not empty.
func (s *Scheduler) last() (last *session) {
	s.walkFrom(s.waiting.count-1, func(ses *session) bool { last = ses; return true })
	return last
}

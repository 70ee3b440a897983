package queue

import (
	"cmp"
	"slices"
	"time"
)

// The oracle is the queue the slow way: plain maps and slices, every order sorted anew for every question, nothing
// counted that can be recounted. It is written from the rules and not from the core. What it cannot know it is told by
// the core and only checks: the CheckIn of a verdict, the slots that the measured rate opened, and, when the number of
// sessions that end within EndingSoon decides, whether the window reached a session (hint).

type oState uint8

const (
	oWaiting oState = iota
	oActive
	oPaused
	oParked
	oDropped
)

type oSession struct {
	key            Key
	number         uint64
	who            *oPrincipal
	class, lifted  Class
	state          oState
	slots          int // it had
	entered        int // order in which sessions entered the states they are in
	protocol       bool
	ticketed       bool
	returned       bool // it was paused before: it is no newcomer
	size           int64
	validator      string
	arrival, since time.Duration
	waited, wait   time.Duration
	told           bool
	noShow, due    time.Duration // due: idle end of an active one, 0 while responses run
	checkAt        time.Duration // when its client was told to come
	charged        *oLane
	start          int64
	covered        []bool
	running        int
	open, bytes    int64
	announced      bool
	leaving        bool
	waiters        []*oWaiter
	chosenFor      oStay               // head that this active session is to give its slot to
	yielding       oStay               // and has said so while responses of it still run
	blockedBy      oStay               // head that this waiting session has yielded to
	finish         int64               // F of fair-sojourn
	from           int64               // offset from which F counts the bytes to come
	members        map[uint64]*oMember // objects of a bundle
	largest        int64               // size of one of them
	outside        bool                // began outside the window of its class
	oOperated
}

// oStay is one wait of a session.
type oStay struct {
	ses   *oSession
	since time.Duration
}

func (w oStay) waits() bool { return w.ses != nil && w.ses.state == oWaiting && w.ses.since == w.since }

type oLane struct {
	round       uint64
	ringArrival time.Duration // place of the lane in the ring: of the session that made it non-empty
	ringNumber  uint64
}

type oPrincipal struct {
	name  string
	lanes [Classes]oLane
}

type oResponse struct {
	ses    *oSession
	asked  RangeAsk
	member uint64
	size   int64 // of the object
	bytes  int64
	done   bool
}

type oWaiter struct {
	id        int
	ses       *oSession // nil once settled or withdrawn
	asked     RangeAsk
	validator string
	member    uint64
}

// oAnswer is what of a verdict the oracle answers for.
type oAnswer struct {
	outcome  Outcome
	class    Class
	position int
	yielded  bool
	started  bool
	arrival  time.Duration
	response *oResponse
}

type oEnd struct {
	Class          Class
	Reason         Reason
	Started        bool
	Wait, Duration time.Duration
	Bytes          int64
}

func (a oEnd) compare(b oEnd) int {
	started := func(e oEnd) int {
		if e.Started {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Reason, b.Reason), cmp.Compare(started(a), started(b)),
		cmp.Compare(a.Wait, b.Wait), cmp.Compare(a.Duration, b.Duration), cmp.Compare(a.Bytes, b.Bytes))
}

type oracle struct {
	policy        Policy
	draining      bool
	now           time.Duration
	number        uint64
	entries       int
	sessions      map[Key]*oSession
	who           map[string]*oPrincipal
	slots         int // in force
	rounds        [Classes]uint64
	passes        [Classes]uint64
	lastPass      uint64
	unclaimed     int
	lateUnclaimed int    // since the grace after a restart
	startsAt      uint64 // Counts.Started at the last tick
	lately        int    // most active sessions since the last tick
	rated         bool   // bytes were delivered or a band is configured: sessions may count as ending soon
	gather, grace time.Duration
	tickedAt      time.Duration
	shuffled      [Classes]oShuffle
	windows       oWindows
	oDesk

	virtual int64       // V of fair-sojourn
	pool    int64       // delivered bytes that did not suffice for one more each
	ghosts  []*oSession // sessions in the virtual system

	counts  Counts
	settled map[int]oAnswer
	ended   []oEnd

	// hint says whether the core gave that session a slot in this event; asked only where the oracle cannot know.
	hint      func(*oSession) bool
	grants    []int    // held requests that got a slot in this event, in the core's order
	coreSaid  *Verdict // answer of the core to this event
	undecided int      // questions that only the hint answered
	seen      seen

	// coreChose says for which head the core chose an active session to yield, see believeChoice.
	coreChose func(Key) (Key, bool)
	coreKnows func(Key) bool
	fault     error
}

// seen counts what histories must have in them to prove anything about it.
type seen struct{ ready, bundles, returned, overdue, windows, acts, waved int }

func (a seen) plus(b seen) seen {
	return seen{a.ready + b.ready, a.bundles + b.bundles, a.returned + b.returned, a.overdue + b.overdue, a.windows + b.windows, a.acts + b.acts, a.waved + b.waved}
}

type oShuffle struct{ from, until time.Duration }

func newOracle(p Policy) *oracle {
	return &oracle{policy: p, slots: p.Sessions, sessions: map[Key]*oSession{}, who: map[string]*oPrincipal{},
		settled: map[int]oAnswer{}, rated: p.BandBytesPerSecond > 0, windows: oWindows{share: [Classes]int{1000, 1000, 1000, 1000}}, oDesk: oDesk{haltSeen: p.Mode == ModeQueueAll}}
}

// ask is Ask, and hold is Ask with a request that stays.
func (o *oracle) ask(a Ask) oAnswer {
	a.Class = min(a.Class, Background)
	ses := o.sessions[a.Key]
	small := !o.queues(a.SizeBytes)
	a.Bundle = o.bundled(ses, &a)
	switch {
	case a.Bundle && small:
		return oAnswer{outcome: PerRequest, class: a.Class}
	case ses != nil && ses.state == oActive:
		o.learn(ses, &a)
		if a.SizeBytes >= 0 {
			ses.size = ses.describe(&a)
		}
		if a.Peek {
			return o.peek(ses)
		}
		return o.next(ses, a)
	case small:
		if ses != nil && (ses.state == oWaiting || ses.state == oParked) {
			o.endByPolicy(ses)
		}
		return oAnswer{outcome: PerRequest, class: a.Class}
	case o.draining:
		return oAnswer{outcome: Draining, class: a.Class}
	}
	if ses == nil {
		if answer, refused := o.refusedAnew(&a); refused {
			return answer
		}
	} else if ses.pinned {
		a.Class = ses.class
	}
	if ses == nil || ses.state == oPaused {
		if o.count(oWaiting)+o.count(oParked)+o.count(oActive) >= o.policy.QueueLimit ||
			o.policy.Mode != ModeDryRun && o.live(a.Key.Principal) >= o.policy.QueuePerPrincipal {
			o.counts.Refused++
			return oAnswer{outcome: LimitReached, class: a.Class}
		}
	}
	switch {
	case ses == nil:
		ses = o.create(&a)
	case ses.state == oPaused:
		o.learn(ses, &a)
		ses.class, ses.size = a.Class, ses.describe(&a)
		o.giveTurnBack(ses)
		o.counts.Rejoined++
		o.join(ses)
	default:
		o.learn(ses, &a)
		o.reclass(ses, a.Class, ses.describe(&a))
	}
	if a.Peek {
		return o.peek(ses)
	}
	if !o.takes(ses) {
		return o.contact(ses)
	}
	o.admit(ses)
	o.fill(ses)
	return o.next(ses, a)
}

// next answers a request of an active session.
func (o *oracle) next(ses *oSession, a Ask) oAnswer {
	if o.mustHalt(ses) {
		if ses.running > 0 {
			ses.halting = true
			return oAnswer{outcome: Queued, class: ses.class, arrival: ses.arrival}
		}
		o.halt(ses)
		return o.contact(ses)
	}
	if o.yields(ses) {
		if ses.running == 0 {
			o.yield(ses)
			return o.contactYielded(ses)
		}
		return oAnswer{outcome: Queued, class: ses.class, yielded: true, arrival: ses.arrival}
	}
	if ses.running >= o.policy.RangesPerSession {
		return oAnswer{outcome: RangesBusy, class: ses.class, arrival: ses.arrival}
	}
	return o.begin(ses, a.Range, a.Validator, a.Member)
}

func (o *oracle) begin(ses *oSession, asked RangeAsk, validator string, member uint64) oAnswer {
	r := &oResponse{ses: ses, asked: asked, size: ses.size}
	if ses.members != nil {
		r.member, r.size = member, ses.members[member].size
	} else {
		ses.validate(validator)
		if offset, sets := oracleStart(asked, ses.size); sets && (ses.start < 0 || offset < ses.start) {
			ses.start = offset
		}
	}
	ses.running++
	ses.due = 0
	started := !ses.announced
	ses.announced = true
	return oAnswer{outcome: Admitted, class: ses.class, started: started, arrival: ses.arrival, response: r}
}

// oracleStart is Q13: which requests set the start, tail reads (a suffix, a bounded range to the last byte) do not,
// unless they begin at the first byte.
func oracleStart(r RangeAsk, size int64) (int64, bool) {
	switch {
	case r.Kind == RangeSuffix && r.Last < size:
		return 0, false
	case r.Kind == RangeBounded && r.First > 0 && r.Last >= size-1:
		return 0, false
	case r.Kind == RangeOpen || r.Kind == RangeBounded:
		return max(0, r.First), true
	}
	return 0, true
}

// learn takes over what a request says about the client and the bytes.
func (o *oracle) learn(ses *oSession, a *Ask) {
	if ses.members != nil {
		return
	}
	ses.protocol = ses.protocol || a.Protocol
	if ses.slots > 0 { // before its first slot nothing could be forgotten
		ses.validate(a.Validator)
	}
}

// validate forgets the bytes of another object.
func (s *oSession) validate(validator string) {
	if validator == "" || validator == s.validator {
		return
	}
	if s.validator != "" {
		s.covered, s.start = nil, -1
	}
	s.validator = validator
}

func (o *oracle) create(a *Ask) *oSession {
	for len(o.sessions) >= o.policy.QueueLimit {
		oldest := o.oldestPaused()
		if oldest == nil {
			break
		}
		o.drop(oldest)
	}
	p := o.who[a.Key.Principal]
	if p == nil {
		p = &oPrincipal{name: a.Key.Principal}
		o.who[p.name] = p
	}
	o.number++
	ses := &oSession{key: a.Key, number: o.number, who: p, class: a.Class, protocol: a.Protocol, size: a.SizeBytes,
		arrival: o.now, start: -1, ticketed: a.Ticketed, state: oDropped}
	if sh := o.shuffled[a.Class]; !a.Ticketed && o.now < sh.until && o.coreSaid != nil {
		if at := o.coreSaid.Arrival; at >= sh.from && at <= sh.until {
			ses.arrival = at // drawn by the core; anything outside the window shows as a difference
		}
	}
	if a.Ticketed {
		ses.arrival = min(a.Arrival, o.now)
	}
	if a.Bundle {
		ses.members = map[uint64]*oMember{}
		ses.size = ses.describe(a)
	}
	o.sessions[ses.key] = ses
	o.join(ses)
	return ses
}

// contact tells a waiting client its place.
func (o *oracle) contact(ses *oSession) oAnswer {
	if !ses.told {
		o.counts.Queued++
	}
	ses.told = true
	o.expects(ses)
	return oAnswer{outcome: Queued, class: ses.class, position: slices.Index(o.merged(), ses) + 1, arrival: ses.arrival}
}

// expects notes when the client of a waiting session was told to come.
func (o *oracle) expects(ses *oSession) {
	if o.coreSaid != nil {
		ses.noShow = o.now + o.coreSaid.CheckIn + o.coreSaid.CheckIn/2 + 15*time.Second
		ses.checkAt = ses.noShow - 15*time.Second - (o.coreSaid.CheckIn+99*time.Millisecond).Truncate(100*time.Millisecond)/2
	}
}

func (o *oracle) contactYielded(ses *oSession) oAnswer {
	a := o.contact(ses)
	a.yielded = true
	return a
}

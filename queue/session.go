package queue

import (
	"hash/maphash"
	"time"
)

// state of a session.
type state uint8

const (
	waiting state = iota // in a lane, the order of its class and the list of waiting sessions
	active               // holds a slot
	paused               // holds nothing; its place in time and coverage are remembered for PauseMemory
	parked               // waits, but for the operator who paused it: in no lane and order
	stateCount
	gone = stateCount // in no index any more
)

// session is one client's download of one object. It belongs to the scheduler that made it. A queue may hold a million, so it is
// packed, and what only sessions with a slot need is behind stay. Times that need no clock of nanoseconds are float32 seconds.
type session struct {
	principal *principal
	object    *object
	client    string

	number   uint64
	size     int64
	order    int64         // key of a size order; 0 under Ordered
	arrival  time.Duration // place in time, kept over pauses
	since    time.Duration // start of the current state
	noShowAt time.Duration // waiting: when an absent client loses its place; 0 = it was not told anything yet
	sample   promise       // one of its answers, for the judgement of estimates
	stay     *stay         // nil until its first slot
	present  *presence     // nil without held requests

	wheelPrev, wheelNext *session
	link                 links // waiting or paused list

	wheelSlot    uint32  // slot of the due wheel + 1, 0 = in none; enough for 68 years of TickEvery
	waitedMillis uint32  // of earlier waits that aging counts
	promised     float32 // seconds of waiting that the first estimate promised, -1 = none yet

	class     Class // applied class
	lifted    Class // class it waits in, after aging
	state     state
	protocol  bool
	ticketed  bool // its arrival was proved by a ticket
	yielding  bool // active: was told to give its slot up, which its last running response will do
	virtual   bool // it is among the others of the virtual system of equal sharing
	inHistory bool // paused in this queue before: its arrival is an old one
	told      bool // waiting: it was told to wait, which is counted once
	stopped   bool // the operator paused it: it does not wait for a slot, or gives it up at its next range
	moved     bool // waiting: the operator gave it a place that is not its own
	pinned    bool // the operator gave it its class
}

// waited is the time of earlier waits that aging counts.
func (s *session) waited() time.Duration { return time.Duration(s.waitedMillis) * time.Millisecond }

// hasWaited adds to it; beyond 49 days it stays.
func (s *session) hasWaited(d time.Duration) {
	s.waitedMillis = uint32(min(int64(s.waitedMillis)+d.Milliseconds(), 1<<32-1))
}

// promisedWait is the wait that the first estimate promised, -1 without one, as End reports it.
func (s *session) promisedWait() time.Duration {
	if s.promised < 0 {
		return -1
	}
	return seconds(float64(s.promised))
}

// yieldTo is the head of the queue that gets, or got, this one's slot; nil when there is none, or it has ended the wait in which
// it was given way to. Only that wait counts: two that gave way to each other in turn would otherwise wait for each other.
func (s *session) yieldTo() *session {
	if s.stay == nil || s.stay.yieldTo == nil {
		return nil
	}
	if head := s.stay.yieldTo; head.state != waiting || head.since != s.stay.yieldSince {
		s.stay.yieldTo = nil
	}
	return s.stay.yieldTo
}

// stay is what a session with a slot, or one that had it, knows.
type stay struct {
	yieldTo     *session      // head of the queue that gets, or got, the slot
	yieldSince  time.Duration // start of the wait of that head: another wait of it is another matter
	charged     *lane         // lane that paid a turn for the slot; the turn is given back when the session rejoins after a pause
	bundle      *bundle       // the objects of a bundle; nil: the session is of one object
	validator   string
	start       int64 // smallest offset asked apart from tail reads, -1 = only tail reads so far
	countedFrom int64 // fair-sojourn: offset from which F counts the bytes to come
	covered     coverage
	wait        time.Duration // of the wait that ended with the slot
	running     int           // responses
	openBytes   int64         // of the running responses
	bytes       int64         // delivered with this slot
	idleAt      time.Duration // without responses: when the slot is freed
	activeIndex int
	ending      bool // counted among the sessions that end soon
	weighed     bool // counted in the share of slow clients
	announced   bool // the response that took the slot was handed out
	leaving     bool // ends as cancelled with its last response
	outside     bool // began while its class was outside its window
}

// presence is the held requests of a session: its client is here.
type presence struct {
	waiters waiterList
	index   int // in the scheduler's list of present waiting sessions, -1 = not in it
}

func (s *session) held() int {
	if s.present == nil {
		return 0
	}
	return s.present.waiters.count
}

func (s *session) key() Key { return Key{s.principal.name, s.object.name, s.client} }

// is reports whether the session has that bounded key.
func (s *session) is(k *Key) bool {
	return s.client == k.Client && s.object.name == k.Object && s.principal.name == k.Principal
}

// running counts the running responses.
func (s *session) running() int {
	if s.stay == nil {
		return 0
	}
	return s.stay.running
}

// remaining counts the bytes still to deliver.
func (s *session) remaining() int64 {
	if s.stay == nil {
		return s.size
	}
	if b := s.stay.bundle; b != nil {
		return max(b.left()-s.stay.openBytes, 0)
	}
	start := max(s.stay.start, 0)
	return max(s.size-start-s.stay.covered.bytesFrom(start)-s.stay.openBytes, 0)
}

// weight is what the sums of the orders take it for: its size, at most 4 TiB, so that a full queue of any sizes sums up.
func (s *session) weight() int64 { return min(s.size, 1<<42) }

// complete reports whether the download has all its bytes and no response runs. A bundle is never known to be: its client may ask for one
// more object.
func (s *session) complete() bool {
	st := s.stay
	return st.bundle == nil && st.running == 0 && st.start >= 0 && st.covered.covers(st.start, s.size)
}

// asked notes the range of a response that starts.
func (s *session) asked(r RangeAsk) {
	st := s.stay
	if st.bundle != nil {
		return
	}
	if offset, sets := r.startOf(s.size); sets && (st.start < 0 || offset < st.start) {
		st.start = offset
	}
}

func (s *session) orderNumber() uint64 { return s.number }

// ageKey is the place of a session among those that came into their state at different times.
func (s *session) ageKey() orderKey { return orderKey{int64(s.since), 0, s.number} }

// laneKey is the place of a session in its lane and, under a size order, in its class.
func (s *session) laneKey() orderKey { return orderKey{s.order, int64(s.arrival), s.number} }

// object is the name of an object, shared by the sessions that download it.
type object struct {
	name string
	refs int
}

// principal shares state between all sessions of one principal. It lives while it has any.
type principal struct {
	name      string
	refs      int32 // sessions in every state
	live      int32 // active and waiting sessions
	active    int32
	fullIndex int32 // in the scheduler's list of principals at their share, -1 = not in it
	own       lane  // the first lane it needed; most principals need no other
	more      *[Classes]lane
}

// lane returns the principal's lane in a class, nil when it never had one.
func (p *principal) lane(class Class) *lane {
	switch {
	case p.own.used && p.own.class == class:
		return &p.own
	case p.more != nil && p.more[class].used:
		return &p.more[class]
	default:
		return nil
	}
}

// needLane returns the principal's lane in a class, made when it is the first time.
func (p *principal) needLane(class Class) *lane {
	l := p.lane(class)
	switch {
	case l != nil:
		return l
	case !p.own.used:
		l = &p.own
	default:
		if p.more == nil {
			p.more = new([Classes]lane)
		}
		l = &p.more[class]
	}
	l.used, l.class, l.stale = true, class, -1
	return l
}

// lane is the waiting sessions of one principal in one class. Under Ordered the session at index i has the turn round+i, and the
// order of the class holds one entry for each of these turns: a session that leaves from the middle takes the last turn with it,
// and those behind it move up without being touched.
type lane struct {
	round   int64
	arrival int64 // ring key: arrival and number of the session that made the lane non-empty
	number  uint64
	one     *session       // the only session of a lane of one
	many    tree[*session] // the sessions of a longer one
	count   int32
	stale   int32 // turns from this index on may carry the bytes of a neighbour, -1 = none
	class   Class
	used    bool
	listed  bool // in the scheduler's list of lanes with stale bytes
}

func (l *lane) orderNumber() uint64 { return l.number }

// turnKey is the key of the lane's turn for index i in the order of its class.
func (l *lane) turnKey(i int) orderKey { return orderKey{l.round + int64(i), l.arrival, l.number} }

func (l *lane) add(s *session) {
	switch l.count {
	case 0:
		l.one = s
	case 1:
		l.many.insert(l.one.laneKey(), l.one.weight(), l.one)
		l.one = nil
		fallthrough
	default:
		l.many.insert(s.laneKey(), s.weight(), s)
	}
	l.count++
}

func (l *lane) drop(s *session) {
	l.count--
	if l.count == 0 {
		l.one = nil
		return
	}
	l.many.remove(s.laneKey())
	if l.count == 1 {
		l.one = l.many.at(0).item
		l.many = tree[*session]{}
	}
}

// index returns how many sessions of the lane come before one with that key.
func (l *lane) index(key orderKey) int {
	if l.count <= 1 {
		if l.count == 1 && l.one.laneKey().before(key) {
			return 1
		}
		return 0
	}
	return l.many.before(key)
}

// at returns the session at index i.
func (l *lane) at(i int) *session {
	if l.count == 1 {
		return l.one
	}
	return l.many.at(i).item
}

// links makes a session a member of one list.
type links struct{ prev, next *session }

// list is a doubly linked list of sessions, the oldest first.
type list struct {
	head, tail *session
	count      int
}

func (l *list) push(s *session) {
	s.link = links{prev: l.tail}
	if l.tail == nil {
		l.head = s
	} else {
		l.tail.link.next = s
	}
	l.tail = s
	l.count++
}

func (l *list) remove(s *session) {
	if s.link.prev == nil {
		l.head = s.link.next
	} else {
		s.link.prev.link.next = s.link.next
	}
	if s.link.next == nil {
		l.tail = s.link.prev
	} else {
		s.link.next.link.prev = s.link.prev
	}
	s.link = links{}
	l.count--
}

// index finds sessions by their key. The hash is seeded by the process, so that names cannot be chosen to collide; should two
// meet nevertheless, the later one is filed by its whole key.
type index struct {
	seed    maphash.Seed
	byHash  map[uint64]*session
	collide map[Key]*session
	count   int
}

func newIndex() index { return index{seed: maphash.MakeSeed(), byHash: map[uint64]*session{}} }

func (x *index) hash(k *Key) uint64 {
	return mix(maphash.String(x.seed, k.Principal)^mix(maphash.String(x.seed, k.Object))) ^ maphash.String(x.seed, k.Client)
}

// find returns the session of a bounded key, nil when there is none.
func (x *index) find(k *Key) *session {
	s := x.byHash[x.hash(k)]
	if s != nil && s.is(k) {
		return s
	}
	if len(x.collide) == 0 {
		return nil
	}
	return x.collide[*k]
}

// all calls yield with every session, in no order.
func (x *index) all(yield func(*session) bool) {
	for _, s := range x.byHash {
		if !yield(s) {
			return
		}
	}
	for _, s := range x.collide {
		if !yield(s) {
			return
		}
	}
}

func (x *index) add(s *session) {
	x.count++
	key := s.key()
	hash := x.hash(&key)
	if x.byHash[hash] == nil {
		x.byHash[hash] = s
		return
	}
	if x.collide == nil {
		x.collide = map[Key]*session{}
	}
	x.collide[key] = s
}

func (x *index) remove(s *session) {
	x.count--
	key := s.key()
	if hash := x.hash(&key); x.byHash[hash] == s {
		delete(x.byHash, hash)
		return
	}
	delete(x.collide, key)
}

// mix spreads a number over 64 bits (the finalizer of SplitMix64, Steele et al. 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

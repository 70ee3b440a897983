package queue

import (
	"slices"
	"time"
)

// state of a session.
type state uint8

const (
	waiting state = iota // in a lane, a tree and the list of waiting sessions
	active               // holds a slot
	paused               // holds nothing; its place in time and coverage are remembered for PauseMemory
	stateCount
)

// mark says whether a waiting session may take a free slot when its client is present.
type mark uint8

const (
	unmarked    mark = iota
	markedFirst      // by its place in the order
	markedSpare      // over its principal's share, after the slot stayed unclaimed
)

// session is one client's download of one object. It belongs to the scheduler that made it.
type session struct {
	key       Key
	number    uint64
	principal *principal
	class     Class // applied class
	lifted    Class // class it waits in, after aging
	state     state
	protocol  bool
	marked    mark
	announced bool  // the response that took the slot was handed out
	leaving   bool  // ends as cancelled with its last response
	charged   *lane // lane that paid a turn for its slot; given back when the session rejoins after a pause
	size      int64
	validator string

	arrival  time.Duration // place in time, kept over pauses
	since    time.Duration // start of the current state
	waited   time.Duration // of earlier waits that aging counts
	wait     time.Duration // of the wait that ended with the slot it has
	promised time.Duration // wait the first estimate promised, -1 = none yet
	noShowAt time.Duration // waiting: when an absent client loses its place

	start     int64 // smallest offset asked apart from tail reads, -1 = only tail reads so far
	covered   coverage
	running   int   // responses
	openBytes int64 // of the running responses
	bytes     int64 // delivered with this slot

	waiters     waiterList // held requests, first come first
	due         time.Duration
	dueIndex    int // in the scheduler's due heap, -1 = not in it
	activeIndex int
	link        links // waiting or paused list
	node        node  // tree of its lane's class
}

// remaining counts the bytes still to deliver.
func (s *session) remaining() int64 {
	start := max(s.start, 0)
	return max(s.size-start-s.covered.bytesFrom(start)-s.openBytes, 0)
}

// complete reports whether the download has all its bytes and no response runs.
func (s *session) complete() bool {
	return s.running == 0 && s.start >= 0 && s.covered.covers(s.start, s.size)
}

// asked notes the range of a response that starts.
func (s *session) asked(r RangeAsk) {
	if offset, sets := r.startOf(s.size); sets && (s.start < 0 || offset < s.start) {
		s.start = offset
	}
}

// principal shares state between all sessions of one principal. It lives while it has any.
type principal struct {
	name   string
	refs   int // sessions in every state
	live   int // active and waiting sessions
	active int
	lanes  [Classes]lane
}

// lane is the FIFO of one principal in one class, by (arrival, number). The session at index i has its turn in round
// round+i. Removing from the middle leaves gaps and inserting there leaves doubles, which keep the FIFO order; they are
// closed once for all changes by repair.
type lane struct {
	round  uint64
	queue  []*session
	listed bool // in the scheduler's list of lanes to repair
}

func (l *lane) find(s *session) (int, bool) {
	return slices.BinarySearchFunc(l.queue, s, func(a, b *session) int {
		switch {
		case a == b:
			return 0
		case a.arrival != b.arrival:
			if a.arrival < b.arrival {
				return -1
			}
			return 1
		case a.number < b.number:
			return -1
		default:
			return 1
		}
	})
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

// Response is one running response of a session: what Admitted grants. It belongs to the scheduler that returned it and
// is used under the same lock.
type Response struct {
	session *session
	asked   RangeAsk
	bytes   int64
	done    bool
}

// Class returns the class the session was admitted in.
func (r *Response) Class() Class { return r.session.class }

// Waiter is one held request. It belongs to the scheduler that returned it; after it was settled or withdrawn it is
// dead.
type Waiter struct {
	owner      any
	session    *session // nil once settled or withdrawn
	asked      RangeAsk
	prev, next *Waiter
}

type waiterList struct {
	head, tail *Waiter
	count      int
}

func (l *waiterList) push(w *Waiter) {
	w.prev, w.next = l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.count++
}

func (l *waiterList) remove(w *Waiter) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.session = nil, nil, nil
	l.count--
}

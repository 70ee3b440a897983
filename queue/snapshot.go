package queue

import "time"

// Counts are the events since the start. They only grow.
type Counts struct {
	Queued   uint64          // sessions that had to wait, counted when they are first told so
	Rejoined uint64          // paused sessions that came back at their old arrival
	Started  uint64          // sessions that got a slot
	Refused  uint64          // requests refused by a full queue
	Ended    [Reasons]uint64 // stays that ended, by Reason

	Moved, Paused, Resumed, Kicked uint64 // actions of operators that changed something

	RejectedNew  uint64        // requests of new downloads that ModeRejectNew refused
	WouldWait    uint64        // sessions that started in a dry run and would have waited
	WouldWaitFor time.Duration // the waits of those together, as far as a rate was known
}

// Promises judge what waiting clients were told: of every session that got a slot, one of its answers, drawn evenly from all of
// them. They only grow.
type Promises struct {
	Judged uint64 // answers with a known estimate whose session started
	Within uint64 // the start was within 10 % of the promised wait, or within one minute
	Held   uint64 // the start was not later than the told LatestIn
}

// Moves count what changes places in the order, so that a position that rose can be explained. They only grow.
type Moves struct {
	Arrived    [Classes]uint64 // sessions that joined, by the class they stand in
	Returned   [Classes]uint64 // paused sessions that came back at their old arrival
	Lifted     [Classes]uint64 // sessions that aging moved into the class
	Yielded    [Classes]uint64 // sessions that gave their slot up and wait anew
	Reclassed  [Classes]uint64 // waiting sessions whose client or object changed their class or size
	Left       [Classes]uint64 // sessions that left the class's order without a slot: those behind move between turns
	Granted    [Classes]uint64 // slots given to the class: passes of classes move
	Configured uint64          // changes of the policy
	Windows    uint64          // changes of the classes' windows
	Operated   uint64          // sessions that an operator moved
}

// Placed is one waiting session in the order, as Order shows it.
type Placed struct {
	Key       Key
	Number    uint64
	Class     Class // applied
	Lifted    Class // class it stands in, after aging
	SizeBytes int64
	Arrival   time.Duration
	Since     time.Duration // start of this wait
	Protocol  bool
	Held      int // held requests
	Members   int // objects of a bundle, 0 = it is none
}

// Snapshot is the queue at one moment: a value that shares nothing with the queue.
type Snapshot struct {
	Policy     Policy
	Draining   bool
	Active     [Classes]int  // sessions with a slot, by applied class
	Waiting    [Classes]int  // sessions without one, by applied class, those included that an operator paused
	Stopped    [Classes]int  // of these, those that an operator paused: they are in no order
	Paused     int           // remembered sessions
	Held       int           // requests held by this process
	OldestWait time.Duration // for a slot: those that an operator paused do not count
	Counts     Counts

	Windows [Classes]WindowState // windows of the classes

	Slots    int      // slots in force: Policy.Sessions and the elastic ones open now
	Promises Promises // how good the promised starts were

	RateBytesPerSecond int64 // that estimates use; 0 = unknown
	TickDuration       time.Duration
}

// ActiveTotal is the number of active sessions.
func (s Snapshot) ActiveTotal() int { return total(s.Active) }

// WaitingTotal is the number of waiting sessions.
func (s Snapshot) WaitingTotal() int { return total(s.Waiting) }

func total(byClass [Classes]int) (n int) {
	for _, v := range byClass {
		n += v
	}
	return n
}

// Snapshot returns the state. O(1); TickDuration is the shell's to fill in.
func (s *Scheduler) Snapshot(now time.Duration) Snapshot {
	now = s.advance(now)
	snap := Snapshot{
		Policy: s.policy, Draining: s.draining, Active: s.byClass[active], Waiting: s.byClass[waiting], Paused: s.paused.count,
		Held: s.held, Counts: s.counts, Slots: s.slots(), Promises: s.promises, RateBytesPerSecond: int64(s.model.peak),
	}
	for c := range snap.Windows {
		snap.Windows[c] = s.calendar.state(Class(c))
	}
	for c := range s.lines {
		snap.Stopped[c] = s.byClass[parked][c]
		snap.Waiting[c] += snap.Stopped[c]
		snap.OldestWait = max(snap.OldestWait, s.oldestWait(now, Class(c)))
	}
	return snap
}

// Moves returns the counters of what changed the order. O(1).
func (s *Scheduler) Moves() Moves { return s.moves }

// Order calls yield with the waiting sessions in their order, the one at position 1 first, until it returns false. O(n log n) for
// all of them; the scheduler must not change meanwhile.
func (s *Scheduler) Order(yield func(Placed) bool) {
	s.walkOrder(func(ses *session) bool {
		return yield(Placed{
			Key: ses.key(), Number: ses.number, Class: ses.class, Lifted: ses.lifted, SizeBytes: ses.size, Arrival: ses.arrival, Since: ses.since,
			Protocol: ses.protocol, Held: ses.held(), Members: ses.members(),
		})
	})
}

// Shuffle gives newcomers of the class that come within length from now an arrival drawn evenly from that time, by seed and key:
// at the opening of a window the fastest network does not decide. A later call for the class replaces it.
func (s *Scheduler) Shuffle(now time.Duration, class Class, length time.Duration, seed uint64) {
	now = s.advance(now)
	s.shuffles[class.Index()] = shuffle{now, now + max(length, 0), seed}
}

// shuffle is a time in which arrivals are drawn.
type shuffle struct {
	from, until time.Duration
	seed        uint64
}

// arrival returns the place in time of a newcomer.
func (f *shuffle) arrival(now time.Duration, hash uint64) time.Duration {
	if now >= f.until {
		return now
	}
	return f.from + time.Duration(mix(hash^f.seed)%uint64(f.until-f.from))
}

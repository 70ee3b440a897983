package queue

import "time"

// Counts are the events since the start. They only grow.
type Counts struct {
	Queued   uint64          // sessions that had to wait, counted when they are first told so
	Rejoined uint64          // paused sessions that came back at their old arrival
	Started  uint64          // sessions that got a slot
	Refused  uint64          // requests refused by a full queue
	Ended    [Reasons]uint64 // stays that ended, by Reason
}

// Snapshot is the queue at one moment: a value that shares nothing with the queue.
type Snapshot struct {
	Policy     Policy
	Draining   bool
	Active     [Classes]int // sessions with a slot, by applied class
	Waiting    [Classes]int // sessions without one, by applied class
	Paused     int          // remembered sessions
	Held       int          // requests held by this process
	OldestWait time.Duration
	Counts     Counts

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
		Held: s.held, Counts: s.counts, RateBytesPerSecond: int64(s.model.peak),
	}
	if s.waiting.head != nil {
		snap.OldestWait = now - s.waiting.head.since
	}
	return snap
}

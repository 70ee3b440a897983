package bucket

import (
	"sync/atomic"
	"time"
)

// Stream is one body of one principal at a governor. A nil Stream is unlimited: all methods work on it and cost nothing.
// One goroutine takes at a time; Close may come from any.
type Stream struct {
	governor *Governor
	free     *atomic.Bool // nothing paces it now: of the governor, or of its group
	owner    *principal
	group    *group        // nil = in none
	wake     chan struct{} // one signal for each answer that the asking caller did not see itself

	// Guarded by the governor's lock. granted and err may also be read by the caller that got the signal.
	want       int64
	asked      time.Duration
	granted    int64
	err        error
	waiting    bool // in the owner's queue or in a lane
	held       bool // in a lane
	asking     bool // a Take is on its way, from asking to having read the answer
	closed     bool
	reserved   int64  // called: what its group keeps for it
	epoch      uint64 // of the group, at the call
	prev, next *Stream
}

// Take blocks until min(want, quantum) bytes are granted and returns their number; the last, smaller piece of a body is
// granted exactly. A nil stream, and any stream once nothing limits it any more, gets want at once. want <= 0
// gets 0 at once. Errors, always with 0 bytes: ErrCancelled when gone is closed (nil: never), ErrClosed, ErrRevoked,
// ErrBusy. A quantum granted at the moment of leaving is spent, not given back. It allocates nothing.
func (s *Stream) Take(want int64, gone <-chan struct{}) (int64, error) {
	if want <= 0 {
		return 0, nil
	}
	if s == nil || s.free.Load() {
		return want, nil
	}
	select {
	case <-gone:
		return 0, ErrCancelled
	default:
	}
	waits, n, err := s.request(want)
	if !waits {
		return n, err
	}
	select {
	case <-s.wake:
		return s.answer()
	case <-gone:
		s.leave()
		return 0, ErrCancelled
	}
}

// request asks and reports whether the caller must wait for the signal.
func (s *Stream) request(want int64) (waits bool, n int64, err error) {
	g := s.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.closed {
		return false, 0, ErrClosed
	}
	if s.asking {
		return false, 0, ErrBusy
	}
	now := g.clock.Now()
	g.core.ask(s, want, now)
	g.followUp(now, s)
	s.asking = s.waiting
	return s.waiting, s.granted, s.err
}

// answer reads what the signal announced.
func (s *Stream) answer() (int64, error) {
	g := s.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	s.asking = false
	return s.granted, s.err
}

// leave takes the request back, or the signal of its answer if that came first.
func (s *Stream) leave() {
	g := s.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	s.asking = false
	if !s.waiting {
		<-s.wake // sent under the lock before waiting was cleared for us to see: never blocks
		return
	}
	now := g.clock.Now()
	g.core.cancel(s, now)
	g.followUp(now, nil)
}

// Close ends the stream; a Take that waits gets ErrClosed. Idempotent, and nothing for a nil stream. The principal's
// bucket is remembered until it is full again.
func (s *Stream) Close() {
	if s == nil {
		return
	}
	g := s.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.core.shut(s, now)
	g.followUp(now, nil)
}

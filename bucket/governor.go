package bucket

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrCancelled says that the caller left before or while it waited for a quantum.
	ErrCancelled = errors.New("waiting for a quantum was cancelled")
	// ErrClosed says that the governor or the stream is closed.
	ErrClosed = errors.New("bandwidth governor or stream is closed")
	// ErrRevoked says that the right to the shared budget is lost (B5). It can come back: a later Take may succeed.
	ErrRevoked = errors.New("right to the shared bandwidth budget is lost")
	// ErrBusy says that another Take of the same stream still waits; a stream serves one caller at a time.
	ErrBusy = errors.New("stream already waits for a quantum")
)

// Governor paces one direction: a limit on all of it, one on each principal and one on each group of streams. Safe for concurrent use; it holds one
// timer and starts no goroutine, so a governor that nobody waits at needs no Close.
//
// Guard: mu guards core, armed, closed, revoked and the mutable fields of streams. It is a leaf: no other lock is taken and no
// caller's code runs under it, except the clock's.
type Governor struct {
	clock     Clock
	timer     Timer
	unlimited atomic.Bool         // no limit on but those of groups, not revoked, not closed; written under mu
	free      [Groups]atomic.Bool // the same, and the group has no limit

	mu      sync.Mutex
	core    *core
	armed   time.Duration // when the timer fires; never if it is not armed
	revoked bool
	closed  bool
}

// Snapshot is the state of a governor at one moment. Rates and bursts are 0 for a limit that is off.
type Snapshot struct {
	BytesPerSecond             int64
	PerPrincipalBytesPerSecond int64
	BurstBytes                 int64
	PerPrincipalBurstBytes     int64
	Waiting                    int    // streams that wait for a quantum
	GrantedBytes               uint64 // granted so far, repeated and cancelled ones included; unlimited bytes are not counted
	Principals                 int    // known ones: with an open stream, or with a bucket that still refills
	Groups                     [Groups]GroupSnapshot
}

// GroupSnapshot is the state of a group at one moment. Its streams are counted in the governor's numbers too.
type GroupSnapshot struct {
	BytesPerSecond int64 // 0 = no limit of its own
	Waiting        int
	GrantedBytes   uint64
}

// NewGovernor returns a governor with full buckets. The limits should have passed Validate; rates out of range are
// narrowed to 1..MaxBytesPerSecond, never taken for unlimited.
func NewGovernor(total, perPrincipal Limit, clock Clock) *Governor {
	g := &Governor{clock: clock, armed: never}
	g.core = newCore(total.narrowed(), perPrincipal.narrowed(), clock.Now())
	g.timer = clock.NewTimer(g.fire)
	g.noteUnlimited()
	return g
}

// Unlimited reports, without a lock, that no byte outside of groups is paced, so that the caller need not ask for those. It is
// false while the governor is revoked or closed.
func (g *Governor) Unlimited() bool { return g.unlimited.Load() }

// Open returns a stream of the principal, to be closed by the caller, or nil while the direction is unlimited. A nil stream
// stays unpaced; a caller that must follow a limit switched on in mid-body asks Unlimited between chunks and opens anew. The
// string is kept until the principal is forgotten, so it must not lie in a buffer that is used again.
func (g *Governor) Open(principal string) *Stream {
	if g.unlimited.Load() {
		return nil
	}
	s := &Stream{governor: g, free: &g.unlimited, wake: make(chan struct{}, 1)}
	g.mu.Lock()
	g.core.open(s, principal)
	g.mu.Unlock()
	return s
}

// OpenIn is Open for a stream of a group, 0..Groups-1 (others panic): its bytes count for the group's limit too. It is never nil, so that the stream follows a limit
// that is switched on later; while neither its group nor the direction has one, it takes no lock.
func (g *Governor) OpenIn(principal string, group int) *Stream {
	s := &Stream{governor: g, free: &g.free[group], wake: make(chan struct{}, 1)}
	g.mu.Lock()
	g.core.open(s, principal)
	g.core.join(s, group)
	g.mu.Unlock()
	return s
}

// ConfigureGroup changes the limit of a group, 0..Groups-1 (others panic), for streams that are open as for later ones. The level is kept, as Configure does; a limit that was
// off starts with a full bucket. The limit that is in force changes nothing.
func (g *Governor) ConfigureGroup(group int, l Limit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l = l.narrowed(); l == g.core.groups[group].limit {
		return
	}
	now := g.clock.Now()
	g.core.configureGroup(group, l, now)
	g.noteUnlimited()
	g.followUp(now, nil)
}

// Configure changes both limits at once. Those waiting are served by the new ones, from the levels the buckets have; a limit
// that was off starts with a full bucket.
func (g *Governor) Configure(total, perPrincipal Limit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.core.configure(total.narrowed(), perPrincipal.narrowed(), now)
	g.noteUnlimited()
	g.followUp(now, nil)
}

// Revoke ends the right to grant (B5): all that wait, and all that ask, get ErrRevoked until Restore. Idempotent.
// Bytes granted before stay granted. Streams that are nil, opened while the direction was unlimited, are out of its reach.
func (g *Governor) Revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.revoked {
		return
	}
	g.revoked = true
	g.core.refuse(ErrRevoked)
	g.noteUnlimited()
	g.followUp(g.clock.Now(), nil)
}

// Restore gives the right back, with an empty shared bucket and empty ones of groups. Without a Revoke before, and after Close, it does nothing.
func (g *Governor) Restore() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || !g.revoked {
		return
	}
	g.revoked = false
	g.core.refuse(nil)
	g.core.drain(g.clock.Now())
	g.noteUnlimited()
}

// Close ends the governor: all that wait, and all that ask, get ErrClosed. Idempotent. Streams may be closed after it.
func (g *Governor) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	g.core.refuse(ErrClosed)
	g.noteUnlimited()
	g.followUp(g.clock.Now(), nil)
	g.timer.Stop()
	g.armed = never
}

// Snapshot returns the current state, after forgetting the principals that need no memory.
func (g *Governor) Snapshot() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.core
	c.sweep(math.MaxInt, g.clock.Now())
	snapshot := Snapshot{
		BytesPerSecond:             c.totalLimit.BytesPerSecond,
		PerPrincipalBytesPerSecond: c.perPrincipal.BytesPerSecond,
		BurstBytes:                 c.totalLimit.Burst(),
		PerPrincipalBurstBytes:     c.perPrincipal.Burst(),
		Waiting:                    c.waiting,
		GrantedBytes:               c.granted,
		Principals:                 len(c.known),
	}
	for i := range c.groups {
		group := &c.groups[i]
		snapshot.Groups[i] = GroupSnapshot{BytesPerSecond: group.limit.BytesPerSecond, Waiting: group.waiting, GrantedBytes: group.granted}
	}
	return snapshot
}

// fire is the timer's call. A call that comes after the timer was stopped or armed anew finds nothing due.
func (g *Governor) fire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = never
	if g.closed {
		return
	}
	now := g.clock.Now()
	g.core.pump(now)
	g.followUp(now, nil)
}

// followUp wakes the streams that the core answered, except the asking one, whose caller sees its answer itself, and arms
// the timer if it would fire too late. A timer that fires too early is cheaper than moving it.
func (g *Governor) followUp(now time.Duration, asking *Stream) {
	for s := g.core.answered; s != nil; {
		next := s.next
		s.next = nil
		if s != asking {
			s.wake <- struct{}{}
		}
		s = next
	}
	g.core.answered = nil
	if at, waits := g.core.wake(); waits && at < g.armed {
		g.armed = at
		g.timer.Reset(at - now)
	}
}

func (g *Governor) noteUnlimited() {
	free := g.core.quantum == 0 && !g.revoked && !g.closed
	g.unlimited.Store(free)
	for i := range g.free {
		g.free[i].Store(free && g.core.groups[i].limit.Off())
	}
}

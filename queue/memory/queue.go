package memory

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// Options are the parts of a queue that its policy does not hold.
type Options struct {
	// Clock returns the monotonic time since any fixed moment; nil = since New. It is called under the lock and must not block.
	Clock func() time.Duration
	// HoldLimit is how many requests may be held at once; 0 = none.
	HoldLimit int
	// HoldPerPrincipal is how many of them may be of one principal; 0 = no limit of its own. Without one a single client that opens
	// HoldLimit connections leaves no place to hold anybody else.
	HoldPerPrincipal int
	// SessionEnded receives the record of every ended stay, outside the lock, on the goroutine whose call ended it; nil = nobody.
	// It may call the queue.
	SessionEnded func(queue.End)
	// Recorder writes down every call of the core and its decision; nil = nobody does. It belongs to this queue alone.
	Recorder *replay.Recorder
}

// Queue is the scheduler behind a lock. Its methods are safe for concurrent use.
//
// Invariants, whenever mu is free: free equals core.FreeSlots(); every open grant is in the list; every waiter of the list is
// registered in the core and not woken; a waiter is woken exactly once; policy is the core's. A grant whose response is nil
// is known to no core (see renew); whole, given and held are zero. mu is a leaf but for the recorder's lock: nothing that blocks or calls back runs under it.
type Queue struct {
	clock            func() time.Duration
	sessionEnded     func(queue.End)
	recorder         *replay.Recorder
	closed           chan struct{}
	holdPerPrincipal int
	closeOnce        sync.Once

	idle   sync.Pool // *waiter
	free   atomic.Int64
	policy atomic.Pointer[queue.Policy]

	mu            sync.Mutex
	now           time.Duration  // the latest that the core was told
	holdLimit     int            // 0 once closed
	heldBy        map[string]int // held requests by principal, none at zero: at most as many entries as waiters
	core          *queue.Scheduler
	draining      bool
	gather, grace time.Duration
	gateShut      bool
	windows       windows
	seed          maphash.Seed // of the ids of sessions
	cuts          []*Grant     // of sessions that the operation under the lock kicked
	base          totals       // what to add to the core's: those of cores before it
	told          totals       // the sum at the last Snapshot
	grants        grantList
	waiters       []*waiter   // held, in no order
	ended         []queue.End // taken from the core and not reported yet
	whole         bool        // the operation under the lock is complete: see end
	given         *Grant      // what that operation gives to its caller
	held          *waiter     // the request that its caller holds or takes back
	tickDuration  time.Duration
}

// New returns a queue that decides by policy, or the policy's faults. Nothing runs until Run or Tick is called.
func New(policy queue.Policy, opts Options) (*Queue, error) {
	core, err := queue.New(policy)
	if err != nil {
		return nil, err
	}
	if opts.HoldLimit < 0 {
		return nil, fmt.Errorf("cannot create the queue: HoldLimit %d must not be negative, for example 64", opts.HoldLimit)
	}
	if opts.HoldPerPrincipal < 0 {
		return nil, fmt.Errorf("cannot create the queue: HoldPerPrincipal %d must not be negative, for example 8", opts.HoldPerPrincipal)
	}
	q := &Queue{
		clock: opts.Clock, holdLimit: opts.HoldLimit, holdPerPrincipal: opts.HoldPerPrincipal, sessionEnded: opts.SessionEnded,
		recorder: opts.Recorder, closed: make(chan struct{}), core: core, heldBy: map[string]int{}, seed: core.IDSeed(),
	}
	if q.clock == nil {
		start := time.Now()
		q.clock = func() time.Duration { return time.Since(start) }
	}
	q.policy.Store(&policy)
	q.free.Store(int64(core.FreeSlots()))
	if q.recorder != nil {
		q.recorder.Policy(0, policy)
		q.recorder.Done()
	}
	return q, nil
}

// FreeSlot reports whether a new session could start now without waiting. Lock-free, a few nanoseconds; the answer may
// be outdated when it arrives, so it is a hint for what to ask the origin, never an admission.
func (q *Queue) FreeSlot() bool { return q.free.Load() > 0 }

// FreeSlots returns how many new sessions could start now without waiting; the same kind of hint as FreeSlot.
func (q *Queue) FreeSlots() int64 { return q.free.Load() }

// Policy returns the rules in force. Lock-free; the copy may be outdated when it arrives.
func (q *Queue) Policy() queue.Policy { return *q.policy.Load() }

// Now returns the time of the queue's clock, to turn Verdict.Arrival into wall time.
func (q *Queue) Now() time.Duration { return q.clock() }

// Admit decides about one request without blocking. The grant is not nil exactly when the outcome is Admitted; its
// owner ends it once with Finish or Abandon.
func (q *Queue) Admit(a queue.Ask) (g *Grant, verdict queue.Verdict) {
	q.mu.Lock()
	defer q.end()
	g = q.askLocked(q.advanceLocked(q.clock()), &a, &verdict)
	q.given = g
	q.completeLocked()
	return g, verdict
}

// Hold decides as Admit does; a request that must wait blocks the calling goroutine until
//   - it is admitted (Admitted with a grant), at once when a slot or a place frees,
//   - wait is over (Queued or RangesBusy with fresh facts; the session keeps its place until CheckIn x 1.5 + 15 s),
//   - gone is closed (Gone; a plain client's session leaves the line and is remembered at its arrival, see queue.Scheduler.Depart),
//   - the policy changed (PerRequest), or the queue drains (Draining),
//   - a defect of the core lost its place (LimitReached, see the package documentation).
//
// wait is observed at ticks. A nil gone never closes. Verdict.Held is false when the request was not held: wait is not
// positive, the request peeks, or HoldLimit requests, or HoldPerPrincipal of this principal, are held already.
func (q *Queue) Hold(a queue.Ask, wait time.Duration, gone <-chan struct{}) (g *Grant, verdict queue.Verdict) {
	var w *waiter
	if g, w, verdict = q.hold(&a, wait); w == nil {
		return g, verdict
	}
	select {
	case <-w.wake:
	case <-gone:
		return nil, q.leave(w, verdict.Class)
	}
	g, verdict = w.grant, w.verdict
	q.recycle(w)
	return g, verdict
}

// hold is Hold up to the wait: the waiter is not nil exactly when the request is held.
func (q *Queue) hold(a *queue.Ask, wait time.Duration) (g *Grant, w *waiter, verdict queue.Verdict) {
	q.mu.Lock()
	defer q.end()
	now := q.advanceLocked(q.clock())
	if wait <= 0 || !q.mayHoldLocked(a.Key.Principal) {
		g = q.askLocked(now, a, &verdict)
	} else {
		w = q.takeWaiter()
		w.ask, w.until = *a, now+wait
		if g = q.holdLocked(now, w, &verdict); w.place == nil {
			q.recycle(w)
			w = nil
		} else {
			q.listLocked(w)
		}
	}
	q.given, q.held = g, w
	q.completeLocked()
	return g, w, verdict
}

// leave withdraws a waiter whose client is gone, giving back what it may have got meanwhile.
func (q *Queue) leave(w *waiter, class queue.Class) queue.Verdict {
	waited := false
	q.locked(func(now time.Duration) {
		q.held = w
		if w.place == nil {
			return
		}
		waited = q.core.Depart(now, w.place)
		if q.recorder != nil {
			q.recorder.Depart(now, w.number, waited)
		}
		if waited {
			q.unlistLocked(w)
			q.held = nil // it has no answer to wait for
		}
	})
	if !waited {
		<-w.wake // the answer was given under the lock before
		if w.grant != nil {
			w.grant.Abandon()
		}
	}
	q.recycle(w)
	return queue.Verdict{Class: class, Outcome: queue.Gone, Held: true}
}

// Leave cancels the session of key on its client's word. See queue.Scheduler.Leave.
func (q *Queue) Leave(key queue.Key) {
	q.locked(func(now time.Duration) {
		q.core.Leave(now, key)
		if q.recorder != nil {
			q.recorder.Leave(now, key)
		}
	})
}

// Configure puts another policy in force from the next decision; on an error nothing changed.
func (q *Queue) Configure(policy queue.Policy) (err error) {
	q.locked(func(now time.Duration) {
		if err = q.core.Configure(now, policy); err != nil {
			return
		}
		q.policy.Store(&policy)
		if q.recorder != nil {
			q.recorder.Configure(now, policy)
		}
	})
	return err
}

// Grace keeps all sessions from taking slots until gather, and those without a ticket until until, both times of the queue's clock. See
// queue.Scheduler.Grace.
func (q *Queue) Grace(gather, until time.Duration) {
	q.locked(func(now time.Duration) {
		q.gather, q.grace = gather, max(gather, until)
		q.core.Grace(gather, until)
		if q.recorder != nil {
			q.recorder.Grace(now, gather, until)
		}
	})
}

// Drain answers every waiting request Draining and gives no slot any more. Active sessions continue.
func (q *Queue) Drain() { q.locked(q.drainLocked) }

func (q *Queue) drainLocked(now time.Duration) {
	q.draining = true
	q.core.Drain(now)
	if q.recorder != nil {
		q.recorder.Drain(now)
	}
}

// Close drains the queue, ends Run and every hold, also those of active sessions' ranges, and flushes the recorder. Open grants stay
// valid; nothing is held any more. Calls after the first do nothing. A panic of the core keeps none of it from being done.
func (q *Queue) Close() {
	q.closeOnce.Do(func() {
		if q.recorder != nil {
			defer func() { _ = q.recorder.Flush() }() // the recorder keeps its error for who asks
		}
		defer close(q.closed)
		defer q.locked(func(now time.Duration) {
			q.holdLimit = 0
			q.endHoldsLocked(now, math.MaxInt64)
		})
		q.Drain()
	})
}

// Tick collects the delivered bytes, ends holds whose wait is over, expires and hands out slots. Run calls it; tests and
// simulations may instead.
func (q *Queue) Tick(now time.Duration) {
	q.locked(func(time.Duration) {
		begin := q.clock()
		now := q.advanceLocked(now)
		for g := q.grants.head; g != nil; g = g.next {
			g.collectLocked(now)
		}
		q.tickWindowsLocked(now)
		q.core.Tick(now)
		if q.recorder != nil {
			q.recorder.Tick(now, replay.StateOf(q.core, now))
		}
		q.settleLocked()
		q.endHoldsLocked(now, now)
		q.tickDuration = q.clock() - begin
	})
}

// Run ticks every 500 ms, or every ten times the last tick's duration when that is longer, until ctx is done or the
// queue is closed. It blocks; one call at a time for a queue. A panic of a tick leaves it: the queue is whole and usable then (see the package
// documentation), and without ticks until Run is called again.
func (q *Queue) Run(ctx context.Context) {
	timer := time.NewTimer(queue.TickEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.closed:
			return
		case <-timer.C:
		}
		q.Tick(q.clock())
		q.mu.Lock()
		pause := max(queue.TickEvery, 10*q.tickDuration)
		q.mu.Unlock()
		timer.Reset(pause)
	}
}

// Snapshot returns the state.
func (q *Queue) Snapshot() (snap queue.Snapshot) {
	q.locked(func(now time.Duration) {
		snap = q.core.Snapshot(now)
		snap.TickDuration = q.tickDuration
		q.told = totalsOf(snap).plus(q.base)
		snap.Counts, snap.Promises = q.told.counts, q.told.promises
	})
	return snap
}

// CheckInvariants returns the first broken invariant of the core or of the shell; for tests and simulations.
func (q *Queue) CheckInvariants() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.core.CheckInvariants(); err != nil {
		return err
	}
	if held := q.core.Snapshot(q.now).Held; held != len(q.waiters) {
		return fmt.Errorf("shell holds %d requests, the core %d", len(q.waiters), held)
	}
	held := map[string]int{}
	for _, w := range q.waiters {
		held[w.ask.Key.Principal]++
	}
	if !maps.Equal(held, q.heldBy) {
		return fmt.Errorf("%d principals have held requests, the index knows %d, or their counts differ", len(held), len(q.heldBy))
	}
	if q.free.Load() != int64(q.core.FreeSlots()) {
		return fmt.Errorf("published free slots are %v, the core says %v", q.free.Load(), q.core.FreeSlots())
	}
	if q.Policy() != q.core.Policy() {
		return fmt.Errorf("published policy is %+v, the core's %+v", q.Policy(), q.core.Policy())
	}
	return nil
}

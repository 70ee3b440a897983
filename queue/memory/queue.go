package memory

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/queue"
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
}

// Queue is the scheduler behind a lock. Its methods are safe for concurrent use.
//
// Invariants: free equals core.FreeSlots() whenever mu is free; every open grant is in the list; every waiter of the
// list is registered in the core and not woken; a waiter is woken exactly once. mu is a leaf: nothing that blocks or
// calls back runs under it.
type Queue struct {
	clock            func() time.Duration
	sessionEnded     func(queue.End)
	closed           chan struct{}
	holdPerPrincipal int
	closeOnce        sync.Once

	idle sync.Pool // *waiter
	free atomic.Int64

	mu           sync.Mutex
	holdLimit    int            // 0 once closed
	heldBy       map[string]int // held requests by principal, none at zero: at most as many entries as waiters
	core         *queue.Scheduler
	grants       grantList
	waiters      []*waiter // held, in no order
	tickDuration time.Duration
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
		closed: make(chan struct{}), core: core, heldBy: map[string]int{},
	}
	if q.clock == nil {
		start := time.Now()
		q.clock = func() time.Duration { return time.Since(start) }
	}
	q.free.Store(int64(core.FreeSlots()))
	return q, nil
}

// FreeSlot reports whether a new session could start now without waiting. Lock-free, a few nanoseconds; the answer may
// be outdated when it arrives, so it is a hint for what to ask the origin, never an admission.
func (q *Queue) FreeSlot() bool { return q.free.Load() > 0 }

// FreeSlots returns how many new sessions could start now without waiting; the same kind of hint as FreeSlot.
func (q *Queue) FreeSlots() int64 { return q.free.Load() }

// Now returns the time of the queue's clock, to turn Verdict.Arrival into wall time.
func (q *Queue) Now() time.Duration { return q.clock() }

// Admit decides about one request without blocking. The grant is not nil exactly when the outcome is Admitted; its
// owner ends it once with Finish or Abandon.
func (q *Queue) Admit(a queue.Ask) (*Grant, queue.Verdict) {
	q.mu.Lock()
	r, verdict := q.core.Ask(q.clock(), a)
	g := q.openLocked(r)
	q.finishLocked()
	return g, verdict
}

// Hold decides as Admit does; a request that must wait blocks the calling goroutine until
//   - it is admitted (Admitted with a grant), at once when a slot or a place frees,
//   - wait is over (Queued or RangesBusy with fresh facts; the session keeps its place until CheckIn x 1.5 + 15 s),
//   - gone is closed (Gone; a plain client's session leaves the line and is remembered at its arrival, see queue.Scheduler.Depart),
//   - the policy changed (PerRequest), or the queue drains (Draining).
//
// wait is observed at ticks. A nil gone never closes. Verdict.Held is false when the request was not held: wait is not
// positive, or HoldLimit requests, or HoldPerPrincipal of this principal, are held already.
func (q *Queue) Hold(a queue.Ask, wait time.Duration, gone <-chan struct{}) (*Grant, queue.Verdict) {
	q.mu.Lock()
	now := q.clock()
	if wait <= 0 || !q.mayHoldLocked(a.Key.Principal) {
		r, verdict := q.core.Ask(now, a)
		g := q.openLocked(r)
		q.finishLocked()
		return g, verdict
	}
	w := q.takeWaiter()
	place, r, verdict := q.core.Hold(now, a, w)
	if place == nil {
		g := q.openLocked(r)
		q.finishLocked()
		q.recycle(w)
		return g, verdict
	}
	w.place, w.until, w.index, w.principal = place, now+wait, len(q.waiters), a.Key.Principal
	q.waiters = append(q.waiters, w)
	q.heldBy[w.principal]++
	q.finishLocked()
	select {
	case <-w.wake:
	case <-gone:
		return nil, q.leave(w, verdict.Class)
	}
	g, verdict := w.grant, w.verdict
	q.recycle(w)
	return g, verdict
}

// leave withdraws a waiter whose client is gone, giving back what it may have got meanwhile.
func (q *Queue) leave(w *waiter, class queue.Class) queue.Verdict {
	q.mu.Lock()
	verdict, waited := queue.Verdict{Class: class}, q.core.Depart(q.clock(), w.place)
	if waited {
		q.unlistLocked(w)
	}
	q.finishLocked()
	if !waited {
		<-w.wake // the answer was given under the lock before
		if w.grant != nil {
			w.grant.Abandon()
		}
	}
	q.recycle(w)
	verdict.Outcome, verdict.Held = queue.Gone, true
	return verdict
}

// Leave cancels the session of key on its client's word. See queue.Scheduler.Leave.
func (q *Queue) Leave(key queue.Key) {
	q.mu.Lock()
	q.core.Leave(q.clock(), key)
	q.finishLocked()
}

// Configure puts another policy in force from the next decision; on an error nothing changed.
func (q *Queue) Configure(policy queue.Policy) error {
	q.mu.Lock()
	err := q.core.Configure(q.clock(), policy)
	q.finishLocked()
	return err
}

// Drain answers every waiting request Draining and gives no slot any more. Active sessions continue.
func (q *Queue) Drain() {
	q.mu.Lock()
	q.core.Drain(q.clock())
	q.finishLocked()
}

// Close drains the queue, ends Run and every hold, also those of active sessions' ranges. Open grants stay valid; nothing is
// held any more. Calls after the first do nothing.
func (q *Queue) Close() {
	q.closeOnce.Do(func() {
		q.Drain()
		q.mu.Lock()
		q.holdLimit = 0
		q.endHoldsLocked(math.MaxInt64)
		q.finishLocked()
		close(q.closed)
	})
}

// Tick collects the delivered bytes, ends holds whose wait is over, expires and hands out slots. Run calls it; tests and
// simulations may instead.
func (q *Queue) Tick(now time.Duration) {
	q.mu.Lock()
	begin := q.clock()
	for g := q.grants.head; g != nil; g = g.next {
		g.collectLocked(now)
	}
	q.core.Tick(now)
	q.wakeLocked()
	q.endHoldsLocked(now)
	q.tickDuration = q.clock() - begin
	q.finishLocked()
}

// Run ticks every 500 ms, or every ten times the last tick's duration when that is longer, until ctx is done or the
// queue is closed. It blocks; one call a queue.
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
func (q *Queue) Snapshot() queue.Snapshot {
	q.mu.Lock()
	defer q.mu.Unlock()
	snap := q.core.Snapshot(q.clock())
	snap.TickDuration = q.tickDuration
	return snap
}

// CheckInvariants returns the first broken invariant of the core or of the shell; for tests and simulations.
func (q *Queue) CheckInvariants() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.core.CheckInvariants(); err != nil {
		return err
	}
	if held := q.core.Snapshot(q.clock()).Held; held != len(q.waiters) {
		return fmt.Errorf("shell holds %d requests, the core %d", len(q.waiters), held)
	}
	held := map[string]int{}
	for _, w := range q.waiters {
		held[w.principal]++
	}
	if !maps.Equal(held, q.heldBy) {
		return fmt.Errorf("%d principals have held requests, the index knows %d, or their counts differ", len(held), len(q.heldBy))
	}
	if q.free.Load() != int64(q.core.FreeSlots()) {
		return fmt.Errorf("published free slots are %v, the core says %v", q.free.Load(), q.core.FreeSlots())
	}
	return nil
}

// finishLocked ends every locked operation: it wakes the answered, publishes the hint, unlocks and reports ended stays.
func (q *Queue) finishLocked() {
	q.wakeLocked()
	q.free.Store(int64(q.core.FreeSlots()))
	ended := q.core.TakeEnded()
	q.mu.Unlock()
	if q.sessionEnded != nil {
		for _, e := range ended {
			q.sessionEnded(e)
		}
	}
}

// wakeLocked hands the core's answers to the held requests.
func (q *Queue) wakeLocked() {
	for _, settled := range q.core.TakeSettled() {
		w := settled.Owner.(*waiter)
		w.grant, w.verdict = q.openLocked(settled.Response), settled.Verdict
		q.unlistLocked(w)
		w.wake <- struct{}{}
	}
}

// endHoldsLocked answers the held requests whose wait is over at that time; all others were answered before.
func (q *Queue) endHoldsLocked(until time.Duration) {
	now := q.clock()
	for i := len(q.waiters) - 1; i >= 0; i-- {
		w := q.waiters[i]
		if w.until > until {
			continue
		}
		w.verdict, _ = q.core.Withdraw(now, w.place)
		q.unlistLocked(w)
		w.wake <- struct{}{}
	}
}

func (q *Queue) unlistLocked(w *waiter) {
	last := len(q.waiters) - 1
	q.waiters[w.index] = q.waiters[last]
	q.waiters[w.index].index = w.index
	q.waiters[last] = nil
	q.waiters = q.waiters[:last]
	if q.heldBy[w.principal]--; q.heldBy[w.principal] == 0 {
		delete(q.heldBy, w.principal)
	}
}

// mayHoldLocked reports whether one more request of the principal may be held.
func (q *Queue) mayHoldLocked(principal string) bool {
	return len(q.waiters) < q.holdLimit && (q.holdPerPrincipal == 0 || q.heldBy[principal] < q.holdPerPrincipal)
}

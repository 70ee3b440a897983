package memory

import (
	"time"

	"github.com/arkvory/sidecar/queue"
)

// locked runs one operation under the lock. Admit, Hold and the end of a grant do the same without the function value: they run once a request.
func (q *Queue) locked(operation func(now time.Duration)) {
	q.mu.Lock()
	defer q.end()
	operation(q.advanceLocked(q.clock()))
	q.completeLocked()
}

// completeLocked ends the part of an operation that may panic under the lock.
func (q *Queue) completeLocked() {
	q.settleLocked()
	q.free.Store(int64(q.core.FreeSlots()))
	q.whole = true
}

// end is deferred by every operation: it frees the lock and reports the stays that ended. An operation that panicked before it was complete leaves a
// fresh core behind; the panic goes on to the caller with the stack of the defect, for nothing recovers it here. What a caller does not get because
// of a panic, it cannot give back: it is taken back here.
func (q *Queue) end() {
	if !q.whole {
		defer q.mu.Unlock()
		if q.recorder != nil {
			q.recorder.Drop()
		}
		q.disownLocked()
		q.renewLocked()
		return
	}
	ended, grant, held, cuts := q.ended, q.given, q.held, q.cuts
	q.ended, q.given, q.held, q.cuts, q.whole = nil, nil, nil, nil, false
	q.mu.Unlock()
	for _, g := range cuts {
		g.cut.now()
	}
	if len(ended) > 0 && q.sessionEnded != nil {
		q.report(ended, grant, held)
	}
}

// report tells the observer. When that panics, the grant and the held request of the call that is ending have no owner.
func (q *Queue) report(ended []queue.End, grant *Grant, held *waiter) {
	told := false
	defer func() {
		if told {
			return
		}
		if grant != nil {
			grant.Abandon()
		}
		if held != nil {
			q.leave(held, 0)
		}
	}()
	for i := range ended {
		q.sessionEnded(ended[i])
	}
	told = true
}

// disownLocked drops what the panicking operation was about to hand to its caller.
func (q *Queue) disownLocked() {
	q.dropLocked(q.given)
	if w := q.held; w != nil {
		if w.place != nil {
			q.unlistLocked(w)
		}
		q.dropLocked(w.grant)
	}
	q.given, q.held, q.cuts = nil, nil, nil
}

// dropLocked ends a grant whose response no core will know.
func (q *Queue) dropLocked(g *Grant) {
	if g != nil && !g.ended.Swap(true) {
		q.grants.remove(g)
	}
}

// advanceLocked returns the time that the core is told: it never goes back, so that a log of calls holds the times by which the core decided.
func (q *Queue) advanceLocked(now time.Duration) time.Duration {
	q.now = max(q.now, now)
	return q.now
}

// askLocked decides about a request that is not held. It returns through pointers: an Ask and a Verdict are over 100 bytes each.
func (q *Queue) askLocked(now time.Duration, a *queue.Ask, verdict *queue.Verdict) *Grant {
	var r *queue.Response
	r, *verdict = q.core.Ask(now, *a)
	var number uint64
	if q.recorder != nil {
		number = q.recorder.Ask(now, a, verdict)
	}
	return q.openLocked(r, number, a, verdict)
}

// holdLocked decides about a request that may be held: w.place is set exactly when it is.
func (q *Queue) holdLocked(now time.Duration, w *waiter, verdict *queue.Verdict) *Grant {
	var r *queue.Response
	w.place, r, *verdict = q.core.Hold(now, w.ask, w)
	var number uint64
	if q.recorder != nil {
		w.number, number = q.recorder.Hold(now, &w.ask, w.place != nil, verdict)
	}
	w.arrival = verdict.Arrival
	return q.openLocked(r, number, &w.ask, verdict)
}

// settleLocked ends every call of the core that may settle or end anything: it hands the answers to the held requests, and takes the
// records of ended stays over.
func (q *Queue) settleLocked() {
	for _, settled := range q.core.TakeSettled() {
		w := settled.Owner.(*waiter)
		var number uint64
		if q.recorder != nil {
			number = q.recorder.Settled(w.number, &settled.Verdict)
		}
		q.answerLocked(w, q.openLocked(settled.Response, number, &w.ask, &settled.Verdict), settled.Verdict)
	}
	ended := q.core.TakeEnded()
	if q.recorder != nil {
		for i := range ended {
			q.recorder.Ended(&ended[i])
		}
		q.recorder.Done()
	}
	switch {
	case len(ended) == 0:
	case len(q.ended) == 0:
		q.ended = ended
	default:
		q.ended = append(q.ended, ended...)
	}
}

// answerLocked wakes a held request with its answer.
func (q *Queue) answerLocked(w *waiter, g *Grant, verdict queue.Verdict) {
	w.grant, w.verdict = g, verdict
	q.unlistLocked(w)
	w.wake <- struct{}{}
}

// endHoldsLocked answers the held requests whose wait is over at that time; all others were answered before.
func (q *Queue) endHoldsLocked(now, until time.Duration) {
	for i := len(q.waiters) - 1; i >= 0; i-- {
		w := q.waiters[i]
		if w.until > until {
			continue
		}
		verdict, ok := q.core.Withdraw(now, w.place)
		if q.recorder != nil {
			q.recorder.Withdraw(now, w.number, &verdict, ok)
			q.recorder.Done()
		}
		q.answerLocked(w, nil, verdict)
	}
}

// listLocked adds a waiter to those that are held.
func (q *Queue) listLocked(w *waiter) {
	w.index = len(q.waiters)
	q.waiters = append(q.waiters, w)
	q.heldBy[w.ask.Key.Principal]++
}

// unlistLocked takes a waiter from those that are held; it has no place any more.
func (q *Queue) unlistLocked(w *waiter) {
	w.place = nil
	last := len(q.waiters) - 1
	q.waiters[w.index] = q.waiters[last]
	q.waiters[w.index].index = w.index
	q.waiters[last] = nil
	q.waiters = q.waiters[:last]
	principal := w.ask.Key.Principal
	if q.heldBy[principal]--; q.heldBy[principal] == 0 {
		delete(q.heldBy, principal)
	}
}

// mayHoldLocked reports whether one more request of the principal may be held.
func (q *Queue) mayHoldLocked(principal string) bool {
	return len(q.waiters) < q.holdLimit && (q.holdPerPrincipal == 0 || q.heldBy[principal] < q.holdPerPrincipal)
}

package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// lostCheck is when a request comes back whose place a defect lost.
const lostCheck = 2 * time.Second

// renewLocked replaces a core that a panic left half-way through a decision: by one that knows the open grants and the held
// requests, or when those make it panic again by an empty one. It does not panic and calls nothing of the old core but what reads plain fields.
func (q *Queue) renewLocked() {
	before := q.salvageLocked()
	fed := q.feedLocked(true)
	if !fed {
		q.feedLocked(false)
	}
	// The stays that were fed again were counted by the core before.
	q.base = before.minus(totalsOf(q.core.Snapshot(q.now)))
	q.free.Store(int64(q.core.FreeSlots()))
}

// salvageLocked reads what must outlive the old core: its totals, and the records of the stays that ended in it. Where it cannot be read the totals are those
// that were told last: a counter that falls looks like a restart.
func (q *Queue) salvageLocked() (before totals) {
	before = q.told
	defer func() { _ = recover() }() // the old core is worth no second panic
	before = totalsOf(q.core.Snapshot(q.now)).plus(q.base)
	q.ended = append(q.ended, q.core.TakeEnded()...)
	return before
}

// feedLocked puts a fresh core of the same policy in force. With refill it gets the open grants and the held requests, each at its old arrival;
// without, the grants go on unknown to the core and the held requests are answered. False when the fresh core panicked.
func (q *Queue) feedLocked(refill bool) (fed bool) {
	defer func() {
		if !fed {
			_ = recover()
		}
	}()
	policy := q.Policy()
	core, err := queue.New(policy)
	if err != nil {
		return false // not with a policy that New or Configure took
	}
	core.UseIDSeed(q.seed)
	q.core = core
	if q.recorder != nil {
		q.recorder.Policy(q.now, policy)
		q.recorder.Done()
	}
	for g := q.grants.head; g != nil; g = g.next {
		g.response, g.number = nil, 0
		if refill && !g.kicked {
			q.refillGrantLocked(g)
		}
	}
	if q.grace > q.now { // behind the grants, which have their slots, and before those that wait for one
		core.Grace(q.gather, q.grace)
		if q.recorder != nil {
			q.recorder.Grace(q.now, q.gather, q.grace)
		}
	}
	if q.windows.set { // behind the grants, too
		q.setPlanLocked(q.now)
		q.settleLocked()
	}
	if q.gateShut {
		core.SetGate(q.now, false)
		if q.recorder != nil {
			q.recorder.Gate(q.now, false)
			q.recorder.Done()
		}
	}
	if q.draining {
		q.drainLocked(q.now)
		q.settleLocked()
	}
	// The fed order decides who takes what is free at once: the higher class, then the earlier arrival.
	held := slices.SortedFunc(slices.Values(q.waiters), func(a, b *waiter) int {
		return cmp.Or(cmp.Compare(a.ask.Class, b.ask.Class), cmp.Compare(a.arrival, b.arrival))
	})
	for _, w := range held {
		w.place = nil
		if refill {
			q.refillWaiterLocked(w)
		} else {
			q.answerLocked(w, nil, queue.Verdict{Outcome: queue.LimitReached, Class: w.ask.Class, Held: true, CheckIn: lostCheck})
		}
	}
	q.settleLocked()
	return true
}

// refillGrantLocked gives a running response its session and slot in the fresh core. Where that has none for it (more sessions are active than slots, because
// those became fewer) the response goes on unknown to the core.
func (q *Queue) refillGrantLocked(g *Grant) {
	a := g.askAgain()
	var verdict queue.Verdict
	g.response, verdict = q.core.Ask(q.now, a)
	if q.recorder != nil {
		g.number = q.recorder.Ask(q.now, &a, &verdict)
	}
	q.settleLocked()
}

// refillWaiterLocked lets a held request wait in the fresh core, or answers it when that has an answer at once.
func (q *Queue) refillWaiterLocked(w *waiter) {
	w.ask.Ticketed, w.ask.Arrival = true, w.arrival
	var verdict queue.Verdict
	g := q.holdLocked(q.now, w, &verdict)
	if w.place == nil {
		verdict.Held = true
		q.answerLocked(w, g, verdict)
	}
	q.settleLocked()
}

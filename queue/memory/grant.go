package memory

import (
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// Grant is the right to send one response of an admitted session. Its methods are safe for concurrent use; the owner
// ends it exactly once, with Finish or Abandon, on every way out.
type Grant struct {
	bytes atomic.Int64 // delivered, not yet collected
	queue *Queue
	cut   cut
	ended atomic.Bool
	class queue.Class

	outside bool // its session began outside the window of its class

	// Under the queue's lock.
	protocol   bool
	bundle     bool
	kicked     bool            // an operator ended its session: no core takes it in again
	response   *queue.Response // nil when the core in force does not know it
	number     uint64          // in the recorder's log
	prev, next *Grant
	key        queue.Key // this and the rest for a fresh core, see askAgain
	size       int64
	first      int64 // offset of the range asked; -1 = a tail read. Of a bundle: the member
	arrival    time.Duration
}

// Progress notes n more bytes of the body handed to the client. One atomic addition; the next tick collects them.
func (g *Grant) Progress(n int64) { g.bytes.Add(n) }

// Class returns the class the session was admitted in.
func (g *Grant) Class() queue.Class { return g.class }

// Finish ends the response. The bytes [firstByte, lastByteExclusive) of the object count as delivered only when complete
// is true, that is the response was sent to its end. The session keeps its slot for its next range until the idle time.
// Calls after the first end do nothing.
func (g *Grant) Finish(firstByte, lastByteExclusive int64, complete bool) {
	if g.ended.Swap(true) {
		return
	}
	g.cut.over()
	q := g.queue
	q.mu.Lock()
	defer q.end()
	q.grants.remove(g) // first: a panic must not bring an ended grant into the next core
	if now := q.advanceLocked(q.clock()); g.closeLocked(now) {
		q.core.Finish(now, g.response, firstByte, lastByteExclusive, complete)
		if q.recorder != nil {
			q.recorder.Finish(now, g.number, firstByte, lastByteExclusive, complete)
		}
	}
	q.completeLocked()
}

// Abandon ends the response of a client that left: nothing counts as delivered, and the session's last response frees
// the slot at once. The session's place in time and coverage are kept for ten minutes. Calls after the first end do
// nothing.
func (g *Grant) Abandon() {
	if g.ended.Swap(true) {
		return
	}
	g.cut.over()
	q := g.queue
	q.mu.Lock()
	defer q.end()
	q.grants.remove(g) // first: a panic must not bring an ended grant into the next core
	if now := q.advanceLocked(q.clock()); g.closeLocked(now) {
		q.core.Abandon(now, g.response)
		if q.recorder != nil {
			q.recorder.Abandon(now, g.number)
		}
	}
	q.completeLocked()
}

// closeLocked collects the last bytes of an ended grant; false when no core knows it.
func (g *Grant) closeLocked(now time.Duration) bool {
	g.collectLocked(now)
	return g.response != nil
}

func (g *Grant) collectLocked(now time.Duration) {
	n := g.bytes.Swap(0)
	if n <= 0 || g.response == nil {
		return
	}
	g.queue.core.Progress(now, g.response, n)
	if recorder := g.queue.recorder; recorder != nil {
		recorder.Progress(now, g.number, n)
	}
}

// openLocked wraps a response of the core; nil for nil.
func (q *Queue) openLocked(r *queue.Response, number uint64, a *queue.Ask, v *queue.Verdict) *Grant {
	if r == nil {
		return nil
	}
	g := &Grant{
		queue: q, class: v.Class, outside: r.Outside(), protocol: a.Protocol, response: r, number: number, key: a.Key, size: a.SizeBytes, arrival: v.Arrival,
	}
	if g.bundle = a.Bundle && !a.Protocol; g.bundle {
		g.first = int64(a.Member)
	}
	switch {
	case g.bundle:
	case a.Range.Kind == queue.RangeOpen, a.Range.Kind == queue.RangeBounded:
		g.first = a.Range.First
	case a.Range.Kind == queue.RangeSuffix:
		g.first = -1
	}
	q.grants.push(g)
	return g
}

// askAgain is the request that a fresh core admits the grant for: its session, and its range as far as the session's start depends on it. The
// validator comes with the next request. A bundle is made anew of the objects whose responses run.
func (g *Grant) askAgain() queue.Ask {
	a := queue.Ask{Key: g.key, Class: g.class, Protocol: g.protocol, SizeBytes: g.size, Ticketed: true, Arrival: g.arrival}
	switch {
	case g.bundle:
		a.Bundle, a.Member = true, uint64(g.first)
	case g.first < 0:
		a.Range = queue.Suffix(1)
	default:
		a.Range = queue.OpenFrom(g.first)
	}
	return a
}

// grantList is the open grants, whose bytes the tick collects.
type grantList struct{ head *Grant }

func (l *grantList) push(g *Grant) {
	g.next = l.head
	if l.head != nil {
		l.head.prev = g
	}
	l.head = g
}

func (l *grantList) remove(g *Grant) {
	if g.prev == nil {
		l.head = g.next
	} else {
		g.prev.next = g.next
	}
	if g.next != nil {
		g.next.prev = g.prev
	}
	g.prev, g.next = nil, nil
}

// waiter is one held request: it and its channel are reused.
type waiter struct {
	wake chan struct{} // capacity 1: one answer
	// Below: written under the queue's lock before wake is sent, read by the owner after it.
	ask     queue.Ask
	until   time.Duration
	arrival time.Duration // of its session
	place   *queue.Waiter // nil once answered
	number  uint64        // in the recorder's log
	index   int
	grant   *Grant
	verdict queue.Verdict
}

// takeWaiter returns an idle waiter. Waiters are reused within one queue only: its channels never serve another.
func (q *Queue) takeWaiter() *waiter {
	if w, ok := q.idle.Get().(*waiter); ok {
		return w
	}
	return &waiter{wake: make(chan struct{}, 1)}
}

// recycle keeps a waiter whose answer was taken.
func (q *Queue) recycle(w *waiter) {
	*w = waiter{wake: w.wake}
	q.idle.Put(w)
}

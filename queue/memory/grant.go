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
	ended atomic.Bool

	queue      *Queue
	response   *queue.Response
	prev, next *Grant
}

// Progress notes n more bytes of the body handed to the client. One atomic addition; the next tick collects them.
func (g *Grant) Progress(n int64) { g.bytes.Add(n) }

// Class returns the class the session was admitted in.
func (g *Grant) Class() queue.Class { return g.response.Class() }

// Finish ends the response. The bytes [firstByte, lastByteExclusive) of the object count as delivered only when complete
// is true, that is the response was sent to its end. The session keeps its slot for its next range until the idle time.
// Calls after the first end do nothing.
func (g *Grant) Finish(firstByte, lastByteExclusive int64, complete bool) {
	if q := g.endLocked(); q != nil {
		q.core.Finish(q.clock(), g.response, firstByte, lastByteExclusive, complete)
		q.finishLocked()
	}
}

// Abandon ends the response of a client that left: nothing counts as delivered, and the session's last response frees
// the slot at once. The session's place in time and coverage are kept for ten minutes. Calls after the first end do
// nothing.
func (g *Grant) Abandon() {
	if q := g.endLocked(); q != nil {
		q.core.Abandon(q.clock(), g.response)
		q.finishLocked()
	}
}

// endLocked takes the grant out of the list and returns its queue with the lock taken; nil when it ended before.
func (g *Grant) endLocked() *Queue {
	if g.ended.Swap(true) {
		return nil
	}
	g.queue.mu.Lock()
	g.collectLocked(g.queue.clock())
	g.queue.grants.remove(g)
	return g.queue
}

func (g *Grant) collectLocked(now time.Duration) {
	if n := g.bytes.Swap(0); n > 0 {
		g.queue.core.Progress(now, g.response, n)
	}
}

// openLocked wraps a response of the core; nil for nil.
func (q *Queue) openLocked(r *queue.Response) *Grant {
	if r == nil {
		return nil
	}
	g := &Grant{queue: q, response: r}
	q.grants.push(g)
	return g
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
	place     *queue.Waiter
	until     time.Duration
	principal string
	index     int
	grant     *Grant
	verdict   queue.Verdict
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
	w.place, w.principal, w.grant, w.verdict = nil, "", nil, queue.Verdict{}
	q.idle.Put(w)
}

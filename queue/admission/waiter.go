package admission

import "time"

// waiter is one request that waits: it and its channel are reused. It is in its principal's queue and in the gate's
// list.
type waiter struct {
	wake      chan struct{} // capacity 1: one answer
	principal *principal
	since     time.Duration
	listed    bool
	place     Place
	err       error

	prev, next           *waiter // gate's list, oldest first
	queuePrev, queueNext *waiter // principal's queue, oldest first
}

// takeWaiter returns an idle waiter. Waiters are reused within one gate only: its channels never serve another.
func (g *Gate) takeWaiter() *waiter {
	if w, ok := g.idle.Get().(*waiter); ok {
		return w
	}
	return &waiter{wake: make(chan struct{}, 1)}
}

// recycle keeps a waiter whose answer was taken or that was withdrawn.
func (g *Gate) recycle(w *waiter) {
	w.place, w.err = Place{}, nil
	g.idle.Put(w)
}

type waiterList struct {
	head, tail *waiter
	count      int
}

func (l *waiterList) push(w *waiter) {
	w.listed = true
	w.prev, w.next = l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.count++
}

func (l *waiterList) remove(w *waiter) {
	w.listed = false
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.count--
}

type waiterQueue struct {
	head, tail *waiter
	count      int
}

func (q *waiterQueue) push(w *waiter) {
	w.queuePrev, w.queueNext = q.tail, nil
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.queueNext = w
	}
	q.tail = w
	q.count++
}

func (q *waiterQueue) remove(w *waiter) {
	if w.queuePrev == nil {
		q.head = w.queueNext
	} else {
		w.queuePrev.queueNext = w.queueNext
	}
	if w.queueNext == nil {
		q.tail = w.queuePrev
	} else {
		w.queueNext.queuePrev = w.queuePrev
	}
	w.queuePrev, w.queueNext = nil, nil
	q.count--
}

// ring is the principals with waiters in the order of their turns.
type ring struct{ head, tail *principal }

func (r *ring) push(p *principal) {
	p.prev, p.next = r.tail, nil
	if r.tail == nil {
		r.head = p
	} else {
		r.tail.next = p
	}
	r.tail = p
}

func (r *ring) remove(p *principal) {
	if p.prev == nil {
		r.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		r.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

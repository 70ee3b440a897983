package admission

import "time"

// Wait is one request that waits for its turn, as Enter returns it. It and its channel are reused after its end. While it
// waits it is in its principal's queue and in the gate's list. Its methods are for one owner.
type Wait struct {
	gate      *Gate
	answered  func(*Wait)   // nil, or told of the answer under the gate's lock
	wake      chan struct{} // capacity 1: one answer
	principal *principal
	since     time.Duration
	listed    bool
	place     Place
	err       error

	prev, next           *Wait // gate's list, oldest first
	queuePrev, queueNext *Wait // principal's queue, oldest first
}

// takeWait returns an idle wait. Waits are reused within one gate only: its channels never serve another.
func (g *Gate) takeWait() *Wait {
	if w, ok := g.idle.Get().(*Wait); ok {
		return w
	}
	return &Wait{gate: g, wake: make(chan struct{}, 1)}
}

// recycle keeps a wait whose answer was taken or that was withdrawn.
func (g *Gate) recycle(w *Wait) {
	w.place, w.err, w.answered = Place{}, nil, nil
	g.idle.Put(w)
}

type waiterList struct {
	head, tail *Wait
	count      int
}

func (l *waiterList) push(w *Wait) {
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

func (l *waiterList) remove(w *Wait) {
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
	head, tail *Wait
	count      int
}

func (q *waiterQueue) push(w *Wait) {
	w.queuePrev, w.queueNext = q.tail, nil
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.queueNext = w
	}
	q.tail = w
	q.count++
}

func (q *waiterQueue) remove(w *Wait) {
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

package queue

// Response is one running response of a session: what Admitted grants. It belongs to the scheduler that returned it and
// is used under the same lock.
type Response struct {
	session *session
	asked   RangeAsk
	bytes   int64
	done    bool
	place   uint8 // of a bundle's member
}

// Class returns the class the session was admitted in.
func (r *Response) Class() Class { return r.session.class }

// Outside reports whether the session got its slot while its class was outside its window; it goes on until the session gives that slot back.
func (r *Response) Outside() bool { return r.session.stay.outside }

// Waiter is one held request. It belongs to the scheduler that returned it; after it was settled or withdrawn it is
// dead.
type Waiter struct {
	owner      any
	session    *session // nil once settled or withdrawn
	asked      RangeAsk
	validator  string
	place      uint8 // of a bundle's member
	prev, next *Waiter
}

type waiterList struct {
	head, tail *Waiter
	count      int
}

func (l *waiterList) push(w *Waiter) {
	w.prev, w.next = l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.count++
}

func (l *waiterList) remove(w *Waiter) {
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
	w.prev, w.next, w.session = nil, nil, nil
	l.count--
}

package sim

import "time"

// eventKind says what an event is.
type eventKind uint8

const (
	eventArrive eventKind = iota
	eventTimer            // the client's one timer: poll, repetition, end of a backoff
	eventLeave            // a client that will not come back vanishes if it waits
	eventPatience
)

// event is one thing to happen. Equal times go by the order in which they were planned.
type event struct {
	at     time.Duration
	number uint64
	client int32
	stamp  uint32 // of the client's timer; another one by now = superseded
	kind   eventKind
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.number < o.number
}

// events is a 4-ary heap of values: planning and taking allocate nothing once it has grown.
type events struct {
	heap   []event
	number uint64
}

func (q *events) push(e event) {
	q.number++
	e.number = q.number
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

// pop takes the first event; the heap must not be empty.
func (q *events) pop() event {
	first := q.heap[0]
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap = q.heap[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= last {
			break
		}
		for c, end := child+1, min(child+4, last); c < end; c++ {
			if q.heap[c].before(&q.heap[child]) {
				child = c
			}
		}
		if !q.heap[child].before(&e) {
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	q.heap[i] = e
	return first
}

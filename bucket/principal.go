package bucket

import "time"

// place says which of the core's structures holds a principal.
type place uint8

const (
	placeNone   place = iota // has open streams, none of them waiting
	placeRing                // ready: waits for its turn at the shared bucket
	placeParked              // waits for its own bucket
	placeIdle                // no open stream, its bucket is still refilling
)

// principal is the state that all streams of one principal share. Guarded by the governor's lock.
//
// Invariants: I1 streams == 0 if and only if place is placeIdle (or the principal is forgotten); I2 place is placeRing or
// placeParked if and only if the queue is not empty; streams that a group keeps waiting are in a lane, not in the queue.
type principal struct {
	key     string
	account account
	streams int // open ones

	queue               // waiting ones in the order they asked, called ones first
	lanes *[Groups]lane // by group; nil until a stream of any is opened
	owed  bool          // its turn came to nothing because of a group

	place      place
	prev, next *principal    // neighbours in the ring or among the idle
	due        time.Duration // parked: when its own bucket covers its next quantum
	heapIndex  int           // parked: index in the heap
}

// principals is a linked list through the principals themselves, so that moving one allocates nothing.
type principals struct{ head, tail *principal }

func (l *principals) push(p *principal, at place) {
	p.place = at
	p.prev, p.next = l.tail, nil
	if l.tail == nil {
		l.head = p
	} else {
		l.tail.next = p
	}
	l.tail = p
}

func (l *principals) pushFront(p *principal, at place) {
	p.place = at
	p.prev, p.next = nil, l.head
	if l.head == nil {
		l.tail = p
	} else {
		l.head.prev = p
	}
	l.head = p
}

func (l *principals) remove(p *principal) {
	p.place = placeNone
	if p.prev == nil {
		l.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// parking is a binary min-heap of principals by due. It is written out because container/heap moves elements through
// interfaces, at twice the cost, on the path of every grant to a limited principal.
type parking []*principal

func (h *parking) push(p *principal, due time.Duration) {
	p.place, p.due, p.heapIndex = placeParked, due, len(*h)
	*h = append(*h, p)
	h.up(p.heapIndex)
}

func (h *parking) remove(p *principal) {
	old := *h
	i, last := p.heapIndex, len(old)-1
	old.swap(i, last)
	old[last] = nil
	*h = old[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	p.place = placeNone
}

func (h parking) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h parking) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].due <= h[i].due {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h parking) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].due < h[least].due {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

package bucket

import "time"

// world drives a core event by event with a timer of its own, whose lateness the test chooses.
type world struct {
	t       failer
	core    *core
	now     time.Duration
	total   *bound // moments of charge of the shared bucket
	real    *bound // moments of release
	own     map[string]*bound
	trace   []grant
	limits  [2]Limit
	answers map[*Stream]int
}

type failer interface{ Fatalf(string, ...any) }

func newWorld(t failer, total, perPrincipal Limit) *world {
	w := &world{t: t, core: newCore(total, perPrincipal, 0), own: map[string]*bound{}, limits: [2]Limit{total, perPrincipal}}
	w.total, w.real = newBound(total, 0), newBound(total, 0)
	w.answers = map[*Stream]int{}
	w.core.observe = w.observe
	return w
}

func (w *world) observe(g grant) {
	w.trace = append(w.trace, g)
	if !w.limits[0].Off() {
		w.total.grant(g.bytes, g.shared)
		w.real.slack = w.core.total.maxLag
		w.real.grant(g.bytes, g.released)
	}
	if !w.limits[1].Off() {
		b := w.own[g.principal]
		if b == nil {
			b = newBound(w.limits[1], g.own)
			w.own[g.principal] = b
		}
		b.grant(g.bytes, g.own)
	}
}

// settle collects the answers and checks everything that must hold between events.
func (w *world) settle() {
	for s := w.core.answered; s != nil; {
		next := s.next
		s.next = nil
		w.answers[s]++
		s = next
	}
	w.core.answered = nil
	w.checkInvariants()
}

func (w *world) open(key string) *Stream {
	s := &Stream{}
	w.core.open(s, key)
	w.settle()
	return s
}

func (w *world) ask(s *Stream, want int64) bool {
	w.core.ask(s, want, w.now)
	w.settle()
	return !s.waiting
}

// fire lets the timer run once, late by what the caller says.
func (w *world) fire(late time.Duration) bool {
	at, waits := w.core.wake()
	if !waits {
		return false
	}
	w.now = max(w.now, at+late)
	w.core.pump(w.now)
	w.settle()
	return true
}

func (w *world) configure(total, perPrincipal Limit) {
	if w.limits[0].Off() { // what comes on starts full
		w.total, w.real = newBound(total, w.now), newBound(total, w.now)
	}
	if w.limits[1].Off() {
		clear(w.own)
	}
	w.limits = [2]Limit{total, perPrincipal}
	w.total.configure(total, w.now)
	w.real.configure(total, w.now)
	for _, b := range w.own {
		b.configure(perPrincipal, w.now)
	}
	w.core.configure(total, perPrincipal, w.now)
	w.settle()
}

func (w *world) checkInvariants() {
	c := w.core
	waiting, placed := 0, 0
	for key, p := range c.known {
		queued := 0
		for s := p.head; s != nil; s = s.next {
			if !s.waiting || s.owner != p {
				w.t.Fatalf("%s: a stream in the queue does not wait", key)
			}
			queued++
		}
		waiting += queued
		if (p.place == placeIdle) != (p.streams == 0) {
			w.t.Fatalf("%s: %d streams in place %d", key, p.streams, p.place)
		}
		if inTurn := p.place == placeRing || p.place == placeParked; inTurn != (queued > 0) {
			w.t.Fatalf("%s: %d waiting in place %d", key, queued, p.place)
		} else if inTurn {
			placed++
		}
		if a := &p.account; a.lag < 0 || a.lag > a.maxLag || a.bucket.level < 0 || a.bucket.level > a.bucket.capacity {
			w.t.Fatalf("%s: account %+v", key, *a)
		}
	}
	if waiting != c.waiting {
		w.t.Fatalf("waiting %d, counted %d", c.waiting, waiting)
	}
	inRing := 0
	for p := c.ring.head; p != nil; p = p.next {
		inRing++
	}
	if inRing+len(c.parked) != placed {
		w.t.Fatalf("%d in the ring and %d parked, %d have a queue", inRing, len(c.parked), placed)
	}
	for i, p := range c.parked {
		if p.heapIndex != i || p.due <= w.now || i > 0 && c.parked[(i-1)/2].due > p.due {
			w.t.Fatalf("parked %d: %+v at %v", i, p, w.now)
		}
	}
	if at, waits := c.wake(); waits != (waiting > 0) || waits && (at <= w.now || at == never) {
		w.t.Fatalf("%d wait, next wake-up %v (%v) at %v", waiting, at, waits, w.now)
	}
	for name, b := range map[string]*bound{"shared": w.total, "released": w.real} {
		if b.faults > 0 {
			w.t.Fatalf("%s: B1 exceeded by %v billionths", name, b.worst)
		}
	}
	for name, b := range w.own {
		if b.faults > 0 {
			w.t.Fatalf("%s: B1 exceeded by %v billionths", name, b.worst)
		}
	}
}

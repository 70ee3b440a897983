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
	served  []*Stream // by drive, as the trace
	limits  [2]Limit
	groups  [Groups]*groupBound
	answers map[*Stream]int
}

// groupBound is what is known of a group by its grants alone.
type groupBound struct{ charged, real *bound }

type failer interface{ Fatalf(string, ...any) }

func newWorld(t failer, total, perPrincipal Limit) *world {
	w := &world{t: t, core: newCore(total, perPrincipal, 0), own: map[string]*bound{}, limits: [2]Limit{total, perPrincipal}}
	w.total, w.real = newBound(total, 0), newBound(total, 0)
	w.answers = map[*Stream]int{}
	w.core.observe = w.observe
	for i := range w.groups {
		w.groups[i] = &groupBound{newBound(Limit{}, 0), newBound(Limit{}, 0)}
	}
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
	if g.group != nil && !g.group.limit.Off() {
		b := w.groups[g.group.index]
		b.charged.grant(g.bytes, g.grouped)
		b.real.slack = g.group.account.maxLag
		b.real.grant(g.bytes, g.released)
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

func (w *world) openIn(key string, group int) *Stream {
	s := &Stream{}
	w.core.open(s, key)
	w.core.join(s, group)
	w.settle()
	return s
}

func (w *world) configureGroup(group int, l Limit) {
	b := w.groups[group]
	if b.charged.limit.Off() { // what comes on starts full
		b.charged, b.real = newBound(l, w.now), newBound(l, w.now)
	}
	b.charged.configure(l, w.now)
	b.real.configure(l, w.now)
	w.core.configureGroup(group, l, w.now)
	w.settle()
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
	waiting, placed := w.checkGroups(), 0
	for key, p := range c.known {
		queued := 0
		for s := p.head; s != nil; s = s.next {
			if !s.waiting || s.held || s.owner != p {
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
	if p := c.ring.head; p != nil { // it waits for the shared bucket and for nothing else
		s := p.head
		if n := c.need(s); p.account.when(n) > w.now || s.group != nil && s.group.bars(s, n, w.now) || c.total.when(n) <= w.now {
			w.t.Fatalf("%s is first and waits for something else", p.key)
		}
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

// checkGroups checks the groups and returns how many streams they keep waiting.
func (w *world) checkGroups() (held int) {
	c := w.core
	var reserved [Groups]int64
	var waiting [Groups]int
	for key, p := range c.known {
		for s := p.head; s != nil; s = s.next {
			if g := s.group; g != nil {
				waiting[g.index]++
				if g.called(s) {
					reserved[g.index] += s.reserved
					if s.reserved != c.need(s) {
						w.t.Fatalf("%s: %d reserved for %d", key, s.reserved, c.need(s))
					}
				}
			}
		}
		for i := range Groups {
			if p.lanes == nil {
				break
			}
			listed := false
			for l := c.groups[i].lanes.head; l != nil; l = l.next {
				listed = listed || l == &p.lanes[i]
			}
			if listed != (p.lanes[i].head != nil) {
				w.t.Fatalf("%s: lane of group %d is listed: %v", key, i, listed)
			}
			for s := p.lanes[i].head; s != nil; s = s.next {
				if !s.waiting || !s.held || s.owner != p || s.group != &c.groups[i] || c.groups[i].called(s) {
					w.t.Fatalf("%s: %+v in a lane of group %d", key, s, i)
				}
				waiting[i]++
				held++
			}
		}
	}
	for i := range c.groups {
		g := &c.groups[i]
		if g.waiting != waiting[i] || g.reserved != reserved[i] {
			w.t.Fatalf("group %d: %d waiting, %d reserved; found %d and %d", i, g.waiting, g.reserved, waiting[i], reserved[i])
		}
		if a := &g.account; a.lag < 0 || a.lag > a.maxLag || a.bucket.level < 0 || a.bucket.level > a.bucket.capacity || a.on == g.limit.Off() ||
			g.reserved > 0 && a.when(g.reserved) > w.now {
			w.t.Fatalf("group %d: account %+v, %d reserved", i, *a, g.reserved)
		}
		if l := g.lanes.head; l != nil && (g.limit.Off() || g.callAt(c.need(l.head)) <= w.now) {
			w.t.Fatalf("group %d keeps one waiting that it could call", i)
		}
		if b := w.groups[i]; b.charged.faults+b.real.faults > 0 {
			w.t.Fatalf("group %d: B1 exceeded by %v, released %v billionths", i, b.charged.worst, b.real.worst)
		}
	}
	if held != c.held {
		w.t.Fatalf("%d held, counted %d", c.held, held)
	}
	return held
}

// drive lets streams ask without pause and the timer fire so often, up to a millisecond late.
func (w *world) drive(times int, streams []*Stream) {
	observe := w.core.observe
	w.core.observe = func(g grant) {
		observe(g)
		w.served = append(w.served, w.core.answered)
	}
	defer func() { w.core.observe = observe }()
	for i := range times {
		for _, s := range streams {
			for !s.waiting {
				w.ask(s, 1<<30)
			}
		}
		w.fire(time.Duration(i%10) * time.Millisecond / 10)
	}
}

// repeated counts the grants of a part of the trace that follow one of the same principal.
func (w *world) repeated(from, to int) (n int) {
	for i := from + 1; i < to; i++ {
		if w.trace[i].principal == w.trace[i-1].principal {
			n++
		}
	}
	return n
}

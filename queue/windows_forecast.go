package queue

import (
	"math"
	"time"
)

// Bounds of a forecast by class.
const (
	classLength = walkLength / Classes // sessions of a class that it follows when more than walkLength wait
	classSteps  = 4096                 // starts and ends that it follows
)

// classForecast are the starts by class, for a time in which windows matter. Then a position says little about the start: classes that are shut come in between
// when they open. So the walk keeps the classes apart, each with its pass, share and edges, and finds at every start which of them is next. Sessions beyond
// those it follows have the mean size of the others of their class. Whoever is not followed, or does not start within classSteps, starts when as many bytes of
// his class as are ahead have begun in the fluid limit: with B(c, t) the bytes of class c that sessions have which began by t,
//
//	sum over c of dB(c, t)/dt = R while any class that is not shut has sessions left, split by weight x mean size, share x R at most outside a window
//
// after the active sessions' bytes have come down to what such ones have on the average, and from that on at once when nothing ran before an opening.
type classForecast struct {
	on    bool
	from  [Classes]int     // of starts
	count [Classes]int     // sessions followed
	total [Classes]float64 // bytes of the whole class
	fluid []fluidPoint     // by t; empty = all are followed
}

// fluidPoint is what began by a time, in seconds from the forecast.
type fluidPoint struct {
	t     float64
	begun [Classes]float64 // bytes
}

// classWalk is the state of a forecast by class.
type classWalk struct {
	walk
	core     *Scheduler
	at       time.Duration
	passes   [Classes]uint64
	idle     [Classes]bool // nobody who stands there may start
	lastPass uint64
	share    [Classes]int // of the applied classes, as outside
	edges    []WindowEdge
	cursor   [Classes][Classes]int // of the sessions that stand in a class: the first of each applied class that has not begun
	rest     [Classes][Classes]int // of those that are not followed
	mean     [Classes]float64      // their bytes
	left     int                   // followed ones that have not begun
}

// windowsMatter reports whether a class of which somebody waits is outside its window, or leaves it before twice the time that all that waits takes.
func (s *Scheduler) windowsMatter(now time.Duration) bool {
	c := &s.calendar
	if !c.some || s.waiting.count == 0 {
		return false
	}
	horizon, bytes := never, s.model.owedNow
	for class := range s.lines {
		bytes += float64(s.lines[class].bytes())
	}
	if s.model.peak > 0 {
		horizon = now + time.Minute + min(2*seconds(min(bytes/s.model.peak, longestPromise.Seconds())), never/4)
	}
	for class := range s.lines {
		if s.byClass[waiting][class] > 0 && c.restricted(Class(class)) {
			return true
		}
	}
	for i := range c.edges {
		if c.edges[i].At > horizon {
			break
		}
		if s.byClass[waiting][c.edges[i].Class] > 0 {
			return true
		}
	}
	return false
}

// remember keeps the peak of the times in which somebody waited who could start: then the link was full. It is forgotten slowly, and only in such times.
func (m *model) remember(s *Scheduler, now time.Duration, peak float64) {
	if s.contenders(false) > 0 {
		m.known *= math.Exp2(-(now - m.measured).Seconds() / linkMemory.Seconds())
	}
	m.known = max(m.known, peak)
}

// walkByClass makes the forecast by class.
func (m *model) walkByClass(s *Scheduler, now time.Duration) {
	w := classWalk{walk: m.begin(s), core: s, at: now, lastPass: s.lastPass, share: s.calendar.share, edges: s.calendar.edges}
	f := &m.classes
	f.fluid = f.fluid[:0]
	whole := s.waiting.count <= walkLength
	known, expected := 0.0, 0.0
	for c := range s.lines {
		l := &s.lines[c]
		w.passes[c], f.from[c], f.count[c] = l.pass, m.n, l.count
		if !whole {
			f.count[c] = min(l.count, classLength)
		}
		var of [Classes]int
		cursor := l.cursor()
		for range f.count[c] {
			ses := cursor.next()
			m.next[m.n] = walker{other: ses.class != Interactive, bytes: m.growth.expected(ses), hold: ses.holds(now).Seconds(), class: ses.class}
			known, expected = known+float64(ses.remaining()), expected+m.next[m.n].bytes
			m.starts[m.n] = math.Inf(1)
			m.n++
			of[ses.class]++
		}
		for k, n := range of { // those that are not followed are of the same classes
			w.cursor[c][k] = f.from[c]
			if n > 0 {
				w.rest[c][k] = (l.count - f.count[c]) * n / f.count[c]
			}
		}
	}
	m.inflation = 1
	if known > 0 {
		m.inflation = expected / known
	}
	for c := range s.lines {
		l := &s.lines[c]
		f.total[c] = float64(l.bytes()) * m.inflation
		if rest := l.count - f.count[c]; rest > 0 {
			w.mean[c] = float64(l.bytes()-l.firstBytes(f.count[c])) * m.inflation / float64(rest)
		}
	}
	m.opens, w.left = math.Inf(1), m.n
	steps := 0
	for ; w.left > 0 && steps < classSteps && w.step(); steps++ {
	}
	m.tail, m.spread = m.owed, 0
	if w.tailCount > 0 {
		m.tail = w.tails / w.tailCount
	}
	if !whole || w.left > 0 && steps == classSteps {
		w.flow(f)
	}
	if ses := s.front(false); s.takesOver(s.now, ses) {
		i := f.from[ses.lifted]
		m.starts[i] = min(m.starts[i], headFloor.Seconds())
	}
}

// until is when the next share changes, in seconds.
func (w *classWalk) until() float64 {
	if len(w.edges) == 0 {
		return math.Inf(1)
	}
	return (w.edges[0].At - w.at).Seconds()
}

// step lets one session start or end, or one share change; false when nothing happens any more.
func (w *classWalk) step() bool {
	until := w.until()
	if w.now >= until {
		w.share[w.edges[0].Class] = w.edges[0].Share
		w.edges = w.edges[1:]
		return true
	}
	if w.active < w.slots || w.active < w.most && len(w.running) == 0 {
		if w.startNext() {
			return true
		}
	}
	return w.end(until)
}

// barred reports whether nobody of an applied class may start now.
func (w *classWalk) barred(class, slots int) bool {
	share := w.share[class]
	return share < WholeShare && (share == 0 || w.outside[class] >= (share*slots+WholeShare-1)/WholeShare)
}

// first returns the next session that stands in a class and may start: its index, or -1 with the applied class of one that is not followed, or -1 twice.
func (w *classWalk) first(c, slots int) (index, class int) {
	index, class = -1, -1
	end := w.classes.from[c] + w.classes.count[c]
	for k := range w.cursor[c] {
		if w.barred(k, slots) {
			continue
		}
		i := w.cursor[c][k]
		for i < end && (int(w.next[i].class) != k || w.next[i].begun) {
			i++
		}
		if w.cursor[c][k] = i; i < end && (index < 0 || i < index) {
			index, class = i, k
		}
	}
	if index >= 0 {
		return index, class
	}
	for k, n := range w.rest[c] {
		if n > 0 && !w.barred(k, slots) && (class < 0 || n > w.rest[c][class]) {
			class = k
		}
	}
	return -1, class
}

// startNext lets the session start that is next, false when none may.
func (w *classWalk) startNext() bool {
	slots := w.slots
	if len(w.running) == 0 { // elastic slots open until one shares the link again
		slots = max(slots, min(w.active+1+w.policy.Reserve, w.most))
	}
	common := w.others < slots-w.policy.Reserve
	best, index, class := -1, -1, -1
	for c := range w.passes {
		if !common && c != int(Interactive) {
			continue
		}
		i, k := w.first(c, slots)
		if w.idle[c] && k >= 0 {
			w.passes[c] = max(w.passes[c], w.lastPass)
		}
		if w.idle[c] = k < 0; k >= 0 && (best < 0 || w.passes[c] < w.passes[best]) {
			best, index, class = c, i, k
		}
	}
	if best >= 0 {
		w.start(best, index, class)
	}
	return best >= 0
}

// start lets a session start that stands in class c and is of an applied class.
func (w *classWalk) start(c, index, class int) {
	w.lastPass = max(w.lastPass, w.passes[c])
	w.passes[c] += w.core.stride(c)
	at := walker{other: class != int(Interactive), bytes: w.mean[c], class: Class(class)}
	if index >= 0 {
		w.next[index].begun = true
		w.starts[index], at = w.now, w.next[index]
		w.left--
	} else {
		w.rest[c][class]--
	}
	w.opens = min(w.opens, w.now)
	if at.outside = w.share[class] < WholeShare; at.outside {
		w.outside[class]++
	}
	if w.active+1 >= w.slots {
		w.noteTail()
	}
	at.begun = true
	w.launch(at)
}

// foretellByClass is foretell while windows matter; it returns the seconds of the told start in which the class will be shut. Errors are in the time in which the class is not shut, which is all that is uncertain: a start in
// t seconds, d of them shut, is one of x = t - d open ones, the interval is made of x, and each end of it becomes the moment at which the class will have been
// open for so long.
func (s *Scheduler) foretellByClass(now time.Duration, ses *session, v *Verdict) (shut float32) {
	m := &s.model
	if m.classes.count[ses.lifted] == 0 { // the first of its class, see estimate
		return 0
	}
	start := s.startByClass(ses)
	if head := ses.yieldTo(); head != nil && !s.calendar.bars[head.class] {
		start = max(start, s.startByClass(head)) // the head goes first
	}
	start = max(start-max(now-max(m.at, s.gatherUntil), 0).Seconds(), 0)
	if !(start < longestPromise.Seconds()) {
		return 0
	}
	calendar := &s.calendar
	closed := calendar.shutWithin(ses.class, now, start)
	open := (start - closed) / s.rate.busy()
	f := s.calibration.forecast(max(open, 0))
	if closed > 0 && m.peak > 0 && !ses.moved {
		f.p90 = f.p50 + math.Hypot(f.p90-f.p50, influxShare*s.influx.ahead(s, ses, start)/m.peak)
	}
	p50 := calendar.openFor(ses.class, now, f.p50)
	if !(p50 < longestPromise.Seconds()) {
		return 0
	}
	v.EstimateKnown = true
	v.StartsIn, v.EarliestIn = seconds(p50), seconds(calendar.openFor(ses.class, now, f.p10))
	v.LatestIn = seconds(min(calendar.openFor(ses.class, now, f.p90), longestPromise.Seconds())) + TickEvery
	if closed > 0 {
		v.LatestIn += headFloor // its client is not there at the very moment
	}
	if rest := s.gatherUntil - now; rest > 0 {
		v.StartsIn, v.EarliestIn, v.LatestIn = max(v.StartsIn, rest), max(v.EarliestIn, rest), v.LatestIn+rest
	}
	return float32(p50 - f.p50)
}

func (s *Scheduler) startByClass(ses *session) float64 {
	rank, bytes := s.rankInLine(ses)
	return s.model.classes.startOf(&s.model, ses.lifted, rank, bytes)
}

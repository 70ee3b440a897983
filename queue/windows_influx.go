package queue

import "time"

// influx is what came lately, by class. Under a size order newcomers go ahead of who waits, and of a class that is shut nobody leaves meanwhile: what
// comes until he starts may make who waits much later, and whoever was told a start learns of it only after the opening. Bytes and seconds throughout.
type influx struct {
	begun   bool
	since   time.Duration // from when on arrivals are counted
	span    int64         // the present one of those below, from 0
	counts  [Classes][influxSpans]uint32
	virtual [influxSpans]int64 // V of fair-sojourn when each began, or since
	samples [Classes][influxSamples]newcomer
	n, next [Classes]uint8
}

// newcomer is an arrival: its size, and its order beyond the base of orders at that time.
type newcomer struct{ size, beyond float64 }

// Bounds of what is remembered of arrivals.
const (
	influxEvery   = 30 * time.Minute
	influxSpans   = 32
	influxSamples = 64 // of a class, the last ones
	// influxShare of as many bytes as came lately are added to the p90, by experiment: see the doc of the package.
	influxShare = 0.8
)

// turn begins the spans that have come, at each tick and arrival. No forecast may: looks make forecasts too, and a log of calls has no looks.
func (f *influx) turn(s *Scheduler) {
	at := int64(s.now / influxEvery)
	if !f.begun {
		f.begun, f.since, f.span = true, s.now, at
		f.virtual[at%influxSpans] = s.fair.v
	}
	if at-f.span > influxSpans {
		f.span = at - influxSpans
	}
	for f.span < at {
		f.span++
		i := f.span % influxSpans
		f.virtual[i] = s.fair.v
		for c := range f.counts {
			f.counts[c][i] = 0
		}
	}
}

// note takes in a session that has just come, or comes again at a new arrival, and stands in its order.
func (f *influx) note(s *Scheduler, ses *session) {
	f.turn(s)
	c := ses.class
	f.counts[c][f.span%influxSpans]++
	if s.policy.Strategy == Ordered {
		return
	}
	f.samples[c][f.next[c]] = newcomer{float64(ses.weight()), float64(ses.order) - s.orderBase()}
	f.next[c] = (f.next[c] + 1) % influxSamples
	f.n[c] = min(f.n[c]+1, influxSamples)
}

// forget is for another order or virtual system: samples and V of before compare with nothing in it.
func (f *influx) forget(v int64) {
	f.n, f.next = [Classes]uint8{}, [Classes]uint8{}
	for i := range f.virtual {
		f.virtual[i] = v
	}
}

// orderBase is by what the orders of equal sessions grow as time goes by: V under fair-sojourn, the time under smallest-first with aging.
func (s *Scheduler) orderBase() float64 {
	switch {
	case s.policy.Strategy == FairSojourn:
		return float64(s.fair.v)
	case s.policy.Strategy == SmallestFirst && s.policy.AgingEvery > 0:
		return float64(s.now)
	}
	return 0
}

// baseGrowth is how fast orderBase is expected to grow a second, when that many more sessions will wait at the end: V as in this span and the one before, slowed down by
// those who will share the link as well.
func (f *influx) baseGrowth(s *Scheduler, more float64) float64 {
	switch {
	case s.policy.Strategy == SmallestFirst && s.policy.AgingEvery > 0:
		return float64(time.Second)
	case s.policy.Strategy != FairSojourn:
		return 0
	}
	from := max(f.span-1, int64(f.since/influxEvery))
	passed := s.now - max(time.Duration(from)*influxEvery, f.since)
	if passed < time.Minute {
		return s.model.peak / float64(max(s.fair.n, 1))
	}
	members := float64(max(s.fair.n, 1))
	return float64(s.fair.v-f.virtual[from%influxSpans]) / passed.Seconds() * members / (members + more/2)
}

// ahead returns how many bytes come within so many seconds and go ahead of a waiting session, when as many sessions of its class come as came in as long a time before
// now (of what is remembered, and not from less than influxEvery), of the sizes of the last ones, evenly spread. It changes nothing. O(influxSamples).
func (f *influx) ahead(s *Scheduler, ses *session, within float64) (bytes float64) {
	n := int(f.n[ses.class])
	if n == 0 || within <= 0 {
		return 0
	}
	came, seen := 0.0, (s.now - time.Duration(f.span)*influxEvery).Seconds()
	for i := f.span; ; i-- {
		came += float64(f.counts[ses.class][i%influxSpans])
		if i == 0 || i == f.span-influxSpans+1 || seen >= within {
			break
		}
		seen += influxEvery.Seconds()
	}
	came *= within / max(min(seen, (s.now-f.since).Seconds()), influxEvery.Seconds())
	room, growth := float64(ses.order)-s.orderBase(), f.baseGrowth(s, came)*within
	for i := range f.samples[ses.class][:n] {
		at := &f.samples[ses.class][i]
		switch until := room - at.beyond; {
		case until <= 0:
		case until >= growth:
			bytes += at.size
		default:
			bytes += at.size * until / growth
		}
	}
	return bytes * came / float64(n)
}

package queue

import (
	"math"
	"sort"
	"time"
)

// flow makes the fluid limit. Of what stands in a class each applied class has the part that it has of those that are followed.
func (w *classWalk) flow(f *classForecast) {
	if w.peak == 0 {
		return
	}
	left, running := w.parts(f), w.owed
	share, edges := w.core.calendar.share, w.core.calendar.edges
	at := fluidPoint{}
	f.fluid = append(f.fluid, at)
	for range 2*MaxWindowEdges + 3*Classes*Classes {
		until := math.Inf(1)
		if len(edges) > 0 {
			until = (edges[0].At - w.at).Seconds()
		}
		rates, all := w.rates(&left, &share)
		step := until - at.t
		switch {
		case all == 0: // nobody may begin: what runs ends
			running = max(0, running-step*w.peak)
		case running > w.tail: // too much runs as yet
			step = min(step, (running-w.tail)/w.peak)
			if running -= step * w.peak; step < until-at.t {
				running = w.tail
			}
		case running < w.tail: // slots are free: sessions begin at once
			begin(&at, &left, &rates, (w.tail-running)/all)
			running, step = w.tail, 0
		default:
			for c := range rates {
				for k, rate := range rates[c] {
					if rate > 0 {
						step = min(step, left[c][k]/rate)
					}
				}
			}
			begin(&at, &left, &rates, step)
		}
		if math.IsInf(step, 1) {
			break
		}
		at.t += step
		f.fluid = append(f.fluid, at)
		for len(edges) > 0 && at.t >= (edges[0].At-w.at).Seconds() {
			share[edges[0].Class], edges = edges[0].Share, edges[1:]
		}
	}
}

// classParts are numbers by the class that sessions stand in and their applied class.
type classParts [Classes][Classes]float64

// parts are the bytes of all that waits.
func (w *classWalk) parts(f *classForecast) (left classParts) {
	for c := range left {
		for i := f.from[c]; i < f.from[c]+f.count[c]; i++ {
			left[c][w.next[i].class] += f.total[c] / float64(f.count[c])
		}
	}
	return left
}

// begin lets sessions begin for so many seconds at those rates.
func begin(at *fluidPoint, left, rates *classParts, seconds float64) {
	for c := range rates {
		for k, rate := range rates[c] {
			n := min(seconds*rate, left[c][k])
			if at.begun[c], left[c][k] = at.begun[c]+n, left[c][k]-n; left[c][k] < 1 {
				left[c][k] = 0
			}
		}
	}
}

// rates splits the link between the classes in which sessions stand that may begin: by weight and mean size, as each slot that frees goes to the next class by its
// stride. all is their sum.
func (w *classWalk) rates(left *classParts, share *[Classes]int) (rates classParts, all float64) {
	var whole, limited float64 // weights of the classes that may begin
	for c := range rates {
		sum := 0.0
		for k, n := range left[c] {
			if share[k] > 0 {
				sum += n
			}
		}
		if sum == 0 {
			continue
		}
		weight := float64(w.policy.Weights[c]) * w.classes.total[c] / float64(w.core.lines[c].count)
		for k, n := range left[c] {
			if share[k] == 0 {
				continue
			}
			if rates[c][k] = weight * n / sum; share[k] < WholeShare {
				limited += rates[c][k]
			} else {
				whole += rates[c][k]
			}
		}
	}
	if whole+limited == 0 {
		return rates, 0
	}
	rest := w.peak // of those with a whole share: what the others leave
	for k := range share {
		if share[k] == WholeShare {
			continue
		}
		most := w.peak * float64(share[k]) / WholeShare
		for c := range rates {
			rates[c][k] = min(most, w.peak*rates[c][k]/(whole+limited)) // outside its window a class stands by itself
			rest -= rates[c][k]
			all += rates[c][k]
		}
	}
	for k := range share {
		if share[k] < WholeShare || whole == 0 {
			continue
		}
		for c := range rates {
			rates[c][k] *= max(rest, 0) / whole
			all += rates[c][k]
		}
	}
	return rates, all
}

// startOf returns in how many seconds from the forecast the session of that rank in a class starts, with that many bytes of the class ahead; +Inf when it cannot
// be told.
func (f *classForecast) startOf(m *model, class Class, rank int, bytes int64) float64 {
	from, n := f.from[class], f.count[class]
	if rank < n {
		if start := m.starts[from+rank]; !math.IsInf(start, 1) || len(f.fluid) == 0 {
			return start
		}
	}
	ahead := float64(bytes) * m.inflation
	if len(f.fluid) == 0 { // it came since: behind the last one
		if n == 0 || m.peak == 0 {
			return math.Inf(1)
		}
		return m.starts[from+n-1] + max(0, ahead-f.total[class])/m.peak
	}
	start := f.flowsTo(m, class, ahead)
	if rank >= n && n > 0 && !math.IsInf(m.starts[from+n-1], 1) {
		start = max(start, m.starts[from+n-1])
	}
	return start
}

// flowsTo returns when so many bytes of the class have begun.
func (f *classForecast) flowsTo(m *model, class Class, ahead float64) float64 {
	i := sort.Search(len(f.fluid), func(i int) bool { return f.fluid[i].begun[class] > ahead })
	switch last := &f.fluid[len(f.fluid)-1]; {
	case i == 0:
		return 0
	case i < len(f.fluid):
		a, b := &f.fluid[i-1], &f.fluid[i]
		return a.t + (b.t-a.t)*(ahead-a.begun[class])/(b.begun[class]-a.begun[class])
	case last.begun[class] >= f.total[class]-2: // it came since
		done := sort.Search(len(f.fluid), func(i int) bool { return f.fluid[i].begun[class] >= last.begun[class] })
		return f.fluid[done].t + (ahead-last.begun[class])/m.peak
	default:
		return math.Inf(1) // the class never begins so many
	}
}

// shutWithin returns how many of the next so many seconds the class is shut.
func (c *calendar) shutWithin(class Class, now time.Duration, within float64) (shut float64) {
	at, share := 0.0, c.share[class]
	for i := range c.edges {
		e := &c.edges[i]
		if e.Class != class {
			continue
		}
		next := min((e.At - now).Seconds(), within)
		if share == 0 {
			shut += next - at
		}
		if at, share = next, e.Share; at >= within {
			return shut
		}
	}
	if share == 0 {
		shut += within - at
	}
	return shut
}

// openFor returns in how many seconds the class, not shut then, will have been open for so many; +Inf when it will not.
func (c *calendar) openFor(class Class, now time.Duration, open float64) float64 {
	at, share := 0.0, c.share[class]
	for i := range c.edges {
		e := &c.edges[i]
		if e.Class != class {
			continue
		}
		next := (e.At - now).Seconds()
		if share > 0 {
			if open < next-at {
				return at + open
			}
			open -= next - at
		}
		at, share = next, e.Share
	}
	if share == 0 {
		return math.Inf(1)
	}
	return at + open
}

// wasShut returns how many seconds of the time from then to now the class was shut, as far as its last gaps are remembered. The class is not shut now.
func (c *calendar) wasShut(class Class, then, now time.Duration) (shut float64) {
	for _, g := range c.gaps[class] {
		shut += max(0, min(g.to, now)-max(g.from, then)).Seconds()
	}
	return shut
}

// opensIn is how long a class that may start nobody still waits for its window, 0 when it is not shut.
func (s *Scheduler) opensIn(class Class) time.Duration {
	if s.calendar.share[class] > 0 {
		return 0
	}
	at := s.calendar.opensAt(class)
	if at == never {
		return never
	}
	return max(0, at-s.now)
}

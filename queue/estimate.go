package queue

import (
	"math"
	"slices"
	"time"
)

// walkLength is how many sessions at the front of the order the forecast follows one by one.
const walkLength = 256

// smallQueue is up to how many waiting sessions the forecast is made anew for every contact after a change.
const smallQueue = 64

// model is the forecast of the next starts, made anew on ticks, and between them when slots changed.
type model struct {
	made                             bool
	at                               time.Duration
	activeSeen, slotsSeen, orderSeen uint64
	peak                             float64 // bytes per second, 0 = unknown
	endingAll, endingCommon          int     // sessions that end within EndingSoon
	starts                           [walkLength]float64
	n                                int     // starts in use: seconds from at, +Inf when it cannot be told
	owed                             float64 // bytes that active sessions had to come at `at`
	tail                             float64 // mean bytes that running sessions have to come whenever another one starts
	people                           [walkLength]bool
	sizes                            [walkLength]float64
	finish                           []float64 // scratch: heap of the shared sessions' finish tags
	finishOther                      []bool
	slow                             []slowSession
}

// slowSession is an active session that its own client, not the link, holds back.
type slowSession struct {
	ends  float64 // seconds
	rate  float64 // bytes per second
	other bool    // below Interactive
}

// refresh makes the forecast anew when it is stale.
func (m *model) refresh(s *Scheduler, now time.Duration, tick bool) {
	age := now - m.at
	changed := m.activeSeen != s.activeChanges || m.slotsSeen != s.slotChanges || m.orderSeen != s.orderChanges
	switch {
	case !m.made:
	case tick || s.waiting.count <= smallQueue:
		if !changed && age < TickEvery {
			return
		}
	case age < TickEvery && (m.slotsSeen == s.slotChanges || age < TickEvery/5):
		return
	}
	m.made, m.at, m.activeSeen, m.slotsSeen, m.orderSeen = true, now, s.activeChanges, s.slotChanges, s.orderChanges
	peak, _ := s.rate.measured(now)
	m.peak = max(peak, float64(s.policy.BandBytesPerSecond))
	m.measure(s, now)
	m.walk(s)
}

// measure splits the active sessions into those that share the link and those that cannot take their share, and counts those
// that end soon.
func (m *model) measure(s *Scheduler, now time.Duration) {
	m.finish, m.finishOther, m.slow = m.finish[:0], m.finishOther[:0], m.slow[:0]
	m.endingAll, m.endingCommon, m.owed, m.n = 0, 0, 0, 0
	running := 0
	for _, ses := range s.active {
		if ses.stay.running > 0 {
			running++
		}
	}
	share := m.peak / float64(max(running, 1))
	for _, ses := range s.active {
		left := float64(ses.remaining())
		other := ses.class != Interactive
		m.owed += left
		ends := math.Inf(1)
		if m.peak > 0 {
			ends = left / share
		}
		const settled = 20 * time.Second // a session's own rate means something after it
		held := now - ses.since
		if rate := float64(ses.stay.bytes) / held.Seconds(); held >= settled && rate > 0 && rate < share/2 {
			ends = left / rate
			m.slow = append(m.slow, slowSession{ends, rate, other})
		} else {
			m.finish = append(m.finish, left)
			m.finishOther = append(m.finishOther, other)
		}
		if ends <= EndingSoon.Seconds() {
			m.endingAll++
			if other {
				m.endingCommon++
			}
		}
	}
}

// walk follows the first sessions of the order until they start: running sessions share the rate equally (a slow one keeps its
// own), each that ends makes way for the next one that may take its slot.
func (m *model) walk(s *Scheduler) {
	if s.waiting.count == 0 || m.peak == 0 {
		return
	}
	for ses := range s.walkOrder {
		m.people[m.n], m.sizes[m.n] = ses.class == Interactive, float64(ses.remaining())
		m.starts[m.n] = math.Inf(1)
		if m.n++; m.n == walkLength {
			break
		}
	}
	slices.SortFunc(m.slow, func(a, b slowSession) int {
		if a.ends < b.ends {
			return -1
		}
		return 1
	})
	h := finishHeap{m.finish, m.finishOther}
	h.init()
	var (
		now, v, delivered, begun float64
		tails, tailCount         float64
		slots                    = s.slots()
		activeAll                = len(s.active)
		others                   = activeAll - s.byClass[active][Interactive]
		nextPeople, nextOther    int
		slow                     = m.slow
		slowRate                 float64
	)
	for _, one := range slow {
		slowRate += one.rate
	}
	skip := func(i int, people bool) int {
		for i < m.n && m.people[i] != people {
			i++
		}
		return i
	}
	nextPeople, nextOther = skip(0, true), skip(0, false)
	for nextPeople < m.n || nextOther < m.n {
		mayAny := activeAll < slots
		mayOther := mayAny && others < slots-s.policy.Reserve && nextOther < m.n
		if mayAny && (nextPeople < m.n || mayOther) {
			i, other := nextPeople, false
			if mayOther && nextOther < nextPeople {
				i, other = nextOther, true
			}
			m.starts[i] = now
			if tail := m.owed + begun - delivered; i >= m.n/2 {
				tails, tailCount = tails+tail, tailCount+1
			}
			begun += m.sizes[i]
			h.push(v+m.sizes[i], other)
			activeAll++
			if other {
				others++
				nextOther = skip(i+1, false)
			} else {
				nextPeople = skip(i+1, true)
			}
			continue
		}
		// The next end: of a shared session in (f - v) k / rate, or of a slow one.
		rate := max(m.peak-slowRate, m.peak/16)
		step := math.Inf(1)
		if k := len(h.finish); k > 0 {
			step = (h.finish[0] - v) * float64(k) / rate
		}
		if len(slow) > 0 && slow[0].ends-now <= step {
			step = max(slow[0].ends-now, 0)
			if k := len(h.finish); k > 0 {
				v += step * rate / float64(k)
				delivered += step * rate
			}
			delivered += step * slowRate
			slowRate -= slow[0].rate
			if slow[0].other {
				others--
			}
			slow = slow[1:]
		} else if math.IsInf(step, 1) {
			break
		} else {
			delivered += step * (rate + slowRate)
			v = h.finish[0]
			if h.pop() {
				others--
			}
		}
		now += step
		activeAll--
	}
	m.finish, m.finishOther = h.finish, h.other
	m.tail = 0
	if tailCount > 0 {
		m.tail = tails / tailCount
	}
}

// startOf returns in how many seconds from m.at the session with that many sessions and bytes ahead starts, +Inf when it cannot
// be told. Beyond the walk: when what is ahead was delivered, but for what others still have to come then.
func (m *model) startOf(ahead int, bytes int64) float64 {
	if m.peak == 0 {
		return math.Inf(1)
	}
	if ahead < m.n {
		return m.starts[ahead]
	}
	if m.n == 0 {
		return math.Inf(1)
	}
	last := m.starts[m.n-1]
	return max(last, (m.owed+float64(bytes)-m.tail)/m.peak)
}

// contact notes that the client of a waiting session is here and returns what it is told.
func (s *Scheduler) contact(now time.Duration, ses *session) Verdict {
	if ses.noShowAt == 0 {
		s.counts.Queued++
	}
	s.model.refresh(s, now, false)
	ahead, bytes := s.place(ses, false)
	v := Verdict{Outcome: Queued, Class: ses.class, Position: ahead + 1, Waited: now - ses.since, Arrival: ses.arrival}
	s.estimate(now, ses, ahead, bytes, &v)
	windowAll, windowCommon := s.windows()
	if ses.class != Interactive {
		windowAll = windowCommon
	}
	v.CheckIn = s.check(ses, v, ahead < windowAll)
	ses.noShowAt = now + v.CheckIn + v.CheckIn/2 + noShowMargin
	s.plan(ses)
	return v
}

// check is when a waiting client asks again: at the first contact soon (a crowd that comes at once is spread over a few
// seconds, as far as none of it starts before), then halfway to the start, spread per session over the last quarter before that.
func (s *Scheduler) check(ses *session, v Verdict, head bool) time.Duration {
	half, floor := v.StartsIn/2, checkFloor
	if !v.EstimateKnown {
		half = unknownCheck
	}
	if ses.noShowAt == 0 {
		crowd := min(max(half-firstCheck, 0), firstSpread)
		return firstCheck + time.Duration(mix(ses.number)%1024)*(crowd/1024)
	}
	if head {
		floor = headFloor
		if !v.EstimateKnown {
			half = checkFloor
		}
	}
	half = min(half, checkCeiling)
	spread := time.Duration(mix(ses.number)%1024) * (half / 4096)
	return max(half-spread, floor)
}

// longestPromise bounds what is told; beyond it the start is unknown.
const longestPromise = 365 * 24 * time.Hour

// estimate fills in the forecast for a session with that many sessions and bytes ahead, and keeps the promise for judgement.
func (s *Scheduler) estimate(now time.Duration, ses *session, ahead int, bytes int64, v *Verdict) {
	start := s.model.startOf(ahead, bytes) - (now - s.model.at).Seconds()
	if !(start < longestPromise.Seconds()) {
		return
	}
	start = max(start, 0)
	f := s.calibration.forecast(ses.class, start)
	v.EstimateKnown = true
	v.StartsIn, v.EarliestIn, v.LatestIn = seconds(f.p50), seconds(f.p10), seconds(f.p90)+TickEvery
	if ses.promised < 0 {
		ses.promised = float32((v.Waited + v.StartsIn).Seconds())
	}
	ses.sample.offer(now, ses.number, start, v)
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// limitCheck is the Retry-After of a request that a full queue refuses.
func (s *Scheduler) limitCheck(key Key) time.Duration {
	return limitCheckLow + time.Duration(mix(hashOf(key))%1024)*((limitCheckHigh-limitCheckLow)/1024)
}

// hashOf is a hash of a key that is the same in every process (FNV-1a).
func hashOf(key Key) uint64 {
	var h uint64 = 14695981039346656037
	for _, part := range [...]string{key.Principal, key.Object, key.Client} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h
}

// finishHeap is the shared sessions of the walk by their finish, the first at the top.
type finishHeap struct {
	finish []float64
	other  []bool
}

func (h *finishHeap) swap(i, j int) {
	h.finish[i], h.finish[j] = h.finish[j], h.finish[i]
	h.other[i], h.other[j] = h.other[j], h.other[i]
}

func (h *finishHeap) init() {
	for i := len(h.finish)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *finishHeap) push(finish float64, other bool) {
	h.finish, h.other = append(h.finish, finish), append(h.other, other)
	for i := len(h.finish) - 1; i > 0; {
		parent := (i - 1) / 2
		if h.finish[parent] <= h.finish[i] {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// pop takes the first out and reports whether it is below Interactive.
func (h *finishHeap) pop() (other bool) {
	other = h.other[0]
	last := len(h.finish) - 1
	h.swap(0, last)
	h.finish, h.other = h.finish[:last], h.other[:last]
	h.down(0)
	return other
}

func (h *finishHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.finish) {
			return
		}
		if child+1 < len(h.finish) && h.finish[child+1] < h.finish[child] {
			child++
		}
		if h.finish[i] <= h.finish[child] {
			return
		}
		h.swap(i, child)
		i = child
	}
}

package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// walkLength is how many sessions at the front of the order the forecast follows one by one.
const walkLength = 1024

// walkEvery is how old the forecast of a queue that is not small may become while no slot changes hands.
const walkEvery = 5 * time.Second

// smallQueue is up to how many waiting sessions the forecast is made anew for every contact after a change.
const smallQueue = 64

// model is the forecast of the next starts, made anew on ticks, and between them when slots changed.
type model struct {
	made                             bool
	at                               time.Duration
	activeSeen, slotsSeen, orderSeen uint64
	peak                             float64 // bytes per second, 0 = unknown
	endingAll, endingCommon          int     // sessions that end within EndingSoon
	measured                         time.Duration
	owedNow                          float64             // bytes that active sessions have to come
	owed                             float64             // bytes that active sessions had to come at `at`
	tail                             float64             // mean bytes that running sessions have to come whenever another one starts
	spread                           float64             // its standard deviation
	sharing, endingShared            int                 // sessions that take their share of the link, and those of them that end soon
	slowNow                          int                 // active sessions that their own clients hold back
	slowShare                        float64             // of the sessions, those that their own clients hold back
	slowRate                         float64             // bytes per second of such a one
	growth                           growth              // of bundles
	inflation                        float64             // of the bytes of those who wait, by what bundles grow
	lastFrom                         int                 // sessions ahead from which on elastic slots open for the last ones, 0 = they do not
	lastAt                           float64             // seconds from at when they do
	opens                            float64             // seconds from at when the first slot opens by itself
	n                                int                 // sessions followed
	starts                           [walkLength]float64 // seconds from at, +Inf when it cannot be told
	next                             [walkLength]walker
	known                            float64       // bytes per second while somebody waited who could start, see remember; 0 = none yet
	classes                          classForecast // in place of starts by position, while windows matter
	running                          []walker      // heap of the sessions that share the link, by finish; used up by the walk
	slow                             []walker      // the others, by end; used up by the walk
}

// walker is a session in the forecast.
type walker struct {
	other  bool    // below Interactive
	begun  bool    // got its slot
	bytes  float64 // to come
	finish float64 // of one that shares the link: bytes that each of them gets until it ends
	ends   float64 // of a slow one: seconds
	rate   float64 // of a slow one: bytes per second
	hold   float64 // of a bundle: seconds that it keeps its slot without a response

	class   Class
	outside bool // counted among those of the class that began outside its window
}

// A session's own rate means something after settled; below slowBelow of an even share its client is the brake.
const (
	settled    = 20 * time.Second
	slowBelow  = 0.5
	linkMemory = 10 * time.Minute // half of the link's rate is forgotten in it while only slow clients run
)

// refresh makes the forecast anew when it is stale: of a small queue after every change, of a bigger one when slots changed or it is
// walkEvery old; a forecast that ages is read on from its own time.
func (m *model) refresh(s *Scheduler, now time.Duration, tick bool) {
	age := now - m.at
	slots := m.slotsSeen != s.slotChanges
	changed := slots || m.activeSeen != s.activeChanges || m.orderSeen != s.orderChanges
	small := s.waiting.count <= smallQueue
	switch {
	case !m.made || small && changed || slots && age >= TickEvery/5:
	case tick:
		m.measure(s, now)
		if made := m.n > 0 || s.waiting.count == 0 || m.peak == 0; made && (small && age < TickEvery || !small && age < walkEvery) {
			return
		}
		m.walk(s, now)
		return
	default:
		return
	}
	m.measure(s, now)
	m.walk(s, now)
}

// measure splits the active sessions into those that share the link and those that cannot take their share, and counts those
// that end soon.
func (m *model) measure(s *Scheduler, now time.Duration) {
	peak, _ := s.rate.measured(now)
	if peak < m.peak && len(s.active) > 0 && m.sharing == 0 {
		// All that ran were slow clients: what they took says nothing about the link. What it gave before is forgotten slowly.
		peak = max(peak, m.peak*math.Exp2(-(now-m.measured).Seconds()/linkMemory.Seconds()))
	}
	m.remember(s, now, peak)
	m.peak, m.measured = max(peak, float64(s.policy.BandBytesPerSecond)), now
	if s.calendar.some && s.contenders(false) == 0 {
		m.peak = max(m.peak, m.known) // while all that waits waits for its window the link need not be full
	}
	m.running, m.slow, m.sharing, m.endingShared = m.running[:0], m.slow[:0], 0, 0
	m.endingAll, m.endingCommon, m.owedNow, m.slowNow = 0, 0, 0, 0
	running := 0
	for _, ses := range s.active {
		if ses.stay.running > 0 {
			running++
		}
	}
	share := m.peak / float64(max(running, 1))
	for _, ses := range s.active {
		if b := ses.bundle(); b != nil {
			b.look(now - ses.since)
		}
		left := m.growth.expected(ses)
		w := walker{other: ses.class != Interactive, begun: true, bytes: left, finish: left, hold: ses.holds(now).Seconds(), class: ses.class, outside: ses.stay.outside}
		m.owedNow += left
		ends := math.Inf(1)
		if m.peak > 0 {
			ends = left / share
		}
		if held := now - ses.since; held >= settled {
			rate := float64(ses.stay.bytes) / held.Seconds()
			slow := rate > 0 && rate < slowBelow*share
			m.weigh(ses.stay, slow, rate)
			if slow {
				ends = left / rate
				w.ends, w.rate = ends, rate
			}
		}
		if w.rate > 0 {
			m.slow = append(m.slow, w)
		} else {
			m.sharing++
			m.running = append(m.running, w)
		}
		ses.stay.ending = ends <= EndingSoon.Seconds()
		if ses.stay.ending {
			m.endingAll++
			if w.rate == 0 {
				m.endingShared++
			}
			if w.other {
				m.endingCommon++
			}
		}
	}
	m.slowNow = len(m.slow)
}

// done learns from a session that is complete: one that ended before its rate meant something was not held back. Without these all
// that would be seen of a queue of small files were its slow clients.
func (m *model) done(ses *session) { m.weigh(ses.stay, false, 0) }

// weigh learns, once from each session, how many are slow and how slow they are.
func (m *model) weigh(st *stay, slow bool, rate float64) {
	if st.weighed {
		return
	}
	const weight = 1.0 / 64
	st.weighed = true
	if !slow {
		m.slowShare -= m.slowShare * weight
		return
	}
	m.slowShare += (1 - m.slowShare) * weight
	if m.slowRate == 0 {
		m.slowRate = rate
	}
	m.slowRate += (rate - m.slowRate) / 16
}

// freed takes a session whose slot is free off those that end soon: a slot counts once.
func (m *model) freed(ses *session) {
	if !ses.stay.ending {
		return
	}
	ses.stay.ending = false
	m.endingAll--
	if ses.class != Interactive {
		m.endingCommon--
	}
}

// walk follows the first sessions of the order until they start: running sessions share the rate equally (a slow one keeps its
// own), each that ends makes way for the next one that may take its slot, the reserve respected. Of those to
// come as many are taken for slow as were.
func (m *model) walk(s *Scheduler, now time.Duration) {
	m.made, m.at, m.activeSeen, m.slotsSeen, m.orderSeen = true, now, s.activeChanges, s.slotChanges, s.orderChanges
	m.owed, m.n, m.lastFrom = m.owedNow, 0, 0
	if m.classes.on = s.windowsMatter(now); m.classes.on {
		m.walkByClass(s, now)
		return
	}
	length := walkLength
	if s.waiting.count > 2*walkLength {
		length = walkLength / 4
	}
	if s.waiting.count == 0 || m.peak == 0 {
		return
	}
	known, expected := 0.0, 0.0
	for ses := range s.walkOrder {
		m.next[m.n] = walker{other: ses.class != Interactive, bytes: m.growth.expected(ses), hold: ses.holds(now).Seconds()}
		known, expected = known+float64(ses.remaining()), expected+m.next[m.n].bytes
		m.starts[m.n] = math.Inf(1)
		if m.n++; m.n == length {
			break
		}
	}
	m.inflation = 1
	if known > 0 {
		m.inflation = expected / known
	}
	w := m.begin(s)
	for w.first < m.n && w.step() {
	}
	m.opens = m.starts[0]
	if ses := s.front(false); s.takesOver(s.now, ses) {
		m.starts[0] = min(m.starts[0], headFloor.Seconds())
	}
	m.tail, m.spread = 0, 0
	if w.tailCount > 0 {
		m.tail = w.tails / w.tailCount
		m.spread = math.Sqrt(max(w.tailSquares/w.tailCount-m.tail*m.tail, 0))
	}
	m.foresee(s)
}

// begin returns the state of a forecast in which the active sessions run and nothing has happened yet.
func (m *model) begin(s *Scheduler) walk {
	w := walk{model: m, policy: &s.policy, slots: s.slots(), active: len(s.active), outside: s.calendar.outside}
	w.most = max(w.slots, s.policy.SessionsElastic)
	for _, ses := range s.active {
		if ses.class != Interactive {
			w.others++
		}
	}
	slices.SortFunc(m.slow, func(a, b walker) int { return cmp.Compare(a.ends, b.ends) })
	for i := range m.slow {
		w.slowRate += m.slow[i].rate
	}
	heapify(m.running)
	return w
}

// walk is the state of one forecast.
type walk struct {
	*model
	policy                *Policy
	slots, most           int // in force, and with all elastic ones
	active, others        int
	first                 int     // of next that has not started
	now                   float64 // seconds
	v                     float64 // bytes that each session of running has got
	delivered, begunBytes float64
	slowRate              float64 // of all slow sessions together
	slowDebt              float64 // of a slow session to come
	tails, tailSquares    float64
	tailCount             float64
	outside               [Classes]int // active sessions that began outside their windows
}

// step lets one session start or one end; false when nothing happens any more.
func (w *walk) step() bool {
	if w.active < w.slots || w.active < w.most && len(w.running) == 0 {
		if i := w.candidate(); i >= 0 {
			w.start(i)
			return true
		}
	}
	return w.end(math.Inf(1))
}

// candidate returns the first session that may start now, -1 when none may. Shares do not matter here: the first one heads the queue.
func (w *walk) candidate() int {
	slots := w.slots
	if len(w.running) == 0 { // elastic slots open until one shares the link again
		slots = max(slots, min(w.active+1+w.policy.Reserve, w.most))
	}
	common := w.others < slots-w.policy.Reserve
	for i := w.first; i < w.n; i++ {
		if at := &w.next[i]; !at.begun && (common || !at.other) {
			return i
		}
	}
	return -1
}

func (w *walk) start(i int) {
	at := &w.next[i]
	at.begun = true
	w.starts[i] = w.now
	for w.first < w.n && w.next[w.first].begun {
		w.first++
	}
	if i >= w.n/2 {
		w.noteTail()
	}
	w.launch(*at)
}

// noteTail takes in what active sessions have to come when another one starts.
func (w *walk) noteTail() {
	tail := w.owed + w.begunBytes - w.delivered
	w.tails += tail
	w.tailSquares += tail * tail
	w.tailCount++
}

// launch lets a session run from now on.
func (w *walk) launch(at walker) {
	w.begunBytes += at.bytes
	w.active++
	if at.other {
		w.others++
	}
	if w.slowDebt += w.slowShare; w.slowDebt >= 1 {
		w.slowDebt--
		at.rate, at.ends = w.model.slowRate, w.now+at.bytes/w.model.slowRate
		w.slowRate += at.rate
		w.slows(at)
		return
	}
	at.finish = w.v + at.bytes
	w.running = append(w.running, at)
	siftUp(w.running)
}

// slows adds one to those that end at a time of their own.
func (w *walk) slows(at walker) {
	k, _ := slices.BinarySearchFunc(w.slow, at.ends, func(a walker, ends float64) int { return cmp.Compare(a.ends, ends) })
	w.slow = slices.Insert(w.slow, k, at)
}

// end lets the next session end: one that shares the link after (finish - v) k / rate, or a slow one. When that is not before until, time goes on to until
// and nobody ends. False when nothing would happen any more.
func (w *walk) end(until float64) bool {
	rate := max(w.peak-w.slowRate, w.peak/16)
	step, k := math.Inf(1), float64(len(w.running))
	if k > 0 && rate > 0 {
		step = (w.running[0].finish - w.v) * k / rate
	}
	slow := len(w.slow) > 0 && w.slow[0].ends-w.now <= step
	if slow {
		step = max(w.slow[0].ends-w.now, 0)
	}
	none := w.now+step >= until
	if none {
		step = until - w.now
	}
	if math.IsInf(step, 1) {
		return false
	}
	w.now += step
	w.delivered += step * w.slowRate
	if k > 0 {
		w.v += step * rate / k
		w.delivered += step * rate
	}
	if none {
		w.now = until
		return true
	}
	var gone walker
	if slow {
		gone = w.slow[0]
		w.slow = slices.Delete(w.slow, 0, 1)
		w.slowRate -= gone.rate
	} else {
		gone = w.running[0]
		last := len(w.running) - 1
		w.running[0] = w.running[last]
		w.running = w.running[:last]
		siftDown(w.running, 0)
	}
	if gone.hold > 0 { // it has all its bytes, and its slot is free a little later
		gone.rate, gone.ends, gone.hold = 0, w.now+gone.hold, 0
		w.slows(gone)
		return true
	}
	w.active--
	if gone.other {
		w.others--
	}
	if gone.outside {
		w.outside[gone.class]--
	}
	return true
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
	return max(last, (m.owed+float64(bytes)*m.inflation-m.tail)/m.peak)
}

// lastStart is when the session with that many ahead starts because the elastic slots open for the last ones, +Inf when they do not.
func (m *model) lastStart(ahead int) float64 {
	if m.lastFrom == 0 || m.peak == 0 || ahead < m.lastFrom {
		return math.Inf(1)
	}
	return m.lastAt + float64(ahead-m.lastFrom)*stretchEvery.Seconds()
}

//go:build gate

package house_test

import (
	"math"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// story is the log told without the core: a second, naive bookkeeping of its sessions.
type story struct {
	t         *testing.T
	strategy  queue.Strategy
	sessions  map[queue.Key]*told
	responses map[uint64]*told
	waiters   map[uint64]*told
	active    map[string]int // by principal
	byState   [2][queue.Classes]int

	most, mostCommon int
	starts           map[queue.Strategy]int
	present          map[queue.Strategy]*ratio // pairs of a start and a present session that comes before it or not, by the strategy's own order
	lane             ratio
	sizes            map[queue.Strategy]*ratio
	reasons          map[queue.Reason]int
	switches, faults int
}

// fault reports what a line shows; the first few, as one mistake is seen again and again.
func (s *story) fault(format string, values ...any) {
	s.t.Helper()
	const shown = 10
	if s.faults++; s.faults <= shown {
		s.t.Errorf(format, values...)
	}
}

type ratio struct{ right, all int }

// told is one session as the log tells it.
type told struct {
	key             queue.Key
	class           queue.Class
	size            int64
	arrival         time.Duration
	number, held    int
	waiting, active bool
	protocol        bool
	answers         []queue.Verdict // that its client saw
}

// tell takes one event over.
func (s *story) tell(e *replay.Event) {
	var about *told
	switch e.Op {
	case replay.OpPolicy:
		s.strategy, s.starts, s.reasons = e.Policy.Strategy, map[queue.Strategy]int{}, map[queue.Reason]int{}
		s.sizes = map[queue.Strategy]*ratio{queue.Ordered: {}, queue.SmallestFirst: {}}
		s.present = map[queue.Strategy]*ratio{queue.Ordered: {}, queue.SmallestFirst: {}}
	case replay.OpConfigure:
		s.strategy = e.Policy.Strategy
		s.switches++
	case replay.OpAsk, replay.OpHold:
		about = s.session(e)
		if e.Waiter != 0 {
			s.waiters[e.Waiter] = about
			about.held++
			s.wait(about, e.Verdict)
		} else {
			s.answer(about, e.Verdict, e.Response)
		}
	case replay.OpWithdraw, replay.OpDepart:
		about = s.waiters[e.Waiter]
		if e.OK {
			about.held--
			s.answer(about, e.Verdict, 0)
		}
	case replay.OpFinish, replay.OpAbandon:
		about = s.responses[e.Response]
	}
	s.end(e, about)
	for i := range e.Settled {
		one := s.waiters[e.Settled[i].Waiter]
		one.held--
		s.answer(one, e.Settled[i].Verdict, e.Settled[i].Response)
	}
	s.count(e)
}

func (s *story) session(e *replay.Event) *told {
	one := s.sessions[e.Ask.Key]
	if one == nil {
		one = &told{key: e.Ask.Key, number: len(s.sessions), protocol: e.Ask.Protocol}
		s.sessions[e.Ask.Key] = one
	}
	one.size = e.Ask.SizeBytes
	return one
}

// end takes the ended stays over; each belongs to the session that the event is about.
func (s *story) end(e *replay.Event, about *told) {
	for _, end := range e.Ended {
		s.reasons[end.Reason]++
		if about == nil || !about.active {
			s.fault("line %d: a stay ends as %s that belongs to no active session of the line", e.Line, end.Reason)
			continue
		}
		about.active = false
		s.byState[1][about.class]--
		s.active[about.key.Principal]--
		if end.Reason == queue.ReasonYielded {
			if !about.protocol {
				s.fault("line %d: a plain client's session yields", e.Line)
			}
			about.waiting = true
			about.arrival = e.Now
			s.byState[0][about.class]++
		}
	}
}

// wait notes a session that waits, at the arrival that its verdict says.
func (s *story) wait(one *told, v queue.Verdict) {
	if !one.active && !one.waiting {
		one.waiting = true
		s.byState[0][v.Class]++
	}
	if !v.Yielded {
		one.arrival = v.Arrival
	}
	one.class = v.Class
}

func (s *story) answer(one *told, v queue.Verdict, response uint64) {
	one.answers = append(one.answers, v)
	if v.Outcome != queue.Admitted {
		s.wait(one, v)
		return
	}
	s.responses[response] = one
	if !v.Started {
		return
	}
	one.class, one.arrival = v.Class, v.Arrival
	s.start(one)
	if one.waiting {
		one.waiting = false
		s.byState[0][one.class]--
	}
	one.active = true
	s.byState[1][one.class]++
	s.active[one.key.Principal]++
}

// start judges the order: who waits and should have come before.
func (s *story) start(x *told) {
	s.starts[s.strategy]++
	for _, y := range s.sessions {
		if y == x || !y.waiting || y.class != x.class {
			continue
		}
		same := y.key.Principal == x.key.Principal
		if y.size != x.size {
			s.sizes[s.strategy].count(x.size < y.size)
		}
		judged, before := same, y.arrival < x.arrival || y.arrival == x.arrival && y.number < x.number
		if s.strategy == queue.Ordered {
			if same {
				s.lane.count(!before)
			}
		} else { // a principal at its share is passed by others (Q6)
			judged, before = same || s.active[y.key.Principal] < fleetShare, aged(y) < aged(x)-time.Millisecond
		}
		if judged && y.held > 0 {
			s.present[s.strategy].count(!before)
		}
	}
}

func (r *ratio) count(right bool) {
	r.all++
	if right {
		r.right++
	}
}

// aged is the place of a session among those of its class under smallest-first, by the rule's own words: each term of aging waited counts as half
// the size.
func aged(one *told) time.Duration {
	return one.arrival + time.Duration(float64(fleetAging)*math.Log2(float64(one.size)))
}

// count checks the slots after each event, and after a tick the whole bookkeeping.
func (s *story) count(e *replay.Event) {
	total := 0
	for _, n := range s.byState[1] {
		total += n
	}
	common := total - s.byState[1][queue.Interactive]
	s.most, s.mostCommon = max(s.most, total), max(s.mostCommon, common)
	if total > fleetSlots || common > fleetSlots-fleetReserve {
		s.fault("line %d: %d active, %d of them outside interactive", e.Line, total, common)
	}
	if e.Op == replay.OpTick && (e.State.Active != s.byState[1] || e.State.Waiting != s.byState[0] || e.State.Slots != fleetSlots) {
		s.fault("line %d: the log's state is %+v, told event by event it is %v active, %v waiting", e.Line, e.State, s.byState[1], s.byState[0])
	}
}

// judge checks what the whole story must have.
func (s *story) judge() {
	s.t.Helper()
	after, before := s.sizes[queue.SmallestFirst], s.sizes[queue.Ordered]
	share := func(r *ratio) float64 { return float64(r.right) / float64(max(r.all, 1)) }
	switch {
	case len(s.sessions) != fleetClients || s.reasons[queue.ReasonCompleted] != fleetClients:
		s.t.Errorf("%d sessions, ended %v, want %d completed", len(s.sessions), s.reasons, fleetClients)
	case s.reasons[queue.ReasonYielded] == 0:
		s.t.Error("nobody yielded its slot")
	case s.reasons[queue.ReasonCompleted]+s.reasons[queue.ReasonYielded] != s.starts[queue.Ordered]+s.starts[queue.SmallestFirst]:
		s.t.Errorf("ended %v, started %v", s.reasons, s.starts)
	case s.switches != 1 || s.starts[queue.Ordered] < fleetSwitch || s.starts[queue.SmallestFirst] < 20:
		s.t.Errorf("%d switches; starts %v", s.switches, s.starts)
	case s.most != fleetSlots || s.mostCommon != fleetSlots-fleetReserve:
		s.t.Errorf("at most %d active, %d outside interactive: the slots were not all in use", s.most, s.mostCommon)
	}
	for strategy, pairs := range s.present {
		if pairs.right < pairs.all || pairs.all < 5 {
			s.t.Errorf("%s: of %d pairs of a start and a present session %d are in order", strategy, pairs.all, pairs.right)
		}
	}
	// Clients that are not there may be passed (Q7), so that not all pairs are in order. By chance half of them would be.
	if share(&s.lane) < 0.7 || share(after) < 0.65 || share(after) < share(before)+0.15 {
		s.t.Errorf("in order: lanes %+v under ordered; sizes %+v after the switch, %+v before it", s.lane, *after, *before)
	}
}

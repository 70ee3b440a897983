package queue

import (
	"fmt"
	"slices"
	"time"
)

// watch checks what must hold of any history, without a model of the queue: only what the exported API shows before and
// after a step.
type watch struct {
	rules     Policy
	longest   uint64          // longest stride of a class so far
	strides   [Classes]uint64 // longest stride of each class so far
	idle      int             // ticks in a row without a start: an upper bound of the unclaimed ones
	waits     map[uint64]*wait
	elastic   time.Duration // when a slot opened last
	opened    bool
	starts    uint64          // before the last tick
	reclassed [Classes]uint64 // Moves.Reclassed after the last step
	ends      int             // records of ended stays
	lost      int             // of those that had a slot
}

// wait is one wait of a session as the order showed it, to bound who overtakes it.
type wait struct {
	since    time.Duration
	lifted   Class
	strategy Strategy
	index    int            // most sessions of its own principal that stood before it in its class
	rejoined uint64         // Counts.Rejoined when it began
	overtook map[string]int // slots that principals got with sessions that came after it and stood before it
}

// look is one step: the order and the snapshot on both sides of it.
type look struct {
	kind          eventKind
	before, after []Placed
	old, new      Snapshot
	started       []Key
	ended         []oEnd
	moves         Moves
	activeOf      func(principal string) int
	now           time.Duration
}

func (w *watch) policy(p Policy) {
	w.rules = p
	for c, weight := range p.Weights {
		w.strides[c] = max(w.strides[c], 1<<30/uint64(weight))
		w.longest = max(w.longest, w.strides[c])
	}
}

func (w *watch) look(l look) error {
	for _, check := range [...]func(look) error{w.slots, w.elasticSlots, w.share, w.sums, w.fifo, w.classes, w.overtaking, w.windowRules} {
		if err := check(l); err != nil {
			return err
		}
	}
	w.reclassed = l.moves.Reclassed
	if l.kind == evTick {
		w.idle++
		if l.old.Counts.Started > w.starts {
			w.idle = 0
		}
		w.starts = l.old.Counts.Started
	}
	return nil
}

func others(s Snapshot) int { return s.ActiveTotal() - s.Active[Interactive] }

// slots: active <= slots in force and active outside Interactive <= slots less the reserve, unless they were lowered
// below what was active; then nobody starts.
func (w *watch) slots(l look) error {
	if l.new.Policy.Mode == ModeDryRun {
		return nil
	}
	if n := l.new.ActiveTotal(); n > max(l.new.Slots, l.old.ActiveTotal()) {
		return fmt.Errorf("slots: %d active with %d slots, %d before", n, l.new.Slots, l.old.ActiveTotal())
	}
	if n, most := others(l.new), l.new.Slots-w.rules.Reserve; n > max(most, others(l.old)) {
		return fmt.Errorf("reserve: %d active outside interactive, %d slots are theirs", n, most)
	}
	return nil
}

// elasticSlots: between Sessions and SessionsElastic; one that can be used opens at most each second, for somebody who waits, and
// one closes a tick while somebody does.
func (w *watch) elasticSlots(l look) error {
	p := w.rules
	if l.new.Slots < p.Sessions || l.new.Slots > max(p.Sessions, p.SessionsElastic) {
		return fmt.Errorf("elastic: %d slots in force of %d..%d", l.new.Slots, p.Sessions, p.SessionsElastic)
	}
	if l.old.Policy != l.new.Policy {
		return nil
	}
	switch change := l.new.Slots - l.old.Slots; {
	case change == 0:
	case l.kind != evTick || change < -1 && slices.ContainsFunc(l.after, func(p Placed) bool { return l.new.Windows[p.Class].Share == WholeShare }) || change > 1 && l.new.Slots > l.old.ActiveTotal()+1:
		return fmt.Errorf("elastic: slots moved by %d in a %s", change, eventNames[l.kind])
	case change > 0 && w.opened && l.now-w.elastic < time.Second:
		return fmt.Errorf("elastic: a slot opened %v after the last one", l.now-w.elastic)
	case change > 0 && len(l.before) == 0:
		return fmt.Errorf("elastic: a slot opened for nobody")
	case change > 0:
		w.elastic, w.opened = l.now, true
	}
	return nil
}

// share: nobody starts beyond PerPrincipal while another one's session heads the queue, before 20 unclaimed ticks. It is
// judged where the step shows it without a model: one start, of a session that waited behind the same head.
func (w *watch) share(l look) error {
	if len(l.before) == 0 || len(l.after) == 0 || len(l.started) != 1 || l.new.Policy.Mode == ModeDryRun || w.idle >= 19 || l.kind == evConfigure {
		return nil
	}
	key, head := l.started[0], l.after[0]
	i := slices.IndexFunc(l.before, func(p Placed) bool { return p.Key == key })
	if i < 1 || l.before[0].Key != head.Key || w.rules.Strategy != Ordered || l.kind == evTick && w.rules.AgingEvery > 0 {
		return nil
	}
	class := l.before[i].Class
	if l.moves.Reclassed != w.reclassed || head.Key.Principal == key.Principal {
		return nil // its request changed its class or size, or it follows its own
	}
	othersBefore := others(l.new)
	if l.new.Windows[class].Share < WholeShare || l.new.Windows[head.Class].Share < WholeShare {
		return nil // the head may not start, or more are passed over
	}
	if class != Interactive {
		othersBefore--
	}
	common := min(l.new.Slots-l.new.ActiveTotal()+1, l.new.Slots-w.rules.Reserve-othersBefore)
	if common <= 0 && head.Class != Interactive {
		return nil // the head could not use the slot
	}
	if n := l.activeOf(key.Principal); n > w.rules.PerPrincipal {
		return fmt.Errorf("share: principal %s has %d sessions of %d while %v heads the queue", key.Principal, n, w.rules.PerPrincipal, head.Key)
	}
	return nil
}

// sums: counters agree with each other and with the order.
func (w *watch) sums(l look) error {
	w.ends += len(l.ended)
	var waiting, lifted [Classes]int
	held := 0
	for _, p := range l.after {
		waiting[p.Class]++
		lifted[p.Lifted]++
		held += p.Held
	}
	ends := 0
	for _, e := range l.ended {
		if e.Started {
			w.lost++
		}
	}
	for _, n := range l.new.Counts.Ended {
		ends += int(n)
	}
	for c, n := range l.new.Stopped {
		waiting[c] += n
	}
	switch {
	case waiting != l.new.Waiting:
		return fmt.Errorf("sums: the order has %v sessions, counters say %v", waiting, l.new.Waiting)
	case held > l.new.Held:
		return fmt.Errorf("sums: %d requests are held in the order, %d in all", held, l.new.Held)
	case ends != w.ends:
		return fmt.Errorf("sums: %d ends are counted, %d were reported", ends, w.ends)
	case moved(l.moves) != len(l.after):
		return fmt.Errorf("sums: by the moves %d wait, %d do", moved(l.moves), len(l.after))
	case int(l.new.Counts.Started)-w.lost != l.new.ActiveTotal():
		return fmt.Errorf("sums: %d started and %d of them ended, but %d are active", l.new.Counts.Started, w.lost, l.new.ActiveTotal())
	}
	return nil
}

// moved is how many sessions wait by the counters of what changed the order.
func moved(m Moves) int {
	var n uint64
	for c := range m.Arrived {
		n += m.Arrived[c] + m.Returned[c] + m.Yielded[c] - m.Left[c] - m.Granted[c]
	}
	return int(n)
}

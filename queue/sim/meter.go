package sim

import (
	"time"

	"github.com/arkvory/sidecar/queue"
)

// settled is how long after the first moment idle slots are counted.
const settled = 5 * time.Second

// meter integrates what a fleet makes of its link and slots.
type meter struct {
	slots, idle, extra int // since the last event: slots in force, those free while somebody could use them, elastic ones
	anybody            bool

	waitSeconds, waitBytes   float64 // time in which anybody waits, bytes carried in it
	slotSeconds, idleSeconds float64
	extraSeconds             float64
	mostSlots                int
	delivered, repeated      int64 // bytes
	refused                  uint64
}

func (m *meter) advance(r *run, to time.Duration) {
	if to <= r.now {
		return
	}
	seconds := (to - r.now).Seconds()
	m.extraSeconds += float64(m.extra) * seconds
	if !m.anybody {
		return
	}
	m.waitSeconds += seconds
	m.waitBytes += r.link.total * seconds
	if r.now >= settled {
		m.slotSeconds += float64(m.slots) * seconds
		m.idleSeconds += float64(m.idle) * seconds
	}
}

// watch notes the state that holds until the next event.
func (m *meter) watch(r *run) {
	people := r.waiting[queue.Interactive]
	others := 0
	for _, n := range r.waiting[1:] {
		others += n
	}
	m.anybody = people+others > 0
	if r.strategy == queue.Shared {
		snap := r.gate.Snapshot()
		m.slots = snap.Capacity
		m.idle = min(max(snap.Capacity-snap.Active, 0), people+others)
		m.mostSlots = m.slots
		return
	}
	snap := r.core.Snapshot(r.now)
	m.slots = max(snap.Slots, snap.Policy.Sessions)
	m.extra = m.slots - snap.Policy.Sessions
	m.mostSlots = max(m.mostSlots, m.slots)
	active := snap.ActiveTotal()
	free := max(m.slots-active, 0)
	common := min(free, max(m.slots-snap.Policy.Reserve-(active-snap.Active[queue.Interactive]), 0))
	used := min(free, people)
	m.idle = used + min(common, free-used, others)
}

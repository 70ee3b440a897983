package sim

import (
	"fmt"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// meter integrates what a fleet makes of its link and slots.
type meter struct {
	slots, idle, extra int // since the last event: slots in force, those free while somebody could use them, elastic ones
	anybody            bool

	waitSeconds, waitBytes   float64 // time in which anybody waits, bytes carried in it
	slotSeconds, idleSeconds float64
	extraSeconds             float64
	mostSlots                int
	delivered, repeated      int64   // bytes of responses, counted at their ends
	carried                  float64 // bytes, the rate of the link integrated over time
	responses                float64
	refused                  uint64
}

func (m *meter) advance(r *run, to time.Duration) {
	if to <= r.now {
		return
	}
	seconds := (to - r.now).Seconds()
	m.carried += r.link.total * seconds
	m.extraSeconds += float64(m.extra) * seconds
	if !m.anybody {
		return
	}
	m.waitSeconds += seconds
	m.waitBytes += r.link.total * seconds
	m.slotSeconds += float64(m.slots) * seconds
	m.idleSeconds += float64(m.idle) * seconds
}

// balance proves that the bytes of all responses are those that the link carried. A response may be off by a byte, and by what the
// link carries in the nanosecond to which its end is rounded up.
func (m *meter) balance(r *run) error {
	off := m.carried - float64(m.delivered)
	if slack := m.responses*(1+r.link.capacity*1e-9) + 1e-9*m.carried; off > slack || off < -slack {
		return fmt.Errorf("cannot simulate %s: the link carried %.0f bytes, but all responses together got %d", r.strategy, m.carried, m.delivered)
	}
	return nil
}

// watch notes the state that holds until the next event.
func (m *meter) watch(r *run) {
	snap := r.core.Snapshot(r.now)
	people := usable(&snap, queue.Interactive, r.waiting[queue.Interactive])
	others := 0
	for c, n := range r.waiting[1:] {
		others += usable(&snap, queue.Class(c+1), n)
	}
	if r.windowed(&snap) {
		r.lastByte = r.now
	}
	m.anybody = people+others+r.singly > 0
	if r.strategy == queue.Shared {
		snap := r.gate.Snapshot()
		m.slots = snap.Capacity
		m.idle = min(max(snap.Capacity-snap.Active, 0), r.singly)
		m.mostSlots = m.slots
		return
	}
	m.slots = max(snap.Slots, snap.Policy.Sessions)
	m.extra = m.slots - snap.Policy.Sessions
	m.mostSlots = max(m.mostSlots, m.slots)
	active := snap.ActiveTotal()
	free := max(m.slots-active, 0)
	common := min(free, max(m.slots-snap.Policy.Reserve-(active-snap.Active[queue.Interactive]), 0))
	used := min(free, people)
	m.idle = used + min(common, free-used, others)
}

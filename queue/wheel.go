package queue

import (
	"cmp"
	"slices"
	"time"
)

// wheelSlots times TickEvery is how far ahead a wheel tells times apart (17 minutes); what is later waits in its last slot and
// is put again.
const wheelSlots = 2048

const never = time.Duration(1<<63 - 1)

// dueWheel orders sessions by the time something must happen to them without a contact: no-show, aging, end of the pause memory (a
// hashed timing wheel, Varghese and Lauck 1987). A session stands in a slot that is not later than its due time; a later
// time moves nothing, the session is put again when its slot comes. So a contact costs O(1) and no memory of others is touched.
type dueWheel struct {
	slots  [wheelSlots]*session
	cursor int64 // number of the first slot that was not emptied
	count  int
	ripe   []ripe // scratch of expire
}

// ripe is a session whose time has come.
type ripe struct {
	due time.Duration
	s   *session
}

// set makes sure that the wheel comes by s at that time. An empty wheel goes to now at once: behind it are only slots without
// anybody, a lifetime of them when the clock counts from a moment long ago.
func (w *dueWheel) set(now time.Duration, s *session, at time.Duration) {
	if w.count == 0 {
		w.cursor = max(w.cursor, int64(now/TickEvery))
	}
	slot := w.slotOf(at)
	if s.wheelSlot != 0 {
		if int64(s.wheelSlot)-1 <= slot {
			return
		}
		w.remove(s)
	}
	w.push(s, slot)
}

func (w *dueWheel) slotOf(at time.Duration) int64 {
	return min(max(int64(at/TickEvery), w.cursor), w.cursor+wheelSlots-1)
}

func (w *dueWheel) push(s *session, slot int64) {
	s.wheelSlot = uint32(slot + 1)
	head := &w.slots[slot%wheelSlots]
	s.wheelPrev, s.wheelNext = nil, *head
	if *head != nil {
		(*head).wheelPrev = s
	}
	*head = s
	w.count++
}

// remove takes s out; a session that is in no slot is left alone.
func (w *dueWheel) remove(s *session) {
	if s.wheelSlot == 0 {
		return
	}
	if s.wheelPrev != nil {
		s.wheelPrev.wheelNext = s.wheelNext
	} else {
		w.slots[int64(s.wheelSlot-1)%wheelSlots] = s.wheelNext
	}
	if s.wheelNext != nil {
		s.wheelNext.wheelPrev = s.wheelPrev
	}
	s.wheelPrev, s.wheelNext, s.wheelSlot = nil, nil, 0
	w.count--
}

// ripeCost is what a session that is due costs of the budget; one that is only put again costs 1. In a full queue whose clients
// come every five minutes the latter are many: were they as dear, the wheel would fall minutes behind.
const ripeCost = 4

// expire hands every session that is due to handle, taken out, in the order of their times, no more than budget of them; what is
// left comes with the next call. handle may set times and drop the session it got, nothing else.
func (w *dueWheel) expire(now time.Duration, budget int, dueOf func(*session) time.Duration, handle func(*session)) {
	w.ripe = w.ripe[:0]
	w.collect(now, budget*ripeCost, dueOf)
	slices.SortFunc(w.ripe, func(a, b ripe) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.s.number, b.s.number))
	})
	for i := range w.ripe {
		handle(w.ripe[i].s)
		w.ripe[i].s = nil
	}
}

func (w *dueWheel) collect(now time.Duration, budget int, dueOf func(*session) time.Duration) {
	last := int64(now / TickEvery)
	for ; w.count > 0 && w.cursor <= last; w.cursor++ {
		for s := w.slots[w.cursor%wheelSlots]; s != nil; {
			following := s.wheelNext
			due := dueOf(s)
			slot := w.slotOf(due)
			if due <= now || slot > w.cursor { // else it is due later in this very slot
				cost := 1
				if due <= now {
					cost = ripeCost
				}
				if budget -= cost; budget < 0 {
					return
				}
				w.remove(s)
				switch {
				case due <= now:
					w.ripe = append(w.ripe, ripe{due, s})
				case due != never:
					w.push(s, slot)
				}
			}
			s = following
		}
		if w.cursor == last {
			return
		}
	}
	w.cursor = max(w.cursor, last)
}

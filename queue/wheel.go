package queue

import "time"

// wheelSlots times TickEvery is how far ahead a wheel tells times apart (17 minutes); what is later waits in its last slot and
// is put again.
const wheelSlots = 2048

const never = time.Duration(1<<63 - 1)

// dueWheel orders sessions by the time something must happen to them without a contact: no-show, aging, idle pause, end of the
// pause memory (a hashed timing wheel, Varghese and Lauck 1987). A session stands in a slot that is not later than its due
// time; setting a later time moves nothing, the session is put again when its slot comes. So a contact costs O(1) and no
// memory of others is touched.
type dueWheel struct {
	slots  [wheelSlots]*session
	cursor int64 // number of the first slot that was not emptied
	count  int
}

// set makes s due at that time.
func (w *dueWheel) set(s *session, at time.Duration) {
	s.due = at
	slot := max(int64(at/TickEvery), w.cursor)
	slot = min(slot, w.cursor+wheelSlots-1)
	if s.wheelSlot != 0 {
		if s.wheelSlot-1 <= slot {
			return
		}
		w.remove(s)
	}
	w.push(s, slot)
}

// clear makes s never due. It may stay in its slot until that comes.
func (w *dueWheel) clear(s *session) { s.due = never }

func (w *dueWheel) push(s *session, slot int64) {
	s.wheelSlot = slot + 1
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
		w.slots[(s.wheelSlot-1)%wheelSlots] = s.wheelNext
	}
	if s.wheelNext != nil {
		s.wheelNext.wheelPrev = s.wheelPrev
	}
	s.wheelPrev, s.wheelNext, s.wheelSlot = nil, nil, 0
	w.count--
}

// expire hands every session that is due to handle, taken out, looking at no more than budget sessions; what is left comes with
// the next call. handle may set times and drop the session it got, nothing else.
func (w *dueWheel) expire(now time.Duration, budget int, handle func(*session)) {
	last := int64(now / TickEvery)
	for ; w.count > 0 && w.cursor <= last; w.cursor++ {
		for s := w.slots[w.cursor%wheelSlots]; s != nil; {
			following := s.wheelNext
			slot := min(int64(s.due/TickEvery), w.cursor+wheelSlots-1)
			if s.due <= now || slot > w.cursor { // else it is due later in this very slot
				if budget--; budget < 0 {
					return
				}
				w.remove(s)
				switch {
				case s.due <= now:
					handle(s)
				case s.due != never:
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

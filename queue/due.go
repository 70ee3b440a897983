package queue

import "time"

// dueHeap orders sessions by the time something must happen to them without a contact: no-show, aging, idle pause, end
// of the pause memory. Every session has at most one entry, moved when its time changes.
type dueHeap []*session

// set moves s to that time, adding it when it has no entry.
func (h *dueHeap) set(s *session, at time.Duration) {
	s.due = at
	if s.dueIndex < 0 {
		s.dueIndex = len(*h)
		*h = append(*h, s)
	}
	h.down(h.up(s.dueIndex))
}

// clear takes s out; a session without an entry is left alone.
func (h *dueHeap) clear(s *session) {
	i := s.dueIndex
	if i < 0 {
		return
	}
	last := len(*h) - 1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	s.dueIndex = -1
	if i < last {
		h.down(h.up(i))
	}
}

// first returns the session that is due next, nil when there is none.
func (h dueHeap) first() *session {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

func (h dueHeap) less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].number < h[j].number
}

func (h dueHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].dueIndex, h[j].dueIndex = i, j
}

func (h dueHeap) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h dueHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

package memory

import "github.com/arkvory/sidecar/queue"

// HasSlot reports whether the session of a key holds a slot, and changes nothing. The answer may be outdated when it arrives.
func (q *Queue) HasSlot(key queue.Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.HasSlot(key)
}

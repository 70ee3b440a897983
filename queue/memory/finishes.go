package memory

import "github.com/arkvory/sidecar/queue"

// Finishes reports whether a request goes on with what its session holds a slot for, and changes nothing: see queue.Scheduler.Finishes. What was sent within the last tick
// is not counted yet; the answer may be outdated when it arrives.
func (q *Queue) Finishes(a queue.Ask) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Finishes(&a)
}

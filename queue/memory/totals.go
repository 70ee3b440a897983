package memory

import "github.com/arkvory/sidecar/queue"

// totals are what grows over all cores that the queue had.
type totals struct {
	counts   queue.Counts
	promises queue.Promises
}

func totalsOf(s queue.Snapshot) totals { return totals{s.Counts, s.Promises} }

// plus adds two sets of totals.
func (t totals) plus(o totals) totals {
	t.counts.Queued += o.counts.Queued
	t.counts.Rejoined += o.counts.Rejoined
	t.counts.Started += o.counts.Started
	t.counts.Refused += o.counts.Refused
	for i := range t.counts.Ended {
		t.counts.Ended[i] += o.counts.Ended[i]
	}
	for i, n := range operated(&o.counts) {
		*operated(&t.counts)[i] += *n
	}
	t.counts.WouldWaitFor += o.counts.WouldWaitFor
	t.promises.Judged += o.promises.Judged
	t.promises.Within += o.promises.Within
	t.promises.Held += o.promises.Held
	return t
}

// minus takes one set of totals from another; what plus gives with the result is exact although it may wrap.
func (t totals) minus(o totals) totals {
	t.counts.Queued -= o.counts.Queued
	t.counts.Rejoined -= o.counts.Rejoined
	t.counts.Started -= o.counts.Started
	t.counts.Refused -= o.counts.Refused
	for i := range t.counts.Ended {
		t.counts.Ended[i] -= o.counts.Ended[i]
	}
	for i, n := range operated(&o.counts) {
		*operated(&t.counts)[i] -= *n
	}
	t.counts.WouldWaitFor -= o.counts.WouldWaitFor
	t.promises.Judged -= o.promises.Judged
	t.promises.Within -= o.promises.Within
	t.promises.Held -= o.promises.Held
	return t
}

// operated are the counts of actions and modes.
func operated(c *queue.Counts) [6]*uint64 {
	return [...]*uint64{&c.Moved, &c.Paused, &c.Resumed, &c.Kicked, &c.RejectedNew, &c.WouldWait}
}

package client

import (
	"context"
	"fmt"
	"time"
)

// Backoff after faults: full jitter below a bound that doubles.
const (
	firstBackoff   = 250 * time.Millisecond
	longestBackoff = 30 * time.Second
	placeBackoff   = 2 * time.Second // while a place is held: a restarted server seats those that come at once
	leastJitter    = 100 * time.Millisecond
	smallJitter    = 500 * time.Millisecond
)

// launch starts the requests that may run now, or sees to it that the loop wakes when one may.
func (op *operation) launch(ctx context.Context) error {
	now := op.Clock.Now()
	if !op.begun && op.past(now) {
		return fmt.Errorf("%w: %s has passed", ErrQueueDeadline, stamp(op.NotAfter))
	}
	if !op.open {
		for j := range op.running {
			if j.epoch == op.epoch {
				return nil
			}
		}
		if rest := op.rest(now); rest > 0 {
			op.sleep(ctx, rest)
			return nil
		}
		if len(op.running) == 0 && !op.queued {
			op.emit(Event{Kind: Connecting})
		}
	}
	for {
		j := op.next()
		if j == nil {
			return nil
		}
		op.start(ctx, j)
		if !op.open {
			return nil
		}
	}
}

// past reports whether the wall clock is past NotAfter.
func (op *operation) past(now time.Time) bool {
	return !op.NotAfter.IsZero() && now.Round(0).After(op.NotAfter)
}

// rest is how long nobody may ask yet. A wall clock far past the moment ends the wait: a machine that slept kept its
// monotonic clock, and the server's patience, still.
func (op *operation) rest(now time.Time) time.Duration {
	if op.until.Round(0).Sub(now.Round(0)) <= -suspendedSlip {
		return 0
	}
	return op.until.Sub(now)
}

// sleep wakes the loop after a while; a longer wait is looked at again every maxSleep.
func (op *operation) sleep(ctx context.Context, d time.Duration) {
	if op.sleeping {
		return
	}
	op.sleeping = true
	op.workers.Go(func() { op.woke <- op.Clock.Sleep(ctx, min(d, maxSleep)) })
}

// next is the next request to make, nil when there is nothing to ask for at the moment.
func (op *operation) next() *job {
	if op.rep == nil {
		switch {
		case len(op.running) > 0:
			return nil
		case op.plain:
			return &job{mode: whole, to: -1, sums: op.sums}
		}
		return &job{mode: discover, to: op.RangeBytes, sums: op.sums}
	}
	if !op.rep.ranged || len(op.running) >= op.lanes {
		return nil
	}
	taken := op.done
	for j := range op.running {
		taken = taken.add(span{j.from, j.to})
	}
	gap, any := taken.gap(op.rep.size)
	if !any {
		return nil
	}
	j := &job{mode: piece, from: gap.from, to: min(gap.to, (gap.from/op.RangeBytes+1)*op.RangeBytes), rep: *op.rep}
	// A range that names the object's last byte looks like a look at its tail, which does not say where a download
	// starts. The last piece therefore asks "from on": the server then knows that it completes the download.
	j.open = j.to == op.rep.size && len(op.running) == 0 && op.done.sum()+j.to-j.from == op.rep.size
	if op.sums != nil && op.Parallel == 1 && len(op.running) == 0 && op.sums.at == j.from {
		j.sums = op.sums
	} else {
		op.sums = nil
	}
	return j
}

// start runs a job.
func (op *operation) start(ctx context.Context, j *job) {
	ctx, j.cancel = context.WithCancel(ctx)
	j.epoch, j.ticket = op.epoch, op.ticket
	op.running[j] = struct{}{}
	op.workers.Go(func() {
		defer j.cancel()
		op.fetcher.run(ctx, j)
	})
}

// take acts on one report of a job.
func (op *operation) take(out outcome) error {
	op.hear(out)
	if out.verdict == started {
		op.admit(out)
		return nil
	}
	if out.verdict == finished && op.rep.size < 0 {
		op.rep.size = out.job.got.Load()
	}
	op.bury(out.job)
	switch out.verdict {
	case queued:
		return op.line(out)
	case faulty:
		if op.crowded(out) {
			return nil
		}
		return op.fault(out)
	case changed:
		return op.restart(out)
	case rangeless:
		op.plain = true
	case fatal:
		return out.err
	}
	return nil
}

// admit notes a good answer: the gate opens, unless a setback came after the question.
func (op *operation) admit(out outcome) {
	out.job.started = true
	if op.rep == nil {
		rep := out.rep
		op.rep = &rep
		op.saver.dirty = true
	}
	if out.job.epoch != op.epoch {
		return
	}
	if op.open { // one more range; the beat tells of it
		return
	}
	now := op.Clock.Now()
	op.open, op.begun, op.outage, op.lanes = true, true, 0, op.Parallel
	if op.queued {
		op.queued, op.waited = false, op.waited+now.Sub(op.since)
	}
	op.meter.restart(now, op.bytes())
	op.emit(Event{Kind: Downloading})
}

// line takes a place in the queue: the server said when to come back.
func (op *operation) line(out outcome) error {
	now := op.Clock.Now()
	told := unstatedWait
	if out.facts.told {
		told = max(out.facts.wait, shortestWait)
	}
	if !op.queued {
		op.queued, op.since = true, now
	}
	op.outage, op.streak = 0, 0
	jitter := leastJitter + time.Duration(op.random()*float64(max(told/10, smallJitter)-leastJitter))
	until, err := op.postpone(now, told, jitter, out.facts.startsAt)
	if err != nil {
		return err
	}
	if out.job.epoch != op.epoch { // asked before the answer that shut the gate
		if until.After(op.until) {
			op.until = until
		}
		return nil
	}
	op.shut(until)
	op.emit(Event{Kind: Queued, Position: out.facts.position, StartsAt: out.facts.startsAt, Earliest: out.facts.earliest,
		Latest: out.facts.latest, Wait: until.Sub(now), NextTry: until.Round(0),
		Message: op.requester.scrub.clean(out.facts.message, op.ticket.ticket)})
	return nil
}

// shut lets nobody ask before a time, and then only one.
func (op *operation) shut(until time.Time) {
	op.epoch++
	op.open, op.until = false, until
}

// postpone returns when to ask next: told from now and up to extra later, or the error of a bound that lies before.
func (op *operation) postpone(now time.Time, told, extra time.Duration, startsAt time.Time) (time.Time, error) {
	wait := told + extra
	if op.WaitLimit > 0 && op.queued {
		left := op.WaitLimit - op.waited - now.Sub(op.since)
		if told > left {
			return time.Time{}, fmt.Errorf("%w: %v; the server may be asked again in %v", ErrWaitLimit, op.WaitLimit, told.Round(time.Second))
		}
		wait = min(wait, left)
	}
	if op.NotAfter.IsZero() || op.begun {
		return now.Add(wait), nil
	}
	if startsAt.After(op.NotAfter) {
		return time.Time{}, fmt.Errorf("%w: it would start about %s, after %s", ErrQueueDeadline, stamp(startsAt), stamp(op.NotAfter))
	}
	left := op.NotAfter.Sub(now.Round(0))
	if told > left {
		return time.Time{}, fmt.Errorf("%w: the server may be asked again in %v, after %s", ErrQueueDeadline, told.Round(time.Second), stamp(op.NotAfter))
	}
	return now.Add(min(wait, left)), nil
}

// fault counts something that broke and waits before the next try. Faults of requests sent before the last setback are
// parts of it and change nothing.
func (op *operation) fault(out outcome) error {
	if out.job.epoch != op.epoch {
		return nil
	}
	now := op.Clock.Now()
	if bytes := op.received + op.inFlight(); bytes > op.progressAt {
		op.progressAt, op.streak, op.outage = bytes, 0, 0
	}
	delay, err := op.backoff(now, out.err)
	if err != nil {
		return err
	}
	if op.rep != nil && !op.rep.ranged {
		if err := op.rewind(); err != nil {
			return err
		}
	}
	until, err := op.postpone(now, delay, 0, time.Time{})
	if err != nil {
		return fmt.Errorf("%w (%w)", err, out.err)
	}
	op.shut(until)
	op.emit(Event{Kind: Retrying, Err: out.err, Wait: until.Sub(now), NextTry: until.Round(0), Message: out.err.Error()})
	return nil
}

// crowded deals with a range that was turned away without a word of when to come back while bytes of others flow: the server takes
// no more connections than those. That is no fault; there are fewer of them until the gate opens anew. It ends: each such answer
// lowers the number or is of a range that was sent before the number was lowered.
func (op *operation) crowded(out outcome) bool {
	flowing := 0
	for j := range op.running {
		if j.started {
			flowing++
		}
	}
	if !out.busy || flowing == 0 {
		return false
	}
	op.lanes = min(op.lanes, flowing)
	return true
}

// backoff spends the budget and returns how long to wait. While a ticket still holds a place, an outage is bounded by the
// ticket's term and not by the budget: waiting in line nothing but the server's return is asked for, and in a running
// download a server that cannot be reached is one that restarts.
func (op *operation) backoff(now time.Time, cause error) (time.Duration, error) {
	broken, _ := cause.(*fault)
	// By the clock that says more: the monotonic one stands still while the machine sleeps, the wall clock can be set back.
	age := max(now.Sub(op.ticketAt), now.Round(0).Sub(op.ticketAt.Round(0)))
	if op.ticket.ticket != "" && age >= -ticketSkew && age < ticketTerm && (op.queued || broken != nil && broken.unreachable) {
		op.outage++
		bound := doubled(op.outage, placeBackoff)
		return bound/2 + time.Duration(op.random()*float64(bound/2)), nil
	}
	op.retries++
	op.streak++
	switch {
	case op.retries > op.Retries:
		return 0, fmt.Errorf("%w: %d of this download; the last one: %w", ErrBudget, op.retries, cause)
	case op.streak >= op.Attempts:
		return 0, fmt.Errorf("%w: %d requests in a row without a byte; the last one: %w", ErrBudget, op.streak, cause)
	}
	return time.Duration(op.random() * float64(doubled(op.streak, longestBackoff))), nil
}

// doubled is the bound of the n-th backoff in a row, n from 1.
func doubled(n int, most time.Duration) time.Duration {
	return min(firstBackoff<<min(n-1, 16), most)
}

// inFlight is what running jobs have got.
func (op *operation) inFlight() (n int64) {
	for j := range op.running {
		n += j.got.Load()
	}
	return n
}

// rewind forgets a stream that cannot be continued. No checkpoint claims any of its bytes.
func (op *operation) rewind() error {
	op.rep, op.done, op.sums = nil, nil, newSums(op.Digest)
	return diskError("empty", op.part, op.file.Truncate(0))
}

// restart drops what was got of an object that is not the same any more.
// The last time an object that only changed its validator is asked for in one stream: servers behind a balancer may tag one object
// differently, and one answer is of one of them.
func (op *operation) restart(out outcome) error {
	op.restarts++
	if op.restarts > maxRestarts {
		return fmt.Errorf("%w: %d times; the last time: %w", ErrChanged, op.restarts, out.err)
	}
	alike := op.restarts == maxRestarts && out.rep.size == op.rep.size
	op.quiesce()
	if err := op.saver.wait(op.Clock.Now()); err != nil {
		return err
	}
	op.rep, op.done, op.plain, op.resumed = nil, nil, alike, false
	op.trail.ended, op.trail.saving = nil, 0
	if err := op.saveNow(); err != nil { // (I5)
		return err
	}
	if err := op.rewind(); err != nil {
		return err
	}
	until := op.Clock.Now().Add(time.Duration(op.random() * float64(doubled(op.restarts, longestBackoff))))
	if !op.open && op.until.After(until) { // what was told or counted before stands
		until = op.until
	}
	op.shut(until)
	op.emit(Event{Kind: Restarted, Message: out.err.Error()})
	return nil
}

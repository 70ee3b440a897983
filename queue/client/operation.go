package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// Limits of one operation.
const (
	maxRestarts   = 3                // how often a changed object may start it again
	ticketTerm    = 15 * time.Minute // for how long the server takes a ticket after it gave it
	ticketSkew    = 2 * time.Minute  // a ticket from further in the future is of a clock that was set back
	completeTerm  = 15 * time.Minute // for how long a whole but unfinished file needs no question to the server
	recheckBytes  = 64 << 10         // what is fetched again to ask that question
	beatEvery     = 250 * time.Millisecond
	saveEvery     = 2 * time.Second
	saveShare     = 3 // a save that takes long is followed by three times as long without one
	windowStep    = time.Minute
	maxSleep      = time.Minute
	suspendedSlip = 2 * time.Minute // the wall clock this far past a wait means that the machine slept
)

// operation is one Download. All its fields belong to the goroutine of Download; jobs, the saver and the sleeper talk to
// it through channels only, and what they share with it is named so.
//
// Invariants: (I1) bytes are in done only after the file has them, and in a checkpoint only after an fsync behind that;
// in the trail before that, where they count as far as their sum is right;
// (I2) done and every running job are of rep; (I3) a job of an earlier epoch neither opens the gate nor costs budget;
// (I4) while the gate is shut at most one job of this epoch runs; (I5) a checkpoint without done bytes is on disk before
// the first byte of another representation is written.
type operation struct {
	*settings
	disk      disk
	file      diskFile
	requester *requester
	fetcher   *fetcher
	unlock    func()
	began     time.Time

	// What is known and had.
	rep     *representation // nil before the first good answer
	plain   bool            // ranges were found to be of no use
	done    spans
	sums    *sums // of the bytes [0, sums.at), while everything comes in order; else nil
	resumed bool
	whole   string // SHA-256 of the whole file, once it was checked in this run or an earlier one
	already string // the same, when an earlier run left nothing to do but to remove its checkpoint

	// The gate: who may ask, and when.
	open    bool // an answer of this epoch was good: ranges go in parallel
	lanes   int  // how many: Parallel, or fewer where the server takes no more
	epoch   int  // counts setbacks
	running map[*job]struct{}
	until   time.Time // nobody asks before
	begun   bool      // an answer was good in this call: NotAfter is met

	// Budgets.
	retries, streak, restarts int
	outage                    int   // faults in a row that cost nothing, because the place in the queue is worth more
	received                  int64 // bytes of ended jobs, wasted ones too
	progressAt                int64 // received and running bytes at the last fault

	// The place in the queue.
	ticket   ticketed
	ticketAt time.Time
	class    string
	queued   bool
	since    time.Time // of queued
	waited   time.Duration

	meter meter
	saver saver
	trail trail

	results  chan outcome
	woke     chan error // of the sleeper
	sleeping bool
	workers  sync.WaitGroup
}

// newOperation takes the locks and reads what an earlier run left.
func newOperation(ctx context.Context, s *settings, d disk) (*operation, error) {
	op := &operation{settings: s, disk: d, began: s.Clock.Now(), lanes: s.Parallel, running: map[*job]struct{}{},
		results: make(chan outcome), woke: make(chan error, 1), saver: saver{done: make(chan error, 1)}}
	if err := op.setUp(ctx); err != nil {
		op.release()
		return nil, err
	}
	return op, nil
}

func (op *operation) setUp(ctx context.Context) (err error) {
	if op.unlock, err = op.disk.lock(op.settings.lock); err != nil {
		return diskError("lock", op.settings.lock, err)
	}
	left, err := op.load()
	if err != nil {
		return err
	}
	if op.named(ctx, left) {
		rep := left.representation()
		op.rep, op.done, op.already, op.resumed = &rep, left.done(), left.SHA256, true
		return nil
	}
	if err := op.vacant(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // in the middle of that look: what it was about is not forgotten
		return err
	}
	if op.file, err = op.disk.open(op.part); err != nil {
		return diskError("open", op.part, err)
	}
	if err := op.adopt(ctx, left); err != nil {
		return err
	}
	op.requester = newRequester(op.settings, left.ID)
	op.fetcher = &fetcher{settings: op.settings, requester: op.requester, file: op.file, report: func(out outcome) { op.results <- out }}
	return nil
}

// release lets go of everything; it may be called on a half-made operation.
func (op *operation) release() {
	if op.requester != nil {
		op.requester.close()
	}
	if op.trail.file != nil {
		_ = op.trail.file.Close()
	}
	if op.file != nil {
		_ = op.file.Close() // synced before where it matters
		op.file = nil
	}
	if op.unlock != nil {
		op.unlock()
	}
}

// load returns the checkpoint to continue from, a new one when there is none that can be.
func (op *operation) load() (checkpoint, error) {
	fresh := checkpoint{URL: plainURL(op.address), ID: op.ID, Size: -1}
	if fresh.ID == "" {
		fresh.ID = rand.Text()
	}
	if op.Fresh {
		return fresh, nil
	}
	data, err := slurp(op.disk, op.Checkpoint, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return checkpoint{}, diskError("read", op.Checkpoint, err)
	}
	left, err := decodeCheckpoint(data)
	switch {
	case errors.Is(err, errNewer):
		return checkpoint{}, refusal(op.Checkpoint, err)
	case err != nil:
		op.emit(Event{Kind: Restarted, Message: "the checkpoint is damaged and nothing of it is used"})
		return fresh, nil
	case !left.of(op.address):
		return checkpoint{}, refusal(op.Checkpoint, fmt.Errorf("it belongs to another address, %s", printable(left.URL)))
	}
	if op.ID != "" && op.ID != left.ID { // a ticket holds for the id it was made for
		left.ID, left.Ticket = op.ID, ""
	}
	return left, nil
}

// adopt takes over what a checkpoint vouches for, as far as the file bears it out.
func (op *operation) adopt(ctx context.Context, left checkpoint) error {
	op.ticket, op.ticketAt, op.class = ticketed{left.Ticket, left.TicketFrom}, left.TicketAt, left.Class
	op.saver.id = left.ID
	size, err := op.file.size()
	if err != nil {
		return diskError("read", op.part, err)
	}
	if op.done, err = op.follow(ctx, &left, size); err != nil {
		return err
	}
	rep := left.representation()
	complete := left.Size >= 0 && op.done.sum() == left.Size
	switch age := op.began.Round(0).Sub(left.Saved); {
	case op.Size >= 0 && left.Size >= 0 && left.Size != op.Size:
		op.done = nil
	case complete && age >= 0 && age <= completeTerm:
		op.whole = left.SHA256
	case rep.validator() == "":
		op.done = nil
	case complete:
		// Whole for long but never named: ask whether the object is still this one, at the price of its end.
		op.done = op.done.clip(max(left.Size-recheckBytes, 0))
	}
	if len(op.done) > 0 || op.whole != "" {
		op.rep, op.resumed = &rep, true
		return nil
	}
	op.sums = newSums(op.Digest)
	return nil
}

// complete reports whether every byte is there.
func (op *operation) complete() bool {
	return op.rep != nil && op.rep.size >= 0 && len(op.running) == 0 && op.done.sum() == op.rep.size
}

// bytes is how much of the object is there, running answers included.
func (op *operation) bytes() int64 {
	n := op.done.sum()
	for j := range op.running {
		n += j.got.Load()
	}
	return n
}

// total is the size of the object as the server or the caller says, -1 while unknown.
func (op *operation) total() int64 {
	if op.rep == nil || op.rep.size < 0 {
		return op.Size
	}
	return op.rep.size
}

// emit tells the observer.
func (op *operation) emit(e Event) {
	e.At = op.Clock.Now()
	e.Total, e.Retries, e.Kept = op.total(), op.retries, op.rep != nil && op.rep.ranged
	if e.Kind != Verifying {
		e.Bytes = op.bytes()
	}
	if e.Class == "" {
		e.Class = op.class
	}
	op.Observe(e)
}

// run brings every byte of the object to the file.
func (op *operation) run(ctx context.Context) error {
	var ticks beat
	defer ticks.run(false, 0)
	for !op.complete() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := op.launch(ctx); err != nil {
			return err
		}
		ticks.run(op.moving(), beatEvery)
		var err error
		select {
		case out := <-op.results:
			err = op.take(out)
		case err = <-op.woke:
			op.sleeping = false
		case <-ticks.c():
			op.progress()
		case err = <-op.saver.done:
			op.saver.ended(op.Clock.Now())
			if err == nil {
				op.trail.flushed()
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		op.save()
		op.record()
	}
	return nil
}

// moving reports whether bytes are on their way.
func (op *operation) moving() bool {
	for j := range op.running {
		if j.started {
			return true
		}
	}
	return false
}

// quiesce ends every job and keeps what they wrote: nothing writes to the file when it returns.
func (op *operation) quiesce() {
	for j := range op.running {
		j.cancel()
	}
	for len(op.running) > 0 {
		out := <-op.results
		op.hear(out)
		if out.verdict != started {
			op.bury(out.job)
		}
	}
}

// bury takes an ended job off the list and its bytes into the set.
func (op *operation) bury(j *job) {
	delete(op.running, j)
	got := j.got.Load()
	op.received += got
	if op.rep == nil || !j.started && got == 0 {
		return
	}
	if op.rep.ranged || op.rep.size >= 0 && got == op.rep.size {
		op.done = op.done.add(span{j.from, j.from + got})
		op.trail.ran(j)
	}
}

// hear remembers the ticket and the class of an answer.
func (op *operation) hear(out outcome) {
	if out.facts.ticket != "" {
		op.ticket, op.ticketAt = ticketed{out.facts.ticket, out.from}, op.Clock.Now()
		op.saver.dirty = true
	}
	if out.facts.class != "" {
		op.class = out.facts.class
	}
}

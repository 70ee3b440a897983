package replay

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/queue"
)

const (
	// MaxBuffered bounds the bytes that were recorded and are not written, those that are being written included, and with them the length of a line.
	MaxBuffered = 16 << 20
	// writeFrom bytes are worth a write before the next tick.
	writeFrom = 64 << 10
)

// ErrSlow says that the writer was so slow that MaxBuffered bytes waited for it.
var ErrSlow = errors.New("the writer is slower than the decisions")

// errLong says that one call ended more sessions than a line has room for: a queue of several hundred thousand that is drained or switched to shared.
var errLong = fmt.Errorf("one call settled or ended more than the %d bytes of a line hold", MaxBuffered)

// Recorder writes down the calls of one core. The methods named after calls are for the shell that owns the core, which serialises
// them; each begins a line that Settled and Ended continue and that Done, or the next call, ends. Err and Flush are safe for concurrent use.
// The methods are called after the call of the core, with what it decided, and never block on the writer.
type Recorder struct {
	w io.Writer

	// The shell's own.
	line      []byte
	begun     bool
	responses uint64 // last number given
	waiters   uint64

	stopped atomic.Bool

	mu      sync.Mutex // a leaf
	idle    sync.Cond  // the writing goroutine ended
	full    []byte     // whole lines for the writer
	spare   []byte     // the buffer that is not full, while nothing is written
	writing bool
	written int // bytes that are being written
	err     error
}

// NewRecorder returns a recorder that writes to w, from one goroutine at a time. w need not be safe for concurrent use, and is not closed.
func NewRecorder(w io.Writer) *Recorder {
	r := &Recorder{w: w}
	r.idle.L = &r.mu
	return r
}

// Err returns why recording stopped; nil while it goes on.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Flush blocks until what was recorded before is written or recording stopped, and no write is under way: the writer may be closed when no more
// calls come. It returns Err. It must not be called under the shell's lock.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.writing || r.err == nil && len(r.full) > 0 {
		r.writeLocked()
		r.idle.Wait()
	}
	return r.err
}

// Done ends the open line.
func (r *Recorder) Done() { r.end(false) }

// Drop forgets the open line: what its call decided was not carried out, and a fresh core's Policy follows.
func (r *Recorder) Drop() { r.line = r.line[:0] }

func (r *Recorder) end(write bool) {
	if len(r.line) == 0 && !write {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.line) > 0 {
		r.closeLocked()
	}
	if write || len(r.full) >= writeFrom {
		r.writeLocked()
	}
}

// closeLocked moves the open line to those for the writer.
func (r *Recorder) closeLocked() {
	r.line = append(r.line, '\n')
	if waiting := len(r.full) + r.written; waiting+len(r.line) > MaxBuffered {
		r.stopLocked(fmt.Errorf("cannot record the queue's decisions: %w, %d bytes wait", ErrSlow, waiting))
	}
	if r.err == nil {
		r.full = append(r.full, r.line...)
	}
	r.line = r.line[:0]
	if cap(r.line) > writeFrom { // one long line is not kept for all others
		r.line = nil
	}
}

func (r *Recorder) stopLocked(err error) {
	if r.err == nil {
		r.err = err
	}
	r.stopped.Store(true)
	r.full, r.spare = nil, nil
}

// writeLocked starts the goroutine that writes, unless it runs or has nothing to do.
func (r *Recorder) writeLocked() {
	if r.writing || len(r.full) == 0 || r.err != nil {
		return
	}
	r.writing = true
	go r.write()
}

func (r *Recorder) write() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.full) > 0 && r.err == nil {
		out := r.full
		r.full, r.spare, r.written = r.spare, nil, len(out)
		r.mu.Unlock()
		err := r.put(out)
		r.mu.Lock()
		r.written = 0
		if err != nil {
			r.stopLocked(fmt.Errorf("cannot write the queue's decisions: %w", err))
		} else if cap(out) <= 4*writeFrom {
			r.spare = out[:0]
		}
	}
	r.writing = false
	r.idle.Broadcast()
}

// put writes once; a writer that panics has failed and takes nothing down with it.
func (r *Recorder) put(out []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the writer panicked: %v", v)
		}
	}()
	n, err := r.w.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	return err
}

// call begins the line of a call; false when recording stopped.
func (r *Recorder) call(op Op, now time.Duration) bool {
	r.end(false)
	if r.stopped.Load() {
		return false
	}
	if !r.begun {
		r.begun = true
		r.line = append(append(r.line, header...), '\n')
	}
	r.line = number(append(r.line, opNames[op]...), now)
	return true
}

// Policy notes that a fresh core decides by that policy from now on.
func (r *Recorder) Policy(now time.Duration, p queue.Policy) {
	if r.call(OpPolicy, now) {
		r.line = appendPolicy(r.line, &p)
	}
}

// Configure notes a policy that the core took.
func (r *Recorder) Configure(now time.Duration, p queue.Policy) {
	if r.call(OpConfigure, now) {
		r.line = appendPolicy(r.line, &p)
	}
}

// Ask notes a request and returns the number of its response, 0 when it was not admitted.
func (r *Recorder) Ask(now time.Duration, a *queue.Ask, v *queue.Verdict) uint64 {
	if !r.call(OpAsk, now) {
		return 0
	}
	r.line = append(appendAsk(r.line, a), " ="...)
	return r.verdict(v)
}

// Hold notes a request that may be held and returns the numbers of the held request and of the response, each 0 for none.
func (r *Recorder) Hold(now time.Duration, a *queue.Ask, held bool, v *queue.Verdict) (waiter, response uint64) {
	if !r.call(OpHold, now) {
		return 0, 0
	}
	if held {
		r.waiters++
		waiter = r.waiters
	}
	r.line = append(ordinal(appendAsk(r.line, a), waiter), " ="...)
	return waiter, r.verdict(v)
}

func (r *Recorder) verdict(v *queue.Verdict) (response uint64) {
	if v.Outcome == queue.Admitted {
		r.responses++
		response = r.responses
	}
	r.line = appendVerdict(r.line, v, response)
	return response
}

// Withdraw notes the end of a held request whose wait is over.
func (r *Recorder) Withdraw(now time.Duration, waiter uint64, v *queue.Verdict, ok bool) {
	if r.call(OpWithdraw, now) {
		r.line = appendVerdict(append(flag(ordinal(r.line, waiter), ok), " ="...), v, 0)
	}
}

// Depart notes the end of a held request whose client left.
func (r *Recorder) Depart(now time.Duration, waiter uint64, ok bool) {
	if r.call(OpDepart, now) {
		r.line = flag(ordinal(r.line, waiter), ok)
	}
}

// Leave notes a cancelled session.
func (r *Recorder) Leave(now time.Duration, key queue.Key) {
	if r.call(OpLeave, now) {
		r.line = appendKey(r.line, key)
	}
}

// Progress notes n delivered bytes of a response.
func (r *Recorder) Progress(now time.Duration, response uint64, n int64) {
	if r.call(OpProgress, now) {
		r.line = number(ordinal(r.line, response), n)
	}
}

// Finish notes the end of a response with the bytes [first, end).
func (r *Recorder) Finish(now time.Duration, response uint64, first, end int64, complete bool) {
	if r.call(OpFinish, now) {
		r.line = flag(number(number(ordinal(r.line, response), first), end), complete)
	}
}

// Abandon notes the end of a response whose client left.
func (r *Recorder) Abandon(now time.Duration, response uint64) {
	if r.call(OpAbandon, now) {
		r.line = ordinal(r.line, response)
	}
}

// Tick notes a tick and the state after it. What was recorded before goes to the writer.
func (r *Recorder) Tick(now time.Duration, state State) {
	r.end(true)
	if r.call(OpTick, now) {
		r.line = appendState(append(r.line, " ="...), &state)
	}
}

// Drain notes the drain.
func (r *Recorder) Drain(now time.Duration) { r.call(OpDrain, now) }

// Grace notes until when nobody, and until when sessions without a ticket take no slot.
func (r *Recorder) Grace(now, gather, until time.Duration) {
	if r.call(OpGrace, now) {
		r.line = number(number(r.line, until), gather)
	}
}

// Act notes an operator's action on the session of a key, and whether it was carried out.
func (r *Recorder) Act(now time.Duration, key queue.Key, a queue.Action, ok bool) {
	if r.call(OpAct, now) {
		r.line = flag(appendAction(appendKey(r.line, key), a), ok)
	}
}

// Gate notes whether new sessions can be served from now on.
func (r *Recorder) Gate(now time.Duration, open bool) {
	if r.call(OpGate, now) {
		r.line = flag(r.line, open)
	}
}

// Settled adds a held request that the call answered, and returns the number of its response, 0 when it was not admitted.
func (r *Recorder) Settled(waiter uint64, v *queue.Verdict) uint64 {
	if len(r.line) == 0 {
		return 0
	}
	r.line = ordinal(append(r.line, " | settled"...), waiter)
	response := r.verdict(v)
	r.bound()
	return response
}

// Ended adds a stay that the call ended.
func (r *Recorder) Ended(e *queue.End) {
	if len(r.line) > 0 {
		r.line = appendEnd(append(r.line, " | ended"...), e)
		r.bound()
	}
}

// bound stops recording when the open line has grown too long.
func (r *Recorder) bound() {
	if len(r.line) < MaxBuffered {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked(fmt.Errorf("cannot record the queue's decisions: %w", errLong))
	r.line = nil
}

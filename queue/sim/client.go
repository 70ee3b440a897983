package sim

import (
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// maxAtOnce bounds the responses of one client at once.
const maxAtOnce = 64

// phase of a client.
type phase uint8

const (
	away    phase = iota // has not arrived
	present              // wants its bytes
	done                 // has them all
	failed               // gave up
	left                 // vanished, as the scenario says
)

var phaseNames = [...]string{"away", "present", "done", "failed", "left"}

// transfer is one running response.
type transfer struct {
	response   *queue.Response // of a session
	gate       admission.Place // of a request that is none
	first, end int64           // bytes of the object asked for
	stop       int64           // bytes after which it ends: all of them, unless the connection breaks
	from       float64         // client's v at its begin
	reported   int64           // told to the core
	rank       int64           // protocol: number of the range
	faults     int             // of this range before
}

// again is a range to be asked once more.
type again struct {
	rank   int64
	faults int
}

// client is one person in one simulation.
type client struct {
	*person
	id    int32
	phase phase
	class queue.Class
	ask   queue.Ask

	// Transport, see link.
	principal int32
	ownRate   float64
	transfers []transfer
	place     int32 // in link.live
	rated     int   // responses that rate was made for
	rate, v   float64
	at, due   time.Duration

	// Download.
	next    int64 // protocol: next range never asked
	ranges  int64
	redo    []again
	have    int64 // bytes that count; of a plain client, the offset it resumes at
	faults  int
	attempt int // plain: repetitions used

	// Waiting.
	stamp   uint32 // of the timer that is valid
	hold    uint32 // number of held requests, to tell patience events apart
	held    *queue.Waiter
	until   time.Duration
	listed  int // place in run.held
	waits   []*admission.Wait
	notify  func(*admission.Wait)
	quiet   time.Duration // asks nothing before: a refusal's time or the pause after a fault
	probing bool          // one request until the gate takes one again
	backoff bool          // pauses after a fault: it waits for nobody
	counted bool          // among run.waiting

	// Judgement.
	started  time.Duration // first slot or place, -1 = none
	finished time.Duration
	promises ledger
	position int
	arrival0 time.Duration // the core's arrival at the last contact
	moves    queue.Moves
}

// running reports whether it gets bytes.
func (c *client) running() bool { return len(c.transfers) > 0 }

// offset of a range, and its end.
func (c *client) span(rank, rangeBytes int64) (first, end int64) {
	first = rank * rangeBytes
	return first, min(first+rangeBytes, c.size)
}

// take returns the next range to ask for: broken ones first.
func (c *client) take() (again, bool) {
	if n := len(c.redo); n > 0 {
		a := c.redo[n-1]
		c.redo = c.redo[:n-1]
		return a, true
	}
	if c.next < c.ranges {
		c.next++
		return again{rank: c.next - 1}, true
	}
	return again{}, false
}

// give returns a range that was not admitted.
func (c *client) give(a again) {
	if a.faults == 0 && a.rank == c.next-1 {
		c.next--
		return
	}
	c.redo = append(c.redo, a)
}

// wants reports whether a range is left to ask for.
func (c *client) wants() bool { return len(c.redo) > 0 || c.next < c.ranges }

package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
	"github.com/arkvory/sidecar/queue/window"
)

// run is one simulation of one strategy. It belongs to one goroutine.
type run struct {
	set      *Settings
	strategy queue.Strategy
	core     *queue.Scheduler
	gate     *admission.Gate
	random   *rand.Rand

	now      time.Duration
	nextTick time.Duration
	nextLook time.Duration // proof of invariants
	nextPlan time.Duration // of the windows
	events   events
	clients  []client
	parties  []party
	link     link
	alive    int           // clients not done, failed or gone
	lastEnd  time.Duration // when the last client was done, failed or left
	away     int           // clients that have not arrived

	schedules [queue.Classes]*window.Schedule
	lastByte  time.Duration // when the last response began or ended

	held     []int32 // clients with a held request
	answers  []answer
	spare    [][]transfer
	waiting  [queue.Classes]int // clients that would take a slot
	singly   int                // clients that would take a place of the gate
	watching bool               // something that the meter integrates may have changed

	meter        meter
	judge        judge
	promisesEach int // kept of one client
	trace        *tracer
}

// answer is a wait that the gate answered.
type answer struct {
	client int32
	wait   *admission.Wait
}

// Errors of a simulation that does not end; they are wrapped with the state it is in.
var (
	ErrTooLong = errors.New("the simulation is not over")                      // at Settings.Limit
	ErrStalled = errors.New("clients wait, and none of them ever gets a byte") // for stallAfter, with nobody left to arrive
)

// stallAfter is longer than any client pauses between two of its requests.
const stallAfter = 6 * time.Hour

func newRun(set *Settings, strategy queue.Strategy, pop *population, trace io.Writer) (*run, error) {
	policy := set.Policy
	policy.Strategy = strategy
	core, err := queue.New(policy)
	if err != nil {
		return nil, err
	}
	r := &run{
		set: set, strategy: strategy, core: core, random: source(set.Seed, streamRun), clients: make([]client, len(pop.persons)),
		parties: make([]party, len(pop.principals)), alive: len(pop.persons), away: len(pop.persons), nextTick: queue.TickEvery, nextLook: set.InvariantsEvery,
		trace: newTracer(trace), promisesEach: promisesEach(len(pop.persons)),
	}
	gateRandom := source(set.Seed, streamGate)
	r.gate, err = admission.NewWith(set.Gate, admission.Options{
		Clock: func() time.Duration { return r.now }, Random: func(below int64) int64 { return gateRandom.Int64N(below) },
	})
	if err != nil {
		return nil, err
	}
	r.schedules, _ = set.compileWindows() // they were validated
	if err := r.planWindows(); err != nil {
		return nil, err
	}
	for i := range r.clients {
		r.prepare(int32(i), &pop.persons[i])
	}
	r.link = link{capacity: float64(set.LinkBytesPerSecond), clients: r.clients, parties: r.parties, next: never}
	return r, nil
}

func (r *run) prepare(id int32, p *person) {
	c := &r.clients[id]
	*c = client{person: p, id: id, class: p.class, principal: p.principal, ownRate: p.rate, due: never, started: -1, finished: -1}
	c.ask = queue.Ask{Key: p.key, Class: p.class, Protocol: p.protocol, SizeBytes: p.size, Validator: `"1"`}
	c.ranges = (p.size + r.set.RangeBytes - 1) / r.set.RangeBytes
	r.events.push(event{at: p.arrival, client: id, kind: eventArrive})
	if p.leaveAt != never {
		r.events.push(event{at: p.leaveAt, client: id, kind: eventLeave})
	}
	c.notify = func(w *admission.Wait) { r.answers = append(r.answers, answer{id, w}) }
}

// loop runs until everybody is done, failed or gone.
func (r *run) loop() error {
	for r.alive > 0 {
		next, kind := r.nextTick, 0
		if len(r.events.heap) > 0 && r.events.heap[0].at < next {
			next, kind = r.events.heap[0].at, 1
		}
		if r.link.next <= next {
			next, kind = r.link.next, 2
		}
		switch {
		case next > r.set.Limit:
			return r.unfinished(ErrTooLong, fmt.Sprintf("the limit is %s: raise it or lower the load", r.set.Limit))
		case r.away == 0 && len(r.link.live) == 0 && next-r.lastByte > stallAfter:
			return r.unfinished(ErrStalled, "the scheduler gives free slots to nobody")
		}
		if next < r.now {
			return fmt.Errorf("cannot simulate %s: an event of %s came at %s", r.strategy, next, r.now)
		}
		r.meter.advance(r, next)
		r.now = next
		switch kind {
		case 0:
			if err := r.tick(); err != nil {
				return err
			}
		case 1:
			r.happen(r.events.pop())
		default:
			r.ended(r.link.nextLive)
		}
		r.settle()
	}
	return r.rest()
}

// unfinished is the error of a simulation that does not end.
func (r *run) unfinished(why error, remedy string) error {
	var by [len(phaseNames)]int
	for i := range r.clients {
		by[r.clients[i].phase]++
	}
	return fmt.Errorf("cannot simulate %s: %w at %s of virtual time: %d clients away, %d present, %d done, %d failed, %d left; %s",
		r.strategy, why, r.now.Round(time.Second), by[away], by[present], by[done], by[failed], by[left], remedy)
}

func (r *run) happen(e event) {
	c := &r.clients[e.client]
	switch e.kind {
	case eventArrive:
		c.phase = present
		r.away--
		r.lastByte = r.now
		r.trace.line(r.now, c, "arrives", int64(c.size), 0)
		r.act(c)
	case eventTimer:
		if e.stamp == c.stamp && c.phase == present {
			c.backoff = false
			r.act(c)
		}
	case eventLeave:
		if c.phase == present && !c.running() {
			r.vanish(c)
		}
	case eventPatience:
		if c.phase == present && e.stamp == c.hold {
			r.impatient(c)
		}
	}
	r.note(c)
}

// act lets a client ask for what it may.
func (r *run) act(c *client) {
	if c.protocol {
		r.refill(c)
	} else {
		r.request(c)
	}
}

// wake plans the client's next action; an earlier plan is void.
func (r *run) wake(c *client, after time.Duration) {
	c.stamp++
	c.quiet = r.now + after
	r.events.push(event{at: c.quiet, client: c.id, stamp: c.stamp, kind: eventTimer})
}

// settle hands out what the last event brought about, until nothing is left, and renews the link.
func (r *run) settle() {
	r.settleCore()
	for i := 0; i < len(r.answers); i++ { // each may bring more
		r.fromGate(&r.clients[r.answers[i].client], r.answers[i].wait)
		r.settleCore()
	}
	r.answers = r.answers[:0]
	r.core.TakeEnded()
	r.link.settle(r.now)
	if r.watching {
		r.watching = false
		r.meter.watch(r)
	}
}

// settleCore starts the responses of held requests that got their answer.
func (r *run) settleCore() {
	if len(r.held) == 0 {
		return
	}
	for _, s := range r.core.TakeSettled() {
		c := s.Owner.(*client)
		r.unhold(c)
		if s.Response != nil {
			r.admitted(c, s.Verdict)
			r.begin(c, transfer{response: s.Response, first: c.have, end: c.size})
		} else {
			r.answered(c, s.Verdict)
		}
		r.note(c)
	}
}

// begin starts a response; its connection breaks after a number of bytes drawn from the failing network.
func (r *run) begin(c *client, x transfer) {
	x.stop = x.end - x.first
	if rate := r.set.BreaksPerGiB; rate > 0 {
		if bytes := r.random.ExpFloat64() / rate * (1 << 30); bytes < float64(x.stop) {
			x.stop = max(1, int64(bytes))
		}
	}
	if c.leaveAfter > 0 && !c.protocol {
		x.stop = min(x.stop, max(1, c.leaveAfter-c.have))
	}
	if c.transfers == nil {
		if n := len(r.spare); n > 0 {
			c.transfers, r.spare = r.spare[n-1], r.spare[:n-1]
		} else {
			c.transfers = make([]transfer, 0, r.set.RangesAtOnce)
		}
	}
	if c.started < 0 {
		c.started = r.now
	}
	c.backoff = false
	r.link.sync(c, r.now)
	r.link.begin(c.id, x)
	r.link.plan(c.id, r.now)
	r.trace.line(r.now, c, "begins", x.first, x.end)
}

// ended ends the responses of a client that have all their bytes by now. Half a byte is what a nanosecond's rounding hides.
func (r *run) ended(id int32) {
	c := &r.clients[id]
	r.lastByte = r.now
	r.link.sync(c, r.now)
	for i := 0; i < len(c.transfers); {
		if x := &c.transfers[i]; c.v-x.from < float64(x.stop)-0.5 {
			i++
			continue
		}
		r.finish(c, r.link.end(id, i))
		if c.phase != present {
			break
		}
	}
	r.link.plan(id, r.now)
	r.note(c)
}

// close gives back what a response held. A broken one is abandoned, as one whose client left.
func (r *run) close(c *client, x *transfer, bytes int64, complete bool) {
	r.meter.delivered += bytes
	r.meter.responses++
	if x.response != nil {
		r.report(x, bytes)
		if complete {
			r.core.Finish(r.now, x.response, x.first, x.first+bytes, true)
		} else {
			r.core.Abandon(r.now, x.response)
		}
	} else {
		x.gate.Release()
	}
	if !complete {
		r.trace.line(r.now, c, "breaks", x.first, bytes)
		r.watching = true
	}
}

// finish deals with a response that ended and lets its client go on.
func (r *run) finish(c *client, x transfer) {
	complete := x.stop == x.end-x.first
	r.close(c, &x, x.stop, complete)
	if c.protocol {
		r.finishRange(c, x, complete)
	} else {
		r.finishWhole(c, x, complete)
	}
}

// over ends a client's part; whatever it still runs or waits for is given back.
func (r *run) over(c *client, p phase) {
	c.phase = p
	r.alive--
	c.stamp++
	if p != done {
		for len(c.transfers) > 0 {
			r.link.sync(c, r.now)
			x := r.link.end(c.id, len(c.transfers)-1)
			bytes := min(max(int64(c.v-x.from), 0), x.stop)
			r.close(c, &x, bytes, false)
			r.meter.repeated += bytes
		}
		r.link.plan(c.id, r.now)
		if c.held != nil {
			r.core.Depart(r.now, c.held)
			r.unhold(c)
		}
	} else {
		c.finished = r.now
	}
	r.cancelWaits(c)
	if c.transfers != nil {
		r.spare = append(r.spare, c.transfers[:0])
		c.transfers = nil
	}
	r.lastEnd = r.now
	r.judge.verdicts.judge(&c.promises, r.now, true)
	c.redo, c.promises = nil, ledger{}
	r.trace.line(r.now, c, phaseNames[p], c.have, 0)
	r.watching = true
}

func (r *run) vanish(c *client) { r.over(c, left) }

// note keeps the count of clients that wait.
func (r *run) note(c *client) {
	if waits := c.phase == present && !c.running() && !c.backoff; waits != c.counted {
		c.counted = waits
		count := &r.waiting[c.class]
		if r.strategy == queue.Shared || c.size <= r.set.Policy.SessionMinBytes {
			count = &r.singly
		}
		if waits {
			*count++
		} else {
			*count--
		}
		r.watching = true
	}
}

// later is a time told to a client in whole seconds, rounded up, and its own jitter on top.
func (r *run) later(told time.Duration) time.Duration {
	whole := wholeSeconds(told)
	return whole + time.Duration(r.random.Float64()*r.set.Jitter*float64(whole))
}

// wholeSeconds is a time as Retry-After tells it.
func wholeSeconds(told time.Duration) time.Duration {
	return max((told+time.Second-1)/time.Second, 1) * time.Second
}

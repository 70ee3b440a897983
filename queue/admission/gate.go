package admission

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Gate admits the requests of one direction. Its methods are safe for concurrent use.
//
// Invariants: active <= max(Capacity, active when it was lowered), the same per principal; a principal that could
// have a place has no waiter while a place is free; waiting <= WaitLimit and per principal <= WaitPerPrincipal, or what
// they were when lowered; a waiter is answered exactly once. mu is a leaf lock.
type Gate struct {
	clock  func() time.Duration
	random func(below int64) int64
	idle   sync.Pool // *Wait

	mu         sync.Mutex
	settings   Settings
	draining   bool
	active     int
	principals map[string]*principal
	spare      *principal // reused principals, linked by next
	spares     int
	places     []place
	vacant     []int // indexes of free places
	turns      ring  // principals with waiters; the first has the next turn
	waiting    waiterList
	releases   meter
	rejected   uint64
	timedOut   uint64
	cancelled  uint64
}

type principal struct {
	name       string
	active     int
	queue      waiterQueue
	prev, next *principal
}

type place struct {
	generation uint64 // odd while taken
	principal  *principal
}

// Place is an admitted request. The zero value holds nothing.
type Place struct {
	gate       *Gate
	index      int
	generation uint64
}

// Options are what a gate takes from outside itself. The zero value is the process's own clock and randomness.
type Options struct {
	// Clock returns the monotonic time since any fixed moment; nil = since NewWith. It is called under the lock and must not block.
	Clock func() time.Duration
	// Random returns a number of [0, below) for below > 0; nil = the process's random source. It is called under the lock. A seeded one
	// makes every answer of the gate repeatable.
	Random func(below int64) int64
}

// New returns a gate with these settings, or their faults. clock returns the monotonic time since any fixed moment;
// nil = since New.
func New(settings Settings, clock func() time.Duration) (*Gate, error) {
	return NewWith(settings, Options{Clock: clock})
}

// NewWith is New with the random source of the refusals given too.
func NewWith(settings Settings, options Options) (*Gate, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	if options.Clock == nil {
		start := time.Now()
		options.Clock = func() time.Duration { return time.Since(start) }
	}
	if options.Random == nil {
		options.Random = rand.Int64N
	}
	return &Gate{clock: options.Clock, random: options.Random, settings: settings, principals: map[string]*principal{}}, nil
}

// Acquire returns a place, at once when one is free, else after its turn came. It blocks until then, until gone is
// closed (ErrCancelled; a nil gone never closes), the term is over or too many wait (*BusyError), or the gate drains
// (ErrDraining). On an error there is nothing to release. Uncontended it costs one short lock and no allocation.
func (g *Gate) Acquire(name string, gone <-chan struct{}) (Place, error) {
	taken, w, err := g.Enter(name, nil)
	if w == nil {
		return taken, err
	}
	select {
	case <-w.wake:
	case <-gone:
		w.Cancel()
		return Place{}, ErrCancelled
	}
	taken, err = w.place, w.err
	g.recycle(w)
	return taken, err
}

// Enter is Acquire without blocking. It returns a place, or the error of a refusal, or, with neither, the wait of a request whose
// turn has not come: its owner asks it with Poll, or is told by answered, and ends it with the answer or with Cancel. answered is
// called once, with the answer given, under the gate's lock and from the call that answered: it only notes the wait and
// calls nothing of the gate. It may be nil.
func (g *Gate) Enter(name string, answered func(*Wait)) (Place, *Wait, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return Place{}, nil, ErrDraining
	}
	p := g.principals[name]
	if g.active < g.settings.Capacity && (p == nil || p.active < g.settings.PerPrincipal) {
		if p == nil {
			p = g.addLocked(name)
		}
		return g.takeLocked(p), nil, nil
	}
	if g.waiting.count >= g.settings.WaitLimit || p != nil && p.queue.count >= g.settings.WaitPerPrincipal || g.settings.WaitPerPrincipal == 0 {
		g.rejected++
		return Place{}, nil, &BusyError{RetryAfter: g.retryAfterLocked(), Reason: Full}
	}
	if p == nil {
		p = g.addLocked(name)
	}
	w := g.takeWait()
	w.principal, w.since, w.answered = p, g.clock(), answered
	if p.queue.count == 0 {
		g.turns.push(p)
	}
	p.queue.push(w)
	g.waiting.push(w)
	return Place{}, w, nil
}

// Poll returns the answer of the wait when it has one: a place, or the error of a refusal. The wait is then over and must not be
// used any more. False: it still waits.
func (w *Wait) Poll() (Place, bool, error) {
	select {
	case <-w.wake:
		taken, err := w.place, w.err
		w.gate.recycle(w)
		return taken, true, err
	default:
		return Place{}, false, nil
	}
}

// Cancel ends the wait of a client that left, giving back the place it may have got meanwhile. The wait must not be used any more.
func (w *Wait) Cancel() {
	g := w.gate
	g.mu.Lock()
	g.cancelled++
	if w.listed {
		g.unlistLocked(w)
		g.mu.Unlock()
	} else {
		g.mu.Unlock()
		<-w.wake // the answer was given under the lock before
		w.place.Release()
	}
	g.recycle(w)
}

// Release gives the place back. Calls after the first, and on a zero Place, do nothing.
func (p Place) Release() {
	if p.gate == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	at := &g.places[p.index]
	if at.generation != p.generation {
		return
	}
	at.generation++
	owner := at.principal
	at.principal = nil
	g.vacant = append(g.vacant, p.index)
	g.active--
	owner.active--
	g.dropLocked(owner)
	g.releases.add(g.clock())
	g.dispatchLocked()
}

// Tick answers the waiters whose term is over; it is called every half second or so.
func (g *Gate) Tick(now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := g.waiting.head; w != nil && now-w.since >= g.settings.Timeout; w = g.waiting.head {
		g.timedOut++
		g.answerLocked(w, Place{}, &BusyError{RetryAfter: g.retryAfterLocked(), Reason: Timeout})
	}
}

// Configure puts other settings in force; held places stay, waiters keep their turns and have the new term. On an error
// nothing changed.
func (g *Gate) Configure(settings Settings) error {
	if err := settings.Validate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settings = settings
	g.dispatchLocked()
	return nil
}

// Drain answers every waiter ErrDraining and admits nobody any more. Held places stay.
func (g *Gate) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	for g.waiting.head != nil {
		g.answerLocked(g.waiting.head, Place{}, ErrDraining)
	}
}

// Snapshot returns the state.
func (g *Gate) Snapshot() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Snapshot{
		Active: g.active, Waiting: g.waiting.count, Capacity: g.settings.Capacity, PerPrincipalCapacity: g.settings.PerPrincipal,
		WaitingCapacity: g.settings.WaitLimit, PerPrincipalWaitingCapacity: g.settings.WaitPerPrincipal,
		TimeoutMs: g.settings.Timeout.Milliseconds(), Rejected: g.rejected, TimedOut: g.timedOut, Cancelled: g.cancelled,
	}
}

// dispatchLocked gives free places to waiters: principals take turns, one at its limit is passed over.
func (g *Gate) dispatchLocked() {
	for g.active < g.settings.Capacity {
		p := g.turns.head
		for p != nil && p.active >= g.settings.PerPrincipal {
			p = p.next
		}
		if p == nil {
			return
		}
		w := p.queue.head
		g.turns.remove(p)
		g.turns.push(p) // its next turn is the last; answerLocked takes it out when nothing of it waits
		g.answerLocked(w, g.takeLocked(p), nil)
	}
}

func (g *Gate) answerLocked(w *Wait, taken Place, err error) {
	g.unlistLocked(w)
	w.place, w.err = taken, err
	answered := w.answered
	w.wake <- struct{}{} // the wait is its owner's from here
	if answered != nil {
		answered(w)
	}
}

func (g *Gate) unlistLocked(w *Wait) {
	p := w.principal
	g.waiting.remove(w)
	p.queue.remove(w)
	if p.queue.count == 0 {
		g.turns.remove(p)
	}
	w.principal = nil
	g.dropLocked(p)
}

func (g *Gate) takeLocked(p *principal) Place {
	if len(g.vacant) == 0 {
		g.places = append(g.places, place{})
		g.vacant = append(g.vacant, len(g.places)-1)
	}
	index := g.vacant[len(g.vacant)-1]
	g.vacant = g.vacant[:len(g.vacant)-1]
	at := &g.places[index]
	at.generation++
	at.principal = p
	p.active++
	g.active++
	return Place{gate: g, index: index, generation: at.generation}
}

// addLocked makes the entry of a principal; dropLocked takes it away with its last place and waiter.
func (g *Gate) addLocked(name string) *principal {
	p := g.spare
	if p == nil {
		p = &principal{}
	} else {
		g.spare, p.next = p.next, nil
		g.spares--
	}
	p.name = name
	g.principals[name] = p
	return p
}

func (g *Gate) dropLocked(p *principal) {
	if p.active > 0 || p.queue.count > 0 {
		return
	}
	delete(g.principals, p.name)
	p.name = ""
	if g.spares < 64 {
		p.next, g.spare = g.spare, p
		g.spares++
	}
}

// retryAfterLocked is A2: requests ahead over the measured release rate, one term when unmeasured, plus up to a quarter.
func (g *Gate) retryAfterLocked() time.Duration {
	wait := g.settings.Timeout
	if perSecond := g.releases.perSecond(g.clock()); perSecond > 0 {
		wait = time.Duration(min(float64(g.waiting.count+1)/perSecond, retryCeiling.Seconds()) * float64(time.Second))
	}
	wait += time.Duration(g.random(int64(wait/4) + 1))
	return min(max(wait, retryFloor), retryCeiling)
}

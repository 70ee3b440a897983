package upstream

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// Settings of a Pool.
type Settings struct {
	Origins      []*url.URL // scheme http or https, host with or without port; equal: an exchange may run on any
	Fallback     *url.URL   // nil: none
	CAFile       string     // PEM bundle for https, empty: the system's
	Resolver     string     // ip:port of a name server, empty: the system's
	DialTimeout  time.Duration
	IdleTimeout  time.Duration
	MaxIdle      int           // unused connections of an endpoint; 0: none serves twice
	Wait         time.Duration // of an exchange while no endpoint can be reached; an attempt that began after it came is awaited in any case
	Control      control.Settings
	Host         string                                              // of probes, empty: each origin's own
	ProbePath    string                                              // target of probes, empty: /
	OnGeneration func(group string, generation uint64, retired bool) // told by the loop, nil drops it
	OnPanic      func(value any, stack []byte)                       // of one of its goroutines

	lookup func(ctx context.Context, family, name string) ([]netip.Addr, error) // tests give their own
}

// Pool is all connections to the configured origins: the shell around package control (U1). Safe for concurrent use.
//
// Get, put and lose are the data plane; they take the lock of one endpoint, and that of the pool only when an exchange has to wait. One goroutine, the loop, owns the
// control plane and the registry of writers.
type Pool struct {
	set     Settings
	origins []*origin // by control.GroupID
	metrics *telemetry.Metrics

	view   atomic.Pointer[view]
	all    atomic.Pointer[[]*endpoint]
	status atomic.Pointer[control.Snapshot]
	coarse atomic.Int64 // time of the last tick

	// Exchanges that wait, the first first.
	mu      sync.Mutex
	waiters waiterList
	closed  bool
	waiting atomic.Int32 // those that take any writer
	choosy  atomic.Int32 // those that take any of some endpoints
	picky   atomic.Int32 // those that take one only that has served nothing yet

	// To the loop.
	inMu  sync.Mutex
	inbox []report
	wake  chan struct{}

	ctx    context.Context // of dials, probes, resolutions
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ended  chan struct{} // the loop has ended

	loop loop
}

// view is the control plane's with the endpoints beside its choices.
type view struct {
	*control.View
	endpoints []*endpoint
}

// New starts a pool: it resolves and connects on its own. It fails when the CA file cannot be read or the control plane refuses the settings.
func New(set Settings, m *telemetry.Metrics) (*Pool, error) {
	p := &Pool{set: set, metrics: m, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	var groups []control.Group
	for i, u := range append(append([]*url.URL(nil), set.Origins...), set.Fallback) {
		if u == nil {
			continue
		}
		o, err := newOrigin(u, set.CAFile)
		if err != nil {
			return nil, err
		}
		p.origins = append(p.origins, o)
		groups = append(groups, control.Group{Name: o.addr, Fallback: i == len(set.Origins)})
	}
	c, err := control.New(groups, set.Control, rand.Float64)
	if err != nil {
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.loop = loop{p: p, c: c, registry: map[control.WriterID]*Writer{}, endpoints: map[control.EndpointID]*endpoint{},
		resolver: newResolver(set.Resolver)}
	p.loop.resolver.keep = set.Control.KeepUnanswered
	if set.lookup != nil {
		p.loop.resolver.lookup = set.lookup
	}
	p.loop.publish()
	go p.loop.run()
	return p, nil
}

// Host returns the authority of the first origin as it belongs in Host, for requests that name none.
func (p *Pool) Host() string { return p.origins[0].host }

// Owns reports whether an authority is that of one of the origins; equal compares.
func (p *Pool) Owns(same func(host string) bool) bool {
	for _, o := range p.origins {
		if same(o.host) {
			return true
		}
	}
	return false
}

// Covered reports whether sessions may start, and why not (U7). One load.
func (p *Pool) Covered() (bool, control.Cause) {
	v := p.view.Load()
	return v.Covered, v.Why
}

// Choices is the number of endpoints that an exchange may run on now.
func (p *Pool) Choices() int { return len(p.view.Load().Choices) }

// Endpoints is the number of addresses of the active sets, those that are out of use included. It walks over them.
func (p *Pool) Endpoints() (n int) {
	for _, g := range p.status.Load().Groups {
		if !g.Serving {
			continue
		}
		for _, e := range g.Endpoints {
			if e.Current {
				n++
			}
		}
	}
	return n
}

// Get implements Source. An exchange that finds no unused writer waits for one that is released or dialled for it. It is given up when a dial or resolution that began after it came
// fails, no endpoint is left to choose and Wait is over, when nothing came within Wait and the dial timeout, or when the client leaves.
func (p *Pool) Get(fresh bool, gone func() <-chan struct{}) (*Writer, error) {
	if !fresh {
		if w := p.take(); w != nil {
			if w.Reused {
				p.metrics.UpstreamReused.Inc()
			}
			w.began = monotonic()
			return w, nil
		}
	}
	return p.await(&waiter{fresh: fresh}, gone)
}

// GetElsewhere is Get of a writer to none of the named endpoints, for an exchange whose object is another one there. It fails with ErrNoOther when the view has no
// other endpoint.
func (p *Pool) GetElsewhere(avoid []control.EndpointID, gone func() <-chan struct{}) (*Writer, error) {
	v := p.view.Load()
	w, others := v.elsewhere(avoid)
	switch {
	case w != nil:
		w.began = monotonic()
		return w, nil
	case !others && len(v.endpoints) > 0:
		return nil, ErrNoOther
	}
	return p.await(&waiter{avoid: avoid}, gone)
}

// elsewhere takes an unused writer to none of the named endpoints, nil when there is none. Others reports whether there is such an endpoint at all.
func (v *view) elsewhere(avoid []control.EndpointID) (w *Writer, others bool) {
	for _, e := range v.endpoints {
		if slices.Contains(avoid, e.id) {
			continue
		}
		others = true
		if w := e.pop(false); w != nil {
			return w, true
		}
	}
	return nil, others
}

// takeTries bounds how often a writer that was chosen may be somebody else's already.
const takeTries = 4

// take chooses an unused writer: the less loaded of two endpoints drawn by weight. O(1), no lock but that endpoint's.
func (p *Pool) take() *Writer {
	v := p.view.Load()
	for range takeTries {
		i := control.Pick(v.View, rand.Uint64(), func(i int) int { return v.endpoints[i].load() })
		if i < 0 {
			return nil
		}
		if w := v.endpoints[i].pop(false); w != nil {
			return w
		}
	}
	return nil
}

// put implements home.
func (p *Pool) put(w *Writer, _ int64) {
	e := w.ep
	w.lastUse.Store(p.coarse.Load())
	e.mu.Lock()
	w.bound = false
	switch {
	case w.dead || w.choice && len(e.free) >= p.set.MaxIdle && !p.hungry():
		w.dead = true
		e.mu.Unlock()
		w.unload()
		p.end(w, control.Aged, telemetry.DiscardIdle)
		return
	case !w.choice:
		e.mu.Unlock()
		w.unload()
		p.tell(report{kind: reportFree, writer: w})
		return
	}
	e.pushLocked(w)
	w.unload()
	e.mu.Unlock()
	if p.hungry() {
		p.match()
	}
}

// hungry reports whether an exchange waits that may take a writer that has served.
func (p *Pool) hungry() bool { return p.waiting.Load() > 0 || p.choosy.Load() > 0 }

// lose implements home.
func (p *Pool) lose(w *Writer, loss control.Loss, d telemetry.Discard) {
	e := w.ep
	e.mu.Lock()
	w.bound, w.dead = false, true
	e.mu.Unlock()
	w.unload()
	p.end(w, loss, d)
}

// end closes a dead, unbound writer and tells the loop.
func (p *Pool) end(w *Writer, loss control.Loss, d telemetry.Discard) {
	p.metrics.Discarded(d)
	_ = w.Conn.Close()
	p.tell(report{kind: reportLost, writer: w, loss: loss})
}

// Reinit builds new generations of all origins, with their names resolved and their certificates read again (SIGHUP). An error says which file cannot be read; the generations are
// built all the same, with what was read before.
func (p *Pool) Reinit() error {
	var first error
	fresh := false
	for _, o := range p.origins {
		if o.tls.Load() == nil {
			continue
		}
		fresh = true
		if err := o.loadTLS(); err != nil && first == nil {
			first = err
		}
	}
	p.tell(report{kind: reportEvent, event: control.Reinit{Group: control.AnyGroup, Reason: control.ReasonSignal, Fresh: fresh}})
	return first
}

// Configure replaces the settings of the control plane. They must be valid.
func (p *Pool) Configure(set control.Settings) {
	p.tell(report{kind: reportEvent, event: control.Configure{Settings: set}})
}

// Drain begins the process's stop: no refill, probe or resolution any more; dials for exchanges of running downloads go on.
func (p *Pool) Drain() { p.tell(report{kind: reportEvent, event: control.Drain{}}) }

// Close ends the pool: every connection is closed, running exchanges are interrupted. It returns when all its goroutines have ended.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.ended
		return
	}
	p.closed = true
	p.mu.Unlock()
	p.failWaiters(func(*waiter) bool { return true }, errClosed)
	p.tell(report{kind: reportStop})
	<-p.ended
}

// tell hands a report to the loop. It never waits for it.
func (p *Pool) tell(r report) {
	p.inMu.Lock()
	p.inbox = append(p.inbox, r)
	p.inMu.Unlock()
	p.nudge()
}

func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Connections returns how many writers are unused, and how many are in an exchange.
func (p *Pool) Connections() (idle, busy int) {
	for _, e := range *p.all.Load() {
		idle += int(e.unused.Load())
		busy += int(e.outstanding.Load())
	}
	return idle, busy
}

// Waiting returns how many exchanges wait for a writer.
func (p *Pool) Waiting() int { return int(p.waiting.Load() + p.choosy.Load() + p.picky.Load()) }

// Status returns the control plane's state as of at most a tick ago. It must not be changed.
func (p *Pool) Status() *control.Snapshot { return p.status.Load() }

// opError dresses a failure of name resolution as one of dialling.
func opError(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

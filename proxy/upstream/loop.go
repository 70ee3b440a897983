package upstream

import (
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// tickEvery is how often the loop looks at unused connections and tells the control plane of the load.
const tickEvery = 250 * time.Millisecond

// report is what other goroutines tell the loop.
type report struct {
	kind   reportKind
	writer *Writer       // free, lost
	loss   control.Loss  // lost
	event  control.Event // event
	id     control.WriterID
	conn   *relay.Conn // dialled
	err    error
	began  time.Duration // of a dial or resolution
}

type reportKind uint8

const (
	reportEvent    reportKind = iota // for the control plane as it is
	reportFree                       // a writer that is not for choice carries nothing any more
	reportLost                       // a writer is closed
	reportDialled                    // a dial ended
	reportResolved                   // a resolution ended; event is its Resolved
	reportStop
)

// loop owns the control plane. Its fields are its goroutine's own.
type loop struct {
	p         *Pool
	c         *control.Control
	registry  map[control.WriterID]*Writer
	endpoints map[control.EndpointID]*endpoint
	resolver  resolver
	demanded  int // as the control plane has it, -1 when that is not known
	stopping  bool
	batch     []report
	poll      []unix.PollFd
	unused    []*Writer
	moved     []control.WriterID
	loads     []control.EndpointLoad
	shown     *control.View
}

// run is the loop. A panic is contained and the loop goes on with the next command and report: what one step did not carry out heals by the levels that the next ones tell.
func (l *loop) run() {
	defer close(l.p.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := monotonic()
	for !l.stopping {
		select {
		case <-l.p.wake:
		case <-timer.C:
		}
		l.contain(func() {
			l.take()
			now := monotonic()
			if l.stopping {
				return
			}
			if now >= next {
				next = now + tickEvery
				l.tick(now)
			} else if at, ok := l.c.Next(); ok && now >= at {
				l.step(control.Tick{})
			}
		})
		at := next
		if t, ok := l.c.Next(); ok {
			at = min(at, t)
		}
		timer.Reset(max(time.Millisecond, at-monotonic()))
	}
	l.p.cancel()
	l.p.wg.Wait()
	l.contain(l.take) // what ended meanwhile is closed
	l.contain(l.bury)
}

func (l *loop) contain(f func()) {
	defer l.contained()
	f()
}

// contained is deferred where a panic ends: what comes behind it goes on.
func (l *loop) contained() {
	if v := recover(); v != nil && l.p.set.OnPanic != nil {
		l.p.set.OnPanic(v, debug.Stack())
	}
}

// take works off what was told, and says how many exchanges wait.
func (l *loop) take() {
	p := l.p
	for {
		p.inMu.Lock()
		l.batch, p.inbox = p.inbox, l.batch[:0]
		p.inMu.Unlock()
		if len(l.batch) == 0 {
			break
		}
		for i := range l.batch {
			l.one(&l.batch[i])
			l.batch[i] = report{}
		}
	}
	l.demand(false)
}

// demand tells the level of exchanges that wait when it changed; repeat tells it anyway while it is above zero.
func (l *loop) demand(repeat bool) {
	n := l.p.Waiting()
	if n == l.demanded && !(repeat && n > 0) {
		return
	}
	l.demanded = n
	l.step(control.Demand{Group: control.AnyGroup, Want: n})
}

// one works off a report. A panic costs none of the others, the end of the pool above all.
func (l *loop) one(r *report) {
	defer l.contained()
	switch r.kind {
	case reportEvent:
		l.step(r.event)
	case reportFree:
		l.freed(r.writer)
	case reportLost:
		if l.forget(r.writer) {
			l.step(control.WriterLost{Writer: r.writer.id, Why: r.loss})
		}
	case reportDialled:
		l.dialled(r)
	case reportResolved:
		l.step(r.event)
		if r.err != nil {
			l.p.hopeless(r.began, opError(r.err))
		}
	case reportStop:
		l.step(control.Stop{})
		l.stopping = true
	}
}

// freed settles a writer that carries nothing any more and is not for choice.
func (l *loop) freed(w *Writer) {
	w.ep.mu.Lock()
	busy := w.bound || w.dead
	w.ep.mu.Unlock()
	if !busy {
		l.step(control.Load{Free: []control.WriterID{w.id}})
	}
}

// forget takes a writer out of the registry; false: it was not there any more.
func (l *loop) forget(w *Writer) bool {
	if l.registry[w.id] != w {
		return false
	}
	delete(l.registry, w.id)
	w.ep.writers--
	return true
}

func (l *loop) dialled(r *report) {
	p := l.p
	p.metrics.Dialled(r.err)
	r.writer.ep.dialling--
	if r.err == nil {
		w := r.writer
		w.Conn = r.conn
		w.lastUse.Store(int64(monotonic()))
		if l.stopping {
			_ = w.Conn.Close()
			return
		}
		l.registry[w.id] = w
		w.ep.writers++
	}
	l.step(control.DialDone{Writer: r.id, Err: r.err})
	if r.err != nil {
		p.hopeless(r.began, r.err)
	}
}

// step takes one event to the control plane, publishes the view that follows, and carries the commands out.
func (l *loop) step(e control.Event) {
	commands := l.c.Step(monotonic(), e)
	for _, o := range commands { // endpoints first: the view may name them
		if o.Do == control.DoDial || o.Do == control.DoProbe {
			l.endpoint(o.Endpoint, o.Group, o)
		}
	}
	l.publish()
	for _, o := range commands {
		l.carryOut(o)
	}
}

func (l *loop) endpoint(id control.EndpointID, group control.GroupID, o control.Command) *endpoint {
	e := l.endpoints[id]
	if e == nil {
		e = &endpoint{id: id, origin: l.p.origins[group], addr: o.Addr}
		l.endpoints[id] = e
		l.list()
	}
	return e
}

// list publishes all endpoints for who counts connections.
func (l *loop) list() {
	all := make([]*endpoint, 0, len(l.endpoints))
	for _, e := range l.endpoints {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *endpoint) int { return int(int64(a.id) - int64(b.id)) })
	l.p.all.Store(&all)
}

// publish makes the control plane's view that of the data plane.
func (l *loop) publish() {
	v := l.c.View()
	if v == l.shown {
		return
	}
	l.shown = v
	next := &view{View: v, endpoints: make([]*endpoint, len(v.Choices))}
	chosen := make(map[*endpoint]bool, len(v.Choices))
	for i, choice := range v.Choices {
		e := l.endpoint(choice.Endpoint, choice.Group, control.Command{Addr: choice.Addr})
		next.endpoints[i] = e
		chosen[e] = true
	}
	for _, e := range l.endpoints {
		e.chosen.Store(chosen[e])
	}
	if l.p.all.Load() == nil {
		l.list()
	}
	last := l.p.view.Swap(next)
	if last == nil || last.Covered != v.Covered || last.Fallback != v.Fallback || len(last.Choices) != len(v.Choices) { // the rest of the state is shown on the tick
		l.show()
	}
	l.p.match() // what became choosable may have unused writers already
}

// show publishes the state for readiness and metrics.
func (l *loop) show() {
	s := l.c.Snapshot()
	l.p.status.Store(&s)
}

// carryOut carries out one command; a panic costs none of the others of its step.
func (l *loop) carryOut(o control.Command) {
	defer l.contained()
	p := l.p
	switch o.Do {
	case control.DoResolve:
		began, origin := monotonic(), p.origins[o.Group]
		l.start(func() { p.tell(l.resolver.resolve(p.ctx, o.Group, origin, began)) },
			report{kind: reportResolved, began: began, event: control.Resolved{Group: o.Group, Answer: control.Unanswered, Cause: "panic"}})
	case control.DoDial:
		l.dial(o)
	case control.DoPromote:
		l.demanded = -1 // it took one off its own count, whoever waits by now
		l.promote(o.Writer)
	case control.DoDemote:
		l.demote(o.Writer)
	case control.DoClose:
		l.closeWriter(o.Writer)
	case control.DoProbe:
		l.probe(o)
	case control.DoActivate, control.DoRetire:
		if p.set.OnGeneration != nil {
			p.set.OnGeneration(p.origins[o.Group].addr, uint64(o.Generation), o.Do == control.DoRetire)
		}
	}
}

// start runs f on a goroutine of its own; when it panics, instead is told, since each order is answered exactly once.
func (l *loop) start(f func(), instead report) {
	p := l.p
	p.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				p.tell(instead)
				if p.set.OnPanic != nil {
					p.set.OnPanic(v, debug.Stack())
				}
			}
		}()
		f()
	})
}

func (l *loop) dial(o control.Command) {
	p, e := l.p, l.endpoints[o.Endpoint]
	w := &Writer{home: p, origin: e.origin, id: o.Writer, ep: e}
	began := monotonic()
	e.dialling++
	r := report{kind: reportDialled, writer: w, id: o.Writer, began: began}
	failed := r
	failed.err = errPanic
	l.start(func() {
		r.conn, r.err = e.origin.connect(p.ctx, e.addr.String(), p.set.DialTimeout, nil)
		p.tell(r)
	}, failed)
}

// promote puts a writer up for choice, or gives it to whoever waits.
func (l *loop) promote(id control.WriterID) {
	w := l.registry[id]
	if w == nil {
		return
	}
	e := w.ep
	e.mu.Lock()
	if w.dead || w.choice {
		e.mu.Unlock()
		return
	}
	w.choice, w.bound = true, true
	e.mu.Unlock()
	fresh := monotonic()-time.Duration(w.lastUse.Load()) < tickEvery // else a reserve, or warmed up: it may be closed, as any that stood
	if e.chosen.Load() && l.p.hand(w, fresh, false) {
		return
	}
	e.mu.Lock()
	w.bound = false
	if w.choice && !w.dead {
		e.pushLocked(w)
	}
	e.mu.Unlock()
	l.p.match()
}

// demote takes a writer out of choice.
func (l *loop) demote(id control.WriterID) {
	w := l.registry[id]
	if w == nil {
		return
	}
	e := w.ep
	e.mu.Lock()
	w.choice = false
	e.dropLocked(w)
	bound := w.bound
	e.mu.Unlock()
	if !bound {
		l.p.tell(report{kind: reportFree, writer: w})
	}
}

// closeWriter closes a writer, whatever it carries: a bound one is interrupted and closed by its exchange.
func (l *loop) closeWriter(id control.WriterID) {
	w := l.registry[id]
	if w == nil {
		return
	}
	e := w.ep
	e.mu.Lock()
	w.choice, w.dead = false, true
	e.dropLocked(w)
	bound := w.bound
	if bound {
		w.Interrupt() // under the lock: its exchange cannot close it meanwhile
	}
	e.mu.Unlock()
	if !bound && l.forget(w) {
		l.p.metrics.Discarded(telemetry.DiscardIdle)
		_ = w.Conn.Close()
	}
}

// tick looks at unused connections and tells the control plane what the data plane did since the last one.
func (l *loop) tick(now time.Duration) {
	l.sweep(now)
	l.loads, l.moved = l.loads[:0], l.moved[:0]
	for _, w := range l.registry {
		if w.moved.Swap(false) {
			w.ep.stirred = true
			w.ep.mu.Lock()
			draining := !w.choice && w.bound
			w.ep.mu.Unlock()
			if draining {
				l.moved = append(l.moved, w.id)
			}
		}
	}
	for _, e := range *l.p.all.Load() {
		l.observe(e)
	}
	l.step(control.Load{Endpoints: l.loads, Complete: true, Moved: l.moved})
	l.demand(true)
	l.step(control.Tick{})
	l.prune()
	l.show()
}

// observe collects what the exchanges of one endpoint said.
func (l *loop) observe(e *endpoint) {
	outstanding := int(e.outstanding.Load())
	peak := int(e.peak.Swap(int32(outstanding)))
	good, server := int(e.good.Swap(0)), int(e.server.Swap(0))
	if outstanding != e.told || peak != outstanding || e.stirred {
		l.loads = append(l.loads, control.EndpointLoad{Endpoint: e.id, Outstanding: outstanding, Peak: max(peak, outstanding), Moved: e.stirred})
		e.told = outstanding
	}
	e.stirred = false
	if good > 0 {
		o := control.Observed{Endpoint: e.id, Successes: good, ServerErrors: server}
		if n := e.latent.Swap(0); n > 0 {
			o.Latency = time.Duration(e.latencies.Swap(0) / n)
		}
		l.step(o)
	}
}

// looksAtTLS bounds how many connections behind TLS are looked into in one tick: each look may take a millisecond.
const looksAtTLS = 32

// sweep finds unused connections that the peer closed, that carry unasked bytes, or that aged out. They are polled without a lock: what one poll says of a connection that
// went to an exchange meanwhile is judged again under it.
func (l *loop) sweep(now time.Duration) {
	l.p.coarse.Store(int64(now))
	l.unused = l.unused[:0]
	for _, w := range l.registry {
		w.ep.mu.Lock()
		if !w.bound && !w.dead {
			l.unused = append(l.unused, w)
		}
		w.ep.mu.Unlock()
	}
	l.poll = pollUnused(l.poll, l.unused)
	looks := 0
	for i, w := range l.unused {
		idle := now - time.Duration(w.lastUse.Load())
		aged := idle > l.p.set.IdleTimeout
		if !aged && (l.poll[i].Revents == 0 || !w.Bare() && looks >= looksAtTLS) {
			continue
		}
		if !w.Bare() && !aged {
			looks++
		}
		l.inspect(w, idle, aged)
	}
	clear(l.unused)
}

// inspect ends an unused writer that is good for nothing any more.
func (l *loop) inspect(w *Writer, idle time.Duration, aged bool) {
	e := w.ep
	e.mu.Lock()
	if w.bound || w.dead {
		e.mu.Unlock()
		return
	}
	w.bound = true
	e.dropLocked(w)
	e.mu.Unlock()
	if !aged && w.Quiet() { // the protocol's own below HTTP, or another socket under the same number
		e.mu.Lock()
		w.bound = false
		if w.choice {
			e.pushLocked(w)
		}
		e.mu.Unlock()
		l.p.match()
		return
	}
	loss, d := control.Aged, telemetry.DiscardIdle
	if !aged {
		loss, d = control.IdleClosed, telemetry.DiscardClosed
		if w.Bare() && w.carries() {
			loss, d = control.Unsolicited, telemetry.DiscardUnsolicited
		}
	}
	e.mu.Lock()
	w.bound, w.dead = false, true
	e.mu.Unlock()
	l.forget(w)
	l.p.metrics.Discarded(d)
	_ = w.Conn.Close()
	l.step(control.WriterLost{Writer: w.id, Why: loss, Idle: idle})
}

// prune forgets endpoints that have no connection and stand in no view.
func (l *loop) prune() {
	gone := false
	for id, e := range l.endpoints {
		if e.writers == 0 && !e.chosen.Load() && e.outstanding.Load() == 0 && e.dialling == 0 {
			delete(l.endpoints, id)
			gone = true
		}
	}
	if gone {
		l.list()
	}
}

// bury closes what is left when the loop ends.
func (l *loop) bury() {
	for _, w := range l.registry {
		l.closeWriter(w.id)
	}
	l.show()
}

var errPanic = errors.New("a defect of the proxy")

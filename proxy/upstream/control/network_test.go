package control

import (
	"net/netip"
	"sort"
	"time"
)

func (w *world) connect(cmd Command) {
	o := w.origins[cmd.Addr]
	n := &conn{id: cmd.Writer, endpoint: cmd.Endpoint, addr: cmd.Addr}
	w.conns[n.id] = n
	d := w.rtt + w.delay()
	if o.hole {
		d = 5 * time.Second
	}
	w.in(d, func() {
		if o.hole || !o.up {
			delete(w.conns, n.id)
			w.step(DialDone{Writer: n.id, Err: errRefused})
			return
		}
		n.open, n.since = true, w.now
		w.step(DialDone{Writer: n.id})
		w.watchIdle(n)
	})
}

// watchIdle lets the origin close a connection that it finds unused for its idle life.
func (w *world) watchIdle(n *conn) {
	o := w.origins[n.addr]
	if o.idleLife == 0 || !n.open {
		return
	}
	w.in(max(time.Millisecond, n.since+o.idleLife-w.now), func() {
		if n.open && n.bound == nil && w.now >= n.since+o.idleLife {
			w.lose(n, IdleClosed)
			return
		}
		if n.bound == nil {
			w.watchIdle(n)
		}
	})
}

// lose ends a connection from the network's side.
func (w *world) lose(n *conn, why Loss) {
	n.open = false
	idle := w.now - n.since
	w.in(w.delay(), func() { w.step(WriterLost{Writer: n.id, Why: why, Idle: idle}) })
	delete(w.conns, n.id)
}

func (w *world) closeNow(id WriterID) {
	n := w.conns[id]
	if n == nil {
		return
	}
	n.open = false
	delete(w.conns, id)
	if n.bound == nil {
		return
	}
	// A Close may be under way while its origin begins to answer again.
	if o := w.origins[n.addr]; !w.stopped && !o.stopped && (o.healed == 0 || w.now > o.healed+2*w.jitter+time.Second) {
		w.t.Fatalf("at %v: writer %d was closed with a healthy exchange\n%s", w.now, id, w.dump())
	}
	w.cut++
	x := n.bound
	w.unbind(n)
	w.again(x)
}

func (w *world) unbind(n *conn) {
	n.bound.conn = nil
	n.bound = nil
	n.since = w.now
	w.bound--
}

// again puts an exchange whose connection broke back to the waiting ones, as U9 does.
func (w *world) again(x *exchange) {
	x.waiting, x.asked = true, w.now
	w.waiting = append(w.waiting, x)
	w.serve()
}

// ask begins an exchange that needs a connection for a time.
func (w *world) ask(length time.Duration) *exchange {
	w.number++
	x := &exchange{number: w.number, length: length, began: w.now, asked: w.now, waiting: true}
	w.waiting = append(w.waiting, x)
	w.serve()
	return x
}

// free returns an unused writer of an endpoint for choice.
func (w *world) free(choice Choice) *conn {
	for i := len(choice.Writers) - 1; i >= 0; i-- {
		if n := w.conns[choice.Writers[i]]; n != nil && n.open && n.promoted && !n.demoted && n.bound == nil {
			return n
		}
	}
	return nil
}

func (w *world) outstanding() map[EndpointID]int {
	sum := map[EndpointID]int{}
	for _, n := range w.conns {
		if n.bound != nil {
			sum[n.endpoint]++
		}
	}
	return sum
}

// serve binds waiting exchanges to free writers.
func (w *world) serve() {
	for len(w.waiting) > 0 {
		v := w.c.View()
		sum := w.outstanding()
		i := Pick(v, w.rng.Uint64(), func(i int) int {
			if w.free(v.Choices[i]) == nil {
				return -1
			}
			return sum[v.Choices[i].Endpoint]
		})
		if i < 0 {
			break
		}
		n := w.free(v.Choices[i])
		x := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.bind(n, x)
		w.peak[n.endpoint] = max(w.peak[n.endpoint], sum[n.endpoint]+1)
	}
	w.demand()
}

func (w *world) bind(n *conn, x *exchange) {
	if n.bound != nil || x.conn != nil {
		w.t.Fatalf("at %v: writer %d is bound twice", w.now, n.id)
	}
	n.bound, x.conn, x.waiting = x, n, false
	w.bound++
	w.latest = max(w.latest, w.now-x.asked)
	o := w.origins[n.addr]
	if w.rng.Float64() < o.fails {
		w.in(w.rtt, func() { w.breakOff(n, x) })
		return
	}
	w.in(x.length, func() { w.end(n, x) })
}

func (w *world) breakOff(n *conn, x *exchange) {
	if n.bound != x || !n.open {
		return
	}
	w.breaks++
	x.breaks++
	w.unbind(n)
	w.lose(n, Broken)
	w.again(x)
}

func (w *world) end(n *conn, x *exchange) {
	if n.bound != x || !n.open {
		return
	}
	o := w.origins[n.addr]
	if o.stopped {
		w.in(time.Second, func() { w.end(n, x) })
		return
	}
	w.done++
	w.unbind(n)
	w.in(w.delay(), func() { w.step(Observed{Endpoint: n.endpoint, Successes: 1, Latency: w.rtt}) })
	if o.oneShot {
		w.lose(n, Spent)
		return
	}
	w.watchIdle(n)
	w.serve()
	if n.demoted && n.bound == nil {
		w.in(w.delay(), w.report)
	}
}

// demand tells the level of waiting exchanges when it changed.
func (w *world) demand() {
	if len(w.waiting) != w.want && !w.stopped {
		w.want = len(w.waiting)
		w.in(w.delay(), func() { w.step(Demand{Group: AnyGroup, Want: len(w.waiting)}) })
	}
}

// report sends the batch of the data plane.
func (w *world) report() {
	l := Load{Complete: true}
	sum := w.outstanding()
	ids := map[EndpointID]bool{}
	for _, n := range w.sorted() {
		ids[n.endpoint] = true
		if n.demoted && n.bound == nil {
			l.Free = append(l.Free, n.id)
		} else if n.demoted && !w.origins[n.addr].stopped {
			l.Moved = append(l.Moved, n.id)
		}
	}
	for id := range w.peak {
		ids[id] = true
	}
	for id := range ids {
		l.Endpoints = append(l.Endpoints, EndpointLoad{Endpoint: id, Outstanding: sum[id], Peak: w.peak[id]})
	}
	sort.Slice(l.Endpoints, func(i, j int) bool { return l.Endpoints[i].Endpoint < l.Endpoints[j].Endpoint })
	for _, n := range w.conns {
		if n.bound != nil && !w.origins[n.addr].stopped {
			for i := range l.Endpoints {
				l.Endpoints[i].Moved = l.Endpoints[i].Moved || l.Endpoints[i].Endpoint == n.endpoint
			}
		}
	}
	clear(w.peak)
	w.step(l)
}

func (w *world) sorted() []*conn {
	out := make([]*conn, 0, len(w.conns))
	for _, n := range w.conns {
		if n.open {
			out = append(out, n)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

func (w *world) tick() {
	if w.stopped {
		return
	}
	w.report()
	if len(w.waiting) > 0 {
		w.step(Demand{Group: AnyGroup, Want: len(w.waiting)})
	}
	w.serve()
}

// kill takes an origin down: its connections break, unused ones close.
func (w *world) kill(a netip.AddrPort) {
	w.origins[a].up = false
	for _, n := range w.sorted() {
		if n.addr != a {
			continue
		}
		if n.bound != nil {
			w.breakOff(n, n.bound)
		} else {
			w.lose(n, IdleClosed)
		}
	}
}

func (w *world) revive(a netip.AddrPort) { w.origins[a].heal(w.now) }

func (o *origin) heal(now time.Duration) { *o = origin{up: true, healed: now} }

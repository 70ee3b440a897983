package upstream

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// endpoint is the data plane's side of one address: its unused writers and what its exchanges say. Its lock is held for a few loads and stores, never over a
// system call.
type endpoint struct {
	id     control.EndpointID
	origin *origin
	addr   netip.AddrPort

	mu   sync.Mutex
	free []*Writer // a stack: the warmest first, so that the others age out

	unused      atomic.Int32 // len(free)
	outstanding atomic.Int32 // exchanges
	peak        atomic.Int32 // highest since the last report
	chosen      atomic.Bool  // it stands in the view

	// Since the last report.
	good, server      atomic.Uint32
	latencies, latent atomic.Int64 // ns, and how many

	// The loop's own.
	told     int  // outstanding as last reported
	writers  int  // in the registry
	dialling int  // being connected
	stirred  bool // bytes moved since the last report
}

// load is the number of exchanges, -1 when it has no unused writer.
func (e *endpoint) load() int {
	if e.unused.Load() == 0 {
		return -1
	}
	return int(e.outstanding.Load())
}

// pop binds the most recently used writer, nil when there is none. Quiet ones do not count as load.
func (e *endpoint) pop(quiet bool) *Writer {
	e.mu.Lock()
	n := len(e.free)
	if n == 0 {
		e.mu.Unlock()
		return nil
	}
	w := e.free[n-1]
	e.free[n-1] = nil
	e.free = e.free[:n-1]
	e.unused.Store(int32(n - 1))
	w.bound = true
	e.mu.Unlock()
	w.load(quiet)
	return w
}

// load begins an exchange on a writer that was bound.
func (w *Writer) load(quiet bool) {
	w.over.Store(false)
	if w.quiet = quiet; !quiet {
		w.ep.enter()
	}
}

// unload ends it.
func (w *Writer) unload() {
	if !w.quiet {
		w.ep.outstanding.Add(-1)
	}
}

// enter counts an exchange.
func (e *endpoint) enter() {
	n := e.outstanding.Add(1)
	for p := e.peak.Load(); n > p && !e.peak.CompareAndSwap(p, n); p = e.peak.Load() {
	}
}

// pushLocked makes a writer choosable.
func (e *endpoint) pushLocked(w *Writer) {
	e.free = append(e.free, w)
	e.unused.Store(int32(len(e.free)))
}

// dropLocked takes a writer out of the unused ones; it reports whether it was there.
func (e *endpoint) dropLocked(w *Writer) bool {
	for i, o := range e.free {
		if o == w {
			copy(e.free[i:], e.free[i+1:])
			e.free[len(e.free)-1] = nil
			e.free = e.free[:len(e.free)-1]
			e.unused.Store(int32(len(e.free)))
			return true
		}
	}
	return false
}

// heard counts a response head. Began is when its exchange did, 0 when unknown.
func (e *endpoint) heard(status int, began time.Duration) {
	e.good.Add(1)
	if status >= 500 {
		e.server.Add(1)
	}
	if began > 0 {
		e.latencies.Add(int64(monotonic() - began))
		e.latent.Add(1)
	}
}

// start of the process's monotonic clock.
var start = time.Now()

// monotonic is the time of the pool: since the process began, never 0.
func monotonic() time.Duration { return time.Since(start) + 1 }

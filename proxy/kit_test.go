package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// patience is how long a test waits for an event that must come.
const patience = 20 * time.Second

// twoTicks is the time within which a departed client must have left no trace, with room for a busy machine that runs the race detector.
const twoTicks = 2 * (front.Tick + queue.TickEvery)

// eventually polls a condition until it holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

// within looks that often that the limit is over on a machine with time for it; one that is too busy to look has had no time for what is looked for either.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	const every = 2 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for looks := limit / every; !ok(); looks-- {
		if looks <= 0 {
			t.Fatalf("not within %v: %s", limit, what)
		}
		<-tick.C
	}
}

var hosts atomic.Int32

// ownHost returns an address of loopback, with port 0, that no other test listens at: a port of 127.0.0.1 that was closed is soon that of another test beside this one.
func ownHost() string {
	n := hosts.Add(1)
	return fmt.Sprintf("127.77.%d.%d:0", n>>8&255, n&255)
}

// vacant returns an address at which nobody listens, and nobody will but the caller.
func vacant(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", ownHost())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// record is a log that may be read while it is written.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// bench is one proxy that serves on loopback.
type bench struct {
	t    *testing.T
	p    *Proxy
	addr string
	log  *record

	ended  chan struct{} // Serve has returned
	closed bool
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// settings are small times and small thresholds: a session is an object above 256 KiB, a place is needed above 64 KiB.
func settings(upstream string) Settings {
	u, err := url.Parse(upstream)
	if err != nil {
		panic(err)
	}
	gate := admission.Settings{Capacity: 8, PerPrincipal: 8, WaitLimit: 64, WaitPerPrincipal: 64, Timeout: 10 * time.Second}
	policy := queue.DefaultPolicy(2)
	policy.SessionMinBytes = 256 * kib
	policy.SessionsElastic = 0   // so that tests may change the slots alone
	policy.IdleFor = time.Second // a session whose upstream broke keeps its slot that long
	return Settings{
		Upstreams: []*url.URL{u}, Pool: plainPool(), DialTimeout: 5 * time.Second, ResponseTimeout: 30 * time.Second, UpstreamIdle: 30 * time.Second, UpstreamMaxIdle: 64,
		UpstreamMaxOpen: 1024, MaxRequests: 1024, MaxConnections: 4096, MaxHeaderBytes: 16 * kib, HeaderTimeout: 30 * time.Second,
		ClientIdle: 30 * time.Second, StallTimeout: 30 * time.Second, Uploads: gate, Downloads: gate, UploadIdleTimeout: 30 * time.Second,
		UploadDeadline: 60 * time.Second, AdmissionMinBytes: 64 * kib, Policy: policy,
		Hold: 20 * time.Second, HoldLimit: 256, CacheEntries: 1024, CacheLife: time.Minute, Version: "test",
	}
}

// start serves before the origin until the test ends; then the proxy must end cleanly and hold nothing.
func start(t *testing.T, upstream string, change func(*Settings)) *bench {
	t.Helper()
	set := settings(upstream)
	b := &bench{t: t, log: &record{}, ended: make(chan struct{})}
	set.Log = zerolog.New(b.log)
	if change != nil {
		change(&set)
	}
	p, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	b.p = p
	b.serve()
	// The first look at the origin is over: its connection is idle, or why there is none is known.
	eventually(t, "the origin was looked at", func() bool { return b.unused() > 0 || p.upstreamCause() != "" })
	return b
}

// unused is the number of upstream connections without an exchange.
func (b *bench) unused() int {
	idle, _ := b.p.pool.Connections()
	return idle
}

// plainPool keeps one ready connection and makes no requests of its own, so that origins can count what they see.
func plainPool() control.Settings {
	set := control.Default(2)
	set.FloorMode, set.FloorStatic, set.Shadow, set.Silent = control.Static, 1, 0, 0
	return set
}

func (b *bench) serve() {
	b.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	go func() {
		defer close(b.ended)
		if err := b.p.Serve(ln); err != nil {
			b.t.Errorf("serve: %v", err)
		}
	}()
	b.t.Cleanup(b.close)
}

// close ends the proxy as an operator would and looks at what is left.
func (b *bench) close() {
	if b.closed {
		return
	}
	b.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.p.Shutdown(ctx); err != nil {
		b.t.Errorf("shutdown: %v", err)
	}
	<-b.ended
	left := b.left()
	left.Active = 0 // a session between two responses keeps its slot for the idle time: no tick ends it after a stop
	if left != (traces{}) {
		b.t.Errorf("after shutdown: %+v", left)
	}
	if err := b.p.queue.CheckInvariants(); err != nil {
		b.t.Errorf("queue: %v", err)
	}
}

// cut is Shutdown with a deadline that has passed: what still runs is cut.
func (b *bench) cut() {
	b.closed = true
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.p.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		b.t.Errorf("shutdown past its deadline: %v", err)
	}
	<-b.ended
	if left := b.left(); left != (traces{}) {
		b.t.Errorf("after a cut: %+v", left)
	}
}

// traces are what a client may leave behind (Q19, acceptance 2.7).
type traces struct {
	InFlight, Active, Waiting, Held         int
	UpActive, UpWaiting, DownActive, DownWt int
	PaceUp, PaceDown, Busy, Looking         int
}

func (b *bench) left() traces {
	q, u, d := b.p.queue.Snapshot(), b.p.up.Snapshot(), b.p.down.Snapshot()
	_, busy := b.p.upstreamConnections()
	return traces{InFlight: b.p.Busy(), Active: q.ActiveTotal(), Waiting: q.WaitingTotal(), Held: q.Held, UpActive: u.Active, UpWaiting: u.Waiting,
		DownActive: d.Active, DownWt: d.Waiting, PaceUp: b.p.upGov.Snapshot().Waiting, PaceDown: b.p.downGov.Snapshot().Waiting, Busy: busy, Looking: int(b.p.looking.Load())}
}

// quiet waits until nothing is left of any request but waiting sessions of refused clients, which keep their places by rule (X1b).
func (b *bench) quiet(limit time.Duration) {
	b.t.Helper()
	var left traces
	within(b.t, limit, "nothing left of the requests", func() bool {
		left = b.left()
		left.Waiting = 0
		return left == traces{}
	})
}

// metric returns the page's line of a series.
func (b *bench) metric(series string) string {
	b.t.Helper()
	var page bytes.Buffer
	if _, err := b.p.Metrics().WriteTo(&page); err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(page.String()) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	b.t.Fatalf("no series %s", series)
	return ""
}

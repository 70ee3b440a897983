package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
)

// faulty is the proxy with a defect that shows in the request of that target: the handler of the front is wrapped, the product has no hook for this.
type faulty struct {
	*Proxy
	broken *Proxy // shares everything but one room, which is missing
	upload *Proxy // shares everything but a budget whose clock is broken
}

// brokenClock panics once it is asked again.
type brokenClock struct {
	bucket.Clock
	asked atomic.Bool
}

func (c *brokenClock) Now() time.Duration {
	if c.asked.Swap(true) {
		panic("injected in the uploader")
	}
	return c.Clock.Now()
}

func (f *faulty) ServeRequest(c *front.Conn) bool {
	x := f.exchangeOf(c)
	x.p = f.Proxy
	switch string(c.Req.Target) {
	case "/none/1000000": // with slot and upstream connection, before the answer
		x.p = f.broken
	case "/upload": // on the uploader's goroutine
		x.p = f.upload
	case "/body/1000000": // in the middle of the body
		x.sentFn = func(int64) { panic("injected in the body") }
	}
	return x.p.ServeRequest(c)
}

func startFaulty(t *testing.T, o *origin) *bench {
	set := settings(o.url())
	set.DownloadTotal = bucket.Limit{BytesPerSecond: 64 * mib}
	set.UploadTotal = bucket.Limit{BytesPerSecond: 64 * mib}
	b := &bench{t: t, log: &record{}, ended: make(chan struct{})}
	set.Log = set.Log.Output(b.log)
	p, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	b.p = p
	old := p.front
	twin := func(up, down *bucket.Governor) *Proxy {
		q := &Proxy{set: p.set, log: p.log, front: p.front, pool: p.pool, ids: p.ids, clients: p.clients, objects: p.objects, queue: p.queue, up: p.up,
			down: p.down, upGov: up, downGov: down, metrics: p.metrics}
		q.outPool.New = p.outPool.New
		return q
	}
	faulty := &faulty{Proxy: p, broken: twin(p.upGov, nil),
		upload: twin(bucket.NewGovernor(bucket.Limit{BytesPerSecond: mib}, bucket.Limit{}, &brokenClock{Clock: bucket.SystemClock()}), p.downGov)}
	p.front = front.New(front.Settings{MaxConnections: 64, MaxHeaderBytes: 16 * kib, HeaderTimeout: patience, IdleTimeout: patience, StallTimeout: patience,
		OnTick: func(time.Duration) { p.tick(p.queue.Now()) }}, faulty)
	if err := old.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.serve()
	return b
}

func TestQ19_PanicIsContainedAndEverythingReleased(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := startFaulty(t, o)
	c := b.dial().get("/none/1000000")
	if a := c.ok(500); a.reason(t) != "panic" || !a.Close {
		t.Errorf("%s, close %v", a.body, a.Close)
	}
	c.atEnd()
	b.quiet(twoTicks)

	c = b.dial().get("/body/1000000")
	if resp, err := http.ReadResponse(c.br, nil); err == nil {
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("a whole body of %d bytes", n)
		}
	}
	b.quiet(twoTicks)
	c = b.dial().send(request("PUT", "/upload", "Content-Length: 100000") + strings.Repeat("x", 100000))
	if a := c.ok(500); a.reason(t) != "panic" || !a.Close {
		t.Errorf("%s, close %v", a.body, a.Close)
	}
	c.close()
	b.quiet(twoTicks)
	if n := b.metric("arkvory_panics_total"); n != "3" {
		t.Errorf("%s panics", n)
	}
	if n := strings.Count(b.log.String(), "contained a panic"); n != 3 {
		t.Errorf("%d lines of log:\n%s", n, b.log.String())
	}
	if a := b.once("GET", "/fine/1000000"); a.StatusCode != 200 || len(a.body) != 1000000 {
		t.Errorf("what follows: %d, %d bytes", a.StatusCode, len(a.body))
	}
	b.quiet(patience)
}

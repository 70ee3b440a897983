package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/queue/admission"
)

// store is an origin with objects of the size in their path, /<kind>/<bytes>; it answers HEAD and writes GET bodies as the proxy takes them.
func store(t *testing.T) *origin {
	block := strings.Repeat("0123456789abcdef", 4*kib)
	return newOrigin(t, func(k *call) {
		if k.method == "PUT" {
			k.body()
			k.reply(201, "", "")
			return
		}
		if k.target == "/chunked" {
			k.send("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
			return
		}
		var size int
		if _, err := fmt.Sscanf(k.target[strings.LastIndexByte(k.target, '/')+1:], "%d", &size); err != nil {
			k.reply(404, "", "none")
			return
		}
		first, last := 0, size-1
		status, extra := 200, ""
		if r := k.field("Range"); r != "" && k.method == "GET" {
			if suffix, ok := strings.CutPrefix(r, "bytes=-"); ok {
				n, _ := strconv.Atoi(suffix)
				first = size - n
			} else if n, _ := fmt.Sscanf(r, "bytes=%d-%d", &first, &last); n < 1 || first >= size {
				k.reply(416, fmt.Sprintf("Content-Range: bytes */%d\r\n", size), "")
				return
			}
			last = min(last, size-1)
			status, extra = 206, fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", first, last, size)
		}
		if !k.send(fmt.Sprintf("HTTP/1.1 %d X\r\nETag: \"v1\"\r\n%sContent-Length: %d\r\n\r\n", status, extra, last-first+1)) || k.method == "HEAD" {
			return
		}
		for n := last - first + 1; n > 0; n -= len(block) {
			if !k.send(block[:min(n, len(block))]) {
				return
			}
		}
	})
}

func TestP6_ClientLeavesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, leave := range []func(*client){(*client).close, (*client).reset} {
		cut := make(chan struct{})
		o := newOrigin(t, func(k *call) { k.closed(); close(cut) })
		b := start(t, o.url(), nil)
		c := b.dial().get("/slow")
		eventually(t, "the request is there", func() bool { return o.count("GET") == 1 })
		leave(c)
		<-cut
		b.quiet(twoTicks)
		if n := b.metric(`arkvory_client_errors_total{reason="client_gone"}`); n != "1" {
			t.Errorf("client_gone %s", n)
		}
	}
}

func TestP6_ClientLeavesInMidBody(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	c := b.dial().get("/o/1000000000")
	resp := c.begin("GET")
	if _, err := io.CopyN(io.Discard, resp.Body, mib); err != nil {
		t.Fatal(err)
	}
	if a := b.left().Active; a != 1 {
		t.Errorf("%d sessions are active", a)
	}
	c.close()
	b.quiet(twoTicks)
	eventually(t, "the upstream connection is closed", func() bool { return o.open() <= b.unused() })
}

func TestP6_P8_TLSClientLeavesWhileHeld(t *testing.T) {
	t.Parallel()
	pair, pool, _, _ := authority(t)
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} })
	g, _ := b.p.queue.Admit(holding())
	defer g.Abandon()
	c := b.dialTLS(pool).get("/b/1000000")
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
	c.close()
	within(t, twoTicks, "it has left", func() bool { return b.left().Held == 0 && b.p.front.Open() == 0 })
}

// TestP6_Q11_ClientLeavesWhileHeld also shows that the next one in the queue gets the slot.
func TestP6_Q11_ClientLeavesWhileHeld(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { s.Policy.Sessions, s.Policy.PerPrincipal = 1, 1 })
	first := b.dial().get("/a/1000000000")
	first.begin("GET")
	second := b.dial().get("/b/1000000000")
	eventually(t, "the second one is held", func() bool { return b.left().Held == 1 })
	third := b.dial().get("/c/1000000")
	eventually(t, "both are held", func() bool { return b.left().Held == 2 })
	second.reset()
	within(t, twoTicks, "the second one has left", func() bool { return b.left().Held == 1 })
	first.close()
	if a := third.ok(200); len(a.body) != 1000000 {
		t.Errorf("%d bytes", len(a.body))
	}
	if n := o.count("GET /b"); n != 0 {
		t.Errorf("%d GETs of the one that left", n)
	}
	b.quiet(patience)
}

func TestP6_A1_ClientLeavesWhileItWaitsForAPlace(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		one := admission.Settings{Capacity: 1, PerPrincipal: 1, WaitLimit: 8, WaitPerPrincipal: 8, Timeout: patience}
		s.Downloads, s.Uploads = one, one
		s.DownloadTotal = bucket.Limit{BytesPerSecond: bucket.MinBytesPerSecond}
	})
	down := b.dial().get("/a/200000")
	down.begin("GET")
	up := b.dial().send(request("PUT", "/up", "Content-Length: 10") + "half ")
	eventually(t, "both places are taken", func() bool { l := b.left(); return l.DownActive == 1 && l.UpActive == 1 })
	w1, w2 := b.dial().get("/b/200000"), b.dial().send(request("PUT", "/up2", "Content-Length: 2")+"hi")
	eventually(t, "both wait", func() bool { l := b.left(); return l.DownWt == 1 && l.UpWaiting == 1 })
	w1.close()
	w2.reset()
	within(t, twoTicks, "nobody waits", func() bool { l := b.left(); return l.DownWt == 0 && l.UpWaiting == 0 })
	down.close()
	up.close()
	b.quiet(patience)
	if n := o.count("PUT /up2"); n != 0 {
		t.Error("the upload of the one that left reached the origin")
	}
}

func TestP6_ClientLeavesInMidUpload(t *testing.T) {
	t.Parallel()
	for _, framing := range []string{"Content-Length: 100000", "Transfer-Encoding: chunked"} {
		cut := make(chan struct{})
		o := newOrigin(t, func(k *call) { k.closed(); close(cut) })
		b := start(t, o.url(), nil)
		c := b.dial().send(request("PUT", "/f", framing) + "400\r\n" + strings.Repeat("x", 1024))
		eventually(t, "the upload has begun", func() bool { return o.count("PUT") == 1 })
		c.close()
		<-cut
		b.quiet(twoTicks)
	}
}

// TestP6_Q19_ManyVanish is acceptance 2.7: 200 clients that vanish at random points, active, held, waiting and paced.
func TestP6_Q19_ManyVanish(t *testing.T) {
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		s.Policy.Sessions, s.Policy.PerPrincipal = 8, 8
		s.DownloadTotal, s.UploadTotal = bucket.Limit{BytesPerSecond: 8 * mib}, bucket.Limit{BytesPerSecond: mib}
		s.Downloads = admission.Settings{Capacity: 4, PerPrincipal: 4, WaitLimit: 64, WaitPerPrincipal: 64, Timeout: patience}
		s.HoldLimit = 100
	})
	gate := make(chan struct{})
	var ready, wg sync.WaitGroup
	for i := range 200 {
		random := rand.New(rand.NewPCG(27, uint64(i)))
		c := b.dial()
		ready.Add(1)
		wg.Go(func() {
			point := random.IntN(6)
			switch point {
			case 0: // before anything
			case 1:
				_, _ = io.WriteString(c.conn, "GET /half HTTP/1.1\r\nHo")
			case 2, 3: // sessions, most of them held
				_, _ = io.WriteString(c.conn, request("GET", fmt.Sprintf("/s%d/50000000", i)))
			case 4: // places
				_, _ = io.WriteString(c.conn, request("GET", fmt.Sprintf("/p%d/200000", i)))
			case 5:
				_, _ = io.WriteString(c.conn, request("PUT", "/u", "Content-Length: 5000000")+strings.Repeat("u", 20000))
			}
			if point >= 2 && random.IntN(2) == 0 { // some see a part of their answer first; who waits sees none
				_ = c.conn.SetReadDeadline(time.Now().Add(time.Duration(random.IntN(400)) * time.Millisecond))
				_, _ = io.CopyN(io.Discard, c.conn, int64(random.IntN(200000)))
			}
			ready.Done()
			if random.IntN(2) == 0 {
				<-gate // the others are there to the end
			}
			if random.IntN(2) == 0 {
				c.close()
			} else {
				c.reset()
			}
		})
	}
	ready.Wait()
	close(gate)
	wg.Wait()
	began := time.Now()
	b.quiet(twoTicks)
	t.Logf("nothing left %v after the last one", time.Since(began).Round(time.Millisecond))
	within(t, twoTicks, "no client connection", func() bool { return b.p.front.Open() == 0 })
	within(t, twoTicks, "no connection busy at the origin", func() bool { return o.open() <= b.unused()+1 })
	if n := b.metric("arkvory_panics_total"); n != "0" {
		t.Errorf("%s panics", n)
	}
}

package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/queue/admission"
)

func TestP10_MaxRequests(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	o := newOrigin(t, func(k *call) { <-release; k.reply(200, "", "ok") })
	b := start(t, o.url(), func(s *Settings) { s.MaxRequests = 2 })
	c1, c2 := b.dial().get("/1"), b.dial().get("/2")
	eventually(t, "two are there", func() bool { return len(o.requests()) == 2 })
	c3 := b.dial()
	for range 2 {
		if a := c3.get("/3").ok(503); a.reason(t) != "too_many_requests_in_flight" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s %v", a.body, a.Header)
		}
	}
	close(release)
	c1.ok(200)
	c2.ok(200)
	b.quiet(patience)
	c3.get("/3").ok(200) // the same connection goes on
}

func TestP10_HeadLimits(t *testing.T) {
	t.Parallel()
	o, _ := seen(t)
	b := start(t, o.url(), func(s *Settings) { s.HeaderTimeout = 2 * front.Tick })
	slow := b.dial().send("GET / HTTP/1.1\r\nHos")
	giant := b.dial().send("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 17*kib))
	if a := giant.ok(431); a.reason(t) != "header_too_large" || !a.Close {
		t.Errorf("%s", a.body)
	}
	giant.atEnd()
	if a := slow.ok(408); a.reason(t) != "header_timeout" || !a.Close {
		t.Errorf("%s", a.body)
	}
	slow.atEnd()
	fits := b.dial().get("/", "X: "+strings.Repeat("x", 12*kib))
	fits.ok(200)
	if n := len(o.requests()); n != 1 {
		t.Errorf("%d requests reached the origin", n)
	}
}

func TestP10_IdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	o, _ := seen(t)
	b := start(t, o.url(), func(s *Settings) { s.ClientIdle = 2 * front.Tick })
	fresh, used := b.dial(), b.dial()
	used.get("/").ok(200)
	fresh.atEnd()
	used.atEnd()
	eventually(t, "no connection", func() bool { return b.p.front.Open() == 0 })
}

func TestP10_MaxConnections(t *testing.T) {
	t.Parallel()
	o, _ := seen(t)
	b := start(t, o.url(), func(s *Settings) { s.MaxConnections = 2 })
	c1, c2 := b.dial(), b.dial()
	c1.get("/").ok(200)
	c2.get("/").ok(200)
	over := b.dial()
	if a := over.ok(503); a.reason(t) != "too_many_connections" || a.Header.Get("Retry-After") != "2" || !a.Close {
		t.Errorf("%s %v", a.body, a.Header)
	}
	over.atEnd()
	c1.close()
	eventually(t, "a place is free", func() bool { return b.p.front.Open() == 1 })
	b.dial().get("/").ok(200)
}

func TestP10_StalledDownloadIsCut(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { s.StallTimeout = 3 * front.Tick })
	c := b.dial().get("/a/1000000000")
	eventually(t, "it is cut", func() bool { return b.left().Busy == 0 && o.count("GET") == 1 && b.p.Busy() == 0 })
	if a := c.answer(); a.err == nil {
		t.Errorf("a whole body of %d bytes", len(a.body))
	}
	if n := b.metric(`arkvory_client_errors_total{reason="stalled"}`); n != "1" {
		t.Errorf("stalled %s", n)
	}
}

func TestA4_SilentSenderIs408(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"} {
		o := newOrigin(t, func(k *call) { k.closed() })
		b := start(t, o.url(), func(s *Settings) { s.UploadIdleTimeout = 2 * front.Tick })
		c := b.dial().send("PUT /f HTTP/1.1\r\nHost: a\r\n" + body)
		if a := c.ok(408); a.reason(t) != "upload_idle" || !a.Close {
			t.Errorf("%s", a.body)
		}
		c.close()
		b.quiet(patience)
	}
}

// TestA4_PausesOfOthersAreNoSilence holds the sender's clock while the budget, the upstream or its word on Expect is waited for.
func TestA4_PausesOfOthersAreNoSilence(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 200000)
	pause := func() { <-time.After(5 * front.Tick) }
	o := newOrigin(t, func(k *call) {
		switch k.target {
		case "/expect":
			pause()
			k.send("HTTP/1.1 100 Continue\r\n\r\n")
		case "/reading":
			pause()
		}
		got := k.body()
		if k.target == "/answer" {
			pause()
		}
		if got != big {
			k.o.t.Errorf("%s: %d bytes", k.target, len(got))
		}
		k.reply(201, "", "")
	})
	b := start(t, o.url(), func(s *Settings) {
		s.UploadIdleTimeout = 2 * front.Tick
		s.UploadTotal = bucket.Limit{BytesPerSecond: 2 * bucket.MinBytesPerSecond} // 200 kB take 1.5 s
	})
	for _, target := range []string{"/paced", "/reading", "/answer", "/expect"} {
		fields := []string{"Content-Length: 200000"}
		if target == "/expect" {
			fields = append(fields, "Expect: 100-continue")
		}
		c := b.dial().send(request("PUT", target, fields...))
		if target == "/expect" {
			if h := c.head(); !strings.HasPrefix(h, "HTTP/1.1 100") {
				t.Errorf("%s: %q", target, h)
				continue
			}
		}
		c.send(big).ok(201)
	}
}

func TestA4_UpstreamThatNeverSays100HoldsNoPlace(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) { k.closed() })
	b := start(t, o.url(), func(s *Settings) { s.UploadIdleTimeout, s.ResponseTimeout = front.Tick, 2*front.Tick })
	c := b.dial().send(request("PUT", "/f", "Content-Length: 5", "Expect: 100-continue"))
	if a := c.ok(408); a.reason(t) != "upload_idle" {
		t.Errorf("%s", a.body)
	}
	b.quiet(patience)
}

func TestA4_DeadlineOfTheWholeUpload(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) { k.closed() })
	b := start(t, o.url(), func(s *Settings) { s.UploadDeadline = 4 * front.Tick })
	c := b.dial().send(request("PUT", "/f", "Content-Length: 1000000"))
	tick := time.NewTicker(front.Tick / 4)
	defer tick.Stop()
	stop := make(chan struct{})
	dripped := make(chan struct{})
	go func() { // never silent, never done
		defer close(dripped)
		for {
			select {
			case <-tick.C:
				if _, err := io.WriteString(c.conn, "x"); err != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	if a := c.ok(408); a.reason(t) != "upload_deadline" || !a.Close {
		t.Errorf("%s", a.body)
	}
	close(stop)
	<-dripped
	c.close()
	b.quiet(patience)

	// the body is there, the origin thinks: the deadline holds for that too
	c = b.dial().send(request("PUT", "/g", "Content-Length: 200000") + strings.Repeat("x", 200000))
	if a := c.ok(504); a.reason(t) != "upstream_timeout" {
		t.Errorf("%s", a.body)
	}
}

func TestA4_ResponseOutlivesTheLimitOnItsHead(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) { // the head comes before the upload has ended, the body long after
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
		k.body()
		<-time.After(5 * front.Tick)
		k.send("cd")
	})
	b := start(t, o.url(), func(s *Settings) { s.ResponseTimeout = 2 * front.Tick })
	c := b.dial().send(request("PUT", "/f", "Content-Length: 20") + "0123456789")
	resp := c.begin("PUT")
	c.send("0123456789")
	if body, err := io.ReadAll(resp.Body); string(body) != "abcd" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

func TestA1_UploadPlacesAndRefusal(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	o := newOrigin(t, func(k *call) { k.body(); <-release; k.reply(201, "", "") })
	b := start(t, o.url(), func(s *Settings) {
		s.Uploads = admission.Settings{Capacity: 1, PerPrincipal: 1, WaitLimit: 1, WaitPerPrincipal: 1, Timeout: 4 * front.Tick}
	})
	first := b.dial().send(request("DELETE", "/a")) // body-less operations count too
	eventually(t, "the place is taken", func() bool { return b.left().UpActive == 1 })
	second := b.dial().send(request("PUT", "/b", "Content-Length: 3", "Expect: 100-continue"))
	eventually(t, "the second one waits", func() bool { return b.left().UpWaiting == 1 })
	third := b.dial().send(request("PUT", "/c", "Content-Length: 1000", "Expect: 100-continue"))
	if a := third.ok(503); a.reason(t) != "queue_full" || a.Header.Get("Retry-After") == "" || !a.Close {
		t.Errorf("%s, close %v", a.body, a.Close)
	}
	if a := second.ok(503); a.reason(t) != "busy" { // held before any 100, then refused (X1a)
		t.Errorf("%s", a.body)
	}
	close(release)
	first.ok(201)
	b.quiet(patience)
	if n := o.count("PUT"); n != 0 {
		t.Errorf("%d refused uploads reached the origin", n)
	}
}

func TestA3_SmallResponsesNeedNoPlace(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		s.Downloads = admission.Settings{Capacity: 1, PerPrincipal: 1, WaitLimit: 0, WaitPerPrincipal: 0, Timeout: patience}
		s.DownloadTotal = bucket.Limit{BytesPerSecond: bucket.MinBytesPerSecond}
	})
	slow := b.dial().get("/a/200000")
	slow.begin("GET")
	if a := b.once("GET", "/chunked"); a.StatusCode != 503 || a.reason(t) != "queue_full" { // O3: of unknown length
		t.Errorf("unknown length: %d %s", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/b/1000"); a.StatusCode != 200 || len(a.body) != 1000 {
		t.Errorf("small: %d", a.StatusCode)
	}
	if a := b.once("GET", "/b/200000"); a.StatusCode != 503 || a.reason(t) != "queue_full" {
		t.Errorf("large: %d %s", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/b/nothing"); a.StatusCode != 404 {
		t.Errorf("404: %d", a.StatusCode)
	}
	slow.close()
	b.quiet(patience)
}

// TestP3_BackpressureBothWays: who does not read stops who sends, within what kernels queue.
func TestP3_BackpressureBothWays(t *testing.T) {
	t.Parallel()
	const most = 64 * mib // far more than all queues on the way, far less than the body
	sent := make(chan int64, 1)
	block := strings.Repeat("0", 64*kib)
	fill := func(w net.Conn) (n int64) {
		for n < most {
			_ = w.SetWriteDeadline(time.Now().Add(time.Second))
			m, err := io.WriteString(w, block)
			n += int64(m)
			if err != nil {
				return n
			}
		}
		return n
	}
	o := newOrigin(t, func(k *call) {
		if k.method == "PUT" { // reads nothing until the client is stuck
			<-sent
			k.closed()
			return
		}
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
		sent <- fill(k.conn)
		k.over = true
	})
	b := start(t, o.url(), nil)
	c := b.dial().get("/big")
	if n := <-sent; n >= most {
		t.Errorf("the origin could send %d bytes to a client that does not read", n)
	}
	c.close()
	up := b.dial().send(request("PUT", "/big", "Content-Length: 1000000000"))
	if n := fill(up.conn); n >= most {
		t.Errorf("the client could send %d bytes to an origin that does not read", n)
	}
	up.close()
	sent <- 0
	b.quiet(patience)
}

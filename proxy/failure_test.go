package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/front"
)

func TestP7_PostMeetsAStaleConnectionOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, body string
		tries        int // at the origin, the first request not counted
		status       int
	}{
		{"POST", "Content-Length: 2\r\n\r\nhi", 1, 502},
		{"PATCH", "Content-Length: 2\r\n\r\nhi", 1, 502},
		{"GET", "\r\n", 2, 200},
		{"PUT", "Content-Length: 2\r\n\r\nhi", 2, 200}, // body whole in memory
		{"DELETE", "\r\n", 2, 200},
	} {
		o := newOrigin(t, func(k *call) {
			k.body()
			if k.n == 2 { // the connection was open when the request was sent: nobody can know that it is stale
				k.over = true
				return
			}
			k.reply(200, "", "ok")
		})
		b := start(t, o.url(), nil)
		b.once("GET", "/warm")
		eventually(t, "an idle connection", func() bool { return b.unused() == 1 })
		conn := b.dial().send(c.method + " /x HTTP/1.1\r\nHost: a\r\n" + c.body)
		a := conn.answer()
		if a.StatusCode != c.status || o.count(c.method+" /x") != c.tries {
			t.Errorf("%s: %d after %d tries, want %d after %d", c.method, a.StatusCode, o.count(c.method+" /x"), c.status, c.tries)
		}
		if c.status == 502 && a.reason(t) != "upstream_broken" {
			t.Errorf("%s: %s", c.method, a.body)
		}
	}
}

func TestP7_FreshConnectionThatBreaksIsNotRetried(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) { k.over = true })
	b := start(t, o.url(), nil)
	if a := b.once("GET", "/x"); a.StatusCode != 502 || a.reason(t) != "upstream_broken" || o.count("GET /x") != 1 {
		t.Errorf("%d %s after %d tries", a.StatusCode, a.body, o.count("GET /x"))
	}
}

func TestP7_ClosedIdleConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) { k.body(); k.reply(200, "", "ok"); k.over = k.n == 1 })
	b := start(t, o.url(), nil)
	for i := range 5 {
		size := 2 + i%2*100000 // in memory whole, or not
		c := b.dial().send(request("POST", "/x", fmt.Sprintf("Content-Length: %d", size)) + strings.Repeat("x", size))
		c.ok(200)
		want := i + 1
		if n := o.count("POST"); n != want {
			t.Fatalf("%d POSTs at the origin, want %d", n, want)
		}
		c.close()
		eventually(t, "the origin has closed", func() bool { return o.open() == 0 })
	}
}

func TestP7_RetryStopsWhenAnythingOfTheResponseWasSeen(t *testing.T) {
	t.Parallel()
	for _, start1 := range []string{"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", "HTTP/1.1 2"} {
		o := newOrigin(t, func(k *call) {
			if k.target == "/warm" {
				k.reply(200, "", "")
				return
			}
			k.send(start1)
			k.over = true
		})
		b := start(t, o.url(), nil)
		b.once("GET", "/warm")
		c := b.dial().get("/x")
		if strings.Contains(start1, "103") {
			if h := c.head(); !strings.HasPrefix(h, "HTTP/1.1 103") {
				t.Fatalf("head %q", h)
			}
		}
		if a := c.answer(); a.StatusCode != 502 || o.count("GET /x") != 1 {
			t.Errorf("%q: %d after %d tries", start1, a.StatusCode, o.count("GET /x"))
		}
	}
}

func TestP7_UnaskedBytesNeverReachAnotherClient(t *testing.T) {
	t.Parallel()
	poison := "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	release, sent := make(chan struct{}), make(chan struct{})
	o := newOrigin(t, func(k *call) {
		switch k.target {
		case "/together":
			k.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + poison)
		case "/later":
			k.reply(200, "", "ok")
			<-release
			k.send(poison)
			close(sent)
		case "/head":
			k.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
		case "/304":
			k.send("HTTP/1.1 304 X\r\nContent-Length: 6\r\n\r\npoison")
		default:
			k.reply(200, "", "clean")
		}
	})
	b := start(t, o.url(), nil)
	for _, c := range []struct{ method, target string }{{"GET", "/together"}, {"GET", "/later"}, {"HEAD", "/head"}, {"GET", "/304"}} {
		b.once(c.method, c.target)
		if c.target == "/later" {
			close(release)
			<-sent
		}
		for range 3 {
			if a := b.once("GET", "/clean"); a.body != "clean" {
				t.Fatalf("after %s: the next client got %q", c.target, a.body)
			}
		}
	}
}

func TestP7_ReasonsOfAnUpstreamThatFails(t *testing.T) {
	t.Parallel()
	b := start(t, "http://"+vacant(t), nil)
	c := b.dial()
	for range 2 { // and the client's connection survives
		if a := c.get("/").ok(502); a.reason(t) != "upstream_unreachable" || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s", a.body)
		}
	}
	for _, text := range []string{"220 ftp ready\r\n", "HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 90*kib) + "\r\n\r\n"} {
		o := newOrigin(t, func(k *call) { k.send(text); k.closed() })
		b := start(t, o.url(), nil)
		if a := b.once("GET", "/"); a.StatusCode != 502 || a.reason(t) != "upstream_malformed" {
			t.Errorf("%.40q: %d %s", text, a.StatusCode, a.body)
		}
	}
}

func TestP7_SilentUpstreamIs504AndNotRetried(t *testing.T) {
	t.Parallel()
	for _, warm := range []bool{false, true} { // a kept connection must not make a timeout a retry
		o := newOrigin(t, func(k *call) {
			if k.target == "/warm" {
				k.reply(200, "", "")
				return
			}
			k.closed()
		})
		b := start(t, o.url(), func(s *Settings) { s.ResponseTimeout = 2 * front.Tick })
		if warm {
			b.once("GET", "/warm")
		}
		c := b.dial().get("/silent")
		if a := c.ok(504); a.reason(t) != "upstream_timeout" || o.count("GET /silent") != 1 {
			t.Errorf("warm %v: %s, %d tries", warm, a.body, o.count("GET /silent"))
		}
		if a := c.get("/warm").ok(200); a.err != nil { // the mark of the limit is gone with its request
			t.Errorf("%v", a.err)
		}
		b.quiet(patience)
	}
}

func TestP7_UpstreamThatBreaksDuringAnUploadIs502(t *testing.T) {
	t.Parallel()
	for _, chunked := range []bool{false, true} {
		o := newOrigin(t, func(k *call) {
			b := make([]byte, 100)
			_, _ = k.br.Read(b)
			k.over = true // closes while the client still has to send
		})
		b := start(t, o.url(), nil)
		c := b.dial()
		if chunked {
			c.send(request("PUT", "/f", "Transfer-Encoding: chunked") + "64\r\n" + strings.Repeat("x", 100) + "\r\n")
		} else {
			c.send(request("PUT", "/f", "Content-Length: 100000") + strings.Repeat("x", 100))
		}
		if a := c.ok(502); a.reason(t) != "upstream_broken" || !a.Close {
			t.Errorf("chunked %v: %s, close %v", chunked, a.body, a.Close)
		}
		c.close()
		b.quiet(patience)
	}
}

func TestP7_AllUpstreamConnectionsInUse(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	o := newOrigin(t, func(k *call) { <-release; k.reply(200, "", "") })
	b := start(t, o.url(), func(s *Settings) { s.UpstreamMaxOpen = 1 })
	first := b.dial().get("/a")
	eventually(t, "the first one is there", func() bool { return o.count("GET /a") == 1 })
	if a := b.once("GET", "/b"); a.StatusCode != 503 || a.reason(t) != "upstream_busy" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	close(release)
	first.ok(200)
}

func TestP7_EveryClientGetsItsOwnResponse(t *testing.T) {
	t.Parallel()
	var breaks atomic.Int64
	o := newOrigin(t, func(k *call) {
		if breaks.Add(1)%7 == 0 {
			k.over = true
			return
		}
		k.reply(200, "", strings.Repeat(k.target, 1+int(breaks.Load()%40)))
	})
	b := start(t, o.url(), nil)
	done := make(chan string, 16)
	for g := range 16 {
		go func() {
			target := "/" + string(rune('a'+g))
			bad := ""
			for range 30 {
				conn, err := net.DialTimeout("tcp", b.addr, time.Second*10)
				if err != nil {
					bad = err.Error()
					break
				}
				c := wrap(t, conn)
				a := c.get(target).answer()
				if a.StatusCode == 200 && strings.ReplaceAll(a.body, target, "") != "" {
					bad = target + " got " + a.body
				}
				c.close()
			}
			done <- bad
		}()
	}
	for range 16 {
		if bad := <-done; bad != "" {
			t.Error(bad)
		}
	}
}

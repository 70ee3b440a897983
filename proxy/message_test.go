package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestP4_HeadKeepsLengthWithoutBody(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 123456\r\nETag: \"e\"\r\n\r\n")
	})
	b := start(t, o.url(), nil)
	c := b.dial()
	for range 2 { // the connection goes on behind it
		a := c.send(request("HEAD", "/f")).answerTo("HEAD")
		if a.ContentLength != 123456 || a.body != "" || a.err != nil {
			t.Errorf("length %d, body %q, %v", a.ContentLength, a.body, a.err)
		}
	}
	if o.accepted() != 1 {
		t.Errorf("%d upstream connections", o.accepted())
	}
}

func TestP4_StatusesWithoutBody(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		switch k.target {
		case "/204":
			k.send("HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n")
		case "/304":
			k.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 999\r\nETag: \"e\"\r\n\r\n")
		default:
			k.reply(200, "", "next")
		}
	})
	b := start(t, o.url(), nil)
	c := b.dial()
	if h := c.get("/204").head(); h != "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n" {
		t.Errorf("204: %q", h)
	}
	if h := c.get("/304").head(); field(h, "Content-Length") != "999" || field(h, "ETag") != `"e"` {
		t.Errorf("304: %q", h)
	}
	if a := c.get("/next").ok(200); a.body != "next" {
		t.Errorf("what follows is %q", a.body)
	}
}

func TestP4_ExpectIsDecidedByTheUpstream(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		if k.field("Expect") != "100-continue" {
			k.o.t.Errorf("the origin did not see Expect:\n%s", k.raw)
		}
		if k.target == "/closed" {
			k.reply(401, "WWW-Authenticate: Basic realm=x\r\n", "no")
			k.closed()
			return
		}
		k.send("HTTP/1.1 100 Continue\r\n\r\n")
		k.reply(201, "", k.body())
	})
	b := start(t, o.url(), nil)
	c := b.dial().send(request("PUT", "/open", "Content-Length: 5", "Expect: 100-continue"))
	if h := c.head(); h != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("interim %q", h)
	}
	if a := c.send("hello").ok(201); a.body != "hello" {
		t.Errorf("body %q", a.body)
	}
	c.send(request("PUT", "/closed", "Content-Length: 5", "Expect: 100-continue"))
	if a := c.ok(401); a.body != "no" || !a.Close { // no 100 came first, and a body that may or may not follow ends the connection
		t.Errorf("body %q, close %v", a.body, a.Close)
	}
	c.close()
	b.quiet(patience)
}

func TestP4_InterimResponsesPass(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: close\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
			"HTTP/1.1 102 Processing\r\n\r\n")
		k.reply(200, "", "end")
	})
	b := start(t, o.url(), nil)
	c := b.dial().get("/")
	if h := c.head(); h != "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" {
		t.Errorf("103: %q", h)
	}
	if h := c.head(); h != "HTTP/1.1 102 Processing\r\n\r\n" { // nobody asked for the 100
		t.Errorf("102: %q", h)
	}
	if a := c.ok(200); a.body != "end" {
		t.Errorf("body %q", a.body)
	}
	if h := b.dial().send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").head(); !strings.HasPrefix(h, "HTTP/1.1 200") {
		t.Errorf("an HTTP/1.0 client got %q", h)
	}
}

func TestP4_ChunkedBothWaysWithTrailers(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		if k.field("TE") != "trailers" {
			k.o.t.Errorf("TE %q", k.field("TE"))
		}
		body := k.body()
		k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
		for _, part := range []string{"5\r\nhello\r\n", "1;ext=1\r\n,\r\n", "6\r\n world\r\n"} {
			k.send(part)
		}
		k.send("0\r\nX-Sum: abc\r\nX-Up: " + strings.ReplaceAll(body, "\r\n", "|") + "\r\n\r\n")
	})
	b := start(t, o.url(), nil)
	c := b.dial()
	for range 2 {
		c.send(request("POST", "/", "Transfer-Encoding: chunked", "TE: trailers", "Trailer: X-Check") + "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Check: 1\r\n\r\n")
		a := c.ok(200)
		if a.body != "hello, world" || a.Trailer.Get("X-Sum") != "abc" {
			t.Errorf("body %q, trailer %v", a.body, a.Trailer)
		}
		up := a.Trailer.Get("X-Up")
		if !strings.Contains(up, "X-Check: 1") || !strings.Contains(strings.NewReplacer("|", "", "3", "", "2", "", "5", "").Replace(up), "abcde") {
			t.Errorf("the origin got %q", up)
		}
	}
	if o.accepted() != 1 {
		t.Errorf("%d upstream connections", o.accepted())
	}
}

func TestP4_ChunkedAndCloseDelimitedTowardsHTTP10(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 8*kib)
	o := newOrigin(t, func(k *call) {
		if k.target == "/chunked" {
			k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n"+big+"\r\n", "0\r\n\r\n")
			return
		}
		k.send("HTTP/1.1 200 OK\r\n\r\n"+big[:70*kib], big[70*kib:])
		k.over = true
	})
	b := start(t, o.url(), nil)
	for _, target := range []string{"/chunked", "/close"} {
		c := b.dial().send("GET " + target + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		if a := c.ok(200); a.body != big || !a.Close || a.ContentLength != -1 || len(a.TransferEncoding) > 0 {
			t.Errorf("%s: %d bytes, close %v, length %d, %v", target, len(a.body), a.Close, a.ContentLength, a.TransferEncoding)
		}
		c.atEnd()
		c = b.dial().get(target)
		if a := c.ok(200); a.body != big || len(a.TransferEncoding) != 1 {
			t.Errorf("%s to HTTP/1.1: %d bytes, %v", target, len(a.body), a.TransferEncoding)
		}
		if a := c.get("/chunked").ok(200); a.body != big { // the client's connection is kept
			t.Errorf("%s: what follows has %d bytes", target, len(a.body))
		}
	}
}

func TestP4_EarlyResponseWhileTheClientStillSends(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		k.reply(413, "", "too large")
		close(answered)
		k.closed()
	})
	b := start(t, o.url(), nil)
	c := b.dial().send(request("PUT", "/f", "Content-Length: 100000000") + strings.Repeat("x", 64*kib))
	<-answered
	if a := c.ok(413); a.body != "too large" || !a.Close {
		t.Errorf("body %q, close %v", a.body, a.Close)
	}
	if _, err := c.conn.Write(bytes.Repeat([]byte("x"), 256*kib)); err != nil { // read and thrown away: no reset destroys the answer
		t.Errorf("a client that still sends was reset: %v", err)
	}
	c.close()
	b.quiet(patience)
	eventually(t, "the upstream connection is closed", func() bool { return o.open() <= b.unused() })
}

func TestP4_EarlyHeadThenTheRestOfTheUploadPasses(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
		close(begun)
		if got := k.body(); got != strings.Repeat("y", 3000) {
			k.o.t.Errorf("the origin got %d bytes", len(got))
		}
		k.send("67890")
	})
	b := start(t, o.url(), nil)
	c := b.dial().send(request("PUT", "/f", "Content-Length: 3000") + strings.Repeat("y", 1000))
	<-begun
	resp := c.begin("PUT")
	c.send(strings.Repeat("y", 2000))
	if body, err := io.ReadAll(resp.Body); string(body) != "1234567890" || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
}

func TestP4_UpgradeCarriesBytesBothWaysAndHalfClose(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		k.over = true
		if k.target == "/refused" {
			k.over = false
			k.reply(426, "Upgrade: websocket\r\nConnection: upgrade\r\n", "no")
			return
		}
		if !strings.EqualFold(k.field("Connection"), "upgrade") || k.field("Upgrade") != "websocket" {
			k.o.t.Errorf("no upgrade asked:\n%s", k.raw)
		}
		k.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-X: 1\r\n\r\nfirst")
		got, err := io.ReadAll(k.br) // up to the client's half close
		if err != nil {
			k.o.t.Errorf("origin: %v", err)
		}
		k.send("got " + string(got))
	})
	b := start(t, o.url(), nil)
	c := b.dial().send(request("GET", "/echo", "Connection: Upgrade", "Upgrade: websocket") + "early ")
	h := c.head()
	if !strings.HasPrefix(h, "HTTP/1.1 101 ") || field(h, "Upgrade") != "websocket" || !strings.EqualFold(field(h, "Connection"), "upgrade") || field(h, "Sec-X") != "1" {
		t.Fatalf("head %q", h)
	}
	first := make([]byte, 5)
	if _, err := io.ReadFull(c.br, first); err != nil || string(first) != "first" {
		t.Fatalf("%q, %v", first, err)
	}
	c.send("late")
	if err := c.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c.br); string(rest) != "got early late" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	b.quiet(patience)

	c = b.dial().send(request("GET", "/refused", "Connection: Upgrade", "Upgrade: websocket"))
	if a := c.ok(426); a.body != "no" || a.Header.Get("Upgrade") != "websocket" {
		t.Errorf("426: %q %v", a.body, a.Header)
	}
	c.get("/refused").ok(426)
}

func TestP6_UpgradedConnectionEndsWithItsClient(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		k.closed()
		close(ended)
	})
	b := start(t, o.url(), nil)
	c := b.dial().send(request("GET", "/echo", "Connection: Upgrade", "Upgrade: websocket"))
	c.head()
	c.reset()
	<-ended
	b.quiet(patience)
}

func TestP4_OptionsAsterisk(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		if k.line != "OPTIONS * HTTP/1.1" {
			k.o.t.Errorf("line %q", k.line)
		}
		k.reply(200, "Allow: GET\r\n", "")
	})
	b := start(t, o.url(), nil)
	if a := b.once("OPTIONS", "*"); a.StatusCode != 200 || a.Header.Get("Allow") != "GET" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

func TestP4_TruncatedUpstreamIsVisiblyBroken(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("z", 200*kib)
	o := newOrigin(t, func(k *call) {
		k.over = true
		switch k.target {
		case "/length":
			k.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
		case "/large":
			k.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + big)
		case "/chunked":
			k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		case "/chunk":
			k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000\r\n" + big)
		case "/garbage":
			k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n")
		}
	})
	b := start(t, o.url(), nil)
	for _, target := range []string{"/length", "/large", "/chunked", "/chunk", "/garbage"} {
		for _, version := range []string{"1.1", "1.0"} {
			c := b.dial().send("GET " + target + " HTTP/" + version + "\r\nHost: a\r\n\r\n")
			resp, err := http.ReadResponse(c.br, nil)
			if err != nil {
				continue // broken before the head: visible enough
			}
			if resp.StatusCode != 200 {
				continue
			}
			if body, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%s, HTTP/%s: a whole response with %d bytes", target, version, len(body))
			}
		}
	}
	b.quiet(patience)
	if n := b.metric(`arkvory_upstream_errors_total{reason="upstream_broken"}`); n != "8" {
		t.Errorf("upstream_broken %s, want 8", n)
	}
}

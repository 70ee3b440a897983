package proxy

import (
	"strings"
	"testing"
)

var malformedHeads = []struct {
	name, text string
	status     int
}{
	{"length and chunked", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
	{"signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400},
	{"fold", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n 2\r\n\r\n", 400},
	{"bare LF", "GET / HTTP/1.1\nHost: a\n\n", 400},
	{"space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
	{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
	{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
	{"bad host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	{"bad port", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},
	{"control byte", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400},
	{"no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"other coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
	{"version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
	{"connect", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501},
}

func TestP5_MalformedHeadIsRefusedAndReachesNobody(t *testing.T) {
	t.Parallel()
	o, _ := seen(t)
	b := start(t, o.url(), nil)
	for _, c := range malformedHeads {
		conn := b.dial().send(c.text)
		a := conn.answer()
		if a.StatusCode != c.status || !a.Close || a.reason(t) != "malformed_request" {
			t.Errorf("%s: %d, close %v, %q", c.name, a.StatusCode, a.Close, a.body)
		}
		conn.atEnd()
		conn.close()
	}
	if n := o.requests(); len(n) != 0 {
		t.Errorf("the origin got %q", n)
	}
}

func TestP5_MalformedHeadBehindAGoodRequestIsAnsweredToo(t *testing.T) {
	t.Parallel()
	o, _ := seen(t)
	b := start(t, o.url(), nil)
	for _, together := range []bool{true, false} {
		c := b.dial()
		bad := "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
		if together {
			c.send(request("GET", "/good") + bad)
			c.ok(200)
		} else {
			c.get("/good").ok(200)
			c.send(bad)
		}
		if a := c.ok(400); a.reason(t) != "malformed_request" {
			t.Errorf("together %v: %q", together, a.body)
		}
		c.atEnd()
	}
	if n := o.count(""); n != 2 {
		t.Errorf("%d requests reached the origin", n)
	}
}

func TestP5_BrokenChunksOfAnUploadAreRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"5\r\nhelloX\r\n0\r\n\r\n", "zz\r\n", "-1\r\n", "FFFFFFFFFFFFFFFFF\r\n", "5\nhello\n0\n\n", "0\r\nbad trailer\r\n\r\n"} {
		o := newOrigin(t, func(k *call) { k.closed() })
		b := start(t, o.url(), nil)
		c := b.dial().send(request("POST", "/", "Transfer-Encoding: chunked") + body)
		if a := c.ok(400); a.reason(t) != "malformed_request" || !a.Close {
			t.Errorf("%q: %q, close %v", body, a.body, a.Close)
		}
		c.close()
		b.quiet(patience)
	}
}

func TestP5_HeadThatArrivesByteByByteIsWhole(t *testing.T) {
	t.Parallel()
	o, heads := seen(t)
	b := start(t, o.url(), nil)
	c := b.dial()
	text := request("GET", "/slow", "X-Long: "+strings.Repeat("v", 5000))
	for i := 0; i < len(text); {
		n := min(len(text)-i, 1+i%997)
		c.send(text[i : i+n])
		i += n
	}
	c.ok(200)
	if got := <-heads; len(field(got, "X-Long")) != 5000 {
		t.Errorf("%d bytes arrived", len(field(got, "X-Long")))
	}
}

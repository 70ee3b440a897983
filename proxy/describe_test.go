package proxy

import (
	"strings"
	"testing"
)

// TestO1_UnreadGetIsRepeatedWithItsBody: HEAD is refused and the client's own Range forbids another one, so that its GET describes the object, must wait,
// and is sent again when the slot is free.
func TestO1_UnreadGetIsRepeatedWithItsBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "query"} {
		o := newOrigin(t, func(k *call) {
			if got := k.body(); k.method == "GET" && got != body {
				k.o.t.Errorf("body %q", got)
			}
			if k.method == "HEAD" {
				k.send("HTTP/1.1 405 X\r\nContent-Length: 0\r\n\r\n")
				return
			}
			k.send("HTTP/1.1 206 X\r\nContent-Range: bytes 0-999999/1000000\r\nContent-Length: 1000000\r\n\r\n", strings.Repeat("x", 1000000))
		})
		b := start(t, o.url(), oneSlot)
		g, _ := b.p.queue.Admit(holding())
		fields := []string{"Range: bytes=0-999999"}
		if body != "" {
			fields = append(fields, "Content-Length: 5")
		}
		c := b.dial().send(request("GET", "/a", fields...) + body)
		eventually(t, "it is held or answered", func() bool { return b.left().Held == 1 || b.p.Busy() == 0 && o.count("GET") > 0 })
		g.Abandon()
		a := c.answer()
		if a.StatusCode == 503 && body != "" { // its body is gone: refusing is the honest answer
			b.quiet(patience)
			continue
		}
		if a.StatusCode != 206 || len(a.body) != 1000000 || o.count("GET") != 2 {
			t.Errorf("%q: %d, %d bytes after %d GETs", body, a.StatusCode, len(a.body), o.count("GET"))
		}
		b.quiet(patience)
	}
}

func TestO2_ValidatorOfAnotherVersionIsAnotherDownload(t *testing.T) {
	t.Parallel()
	tag := make(chan string, 8)
	for _, v := range []string{`"v1"`, `"v2"`, `"v2"`} {
		tag <- v
	}
	o := newOrigin(t, func(k *call) {
		first := "0"
		if strings.HasPrefix(k.field("Range"), "bytes=5") {
			first = "500000"
		}
		k.send("HTTP/1.1 206 X\r\nETag: "+<-tag+"\r\nContent-Range: bytes "+first+"-"+map[string]string{"0": "499999", "500000": "999999"}[first]+
			"/1000000\r\nContent-Length: 500000\r\n\r\n", strings.Repeat("x", 500000))
	})
	b := start(t, o.url(), nil)
	completed := func() string { return b.metric(`arkvory_download_session_events_total{event="completed"}`) }
	c := b.dial()
	c.get("/a", id, "Range: bytes=0-499999").ok(206)
	c.get("/a", id, "Range: bytes=500000-999999").ok(206)
	if n := completed(); n != "0" {
		t.Errorf("%s downloads are complete out of halves of two versions", n)
	}
	c.get("/a", id, "Range: bytes=0-499999").ok(206)
	eventually(t, "the second version is whole", func() bool { return completed() == "1" })
}

package proxy

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// TestU9_ABreakAfterAnOutageIsNoStall: while the rest cannot be had for longer than a body may stand still there is nothing that stands still. The body that comes then and breaks
// has broken, and was not given up by the proxy.
func TestU9_ABreakAfterAnOutageIsNoStall(t *testing.T) {
	t.Parallel()
	const size = 700 * kib
	l := newLibrary(t)
	b := start(t, l.url(), func(s *Settings) { s.Resume, s.UpstreamStall = true, 500*time.Millisecond })
	var asked atomic.Int64
	l.set(func() {
		l.on = func(k *call) bool {
			if k.method != "GET" {
				return false
			}
			first, last, ranged := k.asked(size)
			switch asked.Add(1) {
			case 1, 4: // the first, and the rest that comes after the outage
				head := fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: %d\r\n\r\n", size)
				if ranged {
					head = fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", first, last, size, last-first+1)
				}
				k.send(head, bytesOf(0, size)[first:first+100*kib])
				k.over = true
				return true
			case 2, 3:
				k.reply(503, "", "")
				return true
			}
			return false
		}
	})
	client := b.dial()
	if a := client.get(fmt.Sprintf("/o%d", size)).answer(); a.body != bytesOf(0, size) {
		t.Fatalf("status %d, %d bytes", a.StatusCode, len(a.body))
	}
	if stalled, broken := b.metric(`arkvory_upstream_breaks_total{cause="stalled"}`), b.metric(`arkvory_upstream_breaks_total{cause="broken"}`); stalled != "0" || broken != "2" {
		t.Errorf("%s stalled, %s broken", stalled, broken)
	}
	client.close()
	b.quiet(patience)
}

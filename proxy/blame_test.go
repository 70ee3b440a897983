package proxy

import (
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// lost waits until the pool has lost as many connections as want says, in whatever way, and returns how many of them count against the origin.
func (b *bench) lost(want int64) (failures int64) {
	b.t.Helper()
	eventually(b.t, "the pool has heard of it", func() bool {
		sum, lost := int64(0), b.p.pool.Status().Totals.Lost
		for _, n := range lost {
			sum += n
		}
		failures = lost[control.Broken] + lost[control.TimedOut]
		return sum >= want
	})
	return failures
}

// TestU10_ASlowSenderIsNoFailureOfTheOrigin: an upload that is not out by its deadline because its client sends too slowly says nothing of the origin; one that the origin does
// not take does.
func TestU10_ASlowSenderIsNoFailureOfTheOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, framing string
		failures      int64
	}{
		{"of known length", "Content-Length: 100\r\n\r\nhalf", 0},
		{"in chunks", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", 0},
		{"not taken", "Content-Length: 20000000\r\n\r\n" + strings.Repeat("x", 20000000), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			o := newOrigin(t, func(k *call) {
				if c.failures > 0 {
					<-end
				}
				k.closed()
			})
			b := start(t, o.url(), func(s *Settings) { s.UploadDeadline = 2 * front.Tick })
			client := b.dial()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = client.conn.Write([]byte("PUT /f HTTP/1.1\r\nHost: a\r\n" + c.framing))
			}()
			if a := client.ok(408); a.reason(t) != "upload_deadline" {
				t.Errorf("%s", a.body)
			}
			if n := b.lost(1); n != c.failures {
				t.Errorf("%d failures of the origin, want %d", n, c.failures)
			}
			close(end)
			client.close()
			<-sent
			b.quiet(patience)
		})
	}
}

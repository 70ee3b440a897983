package proxy

import (
	"fmt"
	"testing"

	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// TestU10_AClientThatCannotWaitIsNoFailureOfTheOrigin: a waiting client gives its first piece three seconds, its turn included. An origin that is slower than that has not
// failed: it may take ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS.
func TestU10_AClientThatCannotWaitIsNoFailureOfTheOrigin(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"", fmt.Sprintf("HTTP/1.1 206 X\r\nETag: \"v1\"\r\nContent-Range: bytes 0-%d/%d\r\nContent-Length: %d\r\n\r\n", drip.PieceBytes-1, odd, drip.PieceBytes)} {
		l := newLibrary(t)
		s := newStage(t, l.url(), nil)
		l.set(func() {
			l.on = func(k *call) bool {
				if k.method != "GET" || k.field("Range") == "" {
					return false
				}
				k.send(head)
				k.closed()
				return true
			}
		})
		before := s.p.pool.Status().Totals.Lost
		c := s.dialFrom("127.0.2.1").get(fmt.Sprintf("/f%d", odd))
		if a := c.answer(); a.StatusCode != 503 {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		lost := func(why ...control.Loss) (n int64) {
			now := s.p.pool.Status().Totals.Lost
			for _, w := range why {
				n += now[w] - before[w]
			}
			return n
		}
		eventually(t, "the pool has heard of it", func() bool { return lost(control.Cancelled, control.TimedOut, control.Broken) > 0 })
		if n := lost(control.TimedOut, control.Broken); n != 0 {
			t.Errorf("%q: %d failures of the origin", head, n)
		}
		c.close()
		s.close()
	}
}

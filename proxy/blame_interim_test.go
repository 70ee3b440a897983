package proxy

import (
	"testing"

	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// TestU10_AnInterimResponseToAClientThatLeftIsNoFailureOfTheOrigin: the client is gone when the proxy passes a 103 on, and the watcher has not noticed it yet.
func TestU10_AnInterimResponseToAClientThatLeftIsNoFailureOfTheOrigin(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		<-left
		k.send("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: b\r\n\r\n")
		k.closed()
	})
	b := start(t, o.url(), nil)
	c := b.dial().get("/x")
	eventually(t, "the origin is asked", func() bool { return o.count("GET /x") == 1 })
	c.reset()
	close(left)
	lost := func() (sum, failures int64) {
		all := b.p.pool.Status().Totals.Lost
		for _, n := range all {
			sum += n
		}
		return sum, all[control.Broken] + all[control.TimedOut]
	}
	eventually(t, "the pool has heard of it", func() bool { n, _ := lost(); return n > 0 })
	if _, n := lost(); n != 0 {
		t.Errorf("%d failures of the origin", n)
	}
	b.quiet(patience)
}

package proxy

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// TestU4_TheFloorIsNotAboveWhatIsKept: with fewer unused connections allowed than there are processors the floor must not ask for what every release closes again: that is a
// dial for each request.
func TestU4_TheFloorIsNotAboveWhatIsKept(t *testing.T) {
	t.Parallel()
	const crowd = 6
	var hold atomic.Bool
	hold.Store(true)
	all := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		if hold.Load() {
			<-all
		}
		k.reply(200, "", "ok")
	})
	b := start(t, o.url(), func(s *Settings) {
		s.Pool = control.Default(8)
		s.Pool.Shadow, s.Pool.Silent, s.UpstreamMaxIdle = 0, 0, 1
	})
	var clients []*client
	for i := range crowd {
		clients = append(clients, b.dial().get(fmt.Sprintf("/%d", i)))
	}
	eventually(t, "all run", func() bool { return len(o.requests()) == crowd })
	hold.Store(false)
	close(all)
	for _, c := range clients {
		c.ok(200)
	}
	b.quiet(patience)
	before := o.accepted()
	const requests = 50
	for range requests {
		clients[0].get("/x").ok(200)
	}
	if n := o.accepted() - before; n > requests/5 {
		t.Errorf("%d connections for %d requests, one after another", n, requests)
	}
}

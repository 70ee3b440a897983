package upstream

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// TestU9_AReleasedWriterGoesToWhoAvoidsAnotherEndpoint: all connections are open and those of the right endpoint are in use. An exchange that avoids the other one gets what is
// released, though nothing can be dialled for it.
func TestU9_AReleasedWriterGoesToWhoAvoidsAnotherEndpoint(t *testing.T) {
	t.Parallel()
	a := newStore(t, address(41).String()+":0")
	port := strconv.Itoa(int(a.addr().Port()))
	b := newStore(t, address(42).String()+":"+port)
	var n names
	n.set(nil, address(41), address(42))
	p := openPool(t, func(set *Settings) {
		set.lookup, set.Control.MaxConnections, set.DialTimeout = n.lookup, 4, time.Minute
	}, "http://store.test:"+port)
	eventually(t, "both are ready", func() bool { idle, _ := p.Connections(); return idle == 2 })
	all := map[netip.AddrPort][]*Writer{}
	for range 4 {
		w := take(t, p)
		if _, err := ask(w); err != nil {
			t.Fatal(err)
		}
		all[w.ep.addr] = append(all[w.ep.addr], w)
	}
	wrong, right := all[a.addr()], all[b.addr()]
	eventually(t, "the load is told", func() bool {
		sum := 0
		for _, e := range p.Status().Groups[0].Endpoints {
			sum += e.Outstanding
		}
		return sum == 4
	})
	got := make(chan *Writer, 1)
	go func() {
		w, err := p.GetElsewhere([]control.EndpointID{wrong[0].Endpoint()}, here)
		if err != nil {
			t.Error(err)
		}
		got <- w
	}()
	eventually(t, "it waits", func() bool { return p.Waiting() == 1 })
	for _, w := range append(wrong, right...) {
		w.Release(1)
	}
	select {
	case w := <-got:
		if w.ep.addr != b.addr() {
			t.Errorf("it got a writer to %s", w.ep.addr)
		}
		w.Release(1)
	case <-time.After(patience):
		t.Error("it waits although the right endpoint has unused writers")
		p.Close()
		<-got
	}
}

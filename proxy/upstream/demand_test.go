package upstream

import (
	"context"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// TestU4_ADemandThatStaysTheSameIsToldAgain: while one exchange is handed its writer another comes to wait, so that their number is what it was. The control plane has taken
// the first one off its count by itself and must be told again at once: else the second one is dialled for on the next tick only.
func TestU4_ADemandThatStaysTheSameIsToldAgain(t *testing.T) {
	t.Parallel()
	late := time.Duration(0)
	for range 5 { // a busy machine may be late itself, not every time
		if late = demandedAgain(t); late <= tickEvery/2 {
			return
		}
	}
	t.Errorf("it waited for %v", late)
}

// demandedAgain returns how long both waited from the moment on at which the first could be served.
func demandedAgain(t *testing.T) time.Duration {
	t.Helper()
	s := newStore(t, "")
	known, active, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p := openPool(t, func(set *Settings) {
		set.Control.FloorMode, set.Control.FloorStatic = control.Static, 1
		set.lookup = func(_ context.Context, family, _ string) ([]netip.Addr, error) {
			<-known
			if family == "ip6" {
				return nil, nil
			}
			return []netip.Addr{s.addr().Addr()}, nil
		}
		set.OnGeneration = func(_ string, _ uint64, gone bool) {
			if !gone {
				close(active)
				<-goOn
			}
		}
	}, "http://store.test:"+strconv.Itoa(int(s.addr().Port())))
	got := make(chan *Writer, 2)
	get := func() {
		w, err := p.Get(false, here)
		if err != nil {
			t.Error(err)
		}
		got <- w
	}
	go get()
	eventually(t, "the first one waits", func() bool { return p.Waiting() == 1 })
	for range 2 { // a tick later it is told, and a whole tick is left to the next
		last := p.Status()
		eventually(t, "a tick", func() bool { return p.Status() != last })
	}
	close(known)
	<-active
	go get()
	eventually(t, "the second one waits", func() bool { return p.Waiting() == 2 })
	began := time.Now()
	close(goOn)
	first, second := <-got, <-got
	late := time.Since(began)
	first.Release(1)
	second.Release(1)
	return late
}

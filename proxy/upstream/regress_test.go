package upstream

import (
	"net"
	"testing"
	"time"
)

// deadAddress is one where nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// TestV1_ReachableComesBackWithoutTraffic: the state of an origin was that of the last dial, and only requests dialled. An origin that was down from the start counted
// as reachable, and one that came back stayed unreachable while readiness kept all requests away.
func TestV1_ReachableComesBackWithoutTraffic(t *testing.T) {
	t.Parallel()
	address := deadAddress(t)
	p := newPool(t, "http://"+address, nil)
	now := probeEvery
	p.Sweep(now)
	eventually(t, "it is known to be down", func() bool { s := p.Snapshot(); return !s.Reachable && s.Cause != "" })
	for range 3 { // ticks within the period dial nothing
		p.Sweep(now + probeEvery/2)
	}
	p.wg.Wait()
	if n := p.Snapshot().Dials; n != 1 {
		t.Errorf("%d dials in a period", n)
	}
	now += probeEvery
	p.Sweep(now)
	eventually(t, "it is asked again", func() bool { return p.Snapshot().Dials == 2 })
	p.wg.Wait()
	if p.Snapshot().Reachable {
		t.Error("reachable while it is down")
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	now += probeEvery
	p.Sweep(now)
	eventually(t, "it is reachable again", func() bool { s := p.Snapshot(); return s.Reachable && s.Cause == "" && s.Idle == 1 && s.Busy == 0 })
	for range 3 { // and needs no more probes
		now += probeEvery
		p.Sweep(now)
	}
	p.wg.Wait()
	if n := p.Snapshot().Dials; n != 3 {
		t.Errorf("%d dials", n)
	}
}

// TestV1_ProbeBelongsToTheOriginAlone: a host that a redirect named once is not dialled for ever.
func TestV1_ProbeBelongsToTheOriginAlone(t *testing.T) {
	t.Parallel()
	p := newPool(t, "http://"+deadAddress(t), func(s *Settings) { s.Foreign, s.Loopback = true, true })
	for i := range 3 {
		p.Sweep(int64(i+1) * probeEvery)
	}
	p.wg.Wait()
	if n := p.Snapshot().Dials; n != 0 {
		t.Errorf("%d dials", n)
	}
}

// TestV1_CloseEndsAProbeThatHangs: the origin takes the connection and answers no handshake.
func TestV1_CloseEndsAProbeThatHangs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	p := newPool(t, "https://"+o.ln.Addr().String(), func(s *Settings) { s.DialTimeout = time.Hour })
	p.Sweep(probeEvery)
	o.next(t)
	closed := make(chan struct{})
	go func() { defer close(closed); p.Close() }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("Close waits for the probe")
	}
	if s := p.Snapshot(); s.Busy != 0 {
		t.Errorf("%+v", s)
	}
}

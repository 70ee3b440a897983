package upstream

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

func TestU2_AReadyWriterServesAndComesBack(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, func(set *Settings) { set.Control.FloorMode, set.Control.FloorStatic = control.Static, 1 }, "http://"+s.addr().String())
	covers(t, p)
	w := take(t, p)
	if w.Reused || w.Host() != s.addr().String() || w.Secure() {
		t.Errorf("reused %v, host %s", w.Reused, w.Host())
	}
	if from, err := ask(w); from != s.addr().String() || err != nil {
		t.Fatal(from, err)
	}
	w.Release(1)
	w.Release(1) // idempotent
	w.Discard(telemetry.DiscardBroken)
	if idle, busy := p.Connections(); idle != 1 || busy != 0 {
		t.Errorf("%d idle, %d busy", idle, busy)
	}
	if again := take(t, p); again != w || !again.Reused {
		t.Error("not the one that is warm")
	} else {
		again.Release(1)
	}
}

// TestU6_AnExchangeWithoutAWriterHasADefiniteAnswer: a dead origin is told by the dial that began after the exchange came, and one that is back is found without traffic.
func TestU6_AnExchangeWithoutAWriterHasADefiniteAnswer(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	at := s.addr().String()
	s.stop()
	p := openPool(t, nil, "http://"+at)
	for range 3 {
		if _, err := p.Get(false, here); Reason(err) != telemetry.UpstreamUnreachable {
			t.Fatalf("%v is %v", err, Reason(err))
		}
		if _, err := p.Get(true, here); Reason(err) != telemetry.UpstreamUnreachable {
			t.Fatalf("fresh: %v is %v", err, Reason(err))
		}
	}
	if ok, why := p.Covered(); ok || why != control.CauseUnreachable {
		t.Errorf("%v, %v", ok, why)
	}
	newStore(t, at)
	covers(t, p)
	if _, err := once(p); err != nil {
		t.Error(err)
	}
}

func TestU6_NamesThatDoNotResolveAreTold(t *testing.T) {
	t.Parallel()
	var n names
	n.set(&net.DNSError{Err: "no such host", Name: "store.test", IsNotFound: true})
	p := openPool(t, func(set *Settings) { set.lookup = n.lookup }, "http://store.test:80")
	if _, err := p.Get(false, here); Reason(err) != telemetry.UpstreamUnreachable {
		t.Errorf("%v is %v", err, Reason(err))
	}
	if ok, why := p.Covered(); ok || why != control.CauseUnresolved {
		t.Errorf("%v, %v", ok, why)
	}
	if g := p.Status().Groups[0]; g.Name != "store.test:80" {
		t.Errorf("%+v", g)
	}
}

// TestU3_ASetIsReplacedUnderLoadWithoutALoss: two endpoints are replaced by two others while exchanges run; none fails, the old ones retire.
func TestU3_ASetIsReplacedUnderLoadWithoutALoss(t *testing.T) {
	t.Parallel()
	first := newStore(t, address(1).String()+":0")
	port := strconv.Itoa(int(first.addr().Port()))
	var stores []*store
	for i := 2; i <= 4; i++ {
		stores = append(stores, newStore(t, address(i).String()+":"+port))
	}
	var n names
	n.set(nil, address(1), address(2))
	retired := make(chan uint64, 64)
	p := openPool(t, func(set *Settings) {
		set.lookup = n.lookup
		set.OnGeneration = func(_ string, g uint64, gone bool) {
			if gone {
				retired <- g
			}
		}
	}, "http://store.test:"+port)
	covers(t, p)
	long := take(t, p)
	if _, err := ask(long); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var served, failed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !stop.Load() {
				if _, err := once(p); err != nil {
					failed.Add(1)
					t.Error(err)
					return
				}
				served.Add(1)
			}
		})
	}
	eventually(t, "traffic", func() bool { return served.Load() > 200 })
	old := p.Status().Groups[0].Generation
	n.set(nil, address(3), address(4))
	eventually(t, "the new generation is active", func() bool { return p.Status().Groups[0].Generation > old })
	before := served.Load()
	eventually(t, "traffic goes on", func() bool { return served.Load() > before+200 })
	stop.Store(true)
	wg.Wait()
	if failed.Load() != 0 {
		t.Errorf("%d of %d failed", failed.Load(), served.Load())
	}
	if from, err := once(p); err != nil || from != stores[1].addr().String() && from != stores[2].addr().String() {
		t.Errorf("served by %s, %v", from, err)
	}
	if from, err := ask(long); err != nil { // its exchange goes on, and it is the last of the old ones
		t.Errorf("the running exchange was lost: %s, %v", from, err)
	}
	long.Release(1)
	select {
	case g := <-retired:
		if g != uint64(old) {
			t.Errorf("%d retired, want %d", g, old)
		}
	case <-time.After(patience):
		t.Error("the old generation stays")
	}
	eventually(t, "no connection to the old endpoints", func() bool { return first.open.Load()+stores[0].open.Load() == 0 })
}

func TestU3_ASignalMakesNewConnections(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, nil, "http://"+s.addr().String())
	covers(t, p)
	old := p.Status().Groups[0].Generation
	for range 5 { // a burst is one
		if err := p.Reinit(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "another generation", func() bool { return p.Status().Groups[0].Generation > old })
	if _, err := once(p); err != nil {
		t.Error(err)
	}
	if n := p.Status().Totals.Begun; n > 4 {
		t.Errorf("%d generations for one burst", n)
	}
}

func TestU4_ABurstIsServedAtOnceAndTheFloorSinks(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, func(set *Settings) {
		set.Control.FloorIdle, set.Control.FloorHold = 300*time.Millisecond, 400*time.Millisecond
	}, "http://"+s.addr().String())
	covers(t, p)
	for round := range 2 {
		var wg sync.WaitGroup
		gate := make(chan struct{})
		for range 50 {
			wg.Go(func() {
				w, err := p.Get(false, here)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := ask(w); err != nil {
					t.Error(err)
				}
				<-gate
				w.Release(1)
			})
		}
		eventually(t, "all fifty run", func() bool { _, busy := p.Connections(); return busy == 50 })
		close(gate)
		wg.Wait()
		eventually(t, "the floor sinks", func() bool { return p.Status().Groups[0].Endpoints[0].Target == 1 && s.open.Load() <= 1 })
		if round == 1 && p.Status().Totals.Lost[control.Broken] != 0 {
			t.Error("the sink broke something")
		}
	}
}

// TestU10_IdleClosesAreNormal: an origin that closes its connections, all at once or after each answer, costs no exchange and is no failure.
func TestU10_IdleClosesAreNormal(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, nil, "http://"+s.addr().String())
	covers(t, p)
	for range 20 {
		if _, err := once(p); err != nil {
			t.Fatal(err)
		}
		s.drop()
	}
	s.shortly.Store(true)
	for range 50 {
		if _, err := once(p); err != nil {
			t.Fatal(err)
		}
	}
	e := p.Status().Groups[0].Endpoints[0]
	if e.Health != control.Healthy || e.Failures != 0 {
		t.Errorf("%+v", e)
	}
	if ok, why := p.Covered(); !ok {
		t.Errorf("no coverage: %v", why)
	}
}

func TestU5_ASilentEndpointIsProbed(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, func(set *Settings) { set.Control.Silent = 50 * time.Millisecond }, "http://"+s.addr().String())
	covers(t, p)
	eventually(t, "probes", func() bool { return s.heads.Load() >= 3 })
	if e := p.Status().Groups[0].Endpoints[0]; e.Target != 1 || e.Outstanding != 0 {
		t.Errorf("a probe counts as load: %+v", e)
	}
	if n := s.accepted.Load(); n > 2 {
		t.Errorf("%d connections for probes", n)
	}
}

// TestU5_AStoppedEndpointIsLeft: of two endpoints one takes connections and requests and never answers. Exchanges that time out there take it out of use.
func TestU5_AStoppedEndpointIsLeft(t *testing.T) {
	t.Parallel()
	dead := newStore(t, address(11).String()+":0")
	live := newStore(t, address(12).String()+":"+strconv.Itoa(int(dead.addr().Port())))
	var n names
	n.set(nil, address(11), address(12))
	p := openPool(t, func(set *Settings) { set.lookup, set.DialTimeout = n.lookup, time.Second }, "http://store.test:"+strconv.Itoa(int(dead.addr().Port())))
	eventually(t, "both are ready", func() bool { return p.Choices() == 2 })
	left := func() bool { // the other one alone is for choice
		v := p.view.Load()
		return len(v.endpoints) == 1 && v.endpoints[0].addr == live.addr()
	}
	dead.silent.Store(true)
	eventually(t, "it is left", func() bool {
		w := take(t, p)
		if w.ep.addr == live.addr() {
			if _, err := ask(w); err != nil {
				t.Error(err)
			}
			w.Release(1)
		} else {
			w.Discard(telemetry.DiscardTimeout)
		}
		return left()
	})
	for range 20 {
		w := take(t, p)
		if w.ep.addr != live.addr() {
			w.Discard(telemetry.DiscardCancelled)
			if left() {
				t.Fatal("an exchange went to an endpoint that is not for choice")
			}
			continue
		}
		if from, err := ask(w); from != live.addr().String() || err != nil {
			t.Fatal(from, err)
		}
		w.Release(1)
	}
	dead.silent.Store(false)
	eventually(t, "it is back", func() bool { return p.Choices() == 2 })
}

func TestU8_TheFallbackGoesInAndOut(t *testing.T) {
	t.Parallel()
	s, second := newStore(t, ""), newStore(t, "")
	at := s.addr().String()
	u, _ := url.Parse("http://" + second.addr().String())
	p := openPool(t, func(set *Settings) {
		set.Fallback = u
		set.Control.Fallback, set.Control.FallbackAfter, set.Control.FallbackBack = control.FallbackOnOutage, 100*time.Millisecond, 200*time.Millisecond
	}, "http://"+at)
	covers(t, p)
	eventually(t, "the first serves", func() bool { from, err := once(p); return err == nil && from == at })
	s.stop()
	eventually(t, "the fallback serves", func() bool { from, err := once(p); return err == nil && from == second.addr().String() })
	if !p.Status().Fallback {
		t.Error("it is not shown")
	}
	newStore(t, at)
	eventually(t, "it is left", func() bool { from, err := once(p); return err == nil && from == at })
}

func TestL3_BoundsOfTheGroup(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, func(set *Settings) { set.Control.MaxConnections, set.DialTimeout = 2, 400*time.Millisecond }, "http://"+s.addr().String())
	covers(t, p)
	a, b := take(t, p), take(t, p)
	if _, err := p.Get(false, here); !errors.Is(err, ErrExhausted) || Reason(err) != telemetry.UpstreamBusy {
		t.Errorf("a third one: %v", err)
	}
	got := make(chan *Writer)
	go func() {
		w, err := p.Get(false, here)
		if err != nil {
			t.Error(err)
		}
		got <- w
	}()
	eventually(t, "one waits", func() bool { return p.Waiting() == 1 })
	if _, err := ask(a); err != nil {
		t.Fatal(err)
	}
	a.Release(1)
	if w := <-got; w != a {
		t.Error("it was not handed over")
	} else {
		w.Discard(telemetry.DiscardCancelled)
	}
	b.Discard(telemetry.DiscardCancelled)
}

func TestP6_AWaitEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	hang := newServer(t) // a handshake that never ends
	p := openPool(t, func(set *Settings) { set.DialTimeout = time.Minute }, "https://"+hang.ln.Addr().String())
	gone := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		_, err := p.Get(false, func() <-chan struct{} { return gone })
		result <- err
	}()
	eventually(t, "it waits", func() bool { return p.Waiting() == 1 })
	close(gone)
	if err := <-result; err == nil || p.Waiting() != 0 {
		t.Errorf("%v, %d wait", err, p.Waiting())
	}
}

// TestU6_NothingIsLeftOfAnyEnd: exchanges that end in every way, on origins that come and go, from many goroutines: each got exactly one answer, and all counts return to
// zero.
func TestU6_NothingIsLeftOfAnyEnd(t *testing.T) {
	t.Parallel()
	a := newStore(t, address(21).String()+":0")
	port := int(a.addr().Port())
	b := newStore(t, address(22).String()+":"+strconv.Itoa(port))
	var n names
	n.set(nil, address(21), address(22))
	p := openPool(t, func(set *Settings) {
		set.lookup, set.Control.MaxConnections, set.DialTimeout = n.lookup, 24, 500*time.Millisecond
	}, "http://store.test:"+strconv.Itoa(port))
	covers(t, p)
	var wg sync.WaitGroup
	for seed := range 32 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			for range 150 {
				gone := make(chan struct{})
				if r.IntN(10) == 0 {
					close(gone)
				}
				w, err := p.Get(r.IntN(20) == 0, func() <-chan struct{} { return gone })
				if err != nil {
					continue
				}
				switch r.IntN(8) {
				case 0:
					w.Discard(telemetry.DiscardCancelled)
				case 1:
					w.Discard(telemetry.DiscardBroken)
				default:
					if _, err := ask(w); err != nil {
						w.Discard(telemetry.DiscardClosed)
					} else {
						w.Release(1)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 20 {
			sets := [][]netip.Addr{{address(21), address(22)}, {address(21)}, {address(22)}}
			n.set(nil, sets[i%3]...)
			if i%5 == 0 {
				a.drop()
				b.drop()
			}
			<-time.After(20 * time.Millisecond)
		}
	})
	wg.Wait()
	if _, busy := p.Connections(); busy != 0 || p.Waiting() != 0 {
		t.Errorf("%d busy, %d waiting", busy, p.Waiting())
	}
	n.set(nil, address(21), address(22))
	eventually(t, "the registry and the control plane agree", func() bool {
		s := p.Status()
		return s.Dialing == 0 && s.Draining == 0 && int(a.open.Load()+b.open.Load()) == s.Active+s.Warm
	})
}

func TestU7_StopEndsEveryWait(t *testing.T) {
	t.Parallel()
	hang := newServer(t)
	p := openPool(t, nil, "https://"+hang.ln.Addr().String())
	result := make(chan error, 4)
	for range cap(result) {
		go func() {
			_, err := p.Get(false, here)
			result <- err
		}()
	}
	eventually(t, "they wait", func() bool { return p.Waiting() == cap(result) })
	p.Close()
	for range cap(result) {
		if err := <-result; err == nil {
			t.Error("a writer of a closed pool")
		}
	}
	if _, err := p.Get(false, here); err == nil {
		t.Error("a writer of a closed pool")
	}
}

package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// store is an HTTP origin that answers every request, or hands the connection of one to hang to the test.
type store struct {
	t        testing.TB
	ln       net.Listener
	open     atomic.Int32
	accepted atomic.Int32
	heads    atomic.Int32 // HEAD requests
	silent   atomic.Bool  // takes requests and answers none
	shortly  atomic.Bool  // closes a connection after each answer
	mu       sync.Mutex
	conns    map[net.Conn]bool
	wg       sync.WaitGroup
}

var hosts atomic.Int32

// ownHost returns an address of loopback, with port 0, that no other test listens at: a port of 127.0.0.1 that was closed is soon that of another test beside this one.
func ownHost() string {
	n := hosts.Add(1)
	return fmt.Sprintf("127.78.%d.%d:0", n>>8&255, n&255)
}

// newStore listens on an address, or on one of a host of its own when it is empty.
func newStore(t testing.TB, address string) *store {
	t.Helper()
	if address == "" {
		address = ownHost()
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &store{t: t, ln: ln, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

func (s *store) addr() netip.AddrPort { return s.ln.Addr().(*net.TCPAddr).AddrPort() }

func (s *store) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.open.Add(1)
		s.accepted.Add(1)
		s.wg.Go(func() {
			defer s.open.Add(-1)
			defer func() { _ = c.Close() }()
			s.serve(c)
		})
	}
}

func (s *store) serve(c net.Conn) {
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if r.Method == "HEAD" {
			s.heads.Add(1)
		}
		if s.silent.Load() {
			_, _ = io.Copy(io.Discard, br)
			return
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-From: %s\r\n\r\n", s.ln.Addr()); err != nil || s.shortly.Load() {
			return
		}
	}
}

// drop closes all connections.
func (s *store) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
	clear(s.conns)
}

func (s *store) stop() {
	_ = s.ln.Close()
	s.drop()
	s.wg.Wait()
}

// names is a name server that tests change.
type names struct {
	mu    sync.Mutex
	addrs []netip.Addr
	err   error
}

func (n *names) set(err error, addrs ...netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs, n.err = addrs, err
}

func (n *names) lookup(_ context.Context, family, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if family == "ip6" {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return n.addrs, n.err
}

// quick are settings whose times are short.
func quick() control.Settings {
	set := control.Default(2)
	set.Shadow, set.Silent = 0, 0
	set.ResolveEvery, set.ResolveMin, set.ResolveRetry = 50*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond
	set.FastDelay, set.Settle, set.Spacing, set.Stagger = 5*time.Millisecond, time.Millisecond, 10*time.Millisecond, time.Millisecond
	set.BackoffBase, set.BackoffMax, set.OutageBase, set.OutageMax = 20*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	return set
}

func openPool(t testing.TB, change func(*Settings), origins ...string) *Pool {
	t.Helper()
	set := Settings{DialTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxIdle: 256, Control: quick(),
		OnPanic: func(v any, stack []byte) { t.Errorf("panic: %v\n%s", v, stack) }}
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil {
			t.Fatal(err)
		}
		set.Origins = append(set.Origins, u)
	}
	if change != nil {
		change(&set)
	}
	p, err := New(set, telemetry.New("test", telemetry.Snapshots{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		p.Close() // idempotent
		if idle, busy := p.Connections(); idle != 0 || busy != 0 || p.Waiting() != 0 {
			t.Errorf("left in the pool: %d idle, %d busy, %d waiting", idle, busy, p.Waiting())
		}
	})
	return p
}

func covers(t *testing.T, p *Pool) {
	t.Helper()
	eventually(t, "there is coverage", func() bool { ok, _ := p.Covered(); return ok })
}

func take(t *testing.T, p *Pool) *Writer {
	t.Helper()
	w, err := p.Get(false, here)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ask carries one exchange out and returns which store answered.
func ask(w *Writer) (string, error) {
	if _, err := w.SendAndFill([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		return "", err
	}
	if err := w.ReadHead(); err != nil {
		return "", err
	}
	w.Heard(w.Resp.Status)
	return string(w.Resp.Lookup("x-from")), nil
}

// once is one exchange as a request makes it: a stale connection costs another try.
func once(p *Pool) (string, error) {
	for try := 0; ; try++ {
		w, err := p.Get(try >= 3, here)
		if err != nil {
			return "", err
		}
		from, err := ask(w)
		if err == nil {
			w.Release(1)
			return from, nil
		}
		w.Discard(telemetry.DiscardClosed)
		if err != relay.ErrStale && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") || try > 5 {
			return "", err
		}
	}
}

// address of the n-th endpoint of 127.0.0.0/8 beside 127.0.0.1.
func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + n)}) }

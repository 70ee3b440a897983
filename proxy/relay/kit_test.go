package relay

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

const patience = 30 * time.Second // only ever waited out by a failing test

// pattern is what bodies are made of; its length has no common divisor with any buffer, so that a shifted byte shows.
var pattern = func() []byte {
	b := make([]byte, 65521)
	_, _ = mrand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

// body returns n bytes.
func body(n int) []byte {
	return bytes.Repeat(pattern, n/len(pattern)+1)[:n]
}

// tcpPair returns the two ends of one loopback connection.
func tcpPair(t fataler) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot listen: %v", err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("cannot dial: %v", err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatalf("cannot accept: %v", err)
	}
	deadline := time.Now().Add(patience)
	_ = b.SetDeadline(deadline)
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

var certificate = func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}()

// link is a Conn and the peer at its other end.
type link struct {
	*Conn
	peer net.Conn
	tcp  *net.TCPConn // the peer's socket
}

// open makes a link, over TLS if secure. The Conn is the TLS client, with a session cache, so that the peer sends it tickets.
func open(t fataler, large, secure bool) link {
	t.Helper()
	near, far := tcpPair(t)
	var nc, peer net.Conn = near, far
	if secure {
		c := tls.Client(near, &tls.Config{InsecureSkipVerify: true, ServerName: "test", ClientSessionCache: tls.NewLRUClientSessionCache(1)})
		s := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{certificate}})
		done := make(chan error, 1)
		go func() { done <- s.Handshake() }()
		if err := errors.Join(c.Handshake(), <-done); err != nil {
			t.Fatalf("cannot shake hands: %v", err)
		}
		nc, peer = c, s
	}
	c, err := NewConn(nc, large)
	if err != nil {
		t.Fatalf("cannot wrap: %v", err)
	}
	return link{c, peer, far}
}

// shut ends both sides at once.
func (l link) shut() {
	_ = l.tcp.SetLinger(0)
	_ = l.tcp.Close()
	_ = l.Close()
}

// dial is open with an end at the test's.
func dial(t *testing.T, large, secure bool) link {
	t.Helper()
	l := open(t, large, secure)
	t.Cleanup(l.shut)
	return l
}

// awaitBytes returns when the Conn's socket has something to read, an end included.
func awaitBytes(t fataler, c *Conn) {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(c.FD()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, int(patience/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Fatalf("nothing came: %v", err)
		}
		return
	}
}

// awaitBlocked returns when n goroutines wait for the network inside the function.
func awaitBlocked(t fataler, n int, function string) {
	t.Helper()
	buf := make([]byte, 4<<20)
	for start := time.Now(); ; {
		blocked := 0
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if head, rest, _ := strings.Cut(g, "\n"); strings.Contains(head, "[IO wait") && strings.Contains(rest, function+"(") {
				blocked++
			}
		}
		if blocked == n {
			return
		}
		if time.Since(start) > patience {
			t.Fatalf("%d goroutines wait in %s, want %d", blocked, function, n)
		}
		runtime.Gosched()
	}
}

// result waits for what a goroutine reports.
func result[T any](t fataler, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no result")
		panic("unreachable")
	}
}

// consume reads n bytes of the pattern in reads of at most size and reports the first difference. Each is called after every read.
func consume(r io.Reader, n, size int, each func()) error {
	buf := make([]byte, size)
	for at := 0; at < n; {
		m, err := r.Read(buf[:min(size, n-at)])
		for i := 0; i < m; {
			p := pattern[(at+i)%len(pattern):]
			k := min(len(p), m-i)
			if !bytes.Equal(p[:k], buf[i:i+k]) {
				return fmt.Errorf("bytes after %d of %d differ", at+i, n)
			}
			i += k
		}
		at += m
		if err != nil && at < n {
			return fmt.Errorf("after %d of %d: %w", at, n, err)
		}
		if each != nil {
			each()
		}
	}
	return nil
}

// openFiles counts the process' descriptors.
func openFiles(t fataler) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatalf("cannot count descriptors: %v", err)
	}
	return len(d)
}

// forgetPipes closes the idle pipes, so that descriptors and counts start from nothing.
func forgetPipes() {
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	for _, p := range pipes.idle {
		_ = unix.Close(p.r)
		_ = unix.Close(p.w)
		pipes.open--
	}
	pipes.idle = nil
}

func openPipes() (open, idle int) {
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	return pipes.open, len(pipes.idle)
}

// leapClock is a clock whose timers fire at once, by moving the time to theirs.
type leapClock struct{ now atomic.Int64 }

func (c *leapClock) Now() time.Duration             { return time.Duration(c.now.Load()) }
func (c *leapClock) NewTimer(f func()) bucket.Timer { return &leap{c, f} }
func (l *leap) Reset(d time.Duration)               { l.clock.now.Add(int64(max(d, 0))); go l.f() }
func (l *leap) Stop()                               {}

type leap struct {
	clock *leapClock
	f     func()
}

func sum(f *Flow) (n int64) {
	for _, b := range f.Bytes {
		n += b
	}
	return n
}

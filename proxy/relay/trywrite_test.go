package relay

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bounded makes a write that waits fail instead of hanging.
func bounded(t *testing.T, l link) {
	t.Helper()
	if err := l.nc.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
}

func socket(l link) *net.TCPConn {
	if c, ok := l.nc.(*tls.Conn); ok {
		return c.NetConn().(*net.TCPConn)
	}
	return l.nc.(*net.TCPConn)
}

// stuff offers the bytes of the pattern from at on in pieces of size until the socket takes nothing, and returns where it stopped.
func stuff(t *testing.T, l link, at, size int) (end, partial int) {
	t.Helper()
	all := body(at + 64<<20)
	for at+size <= len(all) {
		n, err := l.TryWrite(all[at : at+size])
		if err != nil || n < 0 || n > size {
			t.Fatalf("TryWrite of %d bytes after %d: %d, %v", size, at, n, err)
		}
		if n == 0 {
			return at, partial
		}
		if n < size {
			partial++
		}
		at += n
	}
	t.Fatal("the socket never fills")
	return 0, 0
}

// A full socket takes nothing, at once and without an error; what it took before arrives whole, and it takes more when there is room again.
func TestX2_TryWriteFillsTheSocketAndNeverWaits(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, buffer := range []int{-1, 0, 1, 16 << 10, 256 << 10} { // 0: the kernel's own, -1: a client's
			for _, size := range []int{1, 700, 4 << 10, 16 << 10, 1 << 20} {
				if size == 1 && buffer != 1 {
					continue
				}
				t.Run(fmt.Sprintf("TLS %v, buffer %d, pieces of %d", secure, buffer, size), func(t *testing.T) {
					l := dial(t, false, secure)
					if buffer < 0 {
						TuneClient(socket(l))
					} else if buffer > 0 {
						_ = l.tcp.SetReadBuffer(buffer)
						if err := unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer); err != nil {
							t.Fatal(err)
						}
					}
					bounded(t, l)
					began := time.Now()
					at, partial := stuff(t, l, 0, size)
					if at == 0 || secure && size <= tlsPiece && partial > 0 {
						t.Fatalf("%d bytes, %d pieces in parts", at, partial)
					}
					for range 20 {
						if n, err := l.TryWrite(body(at + 1)[at:]); n > 1 || err != nil {
							t.Fatalf("a full socket: %d, %v", n, err)
						} else if n == 1 { // the kernel had moved some on
							at++
						}
					}
					if took := time.Since(began); took > patience/2 {
						t.Fatalf("it waited: %v", took)
					}
					if buffer > 0 && buffer < 256<<10 {
						return // the kernel would wait for its window probes, seconds for a few bytes
					}
					drainAndGoOn(t, l, at, size)
				})
			}
		}
	}
}

// drainAndGoOn reads what came and writes on, by TryWrite and by Write in turns.
func drainAndGoOn(t *testing.T, l link, at, size int) {
	t.Helper()
	all := body(at + 2*size + 50_000)
	done := make(chan error, 1)
	go func() { done <- consume(l.peer, len(all), 64<<10, nil) }()
	for at < len(all) {
		n, err := l.TryWrite(all[at:min(at+size, len(all))])
		if err != nil {
			t.Fatal(err)
		}
		if at += n; n == 0 && at < len(all) {
			m := min(len(all)-at, 10_000)
			if err := l.Write(all[at : at+m]); err != nil {
				t.Fatal(err)
			}
			at += m
		}
	}
	if err := result(t, done); err != nil {
		t.Fatal(err)
	}
}

// Offered more than there is room for, a bare socket takes a part.
func TestX2_TryWriteTakesAPart(t *testing.T) {
	l := dial(t, false, false)
	all := body(64 << 20)
	n, err := l.TryWrite(all)
	if n <= 0 || n >= len(all) || err != nil {
		t.Fatalf("%d of %d, %v", n, len(all), err)
	}
	go func() { _ = l.Write(all[n:]) }()
	if err := consume(l.peer, len(all), 64<<10, nil); err != nil {
		t.Fatal(err)
	}
}

func TestX2_TryWriteOfNothing(t *testing.T) {
	for _, secure := range []bool{false, true} {
		l := dial(t, false, secure)
		for _, p := range [][]byte{nil, {}} {
			if n, err := l.TryWrite(p); n != 0 || err != nil {
				t.Errorf("TLS %v: %d, %v", secure, n, err)
			}
		}
		if n, err := l.TryWrite([]byte("x")); n != 1 || err != nil {
			t.Errorf("TLS %v: %d, %v", secure, n, err)
		}
		var b [2]byte
		if n, err := l.peer.Read(b[:]); n != 1 || b[0] != 'x' || err != nil {
			t.Errorf("TLS %v: the peer got %d, %v", secure, n, err)
		}
	}
}

// An ended connection gives an error and not 0: its owner must not take it for a slow one.
func TestX2_TryWriteOnAnEndedConnection(t *testing.T) {
	for how, end := range map[string]func(t *testing.T, l link){
		"closed":      func(_ *testing.T, l link) { _ = l.Close() },
		"interrupted": func(_ *testing.T, l link) { l.Interrupt() },
		"reset": func(t *testing.T, l link) {
			_ = l.tcp.SetLinger(0)
			_ = l.tcp.Close()
			awaitBytes(t, l.Conn)
		},
		"reset while full": func(t *testing.T, l link) {
			stuff(t, l, 0, 4<<10)
			_ = l.tcp.SetLinger(0)
			_ = l.tcp.Close()
			awaitBytes(t, l.Conn)
		},
		"interrupted while full": func(t *testing.T, l link) { stuff(t, l, 0, 4<<10); l.Interrupt() },
		"writing end closed":     func(_ *testing.T, l link) { _ = l.CloseWrite() },
	} {
		for _, secure := range []bool{false, true} {
			l := dial(t, false, secure)
			bounded(t, l)
			end(t, l)
			for range 3 {
				if n, err := l.TryWrite([]byte("more")); n != 0 || err == nil {
					t.Errorf("%s, TLS %v: %d, %v", how, secure, n, err)
				}
			}
		}
	}
}

// Interrupt may come from any goroutine at any moment; for -race. What arrived before is a prefix of what was written.
func TestX2_TryWriteBesideInterrupt(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for range 20 {
			l := dial(t, false, secure)
			got := make(chan []byte, 1)
			go func() { b, _ := io.ReadAll(l.peer); got <- b }()
			all := body(8 << 20)
			at := 0
			for i := 0; at+1000 <= len(all); i++ {
				if i == 5 {
					go l.Interrupt()
				}
				n, err := l.TryWrite(all[at : at+1000])
				if err != nil {
					break
				}
				at += n
			}
			_ = l.Close()
			if b := result(t, got); !bytes.HasPrefix(all, b) {
				t.Fatalf("TLS %v: the peer got %d bytes that are not those written", secure, len(b))
			}
		}
	}
}

func TestX2_TryWriteAllocatesNothing(t *testing.T) {
	l := dial(t, false, false)
	go func() { _, _ = io.Copy(io.Discard, l.peer.(*net.TCPConn)) }()
	p := body(1000)
	if allocs := testing.AllocsPerRun(100, func() {
		if _, err := l.TryWrite(p); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

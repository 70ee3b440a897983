package relay

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// narrow is a client's TLS connection with a small window and small segments, which reads nothing until it is told to, and the proxy's end of it.
func narrowLink(t *testing.T, window, segment int) (c *Conn, peer *tls.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, window)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, segment)
		})
	}}
	far, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	tcp := near.(*net.TCPConn)
	TuneClient(tcp)
	s := tls.Server(NewSpill(tcp), &tls.Config{Certificates: []tls.Certificate{certificate}})
	peer = tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- peer.Handshake() }()
	if err := s.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c, err = NewConn(s, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
		_ = c.Close()
		_ = far.Close()
	})
	return c, peer
}

// TestX2_TryWriteDoesNotWaitForATinyWindow: behind TLS a piece is many records and more segments than the socket has room for, although it is called writable.
func TestX2_TryWriteDoesNotWaitForATinyWindow(t *testing.T) {
	for _, window := range []int{1, 2000, 8000} {
		for _, segment := range []int{88, 200, 536} {
			for fill := 1000; fill < 40_000; fill += 1700 {
				c, _ := narrowLink(t, window, segment)
				_ = c.Net().SetWriteDeadline(time.Now().Add(2 * time.Second)) // a wait fails instead of hanging
				all := body(1 << 20)
				at := 0
				for zeros := 0; zeros < 3; {
					size := tlsPiece
					if at < fill {
						size = min(fill-at, 1000)
					}
					n, err := c.TryWrite(all[at : at+size])
					if err != nil {
						t.Fatalf("window %d, segment %d: after %d bytes a write of %d waited: %v", window, segment, at, size, err)
					}
					if at += n; n == 0 {
						zeros++
					}
				}
			}
		}
	}
}

// TestX2_WhatTheSocketLeftOfARecordComesFirst: a client that reads again gets every byte once, by TryWrite and by Write in turns.
func TestX2_WhatTheSocketLeftOfARecordComesFirst(t *testing.T) {
	c, peer := narrowLink(t, 2000, 536)
	all := body(600_000)
	at := 0
	for zeros := 0; zeros < 3; {
		n, err := c.TryWrite(all[at:min(at+tlsPiece, len(all))])
		if err != nil {
			t.Fatal(err)
		}
		if at += n; n == 0 {
			zeros++
		}
	}
	got := make(chan []byte, 1)
	_ = peer.SetDeadline(time.Now().Add(patience))
	go func() { b := make([]byte, len(all)); n, _ := io.ReadFull(peer, b); got <- b[:n] }()
	for i := 0; at < len(all); i++ {
		if i%3 == 2 {
			n := min(len(all)-at, 3000)
			if err := c.Write(all[at : at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
			continue
		}
		n, err := c.TryWrite(all[at:min(at+5000, len(all))])
		if err != nil {
			t.Fatal(err)
		}
		at += n
	}
	for c.spill.rest != nil {
		if _, err := c.spill.try(); err != nil {
			t.Fatal(err)
		}
	}
	if b := <-got; !bytes.Equal(b, all) {
		t.Fatalf("%d of %d bytes, a prefix: %v", len(b), len(all), bytes.HasPrefix(all, b))
	}
}

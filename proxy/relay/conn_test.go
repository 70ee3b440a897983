package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func mustFill(t *testing.T, c *Conn, limit int) {
	t.Helper()
	if err := c.Fill(limit); err != nil {
		t.Fatal(err)
	}
}

func fillTo(t *testing.T, c *Conn, n, limit int) {
	t.Helper()
	for len(c.Buffered()) < n {
		mustFill(t, c, limit)
	}
}

func send(t *testing.T, l link, p []byte) {
	t.Helper()
	if _, err := l.peer.Write(p); err != nil {
		t.Fatal(err)
	}
}

func TestP3_FillPinSkipUnpin(t *testing.T) {
	for _, secure := range []bool{false, true} {
		l := dial(t, false, secure)
		if l.Bare() == secure || l.Net() == nil || len(l.Buffered()) != 0 {
			t.Fatal("a new Conn is not what was wrapped")
		}
		send(t, l, []byte("head+body"))
		fillTo(t, l.Conn, 9, 64<<10)
		head := l.Buffered()[:5]
		l.Pin(5)
		l.ReleaseIfEmpty()
		if string(l.Buffered()) != "body" || string(head) != "head+" {
			t.Fatalf("after Pin: %q, %q", l.Buffered(), head)
		}
		l.Skip(1)
		var two [2]byte
		if n, err := l.Read(two[:]); n != 2 || err != nil || string(two[:]) != "od" {
			t.Fatalf("Read of buffered bytes: %d %v %q", n, err, two)
		}
		l.Skip(1)
		l.ReleaseIfEmpty()
		if l.buf == nil || string(head) != "head+" {
			t.Fatal("the buffer of a pinned head was given away")
		}
		l.Unpin()
		if l.buf != nil {
			t.Fatal("an empty Conn keeps its buffer")
		}
		send(t, l, []byte("xy"))
		if n, err := l.Read(two[:1]); n != 1 || err != nil || two[0] != 'x' {
			t.Fatalf("Read from the socket: %d %v", n, err)
		}
	}
}

func TestP3_PinnedHeadSurvivesGrowth(t *testing.T) {
	l := dial(t, false, false)
	all := body(40 << 10)
	go func() { _, _ = l.peer.Write(all) }()
	fillTo(t, l.Conn, 3000, 64<<10)
	skipped, head := 1000, l.Buffered()[1000:3000]
	l.Skip(skipped)
	l.Pin(2000)
	fillTo(t, l.Conn, len(all)-3000, 64<<10)
	if !bytes.Equal(head, all[1000:3000]) {
		t.Fatal("the pinned head changed while the body was read")
	}
	if !bytes.Equal(l.Buffered(), all[3000:]) {
		t.Fatal("bytes were lost while the buffer grew")
	}
	l.Skip(len(l.Buffered()))
	l.Unpin()
}

func TestP3_PinnedHeadSurvivesReuse(t *testing.T) {
	l := dial(t, false, false)
	all := body(1 << 20)
	go func() { _, _ = l.peer.Write(all) }()
	fillTo(t, l.Conn, 1000, 8<<10)
	head := l.Buffered()[:1000]
	l.Pin(1000)
	for at := 1000; at < len(all); {
		mustFill(t, l.Conn, 8<<10)
		b := l.Buffered()
		b = b[:min(len(b), 700)] // leaves a rest that has to move down
		if !bytes.Equal(b, all[at:at+len(b)]) || !bytes.Equal(head, all[:1000]) {
			t.Fatalf("bytes after %d differ", at)
		}
		if at+len(l.Buffered()) == len(all) {
			break
		}
		l.Skip(len(b))
		at += len(b)
		if len(l.buf) > 16<<10 {
			t.Fatalf("a buffer of %d bytes", len(l.buf))
		}
	}
}

func TestL3_BufferIsBounded(t *testing.T) {
	for _, limit := range []int{HeadBytes, 8 << 10, 64 << 10} {
		l := dial(t, false, false)
		all := body(256 << 10)
		go func() { _, _ = l.peer.Write(all) }()
		var err error
		for err == nil {
			err = l.Fill(limit)
		}
		if !errors.Is(err, ErrBufferFull) {
			t.Fatal(err)
		}
		if n := len(l.Buffered()); n < limit-512 || n > limit+HeadBytes {
			t.Fatalf("limit %d: full with %d bytes", limit, n)
		}
		if !bytes.Equal(l.Buffered(), all[:len(l.Buffered())]) {
			t.Fatal("bytes were lost")
		}
	}
}

func TestP3_FillReportsTheEnd(t *testing.T) {
	for _, secure := range []bool{false, true} {
		l := dial(t, true, secure)
		send(t, l, []byte("last"))
		if err := l.peer.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		fillTo(t, l.Conn, 4, BodyBytes)
		if err := l.Fill(BodyBytes); err != io.EOF || string(l.Buffered()) != "last" {
			t.Fatalf("%v, %q", err, l.Buffered())
		}
	}
}

func TestL3_WaitingFillHoldsNoBuffer(t *testing.T) {
	l := dial(t, true, false)
	done := make(chan error, 1)
	go func() { done <- l.Fill(BodyBytes) }()
	awaitBlocked(t, 1, "relay.(*Conn).Fill")
	l.Interrupt() // ends the wait as it is: what was held is still there
	if err := result(t, done); !errors.Is(err, os.ErrDeadlineExceeded) || l.buf != nil {
		t.Fatalf("a waiting Conn holds a buffer: %v", err)
	}
}

func TestP3_Write3(t *testing.T) {
	all := body(6<<20 + 17)
	for _, secure := range []bool{false, true} {
		for _, cuts := range [][2]int{{0, 0}, {0, 100}, {100, 100}, {200, 1 << 20}, {1 << 20, len(all)}, {2 << 20, len(all) - 2}, {len(all), len(all)}} {
			l := dial(t, false, secure)
			done := echo(l, len(all), "")
			if err := l.Write3(all[:cuts[0]], all[cuts[0]:cuts[1]], all[cuts[1]:]); err != nil {
				t.Fatal(err)
			}
			if err := result(t, done); err != nil {
				t.Fatalf("cuts at %v, secure %v: %v", cuts, secure, err)
			}
			if l.wop.iov[0].Base != nil || l.wop.iov[1].Base != nil {
				t.Fatal("the Conn still points to what was written")
			}
		}
	}
	l := dial(t, false, false)
	if err := l.Write2(nil, nil); err != nil {
		t.Fatal(err)
	}
	l.shut()
	if err := l.Write2([]byte("a"), []byte("b")); err == nil {
		t.Fatal("a write on a closed connection succeeds")
	}
}

func TestP6_InterruptEndsReadsAndWrites(t *testing.T) {
	calls := map[string]func(c *Conn) error{
		"Fill":        func(c *Conn) error { return c.Fill(BodyBytes) },
		"SendAndFill": func(c *Conn) error { _, err := c.SendAndFill([]byte("x")); return err },
		"Read":        func(c *Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"Write":       func(c *Conn) error { return c.Write(body(16 << 20)) },
		"Write3": func(c *Conn) error {
			for {
				if err := c.Write3(body(1<<20), body(1<<20), nil); err != nil {
					return err
				}
			}
		},
	}
	for name, call := range calls {
		for _, secure := range []bool{false, true} {
			l := dial(t, true, secure)
			done := make(chan error, 1)
			go func() { done <- call(l.Conn) }()
			inside := name
			if name == "SendAndFill" && secure {
				inside = "Fill" // behind the look for tickets
			}
			awaitBlocked(t, 1, "relay.(*Conn)."+inside)
			l.Interrupt()
			if err := result(t, done); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, secure %v: %v", name, secure, err)
			}
			if !l.Interrupted() || call(l.Conn) == nil {
				t.Errorf("%s, secure %v, works again after Interrupt", name, secure)
			}
		}
	}
}

func TestP6_InterruptReadsAndResume(t *testing.T) {
	l := dial(t, true, false)
	done := make(chan error, 1)
	go func() { done <- l.Fill(BodyBytes) }()
	awaitBlocked(t, 1, "relay.(*Conn).Fill")
	l.InterruptReads()
	if err := result(t, done); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if err := l.Write([]byte("still")); err != nil || l.Interrupted() {
		t.Fatal("writes ended with the reads", err)
	}
	l.ResumeReads()
	send(t, l, []byte("x"))
	mustFill(t, l.Conn, BodyBytes)
	l.Interrupt()
	l.ResumeReads()
	if err := l.Fill(BodyBytes); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("ResumeReads took Interrupt back: %v", err)
	}
}

func TestL1_CloseIsIdempotent(t *testing.T) {
	l := dial(t, false, false)
	send(t, l, []byte("x"))
	mustFill(t, l.Conn, HeadBytes)
	l.Pin(1)
	if err := l.Close(); err != nil || l.buf != nil {
		t.Fatal("Close keeps a buffer or fails", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.Fill(HeadBytes) == nil || l.Write([]byte("x")) == nil || l.Quiet() {
		t.Fatal("a closed Conn works")
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := NewConn(a, false); err == nil {
		t.Fatal("a Conn of something that is no TCP socket")
	}
}

func TestP4_HalfCloseAndReset(t *testing.T) {
	for _, secure := range []bool{false, true} {
		l := dial(t, false, secure)
		if err := l.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := l.peer.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Fatalf("the peer sees %d, %v", n, err)
		}
		send(t, l, []byte("x"))
		mustFill(t, l.Conn, HeadBytes)
	}
	l := dial(t, false, false)
	l.Reset()
	_ = l.Close()
	if _, err := l.peer.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Fatalf("the peer sees %v", err)
	}
}

func TestP3_SocketTuning(t *testing.T) {
	near, far := tcpPair(t)
	defer near.Close()
	defer far.Close()
	TuneClient(near)
	control(near, func(fd int) {
		if got, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); got != notSentLowWater || err != nil {
			t.Errorf("low water is %d, want %d: %v", got, notSentLowWater, err)
		}
	})
	c, err := NewConn(far, true)
	if err != nil {
		t.Fatal(err)
	}
	c.narrow()
	if got, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || got > 2*narrowBuffer {
		t.Errorf("a slow stream's receive buffer is %d: %v", got, err)
	}
	if c.Widen() && c.narrowed {
		t.Error("widened and narrow at once")
	}
	if lock, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, soBufLock); err == nil && !c.narrowed && lock != 0 {
		t.Errorf("the buffer is still locked: %d", lock)
	}
	_ = near.Close()
	TuneClient(near) // a closed socket is no failure of the caller's
}

package relay

import (
	"errors"
	"io"
	"testing"
)

// echo reads n bytes at the peer and answers.
func echo(l link, n int, answer string) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := consume(l.peer, n, 32<<10, nil)
		if err == nil {
			_, err = io.WriteString(l.peer, answer)
		}
		done <- err
	}()
	return done
}

func TestP7_SendAndFill(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, n := range []int{1, 400, 8 << 20} { // the last does not fit the socket
			l := dial(t, true, secure)
			for range 2 {
				done := echo(l, n, "answer")
				written, err := l.SendAndFill(body(n))
				if !written || err != nil || result(t, done) != nil {
					t.Fatalf("secure %v, %d bytes: written %v, %v", secure, n, written, err)
				}
				fillTo(t, l.Conn, 6, BodyBytes)
				if string(l.Buffered()) != "answer" {
					t.Fatalf("%q", l.Buffered())
				}
				l.Skip(6)
			}
		}
	}
}

func TestP7_StaleConnections(t *testing.T) {
	spoil := map[string]func(l link){
		"closed":      func(l link) { _ = l.peer.Close() },
		"reset":       func(l link) { _ = l.tcp.SetLinger(0); _ = l.tcp.Close() },
		"unsolicited": func(l link) { _, _ = io.WriteString(l.peer, "HTTP/1.1 200 OK\r\n\r\n") },
	}
	ask := map[string]func(c *Conn) (bool, error){
		"SendAndFill": func(c *Conn) (bool, error) { return c.SendAndFill([]byte("GET")) },
		"Send":        func(c *Conn) (bool, error) { return c.Send([]byte("GET")) },
	}
	for how, f := range spoil {
		for what, g := range ask {
			for _, secure := range []bool{false, true} {
				l := dial(t, true, secure)
				f(l)
				awaitBytes(t, l.Conn)
				if written, err := g(l.Conn); written || !errors.Is(err, ErrStale) {
					t.Errorf("%s after the peer %s, secure %v: written %v, %v", what, how, secure, written, err)
				}
				if l.Quiet() {
					t.Errorf("quiet after the peer %s", how)
				}
			}
		}
	}
	l := dial(t, true, false)
	send(t, l, []byte("early"))
	fillTo(t, l.Conn, 5, BodyBytes)
	if written, err := l.SendAndFill([]byte("GET")); written || !errors.Is(err, ErrStale) {
		t.Errorf("with unread bytes: written %v, %v", written, err)
	}
}

// A server sends session tickets after the handshake, before any request: that is no reason to distrust the connection.
func TestP7_SessionTicketsAreNotUnsolicited(t *testing.T) {
	l := dial(t, true, true)
	awaitBytes(t, l.Conn)
	done := echo(l, 3, "answer")
	written, err := l.SendAndFill(body(3))
	if !written || err != nil || string(l.Buffered()) != "answer" {
		t.Fatalf("written %v, %v, %q", written, err, l.Buffered())
	}
	if err := result(t, done); err != nil {
		t.Fatal(err)
	}
}

// Unasked bytes in the same record as the end of a body are inside the TLS connection, not on its socket: the next client must
// not get them as its response.
func TestP7_UnaskedBytesInsideTLS(t *testing.T) {
	for _, slack := range []int{0, 7} {
		src, dst := dial(t, true, true), dial(t, false, false)
		send(t, src, body(100+slack))
		f := Flow{Src: src.Conn, Dst: dst.Conn}
		if err := f.Copy(100); err != nil {
			t.Fatal(err)
		}
		for look := range 2 {
			if src.Quiet() != (slack == 0) {
				t.Fatalf("%d unasked bytes, look %d: quiet %v", slack, look, slack != 0)
			}
		}
		if slack == 0 {
			continue
		}
		if written, err := src.SendAndFill([]byte("GET")); written || !errors.Is(err, ErrStale) {
			t.Fatalf("written %v, %v", written, err)
		}
	}
}

func TestP7_AnswerIntoADrainedBuffer(t *testing.T) {
	l := dial(t, true, false)
	all := body(2 * BodyBytes)
	go func() { _, _ = l.peer.Write(all) }()
	for read := 0; read < len(all); { // drains the buffer to its very end without giving it back
		mustFill(t, l.Conn, BodyBytes)
		read += len(l.Buffered())
		l.Skip(len(l.Buffered()))
	}
	l.r, l.w = len(l.buf), len(l.buf)
	done := echo(l, 3, "answer")
	if written, err := l.SendAndFill(body(3)); !written || err != nil || string(l.Buffered()) != "answer" {
		t.Fatalf("written %v, %v, %q", written, err, l.Buffered())
	}
	if err := result(t, done); err != nil {
		t.Fatal(err)
	}
}

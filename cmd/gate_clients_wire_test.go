//go:build gate

package house_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// wireTail is how much of the bytes before a piece is looked at again, so that a head split between two reads is seen.
const wireTail = 2048

// wireEvents bounds what a wire remembers to be printed; it counts on beyond that.
const wireEvents = 400

var (
	requestLine = regexp.MustCompile(`(?:^|\n)(GET|HEAD|POST|PUT) ([^ \r\n?]+)[^\r\n]* HTTP/1\.[01]\r\n`)
	rangeField  = regexp.MustCompile(`(?i)\nrange: *([^\r\n]*)\r\n`)
	statusLine  = regexp.MustCompile(`HTTP/1\.[01] ([1-5][0-9][0-9])[ \r]`)
)

// wire is the cable between one client and the sidecar. It gives the client a loopback address of its own, as if it ran on a machine of its
// own (most tools cannot choose one), and reads along: how many requests, what answers, when. What it passes on
// it changes in nothing: bytes at once, an end of stream as one, a reset as one.
type wire struct {
	address string // what the client is pointed at, host:port
	target  string
	source  *net.TCPAddr
	begun   time.Time

	mu       sync.Mutex
	open     map[net.Conn]bool
	closed   bool
	requests int
	events   []string
}

// newWire listens for one client, whose address towards the target will be source.
func newWire(t *testing.T, target string, source *net.TCPAddr) *wire {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String(), target: target, source: source, begun: time.Now(), open: map[net.Conn]bool{}}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { w.pass(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		w.closed = true
		for conn := range w.open {
			_ = conn.Close()
		}
		w.mu.Unlock()
		passing.Wait()
	})
	return w
}

// keep notes an open connection, so that the end of the test closes it; it reports false when that end has come.
func (w *wire) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.open[conn] = true
	return true
}

func (w *wire) drop(conn net.Conn) {
	w.mu.Lock()
	delete(w.open, conn)
	w.mu.Unlock()
	_ = conn.Close()
}

// pass carries one connection until both directions have ended.
func (w *wire) pass(client net.Conn) {
	defer w.drop(client)
	if !w.keep(client) {
		return
	}
	dialer := net.Dialer{LocalAddr: w.source}
	sidecar, err := dialer.Dial("tcp4", w.target)
	if err != nil {
		w.note("dial: %v", err)
		return
	}
	defer w.drop(sidecar)
	if !w.keep(sidecar) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { w.carry(sidecar.(*net.TCPConn), client.(*net.TCPConn), w.asked) })
	both.Go(func() { w.carry(client.(*net.TCPConn), sidecar.(*net.TCPConn), w.answered) })
	both.Wait()
}

// carry copies one direction and shows each piece, with some bytes before it, to see. The second argument of see is where the piece begins.
func (w *wire) carry(to, from *net.TCPConn, see func([]byte, int)) {
	buffer := make([]byte, wireTail+64<<10)
	tail := 0
	for {
		n, err := from.Read(buffer[tail:])
		if n > 0 {
			see(buffer[:tail+n], tail)
			if _, failed := to.Write(buffer[tail : tail+n]); failed != nil {
				reset(from)
				return
			}
			end := tail + n
			tail = copy(buffer, buffer[max(0, end-wireTail):end])
		}
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite()
			return
		}
		if err != nil {
			reset(to)
			return
		}
	}
}

// reset ends a connection with a reset instead of an orderly end.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// asked looks for request heads that end in the new piece. A target's query is never noted: it may carry a signature.
func (w *wire) asked(seen []byte, piece int) {
	for _, at := range requestLine.FindAllSubmatchIndex(seen, -1) {
		if at[1] <= piece {
			continue
		}
		head := seen[at[0]:]
		if end := bytes.Index(head, []byte("\r\n\r\n")); end >= 0 {
			head = head[:end+2]
		}
		span := ""
		if match := rangeField.FindSubmatch(head); match != nil {
			span = " [" + string(match[1]) + "]"
		}
		w.mu.Lock()
		w.requests++
		w.mu.Unlock()
		w.note("> %s %s%s", seen[at[2]:at[3]], seen[at[4]:at[5]], span)
	}
}

// answered looks for response heads that end in the new piece.
func (w *wire) answered(seen []byte, piece int) {
	if !bytes.Contains(seen, []byte("HTTP/1.")) {
		return
	}
	for _, at := range statusLine.FindAllSubmatchIndex(seen, -1) {
		if at[1] > piece {
			w.note("< %s", seen[at[2]:at[3]])
		}
	}
}

func (w *wire) note(format string, arguments ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) < wireEvents {
		w.events = append(w.events, fmt.Sprintf("%7.1f s ", time.Since(w.begun).Seconds())+fmt.Sprintf(format, arguments...))
	}
}

// count returns the number of requests so far.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// story returns what passed, a line an event.
func (w *wire) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.events, "\n")
}

// TestGateX1_WireChangesNothing: what the gates measure through a wire is what they would measure without it. Bodies pass byte for byte, heads are
// counted also when they come in two pieces, an end and a reset arrive as what they were.
func TestGateX1_WireChangesNothing(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	from := source(7)
	w := newWire(t, listener.Addr().String(), from)
	client, err := net.Dial("tcp4", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if got := server.RemoteAddr().(*net.TCPAddr).IP; !got.Equal(from.IP) {
		t.Errorf("the client comes from %v, want %v", got, from.IP)
	}
	exchange := func(to, at net.Conn, pieces ...string) {
		t.Helper()
		for _, piece := range pieces {
			if _, err := io.WriteString(to, piece); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(piece))
			if _, err := io.ReadFull(at, got); err != nil || string(got) != piece {
				t.Fatalf("%q arrived as %q, %v", piece, got, err)
			}
		}
	}
	exchange(client, server, "GET /a?sig=secret HT", "TP/1.1\r\nHost: x\r\nRange: bytes=5-\r\n\r\n", "GET /b HTTP/1.1\r\n\r\n")
	exchange(server, client, "HTTP/1.", "1 503 Busy\r\n\r\n", strings.Repeat("body", 50_000), "HTTP/1.1 200 OK\r\n\r\n")
	if got := w.count(); got != 2 {
		t.Errorf("%d requests counted, want 2", got)
	}
	for _, want := range []string{"> GET /a", "> GET /b", "< 503", "< 200"} {
		if story := w.story(); strings.Count(story, want) != 1 || strings.Contains(story, "secret") {
			t.Errorf("%q is not once in\n%s", want, story)
		}
	}
	if err := server.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the server's end the client reads %d bytes, %v; want the end", n, err)
	}
	reset(client.(*net.TCPConn))
	if _, err := server.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after the client's reset the server reads %v, want a reset", err)
	}
}

// dialerFrom dials from the n-th client's own address.
func dialerFrom(n int) func(context.Context, string, string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: source(n)}
	return dialer.DialContext
}

package front

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// patience is how long a test waits for an event that must come.
const patience = 20 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// handler answers with functions; malformed heads and panics as the proxy would, in short.
type handler struct {
	serve func(c *Conn) bool
	seen  chan string // malformed and panics
}

func (h *handler) ServeRequest(c *Conn) bool { return h.serve(c) }

func (h *handler) Malformed(c *Conn, status int, _ string) {
	_ = c.Write([]byte(fmt.Sprintf("HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status)))
	h.seen <- fmt.Sprint(status)
}

func (h *handler) Panicked(c *Conn, value any) {
	p := value.(Panic)
	if !c.AnySent() {
		_ = c.Write([]byte("HTTP/1.1 500 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	}
	h.seen <- fmt.Sprintf("%v, stack %v", p.Value, len(p.Stack) > 0)
}

// reply answers with the target as the body.
func reply(c *Conn) bool {
	c.MarkSent()
	err := c.Write([]byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(c.Req.Target), c.Req.Target)))
	return err == nil && !c.Req.Close
}

type bench struct {
	t    *testing.T
	s    *Server
	h    *handler
	addr string
	done chan error
	over bool
}

// start serves until the test ends.
func start(t *testing.T, change func(*Settings), serve func(c *Conn) bool) *bench {
	t.Helper()
	set := Settings{MaxConnections: 64, MaxHeaderBytes: 8 << 10, HeaderTimeout: patience, IdleTimeout: patience, StallTimeout: patience}
	if change != nil {
		change(&set)
	}
	b := &bench{t: t, h: &handler{serve, make(chan string, 64)}, done: make(chan error, 1)}
	b.s = New(set, b.h)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	go func() { b.done <- b.s.Serve(ln) }()
	t.Cleanup(func() { b.stop(patience) })
	return b
}

func (b *bench) stop(limit time.Duration) error {
	if b.over {
		return nil
	}
	b.over = true
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := b.s.Shutdown(ctx)
	if e := <-b.done; e != nil {
		b.t.Errorf("serve: %v", e)
	}
	if n := b.s.Open(); n != 0 {
		b.t.Errorf("%d connections are open after a shutdown", n)
	}
	return err
}

type client struct {
	t    *testing.T
	conn net.Conn
	br   *bufio.Reader
}

func (b *bench) dial() *client {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.wrap(conn)
}

func (b *bench) wrap(conn net.Conn) *client {
	_ = conn.SetDeadline(time.Now().Add(2 * patience))
	b.t.Cleanup(func() { _ = conn.Close() })
	return &client{b.t, conn, bufio.NewReader(conn)}
}

func (c *client) send(text string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
	return c
}

func (c *client) get(target string) *client {
	return c.send("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")
}

func (c *client) expect(status int, body string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		c.t.Fatalf("no response: %v", err)
	}
	got, err := io.ReadAll(resp.Body)
	if resp.StatusCode != status || string(got) != body || err != nil {
		c.t.Fatalf("%d %q %v, want %d %q", resp.StatusCode, got, err, status, body)
	}
}

func (c *client) atEnd() {
	c.t.Helper()
	if b, err := io.ReadAll(c.br); len(b) > 0 {
		c.t.Errorf("unexpected %q, %v", b, err)
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.t.Error("the connection stays open")
	}
}

package proxy

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client is a raw client socket. Answers are read by net/http's parser: an independent judge of framing.
type client struct {
	t    *testing.T
	conn net.Conn
	br   *bufio.Reader
}

func (b *bench) dial() *client { return dialTest(b.t, b.addr) }

func dialTest(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(t, conn)
}

func wrap(t *testing.T, conn net.Conn) *client {
	_ = conn.SetDeadline(time.Now().Add(2 * patience)) // a hang is a failure with a name
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, br: bufio.NewReader(conn)}
}

func (c *client) send(text string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
	return c
}

// get sends a GET with further field lines.
func (c *client) get(target string, fields ...string) *client {
	c.t.Helper()
	return c.send(request("GET", target, fields...))
}

func request(method, target string, fields ...string) string {
	var b strings.Builder
	b.WriteString(method + " " + target + " HTTP/1.1\r\nHost: store.test\r\n")
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return b.String() + "\r\n"
}

// head reads a head as it is.
func (c *client) head() string {
	c.t.Helper()
	h, err := readHead(c.br)
	if err != nil {
		c.t.Fatalf("no head: %v after %q", err, h)
	}
	return h
}

// answer is a response read to its end; err is what stopped the body.
type answer struct {
	*http.Response
	body string
	err  error
}

func (c *client) answer() answer { c.t.Helper(); return c.answerTo("GET") }

func (c *client) answerTo(method string) answer {
	c.t.Helper()
	resp := c.begin(method)
	body, err := io.ReadAll(resp.Body)
	return answer{resp, string(body), err}
}

// begin reads the head only.
func (c *client) begin(method string) *http.Response {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no response: %v", err)
	}
	return resp
}

// ok fails the test unless the answer is whole and has the status.
func (c *client) ok(status int) answer {
	c.t.Helper()
	a := c.answer()
	if a.StatusCode != status || a.err != nil {
		c.t.Fatalf("status %d, body %.200q, %v; want %d", a.StatusCode, a.body, a.err, status)
	}
	return a
}

// reason returns the reason of an answer of the proxy's own.
func (a answer) reason(t *testing.T) string {
	t.Helper()
	var f struct{ Reason string }
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	return f.Reason
}

// atEnd fails the test unless the proxy closes the connection, with nothing more sent.
func (c *client) atEnd() {
	c.t.Helper()
	b, err := io.ReadAll(c.br)
	if len(b) > 0 {
		c.t.Errorf("unexpected %.200q", b)
	}
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.t.Errorf("the connection stays open")
	}
}

func (c *client) close() { _ = c.conn.Close() }

// reset leaves with RST, as a killed process with unread bytes does.
func (c *client) reset() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.conn.Close()
}

// once sends one request on a new connection and reads its answer.
func (b *bench) once(method, target string, fields ...string) answer {
	b.t.Helper()
	c := b.dial()
	defer c.close()
	return c.send(request(method, target, fields...)).answerTo(method)
}

package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// origin is a scripted HTTP/1.1 server on a raw socket: it shows the exact bytes it got and sends the exact bytes it is told.
type origin struct {
	t    *testing.T
	ln   net.Listener
	tls  *tls.Config
	play func(*call) // answers one request

	mu    sync.Mutex
	lines []string // request lines in order of arrival
	conns map[net.Conn]bool
	total int // connections accepted
	wg    sync.WaitGroup
}

// call is one request at the origin.
type call struct {
	o    *origin
	conn net.Conn
	br   *bufio.Reader
	n    int // which request of its connection, from 1

	raw                  string // head as received, with the empty line
	line, method, target string
	over                 bool // no further request on this connection
}

func newOrigin(t *testing.T, play func(*call)) *origin { return newTLSOrigin(t, nil, play) }

func newTLSOrigin(t *testing.T, config *tls.Config, play func(*call)) *origin {
	t.Helper()
	at := "127.0.0.1:0" // as the certificates say
	if config == nil {
		at = ownHost()
	}
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{t: t, ln: ln, tls: config, play: play, conns: map[net.Conn]bool{}}
	o.wg.Go(o.accept)
	t.Cleanup(o.close)
	return o
}

func (o *origin) url() string {
	if o.tls != nil {
		return "https://" + o.ln.Addr().String()
	}
	return "http://" + o.ln.Addr().String()
}

func (o *origin) close() {
	_ = o.ln.Close()
	o.mu.Lock()
	for c := range o.conns {
		_ = c.Close()
	}
	o.mu.Unlock()
	o.wg.Wait()
}

// again listens at the same address after close.
func (o *origin) again() {
	ln, err := net.Listen("tcp", o.ln.Addr().String())
	if err != nil {
		o.t.Fatal(err)
	}
	o.ln = ln
	o.wg.Go(o.accept)
}

func (o *origin) accept() {
	for {
		c, err := o.ln.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		o.conns[c] = true
		o.total++
		o.mu.Unlock()
		o.wg.Go(func() { o.serve(c) })
	}
}

func (o *origin) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		o.mu.Lock()
		delete(o.conns, c)
		o.mu.Unlock()
	}()
	var sock net.Conn = c
	if o.tls != nil {
		sock = tls.Server(c, o.tls)
	}
	br := bufio.NewReader(sock)
	for n := 1; ; n++ {
		raw, err := readHead(br)
		if err != nil {
			return
		}
		k := &call{o: o, conn: sock, br: br, n: n, raw: raw}
		k.line, _, _ = strings.Cut(raw, "\r\n")
		if part := strings.SplitN(k.line, " ", 3); len(part) == 3 {
			k.method, k.target = part[0], part[1]
		}
		o.mu.Lock()
		o.lines = append(o.lines, k.line)
		o.mu.Unlock()
		o.play(k)
		if k.over {
			return
		}
	}
}

// requests returns the request lines so far.
func (o *origin) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.lines...)
}

// count returns how many requests began with that text.
func (o *origin) count(prefix string) (n int) {
	for _, l := range o.requests() {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func (o *origin) open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns)
}

func (o *origin) accepted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// readHead reads up to and with the empty line.
func readHead(br *bufio.Reader) (string, error) {
	var b bytes.Buffer
	for {
		line, err := br.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), err
		}
		if line == "\r\n" {
			return b.String(), nil
		}
	}
}

// field returns the values of a field, joined by "|".
func field(head, name string) string {
	var values []string
	for _, l := range strings.Split(head, "\r\n") {
		if n, v, ok := strings.Cut(l, ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return strings.Join(values, "|")
}

func (k *call) field(name string) string { return field(k.raw, name) }

// send writes to the proxy; a proxy that is gone ends the connection.
func (k *call) send(parts ...string) bool {
	for _, s := range parts {
		if _, err := io.WriteString(k.conn, s); err != nil {
			k.over = true
			return false
		}
	}
	return true
}

// reply sends a whole response.
func (k *call) reply(status int, fields, body string) {
	k.send(fmt.Sprintf("HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s", status, fields, len(body), body))
}

// body reads the request's body by its framing; chunked ones come with their framing.
func (k *call) body() string {
	if strings.EqualFold(k.field("Transfer-Encoding"), "chunked") {
		var b strings.Builder
		for {
			line, err := k.br.ReadString('\n')
			b.WriteString(line)
			if err != nil {
				k.over = true
				return b.String()
			}
			size, err := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
			if err != nil {
				k.over = true
				return b.String()
			}
			if size == 0 {
				rest, _ := readHead(k.br)
				b.WriteString(rest)
				return b.String()
			}
			_, _ = io.CopyN(&b, k.br, size+2)
		}
	}
	n, _ := strconv.Atoi(k.field("Content-Length"))
	b := make([]byte, n)
	if _, err := io.ReadFull(k.br, b); err != nil {
		k.over = true
	}
	return string(b)
}

// closed waits until the proxy has closed its side.
func (k *call) closed() {
	k.over = true
	_, _ = io.Copy(io.Discard, k.br)
}

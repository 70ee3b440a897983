package upstream

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/wire"
)

const patience = 20 * time.Second

func eventually(t testing.TB, what string, ok func() bool) {
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

// origin gives the accepted connections to the test.
type server struct {
	ln    net.Listener
	conns chan net.Conn
}

func newServer(t *testing.T) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &server{ln, make(chan net.Conn, 64)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				close(o.conns)
				return
			}
			o.conns <- c
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
		for c := range o.conns {
			_ = c.Close()
		}
	})
	return o
}

func (o *server) next(t *testing.T) net.Conn {
	t.Helper()
	select {
	case c := <-o.conns:
		_ = c.SetDeadline(time.Now().Add(patience))
		t.Cleanup(func() { _ = c.Close() })
		return c
	case <-time.After(patience):
		t.Fatal("no connection")
		return nil
	}
}

func newPool(t *testing.T, address string, change func(*DetourSettings)) *Detour {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	set := DetourSettings{Host: u, Loopback: true, DialTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxIdle: 4, MaxConnections: 8}
	if change != nil {
		change(&set)
	}
	p, err := NewDetour(set, telemetry.New("test", telemetry.Snapshots{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if s := p.Snapshot(); s.Idle != 0 || s.Busy != 0 {
			t.Errorf("left in the pool: %+v", s)
		}
	})
	return p
}

func (o *server) pool(t *testing.T, change func(*DetourSettings)) *Detour {
	return newPool(t, "http://"+o.ln.Addr().String(), change)
}

type connections struct{ Idle, Busy int }

// Snapshot is Connections in one value.
func (p *Detour) Snapshot() (s connections) {
	s.Idle, s.Busy = p.Connections()
	return s
}

func here() <-chan struct{} { return nil }

func get(t *testing.T, p *Detour, fresh bool) *Writer {
	t.Helper()
	w, err := p.Get(fresh, here)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// exchange sends a request and lets the origin answer with text.
func exchange(t *testing.T, w *Writer, far net.Conn, text string) error {
	t.Helper()
	if _, err := w.Send([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		return err
	}
	br := bufio.NewReader(far)
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = br.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(far, text); err != nil {
		t.Fatal(err)
	}
	return w.ReadHead()
}

const empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

func TestP7_WarmestWriterIsUsedFirstAndOthersAgeOut(t *testing.T) {
	t.Parallel()
	o := newServer(t)
	p := o.pool(t, nil)
	far := map[*Writer]net.Conn{}
	lend := func(fresh bool) *Writer { // gets a writer and carries one exchange out
		w := get(t, p, fresh)
		if far[w] == nil {
			far[w] = o.next(t)
		}
		if err := exchange(t, w, far[w], empty); err != nil {
			t.Fatal(err)
		}
		return w
	}
	a := lend(false)
	b := lend(false)
	if a == b || a.Reused {
		t.Fatal("one writer for two")
	}
	a.Release(1)
	b.Release(2)
	b.Release(2) // idempotent
	if s := p.Snapshot(); s.Idle != 2 || s.Busy != 0 {
		t.Errorf("%+v", s)
	}
	w := lend(false)
	if w != b || !w.Reused {
		t.Error("not the one freed last")
	}
	f := lend(true)
	if f == a {
		t.Error("fresh was not fresh")
	}
	f.Discard(telemetry.DiscardBroken)
	f.Discard(telemetry.DiscardBroken) // idempotent
	f.Release(3)
	w.Release(int64(30 * time.Second))
	p.Sweep(int64(time.Minute) + 2)
	if s := p.Snapshot(); s.Idle != 1 || s.Busy != 0 {
		t.Errorf("after the sweep: %+v", s)
	}
	if w := lend(false); w != b {
		t.Error("the wrong one aged out")
	} else {
		w.Release(0)
	}
}

func TestP7_OnlyCleanExchangesGoBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		kept         bool
	}{
		{"clean", empty, true},
		{"HTTP/1.0 kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false},
		{"length and chunked", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", false},
		{"more than asked", empty + "x", false},
	} {
		o := newServer(t)
		p := o.pool(t, nil)
		w := get(t, p, false)
		if err := exchange(t, w, o.next(t), c.answer); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		w.Release(1)
		if s := p.Snapshot(); (s.Idle == 1) != c.kept || s.Busy != 0 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

func TestP7_IdleWriterThatHearsSomethingIsSweptOrStale(t *testing.T) {
	t.Parallel()
	for _, swept := range []bool{true, false} {
		for _, hear := range []string{"close", "bytes"} {
			o := newServer(t)
			p := o.pool(t, nil)
			w := get(t, p, false)
			far := o.next(t)
			if err := exchange(t, w, far, empty); err != nil {
				t.Fatal(err)
			}
			w.Release(1)
			if hear == "close" {
				_ = far.Close()
			} else if _, err := io.WriteString(far, empty); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it was heard", func() bool { return !w.Quiet() })
			if swept {
				p.Sweep(2)
				if s := p.Snapshot(); s.Idle != 0 {
					t.Errorf("%s: %+v after the sweep", hear, s)
				}
				continue
			}
			w = get(t, p, false)
			if written, err := w.SendAndFill([]byte("POST / HTTP/1.1\r\n\r\n")); written || !errors.Is(err, relay.ErrStale) {
				t.Errorf("%s: written %v, %v", hear, written, err)
			}
			w.Discard(telemetry.DiscardClosed)
		}
	}
}

func TestL3_BoundsOfThePool(t *testing.T) {
	t.Parallel()
	o := newServer(t)
	p := o.pool(t, func(s *DetourSettings) { s.MaxIdle, s.MaxConnections = 1, 2 })
	a, b := get(t, p, false), get(t, p, false)
	if _, err := p.Get(false, here); !errors.Is(err, ErrExhausted) || Reason(err) != telemetry.UpstreamBusy {
		t.Errorf("a third one: %v", err)
	}
	for _, w := range []*Writer{a, b} {
		if err := exchange(t, w, o.next(t), empty); err != nil {
			t.Fatal(err)
		}
	}
	a.Release(1)
	b.Release(1)
	if s := p.Snapshot(); s.Idle != 1 || s.Busy != 0 {
		t.Errorf("%+v", s)
	}
	p.Close()
	w := get(t, p, false) // dialled by an exchange that still runs: it ends with its release
	if err := exchange(t, w, o.next(t), empty); err != nil {
		t.Fatal(err)
	}
	w.Release(3)
	if s := p.Snapshot(); s.Idle != 0 || s.Busy != 0 {
		t.Errorf("after Close: %+v", s)
	}
}

func TestP6_DialEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	o := newServer(t)
	// a TLS handshake that the origin never answers is a dial that does not end by itself
	p := newPool(t, "https://"+o.ln.Addr().String(), func(s *DetourSettings) { s.DialTimeout = time.Hour })
	gone := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		_, err := p.Get(false, func() <-chan struct{} { return gone })
		result <- err
	}()
	o.next(t)
	close(gone)
	select {
	case err := <-result:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(patience):
		t.Fatal("the dial goes on")
	}
	if s := p.Snapshot(); s.Busy != 0 {
		t.Errorf("a client that left says nothing about the origin: %+v", s)
	}
}

func TestP7_ReasonsOfFailures(t *testing.T) {
	t.Parallel()
	dead, err := net.Listen("tcp", ownHost())
	if err != nil {
		t.Fatal(err)
	}
	address := dead.Addr().String()
	_ = dead.Close()
	p := newPool(t, "http://"+address, nil)
	_, err = p.Get(false, here)
	if Reason(err) != telemetry.UpstreamUnreachable {
		t.Errorf("refused: %v is %v", err, Reason(err))
	}
	o := newServer(t)
	slow := newPool(t, "https://"+o.ln.Addr().String(), func(s *DetourSettings) { s.DialTimeout = 50 * time.Millisecond })
	if _, err = slow.Get(false, here); Reason(err) != telemetry.UpstreamTimeout {
		t.Errorf("silent handshake: %v is %v", err, Reason(err))
	}
	for _, c := range []struct {
		err  error
		want telemetry.Reason
	}{
		{&wire.Error{Status: 502, Rule: "x"}, telemetry.UpstreamMalformed},
		{&tls.CertificateVerificationError{Err: errors.New("x")}, telemetry.UpstreamUntrusted},
		{tls.RecordHeaderError{Msg: "x"}, telemetry.UpstreamUntrusted},
		{os.ErrDeadlineExceeded, telemetry.UpstreamTimeout},
		{io.EOF, telemetry.UpstreamBroken},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, telemetry.UpstreamUnreachable},
	} {
		if got := Reason(c.err); got != c.want {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
}

func TestP8_CAFileIsCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	u, _ := url.Parse("https://store.test")
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".missing"} {
		if _, err := NewDetour(DetourSettings{Host: u, CAFile: file}, nil); err == nil || !strings.Contains(err.Error(), "ARKVORY_UPSTREAM_CA_FILE") {
			t.Errorf("%v", err)
		}
	}
	o, err := newOrigin(u, "")
	if err != nil || o.host != "store.test" || o.addr != "store.test:443" || o.tls.Load() == nil {
		t.Errorf("%v, %q, %q", err, o.host, o.addr)
	}
}

func TestP7_HeadInPiecesAndTooLong(t *testing.T) {
	t.Parallel()
	o := newServer(t)
	p := o.pool(t, nil)
	w := get(t, p, false)
	far := o.next(t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, part := range []string{"HTT", "P/1.1 200 OK\r", "\nX: " + strings.Repeat("y", 30000), "\r\nContent-Length: 2\r\n\r", "\nok"} {
			if _, err := io.WriteString(far, part); err != nil {
				return
			}
		}
	}()
	if err := w.ReadHead(); err != nil || w.Resp.ContentLength != 2 || len(w.Resp.Lookup("x")) != 30000 {
		t.Errorf("%v, %d, %d", err, w.Resp.ContentLength, len(w.Resp.Lookup("x")))
	}
	<-sent
	w.Discard(telemetry.DiscardBroken)
	w = get(t, p, true)
	far = o.next(t)
	go func() { _, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("y", 200000)) }()
	var malformed *wire.Error
	if err := w.ReadHead(); !errors.As(err, &malformed) {
		t.Errorf("%v", err)
	}
	w.Discard(telemetry.DiscardBroken)
}

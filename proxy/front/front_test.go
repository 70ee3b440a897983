package front

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
)

func TestP1_KeepAliveAndPipelinedRequestsInOrder(t *testing.T) {
	t.Parallel()
	b := start(t, nil, reply)
	c := b.dial()
	c.get("/1").expect200("/1")
	c.get("/2").get("/3").get("/4")
	for _, want := range []string{"/2", "/3", "/4"} {
		c.expect(200, want)
	}
	c.send("GET /5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect(200, "/5")
	c.atEnd()
	eventually(t, "no connection", func() bool { return b.s.Open() == 0 })
	if b.s.Accepted() != 1 || b.s.Refused() != 0 {
		t.Errorf("%d accepted, %d refused", b.s.Accepted(), b.s.Refused())
	}
}

func (c *client) expect200(body string) { c.t.Helper(); c.expect(200, body) }

func TestP10_HeadsAreBoundedInTimeAndBytes(t *testing.T) {
	t.Parallel()
	b := start(t, func(s *Settings) { s.HeaderTimeout = Tick }, reply)
	giant := b.dial().send("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 12<<10))
	giant.expect(431, "")
	giant.atEnd()
	slow := b.dial().send("GET / HTT")
	slow.expect(408, "")
	slow.atEnd()
	bad := b.dial().get("/good").get("/bad HTTP/1.1 x")
	bad.expect(200, "/good")
	bad.expect(400, "")
	bad.atEnd()
	for _, want := range []string{"431", "408", "400"} {
		if got := <-b.h.seen; got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}

func TestP5_AnswerToABadHeadSurvivesUnreadBytes(t *testing.T) {
	t.Parallel()
	b := start(t, nil, reply)
	c := b.dial().send("BAD\r\n\r\n" + strings.Repeat("x", 1<<20))
	c.expect(400, "")
}

func TestP10_IdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	b := start(t, func(s *Settings) { s.IdleTimeout = Tick }, reply)
	c, d := b.dial(), b.dial()
	c.get("/").expect(200, "/")
	c.atEnd()
	d.atEnd()
}

func TestP10_MaxConnectionsAnswers503(t *testing.T) {
	t.Parallel()
	b := start(t, func(s *Settings) { s.MaxConnections = 1 }, reply)
	c := b.dial()
	c.get("/").expect(200, "/")
	d := b.dial()
	d.expect(503, `{"error":"busy","reason":"too_many_connections","retryAfterSeconds":2}`)
	d.atEnd()
	if b.s.Refused() != 1 || b.s.Open() != 1 {
		t.Errorf("%d refused, %d open", b.s.Refused(), b.s.Open())
	}
}

func TestP6_DepartureEndsTheWaitAndTheUpstream(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fin", "rst"} {
		left := make(chan int32, 1)
		upstreamErr := make(chan error, 1)
		here := make(chan struct{})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b := start(t, nil, func(c *Conn) bool {
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Error(err)
				return false
			}
			u, err := relay.NewConn(nc, true)
			if err != nil {
				t.Error(err)
				return false
			}
			defer func() { _ = u.Close() }()
			if !c.Bind(u) {
				t.Error("gone too early")
			}
			close(here)
			upstreamErr <- u.Fill(1 << 10) // blocks until the watcher interrupts it
			<-c.Gone()
			if c.Bind(u) {
				t.Error("Bind says that a departed client is there")
			}
			left <- c.Why()
			return true // asks in vain to go on
		})
		c := b.dial().get("/")
		<-here
		if tcp := c.conn.(*net.TCPConn); how == "rst" {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		} else {
			_ = tcp.CloseWrite() // counts as leaving, as in nginx
		}
		if err := <-upstreamErr; err == nil {
			t.Errorf("%s: the upstream was not interrupted", how)
		}
		if why := <-left; why != GoneLeft {
			t.Errorf("%s: why %d", how, why)
		}
		eventually(t, "the connection has ended", func() bool { return b.s.Open() == 0 })
		_ = ln.Close()
	}
}

func TestP7_LimitOnTheUpstreamExpiresOnceAndIsForgotten(t *testing.T) {
	t.Parallel()
	b := start(t, nil, func(c *Conn) bool {
		if string(c.Req.Target) == "/next" {
			if c.Expired() {
				t.Error("the mark stayed")
			}
			return reply(c)
		}
		c.Hasten(time.Nanosecond)
		c.Await(time.Hour)
		c.Hasten(Tick)
		near, far := net.Pipe()
		_ = near
		_ = far.Close()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return false
		}
		defer func() { _ = ln.Close() }()
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Error(err)
			return false
		}
		u, err := relay.NewConn(nc, true)
		if err != nil {
			t.Error(err)
			return false
		}
		defer func() { _ = u.Close() }()
		c.Bind(u)
		if err := u.Fill(1 << 10); err == nil || !c.Expired() || c.Why() != GoneNot {
			t.Errorf("%v, expired %v, why %d", err, c.Expired(), c.Why())
		}
		return reply(c)
	})
	c := b.dial()
	c.get("/").expect(200, "/")
	c.get("/next").expect(200, "/next")
}

func TestA4_SendersSilenceCountsFromItsOwnTurn(t *testing.T) {
	t.Parallel()
	var expecting atomic.Bool
	b := start(t, nil, func(c *Conn) bool {
		grace := time.Duration(0)
		if expecting.Load() {
			grace = patience
		}
		clock := c.Sender(2*Tick, grace)
		clock.Store(c.Now())
		begin := c.Now()
		told := make(chan struct{})
		if expecting.Load() {
			timer := time.AfterFunc(6*Tick, func() { c.Continued(); close(told) })
			defer timer.Stop()
		}
		err := c.Fill(1 << 10) // the sender stays silent: the watcher ends this read
		if err == nil || !c.Starved() {
			t.Errorf("%v, starved %v", err, c.Starved())
		}
		if waited := time.Duration(c.Now() - begin); expecting.Load() != (waited >= 6*Tick) {
			t.Errorf("expecting %v: starved after %v", expecting.Load(), waited)
		}
		return reply(c) // can still be written, but nothing follows
	})
	for _, e := range []bool{false, true} {
		expecting.Store(e)
		c := b.dial().get("/")
		c.expect(200, "/")
		c.atEnd()
	}
}

func TestP10_StallEndsATransferThatMovesNothing(t *testing.T) {
	t.Parallel()
	why := make(chan int32, 1)
	b := start(t, func(s *Settings) { s.StallTimeout = 2 * Tick }, func(c *Conn) bool {
		c.MarkSent()
		gone := c.Gone()
		for range 8 { // progress keeps it alive beyond the limit
			c.Moved.Add(1)
			select {
			case <-gone:
				t.Error("cut while bytes moved")
			case <-time.After(Tick / 2):
			}
		}
		<-gone
		why <- c.Why()
		return true
	})
	c := b.dial().get("/")
	if w := <-why; w != GoneStalled {
		t.Errorf("why %d", w)
	}
	c.atEnd()
}

func TestQ19_PanicIsContained(t *testing.T) {
	t.Parallel()
	b := start(t, nil, func(c *Conn) bool {
		if string(c.Req.Target) == "/late" {
			reply(c)
		}
		panic("injected")
	})
	c := b.dial().get("/early")
	c.expect(500, "")
	c.atEnd()
	c = b.dial().get("/late")
	c.expect(200, "/late")
	c.atEnd()
	for range 2 {
		if got := <-b.h.seen; got != "injected, stack true" {
			t.Errorf("told %q", got)
		}
	}
}

func TestL1_DrainClosesIdleAndEndsWithTheLastAnswer(t *testing.T) {
	t.Parallel()
	release, here := make(chan struct{}), make(chan struct{})
	b := start(t, nil, func(c *Conn) bool {
		if string(c.Req.Target) == "/slow" {
			close(here)
			<-release
			if !c.Draining() {
				t.Error("not draining")
			}
		}
		return reply(c)
	})
	idle, slow := b.dial(), b.dial()
	idle.get("/").expect(200, "/")
	slow.get("/slow").get("/never")
	<-here
	b.s.StartDrain()
	idle.atEnd()
	b.dial().get("/new").expect(200, "/new") // the handler decides what a draining process answers
	close(release)
	slow.expect(200, "/slow")
	slow.atEnd()
	if err := b.stop(patience); err != nil {
		t.Error(err)
	}
}

func TestL1_ShutdownCutsAtItsDeadline(t *testing.T) {
	t.Parallel()
	here, why := make(chan struct{}), make(chan int32, 1)
	b := start(t, nil, func(c *Conn) bool {
		close(here)
		<-c.Gone()
		why <- c.Why()
		return true
	})
	b.dial().get("/")
	<-here
	if err := b.stop(time.Millisecond); err == nil {
		t.Error("no error though a handler ran")
	}
	if w := <-why; w != GoneStopped {
		t.Errorf("why %d", w)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.s.Serve(ln); err != nil { // stopped before it began: an end like any other
		t.Errorf("serve after the end: %v", err)
	}
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its listener is still open: %v", err)
	}
}

func TestP4_LingerReadsWhatTheClientStillSends(t *testing.T) {
	t.Parallel()
	b := start(t, nil, func(c *Conn) bool { reply(c); c.LingerOnClose(); return false })
	c := b.dial().send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
	c.expect(200, "/")
	for range 100 {
		c.send(strings.Repeat("x", 64<<10)) // no reset meets it
	}
	if _, err := io.ReadAll(c.br); err != nil {
		t.Errorf("the end is not clean: %v", err)
	}
}

package front

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/proxy/relay"
)

// Tick is the step of the coarse clock and of every check on waiting connections.
const Tick = 250 * time.Millisecond

// Handler answers the request in c.Req. It returns false when the connection must be closed. It runs on the connection's
// goroutine; nothing of c may be used after it returned.
type Handler interface {
	ServeRequest(c *Conn) (keep bool)
	// Malformed answers a request that could not be read. Status is 400, 408, 431, 501 or 505, rule what was broken.
	Malformed(c *Conn, status int, rule string)
	// Panicked is told of a panic of ServeRequest, with a stack; it answers if c has sent nothing.
	Panicked(c *Conn, value any)
}

// Settings of a Server. All are required but TLS.
type Settings struct {
	MaxConnections int
	MaxHeaderBytes int
	HeaderTimeout  time.Duration
	IdleTimeout    time.Duration
	StallTimeout   time.Duration
	TLS            *tls.Config // nil: plain TCP
	// OnHandshakeError, when not nil, is told of a client whose TLS handshake failed.
	OnHandshakeError func()
	// OnPanic, when not nil, is told of a panic outside of the handler.
	OnPanic func(v Panic)
	// OnTick, when not nil, runs on the watcher's goroutine after each tick.
	OnTick func(now time.Duration)
}

// Server accepts connections and serves them. Safe for concurrent use.
type Server struct {
	set     Settings
	handler Handler
	now     atomic.Int64 // coarse monotonic nanoseconds since start
	start   time.Time

	draining atomic.Bool
	drainAt  atomic.Int64 // coarse time when the drain began
	accepted atomic.Int64
	refused  atomic.Int64

	mu     sync.Mutex // guards what is below
	conns  []*Conn
	ln     net.Listener
	closed bool

	wg   sync.WaitGroup
	stop chan struct{}
	done chan struct{}
	poll []unix.PollFd
	who  []*Conn
}

// New returns a server whose watcher runs; Shutdown or Close ends it.
func New(set Settings, h Handler) *Server {
	s := &Server{set: set, handler: h, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	s.now.Store(1)
	go s.watch()
	return s
}

// Clock returns the coarse monotonic clock in nanoseconds; it advances by ticks.
func (s *Server) Clock() *atomic.Int64 { return &s.now }

// Open returns the number of open client connections, Accepted and Refused count since the start.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Accepted returns the connections accepted since the start.
func (s *Server) Accepted() int64 { return s.accepted.Load() }

// Refused returns the connections refused because MaxConnections was reached.
func (s *Server) Refused() int64 { return s.refused.Load() }

// Draining reports whether the server is stopping.
func (s *Server) Draining() bool { return s.draining.Load() }

// Serve accepts connections until the listener is closed by Shutdown or Close; then it returns nil.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ln.Close() // stopped before it began
	}
	s.ln = ln
	s.mu.Unlock()
	pause := time.Duration(0)
	for {
		nc, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			// Out of descriptors and the like: wait for better times instead of spinning.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
				continue
			case <-s.stop:
				return nil
			}
		}
		pause = 0
		s.accept(nc)
	}
}

func (s *Server) accept(nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		_ = nc.Close()
		return
	}
	relay.TuneClient(tcp)
	var sock net.Conn = tcp
	if s.set.TLS != nil {
		sock = tls.Server(relay.NewSpill(tcp), s.set.TLS)
	}
	rc, err := relay.NewConn(sock, false)
	if err != nil {
		_ = nc.Close()
		return
	}
	c := &Conn{Conn: rc, srv: s}
	c.since.Store(s.now.Load())
	s.mu.Lock()
	if s.closed || len(s.conns) >= s.set.MaxConnections {
		over := !s.closed
		s.mu.Unlock()
		if over {
			s.refused.Add(1)
			if s.set.TLS == nil {
				_, _ = tcp.Write(tooManyConnections)
			}
		}
		_ = rc.Close()
		return
	}
	c.index = len(s.conns)
	s.conns = append(s.conns, c)
	s.wg.Add(1)
	s.mu.Unlock()
	s.accepted.Add(1)
	go c.run()
}

// remove takes c out of the watcher's set (I1).
func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	last := len(s.conns) - 1
	s.conns[c.index] = s.conns[last]
	s.conns[c.index].index = c.index
	s.conns[last] = nil
	s.conns = s.conns[:last]
	s.mu.Unlock()
}

// watch is the watcher: see the package documentation.
func (s *Server) watch() {
	defer close(s.done)
	t := time.NewTicker(Tick)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		now := time.Since(s.start)
		s.now.Store(int64(now))
		s.tick(now)
	}
}

// tick is one step of the watcher. A panic in it is contained: without the watcher no limit would hold.
func (s *Server) tick(now time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			s.contain(v)
		}
	}()
	s.check(int64(now))
	if s.set.OnTick != nil {
		s.set.OnTick(now)
	}
}

func (s *Server) contain(v any) {
	if s.set.OnPanic != nil {
		s.set.OnPanic(Panic{Value: v, Stack: debug.Stack()})
	}
}

func (s *Server) check(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poll, s.who = s.poll[:0], s.who[:0]
	for _, c := range s.conns {
		if c.check(now) {
			s.poll = append(s.poll, unix.PollFd{Fd: int32(c.FD()), Events: unix.POLLRDHUP})
			s.who = append(s.who, c)
		}
	}
	if len(s.poll) == 0 {
		return
	}
	if n, err := unix.Poll(s.poll, 0); err != nil || n == 0 {
		return
	}
	for i := range s.poll {
		if s.poll[i].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 {
			s.who[i].depart(GoneLeft)
		}
	}
}

// StartDrain makes every answer from now on close its connection and closes the idle ones. New connections are still
// accepted, so that their requests can be answered.
func (s *Server) StartDrain() {
	if !s.draining.Swap(true) {
		s.drainAt.Store(s.now.Load())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if c.served.Load() {
			c.closeIdle()
		}
	}
}

// Shutdown stops accepting and waits until every connection has ended or ctx is done; then it interrupts what is left, waits for
// its goroutines and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.StartDrain()
	s.mu.Lock()
	s.closed = true
	if s.ln != nil {
		_ = s.ln.Close()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.wg.Wait(); close(ended) }()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
		s.mu.Lock()
		for _, c := range s.conns {
			c.depart(GoneStopped)
		}
		s.mu.Unlock()
		<-ended
	}
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	<-s.done
	return err
}

var tooManyConnections = []byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\nContent-Type: application/json\r\nContent-Length: 70\r\n\r\n" +
	`{"error":"busy","reason":"too_many_connections","retryAfterSeconds":2}`)

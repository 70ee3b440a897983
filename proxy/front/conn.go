package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/wire"
)

const (
	stateIdle int32 = iota
	stateHead
	stateBusy
	stateLate    // the head took too long
	stateTunnel  // two streams of bytes after a 101: only the ends themselves end it
	stateClosing // the watcher ends an idle connection: a request that arrives now is dropped, as on any keep-alive close
)

// Why an exchange was ended by the watcher.
const (
	GoneNot     int32 = iota
	GoneLeft          // the client closed its connection
	GoneStalled       // no byte moved for StallTimeout
	GoneStopped       // the process ends
	GoneCut           // Cut: the answer cannot be brought to its end
)

// Conn is one client connection. Its exported methods are for the handler of the request in Req; Gone may be waited on anywhere.
type Conn struct {
	*relay.Conn
	srv   *Server
	index int // in srv.conns, under srv.mu

	state atomic.Int32
	since atomic.Int64 // coarse time of the last change of state
	seen  int64        // Moved at the last tick; the watcher's own
	still int64        // coarse time when seen last changed; the watcher's own

	// Req is the request being served.
	Req  wire.Head
	Memo any // the handler's own, kept for the connection's life

	limit      atomic.Int64 // coarse time when the wait for the upstream ends, 0 = none
	expired    atomic.Bool  // the limit passed
	senderIdle atomic.Int64 // coarse time since when an upload waits for its sender, 0 = it does not
	idleLimit  atomic.Int64
	expecting  atomic.Bool  // the sender waits for 100 Continue: its silence is the upstream's
	grace      atomic.Int64 // for so long
	starved    atomic.Bool  // the sender was silent too long
	uploadEnd  atomic.Int64 // coarse time when an upload that was answered early must be over, 0 = none runs
	sentAt     atomic.Int64 // coarse time when the answer began
	patience   atomic.Int64 // how long a body may stand still at the upstream before it is interrupted, 0 = as long as any stall
	dry        atomic.Bool  // the upstream was interrupted for that
	served     atomic.Bool  // the connection has served a request
	unsent     int          // bytes in the client's send queue at the last look; the watcher's own
	onClient   atomic.Bool  // a stall was the client's: it did not take what was sent

	mu       sync.Mutex // guards what is below
	gone     chan struct{}
	goneSet  bool
	upstream *relay.Conn

	linger bool // the handler's: close only after a moment of reading on
	torn   bool // the handler's: the end must be a visible break
	why    atomic.Int32
	sent   atomic.Bool // a byte of the answer is out
	peer   netip.AddrPort
}

// Peer returns the address of the connection's other end.
func (c *Conn) Peer() netip.AddrPort {
	if !c.peer.IsValid() {
		if a, ok := c.Net().RemoteAddr().(*net.TCPAddr); ok {
			c.peer = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
		}
	}
	return c.peer
}

// TLS reports whether the client speaks TLS to this process.
func (c *Conn) TLS() bool { return !c.Bare() }

// Certificate returns the client's verified certificate, nil when there is none.
func (c *Conn) Certificate() *x509.Certificate {
	if t, ok := c.Net().(*tls.Conn); ok {
		if st := t.ConnectionState(); len(st.VerifiedChains) > 0 {
			return st.PeerCertificates[0]
		}
	}
	return nil
}

// Draining reports whether the process is stopping.
func (c *Conn) Draining() bool { return c.srv.draining.Load() }

// Now returns the coarse monotonic time.
func (c *Conn) Now() int64 { return c.srv.now.Load() }

// Clock returns the coarse clock.
func (c *Conn) Clock() *atomic.Int64 { return &c.srv.now }

// Gone returns a channel that is closed when the client leaves, the transfer stalls or the process ends.
func (c *Conn) Gone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = make(chan struct{})
		if c.goneSet {
			close(c.gone)
		}
	}
	return c.gone
}

// Why tells what ended the exchange from outside, GoneNot when nothing did.
func (c *Conn) Why() int32 { return c.why.Load() }

// Bind names the upstream connection that is interrupted when the client leaves, nil for none. It returns false when the client has already left.
func (c *Conn) Bind(u *relay.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upstream = u
	return !c.goneSet
}

// Await sets how long the upstream may take from now; 0 takes the limit away. When it passes the bound connection is interrupted and
// Expired is true.
func (c *Conn) Await(d time.Duration) {
	if d <= 0 {
		c.limit.Store(0)
		return
	}
	c.expired.Store(false)                 // of an earlier wait of the same request
	c.limit.Store(c.Now() + int64(d+Tick)) // the clock may be a tick old: never early
}

// Hasten brings a limit that is set to at most d from now, and does nothing when none is set. Safe from any goroutine.
func (c *Conn) Hasten(d time.Duration) {
	if l := c.limit.Load(); l > 0 && d > 0 {
		c.limit.CompareAndSwap(l, min(l, c.Now()+int64(d+Tick)))
	}
}

// Cut ends the exchange from outside because its answer cannot be brought to its end: as if the client had left, with Why GoneCut. Safe from any goroutine.
func (c *Conn) Cut() { c.depart(GoneCut) }

// Answered takes the limit of Await away; the rest of it goes on to bound an upload that runs on, until UploadOver.
func (c *Conn) Answered() { c.uploadEnd.Store(c.limit.Swap(0)) }

// UploadOver ends what Answered began. Safe from any goroutine.
func (c *Conn) UploadOver() { c.uploadEnd.Store(0) }

// Resumable sets how long the body of the answer may stand still because of the upstream: then the bound connection alone is interrupted and Dry is true, since
// the rest can be had elsewhere. 0 takes it back.
func (c *Conn) Resumable(d time.Duration) {
	c.dry.Store(false)
	c.patience.Store(int64(d))
}

// Dry reports whether the upstream was interrupted because no byte of the body came, and forgets it.
func (c *Conn) Dry() bool { return c.dry.Swap(false) }

// Expired reports whether the limit of Await passed.
func (c *Conn) Expired() bool { return c.expired.Load() }

// Sender gives the clock that an upload stops while it does not wait for its sender, and takes the limit on that wait. A sender that expects 100 Continue
// gets grace on top until Continued, or until its first byte when it does not wait; 0 for others.
func (c *Conn) Sender(limit, grace time.Duration) *atomic.Int64 {
	c.idleLimit.Store(int64(limit + Tick))
	c.grace.Store(int64(grace))
	c.expecting.Store(grace > 0)
	return &c.senderIdle
}

// Continued says that the sender was told to send.
func (c *Conn) Continued() {
	if w := c.senderIdle.Load(); w > 0 {
		c.senderIdle.CompareAndSwap(w, c.Now())
	}
	c.expecting.Store(false)
}

// Starved reports whether the sender of an upload was silent beyond the limit.
func (c *Conn) Starved() bool { return c.starved.Load() }

// MarkSent notes that a byte of the answer went out; AnySent reports it.
func (c *Conn) MarkSent() {
	c.sentAt.Store(c.Now())
	c.sent.Store(true)
}

// StalledOnClient reports whether a stall was the client's, which did not read, and not the upstream's, which did not send.
func (c *Conn) StalledOnClient() bool { return c.onClient.Load() }

// AnySent reports whether a byte of the answer went out.
func (c *Conn) AnySent() bool { return c.sent.Load() }

// Tunnel says that the connection is no longer HTTP: the watcher leaves it alone.
func (c *Conn) Tunnel() { c.enter(stateTunnel) }

// LingerOnClose asks for a lingering close: bytes of the client are still on their way and nobody will read them.
func (c *Conn) LingerOnClose() { c.linger = true }

// Reset makes the end of the connection a visible break: RST, and behind TLS no close_notify (RFC 8446 section 6.1), so that a message that ends with its
// connection is not taken for whole.
func (c *Conn) Reset() {
	c.torn = true
	if t, ok := c.Net().(*tls.Conn); ok {
		if tcp, ok := t.NetConn().(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	c.Conn.Reset()
}

// check looks at one connection on the tick; true asks for a poll of its descriptor.
func (c *Conn) check(now int64) bool {
	switch c.state.Load() {
	case stateIdle:
		idle := now - c.since.Load()
		drained := c.srv.draining.Load() && (c.served.Load() || now-max(c.since.Load(), c.srv.drainAt.Load()) > int64(drainGrace))
		if idle > int64(c.srv.set.IdleTimeout) || drained {
			c.closeIdle()
		}
	case stateHead:
		if now-c.since.Load() > int64(c.srv.set.HeaderTimeout) && c.state.CompareAndSwap(stateHead, stateLate) {
			c.InterruptReads()
		}
	case stateBusy:
		return c.checkBusy(now)
	}
	return false
}

func (c *Conn) closeIdle() {
	if c.state.CompareAndSwap(stateIdle, stateClosing) {
		c.InterruptReads()
	}
}

func (c *Conn) checkBusy(now int64) bool {
	if l := c.limit.Load(); l > 0 && now > l && !c.expired.Swap(true) {
		c.mu.Lock()
		if c.upstream != nil {
			c.upstream.Interrupt()
		}
		c.mu.Unlock()
	}
	if l := c.limit.Load(); l > 0 && now > l+int64(c.srv.set.StallTimeout) {
		c.depart(GoneStalled) // the upstream was given up, and the client does not even take what came before
		return false
	}
	if e := c.uploadEnd.Load(); e > 0 && now > e {
		c.uploadEnd.Store(0)
		c.InterruptReads()
		c.mu.Lock()
		if c.upstream != nil {
			c.upstream.Interrupt()
		}
		c.mu.Unlock()
	}
	if w := c.senderIdle.Load(); w > 0 && now-w > c.idleLimit.Load() {
		if !(c.expecting.Load() && now-w <= c.idleLimit.Load()+c.grace.Load()) && !c.starved.Swap(true) {
			c.InterruptReads()
		}
	}
	moved := c.Moved.Load()
	if moved != c.seen {
		c.seen, c.still = moved, now
		c.expecting.Store(false)
		return false // bytes flow: a client that left shows in the next write
	}
	if c.still < c.since.Load() {
		c.still = now
	}
	if c.Paced.Load() { // it waits for its share of the budget, which is no standstill
		c.still = now
	}
	if c.sent.Load() {
		// The kernel takes and drains in lumps: a reader of some hundred bytes a second moves nothing here for minutes.
		unsent := c.Unsent()
		if unsent < c.unsent {
			c.still = now
		}
		c.unsent = unsent
		if limit := c.patience.Load(); limit > 0 && unsent == 0 && c.limit.Load() == 0 && now-max(c.still, c.sentAt.Load()) > limit {
			c.still = now
			c.mu.Lock()
			if c.upstream != nil { // else nothing stands still: the rest is being asked for
				c.dry.Store(true)
				c.upstream.Interrupt()
			}
			c.mu.Unlock()
			return false
		}
		if c.limit.Load() == 0 && now-max(c.still, c.sentAt.Load()) > int64(c.srv.set.StallTimeout) {
			c.onClient.Store(unsent > 0)
			c.depart(GoneStalled)
			return false
		}
	}
	return now-c.since.Load() >= int64(Tick)/2
}

// depart ends the exchange from outside.
func (c *Conn) depart(why int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.goneSet {
		return
	}
	c.goneSet = true
	c.why.Store(why)
	if c.gone != nil {
		close(c.gone)
	}
	if c.upstream != nil {
		c.upstream.Interrupt()
	}
	c.Interrupt()
}

// run serves the connection until it ends.
func (c *Conn) run() {
	defer c.srv.wg.Done()
	defer c.end()
	defer func() {
		if v := recover(); v != nil { // outside of serve, which has its own
			c.srv.contain(v)
		}
	}()
	if t, ok := c.Net().(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(context.Background(), c.srv.set.HeaderTimeout)
		c.enter(stateTunnel) // bounded by its own context
		err := t.HandshakeContext(ctx)
		cancel()
		if err != nil {
			if c.srv.set.OnHandshakeError != nil {
				c.srv.set.OnHandshakeError()
			}
			return
		}
	}
	for c.readHead() {
		if !c.serve() {
			if c.linger && c.why.Load() == GoneNot {
				c.ResumeReads()
				c.Linger()
			}
			return
		}
		if c.srv.draining.Load() {
			return
		}
	}
}

func (c *Conn) end() {
	c.srv.remove(c)
	if t, ok := c.Net().(*tls.Conn); ok && c.torn {
		_ = t.NetConn().Close()
	}
	_ = c.Close()
}

func (c *Conn) enter(state int32) {
	c.since.Store(c.srv.now.Load())
	c.state.Store(state)
}

// readHead waits for the next request and parses its head; false ends the connection.
func (c *Conn) readHead() bool {
	if len(c.Buffered()) == 0 {
		c.ReleaseIfEmpty()
		c.enter(stateIdle)
		if err := c.Fill(c.srv.set.MaxHeaderBytes); err != nil {
			return false
		}
		c.since.Store(c.srv.now.Load()) // before the state: the time of the head begins here
		if !c.state.CompareAndSwap(stateIdle, stateHead) {
			return false
		}
	} else {
		c.enter(stateHead)
	}
	searched := 0
	for {
		b := c.Buffered()
		n, err := c.Req.ParseRequest(b, searched)
		if err == nil {
			c.Pin(n)
			c.since.Store(c.srv.now.Load())
			if !c.state.CompareAndSwap(stateHead, stateBusy) {
				c.malformed(&wire.Error{Status: 408, Rule: "a head arrives within ARKVORY_HEADER_TIMEOUT_MS"})
				return false
			}
			return true
		}
		if err != wire.ErrNeedMore {
			c.malformed(err)
			return false
		}
		searched = len(b)
		if searched >= c.srv.set.MaxHeaderBytes {
			c.malformed(&wire.Error{Status: 431, Rule: "the head is at most ARKVORY_MAX_HEADER_BYTES long"})
			return false
		}
		switch err := c.Fill(c.srv.set.MaxHeaderBytes); {
		case err == nil:
		case errors.Is(err, relay.ErrBufferFull):
			c.malformed(&wire.Error{Status: 431, Rule: "the head is at most ARKVORY_MAX_HEADER_BYTES long"})
			return false
		case c.state.Load() == stateLate:
			c.malformed(&wire.Error{Status: 408, Rule: "a head arrives within ARKVORY_HEADER_TIMEOUT_MS"})
			return false
		default:
			return false
		}
	}
}

func (c *Conn) malformed(err error) {
	status, rule := 400, "the message cannot be read"
	if e, ok := err.(*wire.Error); ok {
		status, rule = e.Status, e.Rule
	}
	c.sent.Store(false)
	c.enter(stateBusy)
	c.srv.handler.Malformed(c, status, rule)
	c.Linger()
}

// serve runs the handler for the request in Req.
func (c *Conn) serve() (keep bool) {
	c.sent.Store(false)
	c.served.Store(true)
	defer func() {
		if v := recover(); v != nil {
			keep = false
			c.srv.handler.Panicked(c, Panic{Value: v, Stack: debug.Stack()})
		}
		c.Bind(nil)
		c.limit.Store(0)
		c.senderIdle.Store(0)
		c.uploadEnd.Store(0)
		c.Req.Reset()
		c.Unpin()
	}()
	keep = c.srv.handler.ServeRequest(c)
	return keep && c.why.Load() == GoneNot && !c.Interrupted() && !c.starved.Load() && !c.expiredReset()
}

// expiredReset clears the mark of a limit that passed; the connection itself is fine.
func (c *Conn) expiredReset() bool { c.expired.Store(false); return false }

// Panic is what Panicked is told.
type Panic struct {
	Value any
	Stack []byte
}

// Linger reads on for a moment after the sending side was ended, so that the answer just written is not destroyed by a reset that unread
// bytes would cause (RFC 9112 section 9.6). Bounded in time, as nginx bounds it.
func (c *Conn) Linger() {
	_ = c.CloseWrite()
	c.enter(stateTunnel)
	b := make([]byte, 16<<10)
	for end := time.Now().Add(lingerTime); ; {
		now := time.Now()
		if now.After(end) || c.srv.draining.Load() && now.After(end.Add(-lingerTime+lingerPause)) {
			return
		}
		_ = c.Net().SetReadDeadline(now.Add(lingerPause))
		if _, err := c.Net().Read(b); err != nil {
			return
		}
	}
}

// As nginx's lingering_time and lingering_timeout have it, the second shorter.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 2 * time.Second
	// drainGrace is how long a connection that has served nothing yet may still bring a request to a stopping process, to be told so.
	drainGrace = 2 * time.Second
)

package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/wire"
)

// ErrExhausted says that MaxConnections are open.
var ErrExhausted = errors.New("cannot open upstream connection: ARKVORY_UPSTREAM_MAX_CONNECTIONS are open")

// Settings of a Pool.
type Settings struct {
	Origin         *url.URL // scheme http or https, host with or without port
	CAFile         string   // PEM bundle for https, empty: the system's
	DialTimeout    time.Duration
	IdleTimeout    time.Duration
	MaxIdle        int
	MaxConnections int
	// Foreign: a host that a redirect named; it may be neither link-local nor, without Loopback, loopback.
	Foreign, Loopback bool
}

// Pool holds the connections to one origin. Safe for concurrent use.
type Pool struct {
	set      Settings
	addr     string // host:port
	host     string // as it stands in Host
	tls      *tls.Config
	metrics  *telemetry.Metrics
	open     atomic.Int64
	dials    atomic.Int64
	cause    atomic.Pointer[string] // why the last dial failed, nil when it did not
	probing  atomic.Bool
	probed   int64 // the tick's own
	stop     chan struct{}
	stopOnce sync.Once
	wg       sync.WaitGroup

	mu     sync.Mutex
	idle   []*Writer // a stack
	closed bool
	poll   []unix.PollFd
}

// New returns a pool without connections. It fails when the CA file cannot be read.
func New(set Settings, m *telemetry.Metrics) (*Pool, error) {
	p := &Pool{set: set, metrics: m, host: set.Origin.Host, addr: set.Origin.Host, stop: make(chan struct{})}
	if set.Origin.Port() == "" {
		port := "80"
		if set.Origin.Scheme == "https" {
			port = "443"
		}
		p.addr = net.JoinHostPort(set.Origin.Hostname(), port)
	}
	if set.Origin.Scheme == "https" {
		p.tls = &tls.Config{ServerName: set.Origin.Hostname(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
		if set.CAFile != "" {
			pem, err := os.ReadFile(set.CAFile)
			if err != nil {
				return nil, fmt.Errorf("cannot read ARKVORY_UPSTREAM_CA_FILE: %w", err)
			}
			p.tls.RootCAs = x509.NewCertPool()
			if !p.tls.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("cannot read ARKVORY_UPSTREAM_CA_FILE %s: no PEM certificate in it", set.CAFile)
			}
		}
	}
	return p, nil
}

// Host returns the origin's authority as it belongs in Host.
func (p *Pool) Host() string { return p.host }

// Secure reports whether the origin is spoken to over TLS.
func (p *Pool) Secure() bool { return p.tls != nil }

// Snapshot is the state of a pool. Reachable is false until the origin was reached once, and when the last dial failed.
type Snapshot struct {
	Idle, Busy int
	Dials      int64
	Reachable  bool
	Cause      string // text of the last dial's failure, "" when reachable
}

// Snapshot returns the pool's state.
func (p *Pool) Snapshot() Snapshot {
	p.mu.Lock()
	idle := len(p.idle)
	p.mu.Unlock()
	return Snapshot{Idle: idle, Busy: max(0, int(p.open.Load())-idle), Dials: p.dials.Load(), Reachable: p.dials.Load() > 0 && p.cause.Load() == nil, Cause: p.causeText()}
}

func (p *Pool) causeText() string {
	if c := p.cause.Load(); c != nil {
		return *c
	}
	return ""
}

// Writer is one connection to the origin, bound to the exchange of whoever got it.
type Writer struct {
	*relay.Conn
	// Resp is the response head read by ReadHead.
	Resp wire.Head
	// Reused tells that the connection has served an exchange before.
	Reused bool
	pool   *Pool
	freed  int64 // coarse time when it became idle
	over   atomic.Bool
}

// Get returns a writer that nobody else uses: the most recently freed one, or with fresh, or when there is none, a new connection. It blocks while dialling, at most
// DialTimeout or until the channel that gone returns is closed; gone is called only then.
func (p *Pool) Get(fresh bool, gone func() <-chan struct{}) (*Writer, error) {
	if !fresh {
		p.mu.Lock()
		if n := len(p.idle); n > 0 {
			w := p.idle[n-1]
			p.idle[n-1] = nil
			p.idle = p.idle[:n-1]
			p.mu.Unlock()
			w.over.Store(false)
			p.metrics.UpstreamReused.Inc()
			return w, nil
		}
		p.mu.Unlock()
	}
	return p.dial(gone())
}

// goneContext is a context that ends when the client leaves.
type goneContext struct {
	context.Context
	gone <-chan struct{}
}

func (g goneContext) Done() <-chan struct{} { return g.gone }
func (g goneContext) Err() error {
	select {
	case <-g.gone:
		return context.Canceled
	default:
		return nil
	}
}

func (p *Pool) dial(gone <-chan struct{}) (*Writer, error) {
	if p.open.Add(1) > int64(p.set.MaxConnections) {
		p.open.Add(-1)
		return nil, ErrExhausted
	}
	w, err := p.connect(gone)
	p.dials.Add(1)
	if err != nil {
		p.open.Add(-1)
		if !errors.Is(err, context.Canceled) {
			cause := err.Error()
			p.cause.Store(&cause)
		}
		p.metrics.Dialled(err)
		return nil, err
	}
	p.cause.Store(nil)
	p.metrics.Dialled(nil)
	return w, nil
}

// probeEvery is how often an origin that was not reached, or not yet tried, is dialled without traffic: readiness comes back by itself.
const probeEvery = int64(2 * time.Second)

// probe dials once on a goroutine of its own when the origin's state is bad or unknown. One at a time.
func (p *Pool) probe(now int64) {
	if p.cause.Load() == nil && p.dials.Load() > 0 || p.probed > 0 && now-p.probed < probeEvery || p.probing.Swap(true) {
		return
	}
	p.probed = max(now, 1)
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		defer p.probing.Store(false)
		if w, err := p.dial(p.stop); err == nil {
			w.Resp.Minor = 1
			w.release(now, false)
		}
	}()
}

func (p *Pool) connect(gone <-chan struct{}) (*Writer, error) {
	d := net.Dialer{Timeout: p.set.DialTimeout}
	if p.set.Foreign {
		d.Control = p.mayReach
	}
	ctx := goneContext{context.Background(), gone}
	nc, err := d.DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return nil, err
	}
	if p.tls != nil {
		t := tls.Client(nc, p.tls)
		_ = nc.SetDeadline(time.Now().Add(p.set.DialTimeout))
		if err := t.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, err
		}
		_ = nc.SetDeadline(time.Time{})
		nc = t
	}
	rc, err := relay.NewConn(nc, true)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return &Writer{Conn: rc, pool: p}, nil
}

// mayReach refuses the addresses to which a redirect of the origin must not lead: the machine's own metadata service, and loopback where the origin is not there
// itself.
func (p *Pool) mayReach(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := a.Addr().Unmap()
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.IsLoopback() && !p.set.Loopback {
		return errForbidden
	}
	return nil
}

var errForbidden = errors.New("a redirect may not lead to this address")

// ReadHead reads and parses the next response head of the exchange into Resp, and counts it as read; what follows it is in Buffered. Errors: the socket's,
// io.EOF before the first byte, *wire.Error for a head that breaks the rules or is longer than 64 KiB.
func (w *Writer) ReadHead() error {
	searched := 0
	for {
		if b := w.Buffered(); len(b) > 0 {
			n, err := w.Resp.ParseResponse(b, searched)
			if err == nil {
				w.Pin(n)
				return nil
			}
			if err != wire.ErrNeedMore {
				return err
			}
			searched = len(b)
		}
		if err := w.Fill(relay.BodyBytes); err != nil {
			if errors.Is(err, relay.ErrBufferFull) {
				return &wire.Error{Status: 502, Rule: "a response head is at most 64 KiB long"}
			}
			return err
		}
	}
}

// Release gives a writer back after an exchange whose response was read to its end. It is closed instead when the origin said so, or when anything unread is left. Now is the coarse time.
func (w *Writer) Release(now int64) { w.release(now, true) }

func (w *Writer) release(now int64, served bool) {
	if w.over.Swap(true) {
		return
	}
	w.Unpin()
	p := w.pool
	if !w.Widen() || w.Interrupted() || w.unasked() || w.Resp.Close || w.Resp.LengthAndChunked || w.Resp.Minor == 0 && !w.Resp.KeepAlive {
		if len(w.Buffered()) > 0 {
			p.metrics.Discarded(telemetry.DiscardUnsolicited)
		}
		w.close()
		return
	}
	w.Reused = served
	w.freed = now
	w.Resp.Reset()
	p.mu.Lock()
	if p.closed || len(p.idle) >= p.set.MaxIdle {
		p.mu.Unlock()
		w.close()
		return
	}
	p.idle = append(p.idle, w)
	p.mu.Unlock()
}

// unasked reports whether bytes behind the response were read already. Those inside the TLS layer are in no socket, where the peek before sending would
// see them: a read whose deadline has passed returns them, and neither waits nor touches the socket.
func (w *Writer) unasked() bool {
	if len(w.Buffered()) > 0 || w.Bare() {
		return len(w.Buffered()) > 0
	}
	var b [1]byte
	_ = w.Net().SetReadDeadline(time.Unix(1, 0))
	n, err := w.Net().Read(b[:])
	_ = w.Net().SetReadDeadline(time.Time{})
	return n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}

// Discard closes a writer whose exchange did not end cleanly.
func (w *Writer) Discard(why telemetry.Discard) {
	if w.over.Swap(true) {
		return
	}
	w.pool.metrics.Discarded(why)
	w.close()
}

func (w *Writer) close() {
	w.pool.open.Add(-1)
	_ = w.Conn.Close()
}

// Sweep closes idle writers that aged out, that the origin closed or that carry unasked bytes. It is called on the tick with the coarse time.
func (p *Pool) Sweep(now int64) {
	if !p.set.Foreign {
		p.probe(now)
	}
	var dead []*Writer
	p.mu.Lock()
	p.poll = p.poll[:0]
	for _, w := range p.idle {
		p.poll = append(p.poll, unix.PollFd{Fd: int32(w.FD()), Events: unix.POLLIN | unix.POLLRDHUP})
	}
	if len(p.poll) > 0 {
		if _, err := unix.Poll(p.poll, 0); err != nil {
			for i := range p.poll {
				p.poll[i].Revents = 0
			}
		}
	}
	kept := p.idle[:0]
	for i, w := range p.idle {
		switch {
		case p.poll[i].Revents != 0:
			p.metrics.Discarded(telemetry.DiscardClosed)
			dead = append(dead, w)
		case now-w.freed > int64(p.set.IdleTimeout):
			p.metrics.Discarded(telemetry.DiscardIdle)
			dead = append(dead, w)
		default:
			kept = append(kept, w)
		}
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	p.mu.Unlock()
	for _, w := range dead {
		w.close()
	}
}

// Close closes the idle writers and every one that is released later.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.stopOnce.Do(func() { close(p.stop) })
	p.wg.Wait()
	for _, w := range idle {
		w.close()
	}
}

// Reason sorts a failure of the upstream into the closed set of reasons.
func Reason(err error) telemetry.Reason {
	var (
		network   net.Error
		malformed *wire.Error
		untrusted *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &malformed):
		return telemetry.UpstreamMalformed
	case errors.Is(err, ErrExhausted):
		return telemetry.UpstreamBusy
	case errors.As(err, &untrusted), errors.As(err, &record), errors.As(err, &alert):
		return telemetry.UpstreamUntrusted
	case errors.As(err, &op) && op.Op == "dial":
		return telemetry.UpstreamUnreachable
	case errors.As(err, &network) && network.Timeout():
		return telemetry.UpstreamTimeout
	}
	return telemetry.UpstreamBroken
}

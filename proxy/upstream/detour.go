package upstream

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// DetourSettings of a Detour.
type DetourSettings struct {
	Host           *url.URL // scheme http or https, host with or without port
	CAFile         string   // PEM bundle for https, empty: the system's
	DialTimeout    time.Duration
	IdleTimeout    time.Duration
	MaxIdle        int
	MaxConnections int
	Loopback       bool // it may be a loopback address; link-local ones it never may
}

// Detour holds the connections to one host that a redirect named. They are dialled on demand only: such hosts come and go, and nobody asked to keep them warm.
// Safe for concurrent use.
type Detour struct {
	set     DetourSettings
	origin  *origin
	metrics *telemetry.Metrics
	open    atomic.Int64

	mu     sync.Mutex
	idle   []*Writer // a stack
	closed bool
	era    int // of the certificates
	poll   []unix.PollFd
}

// NewDetour returns a detour without connections. It fails when the CA file cannot be read.
func NewDetour(set DetourSettings, m *telemetry.Metrics) (*Detour, error) {
	o, err := newOrigin(set.Host, set.CAFile)
	if err != nil {
		return nil, err
	}
	return &Detour{set: set, origin: o, metrics: m}, nil
}

// Connections returns how many are kept, and how many are in an exchange.
func (p *Detour) Connections() (idle, busy int) {
	p.mu.Lock()
	idle = len(p.idle)
	p.mu.Unlock()
	return idle, max(0, int(p.open.Load())-idle)
}

// Get implements Source: the most recently freed writer, or with fresh, or when there is none, a new connection.
func (p *Detour) Get(fresh bool, gone func() <-chan struct{}) (*Writer, error) {
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

func (p *Detour) dial(gone <-chan struct{}) (*Writer, error) {
	if p.open.Add(1) > int64(p.set.MaxConnections) {
		p.open.Add(-1)
		return nil, ErrExhausted
	}
	p.mu.Lock()
	era := p.era
	p.mu.Unlock()
	conn, err := p.origin.connect(goneContext{context.Background(), gone}, p.origin.addr, p.set.DialTimeout, p.mayReach)
	p.metrics.Dialled(err)
	if err != nil {
		p.open.Add(-1)
		return nil, err
	}
	return &Writer{Conn: conn, home: p, origin: p.origin, era: era}, nil
}

func (p *Detour) mayReach(_, address string, _ syscall.RawConn) error {
	return reachable(address, p.set.Loopback)
}

// put implements home.
func (p *Detour) put(w *Writer, now int64) {
	w.freed = now
	p.mu.Lock()
	if p.closed || w.era != p.era || len(p.idle) >= p.set.MaxIdle {
		p.mu.Unlock()
		p.close(w)
		return
	}
	p.idle = append(p.idle, w)
	p.mu.Unlock()
}

// lose implements home.
func (p *Detour) lose(w *Writer, _ control.Loss, d telemetry.Discard) {
	p.metrics.Discarded(d)
	p.close(w)
}

func (p *Detour) close(w *Writer) {
	p.open.Add(-1)
	_ = w.Conn.Close()
}

// Sweep closes idle writers that aged out, that the host closed or that carry unasked bytes. It is called on the tick with the coarse time.
func (p *Detour) Sweep(now int64) {
	var dead []*Writer
	p.mu.Lock()
	p.poll = pollUnused(p.poll, p.idle)
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
		p.close(w)
	}
}

// pollUnused asks for what happened on unused connections, by one poll(2). The result has one entry for each.
func pollUnused(scratch []unix.PollFd, unused []*Writer) []unix.PollFd {
	scratch = scratch[:0]
	for _, w := range unused {
		scratch = append(scratch, unix.PollFd{Fd: int32(w.FD()), Events: unix.POLLIN | unix.POLLRDHUP})
	}
	if len(scratch) > 0 {
		if _, err := unix.Poll(scratch, 0); err != nil {
			for i := range scratch {
				scratch[i].Revents = 0
			}
		}
	}
	return scratch
}

// Reinit reads the certificates again (SIGHUP): what was connected before serves no other exchange. On an error what was read before stays in use.
func (p *Detour) Reinit() error {
	if p.origin.tls.Load() == nil {
		return nil
	}
	err := p.origin.loadTLS()
	p.mu.Lock()
	p.era++
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		p.close(w)
	}
	return err
}

// Close closes the idle writers and every one that is released later.
func (p *Detour) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		p.close(w)
	}
}

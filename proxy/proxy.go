package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/identity"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
	"github.com/arkvory/sidecar/queue/memory"
)

// Settings of a Proxy. Values are taken as checked: package config is where operators' input is judged.
type Settings struct {
	Upstream        *url.URL
	UpstreamHost    string // replaces Host when not empty
	UpstreamCAFile  string
	FollowRedirects bool
	DialTimeout     time.Duration
	ResponseTimeout time.Duration
	UpstreamIdle    time.Duration
	UpstreamMaxIdle int
	UpstreamMaxOpen int
	Via             string

	MaxRequests    int
	MaxConnections int
	MaxHeaderBytes int
	HeaderTimeout  time.Duration
	ClientIdle     time.Duration
	StallTimeout   time.Duration
	TLS            *tls.Config

	Identity       identity.Settings
	ClientsFile    string
	TrustedProxies []netip.Prefix

	Uploads, Downloads admission.Settings
	UploadIdleTimeout  time.Duration
	UploadDeadline     time.Duration
	AdmissionMinBytes  int64

	UploadTotal, UploadEach     bucket.Limit
	DownloadTotal, DownloadEach bucket.Limit

	Policy          queue.Policy
	SessionMinBytes int64 // Policy.SessionMinBytes
	Hold            time.Duration
	HoldLimit       int

	CacheEntries int
	CacheLife    time.Duration

	Version string
	Log     zerolog.Logger
}

// Proxy is the whole data plane of one process behind one listener. Create it with New, feed it a listener with Serve, stop it with StartDrain and Shutdown.
// It is safe for concurrent use.
type Proxy struct {
	set     Settings
	log     zerolog.Logger
	front   *front.Server
	pool    *upstream.Pool
	ids     *identity.Identifier
	clients *profile.Table
	objects *object.Cache
	queue   *memory.Queue
	up      *admission.Gate
	down    *admission.Gate
	upGov   *bucket.Governor
	downGov *bucket.Governor
	metrics *telemetry.Metrics

	inFlight atomic.Int64
	// largeBodies guesses from the last response that the next body is large: see relay.Conn.HeadOnly. A wrong guess costs one read.
	largeBodies atomic.Bool
	looking     atomic.Int64 // GETs on their way that describe an object while slots are free
	outPool     sync.Pool

	mu    sync.Mutex // guards pools
	pools map[string]*upstream.Pool

	cancel context.CancelFunc
	ticks  sync.WaitGroup
	polled time.Duration // the watcher's own
}

// New wires a proxy and starts its ticks. It fails on settings that a room refuses.
func New(set Settings) (*Proxy, error) {
	p := &Proxy{set: set, log: set.Log, pools: map[string]*upstream.Pool{}}
	p.outPool.New = func() any { return new([outBytes]byte) }
	p.metrics = telemetry.New(set.Version, p.snapshots())
	var err error
	if p.pool, err = upstream.New(p.poolSettings(set.Upstream), p.metrics); err != nil {
		return nil, err
	}
	if p.ids, err = identity.New(set.Identity); err != nil {
		return nil, err
	}
	if p.clients, err = profile.New(profile.Settings{File: set.ClientsFile}); err != nil {
		return nil, err
	}
	if p.objects, err = object.NewCache(object.CacheSettings{Entries: set.CacheEntries, Lifetime: set.CacheLife}); err != nil {
		return nil, err
	}
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	if p.up, err = admission.New(set.Uploads, clock); err != nil {
		return nil, err
	}
	if p.down, err = admission.New(set.Downloads, clock); err != nil {
		return nil, err
	}
	p.upGov = bucket.NewGovernor(set.UploadTotal, set.UploadEach, bucket.SystemClock())
	p.downGov = bucket.NewGovernor(set.DownloadTotal, set.DownloadEach, bucket.SystemClock())
	p.queue, err = memory.New(set.Policy, memory.Options{Clock: clock, HoldLimit: set.HoldLimit, SessionEnded: p.sessionEnded})
	if err != nil {
		return nil, err
	}
	wired := make(chan struct{}) // the watcher ticks from New on
	p.front = front.New(front.Settings{
		MaxConnections: set.MaxConnections, MaxHeaderBytes: set.MaxHeaderBytes, HeaderTimeout: set.HeaderTimeout, IdleTimeout: set.ClientIdle,
		StallTimeout: set.StallTimeout, TLS: set.TLS,
		OnTick: func(time.Duration) {
			select {
			case <-wired:
				p.tick(clock())
			default:
			}
		},
	}, p)
	close(wired)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.ticks.Add(1)
	go func() { defer p.ticks.Done(); p.queue.Run(ctx) }()
	return p, nil
}

func (p *Proxy) poolSettings(origin *url.URL) upstream.Settings {
	return upstream.Settings{Origin: origin, CAFile: p.set.UpstreamCAFile, DialTimeout: p.set.DialTimeout, IdleTimeout: p.set.UpstreamIdle,
		MaxIdle: p.set.UpstreamMaxIdle, MaxConnections: p.set.UpstreamMaxOpen}
}

// maxPools bounds the hosts to which redirects may lead.
const maxPools = 64

var errTooManyHosts = errors.New("redirects lead to more than 64 hosts")

// poolFor returns the pool of a redirect's host, new ones up to maxPools.
func (p *Proxy) poolFor(u *url.URL) (*upstream.Pool, error) {
	if u.Host == p.set.Upstream.Host && u.Scheme == p.set.Upstream.Scheme {
		return p.pool, nil
	}
	key := u.Scheme + "://" + u.Host
	p.mu.Lock()
	defer p.mu.Unlock()
	if pool, ok := p.pools[key]; ok {
		return pool, nil
	}
	if len(p.pools) >= maxPools {
		return nil, errTooManyHosts
	}
	pool, err := upstream.New(p.poolSettings(&url.URL{Scheme: u.Scheme, Host: u.Host}), p.metrics)
	if err == nil {
		p.pools[key] = pool
	}
	return pool, err
}

// eachPool calls f for every pool.
func (p *Proxy) eachPool(f func(*upstream.Pool)) {
	f(p.pool)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.pools {
		f(pool)
	}
}

// filesEvery is how often the operator's files are looked at.
const filesEvery = 2 * time.Second

// tick runs on the watcher's goroutine.
func (p *Proxy) tick(now time.Duration) {
	p.metrics.ConnectionsAccepted.Set(uint64(p.front.Accepted()))
	p.metrics.ConnectionsRefused.Set(uint64(p.front.Refused()))
	p.up.Tick(now)
	p.down.Tick(now)
	coarse := p.front.Clock().Load()
	p.eachPool(func(pool *upstream.Pool) { pool.Sweep(coarse) })
	if now-p.polled >= filesEvery {
		p.polled = now
		p.pollFiles()
	}
}

func (p *Proxy) pollFiles() {
	if p.ids.Poll() {
		p.logFile("ARKVORY_PRINCIPALS_FILE", p.ids.Problem())
	}
	if p.clients.Poll() {
		p.logFile("ARKVORY_CLIENTS_FILE", p.clients.Problem())
	}
}

func (p *Proxy) logFile(variable, problem string) {
	if problem != "" {
		p.log.Warn().Str("variable", variable).Str("problem", problem).Msg("file not applied, the last good one stays")
		return
	}
	p.log.Info().Str("variable", variable).Msg("file applied")
}

// sessions reports whether big downloads are sessions.
func (p *Proxy) sessions() bool { return p.set.Policy.Strategy != queue.Shared }

// Serve accepts connections until Shutdown; then it returns nil.
func (p *Proxy) Serve(ln net.Listener) error { return p.front.Serve(ln) }

// StartDrain stops admission: new and waiting requests get 503, running ones go on. Idempotent.
func (p *Proxy) StartDrain() {
	p.front.StartDrain()
	p.queue.Drain()
	p.up.Drain()
	p.down.Drain()
}

// Busy returns the requests in progress.
func (p *Proxy) Busy() int { return int(p.inFlight.Load()) }

// Shutdown ends the proxy: it drains, waits for running exchanges until ctx is done, then cuts them. All goroutines have ended when it returns.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.StartDrain()
	err := p.front.Shutdown(ctx)
	p.cancel()
	p.queue.Close()
	p.ticks.Wait()
	p.upGov.Close()
	p.downGov.Close()
	p.eachPool((*upstream.Pool).Close)
	return err
}

// Draining reports whether the proxy is stopping.
func (p *Proxy) Draining() bool { return p.front.Draining() }

// Metrics returns the proxy's counters.
func (p *Proxy) Metrics() *telemetry.Metrics { return p.metrics }

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/identity"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
	"github.com/arkvory/sidecar/queue/memory"
	"github.com/arkvory/sidecar/queue/replay"
	"github.com/arkvory/sidecar/ticket"
)

// Settings of a Proxy. Values are taken as checked: package config is where operators' input is judged.
type Settings struct {
	Upstreams       []*url.URL // equal origins
	Fallback        *url.URL   // nil: none
	Resolver        string     // ip:port of a name server; "" = the system's
	Pool            control.Settings
	ProbePath       string
	UpstreamHost    string // replaces Host when not empty
	UpstreamCAFile  string
	FollowRedirects bool
	DialTimeout     time.Duration
	ResponseTimeout time.Duration
	UpstreamIdle    time.Duration
	UpstreamMaxIdle int
	UpstreamMaxOpen int
	UpstreamWait    time.Duration // of a request while no origin can be reached
	UpstreamStall   time.Duration // a body that stands still at the upstream for so long is resumed elsewhere, 0 = never
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

	Policy           queue.Policy       // of the environment; the live settings change it while the proxy runs
	Records          config.RecordStore // of the live settings; nil keeps them in memory
	Decisions        io.Writer          // takes the queue's events and decisions; nil = nobody
	Hold             time.Duration
	HoldLimit        int
	HoldPerPrincipal int // 0 = no limit of its own

	// Tickets signs and reads queue tickets; nil does neither.
	Tickets *ticket.Signer
	// TicketSource names where its key comes from, for readiness.
	TicketSource string
	// Grace is how long after a restart ticket holders come before newcomers, 0 not at all; for Gather of it nobody gets a slot.
	Gather, Grace time.Duration
	// StateDir keeps whether a queue stood when the process ended; "" keeps nothing.
	StateDir string

	// Resume goes on with a body that breaks at the upstream, on another connection.
	Resume bool
	// Bundles lets the objects that one plain client fetches from one repository share a place.
	Bundles bool
	// DripLimit is how many waiting plain clients are fed at once, 0 none; DripBytesPerSecond the most that one gets.
	DripLimit          int
	DripBytesPerSecond int64

	CacheEntries int
	CacheLife    time.Duration

	Version string
	Log     zerolog.Logger

	clock func() time.Duration // of queue and gates; nil: since New. Tests move it
	wall  func() time.Time     // of the quotas; nil: the system's. Tests move it
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
	working  atomic.Int64 // requests past the first refusals: see Working
	// largeBodies guesses from the last response that the next body is large: see relay.Conn.HeadOnly. A wrong guess costs one read.
	largeBodies atomic.Bool
	looking     atomic.Int64 // GETs on their way that describe an object while slots are free
	// outlived: the strategy or the threshold was changed live, so sessions of what is no session any more may be active.
	outlived atomic.Bool
	desk     *live.Desk
	operator *operator
	windowed bool             // a class has a window; of the desk's turn
	outside  outsideBand      // of the sessions that began outside their windows
	recorder *replay.Recorder // nil: no decision log
	// undecided: that the decision log ended too early was logged.
	undecided atomic.Bool
	quotas    quotas
	outPool   sync.Pool
	born      time.Time    // wall
	gathered  atomic.Bool  // the grace after a restart has begun
	returned  atomic.Int64 // when the last valid ticket of an older arrival than this process came, on the queue's clock
	drips     *drip.Dripper
	beginning chan struct{} // clients that ask for their first piece
	holds     places        // for requests that are held in silence
	dripBand  atomic.Int64  // bytes per second that all drips may take

	mu    sync.Mutex                  // guards pools
	pools map[string]*upstream.Detour // of redirects

	cancel context.CancelFunc
	ticks  sync.WaitGroup // the queue's tick and the look at the files

	ends       ends
	panicLines atomic.Int64 // panics since the last minute began
	reported   [2]string    // what was last logged about each file; of the goroutine that looks at them

	// The watcher's own, and of nobody else.
	second, state, minute every
	counted               queue.Counts
	unreachable           bool // as last logged
	graceOver             bool
}

// New wires a proxy and starts its ticks. It fails on settings that a room refuses.
func New(set Settings) (*Proxy, error) {
	p := &Proxy{set: set, log: set.Log, pools: map[string]*upstream.Detour{}, born: wall()}
	p.outPool.New = func() any { return new([outBytes]byte) }
	p.holds.limit, p.holds.each = set.HoldLimit, set.HoldPerPrincipal
	p.metrics = telemetry.New(set.Version, p.snapshots())
	var err error
	if p.ids, p.clients, err = openFiles(set); err != nil {
		return nil, err
	}
	if p.objects, err = object.NewCache(object.CacheSettings{Entries: set.CacheEntries, Lifetime: set.CacheLife}); err != nil {
		return nil, err
	}
	start := time.Now()
	clock := set.clock
	if clock == nil {
		clock = func() time.Duration { return time.Since(start) }
	}
	if p.up, err = admission.New(set.Uploads, clock); err != nil {
		return nil, err
	}
	if p.down, err = admission.New(set.Downloads, clock); err != nil {
		return nil, err
	}
	p.upGov = bucket.NewGovernor(set.UploadTotal, set.UploadEach, bucket.SystemClock())
	p.downGov = bucket.NewGovernor(set.DownloadTotal, set.DownloadEach, bucket.SystemClock())
	if p.queue, err = p.newQueue(clock); err != nil {
		return nil, err
	}
	if p.drips, err = p.newDripper(); err != nil {
		return nil, err
	}
	if p.pool, err = p.newPool(); err != nil { // last: it has goroutines from here on
		p.drips.Close()
		return nil, err
	}
	p.recall()
	p.newQuotas()
	p.desk = p.newDesk(time.Now)
	p.operator = p.newOperator(start)
	wired := make(chan struct{}) // the watcher ticks from New on
	p.front = front.New(front.Settings{
		MaxConnections: set.MaxConnections, MaxHeaderBytes: set.MaxHeaderBytes, HeaderTimeout: set.HeaderTimeout, IdleTimeout: set.ClientIdle,
		StallTimeout: set.StallTimeout, TLS: set.TLS,
		OnHandshakeError: func() { p.metrics.ClientError(telemetry.ClientHandshake) },
		OnPanic:          func(v front.Panic) { p.ReportPanic(v.Value, v.Stack) },
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
	p.loop(ctx, p.queue.Run)
	p.loop(ctx, p.watchFiles)
	p.loop(ctx, p.desk.Follow)
	return p, nil
}

// CheckFiles reads the principals and the clients file as New does, and returns the faults of both together.
func CheckFiles(set Settings) error {
	_, _, err := openFiles(set)
	return err
}

func openFiles(set Settings) (*identity.Identifier, *profile.Table, error) {
	ids, err := identity.New(set.Identity)
	clients, err2 := profile.New(profile.Settings{File: set.ClientsFile})
	return ids, clients, errors.Join(err, err2)
}

// loop runs f on a goroutine of its own until it returns. A panic of it is contained and f runs again after a pause, so that a defect that comes back burns no core.
func (p *Proxy) loop(ctx context.Context, f func(context.Context)) {
	p.ticks.Go(func() {
		for !p.returns(func() { f(ctx) }) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(queue.TickEvery):
			}
		}
	})
}

// returns calls f and reports whether it returned; a panic of it is counted and logged.
func (p *Proxy) returns(f func()) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			p.ReportPanic(v, debug.Stack())
		}
	}()
	f()
	return true
}

// every is a period within the watcher's ticks.
type every struct{ last time.Duration }

// due reports whether the period has passed, and begins the next one then.
func (e *every) due(now, period time.Duration) bool {
	if now-e.last < period {
		return false
	}
	e.last = now
	return true
}

// tick runs on the watcher's goroutine.
func (p *Proxy) tick(now time.Duration) {
	p.metrics.ConnectionsAccepted.Set(uint64(p.front.Accepted()))
	p.metrics.ConnectionsRefused.Set(uint64(p.front.Refused()))
	p.countEvents()
	p.up.Tick(now)
	p.down.Tick(now)
	p.drips.Tick(now)
	p.queue.SetGate(covered(p.pool))
	p.operator.Sample(p.queue.Now())
	p.tickOutside(now)
	coarse := p.front.Clock().Load()
	p.eachDetour(func(d *upstream.Detour) { d.Sweep(coarse) })
	if p.second.due(now, time.Second) {
		p.quotas.Roll(p.wallNow())
		p.measureBand()
		p.endGrace(p.queue.Now())
		p.logUpstream()
		p.logEnds()
		p.logDecisions()
	}
	if p.state.due(now, 10*time.Second) {
		p.logState()
	}
	if p.minute.due(now, time.Minute) {
		p.logPanics()
	}
}

// Serve accepts connections until Shutdown; then it returns nil.
func (p *Proxy) Serve(ln net.Listener) error { return p.front.Serve(ln) }

// StartDrain stops admission: new and waiting requests get 503, running ones go on. Idempotent.
func (p *Proxy) StartDrain() {
	p.front.StartDrain()
	p.pool.Drain()
	p.returns(p.queue.Drain) // what runs is not cut because of a defect there
	p.up.Drain()
	p.down.Drain()
	p.logEnds()
}

// Busy returns the requests in progress, those that are being refused included.
func (p *Proxy) Busy() int { return int(p.inFlight.Load()) }

// Working returns the requests in progress that were not refused at once; a drain waits for these.
func (p *Proxy) Working() int { return int(p.working.Load()) }

// hungAfter bounds the wait for what ends at once unless a file hangs.
const hungAfter = 2 * time.Second

// within waits for f, but not for ever: no mount may keep the process from stopping. Warning is logged when it is left behind.
func (p *Proxy) within(warning string, f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.returns(f)
	}()
	t := time.NewTimer(hungAfter)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
		p.log.Warn().Msg(warning)
	}
}

// Shutdown ends the proxy: it drains, waits for running exchanges until ctx is done, then cuts them. All goroutines have ended when it returns, but for one that
// hangs in the read or the write of a file.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.StartDrain()
	err := p.front.Shutdown(ctx)
	p.cancel()
	p.within("stopping while the decision log is not written", p.queue.Close)
	p.within("stopping while the read of a file hangs", p.ticks.Wait) // the goroutines of New
	p.within("stopping while the quotas' counts are not written", p.saveQuotas)
	p.drips.Close()
	p.upGov.Close()
	p.downGov.Close()
	p.pool.Close()
	p.eachDetour((*upstream.Detour).Close)
	p.logEnds()
	p.logPanics()
	p.logDecisions()
	return err
}

// Draining reports whether the proxy is stopping.
func (p *Proxy) Draining() bool { return p.front.Draining() }

// Metrics returns the proxy's counters.
func (p *Proxy) Metrics() *telemetry.Metrics { return p.metrics }

package proxy

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
)

func (p *Proxy) newPool() (*upstream.Pool, error) {
	set := p.set.Pool
	set.MaxConnections = p.set.UpstreamMaxOpen
	set.FloorMax = max(1, p.set.UpstreamMaxIdle)
	set.FloorPerCore = max(1, p.set.UpstreamMaxIdle/max(1, set.Cores))
	return upstream.New(upstream.Settings{Origins: p.set.Upstreams, Fallback: p.set.Fallback, CAFile: p.set.UpstreamCAFile, Resolver: p.set.Resolver,
		DialTimeout: p.set.DialTimeout, IdleTimeout: p.set.UpstreamIdle, MaxIdle: p.set.UpstreamMaxIdle, Wait: p.set.UpstreamWait, Control: set, Host: p.set.UpstreamHost,
		ProbePath: p.set.ProbePath, OnGeneration: p.logGeneration, OnPanic: p.ReportPanic}, p.metrics)
}

// Reinit builds new connections to all origins, their names and certificates read again (SIGHUP). Running exchanges end on the old ones.
// The hosts of redirects read their certificates again, too.
func (p *Proxy) Reinit() error {
	err := p.pool.Reinit()
	var detours []*upstream.Detour
	p.eachDetour(func(d *upstream.Detour) { detours = append(detours, d) })
	for _, d := range detours { // without the lock: a mount may hang
		if failed := d.Reinit(); err == nil {
			err = failed
		}
	}
	return err
}

// logGeneration is the pool's observer.
func (p *Proxy) logGeneration(group string, generation uint64, retired bool) {
	event := "generation active"
	if retired {
		event = "generation retired"
	}
	level := zerolog.InfoLevel
	if !retired && generation <= uint64(len(p.set.Upstreams)+1) { // the first ones are no change
		level = zerolog.DebugLevel
	}
	p.log.WithLevel(level).Str("upstream", group).Uint64("generation", generation).Msg(event)
}

// maxPools bounds the hosts to which redirects may lead.
const maxPools = 64

var errTooManyHosts = errors.New("redirects lead to more than 64 hosts at the same time")

// originOf returns the origin of a URL in one spelling: lower case, and without the port that its scheme has anyway (RFC 3986 section 6.2.3).
func originOf(u *url.URL) *url.URL {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	switch {
	case port != "" && !(scheme == "http" && port == "80") && !(scheme == "https" && port == "443"):
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return &url.URL{Scheme: scheme, Host: host}
}

// poolFor returns the pool of a redirect's host. There are at most maxPools of them; a new host takes the place of one with nothing in progress.
func (p *Proxy) poolFor(u *url.URL) (upstream.Source, error) {
	origin := originOf(u)
	key := origin.String()
	loopback := false
	for _, own := range p.set.Upstreams {
		if key == originOf(own).String() {
			return p.pool, nil
		}
		loopback = loopback || isLoopback(own.Hostname())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pool, ok := p.pools[key]; ok {
		return pool, nil
	}
	if len(p.pools) >= maxPools && !p.evictLocked() {
		return nil, errTooManyHosts
	}
	detour, err := upstream.NewDetour(upstream.DetourSettings{Host: origin, CAFile: p.set.UpstreamCAFile, DialTimeout: p.set.DialTimeout, IdleTimeout: p.set.UpstreamIdle,
		MaxIdle: p.set.UpstreamMaxIdle, MaxConnections: p.set.UpstreamMaxOpen, Loopback: loopback}, p.metrics)
	if err != nil {
		return nil, err
	}
	p.pools[key] = detour
	return detour, nil
}

// isLoopback reports whether a host is this machine by its name or address.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// evictLocked closes one pool without exchanges, one without connections rather than one with idle ones. Whoever was given it a moment ago can still use it:
// a closed pool only keeps nothing.
func (p *Proxy) evictLocked() bool {
	victim, fewest := "", 0
	for key, pool := range p.pools {
		if idle, busy := pool.Connections(); busy == 0 && (victim == "" || idle < fewest) {
			victim, fewest = key, idle
		}
	}
	if victim == "" {
		return false
	}
	p.log.Debug().Str("host", victim).Msg("connections to the host of a redirect closed, another host needs their place")
	p.pools[victim].Close()
	delete(p.pools, victim)
	return true
}

// eachDetour calls f for the connections to every host of redirects.
func (p *Proxy) eachDetour(f func(*upstream.Detour)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.pools {
		f(pool)
	}
}

// covered reports whether downloads may start.
func covered(pool *upstream.Pool) bool {
	ok, _ := pool.Covered()
	return ok
}

// upstreamCause is why the first endpoint or name that fails does, without secrets: these are addresses and the texts of the network.
func (p *Proxy) upstreamCause() string {
	for _, g := range p.pool.Status().Groups {
		if g.Names != "" {
			return g.Names
		}
		for _, e := range g.Endpoints {
			if e.Cause != "" {
				return e.Cause
			}
		}
	}
	return ""
}

// upstreamState is what a metrics page shows of the pool.
func (p *Proxy) upstreamState() telemetry.Upstream {
	s := p.pool.Status()
	t := &s.Totals
	u := telemetry.Upstream{Writers: [4]int{s.Dialing, s.Warm, s.Active, s.Draining}, Waiting: p.pool.Waiting(), Covered: covered(p.pool), Fallback: s.Fallback,
		Generations: [4]int64{t.Begun, t.Activated, t.Retired, t.Abandoned}, Fallbacks: [2]int64{t.FallbackIn, t.FallbackOut},
		Probes: [2]int64{t.Probes - t.ProbeFailures, t.ProbeFailures}, Resolves: [2]int64{t.Resolves - t.ResolveFailures, t.ResolveFailures}}
	for _, g := range s.Groups {
		u.Generation = max(u.Generation, uint64(g.Generation))
		for _, e := range g.Endpoints {
			u.Floor += e.Target
			if e.Current {
				u.Endpoints[e.Health]++
			}
		}
	}
	return u
}

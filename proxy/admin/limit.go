package admin

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Rates of the listener. Reads and writes have their own, and so has each class of callers: a console in a loop does not keep the
// operator's terminal out.
var (
	readRate  = rate{every: time.Second / 50, burst: 100}
	writeRate = rate{every: time.Second / 5, burst: 20}
	// guessRate bounds wrong tokens of one peer.
	guessRate = rate{every: time.Minute / 10, burst: 10}
)

// maxPeers bounds the table of peers that showed wrong tokens; those above it share one entry. maxTrusted is how many peers that showed the right one have a place in it
// all the same.
const (
	maxPeers   = 1024
	maxTrusted = 64
)

// rate is one event each span, and a burst of events at once.
type rate struct {
	every time.Duration
	burst int
}

// meter is the token bucket of a rate in the form of the generic cell rate algorithm (ITU-T I.371): full is the moment at which the bucket is full
// again, and one event moves it on by a span. Pure: time is given. The zero value is full at time 0.
type meter struct{ full time.Duration }

// take counts an event and returns 0, or returns after which span it could be and counts nothing.
func (m *meter) take(r rate, now time.Duration) time.Duration {
	full := max(m.full, now) + r.every
	if wait := full - now - time.Duration(r.burst)*r.every; wait > 0 {
		return wait
	}
	m.full = full
	return 0
}

// limits are the meters of all callers. Safe for concurrent use.
type limits struct {
	mu      sync.Mutex
	calls   map[call]*meter
	peers   map[netip.Prefix]*meter
	others  meter                          // of peers that the table has no room for
	trusted map[netip.Prefix]time.Duration // who showed the right token, and when last
}

// call is what has a meter of its own: a class of callers, reading or writing.
type call struct {
	who   trust
	write bool
}

func newLimits() *limits {
	return &limits{calls: map[call]*meter{}, peers: map[netip.Prefix]*meter{}, trusted: map[netip.Prefix]time.Duration{}}
}

// allow counts a call and returns 0, or how long to wait.
func (l *limits) allow(c call, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.calls[c]
	if m == nil {
		m = &meter{}
		l.calls[c] = m
	}
	if c.write {
		return m.take(writeRate, now)
	}
	return m.take(readRate, now)
}

// guess judges a token that a peer shows and returns 0, or how long no token of this peer is taken, a right one neither. Only wrong ones count, in one step with the
// question whether one more may be: no number of connections gets more looks, and right ones do not get into each other's way.
func (l *limits) guess(peer net.Addr, now time.Duration, right bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	network := networkOf(peer)
	m, kept := l.meterLocked(network, now)
	after := *m
	if wait := after.take(guessRate, now); wait > 0 {
		return wait
	}
	if right {
		l.rememberLocked(network, now)
		return 0
	}
	if *m = after; !kept {
		l.peers[network] = m
	}
	return 0
}

// rememberLocked notes that a peer has shown the right token: strangers that fill the table do not crowd it out of a meter of its own.
func (l *limits) rememberLocked(network netip.Prefix, now time.Duration) {
	if _, known := l.trusted[network]; !known && len(l.trusted) >= maxTrusted {
		oldest := network
		for one, at := range l.trusted {
			if first, any := l.trusted[oldest]; !any || at < first {
				oldest = one
			}
		}
		delete(l.trusted, oldest)
	}
	l.trusted[network] = now
}

// meterLocked finds a peer's meter, or makes one that is not in the table yet. A full table is rid of those whose wrong tokens are forgotten; if there are none, the rest
// share a meter, but for those who have shown the right token.
func (l *limits) meterLocked(network netip.Prefix, now time.Duration) (m *meter, kept bool) {
	if m := l.peers[network]; m != nil {
		return m, true
	}
	if len(l.peers) >= maxPeers {
		for known, m := range l.peers {
			if m.full <= now {
				delete(l.peers, known)
			}
		}
	}
	if _, known := l.trusted[network]; !known && len(l.peers) >= maxPeers {
		return &l.others, true
	}
	return &meter{}, false
}

// networkOf is what counts as one peer: an IPv4 address, or the /64 of an IPv6 address, which one host has whole.
func networkOf(peer net.Addr) netip.Prefix {
	at, ok := peer.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	a := at.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	network, err := a.Prefix(bits)
	if err != nil { // an address without an IP
		return netip.Prefix{}
	}
	return network
}

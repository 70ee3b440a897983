package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// resolveLimit bounds one resolution.
const resolveLimit = 5 * time.Second

// resolver asks for the addresses of names.
type resolver struct {
	// lookup returns the addresses of a name in the family ip4 or ip6. Errors are those of net.Resolver.
	lookup func(ctx context.Context, family, name string) ([]netip.Addr, error)
	keep   time.Duration // how long the last addresses of one family outlive failures of its lookups while the other is answered
}

// seen is the last good answer for one family of a name.
type seen struct {
	ips []netip.Addr
	at  time.Duration
}

// newResolver asks the name server at an ip:port, or those of the system when it is empty.
func newResolver(server string) resolver {
	if server == "" {
		return resolver{lookup: net.DefaultResolver.LookupNetIP}
	}
	own := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}
	return resolver{lookup: own.LookupNetIP}
}

// resolve looks the name of an origin up in both families and returns the report for the loop.
func (r resolver) resolve(ctx context.Context, group control.GroupID, o *origin, began time.Duration) report {
	done := func(e control.Resolved, err error) report {
		e.Group = group
		if err != nil {
			e.Cause = err.Error()
		}
		return report{kind: reportResolved, event: e, err: err, began: began}
	}
	port, err := strconv.ParseUint(o.port, 10, 16)
	if err != nil {
		port, err = lookupPort(ctx, o.port)
	}
	if err != nil {
		return done(control.Resolved{Answer: control.Unanswered}, err)
	}
	if ip, err := netip.ParseAddr(o.name); err == nil {
		return done(control.Resolved{Answer: control.Addresses, Addrs: []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), uint16(port))}, TTL: -1}, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	type found struct {
		family   int
		ips      []netip.Addr
		err      error
		panicked any
	}
	families := [...]string{"ip6", "ip4"}
	answers := make(chan found, len(families))
	for i, family := range families {
		go func() {
			a := found{family: i}
			defer func() {
				a.panicked = recover()
				answers <- a
			}()
			a.ips, a.err = r.lookup(ctx, family, o.name)
		}()
	}
	var addrs, kept []netip.AddrPort
	var failed, absent error
	for range families {
		a := <-answers
		if a.panicked != nil {
			panic(a.panicked) // it is contained where this resolution began
		}
		last := &o.seen[a.family]
		var dns *net.DNSError
		var noneOfFamily *net.AddrError
		switch {
		case a.err == nil:
			*last = seen{a.ips, began}
			addrs = appendAddrs(addrs, a.ips, port)
		case errors.As(a.err, &dns) && dns.IsNotFound, errors.As(a.err, &noneOfFamily):
			*last = seen{}
			absent = a.err
		default:
			if began-last.at < r.keep {
				kept = appendAddrs(kept, last.ips, port)
			}
			failed = a.err
		}
	}
	if len(addrs) > 0 { // a name server that stumbles over one family must not take living endpoints away
		addrs = append(addrs, kept...)
	}
	switch {
	case len(addrs) > 0:
		return done(control.Resolved{Answer: control.Addresses, Addrs: addrs}, nil)
	case failed != nil:
		return done(control.Resolved{Answer: control.Unanswered}, failed)
	}
	return done(control.Resolved{Answer: control.Negative}, absent)
}

func appendAddrs(dst []netip.AddrPort, ips []netip.Addr, port uint64) []netip.AddrPort {
	for _, ip := range ips {
		dst = append(dst, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	return dst
}

func lookupPort(ctx context.Context, name string) (uint64, error) {
	n, err := net.DefaultResolver.LookupPort(ctx, "tcp", name)
	return uint64(n), err
}

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
}

// newResolver asks the name server at an ip:port, or those of the system when it is empty.
func newResolver(server string) resolver {
	if server == "" {
		return resolver{net.DefaultResolver.LookupNetIP}
	}
	own := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}
	return resolver{own.LookupNetIP}
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
		ips []netip.Addr
		err error
	}
	families := [...]string{"ip6", "ip4"}
	answers := make(chan found, len(families))
	for _, family := range families {
		go func() {
			ips, err := r.lookup(ctx, family, o.name)
			answers <- found{ips, err}
		}()
	}
	var addrs []netip.AddrPort
	var failed, absent error
	for range families {
		a := <-answers
		for _, ip := range a.ips {
			addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
		}
		var dns *net.DNSError
		var noneOfFamily *net.AddrError
		switch {
		case a.err == nil:
		case errors.As(a.err, &dns) && dns.IsNotFound, errors.As(a.err, &noneOfFamily):
			absent = a.err
		default:
			failed = a.err
		}
	}
	switch {
	case len(addrs) > 0:
		return done(control.Resolved{Answer: control.Addresses, Addrs: addrs}, nil)
	case failed != nil:
		return done(control.Resolved{Answer: control.Unanswered}, failed)
	}
	return done(control.Resolved{Answer: control.Negative}, absent)
}

func lookupPort(ctx context.Context, name string) (uint64, error) {
	n, err := net.DefaultResolver.LookupPort(ctx, "tcp", name)
	return uint64(n), err
}

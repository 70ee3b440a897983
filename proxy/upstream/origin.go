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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/wire"
)

// Failures of Get besides those of the network.
var (
	// ErrExhausted says that MaxConnections are open and none became free in time.
	ErrExhausted = errors.New("cannot open upstream connection: ARKVORY_UPSTREAM_MAX_CONNECTIONS are open")
	// ErrUncovered says that no endpoint of any origin could be connected in time, and no dial told why.
	ErrUncovered = errors.New("cannot reach the upstream: no endpoint could be connected in time")
	// ErrNoOther says that every endpoint of the view is one that the exchange avoids.
	ErrNoOther = errors.New("cannot ask another endpoint of the upstream: there is none")
	errClosed  = errors.New("cannot reach the upstream: the proxy is stopping")
)

// origin is what is known of one name: how to speak to it.
type origin struct {
	url    *url.URL
	host   string // as it stands in Host
	name   string // host without port, for DNS and TLS
	port   string
	addr   string // host:port
	caFile string
	tls    atomic.Pointer[tls.Config] // nil: plain
	seen   [2]seen                    // by family; of the one resolution that runs
}

// newOrigin reads the URL of an origin and, for https, the CA file.
func newOrigin(u *url.URL, caFile string) (*origin, error) {
	o := &origin{url: u, host: u.Host, name: u.Hostname(), port: u.Port(), caFile: caFile}
	if o.port == "" {
		o.port = "80"
		if u.Scheme == "https" {
			o.port = "443"
		}
	}
	o.addr = net.JoinHostPort(o.name, o.port)
	return o, o.loadTLS()
}

// loadTLS reads the CA file again. On an error what was read before stays.
func (o *origin) loadTLS() error {
	if o.url.Scheme != "https" {
		return nil
	}
	set := &tls.Config{ServerName: o.name, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return fmt.Errorf("cannot read ARKVORY_UPSTREAM_CA_FILE: %w", err)
		}
		set.RootCAs = x509.NewCertPool()
		if !set.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("cannot read ARKVORY_UPSTREAM_CA_FILE %s: no PEM certificate in it", o.caFile)
		}
	}
	o.tls.Store(set)
	return nil
}

// connect opens one connection to an address of the origin, TLS included, within limit or until ctx ends.
func (o *origin) connect(ctx context.Context, address string, limit time.Duration, may func(network, address string, c syscall.RawConn) error) (*relay.Conn, error) {
	until := time.Now().Add(limit)
	d := net.Dialer{Deadline: until, Control: may}
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if set := o.tls.Load(); set != nil {
		t := tls.Client(nc, set)
		_ = nc.SetDeadline(until)
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
	return rc, nil
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

var errForbidden = errors.New("a redirect may not lead to this address")

// reachable refuses the addresses to which a redirect of the origin must not lead: the machine's own metadata service, and loopback where the origin is not there
// itself.
func reachable(address string, loopback bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := a.Addr().Unmap()
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.IsLoopback() && !loopback {
		return errForbidden
	}
	return nil
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
		name      *net.DNSError
	)
	switch {
	case errors.As(err, &malformed):
		return telemetry.UpstreamMalformed
	case errors.Is(err, ErrExhausted):
		return telemetry.UpstreamBusy
	case errors.As(err, &untrusted), errors.As(err, &record), errors.As(err, &alert):
		return telemetry.UpstreamUntrusted
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &name), errors.Is(err, ErrUncovered), errors.Is(err, errClosed):
		return telemetry.UpstreamUnreachable
	case errors.As(err, &network) && network.Timeout():
		return telemetry.UpstreamTimeout
	}
	return telemetry.UpstreamBroken
}

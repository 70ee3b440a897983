package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// TestU3_ANameServerThatStumblesOverOneFamilyTakesNoAddressAway: while one family is answered and the other is not, the last addresses of the other stay; only a word of the name
// server, or time, takes them away.
func TestU3_ANameServerThatStumblesOverOneFamilyTakesNoAddressAway(t *testing.T) {
	t.Parallel()
	var six error
	r := resolver{keep: time.Minute, lookup: func(_ context.Context, family, name string) ([]netip.Addr, error) {
		if family == "ip4" {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		if six != nil {
			return nil, six
		}
		return []netip.Addr{netip.MustParseAddr("2001:db8::1")}, nil
	}}
	o, err := newOrigin(&url.URL{Scheme: "http", Host: "store.test"}, "")
	if err != nil {
		t.Fatal(err)
	}
	timeout := &net.DNSError{Err: "i/o timeout", Name: "store.test", IsTimeout: true}
	for i, step := range []struct {
		six  error
		at   time.Duration
		want int
	}{
		{nil, 1, 2}, {timeout, time.Second, 2}, {errors.New("server misbehaving"), 2 * time.Second, 2}, {nil, 3 * time.Second, 2},
		{timeout, 2 * time.Minute, 1}, // for too long
		{nil, 3 * time.Minute, 2},
		{&net.DNSError{Err: "no such host", Name: "store.test", IsNotFound: true}, 181 * time.Second, 1}, {timeout, 182 * time.Second, 1},
	} {
		six = step.six
		answer := r.resolve(context.Background(), 0, o, step.at).event.(control.Resolved)
		if answer.Answer != control.Addresses || len(answer.Addrs) != step.want {
			t.Errorf("step %d: %+v, want %d addresses", i, answer, step.want)
		}
	}
}

// TestL3_ALookupThatPanicsIsContained: its resolution has failed.
func TestL3_ALookupThatPanicsIsContained(t *testing.T) {
	t.Parallel()
	reported := make(chan any, 64)
	p := openPool(t, func(set *Settings) {
		set.DialTimeout = 200 * time.Millisecond
		set.lookup = func(context.Context, string, string) ([]netip.Addr, error) { panic("of a test") }
		set.OnPanic = func(v any, _ []byte) {
			select {
			case reported <- v:
			default:
			}
		}
	}, "http://store.test:80")
	if _, err := p.Get(false, here); Reason(err) != telemetry.UpstreamUnreachable {
		t.Errorf("%v is %v", err, Reason(err))
	}
	if v := <-reported; v != "of a test" {
		t.Errorf("reported: %v", v)
	}
}

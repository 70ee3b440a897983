package upstream

import (
	"context"
	"net/url"
	"syscall"
	"testing"
	"time"
)

// TestU5_TheDialLimitCoversTheHandshakeToo: what connecting took is not given to the handshake again.
func TestU5_TheDialLimitCoversTheHandshakeToo(t *testing.T) {
	t.Parallel()
	hang := newServer(t)
	o, err := newOrigin(&url.URL{Scheme: "https", Host: hang.ln.Addr().String()}, "")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 1600 * time.Millisecond
	slowly := func(string, string, syscall.RawConn) error {
		<-time.After(limit * 3 / 4)
		return nil
	}
	began := time.Now()
	if _, err := o.connect(context.Background(), o.addr, limit, slowly); err == nil {
		t.Fatal("a handshake that nobody answered")
	}
	if took := time.Since(began); took >= limit*7/4 { // a whole limit behind the three quarters that are gone
		t.Errorf("gave up after %v, want %v", took, limit)
	}
}

package proxy

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

const equalSize = 2 * mib

// half is an origin that gives the whole object under one validator, up to its half when it is asked for the first time, and parts of it under the validator that
// its field says.
func half(t *testing.T, etag *atomic.Pointer[string], breaks *atomic.Int64) *origin {
	return newOrigin(t, func(k *call) {
		first, last, ranged := 0, equalSize-1, false
		if r := k.field("Range"); r != "" {
			ranged = true
			from, to, _ := strings.Cut(strings.TrimPrefix(r, "bytes="), "-")
			first, _ = strconv.Atoi(from)
			if to != "" {
				last, _ = strconv.Atoi(to)
			}
		}
		if k.method == "HEAD" {
			k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"good\"\r\nAccept-Ranges: bytes\r\nContent-Length: %d\r\n\r\n", equalSize))
			return
		}
		if !ranged {
			k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"good\"\r\nAccept-Ranges: bytes\r\nContent-Length: %d\r\n\r\n", equalSize), bytesOf(0, equalSize)[:equalSize/2])
			breaks.Add(1)
			k.over = true
			return
		}
		k.send(fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nETag: %s\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", *etag.Load(), first, last, equalSize, last-first+1),
			bytesOf(0, equalSize)[first:last+1])
	})
}

func words(text ...string) (out []*atomic.Pointer[string]) {
	for _, one := range text {
		p := new(atomic.Pointer[string])
		p.Store(&one)
		out = append(out, p)
	}
	return out
}

// TestU9_TheOddOriginIsPassedBy: of equal origins one gives another object when a body that broke is asked for again. The download goes on at another one; only when all give
// another object it is cut, and never with other bytes.
func TestU9_TheOddOriginIsPassedBy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		etags []string
		whole bool
	}{
		{"one is odd", []string{`"good"`, `"odd"`}, true},
		{"two are odd", []string{`"odd"`, `"good"`, `"odder"`}, true},
		{"all are odd", []string{`"odd"`, `"odder"`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var breaks atomic.Int64
			var urls []*url.URL
			for _, etag := range words(c.etags...) {
				u, _ := url.Parse(half(t, etag, &breaks).url())
				urls = append(urls, u)
			}
			b := start(t, urls[0].String(), func(s *Settings) { s.Resume, s.Upstreams = true, urls })
			eventually(t, "all are ready", func() bool { return b.p.pool.Choices() == len(urls) })
			for range 6 {
				if c.whole {
					if a := b.once("GET", "/o"); a.body != bytesOf(0, equalSize) {
						t.Fatalf("status %d, %d bytes of %d", a.StatusCode, len(a.body), equalSize)
					}
					continue
				}
				all, _ := io.ReadAll(b.dial().get("/o").br) // it ends with the connection
				if _, body, _ := strings.Cut(string(all), "\r\n\r\n"); len(body) >= equalSize || !strings.HasPrefix(bytesOf(0, equalSize), body) {
					t.Fatalf("%d bytes", len(body))
				}
			}
			b.quiet(patience)
			of := func(outcome string) string {
				return b.metric(`arkvory_upstream_resumes_total{outcome="` + outcome + `"}`)
			}
			if whole := of("changed") == "0"; whole != c.whole || of("given_up") != "0" {
				t.Errorf("%s ok, %s changed, %s given up", of("ok"), of("changed"), of("given_up"))
			}
		})
	}
}

// TestU7_WithoutAnOriginAProtocolClientIsToldToComeAgain: for it that is no fault that it counts; a plain client gets a bad gateway.
func TestU7_WithoutAnOriginAProtocolClientIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	o := store(t)
	address := o.url()
	b := start(t, address, nil)
	o.close()
	eventually(t, "it is known", func() bool { ok, why := b.p.pool.Covered(); return !ok && why == control.CauseUnreachable })
	if a := b.once("GET", "/o/100000000"); a.StatusCode != 502 || a.reason(t) != "upstream_unreachable" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/o/100000000", "Arkvory-Download-Id: a"); a.StatusCode != 503 || a.reason(t) != "upstream_not_ready" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if ready := b.p.Sources(time.Now()).Ready; ready() != telemetry.UpstreamNotReady {
		t.Error("it counts as ready")
	}
}

// TestU7_ARequestOutlivesARestartOfItsOrigin: within ARKVORY_UPSTREAM_WAIT_MS it waits and is served.
func TestU7_ARequestOutlivesARestartOfItsOrigin(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { s.UpstreamWait = patience })
	o.close()
	eventually(t, "it is known", func() bool { ok, _ := b.p.pool.Covered(); return !ok })
	c := b.dial().get("/small/10")
	eventually(t, "it waits", func() bool { return b.p.pool.Waiting() == 1 })
	o.again()
	if a := c.answer(); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

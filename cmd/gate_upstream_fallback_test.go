//go:build gate

package house_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	fallbackAfter  = 3 // seconds
	fallbackBack   = 5
	fallbackSmall  = 50 // GETs a second
	fallbackObject = 128 * mib
	fallbackRate   = 3 * mib // bytes/s of the one long download
)

// fallbackRun is one sidecar with a first and a second origin.
type fallbackRun struct {
	t             *testing.T
	first, second *webOrigin
	sidecar       *sidecar
	load          *load
	rows          string
}

// gateFallback shows U8: on-outage goes in after an outage and comes back after the origin did, does not flap with an origin that does, and off and always do what they say.
func gateFallback(t *testing.T, binary string) {
	s := newStore(t, 0, 0)
	s.add(t, "object", fallbackObject, 1)
	for _, policy := range []string{"on-outage", "off", "always"} {
		t.Run(policy, func(t *testing.T) {
			addresses, names := originAddresses(t, 2, false), startNames(t)
			names.set(poolName, addresses[0])
			r := &fallbackRun{t: t, first: newOrigin(t, s, "first", addresses[0], 5*time.Minute), second: newOrigin(t, s, "second", addresses[1], 5*time.Minute)}
			r.first.start()
			r.second.start()
			r.sidecar = startSidecar(t, binary, poolOrigin(portOf(addresses[0])), false, poolVariables(names, map[string]string{
				"ARKVORY_UPSTREAM_FALLBACK": "http://" + addresses[1], "ARKVORY_UPSTREAM_FALLBACK_POLICY": policy,
				"ARKVORY_UPSTREAM_FALLBACK_AFTER_SECONDS": strconv.Itoa(fallbackAfter), "ARKVORY_UPSTREAM_FALLBACK_BACK_SECONDS": strconv.Itoa(fallbackBack),
				"ARKVORY_UPSTREAM_RESUME": "true", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL": strconv.FormatInt(fallbackRate, 10)}))
			within(t, 20*time.Second, "the pool has coverage", func() bool { return r.sidecar.pool().of(t, seriesCovered) == 1 })
			r.load = &load{address: r.sidecar.listen, path: "/tiny", size: kib, perSecond: fallbackSmall, workers: 64}
			r.load.start()
			switch policy {
			case "on-outage":
				r.onOutage(s)
			case "off":
				r.off()
			case "always":
				r.always()
			}
			t.Logf("\n| at | event | answers of the first | of the second | failed | in use | switched in, out |\n|---|---|---|---|---|---|---|\n%s", r.rows)
		})
	}
}

// during notes what a step brought: answers and failures in it. The step's function may wait for something.
func (r *fallbackRun) during(what string, step func()) (first, second, failed int) {
	r.t.Helper()
	before, bad := r.load.seen(), r.load.failures()
	step()
	after, worse := r.load.seen(), r.load.failures()
	for why, n := range worse {
		failed += n - bad[why]
	}
	first, second = after["first"]-before["first"], after["second"]-before["second"]
	page := r.sidecar.pool()
	in, out := r.switches(page)
	r.rows += fmt.Sprintf("| %.0f s | %s | %d | %d | %d | %d | %d, %d |\n", time.Since(r.load.begun).Seconds(), what, first, second, failed, page.of(r.t, seriesFallback), in, out)
	return first, second, failed
}

func (r *fallbackRun) switches(page poolPage) (in, out int) {
	return page.of(r.t, `arkvory_upstream_fallback_switches_total{direction="in"}`), page.of(r.t, `arkvory_upstream_fallback_switches_total{direction="out"}`)
}

// serves waits until the second origin is in use, or not, and returns how long that took.
func (r *fallbackRun) serves(second bool) time.Duration {
	r.t.Helper()
	begun, want := time.Now(), map[bool]int{true: 1}[second]
	within(r.t, 60*time.Second, fmt.Sprintf("the fallback is in use: %v", second), func() bool { return r.sidecar.pool().of(r.t, seriesFallback) == want })
	return time.Since(begun)
}

func (r *fallbackRun) onOutage(s *store) {
	t := r.t
	whole := make(chan error, 1)
	go func() { whole <- r.download(s) }()
	seconds := func(n int) func() { return func() { pause(time.Duration(n) * time.Second) } }
	if _, second, failed := r.during("both are up", seconds(3)); second+failed > 0 {
		t.Errorf("%d answers of the second, %d failures while the first is up", second, failed)
	}
	var in, out time.Duration
	r.during("the first is killed, until the second serves", func() { r.first.kill(); in = r.serves(true) })
	r.during("the requests of before end", seconds(1))
	if first, second, failed := r.during("the second serves", seconds(3)); first+failed > 0 || second == 0 {
		t.Errorf("%d answers of the first, %d of the second, %d failures on the fallback", first, second, failed)
	}
	if _, _, failed := r.during("the first is back, until it serves", func() { r.first.start(); out = r.serves(false) }); failed > 0 {
		t.Errorf("%d failures on the way back", failed)
	}
	if _, _, failed := r.during("the requests of before end", seconds(1)); failed > 0 {
		t.Errorf("%d failures on the way back", failed)
	}
	if first, second, failed := r.during("the first serves again", seconds(3)); second+failed > 0 || first == 0 {
		t.Errorf("%d answers of the first, %d of the second, %d failures after it", first, second, failed)
	}
	before, _ := r.switches(r.sidecar.pool())
	r.during("the first dies for half a second of two, six times", func() {
		for range 6 {
			r.first.kill()
			pause(500 * time.Millisecond)
			r.first.start()
			pause(1500 * time.Millisecond)
		}
	})
	if after, _ := r.switches(r.sidecar.pool()); after != before {
		t.Errorf("an origin that is away for a quarter of the time brought the fallback in %d times", after-before)
	}
	r.load.finish()
	err := <-whole
	t.Logf("in after %.1f s without the first (%d s set), out %.1f s after it was back (%d s set); the download that ran over it all: %v; failures seen in all: %v", in.Seconds(), fallbackAfter,
		out.Seconds(), fallbackBack, map[bool]string{true: "whole"}[err == nil], r.load.failures())
	if err != nil {
		t.Errorf("the download that ran over it all: %v", err)
	}
	if in < (fallbackAfter-1)*time.Second || out < (fallbackBack-1)*time.Second {
		t.Errorf("in after %v, out after %v: before their time", in, out)
	}
	for why := range r.load.failures() {
		if !definite(why) {
			t.Errorf("without an origin a client saw %q", why)
		}
	}
}

// definite reports whether what a client saw is an answer of the sidecar's own with a reason: 502, or 503.
func definite(why string) bool {
	return (strings.HasPrefix(why, "status 502 ") || strings.HasPrefix(why, "status 503 ")) && !strings.Contains(why, " ,")
}

// download fetches the object as one plain client, over all that happens.
func (r *fallbackRun) download(s *store) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+r.sidecar.listen+"/object", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, response.Body)
	if got := [sha256.Size]byte(hash.Sum(nil)); err != nil || response.StatusCode != 200 || got != s.sums["object"] {
		return fmt.Errorf("status %d, %d of %d bytes, SHA-256 %x, want %x, %v", response.StatusCode, n, fallbackObject, got, s.sums["object"], err)
	}
	return nil
}

func (r *fallbackRun) off() {
	r.during("both are up", func() { pause(2 * time.Second) })
	first, second, failed := r.during("the first is killed", func() {
		r.first.kill()
		pause((fallbackAfter + 4) * time.Second)
	})
	r.load.finish()
	connections, _ := r.second.accepts()
	r.rows += fmt.Sprintf("| | connections that the second ever took: %d, failures %v | | | | | |\n", connections-1, maps.Clone(r.load.failures())) // the first connection looked whether it listens
	for why := range r.load.failures() {
		if !definite(why) {
			r.t.Errorf("without an origin a client saw %q", why)
		}
	}
	if failed == 0 || second > 0 || connections > 1 {
		r.t.Errorf("off: %d answers of the first, %d of the second, %d failures, %d connections to the second", first, second, failed, connections-1)
	}
}

func (r *fallbackRun) always() {
	first, second, failed := r.during("both are up", func() { pause(3 * time.Second) })
	if first+failed > 0 || second == 0 {
		r.t.Errorf("always: %d answers of the first, %d of the second, %d failures", first, second, failed)
	}
	r.load.finish()
}

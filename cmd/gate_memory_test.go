//go:build gate

package house_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Limits of acceptance 2.6, in bytes for each connection.
const (
	idleLimit   = 14 * kib
	slowLimit   = 40 * kib
	heldLimit   = 24 * kib
	kernelLimit = 2560 * kib
	// keptSpeed is what a fast download keeps of its speed while 300 slow ones are open.
	keptSpeed = 0.8
)

// settleTime is how long connections stand before they are measured: the runtime has collected and the kernel's queues are full.
const settleTime = 6 * time.Second

// wide admits everybody: memory is measured, not admission.
var wide = map[string]string{
	"ARKVORY_MAX_REQUESTS": "16384", "ARKVORY_MAX_DOWNLOAD_SESSIONS": "1024", "ARKVORY_MAX_DOWNLOADS": "256",
	"ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_CLIENT_IDLE_TIMEOUT_SECONDS": "600", "ARKVORY_LOG_LEVEL": "info",
}

// TestGateMemory is acceptance 2.6. Each part has a fresh process; resident memory is the growth over the warmed-up process.
func TestGateMemory(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 1, 256*mib)
	origin, binary := startOrigin(t, s), buildSidecar(t)
	t.Run("Idle", func(t *testing.T) { gateIdle(t, binary, origin) })
	t.Run("Slow", func(t *testing.T) { gateSlow(t, binary, origin, never) })
	t.Run("SlowAfterFast", func(t *testing.T) { gateSlow(t, binary, origin, fastFirst) })
	t.Run("Held", func(t *testing.T) { gateHeld(t, binary, origin) })
	t.Run("Unprivileged", func(t *testing.T) { gateUnprivileged(t, binary, origin) })
}

// small exchanges one small object on the connection.
func small(c *rawClient) error {
	if err := c.send("/tiny", ""); err != nil {
		return err
	}
	if err := c.head(20 * time.Second); err != nil {
		return err
	}
	if c.code != 200 {
		return fmt.Errorf("status %d", c.code)
	}
	return c.drain()
}

// warm runs one small and one large exchange through a fresh process, so that what every process needs once is not counted.
func warm(t *testing.T, s *sidecar, large bool) {
	t.Helper()
	c, err := dialRaw(s.listen, 9999, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.cut()
	if err := small(c); err != nil {
		t.Fatal(err)
	}
	if large {
		if _, err := fast(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ready(); err != nil {
		t.Fatal(err)
	}
}

// gateIdle: 5,000 connections that had one small exchange and now wait.
func gateIdle(t *testing.T, binary, origin string) {
	const count = 5000
	s := startSidecar(t, binary, origin, false, wide)
	warm(t, s, false)
	before := s.rss()
	openMany(t, count, func(n int) (*rawClient, error) {
		c, err := dialRaw(s.listen, n%50, 0)
		if err == nil {
			err = small(c)
		}
		return c, err
	})
	pause(settleTime)
	grown := (s.rss() - before) / count
	r, err := s.ready()
	if err != nil || r.Connections.Open != count {
		t.Fatalf("%d connections are open, want %d (%v)", r.Connections.Open, count, err)
	}
	t.Logf("idle: %.1f KiB of RSS a connection (limit %d) from %d KiB; %s", float64(grown)/1024, idleLimit/kib, before/kib, s.heap())
	s.profiles("idle")
	if grown > idleLimit {
		t.Errorf("an idle connection costs %d bytes of RSS, the limit is %d", grown, idleLimit)
	}
}

// gateSlow: 200 downloads whose readers take 16 KiB/s, from the start or after some fast bytes, by which the kernel's buffers
// have grown and pipes are in use: the harder case for what a slow reader pins.
func gateSlow(t *testing.T, binary, origin string, first func(int) int64) {
	const count = 200
	s := startSidecar(t, binary, origin, false, wide)
	warm(t, s, false)
	before := s.rss()
	stop := openSlow(t, s, "/file0", count, first)
	defer stop()
	pause(settleTime)
	grown := (s.rss() - before) / count
	clients, upstream := kernelQueues(t, "sport", "=", port(t, s.listen)), kernelQueues(t, "dport", "=", port(t, origin))
	r, err := s.ready()
	if err != nil || r.Requests.Active != count || r.Pool.Busy != count {
		t.Fatalf("%d requests and %d upstream exchanges run, want %d (%v)", r.Requests.Active, r.Pool.Busy, count, err)
	}
	pipes, inside := pipesOf(t, s.pid)
	kernel := (clients.sum() + upstream.sum() + inside) / count
	// A stream that was fast may have grown its receive buffer as far as the system lets it, once; what piled up drains and does not
	// come again. Only a stream that is slow from its start has the limit of the product's own.
	limit := int64(kernelLimit)
	if first(0) > 0 {
		limit += tcpReceiveMax(t)
	}
	t.Logf("slow after %d fast MiB: %.1f KiB of RSS a download (limit %d) from %d KiB; kernel %d KiB (limit %d): to clients %s; from upstream %s; %d KiB in %d pipes; %s",
		first(0)/mib, float64(grown)/1024, slowLimit/kib, before/kib, kernel/kib, limit/kib, clients.each(), upstream.each(), inside/kib, pipes, s.heap())
	s.profiles("slow")
	if grown > slowLimit {
		t.Errorf("a slow download costs %d bytes of RSS, the limit is %d", grown, slowLimit)
	}
	if kernel > limit {
		t.Errorf("a slow download pins %d bytes of kernel queues, the limit is %d", kernel, limit)
	}
	if clients.sockets < count || upstream.sockets < count {
		t.Errorf("ss shows %d and %d sockets, want at least %d each", clients.sockets, upstream.sockets, count)
	}
}

// tcpReceiveMax is the largest receive buffer that the kernel gives by autotuning, in bytes.
func tcpReceiveMax(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_rmem")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) != 3 {
		t.Fatalf("cannot read tcp_rmem %q: %v", b, err)
	}
	n, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return ":" + port
}

// gateHeld: 1,000 plain clients wait inside the proxy for the only slot.
func gateHeld(t *testing.T, binary, origin string) {
	const count = 1000
	variables := map[string]string{"ARKVORY_TRANSFER_QUEUE_LIMIT": strconv.Itoa(count), "ARKVORY_DOWNLOAD_HOLD_SECONDS": "25"}
	for name, value := range wide {
		variables[name] = value
	}
	variables["ARKVORY_MAX_DOWNLOAD_SESSIONS"] = "1"
	s := startSidecar(t, binary, origin, false, variables)
	warm(t, s, false)
	stop := openSlow(t, s, "/file0", 1, never)
	defer stop()
	// The first to be held warms what holding needs once, and is not counted.
	hold := func(n int) (*rawClient, error) {
		c, err := dialRaw(s.listen, n+1, 0)
		if err == nil {
			err = c.send("/file0", "")
		}
		return c, err
	}
	openMany(t, 1, hold)
	held := func(n int) bool {
		r, err := s.ready()
		if err != nil {
			t.Fatal(err)
		}
		return r.Transfers.Downloads.Sessions.Held == n
	}
	within(t, 5*time.Second, "the first request is held", func() bool { return held(1) })
	before := s.rss()
	openMany(t, count-1, func(n int) (*rawClient, error) { return hold(n + 1) })
	within(t, 10*time.Second, "all requests are held", func() bool { return held(count) })
	pause(settleTime)
	grown := (s.rss() - before) / (count - 1)
	if !held(count) {
		t.Error("not all requests were held when memory was measured")
	}
	t.Logf("held: %.1f KiB of RSS a request (limit %d) from %d KiB; %s", float64(grown)/1024, heldLimit/kib, before/kib, s.heap())
	s.profiles("held")
	if grown > heldLimit {
		t.Errorf("a held request costs %d bytes of RSS, the limit is %d", grown, heldLimit)
	}
}

// within waits for a state.
func within(t *testing.T, limit time.Duration, what string, state func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !state(); pause(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// fast downloads the large object once from an address of its own and returns the speed in bytes/s.
func fast(s *sidecar) (float64, error) {
	c, err := dialRaw(s.listen, 60000, 0)
	if err != nil {
		return 0, err
	}
	defer c.cut()
	begun := time.Now()
	if err := c.send("/file0", ""); err != nil {
		return 0, err
	}
	if err := c.head(20 * time.Second); err != nil {
		return 0, err
	}
	if c.code != 200 {
		return 0, fmt.Errorf("status %d", c.code)
	}
	if err := c.drain(); err != nil {
		return 0, err
	}
	return float64(c.size) / time.Since(begun).Seconds(), nil
}

// gateUnprivileged: without CAP_SYS_RESOURCE the kernel shrinks the pipes of a user that has many of them, and every spliced download
// of that user crawls. Of the 300 slow downloads 110, more than the sidecar has pipes, were fast at first and may hold one
// each. Rounds without and with the slow ones alternate in one process, so that both see the same machine; within a round
// each figure is the median of some downloads.
func gateUnprivileged(t *testing.T, binary, origin string) {
	const rounds, runs, slow, fastOnce = 5, 5, 300, 110
	s := startSidecar(t, binary, origin, true, wide)
	warm(t, s, true)
	measure := func() float64 {
		var speeds []float64
		for range runs {
			speed, err := fast(s)
			if err != nil {
				t.Fatal(err)
			}
			speeds = append(speeds, speed)
		}
		slices.Sort(speeds)
		return speeds[runs/2]
	}
	var ratios, alone, beside []float64
	for range rounds {
		a := measure()
		stop := openSlow(t, s, "/file0", slow, func(n int) int64 {
			if n < fastOnce {
				return fastFirst(n)
			}
			return 0
		})
		pause(3 * time.Second) // every slow stream has waited for its reader by now
		b := measure()
		stop()
		s.settle(5*time.Second, (*readiness).counters)
		ratios, alone, beside = append(ratios, b/a), append(alone, a), append(beside, b)
	}
	slices.Sort(ratios)
	slices.Sort(alone)
	slices.Sort(beside)
	r, err := s.ready()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("unprivileged: a fast download keeps %.2f of its speed beside %d slow ones (least %.2f, limit %.2f): %.0f MiB/s alone, %.0f beside them; relayed %v",
		ratios[rounds/2], slow, ratios[0], keptSpeed, alone[rounds/2]/float64(mib), beside[rounds/2]/float64(mib), r.Relay)
	if ratios[rounds/2] < keptSpeed {
		t.Errorf("a fast download keeps %.2f of its speed, the limit is %.2f", ratios[rounds/2], keptSpeed)
	}
}

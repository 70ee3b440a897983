package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
)

// library is an origin with objects of random bytes whose name ends in their size. It knows Range and If-Range, and does for one request what `on` says instead.
type library struct {
	*origin
	mu     sync.Mutex
	etag   string
	seed   byte   // of the bytes: another one is another object
	fields string // of every answer
	on     func(k *call) bool
	heads  []string // of the requests
}

func newLibrary(t *testing.T) *library {
	l := &library{etag: `"v1"`, fields: "Accept-Ranges: bytes\r\n"}
	l.origin = newOrigin(t, l.answer)
	return l
}

// bytesOf are the bytes of an object; a seed makes another object of them.
func bytesOf(seed byte, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed, byte(size), byte(size >> 8)}).Read(b)
	return string(b)
}

func sizeIn(target string) (size int, ok bool) {
	path, _, _ := strings.Cut(target, "?")
	n := len(path)
	for n > 0 && path[n-1] >= '0' && path[n-1] <= '9' {
		n--
	}
	size, err := strconv.Atoi(path[n:])
	return size, err == nil
}

// set changes the library while it serves.
func (l *library) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *library) answer(k *call) {
	l.mu.Lock()
	etag, seed, fields, on := l.etag, l.seed, l.fields, l.on
	l.heads = append(l.heads, k.raw)
	l.mu.Unlock()
	if on != nil && on(k) {
		return
	}
	size, ok := sizeIn(k.target)
	if !ok {
		k.reply(404, "", "none")
		return
	}
	if etag != "" {
		fields += "ETag: " + etag + "\r\n"
	}
	if k.method == "HEAD" {
		k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n", fields, size))
		return
	}
	if tag := k.field("If-None-Match"); tag != "" && tag == etag {
		k.send("HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n")
		return
	}
	first, last, ranged := k.asked(size)
	if tag := k.field("If-Range"); !ranged || tag != "" && tag != etag {
		k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n", fields, size), bytesOf(seed, size))
		return
	}
	k.send(fmt.Sprintf("HTTP/1.1 206 Partial Content\r\n%sContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", fields, first, last, size, last-first+1),
		bytesOf(seed, size)[first:last+1])
}

// asked reads the one range of a request.
func (k *call) asked(size int) (first, last int, ok bool) {
	r, ok := strings.CutPrefix(k.field("Range"), "bytes=")
	a, b, _ := strings.Cut(r, "-")
	if !ok || strings.Contains(b, ",") {
		return 0, size - 1, false
	}
	if a == "" {
		n, _ := strconv.Atoi(b)
		return max(0, size-n), size - 1, true
	}
	first, _ = strconv.Atoi(a)
	last = size - 1
	if b != "" {
		last, _ = strconv.Atoi(b)
	}
	return first, min(last, size-1), true
}

// got returns the heads of the GETs so far.
func (l *library) got(part string) (heads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.heads {
		if strings.HasPrefix(h, "GET ") && strings.Contains(h, part) {
			heads = append(heads, h)
		}
	}
	return heads
}

// stage is a proxy whose slots are somebody else's, on a clock that the test can move ahead.
type stage struct {
	*bench
	ahead  *atomic.Int64
	grants []*memory.Grant
}

// newStage starts it: nobody is held in silence unless change says so, and waiting plain clients are fed.
func newStage(t *testing.T, url string, change func(*Settings)) *stage {
	s, began := &stage{ahead: &atomic.Int64{}}, time.Now()
	s.bench = start(t, url, func(set *Settings) {
		oneSlot(set)
		set.Hold, set.DripLimit, set.DripBytesPerSecond, set.Policy.IdleFor = 0, 64, 64*kib, 30*time.Second
		set.clock = func() time.Duration { return time.Since(began) + time.Duration(s.ahead.Load()) }
		if change != nil {
			change(set)
		}
	})
	for i := range s.p.queue.Policy().Sessions {
		a := holding()
		a.Key.Object = strconv.Itoa(i)
		g, v := s.p.queue.Admit(a)
		if v.Outcome != queue.Admitted {
			t.Fatalf("the stage got no slot: %+v", v)
		}
		s.grants = append(s.grants, g)
	}
	t.Cleanup(s.free)
	return s
}

// free gives the slots back.
func (s *stage) free() {
	for _, g := range s.grants {
		g.Abandon()
	}
}

// pass moves the clock, as if nothing had happened meanwhile, and lets the queue look.
func (s *stage) pass(d time.Duration) {
	s.ahead.Add(int64(d))
	s.p.queue.Tick(s.p.queue.Now())
}

// visit feeds every waiting client once.
func (s *stage) visit() {
	s.ahead.Add(int64(drip.Period))
	s.p.drips.Tick(s.p.queue.Now())
}

// fed visits until all waiting clients together have got that many bytes.
func (s *stage) fed(bytes uint64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d bytes are fed", bytes), func() bool { s.visit(); return s.p.drips.Snapshot().Bytes >= bytes })
}

// still fails the test unless nothing is left of the waiting clients: no session, drip, stream at the governor, request or connection of the origin.
func (s *stage) still(limit time.Duration) {
	s.t.Helper()
	s.free()
	within(s.t, limit, "nothing left of the clients that waited", func() bool {
		d := s.p.drips.Snapshot()
		return s.left() == traces{} && d.Joined == 0 && d.Running == 0 && s.p.Working() == 0 && s.p.holds.taken() == 0
	})
	if err := s.p.queue.CheckInvariants(); err != nil {
		s.t.Error(err)
	}
	if n := s.metric("arkvory_panics_total"); n != "0" {
		s.t.Errorf("%s panics:\n%s", n, s.log.String())
	}
}

const blobs = "/v2/team/app/blobs/"

func bundles(s *Settings) { s.Bundles, s.Policy.RangesPerSession = true, 3 }

// TestX5_LayersOfAnImageTakeOneSlot: as many as the session may have responses run at once, the others wait for one of them and are fed meanwhile.
func TestX5_LayersOfAnImageTakeOneSlot(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	l := newLibrary(t)
	l.on = func(k *call) bool {
		if k.method == "GET" && k.field("Range") == "" { // a layer that runs does so until the test says so
			size, _ := sizeIn(k.target)
			k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: %d\r\n\r\n", size), bytesOf(0, size)[:1000])
			<-release
			k.send(bytesOf(0, size)[1000:])
			return true
		}
		return false
	}
	s := newStage(t, l.url(), bundles)
	s.free()
	layer := func(n int) (string, int) { size := 400000 + n; return fmt.Sprintf("%ssha256:%d", blobs, size), size }
	var clients []*client
	var bodies []*http.Response
	for n := range 3 {
		target, _ := layer(n)
		c := s.dial().get(target)
		clients, bodies = append(clients, c), append(bodies, c.begin("GET"))
	}
	if left := s.left(); left.Active != 1 || left.Waiting != 0 {
		t.Errorf("%+v", left)
	}
	for n := 3; n < 6; n++ { // the head comes, and bytes of the layer
		target, size := layer(n)
		c := s.dial().get(target)
		resp := c.begin("GET")
		if resp.StatusCode != 200 || resp.ContentLength != int64(size) {
			t.Fatalf("layer %d: %d, %d bytes", n, resp.StatusCode, resp.ContentLength)
		}
		clients, bodies = append(clients, c), append(bodies, resp)
	}
	s.fed(3000)
	eventually(t, "three are fed, and no session beside the bundle's", func() bool { left := s.left(); return left.Active == 1 && left.Waiting == 0 && left.Held == 3 })
	close(release)
	for n, resp := range bodies {
		_, size := layer(n)
		wantBody(t, fmt.Sprint("layer ", n), resp, bytesOf(0, size))
	}
	target, size := layer(6) // the next one waits for nothing
	if a := clients[0].get(target).ok(200); a.body != bytesOf(0, size) {
		t.Error("the next layer differs")
	}
	eventually(t, "no response runs", func() bool { return s.p.Working() == 0 })
	if left := s.left(); left.Active != 1 {
		t.Errorf("the slot went at once: %+v", left)
	}
	s.pass(queue.BundleHold + queue.TickEvery)
	if left := s.left(); left.Active != 0 {
		t.Errorf("the slot is kept: %+v", left)
	}
	s.still(twoTicks)
}

// wantBody reads a body to its end and compares it.
func wantBody(t *testing.T, what string, resp *http.Response, want string) {
	t.Helper()
	got := answerOf(resp)
	if got.err != nil || got.body != want {
		t.Errorf("%s: %d of %d bytes, the same %v, %v", what, len(got.body), len(want), got.body == want, got.err)
	}
}

// TestX5_WhoSharesAPlaceAndWhoDoesNot: sessions by what came from one repository while the slot is somebody else's.
func TestX5_WhoSharesAPlaceAndWhoDoesNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		off      bool
		requests [][2]string // address and target, with a field behind a space
		sessions int
	}{
		{"one client, one repository", false, [][2]string{{"127.0.0.1", blobs + "a400000"}, {"127.0.0.1", blobs + "b500000"}}, 1},
		{"two clients", false, [][2]string{{"127.0.0.1", blobs + "a400000"}, {"127.0.0.2", blobs + "a400000"}}, 2},
		{"two repositories", false, [][2]string{{"127.0.0.1", blobs + "a400000"}, {"127.0.0.1", "/v2/team/other/blobs/a400000"}}, 2},
		{"no repository", false, [][2]string{{"127.0.0.1", "/files/a400000"}, {"127.0.0.1", "/files/b400000"}}, 2},
		{"switched off", true, [][2]string{{"127.0.0.1", blobs + "a400000"}, {"127.0.0.1", blobs + "b500000"}}, 2},
		{"protocol client", false, [][2]string{{"127.0.0.1", blobs + "a400000 " + id}, {"127.0.0.1", blobs + "b500000 " + id}}, 2},
		{"small layers", false, [][2]string{{"127.0.0.1", blobs + "a200000"}, {"127.0.0.1", blobs + "b1000"}}, 0},
		{"small between big", false, [][2]string{{"127.0.0.1", blobs + "a400000"}, {"127.0.0.1", blobs + "b1000"}, {"127.0.0.1", blobs + "c200000"}}, 1},
	} {
		l := newLibrary(t)
		s := newStage(t, l.url(), func(set *Settings) { bundles(set); set.Bundles, set.DripLimit = !c.off, 0 })
		for _, r := range c.requests {
			target, field, _ := strings.Cut(r[1], " ")
			fields := []string{"Host: again"}[:0]
			if field != "" {
				fields = append(fields, field)
			}
			conn := s.dialFrom(r[0])
			a := conn.get(target, fields...).answer()
			size, _ := sizeIn(target)
			if want := map[bool]int{true: 503, false: 200}[size > 256*kib]; a.StatusCode != want {
				t.Errorf("%s: %s: %d %s", c.name, target, a.StatusCode, a.body)
			}
			if a.StatusCode == 200 && (a.Header.Get("Arkvory-Queue-Ticket") != "" || a.body != bytesOf(0, size)) {
				t.Errorf("%s: %s: %v", c.name, target, a.Header)
			}
			conn.close()
		}
		if n := s.left().Waiting; n != c.sessions {
			t.Errorf("%s: %d sessions", c.name, n)
		}
		s.close()
	}
}

// TestX5_ALayerBehindAWaitingOneIsAdmittedWithIt: layers asked for while the first one waits share its turn, not one turn each.
func TestX5_ALayerBehindAWaitingOneIsAdmittedWithIt(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), bundles)
	var bodies []*http.Response
	for n := range 5 {
		bodies = append(bodies, s.dial().get(fmt.Sprintf("%sx%d", blobs, 400000+n)).begin("GET"))
		if n == 0 {
			bodies = append(bodies, s.dialFrom("127.0.0.9").get(blobs+"other400009").begin("GET"))
		}
	}
	eventually(t, "all wait", func() bool { return s.left().Held == 6 })
	if n := s.left().Waiting; n != 2 {
		t.Errorf("%d sessions", n)
	}
	s.fed(5000)
	s.free()
	for i, resp := range append([]*http.Response{bodies[0]}, bodies[2:]...) { // all layers of the first client, while the second still waits
		wantBody(t, fmt.Sprint("layer ", i), resp, bytesOf(0, 400000+i))
	}
	if n := s.left().Waiting; n != 1 {
		t.Errorf("%d wait behind the image", n)
	}
	s.pass(queue.BundleHold + queue.TickEvery)
	wantBody(t, "the other client", bodies[1], bytesOf(0, 400009))
	eventually(t, "no response runs", func() bool { return s.p.Working() == 0 })
	s.pass(queue.BundleHold + queue.TickEvery)
	s.still(twoTicks)
}

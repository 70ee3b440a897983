package proxy

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/bucket"
)

// pattern is a body in which every lost, doubled or moved byte shows.
func pattern(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%08d", i)
	}
	return b.String()[:n]
}

// TestP4_BodiesOfEverySizeAndPathAreExact goes over the edges of the buffers, paced and not, in one piece and in dribbles, with short and long heads.
func TestP4_BodiesOfEverySizeAndPathAreExact(t *testing.T) {
	t.Parallel()
	sizes := []int{0, 1, 4095, 4096, 4097, 60 * kib, 64 * kib, 68*kib - 1, 68 * kib, 100 * kib, 300*kib + 1, 3 * mib}
	if raceEnabled {
		sizes = []int{1, 4096, 68 * kib, 300*kib + 1}
	}
	whole := pattern(3 * mib)
	o := newOrigin(t, func(k *call) {
		var n, long, dribble int
		var framing string
		if _, err := fmt.Sscanf(k.target, "/%d/%d/%d/%s", &n, &long, &dribble, &framing); err != nil {
			k.o.t.Errorf("%s: %v", k.target, err)
		}
		head := "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("l", long) + "\r\n"
		body := whole[:n]
		switch framing {
		case "length":
			body = fmt.Sprintf("Content-Length: %d\r\n\r\n", n) + body
		case "chunked":
			var b strings.Builder
			b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
			for i := 0; i < n; {
				m := min(n-i, 1+i*7%200000)
				fmt.Fprintf(&b, "%x\r\n%s\r\n", m, body[i:i+m])
				i += m
			}
			body = b.String() + "0\r\n\r\n"
		case "close":
			body = "\r\n" + body
			defer func() { k.over = true }()
		}
		body = head + body
		if dribble == 0 {
			k.send(body)
			return
		}
		for i := 0; i < len(body); i += 1021 {
			if !k.send(body[i:min(i+1021, len(body))]) {
				return
			}
		}
	})
	for _, paced := range []bool{false, true} {
		b := start(t, o.url(), func(s *Settings) {
			s.Policy.SessionMinBytes = 16 * mib
			if paced {
				s.DownloadTotal = bucket.Limit{BytesPerSecond: 512 * mib}
			}
		})
		c := b.dial()
		for _, n := range sizes {
			for _, long := range []int{1, 30000} {
				for dribble := range 2 {
					for _, framing := range []string{"length", "chunked", "close"} {
						target := fmt.Sprintf("/%d/%d/%d/%s", n, long, dribble, framing)
						a := c.get(target).answer()
						if a.err != nil || a.body != whole[:n] || len(a.Header.Get("X-Long")) != long {
							t.Fatalf("paced %v, %s: %d, %d bytes, %v, head %d, %.300q", paced, target, a.StatusCode, len(a.body), a.err, len(a.Header.Get("X-Long")), a.body)
						}
					}
				}
			}
		}
		c.close()
		b.quiet(patience)
	}
}

func TestP4_UploadsOfEverySizeAreExactAndKeepTheConnection(t *testing.T) {
	t.Parallel()
	whole := pattern(2 * mib)
	o := newOrigin(t, func(k *call) { k.reply(200, "", k.body()) })
	for _, paced := range []bool{false, true} {
		b := start(t, o.url(), func(s *Settings) {
			if paced {
				s.UploadTotal = bucket.Limit{BytesPerSecond: 512 * mib}
			}
		})
		c := b.dial()
		for _, n := range []int{0, 1, 3000, 4096, 9000, 70000, 2 * mib} {
			up := request("POST", "/", fmt.Sprintf("Content-Length: %d", n)) + whole[:n]
			next := request("POST", "/", "Content-Length: 4") + "next" // behind it in the same write
			go func() { _, _ = io.WriteString(c.conn, up+next) }()
			if a := c.answer(); a.body != whole[:n] || a.err != nil {
				t.Fatalf("paced %v, %d: %d bytes came back, %v", paced, n, len(a.body), a.err)
			}
			if a := c.answer(); a.body != "next" {
				t.Fatalf("paced %v, %d: then %q", paced, n, a.body)
			}
		}
		if n := b.p.Metrics().Totals().Discarded; n != 0 {
			t.Errorf("paced %v: %d upstream connections were thrown away", paced, n)
		}
	}
}

// TestP3_MemoryOfSlowDownloadsIsBounded holds 100 clients that stopped reading in the middle; the budget is that of acceptance 2.6, for the heap.
func TestP3_MemoryOfSlowDownloadsIsBounded(t *testing.T) {
	o := plainServer(t, []byte("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"+strings.Repeat("x", 16*mib)))
	defer func() { _ = o.Close() }()
	b := start(t, "http://"+o.Addr().String(), func(s *Settings) {
		s.Policy.Sessions, s.Policy.PerPrincipal, s.Policy.RangesPerSession = 200, 200, 64
	})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied by the second one
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	const n = 100
	before := heap()
	conns := make([]net.Conn, n)
	for i := range conns {
		c := b.dial()
		conns[i] = c.conn
		c.get(fmt.Sprintf("/%d", i))
		if _, err := io.ReadFull(c.conn, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if a := b.left().Active; a != n {
		t.Fatalf("%d active", a)
	}
	after := heap()
	per := (int64(after) - int64(before)) / n
	t.Logf("%d bytes of heap and stacks for one slow download, its client, and its origin", per)
	if per > 64*kib && !raceEnabled { // the test's own two ends are in it: 8 KiB of buffer each, and three goroutines
		t.Errorf("%d bytes for one slow download", per)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	b.quiet(patience)
}

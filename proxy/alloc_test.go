package proxy

import (
	"bytes"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/rs/zerolog"
)

// plainServer answers every request with fixed bytes and allocates nothing: what is measured is the proxy.
func plainServer(t testing.TB, answer []byte) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				b := make([]byte, 8*kib)
				for n := 0; ; {
					m, err := c.Read(b[n:])
					if err != nil {
						return
					}
					if n += m; !bytes.HasSuffix(b[:n], []byte("\r\n\r\n")) {
						continue
					}
					if n = 0; err == nil {
						_, err = c.Write(answer)
					}
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln
}

// allocations relays requests one after another over real sockets and returns what one costs the whole process.
func allocations(t *testing.T, addr string, ask string, answerBytes, rounds int) (mallocs, heapBytes float64) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	out, in := []byte(ask), make([]byte, answerBytes)
	run := func(n int) {
		for range n {
			if _, err := c.Write(out); err != nil {
				t.Fatal(err)
			}
			for got := 0; got < len(in); {
				m, err := c.Read(in[got:])
				if err != nil {
					t.Fatal(err)
				}
				got += m
			}
		}
	}
	run(200)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(rounds)
	runtime.ReadMemStats(&after)
	n := float64(rounds)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n
}

// TestB4_AllocationsPerRelayedRequest is acceptance 2.8: at most 10 for a small request.
func TestB4_AllocationsPerRelayedRequest(t *testing.T) {
	rounds := 2000
	if raceEnabled {
		rounds = 100
	}
	for _, c := range []struct {
		name   string
		fields string
		body   int
		most   float64
	}{
		{"1 KiB", "", 1 * kib, 10},
		{"1 KiB, as curl asks", "User-Agent: curl/8.5\r\nAccept: */*\r\n", 1 * kib, 10},
		{"1 KiB, with credentials", "Authorization: Basic dTpw\r\nCookie: a=b\r\n", 1 * kib, 10},
		{"64 KiB", "", 64 * kib, 10},
		{"200 KiB, with a place", "", 200 * kib, 10},
	} {
		head := "HTTP/1.1 200 OK\r\nServer: s\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nETag: \"abc\"\r\nLast-Modified: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: " +
			strconv.Itoa(c.body) + "\r\n\r\n"
		ln := plainServer(t, append([]byte(head), make([]byte, c.body)...))
		b := start(t, "http://"+ln.Addr().String(), func(s *Settings) {
			s.Log = zerolog.Nop()
			s.Policy.SessionMinBytes = 16 * mib
		})
		mallocs, heap := allocations(t, b.addr, "GET /object HTTP/1.1\r\nHost: store.test\r\n"+c.fields+"\r\n", len(head)+c.body, rounds)
		t.Logf("%s: %.2f allocations, %.0f bytes", c.name, mallocs, heap)
		if mallocs > c.most && !raceEnabled {
			t.Errorf("%s: %.2f allocations a request, at most %.0f", c.name, mallocs, c.most)
		}
		b.close()
		_ = ln.Close()
	}
}

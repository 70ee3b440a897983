package proxy

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
)

// broken makes a library send the head of its answer and a part of the body, then end the connection, for as many GETs as left says.
func broken(l *library, left *atomic.Int64, part int) {
	l.set(func() {
		l.on = func(k *call) bool {
			size, ok := sizeIn(k.target)
			if !ok || k.method != "GET" || left.Add(-1) < 0 {
				return false
			}
			first, last, ranged := k.asked(size)
			status := fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: %d\r\n\r\n", `"v1"`, size)
			if ranged {
				status = fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nETag: %s\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", `"v1"`, first, last, size, last-first+1)
			}
			k.send(status, bytesOf(0, size)[first:min(first+part, last)])
			k.over = true
			return true
		}
	})
}

// U9: a body that breaks at the store goes on; the client sees one unbroken body, byte for byte.
func TestU9_BrokenBodyGoesOn(t *testing.T) {
	const size = 700 * kib
	for _, c := range []struct {
		name, fields string
		breaks       int64
		part         int
		first, last  int
	}{
		{"once", "", 1, 300 * kib, 0, size - 1},
		{"at the head", "", 1, 0, 0, size - 1},
		{"at the last byte", "", 1, size - 1, 0, size - 1},
		{"again and again", "", 6, 90 * kib, 0, size - 1},
		{"a range", "Range: bytes=1001-", 2, 200 * kib, 1001, size - 1},
		{"a bounded range", "Range: bytes=77-500000", 3, 100*kib + 1, 77, 500000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t)
			b := start(t, l.url(), func(s *Settings) { s.Resume = true })
			var left atomic.Int64
			left.Store(c.breaks)
			target := fmt.Sprintf("/o%d", size)
			broken(l, &left, c.part)
			var fields []string
			if c.fields != "" {
				fields = append(fields, c.fields)
			}
			client := b.dial()
			a := client.get(target, fields...).answer()
			if want := bytesOf(0, size)[c.first : c.last+1]; a.body != want {
				t.Fatalf("status %d, %d bytes of %d, or other ones", a.StatusCode, len(a.body), len(want))
			}
			if n := b.metric(`arkvory_upstream_resumes_total{outcome="ok"}`); n != fmt.Sprint(c.breaks) {
				t.Errorf("%s resumes for %d breaks", n, c.breaks)
			}
			client.get("/x3").ok(200) // the client's connection serves on
			client.close()
			b.quiet(patience)
		})
	}
}

// What cannot be resumed ends short, visibly, and never with other bytes.
func TestU9_WhatCannotGoOnEndsShort(t *testing.T) {
	const size = 700 * kib
	for _, c := range []struct {
		name   string
		resume bool
		change func(l *library, left *atomic.Int64)
		want   string // the outcome that is counted, "" = none
	}{
		{"switched off", false, func(*library, *atomic.Int64) {}, ""},
		{"another object", true, func(l *library, _ *atomic.Int64) { l.etag, l.seed = `"v2"`, 9 }, "changed"},
		{"no bytes at all any more", true, func(_ *library, left *atomic.Int64) { left.Store(1000) }, "given_up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t)
			b := start(t, l.url(), func(s *Settings) { s.Resume = c.resume })
			var left atomic.Int64
			left.Store(1)
			part := 300 * kib
			broken(l, &left, part)
			play := l.on
			l.set(func() {
				l.on = func(k *call) bool {
					done := play(k)
					if done && k.method == "GET" {
						l.set(func() { c.change(l, &left) })
						if c.want == "given_up" { // from now on the head and nothing else
							l.set(func() { l.on = func(k *call) bool { return k.method == "GET" && headOnly(k) } })
						}
					}
					return done
				}
			})
			client := b.dial().get(fmt.Sprintf("/o%d", size))
			all, _ := io.ReadAll(client.br)
			_, got, _ := strings.Cut(string(all), "\r\n\r\n")
			if len(got) >= size || !strings.HasPrefix(bytesOf(0, size), got) || len(got) < part {
				t.Errorf("%d bytes, or bytes of another object", len(got))
			}
			for _, outcome := range []string{"ok", "changed", "given_up"} {
				n := b.metric(`arkvory_upstream_resumes_total{outcome="` + outcome + `"}`)
				if outcome == c.want && n != "1" || outcome == "changed" && c.want != outcome && n != "0" {
					t.Errorf("%s: %s", outcome, n)
				}
			}
			b.quiet(patience)
		})
	}
}

// headOnly answers with a head that promises the rest and ends there.
func headOnly(k *call) bool {
	size, _ := sizeIn(k.target)
	first, last, _ := k.asked(size)
	k.send(fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nETag: %s\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", `"v1"`, first, last, size, last-first+1))
	k.over = true
	return true
}

// TestU9_I5_TheRestIsAskedForWithTheClientsOwnHead: while a large body is on its way the buffer of its request serves other clients, whose fields must not get into what is asked
// for the rest.
func TestU9_I5_TheRestIsAskedForWithTheClientsOwnHead(t *testing.T) {
	t.Parallel()
	const size = 700 * kib
	l := newLibrary(t)
	b := start(t, l.url(), func(s *Settings) { s.Resume = true })
	target := fmt.Sprintf("/o%d", size)
	half, goOn := make(chan struct{}), make(chan struct{})
	var broke atomic.Bool
	l.set(func() {
		l.on = func(k *call) bool {
			if k.target != target || k.method != "GET" || broke.Swap(true) {
				return false
			}
			k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: %d\r\n\r\n", size), bytesOf(0, size)[:size/2])
			close(half)
			<-goOn
			k.over = true
			return true
		}
	})
	c := b.dial().get(target, "X-Mine: 1")
	resp := c.begin("GET")
	<-half
	if _, err := io.CopyN(io.Discard, resp.Body, size/2); err != nil {
		t.Fatal(err)
	}
	for range 100 { // one after another they take the buffer that was given back
		b.once("GET", "/x3", "X-Other: s3cr3t", "X-Pad: "+strings.Repeat("p", 900))
	}
	close(goOn)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != bytesOf(0, size)[size/2:] {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
	heads := l.got(target)
	if len(heads) != 2 || !strings.Contains(heads[1], "X-Mine: 1") || strings.Contains(heads[1], "s3cr3t") || !strings.HasPrefix(heads[1], "GET "+target+" ") {
		t.Errorf("asked with %q", heads)
	}
	c.close()
	b.quiet(patience)
}

package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/proxy/front"
)

// answerOf reads a response whose head has been read.
func answerOf(resp *http.Response) answer {
	body, err := io.ReadAll(resp.Body)
	return answer{resp, string(body), err}
}

// odd is the size of an object that ends within a piece.
const odd = 20*drip.PieceBytes + 77

// TestX2_TheHeadIsTheOriginsAndTheBodyIsWhole: whatever a plain client asks for, it gets the head that the origin would have sent, some bytes while it waits, and the
// rest when its slot comes; then its connection serves on.
func TestX2_TheHeadIsTheOriginsAndTheBodyIsWhole(t *testing.T) {
	t.Parallel()
	const content = "Server: o/1\r\nX-First: 1\r\nSet-Cookie: a=1\r\nLast-Modified: Mon, 30 Nov 2026 10:00:00 GMT\r\nSet-Cookie: b=2\r\nRepr-Digest: sha-256=:x:\r\n"
	l := newLibrary(t)
	l.fields = content + "Content-Digest: sha-256=:y:\r\ncontent-md5: z\r\nAccept-Ranges: bytes\r\n"
	want := bytesOf(0, odd)
	head := func(status, part string, n int) string {
		return "HTTP/1.1 " + status + "\r\n" + content + "Accept-Ranges: bytes\r\nETag: \"v1\"\r\n" + part + fmt.Sprintf("Content-Length: %d\r\n\r\n", n)
	}
	for i, c := range []struct {
		fields      []string
		first, last int
		whole       bool
	}{
		{nil, 0, odd - 1, true},
		{[]string{"Range: bytes=0-"}, 0, odd - 1, false},
		{[]string{"Range: bytes=5000-"}, 5000, odd - 1, false},
		{[]string{"Range: bytes=16383-"}, 16383, odd - 1, false},
		{[]string{"Range: bytes=16384-32767"}, 16384, 32767, false},
		{[]string{"Range: bytes=100001-270000"}, 100001, 270000, false},
		{[]string{"Range: bytes=-50000"}, odd - 50000, odd - 1, false},
		{[]string{"Range: bytes=-9999999"}, 0, odd - 1, false},
		{[]string{"Range: bytes=327600-"}, 327600, odd - 1, false},
		{[]string{fmt.Sprintf("Range: bytes=%d-", odd-2)}, odd - 2, odd - 1, false},
		{[]string{"Range: bytes=7-", `If-Range: "v1"`}, 7, odd - 1, false},
		{[]string{"Range: bytes=7-", `If-Range: "v0"`}, 0, odd - 1, true},
		{[]string{"Range: lines=7-"}, 0, odd - 1, true},
		{[]string{`If-None-Match: "v0"`, `If-Match: "v1"`}, 0, odd - 1, true},
	} {
		s := newStage(t, l.url(), nil)
		c0 := s.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
		c0.get(fmt.Sprintf("/%d/x%d", i, odd), c.fields...)
		n := c.last - c.first + 1
		expect := head("206 Partial Content", fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", c.first, c.last, odd), n)
		if c.whole {
			expect = head("200 OK", "", n)
		}
		if h := c0.head(); h != expect {
			t.Errorf("%q:\n%q\nwant\n%q", c.fields, h, expect)
		}
		s.fed(1)
		eventually(t, "it waits and holds nothing of the origin", func() bool { left := s.left(); return left.Held == 1 && left.InFlight == 0 && left.Busy == 0 })
		s.free()
		body := make([]byte, n)
		if _, err := io.ReadFull(c0.br, body); err != nil || sha256.Sum256(body) != sha256.Sum256([]byte(want[c.first:c.last+1])) {
			t.Errorf("%q: %v, the bytes are right: %v", c.fields, err, string(body) == want[c.first:c.last+1])
		}
		if a := c0.get("/small10").ok(200); a.body != bytesOf(0, 10) {
			t.Errorf("%q: what follows: %q", c.fields, a.body)
		}
		rest := 0
		for _, h := range l.got(fmt.Sprintf("/%d/x", i)) {
			if field(h, "If-Range") == `"v1"` && strings.HasSuffix(field(h, "Range"), fmt.Sprintf("-%d", c.last)) {
				rest++
			}
			if field(h, "Range") == "" || strings.Contains(field(h, "Range"), ",") {
				t.Errorf("%q: the origin was asked %q", c.fields, h)
			}
		}
		if rest == 0 {
			t.Errorf("%q: no request for the rest under If-Range in %q", c.fields, l.got(fmt.Sprintf("/%d/x", i)))
		}
		s.pass(time.Minute)
		s.still(patience)
		c0.close()
		s.close()
	}
}

func TestX2_HTTP10AndTLS(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	pair, pool, _, _ := authority(t)
	want := bytesOf(0, odd)
	s := newStage(t, l.url(), nil)
	for i, request := range []string{"GET /a%d HTTP/1.0\r\nHost: h\r\n\r\n", "GET /a%d HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"} {
		c := s.dialFrom(fmt.Sprintf("127.0.1.%d", i+1)).send(fmt.Sprintf(request, odd))
		resp := c.begin("GET")
		s.fed(uint64(1 + i*10000))
		if h := resp.Header.Get("Connection"); resp.Close != (i == 0) || i == 1 && !strings.EqualFold(h, "keep-alive") {
			t.Errorf("connection %q, close %v", h, resp.Close)
		}
		defer func() { wantBody(t, request, resp, want) }()
	}
	s.free()
	secure := newStage(t, l.url(), func(set *Settings) { set.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} })
	c := secure.dialTLS(pool).get(fmt.Sprintf("/t%d", odd))
	resp := c.begin("GET")
	secure.fed(40000)
	secure.free()
	wantBody(t, "TLS", resp, want)
	c.get("/small10").ok(200)
	secure.still(patience)
}

// TestX2_WhatDoesNotLendItselfIsRefused: no strong validator, no ranges, no right to a range; and clients that are told their place instead.
func TestX2_WhatDoesNotLendItselfIsRefused(t *testing.T) {
	t.Parallel()
	piece := func(text string, fields ...any) func(*library) {
		return func(l *library) {
			l.on = func(k *call) bool {
				if k.method != "GET" || k.field("Range") == "" {
					return false
				}
				k.send(fmt.Sprintf(text, fields...))
				k.over = true
				return true
			}
		}
	}
	const whole = "HTTP/1.1 206 X\r\nETag: \"v1\"\r\n"
	block := strings.Repeat("x", drip.PieceBytes)
	for name, c := range map[string]struct {
		origin func(*library)
		set    func(*Settings)
		fields []string
		reason string
	}{
		"weak tag":     {origin: func(l *library) { l.etag = `W/"v1"` }},
		"no validator": {origin: func(l *library) { l.etag = "" }},
		"young date": {origin: func(l *library) {
			l.etag, l.fields = "", "Date: Mon, 30 Nov 2026 10:00:30 GMT\r\nLast-Modified: Mon, 30 Nov 2026 10:00:00 GMT\r\n"
		}},
		"no ranges":        {origin: piece("HTTP/1.1 200 X\r\nETag: \"v1\"\r\nContent-Length: %d\r\n\r\n%s", odd, bytesOf(0, odd))},
		"range is refused": {origin: piece("HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n")},
		"chunked":          {origin: piece(whole+"Content-Range: bytes 0-16383/%d\r\nTransfer-Encoding: chunked\r\n\r\n4000\r\n%s\r\n0\r\n\r\n", odd, block)},
		"without length":   {origin: piece(whole+"Content-Range: bytes 0-16383/%d\r\n\r\n%s", odd, block)},
		"shifted":          {origin: piece(whole+"Content-Range: bytes 1-16384/%d\r\nContent-Length: 16384\r\n\r\n%s", odd, block)},
		"cut short":        {origin: piece(whole+"Content-Range: bytes 0-16382/%d\r\nContent-Length: 16383\r\n\r\n%s", odd, block[1:])},
		"total unknown":    {origin: piece(whole+"Content-Range: bytes 0-16383/*\r\nContent-Length: 16384\r\n\r\n%s", block)},
		"no Content-Range": {origin: piece(whole+"Content-Length: 16384\r\n\r\n%s", block)},
		"breaks":           {origin: piece(whole+"Content-Range: bytes 0-16383/%d\r\nContent-Length: 16384\r\n\r\nabc", odd)},
		"size never settles": {origin: func(l *library) {
			n := odd
			l.on = func(k *call) bool {
				if k.field("Range") == "" {
					return false
				}
				n++
				k.send(fmt.Sprintf(whole+"Content-Range: bytes 0-16383/%d\r\nContent-Length: 16384\r\n\r\n", n), block)
				return true
			}
		}},
		"switched off":   {set: func(s *Settings) { s.DripLimit = 0 }},
		"protocol":       {fields: []string{id}},
		"several ranges": {fields: []string{"Range: bytes=0-9,20-29"}},
		"one byte":       {fields: []string{"Range: bytes=-1"}},
		"NTLM":           {fields: []string{"Authorization: NTLM TlRMTVNTUA=="}},
	} {
		l := newLibrary(t)
		if c.origin != nil {
			c.origin(l)
		}
		s := newStage(t, l.url(), c.set)
		conn := s.dial()
		a := conn.get(fmt.Sprintf("/f%d", odd), c.fields...).answer()
		if a.StatusCode != 503 || a.err != nil {
			t.Errorf("%s: %d, %v", name, a.StatusCode, a.err)
			continue
		}
		if h := a.Header; a.reason(t) != "download_queued" || h.Get("Retry-After") == "" || h.Get("Arkvory-Queue-Position") != "1" ||
			h.Get("Arkvory-Download-Class") != "release" {
			t.Errorf("%s: %s\n%v", name, a.body, h)
		}
		if n := s.p.drips.Snapshot(); n.Joined != 0 || n.Started != 0 || s.left().Waiting != 1 {
			t.Errorf("%s: %+v, %+v", name, n, s.left())
		}
		conn.get("/small10").ok(200)
		conn.close()
		s.close()
	}
}

// fedClient is a client of the object that waits and has got a part of it.
func (s *stage) fedClient(target string, bytes uint64) (*client, *http.Response) {
	s.t.Helper()
	c := s.dial().get(target)
	resp := c.begin("GET")
	if resp.StatusCode != 200 {
		s.t.Fatalf("%s: %d", target, resp.StatusCode)
	}
	s.fed(s.p.drips.Snapshot().Bytes + bytes)
	return c, resp
}

// wantCut fails the test unless the body ends early, with bytes of the first object only, and nothing is left of its client.
func (s *stage) wantCut(what string, resp *http.Response, size int, reason string) {
	s.t.Helper()
	a := answerOf(resp)
	if a.err == nil || !strings.HasPrefix(bytesOf(0, size), a.body) || len(a.body) == 0 {
		s.t.Errorf("%s: %d bytes, %v, of the first object: %v", what, len(a.body), a.err, strings.HasPrefix(bytesOf(0, size), a.body))
	}
	s.still(twoTicks)
	if n := s.metric(`arkvory_requests_total{outcome="` + reason + `"}`); n != "1" {
		s.t.Errorf("%s: %s requests ended by %s", what, n, reason)
	}
}

// TestX2_AChangedObjectCutsTheConnection: when it changes while the client is fed, when the origin refuses it meanwhile, and behind the last drip, before the rest.
func TestX2_AChangedObjectCutsTheConnection(t *testing.T) {
	t.Parallel()
	change := func(l *library) { l.set(func() { l.etag, l.seed = `"v2"`, 2 }) }
	refuse := func(status int) func(*library) {
		return func(l *library) {
			l.set(func() {
				l.on = func(k *call) bool { k.reply(status, "", "no"); return true }
			})
		}
	}
	for name, what := range map[string]func(*library){"changed": change, "401": refuse(401), "403": refuse(403), "404": refuse(404), "410": refuse(410)} {
		for _, fed := range []bool{true, false} {
			l := newLibrary(t)
			s := newStage(t, l.url(), nil)
			_, resp := s.fedClient(fmt.Sprintf("/f%d", odd), 1)
			what(l)
			if fed {
				eventually(t, name+": the dripper meets the change", func() bool { s.visit(); return s.p.drips.Snapshot().Cut == 1 })
			} else {
				s.free()
			}
			s.wantCut(fmt.Sprint(name, " while it is fed: ", fed), resp, odd, "object_changed")
			s.close()
		}
	}
}

// TestX2_AnswersToTheRestThatAreNotTheRest: bytes of something else never follow those that were sent.
func TestX2_AnswersToTheRestThatAreNotTheRest(t *testing.T) {
	t.Parallel()
	rest := func(status, part, body string) string {
		return "HTTP/1.1 " + status + "\r\n" + part + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	const v1 = "ETag: \"v1\"\r\n"
	type answer struct {
		name  string
		text  func(first, last int, body string) string
		whole bool
	}
	for _, c := range []answer{
		{"whole object again", func(int, int, string) string { return rest("200 X", v1, bytesOf(0, odd)) }, false},
		{"precondition", func(int, int, string) string { return rest("412 X", "", "") }, false},
		{"unsatisfiable", func(int, int, string) string {
			return rest("416 X", fmt.Sprintf("Content-Range: bytes */%d\r\n", odd), "")
		}, false},
		{"shifted", func(a, b int, body string) string {
			return rest("206 X", v1+fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", a-1, b-1, odd), body)
		}, false},
		{"shorter", func(a, b int, body string) string {
			return rest("206 X", v1+fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", a, b-1, odd), body[1:])
		}, false},
		{"another size", func(a, b int, body string) string {
			return rest("206 X", v1+fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", a, b, odd+1), body)
		}, false},
		{"another tag", func(a, b int, body string) string {
			return rest("206 X", "ETag: \"v2\"\r\n"+fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", a, b, odd), body)
		}, false},
		{"chunked", func(a, b int, body string) string {
			return fmt.Sprintf("HTTP/1.1 206 X\r\n%sContent-Range: bytes %d-%d/%d\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", v1, a, b, odd, len(body), body)
		}, false},
		{"without length", func(a, b int, body string) string {
			return fmt.Sprintf("HTTP/1.1 206 X\r\n%sContent-Range: bytes %d-%d/%d\r\nConnection: close\r\n\r\n%s", v1, a, b, odd, body)
		}, false},
		{"redirect", func(int, int, string) string { return rest("302 X", "Location: /elsewhere\r\n", "") }, false},
		{"interim first", func(a, b int, body string) string {
			return "HTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 P\r\n\r\n" + rest("206 X", v1+fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", a, b, odd), body)
		}, true},
	} {
		l := newLibrary(t)
		s := newStage(t, l.url(), nil)
		_, resp := s.fedClient(fmt.Sprintf("/f%d", odd), 100)
		l.set(func() {
			l.on = func(k *call) bool {
				first, last, ranged := k.asked(odd)
				if k.method != "GET" || !ranged || last != odd-1 {
					return false
				}
				k.send(c.text(first, last, bytesOf(0, odd)[first:]))
				k.over = c.name == "without length"
				return true
			}
		})
		s.free()
		if c.whole {
			wantBody(t, c.name, resp, bytesOf(0, odd))
			s.still(patience)
		} else {
			s.wantCut(c.name, resp, odd, "object_changed")
		}
		s.close()
	}
}

// TestX2_AnOriginThatFailsForAWhileIsAskedAgain: behind the slot's coming it is down, refuses for now or says nothing; then it goes on where it stood.
func TestX2_AnOriginThatFailsForAWhileIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(k *call){
		"closes":  func(k *call) { k.over = true },
		"is busy": func(k *call) { k.reply(503, "Retry-After: 1\r\n", "busy") },
		"silent":  func(k *call) { k.closed() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t)
			s := newStage(t, l.url(), func(set *Settings) { set.ResponseTimeout, set.StallTimeout = 100*time.Millisecond, 6*time.Second })
			_, resp := s.fedClient(fmt.Sprintf("/f%d", odd), 100)
			failures := 2
			l.set(func() {
				l.on = func(k *call) bool {
					if _, last, _ := k.asked(odd); k.method != "GET" || last != odd-1 || failures == 0 {
						return false
					}
					failures--
					fail(k)
					return true
				}
			})
			s.free()
			wantBody(t, name, resp, bytesOf(0, odd))
			s.still(patience)
		})
	}
}

// TestX2_P6_NothingIsLeftOfAClientThatLeaves: by a close or a reset, also while its drip waits for its turn at the governor, and of one that leaves as its rest is asked for.
func TestX2_P6_NothingIsLeftOfAClientThatLeaves(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) { set.DownloadTotal = bucket.Limit{BytesPerSecond: bucket.MinBytesPerSecond} })
	hog := s.p.downGov.Open("hog") // takes all there is
	defer hog.Close()
	stop := make(chan struct{})
	hogged := make(chan struct{})
	go func() {
		defer close(hogged)
		for {
			if _, err := hog.Take(16*kib, stop); err != nil {
				return
			}
		}
	}()
	for _, leave := range []func(*client){(*client).close, (*client).reset} {
		c, _ := s.fedClient(fmt.Sprintf("/f%d", odd), 1)
		eventually(t, "its drip waits at the governor", func() bool { s.visit(); return s.p.downGov.Snapshot().Waiting == 2 })
		leave(c)
		within(t, twoTicks, "nothing left", func() bool {
			d, left := s.p.drips.Snapshot(), s.left()
			left.Active, left.PaceDown = 0, 0
			return d.Joined == 0 && left == traces{} && s.p.downGov.Snapshot().Waiting <= 1 && s.p.front.Open() == 0
		})
	}
	close(stop)
	<-hogged

	silent := make(chan struct{})
	c, _ := s.fedClient(fmt.Sprintf("/g%d", odd), 1)
	l.set(func() {
		l.on = func(k *call) bool {
			if _, last, _ := k.asked(odd); k.method != "GET" || last != odd-1 {
				return false
			}
			close(silent)
			k.closed()
			return true
		}
	})
	s.free()
	<-silent
	c.reset()
	s.still(twoTicks)
	if n := s.metric(`arkvory_client_errors_total{reason="client_gone"}`); n != "3" {
		t.Errorf("%s have left", n)
	}
	if n := s.metric(`arkvory_upstream_errors_total{reason="object_changed"}`); n != "0" {
		t.Errorf("%s departures are blamed on the origin", n)
	}
}

// TestX2_AClientThatCannotBeWrittenToHasLeft: the dripper's write meets the reset before the watcher's look does. The origin is not to blame.
func TestX2_AClientThatCannotBeWrittenToHasLeft(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), nil)
	const clients = 12
	var all []*client
	for i := range clients {
		c, _ := s.fedClient(fmt.Sprintf("/f%d/%d", i, odd), 1)
		all = append(all, c)
	}
	for _, c := range all {
		c.reset()
		for range 20 {
			s.visit()
		}
	}
	s.still(twoTicks)
	if n := s.metric(`arkvory_client_errors_total{reason="client_gone"}`); n != fmt.Sprint(clients) {
		t.Errorf("%s of %d have left", n, clients)
	}
	if n := s.metric(`arkvory_upstream_errors_total{reason="object_changed"}`); n != "0" {
		t.Errorf("%s departures are blamed on the origin", n)
	}
}

// TestX2_P10_AStallIsToldFromADeparture: an origin that brings nothing more, and a client that reads nothing, end by the stall's limit under that name.
func TestX2_P10_AStallIsToldFromADeparture(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.on = func(k *call) bool {
		if first, _, ranged := k.asked(odd); ranged && first > 0 {
			k.closed()
			return true
		}
		return false
	}
	s := newStage(t, l.url(), func(set *Settings) { set.StallTimeout = 3 * front.Tick })
	_, resp := s.fedClient(fmt.Sprintf("/f%d", odd), drip.PieceBytes)
	if a := answerOf(resp); a.err == nil || a.body != bytesOf(0, odd)[:drip.PieceBytes] {
		t.Errorf("%d bytes, %v", len(a.body), a.err)
	}
	within(t, twoTicks, "the client is gone", func() bool { return s.p.drips.Snapshot().Joined == 0 && s.p.Working() == 0 })
	if n := s.metric(`arkvory_upstream_errors_total{reason="stalled"}`); n != "1" {
		t.Errorf("%s stalls of the origin", n)
	}
}

// TestX2_P3_AClientThatDoesNotReadDelaysNobody: its socket fills, the others are fed on, and the stall's limit ends it.
func TestX2_P3_AClientThatDoesNotReadDelaysNobody(t *testing.T) {
	t.Parallel()
	const size = 64 * mib
	l := newLibrary(t)
	l.on = func(k *call) bool {
		first, last, ranged := k.asked(size)
		if !ranged || last-first >= drip.PieceBytes {
			return false
		}
		k.send(fmt.Sprintf("HTTP/1.1 206 X\r\nETag: \"v1\"\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", first, last, size, last-first+1),
			strings.Repeat("z", last-first+1))
		return true
	}
	s := newStage(t, l.url(), func(set *Settings) {
		set.StallTimeout, set.DownloadTotal, set.DripBytesPerSecond = 4*front.Tick, bucket.Limit{BytesPerSecond: 1 << 40}, mib
	})
	c := s.dialFrom("127.0.0.7")
	_ = c.conn.(*net.TCPConn).SetReadBuffer(4 * kib)
	c.get(fmt.Sprintf("/a%d", size)).begin("GET")
	reader := s.dial().get(fmt.Sprintf("/a%d", size))
	resp := reader.begin("GET")
	read := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, resp.Body); read <- err }()
	eventually(t, "the one that does not read is cut", func() bool { s.visit(); return s.p.drips.Snapshot().Joined == 1 })
	if n := s.metric(`arkvory_client_errors_total{reason="stalled"}`); n != "1" {
		t.Errorf("%s stalls", n)
	}
	before := s.p.drips.Snapshot().Bytes
	s.fed(before + 100000)
	reader.close()
	<-read
	s.still(patience)
}

// TestX2_I5_NobodyIsFedAnothersBytes: two clients of one name get what the origin gave each of them, when it tells them apart by their credentials or by what they
// accept, though it calls both answers by one validator.
func TestX2_I5_NobodyIsFedAnothersBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fields, by string }{ // those called private begin alike
		"private answers":    {"ETag: \"v1\"\r\nCache-Control: max-age=1, private\r\n", "Authorization"},
		"private by address": {"ETag: \"v1\"\r\nCache-Control: private\r\n", "X-Who"},
		"private by cookie":  {"ETag: \"v1\"\r\nVary: Accept, Cookie\r\n", "Cookie"},
		"one tag for all":    {"ETag: \"v1\"\r\n", "Authorization"},
		"encodings, dated":   {"Date: Mon, 30 Nov 2026 10:00:00 GMT\r\nLast-Modified: Sun, 29 Nov 2026 10:00:00 GMT\r\nVary: Accept-Encoding\r\n", "Accept-Encoding"},
		"languages, one tag": {"ETag: \"v1\"\r\nVary: Accept-Language\r\n", "Accept-Language"},
	} {
		l := newLibrary(t)
		object := func(seed byte) string {
			if strings.HasPrefix(name, "private") {
				return bytesOf(0, odd)[:drip.PieceBytes] + bytesOf(seed, odd)[drip.PieceBytes:]
			}
			return bytesOf(seed, odd)
		}
		l.on = func(k *call) bool {
			seed := byte(1)
			if strings.HasSuffix(k.field(c.by), "2") {
				seed = 2
			}
			first, last, ranged := k.asked(odd)
			if k.method == "HEAD" || !ranged {
				return false
			}
			k.send(fmt.Sprintf("HTTP/1.1 206 X\r\n%sContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", c.fields, first, last, odd, last-first+1),
				object(seed)[first:last+1])
			return true
		}
		s := newStage(t, l.url(), nil)
		var bodies []*http.Response
		for n := 1; n <= 2; n++ {
			bodies = append(bodies, s.dialFrom(fmt.Sprintf("127.0.2.%d", n)).get(fmt.Sprintf("/f%d", odd), fmt.Sprintf("%s: token %d", c.by, n)).begin("GET"))
		}
		s.fed(3 * drip.PieceBytes)
		s.free()
		for i, resp := range bodies {
			wantBody(t, fmt.Sprintf("%s: client %d", name, i+1), resp, object(byte(i+1)))
		}
		s.still(patience)
		s.close()
	}
}

// TestX2_P1_NginxBehindAHold: a client is held in silence first; what nginx serves under its own validator reaches it whole.
func TestX2_P1_NginxBehindAHold(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	want := bytesOf(0, odd)
	if err := os.WriteFile(filepath.Join(root, "big.bin"), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, nginx(t, root, "", ""), func(set *Settings) { set.Hold = 50 * time.Millisecond })
	c := s.dial().get("/big.bin", "Range: bytes=1000-")
	eventually(t, "it is held in silence", func() bool { return s.p.holds.taken() == 1 })
	s.pass(time.Second)
	resp := c.begin("GET")
	if resp.StatusCode != 206 || resp.Header.Get("Content-Range") != fmt.Sprintf("bytes 1000-%d/%d", odd-1, odd) || resp.Header.Get("ETag") == "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	s.fed(2 * drip.PieceBytes)
	if left := s.left(); left.Held != 1 || s.p.holds.taken() != 0 {
		t.Errorf("%+v", left)
	}
	s.free()
	wantBody(t, "nginx", resp, want[1000:])
	s.pass(time.Minute)
	s.still(patience)
}

// TestX2_SizesAtTheEdges: objects of a few bytes, of whole pieces and a byte beside them, and those that have shrunk or grown since they were described.
func TestX2_SizesAtTheEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ told, size int }{{2, 2}, {10, 10}, {drip.PieceBytes, drip.PieceBytes}, {drip.PieceBytes + 1, drip.PieceBytes + 1},
		{2*drip.PieceBytes - 1, 2*drip.PieceBytes - 1}, {odd, 900}, {odd, 90}, {odd, odd + 5}, {odd, drip.PieceBytes}} {
		l := newLibrary(t)
		l.on = func(k *call) bool {
			if k.method == "HEAD" {
				k.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"v0\"\r\nContent-Length: %d\r\n\r\n", c.told))
			}
			return k.method == "HEAD"
		}
		s := newStage(t, l.url(), func(set *Settings) { set.Policy.SessionMinBytes = 100; set.AdmissionMinBytes = 10 })
		if c.told <= 100 {
			s.live(`{"sessionMinBytes":1}`)
		}
		conn := s.dial().get(fmt.Sprintf("/f%d", c.size))
		if c.told == c.size {
			eventually(t, "it is fed all but the last byte", func() bool { s.visit(); return s.p.drips.Snapshot().Bytes == uint64(c.size-1) })
		}
		if c.told == c.size || c.size > 100 {
			resp := conn.begin("GET")
			s.free()
			wantBody(t, fmt.Sprint(c), resp, bytesOf(0, c.size))
		} else if a := conn.ok(200); a.body != bytesOf(0, c.size) { // it is no session any more
			t.Errorf("%v: %d bytes", c, len(a.body))
		}
		s.still(patience)
		if n := s.metric(`arkvory_delivered_bytes_total{direction="download"}`); n != fmt.Sprint(c.size) {
			t.Errorf("%v: %s bytes delivered", c, n)
		}
		s.close()
	}
}

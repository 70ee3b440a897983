package admin

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestV1_TokenOrLoopback(t *testing.T) {
	var clock atomic.Int64 // each request a minute after the last, so that wrong tokens are forgotten
	minutes := func() time.Duration { return time.Duration(clock.Add(1)) * time.Minute }
	withToken := New(Settings{Token: token, Clock: minutes}, fullSources())
	near, far := run(t, withToken, false), run(t, New(Settings{Token: token, Clock: minutes}, fullSources()), true)
	noToken := run(t, New(Settings{Clock: minutes}, fullSources()), true)
	for _, c := range []struct {
		name, addr string
		lines      []string
		trusted    bool
	}{
		{"loopback", near, nil, true},
		{"loopback by name", near, []string{"Host: LocalHost:8081"}, true},
		{"loopback IPv6 literal", near, []string{"Host: [::1]:8081"}, true},
		{"loopback with a wrong token", near, []string{"Authorization: Bearer wrong"}, true},
		{"rebound name", near, []string{"Host: evil.example"}, false},
		{"rebound name with the token", near, []string{"Host: admin.example", "Authorization: Bearer " + token}, true},
		{"name that begins like localhost", near, []string{"Host: localhost.evil.example"}, false},
		{"behind a proxy", near, []string{"X-Forwarded-For: 127.0.0.1"}, false},
		{"behind a proxy, lower case", near, []string{"x-forwarded-for: 127.0.0.1"}, false},
		{"behind a proxy, empty value", near, []string{"X-Forwarded-For:"}, false},
		{"behind a proxy, RFC 7239", near, []string{"Forwarded: for=127.0.0.1"}, false},
		{"behind a proxy that says Via", near, []string{"Via: 1.1 edge"}, false},
		{"behind a proxy that says X-Real-IP", near, []string{"X-Real-IP: 127.0.0.1"}, false},
		{"behind a proxy with the token", near, []string{"X-Forwarded-For: 203.0.113.9", "Authorization: Bearer " + token}, true},
		{"remote", far, nil, false},
		{"remote that claims loopback", far, []string{"X-Forwarded-For: 127.0.0.1", "Host: localhost"}, false},
		{"remote with the token", far, []string{"Authorization: Bearer " + token}, true},
		{"scheme in lower case", far, []string{"authorization: bearer " + token}, true},
		{"wrong token", far, []string{"Authorization: Bearer " + token + "x"}, false},
		{"prefix of the token", far, []string{"Authorization: Bearer " + token[:5]}, false},
		{"empty token", far, []string{"Authorization: Bearer "}, false},
		{"other scheme", far, []string{"Authorization: Basic " + token}, false},
		{"two tokens", far, []string{"Authorization: Bearer " + token, "Authorization: Bearer " + token}, false},
		{"no token configured, empty one sent", noToken, []string{"Authorization: Bearer "}, false},
		{"no token configured, none sent", noToken, nil, false},
	} {
		a := send(t, c.addr, "GET", "/health/ready", c.lines...)
		if got := strings.Contains(a.body, `"transfers"`); got != c.trusted || a.status != 200 {
			t.Errorf("%s: readiness answered %d, full %v, want full %v", c.name, a.status, got, c.trusted)
		}
		want := 401
		if c.trusted {
			want = 200
		}
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline"} {
			a := send(t, c.addr, "GET", path, c.lines...)
			if a.status != want || (want == 401) != (a.header.Get("Www-Authenticate") != "") {
				t.Errorf("%s: %s answered %d %v, want %d", c.name, path, a.status, a.header, want)
			}
			if strings.Contains(a.body, token) || want == 401 && strings.Contains(a.body, "arkvory_") {
				t.Errorf("%s: %s gave away %q", c.name, path, a.body)
			}
		}
	}
}

func TestV1_CrossSiteRequestsAreRefused(t *testing.T) {
	addr := run(t, New(Settings{Token: token}, fullSources()), false)
	for _, c := range []struct {
		name    string
		lines   []string
		refused bool
	}{
		{"typed into the browser", []string{"Sec-Fetch-Site: none"}, false},
		{"own page", []string{"Sec-Fetch-Site: same-origin", "Origin: http://" + addr}, false},
		{"other site", []string{"Sec-Fetch-Site: cross-site"}, true},
		{"other port of this host", []string{"Sec-Fetch-Site: same-site"}, true},
		{"unknown word", []string{"Sec-Fetch-Site: whatever"}, true},
		{"other site with the token", []string{"Sec-Fetch-Site: cross-site", "Authorization: Bearer " + token}, true},
		{"foreign origin", []string{"Origin: https://evil.example"}, true},
		{"opaque origin", []string{"Origin: null"}, true},
		{"two origins", []string{"Origin: http://" + addr, "Origin: http://" + addr}, true},
	} {
		for _, path := range []string{"/health/live", "/health/ready", "/metrics", "/debug/pprof/"} {
			a := send(t, addr, "GET", path, c.lines...)
			if (a.status == 403) != c.refused || c.refused != strings.Contains(a.body, `"cross_site"`) {
				t.Errorf("%s: %s answered %d, want refused %v", c.name, path, a.status, c.refused)
			}
			if a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %s allows an origin", c.name, path)
			}
		}
	}
}

func TestP5_MalformedRequestsAreRefusedWithoutRepeatingThem(t *testing.T) {
	addr := run(t, New(Settings{Token: token}, fullSources()), false)
	const secret = "Authorization: Bearer hunter2-hunter2\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"no HTTP":           {"hunter2-hunter2\r\n\r\n", 400},
		"no Host":           {"GET /health/ready HTTP/1.1\r\n" + secret + "\r\n", 400},
		"space in a name":   {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nX Y: 1\r\n" + secret + "\r\n", 400},
		"hidden proxy":      {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For : 1.2.3.4\r\n" + secret + "\r\n", 400},
		"two hosts":         {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + secret + "\r\n", 400},
		"folded line":       {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n" + secret + "\r\n", 400},
		"bare LF":           {"GET /health/ready HTTP/1.1\r\nHost: localhost\nA: b\r\n" + secret + "\r\n", 400},
		"length and chunks": {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" + secret + "\r\n0\r\n\r\n", 400},
		"two lengths":       {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + secret + "\r\nab", 400},
		"length no number":  {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nContent-Length: hunter2\r\n" + secret + "\r\n", 400},
		"giant head":        {"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n" + secret + "X: " + strings.Repeat("a", maxHeadBytes) + "\r\n\r\n", 431},
	} {
		a := raw(t, addr, "GET", c.request)
		if a.status != c.status || !strings.Contains(a.body, `"reason"`) {
			t.Errorf("%s: got %d %q, want %d", name, a.status, a.body, c.status)
		}
		if strings.Contains(a.body, "hunter2") || strings.Contains(a.body, "transfers") {
			t.Errorf("%s: the answer gives away %q", name, a.body)
		}
	}
}

func TestP4_OldHealthChecksWithoutHostAreAnswered(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	if a := raw(t, addr, "GET", "GET /health/ready HTTP/1.0\r\n\r\n"); a.status != 200 || a.body != "{\"status\":\"ready\"}\n" {
		t.Errorf("got %d %q, want the bare status: nothing says that this is loopback by its own name", a.status, a.body)
	}
}

func TestV1_LocalNames(t *testing.T) {
	for in, want := range map[string]bool{"localhost": true, "localhost:80": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9:1": true,
		"[::1]": true, "[::1]:80": true, "::1": true, "[::ffff:127.0.0.1]:1": true, "": false, "evil.example": false, "127.0.0.1.evil.example": false,
		"localhost.": false, "10.0.0.1": false, "0.0.0.0": false, "[::]": false, "127.1": false} {
		if got := localName(in); got != want {
			t.Errorf("localName(%q) = %v, want %v", in, got, want)
		}
	}
}

func FuzzV1_LocalName(f *testing.F) {
	for _, s := range []string{"localhost:1", "[::1]:2", "[", "127.0.0.1:", "a:b:c", "::1%lo", "evil.example:127.0.0.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !localName(host) {
			return
		}
		// whatever is local begins with one of the few spellings of loopback
		h := strings.ToLower(strings.TrimLeft(host, "["))
		if !strings.HasPrefix(h, "localhost") && !strings.HasPrefix(h, "127.") && !strings.HasPrefix(h, "::") && strings.Trim(h[:1], "0") != "" {
			t.Errorf("%q counts as local", host)
		}
	})
}

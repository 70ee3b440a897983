package proxy

import (
	"net/netip"
	"strings"
	"testing"
)

// seen is an origin that keeps the heads it got and answers 200.
func seen(t *testing.T) (*origin, chan string) {
	heads := make(chan string, 16)
	return newOrigin(t, func(k *call) {
		k.body()
		heads <- k.raw
		k.reply(200, "ETag: \"x\"\r\nX-Mixed-CASE: One\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-Mixed-CASE: Two\r\n", "hello")
	}), heads
}

func TestP1_TargetHostAndFieldsPassUnchanged(t *testing.T) {
	t.Parallel()
	o, heads := seen(t)
	b := start(t, o.url(), nil)
	c := b.dial()
	for _, target := range []string{"/", "//a//b", "/a%2Fb/../c/./d", "/@scope%2fname", "/x?", "/x?a=b%20c&&=", "/ü?é", "/UPPER/%e2%82%ac%E2%82%AC", "/;p=1,2'()*!$"} {
		c.send("GET " + target + " HTTP/1.1\r\nhOsT: Store.Test:8443\r\nX-b: 2\r\nx-A:  1 \r\nX-b: 3\r\nACCEPT: */*\r\n\r\n")
		a := c.ok(200)
		want := "GET " + target + " HTTP/1.1\r\nhOsT: Store.Test:8443\r\nX-b: 2\r\nx-A: 1\r\nX-b: 3\r\nACCEPT: */*\r\n"
		if got := <-heads; !strings.HasPrefix(got, want) {
			t.Errorf("%s: the origin got\n%s\nwant\n%s", target, got, want)
		}
		if a.body != "hello" {
			t.Errorf("body %q", a.body)
		}
	}
	head := c.get("/raw").head()
	<-heads
	if want := "HTTP/1.1 200 X\r\nETag: \"x\"\r\nX-Mixed-CASE: One\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-Mixed-CASE: Two\r\nContent-Length: 5\r\n\r\n"; head != want {
		t.Errorf("the client got\n%s\nwant\n%s", head, want)
	}
}

func TestP1_UpstreamHostOverridesHost(t *testing.T) {
	t.Parallel()
	o, heads := seen(t)
	b := start(t, o.url(), func(s *Settings) { s.UpstreamHost = "inner.test:9" })
	b.dial().get("/").ok(200)
	if got := <-heads; field(got, "Host") != "inner.test:9" || field(got, "X-Forwarded-Host") != "store.test" {
		t.Errorf("head:\n%s", got)
	}
}

func TestP1_AbsoluteFormNamesTheHost(t *testing.T) {
	t.Parallel()
	o, heads := seen(t)
	b := start(t, o.url(), nil)
	b.dial().send("GET http://Other.test:81//a?b HTTP/1.1\r\nHost: ignored\r\n\r\n").ok(200)
	if got := <-heads; !strings.HasPrefix(got, "GET //a?b HTTP/1.1\r\n") || field(got, "Host") != "Other.test:81" {
		t.Errorf("head:\n%s", got)
	}
}

func TestP1_HTTP10ClientWithoutHost(t *testing.T) {
	t.Parallel()
	o, heads := seen(t)
	b := start(t, o.url(), nil)
	c := b.dial().send("GET /old HTTP/1.0\r\n\r\n")
	a := c.ok(200)
	if got := <-heads; !strings.HasPrefix(got, "GET /old HTTP/1.1\r\n") || field(got, "Host") != strings.TrimPrefix(o.url(), "http://") {
		t.Errorf("head:\n%s", got)
	}
	if !a.Close || a.body != "hello" {
		t.Errorf("close %v, body %q", a.Close, a.body)
	}
	c.atEnd()

	c = b.dial().send("GET /old HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
	if a := c.ok(200); !strings.EqualFold(a.Header.Get("Connection"), "keep-alive") {
		t.Errorf("Connection %q", a.Header.Get("Connection"))
	}
	c.send("GET /again HTTP/1.0\r\n\r\n").ok(200)
	c.atEnd()
}

func TestP2_FieldsOfTheHopStop(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		for _, gone := range []string{"X-Named", "Keep-Alive", "Proxy-Connection", "Upgrade", "X-Late", "Arkvory-Download-Class", "arkvory-other"} {
			if v := k.field(gone); v != "" {
				k.o.t.Errorf("%s reached the origin: %q", gone, v)
			}
		}
		if k.field("X-Stays") != "1" || k.field("Authorization") != "Basic dTpw" {
			k.o.t.Errorf("lost fields:\n%s", k.raw)
		}
		k.reply(200, "Connection: X-Mine, keep-alive\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nX-Yours: 1\r\n", "")
	})
	b := start(t, o.url(), nil)
	c := b.dial().get("/", "Connection: X-Named, close-ish, Authorization", "X-Named: 1", "Keep-Alive: 5", "Proxy-Connection: keep-alive", "Upgrade: h2c",
		"X-Stays: 1", "Authorization: Basic dTpw", "Connection: x-late", "X-Late: 2", "Arkvory-Download-Class: bulk", "arkvory-other: 1")
	a := c.ok(200)
	for _, gone := range []string{"X-Mine", "Keep-Alive", "Proxy-Connection", "Connection"} {
		if a.Header.Get(gone) != "" {
			t.Errorf("%s reached the client", gone)
		}
	}
	if a.Header.Get("X-Yours") != "1" || a.Header.Get("Arkvory-Download-Class") != "bulk" {
		t.Errorf("fields %v", a.Header)
	}
}

func TestP2_ForwardedFieldsBelieveTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trusted  bool
		xff, fwd string
	}{
		{false, "127.0.0.1", `for=127.0.0.1;host="store.test";proto=http`},
		{true, "203.0.113.9, 127.0.0.1", `for=203.0.113.9, for=127.0.0.1;host="store.test";proto=http`},
	} {
		o, heads := seen(t)
		b := start(t, o.url(), func(s *Settings) {
			if c.trusted {
				s.Identity.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
		})
		b.dial().get("/", "X-Forwarded-For: 203.0.113.9", "Forwarded: for=203.0.113.9").ok(200)
		got := <-heads
		if field(got, "X-Forwarded-For") != c.xff || field(got, "Forwarded") != c.fwd || field(got, "X-Forwarded-Proto") != "http" {
			t.Errorf("trusted %v:\n%s", c.trusted, got)
		}
	}
}

func TestP2_ViaOnlyWhenItIsNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "edge"} {
		o := newOrigin(t, func(k *call) { k.reply(200, "X-Via: "+k.field("Via")+"\r\nVia: 1.1 store\r\n", "") })
		b := start(t, o.url(), func(s *Settings) { s.Via = name })
		want, back := map[string]string{"": "1.0 old", "edge": "1.0 old, 1.1 edge"}[name], map[string]string{"": "1.1 store", "edge": "1.1 store, 1.1 edge"}[name]
		a := b.once("GET", "/", "Via: 1.0 old")
		if a.Header.Get("X-Via") != want || a.Header.Get("Via") != back {
			t.Errorf("%q: origin got %q, client %q", name, a.Header.Get("X-Via"), a.Header.Get("Via"))
		}
		if a := b.once("GET", "/"); name == "" && a.Header.Get("X-Via") != "" {
			t.Errorf("Via %q was made up", a.Header.Get("X-Via"))
		}
	}
}

func TestI4_ClassAndDownloadIdAreChecked(t *testing.T) {
	t.Parallel()
	o, _ := seen(t)
	b := start(t, o.url(), nil)
	for _, c := range []struct{ line, rule, reason string }{
		{"Arkvory-Download-Class: fast", "Arkvory-Download-Class", "class_unknown"},
		{"Arkvory-Download-Class: bulk\r\nArkvory-Download-Class: bulk", "Arkvory-Download-Class", "class_unknown"},
		{"Arkvory-Download-Id: a b", "Arkvory-Download-Id", "malformed_request"},
		{"Arkvory-Download-Id: " + strings.Repeat("a", 129), "Arkvory-Download-Id", "malformed_request"},
	} {
		conn := b.dial()
		a := conn.get("/", c.line).ok(400)
		if !strings.Contains(a.body, c.rule) || a.reason(t) != c.reason {
			t.Errorf("%s: %s", c.line, a.body)
		}
	}
	if n := len(o.requests()); n != 0 {
		t.Errorf("%d requests reached the origin", n)
	}
	if a := b.once("GET", "/", "Arkvory-Download-Class: interactive"); a.Header.Get("Arkvory-Download-Class") != "release" {
		t.Errorf("raised to %q", a.Header.Get("Arkvory-Download-Class"))
	}
}

func TestI5_SecretsStayOutOfLogsAndMetrics(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) { k.reply(200, "", strings.Repeat("x", 300*kib)) })
	b := start(t, o.url(), nil)
	b.once("GET", "/f?X-Amz-Signature=s3cr3tsig&X-Amz-Credential=s3cr3tid", "Authorization: Bearer s3cr3ttoken", "Cookie: sid=s3cr3tcookie", "X-Api-Key: s3cr3tkey")
	b.once("GET", "/s3cr3tpath", "Host: again")
	eventually(t, "the session is logged", func() bool { return strings.Contains(b.log.String(), "download session ended") })
	var page strings.Builder
	if _, err := b.p.Metrics().WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	if text := b.log.String() + page.String(); strings.Contains(text, "s3cr3t") {
		t.Errorf("a secret is in\n%s", text)
	}
}

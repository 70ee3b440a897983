package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/queue/admission"
)

// dialFrom connects from another address of the loopback network.
func (b *bench) dialFrom(ip string) *client {
	b.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	conn, err := d.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	return wrap(b.t, conn)
}

// occupied is a proxy whose one slot is somebody else's until the test ends.
func occupied(t *testing.T, o *origin, change func(*Settings)) *bench {
	t.Helper()
	b := start(t, o.url(), func(s *Settings) {
		oneSlot(s)
		if change != nil {
			change(s)
		}
	})
	g, _ := b.p.queue.Admit(holding())
	t.Cleanup(g.Abandon)
	return b
}

// TestP3_BodyThatPausesBehindALateHeadIsWhole: the time of a stall was counted from the request, so that an answer whose head took longer was cut with its first pause.
func TestP3_BodyThatPausesBehindALateHeadIsWhole(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		<-time.After(10 * front.Tick)
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
		<-time.After(3 * front.Tick)
		k.send("0123456789")
	})
	b := start(t, o.url(), func(s *Settings) { s.StallTimeout = 8 * front.Tick })
	if a := b.once("GET", "/"); a.body != "0123456789" || a.err != nil {
		t.Errorf("%q, %v", a.body, a.err)
	}
}

// TestP3_SteadySlowReaderIsNotStalled: the kernel takes and gives in lumps, so that nothing moves in the proxy for longer than the stall's time while the client reads
// all along. It was cut.
func TestP3_SteadySlowReaderIsNotStalled(t *testing.T) {
	t.Parallel()
	const stall = 8
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { s.StallTimeout = stall * front.Tick })
	c := b.dial()
	if err := c.conn.(*net.TCPConn).SetReadBuffer(128 * kib); err != nil { // a window of two loopback segments: it reopens at once and not by probes
		t.Fatal(err)
	}
	resp := c.get("/a/1000000000").begin("GET")
	tick := time.NewTicker(front.Tick / 2)
	defer tick.Stop()
	for range 5 * stall { // 128 KiB/s, two and a half times as long as a stall
		<-tick.C
		if _, err := io.CopyN(io.Discard, resp.Body, 16*kib); err != nil {
			t.Fatal(err)
		}
		if b.p.Busy() == 0 {
			t.Fatal("it was cut")
		}
	}
	c.close()
	b.quiet(patience)
}

// TestP3_B2_WaitForTheBudgetIsNoStall: sixteen clients share 64 KiB/s, so that each waits for its next bytes for more than the stall's time. They were cut.
func TestP3_B2_WaitForTheBudgetIsNoStall(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		s.StallTimeout = 2 * front.Tick
		s.DownloadTotal = bucket.Limit{BytesPerSecond: bucket.MinBytesPerSecond}
	})
	const clients, size = 16, 16000
	var all [clients]*client
	for i := range all {
		all[i] = b.dial().get(fmt.Sprintf("/s%d/%d", i, size))
	}
	for i, c := range all {
		if a := c.answer(); len(a.body) != size || a.err != nil {
			t.Errorf("client %d: %d bytes, %v", i, len(a.body), a.err)
		}
	}
	if n := b.metric(`arkvory_client_errors_total{reason="stalled"}`); n != "0" {
		t.Errorf("stalled %s", n)
	}
}

// TestV1_ReadinessFollowsTheOriginWithoutTraffic: only requests dialled. Readiness said yes before an origin that was never there, and once a request had failed it said no
// for ever, since a process that is not ready gets no requests.
func TestV1_ReadinessFollowsTheOriginWithoutTraffic(t *testing.T) {
	t.Parallel()
	address := vacant(t)
	b := start(t, "http://"+address, nil)
	ready := b.p.Sources(time.Now()).Ready
	eventually(t, "it is not ready", func() bool { return ready() == telemetry.UpstreamNotReady })
	if a := b.once("GET", "/"); a.StatusCode != 502 {
		t.Errorf("%d", a.StatusCode)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	eventually(t, "it is ready again", func() bool { return ready() == telemetry.OK })
}

// TestV1_NeverReadyBeforeTheOriginWasReached: an origin that was not tried yet is not known to be there.
func TestV1_NeverReadyBeforeTheOriginWasReached(t *testing.T) {
	t.Parallel()
	address := vacant(t)
	b := start(t, "http://"+address, nil)
	ready := b.p.Sources(time.Now()).Ready
	within(t, patience, "the origin was tried", func() bool {
		if ready() == telemetry.OK {
			t.Fatal("ready though the origin is down from the start")
		}
		return b.p.upstreamCause() != ""
	})
}

// TestL1_FreshConnectionIsToldThatTheProcessStops: a connection to a stopping process was closed at the next tick when its request was a moment late, which clients
// report as a failure instead of trying elsewhere.
func TestL1_FreshConnectionIsToldThatTheProcessStops(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	b.p.StartDrain()
	c := b.dial()
	eventually(t, "it is accepted", func() bool { return b.p.front.Open() == 1 })
	now := b.p.front.Clock().Load()
	eventually(t, "the watcher has looked at it", func() bool { return b.p.front.Clock().Load() >= now+3*int64(front.Tick) })
	if a := c.get("/small/10").ok(503); a.reason(t) != "draining" || a.Header.Get("Retry-After") == "" || !a.Close {
		t.Errorf("%s %v", a.body, a.Header)
	}
}

// TestP7_BodilessAnswerThatNamesABodyIsTheLastOfItsConnection: what follows such a head may be its body. The connection was kept when the body came a moment later, and
// the next client read it as its answer.
func TestP7_BodilessAnswerThatNamesABodyIsTheLastOfItsConnection(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"204 X\r\nTransfer-Encoding: chunked", "304 X\r\nTransfer-Encoding: chunked", "204 X\r\nContent-Length: 5"} {
		ended := make(chan struct{})
		o := newOrigin(t, func(k *call) {
			if k.target != "/none" {
				k.reply(200, "", "clean")
				return
			}
			k.send("HTTP/1.1 " + head + "\r\n\r\n")
			k.closed()
			close(ended)
		})
		b := start(t, o.url(), nil)
		c := b.dial()
		if h := c.get("/none").head(); !strings.HasPrefix(h, "HTTP/1.1 "+head[:3]) || field(h, "Transfer-Encoding") != "" {
			t.Errorf("%q: %q", head, h)
		}
		b.quiet(patience)
		<-ended                                              // it is not kept
		if a := c.get("/clean").ok(200); a.body != "clean" { // the client's own goes on
			t.Errorf("%q: %q", head, a.body)
		}
	}
}

// TestP7_AuthenticatedConnectionsAreNotShared: NTLM and Negotiate authenticate a connection, not a request. A kept one served the next client under the name of the first.
func TestP7_AuthenticatedConnectionsAreNotShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ask, answer string }{
		{"NTLM asked for", "", "WWW-Authenticate: NTLM\r\n"},
		{"Negotiate asked for", "", "WWW-Authenticate: Basic realm=\"a\"\r\nwww-authenticate: negotiate YII=\r\n"},
		{"in a list", "", "WWW-Authenticate: Basic realm=\"a\", NTLM\r\n"},
		{"NTLM sent", "Authorization: NTLM TlRMTVNTUAAB", ""},
		{"Negotiate sent", "Authorization: Negotiate YII=", ""},
	} {
		o := newOrigin(t, func(k *call) {
			if k.target == "/first" {
				k.reply(200, c.answer, "first")
				return
			}
			if k.n != 1 {
				k.o.t.Errorf("%s: another client's request came on the authenticated connection", c.name)
			}
			k.reply(200, "", "second")
		})
		b := start(t, o.url(), nil)
		fields := []string{"X-A: 1"}
		if c.ask != "" {
			fields = append(fields, c.ask)
		}
		if a := b.once("GET", "/first", fields...); a.body != "first" {
			t.Errorf("%s: %q", c.name, a.body)
		}
		b.quiet(patience)
		if a := b.once("GET", "/second"); a.body != "second" {
			t.Errorf("%s: %q", c.name, a.body)
		}
	}
}

// TestP4_Q1_UpgradeToHTTP2IsNotOffered: an upgrade to h2c was passed on. An origin that takes it speaks HTTP/2 through a tunnel that knows no admission.
func TestP4_Q1_UpgradeToHTTP2IsNotOffered(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		if k.field("Upgrade") != "" || k.field("HTTP2-Settings") != "" || strings.Contains(strings.ToLower(k.field("Connection")), "upgrade") {
			k.o.t.Errorf("an upgrade reached the origin:\n%s", k.raw)
		}
		k.send("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 1000000\r\n\r\n")
		if k.method == "GET" {
			k.send(strings.Repeat("b", 1000000))
		}
	})
	h2c := []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"}
	b := start(t, o.url(), oneSlot)
	c := b.dial()
	for range 2 { // and the connection stays what it was
		if a := c.get("/f", h2c...).ok(200); len(a.body) != 1000000 || a.Header.Get("Upgrade") != "" {
			t.Errorf("%d bytes, %v", len(a.body), a.Header)
		}
	}
	b.quiet(patience)
	g, _ := b.p.queue.Admit(holding())
	defer g.Abandon()
	if a := c.get("/g", append(h2c, id)...).ok(503); a.reason(t) != "download_queued" {
		t.Errorf("%s", a.body)
	}
	c.get("/g", h2c...)
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
}

// TestP4_Q1_RefusedUpgradeIsADownload: an origin that answers an upgrade with the object itself sent it past the queue.
func TestP4_Q1_RefusedUpgradeIsADownload(t *testing.T) {
	t.Parallel()
	o := store(t)
	websocket := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x"}
	b := start(t, o.url(), oneSlot)
	c := b.dial().get("/a/1000000000", websocket...)
	c.begin("GET")
	if l := b.left(); l.Active != 1 { // it has the slot
		t.Errorf("%+v", l)
	}
	if a := b.once("GET", "/b/1000000", append(websocket, id)...); a.StatusCode != 503 || a.reason(t) != "download_queued" {
		t.Errorf("%d %.100s", a.StatusCode, a.body)
	}
	held := b.dial().get("/c/1000000", websocket...)
	eventually(t, "a plain one is held", func() bool { return b.left().Held == 1 })
	c.close()
	if a := held.ok(200); len(a.body) != 1000000 {
		t.Errorf("%d bytes", len(a.body))
	}
}

// TestX1_A3_SteeringNamesFreeNoLargeObject: a User-Agent or a method that steers let an object of any size up to 128 MiB pass by the queue and by admission.
func TestX1_A3_SteeringNamesFreeNoLargeObject(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := occupied(t, o, func(s *Settings) {
		s.Downloads = admission.Settings{Capacity: 1, PerPrincipal: 1, Timeout: patience}
	})
	place, err := b.p.down.Acquire("somebody", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Release()
	for _, c := range []struct {
		method, target, field string
		status                int
		reason                string
	}{
		{"GET", "/17000000", "User-Agent: npm/10.0.0 node/v20", 503, "download_queued"},
		{"GET", "/17000000", "Accept: application/vnd.npm.install-v1+json", 503, "download_queued"},
		{"GET", "/v2/x/manifests/140000000", "Accept: */*", 503, "download_queued"},
		{"PROPFIND", "/o/17000000", "Depth: 0", 503, "queue_full"},
		{"REPORT", "/o/17000000", "Depth: 0", 503, "queue_full"},
		{"GET", "/100000", "User-Agent: npm/10.0.0 node/v20", 200, ""}, // a packument above the bound of admission
		{"PROPFIND", "/o/1000", "Depth: 0", 200, ""},
	} {
		cl := b.dial().send(request(c.method, c.target, c.field, id))
		resp := cl.begin(c.method)
		if resp.StatusCode != c.status {
			t.Errorf("%s %s, %s: %d", c.method, c.target, c.field, resp.StatusCode)
		} else if body, err := io.ReadAll(resp.Body); err != nil {
			t.Errorf("%s %s: %v", c.method, c.target, err)
		} else if c.reason != "" && (answer{resp, string(body), err}).reason(t) != c.reason {
			t.Errorf("%s %s, %s: %s", c.method, c.target, c.field, body)
		}
		cl.close()
	}
}

const (
	alice      = "Authorization: Basic YWxpY2U6cHc="     // alice:pw
	aliceWrong = "Authorization: Basic YWxpY2U6d3Jvbmc=" // alice:wrong
)

// TestQ1_DownloadIDNamesNoOtherClientsSession: ids and addresses had one space of names. Under one principal an id with the text of another client's address joined that
// one's session and took its slot along.
func TestQ1_DownloadIDNamesNoOtherClientsSession(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	a := b.dialFrom("127.0.0.5").get("/a/1000000000", alice)
	a.begin("GET")
	eventually(t, "it has the slot", func() bool { return b.left().Active == 1 })
	for _, as := range []string{"other", "127.0.0.5", "addr:127.0.0.5"} {
		c := b.dialFrom("127.0.0.6").get("/a/1000000000", alice, "Arkvory-Download-Id: "+as)
		if resp := c.begin("GET"); resp.StatusCode != 503 && !(resp.StatusCode == 400 && strings.Contains(as, ":")) {
			t.Errorf("id %s: %d", as, resp.StatusCode)
		}
		c.close()
	}
	c := b.dialFrom("127.0.0.5").get("/a/1000000000", alice) // while the session's own client is let in
	if resp := c.begin("GET"); resp.StatusCode != 200 {
		t.Errorf("its own: %d", resp.StatusCode)
	}
	c.close()
	a.close()
}

// TestP2_ShadowSpellingsDoNotReachTheUpstream: CGI and WSGI origins read an underscore as a hyphen, so that a client could vouch for its own address.
func TestP2_ShadowSpellingsDoNotReachTheUpstream(t *testing.T) {
	t.Parallel()
	heads := make(chan string, 8)
	o := newOrigin(t, func(k *call) {
		body := k.body()
		heads <- k.raw + body
		k.reply(200, "", "")
	})
	b := start(t, o.url(), nil)
	shadows := []string{"X_Forwarded_For: 6.6.6.6", "X-Forwarded_For: 6.6.6.6", "x_forwarded-proto: 6.6.6.6", "X_Forwarded_Host: 6.6.6.6", "Forwarded_For: 6.6.6.6",
		"Arkvory_Download_Class: 6.6.6.6", "ARKVORY_Download-Id: 6.6.6.6"}
	fields := append([]string{"X_Custom: kept"}, shadows...)
	for _, text := range []string{
		request("GET", "/", fields...),
		request("GET", "/", append(fields, "Connection: Upgrade", "Upgrade: websocket")...),
		request("PUT", "/", append(fields, "Content-Length: 2")...) + "hi",
		request("PUT", "/", append(fields, "Transfer-Encoding: chunked", "Trailer: X-Sum")...) + "2\r\nhi\r\n0\r\nX-Sum: 1\r\n" + strings.Join(shadows, "\r\n") + "\r\n\r\n",
	} {
		c := b.dial().send(text)
		c.ok(200)
		c.close()
		if got := <-heads; strings.Contains(got, "6.6.6.6") || !strings.Contains(got, "X_Custom: kept") {
			t.Errorf("the origin got\n%s", got)
		}
		for len(heads) > 0 { // a refused upgrade is asked for once more
			if got := <-heads; strings.Contains(got, "6.6.6.6") {
				t.Errorf("the origin got\n%s", got)
			}
		}
	}
}

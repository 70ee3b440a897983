package proxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/proxy/waitpage"
	"github.com/arkvory/sidecar/queue/admission"
)

// live changes the policy as an operator does.
func (b *bench) live(overrides string) {
	b.t.Helper()
	body := fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, b.p.desk.Current().Revision, overrides)
	if _, err := b.p.desk.Change(b.t.Context(), body, "token"); err != nil {
		b.t.Fatal(err)
	}
}

// TestX2_P10_WaitingTakesNoRequestsPlace: clients that are fed do not count towards MAX_REQUESTS; the drip limit bounds them, all and those of one principal.
func TestX2_P10_WaitingTakesNoRequestsPlace(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) { set.MaxRequests, set.DripLimit = 2, 5 })
	target := fmt.Sprintf("/f%d", odd)
	var bodies []*http.Response
	ask := func(from string) int {
		resp := s.dialFrom(from).get(target).begin("GET")
		if resp.StatusCode == 200 {
			bodies = append(bodies, resp)
			eventually(t, "it waits", func() bool { return s.left().Held == len(bodies) && s.p.Busy() == 0 })
		} else if reason := answerOf(resp).reason(t); reason != "download_queued" {
			t.Errorf("%d %s", resp.StatusCode, reason)
		}
		return resp.StatusCode
	}
	for i, c := range []struct {
		from string
		want int
	}{{"127.0.0.1", 200}, {"127.0.0.1", 200}, {"127.0.0.1", 200}, {"127.0.0.1", 503}, {"127.0.0.2", 200}, {"127.0.0.3", 200}, {"127.0.0.4", 503}} {
		if got := ask(c.from); got != c.want {
			t.Errorf("client %d: %d, want %d", i, got, c.want)
		}
	}
	s.once("GET", "/small10")
	if d := s.p.drips.Snapshot(); d.Joined != 5 || d.Running != 5 || d.Limit != 5 || s.left().Held != 5 {
		t.Errorf("%+v %+v", d, s.left())
	}
	s.live(`{"sessions":5}`)
	s.free()
	for i, resp := range bodies {
		wantBody(t, fmt.Sprint("client ", i), resp, bytesOf(0, odd))
	}
	s.pass(5 * time.Minute) // the one that was refused does not come back
	s.still(patience)
}

// TestX2_Q3_AChangeOfThePolicyWhileItWaits: under shared the request needs a place; with none free and none to wait at it asks again, and comes back to the queue when the policy does.
func TestX2_Q3_AChangeOfThePolicyWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		l := newLibrary(t)
		s := newStage(t, l.url(), func(set *Settings) {
			set.Downloads = admission.Settings{Capacity: 1, PerPrincipal: 1, WaitLimit: 0, WaitPerPrincipal: 0, Timeout: patience}
		})
		_, resp := s.fedClient(fmt.Sprintf("/f%d", odd), 100)
		place, err := s.p.down.Acquire("somebody", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.live(`{"strategy":"shared"}`)
		eventually(t, "it left the queue and asked for a place", func() bool { return s.left().Held == 0 && s.p.down.Snapshot().Rejected > 0 })
		s.fed(s.p.drips.Snapshot().Bytes + 100)
		if back {
			s.live(`{}`)
			eventually(t, "it is in the queue again", func() bool { return s.left().Held == 1 })
			s.fed(s.p.drips.Snapshot().Bytes + 100)
			s.free()
		} else {
			place.Release()
		}
		wantBody(t, fmt.Sprint("back: ", back), resp, bytesOf(0, odd))
		if back {
			place.Release()
		}
		s.still(patience)
		s.close()
	}
}

// TestX2_Q19_ADefectOfTheQueueWhileItWaits: one in a tick loses nobody's place; one in the wait itself breaks the connection and leaves nothing.
func TestX2_Q19_ADefectOfTheQueueWhileItWaits(t *testing.T) {
	t.Parallel()
	var broken atomic.Pointer[string]
	began := time.Now()
	l := newLibrary(t)
	b := start(t, l.url(), func(s *Settings) {
		oneSlot(s)
		s.Hold, s.DripLimit, s.DripBytesPerSecond = 0, 8, 1024
		s.clock = func() time.Duration {
			if at := broken.Load(); at != nil && bytes.Contains(debug.Stack(), []byte(*at)) && broken.CompareAndSwap(at, nil) {
				panic("injected in the queue")
			}
			return time.Since(began)
		}
	})
	g, _ := b.p.queue.Admit(holding())
	defer g.Abandon()
	whole := b.dial().get(fmt.Sprintf("/f%d", odd)).begin("GET")
	eventually(t, "it waits", func() bool { return b.left().Held == 1 })
	at := ".(*Queue).Tick("
	broken.Store(&at)
	eventually(t, "the tick panicked", func() bool { return broken.Load() == nil })
	eventually(t, "it waits on", func() bool { return b.left().Held == 1 && b.p.drips.Snapshot().Running == 1 })

	at2 := ".(*exchange).stay("
	broken.Store(&at2) // before the request: it may wait a moment later
	c := b.dialFrom("127.0.0.2").get(fmt.Sprintf("/g%d", odd))
	resp := c.begin("GET")
	if a := answerOf(resp); a.err == nil {
		t.Errorf("a whole body of %d bytes behind a defect", len(a.body))
	}
	within(t, twoTicks, "the broken one is gone", func() bool { d := b.p.drips.Snapshot(); return d.Joined == 1 && d.Running == 1 && b.p.Busy() == 0 })
	g.Abandon()
	wantBody(t, "the one behind the tick's defect", whole, bytesOf(0, odd))
	b.quiet(patience)
	if n := b.metric("arkvory_panics_total"); n != "2" {
		t.Errorf("%s panics", n)
	}
}

// TestX2_P9_PiecesAndTheRestFollowRedirects: all of it comes from the host that the origin names, and no credential goes there.
func TestX2_P9_PiecesAndTheRestFollowRedirects(t *testing.T) {
	t.Parallel()
	bucketHost := newLibrary(t)
	secrets := []string{"Authorization", "Cookie", "X-Api-Key"}
	front := newLibrary(t)
	front.on = func(k *call) bool {
		if k.target == "/hop" {
			k.reply(302, "Location: "+bucketHost.url()+fmt.Sprintf("/data/%d?sig=s3cr3t\r\n", odd), "")
			return true
		}
		if k.field("Authorization") == "" {
			k.o.t.Errorf("the own host did not get the credentials: %s", k.raw)
		}
		k.reply(307, "Location: /hop\r\n", "moved")
		return true
	}
	s := newStage(t, front.url(), func(set *Settings) { set.FollowRedirects = true })
	resp := s.dial().get("/blob", "Authorization: Basic dTpw", "Cookie: a=b", "X-Api-Key: k").begin("GET")
	s.fed(2*drip.PieceBytes + 100)
	s.free()
	wantBody(t, "behind a redirect", resp, bytesOf(0, odd))
	s.still(patience)
	heads := bucketHost.got("")
	if len(heads) < 4 { // three pieces and the rest
		t.Errorf("%d requests at the target: %q", len(heads), heads)
	}
	for _, h := range heads {
		for _, name := range secrets {
			if field(h, name) != "" {
				t.Errorf("%s went to the other host:\n%s", name, h)
			}
		}
		if field(h, "Host") != bucketHost.ln.Addr().String() || field(h, "Range") == "" || strings.Contains(h, "\x00") {
			t.Errorf("asked %q", h)
		}
	}
	for _, h := range front.got("GET /hop") {
		if strings.Contains(h, "\x00") || field(h, "Host") != "store.test" {
			t.Errorf("asked %q", h)
		}
	}
	if strings.Contains(s.log.String(), "s3cr3t") {
		t.Error("the link is in the log")
	}
}

// TestX2_B1_FedBytesArePacedLikeAllOthers: two clients of one principal get what its bucket gives, fed and sent together.
func TestX2_B1_FedBytesArePacedLikeAllOthers(t *testing.T) {
	t.Parallel()
	const rate = 256 * kib
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) {
		set.DownloadEach, set.DripBytesPerSecond, set.Policy.PerPrincipal = bucket.Limit{BytesPerSecond: rate}, mib, 2
		set.Policy.Sessions = 2
	})
	began := time.Now()
	bound := func() float64 { return time.Since(began).Seconds()*rate + rate/10 + 1 }
	var bodies []*http.Response
	for n := 1; n <= 2; n++ {
		bodies = append(bodies, s.dialFrom(fmt.Sprintf("127.0.3.%d", n)).get(fmt.Sprintf("/f%d", odd), "Authorization: Basic dTpw").begin("GET"))
	}
	eventually(t, "much is fed", func() bool {
		s.visit()
		n := s.p.drips.Snapshot().Bytes
		if most := bound(); float64(n) > most {
			t.Fatalf("%d bytes fed, at most %.0f by the rule", n, most)
		}
		return n > 60000
	})
	s.free()
	var wait sync.WaitGroup
	for i, resp := range bodies {
		wait.Go(func() { wantBody(t, fmt.Sprint("client ", i), resp, bytesOf(0, odd)) })
	}
	wait.Wait()
	if most := bound(); 2*odd > most {
		t.Errorf("%d bytes in %v, at most %.0f by the rule", 2*odd, time.Since(began), most)
	}
	if n := s.p.downGov.Snapshot().GrantedBytes; n < 2*odd {
		t.Errorf("%d bytes granted, %d delivered", n, 2*odd)
	}
	s.still(patience)
}

// TestX2_ACrowdOfOneObject: many clients of one object cost the origin each piece once, and get every byte once.
func TestX2_ACrowdOfOneObject(t *testing.T) {
	const clients = 200
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) {
		set.DripLimit, set.Policy.RangesPerSession = clients, 4
		set.Policy.Sessions, set.Policy.PerPrincipal = 8, 8
		set.HoldLimit = 1
	})
	before := runtime.NumGoroutine()
	target := fmt.Sprintf("/f%d", odd)
	bodies := make([]*http.Response, clients)
	conns := make([]*client, clients)
	var wait sync.WaitGroup
	for i := range clients {
		conns[i] = s.dialFrom(fmt.Sprintf("127.0.%d.%d", 10+i/200, 1+i%200)).get(target)
		wait.Go(func() { bodies[i] = conns[i].begin("GET") })
	}
	wait.Wait()
	eventually(t, "all wait", func() bool { return s.left().Held == clients })
	s.fed(clients * 3 * drip.PieceBytes)
	firsts := len(l.got("Range: bytes=0-16383"))
	if pieces := len(l.got("Range:")) - firsts; firsts != clients || pieces > odd/drip.PieceBytes+1 {
		t.Errorf("the origin was asked for %d first pieces and %d others", firsts, pieces)
	}
	s.free()
	for i, resp := range bodies {
		wait.Go(func() { wantBody(t, fmt.Sprint("client ", i), resp, bytesOf(0, odd)) })
	}
	wait.Wait()
	s.still(patience)
	if n := s.metric(`arkvory_delivered_bytes_total{direction="download"}`); n != fmt.Sprint(clients*odd) {
		t.Errorf("%s bytes delivered, %d asked for", n, clients*odd)
	}
	for _, c := range conns {
		c.close()
	}
	eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+l.open() })
}

// navigation is what a browser sends when a link is followed; question is what the page's script sends.
var (
	navigation = []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64)", "Sec-Fetch-Mode: navigate", "Accept: text/html,*/*;q=0.8", "Accept-Language: ru"}
	question   = []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64)", "Sec-Fetch-Mode: same-origin", "Accept: application/json", "Arkvory-Waiting-Page: 1"}
)

// TestV4_ANavigationGetsThePage: with the facts of the queue, and then the file, asked for by the same address; the browser's other requests are fed as any client's.
func TestV4_ANavigationGetsThePage(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), signed)
	target := fmt.Sprintf("/f%d", odd)
	c := s.dial()
	a := c.get(target, navigation...).ok(503)
	h := a.Header
	if h.Get("Content-Type") != waitpage.ContentType || h.Get("Content-Security-Policy") != waitpage.ContentSecurityPolicy || h.Get("Retry-After") == "" ||
		h.Get("Cache-Control") != "no-store" || h.Get("Arkvory-Queue-Position") != "1" || h.Get("Arkvory-Queue-Ticket") == "" || a.Close {
		t.Errorf("%v", h)
	}
	if !strings.Contains(a.body, `lang="ru"`) || !strings.Contains(a.body, fmt.Sprintf("f%d", odd)) || !strings.Contains(a.body, waitpage.PollField) {
		t.Errorf("%.300s", a.body)
	}
	if n := s.metric("arkvory_waiting_pages_total"); n != "1" || s.p.drips.Snapshot().Started != 0 {
		t.Errorf("%s pages", n)
	}
	other := append([]string{"Sec-Fetch-Mode: no-cors"}, navigation[0])
	resp := s.dial().get(target, other...).begin("GET")
	if resp.StatusCode != 200 {
		t.Errorf("what is no navigation: %d", resp.StatusCode)
	}
	s.fed(1)
	s.free()
	wantBody(t, "what is no navigation", resp, bytesOf(0, odd))
	if a := c.get(target, navigation...).ok(200); a.body != bytesOf(0, odd) {
		t.Errorf("%d bytes", len(a.body))
	}
	s.still(patience)
}

// TestV4_QuestionsOfThePage: they take nothing, keep the place, and are answered as the download stands.
func TestV4_QuestionsOfThePage(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), signed)
	target := fmt.Sprintf("/f%d", odd)
	c := s.dial()
	c.get(target, navigation...).ok(503)
	ask := func(target string, status int) answer {
		t.Helper()
		a := c.get(target, question...).ok(status)
		if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Cache-Control") != "no-store" || a.Close {
			t.Errorf("%s: %v", target, a.Header)
		}
		return a
	}
	gets := len(l.got(""))
	for range 20 { // long beyond the no-show of who stops asking
		a := ask(target, 503)
		if a.reason(t) != "download_queued" || a.Header.Get("Arkvory-Queue-Position") != "1" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s %v", a.body, a.Header)
		}
		s.pass(20 * time.Second)
	}
	if left := s.left(); left.Waiting != 1 || left.Held != 0 || left.Active != 1 || len(l.got("")) != gets {
		t.Errorf("%+v, %d GETs", left, len(l.got(""))-gets)
	}
	ask("/small10", 200)
	s.free()
	for range 3 {
		if a := ask(target, 200); a.body != "{\"ready\":true}\n" || a.Header.Get("Arkvory-Queue-Ticket") != "" && s.left().Active != 0 {
			t.Errorf("%q %v", a.body, a.Header)
		}
	}
	if left := s.left(); left.Active != 0 || left.Held != 0 {
		t.Errorf("a question took a slot: %+v", left)
	}
	if a := c.get(target, navigation...).ok(200); a.body != bytesOf(0, odd) {
		t.Errorf("%d bytes", len(a.body))
	}
	s.still(patience)

	gone := newStage(t, l.url(), nil)
	gone.once("GET", target, navigation...)
	for range 3 {
		gone.once("GET", target, question...)
	}
	gone.pass(10 * time.Minute)
	if left := gone.left(); left.Waiting != 0 {
		t.Errorf("who stops asking stands in the queue: %+v", left)
	}
	gone.p.StartDrain()
	if a := gone.once("GET", target, question...); a.StatusCode != 503 || a.reason(t) != "draining" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestV4_AQuestionAboutWhatTheOriginRefuses is answered so that the browser goes to see the origin's own answer, and no page covers that.
func TestV4_AQuestionAboutWhatTheOriginRefuses(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 404, 410, 500} {
		l := newLibrary(t)
		l.on = func(k *call) bool {
			k.reply(status, "", map[bool]string{false: "own words"}[k.method == "HEAD"])
			return true
		}
		s := newStage(t, l.url(), nil)
		if a := s.once("GET", "/f400000", question...); a.StatusCode != 200 && a.StatusCode != status {
			t.Errorf("%d: the question got %d %s", status, a.StatusCode, a.body)
		}
		if a := s.once("GET", "/f400000", navigation...); a.StatusCode != status || a.body != "own words" {
			t.Errorf("%d: the navigation got %d %q", status, a.StatusCode, a.body)
		}
		if left := s.left(); left.Waiting != 0 {
			t.Errorf("%d: %+v", status, left)
		}
		s.close()
	}
}

// TestV4_HostileNames: what the address says is shown as text, whatever it is.
func TestV4_HostileNames(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), nil)
	for _, name := range []string{"%3Cimg%20src=x%20onerror=alert(1)%3E", "<script>alert(1)</script>", "%22%3E%3Cscript%3Ealert(1)//", "%00%0d%0aX-Evil:%201", "%e2%80%aefdp.exe",
		"%ff%fe", "%", "%zz", "..%2f..%2fetc%2fpasswd", "a%0d%0a%0d%0a<b>", strings.Repeat("%f0%9f%92%a3", 200), "&quot;'`", "{{7*7}}", ";a=b"} {
		target := "/d/" + name + "-400000"
		a := s.once("GET", target, navigation...)
		if a.StatusCode == 400 { // no request at all
			continue
		}
		text := strings.ToLower(a.body)
		if a.StatusCode != 503 || a.Header.Get("Content-Type") != waitpage.ContentType || a.Header.Get("X-Evil") != "" || strings.Contains(text, "<img") ||
			strings.Count(text, "<script") != 1 || strings.Contains(text, "<b>") || strings.ContainsAny(a.body, "\x00\u202e") || !utf8.ValidString(a.body) {
			t.Errorf("%q: %d %v", name, a.StatusCode, a.Header)
		}
	}
}

// TestX2_TheMomentsOfTheSlot: it comes before the first byte was fed, or while a piece is on its way; requests behind the first are answered in their turn.
func TestX2_TheMomentsOfTheSlot(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"first piece", "second piece"} {
		l := newLibrary(t)
		var s *stage
		there, goOn := make(chan struct{}), make(chan struct{})
		l.fields = "Connection: close\r\n" // and an origin that keeps no connection
		l.on = func(k *call) bool {
			k.over = true
			first, last, ranged := k.asked(odd)
			if ranged && k.method == "GET" && last != odd-1 && (first == 0) == (moment == "first piece") {
				close(there)
				<-goOn
			}
			return false
		}
		s = newStage(t, l.url(), nil)
		c := s.dial().send(request("GET", "/small10") + request("GET", fmt.Sprintf("/f%d", odd)) + request("GET", "/small20"))
		c.ok(200)
		if moment == "second piece" {
			s.fed(1)
			eventually(t, moment, func() bool {
				s.visit()
				select {
				case <-there:
					return true
				default:
					return false
				}
			})
		} else {
			<-there
		}
		s.free()
		close(goOn)
		if a := c.ok(200); a.body != bytesOf(0, odd) {
			t.Errorf("%s: %d bytes, not the object", moment, len(a.body))
		}
		if a := c.ok(200); a.body != bytesOf(0, 20) {
			t.Errorf("%s: what follows: %q", moment, a.body)
		}
		s.still(patience)
		s.close()
	}
}

// TestX2_P6_AClientThatLeavesBeforeTheHead has left and was not refused: the origin is silent when it is asked for the first piece.
func TestX2_P6_AClientThatLeavesBeforeTheHead(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	asked := make(chan struct{}, 64)
	l.on = func(k *call) bool {
		if k.method != "GET" || k.field("Range") == "" {
			return false
		}
		asked <- struct{}{}
		k.closed()
		return true
	}
	s := newStage(t, l.url(), nil)
	var all []*client
	for i := range dripBegins + 4 { // those behind the turn leave as well
		all = append(all, s.dialFrom(fmt.Sprintf("127.0.4.%d", i+1)).get(fmt.Sprintf("/f%d", odd)))
	}
	for range dripBegins {
		<-asked
	}
	eventually(t, "all are there", func() bool { return s.p.drips.Snapshot().Joined == len(all) })
	for _, c := range all {
		c.close()
	}
	within(t, twoTicks, "they are gone", func() bool { return s.p.drips.Snapshot().Joined == 0 && s.p.Busy() == 0 && s.left().Busy == 0 })
	if n := s.metric(`arkvory_client_errors_total{reason="client_gone"}`); n != fmt.Sprint(len(all)) {
		t.Errorf("%s of %d have left", n, len(all))
	}
	if n := s.metric(`arkvory_requests_total{outcome="download_queued"}`); n != "0" {
		t.Errorf("%s were refused", n)
	}
	s.pass(10 * time.Minute)
	s.still(twoTicks)
}

// TestX2_O2_NeverTwoObjectsInOneBody: many clients, of whom some leave, while the object, the policy and the slots change all the time.
func TestX2_O2_NeverTwoObjectsInOneBody(t *testing.T) {
	t.Parallel()
	const clients, rounds = 24, 4
	l := newLibrary(t)
	l.set(func() { l.etag, l.seed = `"0"`, 0 })
	s := newStage(t, l.url(), func(set *Settings) { set.DripLimit, set.Policy.IdleFor = 256, time.Second })
	stop := make(chan struct{})
	var changes, all sync.WaitGroup
	changes.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := byte(1); ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.visit()
				if n%8 == 0 {
					l.set(func() { l.etag, l.seed = fmt.Sprintf(`"%d"`, n/8%4), n/8%4 })
				}
			}
		}
	})
	unflip := s.flip()
	var whole, broken, refused atomic.Int64
	for i := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(i)))
			for range rounds {
				c := s.dialFrom(fmt.Sprintf("127.0.5.%d", i+1)).get(fmt.Sprintf("/f%d", odd))
				resp := c.begin("GET")
				if resp.StatusCode != 200 {
					refused.Add(1)
					c.close()
					continue
				}
				seed, _ := strconv.Atoi(strings.Trim(resp.Header.Get("ETag"), `"`))
				limit := int64(odd)
				if random.IntN(3) == 0 {
					limit = random.Int64N(odd)
				}
				got, err := io.ReadAll(io.LimitReader(resp.Body, limit))
				if want := bytesOf(byte(seed), odd); string(got) != want[:len(got)] || err == nil && int64(len(got)) != limit {
					t.Errorf("%d bytes of object %d differ, %v", len(got), seed, err)
				}
				if err == nil {
					whole.Add(1)
				} else {
					broken.Add(1)
				}
				c.close()
			}
		})
	}
	s.free()
	all.Wait()
	unflip()
	close(stop)
	changes.Wait()
	t.Logf("%d whole or as much as they wanted, %d cut, %d refused; %+v", whole.Load(), broken.Load(), refused.Load(), s.p.drips.Snapshot())
	if whole.Load() == 0 {
		t.Error("nobody got anything")
	}
	s.pass(20 * time.Minute)
	s.still(patience)
}

package proxy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/queue"
)

// oneSlot leaves room for one session.
func oneSlot(s *Settings) {
	s.Policy.Sessions, s.Policy.PerPrincipal, s.Policy.Reserve = 1, 1, 0
}

// occupy takes a slot until the returned client leaves.
func (b *bench) occupy(target string) *client {
	b.t.Helper()
	before := b.left().Active
	c := b.dial().get(target)
	c.begin("GET")
	eventually(b.t, "the slot is taken", func() bool { return b.left().Active == before+1 })
	return c
}

// holding is the session of somebody else.
func holding() queue.Ask {
	return queue.Ask{Key: queue.Key{Principal: "somebody", Object: "else"}, Class: queue.Release, SizeBytes: 1 << 30}
}

const id = "Arkvory-Download-Id: d1"

func TestO1_FreeSlotCostsNoExtraRequest(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	for i := range 3 {
		if a := b.once("GET", fmt.Sprintf("/f%d/1000000", i)); len(a.body) != 1000000 || a.Header.Get("Arkvory-Download-Class") != "release" {
			t.Errorf("%d bytes, class %q", len(a.body), a.Header.Get("Arkvory-Download-Class"))
		}
	}
	if n := o.requests(); len(n) != 3 || o.count("GET") != 3 {
		t.Errorf("the origin got %q", n)
	}
	b.quiet(twoTicks) // completed sessions give their slots back at once
	eventually(t, "three are completed", func() bool { return b.metric(`arkvory_download_session_events_total{event="completed"}`) == "3" })
}

func TestO1_BusyQueueAsksByHeadAndPollsCostNothing(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	for range 5 {
		if a := b.once("GET", "/b/1000000", id); a.StatusCode != 503 || a.reason(t) != "download_queued" {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	if o.count("HEAD /b") != 1 || o.count("GET /b") != 0 {
		t.Errorf("the origin got %q", o.requests())
	}
	holder.close()
	b.quiet(twoTicks)
	eventually(t, "the poll that finds its slot", func() bool { return b.once("GET", "/b/1000000", id).StatusCode == 200 })
	if o.count("HEAD /b") != 1 || o.count("GET /b") != 1 {
		t.Errorf("the origin got %q", o.requests())
	}
}

func TestO1_WhereHeadIsRefusedAShortRangeTells(t *testing.T) {
	t.Parallel()
	for _, status := range []int{403, 405} {
		ranged := 0
		o := newOrigin(t, func(k *call) {
			switch {
			case k.method == "HEAD":
				k.send(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", status))
			case k.field("Range") == "bytes=0-0":
				ranged++
				k.send("HTTP/1.1 206 X\r\nContent-Range: bytes 0-0/500000\r\nETag: \"e\"\r\nContent-Length: 1\r\n\r\nx")
			default:
				k.reply(200, "", strings.Repeat("x", 500000))
			}
		})
		b := start(t, o.url(), oneSlot)
		g, _ := b.p.queue.Admit(holding())
		defer g.Abandon()
		for range 3 {
			if a := b.once("GET", "/b?X-Amz-Signature=1", id); a.StatusCode != 503 || a.reason(t) != "download_queued" {
				t.Errorf("%d: %d %s", status, a.StatusCode, a.body)
			}
		}
		if o.count("HEAD /b") != 1 || o.count("GET /b") != 1 || ranged != 1 {
			t.Errorf("%d: the origin got %q", status, o.requests())
		}
	}
}

func TestO3_I2_RefusalsOfTheUpstreamTakeNoSlot(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		var status int
		_, _ = fmt.Sscanf(k.target, "/%d", &status)
		body := strings.Repeat("e", 300*kib)
		switch {
		case status == 304:
			k.send("HTTP/1.1 304 X\r\nETag: \"e\"\r\n\r\n")
		case k.method == "HEAD":
			k.send(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n", status, len(body)))
		default:
			k.reply(status, "", body)
		}
	})
	for _, full := range []bool{false, true} {
		b := start(t, o.url(), oneSlot)
		if full {
			g, _ := b.p.queue.Admit(holding())
			defer g.Abandon()
		}
		for _, status := range []int{401, 403, 404, 304, 416, 500} {
			c := b.dial()
			a := c.get("/"+strconv.Itoa(status), "If-None-Match: \"e\"", "Authorization: Basic d3Jvbmc6").answer()
			if a.StatusCode != status || a.err != nil {
				t.Errorf("full %v: %d instead of %d", full, a.StatusCode, status)
			}
			c.close()
		}
		s := b.p.queue.Snapshot()
		if want := map[bool]uint64{false: 0, true: 1}[full]; s.Counts.Started != want || s.WaitingTotal() != 0 {
			t.Errorf("full %v: %d sessions started, %d wait", full, s.Counts.Started, s.WaitingTotal())
		}
	}
}

func TestQ10_ProtocolClientIsToldItsPlace(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	b.once("GET", "/first/1000000", "Arkvory-Download-Id: other", "Arkvory-Download-Class: bulk")
	c := b.dial()
	a := c.get("/b/1000000", id, "Arkvory-Download-Class: bulk").ok(503)
	var f struct {
		Error, Reason, StartsAt, DownloadClass string
		RetryAfterSeconds, QueuePosition       int
		StartsWindow                           struct{ Earliest, Latest string }
	}
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatal(err)
	}
	h := a.Header
	if f.Error != "busy" || f.Reason != "download_queued" || h.Get("Retry-After") != strconv.Itoa(f.RetryAfterSeconds) || f.RetryAfterSeconds < 1 {
		t.Errorf("%s\n%v", a.body, h)
	}
	if h.Get("Arkvory-Queue-Position") != "2" || f.QueuePosition != 2 || h.Get("Arkvory-Download-Class") != "bulk" || f.DownloadClass != "bulk" {
		t.Errorf("%s\n%v", a.body, h)
	}
	if v := h.Get("Arkvory-Starts-At"); v != "" {
		if _, err := time.Parse(time.RFC3339, v); err != nil || v != f.StartsAt || h.Get("Arkvory-Starts-Window") != f.StartsWindow.Earliest+"/"+f.StartsWindow.Latest {
			t.Errorf("%s\n%v", a.body, h)
		}
	} else if f.StartsAt != "" {
		t.Errorf("the body knows more than the fields: %s", a.body)
	}
	if h.Get("Content-Type") != "application/json" || a.Close {
		t.Errorf("%v", h)
	}
	c.get("/small/10").ok(200) // the connection goes on
}

func TestQ11_PlainClientIsHeldThenAdmitted(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	c := b.dial().get("/b/1000000")
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
	if o.count("GET /b") != 0 || o.count("HEAD /b") != 1 {
		t.Errorf("the origin got %q", o.requests())
	}
	holder.close()
	if a := c.ok(200); len(a.body) != 1000000 {
		t.Errorf("%d bytes", len(a.body))
	}
	b.quiet(twoTicks)
}

func TestQ11_HoldEndsInARefusalAndHoldLimitRefusesAtOnce(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Hold, s.HoldLimit = 2*time.Second, 1 })
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	c := b.dial().get("/b/1000000")
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
	if a := b.once("GET", "/c/1000000"); a.StatusCode != 503 || b.left().Held != 1 {
		t.Errorf("beyond the limit: %d, %d held", a.StatusCode, b.left().Held)
	}
	if a := c.ok(503); a.reason(t) != "download_queued" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%s", a.body)
	}
	c.get("/b/1000000") // back early: keeps its place and is held again (X1b)
	eventually(t, "it is held again", func() bool { return b.left().Held == 1 })
	holder.close()
	c.ok(200)
}

func TestQ11_HeldRequestDoesNotDelayThePipelinedAnswerBeforeIt(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	c := b.dial().send(request("GET", "/small/10") + request("GET", "/big/1000000") + request("GET", "/small/20"))
	if a := c.ok(200); len(a.body) != 10 { // arrives while the second one is held
		t.Errorf("%d bytes", len(a.body))
	}
	eventually(t, "the second one is held", func() bool { return b.left().Held == 1 })
	holder.close()
	if n := len(c.ok(200).body) + len(c.ok(200).body); n != 1000020 {
		t.Errorf("%d bytes", n)
	}
}

func TestQ1_RangesOfOneSessionShareItsSlot(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Policy.RangesPerSession = 2; s.Policy.IdleFor = 30 * time.Second })
	ask := func(r string) *client { return b.dial().get("/a/1000000000", id, "Range: bytes="+r) }
	r1, r2 := ask("0-499999999"), ask("500000000-999999998")
	r1.begin("GET")
	r2.begin("GET")
	if s := b.left(); s.Active != 1 {
		t.Errorf("%d sessions", s.Active)
	}
	r3 := ask("1000-2000") // waits for one of the two
	eventually(t, "the third one is held", func() bool { return b.left().Held == 1 })
	r1.close()
	if a := r3.ok(206); len(a.body) != 1001 {
		t.Errorf("%d bytes", len(a.body))
	}
	r2.close()
	b.quiet(twoTicks)
}

func TestQ13_CompletionFreesTheSlotAndAPartDoesNot(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Policy.IdleFor = 2 * time.Second })
	c := b.dial()
	c.get("/a/1000000", id, "Range: bytes=-100000").ok(206) // the tail first, as zip readers do
	c.get("/a/1000000", id, "Range: bytes=0-499999").ok(206)
	if n := b.left().Active; n != 1 {
		t.Fatalf("%d active in the middle", n)
	}
	c.get("/a/1000000", id, "Range: bytes=500000-999999").ok(206)
	b.quiet(twoTicks)
	eventually(t, "completed", func() bool { return b.metric(`arkvory_download_session_events_total{event="completed"}`) == "1" })

	c.get("/b/1000000", id, "Range: bytes=0-499999").ok(206)
	if n := b.left().Active; n != 1 {
		t.Fatalf("%d active in the pause", n)
	}
	b.quiet(patience) // Q14: the pause frees it
	eventually(t, "idle", func() bool { return b.metric(`arkvory_download_session_events_total{event="idle"}`) == "1" })
}

func TestQ3_SharedAdmitsEveryRequestByItself(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { s.Policy.Strategy = queue.Shared })
	c := b.dial().get("/a/1000000000")
	c.begin("GET")
	if l := b.left(); l.Active != 0 || l.DownActive != 1 {
		t.Errorf("%+v", l)
	}
	c.close()
	b.quiet(twoTicks)
}

func TestQ17_FullQueueRefuses(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Policy.QueueLimit, s.Policy.QueuePerPrincipal = 1, 1 })
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	for _, fields := range [][]string{{id}, {}} {
		if a := b.once("GET", "/b/1000000", fields...); a.StatusCode != 503 || a.reason(t) != "queue_full" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if s := b.p.queue.Snapshot(); s.WaitingTotal() != 0 {
		t.Errorf("%d wait", s.WaitingTotal())
	}
}

func TestB1_BytesOfASessionArePaced(t *testing.T) {
	t.Parallel()
	o := store(t)
	const rate = 4 * mib
	b := start(t, o.url(), func(s *Settings) { s.DownloadTotal = bucket.Limit{BytesPerSecond: rate} })
	began := time.Now()
	if a := b.once("GET", "/a/4000000"); len(a.body) != 4000000 {
		t.Errorf("%d bytes", len(a.body))
	}
	if took, least := time.Since(began).Seconds(), (4000000.0-rate/10)/rate; took < least {
		t.Errorf("4 MB took %.3f s, the bound says at least %.3f", took, least)
	}
}

func TestX1_RefusalsSpeakTheClientsLanguage(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Hold = 0 })
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	for _, c := range []struct {
		agent, target string
		status        int
		body          string
	}{
		{"skopeo/1.9", "/v2/x/blobs/1000000", 429, `{"errors":[{"code":"TOOMANYREQUESTS"`},
		{"docker/24", "/v2/x/blobs/1000001", 503, `{"errors":[{"code":"TOOMANYREQUESTS"`},
		{"curl/8", "/v2/x/blobs/1000002", 503, `{"errors":[{"code":"TOOMANYREQUESTS"`},
		{"git-lfs/3", "/lfs/1000003", 429, `"message":`},
		{"curl/8", "/x/1000004", 503, `{"error":"busy","reason":"download_queued"`},
	} {
		a := b.once("GET", c.target, "User-Agent: "+c.agent)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.body) || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %s", c.agent, c.target, a.StatusCode, a.body)
		}
	}
	if a := b.once("GET", "/v2/x/blobs/1000000", "User-Agent: skopeo/1.9", id); a.StatusCode != 503 {
		t.Errorf("a protocol client got %d", a.StatusCode)
	}
}

func TestX1_SteeringIsNeverQueued(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		if k.method == "HEAD" {
			k.send("HTTP/1.1 200 X\r\nContent-Length: 1000000\r\n\r\n")
			return
		}
		k.reply(200, "", strings.Repeat("m", 1000000))
	})
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Downloads.Capacity, s.Downloads.PerPrincipal = 1, 1 })
	g, _ := b.p.queue.Admit(holding())
	defer g.Abandon()
	place, err := b.p.down.Acquire("somebody", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Release()
	for _, target := range []string{"/v2/x/manifests/latest", "/v2/token?service=a", "/r.git/info/refs?service=git-upload-pack", "/dists/stable/InRelease", "/simple/pip/"} {
		if a := b.once("GET", target); a.StatusCode != 200 || len(a.body) != 1000000 {
			t.Errorf("%s: %d", target, a.StatusCode)
		}
	}
	if a := b.once("HEAD", "/any/1000000"); a.StatusCode != 200 {
		t.Errorf("HEAD: %d", a.StatusCode)
	}
	if len(o.requests()) != 6 {
		t.Errorf("the origin got %q", o.requests())
	}
}

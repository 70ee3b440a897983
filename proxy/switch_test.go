package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// change puts overrides in force as an operator does.
func (b *bench) change(overrides string) admin.SettingsDocument {
	b.t.Helper()
	body := fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, b.p.desk.Current().Revision, overrides)
	doc, err := b.p.desk.Change(context.Background(), body, "token")
	if err != nil {
		b.t.Fatalf("%s: %v", overrides, err)
	}
	return doc
}

func TestQ11_S3_HeldClientLeavesForPerRequestAdmission(t *testing.T) {
	t.Parallel()
	for name, overrides := range map[string]string{"shared": `{"strategy":"shared"}`, "threshold": `{"sessionMinBytes":1000000}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := store(t)
			b := start(t, o.url(), oneSlot)
			holder := b.occupy("/a/1000000000")
			c := b.dial().get("/b/1000000")
			eventually(t, "it is held", func() bool { return b.left().Held == 1 })
			b.change(overrides)
			if a := c.ok(200); len(a.body) != 1000000 || a.Header.Get("Arkvory-Download-Class") != "" {
				t.Errorf("%d bytes, class %q", len(a.body), a.Header.Get("Arkvory-Download-Class"))
			}
			if s := b.left(); s.Active != 1 || s.Waiting != 0 {
				t.Errorf("the switch touched sessions: %+v", s)
			}
			holder.close()
			b.quiet(twoTicks)
		})
	}
}

func TestQ3_S3_StrategyIsSwitchedThereAndBack(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 503 || a.reason(t) != "download_queued" {
		t.Fatalf("ordered: %d %s", a.StatusCode, a.body)
	}
	if doc := b.change(`{"strategy":"shared"}`); doc.Admission != "per-request" {
		t.Errorf("admission %s", doc.Admission)
	}
	placed := b.dial().get("/c/1000000000", "Arkvory-Download-Id: d2")
	placed.begin("GET")
	if s := b.left(); s.DownActive != 1 || s.Active != 1 {
		t.Errorf("shared: %+v", s)
	}
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 200 {
		t.Errorf("shared: %d", a.StatusCode)
	}
	for _, strategy := range []string{"smallest-first", "fair-sojourn", "ordered"} {
		b.change(`{"strategy":"` + strategy + `"}`)
		if s := b.p.sessionsDocument(); s.Strategy != strategy || s.Admission != "sessions" {
			t.Errorf("readiness says %s, %s", s.Strategy, s.Admission)
		}
		a := b.once("GET", "/b/1000000", id)
		if a.StatusCode != 503 || a.reason(t) != "download_queued" || a.Header.Get("Arkvory-Queue-Position") != "1" {
			t.Errorf("%s: %d %s", strategy, a.StatusCode, a.body)
		}
	}
	placed.close()
	eventually(t, "the place is given back", func() bool { return b.left().DownActive == 0 })
}

func TestQ3_S3_ActiveSessionGoesOnInItsSlotUnderAnotherPolicy(t *testing.T) {
	t.Parallel()
	for name, overrides := range map[string]string{"shared": `{"strategy":"shared"}`, "threshold": `{"sessionMinBytes":1000000}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := store(t)
			b := start(t, o.url(), func(s *Settings) {
				oneSlot(s)
				s.Policy.IdleFor, s.Policy.RangesPerSession = time.Minute, 1
				s.Downloads.Capacity, s.Downloads.PerPrincipal, s.Downloads.Timeout = 1, 1, 100*time.Millisecond
			})
			place, err := b.p.down.Acquire("somebody", nil) // whoever needs a place is refused
			if err != nil {
				t.Fatal(err)
			}
			defer place.Release()
			c := b.dial()
			c.get("/a/1000000", id, "Range: bytes=0-499999").ok(206)
			b.change(overrides)
			if a := b.once("GET", "/b/1000000"); a.StatusCode != 503 || a.reason(t) != "busy" {
				t.Errorf("another download: %d %s", a.StatusCode, a.body)
			}
			if a := c.get("/a/1000000", id, "Range: bytes=500000-999999").ok(206); a.Header.Get("Arkvory-Download-Class") != "release" {
				t.Errorf("%v", a.Header)
			}
			eventually(t, "completed", func() bool { return b.metric(`arkvory_download_session_events_total{event="completed"}`) == "1" })
			if s := b.left(); s.Active != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestQ2_S3_MoreSlotsAdmitTheHeldAtOnce(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	c := b.dial().get("/b/1000000")
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
	b.change(`{"sessions":2}`)
	if a := c.ok(200); a.Header.Get("Arkvory-Download-Class") != "release" {
		t.Errorf("%v", a.Header)
	}
	b.change(`{}`) // one slot again: nobody loses his
	if a := b.once("GET", "/c/1000000", id); a.StatusCode != 503 {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestQ11_ChangedTwiceIsHeldOnce: a request that goes back to the queue after it left has what is left of its hold.
func TestQ11_ChangedTwiceIsHeldOnce(t *testing.T) {
	t.Parallel()
	flip := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		if k.method == "GET" && strings.HasPrefix(k.target, "/b") {
			<-flip // the policy changes again while the GET is under way
		}
		k.send("HTTP/1.1 200 X\r\nETag: \"v1\"\r\nContent-Length: 1000000000\r\n\r\n")
		if k.method == "GET" {
			k.closed()
		}
	})
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Hold = 6 * time.Second })
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	c := b.dial().get("/b/1000000000")
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
	began := time.Now()
	eventually(t, "most of the hold is over", func() bool { return time.Since(began) > 4*time.Second })
	b.change(`{"strategy":"shared"}`)
	eventually(t, "it left the queue", func() bool { return o.count("GET /b") == 1 })
	b.change(`{}`)
	close(flip)
	if a := c.ok(503); a.reason(t) != "download_queued" {
		t.Errorf("%s", a.body)
	}
	if took := time.Since(began); took > 9*time.Second { // held anew it would be 10
		t.Errorf("held for %v in all", took)
	}
}

func TestQ16_YieldingClientIsToldItsPlaceAndComesBack(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	began := time.Now()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		oneSlot(s)
		s.Policy.IdleFor = time.Minute
		s.clock = func() time.Duration { return time.Since(began) + time.Duration(jump.Load()) }
	})
	const bulk = "Arkvory-Download-Class: bulk"
	c := b.dial()
	c.get("/a/1000000", id, bulk, "Range: bytes=0-499999").ok(206)
	running := b.dial().get("/a/1000000", id, bulk, "Range: bytes=0-99") // keeps the session from its pause
	running.ok(206)
	for range 3 { // its slot is more than a minute old, its pauses are short
		jump.Add(int64(25 * time.Second))
		running.get("/a/1000000", id, bulk, "Range: bytes=0-99").ok(206)
	}
	head := b.dial().get("/b/1000000") // of a higher class
	eventually(t, "it is held", func() bool { return b.left().Held == 1 })
	var a answer
	eventually(t, "the lower one is asked to make way", func() bool {
		a = c.get("/a/1000000", id, bulk, "Range: bytes=500000-500099").answer()
		return a.StatusCode == 503
	})
	if a.reason(t) != "download_queued" || !strings.Contains(a.body, "made way") || a.Header.Get("Arkvory-Queue-Position") != "2" && a.Header.Get("Arkvory-Queue-Position") != "1" ||
		a.Header.Get("Retry-After") == "" || a.Header.Get("Arkvory-Download-Class") != "bulk" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if got := head.ok(200); len(got.body) != 1000000 {
		t.Errorf("%d bytes", len(got.body))
	}
	eventually(t, "its turn comes again", func() bool {
		return c.get("/a/1000000", id, bulk, "Range: bytes=500000-999999").answer().StatusCode == 206
	})
	eventually(t, "both are counted", func() bool {
		return b.metric(`arkvory_download_session_events_total{event="completed"}`) == "2" && b.metric(`arkvory_download_session_events_total{event="yielded"}`) == "1"
	})
	if !strings.Contains(b.log.String(), `"reason":"yielded"`) || b.p.sessionsDocument().Yielded != 1 {
		t.Errorf("the log and readiness do not tell of it:\n%s", b.log.String())
	}
}

func TestV2_EveryEndOfASessionHasItsEventAndItsWord(t *testing.T) {
	words := map[string]bool{}
	for reason := range queue.Reasons {
		if endEvents[reason] == 0 { // which is queued, the beginning
			t.Errorf("%v has no event of its own", queue.Reason(reason))
		}
		if endNames[reason] == "" || words[endNames[reason]] {
			t.Errorf("%v has the word %q of another", queue.Reason(reason), endNames[reason])
		}
		words[endNames[reason]] = true
	}
	if !words["yielded"] {
		t.Errorf("words are %v", words)
	}
}

// desk serves the admin listener of the bench and returns the address of its settings.
func (b *bench) desk() string {
	b.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	s := admin.New(admin.Settings{Token: "s3cret-operator-token"}, b.p.Sources(time.Now()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	b.t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-ended); err != nil {
			b.t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// tell sends a request to the desk on a connection of its own.
func tell(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer s3cret-operator-token")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var doc map[string]any
	if err := json.NewDecoder(response.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, doc
}

func TestS2_TwoRacingOperatorsOverHTTP(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	url := b.desk()
	var wait sync.WaitGroup
	answers := make(chan [2]any, 2)
	for i := range 2 {
		wait.Go(func() {
			status, doc := tell(t, "PUT", url+admin.SettingsPath, fmt.Sprintf(`{"expectedRevision":0,"overrides":{"sessions":%d}}`, i+5))
			answers <- [2]any{status, doc["revision"]}
		})
	}
	wait.Wait()
	one, other := <-answers, <-answers
	if one[0] == 409 {
		one, other = other, one
	}
	if one != [2]any{200, 1.0} || other != [2]any{409, 1.0} {
		t.Errorf("%v and %v", one, other)
	}
	if status, doc := tell(t, "PUT", url+admin.SettingsPath, `{"expectedRevision":1,"overrides":{"sessions":0}}`); status != 400 || doc["field"] != "sessions" || doc["rule"] == nil || doc["example"] == nil {
		t.Errorf("%d %v", status, doc)
	}
	status, doc := tell(t, "GET", url+admin.SettingsPath, "")
	want := float64(b.p.queue.Policy().Sessions)
	if status != 200 || doc["effective"].(map[string]any)["sessions"] != want || doc["persisted"] != false || doc["updatedBy"] != "token" || want < 5 {
		t.Errorf("%d %v, the queue has %v", status, doc, want)
	}
	_, ready := tell(t, "GET", url+"/health/ready", "")
	sessions := ready["transfers"].(map[string]any)["downloads"].(map[string]any)["sessions"].(map[string]any)
	if sessions["settings"].(map[string]any)["revision"] != 1.0 || sessions["settings"].(map[string]any)["sessions"] != want || sessions["admission"] != "sessions" {
		t.Errorf("%v", sessions)
	}
	text := b.log.String()
	if strings.Count(text, "download settings changed") != 1 || !strings.Contains(text, `"by":"token"`) || !strings.Contains(text, `"overrides":{"sessions":`) ||
		strings.Contains(text, "s3cret") {
		t.Errorf("the audit:\n%s", text)
	}
}

func TestV5_DecisionLogIsWholeAfterTheEnd(t *testing.T) {
	t.Parallel()
	var log record
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); s.Decisions = &log })
	b.once("GET", "/secret-name/1000000", id)
	b.quiet(patience)
	holder := b.occupy("/a/1000000000")
	b.once("GET", "/b/1000000", id)
	b.change(`{"strategy":"smallest-first"}`)
	holder.close()
	b.quiet(twoTicks)
	b.close()
	report, err := replay.Replay(strings.NewReader(log.String()))
	if err != nil || report.Differences != 0 || report.Starts[queue.Release] != 2 {
		t.Fatalf("the log does not replay: %v, %+v", err, report)
	}
	if strings.Contains(log.String(), "secret-name") {
		t.Error("the log holds a name")
	}
	if problem := b.p.decisionProblem(); problem != "" {
		t.Errorf("problem %q", problem)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/var/secret", Err: syscall.ENOSPC}
}

func TestV5_ADecisionLogThatCannotBeWrittenIsToldOnceAndStopsNothing(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) { s.Decisions = full{} })
	for range 3 {
		if a := b.once("GET", "/a/1000000"); a.StatusCode != 200 {
			t.Fatalf("%d", a.StatusCode)
		}
	}
	eventually(t, "it is logged", func() bool { return strings.Contains(b.log.String(), "the decision log ends here") })
	problem := b.p.Sources(time.Now()).Files().DecisionLog.Problem
	if problem != "cannot write the decision log: no space left on device" {
		t.Errorf("problem %q", problem)
	}
	b.close()
	if n := strings.Count(b.log.String(), "decision log ends"); n != 1 || strings.Contains(b.log.String(), "/var/secret") {
		t.Errorf("%d lines:\n%s", n, b.log.String())
	}
}

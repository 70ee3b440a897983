package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/quota"
	"github.com/arkvory/sidecar/queue"
)

// calendar is a wall clock that the test moves; it begins on a Wednesday at noon UTC.
type calendar struct{ seconds atomic.Int64 }

var wednesday = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

func (c *calendar) now() time.Time {
	return wednesday.Add(time.Duration(c.seconds.Load()) * time.Second)
}

func (c *calendar) pass(d time.Duration) { c.seconds.Add(int64(d / time.Second)) }

// quotaBench is a proxy on such a clock before a store of any files, with live overrides.
func quotaBench(t *testing.T, overrides string, change func(*Settings)) (*bench, *origin, *calendar) {
	t.Helper()
	o, days := store(t), &calendar{}
	b := start(t, o.url(), func(s *Settings) {
		s.wall = days.now
		if change != nil {
			change(s)
		}
	})
	b.change(overrides)
	return b, o, days
}

// over reports whether a principal is over a quota.
func (b *bench) over(principal string) bool {
	_, over := b.p.quotas.Over(principal, b.p.wallNow())
	return over
}

const me = "addr:127.0.0.1"

// settled is once, with everything settled: the last bytes are counted a moment after their client has them.
func (b *bench) settled(method, target string, fields ...string) answer {
	b.t.Helper()
	a := b.once(method, target, fields...)
	eventually(b.t, "the request is over", func() bool { return b.p.Busy() == 0 })
	return a
}

// counted waits until nothing is left of any request, and no account is open.
func (b *bench) counted() {
	b.t.Helper()
	b.quiet(patience)
	eventually(b.t, "no account is open", func() bool { return b.p.quotas.Snapshot(b.p.wallNow()).Open == 0 })
}

// refusedForQuota fails the test unless the answer is a refusal over quota in our JSON until that moment.
func refusedForQuota(t *testing.T, a answer, status int, resetsAt time.Time, retry int) {
	t.Helper()
	var f struct {
		Error, Reason, Message, QuotaResetsAt string
		Status, RetryAfterSeconds             int
	}
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("%d, body %.200q: %v", a.StatusCode, a.body, err)
	}
	if a.StatusCode != status || f.Status != status || f.Error != "busy" || f.Reason != "quota_exceeded" || f.Message == "" ||
		f.QuotaResetsAt != resetsAt.Format(time.RFC3339) || f.RetryAfterSeconds != retry || a.Header.Get("Retry-After") != strconv.Itoa(retry) {
		t.Errorf("%d, Retry-After %s: %s; want %d until %v", a.StatusCode, a.Header.Get("Retry-After"), a.body, status, resetsAt)
	}
}

var thursday = time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC)

func TestX9_OverQuotaNewDownloadsAreRefusedUntilTheDayEnds(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{"plain": nil, "protocol": {id}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, o, days := quotaBench(t, `{"quotas":{"bytesPerDay":1000000}}`, nil)
			if a := b.settled("GET", "/a/1000000", fields...); a.StatusCode != 200 || len(a.body) != 1000000 {
				t.Fatalf("%d, %d bytes", a.StatusCode, len(a.body))
			}
			refusedForQuota(t, b.settled("GET", "/b/1000000", fields...), 503, thursday, 3600)
			refusedForQuota(t, b.settled("GET", "/c/100000", fields...), 503, thursday, 3600) // large, and no session
			if a := b.settled("GET", "/d/1000", fields...); a.StatusCode != 200 {             // metadata is never kept back
				t.Errorf("small: %d %s", a.StatusCode, a.body)
			}
			if a := b.settled("HEAD", "/b/1000000", fields...); a.StatusCode != 200 {
				t.Errorf("HEAD: %d", a.StatusCode)
			}
			days.pass(11*time.Hour + 59*time.Minute + 50*time.Second)
			refusedForQuota(t, b.settled("GET", "/b/1000000", fields...), 503, thursday, 10)
			if n := b.metric(`arkvory_quota_refusals_total{period="day"}`); n != "3" {
				t.Errorf("%s refusals", n)
			}
			if n := b.metric(`arkvory_requests_total{outcome="quota_exceeded"}`); n != "3" {
				t.Errorf("%s requests ended so", n)
			}
			if over, all := b.metric("arkvory_quota_principals_over"), b.metric("arkvory_quota_principals"); over != "1" || all != "1" {
				t.Errorf("%s of %s are over", over, all)
			}
			days.pass(10 * time.Second) // the next day
			if a := b.settled("GET", "/b/1000000", fields...); a.StatusCode != 200 {
				t.Errorf("the next day: %d %s", a.StatusCode, a.body)
			}
			var a answer // that day has its own count, once the tick has begun it
			eventually(t, "the next day is used up", func() bool { a = b.settled("GET", "/b/1000000", fields...); return a.StatusCode != 200 })
			refusedForQuota(t, a, 503, thursday.AddDate(0, 0, 1), 3600)
			b.counted()
			if s := b.left(); s.Waiting != 0 {
				t.Errorf("a refused download stands in the queue: %+v", s)
			}
			if n := o.count("GET /b"); n < 1 {
				t.Errorf("the origin got %q", o.requests())
			}
		})
	}
}

func TestX9_TheRefusalFitsEveryClient(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerWeek":1000000}}`, nil)
	if a := b.settled("GET", "/a/1000000"); a.StatusCode != 200 {
		t.Fatalf("%d", a.StatusCode)
	}
	monday := time.Date(2026, 12, 7, 0, 0, 0, 0, time.UTC)
	for _, one := range []struct {
		agent       string
		status      int
		contentType string
		oci         bool
	}{
		{"curl/8.5", 503, "application/json", false}, {"pip/24", 503, "application/json", false}, {"Mozilla/5.0 Firefox/140", 503, "application/json", false},
		{"docker/27.1", 503, "application/json", true}, {"skopeo/1.15", 429, "application/json", true}, {"containerd/2.0", 429, "application/json", true},
		{"git-lfs/3.5", 429, "application/vnd.git-lfs+json", false}, {"unheard-of/1", 503, "application/json", false},
	} {
		for _, target := range []string{"/b/1000000", "/c/100000"} {
			a := b.settled("GET", target, "User-Agent: "+one.agent)
			if a.Header.Get("Content-Type") != one.contentType {
				t.Errorf("%s: %s", one.agent, a.Header.Get("Content-Type"))
			}
			if !one.oci {
				refusedForQuota(t, a, one.status, monday, 3600)
				continue
			}
			var list struct {
				Errors []struct {
					Code, Message string
					Detail        struct{ Reason, QuotaResetsAt string }
				}
			}
			if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.StatusCode != one.status || len(list.Errors) != 1 || list.Errors[0].Code != "TOOMANYREQUESTS" ||
				list.Errors[0].Message == "" || list.Errors[0].Detail.Reason != "quota_exceeded" || list.Errors[0].Detail.QuotaResetsAt != monday.Format(time.RFC3339) {
				t.Errorf("%s: %d %s, %v", one.agent, a.StatusCode, a.body, err)
			}
		}
	}
	if a := b.settled("GET", "/b/1000000", "User-Agent: skopeo/1.15", id); a.StatusCode != 503 { // a protocol client, whatever its name
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	b.counted()
}

func TestX9_RunningDownloadsFinish(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":400000}}`, nil)
	c := b.dial() // one connection: a client that leaves gives its slot up
	ranges := func(from, to int) []string { return []string{id, fmt.Sprintf("Range: bytes=%d-%d", from, to)} }
	if a := c.get("/a/1000000", ranges(0, 499999)...).ok(206); len(a.body) != 500000 {
		t.Fatalf("%d bytes", len(a.body))
	}
	eventually(t, "the first half uses the quota up", func() bool { return b.over(me) && b.p.Busy() == 0 })
	refusedForQuota(t, b.once("GET", "/b/1000000", id), 503, thursday, 3600)
	if a := c.get("/a/1000000", ranges(500000, 999999)...).ok(206); len(a.body) != 500000 { // its session has its slot
		t.Errorf("the second half: %d bytes", len(a.body))
	}
	eventually(t, "it is complete", func() bool { return b.left().Active == 0 })
	refusedForQuota(t, b.once("GET", "/a/1000000", ranges(0, 499999)...), 503, thursday, 3600) // this is another download
	b.counted()
}

// TestX9_AResponseThatBeganIsNotCut: the quota runs out in the middle of one response.
func TestX9_AResponseThatBeganIsNotCut(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":15000000}}`, nil)
	one, other := b.dial().get("/a/20000000"), b.dial().get("/b/20000000")
	first, second := one.begin("GET"), other.begin("GET")
	for _, r := range []int64{first.ContentLength, second.ContentLength} {
		if r != 20000000 {
			t.Fatalf("%d bytes", r)
		}
	}
	for i, body := range []io.Reader{first.Body, second.Body} {
		if n, err := io.Copy(io.Discard, body); n != 20000000 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if i == 0 {
			eventually(t, "it is over while the other one runs", func() bool { return b.over(me) })
			refusedForQuota(t, b.once("GET", "/c/1000000"), 503, thursday, 3600)
		}
	}
	b.counted()
}

func TestX9_AQuotaIsLiftedAndSetLive(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":1000000}}`, nil)
	b.settled("GET", "/a/1000000")
	for _, one := range []struct {
		overrides string
		status    int
	}{
		{`{"quotas":{"bytesPerDay":1000000}}`, 503},
		{`{"quotas":{"bytesPerDay":1000001}}`, 200}, // and over again by that one
		{`{"quotas":{"bytesPerDay":1500000}}`, 503},
		{`{"quotas":{"bytesPerDay":1500000},"principals":{"addr:127.0.0.1":{"bytesPerDay":0}}}`, 200},
		{`{"quotas":{"bytesPerDay":1500000},"principals":{"addr:127.0.0.1":{"class":"bulk"}}}`, 503},
		{`{"quotas":{"bytesPerDay":1500000},"principals":{"addr:127.0.0.1":{"bytesPerDay":99000000}}}`, 200},
		{`{"principals":{"addr:127.0.0.1":{"bytesPerWeek":1}}}`, 503},
		{`{"principals":{"addr:127.0.0.2":{"bytesPerWeek":1}}}`, 200},
		{`{}`, 200},
	} {
		b.change(one.overrides)
		if a := b.settled("GET", "/b/1000000"); a.StatusCode != one.status {
			t.Errorf("%s: %d %s", one.overrides, a.StatusCode, a.body)
		}
	}
	b.counted()
}

// TestX9_AQuotaIsOfItsPrincipalAlone: names are believed only when the upstream took the credentials (I2).
func TestX9_AQuotaIsOfItsPrincipalAlone(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 300*kib)
	o := newOrigin(t, func(k *call) {
		if k.field("Authorization") == "Basic Y2k6d3Jvbmc=" { // ci:wrong
			k.reply(403, "", body)
			return
		}
		k.reply(200, "ETag: \"e\"\r\n", body)
	})
	days := &calendar{}
	b := start(t, o.url(), func(s *Settings) { s.wall = days.now })
	b.change(`{"principals":{"user:ci":{"bytesPerDay":307200}}}`)
	const ci, wrong, bob = "Authorization: Basic Y2k6c2VjcmV0", "Authorization: Basic Y2k6d3Jvbmc=", "Authorization: Basic Ym9iOnNlY3JldA=="
	for range 3 { // whoever knows a name cannot use its quota up
		if a := b.settled("GET", "/a", wrong); a.StatusCode != 403 || len(a.body) != len(body) {
			t.Fatalf("%d", a.StatusCode)
		}
	}
	if a := b.settled("GET", "/a", ci); a.StatusCode != 200 {
		t.Errorf("%d %.100s", a.StatusCode, a.body)
	}
	refusedForQuota(t, b.settled("GET", "/b", ci), 503, thursday, 3600)
	if a := b.settled("GET", "/b", bob); a.StatusCode != 200 {
		t.Errorf("bob: %d", a.StatusCode)
	}
	if a := b.settled("GET", "/b", wrong); a.StatusCode != 403 { // nor learns that it is used up
		t.Errorf("%d %.100s", a.StatusCode, a.body)
	}
	b.counted()
}

func TestX9_UploadsAreNotCounted(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":200000}}`, nil)
	c := b.dial()
	c.send("PUT /u/10 HTTP/1.1\r\nHost: store.test\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("u", 300000))
	if a := c.answer(); a.StatusCode/100 != 2 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if b.over(me) {
		t.Error("the upload was counted")
	}
	b.counted()
}

// TestX9_TheWaitingPageLearnsOfTheQuota: a browser's question is answered with the refusal and not with "ready".
func TestX9_TheWaitingPageLearnsOfTheQuota(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":1000000}}`, nil)
	b.settled("GET", "/a/1000000")
	const poll = "Arkvory-Waiting-Page: 1"
	refusedForQuota(t, b.once("GET", "/b/1000000", poll, "User-Agent: Mozilla/5.0"), 503, thursday, 3600)
	b.change(`{}`)
	if a := b.once("GET", "/b/1000000", poll); a.StatusCode != 200 || !strings.Contains(a.body, "ready") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestX9_WhoWaitsIsRefusedAtItsNextContact: a place in the queue is no running download.
func TestX9_WhoWaitsIsRefusedAtItsNextContact(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":1000}}`, oneSlot)
	holder := b.occupy("/a/1000000000")
	eventually(t, "it is over", func() bool { return b.over(me) })
	b.change(`{}`)
	if a := b.once("GET", "/b/1000000", id); a.reason(t) != "download_queued" {
		t.Fatalf("%s", a.body)
	}
	b.change(`{"quotas":{"bytesPerDay":1000}}`)
	refusedForQuota(t, b.once("GET", "/b/1000000", id), 503, thursday, 3600)
	b.change(`{}`)
	if a := b.once("GET", "/b/1000000", id); a.reason(t) != "download_queued" || a.Header.Get("Arkvory-Queue-Position") != "1" {
		t.Errorf("lifted: %s", a.body) // it kept its place
	}
	holder.close()
	b.counted()
}

func TestX9_CountsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stateful := func(s *Settings) { s.StateDir = dir }
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":1000000}}`, stateful)
	b.settled("GET", "/a/1000000")
	b.counted()
	b.close()
	if info, err := os.Stat(quota.Path(dir)); err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	next, _, days := quotaBench(t, `{"quotas":{"bytesPerDay":1000000}}`, stateful)
	refusedForQuota(t, next.settled("GET", "/b/1000000"), 503, thursday, 3600)
	days.pass(12 * time.Hour)
	if a := next.settled("GET", "/b/1000000"); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	next.close()
	if err := os.WriteFile(quota.Path(dir), []byte(`{"version":1,"principals":{"addr:127.0.0.1":`), 0o600); err != nil {
		t.Fatal(err)
	}
	last, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":1000000}}`, stateful)
	if !strings.Contains(last.log.String(), "the quotas' counts are not kept") || last.metric("arkvory_quota_file_faulty") != "1" {
		t.Errorf("a corrupt file goes unsaid: %s", last.log)
	}
	if a := last.settled("GET", "/a/1000000"); a.StatusCode != 200 { // from zero
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	last.p.saveQuotas()
	if last.metric("arkvory_quota_file_faulty") != "0" {
		t.Error("the file was mended")
	}
}

func TestX9_WithoutQuotasNothingIsCountedOrKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, _, _ := quotaBench(t, `{}`, func(s *Settings) { s.StateDir = dir })
	b.settled("GET", "/a/1000000")
	if n := b.metric("arkvory_quota_principals"); n != "0" {
		t.Errorf("%s principals", n)
	}
	b.close()
	if _, err := os.Stat(quota.Path(dir)); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestI3_TheSettingsClassActsFromTheNextRequest(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	class := func(fields ...string) string {
		t.Helper()
		a := b.once("GET", "/b/1000000", append(fields, id)...)
		if a.StatusCode != 503 || a.reason(t) != "download_queued" {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		return a.Header.Get("Arkvory-Download-Class")
	}
	if c := class(); c != "release" {
		t.Fatalf("class %s", c)
	}
	waits := func() [queue.Classes]int { return b.p.queue.Snapshot().Waiting }
	b.change(`{"principals":{"addr:127.0.0.1":{"class":"interactive"}}}`)
	if c := class(); c != "interactive" || waits() != [queue.Classes]int{1, 0, 0, 0} { // raised, where it stands
		t.Errorf("class %s, waiting %v", c, waits())
	}
	if c := class("Arkvory-Download-Class: bulk"); c != "bulk" || waits() != [queue.Classes]int{0, 0, 1, 0} { // a client may lower
		t.Errorf("class %s, waiting %v", c, waits())
	}
	b.change(`{"principals":{"addr:127.0.0.1":{"class":"bulk"}}}`)
	if c := class("Arkvory-Download-Class: interactive"); c != "bulk" { // and never raise
		t.Errorf("class %s", c)
	}
	b.change(`{}`)
	if c := class(); c != "release" {
		t.Errorf("class %s", c)
	}
	holder.close()
	b.quiet(patience)
}

func TestI5_TheAuditLineNamesNoPrincipal(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"principals":{"user:somebody":{"class":"bulk"},"user:else":{"bytesPerDay":5}},"sessions":3}`, nil)
	text := b.log.String()
	if strings.Contains(text, "somebody") || !strings.Contains(text, `"principals":{"count":2}`) || !strings.Contains(text, `"sessions":3`) {
		t.Errorf("%s", text)
	}
}

func TestW1_WindowsOfTheRecordActOnTheQueue(t *testing.T) {
	t.Parallel()
	b, _, days := quotaBench(t, `{"windows":{"release":{"open":[{"from":"22:00","to":"06:00"}]}}}`, nil)
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 503 || a.reason(t) != "download_queued" {
		t.Errorf("at noon: %d %.100s", a.StatusCode, a.body)
	}
	b.change(`{"windows":{"bulk":{"open":[{"from":"22:00","to":"06:00"}]}}}`)
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 200 {
		t.Errorf("of another class: %d %.100s", a.StatusCode, a.body)
	}
	b.change(`{"windows":{"release":{"open":[{"from":"22:00","to":"06:00"}]}}}`)
	days.pass(10 * time.Hour)
	eventually(t, "its window is open", func() bool { return b.once("GET", "/c/1000000", id).StatusCode == 200 })
	b.change(`{"windows":{"release":{"open":[{"from":"06:00","to":"22:00"}]}}}`)
	if a := b.once("GET", "/d/1000000", id); a.StatusCode != 503 {
		t.Errorf("at night: %d", a.StatusCode)
	}
	b.change(`{}`)
	if a := b.once("GET", "/d/1000000", id); a.StatusCode != 200 {
		t.Errorf("without windows: %d %.100s", a.StatusCode, a.body)
	}
	b.quiet(patience)
}

// TestX9_WhoIsFedIsCountedAndFinishes: a client that is fed while it waits has its response, and its bytes count from the first one.
func TestX9_WhoIsFedIsCountedAndFinishes(t *testing.T) {
	t.Parallel()
	l, days := newLibrary(t), &calendar{}
	s := newStage(t, l.url(), func(set *Settings) { set.wall = days.now })
	s.change(`{"quotas":{"bytesPerDay":1000}}`)
	c := s.dialFrom("127.0.1.1").get(fmt.Sprintf("/a%d", odd))
	c.head()
	s.fed(2000)
	eventually(t, "what it was fed is counted", func() bool { return s.over("addr:127.0.1.1") })
	refusedForQuota(t, s.onceFrom("127.0.1.1", fmt.Sprintf("/b%d", odd)), 503, thursday, 3600)
	s.free()
	if n, err := io.CopyN(io.Discard, c.br, odd); n != odd || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	c.close()
	s.counted()
	s.change(fmt.Sprintf(`{"quotas":{"bytesPerDay":%d}}`, odd)) // every byte once
	if !s.over("addr:127.0.1.1") {
		t.Error("less was counted than sent")
	}
	s.change(fmt.Sprintf(`{"quotas":{"bytesPerDay":%d}}`, odd+1))
	if s.over("addr:127.0.1.1") {
		t.Error("more was counted than sent")
	}
}

// onceFrom sends one GET from another address and reads its answer.
func (s *stage) onceFrom(address, target string) answer {
	s.t.Helper()
	c := s.dialFrom(address).get(target)
	defer c.close()
	return c.answer()
}

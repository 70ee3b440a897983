package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/ticket"
)

var testKey = ticket.Key{1, 2, 3}

// signed gives a proxy the key of the tests, as a process that has it from outside.
func signed(s *Settings) {
	s.Tickets = ticket.NewSigner(testKey)
	identity := s.Tickets.Derive("identity")
	s.Identity.Key = identity[:]
}

// forge writes a ticket by the format's description, for what no signer writes.
func forge(session ticket.SessionHash, arrival, issued int64) string {
	b := append([]byte("arkvory/ticket/2\x00"), session[:]...)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(arrival)), uint64(issued))
	mac := hmac.New(sha256.New, testKey[:])
	_, _ = mac.Write(b)
	return fmt.Sprintf("2.%s.%s.%s", strconv.FormatInt(arrival, 36), strconv.FormatInt(issued, 36), base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
}

func downloadID(name string) string { return "Arkvory-Download-Id: " + name }

func returns(text string) string { return "Arkvory-Queue-Ticket: " + text }

// ticketOf asks once and returns the ticket of the answer, which a refusal tells in its field and in its body.
func (b *bench) ticketOf(target string, fields ...string) string {
	b.t.Helper()
	a := b.once("GET", target, fields...)
	got := a.Header.Get("Arkvory-Queue-Ticket")
	if a.StatusCode == 503 {
		var f struct{ QueueTicket string }
		if err := json.Unmarshal([]byte(a.body), &f); err != nil || len(f.QueueTicket) != len(got) {
			b.t.Errorf("%s\n%v", a.body, a.Header)
		}
	}
	if got == "" {
		b.t.Errorf("%s: %d without a ticket", target, a.StatusCode)
	}
	return got
}

// place asks once and returns the position that the answer tells, 0 when there is none.
func (b *bench) place(target string, fields ...string) int {
	b.t.Helper()
	a := b.once("GET", target, fields...)
	n, _ := strconv.Atoi(a.Header.Get("Arkvory-Queue-Position"))
	if (a.StatusCode == 503) != (n > 0) {
		b.t.Errorf("%s: %d %v", target, a.StatusCode, a.Header)
	}
	return n
}

func TestT1_EveryAnswerOfASessionCarriesATicket(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit, set.Policy.IdleFor = 0, time.Second })
	signer := ticket.NewSigner(testKey)
	session := ticket.HashSession("addr:127.0.0.1", "store.test/f400000", "id:d1")
	before := time.Now().Add(-time.Second)
	first := s.ticketOf("/f400000", id)
	s.pass(3 * time.Second)
	second := s.ticketOf("/f400000", id, returns(first))
	a1, i1, o1 := signer.Verify([]byte(first), session, time.Now())
	a2, i2, o2 := signer.Verify([]byte(second), session, time.Now())
	if o1 != ticket.Accepted || o2 != ticket.Accepted || a1.Before(before) || i1.Before(a1) || i2.Before(i1) {
		t.Errorf("%v %v %v, %v %v %v", a1, i1, o1, a2, i2, o2)
	}
	if d := a1.Sub(a2); d < 2*time.Second || d > 4*time.Second { // the clock of the queue moved by three seconds, that of the wall did not
		t.Errorf("the arrival moved by %v", d)
	}
	s.ticketOf("/plain400000") // plain clients have a session too
	s.free()
	for _, r := range []string{"bytes=0-1000", "bytes=1001-"} {
		s.ticketOf("/f400000", id, "Range: "+r)
	}
	s.pass(time.Minute)
	s.ticketOf("/g400000", id)
	for what, a := range map[string]answer{
		"small": s.once("GET", "/small10", id), "HEAD": s.once("HEAD", "/f400000", id), "missing": s.once("GET", "/none", id),
		"place": s.once("GET", "/p100000", id),
	} {
		if v := a.Header.Get("Arkvory-Queue-Ticket"); v != "" {
			t.Errorf("%s: a ticket %q without a session", what, v)
		}
	}
	s.live(`{"strategy":"shared"}`)
	if a := s.once("GET", "/h400000", id); a.StatusCode != 200 || a.Header.Get("Arkvory-Queue-Ticket") != "" {
		t.Errorf("shared: %d %v", a.StatusCode, a.Header)
	}
}

// TestT1_AReturningClientStandsAtItsOldArrival: a fresh process with the same key seats it before all who came since, whoever asks first, opaque tokens included.
func TestT1_AReturningClientStandsAtItsOldArrival(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	const token, target = "Authorization: Bearer opaque-s3cr3t", "/f400000"
	old := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit = 0 })
	a := old.ticketOf(target, downloadID("a"))
	eventually(t, "a millisecond has passed", func() bool { return old.ticketOf(target, downloadID("a")) != a })
	b := old.ticketOf(target, downloadID("b"), token)
	old.close()
	const newToken = "Authorization: Bearer new-s3cr3t"
	s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit = 0 })
	if n := s.place(target, downloadID("new"), newToken); n != 1 {
		t.Errorf("the newcomer is at %d", n)
	}
	if n := s.place(target, downloadID("b"), token, returns(b)); n != 1 {
		t.Errorf("b is back at %d", n)
	}
	if n := s.place(target, downloadID("a"), returns(a)); n != 1 {
		t.Errorf("a is back at %d", n)
	}
	s.place(target, downloadID("a"), returns(a)) // replayed: the same place
	if n := s.place(target, downloadID("new"), newToken); n != 3 {
		t.Errorf("the newcomer stands at %d", n)
	}
	if n := s.metric(`arkvory_queue_tickets_total{outcome="accepted"}`); n != "3" {
		t.Errorf("%s accepted", n)
	}
	s.free()
	for _, fields := range [][]string{{downloadID("a")}, {downloadID("b"), token}, {downloadID("new"), newToken}} { // a body's end is seen before its slot is free
		eventually(t, fmt.Sprintf("%q has its turn", fields), func() bool { return s.once("GET", target, fields...).StatusCode == 200 })
	}
	other := newStage(t, l.url(), func(set *Settings) { signed(set); set.Identity.Key = nil; set.DripLimit = 0 }) // its hashes of tokens are of its own
	other.place(target, downloadID("b"), token, returns(b))
	if n := other.metric(`arkvory_queue_tickets_total{outcome="bad_mac"}`); n != "1" {
		t.Errorf("%s refused", n)
	}
}

// TestT2_RefusedTicketsAreIgnored is the table of all refusals: the download joins anew, behind who is there, and the outcome is counted once.
func TestT2_RefusedTicketsAreIgnored(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	now := time.Now()
	signer := ticket.NewSigner(testKey)
	session := ticket.HashSession("addr:127.0.0.1", "store.test/f400000", "id:d1")
	sign := func(s *ticket.Signer, session ticket.SessionHash, arrival, issued time.Duration) string {
		return string(s.Append(nil, session, now.Add(arrival), now.Add(issued)))
	}
	good := sign(signer, session, -10*time.Minute, -time.Minute)
	flip := func(text string, at int) string {
		b := []byte(text)
		b[at] = map[bool]byte{true: 'B', false: 'A'}[b[at] == 'A']
		return string(b)
	}
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct{ text, outcome string }{
		"the good one":      {good, "accepted"},
		"issued ahead":      {sign(signer, session, -time.Hour, ticket.Ahead-10*time.Second), "accepted"},
		"nearly expired":    {sign(signer, session, -time.Hour, -ticket.Validity+30*time.Second), "accepted"},
		"empty":             {"", "malformed"},
		"word":              {"x", "malformed"},
		"cut":               {good[:len(good)-1], "malformed"},
		"spaces":            {parts[0] + "." + parts[1] + ". " + parts[2] + "." + parts[3], "malformed"},
		"upper case":        {"2." + strings.ToUpper(parts[1]) + "." + parts[2] + "." + parts[3], "malformed"},
		"oversized":         {good + strings.Repeat("A", 200), "oversized"},
		"version 1":         {"1" + good[1:], "unknown_version"},
		"forged":            {flip(good, len(good)-5), "bad_mac"},
		"earlier arrival":   {"2." + strconv.FormatInt(now.Add(-time.Hour).UnixMilli(), 36) + "." + parts[2] + "." + parts[3], "bad_mac"},
		"another key":       {sign(ticket.NewSigner(ticket.Key{9}), session, -time.Hour, 0), "bad_mac"},
		"another principal": {sign(signer, ticket.HashSession("addr:127.0.0.2", "store.test/f400000", "id:d1"), -time.Hour, 0), "bad_mac"},
		"another object":    {sign(signer, ticket.HashSession("addr:127.0.0.1", "store.test/g400000", "id:d1"), -time.Hour, 0), "bad_mac"},
		"another id":        {sign(signer, ticket.HashSession("addr:127.0.0.1", "store.test/f400000", "id:d2"), -time.Hour, 0), "bad_mac"},
		"shifted parts":     {sign(signer, ticket.HashSession("addr:127.0.0.1store.test", "/f400000", "id:d1"), -time.Hour, 0), "bad_mac"},
		"expired":           {sign(signer, session, -time.Hour, -ticket.Validity-time.Second), "expired"},
		"future":            {sign(signer, session, -time.Hour, ticket.Ahead+time.Minute), "future"},
		"arrival behind it": {forge(session, now.UnixMilli()+5, now.UnixMilli()), "arrival_after_issue"},
	} {
		s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit = 0 })
		if n := s.place("/f400000", downloadID("first")); n != 1 {
			t.Fatalf("%d", n)
		}
		want := map[bool]int{true: 1, false: 2}[c.outcome == "accepted"]
		if n := s.place("/f400000", id, returns(c.text)); n != want {
			t.Errorf("%s: at %d, want %d", name, n, want)
		}
		for o := range ticket.Outcomes {
			outcome := ticket.Outcome(o).String()
			if n := s.metric(`arkvory_queue_tickets_total{outcome="` + outcome + `"}`); (n == "1") != (outcome == c.outcome) || n != "0" && n != "1" {
				t.Errorf("%s: %s of %s, want %s", name, n, outcome, c.outcome)
			}
		}
		if c.text != "" && len(c.text) > 3 && strings.Contains(s.log.String(), c.text) {
			t.Errorf("%s: the ticket is in the log", name)
		}
		s.close()
	}
}

// TestT2_TicketsOfPlainClientsAreNotLookedAt: a plain client knows of none. The question of a waiting page brings the one of its page.
func TestT2_TicketsOfPlainClientsAreNotLookedAt(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	plain := ticket.HashSession("addr:127.0.0.1", "store.test/f400000", "addr:127.0.0.1")
	text := string(ticket.NewSigner(testKey).Append(nil, plain, time.Now().Add(-time.Hour), time.Now()))
	for more, want := range map[string][2]string{"X: y": {"2", "0"}, "Arkvory-Waiting-Page: 1": {"1", "1"}} {
		s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit = 0 })
		s.place("/f400000", downloadID("first"))
		if n := s.place("/f400000", returns(text), more); strconv.Itoa(n) != want[0] {
			t.Errorf("%s: at %d", more, n)
		}
		if n := s.metric(`arkvory_queue_tickets_total{outcome="accepted"}`); n != want[1] {
			t.Errorf("%s: %s accepted", more, n)
		}
		s.close()
	}
}

// TestT2_ATicketIsCountedOnce: also when the request is asked about twice, because its slot went to another one while the origin answered.
func TestT2_ATicketIsCountedOnce(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	release, there := make(chan struct{}), make(chan struct{})
	l.on = func(k *call) bool {
		if k.method == "GET" && strings.HasPrefix(k.target, "/slow") {
			close(there)
			<-release
		}
		return false
	}
	s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit = 0 })
	s.free()
	text := string(ticket.NewSigner(testKey).Append(nil, ticket.HashSession("addr:127.0.0.1", "store.test/slow400000", "id:d1"), time.Now(), time.Now()))
	c := s.dial().get("/slow400000", id, returns(text))
	<-there
	g, v := s.p.queue.Admit(holding())
	if v.Outcome != queue.Admitted {
		t.Fatalf("%+v", v)
	}
	defer g.Abandon()
	close(release)
	c.ok(503)
	if n := s.metric(`arkvory_queue_tickets_total{outcome="accepted"}`); n != "1" {
		t.Errorf("one ticket was counted %s times", n)
	}
}

func TestI5_T1_TicketsAreNowhereToBeRead(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit, set.TicketSource = 0, "variable" })
	first := s.ticketOf("/f400000", id)
	s.place("/f400000", id, returns(first))
	s.place("/f400000", id, returns("2.s3cr3t"))
	s.free()
	last := s.ticketOf("/f400000", id, returns(first))
	eventually(t, "the session is logged", func() bool { s.pass(time.Minute); return strings.Contains(s.log.String(), "download session ended") })
	var page strings.Builder
	if _, err := s.p.Metrics().WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	ready, err := json.Marshal(s.p.Sources(time.Now()).Sessions())
	if err != nil {
		t.Fatal(err)
	}
	all := s.log.String() + page.String() + string(ready)
	for _, secret := range []string{first, last, strings.Split(first, ".")[3], "s3cr3t", fmt.Sprintf("%x", testKey[:3])} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in\n%s", secret, all)
		}
	}
	if !strings.Contains(string(ready), `"keySource":"variable"`) {
		t.Errorf("%s", ready)
	}
	for _, head := range l.heads {
		if strings.Contains(strings.ToLower(head), "arkvory") {
			t.Errorf("the origin got %q", head)
		}
	}
}

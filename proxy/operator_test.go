package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
	"github.com/arkvory/sidecar/queue/window"
)

var _ admin.Operator = (*operator)(nil)

// office is an operator's desk over a queue on a clock that the test moves.
type office struct {
	*operator
	t        testing.TB
	q        *memory.Queue
	now      time.Duration
	shift    time.Duration // of the wall clock
	down, up uint64
}

var officeDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func openOffice(t testing.TB, change func(*queue.Policy)) *office {
	t.Helper()
	p := queue.DefaultPolicy(1)
	p.Reserve, p.PerPrincipal, p.SessionMinBytes, p.BandBytesPerSecond, p.QueueLimit, p.QueuePerPrincipal = 0, 1, 0, mib, 1<<17, 1<<17
	if change != nil {
		change(&p)
	}
	o := &office{t: t}
	q, err := memory.New(p, memory.Options{Clock: func() time.Duration { return o.now }, HoldLimit: 4})
	if err != nil {
		t.Fatal(err)
	}
	o.q = q
	o.operator = newOperator(operatorParts{
		queue: q, wall: func() time.Time { return officeDay.Add(o.now + o.shift) }, uptime: func() time.Duration { return o.now },
		facts: func() operatorFacts {
			return operatorFacts{Version: "test", SettingsRevision: 3, Held: 1, Fed: 2, BandBytesPerSecond: mib, GateReason: "covered", OverQuota: 4}
		},
		moved:      func() (uint64, uint64) { return o.down, o.up },
		notWaiting: telemetry.Busy, notPausable: telemetry.QueueFull, notPaused: telemetry.Draining, // any three that can be told apart
	})
	return o
}

func (o *office) ask(principal, object string, class queue.Class) (*memory.Grant, queue.Verdict) {
	return o.q.Admit(queue.Ask{Key: queue.Key{Principal: principal, Object: object, Client: "id:" + object}, Class: class, Protocol: true, SizeBytes: 10 * mib})
}

// page asks for sessions and fails on an error.
func (o *office) page(q admin.SessionsQuery) admin.SessionsDocument {
	o.t.Helper()
	if q.Limit == 0 {
		q.Limit = admin.DefaultSessions
	}
	doc, err := o.Sessions(q)
	if err != nil {
		o.t.Fatal(err)
	}
	return doc
}

// hashed is what stands for an id on pages that are not clear.
func (o *office) hashed(purpose byte, text string) string {
	return o.rows(1, 0, false).hex(hashMark, o.hashes.sum(purpose, text))
}

// objects are the clear objects of a page.
func objects(doc admin.SessionsDocument) (out []string) {
	for _, s := range doc.Sessions {
		out = append(out, s.Object)
	}
	return out
}

func TestX6_TheQueuesDocument(t *testing.T) {
	o := openOffice(t, func(p *queue.Policy) { p.SessionsElastic = 4 })
	g, _ := o.ask("user:ci", "running", queue.Release)
	g.Progress(4 * mib)
	o.now = 10 * time.Second
	o.q.Tick(o.now)
	o.ask("user:a", "a", queue.Bulk)
	o.ask("user:b", "b", queue.Background)
	o.now += 5 * time.Second
	id := o.page(admin.SessionsQuery{State: admin.StateWaiting}).Sessions[1].ID
	if _, _, err := o.Act(id, admin.Action{Kind: admin.Pause}); err != nil {
		t.Fatal(err)
	}
	doc := o.Queue()
	if doc.At.Time != officeDay.Add(o.now) || doc.UptimeSeconds != 15 || doc.Version != "test" || doc.Mode != "normal" || doc.Strategy != "ordered" ||
		doc.Admission != "sessions" || doc.SettingsRevision != 3 || doc.Draining {
		t.Errorf("%+v", doc)
	}
	if doc.Slots != (admin.QueueSlots{Configured: 1, Open: 1, ElasticLimit: 4, Active: 1}) || doc.Active != 1 || doc.Waiting != 2 || doc.PausedByOperator != 1 ||
		doc.Held != 1 || doc.Fed != 2 || doc.OldestWaitSeconds != 5 {
		t.Errorf("%+v", doc)
	}
	if b := doc.ByClass.Bulk; b.Waiting != 1 || b.OldestWaitSeconds != 5 || b.WaitingBytes != 10*mib || !b.Window.Open || b.Window.OutsideShare != 0 || b.Window.ChangesAt != nil {
		t.Errorf("bulk %+v", b)
	}
	if doc.WaitingBytes != 20*mib || doc.ActiveRemainingBytes != 6*mib || doc.BandBytesPerSecond != mib || !doc.Gate.Open || doc.Gate.Reason != "covered" {
		t.Errorf("%+v", doc)
	}
	if doc.EmptyInSeconds == nil || *doc.EmptyInSeconds <= 0 || doc.EmptyAt == nil || !doc.EmptyAt.After(doc.At.Time) {
		t.Errorf("empty in %v, at %v", doc.EmptyInSeconds, doc.EmptyAt)
	}
	if c := doc.Counts; c.Started != 1 || c.Queued != 2 || c.Paused != 1 || c.OverQuota != 4 {
		t.Errorf("%+v", c)
	}
	if _, err := json.Marshal(doc); err != nil {
		t.Error(err)
	}
}

func TestX6_WindowsInTheQueuesDocument(t *testing.T) {
	o := openOffice(t, nil)
	night, faults := window.Compile(window.Spec{OutsideShare: 0.3, Open: []window.Span{{From: "22:00", To: "06:00"}}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	o.q.SetWindows([queue.Classes]*window.Schedule{queue.Bulk: night}, func() time.Time { return officeDay.Add(o.now) })
	w := o.Queue().ByClass
	if b := w.Bulk.Window; b.Open || b.OutsideShare != 0.3 || b.ChangesAt == nil || b.ChangesAt.Time != officeDay.Add(10*time.Hour) {
		t.Errorf("by day %+v", b)
	}
	if r := w.Release.Window; !r.Open || r.OutsideShare != 0 || r.ChangesAt != nil {
		t.Errorf("a class without windows %+v", r)
	}
}

// TestI5_IdsAreHashedUnlessAskedFor: no clear id in a page, a session or an action, unless the caller wants it; and the hash leads to the same sessions.
func TestI5_IdsAreHashedUnlessAskedFor(t *testing.T) {
	o := openOffice(t, nil)
	o.ask("user:secret-name", "host/secret-path", queue.Release)
	o.ask("user:secret-name", "host/secret-other", queue.Release)
	o.ask("user:else", "host/else", queue.Bulk)
	hashed := o.page(admin.SessionsQuery{State: admin.StateAll})
	text, err := json.Marshal(hashed)
	if err != nil || strings.Contains(string(text), "secret") || len(hashed.Sessions) != 3 || hashed.Total != 3 {
		t.Fatalf("%s, %v", text, err)
	}
	s := hashed.Sessions[0]
	for _, id := range []string{s.Principal, s.Object, s.Client} {
		if _, ok := parseHash(id); !ok {
			t.Errorf("%q is no hash", id)
		}
	}
	if s.Principal != hashed.Sessions[2].Principal || s.Object == hashed.Sessions[2].Object || s.Object == s.Client {
		t.Errorf("%+v, %+v", s, hashed.Sessions[2])
	}
	for _, id := range []string{s.Principal, "user:secret-name"} {
		doc := o.page(admin.SessionsQuery{State: admin.StateAll, Principal: id, Clear: true})
		if doc.Total != 2 || len(doc.Sessions) != 2 || doc.Sessions[0].Principal != "user:secret-name" || doc.Sessions[0].Client != "id:host/secret-path" {
			t.Errorf("by %q: %+v", id, doc)
		}
	}
	if doc := o.page(admin.SessionsQuery{State: admin.StateAll, Principal: "user:secret"}); doc.Total != 0 || len(doc.Sessions) != 0 || doc.Next != nil {
		t.Errorf("a part of a name finds %+v", doc)
	}
	one, err := o.Session(s.ID, true)
	if err != nil || one.Object != "host/secret-path" {
		t.Errorf("%+v, %v", one, err)
	}
	before, after, err := o.Act(hashed.Sessions[2].ID, admin.Action{Kind: admin.Kick})
	text, _ = json.Marshal([]admin.SessionDocument{before, after})
	if err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%s, %v", text, err)
	}
	if other := openOffice(t, nil); other.hashed(hashPrincipal, "user:else") == o.hashed(hashPrincipal, "user:else") {
		t.Error("two processes have the same hashes")
	}
}

func TestX6_PagesOfSessions(t *testing.T) {
	o := openOffice(t, nil)
	o.ask("p", "running", queue.Release)
	for i := range 5 {
		o.now += time.Second
		o.ask(fmt.Sprint("p", i), fmt.Sprint("w", i), queue.Release)
	}
	var got []string
	q := admin.SessionsQuery{State: admin.StateAll, Limit: 2, Clear: true}
	for pages := 1; ; pages++ {
		doc := o.page(q)
		got = append(got, objects(doc)...)
		if doc.Total != 6 || len(doc.Sessions) > 2 || pages > 4 {
			t.Fatalf("%+v", doc)
		}
		if doc.Next == nil {
			break
		}
		q.After = *doc.Next
	}
	if want := "running w0 w1 w2 w3 w4"; strings.Join(got, " ") != want {
		t.Errorf("listed %v, want %s", got, want)
	}
	for _, bad := range []string{"x", strings.Repeat("A", 46), "AQEA", formatMark(queue.Mark{Position: -1}), formatMark(queue.Mark{})[:45] + "="} {
		var wrong *admin.QueryError
		if _, err := o.Sessions(admin.SessionsQuery{State: admin.StateAll, Limit: 1, After: bad}); !errors.As(err, &wrong) || wrong.Field != "after" {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
	if doc := o.page(admin.SessionsQuery{State: admin.StateWaiting, After: formatMark(queue.Mark{Phase: 200})}); len(doc.Sessions) != 0 {
		t.Errorf("behind the end are %+v", doc.Sessions)
	}
	if doc := o.page(admin.SessionsQuery{State: admin.StateActive, Class: "release"}); doc.Total != 1 || doc.Sessions[0].StartedAt == nil || doc.Sessions[0].Position != nil {
		t.Errorf("%+v", doc)
	}
	if doc := o.page(admin.SessionsQuery{State: admin.StateWaiting, Class: "bulk"}); doc.Total != 0 || doc.Sessions == nil {
		t.Errorf("%+v", doc)
	}
}

func FuzzCursor(f *testing.F) {
	o := openOffice(f, nil)
	o.ask("p", "running", queue.Release)
	o.ask("q", "w", queue.Release)
	f.Add("")
	f.Add(formatMark(queue.Mark{Phase: 1, Position: 1, ID: 7, Since: -5, Number: 1 << 63}))
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := o.Sessions(admin.SessionsQuery{State: admin.StateAll, Limit: 5, After: text})
		if err == nil && len(doc.Sessions) > 2 {
			t.Errorf("%d sessions of 2", len(doc.Sessions))
		}
	})
}

func TestX7_ActionsAndTheirConflicts(t *testing.T) {
	o := openOffice(t, nil)
	o.ask("first", "running", queue.Release)
	o.ask("p", "a", queue.Release)
	o.ask("q", "b", queue.Release)
	id := map[string]string{}
	for _, s := range o.page(admin.SessionsQuery{State: admin.StateAll, Clear: true}).Sessions {
		id[s.Object] = s.ID
	}
	before, after, err := o.Act(id["b"], admin.Action{Kind: admin.Move, To: admin.ToFront})
	if err != nil || *before.Position != 2 || *after.Position != 1 || before.ID != id["b"] || after.Why != admin.WhySlots || after.StartsAt == nil || after.StartsWindow == nil {
		t.Fatalf("%+v, %+v, %v", before, after, err)
	}
	if _, after, err = o.Act(id["b"], admin.Action{Kind: admin.Move, To: admin.ToBack}); err != nil || *after.Position != 2 {
		t.Errorf("%+v, %v", after, err)
	}
	if _, after, err = o.Act(id["b"], admin.Action{Kind: admin.Move, Class: "interactive"}); err != nil || after.Class != "interactive" {
		t.Errorf("%+v, %v", after, err)
	}
	if _, after, err = o.Act(id["b"], admin.Action{Kind: admin.Pause}); err != nil || !after.PausedByOperator || after.Why != admin.WhyOperator || after.Position != nil || after.State != admin.StateWaiting {
		t.Errorf("%+v, %v", after, err)
	}
	if _, after, err = o.Act(id["b"], admin.Action{Kind: admin.Resume}); err != nil || after.PausedByOperator || after.Position == nil {
		t.Errorf("%+v, %v", after, err)
	}
	conflict := func(who string, a admin.Action, want telemetry.Reason) {
		t.Helper()
		var c *admin.ConflictError
		if _, _, err := o.Act(id[who], a); !errors.As(err, &c) || c.Reason != want || c.Message == "" {
			t.Errorf("%v of %s: %v", a, who, err)
		}
	}
	conflict("running", admin.Action{Kind: admin.Move, To: admin.ToFront}, o.notWaiting)
	conflict("b", admin.Action{Kind: admin.Resume}, o.notPaused)
	before, after, err = o.Act(id["running"], admin.Action{Kind: admin.Kick})
	if err != nil || before.State != admin.StateActive || after.State != admin.StateEnded || after.ID != id["running"] {
		t.Errorf("%+v, %+v, %v", before, after, err)
	}
	for _, unknown := range []string{id["running"], "", "0123456789abcdef", "0123456789ABCDEF", strings.Repeat("f", 17)} {
		if _, _, err := o.Act(unknown, admin.Action{Kind: admin.Kick}); !errors.Is(err, admin.ErrUnknownSession) {
			t.Errorf("kick of %q: %v", unknown, err)
		}
		if _, err := o.Session(unknown, false); !errors.Is(err, admin.ErrUnknownSession) {
			t.Errorf("session %q: %v", unknown, err)
		}
	}
	var wrong *admin.QueryError
	for _, a := range []admin.Action{{}, {Kind: admin.Move}, {Kind: admin.Move, To: "up"}, {Kind: admin.Move, Class: "x"}} {
		if _, _, err := o.Act(id["a"], a); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestX7_PlainActiveSessionsCannotBePaused(t *testing.T) {
	o := openOffice(t, nil)
	o.q.Admit(queue.Ask{Key: queue.Key{Principal: "p", Object: "o", Client: "addr:192.0.2.1"}, SizeBytes: mib})
	var c *admin.ConflictError
	s := o.page(admin.SessionsQuery{State: admin.StateActive}).Sessions[0]
	if _, _, err := o.Act(s.ID, admin.Action{Kind: admin.Pause}); !errors.As(err, &c) || c.Reason != o.notPausable {
		t.Errorf("%v", err)
	}
}

// TestX6_MomentsStandStillAndFollowTheWallClock: a session has the same arrival on every page, unless the system's clock is set.
func TestX6_MomentsStandStillAndFollowTheWallClock(t *testing.T) {
	o := openOffice(t, nil)
	o.now = time.Minute
	o.ask("p", "o", queue.Release)
	arrived := func() time.Time { return o.page(admin.SessionsQuery{State: admin.StateAll}).Sessions[0].ArrivedAt.Time }
	first := arrived()
	if first != officeDay.Add(time.Minute) {
		t.Fatalf("arrived at %v", first)
	}
	o.now, o.shift = o.now+time.Second, 3*time.Millisecond // the two clocks drift
	if got := arrived(); got != first {
		t.Errorf("the arrival moved by %v", got.Sub(first))
	}
	o.shift = time.Hour // the wall clock is set
	if got := arrived(); got.Sub(first) != time.Hour {
		t.Errorf("the arrival followed by %v", got.Sub(first))
	}
}

// TestX6_TheHashIsSipHash: the published vector of 15 bytes 00..0e under the key 00..0f; the purpose is the first byte.
func TestX6_TheHashIsSipHash(t *testing.T) {
	k := hashKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	if got := k.sum(0, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e"); got != 0xa129ca6149be45e5 {
		t.Errorf("%x", got)
	}
	if got := k.sum(0, "\x01\x02\x03\x04\x05\x06\x07"); got != 0x93f5f5799a932462 {
		t.Errorf("%x", got)
	}
}

// BenchmarkX6_6_6 is what the operator's pages cost with 65,536 sessions that wait.
func BenchmarkX6_6_6(b *testing.B) {
	o := openOffice(b, nil)
	o.ask("first", "running", queue.Release)
	for i := range 65536 {
		o.ask(fmt.Sprint("user:", i%1000), fmt.Sprint("packages.example.com/o", i), queue.Class(i%queue.Classes))
	}
	b.Run("queue", func(b *testing.B) {
		for b.Loop() {
			o.Queue()
		}
	})
	for name, q := range map[string]admin.SessionsQuery{
		"page-100":         {State: admin.StateWaiting, Limit: 100},
		"page-1000-deep":   {State: admin.StateWaiting, Limit: 1000, After: formatMark(queue.Mark{Phase: 1, Position: 60000})},
		"class":            {State: admin.StateWaiting, Limit: 1000, Class: "background"},
		"principal":        {State: admin.StateWaiting, Limit: 100, Principal: "user:77"},
		"principal-hash":   {State: admin.StateWaiting, Limit: 100, Principal: o.hashed(hashPrincipal, "user:77")},
		"principal-nobody": {State: admin.StateAll, Limit: 100, Principal: "h:0123456789abcdef"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				o.page(q)
			}
		})
	}
}

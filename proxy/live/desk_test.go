package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

func TestS1_NothingChangedIsTheEnvironment(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	doc := b.Current()
	want := admin.EffectiveSettings{Strategy: "ordered", Sessions: 16, Reserve: 1, PerPrincipal: 4, Weights: admin.ByClass{Interactive: 8, Release: 4, Bulk: 2, Background: 1},
		SessionMinBytes: 16 << 20, IdleSeconds: 30, AgingMinutes: 15, Preempt: true, RangesPerSession: 4, SessionsElastic: 32,
		Mode: "normal", Windows: map[string]admin.WindowSettings{}, Principals: map[string]admin.PrincipalSettings{}, Quotas: admin.QuotaSettings{Zone: "UTC"}}
	if doc.Revision != 0 || string(doc.Overrides) != "{}" || !same(doc.Effective, want) || doc.Admission != "sessions" || doc.Problem != "" || doc.Persisted ||
		doc.UpdatedBy != "" || doc.UpdatedAt != nil {
		t.Errorf("%+v", doc)
	}
	if len(b.applied) != 0 {
		t.Errorf("applied %+v", b.applied)
	}
}

func TestS1_EveryFieldIsAppliedAndKept(t *testing.T) {
	for _, one := range []struct {
		overrides string
		want      func(*queue.Policy)
	}{
		{`{"strategy":"shared"}`, func(p *queue.Policy) { p.Strategy = queue.Shared }},
		{`{"strategy":"smallest-first"}`, func(p *queue.Policy) { p.Strategy = queue.SmallestFirst }},
		{`{"strategy":"fair-sojourn"}`, func(p *queue.Policy) { p.Strategy = queue.FairSojourn }},
		{`{"sessions":20}`, func(p *queue.Policy) { p.Sessions = 20 }},
		{`{"reserve":0}`, func(p *queue.Policy) { p.Reserve = 0 }},
		{`{"perPrincipal":16}`, func(p *queue.Policy) { p.PerPrincipal = 16 }},
		{`{"weights":{"interactive":1,"release":1000,"bulk":3,"background":4}}`, func(p *queue.Policy) { p.Weights = [queue.Classes]int{1, 1000, 3, 4} }},
		{`{"sessionMinBytes":0}`, func(p *queue.Policy) { p.SessionMinBytes = 0 }},
		{`{"sessionMinBytes":1099511627776}`, func(p *queue.Policy) { p.SessionMinBytes = 1 << 40 }},
		{`{"idleSeconds":3600}`, func(p *queue.Policy) { p.IdleFor = time.Hour }},
		{`{"agingMinutes":0}`, func(p *queue.Policy) { p.AgingEvery = 0 }},
		{`{"agingMinutes":10080}`, func(p *queue.Policy) { p.AgingEvery = 7 * 24 * time.Hour }},
		{`{"preempt":false}`, func(p *queue.Policy) { p.Preempt = false }},
		{`{"rangesPerSession":64}`, func(p *queue.Policy) { p.RangesPerSession = 64 }},
		{`{"sessionsElastic":16}`, func(p *queue.Policy) { p.SessionsElastic = 16 }},
		{`{"sessionsElastic":1024}`, func(p *queue.Policy) { p.SessionsElastic = 1024 }},
	} {
		b := start(t, environment(), &config.MemoryRecords{})
		want := environment()
		one.want(&want)
		doc := b.must(one.overrides)
		if len(b.applied) != 1 || b.applied[0] != want || !same(doc.Effective, effective(baseOf(want))) {
			t.Errorf("%s: applied %+v, want %+v", one.overrides, b.applied, want)
		}
		if string(doc.Overrides) != one.overrides || doc.Revision != 1 || doc.UpdatedBy != "token" || doc.UpdatedAt == nil || !doc.UpdatedAt.Equal(day) {
			t.Errorf("%s: kept as %+v", one.overrides, doc)
		}
		if (doc.Admission == "per-request") != (want.Strategy == queue.Shared) {
			t.Errorf("%s: admission %s", one.overrides, doc.Admission)
		}
		if back := b.must(`{}`); b.applied[1] != environment() || back.Revision != 2 || string(back.Overrides) != "{}" {
			t.Errorf("%s: {} gave %+v", one.overrides, b.applied[1])
		}
	}
}

func TestS2_SessionsAloneLowersWhatDoesNotFitAndRaisesNothing(t *testing.T) {
	wide := environment()
	wide.Reserve, wide.PerPrincipal = 6, 10
	off, none := environment(), environment()
	off.SessionsElastic, none.SessionsElastic = off.Sessions, 0
	for _, one := range []struct {
		base                         queue.Policy
		overrides                    string
		reserve, perPrincipal, extra int
	}{
		{wide, `{"sessions":8}`, 6, 8, 32},
		{wide, `{"sessions":4}`, 3, 4, 32},
		{wide, `{"sessions":1}`, 0, 1, 32},
		{wide, `{"sessions":400}`, 6, 10, 400}, // elastic is raised: it may not be below the slots
		{off, `{"sessions":8}`, 1, 4, 8},       // off stays off
		{off, `{"sessions":20}`, 1, 4, 20},
		{none, `{"sessions":20}`, 1, 4, 20},
		{none, `{"reserve":1}`, 1, 4, 16},
		{wide, `{"sessions":4,"reserve":0,"perPrincipal":2,"sessionsElastic":5}`, 0, 2, 5},
		{wide, `{"sessions":400,"sessionsElastic":500}`, 6, 10, 500},
	} {
		b := start(t, one.base, &config.MemoryRecords{})
		doc := b.must(one.overrides)
		if e := doc.Effective; e.Reserve != one.reserve || e.PerPrincipal != one.perPrincipal || e.SessionsElastic != one.extra {
			t.Errorf("%s: reserve %d, per principal %d, elastic %d; want %d, %d, %d", one.overrides, e.Reserve, e.PerPrincipal, e.SessionsElastic,
				one.reserve, one.perPrincipal, one.extra)
		}
		if string(doc.Overrides) != one.overrides {
			t.Errorf("%s: kept as %s: what follows is not stored", one.overrides, doc.Overrides)
		}
	}
}

func TestS2_AChangeReplacesAllEarlierOnes(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	b.must(`{"sessions":4,"preempt":false}`)
	doc := b.must(`{"strategy":"shared"}`)
	if string(doc.Overrides) != `{"strategy":"shared"}` || doc.Effective.Sessions != 16 || !doc.Effective.Preempt {
		t.Errorf("%+v", doc)
	}
}

func TestS2_OfTwoRacingChangesOneIsRefused(t *testing.T) {
	for range 50 {
		b := start(t, environment(), &config.MemoryRecords{})
		var wait sync.WaitGroup
		errs := make(chan error, 2)
		for i := range 2 {
			wait.Go(func() {
				_, err := b.Change(context.Background(), fmt.Appendf(nil, `{"expectedRevision":0,"overrides":{"sessions":%d}}`, i+2), "token")
				errs <- err
			})
		}
		wait.Wait()
		one, other := <-errs, <-errs
		if one == nil {
			one, other = other, one
		}
		var stale *admin.RevisionError
		if other != nil || !errors.As(one, &stale) || stale.Current != 1 {
			t.Fatalf("%v and %v", one, other)
		}
		if len(b.applied) != 1 || len(b.changed) != 1 || b.applied[0].Sessions != b.Current().Effective.Sessions {
			t.Fatalf("applied %d times, %d lines", len(b.applied), len(b.changed))
		}
	}
}

func TestS3_TheStoredRecordIsInForceAtTheStart(t *testing.T) {
	b := start(t, environment(), holding(t, `{"sessions":3,"ofTheFuture":{"a":[1]}}`)) // a newer version's field is skipped
	doc := b.Current()
	if len(b.applied) != 1 || b.applied[0].Sessions != 3 || doc.Problem != "" || doc.Revision != 1 || doc.UpdatedBy != "token" {
		t.Errorf("%+v, applied %+v", doc, b.applied)
	}
	if !strings.Contains(string(doc.Overrides), "ofTheFuture") {
		t.Errorf("the record lost a field: %s", doc.Overrides)
	}
	if len(b.changed) != 0 {
		t.Error("loading is no change")
	}
}

func TestS3_ARecordThatDoesNotFitIsAProblemAndTheEnvironmentRules(t *testing.T) {
	for _, text := range []string{`{"sessions":5000}`, `{"reserve":16}`, `{"sessions":"8"}`, `[]`, `{`, `{"sessions":513}`} {
		b := start(t, environment(), holding(t, text))
		doc := b.Current()
		if doc.Problem == "" || !same(doc.Effective, effective(baseOf(environment()))) || doc.Revision != 1 {
			t.Errorf("%s: %+v", text, doc)
		}
		if after := b.must(`{"sessions":8}`); after.Problem != "" || after.Revision != 2 || b.applied[len(b.applied)-1].Sessions != 8 {
			t.Errorf("%s: not mended: %+v", text, after)
		}
	}
}

func TestS3_AStoreThatDoesNotAnswerStopsNothing(t *testing.T) {
	b := start(t, environment(), broken{})
	if doc := b.Current(); doc.Problem == "" || strings.Contains(doc.Problem, "secret-host") || !same(doc.Effective, effective(baseOf(environment()))) || !doc.Persisted {
		t.Errorf("%+v", doc)
	}
	_, err := b.put(`{"sessions":8}`)
	if !errors.Is(err, errBroken) || len(b.applied) != 0 || len(b.changed) != 0 {
		t.Errorf("%v, applied %+v", err, b.applied)
	}
}

func TestS3_TheFasterOneOfAnotherProcessIsInForceHere(t *testing.T) {
	store := &config.MemoryRecords{}
	b := start(t, environment(), store)
	if _, err := store.Swap(t.Context(), 0, config.Record{Overrides: json.RawMessage(`{"sessions":5}`), UpdatedBy: "127.0.0.1", UpdatedAt: day}); err != nil {
		t.Fatal(err)
	}
	var stale *admin.RevisionError
	if _, err := b.put(`{"sessions":8}`); !errors.As(err, &stale) || stale.Current != 1 {
		t.Errorf("%v", err)
	}
	if doc := b.Current(); doc.Effective.Sessions != 5 || doc.UpdatedBy != "127.0.0.1" || len(b.applied) != 1 {
		t.Errorf("%+v", doc)
	}
}

func TestS3_APolicyThatIsNotTakenIsAProblem(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	b.refuse = errors.New("no")
	doc, err := b.put(`{"sessions":8}`)
	if err != nil || doc.Problem == "" || doc.Effective.Sessions != 16 {
		t.Errorf("%+v, %v", doc, err)
	}
}

// TestS3_APolicyThatMeetsADefectIsAProblem: the record is saved, the queue panicked. Whoever looks sees both, and the next change mends it.
func TestS3_APolicyThatMeetsADefectIsAProblem(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	apply := b.set.Apply
	b.set.Apply = func(Effective) error { panic("a defect") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the defect was hidden")
			}
		}()
		_, _ = b.put(`{"sessions":8}`)
	}()
	if doc := b.Current(); doc.Problem == "" || doc.Revision != 1 || string(doc.Overrides) != `{"sessions":8}` || doc.Effective.Sessions != 16 {
		t.Errorf("%+v", doc)
	}
	b.set.Apply = apply
	if doc := b.must(`{"sessions":8}`); doc.Problem != "" || doc.Revision != 2 || doc.Effective.Sessions != 8 {
		t.Errorf("%+v", doc)
	}
}

// hanging is a store that answers when its context ends.
type hanging struct {
	config.RecordStore
	asked chan struct{}
}

func (h hanging) Swap(ctx context.Context, _ int64, _ config.Record) (config.Record, error) {
	h.asked <- struct{}{}
	<-ctx.Done()
	return config.Record{}, ctx.Err()
}

func TestS3_BehindAStoreThatHangsAChangeWaitsNoLongerThanItsOwnTime(t *testing.T) {
	h := hanging{&config.MemoryRecords{}, make(chan struct{}, 1)}
	b := start(t, environment(), h)
	first, release := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := b.Change(first, []byte(`{"expectedRevision":0,"overrides":{}}`), "token")
		ended <- err
	}()
	<-h.asked
	second, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Change(second, []byte(`{"expectedRevision":0,"overrides":{}}`), "token"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(b.applied) != 0 {
		t.Errorf("applied %+v", b.applied)
	}
}

func TestL3_FaultsAreBounded(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	var text strings.Builder
	text.WriteString(`{"sessions":0`)
	for i := range 7000 {
		fmt.Fprintf(&text, `,"%x":1`, i)
	}
	text.WriteString("}")
	_, err := b.put(text.String())
	wrong := faultsOf(t, err)
	if len(wrong) != maxFaults || len(err.Error()) > 4096 {
		t.Errorf("%d faults in %d bytes", len(wrong), len(err.Error()))
	}
}

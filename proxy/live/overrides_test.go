package live

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/config"
)

// refused are overrides that must be refused, with the field that is named.
var refused = []struct{ overrides, field string }{
	// wrong types
	{`{"strategy":1}`, "strategy"}, {`{"strategy":null}`, "strategy"}, {`{"strategy":["ordered"]}`, "strategy"},
	{`{"sessions":"8"}`, "sessions"}, {`{"sessions":null}`, "sessions"}, {`{"sessions":8.0}`, "sessions"}, {`{"sessions":1e1}`, "sessions"}, {`{"sessions":true}`, "sessions"},
	{`{"reserve":"1"}`, "reserve"}, {`{"reserve":0.5}`, "reserve"}, {`{"perPrincipal":{}}`, "perPrincipal"}, {`{"perPrincipal":[]}`, "perPrincipal"},
	{`{"weights":8}`, "weights"}, {`{"weights":null}`, "weights"}, {`{"weights":"interactive=8"}`, "weights"},
	{`{"weights":{"interactive":8,"release":4,"bulk":2}}`, "weights"}, {`{"weights":{}}`, "weights"},
	{`{"weights":{"interactive":8,"release":4,"bulk":2,"background":1,"night":1}}`, "weights"},
	{`{"weights":{"interactive":8,"release":4,"bulk":2,"Background":1}}`, "weights"},
	{`{"weights":{"interactive":8,"release":4,"bulk":2,"bulk":1}}`, "weights"},
	{`{"weights":{"interactive":8,"release":4,"bulk":"2","background":1}}`, "weights.bulk"},
	{`{"sessionMinBytes":"16MiB"}`, "sessionMinBytes"}, {`{"idleSeconds":"30s"}`, "idleSeconds"}, {`{"idleSeconds":1.5}`, "idleSeconds"},
	{`{"agingMinutes":false}`, "agingMinutes"}, {`{"preempt":1}`, "preempt"}, {`{"preempt":"true"}`, "preempt"}, {`{"preempt":null}`, "preempt"},
	{`{"rangesPerSession":"4"}`, "rangesPerSession"}, {`{"sessionsElastic":"off"}`, "sessionsElastic"},
	// too low
	{`{"strategy":""}`, "strategy"}, {`{"sessions":0}`, "sessions"}, {`{"sessions":-1}`, "sessions"}, {`{"sessions":-99999999999999999999}`, "sessions"},
	{`{"reserve":-1}`, "reserve"}, {`{"perPrincipal":0}`, "perPrincipal"}, {`{"sessionMinBytes":-1}`, "sessionMinBytes"}, {`{"idleSeconds":0}`, "idleSeconds"},
	{`{"idleSeconds":-9223372036854775808}`, "idleSeconds"}, {`{"agingMinutes":-1}`, "agingMinutes"}, {`{"rangesPerSession":0}`, "rangesPerSession"},
	{`{"sessionsElastic":15}`, "sessionsElastic"}, {`{"sessionsElastic":0}`, "sessionsElastic"}, {`{"sessionsElastic":-5}`, "sessionsElastic"},
	{`{"weights":{"interactive":8,"release":0,"bulk":2,"background":1}}`, "weights.release"},
	// too high
	{`{"strategy":"fastest"}`, "strategy"}, {`{"strategy":"Ordered"}`, "strategy"}, {`{"sessions":1025}`, "sessions"}, {`{"sessions":99999999999999999999}`, "sessions"},
	{`{"reserve":16}`, "reserve"}, {`{"perPrincipal":17}`, "perPrincipal"}, {`{"perPrincipal":4294967297}`, "perPrincipal"},
	{`{"sessionMinBytes":1099511627777}`, "sessionMinBytes"}, {`{"idleSeconds":3601}`, "idleSeconds"}, {`{"idleSeconds":9223372036854775807}`, "idleSeconds"},
	{`{"agingMinutes":10081}`, "agingMinutes"}, {`{"agingMinutes":307445734561825861}`, "agingMinutes"}, {`{"rangesPerSession":65}`, "rangesPerSession"},
	{`{"sessionsElastic":1025}`, "sessionsElastic"}, {`{"weights":{"interactive":8,"release":4,"bulk":2,"background":1001}}`, "weights.background"},
	// conflicts
	{`{"sessions":4,"reserve":4}`, "reserve"}, {`{"sessions":4,"perPrincipal":5}`, "perPrincipal"}, {`{"sessions":40,"sessionsElastic":39}`, "sessionsElastic"},
	{`{"sessions":513}`, "sessions"}, // above ARKVORY_DOWNLOAD_QUEUE_LIMIT
	{`{"sessions":8,"sessions":8}`, "sessions"},
	// unknown
	{`{"Sessions":8}`, "Sessions"}, {`{"queueLimit":8}`, "queueLimit"}, {`{"holdSeconds":8}`, "holdSeconds"}, {`{"":8}`, ""}, {`{"` + strings.Repeat("x", 99) + `":1}`, strings.Repeat("x", 64)},
	// no object
	{`[]`, "overrides"}, {`null`, "overrides"}, {`"x"`, "overrides"}, {`7`, "overrides"},
}

func TestS2_EveryWrongFieldIsRefusedByItsName(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	before := b.Current()
	for _, one := range refused {
		_, err := b.put(one.overrides)
		faults := faultsOf(t, err)
		if len(faults) != 1 || faults[0].Field != one.field || faults[0].Rule == "" {
			t.Errorf("%s: faults %+v, want one of %q", one.overrides, faults, one.field)
			continue
		}
		if text, err := json.Marshal(faults[0]); err != nil || !json.Valid(text) {
			t.Errorf("%s: %s, %v", one.overrides, text, err)
		}
	}
	if after := b.Current(); after.Revision != before.Revision || len(b.applied)+len(b.changed) != 0 {
		t.Errorf("something was saved or applied: %+v, %d applied", after, len(b.applied))
	}
}

func TestS2_ExamplesOfRefusalsAreAccepted(t *testing.T) {
	for _, one := range refused {
		b := start(t, environment(), &config.MemoryRecords{})
		_, err := b.put(one.overrides)
		for _, fault := range faultsOf(t, err) {
			field, class, _ := strings.Cut(fault.Field, ".")
			if fault.Example == nil || field == "overrides" {
				continue
			}
			value, err := json.Marshal(fault.Example)
			if err != nil {
				t.Fatal(err)
			}
			text := string(value)
			if class != "" {
				text = strings.Replace(`{"interactive":1,"release":1,"bulk":1,"background":1}`, `"`+class+`":1`, `"`+class+`":`+text, 1)
			}
			if _, err := b.put(`{"` + field + `":` + text + `}`); err != nil {
				t.Errorf("%s: the example %s of %s is refused: %v", one.overrides, value, fault.Field, err)
			}
		}
	}
}

func TestS2_AllFaultsAtOnce(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	_, err := b.put(`{"strategy":"fastest","sessions":0,"idleSeconds":"30","agingMinutes":-1,"night":1}`)
	var got []string
	for _, one := range faultsOf(t, err) {
		got = append(got, one.Field)
	}
	if text := strings.Join(got, " "); text != "idleSeconds night strategy sessions agingMinutes" {
		t.Errorf("faults of %q", text)
	}
}

func TestS2_TheEnvelopeIsStrict(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	for _, one := range []struct{ body, field string }{
		{``, "body"}, {`{`, "body"}, {`[]`, "body"}, {`null`, "body"}, {`{} {}`, "body"}, {`{}x`, "body"}, {"{\"overrides\":{}\xff", "body"},
		{`{"expectedRevision":0,"overrides":{"sessions":}}`, "body"},
		{`{"overrides":{}}`, "expectedRevision"}, {`{"expectedRevision":-1,"overrides":{}}`, "expectedRevision"},
		{`{"expectedRevision":"0","overrides":{}}`, "expectedRevision"}, {`{"expectedRevision":0.0,"overrides":{}}`, "expectedRevision"},
		{`{"expectedRevision":0}`, "overrides"}, {`{"expectedRevision":0,"overrides":null}`, "overrides"}, {`{"expectedRevision":0,"overrides":[]}`, "overrides"},
		{`{"expectedRevision":0,"overrides":{},"force":true}`, "force"}, {`{"expectedRevision":0,"expectedRevision":0,"overrides":{}}`, "expectedRevision"},
	} {
		_, err := b.Change(t.Context(), []byte(one.body), "token")
		if faults := faultsOf(t, err); len(faults) != 1 || faults[0].Field != one.field {
			t.Errorf("%q: faults %+v, want one of %q", one.body, faults, one.field)
		}
	}
	if len(b.applied) != 0 || b.Current().Revision != 0 {
		t.Error("something was applied")
	}
}

func FuzzChange(f *testing.F) {
	for _, one := range refused {
		f.Add(`{"expectedRevision":0,"overrides":` + one.overrides + `}`)
	}
	for _, one := range refusedNested {
		f.Add(`{"expectedRevision":0,"overrides":` + one.overrides + `}`)
	}
	f.Add(`{"expectedRevision":0,"overrides":{"mode":"dry-run","windows":{"bulk":{"zone":"Europe/Berlin","outsideShare":0.25,"open":[{"days":["mon"],"from":"22:00","to":"06:00"}]}}}}`)
	f.Add(`{"expectedRevision":0,"overrides":{"principals":{"user:ci":{"class":"bulk","bytesPerDay":5,"bytesPerWeek":9}},"quotas":{"bytesPerDay":1,"bytesPerWeek":2,"zone":"UTC"}}}`)
	f.Add(`{"expectedRevision":0,"overrides":{"strategy":"shared","sessions":3,"weights":{"interactive":8,"release":4,"bulk":2,"background":1}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		b := start(t, environment(), &config.MemoryRecords{})
		doc, err := b.Change(t.Context(), []byte(body), "token")
		if err != nil {
			if len(b.applied) != 0 || b.Current().Revision != 0 {
				t.Errorf("refused and applied: %v", err)
			}
			return
		}
		if len(b.applied) != 1 || b.applied[0].Validate() != nil || doc.Revision != 1 {
			t.Errorf("applied %+v as %+v", b.applied, doc)
		}
		again := start(t, environment(), holding(t, string(doc.Overrides)))
		if again.Current().Problem != "" || !same(again.Current().Effective, doc.Effective) {
			t.Errorf("%s reads as %+v, was %+v", doc.Overrides, again.Current(), doc)
		}
	})
}

// TestS3_AWeightOfANewerClassIsSkipped: fields of a newer version are skipped on every level of a stored record, and refused in a change.
func TestS3_AWeightOfANewerClassIsSkipped(t *testing.T) {
	const text = `{"sessions":3,"weights":{"interactive":5,"release":4,"bulk":3,"background":2,"vip":16}}`
	b := start(t, environment(), holding(t, text))
	if doc := b.Current(); doc.Problem != "" || doc.Effective.Sessions != 3 || doc.Effective.Weights.Interactive != 5 {
		t.Errorf("%+v", doc)
	}
	if wrong := faultsOf(t, func() error { _, err := b.put(text); return err }()); len(wrong) != 1 || wrong[0].Field != "weights" {
		t.Errorf("%+v", wrong)
	}
}

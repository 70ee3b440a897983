package live

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/window"
)

// huge is a number that no reader of JSON keeps.
const huge = "99999999999999999999"

// open is a window of bulk with that spans' list; spanOf is one of that span.
func open(spans string) string  { return `{"windows":{"bulk":{"open":` + spans + `}}}` }
func spanOf(text string) string { return open(`[` + text + `]`) }

// refusedNested are overrides that must be refused, with the one field that is named.
var refusedNested = []struct{ overrides, field string }{
	// mode
	{`{"mode":1}`, "mode"}, {`{"mode":null}`, "mode"}, {`{"mode":[]}`, "mode"}, {`{"mode":{}}`, "mode"}, {`{"mode":true}`, "mode"}, {`{"mode":` + huge + `}`, "mode"},
	{`{"mode":""}`, "mode"}, {`{"mode":"Normal"}`, "mode"}, {`{"mode":"paused"}`, "mode"}, {`{"mode":"normal","mode":"normal"}`, "mode"},
	// windows: wrong types
	{`{"windows":null}`, "windows"}, {`{"windows":[]}`, "windows"}, {`{"windows":"always"}`, "windows"}, {`{"windows":0}`, "windows"}, {`{"windows":false}`, "windows"},
	{`{"windows":{"bulk":null}}`, "windows.bulk"}, {`{"windows":{"bulk":[]}}`, "windows.bulk"}, {`{"windows":{"bulk":"22:00-06:00"}}`, "windows.bulk"},
	{open(`null`), "windows.bulk.open"}, {open(`{}`), "windows.bulk.open"}, {open(`"22:00-06:00"`), "windows.bulk.open"}, {open(`7`), "windows.bulk.open"},
	{spanOf(`null`), "windows.bulk.open[0]"}, {spanOf(`"22:00-06:00"`), "windows.bulk.open[0]"}, {spanOf(`[]`), "windows.bulk.open[0]"}, {spanOf(`22`), "windows.bulk.open[0]"},
	{spanOf(`{"from":2200,"to":"06:00"}`), "windows.bulk.open[0].from"}, {spanOf(`{"from":null,"to":"06:00"}`), "windows.bulk.open[0].from"},
	{spanOf(`{"from":"22:00","to":600}`), "windows.bulk.open[0].to"}, {spanOf(`{"from":"22:00","to":["06:00"]}`), "windows.bulk.open[0].to"},
	{spanOf(`{"days":"mon","from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"}, {spanOf(`{"days":null,"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"},
	{spanOf(`{"days":[1],"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"}, {spanOf(`{"days":{"mon":true},"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"},
	{`{"windows":{"bulk":{"zone":1,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"zone":null,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"outsideShare":"0.5","open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	{`{"windows":{"bulk":{"outsideShare":null,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	// windows: too low, too high
	{open(`[]`), "windows.bulk.open"}, {`{"windows":{"bulk":{}}}`, "windows.bulk.open"}, {`{"windows":{"bulk":{"zone":"UTC"}}}`, "windows.bulk.open"},
	{open(`[` + strings.Repeat(`{"from":"22:00","to":"06:00"},`, 16) + `{"from":"22:00","to":"06:00"}]`), "windows.bulk.open"},
	{spanOf(`{"from":"24:00","to":"06:00"}`), "windows.bulk.open[0].from"}, {spanOf(`{"from":"-1:00","to":"06:00"}`), "windows.bulk.open[0].from"},
	{spanOf(`{"from":"","to":"06:00"}`), "windows.bulk.open[0].from"}, {spanOf(`{"to":"06:00"}`), "windows.bulk.open[0].from"},
	{spanOf(`{"from":"22:60","to":"06:00"}`), "windows.bulk.open[0].from"}, {spanOf(`{"from":"2:00","to":"06:00"}`), "windows.bulk.open[0].from"},
	{spanOf(`{"from":"22:00","to":"24:01"}`), "windows.bulk.open[0].to"}, {spanOf(`{"from":"22:00","to":"99:99"}`), "windows.bulk.open[0].to"},
	{spanOf(`{"from":"22:00"}`), "windows.bulk.open[0].to"}, {spanOf(`{"from":"22:00","to":"` + strings.Repeat("6", 9999) + `"}`), "windows.bulk.open[0].to"},
	{spanOf(`{"days":[],"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"}, {spanOf(`{"days":["Mon"],"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"},
	{spanOf(`{"days":["mon","mon"],"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"}, {spanOf(`{"days":["monday"],"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"},
	{spanOf(`{"days":["sun","mon","tue","wed","thu","fri","sat","sun"],"from":"22:00","to":"06:00"}`), "windows.bulk.open[0].days"},
	{open(`[{"from":"22:00","to":"06:00"},{"from":"x","to":"06:00"}]`), "windows.bulk.open[1].from"},
	{`{"windows":{"bulk":{"zone":"","open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"zone":"Europe/Atlantis","open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"zone":"Local","open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"zone":"../../etc/passwd","open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"zone":"` + strings.Repeat("E", 65) + `","open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.zone"},
	{`{"windows":{"bulk":{"outsideShare":-0.1,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	{`{"windows":{"bulk":{"outsideShare":1.001,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	{`{"windows":{"bulk":{"outsideShare":0.0001,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	{`{"windows":{"bulk":{"outsideShare":1e-1,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	{`{"windows":{"bulk":{"outsideShare":` + huge + `,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.outsideShare"},
	// windows: unknown, twice
	{`{"windows":{"Bulk":{"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.Bulk"}, {`{"windows":{"night":{"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.night"},
	{`{"windows":{"bulk":{"closed":true,"open":[{"from":"22:00","to":"06:00"}]}}}`, "windows.bulk.closed"},
	{spanOf(`{"from":"22:00","to":"06:00","until":"2027"}`), "windows.bulk.open[0].until"},
	{`{"windows":{"bulk":{"open":[{"from":"22:00","to":"06:00"}]},"bulk":{}}}`, "windows.bulk"}, {`{"windows":{},"windows":{}}`, "windows"},
	{`{"windows":{"bulk":{"zone":"UTC","zone":"UTC","open":[]}}}`, "windows.bulk.zone"}, {spanOf(`{"from":"22:00","from":"23:00","to":"06:00"}`), "windows.bulk.open[0].from"},
	// principals
	{`{"principals":null}`, "principals"}, {`{"principals":[]}`, "principals"}, {`{"principals":"user:ci"}`, "principals"}, {`{"principals":3}`, "principals"},
	{`{"principals":{"user:ci":null}}`, "principals.user:ci"}, {`{"principals":{"user:ci":"bulk"}}`, "principals.user:ci"}, {`{"principals":{"user:ci":[]}}`, "principals.user:ci"},
	{`{"principals":{"user:ci":{}}}`, "principals.user:ci"}, {`{"principals":{"":{"class":"bulk"}}}`, "principals."},
	{`{"principals":{"a\u0000b":{"class":"bulk"}}}`, "principals.a\x00b"}, {`{"principals":{"caf\u00e9":{"class":"bulk"}}}`, "principals.café"},
	{`{"principals":{"` + strings.Repeat("x", 257) + `":{"class":"bulk"}}}`, "principals." + strings.Repeat("x", 256)},
	{`{"principals":{"user:ci":{"class":1}}}`, "principals.user:ci.class"}, {`{"principals":{"user:ci":{"class":null}}}`, "principals.user:ci.class"},
	{`{"principals":{"user:ci":{"class":"night"}}}`, "principals.user:ci.class"}, {`{"principals":{"user:ci":{"class":""}}}`, "principals.user:ci.class"},
	{`{"principals":{"user:ci":{"bytesPerDay":"10GB"}}}`, "principals.user:ci.bytesPerDay"}, {`{"principals":{"user:ci":{"bytesPerDay":null}}}`, "principals.user:ci.bytesPerDay"},
	{`{"principals":{"user:ci":{"bytesPerDay":1.5}}}`, "principals.user:ci.bytesPerDay"}, {`{"principals":{"user:ci":{"bytesPerDay":1e9}}}`, "principals.user:ci.bytesPerDay"},
	{`{"principals":{"user:ci":{"bytesPerDay":-1}}}`, "principals.user:ci.bytesPerDay"}, {`{"principals":{"user:ci":{"bytesPerDay":9007199254740992}}}`, "principals.user:ci.bytesPerDay"},
	{`{"principals":{"user:ci":{"bytesPerDay":` + huge + `}}}`, "principals.user:ci.bytesPerDay"},
	{`{"principals":{"user:ci":{"bytesPerWeek":false}}}`, "principals.user:ci.bytesPerWeek"}, {`{"principals":{"user:ci":{"bytesPerWeek":-5}}}`, "principals.user:ci.bytesPerWeek"},
	{`{"principals":{"user:ci":{"bytesPerWeek":` + huge + `}}}`, "principals.user:ci.bytesPerWeek"}, {`{"principals":{"user:ci":{"bytesPerWeek":-` + huge + `}}}`, "principals.user:ci.bytesPerWeek"},
	{`{"principals":{"user:ci":{"bytesPerDay":11,"bytesPerWeek":10}}}`, "principals.user:ci.bytesPerDay"}, // in conflict
	{`{"principals":{"user:ci":{"class":"bulk","rate":1}}}`, "principals.user:ci.rate"}, {`{"principals":{"user:ci":{"rate":1}}}`, "principals.user:ci.rate"},
	{`{"principals":{"user:ci":{"class":"bulk"},"user:ci":{"class":"bulk"}}}`, "principals.user:ci"},
	{`{"principals":{"user:ci":{"class":"bulk","class":"bulk"}}}`, "principals.user:ci.class"}, {`{"principals":{},"principals":{}}`, "principals"},
	// quotas
	{`{"quotas":null}`, "quotas"}, {`{"quotas":[]}`, "quotas"}, {`{"quotas":10}`, "quotas"}, {`{"quotas":"none"}`, "quotas"},
	{`{"quotas":{"bytesPerDay":"1"}}`, "quotas.bytesPerDay"}, {`{"quotas":{"bytesPerDay":null}}`, "quotas.bytesPerDay"}, {`{"quotas":{"bytesPerDay":0.5}}`, "quotas.bytesPerDay"},
	{`{"quotas":{"bytesPerDay":-1}}`, "quotas.bytesPerDay"}, {`{"quotas":{"bytesPerDay":9007199254740992}}`, "quotas.bytesPerDay"}, {`{"quotas":{"bytesPerDay":` + huge + `}}`, "quotas.bytesPerDay"},
	{`{"quotas":{"bytesPerWeek":[]}}`, "quotas.bytesPerWeek"}, {`{"quotas":{"bytesPerWeek":-1}}`, "quotas.bytesPerWeek"}, {`{"quotas":{"bytesPerWeek":` + huge + `}}`, "quotas.bytesPerWeek"},
	{`{"quotas":{"zone":0}}`, "quotas.zone"}, {`{"quotas":{"zone":null}}`, "quotas.zone"}, {`{"quotas":{"zone":""}}`, "quotas.zone"}, {`{"quotas":{"zone":"Local"}}`, "quotas.zone"},
	{`{"quotas":{"zone":"Mars/Olympus"}}`, "quotas.zone"}, {`{"quotas":{"zone":"` + strings.Repeat("E", 999) + `"}}`, "quotas.zone"},
	{`{"quotas":{"bytesPerDay":1000,"bytesPerWeek":999}}`, "quotas.bytesPerDay"}, // in conflict
	{`{"quotas":{"bytesPerMonth":1}}`, "quotas.bytesPerMonth"}, {`{"quotas":{"` + strings.Repeat("x", 99) + `":1}}`, "quotas." + strings.Repeat("x", 64)},
	{`{"quotas":{"zone":"UTC","zone":"UTC"}}`, "quotas.zone"}, {`{"quotas":{},"quotas":{}}`, "quotas"},
}

func TestS2_EveryWrongNestedFieldIsRefusedByItsName(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	before := b.Current()
	for _, one := range refusedNested {
		_, err := b.put(one.overrides)
		faults := faultsOf(t, err)
		if len(faults) != 1 || faults[0].Field != one.field || faults[0].Rule == "" {
			t.Errorf("%.200s: faults %+v, want one of %q", one.overrides, faults, one.field)
			continue
		}
		if text, err := json.Marshal(faults[0]); err != nil || !json.Valid(text) {
			t.Errorf("%.200s: %s, %v", one.overrides, text, err)
		}
		if faults[0].Example != nil {
			b.accepts(one.overrides, faults[0])
		}
	}
	if after := b.Current(); after.Revision != before.Revision || len(b.applied)+len(b.changed) != 0 {
		t.Errorf("something was saved or applied: %+v, %d applied", after, len(b.applied))
	}
}

// accepts puts the example of a fault into the overrides that had it, and wants them to be taken by a desk of its own.
func (b *bench) accepts(overrides string, fault admin.SettingFault) {
	b.t.Helper()
	example, err := json.Marshal(fault.Example)
	if err != nil {
		b.t.Fatal(err)
	}
	var tree any
	if json.Unmarshal([]byte(overrides), &tree) != nil {
		b.t.Fatalf("%s is no JSON", overrides)
	}
	path := strings.FieldsFunc(strings.NewReplacer("[", ".", "]", "").Replace(fault.Field), func(r rune) bool { return r == '.' })
	mended, err := json.Marshal(planted(tree, path, json.RawMessage(example)))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := start(b.t, environment(), &config.MemoryRecords{}).put(string(mended)); err != nil {
		b.t.Errorf("%.200s: the example %s of %s is refused: %v", overrides, example, fault.Field, err)
	}
}

// planted is a tree of JSON with the value at a path.
func planted(tree any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch at := tree.(type) {
	case map[string]any:
		at[path[0]] = planted(at[path[0]], path[1:], value)
		return at
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		at[i] = planted(at[i], path[1:], value)
		return at
	}
	return map[string]any{path[0]: planted(nil, path[1:], value)}
}

func TestS2_AllNestedFaultsAtOnce(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	_, err := b.put(`{"mode":"off","sessions":0,"windows":{"bulk":{"zone":7,"outsideShare":2,"open":[{"from":5,"to":"25:00","days":["x"]},{"from":"1","to":"06:00"}]},"night":{}},
		"principals":{"user:ci":{"class":"fast","bytesPerDay":"1"},"user:b":{"bytesPerDay":5,"bytesPerWeek":4,"x":1}},"quotas":{"zone":"X","bytesPerDay":-1,"bytesPerWeek":{}}}`)
	found := map[string]bool{}
	for _, one := range faultsOf(t, err) {
		found[one.Field] = true
	}
	for _, want := range []string{"mode", "sessions", "windows.bulk.zone", "windows.bulk.outsideShare", "windows.bulk.open[0].from", "windows.bulk.open[0].to", "windows.bulk.open[0].days",
		"windows.bulk.open[1].from", "windows.night", "principals.user:ci.class", "principals.user:ci.bytesPerDay", "principals.user:b.bytesPerDay", "principals.user:b.x",
		"quotas.zone", "quotas.bytesPerDay", "quotas.bytesPerWeek"} {
		if !found[want] {
			t.Errorf("no fault of %s among %v", want, found)
		}
		delete(found, want)
	}
	if len(found) > 0 {
		t.Errorf("more faults: %v", found)
	}
}

func TestS1_EveryNestedFieldIsAppliedAndKept(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	text := `{"mode":"queue-all","windows":{"background":{"outsideShare":0.125,"open":[{"days":["sat","sun"],"from":"00:00","to":"24:00"}]},"bulk":{"zone":"Europe/Berlin","open":[{"from":"22:00","to":"06:00"}]}},` +
		`"principals":{"addr:10.0.0.1":{"bytesPerDay":0},"user:ci":{"class":"interactive","bytesPerDay":9007199254740991,"bytesPerWeek":9007199254740991}},` +
		`"quotas":{"bytesPerDay":1000,"bytesPerWeek":5000,"zone":"Asia/Tokyo"}}`
	doc := b.must(text)
	if string(doc.Overrides) != text {
		t.Errorf("kept as %s", doc.Overrides)
	}
	e := b.last
	night := time.Date(2026, 3, 4, 22, 30, 0, 0, time.UTC) // 23:30 in Berlin, a Wednesday
	if bulk := e.Windows[queue.Bulk]; bulk == nil || !bulk.Open(night) || bulk.Open(night.Add(12*time.Hour)) || bulk.OutsideShare() != 0 {
		t.Errorf("bulk: %+v", bulk)
	}
	if back := e.Windows[queue.Background]; back == nil || back.Open(night) || back.Share(night) != 125 || back.Share(night.AddDate(0, 0, 3)) != window.Whole {
		t.Errorf("background: %+v", back)
	}
	if e.Windows[queue.Interactive] != nil || e.Windows[queue.Release] != nil {
		t.Error("a class without a window is always open")
	}
	if len(e.Principals) != 2 || e.Principals["addr:10.0.0.1"] != (PrincipalRule{BytesPerWeek: Inherited}) ||
		e.Principals["user:ci"] != (PrincipalRule{queue.Interactive, true, MaxQuotaBytes, MaxQuotaBytes}) {
		t.Errorf("principals: %+v", e.Principals)
	}
	if e.Quotas.BytesPerDay != 1000 || e.Quotas.BytesPerWeek != 5000 || e.Quotas.Zone.String() != "Asia/Tokyo" {
		t.Errorf("quotas: %+v", e.Quotas)
	}
	shown, err := json.Marshal(doc.Effective)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"mode":"queue-all"`, `"background":{"zone":"UTC","outsideShare":0.125,"open":[{"days":["sat","sun"],"from":"00:00","to":"24:00"}]}`,
		`"bulk":{"zone":"Europe/Berlin","outsideShare":0,"open":[{"from":"22:00","to":"06:00"}]}`, `"addr:10.0.0.1":{"bytesPerDay":0}`,
		`"user:ci":{"class":"interactive","bytesPerDay":9007199254740991,"bytesPerWeek":9007199254740991}`, `"quotas":{"bytesPerDay":1000,"bytesPerWeek":5000,"zone":"Asia/Tokyo"}`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("effective lacks %s:\n%s", want, shown)
		}
	}
	if back := b.must(`{}`); back.Effective.Mode != "normal" || len(back.Effective.Windows)+len(back.Effective.Principals) != 0 || back.Effective.Quotas != (admin.QuotaSettings{Zone: "UTC"}) ||
		b.last.Windows != [queue.Classes]*window.Schedule{} || b.last.Principals != nil || b.last.Quotas != (QuotaRule{}) {
		t.Errorf("{} gave %+v, %+v", back.Effective, b.last)
	}
}

func TestS1_EveryModeIsApplied(t *testing.T) {
	for _, name := range []string{"normal", "queue-all", "pass-through", "reject-new", "dry-run"} {
		b := start(t, environment(), &config.MemoryRecords{})
		if doc := b.must(`{"mode":"` + name + `"}`); doc.Effective.Mode != name || b.last.Policy.Mode.String() != name {
			t.Errorf("%s: %s, applied %s", name, doc.Effective.Mode, b.last.Policy.Mode.String())
		}
	}
}

func TestS1_EdgesOfTheBoundsAreTaken(t *testing.T) {
	for _, text := range []string{
		`{"windows":{}}`, `{"principals":{}}`, `{"quotas":{}}`, `{"quotas":{"bytesPerDay":7,"bytesPerWeek":7}}`, `{"quotas":{"bytesPerDay":7}}`, `{"quotas":{"bytesPerDay":7,"bytesPerWeek":0}}`,
		`{"quotas":{"bytesPerWeek":10},"principals":{"user:ci":{"bytesPerDay":11}}}`, // the week that is inherited is the smaller one, and counts
		open(`[` + strings.Repeat(`{"from":"22:00","to":"06:00"},`, 15) + `{"from":"00:00","to":"00:00"}]`),
		spanOf(`{"days":["mon","tue","wed","thu","fri","sat","sun"],"from":"23:59","to":"24:00"}`),
		`{"windows":{"bulk":{"outsideShare":1,"open":[{"from":"22:00","to":"06:00"}]}}}`, `{"windows":{"bulk":{"outsideShare":0.001,"open":[{"from":"22:00","to":"06:00"}]}}}`,
		`{"principals":{"` + strings.Repeat("~", 256) + `":{"class":"bulk"}," ":{"bytesPerDay":0}}}`,
	} {
		b := start(t, environment(), &config.MemoryRecords{})
		if doc, err := b.put(text); err != nil || !json.Valid(doc.Overrides) {
			t.Errorf("%.120s: %v", text, err)
		}
	}
}

// many is a principals field of that many entries.
func many(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"user:%0250d":{"class":"bulk"}`, i)
	}
	return `{"principals":{` + text.String()[1:] + `}}`
}

func TestL3_PrincipalsAreBounded(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	if doc := b.must(many(MaxPrincipals)); len(doc.Effective.Principals) != MaxPrincipals || len(b.last.Principals) != MaxPrincipals {
		t.Errorf("%d", len(doc.Effective.Principals))
	}
	_, err := b.put(many(MaxPrincipals + 1))
	if wrong := faultsOf(t, err); len(wrong) != 1 || wrong[0].Field != "principals" {
		t.Errorf("%+v", wrong)
	}
	if b.Current().Revision != 1 {
		t.Error("it was saved")
	}
}

func TestS3_NestedFieldsOfANewerVersionAreSkipped(t *testing.T) {
	text := `{"windows":{"night":{"moon":"full"},"bulk":{"holidays":["2027-01-01"],"open":[{"from":"22:00","to":"06:00","until":"2027"}]}},"burst":{"a":{"a":1,"a":2}},
		"principals":{"user:ci":{"class":"bulk","rate":{"x":1}},"user:b":{"rate":1},"user:c":{}},"quotas":{"bytesPerMonth":5,"bytesPerDay":9}}`
	b := start(t, environment(), holding(t, text))
	doc := b.Current()
	if doc.Problem != "" || len(b.applied) != 1 || string(doc.Overrides) != text {
		t.Fatalf("%+v", doc)
	}
	if e := b.last; e.Windows[queue.Bulk] == nil || len(e.Principals) != 1 || e.Principals["user:ci"].Class != queue.Bulk || e.Quotas.BytesPerDay != 9 {
		t.Errorf("%+v", e)
	}
}

func TestS3_ANestedFieldOutOfRangeIsAProblemThatNamesNobody(t *testing.T) {
	for _, one := range []struct{ text, field string }{
		{`{"mode":"hibernate"}`, "mode"},
		{spanOf(`{"from":"25:00","to":"06:00"}`), "windows.bulk.open[0].from"},
		{`{"windows":{"bulk":{"open":{"rule":"nightly"}}}}`, "windows.bulk.open"},
		{`{"principals":{"user:a":{"class":"bulk"},"user:secret":{"class":"fast"}}}`, "principals[1].class"},
		{`{"principals":{"user:secret":{"bytesPerDay":-1}}}`, "principals[0].bytesPerDay"},
		{`{"principals":{"user:secret":{"class":"bulk"},"user:secret":{}}}`, "principals"},
		{`{"principals":{"user:secret":{"class":"bulk","class":"bulk"}}}`, "principals[0]"},
		{`{"quotas":{"bytesPerDay":10,"bytesPerWeek":9}}`, "quotas.bytesPerDay"},
		{many(MaxPrincipals + 1), "principals"},
	} {
		b := start(t, environment(), holding(t, one.text))
		doc := b.Current()
		if !strings.Contains(doc.Problem, one.field+":") || strings.Contains(doc.Problem, "secret") || !same(doc.Effective, effective(baseOf(environment()))) {
			t.Errorf("%.100s: %s", one.text, doc.Problem)
		}
	}
}

func TestS1_TheRecordOfOneProcessReadsTheSameInAnother(t *testing.T) {
	b := start(t, environment(), &config.MemoryRecords{})
	doc := b.must(`{"principals":{"z":{"class":"bulk"},"a":{"bytesPerWeek":3}},"windows":{"release":{"open":[{"from":"01:00","to":"02:00"}]}}}`)
	again := start(t, environment(), holding(t, string(doc.Overrides)))
	if !same(again.Current().Effective, doc.Effective) || again.Current().Problem != "" {
		t.Errorf("%+v and %+v", again.Current(), doc)
	}
	if text, err := json.Marshal(again.Current().Overrides); err != nil || string(text) != string(doc.Overrides) {
		t.Errorf("%s and %s", text, doc.Overrides)
	}
}

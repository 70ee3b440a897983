package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestS1_ValuesOfFields(t *testing.T) {
	for _, one := range []struct{ name, text, want string }{
		{"sessions", "20", "20"}, {"sessions", "many", `"many"`}, {"strategy", "ordered", `"ordered"`}, {"strategy", `"ordered"`, `"ordered"`}, {"preempt", "true", "true"},
		{"sessionMinBytes", "32MiB", "33554432"}, {"sessionMinBytes", "32", "32"}, {"bytesPerDay", "1.5TB", "1500000000000"}, {"idleSeconds", "1m30s", "90"}, {"idleSeconds", "1500ms", `"1500ms"`},
		{"agingMinutes", "2h", "120"}, {"agingMinutes", "90s", `"90s"`}, {"zone", "Europe/Berlin", `"Europe/Berlin"`}, {"newer", `{"a": 1}`, `{"a": 1}`}, {"newer", "", `""`}, {"newer", "1e3", "1e3"},
	} {
		if got := string(valueOf(one.name, one.text)); got != one.want {
			t.Errorf("%s=%s is %s, want %s", one.name, one.text, got, one.want)
		}
	}
}

func TestW1_WindowsAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"22:00-06:00":                   `{"open":[{"from":"22:00","to":"06:00"}]}`,
		"22:00-06:00 Europe/Berlin":     `{"zone":"Europe/Berlin","open":[{"from":"22:00","to":"06:00"}]}`,
		"UTC 22:00-06:00 outside 33.3%": `{"zone":"UTC","outsideShare":0.333,"open":[{"from":"22:00","to":"06:00"}]}`,
		"mon-wed,sun 08:00-12:00, 14:00-18:00; daily 00:00-01:00": `{"open":[{"days":["mon","tue","wed","sun"],"from":"08:00","to":"12:00"},{"days":["mon","tue","wed","sun"],"from":"14:00","to":"18:00"},` +
			`{"days":["mon","tue","wed","thu","fri","sat","sun"],"from":"00:00","to":"01:00"}]}`,
		"Fri-Mon 00:00-24:00 outside 0.1": `{"outsideShare":0.1,"open":[{"days":["fri","sat","sun","mon"],"from":"00:00","to":"24:00"}]}`,
	} {
		value, err := windowOf(text)
		if err != nil || !same(value, json.RawMessage(want)) {
			t.Errorf("%q is %s (%v), want %s", text, value, err, want)
		}
	}
}

// FuzzW1_WindowsComeBack: what is shown of a window can be given back and means the same.
func FuzzW1_WindowsComeBack(f *testing.F) {
	f.Add("mon-fri 22:00-06:00, sat,sun 00:00-24:00 Europe/Berlin outside 10%")
	f.Add("22:00-06:00, mon 01:00-02:00; daily 00:00-01:00")
	f.Add("x")
	f.Fuzz(func(t *testing.T, text string) {
		value, err := windowOf(text)
		if err != nil {
			return
		}
		shown, ok := showWindow(value)
		if !ok || strings.ContainsAny(shown, "\n\x1b") {
			t.Fatalf("%q is shown as %q", text, shown)
		}
		if oneLine(text) != text { // what cannot be seen is not shown and does not come back
			return
		}
		again, err := windowOf(shown)
		if err != nil || !same(everyDay(t, again), everyDay(t, value)) {
			t.Errorf("%q is %s, shown as %q, which is %s (%v)", text, value, shown, again, err)
		}
	})
}

// everyDay writes a window with all seven days where they are left out, which means the same, and its share as it is shown.
func everyDay(t *testing.T, value json.RawMessage) json.RawMessage {
	t.Helper()
	var w window
	if err := json.Unmarshal(value, &w); err != nil {
		t.Fatal(err)
	}
	for i := range w.Open {
		if len(w.Open[i].Days) == 0 {
			w.Open[i].Days = dayNames
		}
	}
	if share, err := w.OutsideShare.Float64(); err != nil || share == 0 || share < 1e-3 || share > 1 || share*1000 != float64(int(share*1000)) {
		w.OutsideShare = "" // of no form that a server takes
	}
	back, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestX9_QuotasAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"bulk": `{"class":"bulk"}`, "100GB/day": `{"bytesPerDay":100000000000}`, "1TiB/week bulk 0/day": `{"bytesPerWeek":1099511627776,"class":"bulk","bytesPerDay":0}`,
	} {
		value, err := quotaOf(text)
		if err != nil || !same(value, json.RawMessage(want)) {
			t.Errorf("%q is %s (%v), want %s", text, value, err, want)
			continue
		}
		shown, ok := showQuota(value)
		again, err := quotaOf(shown)
		if !ok || err != nil || !same(again, value) {
			t.Errorf("%q is shown as %q, which is %s (%v)", text, shown, again, err)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1kB", 1024: "1KiB", 1500: "1500", 32 << 20: "32MiB", 1e11: "100GB", 1 << 40: "1TiB", 9007199254740991: "9007199254740991"} {
		if got := exactBytes(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
		if got, err := parseBytes(exactBytes(n)); err != nil || got != n {
			t.Errorf("%s is %d (%v)", exactBytes(n), got, err)
		}
	}
}

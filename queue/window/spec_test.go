package window_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue/window"
)

var classes = []string{"interactive", "release", "bulk", "background"}

func TestW1_EveryFaultAtOnceWithItsField(t *testing.T) {
	spans := make([]window.Span, 17)
	_, faults := window.CompileAll("windows", map[string]window.Spec{
		"bulk": {Zone: "Europe/Atlantis", OutsideShare: 1.5, Open: []window.Span{
			{From: "22:00", To: "6:00"}, {Days: []string{"mon", "funday"}, From: "24:00", To: "25:00"}, {Days: []string{}, From: "", To: "12:60"}, {Days: []string{"mon", "mon"}, From: "01:00", To: "02:00"},
		}},
		"release":    {OutsideShare: 0.0005},
		"background": {Zone: "Local", Open: spans},
		"nightly":    {},
	}, classes)
	want := []string{
		"windows.background.zone", "windows.background.open",
		"windows.bulk.zone", "windows.bulk.outsideShare", "windows.bulk.open[0].to", "windows.bulk.open[1].days", "windows.bulk.open[1].from", "windows.bulk.open[1].to",
		"windows.bulk.open[2].days", "windows.bulk.open[2].from", "windows.bulk.open[2].to", "windows.bulk.open[3].days",
		`windows."nightly"`, "windows.release.outsideShare", "windows.release.open",
	}
	if len(faults) != len(want) {
		t.Fatalf("%d faults, want %d: %v", len(faults), len(want), faults)
	}
	for i, f := range faults {
		if f.Field != want[i] || f.Rule == "" || f.Example == "" || f.Value == "" || !strings.Contains(f.Error(), f.Rule) {
			t.Errorf("fault %d is %+v, want of %s with rule and example", i, f, want[i])
		}
	}
}

func TestW1_CompileAllKeepsAbsentClassesOpen(t *testing.T) {
	all, faults := window.CompileAll("windows", map[string]window.Spec{"bulk": night("Europe/Berlin", "22:00", "06:00")}, classes)
	if len(faults) > 0 || len(all) != 1 || all["bulk"] == nil || all["bulk"].Zone().String() != "Europe/Berlin" {
		t.Errorf("compiled %v with faults %v", all, faults)
	}
	if none, faults := window.CompileAll("windows", nil, classes); len(none) != 0 || len(faults) != 0 {
		t.Errorf("no windows are %v with faults %v", none, faults)
	}
}

func TestW1_OutsideShareOfThreeDecimals(t *testing.T) {
	for _, c := range []struct {
		share float64
		mille int // -1 = refused
	}{{0, 0}, {0.001, 1}, {0.25, 250}, {0.333, 333}, {0.999, 999}, {1, 1000}, {0.0001, -1}, {0.3335, -1}, {-0.1, -1}, {1.001, -1}} {
		spec := night("", "22:00", "06:00")
		spec.OutsideShare = c.share
		s, faults := window.Compile(spec)
		if c.mille < 0 {
			if len(faults) != 1 || faults[0].Field != "outsideShare" {
				t.Errorf("share %v: faults %v", c.share, faults)
			}
			continue
		}
		if len(faults) > 0 || s.OutsideShare() != c.mille {
			t.Errorf("share %v: %v, want %d per mille", c.share, faults, c.mille)
		}
	}
}

func TestW1_TheFormInJSON(t *testing.T) {
	const text = `{"zone":"Europe/Berlin","outsideShare":0.25,"open":[{"days":["mon","tue"],"from":"22:00","to":"06:00"},{"from":"12:00","to":"24:00"}]}`
	var spec window.Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(spec)
	if err != nil || string(back) != text {
		t.Errorf("%s came back as %s (%v)", text, back, err)
	}
	compile(t, spec)
}

// FuzzCompile feeds anything: a specification is either refused with faults or gives a schedule whose edges agree with it.
func FuzzCompile(f *testing.F) {
	f.Add(`{"zone":"Europe/Berlin","open":[{"days":["sun"],"from":"02:30","to":"24:00"}]}`, int64(1806000000))
	f.Add(`{"outsideShare":0.5,"open":[{"from":"22:00","to":"06:00"},{"from":"23:59","to":"23:59"}]}`, int64(0))
	f.Add(`{"zone":"Local","open":[]}`, int64(-1))
	f.Add(`{"zone":"../etc/passwd","open":[{"from":"+1:00","to":"0x:00"}]}`, int64(1<<40))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		var spec window.Spec
		if json.Unmarshal([]byte(text), &spec) != nil {
			return
		}
		s, faults := window.Compile(spec)
		if (s == nil) != (len(faults) > 0) {
			t.Fatalf("schedule %v with faults %v", s, faults)
		}
		for _, fault := range faults {
			if fault.Field == "" || fault.Rule == "" || fault.Example == "" {
				t.Fatalf("fault %+v", fault)
			}
		}
		if s == nil {
			return
		}
		from := time.Unix(seconds%(1<<32), 0)
		open := s.Open(from)
		last := from
		for _, e := range s.Edges(from, from.AddDate(0, 0, 20), 64) {
			if !e.At.After(last) || e.Open == open || s.Open(e.At) != e.Open || s.Open(e.At.Add(-1)) == e.Open {
				t.Fatalf("edge %v after %s, open=%v", e, last, open)
			}
			open, last = e.Open, e.At
		}
	})
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestW1_WindowsOfAScenarioAndOfAFlag: both forms say the same, and the flag wins.
func TestW1_WindowsOfAScenarioAndOfAFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "night.yaml")
	text := "windows:\n  bulk:\n    zone: Europe/Berlin\n    outsideShare: 0.25\n    open:\n      - days: [mon, fri]\n        from: \"22:00\"\n        to: \"06:00\"\nbegin: \"2027-03-27T18:00:00+01:00\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := (&simulate{Scenario: file}).plan()
	if err != nil {
		t.Fatal(err)
	}
	bulk := p.settings.Windows["bulk"]
	if bulk.Zone != "Europe/Berlin" || bulk.OutsideShare != 0.25 || len(bulk.Open) != 1 || strings.Join(bulk.Open[0].Days, " ") != "mon fri" || bulk.Open[0].To != "06:00" {
		t.Errorf("the windows are %+v", p.settings.Windows)
	}
	if !p.settings.Begin.Equal(time.Date(2027, 3, 27, 17, 0, 0, 0, time.UTC)) {
		t.Errorf("it begins at %v", p.settings.Begin)
	}
	p, err = (&simulate{Scenario: file, Windows: `{"release":{"open":[{"from":"00:00","to":"24:00"}]}}`}).plan()
	if err != nil || len(p.settings.Windows) != 1 || len(p.settings.Windows["release"].Open) != 1 || p.settings.Windows["release"].Open[0].To != "24:00" {
		t.Errorf("the flag gives %+v, %v", p.settings.Windows, err)
	}
}

func TestW1_BrokenWindowsAreNamed(t *testing.T) {
	for _, c := range []struct{ yaml, says string }{
		{"windows: {bulk: {open: [{from: \"22:00\", until: \"06:00\"}]}}\nbegin: \"2027-03-27T18:00:00Z\"\n", "field windows"},
		{"windows: [bulk]\nbegin: \"2027-03-27T18:00:00Z\"\n", "field windows"},
		{"windows: {bulk: {open: [{from: \"22:00\", to: \"6\"}]}}\nbegin: \"2027-03-27T18:00:00Z\"\n", "Windows.bulk.open[0].to"},
		{"windows: {bulk: {open: [{from: \"22:00\", to: \"06:00\"}]}}\n", "--begin"},
		{"begin: tomorrow\n", "field begin"},
	} {
		file := filepath.Join(t.TempDir(), "broken.yaml")
		if err := os.WriteFile(file, []byte(c.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (&simulate{Scenario: file}).plan(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want it to name %s", c.yaml, err, c.says)
		}
	}
}

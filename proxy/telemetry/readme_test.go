package telemetry

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

const (
	readme      = "../../README.md"
	beginMarker = "<!-- metrics:begin -->"
	endMarker   = "<!-- metrics:end -->"
)

// withTable returns the text with the table between its markers; without markers a section is appended.
func withTable(text, table string) string {
	section := beginMarker + "\n" + table + endMarker
	before, rest, found := strings.Cut(text, beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !found || !ended {
		if text != "" {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		return text + "## Metrics\n\n" + section + "\n"
	}
	return before + section + after
}

func TestV2_ReadmeHoldsTheMetricsTable(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	want := withTable(string(text), Table())
	if *update && want != string(text) {
		if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("the metrics table of %s is out of date; go test ./proxy/telemetry -update rewrites it", readme)
	}
}

func TestV2_ReadmeSectionIsReplacedOrAppended(t *testing.T) {
	for in, want := range map[string]string{
		"":      "## Metrics\n\n" + beginMarker + "\nT\n" + endMarker + "\n",
		"# A\n": "# A\n\n## Metrics\n\n" + beginMarker + "\nT\n" + endMarker + "\n",
		"a " + beginMarker + " old " + endMarker + " z": "a " + beginMarker + "\nT\n" + endMarker + " z",
	} {
		if got := withTable(in, "T\n"); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestV2_TableNamesEveryFamilyAndReason(t *testing.T) {
	table := Table()
	for _, f := range catalog {
		if strings.Count(table, "| `"+f.name+"` |") != 1 {
			t.Errorf("the table does not hold %s once", f.name)
		}
		if strings.ContainsAny(f.help, "|\n\\") {
			t.Errorf("the help of %s would break the table or the page", f.name)
		}
	}
	for i, r := range reasons {
		if r.side != 0 && !strings.Contains(table, "`"+r.name+"`") {
			t.Errorf("the table does not name the reason %v", Reason(i))
		}
	}
}

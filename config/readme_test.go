package config

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of variables in ../README.md")

const (
	readme      = "../README.md"
	markerBegin = "<!-- config:begin -->\n"
	markerEnd   = "<!-- config:end -->"
)

// TestL2_ReadmeHoldsTheTable compares the part between the markers with Table; go test ./config -run Readme -update
// rewrites it.
func TestL2_ReadmeHoldsTheTable(t *testing.T) {
	content, err := os.ReadFile(readme)
	if os.IsNotExist(err) && *update {
		content = []byte("# Arkvory sidecar\n")
	} else if err != nil {
		t.Fatal(err)
	}
	// The file has other generated parts, so a missing section is added at its end and nothing else is touched.
	if *update && !strings.Contains(string(content), markerBegin) {
		content = append(content, "\n## Configuration\n\n"+markerBegin+markerEnd+"\n"...)
	}
	before, rest, begun := strings.Cut(string(content), markerBegin)
	table, after, ended := strings.Cut(rest, markerEnd)
	if !begun || !ended || strings.Contains(after, strings.TrimSpace(markerBegin)) {
		t.Fatalf("%s must hold the markers %s and %s once, each on its own line", readme, markerBegin, markerEnd)
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+markerBegin+Table()+markerEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != Table() {
		t.Errorf("the table in %s is not that of the definitions; run go test ./config -run Readme -update", readme)
	}
}

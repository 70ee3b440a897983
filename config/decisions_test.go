package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestL2_TheDecisionLogIsNoOtherFile: it is emptied at the start, so it is neither what another variable names nor what the state directory keeps, by whatever path.
func TestL2_TheDecisionLogIsNoOtherFile(t *testing.T) {
	folder := t.TempDir()
	key := filepath.Join(folder, "ticket.key")
	rules := filepath.Join(folder, "rules.yaml")
	for path, text := range map[string]string{key: strings.Repeat("00", 32) + "\n", rules: "clients: []\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := filepath.Join(t.TempDir(), "second")
	if err := os.Link(key, second); err != nil {
		t.Fatal(err)
	}
	state := "ARKVORY_STATE_DIR=" + folder
	for what, environ := range map[string][]string{
		"the key":               {state, "ARKVORY_DECISION_LOG=" + key},
		"the key, by a link":    {"ARKVORY_STATE_DIR=" + linkTo(t, folder), "ARKVORY_DECISION_LOG=" + key},
		"the key, hard linked":  {state, "ARKVORY_DECISION_LOG=" + second},
		"the note, not yet":     {state, "ARKVORY_DECISION_LOG=" + folder + "/queue.state"},
		"the note being made":   {state, "ARKVORY_DECISION_LOG=" + folder + "/./queue.state.new"},
		"the table of clients":  {"ARKVORY_CLIENTS_FILE=" + rules, "ARKVORY_DECISION_LOG=" + rules},
		"the principals' table": {"ARKVORY_PRINCIPALS_FILE=" + rules, "ARKVORY_DECISION_LOG=" + filepath.Dir(rules) + "/../" + filepath.Base(folder) + "/rules.yaml"},
	} {
		if faults := faultsOf(t, environ...); len(faults) != 1 || faults[0].Variable != "ARKVORY_DECISION_LOG" {
			t.Errorf("%s: %q", what, faults)
		}
	}
	for _, environ := range [][]string{{state, "ARKVORY_DECISION_LOG=" + folder + "/decisions"}, {state, "ARKVORY_DECISION_LOG=" + t.TempDir() + "/queue.state"}} {
		mustLoad(t, environ...)
	}
}

package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const unitFile = "systemd/arkvory-sidecar.service"

// unit parses a unit file into section/key -> values in order.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	section := ""
	for number, line := range strings.Split(read(t, unitFile), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				t.Fatalf("%s:%d: %q is no setting", unitFile, number+1, line)
			}
			values[section+"/"+key] = append(values[section+"/"+key], value)
		}
	}
	return values
}

// unitEnvironment returns what the program gets: the unit's own assignments and then those of the example file, of which the last hold.
func unitEnvironment(t *testing.T) []string {
	t.Helper()
	values := unit(t)
	if file := values["Service/EnvironmentFile"]; len(file) != 1 || file[0] != "/etc/arkvory/sidecar.env" {
		t.Fatalf("EnvironmentFile is %q", file)
	}
	return append(values["Service/Environment"], environmentFile(t)...)
}

// TestV5_UnitParses checks what this product needs of the unit, whether or not systemd is installed here.
func TestV5_UnitParses(t *testing.T) {
	values := unit(t)
	for key, want := range map[string]string{
		"Service/ExecStart":             "/usr/local/bin/arkvory-sidecar",
		"Service/ExecStartPre":          "/usr/local/bin/arkvory-sidecar --check-config",
		"Service/KillSignal":            "SIGTERM",
		"Service/KillMode":              "mixed",
		"Service/DynamicUser":           "yes",
		"Service/NoNewPrivileges":       "yes",
		"Service/ProtectSystem":         "strict",
		"Service/CapabilityBoundingSet": "",
		"Install/WantedBy":              "multi-user.target",
	} {
		if got, ok := values[key]; !ok || len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if _, ok := values["Service/ProcSubset"]; ok {
		t.Error("ProcSubset hides the kernel's limit of the listen queue")
	}
}

// TestL1_UnitStopWaitsForDrain compares systemd's patience with the drain of the example environment and of the default.
func TestL1_UnitStopWaitsForDrain(t *testing.T) {
	seconds, err := strconv.Atoi(unit(t)["Service/TimeoutStopSec"][0])
	if err != nil {
		t.Fatal(err)
	}
	patience := time.Duration(seconds) * time.Second
	covers(t, "TimeoutStopSec with the example environment", patience, load(t, unitEnvironment(t)).Drain)
	covers(t, "TimeoutStopSec with the default", patience, load(t, nil).Drain)
}

// TestV5_UnitVerifies asks systemd itself where it is installed: are all settings known, and is the exposure at most 2.0 of 10.
// The program's path is replaced, since the check wants it to exist. Without systemd TestV5_UnitParses is what remains.
func TestV5_UnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed; the unit was only parsed")
		return
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "arkvory-sidecar")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, filepath.Base(unitFile))
	text := strings.ReplaceAll(read(t, unitFile), "/usr/local/bin/arkvory-sidecar", program)
	if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"verify", "--man=no", copied},
		{"security", "--no-pager", "--offline=true", "--threshold=20", copied},
	} {
		out, err := exec.Command(analyze, arguments...).CombinedOutput()
		// An unknown setting is a warning for systemd and a fault for us.
		if err != nil || strings.Contains(string(out), "ignoring") {
			t.Errorf("systemd-analyze %s: %v\n%s", arguments[0], err, out)
		}
	}
}

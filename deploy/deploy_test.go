// Package deploy_test checks what operators copy from this folder as far as one machine can: files parse strictly, their
// variables are real and load, the times of a stop fit together, nothing runs as root, the image's build line builds.
package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/goccy/go-yaml"
)

// stopMargin is what a supervisor must grant beyond the drain: the last answers, closing, the exit.
const stopMargin = 5 * time.Second

// testVariables steer tests and nothing of the sidecar: random histories of the queue.
var testVariables = []string{"ARKVORY_HISTORIES"}

// clientVariables are those of arkvoryctl.
var clientVariables = []string{"ARKVORY_ADMIN_URL", "ARKVORY_ADMIN_TOKEN_FILE"}

// tables of the database are named like metrics.
var tables = []string{"arkvory_download_settings", "arkvory_download_ticket_key"}

// TestV5_EveryVariableIsKnown reads every name of a variable in deploy/, the README and the Makefile.
func TestV5_EveryVariableIsKnown(t *testing.T) {
	known := config.Known()
	if len(known) == 0 {
		t.Fatal("config.Known() is empty")
	}
	name := regexp.MustCompile(`ARKVORY_[A-Z0-9_]+`)
	seen := 0
	for _, file := range append(texts(t), "../README.md", "../Makefile") {
		for number, line := range strings.Split(read(t, file), "\n") {
			for _, one := range name.FindAllString(line, -1) {
				seen++
				if !slices.Contains(known, one) && !slices.Contains(testVariables, one) && !slices.Contains(clientVariables, one) {
					t.Errorf("%s:%d: %s is not a variable of the sidecar", file, number+1, one)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("saw %d names: the search does not reach the files", seen)
	}
}

// TestL2_ExamplesLoad gives the variables of each example to the loader of the sidecar.
func TestL2_ExamplesLoad(t *testing.T) {
	examples := map[string][]string{
		"compose.yaml":                composeEnvironment(t),
		"kubernetes/sidecar.yaml":     kubernetesEnvironment(t),
		"systemd/sidecar.env.example": environmentFile(t),
		unitFile:                      unitEnvironment(t),
		"nginx/arkvory.conf":          assignments(read(t, "nginx/arkvory.conf")),
	}
	for file, environ := range examples {
		if len(environ) < 2 {
			t.Errorf("%s: found only %q", file, environ)
		}
		_, warnings, err := config.Load(here(t, environ))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, warning := range warnings {
			t.Errorf("%s: %v", file, warning)
		}
	}
}

// TestV2_ReadmeNamesRealMetrics holds the prose of the README to the table of metrics in it, which another test holds to the code.
func TestV2_ReadmeNamesRealMetrics(t *testing.T) {
	before, rest, begun := strings.Cut(read(t, "../README.md"), "<!-- metrics:begin -->")
	table, after, ended := strings.Cut(rest, "<!-- metrics:end -->")
	if !begun || !ended {
		t.Fatal("the README has no table of metrics")
	}
	named := regexp.MustCompile("`(arkvory_[a-z_]+)`").FindAllStringSubmatch(before+after, -1)
	if len(named) < 5 {
		t.Errorf("the README's prose names only %d metrics", len(named))
	}
	for _, one := range named {
		if !strings.Contains(table, "| "+one[0]+" |") && !slices.Contains(tables, one[1]) {
			t.Errorf("the README speaks of %s, which is not in its table", one[1])
		}
	}
}

// TestV5_ReadmeLinksExist follows the relative links of the READMEs.
func TestV5_ReadmeLinksExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):#]+)\)`)
	for _, file := range []string{"../README.md", "README.md"} {
		for _, one := range link.FindAllStringSubmatch(read(t, file), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), one[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	// The table of the files of this folder names each of them that is copied.
	guide := read(t, "README.md")
	for _, file := range texts(t) {
		named := strings.Contains(guide, filepath.ToSlash(file)) || strings.Contains(guide, filepath.Base(file)) || file == "README.md" || strings.HasPrefix(file, "files")
		if !named && filepath.Base(file) != "Dockerfile.dockerignore" {
			t.Errorf("README.md does not name %s", file)
		}
	}
}

// here returns the environment for this machine, on which the directories of the examples do not exist: a state directory becomes
// a temporary one. Whether the example makes its own is tested by the tests named TestT3.
func here(t *testing.T, environ []string) []string {
	t.Helper()
	var moved []string
	for _, one := range environ {
		if strings.HasPrefix(one, stateVariable) {
			one = stateVariable + t.TempDir()
		}
		moved = append(moved, one)
	}
	return moved
}

// load returns the configuration that an environment gives here; the caller's file is known to load.
func load(t *testing.T, environ []string) config.Config {
	t.Helper()
	loaded, _, err := config.Load(here(t, environ))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// texts lists what operators copy: every file of the folder but the tests.
func texts(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// read returns a file's text.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// decode parses YAML into out and refuses a key that out has no field for: a misspelt key of a manifest is
// otherwise dropped in silence by those who read it.
func decode(t *testing.T, file, text string, out any) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions([]byte(text), out, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// assignments finds NAME=value pairs wherever they stand in a text.
func assignments(text string) []string {
	return regexp.MustCompile(`ARKVORY_[A-Z0-9_]+=[^\s#]+`).FindAllString(text, -1)
}

// environmentFile reads the example as systemd does: whole lines, comments begin a line. What is commented out is an
// example too and is read as if it were set.
func environmentFile(t *testing.T) []string {
	t.Helper()
	var environ []string
	for _, line := range strings.Split(read(t, "systemd/sidecar.env.example"), "\n") {
		line = strings.TrimPrefix(line, "#")
		if regexp.MustCompile(`^ARKVORY_[A-Z0-9_]+=`).MatchString(line) {
			environ = append(environ, line)
		}
	}
	return environ
}

// covers fails the test when a supervisor's patience is shorter than the drain it has to wait for.
func covers(t *testing.T, what string, patience, drain time.Duration) {
	t.Helper()
	if drain <= 0 {
		t.Errorf("%s: the drain is %v, downloads are cut at a stop", what, drain)
	}
	if patience < drain+stopMargin {
		t.Errorf("%s: %v of patience is less than the drain of %v and %v more", what, patience, drain, stopMargin)
	}
}

// Package house_test holds the rules of this repository that no single room can hold: which room may import which, where
// the clock is read, how long a file may be. It asks `go list` and the syntax trees, not the text.
package house_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/arkvory/sidecar"
	top    = ".."
	// maxLines is where a file is certainly more than one room's worth; the aim is 400.
	maxLines = 600
)

// topFolders are the only folders at the top of the repository; bin is where make builds.
var topFolders = []string{"bin", "bucket", "cmd", "config", "deploy", "proxy", "queue", "testdata", "ticket"}

// rooms is the import table, the most special path first: the packages at and under path may import of this module what
// may names: a path is that package alone, a path with /... is all under it too. Imports go downward only: cmd, proxy,
// then queue, bucket, ticket and config.
var rooms = []struct {
	path string
	may  []string
}{
	{"queue/admission", nil},
	{"queue/memory", []string{"queue", "queue/replay", "queue/window"}},
	{"queue/replay", []string{"queue"}},
	{"queue/postgres", []string{"queue"}},
	{"queue/queuetest", []string{"queue"}},
	{"queue/sim", []string{"queue", "queue/admission", "queue/window"}},
	{"queue/client", nil},
	{"queue/window", nil},
	{"queue", nil},
	{"bucket", nil},
	{"ticket", nil},
	{"config/store/storetest", []string{"config"}},
	{"config/store/pgtest", nil},
	{"config/store", []string{"config"}},
	{"config", nil},
	{"proxy", []string{"proxy/...", "queue/...", "bucket", "ticket", "config"}},
	{"cmd", []string{"cmd/...", "proxy/...", "queue/...", "bucket", "ticket", "config/..."}},
	{"deploy", nil},
}

// testsMay are imports of this module that tests of a room have beyond its row, and why.
var testsMay = map[string][]string{
	"queue":  {"queue/..."}, // the conformance suite and its implementations test each other
	"config": {"config/..."},
	"proxy":  {"config/..."}, // the desk over real stores
	"deploy": {"config"},     // examples are loaded by the real loader
}

// modules names for each module from outside the rooms whose shipped code may import it. A module without a row may not
// be imported at all: add the row with the import, so that the choice is seen.
var modules = map[string][]string{
	"github.com/valyala/fasthttp":        {"proxy"},
	"github.com/jackc/pgx":               {"queue/postgres", "config/store"},
	"github.com/pressly/goose":           {"config/store"},
	"github.com/miekg/dns":               {}, // tests only
	"github.com/rs/zerolog":              {"proxy", "cmd"},
	"github.com/caarlos0/env":            {"config"},
	"github.com/goccy/go-yaml":           {"proxy", "config", "cmd/arkvoryctl"},
	"github.com/alecthomas/kong":         {"cmd/arkvoryctl"},
	"github.com/willabides/kongplete":    {"cmd/arkvoryctl"},
	"github.com/posener/complete":        {"cmd/arkvoryctl"},
	"github.com/vbauerster/mpb":          {"cmd/arkvoryctl"},
	"github.com/VictoriaMetrics/metrics": {"proxy"},
	"golang.org/x/sys":                   {"proxy", "cmd"},
	"pgregory.net/rapid":                 {"queue/queuetest"},
	"github.com/chromedp":                {}, // tests only
}

// testModules may be imported by every test, the others of modules by tests of their rooms only.
var testModules = []string{"github.com/chromedp", "github.com/miekg/dns", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/goccy/go-yaml", "golang.org/x/sys"}

// frontTests are rooms whose tests stand before and behind the real proxy and may speak with fasthttp.
var frontTests = []string{"cmd"}

// clockReads names every shipped file that reads or waits for the clock, and why it is a shell and not a rule. Rules get
// the time as an argument. A file that no longer does must leave the list.
var clockReads = map[string]string{
	"cmd/arkvory-sidecar/main.go":      "composition root: uptime, the poll that ends a drain and its least time",
	"cmd/arkvory-sidecar/settings.go":  "composition root: the interval at which TLS files are looked at",
	"cmd/arkvoryctl/download.go":       "composition root: the wall time that a time of day counts from",
	"cmd/arkvoryctl/watch_terminal.go": "terminal shell: how long a line stands",

	"bucket/clock.go":                "the clock file of the buckets: the governor's default clock and its one timer",
	"queue/admission/gate.go":        "default of the injected clock",
	"queue/client/clock.go":          "the clock file of the client: its default clock",
	"queue/memory/queue.go":          "shell around the core: default of the injected clock, the tick, the term of a hold",
	"proxy/download.go":              "the rest of a client's patience, a timer only for a request that waits for a place after a hold",
	"proxy/front/conn.go":            "socket shell: bounds of a lingering close",
	"proxy/front/server.go":          "socket shell: the watcher's tick, the coarse clock, the pause after a failed accept",
	"proxy/proxy.go":                 "composition: one clock for the gates and the readiness page, pauses after a panic, the bound of a stop",
	"proxy/relay/conn.go":            "socket shell: bound of a look into a TLS record",
	"proxy/dripping.go":              "the pause before a client that waits in the middle of its response asks again",
	"proxy/sources.go":               "uptime in the readiness page, the interval at which files are looked at",
	"proxy/ticketing.go":             "tickets and Arkvory-Starts-At carry wall times",
	"proxy/upload.go":                "socket shell: the moment of grace for an upload that is all but done",
	"cmd/arkvoryctl/desk_clock.go":   "the clock file of the commands that ask the admin listener: wall time of times of day, the pause between two looks, the wait that a 429 asks for",
	"cmd/arkvory-sidecar/tickets.go": "how often a missing ticket key is asked for",
	"config/store/build.go":          "when a refused migration is tried again",
	"config/store/file.go":           "the time of a change that has none, the wait for the lock, looks at the file",
	"config/store/listen.go":         "the pause before it connects again",
	"config/store/postgres.go":       "the bound of Close",
	"proxy/live/follow.go":           "the interval of looks at the store",
	"proxy/operator_wiring.go":       "uptime on the operator's page",
	"proxy/upstream/endpoint.go":     "the pool's monotonic clock",
	"proxy/upstream/loop.go":         "the control loop's timer",
	"proxy/upstream/origin.go":       "socket shell: deadline of a TLS handshake",
	"proxy/upstream/probe.go":        "socket shell: time limit of a probe",
	"proxy/upstream/wait.go":         "time limit of an exchange that waits for a connection",
}

// clockNames are the functions of package time that read or wait for the clock of the process.
var clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// listed is what this test reads of `go list -json`.
type listed struct {
	ImportPath   string
	Standard     bool
	ForTest      string
	Module       *struct{ Path string }
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// list returns every package of the module and all they depend on, for a build with the given tags.
func list(t *testing.T, tags string) map[string]listed {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Standard,ForTest,Module,Imports,TestImports,XTestImports", "-tags", tags, "./...")
	command.Dir = top
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		// Variants built for a test repeat a package under another name.
		if one.ForTest == "" && !strings.HasSuffix(one.ImportPath, ".test") {
			packages[one.ImportPath] = one
		}
	}
}

// under reports whether a slash-separated path is one of the roots or lies below one.
func under(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

// matches reports whether a path is one of the patterns of the table of rooms.
func matches(path string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		root, all := strings.CutSuffix(pattern, "/...")
		return path == root || all && under(path, root)
	})
}

// refuses returns why room (a package's path inside the module) may not import a package, or an empty string.
func refuses(room, imported string, packages map[string]listed, test bool) string {
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		return refusesRoom(room, inside, test)
	}
	if packages[imported].Standard || imported == "C" {
		return ""
	}
	for name, allowed := range modules {
		if under(imported, name) {
			if under(room, allowed...) || test && (slices.Contains(testModules, name) || under(room, frontTests...)) {
				return ""
			}
			return "only " + strings.Join(allowed, ", ") + " may import it"
		}
	}
	if test && under(imported, testModules...) {
		return ""
	}
	return "its module has no row in the table of modules"
}

// refusesRoom is refuses for a package of this module.
func refusesRoom(room, inside string, test bool) string {
	for _, row := range rooms {
		if !under(room, row.path) {
			continue
		}
		if matches(inside, row.may...) || test && matches(inside, testsMay[strings.Split(room, "/")[0]]...) {
			return ""
		}
		if len(row.may) == 0 {
			return row.path + " may import nothing of this module"
		}
		return row.path + " may import of this module only " + strings.Join(row.may, ", ")
	}
	return room + " has no row in the table of rooms"
}

// TestImportTable holds every import of every package to the table, with and without the tag of the long gates.
func TestImportTable(t *testing.T) {
	for _, tags := range []string{"", "gate"} {
		packages := list(t, tags)
		checked := 0
		for path, one := range packages {
			room, ok := strings.CutPrefix(path, module+"/")
			if !ok {
				continue
			}
			for _, imported := range one.Imports {
				checked++
				if why := refuses(room, imported, packages, false); why != "" {
					t.Errorf("%s imports %s: %s", room, imported, why)
				}
			}
			for _, imported := range slices.Concat(one.TestImports, one.XTestImports) {
				checked++
				if why := refuses(room, imported, packages, true); why != "" {
					t.Errorf("tests of %s import %s: %s", room, imported, why)
				}
			}
		}
		if checked < 20 {
			t.Errorf("only %d imports were checked: go list does not show the module", checked)
		}
	}
}

// TestImportTableRefuses shows that the table can say no: each row is an import that must never pass.
func TestImportTableRefuses(t *testing.T) {
	packages := map[string]listed{"time": {Standard: true}}
	for _, one := range []struct {
		room, imported string
		test, refused  bool
	}{
		{"queue", "time", false, false},
		{"queue", module + "/config", false, true},
		{"queue", module + "/queue/memory", false, true},
		{"queue", module + "/queue/memory", true, false},
		{"queue", "github.com/rs/zerolog", false, true},
		{"queue/admission", module + "/queue", false, true},
		{"queue/memory", module + "/queue", false, false},
		{"queue/memory", module + "/queue/admission", false, true},
		{"queue/memory", module + "/bucket", false, true},
		{"bucket", module + "/queue", false, true},
		{"bucket", "golang.org/x/sys/unix", false, true},
		{"config", module + "/proxy/front", false, true},
		{"config", "github.com/caarlos0/env/v11", false, false},
		{"proxy/front", "github.com/caarlos0/env/v11", false, true},
		{"proxy/front", module + "/queue/memory", false, false},
		{"proxy/front", module + "/proxy/wire", false, false},
		{"proxy/front", module + "/cmd/arkvory-sidecar", false, true},
		{"cmd/arkvory-sidecar", module + "/proxy/front", false, false},
		{"cmd/arkvory-sidecar", "github.com/valyala/fasthttp", false, true},
		{"cmd/arkvory-sidecar", "github.com/valyala/fasthttp", true, false},
		{"proxy/relay", "go.uber.org/goleak", false, true},
		{"proxy/relay", "go.uber.org/goleak", true, false},
		{"proxy/relay", "github.com/pkg/errors", true, true},
		{"attic", "time", false, false},
		{"attic", module + "/queue", false, true},
	} {
		if why := refuses(one.room, one.imported, packages, one.test); (why != "") != one.refused {
			t.Errorf("%s imports %s (test: %v): %q, want refused: %v", one.room, one.imported, one.test, why, one.refused)
		}
	}
}

// TestTopFolders keeps the top of the repository as small as it is.
func TestTopFolders(t *testing.T) {
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && !strings.HasPrefix(name, ".") && !slices.Contains(topFolders, name) {
			t.Errorf("folder %s: the top folders are %s", name, strings.Join(topFolders, ", "))
		}
	}
}

// goFiles calls visit with every Go file of the repository, its path with slashes from the top.
func goFiles(t *testing.T, visit func(path string, source []byte)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		seen++
		visit(filepath.ToSlash(relative), source)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Fatalf("saw %d Go files", seen)
	}
}

// clockUses returns the clock functions that a file mentions, called or passed on as values, by line.
func clockUses(t *testing.T, path string, source []byte) map[int]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote("time") {
			name = "time"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	uses := map[int]string{}
	if name == "" {
		return uses
	}
	if name == "." {
		t.Errorf("%s imports time into its own scope", path)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if base, ok := selector.X.(*ast.Ident); ok && base.Name == name && slices.Contains(clockNames, selector.Sel.Name) {
			uses[files.Position(selector.Pos()).Line] = selector.Sel.Name
		}
		return true
	})
	return uses
}

// TestQ18_ClockIsReadInShells: rules take the time as an argument, so that virtual time and simulation run what ships.
func TestQ18_ClockIsReadInShells(t *testing.T) {
	reading := map[string]bool{}
	goFiles(t, func(path string, source []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for line, function := range clockUses(t, path, source) {
			reading[path] = true
			if clockReads[path] == "" {
				t.Errorf("%s:%d: time.%s outside the files that may read the clock; take now as an argument, or name the file and the reason in clockReads", path, line, function)
			}
		}
	})
	for path := range clockReads {
		if !reading[path] {
			t.Errorf("%s does not read the clock (any more): take it off the list", path)
		}
	}
}

// TestNoSleepInTests: a test waits for an event or moves a virtual clock.
func TestNoSleepInTests(t *testing.T) {
	goFiles(t, func(path string, source []byte) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for line, function := range clockUses(t, path, source) {
			if function == "Sleep" {
				t.Errorf("%s:%d sleeps", path, line)
			}
		}
	})
}

// TestFileLength keeps files to one subject.
func TestFileLength(t *testing.T) {
	goFiles(t, func(path string, source []byte) {
		if lines := bytes.Count(source, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines, the limit is %d", path, lines, maxLines)
		}
	})
}

// TestRoomsAreDocumented: each room says in doc.go what it is, and the README's map shows it.
func TestRoomsAreDocumented(t *testing.T) {
	shipped, documented := map[string]bool{}, map[string]bool{}
	goFiles(t, func(path string, source []byte) {
		folder := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") || under(folder, "cmd") {
			return
		}
		shipped[folder] = true
		if filepath.Base(path) == "doc.go" {
			file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.PackageClauseOnly)
			documented[folder] = err == nil && strings.HasPrefix(file.Doc.Text(), "Package "+file.Name.Name+" ")
		}
	})
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for folder := range shipped {
		if !bytes.Contains(readme, []byte("`"+folder+"`")) {
			t.Errorf("the map of rooms in README.md does not show %s", folder)
		}
		if !documented[folder] {
			t.Errorf("%s has no doc.go that begins with the package's name", folder)
		}
	}
}

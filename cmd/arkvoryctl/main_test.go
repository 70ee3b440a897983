package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// builtIn is the folder of the built program, removed after the last test.
var builtIn string

func TestMain(m *testing.M) {
	// The last two are of fasthttp, under the admin listener that tests ask: the process-wide date, and a cleaner that looks for its end every ten seconds.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if builtIn != "" {
			_ = os.RemoveAll(builtIn)
		}
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// small is a fleet that is simulated in a moment.
var small = []string{"simulate", "--clients", "40", "--size", "50MB..400MB", "--slots", "4", "--burst", "2s"}

func ctl(t *testing.T, args ...string) (code int, out, complaint string) {
	t.Helper()
	var o, c bytes.Buffer
	code = run(args, &o, &c)
	return code, o.String(), c.String()
}

func with(base []string, more ...string) []string { return append(base[:len(base):len(base)], more...) }

func TestInputErrorsNameFlagRuleAndExample(t *testing.T) {
	for _, one := range []struct {
		args []string
		want []string
	}{
		{[]string{"--clients", "many"}, []string{"--clients", "a whole number", "1000"}},
		{[]string{"--clients", "0"}, []string{"--clients", "1..1048576", "1000"}},
		{[]string{"--clients", "-1"}, []string{"--clients"}},
		{[]string{"--size", "4GX..20GB"}, []string{"--size", "low..high", "4GB..20GB"}},
		{[]string{"--size", "20GB..4GB"}, []string{"--size", "low to high", "4GB..20GB"}},
		{[]string{"--link", "1Gb"}, []string{"--link", "Gbit", "1Gbit"}},
		{[]string{"--link", "-1Gbit"}, []string{"--link"}},
		{[]string{"--slots", "0"}, []string{"--slots", "1..1024", "16"}},
		{[]string{"--slots", "4", "--elastic", "2"}, []string{"--elastic", "4..1024", "16"}},
		{[]string{"--strategy", "fastest"}, []string{"--strategy", "smallest-first", "ordered,shared"}},
		{[]string{"--slow", "20%"}, []string{"--slow", "SHARE@RATE", "20%@1MB/s"}},
		{[]string{"--slow", "120%@1MB/s"}, []string{"--slow", "0..1", "0.2"}},
		{[]string{"--classes", "gold:1"}, []string{"--classes", "interactive, release, bulk, background", "release:40"}},
		{[]string{"--classes", "bulk:1,bulk:1"}, []string{"bulk", "named once"}},
		{[]string{"--plain", "wgte:10%"}, []string{"--plain", "one of curl", "curl"}},
		{[]string{"--aging", "soon"}, []string{"--aging", "a duration", "15m"}},
		{[]string{"--aging", "1ms"}, []string{"--aging", "1s..168h", "15m"}},
		{[]string{"--burst=-5s"}, []string{"--burst", "0..10 years", "10s"}},
		{[]string{"--poisson", "none"}, []string{"--poisson", "N/h", "95%"}},
		{[]string{"--seed", "-3"}, []string{"--seed"}},
		{[]string{"--scenario", "/nowhere.yaml"}, []string{"--scenario", "/nowhere.yaml"}},
		{[]string{"--clients", "x", "--link", "y"}, []string{"--clients", "--link"}}, // all at once
		{[]string{"--seeds", "0"}, []string{"--seeds", "1..1000", "10"}},
		{[]string{"--seeds", "1001"}, []string{"--seeds", "1..1000"}},
		{[]string{"--seeds", "2", "--trace", "x"}, []string{"--trace", "--seeds 1"}},
		{[]string{"--waves", "40%"}, []string{"--waves", "SHARE@DURATION", "40%@1h"}},
		{[]string{"--waves", "40%@1h"}, []string{"--waves", "poisson"}},
		{[]string{"--poisson", "95%", "--waves", "40%@1ms"}, []string{"--waves", "1s..10 years", "1h"}},
		{[]string{"--poisson", "95%", "--burst", "5s"}, []string{"--burst, --ramp, --poisson", "one way to come"}},
		{[]string{"--poisson", "0/h"}, []string{"--poisson", "above 0", "0.95"}},
		{[]string{"--ramp", "x"}, []string{"--ramp", "a duration", "1h"}},
		{[]string{"--clients"}, []string{"--clients", "--help"}},
		{[]string{"more"}, []string{"more", "--help"}},
		{[]string{"--nonsense"}, []string{"--nonsense", "--help"}},
	} {
		code, out, complaint := ctl(t, with([]string{"simulate"}, one.args...)...)
		if code != exitInput || out != "" {
			t.Errorf("%v: code %d, printed %q", one.args, code, out)
		}
		for _, want := range one.want {
			if !strings.Contains(complaint, want) {
				t.Errorf("%v: %q does not say %q", one.args, complaint, want)
			}
		}
	}
}

func TestScenarioFaultsAreAllNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	for _, one := range []struct {
		text string
		want []string
	}{
		{"clients: lots\nlink: fast\n", []string{"field clients", "field link", "1Gbit"}},
		{"client: 5\n", []string{"field client:", "clients", "one of"}},
		{"gate: {capacity: x}\n", []string{"field gate.capacity", "a whole number"}},
		{"clients:\n", []string{"field clients", "a value"}},
		{"weights: [8, 4]\n", []string{"field weights", "8,4,2,1"}},
		{": : :\n\t", []string{"YAML"}},
		{"- a\n", []string{"YAML"}},
		{"burst: 1s\npoisson: 95%\n", []string{"burst, poisson", "one way to come"}},
		{"slots: 4\nreserve: 4\n", []string{"field reserve", "0..3"}},
		{"about: |\n  " + strings.Repeat("x", maxScenario), []string{"at most"}},
	} {
		if err := os.WriteFile(file, []byte(one.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, complaint := ctl(t, "simulate", "--scenario", file)
		if code != exitInput {
			t.Errorf("%.40q: code %d", one.text, code)
		}
		for _, want := range one.want {
			if !strings.Contains(complaint, want) {
				t.Errorf("%.40q: %q does not say %q", one.text, complaint, want)
			}
		}
	}
}

// TestEveryScenarioIsUsable loads each file that ships and simulates it with few clients.
func TestEveryScenarioIsUsable(t *testing.T) {
	files, err := filepath.Glob("../../testdata/sim/*.yaml")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		code, out, complaint := ctl(t, "simulate", "--scenario", file, "--clients", "30", "--size", "20MB..200MB", "--invariants", "1m", "--json")
		if code != exitDone {
			t.Errorf("%s: code %d: %s", name, code, complaint)
			continue
		}
		var got struct {
			Scenario   struct{ Name, About string }
			Strategies []struct {
				Name          string
				FailedClients int
				Rises         struct{ Unexplained int }
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Scenario.Name != name || got.Scenario.About == "" || len(got.Strategies) < 3 {
			t.Errorf("%s: %+v", name, got)
		}
		for _, s := range got.Strategies {
			if s.Rises.Unexplained != 0 {
				t.Errorf("%s, %s: %d places risen without a cause", name, s.Name, s.Rises.Unexplained)
			}
		}
	}
}

// TestJSONHasTheNamesOthersRead pins the fields.
func TestJSONHasTheNamesOthersRead(t *testing.T) {
	code, out, complaint := ctl(t, with(small, "--json", "--strategy", "ordered,smallest-first,fair-sojourn,shared")...)
	if code != exitDone {
		t.Fatal(complaint)
	}
	var got struct {
		Scenario   map[string]any
		Strategies []map[string]any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Strategies) != 4 || got.Scenario["clients"] != 40.0 || got.Scenario["slots"] != 4.0 || got.Scenario["seed"] != 1.0 {
		t.Fatalf("%v", got.Scenario)
	}
	for i, name := range []string{"ordered", "smallest-first", "fair-sojourn", "shared"} {
		s := got.Strategies[i]
		if s["name"] != name {
			t.Errorf("strategy %d is %v, want %s", i, s["name"], name)
		}
		for _, field := range []string{"meanVsSharing", "firstDoneSeconds", "laterThanSharing", "maxLaterRatio", "linkBusy", "idleSlots", "failedClients"} {
			if _, ok := s[field].(float64); !ok {
				t.Errorf("%s: %s is %v", name, field, s[field])
			}
		}
		for _, field := range []string{"startsWithinTolerance", "p90Holds"} {
			v, there := s[field]
			if _, number := v.(float64); !there || number == (name == "shared") {
				t.Errorf("%s: %s is %v", name, field, v)
			}
		}
	}
}

func TestTableShowsStrategiesSideBySide(t *testing.T) {
	code, out, complaint := ctl(t, with(small, "--strategy", "ordered,shared")...)
	if code != exitDone {
		t.Fatal(complaint)
	}
	for _, want := range []string{"40 clients", "ordered", "shared", "mean against equal sharing", "link busy", "idle slots", "starts as promised", "none made", "done / failed / left", "40 / 0 / 0", "wait release"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table does not show %q:\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ordered") && !strings.Contains(line, "shared") {
			t.Errorf("strategies are not side by side: %q", line)
		}
	}
}

func TestPicturesCanBeRead(t *testing.T) {
	dir := t.TempDir()
	svg, raster := filepath.Join(dir, "o.svg"), filepath.Join(dir, "o.png")
	code, _, complaint := ctl(t, with(small, "--strategy", "ordered,shared", "--svg", svg, "--png", raster)...)
	if code != exitDone {
		t.Fatal(complaint)
	}
	data, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for decoder := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the SVG is no XML: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok {
			seen[start.Name.Local]++
		}
	}
	// Three curves of completions (two strategies, equal sharing) and two of waits.
	if seen["polyline"] != 5 || seen["desc"] != 1 || seen["title"] != 6 || seen["text"] < 20 {
		t.Errorf("elements: %v", seen)
	}
	for _, want := range []string{`role="img"`, "ordered", "shared", "equal sharing", "share of clients done"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("the SVG has no %s", want)
		}
	}
	f, err := os.Open(raster)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	colours := map[[3]uint32]bool{}
	for y := 0; y < picture.Bounds().Dy(); y += 5 {
		for x := 0; x < picture.Bounds().Dx(); x += 3 {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}] = true
		}
	}
	if len(colours) < 6 { // white, text, grid, axes, two curves and the reference
		t.Errorf("the PNG has %d colours", len(colours))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestTitleIsEscaped(t *testing.T) {
	c := &chart{title: `<script>&"`, about: "<b>"}
	var out bytes.Buffer
	if err := c.svg(&out); err != nil || strings.Contains(out.String(), "<script>") || strings.Contains(out.String(), "<b>") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestTracesOfAllStrategies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if code, _, complaint := ctl(t, with(small, "--strategy", "ordered,shared", "--trace", path)...); code != exitDone {
		t.Fatal(complaint)
	}
	two := read(path + ".ordered")
	if code, _, complaint := ctl(t, with(small, "--strategy", "ordered", "--trace", path)...); code != exitDone {
		t.Fatal(complaint)
	}
	if one := read(path); len(one) == 0 || !bytes.Equal(one, two) || bytes.Equal(one, read(path+".shared")) {
		t.Error("traces of one seed differ, or do not differ by strategy")
	}
}

func TestWorkThatFailsIsExitCodeOne(t *testing.T) {
	for _, args := range [][]string{
		{"--limit", "3s"}, {"--trace", "/nowhere/trace"}, {"--svg", "/nowhere/o.svg"}, {"--png", "/nowhere/o.png"},
	} {
		code, _, complaint := ctl(t, with(small, args...)...)
		if code != exitWork || complaint == "" {
			t.Errorf("%v: code %d, %q", args, code, complaint)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"simulate", "--help"}} {
		if code, out, complaint := ctl(t, args...); code != exitDone || !strings.Contains(out, "simulate") || complaint != "" {
			t.Errorf("%v: code %d, printed %q and %q", args, code, out, complaint)
		}
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{"4GB": 4e9, "8MiB": 8 << 20, "1.5 kB": 1500, "4096": 4096, "1_000": 1000} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]int64{"1Gbit": 125e6, "1Gbit/s": 125e6, "100Mbit": 12.5e6, "1MB/s": 1e6, "1MiB/s": 1 << 20, "8bit": 1} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "4gb", "-1", "1e400", "1..2", "9999999999TB", "NaN"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q is %d bytes", text, got)
		}
	}
	for text, want := range map[string]float64{"20%": 0.2, "0.2": 0.2, "100%": 1} {
		if got, err := parseShare(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for seconds, want := range map[float64]string{5: "5.0 s", 90: "1 min 30 s", 7260: "2 h 01 min", 200000: "2 d 07 h"} {
		if got := showSeconds(seconds); got != want {
			t.Errorf("%v s is shown as %s, want %s", seconds, got, want)
		}
	}
}

func FuzzScenarioNeverPanics(f *testing.F) {
	f.Add("clients: 10\nsize: 1GB..2GB\nclasses: [bulk:1]\n")
	f.Add("gate: {capacity: 3}\nslow: 20%@1MB/s\nplain: curl:10%\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := (&simulate{Scenario: file}).plan()
		if (p == nil) && err == nil {
			t.Fatal("neither a plan nor an error")
		}
		if err == nil && p.settings.Validate() != nil {
			t.Fatal("an invalid plan was accepted")
		}
	})
}

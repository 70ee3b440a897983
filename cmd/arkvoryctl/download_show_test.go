//go:build linux

package main

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// update writes the files under testdata anew.
var update = flag.Bool("update", false, "write the golden files under testdata")

// TestC4_JSONLines: every line is an object with the documented fields, and they say what the server said.
func TestC4_JSONLines(t *testing.T) {
	o, dir := newOrigin(t, 300_000), t.TempDir()
	o.first(queued("312", 47*time.Minute, "1"), queued("1", time.Minute, "1"))
	code, out, complaint := finish(t, dir, "download", o.url(), "--json", "--class", "bulk", "--id", "nightly-42")
	events, end := jsonLines(t, out)
	if code != exitDone || complaint != "" {
		t.Fatalf("code %d, said %q", code, complaint)
	}
	var kinds []string
	for _, e := range events {
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Event {
			kinds = append(kinds, e.Event)
		}
	}
	if kinds[len(kinds)-1] != client.Done.String() || !slices.Contains(kinds, client.Queued.String()) || !slices.Contains(kinds, client.Downloading.String()) {
		t.Errorf("kinds of events: %v", kinds)
	}
	first := events[slices.IndexFunc(events, func(e eventLine) bool { return e.Event == client.Queued.String() })]
	if first.Position != 312 || first.Class != "release" || first.StartsAt == nil || first.Earliest == nil || first.Latest == nil || first.NextTry == nil || first.WaitSeconds < 1 ||
		first.Latest.Sub(*first.Earliest) != 15*time.Minute || first.At.IsZero() || first.Total != nil {
		t.Errorf("queued: %+v", first)
	}
	last := events[len(events)-1]
	if last.Bytes != 300_000 || last.Total == nil || *last.Total != 300_000 {
		t.Errorf("last event: %+v", last)
	}
	if end.ExitCode != 0 || end.Reason != "done" || end.SHA256 != o.sum || end.Bytes != 300_000 || end.WaitedSeconds < 2 || end.TookSeconds < end.WaitedSeconds || end.ETag != `"one"` ||
		filepath.Base(end.Path) != "release.tar" || end.Resumed || end.Error != "" {
		t.Errorf("end: %+v", end)
	}
	if got := [2]string{o.lastHeader().Get("Arkvory-Download-Id"), o.lastHeader().Get("Arkvory-Download-Class")}; got != [2]string{"nightly-42", "bulk"} {
		t.Errorf("sent %v", got)
	}
}

// TestC4_JSONHasAnEndWhateverHappens: programs read one stream only.
func TestC4_JSONHasAnEndWhateverHappens(t *testing.T) {
	o, dir := newOrigin(t, 1000), t.TempDir()
	o.first(status(404))
	code, out, _ := finish(t, dir, "download", o.url(), "--json")
	if _, end := jsonLines(t, out); code != exitRefused || end.ExitCode != exitRefused || end.Reason != "refused" || !strings.Contains(end.Error, "404") {
		t.Errorf("code %d: %s", code, out)
	}
	code, out, _ = finish(t, dir, "download", o.url(), "--json", "--size", "none")
	if _, end := jsonLines(t, out); code != exitInput || end.ExitCode != exitInput || end.Reason != "usage" || !strings.Contains(end.Error, "--size") {
		t.Errorf("code %d: %s", code, out)
	}
}

func TestC4_QuietSaysErrorsOnly(t *testing.T) {
	o, dir := newOrigin(t, 1000), t.TempDir()
	o.first(queued("1", time.Second, "1"))
	if code, out, complaint := finish(t, dir, "download", o.url(), "--quiet"); code != exitDone || out != "" || complaint != "" {
		t.Errorf("code %d, printed %q, said %q", code, out, complaint)
	}
	o.first(status(404))
	if code, out, complaint := finish(t, dir, "download", o.url(), "-q", "-o", "b"); code != exitRefused || out != "" || strings.Count(complaint, "\n") != 1 {
		t.Errorf("code %d, printed %q, said %q", code, out, complaint)
	}
}

// TestC4_PlainLinesWithoutATerminal: one line at each change of state, no control sequences, nothing on standard output.
func TestC4_PlainLinesWithoutATerminal(t *testing.T) {
	o, dir := newOrigin(t, 300_000), t.TempDir()
	o.first(queued("312", 47*time.Minute, "1"), queued("311", 46*time.Minute, "1"))
	code, out, complaint := finish(t, dir, "download", o.url())
	lines := strings.Split(strings.TrimSuffix(complaint, "\n"), "\n")
	count := func(part string) (n int) {
		for _, line := range lines {
			if strings.Contains(line, part) {
				n++
			}
		}
		return n
	}
	if code != exitDone || out != "" || count("in queue, 312th, starts about ") != 1 || count("in queue") != 1 || count("downloading") != 1 || count("done, 300 kB in ") != 1 || len(lines) > 6 {
		t.Errorf("code %d, printed %q, said\n%s", code, out, complaint)
	}
	if strings.ContainsFunc(complaint, func(r rune) bool { return r < ' ' && r != '\n' }) {
		t.Errorf("control characters: %q", complaint)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "release.tar: ") {
			t.Errorf("%q does not say which file", line)
		}
	}
}

// TestC4_PlainLinesAreSeldom: a night in the queue does not fill the log.
func TestC4_PlainLinesAreSeldom(t *testing.T) {
	var out strings.Builder
	w := &plainWatcher{out: &out, view: view{name: "f"}}
	for second := range 3600 {
		e := inQueue
		e.At = noon.Add(time.Duration(second) * time.Second)
		w.see(client.Event{Kind: client.Connecting, At: e.At, Total: -1})
		w.see(e)
	}
	if n := strings.Count(out.String(), "in queue"); n != 120 || strings.Count(out.String(), "\n") != 121 {
		t.Errorf("%d lines about the queue in an hour, want one each 30 s and the first:\n%.500s", n, out.String())
	}
	out.Reset()
	w.see(half)
	w.see(client.Event{Kind: client.Retrying, At: noon, Total: -1})
	w.see(client.Event{Kind: client.Connecting, At: noon, Total: -1})
	w.see(half)
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines for three changes:\n%s", n, out.String())
	}
}

func TestC4_JSONLinesOfBytesAreOneASecond(t *testing.T) {
	var out strings.Builder
	w := &jsonWatcher{out: &out}
	for tenth := range 100 {
		e := half
		e.At = noon.Add(time.Duration(tenth) * 100 * time.Millisecond)
		w.see(e)
	}
	w.see(client.Event{Kind: client.Downloading, At: noon.Add(9950 * time.Millisecond), Bytes: 10, Total: 10}) // all is there: never left out
	if n := strings.Count(out.String(), "\n"); n != 11 {
		t.Errorf("%d lines in ten seconds", n)
	}
}

// TestC4_TerminalShowsQueueThenBar runs the built program on a real terminal. What it shows is in testdata/terminal.txt, which the
// README quotes; times are those of the run and are compared by form; a rate is shown or not yet.
func TestC4_TerminalShowsQueueThenBar(t *testing.T) {
	o, dir := newOrigin(t, 4_000_000), t.TempDir()
	o.first(queued("312", 47*time.Minute+30*time.Second, "1"))
	letGo := o.hold(2_000_000)
	defer letGo()
	p := openTerminal(t, 104) // room for the days that stand before the times near midnight
	run := start(t, dir, nil, func(c *exec.Cmd) {
		c.Stdin, c.Stdout, c.Stderr = p.slave, p.slave, p.slave
		c.SysProcAttr.Setsid, c.SysProcAttr.Setctty = true, true
	}, "download", o.url(), "--parallel", "1", "--range-bytes", "500kB")
	screens := []string{p.sees("in queue, 312th, starts about"), p.sees("50 %")}
	letGo()
	if code := run.end(); code != exitDone {
		t.Fatalf("code %d", code)
	}
	p.hangUp()
	screens = append(screens, p.text())
	o.whole(t, filepath.Join(dir, "release.tar"))
	if p.screen.colours == 0 || strings.Contains(p.text(), "<ESC") {
		t.Errorf("colours: %d, screen\n%s", p.screen.colours, p.text())
	}
	got := strings.Join(screens, "\n") + "\n"
	const golden = "testdata/terminal.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || form(string(want)) != form(got) {
		t.Errorf("the terminal showed\n%s\nwhose form is\n%s\nwant (%s, %v)\n%s", got, form(got), golden, err, form(string(want)))
	}
}

// form takes out of a screen what depends on the run: the time, rates, the length of the bar.
func form(text string) string {
	for _, one := range [][2]string{
		{`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) `, ""}, {`\d\d:\d\d`, "HH:MM"}, {`[\d.]+ (B|kB|MB|GB)/s`, "RATE"}, {`, [\dminh ]+s? left`, ", LEFT"}, {`RATE] *`, "RATE"},
		{`, RATE(, LEFT)?`, ""}, {` in \d+ s,`, " in N s,"}, {`\d+ s of it`, "N s of it"}, {`\[=+> *\]`, "[BAR]"},
	} {
		text = regexp.MustCompile(one[0]).ReplaceAllString(text, one[1])
	}
	return text
}

// TestC4_TerminalModes: no colours with NO_COLOR, no drawing on a dumb terminal or with --no-progress.
func TestC4_TerminalModes(t *testing.T) {
	for _, one := range []struct {
		name          string
		env, args     []string
		drawn, colour bool
	}{
		{"as usual", nil, nil, true, true},
		{"NO_COLOR", []string{"NO_COLOR=1"}, nil, true, false},
		{"dumb", []string{"TERM=dumb"}, nil, false, false},
		{"--no-progress", nil, []string{"--no-progress"}, false, false},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			o, dir := newOrigin(t, 1_000_000), t.TempDir()
			letGo := o.hold(500_000)
			defer letGo()
			p := openTerminal(t, 88)
			run := start(t, dir, one.env, func(c *exec.Cmd) { c.Stderr = p.slave }, with([]string{"download", o.url(), "--parallel", "1", "--range-bytes", "100kB"}, one.args...)...)
			if one.drawn {
				p.sees("50 %")
			} else {
				p.sees("release.tar: downloading")
			}
			letGo()
			if code := run.end(); code != exitDone {
				t.Fatalf("code %d", code)
			}
			p.hangUp()
			if raw := p.raw.String(); (p.screen.colours > 0) != one.colour || strings.Contains(raw, "\x1b") != one.drawn {
				t.Errorf("%q", raw)
			}
		})
	}
}

// TestC4_NothingSecretIsShown: neither headers, nor who asks, nor the query of the URL, whatever goes wrong and however it is told.
func TestC4_NothingSecretIsShown(t *testing.T) {
	o, dir := newOrigin(t, 1000), t.TempDir()
	host := strings.TrimPrefix(o.URL, "http://")
	if err := os.WriteFile(filepath.Join(dir, "headers"), []byte("# of the vault\nX-Secret: s3cret-header-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	echo := func(w http.ResponseWriter, r *http.Request) { // a server that repeats what it was asked
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"` + r.URL.String() + " " + r.Header.Get("X-Secret") + " " + strings.Join(r.Header.Values("X-More"), " ") + " " + r.Header.Get("Authorization") + `"}`))
	}
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, one := range map[string]struct {
		address string
		first   []func(http.ResponseWriter, *http.Request)
		args    []string
	}{
		"refused":      {"http://s3cret-user:s3cret-password@" + host + "/release.tar?X-Amz-Signature=s3cret-query&k=v", []func(http.ResponseWriter, *http.Request){echo}, nil},
		"broken":       {"http://s3cret-user:s3cret-password@" + host + "/release.tar?s3cret-query", []func(http.ResponseWriter, *http.Request){cut, cut, cut, cut}, nil},
		"wrong port":   {"http://s3cret-user:s3cret-password@127.0.0.1:1/release.tar?sig=s3cret%2Dquery", nil, nil},
		"no host":      {"http://s3cret-user:s3cret-password@nowhere.invalid/release.tar?sig=s3cret-query", nil, nil},
		"wrong scheme": {"ftp://s3cret-user:s3cret-password@" + host + "/release.tar?sig=s3cret-query", nil, nil},
		"no URL":       {"http://s3cret-user:s3cret-password@" + host + ":x/release.tar?sig=s3cret-query", nil, nil},
		"two URLs":     {"http://s3cret-user:s3cret-password@" + host + "/?sig=s3cret-query", nil, []string{"http://" + host + "/b?sig=s3cret-query"}},
		"odd name":     {"http://s3cret-user:s3cret-password@" + host + "/?sig=s3cret-query", nil, nil},
		"odd header":   {"http://" + host + "/release.tar", nil, []string{"-H", "s3cret-header"}},
	} {
		for _, mode := range [][]string{nil, {"--json"}, {"-q"}} {
			o.mu.Lock()
			o.busy = nil
			o.mu.Unlock()
			o.first(one.first...)
			args := slices.Concat([]string{"download", one.address, "--header-file", "headers", "-H", "X-More: s3cret-header", "--attempts", "2", "--retries", "2"}, one.args, mode)
			code, out, complaint := finish(t, dir, args...)
			if code == exitDone || complaint == "" {
				t.Errorf("%s: code %d, said %q", name, code, complaint)
			}
			if strings.Contains(out+complaint, "s3cret") || strings.Contains(out+complaint, "czNjcmV0") { // the latter in base 64
				t.Errorf("%s %v: printed %q, said %q", name, mode, out, complaint)
			}
		}
	}
}

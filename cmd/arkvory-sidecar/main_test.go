package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Two goroutines of fasthttp outlive a server that has ended: the process-wide date, and the worker pool's cleaner, which looks for the
// stop signal every ten seconds.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// file writes a file that lives as long as the test.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// example returns the YAML example of the README between markers of that name.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- "+name+":begin -->\n```yaml\n")
	body, _, ended := strings.Cut(rest, "```\n<!-- "+name+":end -->")
	if !found || !ended {
		t.Fatalf("the README has no example between the markers %s:begin and %s:end", name, name)
	}
	return body
}

func TestL2_CheckConfigReadsTheFilesOfRules(t *testing.T) {
	const bad, badToo = "principals:\n  - id: a b\n  - id: c\n    class: loud\n    users: [u]\n", "clients:\n  - name: X\n    userAgent: X/\n"
	good := []string{"ARKVORY_PRINCIPALS_FILE=" + file(t, example(t, "principals")), "ARKVORY_CLIENTS_FILE=" + file(t, example(t, "clients"))}
	principals, clients := "ARKVORY_PRINCIPALS_FILE="+file(t, bad), "ARKVORY_CLIENTS_FILE="+file(t, badToo)
	for name, one := range map[string]struct {
		environ []string
		code    int
		want    []string
	}{
		"the README's examples": {good, 0, nil},
		"one":                   {[]string{principals, good[1]}, 2, []string{"ARKVORY_PRINCIPALS_FILE: line 2", "line 4"}},
		"both":                  {[]string{principals, clients}, 2, []string{"ARKVORY_PRINCIPALS_FILE: line 2", "ARKVORY_CLIENTS_FILE: line 2"}},
		"both beside a variable": {[]string{"ARKVORY_MAX_UPLOADS=0", principals, clients}, 2,
			[]string{`ARKVORY_MAX_UPLOADS="0"`, "ARKVORY_PRINCIPALS_FILE: line 2", "ARKVORY_CLIENTS_FILE: line 2"}},
		"a missing one is told once": {[]string{"ARKVORY_CLIENTS_FILE=/nowhere/at/all", principals}, 2, []string{"1 fault\n", "ARKVORY_PRINCIPALS_FILE: line 2"}},
	} {
		var out, faults bytes.Buffer
		if code := run([]string{"-check-config"}, one.environ, &out, &faults); code != one.code || (code == 0) != (out.Len() > 0) {
			t.Errorf("%s: exit code %d with %d bytes of settings, want %d:\n%s", name, code, out.Len(), one.code, faults.String())
		}
		for _, want := range one.want {
			if strings.Count(faults.String(), want) != 1 {
				t.Errorf("%s: %q is not told once in\n%s", name, want, faults.String())
			}
		}
	}
}

// said is what the tests read of a log line.
type said struct{ Message, Listen, Admin string }

// process is run in this process, with its log line by line.
type process struct {
	t     *testing.T
	lines <-chan said
	code  <-chan int
	all   []string
	first said // "serving"
}

func begin(t *testing.T, environ ...string) *process {
	t.Helper()
	reader, writer := io.Pipe()
	lines, code := make(chan said, 1024), make(chan int, 1)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(reader); scan.Scan(); {
			var one said
			if json.Unmarshal(scan.Bytes(), &one) == nil {
				lines <- one
			}
		}
	}()
	go func() {
		defer writer.Close()
		code <- run(nil, slices.Concat([]string{"ARKVORY_LISTEN=127.0.0.1:0", "ARKVORY_ADMIN_LISTEN=127.0.0.1:0", "ARKVORY_LOG_FORMAT=json"}, environ), io.Discard, writer)
	}()
	p := &process{t: t, lines: lines, code: code}
	p.first = p.until("serving")
	return p
}

// until reads the log up to a message.
func (p *process) until(message string) said {
	p.t.Helper()
	for one := range p.lines {
		if p.all = append(p.all, one.Message); one.Message == message {
			return one
		}
	}
	p.t.Fatalf("the process ended without %q; it said %q", message, p.all)
	return said{}
}

// signal sends SIGTERM, which run catches from "serving" on.
func (p *process) signal() {
	p.t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end and returns everything that was said.
func (p *process) end() string {
	p.t.Helper()
	for one := range p.lines {
		p.all = append(p.all, one.Message)
	}
	if code := <-p.code; code != 0 {
		p.t.Errorf("exit code %d", code)
	}
	return strings.Join(p.all, "\n")
}

func status(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestL1_ADrainWithNothingToDoIsSeenByProbes(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	p := begin(t)
	if got := status(t, "http://"+p.first.Listen+"/hello.txt"); got != 200 {
		t.Fatalf("status %d", got)
	}
	p.signal()
	p.until("draining")
	began := time.Now()
	for ended := false; !ended; { // the drain may begin a moment after its log line
		ended = status(t, "http://"+p.first.Admin+"/health/ready") == 503
	}
	for _, url := range []string{"http://" + p.first.Admin + "/health/ready", "http://" + p.first.Listen + "/hello.txt"} {
		if got := status(t, url); got != 503 {
			t.Errorf("%s: status %d in a drain", url, got)
		}
	}
	text := p.end()
	if took := time.Since(began); took < minDrain-100*time.Millisecond || took > minDrain+10*time.Second {
		t.Errorf("the drain took %v", took)
	}
	if strings.Contains(text, "cut") {
		t.Errorf("something was cut:\n%s", text)
	}
}

func TestL1_TheLogSaysWhatCutTransfers(t *testing.T) {
	for name, one := range map[string]struct {
		drain      string
		twice      bool
		want, lack string
	}{
		"second signal": {"60", true, "a second signal came", "deadline passed"},
		"deadline":      {"1", false, "the deadline passed", "second signal"},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, "ARKVORY_DRAIN_SECONDS="+one.drain, "ARKVORY_DOWNLOAD_BYTES_PER_SECOND=65536")
			response, err := http.Get("http://" + p.first.Listen + "/release.tar")
			if err != nil {
				t.Fatal(err)
			}
			defer http.DefaultClient.CloseIdleConnections()
			defer response.Body.Close()
			p.signal()
			p.until("draining")
			if one.twice {
				p.signal()
			}
			if text := p.end(); !strings.Contains(text, one.want) || strings.Contains(text, one.lack) {
				t.Errorf("it said\n%s\nwant %q and not %q", text, one.want, one.lack)
			}
		})
	}
}

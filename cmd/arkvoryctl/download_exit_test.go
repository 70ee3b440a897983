//go:build linux

package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestC4_ExitCodes runs the built program into each of its ends.
func TestC4_ExitCodes(t *testing.T) {
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/release.tar"
	_ = closed.Close()
	const wrong = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	soon := []string{"--retries", "1", "--attempts", "1"}
	for _, one := range []struct {
		name  string
		first []func(http.ResponseWriter, *http.Request)
		args  []string
		code  int
		says  string
	}{
		{"done", nil, nil, exitDone, "done"},
		{"digest right", nil, []string{"--digest", "sha256:SUM", "--size", "200000"}, exitDone, "digest right"},
		{"queued, then done", []func(http.ResponseWriter, *http.Request){queued("1", time.Second, "1")}, nil, exitDone, "in queue, 1st"},
		{"nobody listens", nil, with(soon, "--URL", nobody), exitWork, "arkvoryctl: "},
		{"bad gateway", []func(http.ResponseWriter, *http.Request){status(502), status(502)}, soon, exitWork, "502"},
		{"wrong flag", nil, []string{"--parallel", "17"}, exitInput, "1..16"},
		{"digest wrong", nil, []string{"--digest", wrong}, exitMismatch, "digest"},
		{"size wrong", nil, []string{"--size", "7"}, exitMismatch, "size"},
		{"starts too late", []func(http.ResponseWriter, *http.Request){queued("312", 47*time.Minute, "1")}, []string{"--not-after", time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}, exitDeadline, "start"},
		{"waits too long", []func(http.ResponseWriter, *http.Request){queued("312", 47*time.Minute, "600")}, []string{"--wait-limit", "5s"}, exitWaitLimit, "wait"},
		{"not there", []func(http.ResponseWriter, *http.Request){status(404)}, nil, exitRefused, "404"},
		{"not allowed", []func(http.ResponseWriter, *http.Request){status(403)}, nil, exitRefused, "403"},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			o, dir := newOrigin(t, 200_000), t.TempDir()
			o.first(one.first...)
			args := []string{"download", o.url()}
			for i := 0; i < len(one.args); i++ {
				if one.args[i] == "--URL" {
					args[1] = one.args[i+1]
					i++
					continue
				}
				args = append(args, strings.ReplaceAll(one.args[i], "SUM", o.sum))
			}
			code, out, complaint := finish(t, dir, args...)
			if code != one.code || !strings.Contains(complaint, one.says) || out != "" {
				t.Errorf("code %d (want %d), printed %q, said %q (want %q)", code, one.code, out, complaint, one.says)
			}
			path := filepath.Join(dir, "release.tar")
			if code == exitDone {
				o.whole(t, path)
				if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			} else if _, err := os.Stat(path); err == nil {
				t.Error("a file stands at its place though it failed")
			}
		})
	}
}

// TestC4_Signals: the first ends in order, keeps what came and says how to go on; a second ends at once.
func TestC4_Signals(t *testing.T) {
	for _, one := range []struct {
		signal syscall.Signal
		code   int
		says   string
	}{{syscall.SIGINT, exitInterrupted, "interrupted"}, {syscall.SIGTERM, exitTerminated, "terminated"}} {
		t.Run(one.says, func(t *testing.T) {
			t.Parallel()
			o, dir := newOrigin(t, 400_000), t.TempDir()
			letGo := o.hold(200_000)
			defer letGo()
			args := []string{"download", o.url(), "--json", "--parallel", "1", "--range-bytes", "64KiB"}
			lines := openPipe(t)
			p := start(t, dir, nil, func(c *exec.Cmd) { c.Stdout = lines.writer }, args...)
			lines.until(`"bytes":200000`)
			p.signal(one.signal)
			if code, said := p.end(), p.errors.String(); code != one.code || said != "arkvoryctl: "+one.says+", 200 kB are kept; run the same command again to go on\n" {
				t.Errorf("code %d, said %q", code, said)
			}
			_, end := jsonLines(t, lines.rest())
			if end.ExitCode != one.code || end.Reason != one.says {
				t.Errorf("%+v", end)
			}
			letGo()
			before := o.bytes()
			code, out, complaint := finish(t, dir, args...)
			_, end = jsonLines(t, out)
			if code != exitDone || !end.Resumed {
				t.Errorf("code %d, %+v, said %q", code, end, complaint)
			}
			if again := o.bytes() - int64(len(o.body)); again > 128<<10 {
				t.Errorf("%d bytes were fetched again, after the first %d", again, before)
			}
			o.whole(t, filepath.Join(dir, "release.tar"))
		})
	}
}

func TestC3_InterruptedInTheQueue(t *testing.T) {
	o, dir := newOrigin(t, 100_000), t.TempDir()
	o.first(queued("3", time.Hour, "3000"), queued("2", time.Second, "1"))
	lines := openPipe(t)
	p := start(t, dir, nil, func(c *exec.Cmd) { c.Stdout = lines.writer }, "download", o.url(), "--json")
	lines.until(`"event":"queued"`)
	id := o.lastHeader().Get("Arkvory-Download-Id")
	p.signal(syscall.SIGINT)
	if code, said := p.end(), p.errors.String(); code != exitInterrupted || !strings.Contains(said, "the place in the queue is kept") {
		t.Errorf("code %d, said %q", code, said)
	}
	code, _, complaint := finish(t, dir, "download", o.url())
	if code != exitDone {
		t.Fatalf("code %d, said %q", code, complaint)
	}
	if got := o.lastHeader().Get("Arkvory-Download-Id"); id == "" || got != id {
		t.Errorf("the second run asked as %q, the first as %q", got, id)
	}
	o.whole(t, filepath.Join(dir, "release.tar"))
}

func TestC4_SecondSignalEndsAtOnce(t *testing.T) {
	o, dir := newOrigin(t, 100_000), t.TempDir()
	o.first(queued("3", time.Hour, "3000"))
	lines := openPipe(t)
	lines.fill(100) // room for the first line only: telling the next the program hangs and cannot end in order
	p := start(t, dir, nil, func(c *exec.Cmd) { c.Stdout = lines.writer }, "download", o.url(), "--json")
	<-o.asked
	p.signal(syscall.SIGINT)
	p.signal(syscall.SIGTERM)
	if code, said := p.end(), p.errors.String(); code != exitTerminated && code != exitInterrupted || !strings.Contains(said, "twice") {
		t.Errorf("code %d, said %q", code, said)
	}
}

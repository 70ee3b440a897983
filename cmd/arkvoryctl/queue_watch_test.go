//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/arkvory/sidecar/proxy/admin"
)

// TestV3_WatchOnAPipe prints a line a look, until Ctrl-C.
func TestV3_WatchOnAPipe(t *testing.T) {
	s := stand(t, deskSettings{})
	lines := openPipe(t)
	p := start(t, t.TempDir(), []string{"ARKVORY_ADMIN_URL=" + s.url}, func(c *exec.Cmd) { c.Stdout = lines.writer }, "queue", "--watch=250ms")
	first := lines.until("waiting=312 ")
	s.see(func(d *admin.QueueDocument) { d.Waiting = 7 })
	lines.until("waiting=7 ")
	p.signal(syscall.SIGINT)
	if code := p.end(); code != exitInterrupted || p.errors.String() != "arkvoryctl: interrupted\n" {
		t.Errorf("code %d, said %q", code, p.errors.String())
	}
	if want, err := os.ReadFile("testdata/desk/queue-line.txt"); err != nil || !strings.HasPrefix(string(want), first) {
		t.Errorf("the first line is %q (%v)", first, err)
	}
}

// TestV3_WatchAsJSONLines: every line is a whole document.
func TestV3_WatchAsJSONLines(t *testing.T) {
	s := stand(t, deskSettings{})
	lines := openPipe(t)
	p := start(t, t.TempDir(), []string{"ARKVORY_ADMIN_URL=" + s.url}, func(c *exec.Cmd) { c.Stdout = lines.writer }, "queue", "--watch=250ms", "--json")
	lines.until(`"waiting":312`)
	s.see(func(d *admin.QueueDocument) { d.Waiting = 7 })
	lines.until(`"waiting":7`)
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != exitTerminated {
		t.Errorf("code %d", code)
	}
	for line := range strings.Lines(lines.rest()) {
		var d admin.QueueDocument
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.Mode != "normal" {
			t.Errorf("%v: %q", err, line)
		}
	}
}

// TestV3_WatchOnATerminal is drawn in place: what is new replaces what was there, also when there are fewer lines, longer ones, and in a window that was made
// narrower.
func TestV3_WatchOnATerminal(t *testing.T) {
	s := stand(t, deskSettings{})
	p := openTerminal(t, 100)
	c := start(t, t.TempDir(), []string{"ARKVORY_ADMIN_URL=" + s.url}, func(c *exec.Cmd) { c.Stdout = p.slave }, "queue", "--watch=250ms")
	text := p.sees("312 sessions")
	if !strings.HasPrefix(text, "05:06:07, every 250ms; Ctrl-C ends\n\nmode") {
		t.Errorf("the screen begins otherwise:\n%s", text)
	}
	s.see(func(d *admin.QueueDocument) {
		d.Waiting, d.OldestWaitSeconds, d.PausedByOperator, d.Held, d.Remembered, d.Fed = 7, 60, 0, 0, 0, 0
	})
	text = p.sees("7 sessions, the oldest for 60 s")
	if strings.Count(text, "mode ") != 1 || strings.Contains(text, "312") || strings.Count(text, "\n") != strings.Count(strings.Join(queueLines(read[queueSnapshot](t, busyQueue()), deskDay.Location()), "\n"), "\n")+2 {
		t.Errorf("something is left of the look before:\n%s", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if cells(line) > 100 {
			t.Errorf("%q is wider than the window", line)
		}
	}
	c.signal(syscall.SIGINT)
	if code := c.end(); code != exitInterrupted {
		t.Errorf("code %d, said %q", code, c.errors.String())
	}
}

// TestV3_WatchOutlivesARestart: a sidecar that does not answer for a while is waited for, and that is said once; one that refuses ends the watch.
func TestV3_WatchOutlivesARestart(t *testing.T) {
	f := foreign(t, []foreignAnswer{queueAnswer(t), {503, "text/plain", "starting"}, {503, "text/plain", "starting"}, queueAnswer(t),
		{401, "application/json", `{"error":"unauthorized","reason":"unauthorized","message":"no"}`}})
	lines := openPipe(t)
	p := start(t, t.TempDir(), []string{"ARKVORY_ADMIN_URL=" + f.URL}, func(c *exec.Cmd) { c.Stdout = lines.writer }, "queue", "--watch=250ms")
	lines.until("waiting=312 ")
	lines.until("waiting=312 ")
	code := p.end()
	said := p.errors.String()
	if code != exitRefused || strings.Count(said, "503") != 1 || !strings.Contains(said, "does not trust") {
		t.Errorf("code %d, said %q", code, said)
	}
}

// TestV3_RedrawnWindow counts the lines that a narrower window has wrapped.
func TestV3_RedrawnWindow(t *testing.T) {
	p := openTerminal(t, 40)
	columns := 40
	r := &redrawn{out: p.slave, size: func(*os.File) (int, int) { return columns, 24 }}
	draw := func(lines ...string) {
		t.Helper()
		if err := r.draw(lines); err != nil {
			t.Fatal(err)
		}
	}
	draw("one", strings.Repeat("x", 50), "three")
	p.sees("one\n" + strings.Repeat("x", 39) + "…\nthree")
	draw("one", "2")
	p.seesThat("two lines", func(text string) bool { return text == "one\n2" })
	columns = 20
	draw(strings.Repeat("é", 30))
	p.seesThat("a short line", func(text string) bool { return text == strings.Repeat("é", 19)+"…" })
	r.last = []string{strings.Repeat("y", 45)}
	draw("end")
	if raw := p.text(); strings.Contains(raw, "y") {
		t.Errorf("%q", raw)
	}
	p.seesThat("the whole of it replaced", func(text string) bool { return strings.HasSuffix(text, "end") })
	if !strings.Contains(p.sent(), "\x1b[3A") {
		t.Errorf("45 cells in 20 columns are 3 lines: %q", p.sent())
	}
}

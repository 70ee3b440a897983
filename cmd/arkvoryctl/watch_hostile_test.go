package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// TestC4_WideNamesFit: runes that take two cells of a terminal, and none, count as what they take.
func TestC4_WideNamesFit(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "архив": 5, "配布物.iso": 10, "ｆｕｌｌ": 8, "한글": 4, "e\u0301": 1, "📦.tar": 6, "🇩🇪": 4, "a\u200db": 2,
	} {
		if got := cells(text); got != want {
			t.Errorf("%q takes %d cells, want %d", text, got, want)
		}
	}
	w := &terminalWatcher{view: view{name: strings.Repeat("配布物", 8) + ".iso"}, now: func() time.Time { return noon }}
	for _, e := range []client.Event{inQueue, half, {Kind: client.Retrying, At: noon, Err: errors.New("接続が切れました"), NextTry: noon.Add(time.Second)}} {
		w.event.Store(&e)
		for width := 30; width <= 160; width++ {
			before, behind := w.layout(width)
			if got := cells(before) + cells(behind); got > width {
				t.Fatalf("%v at %d: %q %q takes %d", e.Kind, width, before, behind, got)
			}
		}
	}
}

// TestC4_OneUnwritableEventDoesNotEndTheRest: an event that has no JSON form is left out, and those after it are not.
func TestC4_OneUnwritableEventDoesNotEndTheRest(t *testing.T) {
	var out bytes.Buffer
	w := &jsonWatcher{out: &out}
	w.see(client.Event{Kind: client.Queued, At: noon, StartsAt: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), Total: -1})
	w.see(client.Event{Kind: client.Done, At: noon, Total: 1, Bytes: 1})
	w.end(client.Result{Bytes: 1}, nil)
	if text := out.String(); !strings.Contains(text, `"done"`) || !strings.Contains(text, `"end"`) {
		t.Errorf("%q", text)
	}
}

// TestC4_LinesOfServersAreText: nothing of a text draws, turns the direction of writing, or ends the line.
func TestC4_LinesOfServersAreText(t *testing.T) {
	if got := oneLine("a\x1b[2J\u202eb\u2066c\u2028d\x9be\r\nf\u200bg"); got != "a [2J b c d\ufffde f g" {
		t.Errorf("%q", got)
	}
	var out bytes.Buffer
	complain(&out, errors.New("cannot open /tmp/a\x1b]0;owned\a\u202eb\nand\rthis"))
	if got := out.String(); strings.ContainsAny(got, "\x1b\a\r\u202e") || strings.Count(got, "arkvoryctl: ") != 2 {
		t.Errorf("%q", got)
	}
}

// TestC4_SecretFilesAreBoundedAndWhole: a device that never ends is not read to the end, and a long line does not hide those after it.
func TestC4_SecretFilesAreBoundedAndWhole(t *testing.T) {
	if _, err := readSecret("/dev/zero"); err == nil {
		t.Error("/dev/zero is a secret")
	}
	name := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(name, []byte("X-Long: "+strings.Repeat("a", 100_000)+"\r\n# no\nX-Next: b"), 0o600); err != nil {
		t.Fatal(err)
	}
	header, err := (&download{HeaderFile: name}).headers(nil)
	if err != nil || header.Get("X-Next") != "b" || len(header.Get("X-Long")) != 100_000 {
		t.Errorf("%d headers, %v", len(header), err)
	}
}

// TestC3_AStaleCheckpointIsNoForce: a checkpoint beside a file that is not what it speaks of does not make that file replaceable.
func TestC3_AStaleCheckpointIsNoForce(t *testing.T) {
	o, dir := newOrigin(t, 100_000), t.TempDir()
	name := filepath.Join(dir, "release.tar")
	o.first(queued("3", time.Hour, "3600"))
	if code, _, said := ctl(t, "download", o.url(), "-o", name, "--wait-limit", "1s"); code != exitWaitLimit { // leaves a checkpoint and a part
		t.Fatal(code, said)
	}
	mine := []byte("mine")
	if err := errors.Join(os.Remove(name+".part"), os.WriteFile(name, mine, 0o600)); err != nil {
		t.Fatal(err)
	}
	code, _, said := ctl(t, "download", o.url(), "-o", name)
	if got, _ := os.ReadFile(name); code != exitInput || !bytes.Equal(got, mine) || !strings.Contains(said, "--force") {
		t.Errorf("code %d, the file has %d bytes, %s", code, len(got), said)
	}
}

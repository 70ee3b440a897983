//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestC4_KilledAndResumed kills the program with SIGKILL in mid-download, twice: the next run goes on from what is on the disk, and at the
// end the file is the object to the byte.
func TestC4_KilledAndResumed(t *testing.T) {
	const size = 8 << 20
	for _, one := range []struct {
		name  string
		args  []string
		again int64 // bytes that each kill may cost
	}{
		{"one range at a time", []string{"--parallel", "1", "--range-bytes", "256KiB"}, 256 << 10},
		{"four at once", []string{"--parallel", "4", "--range-bytes", "256KiB"}, 5 * 256 << 10},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			o, dir := newOrigin(t, size), t.TempDir()
			args := with([]string{"download", o.url(), "--json", "--digest", "sha256:" + o.sum}, one.args...)
			var ids []string
			for _, at := range []int64{size / 4, size / 2} {
				letGo := o.hold(at)
				lines := openPipe(t)
				p := start(t, dir, nil, func(c *exec.Cmd) { c.Stdout = lines.writer }, args...)
				for vouched(t, filepath.Join(dir, "release.tar.arkvory")) < at-one.again { // the program says every second how far it is
					lines.until(`"event":"downloading"`)
				}
				ids = append(ids, o.lastHeader().Get("Arkvory-Download-Id"))
				p.signal(syscall.SIGKILL)
				if code := p.end(); code != -1 {
					t.Fatalf("ended with code %d", code)
				}
				letGo()
			}
			o.hold(0)
			code, out, complaint := finish(t, dir, args...)
			_, end := jsonLines(t, out)
			if code != exitDone || !end.Resumed || end.SHA256 != o.sum {
				t.Fatalf("code %d, %+v, said %q", code, end, complaint)
			}
			o.whole(t, filepath.Join(dir, "release.tar"))
			again := o.bytes() - size
			t.Logf("%d of %d bytes were fetched again", again, size)
			if again > 2*one.again {
				t.Errorf("%d bytes were fetched again, want at most %d", again, 2*one.again)
			}
			if ids = append(ids, o.lastHeader().Get("Arkvory-Download-Id")); ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] {
				t.Errorf("the download's names in the queue: %q", ids)
			}
		})
	}
}

// vouched is how many bytes a checkpoint says are safe.
func vouched(t *testing.T, path string) (bytes int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	var file struct{ State struct{ Done [][2]int64 } }
	if err = errors.Join(err, json.Unmarshal(data, &file)); err != nil {
		t.Fatal(err)
	}
	for _, span := range file.State.Done {
		bytes += span[1] - span[0]
	}
	return bytes
}

// TestC4_TheSameDownloadTwice: the second process is told that the first works on the file.
func TestC4_TheSameDownloadTwice(t *testing.T) {
	o, dir := newOrigin(t, 400_000), t.TempDir()
	letGo := o.hold(200_000)
	defer letGo()
	lines := openPipe(t)
	p := start(t, dir, nil, func(c *exec.Cmd) { c.Stdout = lines.writer }, "download", o.url(), "--json")
	lines.until(`"event":"downloading"`)
	code, _, complaint := finish(t, dir, "download", o.url())
	if code != exitWork || complaint == "" {
		t.Errorf("code %d, said %q", code, complaint)
	}
	letGo()
	if code := p.end(); code != exitDone {
		t.Errorf("the first ended with code %d: %s", code, p.errors.String())
	}
	o.whole(t, filepath.Join(dir, "release.tar"))
}

package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestC3_CheckpointsThatCannotBeUsed: damaged ones start afresh and say so, foreign and newer ones stop the download before
// anything is lost.
func TestC3_CheckpointsThatCannotBeUsed(t *testing.T) {
	want := noise(21, 200_000)
	half := func(t *testing.T) (*trial, []byte) {
		o := newOrigin(want)
		o.script = func(n int, _ *http.Request) (*http.Response, error) {
			if n >= 1 {
				return status(404)
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes, r.opts.Parallel = 50_000, 1
		r.ends(ErrRefused)
		data, err := slurp(r.disk, "/d/out.arkvory", maxCheckpoint)
		if err != nil {
			t.Fatal(err)
		}
		o.script = nil
		return r, data
	}
	for name, change := range map[string]struct {
		edit  func(string) string
		fresh bool
		fails bool
	}{
		"as it was":     {func(s string) string { return s }, false, false},
		"one digit off": {func(s string) string { return strings.Replace(s, "50000]", "90000]", 1) }, true, false},
		"cut":           {func(s string) string { return s[:len(s)/2] }, true, false},
		"empty":         {func(string) string { return "" }, true, false},
		"not JSON":      {func(string) string { return "\x00\x01" }, true, false},
		"version 0":     {func(s string) string { return strings.Replace(s, `"version":1`, `"version":0`, 1) }, true, false},
		"newer":         {func(s string) string { return `{"version":2,"news":[]}` }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				r, data := half(t)
				if err := replace(r.disk, "/d/out.arkvory", []byte(change.edit(string(data)))); err != nil {
					t.Fatal(err)
				}
				if change.fails {
					r.ends(ErrCheckpoint)
					r.opts.Fresh = true
				}
				result := r.gets(want)
				if resumed := !change.fresh && !change.fails; result.Resumed != resumed || (r.count(Restarted) > 0) != change.fresh {
					t.Errorf("%+v, %d restarts", result, r.count(Restarted))
				}
			})
		})
	}
	for name, other := range map[string]struct {
		url  string
		same bool
	}{
		"another path":         {"http://store.test/files/other.iso?access=SECRETQUERY1", false},
		"another query":        {"http://store.test/files/big.iso?access=other", false},
		"another host":         {"http://other.test/files/big.iso?access=SECRETQUERY1", false},
		"the port written out": {"http://Store.test:80/files/big.iso?access=SECRETQUERY1#part", true},
		"the link signed anew": {"http://store.test/files/big.iso?access=SECRETQUERY1&X-Amz-Date=1&X-Amz-Signature=2", true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				r, _ := half(t)
				r.opts.URL = other.url
				if !other.same {
					r.ends(ErrCheckpoint)
					r.opts.URL = testURL // nothing was lost
				}
				if result := r.gets(want); !result.Resumed {
					t.Error("not resumed")
				}
			})
		})
	}
	t.Run("a shorter and a missing file", func(t *testing.T) {
		in(t, func(t *testing.T) {
			r, _ := half(t)
			file, _ := r.disk.open("/d/out.part")
			_ = file.Truncate(20_000)
			o := r.origin
			o.script = nil
			asked := len(o.seen())
			r.gets(want)
			if first := o.seen()[asked]; first.rng != "bytes=20000-49999" {
				t.Errorf("asked %s", first.rng)
			}
			r, _ = half(t)
			_ = r.disk.remove("/d/out.part")
			if r.gets(want).Resumed {
				t.Error("resumed from nothing")
			}
		})
	})
	t.Run("a longer file", func(t *testing.T) {
		in(t, func(t *testing.T) {
			r, _ := half(t)
			file, _ := r.disk.open("/d/out.part")
			_, _ = file.WriteAt(noise(1, 1000), 500_000)
			r.gets(want)
		})
	})
}

// TestC3_WholeButUnnamed: a file that was whole long ago is not taken for the object without a question.
func TestC3_WholeButUnnamed(t *testing.T) {
	want, next := noise(22, 200_000), noise(23, 200_000)
	for _, one := range []struct {
		age     time.Duration
		changed bool
		want    []byte
		asks    bool
	}{{time.Minute, true, want, false}, {time.Hour, false, want, true}, {time.Hour, true, next, true}} {
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			r := newTrial(t, o)
			d := newMemDisk()
			d.fault = func(operation, path string) error {
				if operation == "rename" && path == "/d/out.part" {
					return errors.New("not now")
				}
				return nil
			}
			r.disk = d
			r.ends(ErrDisk)
			d.fault = nil
			<-time.After(one.age)
			if one.changed {
				o.change(next, `"next"`)
			}
			asked := len(o.seen())
			r.gets(one.want)
			if (len(o.seen()) > asked) != one.asks {
				t.Errorf("%+v: %d questions", one, len(o.seen())-asked)
			}
		})
	}
}

// TestC3_TwoProcesses: the second is turned away while the first runs, by the checkpoint or by the output, and the lock
// goes with the process.
func TestC3_TwoProcesses(t *testing.T) {
	if path := os.Getenv("CLIENT_TEST_HOLD"); path != "" { // the other process
		release, err := osDisk{}.lock(path)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	folder := t.TempDir()
	output := filepath.Join(folder, "out")
	o := newOrigin(noise(1, 100))
	options := Options{URL: testURL, Output: output, Client: &http.Client{Transport: o}}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestC3_TwoProcesses$")
	other.Env = append(os.Environ(), "CLIENT_TEST_HOLD="+output+".arkvory.lock")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := Download(t.Context(), options); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), output) {
		t.Errorf("while the other holds it: %v", err)
	}
	_ = other.Process.Kill()
	_ = in.Close()
	_ = other.Wait()
	// Another checkpoint, the same file: the first stands still while it watches the second fail.
	second := options
	second.Checkpoint = filepath.Join(folder, "elsewhere")
	var turned error
	options.Observe = func(e Event) {
		if e.Kind == Connecting {
			_, turned = Download(t.Context(), second)
		}
	}
	if _, err := Download(t.Context(), options); err != nil {
		t.Errorf("after the other was killed: %v", err)
	}
	if !errors.Is(turned, ErrLocked) {
		t.Errorf("the same output with another checkpoint: %v", turned)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 2 { // the second's lock is gone, the file and no more
		for _, path := range left {
			if path != output {
				t.Errorf("left behind: %s", path)
			}
		}
	}
}

// TestC3_CheckpointIsPrivate: only its owner may read the ticket.
func TestC3_CheckpointIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path+".new", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := replace(osDisk{}, path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

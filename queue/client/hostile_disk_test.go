package client

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestC1_SlowDiskIsNoSilence: while the disk takes its time the server is not silent.
func TestC1_SlowDiskIsNoSilence(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(49, 1<<20)
		o := newOrigin(want)
		o.pace = time.Second
		d := newMemDisk()
		var writes atomic.Int64
		d.slow = func(path string) time.Duration {
			if path == "/d/out.part" && writes.Add(1)%5 == 0 {
				return 2 * defaultSilence
			}
			return 0
		}
		r := newTrial(t, o)
		r.disk, r.opts.Parallel, r.opts.RangeBytes = d, 1, 512<<10
		if result := r.gets(want); result.Retries != 0 || len(o.seen()) != 2 {
			t.Errorf("%d retries, %d requests", result.Retries, len(o.seen()))
		}
	})
}

// TestC3_FlushFailureClaimsNothing: after a flush that failed the kernel may have dropped what was written, and says so only
// once. Nothing that was not flushed before may be claimed, neither by the part of the checkpoint that says "flushed" nor as "whole".
func TestC3_FlushFailureClaimsNothing(t *testing.T) {
	for failing := 1; failing <= 4; failing++ {
		in(t, func(t *testing.T) {
			want := noise(50, 1<<20)
			o := newOrigin(want)
			o.pace = time.Second
			d := newMemDisk()
			flushes := 0
			d.fault = func(operation, path string) error {
				if operation != "sync" || path != "/d/out.part" {
					return nil
				}
				if flushes++; flushes == failing {
					node := d.names[path]
					node.data, node.pending = append(make([]byte, 0, len(node.data)), node.stable...), nil
					node.data = append(node.data, make([]byte, 1<<20-len(node.data))...) // the pages are lost, the length is not
					return syscall.EIO
				}
				return nil
			}
			r := newTrial(t, o)
			r.disk, r.opts.RangeBytes, r.opts.Parallel = d, 256<<10, 2
			_, err := r.run(context.Background())
			if flushes < failing {
				t.Fatalf("only %d flushes", flushes)
			}
			if !errors.Is(err, syscall.EIO) || !errors.Is(err, ErrDisk) {
				t.Fatalf("flush %d failed: %v", failing, err)
			}
			r.gets(want)
		})
	}
}

// TestC3_CancelKeepsWhatWasNamed: a run that is stopped while it looks at a finished file forgets nothing.
func TestC3_CancelKeepsWhatWasNamed(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(51, 300_000)
		o := newOrigin(want)
		d := newMemDisk()
		d.fault = func(operation, path string) error {
			if operation == "remove" && path == "/d/out.arkvory" {
				return errDead
			}
			return nil
		}
		r := newTrial(t, o)
		r.disk = d
		r.ends(errDead)
		d.fault = nil
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.run(cancelled); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		asked := len(o.seen())
		r.gets(want)
		if len(o.seen()) != asked || !bytes.Equal(r.file(), want) {
			t.Errorf("%d further requests", len(o.seen())-asked)
		}
	})
}

// TestC3_CheckpointFilesAreNotTheDownload: the files beside a checkpoint are removed in the end, so none may be that of the download.
func TestC3_CheckpointFilesAreNotTheDownload(t *testing.T) {
	for _, output := range []string{"/d/c", "/d/c.lock", "/d/c.trail", "/d/c.new", "/d/x/../c.lock"} {
		if _, err := settle(Options{URL: testURL, Output: output, Checkpoint: "/d/c"}); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", output, err)
		}
	}
	if _, err := settle(Options{URL: testURL, Output: "/d/c.iso", Checkpoint: "/d/c"}); err != nil {
		t.Error(err)
	}
}

// TestC3_NoReplace: a file that is there at the start, or appears before the download takes the name, stays as it is; the bytes are kept, and a
// file that an earlier run named is no other.
func TestC3_NoReplace(t *testing.T) {
	want, other := noise(52, 300_000), []byte("something else")
	put := func(r *trial) {
		file, err := r.disk.create("/d/out")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(other, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []Kind{Connecting, Downloading} {
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			o.pace = time.Second
			r := newTrial(t, o)
			r.opts.NoReplace = true
			r.watch = func(e Event) {
				if e.Kind == when && r.count(when) == 1 {
					put(r)
				}
			}
			r.ends(ErrExists)
			if !bytes.Equal(r.file(), other) {
				t.Error("the other file is replaced")
			}
			asked := len(o.seen())
			r.watch = nil
			r.ends(ErrExists)
			r.opts.NoReplace = false
			r.gets(want)
			if len(o.seen()) != asked {
				t.Errorf("%d further requests", len(o.seen())-asked)
			}
		})
	}
}

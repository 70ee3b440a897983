package proxy

import (
	"bytes"
	"io"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
)

// TestQ19_ADefectOfTheQueueKeepsNothingElse: the queue panics while it takes the slot of a client that left in the middle of its body.
func TestQ19_ADefectOfTheQueueKeepsNothingElse(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	began := time.Now()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		oneSlot(s)
		s.DownloadTotal = bucket.Limit{BytesPerSecond: mib}
		s.clock = func() time.Duration {
			if broken.Load() && bytes.Contains(debug.Stack(), []byte("(*Grant).Abandon")) && broken.Swap(false) {
				panic("injected in the queue")
			}
			return time.Since(began)
		}
	})
	c := b.occupy("/a/1000000000")
	broken.Store(true)
	c.close()
	eventually(t, "it panicked", func() bool { return !broken.Load() })
	b.quiet(twoTicks)
	eventually(t, "the pace is closed", func() bool {
		b.p.downGov.Open("another").Close() // sweeps; its own bucket is full and may be remembered
		return b.p.downGov.Snapshot().Principals <= 1
	})
	if n := b.metric("arkvory_panics_total"); n != "1" {
		t.Errorf("%s panics", n)
	}
	if a := b.once("GET", "/b/300000"); a.StatusCode != 200 {
		t.Errorf("what follows: %d", a.StatusCode)
	}
}

// TestL1_ADefectOfTheQueueCutsNothingAtTheStop: SIGTERM must not become a crash in the middle of running bodies.
func TestL1_ADefectOfTheQueueCutsNothingAtTheStop(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	began := time.Now()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		oneSlot(s)
		s.DownloadTotal = bucket.Limit{BytesPerSecond: mib}
		s.clock = func() time.Duration {
			if broken.Load() && bytes.Contains(debug.Stack(), []byte("(*Queue).Drain")) {
				panic("injected in the queue")
			}
			return time.Since(began)
		}
	})
	c := b.dial().get("/a/2000000")
	resp := c.begin("GET")
	broken.Store(true)
	b.p.StartDrain()
	if n, err := io.Copy(io.Discard, resp.Body); n != 2000000 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	b.close()
	if n := b.metric("arkvory_panics_total"); n != "3" { // of the drain, of the stop, and of its close
		t.Errorf("%s panics", n)
	}
}

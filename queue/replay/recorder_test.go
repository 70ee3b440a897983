package replay_test

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestQ18_AFailedWriteStopsRecordingAndNothingElse: the recorder keeps the first error, and the calls go on.
func TestQ18_AFailedWriteStopsRecordingAndNothingElse(t *testing.T) {
	for name, one := range map[string]struct {
		write func([]byte) (int, error)
		want  error
	}{
		"an error":      {func([]byte) (int, error) { return 0, io.ErrClosedPipe }, io.ErrClosedPipe},
		"a short write": {func(b []byte) (int, error) { return len(b) - 1, nil }, io.ErrShortWrite},
		"a panic":       {func([]byte) (int, error) { panic("disk") }, nil},
	} {
		var calls atomic.Int64
		r := replay.NewRecorder(writer(func(b []byte) (int, error) { calls.Add(1); return one.write(b) }))
		r.Policy(0, policy(1))
		r.Done()
		if err := r.Flush(); err == nil || one.want != nil && !errors.Is(err, one.want) || !errors.Is(r.Err(), err) {
			t.Errorf("%s: flush gives %v, then Err %v", name, err, r.Err())
		}
		for i := range time.Duration(10) {
			r.Tick(i, replay.State{})
		}
		r.Ended(&queue.End{})
		r.Settled(1, &queue.Verdict{})
		if err := r.Flush(); err == nil || calls.Load() != 1 {
			t.Errorf("%s: written %d times after the failure, %v", name, calls.Load()-1, err)
		}
	}
}

// TestQ18_ASlowWriterNeverBlocksAndMemoryIsBounded: beyond MaxBuffered the recorder gives up, and what it wrote is whole.
func TestQ18_ASlowWriterNeverBlocksAndMemoryIsBounded(t *testing.T) {
	stuck := make(chan struct{})
	var log bytes.Buffer
	r := replay.NewRecorder(writer(func(b []byte) (int, error) { <-stuck; return log.Write(b) }))
	r.Policy(0, policy(1))
	for i := time.Duration(0); r.Err() == nil; i++ {
		if i > replay.MaxBuffered {
			t.Fatal("nothing bounds what waits for the writer")
		}
		r.Tick(i, replay.State{Slots: 1, Free: 1})
		for range 1000 {
			r.Ended(&queue.End{})
		}
	}
	if !errors.Is(r.Err(), replay.ErrSlow) {
		t.Errorf("recording stopped with %v", r.Err())
	}
	close(stuck)
	if err := r.Flush(); !errors.Is(err, replay.ErrSlow) || !bytes.HasSuffix(log.Bytes(), []byte("\n")) { // the write that was under way ends
		t.Errorf("flush: %v after %d bytes", err, log.Len())
	}
}

// TestL3_WhatIsBeingWrittenWaitsToo: MaxBuffered bounds all bytes that the recorder keeps.
func TestL3_WhatIsBeingWrittenWaitsToo(t *testing.T) {
	stuck, begun := make(chan struct{}), make(chan struct{}, 1)
	r := replay.NewRecorder(writer(func(b []byte) (int, error) { begun <- struct{}{}; <-stuck; return len(b), nil }))
	var measured bytes.Buffer
	m := replay.NewRecorder(&measured)
	line := func(r *replay.Recorder) {
		r.Tick(0, replay.State{})
		for range 10000 {
			r.Ended(&queue.End{})
		}
		r.Done()
	}
	line(m)
	if err := m.Flush(); err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for ; r.Err() == nil && recorded <= 2*replay.MaxBuffered; recorded += measured.Len() {
		line(r)
		if recorded == 8*measured.Len() {
			<-begun // all until now is being written
		}
	}
	if kept := recorded - measured.Len(); kept > replay.MaxBuffered { // the last line is the one that was too much
		t.Errorf("%d bytes are kept for a writer that hangs", kept)
	}
	close(stuck)
	if err := r.Flush(); !errors.Is(err, replay.ErrSlow) {
		t.Error(err)
	}
}

// TestL3_OneLineIsBounded: what one call ends is as large as the queue.
func TestL3_OneLineIsBounded(t *testing.T) {
	var log bytes.Buffer
	r := replay.NewRecorder(&log)
	r.Policy(0, policy(1))
	r.Drain(1)
	for i := 0; r.Err() == nil; i++ {
		if i > replay.MaxBuffered {
			t.Fatal("nothing bounds a line")
		}
		r.Ended(&queue.End{Bytes: 1 << 40})
	}
	if errors.Is(r.Err(), replay.ErrSlow) {
		t.Errorf("the writer is not the reason: %v", r.Err())
	}
	r.Done()
	r.Tick(2, replay.State{})
	if err := r.Flush(); err == nil || bytes.Contains(log.Bytes(), []byte("drain")) {
		t.Errorf("%v, %q", err, log.Bytes())
	}
}

// TestQ18_EveryTickReachesTheWriter: a log is at most a tick behind without anybody's flush.
func TestQ18_EveryTickReachesTheWriter(t *testing.T) {
	written := make(chan []byte, 16)
	r := replay.NewRecorder(writer(func(b []byte) (int, error) { written <- bytes.Clone(b); return len(b), nil }))
	r.Policy(0, policy(1))
	r.Tick(1, replay.State{})
	if b := <-written; !bytes.HasPrefix(b, []byte("arkvory-decisions 1\npolicy 0 ")) || !bytes.HasSuffix(b, []byte("\n")) {
		t.Errorf("written: %q", b)
	}
	r.Done() // as the shell does after each operation
	r.Tick(2, replay.State{})
	if b := <-written; !bytes.HasPrefix(b, []byte("tick 1 ")) {
		t.Errorf("written: %q", b)
	}
	if err := r.Flush(); err != nil {
		t.Error(err)
	}
}

func BenchmarkRecordAsk(b *testing.B) {
	r := replay.NewRecorder(io.Discard)
	a := queue.Ask{Key: queue.Key{Principal: "addr:127.0.0.1", Object: "host/file", Client: "id:123"}, Class: queue.Release, SizeBytes: 1 << 30, Validator: `"v"`}
	v := queue.Verdict{Outcome: queue.Queued, Class: queue.Release, Position: 7, EstimateKnown: true, StartsIn: time.Minute}
	b.ReportAllocs()
	for b.Loop() {
		r.Ask(time.Hour, &a, &v)
		r.Done()
	}
	if err := r.Flush(); err != nil {
		b.Fatal(err)
	}
}

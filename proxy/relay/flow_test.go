package relay

import (
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/arkvory/sidecar/bucket"
)

const following = "HTTP/1.1 200 OK\r\n"

// route is one way through Flow: what is wrapped, and what the stream is taken for at its start.
type route struct {
	name     string
	src, dst bool // over TLS
	proven   int64
	slow     bool
	only     Path // where all bytes that were not read ahead must go, NumPaths: any
}

var routes = []route{
	{name: "natural", only: NumPaths},
	{name: "copy", proven: math.MinInt64 / 2, only: PathCopy},
	{name: "splice", proven: provenBytes, only: NumPaths},
	{name: "slow", slow: true, proven: math.MinInt64 / 2, only: NumPaths},
	{name: "from TLS", src: true, only: PathTLS},
	{name: "to TLS", dst: true, only: PathTLS},
	{name: "TLS both", src: true, dst: true, only: PathTLS},
}

// flow makes a Flow along the route. The caller ends it.
func (r route) flow(t fataler) (f *Flow, src, dst link, end func()) {
	src, dst = open(t, true, r.src), open(t, false, r.dst)
	f = &Flow{Src: src.Conn, Dst: dst.Conn, Now: new(atomic.Int64), Waiting: new(atomic.Int64), proven: r.proven, slow: r.slow}
	f.Now.Store(1)
	return f, src, dst, func() { f.Close(); src.shut(); dst.shut() }
}

func TestP3_EveryRouteIsByteExact(t *testing.T) {
	forgetPipes()
	files := openFiles(t)
	magnitude := 24
	if raced { // a tenth of the speed
		magnitude = 20
	}
	for _, r := range routes {
		t.Run(r.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(1, 1<<rapid.IntRange(0, magnitude).Draw(t, "magnitude")).Draw(t, "bytes")
				if rapid.IntRange(0, 30).Draw(t, "huge") == 0 {
					n = 20<<20 - n
				}
				size := 1 << rapid.IntRange(12, 20).Draw(t, "read")
				tick := rapid.SampledFrom([]int64{0, slowWaitNanos}).Draw(t, "tick")
				prefill := rapid.Bool().Draw(t, "read ahead")
				paced := rapid.IntRange(0, 3).Draw(t, "paced") == 0
				r.transfer(t, n, size, tick, prefill, paced)
			})
		})
	}
	forgetPipes()
	if open, _ := openPipes(); open != 0 || PipesInUse() != 0 {
		t.Fatalf("%d pipes open, %d in use", open, PipesInUse())
	}
	if after := openFiles(t); after > files+2 { // the runtime may open its poller in between
		t.Fatalf("%d descriptors before, %d after", files, after)
	}
}

func (r route) transfer(t fataler, n, size int, tick int64, prefill, paced bool) {
	t.Helper()
	f, src, dst, end := r.flow(t)
	defer end()
	if paced {
		g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 128 << 20}, bucket.Limit{}, &leapClock{})
		defer g.Close()
		f.Pace = g.Open("p")
		defer f.Pace.Close()
	}
	var told int64
	f.Sent = func(m int64) { told += m }
	fed := make(chan error, 1)
	go func() {
		_, err := src.peer.Write(append(body(n), following...))
		fed <- err
	}()
	if prefill {
		if err := src.Fill(BodyBytes); err != nil {
			t.Fatalf("cannot read ahead: %v", err)
		}
	}
	ahead := min(len(src.Buffered()), n)
	took := make(chan error, 1)
	go func() { took <- consume(dst.peer, n, size, func() { f.Now.Add(tick) }) }()
	if err := f.Copy(int64(n)); err != nil {
		t.Fatalf("%v", err)
	}
	if err := errors.Join(result(t, took), result(t, fed)); err != nil {
		t.Fatalf("%v", err)
	}
	if sum(f) != int64(n) || told != int64(n) || src.Moved.Load() < int64(n) || dst.Moved.Load() < int64(n) || f.Bytes[PathBuffered] != int64(ahead) {
		t.Fatalf("%d bytes, %d ahead: counted %v, told %d, moved %d and %d", n, ahead, f.Bytes, told, src.Moved.Load(), dst.Moved.Load())
	}
	if anew := r.only == PathCopy && tick > 0; r.only != NumPaths && !anew && f.Bytes[r.only] != int64(n-ahead) {
		t.Fatalf("%d of %d bytes went by %v: %v", f.Bytes[r.only], n-ahead, r.only, f.Bytes)
	}
	rest := make([]byte, len(following))
	for at := 0; at < len(rest); {
		m, err := src.Read(rest[at:])
		if at += m; err != nil {
			t.Fatalf("what follows the body is gone: %v", err)
		}
	}
	if string(rest) != following {
		t.Fatalf("the body is followed by %q", rest)
	}
}

func TestP3_ProvenStreamsSplice(t *testing.T) {
	r := routes[0]
	f, src, dst, end := r.flow(t)
	defer end()
	const n = 8 << 20
	var held int64
	f.Sent = func(int64) { held = max(held, PipesInUse()) }
	go func() { _, _ = src.peer.Write(body(n)) }()
	took := make(chan error, 1)
	go func() { took <- consume(dst.peer, n, 256<<10, nil) }()
	if err := errors.Join(f.Copy(n), result(t, took)); err != nil {
		t.Fatal(err)
	}
	if f.Bytes[PathSplice] < n/2 || f.Bytes[PathCopy] < provenBytes {
		t.Fatalf("paths %v", f.Bytes)
	}
	if held != 1 {
		t.Fatalf("a fast stream held %d pipes", held)
	}
	if f.pipe == nil { // the last small piece went by copy
		f.pipe = pipes.get()
	}
	f.slow = true // a slow one gives it back with its next step
	go func() { _, _ = src.peer.Write(body(1)) }()
	if err := f.Copy(1); err != nil || f.pipe != nil || PipesInUse() != 0 {
		t.Fatalf("a slow stream keeps its pipe: %v", err)
	}
}

func TestP3_NoPipeLeftMeansCopy(t *testing.T) {
	var held []*pipe
	for p := pipes.get(); p != nil; p = pipes.get() {
		held = append(held, p)
	}
	defer func() {
		for _, p := range held {
			pipes.put(p)
		}
		forgetPipes()
	}()
	r := route{proven: provenBytes, only: PathCopy}
	r.transfer(t, 4<<20, 64<<10, 0, false, false)
}

func TestU9_SourceCutInMidBody(t *testing.T) {
	for _, r := range routes {
		for _, k := range []int{0, 1, 100 << 10, 3 << 20} {
			f, src, dst, end := r.flow(t)
			go func() {
				_, _ = src.peer.Write(body(k))
				_ = src.peer.Close()
			}()
			took := make(chan error, 1)
			go func() { took <- consume(dst.peer, k, 64<<10, nil) }()
			err := f.Copy(int64(k) + 4<<20)
			var failed *SourceError
			if !errors.As(err, &failed) || !errors.Is(err, io.ErrUnexpectedEOF) || sum(f) != int64(k) {
				t.Errorf("%s, cut after %d: %v, counted %v", r.name, k, err, f.Bytes)
			}
			if err := result(t, took); err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
			end()
		}
	}
}

func TestP6_SinkGoneInMidBody(t *testing.T) {
	forgetPipes()
	for _, r := range routes {
		f, src, dst, end := r.flow(t)
		fed := make(chan struct{})
		go func() { defer close(fed); _, _ = src.peer.Write(body(20 << 20)) }()
		done := make(chan error, 1)
		go func() { done <- f.Copy(20 << 20) }()
		if err := consume(dst.peer, 300<<10, 64<<10, nil); err != nil {
			t.Fatal(err)
		}
		_ = dst.tcp.SetLinger(0)
		_ = dst.tcp.Close()
		err := result(t, done)
		var failed *SinkError
		if !errors.As(err, &failed) || sum(f) >= 20<<20 {
			t.Errorf("%s: %v, counted %v", r.name, err, f.Bytes)
		}
		end()
		<-fed
		if open, idle := openPipes(); open != idle || PipesInUse() != 0 {
			t.Errorf("%s: %d pipes open, %d idle, %d in use", r.name, open, idle, PipesInUse())
		}
	}
}

func TestP6_InterruptEndsAFlow(t *testing.T) {
	for _, r := range routes {
		for _, side := range []string{"source", "sink"} {
			f, src, dst, end := r.flow(t)
			done := make(chan error, 1)
			fed := make(chan struct{})
			go func() {
				defer close(fed)
				if side == "sink" {
					_, _ = src.peer.Write(body(20 << 20)) // and nobody reads
				}
			}()
			go func() { done <- f.Copy(20 << 20) }()
			awaitBlocked(t, 1, "relay.(*Flow).Copy")
			if side == "source" {
				src.Interrupt()
			} else {
				dst.Interrupt()
			}
			err := result(t, done)
			var source *SourceError
			var sink *SinkError
			if errors.As(err, &source) != (side == "source") || errors.As(err, &sink) != (side == "sink") || !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errInterrupted) {
				t.Errorf("%s, %s interrupted: %v", r.name, side, err)
			}
			end()
			<-fed
		}
	}
}

// A flow whose sides are always ready never waits, and so must look for the interruption by itself.
func TestP6_InterruptEndsAFlowThatNeverWaits(t *testing.T) {
	for _, r := range routes[:4] {
		for _, side := range []string{"source", "sink"} {
			f, src, dst, end := r.flow(t)
			g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 1 << 20}, bucket.Limit{}, &leapClock{})
			f.Pace = g.Open("p")
			if _, err := src.peer.Write(body(100 << 10)); err != nil {
				t.Fatal(err)
			}
			awaitBytes(t, src.Conn)
			f.Sent = func(int64) {
				if side == "source" {
					src.Interrupt()
				} else {
					dst.Interrupt()
				}
			}
			if err := f.Copy(100 << 10); err == nil || sum(f) > 64<<10 {
				t.Errorf("%s, %s interrupted: %v after %d bytes", r.name, side, err, sum(f))
			}
			f.Pace.Close()
			g.Close()
			end()
		}
	}
}

func TestB1_GrantsAreRespected(t *testing.T) {
	for _, r := range routes {
		clock := &leapClock{}
		g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 4 << 20}, bucket.Limit{}, clock)
		f, src, dst, end := r.flow(t)
		f.Pace = g.Open("p")
		const n = 1<<20 + 7
		var sent, over int64
		f.Sent = func(m int64) {
			sent += m
			over = max(over, sent-int64(g.Snapshot().GrantedBytes))
		}
		go func() { _, _ = src.peer.Write(body(n)) }()
		took := make(chan error, 1)
		go func() { took <- consume(dst.peer, n, 64<<10, nil) }()
		if err := errors.Join(f.Copy(n), result(t, took)); err != nil {
			t.Fatal(err)
		}
		if granted := g.Snapshot().GrantedBytes; over > 0 || granted != n {
			t.Errorf("%s: %d bytes before their grant, %d granted of %d", r.name, over, granted, n)
		}
		gone := make(chan struct{})
		close(gone)
		f.Gone = gone
		if err := f.Copy(5); !errors.Is(err, bucket.ErrCancelled) || sum(f) != n {
			t.Errorf("%s: with the client gone: %v", r.name, err)
		}
		f.Pace.Close()
		g.Close()
		end()
	}
}

// Sixty-four streams that wait, for their source or for their reader, hold none of the scratch memory they move bytes with.
func TestP3_WaitingStreamsHoldNoMemory(t *testing.T) {
	for _, stuck := range []string{"waitSource", "waitSink"} {
		const streams = 64
		payload := body(8 << 10)
		if stuck == "waitSink" {
			payload = body(8 << 20) // more than the sockets hold; one for all
		}
		var ends []func()
		done := make(chan error, streams)
		for range streams {
			f, src, dst, end := routes[1].flow(t)
			_ = dst.tcp.SetReadBuffer(16 << 10)
			ends = append(ends, end)
			go func() { _, _ = src.peer.Write(payload) }()
			go func() { done <- f.Copy(8 << 20); src.Interrupt() }()
		}
		awaitBlocked(t, streams, "relay.(*Flow)."+stuck)
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the second one empties the pools
		runtime.ReadMemStats(&m)
		inUse := m.HeapAlloc
		for _, end := range ends {
			end()
		}
		for range streams {
			if result(t, done) == nil {
				t.Fatal("a stream without a source ended well")
			}
		}
		if inUse > streams*scratchBytes/2 {
			t.Fatalf("%s: %d bytes in use", stuck, inUse)
		}
	}
}

func TestB4_StepsAllocateNothing(t *testing.T) {
	limit := 0.0
	if raced {
		limit = 3
	}
	for _, r := range routes[:4] {
		for _, paced := range []bool{false, true} {
			f, src, dst, end := r.flow(t)
			g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 1 << 39}, bucket.Limit{}, bucket.SystemClock())
			if paced {
				f.Pace = g.Open("p")
			}
			in, out := body(128<<10), make([]byte, 128<<10)
			if n := testing.AllocsPerRun(50, func() {
				if _, err := src.peer.Write(in); err != nil {
					t.Fatal(err)
				}
				if err := f.Copy(int64(len(in))); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(dst.peer, out); err != nil {
					t.Fatal(err)
				}
			}); n > limit {
				t.Errorf("%s, paced %v: %v allocations for two quanta", r.name, paced, n)
			}
			if r.name == "splice" && f.Bytes[PathSplice] == 0 {
				t.Errorf("nothing was spliced: %v", f.Bytes)
			}
			f.Pace.Close()
			g.Close()
			end()
		}
	}
}

package relay

import (
	"errors"
	"io"
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// coarseTick is one step of the injected clock, as the watcher of client connections advances it.
const coarseTick = 250e6

// steady reads from the sink while a flow of n bytes runs. Whenever the flow waits for the sink, up to rounds times, the clock moves on by
// ahead first; then just enough is read for the flow to go on. It returns how many waits were met.
func steady(t *testing.T, f *Flow, src, dst link, n, rounds int, ahead int64) (waits int) {
	t.Helper()
	fed, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(fed)
		_, _ = src.peer.Write(body(n))
	}()
	go func() { done <- f.Copy(int64(n)) }()
	buf := make([]byte, 64<<10)
	read := 0
	for ; waits < rounds; waits++ {
		awaitBlocked(t, 1, "poll.(*FD).RawWrite") // only a flow waits in there: the sink took no more
		f.Now.Add(ahead)
		for before := dst.Moved.Load(); dst.Moved.Load() == before; {
			m, err := dst.peer.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			read += m
		}
	}
	if _, err := io.CopyN(io.Discard, dst.peer, int64(n-read)); err != nil {
		t.Fatal(err)
	}
	if err := result(t, done); err != nil {
		t.Fatal(err)
	}
	<-fed
	return waits
}

// TestB4_ReaderWithoutLongWaitsStaysOnSplice: a reader slower than its source makes every write wait for a moment. Such a moment can cross one
// step of the coarse clock and is no long wait. The old bound of 200 ms took each of them for one: with the first the stream lost its
// splice for good.
func TestB4_ReaderWithoutLongWaitsStaysOnSplice(t *testing.T) {
	const n, rounds = 16 << 20, 6
	f, src, dst, end := route{}.flow(t)
	defer end()
	narrowSink(t, dst)
	f.Trust()
	if w := steady(t, f, src, dst, n, rounds, coarseTick); w != rounds {
		t.Fatalf("the sink was waited for %d times", w)
	}
	if !f.Fast() || f.Bytes[PathSplice] != n {
		t.Errorf("fast %v, slow %v, by path %v", f.Fast(), f.slow, f.Bytes)
	}
}

// TestB4_OnlyAWaitLongerThanATickMakesAStreamSlow crosses the bound on both sides, by splice and by copy. Under the old bound one step was enough.
func TestB4_OnlyAWaitLongerThanATickMakesAStreamSlow(t *testing.T) {
	for name, proven := range map[string]int64{"splice": provenBytes, "copy": math.MinInt64 / 2} {
		for _, c := range []struct {
			ahead int64
			slow  bool
		}{{0, false}, {coarseTick, false}, {2 * coarseTick, true}} {
			f, src, dst, end := route{proven: proven}.flow(t)
			narrowSink(t, dst)
			steady(t, f, src, dst, 12<<20, 1, c.ahead)
			// a slow stream proves itself again behind its long wait: what tells is that it was cut down
			if src.narrowed != c.slow {
				t.Errorf("%s, a wait of %d ms: found slow %v", name, c.ahead/1e6, src.narrowed)
			}
			end()
		}
	}
}

// TestB4_SlowStreamProvesItselfAgain: short waits are no reason to stay slow. Before, any wait at all took a slow stream's proof away, so
// that one pause of its reader kept a whole download on the slow path.
func TestB4_SlowStreamProvesItselfAgain(t *testing.T) {
	f, src, dst, end := route{slow: true}.flow(t)
	defer end()
	narrowSink(t, dst)
	sent, proved := int64(0), int64(0)
	f.Sent = func(m int64) {
		if sent += m; proved == 0 && f.Fast() {
			proved = sent
		}
	}
	const rounds = 40 // each lets little through, so that no stretch without a wait is long enough for a proof
	if w := steady(t, f, src, dst, 16<<20, rounds, 0); w != rounds {
		t.Fatalf("the sink was waited for %d times", w)
	}
	if f.slow || proved == 0 || proved > 2*provenBytes {
		t.Errorf("slow %v, fast after %d bytes, by path %v", f.slow, proved, f.Bytes)
	}
}

// narrowSink keeps the kernel's queues towards the sink short, so that a reader that pauses is felt soon.
func narrowSink(t *testing.T, dst link) {
	t.Helper()
	err := errors.Join(dst.tcp.SetReadBuffer(64<<10), unix.SetsockoptInt(dst.FD(), unix.SOL_SOCKET, unix.SO_SNDBUF, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
}

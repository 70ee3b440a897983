package drip

import (
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
)

// hole takes everything and keeps nothing.
type hole struct{ bytes, writes int }

func (h *hole) TryWrite(p []byte) (int, error) { h.bytes += len(p); h.writes++; return len(p), nil }
func (h *hole) Cut()                           {}

// ring runs n drips that stand in pieces given to them, a byte a visit, so that they need no fetch.
func ring(tb testing.TB, n int, pace func() *bucket.Stream) (*Dripper, *hole, func()) {
	d, err := New(Settings{BytesPerSecond: 1, Limit: n, StoreBytes: 1 << 20, Fetchers: 1})
	if err != nil {
		tb.Fatal(err)
	}
	h, given := &hole{}, make([]byte, PieceBytes)
	var now time.Duration
	tick := func() { now += Step; d.Tick(now) }
	for i := range n {
		d.Join("a").Begin(Start{Object: [32]byte{byte(i % 8)}, Last: huge - 1, SizeBytes: huge, Sink: h, Source: &origin{size: huge}, Piece: given, Pace: pace()})
		if i%(n/visits+1) == 0 {
			tick()
		}
	}
	for range 3 * visits {
		tick()
	}
	return d, h, tick
}

func unpaced() *bucket.Stream { return nil }

func TestX2_VisitAllocatesNothing(t *testing.T) {
	g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: bucket.MaxBytesPerSecond}, bucket.Limit{}, bucket.SystemClock())
	defer g.Close()
	for what, pace := range map[string]func() *bucket.Stream{"unpaced": unpaced, "paced": func() *bucket.Stream { return g.Open("a") }} {
		d, h, tick := ring(t, 1000, pace)
		before := h.writes
		if allocs := testing.AllocsPerRun(2*visits, tick); allocs != 0 {
			t.Errorf("%s: %v allocations a tick", what, allocs)
		}
		if n := h.writes - before; n < 2*1000 || h.bytes < n {
			t.Errorf("%s: %d visits in two rounds of 1000", what, n)
		}
		d.Close()
	}
}

// Looking again, tick after tick, for grants that do not come costs no memory either.
func TestX2_WaitingAllocatesNothing(t *testing.T) {
	g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 1}, bucket.Limit{}, bucket.SystemClock())
	d, _, tick := ring(t, 1000, func() *bucket.Stream { return g.Open("a") })
	if allocs := testing.AllocsPerRun(2*visits, tick); allocs != 0 {
		t.Errorf("%v allocations a tick", allocs)
	}
	if n := len(d.soon); n < 900 {
		t.Errorf("%d of 1000 wait", n)
	}
	d.Close()
	g.Close()
}

func BenchmarkTick4096(b *testing.B) {
	d, h, tick := ring(b, 4096, unpaced)
	h.writes = 0
	b.ReportAllocs()
	for b.Loop() {
		tick()
	}
	b.ReportMetric(float64(h.writes)/float64(b.N), "visits/op")
	d.Close()
}

func BenchmarkTick4096AllWaiting(b *testing.B) {
	g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 1}, bucket.Limit{}, bucket.SystemClock())
	d, _, tick := ring(b, 4096, func() *bucket.Stream { return g.Open("a") })
	b.ReportAllocs()
	for b.Loop() {
		tick()
	}
	d.Close()
	g.Close()
}

package drip

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/arkvory/sidecar/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is the byte of an object at an offset: no two stretches of one object, and no two objects, look alike.
func content(object byte, offset int64) byte {
	v := uint64(offset)*0x9e3779b97f4a7c15 + uint64(object)*0xbf58476d1ce4e5b9
	return byte(v>>56) ^ byte(v>>17)
}

func fill(object byte, first int64, p []byte) []byte {
	for i := range p {
		p[i] = content(object, first+int64(i))
	}
	return p
}

// client is a sink that knows what it must be offered.
type client struct {
	object byte
	from   int64
	at     int64                    // of the next byte to come
	take   func(n int) (int, error) // nil takes all
	shut   bool                     // nothing may be written
	cuts   int
	faults []string

	moved   time.Duration // when bytes came last, or the drip began
	longest time.Duration // between two of them
	clock   func() time.Duration
	most    int // of one write
}

func (c *client) TryWrite(p []byte) (int, error) {
	if c.shut || c.cuts > 0 {
		c.faults = append(c.faults, "written to after its end")
	}
	if len(p) == 0 {
		c.faults = append(c.faults, "written nothing")
	}
	for i, b := range p {
		if b != content(c.object, c.at+int64(i)) {
			c.faults = append(c.faults, fmt.Sprintf("byte %d is not that of the object", c.at+int64(i)))
			break
		}
	}
	n := len(p)
	if c.take != nil {
		var err error
		if n, err = c.take(n); err != nil {
			return 0, err
		}
	}
	c.at += int64(n)
	c.most = max(c.most, n)
	if n > 0 && c.clock != nil {
		c.longest = max(c.longest, c.clock()-c.moved)
		c.moved = c.clock()
	}
	return n, nil
}

func (c *client) Cut() { c.cuts++ }

func (c *client) got() int64 { return c.at - c.from }

// origin makes fetches; answer runs on the fetcher's goroutine, nil answers at once.
type origin struct {
	object byte
	size   int64
	answer func(ctx context.Context, f *fetch) error

	mu      sync.Mutex
	fetches []*fetch
	bad     string
}

type fetch struct {
	origin      *origin
	first, last int64
}

func (o *origin) Piece(first, last int64) Piece {
	f := &fetch{o, first, last}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fetches = append(o.fetches, f)
	if first < 0 || last < first || last >= o.size || last-first >= PieceBytes {
		o.bad = fmt.Sprintf("fetch of %d-%d of %d bytes", first, last, o.size)
	}
	return f
}

func (o *origin) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.fetches)
}

func (f *fetch) Fetch(ctx context.Context, p []byte) error {
	if int64(len(p)) != f.last-f.first+1 {
		panic("a fetch got a buffer of another length")
	}
	if f.origin.answer != nil {
		if err := f.origin.answer(ctx, f); err != nil {
			return err
		}
	}
	fill(f.origin.object, f.first, p)
	return nil
}

// world is a dripper in virtual time with all that stands around it. It lives in a synctest bubble.
type world struct {
	t     *testing.T
	d     *Dripper
	born  time.Time
	every time.Duration // between two ticks
	all   []*seat
	deep  bool // invariants after every event
}

// seat is one drip with its client and its origin.
type seat struct {
	*Drip
	c *client
	o *origin
}

func newWorld(t *testing.T, set Settings) *world {
	t.Helper()
	d, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close) // a test that fails leaves fetches behind
	return &world{t: t, d: d, born: time.Now(), every: Step, deep: true}
}

// in runs a test in a bubble and checks at its end that everything went back.
func in(t *testing.T, set Settings, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, set)
		f(t, w)
		w.end()
	})
}

func (w *world) now() time.Duration { return time.Since(w.born) }

// tick lets one step pass; fetches that need no time are over when it returns.
func (w *world) tick() {
	<-time.After(w.every)
	w.d.Tick(w.now())
	synctest.Wait()
	w.check()
}

func (w *world) pass(d time.Duration) {
	for end := w.now() + d; w.now() < end; {
		w.tick()
	}
}

func (w *world) join(principal string) *seat {
	x := w.d.Join(principal)
	if x == nil {
		w.t.Fatalf("no place: %+v", w.d.Snapshot())
	}
	s := &seat{Drip: x}
	w.all = append(w.all, s)
	return s
}

// begin starts a drip of the bytes first to last of an object of the size.
func (w *world) begin(object byte, size, first, last int64, change ...func(*Start, *seat)) *seat {
	s := w.join(fmt.Sprint("p", object))
	s.c = &client{object: object, from: first, at: first, clock: w.now, moved: w.now()}
	s.o = &origin{object: object, size: size}
	start := Start{Object: [32]byte{object, 1}, First: first, Last: last, SizeBytes: size, Sink: s.c, Source: s.o}
	for _, f := range change {
		f(&start, s)
	}
	s.Begin(start)
	synctest.Wait()
	w.check()
	return s
}

func paced(p *bucket.Stream) func(*Start, *seat) { return func(s *Start, _ *seat) { s.Pace = p } }

func answers(f func(ctx context.Context, f *fetch) error) func(*Start, *seat) {
	return func(_ *Start, s *seat) { s.o.answer = f }
}

func takes(f func(n int) (int, error)) func(*Start, *seat) {
	return func(_ *Start, s *seat) { s.c.take = f }
}

func (w *world) stop(s *seat) (offset int64, idle bool) {
	offset, idle = s.Stop()
	if s.c != nil {
		s.c.shut = true
		if offset != s.c.at {
			w.t.Errorf("Stop returns %d, the client has all before %d", offset, s.c.at)
		}
	}
	w.check()
	return offset, idle
}

// check is what must hold between events.
func (w *world) check() {
	if w.deep {
		w.faults()
		CheckInvariants(w.t, w.d)
	}
}

func (w *world) faults() {
	w.t.Helper()
	for i, s := range w.all {
		if s.c != nil && len(s.c.faults) > 0 {
			w.t.Fatalf("client %d: %v", i, s.c.faults[0])
		}
		if s.c != nil && s.c.cuts > 1 {
			w.t.Fatalf("client %d was cut %d times", i, s.c.cuts)
		}
		if s.o != nil {
			s.o.mu.Lock()
			bad := s.o.bad
			s.o.mu.Unlock()
			if bad != "" {
				w.t.Fatalf("client %d: %s", i, bad)
			}
		}
	}
}

// end stops what runs, and nothing may be left.
func (w *world) end() {
	w.t.Helper()
	w.faults()
	for _, s := range w.all {
		s.Stop()
		s.Leave()
	}
	w.d.Close()
	CheckInvariants(w.t, w.d)
	if s := w.d.Snapshot(); s.Joined != 0 || s.Running != 0 || len(w.d.by) != 0 || w.d.workers != 0 {
		w.t.Fatalf("left over: %+v, %d principals, %d fetchers", s, len(w.d.by), w.d.workers)
	}
	for _, p := range w.d.store.index {
		if p.refs != 0 {
			w.t.Fatalf("a piece is stood in by %d of nobody", p.refs)
		}
	}
}

// CheckInvariants fails the test unless I1 to I4 of the package doc hold, and the store's own.
func CheckInvariants(t *testing.T, d *Dripper) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	fail := func(format string, args ...any) { t.Helper(); t.Fatalf(format, args...) }
	running, joined := 0, 0
	stood := map[*piece]int{}
	for slot, list := range d.wheel {
		for i, x := range list {
			running++
			if x.slot != slot || x.index != i || x.left || x.dripper != d {
				fail("I1: a drip at %d/%d believes to be at %d/%d, left %v", slot, i, x.slot, x.index, x.left)
			}
			if x.hurries != slices.Contains(d.soon, x) {
				fail("I1: hurries is %v, not so in the list", x.hurries)
			}
			if x.offset < x.First || x.offset > max(x.Last, x.First) || x.granted < 0 {
				fail("I4: offset %d of %d to %d, %d granted", x.offset, x.First, x.Last, x.granted)
			}
			if p := x.piece; p != nil {
				stood[p]++
				if !x.holds(p) {
					fail("I3: the next byte %d is not in the piece %d+%d", x.offset, p.first, p.size)
				}
				if !p.alone && p.err == nil && (d.store.get(p.object, p.number) != p || p.object != x.Object) {
					fail("I3: a drip stands in a piece that is not its object's or not in the store")
				}
			} else if x.own {
				fail("I3: a drip owns the fetch of no piece")
			}
		}
	}
	for _, n := range d.by {
		joined += n
		if n <= 0 {
			fail("I1: a principal with %d drips", n)
		}
	}
	if running != d.running || joined != d.joined || running > joined {
		fail("I1: %d in the wheel, counted %d; %d joined, counted %d", running, d.running, joined, d.joined)
	}
	checkStore(fail, d, stood)
	if d.workers > d.set.Fetchers || len(d.jobs) > jobsEach*d.set.Fetchers {
		fail("%d fetchers, %d jobs", d.workers, len(d.jobs))
	}
}

func checkStore(fail func(string, ...any), d *Dripper, stood map[*piece]int) {
	s := &d.store
	bytes, loading, free := 0, 0, map[*piece]bool{}
	for p := s.ring().next; p != &s.free; p = p.next {
		if free[p] || p.next.prev != p || s.get(p.object, p.number) != p {
			fail("I3: the list of free pieces is broken")
		}
		free[p] = true
	}
	for key, p := range s.index {
		bytes += p.size
		if key != (pieceKey{p.object, p.number}) || p.err != nil || p.alone || p.first != p.number*PieceBytes {
			fail("I3: %+v is kept as %v", p, key.number)
		}
		if p.refs != stood[p] {
			fail("I3: %d stand in a piece that counts %d", stood[p], p.refs)
		}
		if free[p] != (p.refs == 0 && !p.loading) {
			fail("I3: a piece with %d in it, loading %v, free %v", p.refs, p.loading, free[p])
		}
		if p.loading {
			loading++
		} else if len(p.data) != p.size {
			fail("I3: a piece of %d bytes has %d", p.size, len(p.data))
		}
	}
	if bytes != s.bytes || bytes > s.limit {
		fail("I3: %d bytes in the store, counted %d, limit %d", bytes, s.bytes, s.limit)
	}
	for p, n := range stood {
		if p.refs != n || p.alone && n != 1 {
			fail("I3: %d stand in a piece that counts %d, alone %v", n, p.refs, p.alone)
		}
	}
	if !d.closed && loading > len(d.jobs)+d.workers {
		fail("I3: %d pieces are loading, by %d jobs and %d fetchers", loading, len(d.jobs), d.workers)
	}
}

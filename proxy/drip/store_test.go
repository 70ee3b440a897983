package drip

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A thousand clients of one object at random places make a fetch for each piece, not for each client.
func TestX2_I3_ClientsOfOneObjectShareFetches(t *testing.T) {
	const pieces = 20
	in(t, Settings{BytesPerSecond: 1024, Limit: 1000, StoreBytes: 1 << 20, Fetchers: 4}, func(t *testing.T, w *world) {
		w.deep = false
		r := rand.New(rand.NewPCG(1, 1))
		for range 1000 {
			w.begin(1, pieces*PieceBytes, r.Int64N(pieces*PieceBytes-5000), pieces*PieceBytes-1)
		}
		w.pass(30 * time.Second)
		w.deep = true
		w.tick()
		fetches := 0
		for i, s := range w.all {
			fetches += s.o.count()
			if s.c.got() == 0 {
				t.Fatalf("client %d got nothing", i)
			}
		}
		if s := w.d.Snapshot(); fetches > pieces || s.Fetched > pieces || s.FetchedBy > pieces*PieceBytes || s.Shared < 1000-pieces {
			t.Errorf("%d fetches, %+v", fetches, s)
		}
	})
}

// Other objects, and other validators of the same one, share nothing.
func TestX2_OtherValidatorIsAnotherObject(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 10, StoreBytes: 1 << 20, Fetchers: 4}, func(t *testing.T, w *world) {
		w.begin(1, 1<<20, 0, 1<<20-1)
		w.begin(1, 1<<20, 0, 1<<20-1, func(s *Start, x *seat) {
			s.Object[31], x.c.object, x.o.object = 9, 2, 2
		})
		w.pass(3 * Period)
		for _, s := range w.all {
			if s.o.count() != 1 || s.c.got() == 0 {
				t.Errorf("%d fetches, %d bytes", s.o.count(), s.c.got())
			}
		}
	})
}

// I3: whatever runs, the store keeps within its bytes, a piece that is stood in stays, and who finds no room fetches for itself.
func TestX2_I3_StoreStaysWithinItsBytes(t *testing.T) {
	for _, limit := range []int{0, PieceBytes - 1, PieceBytes, 3 * PieceBytes, 5*PieceBytes + 100} {
		in(t, Settings{BytesPerSecond: 4000, Limit: 100, StoreBytes: limit, Fetchers: 8}, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(1, uint64(limit)))
			for range 12 {
				w.begin(byte(r.IntN(9)), 1<<20, r.Int64N(1<<19), 1<<20-1)
			}
			stood := map[*piece]int64{}
			for range 600 {
				w.tick()
				clear(stood)
				for _, s := range w.all {
					if p := s.piece; p != nil && !p.alone && p.err == nil && w.d.store.get(p.object, p.number) != p {
						t.Fatal("a piece was taken from under its drip")
					}
					if p := s.piece; p != nil && p.alone && p.size > mostFetch {
						t.Fatalf("%d bytes for one client", p.size)
					}
				}
			}
			for i, s := range w.all {
				if float64(s.c.got()) < 0.9*140*aloneRate || s.c.longest > 5*time.Second {
					t.Errorf("store of %d, client %d: %d bytes, nothing for %v", limit, i, s.c.got(), s.c.longest)
				}
			}
		})
	}
}

func TestX2_AloneFetchIsSmall(t *testing.T) {
	for rate, want := range map[int64]int64{1: leastFetch, 40: 320, 1 << 20: mostFetch} {
		in(t, Settings{BytesPerSecond: rate, Limit: 1, StoreBytes: 0, Fetchers: 1}, func(t *testing.T, w *world) {
			s := w.begin(1, huge, 3*PieceBytes+7, huge-1)
			w.pass(3 * Period)
			if f := s.o.fetches[0]; f.first != 3*PieceBytes+7 || f.last-f.first+1 != want {
				t.Errorf("at %d bytes/s: fetch of %d-%d", rate, f.first, f.last)
			}
			if got := w.d.Snapshot(); got.StoreBytes != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The piece that nobody stood in for longest goes first.
func TestX2_LeastRecentlyUsedGoesFirst(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 10, StoreBytes: 3 * PieceBytes, Fetchers: 1}, func(t *testing.T, w *world) {
		visit := func(object byte) int {
			s := w.begin(object, 1<<20, 0, 1<<20-1)
			w.pass(2 * Period)
			w.stop(s)
			s.Leave()
			return s.o.count()
		}
		for i, step := range []struct {
			object byte
			fetch  int
		}{{1, 1}, {2, 1}, {3, 1}, {1, 0}, {4, 1}, {1, 0}, {3, 0}, {4, 0}, {2, 1}, {3, 0}, {4, 0}, {1, 1}} {
			if n := visit(step.object); n != step.fetch {
				t.Errorf("step %d, object %d: %d fetches, want %d", i, step.object, n, step.fetch)
			}
		}
	})
}

// What the owner has fetched already is not fetched again; what is not a whole piece is not taken.
func TestX2_PieceOfTheOwner(t *testing.T) {
	const size = 3*PieceBytes + 500
	for _, c := range []struct {
		what         string
		first, bytes int64
		from         int64
		fetches      int
	}{
		{"whole", PieceBytes, PieceBytes, PieceBytes + 9, 0},
		{"last of the object", 3 * PieceBytes, 500, 3*PieceBytes + 9, 0},
		{"longer than a piece", PieceBytes, 2 * PieceBytes, PieceBytes + 9, 0},
		{"short", PieceBytes, 20, PieceBytes + 9, 1},
		{"short of the drip", PieceBytes, 20, PieceBytes + 900, 1},
		{"unaligned", PieceBytes + 1, PieceBytes, PieceBytes + 9, 1},
		{"empty", PieceBytes, 0, PieceBytes + 9, 1},
		{"elsewhere", 0, PieceBytes, PieceBytes + 9, 1},
		{"beyond the object", 4 * PieceBytes, 5, PieceBytes + 9, 1},
		{"before the object", -PieceBytes, PieceBytes, PieceBytes + 9, 1},
	} {
		in(t, Settings{BytesPerSecond: 50, Limit: 10, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
			given := func(s *Start, _ *seat) {
				s.PieceFirst, s.Piece = c.first, fill(1, c.first, make([]byte, c.bytes))
			}
			a := w.begin(1, size, c.from, size-1, given)
			b := w.begin(1, size, c.from+100, size-1, given)
			w.pass(4 * Period)
			if n := a.o.count() + b.o.count(); n != c.fetches {
				t.Errorf("%s: %d fetches, want %d", c.what, n, c.fetches)
			}
			if a.c.got() < 150 || b.c.got() < 100 {
				t.Errorf("%s: %d and %d bytes", c.what, a.c.got(), b.c.got())
			}
			if p := w.d.store.get(a.Object, c.from/PieceBytes); p == nil || cap(p.data) > PieceBytes {
				t.Errorf("%s: kept as %v", c.what, p)
			}
		})
	}
}

// Two that name one object with different sizes do not bring the dripper down, nor get wrong bytes.
func TestX2_ObjectOfTwoSizes(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 10, StoreBytes: 1 << 20, Fetchers: 1}, func(t *testing.T, w *world) {
		a := w.begin(1, 1000, 0, 999)
		b := w.begin(1, huge, 0, huge-1)
		c := w.begin(1, huge, 5000, huge-1)
		w.pass(20 * Period)
		if a.c.got() == 0 || b.c.got() < 5*1024 || c.c.got() < 5*1024 {
			t.Errorf("%d, %d and %d bytes", a.c.got(), b.c.got(), c.c.got())
		}
	})
}

package bucket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// drained returns a stream of a governor with an empty shared bucket, and the moment in its waiting.
func drained(t *testing.T, g *Governor, key string) *Stream {
	t.Helper()
	s := g.Open(key)
	for range 10_000 {
		n, waits, err := s.Begin(1 << 20)
		if err != nil || waits != (n == 0) {
			t.Fatalf("Begin: %d, %v, %v", n, waits, err)
		}
		if waits {
			return s
		}
	}
	t.Fatal("it never waits")
	return nil
}

func wantPoll(t *testing.T, s *Stream, n int64, done bool, want error) {
	t.Helper()
	if got, d, err := s.Poll(); got != n || d != done || !errors.Is(err, want) {
		t.Errorf("Poll: %d, %v, %v; want %d, %v, %v", got, d, err, n, done, want)
	}
}

func TestB4_BeginOfNilAndUnlimitedTakesNoLock(t *testing.T) {
	g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
	defer g.Close()
	s := g.Open("a")
	defer s.Close()
	g.Configure(Limit{}, Limit{})
	g.mu.Lock()
	defer g.mu.Unlock()
	var none *Stream
	if allocs := testing.AllocsPerRun(100, func() {
		for _, s := range []*Stream{none, s} {
			if n, waits, err := s.Begin(1 << 40); n != 1<<40 || waits || err != nil {
				t.Fatal(n, waits, err)
			}
		}
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	wantPoll(t, none, 0, true, nil)
	for _, want := range []int64{0, -1} {
		if n, waits, err := s.Begin(want); n != 0 || waits || err != nil {
			t.Errorf("Begin(%d): %d, %v, %v", want, n, waits, err)
		}
	}
}

func TestB3_SecondRequestIsBusyUntilTheAnswerIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
		defer g.Close()
		s := drained(t, g, "a")
		busy := func() {
			t.Helper()
			if n, waits, err := s.Begin(1); n != 0 || waits || !errors.Is(err, ErrBusy) {
				t.Errorf("Begin: %d, %v, %v", n, waits, err)
			}
			if n, err := s.Take(1, nil); n != 0 || !errors.Is(err, ErrBusy) {
				t.Errorf("Take: %d, %v", n, err)
			}
		}
		busy()
		wantPoll(t, s, 0, false, nil)
		<-time.After(time.Second)
		synctest.Wait()
		granted := g.Snapshot().GrantedBytes
		busy() // answered, not read
		wantPoll(t, s, g.core.quantum, true, nil)
		wantPoll(t, s, 0, true, nil)
		if got := g.Snapshot().GrantedBytes; got != granted {
			t.Errorf("granted %d twice", got-granted)
		}
		if n, waits, err := s.Begin(100); n != 100 || waits || err != nil {
			t.Errorf("the next one: %d, %v, %v", n, waits, err)
		}
		if n, err := s.Take(100, nil); n != 100 || err != nil {
			t.Errorf("Take afterwards: %d, %v", n, err)
		}
		s.Close()
	})
}

// Whatever ends the waiting, Poll tells it once, and the stream goes on if it can.
func TestB3_PollTellsWhatEndedTheWaiting(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*Governor, *Stream)
		n    int64
		want error
		next error // of the next Begin
	}{
		"stream closed":    {func(_ *Governor, s *Stream) { s.Close() }, 0, ErrClosed, ErrClosed},
		"governor closed":  {func(g *Governor, _ *Stream) { g.Close() }, 0, ErrClosed, ErrClosed},
		"revoked":          {func(g *Governor, _ *Stream) { g.Revoke() }, 0, ErrRevoked, ErrRevoked},
		"revoked, closed":  {func(g *Governor, _ *Stream) { g.Revoke(); g.Close() }, 0, ErrRevoked, ErrClosed},
		"revoked, back":    {func(g *Governor, _ *Stream) { g.Revoke(); g.Restore() }, 0, ErrRevoked, nil},
		"unlimited":        {func(g *Governor, _ *Stream) { g.Configure(Limit{}, Limit{}) }, 1 << 20, nil, nil},
		"unlimited, again": {func(g *Governor, _ *Stream) { g.Configure(Limit{}, Limit{}); g.Configure(Limit{1 << 20}, Limit{}) }, 1 << 20, nil, nil},
		"own limit only":   {func(g *Governor, _ *Stream) { g.Configure(Limit{}, Limit{64 << 20}) }, 1 << 20, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
			defer g.Close()
			s := drained(t, g, "a")
			defer s.Close()
			wantPoll(t, s, 0, false, nil)
			c.end(g, s)
			n, done, err := s.Poll()
			if !done || !errors.Is(err, c.want) || err == nil && (n <= 0 || n > c.n) || err != nil && n != 0 {
				t.Errorf("%s: %d, %v, %v", what, n, done, err)
			}
			wantPoll(t, s, 0, true, nil)
			<-time.After(time.Second)
			if _, waits, err := s.Begin(10); waits || !errors.Is(err, c.next) {
				t.Errorf("%s: the next Begin: %v, %v", what, waits, err)
			}
			if got := g.Snapshot().Waiting; got != 0 || len(s.wake) != 0 || s.asking {
				t.Errorf("%s: %d wait, %d signals, asking %v", what, got, len(s.wake), s.asking)
			}
		})
	}
}

// An answer that was not read when the direction became unlimited is not lost, and does not answer a later request.
func TestB3_AnswerAcrossUnlimitedIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
		defer g.Close()
		s := drained(t, g, "a")
		defer s.Close()
		g.Configure(Limit{}, Limit{})
		if n, waits, err := s.Begin(5); n != 5 || waits || err != nil {
			t.Fatalf("unlimited: %d, %v, %v", n, waits, err)
		}
		g.Configure(Limit{1 << 20}, Limit{})
		if _, _, err := s.Begin(5); !errors.Is(err, ErrBusy) {
			t.Errorf("the first answer waits to be read: %v", err)
		}
		wantPoll(t, s, 1<<20, true, nil)
		if n, waits, err := s.Begin(7); n != 7 || waits || err != nil {
			t.Errorf("%d, %v, %v", n, waits, err)
		}
	})
}

// A request that is left alone keeps nobody from his turn, and a closed one gives its turn back.
func TestB2_RequestNobodyPollsStandsInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
		defer g.Close()
		lazy := drained(t, g, "lazy")
		gone := make(chan struct{})
		done := make(chan int64)
		go func() { done <- greedy(t, g, "busy", 1<<30, gone) }()
		<-time.After(10 * time.Second)
		close(gone)
		if n := <-done; n < 9<<20 {
			t.Errorf("%d bytes in 10 s beside a request that nobody polls", n)
		}
		lazy.Close()
		wantPoll(t, lazy, g.core.quantum, true, nil)
	})
}

// poller asks by Begin and looks every so often, as long as gone is open.
func poller(t *testing.T, g *Governor, key string, every time.Duration, gone <-chan struct{}) int64 {
	s := g.Open(key)
	defer s.Close()
	var sum int64
	waiting := false
	for {
		var n int64
		var err error
		if waiting {
			var done bool
			n, done, err = s.Poll()
			waiting = !done
		}
		sum += n
		for !waiting && err == nil {
			n, waiting, err = s.Begin(1 << 30)
			sum += n
		}
		if err != nil {
			t.Error(err)
			return sum
		}
		select {
		case <-gone:
			return sum
		case <-time.After(every):
		}
	}
}

// Those who poll and those who block get the same, as principals and as streams of one.
func TestB2_PollersAndTakersShareAlike(t *testing.T) {
	for _, principals := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGovernor(Limit{10 << 20}, Limit{}, newLateClock(MaxLateness))
			defer g.Close()
			gone := make(chan struct{})
			got := make([]int64, 8)
			var group sync.WaitGroup
			for i := range got {
				key := fmt.Sprint("p", i%principals)
				group.Go(func() {
					if i%2 == 0 {
						got[i] = poller(t, g, key, time.Millisecond, gone)
					} else {
						got[i] = greedy(t, g, key, 1<<30, gone)
					}
				})
			}
			<-time.After(20 * time.Second)
			close(gone)
			group.Wait()
			for i, n := range got {
				fair := int64(20 * (10 << 20) / 8)
				if n < fair*97/100 || n > fair*103/100+MaxBurstBytes { // the burst goes to who comes first
					t.Errorf("%d principals: stream %d got %d, the fair share is %d", principals, i, n, fair)
				}
			}
		})
	}
}

// B1 for the total and for each principal, exact, with both kinds of callers, odd wants, closed streams and revoked rights.
func TestB1_BeginAndTakeTogetherStayWithinEveryBound(t *testing.T) {
	for seed := range uint64(12) {
		total, own := Limit{1 << 20}, Limit{300_000}
		switch seed % 3 {
		case 1:
			total = Limit{2_000_000_000} // charges late
		case 2:
			own = Limit{}
		}
		synctest.Test(t, func(t *testing.T) {
			g := NewGovernor(total, own, newLateClock(MaxLateness))
			defer g.Close()
			shared, owns := newBound(total, 0), map[string]*bound{}
			var charged int64
			g.core.observe = func(d grant) { // under the governor's lock
				charged += d.bytes
				shared.grant(d.bytes, d.shared)
				if !own.Off() {
					if owns[d.principal] == nil {
						owns[d.principal] = newBound(own, d.own)
					}
					owns[d.principal].grant(d.bytes, d.own)
				}
			}
			var group sync.WaitGroup
			for worker := range 16 {
				group.Go(func() {
					mix(t, g, rand.New(rand.NewPCG(seed, uint64(worker))), fmt.Sprint("p", worker%5), worker%2 == 0)
				})
			}
			group.Go(func() {
				for range 5 {
					<-time.After(700 * time.Millisecond)
					g.Revoke()
					<-time.After(50 * time.Millisecond)
					g.Restore()
				}
			})
			group.Wait()
			if shared.faults > 0 {
				t.Errorf("seed %d: B1 exceeded by %v billionths", seed, shared.worst)
			}
			for key, b := range owns {
				if b.faults > 0 {
					t.Errorf("seed %d, %s: B1 exceeded by %v billionths", seed, key, b.worst)
				}
			}
			if got := g.Snapshot(); got.Waiting != 0 || charged == 0 {
				t.Errorf("%+v, %d bytes", got, charged)
			}
		})
	}
}

// mix opens and closes streams of a principal and takes odd sizes, by polling or by blocking.
func mix(t *testing.T, g *Governor, r *rand.Rand, key string, polls bool) {
	for range 12 {
		s := g.Open(key)
		for range r.IntN(40) {
			want := r.Int64N(60_000) + 1
			if r.IntN(3) == 0 {
				want = r.Int64N(3) + 1
			}
			var n int64
			var err error
			if !polls {
				n, err = s.Take(want, nil)
			} else {
				var waits bool
				n, waits, err = s.Begin(want)
				for waits {
					<-time.After(time.Duration(r.Int64N(int64(40 * time.Millisecond))))
					if r.IntN(10) == 0 {
						break // closed with the request on its way
					}
					var done bool
					n, done, err = s.Poll()
					waits = !done
				}
				if waits {
					break
				}
			}
			if n > want || n < 0 || err == nil && n == 0 || err != nil && (n != 0 || !errors.Is(err, ErrRevoked)) {
				t.Errorf("want %d: %d, %v", want, n, err)
			}
		}
		s.Close()
	}
}

// Close of the stream and events of the governor from other goroutines; for -race.
func TestB3_PollRacingWithCloseAndSettings(t *testing.T) {
	g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
	defer g.Close()
	for i := range 300 {
		s := g.Open("a")
		var group sync.WaitGroup
		group.Go(func() {
			for {
				n, waits, err := s.Begin(1 << 20)
				for done := !waits; !done; {
					n, done, err = s.Poll()
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, ErrRevoked) || err == nil && n <= 0 {
					t.Errorf("%d, %v", n, err)
					return
				}
			}
		})
		group.Go(func() {
			switch i % 3 {
			case 0:
				g.Revoke()
				g.Restore()
			case 1:
				g.Configure(Limit{}, Limit{})
				g.Configure(Limit{1 << 20}, Limit{})
			}
			s.Close()
		})
		group.Wait()
	}
	if n := g.Snapshot().Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestB4_BeginAndPollAllocateNothing(t *testing.T) {
	clock := newLateClock(0)
	g := NewGovernor(Limit{100 << 20}, Limit{90 << 20}, clock)
	s := g.Open("a")
	defer g.Close()
	waited := 0
	take := func() {
		n, waits, err := s.Begin(1 << 20)
		for done := !waits; !done; {
			waited++
			n, done, err = s.Poll()
		}
		if n <= 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	for ; waited == 0; take() {
	}
	waited = 0
	if allocs := testing.AllocsPerRun(50, take); allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
	if waited == 0 {
		t.Error("nothing waited")
	}
}

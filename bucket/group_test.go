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

func TestB2_PrincipalsTakeTurnsInAGroupWhateverTheirStreams(t *testing.T) {
	w := newWorld(t, Limit{}, Limit{})
	w.configureGroup(0, Limit{10 << 20})
	var streams []*Stream
	for _, key := range []string{"many", "many", "many", "one"} {
		streams = append(streams, w.openIn(key, 0))
	}
	w.drive(400, streams)
	if n := w.repeated(20, len(w.trace)); n != 0 {
		t.Errorf("%d grants in a row to one principal", n)
	}
	perStream := map[*Stream]int{}
	for _, s := range w.served[20:] {
		perStream[s]++
	}
	for _, s := range streams[:3] {
		if d := perStream[s] - perStream[streams[0]]; d > 1 || d < -1 {
			t.Errorf("streams of one principal got %v", perStream)
		}
	}
}

// A principal with streams in several groups and outside of them has one turn, like everybody.
func TestB2_GroupsGiveNoFurtherTurn(t *testing.T) {
	w := newWorld(t, Limit{10 << 20}, Limit{})
	streams := []*Stream{w.open("mixed"), w.open("plain")}
	for group := range 4 {
		w.configureGroup(group, Limit{5 << 20})
		streams = append(streams, w.openIn("mixed", group))
	}
	w.drive(2000, streams)
	got := map[string]int{}
	for _, g := range w.trace[50:] {
		got[g.principal]++
	}
	if d := got["mixed"] - got["plain"]; d > 2 || d < -2 {
		t.Errorf("turns: %v", got)
	}
	inGroups := 0
	for _, s := range w.served {
		if s.group != nil {
			inGroups++
		}
	}
	if inGroups == 0 || inGroups == got["mixed"] {
		t.Errorf("%d of its grants were of groups", inGroups)
	}
}

func TestB2_ShortGroupStandsInNobodysWay(t *testing.T) {
	w := newWorld(t, Limit{100 << 20}, Limit{})
	w.configureGroup(0, Limit{1 << 20})
	w.configureGroup(1, Limit{1 << 20})
	in, beside, other, second := w.openIn("a", 0), w.open("a"), w.open("b"), w.openIn("a", 1)
	for w.ask(in, 1<<30) {
		continue
	}
	if !w.ask(beside, 1000) || !w.ask(other, 1000) || !w.ask(second, 1000) {
		t.Fatal("somebody waits for a group that is not its own")
	}
	if w.ask(w.openIn("c", 0), 1) {
		t.Fatal("one byte went ahead of a quantum that waits for the group")
	}
	w.fire(0)
	if in.waiting {
		t.Fatal("the group did not serve its first")
	}
}

func TestB2_PrincipalShortOfItsOwnTokensDoesNotKeepTheGroup(t *testing.T) {
	w := newWorld(t, Limit{}, Limit{1 << 20})
	w.configureGroup(0, Limit{100 << 20})
	a, b := w.openIn("a", 0), w.openIn("b", 0)
	for w.ask(a, 1<<30) {
		continue
	}
	if !w.ask(b, 1<<30) {
		t.Fatal("b waits for a's bucket")
	}
}

func TestB3_CancellingInAGroupReturnsNothingAndServesTheNext(t *testing.T) {
	w := newWorld(t, Limit{1 << 20}, Limit{})
	w.configureGroup(0, Limit{512 << 10})
	a, b, plain := w.openIn("a", 0), w.openIn("b", 0), w.open("c")
	for w.ask(a, 1<<30) {
		continue
	}
	for w.ask(plain, 1<<30) {
		continue
	}
	if !a.held || plain.held {
		t.Fatalf("a held %v, plain %v", a.held, plain.held)
	}
	level, granted := w.core.groups[0].account.bucket.level, w.core.groups[0].granted
	w.core.cancel(a, w.now)
	w.settle()
	if g := &w.core.groups[0]; g.account.bucket.level != level || g.granted != granted || g.waiting != 0 {
		t.Fatalf("after cancelling: %+v", g)
	}
	// One that was called and leaves gives the tokens that were kept for it to the next.
	w.core.cancel(plain, w.now)
	w.ask(a, 1<<30)
	w.ask(b, 1<<30)
	for range 1000 {
		if w.core.groups[0].called(a) {
			break
		}
		w.now += time.Millisecond // the group refills, the shared bucket is used up by the others
		w.core.total.drain(w.now)
		w.core.pump(w.now)
		w.settle()
	}
	if !w.core.groups[0].called(a) || !b.held {
		t.Fatal("a was not called")
	}
	w.core.shut(a, w.now)
	w.settle()
	if g := &w.core.groups[0]; !g.called(b) || b.held {
		t.Fatalf("b was not called after a left: %+v", g)
	}
	w.core.shut(b, w.now)
	w.settle()
	if w.core.groups[0].reserved != 0 {
		t.Fatal("tokens are kept for nobody")
	}
}

func TestB4_GroupWithoutALimitTakesNoLock(t *testing.T) {
	clock := newLateClock(0)
	g := NewGovernor(Limit{}, Limit{}, clock)
	defer g.Close()
	s := g.OpenIn("a", 7)
	defer s.Close()
	g.ConfigureGroup(6, Limit{1 << 20}) // of others
	if s == nil || !g.Unlimited() || g.Open("a") != nil {
		t.Fatal("who is in no group is paced, or who is in one has no stream")
	}
	free := func() {
		t.Helper()
		g.mu.Lock()
		defer g.mu.Unlock()
		if allocs := testing.AllocsPerRun(100, func() {
			n, err := s.Take(1<<40, nil)
			m, waits, err2 := s.Begin(1 << 40)
			if n != 1<<40 || m != 1<<40 || waits || err != nil || err2 != nil {
				t.Fatal(n, m, waits, err, err2)
			}
		}); allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
	}
	free()
	g.ConfigureGroup(7, Limit{1 << 20})
	if n, err := s.Take(1<<40, nil); n != (Limit{1 << 20}).Quantum() || err != nil {
		t.Errorf("limited: %d, %v", n, err)
	}
	g.ConfigureGroup(7, Limit{})
	free()
	if clock.armed.Load() != 0 {
		t.Error("a timer was armed")
	}
	for _, bad := range []int{-1, Groups} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("group %d was taken", bad)
				}
			}()
			g.OpenIn("a", bad)
		}()
	}
}

func TestB4_WaitingForAGroupAllocatesNothing(t *testing.T) {
	for name, limits := range map[string][2]Limit{"alone": {{}, {}}, "all": {{200 << 20}, {150 << 20}}} {
		clock := newLateClock(0)
		g := NewGovernor(limits[0], limits[1], clock)
		g.ConfigureGroup(0, Limit{100 << 20})
		s := g.OpenIn("a", 0)
		gone := make(chan struct{})
		for clock.armed.Load() < 3 {
			s.Take(100_000, gone)
		}
		before := clock.armed.Load()
		if allocs := testing.AllocsPerRun(50, func() {
			if n, err := s.Take(100_000, gone); n != 100_000 || err != nil {
				t.Fatal(n, err)
			}
		}); allocs != 0 {
			t.Errorf("%s: %v allocations a wait", name, allocs)
		}
		if clock.armed.Load() == before {
			t.Errorf("%s: nothing waited", name)
		}
		s.Close()
		g.Close()
	}
}

func TestB5_RevokeAndCloseEndTheWaitingForAGroup(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*Governor, *Stream)
		want error
	}{
		"revoked":         {func(g *Governor, _ *Stream) { g.Revoke() }, ErrRevoked},
		"governor closed": {func(g *Governor, _ *Stream) { g.Close() }, ErrClosed},
		"stream closed":   {func(_ *Governor, s *Stream) { s.Close() }, ErrClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGovernor(Limit{}, Limit{}, SystemClock())
			defer g.Close()
			g.ConfigureGroup(2, Limit{1 << 20})
			result := make(chan error)
			s := g.OpenIn("a", 2)
			go func() {
				for {
					if _, err := s.Take(1<<20, nil); err != nil {
						result <- err
						return
					}
				}
			}()
			synctest.Wait()
			if g.core.held != 1 {
				t.Fatalf("%s: %d held", what, g.core.held)
			}
			c.end(g, s)
			if err := <-result; !errors.Is(err, c.want) {
				t.Errorf("%s: %v", what, err)
			}
			if left := g.Snapshot(); left.Waiting != 0 || left.Groups[2].Waiting != 0 || g.core.held != 0 {
				t.Errorf("%s: %+v", what, left)
			}
			g.ConfigureGroup(2, Limit{})                                                      // no way round: what is revoked or closed stays so
			if _, err := s.Take(1, nil); !errors.Is(err, c.want) && what != "stream closed" { // that one is not paced at all now
				t.Errorf("%s: the next Take: %v", what, err)
			}
			g.ConfigureGroup(2, Limit{1 << 20})
			if _, err := s.Take(1, nil); !errors.Is(err, c.want) {
				t.Errorf("%s: with a limit again: %v", what, err)
			}
			if c.want == ErrRevoked {
				g.Restore()
				start := time.Now()
				n, err := s.Take(10_486, nil)
				if waited := time.Since(start); n != 10_486 || err != nil || waited < 10*time.Millisecond {
					t.Errorf("after Restore: %d, %v in %v from an empty bucket", n, err, waited)
				}
			}
			s.Close()
		})
	}
}

// Real goroutines in random order; run with -race.
func TestB1_ConcurrentGroupsCancelsAndSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{8 << 20}, Limit{3 << 20}, newLateClock(MaxLateness))
		defer g.Close()
		var all sync.WaitGroup
		for worker := range 24 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 2))
				for range 20 {
					s := g.OpenIn(fmt.Sprint("p", random.IntN(5)), random.IntN(3))
					gone := make(chan struct{})
					leave := time.AfterFunc(time.Duration(random.Int64N(int64(400*time.Millisecond))), func() { close(gone) })
					for range random.IntN(20) {
						want := random.Int64N(200_000) + 1
						n, err := s.Take(want, gone)
						if err != nil && !errors.Is(err, ErrCancelled) && !errors.Is(err, ErrRevoked) || n > want || err == nil && n <= 0 {
							t.Errorf("Take(%d) = %d, %v", want, n, err)
						}
					}
					leave.Stop()
					s.Close()
				}
			})
		}
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, 7))
			for i := range 60 {
				<-time.After(30 * time.Millisecond)
				g.ConfigureGroup(random.IntN(3), []Limit{{}, {1 << 20}, {300_000_000}, {1000}}[random.IntN(4)])
				switch i % 12 {
				case 3:
					g.Revoke()
				case 4:
					g.Restore()
				case 6:
					g.Configure(Limit{}, Limit{})
				case 7:
					g.Configure(Limit{2_000_000_000}, Limit{1 << 20})
				case 9:
					g.Configure(Limit{8 << 20}, Limit{})
				}
			}
			for i := range 3 {
				g.ConfigureGroup(i, Limit{})
			}
		})
		all.Wait()
		<-time.After(2 * time.Second)
		if got := g.Snapshot(); got.Waiting != 0 || got.Principals != 0 || got.GrantedBytes == 0 || g.core.held != 0 {
			t.Errorf("left over: %+v", got)
		}
	})
}

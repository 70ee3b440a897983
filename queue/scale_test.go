package queue

import (
	"testing"
	"time"
)

// crowd returns a scheduler with that many waiting sessions of `principals` principals and one active one.
func crowd(tb testing.TB, sessions, principals int) (*Scheduler, *Response) {
	tb.Helper()
	p := DefaultPolicy(16)
	p.Sessions, p.Reserve, p.PerPrincipal, p.SessionMinBytes, p.BandBytesPerSecond = 1, 0, 1, 0, 1<<27
	p.QueueLimit, p.QueuePerPrincipal = sessions+1, sessions+1
	s, err := New(p)
	if err != nil {
		tb.Fatal(err)
	}
	r, _ := s.Ask(0, askOf("first", "o"))
	for i := range sessions {
		now := time.Duration(i) * time.Microsecond
		if _, v := s.Ask(now, askOf(name("p", i%principals), name("o", i)).in(Class(i%Classes))); v.Outcome != Queued {
			tb.Fatalf("session %d: %v", i, v.Outcome)
		}
	}
	return s, r
}

// TestQ18_TickAndContactStayCheapWith65536Waiting bounds the work, not the time of a noisy machine by more than needed:
// a tick that walked the queue or a contact that sorted it would be far beyond these limits.
func TestQ18_TickAndContactStayCheapWith65536Waiting(t *testing.T) {
	for _, principals := range []int{1, 100, 65536} {
		s, r := crowd(t, 65536, principals)
		now := time.Second
		s.Finish(now, r, 0, 100*mib, true) // a free slot, all clients absent: marks are made on every tick
		best := time.Hour
		for range 5 {
			now += TickEvery
			start := time.Now()
			s.Tick(now)
			best = min(best, time.Since(start))
		}
		if best > 50*time.Millisecond {
			t.Errorf("%d principals: a tick took %v", principals, best)
		}
		best = time.Hour
		for i := range 5 {
			start := time.Now()
			for j := range 1000 {
				k := i*1000 + j
				s.Ask(now, askOf(name("p", k%principals), name("o", k)).in(Class(k%Classes)))
			}
			best = min(best, time.Since(start)/1000)
		}
		if best > 100*time.Microsecond {
			t.Errorf("%d principals: a contact took %v", principals, best)
		}
		if err := s.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQ18_AllNoShowsAtOnceAreOneCheapTick(t *testing.T) {
	s, _ := crowd(t, 65536, 16)
	start := time.Now()
	s.Tick(time.Hour)
	took := time.Since(start)
	if snap := s.Snapshot(time.Hour); snap.WaitingTotal() != 0 || snap.Counts.Ended[ReasonNoShow] != 65536 {
		t.Fatalf("%+v", snap)
	}
	if took > 2*time.Second {
		t.Errorf("65536 no-shows took %v", took)
	}
}

func BenchmarkTick65536(b *testing.B) {
	s, r := crowd(b, 65536, 100)
	now := time.Second
	s.Finish(now, r, 0, 100*mib, true)
	for b.Loop() {
		s.unclaimed = 0
		s.Tick(now)
	}
}

func BenchmarkContact65536(b *testing.B) {
	s, _ := crowd(b, 65536, 100)
	asks := make([]Ask, 1024)
	for i := range asks {
		asks[i] = askOf(name("p", i%100), name("o", i)).in(Class(i % Classes))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Ask(time.Second, asks[i%len(asks)])
		i++
	}
}

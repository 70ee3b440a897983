package queue

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime measures the processor time of this thread, which a busy machine does not stretch.
func cpuTime(tb testing.TB, work func()) time.Duration {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before)
	work()
	if err == nil {
		err = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return time.Duration(after.Nano() - before.Nano())
}

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
	for _, principals := range []int{1, 100, crowdSize} {
		s, r := crowd(t, crowdSize, principals)
		now := time.Second
		s.Finish(now, r, 0, 100*mib, true) // a free slot, all clients absent: marks are made on every tick
		best := time.Hour
		for range 5 {
			now += TickEvery
			best = min(best, cpuTime(t, func() { s.Tick(now) }))
		}
		if best > 50*time.Millisecond*slower {
			t.Errorf("%d principals: a tick took %v", principals, best)
		}
		best = time.Hour
		for i := range 5 {
			took := cpuTime(t, func() {
				for j := range 1000 {
					k := i*1000 + j
					s.Ask(now, askOf(name("p", k%principals), name("o", k)).in(Class(k%Classes)))
				}
			})
			best = min(best, took/1000)
		}
		if best > 100*time.Microsecond*slower {
			t.Errorf("%d principals: a contact took %v", principals, best)
		}
		if err := s.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestQ18_AllNoShowsAtOnceAreCheapTicks lets everybody vanish at once: each tick takes a bounded number of them away.
func TestQ18_AllNoShowsAtOnceAreCheapTicks(t *testing.T) {
	s, _ := crowd(t, crowdSize, 16)
	now, worst, ticks := time.Hour, time.Duration(0), 0
	for ; s.Snapshot(now).WaitingTotal() > 0 && ticks < 1000; ticks++ {
		worst = max(worst, cpuTime(t, func() { s.Tick(now) }))
		now += TickEvery
	}
	t.Logf("%d no-shows took %d ticks, the longest %v", crowdSize, ticks, worst)
	if snap := s.Snapshot(now); snap.WaitingTotal() != 0 || snap.Counts.Ended[ReasonNoShow] != uint64(crowdSize) {
		t.Fatalf("%+v", snap)
	}
	if worst > 10*time.Millisecond*slower {
		t.Errorf("a tick took %v", worst)
	}
}

// TestQ6_PassingOverAFullShareStaysCheap is the dearest tick: a slot is free, its head absent, and everybody else waiting
// belongs to a principal over its share, so that the marks look at the whole queue.
func TestQ6_PassingOverAFullShareStaysCheap(t *testing.T) {
	p := DefaultPolicy(2)
	p.Reserve, p.PerPrincipal, p.SessionMinBytes, p.QueueLimit, p.QueuePerPrincipal = 0, 1, 0, crowdSize+8, crowdSize+8
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	s.Ask(0, askOf("big", "running"))
	r, _ := s.Ask(0, askOf("other", "running"))
	s.Ask(0, askOf("absent", "o").in(Interactive))
	for i := range crowdSize {
		s.Ask(0, askOf("big", name("o", i)))
	}
	s.Finish(0, r, 0, 100*mib, true)
	best := time.Hour
	for i := range time.Duration(5) {
		best = min(best, cpuTime(t, func() { s.Tick(i) }))
	}
	t.Logf("a tick took %v", best)
	if best > 50*time.Millisecond*slower {
		t.Errorf("a tick took %v", best)
	}
	if _, v := s.Ask(6, askOf("big", "o17")); v.Outcome != Queued {
		t.Errorf("a session over its share is %v", v.Outcome)
	}
}

// TestQ7_ManySlotsFreeForManyHeldRequestsAtOnce is the dearest moment of all: every slot idles out in one tick while thousands of
// requests are held.
func TestQ7_ManySlotsFreeForManyHeldRequestsAtOnce(t *testing.T) {
	const slots, held = 1024, 4096
	p := testPolicy(slots)
	p.PerPrincipal, p.QueueLimit, p.QueuePerPrincipal = 1, MaxQueueLimit, MaxQueueLimit
	h := newHarness(t, p)
	for i := range slots {
		r, v := h.s.Ask(0, askOf(name("a", i), "first"))
		if v.Outcome != Admitted {
			t.Fatal(v.Outcome)
		}
		h.s.Finish(0, r, 0, 1, false)
	}
	for i := range held {
		h.s.Hold(0, askOf(name("h", i), "x"), name("h", i))
	}
	took := cpuTime(t, func() { h.s.Tick(p.IdleFor) })
	t.Logf("%d starts of %d held took %v", slots, held, took)
	settled := h.s.TakeSettled()
	if len(settled) != slots {
		t.Fatalf("%d started", len(settled))
	}
	for i, got := range settled {
		if got.Owner != name("h", i) {
			t.Fatalf("start %d went to %v", i, got.Owner)
		}
	}
	h.check()
	if took > 200*time.Millisecond*slower {
		t.Errorf("it took %v", took)
	}
}

package memory

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
	"github.com/arkvory/sidecar/queue/window"
)

// nightly is a window of bulk from 22:00 to 06:00.
func nightly(t *testing.T, share float64) (out [queue.Classes]*window.Schedule) {
	t.Helper()
	s, faults := window.Compile(window.Spec{Zone: "Europe/Berlin", OutsideShare: share, Open: []window.Span{{From: "22:00", To: "06:00"}}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	out[queue.Bulk] = s
	return out
}

// wallOf is a wall clock beside the fixture's, which can be set.
type wallOf struct {
	f     *fixture
	mu    sync.Mutex
	start time.Time
}

func (w *wallOf) read() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start.Add(w.f.clock())
}

func (w *wallOf) set(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start = w.start.Add(by)
}

func policyOfSlots(n int) queue.Policy {
	p := queue.DefaultPolicy(n)
	p.Reserve, p.PerPrincipal, p.SessionMinBytes, p.BandBytesPerSecond = 0, n, 0, 1<<20
	return p
}

func bulkAsk(object string) queue.Ask {
	return queue.Ask{Key: queue.Key{Principal: "p", Object: object, Client: "c"}, Class: queue.Bulk, Protocol: true, SizeBytes: 1 << 20}
}

// windowFixture is a queue at 21:59 of a winter's evening with the nightly window.
func windowFixture(t *testing.T, share float64) (*fixture, *wallOf) {
	f := newFixture(t, policyOfSlots(2), 4)
	w := &wallOf{f: f, start: time.Date(2027, 1, 10, 20, 59, 0, 0, time.UTC)}
	f.SetWindows(nightly(t, share), w.read)
	return f, w
}

func (f *fixture) wantOutcome(t *testing.T, want queue.Outcome, a queue.Ask) (*Grant, queue.Verdict) {
	t.Helper()
	g, v := f.Admit(a)
	if v.Outcome != want {
		t.Fatalf("%s: %v, want %v", a.Key.Object, v.Outcome, want)
	}
	if err := f.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	return g, v
}

func TestW1_TheWallClockOpensAndShuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := windowFixture(t, 0)
		defer f.Close()
		if f.Share(queue.Bulk) != 0 || f.Share(queue.Release) != queue.WholeShare {
			t.Errorf("at 21:59 the shares are %d and %d", f.Share(queue.Bulk), f.Share(queue.Release))
		}
		_, v := f.wantOutcome(t, queue.Queued, bulkAsk("1"))
		if v.StartsIn < time.Minute || v.StartsIn > 2*time.Minute {
			t.Errorf("a minute before the opening the start is told for %v", v.StartsIn)
		}
		if w := f.Windows()[queue.Bulk]; w.Open || w.Outside != 0 || !w.ChangesAt.Equal(time.Date(2027, 1, 10, 21, 0, 0, 0, time.UTC)) {
			t.Errorf("the window is told as %+v", w)
		}
		f.advance(59500 * time.Millisecond)
		f.wantOutcome(t, queue.Queued, bulkAsk("1"))
		f.advance(500 * time.Millisecond)
		g, _ := f.wantOutcome(t, queue.Admitted, bulkAsk("1"))
		if g.Outside() || f.Share(queue.Bulk) != queue.WholeShare {
			t.Errorf("at 22:00 it began outside: %v, share %d", g.Outside(), f.Share(queue.Bulk))
		}
		f.advance(8*time.Hour - 2*time.Second) // running all the time
		f.wantOutcome(t, queue.Admitted, bulkAsk("2"))
		f.advance(2 * time.Second)
		g.Finish(0, 1<<20, true)
		f.wantOutcome(t, queue.Queued, bulkAsk("3"))
		if w := f.Windows()[queue.Bulk]; w.Open || !w.ChangesAt.Equal(time.Date(2027, 1, 11, 21, 0, 0, 0, time.UTC)) {
			t.Errorf("at 06:00 the window is told as %+v", w)
		}
	})
}

func TestW1_AClockThatIsSetMovesTheWindowAndLosesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := windowFixture(t, 0)
		defer f.Close()
		f.wantOutcome(t, queue.Queued, bulkAsk("1"))
		w.set(2 * time.Hour) // 23:59
		f.advance(queue.TickEvery)
		running, _ := f.wantOutcome(t, queue.Admitted, bulkAsk("1"))
		w.set(-3 * time.Hour) // 20:59
		f.advance(queue.TickEvery)
		f.wantOutcome(t, queue.Queued, bulkAsk("2"))
		snap := f.Snapshot()
		if snap.Active[queue.Bulk] != 1 || snap.Waiting[queue.Bulk] != 1 {
			t.Errorf("%d run and %d wait, want one each", snap.Active[queue.Bulk], snap.Waiting[queue.Bulk])
		}
		if at := f.Windows()[queue.Bulk].ChangesAt; !at.Equal(time.Date(2027, 1, 10, 21, 0, 0, 0, time.UTC)) {
			t.Errorf("it opens at %v", at)
		}
		running.Finish(0, 1<<20, true)
		f.wantOutcome(t, queue.Queued, bulkAsk("2"))
	})
}

// TestW1_SlowDriftKeepsTheEdgeToTheWall: 1 ms a second is more than any clock is steered by.
func TestW1_SlowDriftKeepsTheEdgeToTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := windowFixture(t, 0)
		defer f.Close()
		w.set(-2 * time.Hour) // 19:59
		f.advance(time.Second)
		for w.read().Before(time.Date(2027, 1, 10, 20, 59, 58, 0, time.UTC)) {
			w.set(500 * time.Microsecond)
			f.advance(queue.TickEvery)
			if f.Share(queue.Bulk) != 0 {
				t.Fatalf("it opened at %v", w.read())
			}
		}
		for range 6 {
			w.set(500 * time.Microsecond)
			f.advance(queue.TickEvery)
		}
		if f.Share(queue.Bulk) == 0 {
			t.Errorf("at %v it is shut", w.read())
		}
	})
}

// TestW1_WindowsAreReplayed: a log of decisions with windows replays without a difference, arrivals drawn at an opening included.
func TestW1_WindowsAreReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		recorder := replay.NewRecorder(&log)
		f := &fixture{}
		q, err := New(policyOfSlots(1), Options{
			Clock: func() time.Duration { f.mu.Lock(); defer f.mu.Unlock(); return f.now }, HoldLimit: 4, Recorder: recorder,
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Queue = q
		w := &wallOf{f: f, start: time.Date(2027, 1, 10, 20, 59, 50, 0, time.UTC)}
		f.SetWindows(nightly(t, 0), w.read)
		for i := range 4 {
			f.Admit(bulkAsk(string(rune('a' + i))))
		}
		f.advance(11 * time.Second)
		for i := range 20 { // newcomers of the opening, whose arrivals are drawn
			g, _ := f.Admit(bulkAsk(string(rune('a' + i))))
			if g != nil {
				g.Progress(1 << 20)
				f.advance(time.Second)
				g.Finish(0, 1<<20, true)
			}
		}
		w.set(12 * time.Hour)
		f.advance(5 * time.Second)
		f.SetWindows([queue.Classes]*window.Schedule{}, w.read)
		f.Admit(bulkAsk("z"))
		f.Close()
		if err := recorder.Err(); err != nil {
			t.Fatal(err)
		}
		report, err := replay.Replay(&log)
		if err != nil || report.Differences != 0 || report.Decisions < 30 || report.Starts[queue.Bulk] == 0 {
			t.Errorf("replay: %+v, %v", report, err)
		}
	})
}

func TestW1_AFreshCoreKnowsTheWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := windowFixture(t, 0.5)
		defer f.Close()
		f.wantOutcome(t, queue.Admitted, bulkAsk("1"))
		func() {
			f.Queue.mu.Lock()
			defer f.Queue.mu.Unlock()
			f.renewLocked()
		}()
		if w := f.Windows()[queue.Bulk]; w.Open || w.Share != 500 || w.Outside != 500 || !w.Changes {
			t.Errorf("after a renewal the window is %+v", w)
		}
		if err := f.CheckInvariants(); err != nil {
			t.Error(err)
		}
	})
}

// TestW1_ConcurrentUse is for the race detector.
func TestW1_ConcurrentUse(t *testing.T) {
	q, err := New(policyOfSlots(2), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	schedules := nightly(t, 0.25)
	wall := func() time.Time { return time.Date(2027, 1, 10, 20, 59, 59, 0, time.UTC).Add(q.Now()) }
	var all sync.WaitGroup
	for _, act := range []func(){
		func() { q.SetWindows(schedules, wall) }, func() { q.Tick(q.Now()) }, func() { _ = q.Windows() }, func() { _ = q.Share(queue.Bulk) },
		func() {
			if g, _ := q.Admit(bulkAsk("1")); g != nil {
				_ = g.Outside()
				g.Abandon()
			}
		},
	} {
		all.Go(func() {
			for range 200 {
				act()
			}
		})
	}
	all.Wait()
	if err := q.CheckInvariants(); err != nil {
		t.Error(err)
	}
}

package memory

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/queuetest"
	"github.com/arkvory/sidecar/queue/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adapted gives the suite its interfaces: a nil *Grant becomes a nil interface.
type adapted struct{ *Queue }

func (a adapted) Admit(ask queue.Ask) (queuetest.Grant, queue.Verdict) {
	return orNil(a.Queue.Admit(ask))
}

func (a adapted) Hold(ask queue.Ask, wait time.Duration, gone <-chan struct{}) (queuetest.Grant, queue.Verdict) {
	return orNil(a.Queue.Hold(ask, wait, gone))
}

func orNil(g *Grant, v queue.Verdict) (queuetest.Grant, queue.Verdict) {
	if g == nil {
		return nil, v
	}
	return g, v
}

// fixture is a queue on a hand-moved clock, inside a synctest bubble.
type fixture struct {
	*Queue
	mu    sync.Mutex
	now   time.Duration
	ended []queue.End
}

func newFixture(t *testing.T, policy queue.Policy, holdLimit int) *fixture {
	t.Helper()
	f := &fixture{}
	q, err := New(policy, Options{
		Clock:     func() time.Duration { f.mu.Lock(); defer f.mu.Unlock(); return f.now },
		HoldLimit: holdLimit,
		SessionEnded: func(e queue.End) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ended = append(f.ended, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Queue = q
	return f
}

func (f *fixture) advance(d time.Duration) {
	for d > 0 {
		step := min(d, queue.TickEvery)
		d -= step
		f.mu.Lock()
		f.now += step
		now := f.now
		f.mu.Unlock()
		f.Tick(now)
		synctest.Wait()
	}
}

func (f *fixture) records() []queue.End {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ended)
}

func TestQ19_Conformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, policy queue.Policy, holdLimit int, body func(*testing.T, queuetest.Subject)) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, policy, holdLimit)
			var log bytes.Buffer
			f.recorder = replay.NewRecorder(&log)
			f.recorder.Policy(0, policy)
			body(t, queuetest.Subject{Queue: adapted{f.Queue}, Advance: f.advance, Settle: synctest.Wait, Ended: f.records})
			if err := f.CheckInvariants(); err != nil {
				t.Error(err)
			}
			f.Close()
			f.Close()
			synctest.Wait()
			if report, err := replay.Replay(&log); err != nil || report.Differences != 0 || report.Decisions == 0 {
				t.Errorf("the core does not decide again what it decided: %+v, %v", report, err)
			}
		})
	})
}

func policy(slots int) queue.Policy {
	p := queue.DefaultPolicy(slots)
	p.Reserve, p.PerPrincipal, p.SessionMinBytes = 0, slots, 0
	return p
}

func ask(principal, object string) queue.Ask {
	return queue.Ask{Key: queue.Key{Principal: principal, Object: object}, Class: queue.Release, SizeBytes: 1 << 20}
}

func TestQ18_RunTicksUntilItsContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := New(policy(1), Options{HoldLimit: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		g, _ := q.Admit(ask("p", "1"))
		g.Finish(0, 1, true)
		q.Run(ctx) // virtual time: the idle pause ends the session meanwhile
		if snap := q.Snapshot(); snap.ActiveTotal() != 0 || snap.Paused != 1 {
			t.Fatalf("after 40 s: %+v", snap)
		}
	})
}

func TestQ18_CloseEndsRunAndAnswersTheHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := New(policy(1), Options{HoldLimit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			q.Admit(ask("p", "1"))
		}
		var wait sync.WaitGroup
		wait.Go(func() { q.Run(context.Background()) })
		wait.Go(func() {
			if _, v := q.Hold(ask("p", "1"), time.Hour, nil); v.Outcome != queue.RangesBusy {
				t.Errorf("held range got %v", v.Outcome)
			}
		})
		wait.Go(func() {
			if _, v := q.Hold(ask("q", "1"), time.Hour, nil); v.Outcome != queue.Draining {
				t.Errorf("held request got %v", v.Outcome)
			}
		})
		synctest.Wait()
		q.Close()
		wait.Wait()
		if _, v := q.Hold(ask("p", "1"), time.Hour, nil); v.Outcome != queue.RangesBusy || v.Held {
			t.Errorf("a closed queue holds: %+v", v)
		}
	})
}

// TestP6_GoneAtTheMomentOfTheGrantGivesTheSlotBack drives both ways of the race between a departing client and its turn.
func TestP6_GoneAtTheMomentOfTheGrantGivesTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, policy(1), 4)
		for range 200 {
			g, v := f.Admit(ask("p", "1"))
			if g == nil {
				t.Fatalf("the slot is lost: %v", v.Outcome)
			}
			gone := make(chan struct{})
			var wait sync.WaitGroup
			wait.Go(func() {
				if held, v := f.Hold(ask("q", "1"), time.Hour, gone); held != nil {
					held.Abandon()
				} else if v.Outcome != queue.Gone {
					t.Errorf("held request got %v", v.Outcome)
				}
			})
			synctest.Wait()
			wait.Go(func() { close(gone) })
			wait.Go(func() { g.Finish(0, 1<<20, true) })
			wait.Wait()
			f.Leave(ask("q", "1").Key)
			if err := f.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestP6_ADepartureSeenBeforeTheGrantGivesTheSlotBack is the same race with its dangerous outcome forced: the close is what
// wakes the held request, and its turn comes before it has the lock.
func TestP6_ADepartureSeenBeforeTheGrantGivesTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, policy(1), 4)
		g, _ := f.Admit(ask("p", "1"))
		gone := make(chan struct{})
		var wait sync.WaitGroup
		wait.Go(func() {
			if held, v := f.Hold(ask("q", "1"), time.Hour, gone); held != nil || v.Outcome != queue.Gone {
				t.Errorf("held request got %v", v.Outcome)
			}
		})
		synctest.Wait()
		f.locked(func(now time.Duration) {
			close(gone)
			g.ended.Store(true)
			f.grants.remove(g)
			f.core.Finish(now, g.response, 0, 1<<20, true)
		})
		wait.Wait()
		if snap := f.Snapshot(); snap.ActiveTotal() != 0 || snap.Held != 0 || snap.Counts.Started != 2 || !f.FreeSlot() {
			t.Fatalf("left over: %+v", snap)
		}
		if err := f.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestQ11_OnePrincipalCannotTakeEveryHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := New(policy(1), Options{HoldLimit: 4, HoldPerPrincipal: 2})
		if err != nil {
			t.Fatal(err)
		}
		running, _ := q.Admit(ask("busy", "1"))
		var wait sync.WaitGroup
		hold := func(principal, object string, gone <-chan struct{}) <-chan queue.Verdict {
			out := make(chan queue.Verdict, 1)
			wait.Go(func() {
				g, v := q.Hold(ask(principal, object), time.Hour, gone)
				if g != nil {
					g.Abandon()
				}
				out <- v
			})
			synctest.Wait()
			if err := q.CheckInvariants(); err != nil {
				t.Error(err)
			}
			return out
		}
		gone := make(chan struct{})
		first, second := hold("greedy", "1", gone), hold("greedy", "2", nil)
		refused := func(what string, answer <-chan queue.Verdict) {
			t.Helper()
			select {
			case v := <-answer:
				if v.Outcome != queue.Queued || v.Held || v.Position == 0 {
					t.Errorf("%s: %+v", what, v)
				}
			default:
				t.Errorf("%s is held", what)
			}
		}
		refused("the third request of one principal", hold("greedy", "3", nil))
		other := hold("modest", "1", nil)
		close(gone)
		if v := <-first; v.Outcome != queue.Gone {
			t.Errorf("the departed got %v", v.Outcome)
		}
		third := hold("greedy", "3", nil) // the place of the departed is free again
		refused("one more", hold("greedy", "4", nil))
		for what, held := range map[string]<-chan queue.Verdict{"second": second, "other": other, "third": third} {
			if len(held) != 0 {
				t.Errorf("%s is not held", what)
			}
		}
		running.Finish(0, 1<<20, true)
		q.Close()
		wait.Wait()
		if len(q.heldBy) != 0 {
			t.Errorf("counts of principals that hold nothing stay: %v", q.heldBy)
		}
		if err := q.CheckInvariants(); err != nil {
			t.Error(err)
		}
	})
}

func TestQ18_ObserverMayCallTheQueue(t *testing.T) {
	var q *Queue
	called := false
	q, err := New(policy(1), Options{SessionEnded: func(queue.End) { q.Snapshot(); called = true }})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := q.Admit(ask("p", "1"))
	g.Finish(0, 1<<20, true)
	if !called {
		t.Fatal("the end was not reported")
	}
}

func TestQ8_ProgressReachesTheRateOnTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, policy(1), 0)
		g, _ := f.Admit(ask("p", "1"))
		other, _ := f.Admit(ask("p", "1"))
		other.Finish(0, 1, true)
		other.Finish(0, 1, true) // must not disturb the list of open grants
		for range 6 {
			g.Progress(5000)
			f.advance(queue.TickEvery)
		}
		if rate := f.Snapshot().RateBytesPerSecond; rate != 10000 {
			t.Fatalf("measured %d bytes per second", rate)
		}
		g.Abandon()
	})
}

func TestQ18_HotCallsDoNotAllocate(t *testing.T) {
	q, err := New(policy(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := q.Admit(ask("p", "1"))
	waiting := ask("q", "1")
	q.Admit(waiting)
	for name, call := range map[string]func(){
		"FreeSlot": func() { q.FreeSlot() }, "Progress": func() { g.Progress(1) }, "Admit of a waiting session": func() { q.Admit(waiting) },
	} {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestL2_NewRefusesWhatCannotWork(t *testing.T) {
	if _, err := New(queue.Policy{}, Options{}); err == nil {
		t.Error("an empty policy was taken")
	}
	if _, err := New(policy(1), Options{HoldLimit: -1}); err == nil {
		t.Error("a negative hold limit was taken")
	}
	if _, err := New(policy(1), Options{HoldPerPrincipal: -1}); err == nil {
		t.Error("a negative hold limit of a principal was taken")
	}
}

// BenchmarkAdmitFinish is one range of an active session: what every response of a big download costs the queue.
func BenchmarkAdmitFinish(b *testing.B) {
	q, _ := New(policy(1), Options{})
	a := ask("p", "1")
	q.Admit(a)
	b.ReportAllocs()
	for b.Loop() {
		g, _ := q.Admit(a)
		g.Finish(0, 1, true)
	}
}

func BenchmarkFreeSlot(b *testing.B) {
	q, _ := New(policy(1), Options{})
	for b.Loop() {
		q.FreeSlot()
	}
}

// BenchmarkAdmitFinishRecorded is the same with a decision log.
func BenchmarkAdmitFinishRecorded(b *testing.B) {
	q, _ := New(policy(1), Options{Recorder: replay.NewRecorder(io.Discard)})
	a := ask("p", "1")
	q.Admit(a)
	b.ReportAllocs()
	for b.Loop() {
		g, _ := q.Admit(a)
		g.Finish(0, 1, true)
	}
}

package memory

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// panics returns what f panics with, nil when it does not.
func panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// crew is a queue with two running downloads and two held requests, one of which is a further range of a running download.
type crew struct {
	*fixture
	first, second *Grant
	waits, ranges chan queue.Verdict
	all           sync.WaitGroup
}

func newCrew(t *testing.T, record *replay.Recorder) *crew {
	t.Helper()
	p := policy(2)
	p.RangesPerSession, p.BandBytesPerSecond = 1, 1<<20
	c := &crew{fixture: newFixture(t, p, 4), waits: make(chan queue.Verdict, 1), ranges: make(chan queue.Verdict, 1)}
	if record != nil {
		c.recorder = record
		record.Policy(0, p)
	}
	c.first, _ = c.Admit(ask("p", "1"))
	c.advance(time.Second)
	c.second, _ = c.Admit(ask("q", "1"))
	hold := func(a queue.Ask, out chan queue.Verdict) {
		c.all.Go(func() {
			g, v := c.Hold(a, time.Hour, nil)
			if g != nil {
				g.Finish(0, 1<<20, true)
			}
			out <- v
		})
		synctest.Wait()
	}
	c.advance(time.Second)
	hold(ask("r", "1"), c.waits)
	hold(ask("p", "1"), c.ranges)
	c.advance(10 * time.Second)
	return c
}

// whole fails unless everything that the shell knows is there and the invariants hold.
func (c *crew) whole(t *testing.T, counts queue.Counts) {
	t.Helper()
	if err := c.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	if snap.ActiveTotal() != 2 || snap.Held != 2 || snap.WaitingTotal() != 1 || snap.OldestWait < 0 {
		t.Fatalf("after a panic: %d active, %d held, %d waiting", snap.ActiveTotal(), snap.Held, snap.WaitingTotal())
	}
	if snap.Counts != counts {
		t.Fatalf("counts %+v, before the panic %+v", snap.Counts, counts)
	}
}

// leave lets everything end and fails unless nothing is left.
func (c *crew) leave(t *testing.T) {
	t.Helper()
	c.first.Progress(7)
	c.first.Finish(0, 1<<19, true)
	c.second.Finish(0, 1<<20, true)
	c.all.Wait()
	for name, out := range map[string]chan queue.Verdict{"waiting request": c.waits, "held range": c.ranges} {
		if v := <-out; v.Outcome != queue.Admitted || !v.Held {
			t.Errorf("the %s got %+v", name, v)
		}
	}
	if snap := c.Snapshot(); snap.ActiveTotal() != 0 || snap.WaitingTotal() != 0 || snap.Held != 0 || !c.FreeSlot() {
		t.Errorf("left over: %+v", snap)
	}
	if err := c.CheckInvariants(); err != nil {
		t.Error(err)
	}
}

// TestQ19_APanicUnderTheLockLosesNothing injects a panic into every operation, before the core (at the clock's first reading) and after it
// in the middle of a tick (at a later one).
func TestQ19_APanicUnderTheLockLosesNothing(t *testing.T) {
	for name, one := range map[string]struct {
		reads int
		call  func(c *crew)
	}{
		"admit":                 {1, func(c *crew) { c.Admit(ask("s", "1")) }},
		"hold":                  {1, func(c *crew) { c.Hold(ask("s", "1"), time.Hour, nil) }},
		"leave":                 {1, func(c *crew) { c.Leave(queue.Key{}) }},
		"configure":             {1, func(c *crew) { _ = c.Configure(c.Policy()) }},
		"grace":                 {1, func(c *crew) { c.Grace(0, 0) }},
		"snapshot":              {1, func(c *crew) { c.Snapshot() }},
		"tick before it begins": {1, func(c *crew) { c.Tick(0) }},
		"tick before the core":  {2, func(c *crew) { c.Tick(0) }},
		"tick after the core":   {3, func(c *crew) { c.Tick(0) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				record := replay.NewRecorder(&log)
				c := newCrew(t, record)
				counts := c.Snapshot().Counts
				clock, reads := c.clock, 0
				c.clock = func() time.Duration {
					if reads++; reads == one.reads {
						panic("the clock broke")
					}
					return clock()
				}
				if v := panics(func() { one.call(c) }); v != "the clock broke" {
					t.Fatalf("the caller saw %v", v)
				}
				c.whole(t, counts)
				c.advance(time.Second)
				c.leave(t)
				c.Close()
				report, err := replay.Replay(bytes.NewReader(log.Bytes()))
				if err != nil || report.Differences != 0 || report.Cores != 2 {
					t.Errorf("replay: %+v, %v", report, err)
				}
			})
		})
	}
}

// breakCore makes the next call of the core panic: what the core counted is lost with it.
func (c *crew) breakCore() {
	c.Queue.mu.Lock()
	defer c.Queue.mu.Unlock()
	c.core = nil
}

func TestQ19_APanicOfTheCoreLosesNothingThatTheShellHolds(t *testing.T) {
	for name, call := range map[string]func(c *crew){
		"admit": func(c *crew) { c.Admit(ask("s", "1")) },
		"tick":  func(c *crew) { c.Tick(c.Now()) },
		"leave": func(c *crew) { c.Leave(ask("s", "1").Key) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, nil)
				c.breakCore()
				if panics(func() { call(c) }) == nil {
					t.Fatal("no panic: the test breaks nothing")
				}
				c.whole(t, queue.Counts{})
				c.leave(t)
			})
		})
	}
}

func TestQ19_APanicAtTheEndOfAResponseFreesItsSlot(t *testing.T) {
	for name, end := range map[string]func(g *Grant){"finish": func(g *Grant) { g.Finish(0, 1<<20, true) }, "abandon": (*Grant).Abandon} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, nil)
				c.breakCore()
				if panics(func() { end(c.second) }) == nil {
					t.Fatal("no panic: the test breaks nothing")
				}
				synctest.Wait()
				if v := <-c.waits; v.Outcome != queue.Admitted {
					t.Fatalf("the waiting request got %+v", v)
				}
				c.first.Finish(0, 1<<20, true)
				<-c.ranges
				c.all.Wait()
				if snap := c.Snapshot(); snap.ActiveTotal() != 0 || snap.Held != 0 {
					t.Errorf("left over: %+v", snap)
				}
				if err := c.CheckInvariants(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestQ19_AFreshCoreKeepsArrivalsDrainAndGrace: what else must outlive the old core.
func TestQ19_AFreshCoreKeepsArrivalsDrainAndGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		c.Grace(0, c.Now()+time.Hour)
		c.breakCore()
		if panics(func() { c.Snapshot() }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		if _, v := c.Admit(ask("r", "1")); v.Outcome != queue.Queued || v.Position != 1 || v.Arrival != 2*time.Second {
			t.Errorf("the waiting session is %+v", v)
		}
		if _, v := c.Admit(ask("p", "1")); v.Outcome != queue.RangesBusy || v.Arrival != 0 {
			t.Errorf("the active session is %+v", v)
		}
		c.leave(t)
		if _, v := c.Admit(ask("new", "1")); v.Outcome != queue.Queued {
			t.Errorf("during the grace a newcomer got %+v", v)
		}
		c.Drain()
		c.breakCore()
		if panics(func() { c.Snapshot() }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		if _, v := c.Admit(ask("new", "1")); v.Outcome != queue.Draining {
			t.Errorf("after the drain a newcomer got %+v", v)
		}
	})
}

// TestQ19_WhatCannotBeFedAgainIsAnswered is the way out when even the fresh core panics on what the shell holds.
func TestQ19_WhatCannotBeFedAgainIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		c.locked(func(time.Duration) {
			if !c.feedLocked(false) {
				t.Error("an empty core cannot be made")
			}
		})
		c.all.Wait()
		for _, out := range []chan queue.Verdict{c.waits, c.ranges} {
			if v := <-out; v.Outcome != queue.LimitReached || !v.Held || v.CheckIn != lostCheck || v.Class != queue.Release {
				t.Errorf("a held request got %+v", v)
			}
		}
		c.first.Progress(5) // the responses go on without a session
		c.advance(time.Second)
		c.first.Finish(0, 1<<20, true)
		c.second.Abandon()
		if snap := c.Snapshot(); snap.ActiveTotal() != 0 || snap.Held != 0 || !c.FreeSlot() {
			t.Errorf("left over: %+v", snap)
		}
		if err := c.CheckInvariants(); err != nil {
			t.Error(err)
		}
	})
}

func TestQ3_PolicyIsReadWithoutTheLock(t *testing.T) {
	q, err := New(policy(2), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := policy(2)
	p.Strategy = queue.SmallestFirst
	if err := q.Configure(p); err != nil {
		t.Fatal(err)
	}
	if err := q.Configure(queue.Policy{}); err == nil {
		t.Fatal("an empty policy was taken")
	}
	q.mu.Lock() // a reader that needed it would wait for ever
	defer q.mu.Unlock()
	if q.Policy() != p {
		t.Errorf("policy %+v, want %+v", q.Policy(), p)
	}
}

func TestQ18_RecordingCostsNothingWhenNobodyRecordsAndNeverBlocks(t *testing.T) {
	stuck := make(chan struct{})
	record := replay.NewRecorder(writer(func(b []byte) (int, error) { <-stuck; return len(b), nil }))
	q, err := New(policy(1), Options{Recorder: record})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 { // ticks while the writer stands still
		q.Tick(time.Duration(i) * queue.TickEvery)
		q.Admit(ask("p", "1"))
	}
	close(stuck)
	if err := record.Flush(); err != nil {
		t.Error(err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

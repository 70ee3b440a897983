package memory

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// spoil leaves a held request in the core that is none of the shell's, with its answer: whoever settles next panics after its own decision.
func (f *fixture) spoil(t *testing.T) {
	t.Helper()
	f.Queue.mu.Lock()
	defer f.Queue.mu.Unlock()
	if w, _, _ := f.core.Hold(f.Queue.now, ask("stranger", "1"), "no waiter"); w == nil {
		t.Fatal("it is not held: the test breaks nothing")
	}
	wider := f.core.Policy()
	wider.Sessions++
	if err := f.core.Configure(f.Queue.now, wider); err != nil {
		t.Fatal(err)
	}
}

// gone fails unless nothing is left.
func (f *fixture) empty(t *testing.T) {
	t.Helper()
	f.advance(time.Second)
	if snap := f.Snapshot(); snap.ActiveTotal() != 0 || snap.WaitingTotal() != 0 || snap.Held != 0 || !f.FreeSlot() {
		t.Errorf("left over: %d active, %d waiting, %d held", snap.ActiveTotal(), snap.WaitingTotal(), snap.Held)
	}
	f.Queue.mu.Lock()
	defer f.Queue.mu.Unlock()
	if f.grants.head != nil {
		t.Error("a grant has no owner")
	}
}

// TestQ19_WhatACallerDoesNotGetBecauseOfAPanicHoldsNothing: the panic comes after the decision.
func TestQ19_WhatACallerDoesNotGetBecauseOfAPanicHoldsNothing(t *testing.T) {
	for name, call := range map[string]func(q *Queue){
		"admit, a further range":  func(q *Queue) { q.Admit(ask("p", "1")) },
		"hold, admitted at once":  func(q *Queue) { q.Hold(ask("p", "1"), time.Hour, nil) },
		"hold, held":              func(q *Queue) { q.Hold(ask("w", "1"), time.Hour, nil) },
		"hold, not held, waiting": func(q *Queue) { q.Hold(ask("p", "1"), 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, policy(1), 4)
				g, _ := f.Admit(ask("p", "1"))
				f.spoil(t)
				if panics(func() { call(f.Queue) }) == nil {
					t.Fatal("no panic: the test breaks nothing")
				}
				if snap := f.Snapshot(); snap.ActiveTotal() != 1 || snap.Held != 0 {
					t.Errorf("%d active, %d held", snap.ActiveTotal(), snap.Held)
				}
				g.Finish(0, 1<<20, true)
				f.empty(t)
			})
		})
	}
}

func TestQ19_ADepartureThatPanicsLeavesNobodyInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, policy(1), 4)
		g, _ := f.Admit(ask("p", "1"))
		gone, left := make(chan struct{}), make(chan any)
		go func() { left <- panics(func() { f.Hold(ask("w", "1"), time.Hour, gone) }) }()
		synctest.Wait()
		f.Queue.mu.Lock()
		f.core = nil
		f.Queue.mu.Unlock()
		close(gone)
		if <-left == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		g.Finish(0, 1<<20, true)
		f.empty(t)
	})
}

func TestQ19_AnEndThatPanicsBeforeTheCoreLeavesNoGrant(t *testing.T) {
	for name, end := range map[string]func(g *Grant){"finish": func(g *Grant) { g.Finish(0, 1<<20, true) }, "abandon": (*Grant).Abandon} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, policy(1), 4)
				g, _ := f.Admit(ask("p", "1"))
				clock := f.clock
				f.clock = func() time.Duration { panic("the clock broke") }
				if panics(func() { end(g) }) == nil {
					t.Fatal("no panic: the test breaks nothing")
				}
				f.clock = clock
				f.empty(t)
			})
		})
	}
}

// TestQ19_APanicOfTheObserverHoldsNothing: the core is whole then, and what the caller does not get is given back to it.
func TestQ19_APanicOfTheObserverHoldsNothing(t *testing.T) {
	for name, call := range map[string]func(q *Queue){
		"admit": func(q *Queue) { q.Admit(ask("p", "1")) },
		"hold":  func(q *Queue) { q.Hold(ask("w", "1"), time.Hour, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, policy(1), 4)
				g, _ := f.Admit(ask("p", "1"))
				f.Admit(ask("z", "1")) // waits
				f.Queue.mu.Lock()
				f.core.Leave(f.Queue.now, ask("z", "1").Key)
				f.Queue.mu.Unlock()
				observer := f.sessionEnded
				f.sessionEnded = func(queue.End) { f.sessionEnded = observer; panic("the observer broke") }
				if v := panics(func() { call(f.Queue) }); v != "the observer broke" {
					t.Fatalf("the caller saw %v", v)
				}
				if err := f.CheckInvariants(); err != nil {
					t.Error(err)
				}
				g.Finish(0, 1<<20, true)
				f.empty(t)
			})
		})
	}
}

// TestV2_TotalsNeverFall: a core that cannot even be read is replaced by one that goes on from what was told.
func TestV2_TotalsNeverFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		before := c.Snapshot()
		if before.Counts.Started != 2 {
			t.Fatalf("%+v", before.Counts)
		}
		c.breakCore()
		if panics(func() { c.Tick(c.Now()) }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		if after := c.Snapshot(); after.Counts != before.Counts || after.Promises != before.Promises {
			t.Errorf("%+v, %+v before", after.Counts, before.Counts)
		}
		c.leave(t)
		if after := c.Snapshot(); after.Counts.Started != 3 {
			t.Errorf("%+v", after.Counts)
		}
	})
}

// TestL1_ACloseThatPanicsClosesAllTheSame: nobody may wait for a queue that has ended.
func TestL1_ACloseThatPanicsClosesAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		c.breakCore()
		if panics(func() { c.Close() }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		c.all.Wait()
		if v := <-c.waits; v.Outcome != queue.Draining {
			t.Errorf("the waiting request got %+v", v)
		}
		if v := <-c.ranges; v.Outcome != queue.RangesBusy {
			t.Errorf("the held range got %+v", v)
		}
		c.Run(t.Context()) // returns
		c.first.Finish(0, 1<<20, true)
		c.second.Finish(0, 1<<20, true)
		if err := c.CheckInvariants(); err != nil {
			t.Error(err)
		}
	})
}

// TestQ19_ACallThatPanickedIsNotInTheLog: what it decided came to nobody, so a replay must not make it.
func TestQ19_ACallThatPanickedIsNotInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFixture(t, policy(1), 4)
		f.recorder = replay.NewRecorder(&log)
		f.recorder.Policy(0, policy(1))
		g, _ := f.Admit(ask("p", "1"))
		got := make(chan *Grant)
		go func() { g, _ := f.Hold(ask("w", "1"), time.Hour, nil); got <- g }()
		synctest.Wait()
		f.Queue.mu.Lock()
		first := ask("stranger", "1")
		first.Class = queue.Interactive // it gets the slot in this core, the other one in a replay
		f.core.Hold(f.Queue.now, first, "no waiter")
		f.Queue.mu.Unlock()
		if panics(func() { g.Finish(0, 1<<20, true) }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		(<-got).Finish(0, 1<<20, true)
		f.empty(t)
		f.Close()
		report, err := replay.Replay(bytes.NewReader(log.Bytes()))
		if err != nil || report.Differences != 0 || report.Cores != 2 || report.Starts[queue.Release] != 2 {
			t.Errorf("%+v, %v\n%s", report, err, log.String())
		}
	})
}

// TestQ19_APanicOfTheObserverAtADeparture: with and without an answer that met it.
func TestQ19_APanicOfTheObserverAtADeparture(t *testing.T) {
	for name, answered := range map[string]bool{"still waiting": false, "admitted meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, policy(1), 4)
				g, _ := f.Admit(ask("p", "1"))
				f.Queue.mu.Lock()
				w := &waiter{wake: make(chan struct{}, 1), ask: ask("w", "1"), until: time.Hour}
				var verdict queue.Verdict
				f.holdLocked(f.Queue.now, w, &verdict)
				f.listLocked(w)
				f.Queue.mu.Unlock()
				if answered {
					g.Finish(0, 1<<20, true) // its slot goes to the waiter
					f.Admit(ask("z", "1"))
					f.Queue.mu.Lock()
					f.core.Leave(f.Queue.now, ask("z", "1").Key)
					f.Queue.mu.Unlock()
				}
				observer := f.sessionEnded
				f.sessionEnded = func(queue.End) { f.sessionEnded = observer; panic("the observer broke") }
				if v := panics(func() { f.Queue.leave(w, queue.Release) }); v != "the observer broke" {
					t.Fatalf("the caller saw %v", v)
				}
				g.Finish(0, 1<<20, true)
				f.empty(t)
			})
		})
	}
}

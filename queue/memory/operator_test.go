package memory

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// idOf returns the id of the only session of a principal.
func (f *fixture) idOf(t *testing.T, principal string) queue.SessionID {
	t.Helper()
	page := f.Sessions(queue.ListQuery{Active: true, Waiting: true, Remembered: true, Principal: principal}, queue.Mark{}, 2)
	if len(page.Sessions) != 1 {
		t.Fatalf("%d sessions of %s", len(page.Sessions), principal)
	}
	return page.Sessions[0].ID
}

func (f *fixture) kick(t *testing.T, principal string) {
	t.Helper()
	if _, _, err := f.Act(f.idOf(t, principal), queue.Action{Kind: queue.KickIt}); err != nil {
		t.Fatal(err)
	}
}

// TestX7_KickCutsEachResponseOnce: all responses of the session and no other's, before Act returns; one that ended before is left alone.
func TestX7_KickCutsEachResponseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, policy(2), 4)
		cuts := map[string]int{}
		open := func(principal, name string) *Grant {
			g, v := f.Admit(ask(principal, "1"))
			if g == nil {
				t.Fatalf("%s: %v", name, v.Outcome)
			}
			g.OnCut(func() { cuts[name]++ })
			return g
		}
		one, two, ended, other := open("p", "one"), open("p", "two"), open("p", "ended"), open("q", "other")
		ended.Finish(0, 1, true)
		f.kick(t, "p")
		if cuts["one"] != 1 || cuts["two"] != 1 || cuts["ended"] != 0 || cuts["other"] != 0 {
			t.Fatalf("cut %v", cuts)
		}
		if !one.Kicked() || other.Kicked() || ended.Kicked() {
			t.Error("who was kicked is not told")
		}
		late := 0
		two.OnCut(func() { late++ })
		if late != 1 {
			t.Error("a response that learns late of its cut is not cut")
		}
		if snap := f.Snapshot(); snap.ActiveTotal() != 1 || !f.FreeSlot() {
			t.Errorf("%+v", snap)
		}
		one.Progress(5)
		f.advance(time.Second)
		one.Abandon()
		two.Finish(0, 1<<20, true)
		other.Finish(0, 1<<20, true)
		if snap := f.Snapshot(); snap.ActiveTotal() != 0 || snap.Counts.Ended[queue.ReasonCompleted] != 1 || snap.Counts.Ended[queue.ReasonKicked] != 1 {
			t.Errorf("%+v", snap)
		}
		if err := f.CheckInvariants(); err != nil {
			t.Error(err)
		}
	})
}

// TestX7_NothingIsCutAfterItsEnd races the end of a response against a kick: the function is not called once Finish has returned.
func TestX7_NothingIsCutAfterItsEnd(t *testing.T) {
	q, err := New(policy(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		g, _ := q.Admit(ask(fmt.Sprint("p", i), "1"))
		if g == nil {
			t.Fatal("no slot")
		}
		var mu sync.Mutex
		over, after := false, false
		g.OnCut(func() { mu.Lock(); defer mu.Unlock(); after = after || over })
		page := q.Sessions(queue.ListQuery{Active: true}, queue.Mark{}, 1)
		var both sync.WaitGroup
		both.Go(func() {
			g.Finish(0, 1<<20, true)
			mu.Lock()
			over = true
			mu.Unlock()
		})
		both.Go(func() { _, _, _ = q.Act(page.Sessions[0].ID, queue.Action{Kind: queue.KickIt}) })
		both.Wait()
		if after {
			t.Fatal("a response was cut after its end")
		}
		if snap := q.Snapshot(); snap.ActiveTotal() != 0 {
			t.Fatalf("%d active", snap.ActiveTotal())
		}
	}
}

// TestX7_Q19_AFreshCoreKnowsGateModeAndIds, takes no kicked response in again, and counts on.
func TestX7_Q19_AFreshCoreKnowsGateModeAndIds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(2)
		c := &crew{fixture: newFixture(t, p, 4)}
		var log bytes.Buffer
		c.recorder = replay.NewRecorder(&log)
		c.recorder.Policy(0, p)
		kicked, _ := c.Admit(ask("k", "1"))
		g, _ := c.Admit(ask("p", "1"))
		id := c.idOf(t, "p")
		c.kick(t, "k")
		c.SetGate(false)
		before := c.Snapshot().Counts
		c.breakCore()
		if panics(func() { c.Snapshot() }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		if after := c.Snapshot(); after.Counts != before || after.ActiveTotal() != 1 {
			t.Errorf("%+v, before %+v", after, before)
		}
		if c.idOf(t, "p") != id {
			t.Error("the id changed")
		}
		if c.Overview().GateOpen || c.FreeSlot() {
			t.Error("the gate is open")
		}
		if _, v := c.Admit(ask("q", "1")); v.Outcome != queue.Queued {
			t.Errorf("with a shut gate %v", v.Outcome)
		}
		kicked.Abandon()
		g.Finish(0, 1<<20, true)
		if err := c.CheckInvariants(); err != nil {
			t.Error(err)
		}
		c.Close()
		report, err := replay.Replay(bytes.NewReader(log.Bytes()))
		if err != nil || report.Differences != 0 || report.Cores != 2 {
			t.Errorf("replay: %+v, %v", report, err)
		}
	})
}

// TestX7_APanicOfAnActionLeavesTheQueueWhole: the caller gets it, the shell goes on with a fresh core, and nothing is cut.
func TestX7_APanicOfAnActionLeavesTheQueueWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		id := c.idOf(t, "q")
		cut := false
		c.second.OnCut(func() { cut = true })
		counts := c.Snapshot().Counts
		c.breakCore()
		if panics(func() { _, _, _ = c.Act(id, queue.Action{Kind: queue.KickIt}) }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		c.whole(t, counts)
		if cut || c.second.Kicked() {
			t.Error("a response was cut by an action that was not carried out")
		}
		c.leave(t)
	})
}

// TestX6_6_6_AViewGivesTheLockBackBetweenPieces: however much is listed, each hold of the lock looks at no more than a bounded number of sessions.
func TestX6_6_6_AViewGivesTheLockBackBetweenPieces(t *testing.T) {
	const n = 3 * listVisited
	p := policy(1)
	p.QueueLimit, p.QueuePerPrincipal = n+2, n+2
	now, holds := time.Duration(0), 0
	// The clock is read once in each hold of the lock.
	q, err := New(p, Options{Clock: func() time.Duration { holds++; return now }})
	if err != nil {
		t.Fatal(err)
	}
	q.Admit(ask("first", "running"))
	for i := range n {
		a := ask("p", "o")
		a.Key.Client = string(rune('A'+i%1000)) + string(rune('A'+i/1000))
		if _, v := q.Admit(a); v.Outcome != queue.Queued {
			t.Fatal(v.Outcome)
		}
	}
	other := ask("other", "o")
	other.Class = queue.Background
	q.Admit(other)
	for _, c := range []struct {
		query                 queue.ListQuery
		shown, visited, holds int
	}{
		{queue.ListQuery{Waiting: true, OneClass: true, Class: queue.Bulk, Principal: "p"}, 0, n, n / listVisited}, // there are none, but that is not known
		{queue.ListQuery{Waiting: true, OneClass: true, Class: queue.Bulk}, 0, 0, 1},
		{queue.ListQuery{Waiting: true, OneClass: true, Class: queue.Background}, 1, 1, 1},
		{queue.ListQuery{Waiting: true, Principal: "other"}, 1, 1, 1},
		{queue.ListQuery{Active: true, Waiting: true, Remembered: true, Principal: "nobody"}, 0, 0, 1},
	} {
		holds = 0
		if page := q.Sessions(c.query, queue.Mark{}, 100); len(page.Sessions) != c.shown || page.Visited != c.visited || page.More || holds != c.holds {
			t.Errorf("%+v: %d shown, %d looked at in %d holds of the lock, want %d, %d in %d", c.query, len(page.Sessions), page.Visited, holds, c.shown, c.visited, c.holds)
		}
	}
	for _, c := range []struct {
		query    queue.ListQuery
		n, holds int
	}{
		{queue.ListQuery{Waiting: true, Principal: "p"}, n, 1},
		{queue.ListQuery{Waiting: true, OneClass: true, Class: queue.Background}, 1, 1},
		{queue.ListQuery{Waiting: true, OneClass: true, Class: queue.Bulk, Principal: "p"}, 0, n/listVisited + 1},
	} {
		holds = 0
		if got := q.CountSessions(c.query); got != c.n || holds != c.holds {
			t.Errorf("%+v: %d are counted in %d holds of the lock, want %d in %d", c.query, got, holds, c.n, c.holds)
		}
	}
	holds = 0
	if page := q.Sessions(queue.ListQuery{Waiting: true}, queue.Mark{}, 1000); len(page.Sessions) != 1000 || page.Visited != 1000 || holds != (1000+listShown-1)/listShown {
		t.Errorf("%d shown in %d holds", len(page.Sessions), holds)
	}
}

// TestX6_6_6_PrincipalsAreNamedInPieces: each once, with the lock free while the caller looks, also while others come and go.
func TestX6_6_6_PrincipalsAreNamedInPieces(t *testing.T) {
	const n = 2*listNamed + 100
	p := policy(1)
	p.QueueLimit, p.QueuePerPrincipal = 4*n, 4*n
	q, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		q.Admit(ask(fmt.Sprint("p-", i), "o"))
	}
	named, calls := map[string]int{}, 0
	q.Principals(func(name string) bool {
		named[name]++
		calls++
		if calls%2 == 0 { // the lock is free, or this ends never
			q.Admit(ask(fmt.Sprint("late-", calls), "o"))
			q.Leave(ask(fmt.Sprint("p-", calls/2), "o").Key)
		}
		return calls < 3*n
	})
	left := calls / 2 // those from 1 on that left meanwhile
	for i := range n {
		if name := fmt.Sprint("p-", i); named[name] != 1 && (i == 0 || i > left) {
			t.Errorf("%s is named %d times", name, named[name])
		}
	}
	for name, times := range named {
		if times > 1 {
			t.Errorf("%s is named %d times", name, times)
		}
	}
	seen := 0
	if q.Principals(func(string) bool { seen++; return seen < 5 }); seen != 5 {
		t.Errorf("%d were named after a word to stop", seen)
	}
	func() { // a defect of the caller leaves the lock free
		defer func() { _ = recover() }()
		q.Principals(func(string) bool { panic("the caller's") })
	}()
	if err := q.CheckInvariants(); err != nil {
		t.Error(err)
	}
}

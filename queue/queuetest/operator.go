package queuetest

import (
	"errors"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// waiting lists who waits, the first in the order first.
func waiting(t *testing.T, s Subject) []queue.Shown {
	t.Helper()
	var out []queue.Shown
	for page := (queue.Page{More: true}); page.More; {
		page = s.Queue.Sessions(queue.ListQuery{Waiting: true}, page.Next, 2)
		out = append(out, page.Sessions...)
	}
	return out
}

// find returns the session of a principal among those that wait, or have a slot.
func find(t *testing.T, s Subject, principal string) queue.Shown {
	t.Helper()
	page := s.Queue.Sessions(queue.ListQuery{Active: true, Waiting: true, Principal: principal}, queue.Mark{}, 10)
	if len(page.Sessions) != 1 {
		t.Fatalf("%d sessions of %s", len(page.Sessions), principal)
	}
	return page.Sessions[0]
}

func act(t *testing.T, s Subject, principal string, kind queue.ActionKind, want error) (before, after queue.Shown) {
	t.Helper()
	before, after, err := s.Queue.Act(find(t, s, principal).ID, queue.Action{Kind: kind})
	if !errors.Is(err, want) || (want == nil) != (err == nil) {
		t.Fatalf("%s of %s: %v, want %v", kind, principal, err, want)
	}
	return before, after
}

func operatorMoves(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	held := hold(s, ask("a", "1"), time.Minute, nil)
	admit(t, s, queue.Queued, ask("b", "1"))
	admit(t, s, queue.Queued, ask("c", "1"))
	if before, after := act(t, s, "c", queue.MoveFront, nil); before.Position != 3 || after.Position != 1 || before.ID != after.ID {
		t.Fatalf("from %+v to %+v", before, after)
	}
	act(t, s, "a", queue.MoveBack, nil)
	act(t, s, "p", queue.MoveBack, queue.ErrNotWaiting)
	for i, want := range []string{"c", "b", "a"} {
		if got := waiting(t, s)[i]; got.Key.Principal != want || got.Position != i+1 || got.Why != queue.WhySlots {
			t.Fatalf("at %d waits %+v, want %s", i+1, got, want)
		}
	}
	if one, ok := s.Queue.Session(find(t, s, "p").ID); !ok || one.State != queue.ShownActive {
		t.Fatalf("the active one is %+v", one)
	}
	if _, _, err := s.Queue.Act(find(t, s, "p").ID+1, queue.Action{Kind: queue.KickIt}); !errors.Is(err, queue.ErrUnknownSession) {
		t.Fatalf("an id of nobody: %v", err)
	}
	g.Finish(0, size, true)
	c, _ := admit(t, s, queue.Admitted, ask("c", "1"))
	none(t, s, held)
	c.Finish(0, size, true) // who stands second and is here takes what the absent first one does not
	got(t, s, held, queue.Admitted).grant.Finish(0, size, true)
	b, _ := admit(t, s, queue.Admitted, ask("b", "1"))
	b.Finish(0, size, true)
	empty(t, s)
}

func operatorPauses(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	held := hold(s, ask("a", "1"), time.Minute, nil)
	if _, after := act(t, s, "a", queue.PauseIt, nil); !after.Stopped || after.Position != 0 || after.Why != queue.WhyOperator {
		t.Fatalf("paused it is %+v", after)
	}
	g.Finish(0, size, true)
	none(t, s, held)
	if !s.Queue.FreeSlot() || s.Queue.Overview().Stopped[queue.Release] != 1 {
		t.Fatal("a paused session holds a slot up, or is not counted")
	}
	act(t, s, "a", queue.ResumeIt, nil)
	a := got(t, s, held, queue.Admitted)
	act(t, s, "a", queue.PauseIt, queue.ErrNotPausable) // active, of a plain client
	act(t, s, "a", queue.ResumeIt, queue.ErrNotPaused)
	a.grant.Finish(0, size, true)
	empty(t, s)
}

func operatorKicks(t *testing.T, s Subject) {
	g, _ := admit(t, s, queue.Admitted, ask("p", "1"))
	held := hold(s, ask("a", "1"), time.Minute, nil)
	act(t, s, "a", queue.KickIt, nil)
	if v := got(t, s, held, queue.Kicked).verdict; !v.Held || v.CheckIn <= 0 {
		t.Fatalf("the held request is told %+v", v)
	}
	admit(t, s, queue.Queued, ask("b", "1"))
	act(t, s, "b", queue.KickIt, nil)
	admit(t, s, queue.Kicked, ask("b", "1"))
	s.Advance(2 * time.Second)
	admit(t, s, queue.Queued, ask("b", "1"))
	act(t, s, "p", queue.KickIt, nil) // active: its slot is free at once
	b, _ := admit(t, s, queue.Admitted, ask("b", "1"))
	g.Progress(7)
	g.Finish(0, size, true) // which is nobody's any more
	if snap := s.Queue.Snapshot(); snap.ActiveTotal() != 1 || snap.Counts.Kicked != 3 || snap.Counts.Ended[queue.ReasonCompleted] != 0 {
		t.Fatalf("%+v", snap.Counts)
	}
	b.Finish(0, size, true)
	empty(t, s)
}

func modesChange(t *testing.T, s Subject) {
	p := slots(1)()
	set := func(m queue.Mode) {
		t.Helper()
		p.Mode = m
		if err := s.Queue.Configure(p); err != nil {
			t.Fatal(err)
		}
		s.Settle()
	}
	set(queue.ModeQueueAll)
	held := hold(s, ask("a", "1"), time.Minute, nil)
	s.Advance(10 * time.Second)
	none(t, s, held)
	set(queue.ModeNormal)
	a := got(t, s, held, queue.Admitted)
	set(queue.ModeRejectNew)
	admit(t, s, queue.Rejected, ask("new", "1"))
	admit(t, s, queue.Admitted, ask("a", "1")) // its ranges go on
	set(queue.ModeDryRun)
	b, _ := admit(t, s, queue.Admitted, ask("b", "1"))
	held = hold(s, ask("c", "1"), time.Minute, nil)
	c := got(t, s, held, queue.Admitted)
	if counts := s.Queue.Snapshot().Counts; counts.WouldWait != 2 || counts.RejectedNew != 1 {
		t.Fatalf("%+v", counts)
	}
	set(queue.ModeNormal)
	held = hold(s, ask("d", "1"), time.Minute, nil)
	b.Finish(0, size, true)
	c.grant.Finish(0, size, true)
	none(t, s, held)
	set(queue.ModePassThrough)
	got(t, s, held, queue.PerRequest)
	a.grant.Finish(0, size, true)
	if snap := s.Queue.Snapshot(); snap.WaitingTotal() != 0 || snap.Held != 0 {
		t.Fatalf("%+v", snap)
	}
}

func gateShuts(t *testing.T, s Subject) {
	s.Queue.SetGate(false)
	held := hold(s, ask("a", "1"), time.Minute, nil)
	_, v := admit(t, s, queue.Queued, ask("b", "1"))
	if v.Position != 2 || v.EstimateKnown || v.CheckIn < 2*time.Second || v.CheckIn > 10*time.Second {
		t.Fatalf("told %+v", v)
	}
	if o := s.Queue.Overview(); o.GateOpen || o.EmptyKnown {
		t.Fatalf("%+v", o)
	}
	s.Advance(10 * time.Second)
	none(t, s, held)
	s.Queue.SetGate(true)
	got(t, s, held, queue.Admitted).grant.Finish(0, size, true)
}

package memory

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

func layer(principal string, member uint64, size int64) queue.Ask {
	a := ask(principal, "repository")
	a.Bundle, a.Member, a.SizeBytes, a.Protocol = true, member, size, false
	return a
}

// TestX5_Q19_AFreshCoreKnowsTheLayersThatRun: after a panic a bundle is one session again, of the layers whose responses run.
func TestX5_Q19_AFreshCoreKnowsTheLayersThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(1)
		p.BandBytesPerSecond = 1 << 20
		c := &crew{fixture: newFixture(t, p, 4)}
		var log bytes.Buffer
		c.recorder = replay.NewRecorder(&log)
		c.recorder.Policy(0, p)
		one, _ := c.Admit(layer("p", 1<<63, 10<<20))
		two, _ := c.Admit(layer("p", 2, 20<<20))
		c.breakCore()
		if panics(func() { c.Snapshot() }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		if snap := c.Snapshot(); snap.ActiveTotal() != 1 {
			t.Fatalf("%d active", snap.ActiveTotal())
		}
		c.Admit(ask("q", "1"))
		_, v := c.Admit(ask("q", "1"))
		if want := 32 * time.Second; v.Outcome != queue.Queued || v.StartsIn != want { // 30 MiB at 1 MiB/s, and the hold
			t.Errorf("who waits for it is told %v, want %v", v.StartsIn, want)
		}
		one.Finish(0, 10<<20, true)
		if g, v := c.Admit(layer("p", 1<<63, 10<<20)); g == nil { // the same layer, not a third one
			t.Errorf("a layer of it: %+v", v)
		} else {
			g.Finish(0, 10<<20, true)
		}
		two.Finish(0, 20<<20, true)
		c.advance(queue.BundleHold + queue.TickEvery)
		if len(c.ended) != 1 || c.ended[0].Reason != queue.ReasonCompleted {
			t.Errorf("ended %+v", c.ended)
		}
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

// TestX8_WhoIsGatheredStartsWhenItEnds, also when a panic made the core anew meanwhile.
func TestX8_WhoIsGatheredStartsWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{fixture: newFixture(t, policy(1), 4), waits: make(chan queue.Verdict, 1)}
		c.Grace(queue.GatherFor, time.Minute)
		if c.FreeSlot() {
			t.Error("a slot is free for newcomers")
		}
		a := ask("p", "1")
		a.Ticketed, a.Arrival = true, -time.Minute
		c.all.Go(func() {
			g, v := c.Hold(a, time.Hour, nil)
			if g != nil {
				g.Finish(0, a.SizeBytes, true)
			}
			c.waits <- v
		})
		synctest.Wait()
		c.breakCore()
		if panics(func() { c.Snapshot() }) == nil {
			t.Fatal("no panic: the test breaks nothing")
		}
		c.advance(queue.GatherFor - queue.TickEvery)
		if snap := c.Snapshot(); snap.WaitingTotal() != 1 || snap.Held != 1 {
			t.Fatalf("in the gathering %d wait, %d held", snap.WaitingTotal(), snap.Held)
		}
		c.advance(queue.TickEvery)
		c.all.Wait()
		if v := <-c.waits; v.Outcome != queue.Admitted || v.Arrival != -time.Minute {
			t.Errorf("%+v", v)
		}
		if !c.FreeSlot() {
			t.Error("after the gathering no slot is free")
		}
	})
}

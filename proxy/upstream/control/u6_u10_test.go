package control

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestU6_LateDoubledAndStrangeReportsChangeNothing(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	w.step(Tick{})
	before := fmt.Sprint(w.c.Snapshot())
	w.step(WriterLost{Writer: 999, Why: Broken})
	w.step(DialDone{Writer: 1})
	w.step(DialDone{Writer: 999, Err: errRefused})
	w.step(Load{Endpoints: []EndpointLoad{{Endpoint: 77, Outstanding: 3}}, Free: []WriterID{1, 999}, Moved: []WriterID{1, 999}})
	w.step(Observed{Endpoint: 77, Failures: 9})
	w.step(Observed{Endpoint: 1})
	w.step(ProbeDone{Endpoint: 77, Err: errRefused})
	w.step(Demand{Group: 9, Want: 4})
	w.step(Demand{Group: AnyGroup, Want: -4})
	w.step(Resolved{Group: -7})
	if after := fmt.Sprint(w.c.Snapshot()); after != before {
		t.Errorf("state changed:\n%s\n%s", before, after)
	}
	// A writer that nobody knows any more and that connects all the same must not stay open.
	if out := w.c.Step(w.now, DialDone{Writer: 999}); len(out) != 1 || out[0].Do != DoClose || out[0].Writer != 999 {
		t.Errorf("an unknown connection is answered by %+v, want its Close", out)
	}
	w.lose(w.conns[1], Broken)
	w.run(time.Millisecond)
	lost := w.c.Snapshot().Totals.Lost
	w.step(WriterLost{Writer: 1, Why: Broken})
	if w.c.Snapshot().Totals.Lost != lost {
		t.Error("a loss told twice counts twice")
	}
}

func TestU7_GateClosesWithoutCoverageAndKeepsTheWaiting(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	w.kill(at(1))
	if ok, why := w.c.Covered(); !ok {
		t.Fatalf("one of two is enough, got %v", why)
	}
	w.kill(at(2))
	w.until(time.Second, "the gate closes", func() bool { ok, why := w.c.Covered(); return !ok && why == CauseUnreachable })
	for range 200 {
		w.ask(time.Second)
	}
	w.run(time.Minute)
	if len(w.waiting) != 200 {
		t.Fatalf("%d of 200 wait", len(w.waiting))
	}
	w.revive(at(2))
	w.until(4*time.Second, "the gate opens", func() bool { ok, _ := w.c.Covered(); return ok })
	w.until(time.Minute, "all are served", func() bool { return w.done == 200 })
}

func TestU7_StoppedSingleOriginGivesNoCoverageAndComesBack(t *testing.T) {
	w := start(t, Default(2), at(1))
	w.origins[at(1)].stopped = true // accepts connections, answers nothing
	d := w.until(90*time.Second, "probes find it silent", func() bool { ok, why := w.c.Covered(); return !ok && why == CauseFailing })
	if len(w.c.View().Choices) != 1 {
		t.Error("the last endpoint must stay for choice: running sessions may try")
	}
	w.run(5 * time.Minute)
	w.origins[at(1)].stopped = false
	back := w.until(10*time.Second, "coverage", func() bool { ok, _ := w.c.Covered(); return ok })
	t.Logf("seen after %v, back after %v", d, back)
}

func fallbackWorld(t *testing.T, policy FallbackPolicy) *world {
	t.Helper()
	set := static(2)
	set.Fallback = policy
	w := newWorld(t, 1, set, Group{Name: "first"}, Group{Name: "second", Fallback: true})
	w.name(0, at(1), at(2))
	w.name(1, at(9))
	w.step(Tick{})
	w.until(time.Minute, "settled", w.settled)
	return w
}

func TestU8_Policies(t *testing.T) {
	w := fallbackWorld(t, FallbackOff)
	if w.endpoint(at(9)).ID != 0 || w.group(1).Why != CauseOff {
		t.Error("off: the second origin must not be touched")
	}
	set := w.c.set
	set.Fallback = FallbackAlways
	w.step(Configure{set})
	w.until(time.Second, "the switch", func() bool { v := w.c.View(); return v.Fallback && len(v.Choices) == 1 && v.Choices[0].Addr == at(9) })
	set.Fallback = FallbackOff
	w.step(Configure{set})
	if v := w.c.View(); v.Fallback || len(v.Choices) != 2 || !v.Covered {
		t.Errorf("switched off: %+v", v)
	}
	w.until(time.Second, "its connections go", func() bool { return w.endpoint(at(9)).ID == 0 })
}

func TestU8_OnOutageInAndOut(t *testing.T) {
	w := fallbackWorld(t, FallbackOnOutage)
	if w.endpoint(at(9)).Active != 2 || len(w.c.View().Choices) != 2 {
		t.Fatalf("want the second origin ready and not for choice\n%s", w.dump())
	}
	w.run(time.Minute)
	w.kill(at(1))
	w.kill(at(2))
	begin := w.now
	for range 50 {
		w.ask(time.Second)
	}
	in := w.until(time.Minute, "in", func() bool { return w.c.View().Fallback })
	if in < 9*time.Second || in > 11*time.Second {
		t.Errorf("in after %v, want FallbackAfter 10s", in)
	}
	w.until(time.Minute, "those that waited are served", func() bool { return w.done == 50 })
	w.run(time.Minute)
	w.revive(at(1))
	w.until(5*time.Second, "the first is back", func() bool { return w.group(0).Why == CauseCovered })
	out := w.until(time.Minute, "out", func() bool { return !w.c.View().Fallback })
	if out < 28*time.Second || out > 32*time.Second {
		t.Errorf("out after %v of coverage, want FallbackBack 30s", out)
	}
	s := w.c.Snapshot()
	if s.Totals.FallbackIn != 1 || s.Totals.FallbackOut != 1 {
		t.Errorf("counted %d in, %d out", s.Totals.FallbackIn, s.Totals.FallbackOut)
	}
	t.Logf("outage at %v: in after %v, out after %v", begin, in, out)
}

// flaps counts switches while the first origin is up and down in turn.
func flaps(t *testing.T, set func(*Settings), up, down, total time.Duration) (switches int64, share float64) {
	w := fallbackWorld(t, FallbackOnOutage)
	s := w.c.set
	set(&s)
	w.step(Configure{s})
	begin := w.now
	on := time.Duration(0)
	for w.now < begin+total {
		for _, span := range []struct {
			up bool
			d  time.Duration
		}{{false, down}, {true, up}} {
			for _, a := range []int{1, 2} {
				if span.up {
					w.revive(at(a))
				} else {
					w.kill(at(a))
				}
			}
			for end := w.now + span.d; w.now < end; {
				w.run(100 * time.Millisecond)
				if w.c.View().Fallback {
					on += 100 * time.Millisecond
				}
			}
		}
	}
	totals := w.c.Snapshot().Totals
	return totals.FallbackIn + totals.FallbackOut, float64(on) / float64(w.now-begin)
}

func TestU8_NeitherFlapsNorSticks(t *testing.T) {
	same := func(*Settings) {}
	switches, share := flaps(t, same, 5*time.Second, 3*time.Second, time.Hour)
	t.Logf("5 s up, 3 s down for an hour: %d switches, on %.0f %% of the time", switches, share*100)
	if switches > 2*3600/40+1 {
		t.Errorf("%d switches in an hour, want at most one pair in 40 s", switches)
	}
	switches, share = flaps(t, same, 2*time.Second, 9*time.Second, 20*time.Minute)
	if switches != 1 || share < 0.9 {
		t.Errorf("mostly down: %d switches, on %.0f %%: must not stick to the first", switches, share*100)
	}
	switches, share = flaps(t, same, 100*time.Second, 4*time.Second, 30*time.Minute)
	if switches != 0 {
		t.Errorf("short outages: %d switches, on %.0f %%", switches, share*100)
	}
	// Negative control: without hysteresis the same origin makes the count explode.
	switches, _ = flaps(t, func(s *Settings) { s.FallbackAfter, s.FallbackBack = time.Millisecond, time.Millisecond }, 5*time.Second, 3*time.Second, time.Hour)
	if switches < 500 {
		t.Errorf("%d switches without hysteresis: the count shows no flapping", switches)
	}
}

func TestU8_FallbackThatFailsItselfIsLeft(t *testing.T) {
	w := fallbackWorld(t, FallbackOnOutage)
	w.kill(at(1))
	w.kill(at(2))
	w.until(time.Minute, "in", func() bool { return w.c.View().Fallback })
	w.kill(at(9))
	w.revive(at(1))
	d := w.until(10*time.Second, "the first serves again", func() bool { v := w.c.View(); return !v.Fallback && v.Covered })
	t.Logf("after %v", d)
}

func TestU10_EveryNormalEndIsNoFailure(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	for _, why := range []Loss{IdleClosed, Unsolicited, Spent, Aged, Cancelled} {
		for range 10 {
			i := slices.IndexFunc(w.sorted(), func(n *conn) bool { return n.addr == at(1) })
			if i < 0 {
				break
			}
			w.lose(w.sorted()[i], why)
			w.run(40 * time.Second)
		}
	}
	if e := w.endpoint(at(1)); e.Health != Healthy || e.Failures != 0 || e.Active != 2 || w.c.Snapshot().Totals.Quarantined+w.c.Snapshot().Totals.Degraded > 0 {
		t.Errorf("%+v", e)
	}
}

func TestHealth_FailingEndpointIsQuarantinedAndAlwaysRecovers(t *testing.T) {
	w := start(t, static(2), at(1), at(2), at(3))
	w.origins[at(1)].fails = 1
	for range 40 {
		w.ask(20 * time.Millisecond)
		w.run(100 * time.Millisecond)
	}
	e := w.endpoint(at(1))
	if e.Health != Quarantined || e.Active > 0 || len(w.c.View().Choices) != 2 {
		t.Fatalf("not quarantined\n%s", w.dump())
	}
	if w.done != w.number {
		t.Errorf("%d of %d exchanges ended on the others", w.done, w.number)
	}
	w.run(10 * time.Minute)
	if w.endpoint(at(1)).Health != Quarantined {
		t.Fatal("it left although probes fail")
	}
	w.revive(at(1))
	d := w.until(w.c.set.QuarantineMax+time.Second, "it recovers", func() bool { return w.endpoint(at(1)).Health == Healthy && w.endpoint(at(1)).Active == 2 })
	first := w.endpoint(at(1)).Weight
	var seen []uint32
	w.until(40*time.Second, "full weight", func() bool {
		n := w.endpoint(at(1)).Weight
		if len(seen) == 0 || seen[len(seen)-1] != n {
			seen = append(seen, n)
		}
		return n == 100
	})
	if first != 10 || !slices.Equal(seen, []uint32{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}) {
		t.Errorf("weights %v, want ten steps from 10", seen)
	}
	t.Logf("recovered after %v, weights %v", d, seen)
}

func TestHealth_TheLastOfAGroupStaysUsable(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	w.origins[at(1)].fails, w.origins[at(2)].fails = 1, 1
	for range 60 {
		w.ask(20 * time.Millisecond)
		w.run(200 * time.Millisecond)
		usable := 0
		for _, e := range w.group(0).Endpoints {
			if e.Health != Quarantined {
				usable++
			}
		}
		if usable == 0 {
			t.Fatalf("all are quarantined\n%s", w.dump())
		}
	}
	w.revive(at(1))
	w.revive(at(2))
	w.until(3*time.Minute, "all end", func() bool { return w.done == w.number && w.settled() })
}

func TestHealth_ServerErrorsDegradeOnlyAnOutlier(t *testing.T) {
	w := start(t, static(1), at(1), at(2), at(3))
	id := map[int]EndpointID{}
	for i := 1; i <= 3; i++ {
		id[i] = w.endpoint(at(i)).ID
	}
	for i := 1; i <= 3; i++ {
		w.step(Observed{Endpoint: id[i], Successes: 100, ServerErrors: 90})
	}
	if w.c.Snapshot().Totals.Degraded != 0 {
		t.Error("errors that all give are not an endpoint's")
	}
	w.run(time.Minute)
	w.step(Observed{Endpoint: id[2], Successes: 100})
	w.step(Observed{Endpoint: id[3], Successes: 100})
	w.step(Observed{Endpoint: id[1], Successes: 100, ServerErrors: 90})
	if e := w.endpoint(at(1)); e.Health != Degraded || e.Weight != 25 {
		t.Errorf("%+v, want degraded with a quarter", e)
	}
	w.run(5 * time.Second)
	if w.endpoint(at(1)).Health != Degraded {
		t.Error("it must stay so for DegradeHold")
	}
	w.until(time.Minute, "it is healthy again", func() bool { return w.endpoint(at(1)).Health == Healthy })
}

func TestHealth_SilentEndpointsAreProbedLightly(t *testing.T) {
	w := start(t, Default(2), at(1), at(2))
	n := w.commands[DoProbe]
	w.run(10 * time.Minute)
	if d := w.commands[DoProbe] - n; d < 70 || d > 81 {
		t.Errorf("%d probes of two silent endpoints in ten minutes, want one in 15 s each", d)
	}
	n = w.commands[DoProbe]
	for range 600 {
		w.ask(3 * time.Second)
		w.ask(3 * time.Second)
		w.run(time.Second)
	}
	if d := w.commands[DoProbe] - n; d > 4 {
		t.Errorf("%d probes although traffic tells", d)
	}
}

func TestL1_DrainServesRunningSessionsAndStopCloses(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	for range 4 {
		w.ask(time.Minute)
	}
	w.run(time.Second)
	w.step(Drain{})
	if ok, why := w.c.Covered(); ok || why != CauseDraining {
		t.Errorf("covered %v %v while draining", ok, why)
	}
	n := w.commands
	w.ask(time.Second) // the next range of a running session
	w.until(5*time.Second, "it is served", func() bool { return w.done == 1 })
	w.run(10 * time.Minute)
	if w.done != 5 || w.commands[DoResolve] != n[DoResolve] || w.commands[DoProbe] != n[DoProbe] || w.commands[DoDial] != n[DoDial]+1 {
		t.Errorf("done %d; commands %v, before the drain %v", w.done, w.commands, n)
	}
	w.ask(time.Second)
	w.run(5 * time.Second)
	n = w.commands
	w.stopped = true
	open := len(w.conns)
	n = w.commands
	w.step(Stop{})
	if d := w.commands[DoClose] - n[DoClose]; d != open || len(w.conns) != 0 {
		t.Errorf("%d of %d connections closed", d, open)
	}
	if v := w.c.View(); len(v.Choices) > 0 || v.Covered {
		t.Errorf("a stopped pool offers %+v", v)
	}
	if _, ticks := w.c.Next(); ticks {
		t.Error("a stopped pool asks for ticks")
	}
	w.step(Tick{})
	w.step(Demand{Group: AnyGroup, Want: 5})
	if w.commands[DoDial] != n[DoDial] {
		t.Error("a stopped pool dials")
	}
}

func TestQuietPoolStandsStill(t *testing.T) {
	w := start(t, Default(2), at(1), at(2), v6(3))
	n := w.commands
	revision := w.c.View().Revision
	w.every(time.Second, func() { w.step(Tick{}) })
	w.run(time.Hour)
	n[DoResolve], n[DoProbe] = w.commands[DoResolve], w.commands[DoProbe]
	if w.commands != n || w.c.View().Revision != revision {
		t.Errorf("commands %v, want %v; revision %d, want %d", w.commands, n, w.c.View().Revision, revision)
	}
}

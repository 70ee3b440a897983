package control

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// static returns settings with a fixed floor and no reserve, so that counts are exact.
func static(floor int) Settings {
	set := Default(2)
	set.FloorMode, set.FloorStatic, set.Shadow = Static, floor, 0
	return set
}

func TestU2_WriterGoesWarmActiveDrainingRemoved(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	x := w.ask(10 * time.Minute)
	n := x.conn
	other := at(1)
	if n.addr == other {
		other = at(2)
	}
	w.run(time.Second)
	w.name(0, other)
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal})
	w.until(5*time.Second, "the old endpoint leaves the choice", func() bool { return len(w.c.View().Choices) == 1 })
	w.until(time.Second, "unused writers of it are closed at once, the bound one drains", func() bool {
		e := w.endpoint(n.addr)
		return e.Draining == 1 && e.Active == 0
	})
	w.run(9 * time.Minute) // far beyond DrainTTL: bytes move
	if w.conns[n.id] == nil || n.bound == nil {
		t.Fatalf("a draining writer with a moving exchange was closed\n%s", w.dump())
	}
	w.until(3*time.Minute, "the exchange ends and the writer is removed", func() bool { return w.endpoint(n.addr).ID == 0 })
	if w.commands[DoRetire] != 1 {
		t.Errorf("%d generations retired, want 1", w.commands[DoRetire])
	}
}

func TestU2_DrainTTLEndsAnExchangeThatStandsStill(t *testing.T) {
	w := start(t, static(1), at(1), at(2))
	for w.endpoint(at(1)).Outstanding == 0 {
		w.ask(time.Hour)
		w.run(time.Second)
	}
	w.name(0, at(2))
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal})
	w.until(5*time.Second, "it drains", func() bool { return w.endpoint(at(1)).Draining > 0 })
	w.origins[at(1)].stopped = true
	begin := w.now
	w.until(2*time.Minute, "it is removed", func() bool { return w.endpoint(at(1)).ID == 0 })
	if d := w.now - begin; d < 89*time.Second || d > 92*time.Second {
		t.Errorf("closed after %v without movement, want DrainTTL 90s", d)
	}
	if w.c.Snapshot().Totals.DrainExpired == 0 {
		t.Error("the expiry is not counted")
	}
}

func TestU3_BootstrapOpensAtMinimalCoverageAndSaturates(t *testing.T) {
	w := newWorld(t, 1, static(4))
	w.name(0, at(1), at(2), at(3))
	w.origins[at(3)].hole = true
	if v := w.c.View(); v.Covered || v.Why != CauseUnresolved {
		t.Fatalf("before anything was resolved: %+v", v)
	}
	w.step(Tick{})
	open := w.until(time.Second, "coverage", func() bool { ok, _ := w.c.Covered(); return ok })
	if n := w.c.Snapshot().Active; n > 2 {
		t.Errorf("the gate opened with %d writers only, want minimal coverage", n)
	}
	full := w.until(time.Second, "saturation of the reachable endpoints", func() bool { return w.endpoint(at(1)).Active >= 4 && w.endpoint(at(2)).Active >= 4 })
	if open > 20*time.Millisecond || full > 200*time.Millisecond {
		t.Errorf("open after %v, saturated %v later, want the hanging endpoint to block neither", open, full)
	}
}

// activation returns the commands of the step that activated the last generation.
func activation(t *testing.T, w *world) []Command {
	t.Helper()
	for i := len(w.log) - 1; i >= 0; i-- {
		if w.log[i].Do == DoActivate {
			return w.log[i:]
		}
	}
	t.Fatal("nothing was activated")
	return nil
}

func TestU3_ReplacedSetUnderLoadLosesNothingAndIsNeverPartial(t *testing.T) {
	w := start(t, Default(2), at(1), at(2), at(3))
	flow := true
	var send func()
	send = func() {
		if flow {
			w.ask(20 * time.Millisecond)
			w.in(time.Millisecond, send)
		}
	}
	send()
	w.run(5 * time.Second)
	before := 0
	for i := range 3 {
		before += w.endpoint(at(i + 1)).Target
	}
	w.latest = 0
	w.name(0, at(11), at(12), at(13))
	warm := 0
	w.step(Reinit{Group: AnyGroup, Reason: ReasonAddresses})
	w.until(5*time.Second, "the new set is active", func() bool {
		s := w.c.Snapshot()
		if w.c.View().Choices[0].Addr == at(1) {
			warm = max(warm, s.Warm)
		}
		return w.commands[DoActivate] == 2
	})
	for _, choice := range w.c.View().Choices {
		if choice.Addr.Compare(at(10)) < 0 {
			t.Errorf("%v is still for choice", choice.Addr)
		}
	}
	promoted, demoted := 0, 0
	for _, cmd := range activation(t, w) {
		switch cmd.Do {
		case DoPromote:
			promoted++
		case DoDemote:
			demoted++
		}
		if cmd.Do == DoDial {
			break
		}
	}
	if promoted < before*80/100 || demoted < before/2 {
		t.Errorf("activation with %d writers for a floor of %d, %d demoted: want 80 %% at once", promoted, before, demoted)
	}
	w.run(5 * time.Second)
	flow = false
	w.until(10*time.Second, "all end", func() bool { return w.bound == 0 && len(w.waiting) == 0 })
	if w.done != w.number || w.breaks+w.cut > 0 {
		t.Errorf("%d of %d exchanges ended, %d broke", w.done, w.number, w.breaks+w.cut)
	}
	if w.gates != 1 {
		t.Errorf("the gate was checked %d times", w.gates)
	}
	if w.latest > 2*w.rtt+time.Millisecond {
		t.Errorf("an exchange waited %v for a writer, want at most a dial", w.latest)
	}
	w.until(time.Minute, "the old set retires", func() bool { return w.commands[DoRetire] == 1 })
	t.Logf("floor %d, warmed %d before the switch, longest wait %v of %d exchanges", before, warm, w.latest, w.number)
}

func TestU3_GateWithOneUnreachableIsFilledByItsSiblings(t *testing.T) {
	w := start(t, static(4), at(1), at(2), at(3))
	w.name(0, at(11), at(12), at(13))
	w.origins[at(13)].up = false
	w.step(Reinit{Group: AnyGroup, Reason: ReasonAddresses})
	begin := w.now
	w.until(5*time.Second, "the warm-up begins", func() bool { return len(w.group(0).Generations) == 2 })
	w.run(140 * time.Millisecond)
	g := w.group(0)
	if len(g.Generations) != 2 || g.Generations[1].Have < 8 || g.Generations[1].Need != 10 || g.Generation != g.Generations[0].ID {
		t.Fatalf("want 8 or 9 of 10 writers ready and the old set active: %+v", g.Generations)
	}
	w.until(5*time.Second, "the new set is active", func() bool { return w.commands[DoActivate] == 2 })
	if a, b := w.endpoint(at(11)), w.endpoint(at(12)); a.Active+b.Active < 10 {
		t.Errorf("activated with %d writers, gate 10", a.Active+b.Active)
	}
	t.Logf("activated after %v", w.now-begin)
	w.revive(at(13))
	w.until(2*time.Minute, "it comes back, and the writers kept for it go", func() bool {
		return w.endpoint(at(13)).Active == 4 && w.endpoint(at(11)).Active == 4 && w.endpoint(at(12)).Active == 4
	})
}

func TestU3_UnreachableSetKeepsTheOldOneVisiblyAndIsRetried(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	w.name(0, at(11), at(12))
	w.origins[at(11)].up, w.origins[at(12)].up = false, false
	w.run(3 * time.Minute)
	g := w.group(0)
	if len(w.c.View().Choices) != 2 || w.c.View().Choices[0].Addr != at(1) || w.commands[DoActivate] != 1 {
		t.Fatalf("the old set is gone\n%s", w.dump())
	}
	if g.Problem != "gate: 0 of 4 writers ready" || g.Tries < 2 {
		t.Errorf("problem %q after %d tries", g.Problem, g.Tries)
	}
	for i, cmd := range w.log {
		if cmd.Do == DoPromote && cmd.Addr == at(11) {
			t.Errorf("command %d promotes of a set that did not pass", i)
		}
	}
	w.run(time.Hour)
	if s := w.c.Snapshot(); s.Totals.GivenUp != 0 || s.Totals.Abandoned < 8 {
		t.Errorf("changed addresses are tried for ever: given up %d after %d tries", s.Totals.GivenUp, s.Totals.Abandoned)
	}
	w.revive(at(11))
	w.revive(at(12))
	w.until(6*time.Minute, "the next try passes", func() bool { return w.commands[DoActivate] == 2 })
}

func TestU3_DeadOldSetIsReplacedAtMinimalCoverage(t *testing.T) {
	w := start(t, static(4), at(1), at(2))
	w.name(0, at(11), at(12), at(13))
	w.origins[at(12)].hole, w.origins[at(13)].hole = true, true
	w.kill(at(1))
	w.kill(at(2))
	d := w.until(10*time.Second, "the new set is active", func() bool { return w.commands[DoActivate] == 2 })
	if n := w.endpoint(at(11)).Active; n > 4 {
		t.Errorf("activated with %d writers, want minimal coverage at once", n)
	}
	w.until(time.Second, "coverage", func() bool { ok, _ := w.c.Covered(); return ok })
	t.Logf("after %v", d) // the next resolution in an outage comes within ResolveRetry
}

func TestU3_BurstIsOneAndOneAtATime(t *testing.T) {
	w := newWorld(t, 1, static(2), Group{Name: "a"}, Group{Name: "b"})
	w.name(0, at(1), at(2))
	w.name(1, at(3), at(4))
	w.step(Tick{})
	w.until(time.Minute, "settled", w.settled)
	begun := w.c.Snapshot().Totals.Begun
	for range 20 {
		w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal, Fresh: true})
		w.run(4 * time.Millisecond)
	}
	most := 0
	w.until(time.Minute, "both groups renewed", func() bool {
		warming := 0
		for _, g := range w.c.Snapshot().Groups {
			for _, gen := range g.Generations {
				if gen.State == Warmup {
					warming++
				}
			}
		}
		most = max(most, warming)
		return w.commands[DoActivate] == 4
	})
	w.run(time.Minute)
	if n := w.c.Snapshot().Totals.Begun - begun; n != 2 || most > 1 {
		t.Errorf("20 signals in 80 ms made %d generations, %d at once; want one for each group, one at a time", n, most)
	}
}

func TestU3_UnchangedEndpointsKeepTheirConnections(t *testing.T) {
	w := start(t, static(2), at(1), at(2))
	kept := slices.Clone(w.c.View().Choices[0].Writers)
	dials := w.commands[DoDial]
	w.name(0, at(1), at(2), at(3))
	w.step(Reinit{Group: AnyGroup, Reason: ReasonAddresses})
	w.until(5*time.Second, "grown", func() bool { return w.commands[DoActivate] == 2 && w.settled() })
	if n := w.commands[DoDial] - dials; n != 2 {
		t.Errorf("growing by one endpoint dialled %d times, want 2", n)
	}
	w.name(0, at(1))
	w.step(Reinit{Group: AnyGroup, Reason: ReasonAddresses})
	w.until(5*time.Second, "shrunk", func() bool { return w.commands[DoActivate] == 3 && w.settled() })
	if got := w.c.View().Choices; len(got) != 1 || !slices.Equal(got[0].Writers[:2], kept) {
		t.Errorf("after shrinking %+v, want writers %v kept", got, kept)
	}
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSetting, Fresh: true})
	w.until(5*time.Second, "fresh", func() bool { return w.commands[DoActivate] == 4 && w.settled() })
	for _, id := range w.c.View().Choices[0].Writers {
		if slices.Contains(kept, id) {
			t.Errorf("writer %d was carried over a fresh reinit", id)
		}
	}
}

func TestU3_SignalThatCannotPassIsGivenUp(t *testing.T) {
	set := static(2)
	set.RetryTries = 2
	w := start(t, set, at(1), at(2))
	w.origins[at(1)].up, w.origins[at(2)].up = false, false // those that stand stay
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSetting, Fresh: true})
	w.run(5 * time.Minute)
	s := w.c.Snapshot()
	if s.Totals.GivenUp != 1 || s.Totals.Abandoned != 2 || s.Groups[0].Problem == "" || s.Groups[0].Pending {
		t.Errorf("given up %d after %d tries, problem %q, pending %v", s.Totals.GivenUp, s.Totals.Abandoned, s.Groups[0].Problem, s.Groups[0].Pending)
	}
	if !s.Covered || s.Active != 4 {
		t.Errorf("the old set must go on\n%s", w.dump())
	}
}

func TestU3_BadAnswersKeepTheLastGoodSetForABoundedTime(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer Answer
		keep   time.Duration
	}{{"negative", Negative, 5 * time.Minute}, {"empty", Addresses, 5 * time.Minute}, {"unanswered", Unanswered, time.Hour}} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t, static(1), at(1), at(2))
			w.ask(2 * time.Hour)
			w.badName(0, test.answer)
			w.run(test.keep - time.Second)
			if ok, _ := w.c.Covered(); !ok {
				t.Fatal("the last good set went too early")
			}
			w.until(35*time.Second, "outage", func() bool { ok, why := w.c.Covered(); return !ok && why == CauseExpired })
			if w.bound != 1 {
				t.Error("the running exchange was cut")
			}
			w.name(0, at(1))
			w.until(10*time.Second, "recovery", func() bool { ok, _ := w.c.Covered(); return ok })
		})
	}
}

func TestU3_UnreachableFamilyDoesNotBlock(t *testing.T) {
	w := newWorld(t, 1, static(2))
	var addrs []netip.AddrPort
	for i := range 10 {
		addrs = append(addrs, at(i+1), v6(i+1))
	}
	w.name(0, addrs...)
	for i := range 10 {
		w.origins[v6(i+1)].hole = true
	}
	w.step(Tick{})
	d := w.until(time.Second, "the reachable family saturates", func() bool {
		for i := range 10 {
			if w.endpoint(at(i+1)).Active < 2 {
				return false
			}
		}
		return true
	})
	t.Logf("saturated after %v", d)
	if first := w.log[1]; first.Do != DoDial || first.Addr.Addr().Is4() {
		t.Errorf("first dial %+v, want IPv6 first", first)
	}
}

func TestU3_AddressesAreBoundedAndCleaned(t *testing.T) {
	set := static(1)
	set.MaxEndpoints = 3
	w := newWorld(t, 1, set)
	mapped := netip.AddrPortFrom(netip.AddrFrom16(at(1).Addr().As16()), 80)
	w.name(0, at(1), mapped, at(2), netip.AddrPort{}, at(3), at(4))
	w.step(Tick{})
	w.until(time.Second, "settled", w.settled)
	if n := len(w.c.View().Choices); n != 3 {
		t.Errorf("%d endpoints, want 3", n)
	}
	w.name(0, at(0), at(2), at(3), at(4))
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal})
	w.run(5 * time.Second)
	if w.endpoint(at(2)).Active == 0 || w.endpoint(at(3)).Active == 0 {
		t.Errorf("known addresses must go first\n%s", w.dump())
	}
}

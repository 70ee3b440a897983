package control

import (
	"slices"
	"testing"
	"time"
)

func TestU4_FloorSinksAfterIdleRecoversAtOnceAndHolds(t *testing.T) {
	set := Default(2)
	set.Shadow = 0
	w := start(t, set, at(1))
	burst := func() {
		for range 20 {
			w.ask(2 * time.Second)
		}
	}
	burst()
	w.run(3 * time.Second)
	high := w.endpoint(at(1)).Target
	if high < 20 || high > 26 {
		t.Fatalf("target %d after 20 exchanges at once, want 25", high)
	}
	end := w.now
	w.until(5*time.Minute, "it sinks", func() bool { return w.endpoint(at(1)).Target == 1 })
	if d := w.now - end; d < set.FloorHold-5*time.Second || d > set.FloorHold+5*time.Second {
		t.Errorf("sank after %v, want the hold after a demand, %v", d, set.FloorHold)
	}
	w.until(2*time.Second, "writers follow", func() bool { return w.endpoint(at(1)).Active == 1 })
	if w.cut+w.breaks > 0 {
		t.Error("an exchange was dropped")
	}
	w.run(10 * time.Minute)
	w.latest = 0
	burst()
	w.until(time.Second, "the burst is served", func() bool { return len(w.waiting) == 0 })
	if w.latest > w.rtt+time.Millisecond {
		t.Errorf("after the sink an exchange waited %v, want one dial", w.latest)
	}
	if n := w.endpoint(at(1)).Target; n < high {
		t.Errorf("target %d, want the remembered %d at once", n, high)
	}
	w.run(170 * time.Second)
	if n := w.endpoint(at(1)).Target; n < high {
		t.Errorf("target %d within the hold, want %d", n, high)
	}
}

func TestU4_IdleWithoutDemandSinksAfter90Seconds(t *testing.T) {
	w := start(t, Default(2), at(1), at(2))
	w.ask(time.Second) // served by what stands: no demand, no hold
	w.run(2 * time.Second)
	high := w.endpoint(at(1)).Target + w.endpoint(at(2)).Target
	if high != 3 {
		t.Fatalf("targets sum to %d after one exchange, want 3", high)
	}
	d := w.until(2*time.Minute, "it sinks", func() bool { return w.endpoint(at(1)).Target+w.endpoint(at(2)).Target == 2 })
	if d < 85*time.Second || d > 92*time.Second {
		t.Errorf("sank after %v, want 90s", d)
	}
}

func TestU4_StaticFloorStays(t *testing.T) {
	w := start(t, static(5), at(1), at(2))
	for range 30 {
		w.ask(time.Second)
	}
	w.run(20 * time.Minute)
	if a, b := w.endpoint(at(1)), w.endpoint(at(2)); a.Active != 5 || b.Active != 5 {
		t.Errorf("%d and %d writers, want 5 each", a.Active, b.Active)
	}
}

func TestU4_CeilingsOfCoresAndConnections(t *testing.T) {
	set := static(50)
	set.FloorPerCore, set.Cores = 8, 2
	w := start(t, set, at(1), at(2), at(3))
	if n := w.c.Snapshot().Active; n != 16 {
		t.Errorf("%d writers, want the ceiling of 2 cores 16", n)
	}
	set.FloorPerCore, set.MaxConnections = 1000, 20
	w.step(Configure{set})
	for range 100 {
		w.ask(time.Second)
	}
	most := 0
	w.until(time.Minute, "all end", func() bool {
		most = max(most, w.c.Snapshot().Open)
		return w.done == 100
	})
	if most != 20 {
		t.Errorf("%d connections at most, want all 20 used and no more", most)
	}
	w.until(10*time.Minute, "the floor is half of the connections", func() bool { return w.c.Snapshot().Active == 10 })
}

func TestU4_LoweredCeilingDropsNoBoundExchange(t *testing.T) {
	w := start(t, static(10), at(1), at(2))
	for range 20 {
		w.ask(5 * time.Minute)
	}
	w.run(time.Second)
	set := static(1)
	set.MaxConnections = 4
	w.step(Configure{set})
	w.until(10*time.Minute, "they end", func() bool { return w.done == 20 })
	w.until(10*time.Minute, "the pool fits", func() bool { return w.c.Snapshot().Open <= 4 })
	set.GatePercent = 0
	w.step(Configure{set})
	if w.c.Snapshot().Totals.Refused != 1 || w.c.set.GatePercent != 80 {
		t.Error("a record that breaks a rule must change nothing")
	}
}

func TestU5_SameEndpointFirstThenTheGroup(t *testing.T) {
	w := start(t, static(3), at(1), at(2))
	n := len(w.log)
	victim := w.c.View().Choices[0].Writers[0]
	w.lose(w.conns[victim], Broken)
	w.run(time.Second)
	if i := slices.IndexFunc(w.log[n:], func(c Command) bool { return c.Do == DoDial }); i < 0 || w.log[n+i].Addr != at(1) {
		t.Errorf("want a dial to the same endpoint, got %+v", w.log[n:])
	}
	w.kill(at(1))
	d := w.until(5*time.Second, "the group takes over what it cannot refill", func() bool { return w.endpoint(at(2)).Active == 6 })
	t.Logf("after %v", d)
}

func TestU5_FastTriesThenBackoffWithJitter(t *testing.T) {
	set := static(1)
	set.Outage, set.QuarantineAfter = false, 0
	w := start(t, set, at(1))
	begin := w.now
	w.kill(at(1))
	w.run(10 * time.Minute)
	var gaps []time.Duration
	last := begin
	for _, at := range w.dialTimes {
		if at >= begin {
			gaps = append(gaps, at-last)
			last = at
		}
	}
	if gaps[0] > time.Millisecond {
		t.Errorf("first try after %v, want at once", gaps[0])
	}
	longest := time.Duration(0)
	for i, gap := range gaps[1:] {
		top := set.FastDelay
		if i >= set.FastTries {
			top = doubled(set.BackoffBase, set.BackoffMax, i-set.FastTries)
		}
		if gap > top+w.rtt+time.Millisecond || gap < set.FastDelay/2 {
			t.Errorf("pause %d is %v, want %v..%v", i, gap, set.FastDelay/2, top)
		}
		longest = max(longest, gap)
	}
	if longest < 15*time.Second || len(gaps) > 80 {
		t.Errorf("%d dials in ten minutes, longest pause %v", len(gaps), longest)
	}
	same := 0
	for i := 12; i < len(gaps)-1; i++ {
		if gaps[i] == gaps[i+1] {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d pauses are alike: no jitter", same)
	}
	t.Logf("%d dials in ten minutes, longest pause %v", len(gaps), longest)
}

func TestU5_OutageModeComesBackWithin3Seconds(t *testing.T) {
	for name, addrs := range map[string]int{"single endpoint": 1, "all of three": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, static(1))
			w.name(0, at(1), at(2), at(3))
			if addrs == 1 {
				w.name(0, at(1))
			}
			w.step(Tick{})
			w.until(time.Minute, "settled", w.settled)
			for i := range addrs {
				w.kill(at(i + 1))
			}
			begin := w.now
			w.run(10 * time.Minute)
			if n := w.dialsIn(begin, w.now); n > addrs*10*60*3/2 || n < addrs*10*60/4 {
				t.Errorf("%d dials in ten minutes of outage", n)
			}
			w.revive(at(1))
			d := w.until(4*time.Second, "coverage", func() bool { ok, _ := w.c.Covered(); return ok })
			t.Logf("%d dials in the outage, back after %v", w.dialsIn(begin, w.now), d)
		})
	}
}

func TestU5_DialsAtOnceAreBounded(t *testing.T) {
	set := static(60)
	set.DialsAll, set.DialsDemand = 40, 16
	w := newWorld(t, 1, set, Group{Name: "a"}, Group{Name: "b"})
	w.rtt = time.Second
	w.name(0, at(1), at(2))
	w.name(1, at(3), at(4))
	w.step(Tick{})
	refill, all := 0, 0
	watch := func() bool {
		s := w.c.Snapshot()
		for _, g := range s.Groups {
			refill = max(refill, g.RefillDials)
			if g.DemandDials > 16 {
				t.Fatalf("%d demand dials", g.DemandDials)
			}
		}
		all = max(all, s.Dialing)
		return w.done == 300
	}
	for range 300 {
		w.ask(time.Second)
	}
	w.until(5*time.Minute, "all end", watch)
	if refill != 8 || all != 40 {
		t.Errorf("%d refill dials of a group and %d in all at once, want 8 and 40 reached and not passed", refill, all)
	}
}

func TestU5_ShadowStandsInAndIsRotated(t *testing.T) {
	set := Default(2)
	w := start(t, set, at(1))
	w.until(time.Second, "a shadow", func() bool { return w.endpoint(at(1)).Shadows == 1 })
	choice := w.c.View().Choices[0]
	if len(choice.Writers) != 1 {
		t.Fatalf("the shadow is for choice: %+v", choice)
	}
	w.lose(w.conns[choice.Writers[0]], Broken)
	w.run(time.Millisecond)
	if v := w.c.View(); !v.Covered || len(v.Choices) != 1 || len(v.Choices[0].Writers) != 1 {
		t.Errorf("the shadow does not serve at once: %+v", v)
	}
	w.until(time.Second, "another shadow", func() bool { return w.endpoint(at(1)).Shadows == 1 && w.settled() })
	reserve := w.c.totals.Dials[Reserve]
	w.run(61 * time.Minute)
	if n := w.c.totals.Dials[Reserve] - reserve; n != 4 {
		t.Errorf("%d rotations in 61 minutes, want 4", n)
	}
	if w.endpoint(at(1)).Shadows != 1 {
		t.Errorf("%d shadows", w.endpoint(at(1)).Shadows)
	}
	w.name(0, at(1), at(2))
	w.until(2*time.Minute, "none is kept where a sibling is", func() bool { return w.settled() && w.c.Snapshot().Warm == 0 && len(w.c.View().Choices) == 2 })
}

// storm counts the dials of an hour against an origin that closes idle connections every second.
func storm(t *testing.T, set Settings) (first, minute int, covered bool) {
	w := newWorld(t, 5, set)
	w.name(0, at(1), at(2), at(3))
	for i := range 3 {
		w.origins[at(i+1)].idleLife = time.Second
	}
	w.step(Tick{})
	covered = true
	w.run(time.Minute)
	for m := range 59 {
		before := w.now
		for range 60 {
			w.run(time.Second)
			ok, _ := w.c.Covered()
			covered = covered && ok
		}
		if n := w.dialsIn(before, w.now); m > 0 {
			minute = max(minute, n)
		}
	}
	w.latest = 0
	for range 10 {
		w.ask(time.Second)
	}
	w.run(10 * time.Second)
	if w.done != 10 || w.latest > w.rtt+time.Millisecond {
		t.Errorf("%d of 10 exchanges on demand, longest wait %v: a resting origin must serve with one dial", w.done, w.latest)
	}
	if w.c.Snapshot().Totals.DialFailures+w.c.Snapshot().Totals.Degraded > 0 {
		t.Errorf("idle closes count as failures\n%s", w.dump())
	}
	return w.dialsIn(0, time.Minute), minute, covered
}

func TestU5_NoReconnectStormAgainstShortIdleLife(t *testing.T) {
	for name, set := range map[string]Settings{"adaptive": Default(2), "static 8": static(8)} {
		first, minute, covered := storm(t, set)
		t.Logf("%s: three endpoints that close idle connections after 1 s: %d dials in the first minute, at most %d in each later one, covered all the time: %v",
			name, first, minute, covered)
		if minute > 3*4 || first > 3*(8+7) || !covered {
			t.Errorf("%s: %d dials in the first minute, %d in a later one, covered %v", name, first, minute, covered)
		}
	}
}

// TestU5_StormIsSeen is the negative control: without the rest there is a storm, and the count shows it.
func TestU5_StormIsSeen(t *testing.T) {
	set := static(8)
	set.RestShort = time.Millisecond
	_, minute, _ := storm(t, set)
	if minute < 1000 {
		t.Errorf("%d dials a minute without the rest: the measurement shows no storm", minute)
	}
}

func TestU5_RestEndsWhenTheOriginKeepsConnectionsAgain(t *testing.T) {
	w := newWorld(t, 1, static(4))
	w.name(0, at(1), at(2))
	w.origins[at(1)].idleLife = time.Second
	w.step(Tick{})
	w.run(5 * time.Minute)
	if e := w.endpoint(at(1)); e.Rests == 0 || e.Active > 1 {
		t.Fatalf("it does not rest\n%s", w.dump())
	}
	w.origins[at(1)].idleLife = 0
	w.until(2*time.Minute, "its floor", func() bool { return w.endpoint(at(1)).Active == 4 && w.endpoint(at(1)).Rests == 0 })
}

func TestU5_AHangingDialIsNotWaitedFor(t *testing.T) {
	w := start(t, static(4), at(1), at(2), at(3))
	w.name(0, at(1), at(2), at(3), at(4))
	w.origins[at(4)].hole = true
	begin := w.now
	w.step(Reinit{Group: AnyGroup, Reason: ReasonAddresses})
	w.until(4*time.Second, "siblings stand in for a new endpoint that hangs", func() bool { return w.commands[DoActivate] == 2 })
	t.Logf("activated after %v", w.now-begin)
	w.origins[at(1)].hole = true // connections stand, new ones hang
	for range 40 {
		w.ask(10 * time.Second)
	}
	w.until(4*time.Second, "everybody has a writer", func() bool { return len(w.waiting) == 0 })
	if w.latest > w.set.Hedge+500*time.Millisecond {
		t.Errorf("an exchange waited %v, want at most Hedge", w.latest)
	}
	t.Logf("longest wait %v", w.latest)
}

func TestU5_OneIncidentIsOneFailure(t *testing.T) {
	set := static(8)
	set.Shadow = 0
	w := newWorld(t, 1, set)
	w.name(0, at(1), at(2))
	w.step(Tick{})
	w.until(time.Minute, "settled", w.settled)
	for range 16 {
		w.ask(time.Hour)
	}
	w.run(100 * time.Millisecond)
	for _, n := range w.sorted() {
		if n.addr == at(1) {
			w.breakOff(n, n.bound)
		}
	}
	w.run(time.Millisecond)
	if e := w.endpoint(at(1)); w.breaks != 8 || e.Failures != 1 || e.Health != Healthy {
		t.Errorf("%d connections broke together: %d failures in a row, %v; want one", w.breaks, e.Failures, e.Health)
	}
	// Many dials are under way when the origin goes away.
	w.origins[at(1)].up = false
	w.until(time.Second, "they fail", func() bool { return w.endpoint(at(1)).Dialing == 0 && w.endpoint(at(1)).Failures > 0 })
	if e := w.endpoint(at(1)); e.Failures != 1 || w.c.Snapshot().Totals.DialFailures < 8 {
		t.Errorf("%d dials failed together: %d failures in a row, want one", w.c.Snapshot().Totals.DialFailures, e.Failures)
	}
	most := 0
	for range 200 {
		w.run(10 * time.Millisecond)
		most = max(most, w.endpoint(at(1)).Dialing)
	}
	if most > 1 {
		t.Errorf("%d dials at once to an endpoint that fails, want one", most)
	}
}

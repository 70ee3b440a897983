package control

import (
	"testing"
	"time"
)

func TestU3_WarmUpDialsAreStaggered(t *testing.T) {
	set := static(6)
	w := start(t, set, at(1), at(2), at(3))
	begin := len(w.dialTimes)
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSetting, Fresh: true})
	w.until(5*time.Second, "it passes", func() bool { return w.commands[DoActivate] == 2 })
	times := w.dialTimes[begin:]
	if len(times) < 15 {
		t.Fatalf("%d dials", len(times))
	}
	for i := 1; i < 14; i++ {
		if d := times[i] - times[i-1]; d < set.Stagger {
			t.Errorf("dial %d comes %v after the one before, want %v", i, d, set.Stagger)
		}
	}
}

func TestU3_ChangeSettlesFirstAndStormsDoNotPostponeIt(t *testing.T) {
	w := start(t, static(1), at(1), at(2))
	w.run(5 * time.Second)
	w.step(Resolved{Addrs: addresses(3)})
	changed := w.now
	w.name(0, at(1), at(2), at(3))
	w.until(5*time.Second, "it begins", func() bool { return w.c.Snapshot().Totals.Begun == 2 })
	if d := w.now - changed; d < w.set.Settle || d > w.set.Settle+50*time.Millisecond {
		t.Errorf("the change took effect after %v, want Settle %v", d, w.set.Settle)
	}
	w.run(5 * time.Second)
	begin := w.now
	for w.c.Snapshot().Totals.Begun == 2 && w.now < begin+10*time.Second {
		w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal})
		w.run(w.set.Settle / 2)
	}
	if d := w.now - begin; d > 3*w.set.Settle {
		t.Errorf("a storm of signals postponed the reinit by %v", d)
	}
	for range 200 {
		w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal})
		w.run(w.set.Settle / 2)
	}
	if n := w.c.Snapshot().Totals.Begun; n > 3+12 {
		t.Errorf("%d generations in ten seconds of signals, want at most one in Spacing %v", n, w.set.Spacing)
	}
}

func TestHealth_UnreachableEndpointIsQuarantinedAndOnlyProbed(t *testing.T) {
	w := start(t, static(2), at(1), at(2), at(3))
	w.kill(at(1))
	w.until(10*time.Second, "quarantine", func() bool { return w.endpoint(at(1)).Health == Quarantined })
	w.run(time.Second)
	dials, probes := w.commands[DoDial], w.commands[DoProbe]
	w.run(10 * time.Minute)
	if n := w.commands[DoDial] - dials; n != 0 {
		t.Errorf("%d dials while quarantined", n)
	}
	if n := w.commands[DoProbe] - probes; n < 2*38+10 || n > 2*41+40 {
		t.Errorf("%d probes in ten minutes of two silent endpoints and a quarantined one", n)
	}
}

package control

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelSettings draws settings that make the interesting things happen often.
func modelSettings(t *rapid.T) Settings {
	set := Default(2)
	set.FloorMode = rapid.SampledFrom([]FloorMode{Adaptive, Adaptive, Static}).Draw(t, "mode")
	set.FloorStatic = rapid.IntRange(1, 5).Draw(t, "static")
	set.FloorPerCore = rapid.SampledFrom([]int{2, 5, 64}).Draw(t, "per core")
	set.MaxConnections = rapid.SampledFrom([]int{12, 40, 400}).Draw(t, "connections")
	set.DialsRefill = rapid.SampledFrom([]int{1, 8}).Draw(t, "refill")
	set.DialsAll = rapid.SampledFrom([]int{6, 64}).Draw(t, "dials")
	set.Shadow = rapid.IntRange(0, 2).Draw(t, "shadow")
	set.Outage = rapid.Bool().Draw(t, "outage")
	set.Stagger = rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond}).Draw(t, "stagger")
	set.QuarantineAfter = rapid.SampledFrom([]int{0, 5}).Draw(t, "quarantine")
	set.Fallback = FallbackPolicy(rapid.IntRange(0, 2).Draw(t, "fallback"))
	return set
}

// TestModel drives the pool through random endpoint changes, failures, floods, idles, reinits and time jumps by a shell that is late and reorders. After every event
// the invariants hold (kit); at the end everything is healthy and quiet, and the pool must come to its floors, lose no exchange and then stand still.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := modelSettings(t)
		groups := []Group{{Name: "a"}, {Name: "b"}, {Name: "second", Fallback: true}}
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"), set, groups...)
		w.jitter = rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, 700 * time.Millisecond}).Draw(t, "jitter")
		address := rapid.IntRange(1, 8)
		pick := func() netip.AddrPort {
			i := address.Draw(t, "address")
			if i > 5 {
				return v6(i)
			}
			return at(i)
		}
		for g := range groups {
			w.name(g, at(100+g))
		}
		w.step(Tick{})
		names := func() {
			g := rapid.IntRange(0, 1).Draw(t, "group")
			var addrs []netip.AddrPort
			for range rapid.IntRange(1, 5).Draw(t, "size") {
				if a := pick(); !slices.Contains(addrs, a) {
					addrs = append(addrs, a)
				}
			}
			w.name(g, addrs...)
		}
		known := func() *origin {
			all := make([]netip.AddrPort, 0, len(w.origins))
			for a := range w.origins {
				all = append(all, a)
			}
			slices.SortFunc(all, compareAddr)
			return w.origins[rapid.SampledFrom(all).Draw(t, "origin")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"names":    func(*rapid.T) { names() },
			"negative": func(*rapid.T) { w.badName(rapid.IntRange(0, 1).Draw(t, "group"), Negative) },
			"no dns":   func(*rapid.T) { w.badName(rapid.IntRange(0, 2).Draw(t, "group"), Unanswered) },
			"kill": func(*rapid.T) {
				a := pick()
				if w.origins[a] != nil {
					w.kill(a)
				}
			},
			"kill first": func(*rapid.T) { w.kill(at(100 + rapid.IntRange(0, 2).Draw(t, "group"))) },
			"revive":     func(*rapid.T) { known().heal(w.now) },
			"hole":       func(*rapid.T) { known().hole = true },
			"stop":       func(*rapid.T) { known().stopped = true },
			"flaky":      func(*rapid.T) { known().fails = 0.5 },
			"short life": func(*rapid.T) { known().idleLife = time.Second },
			"one shot":   func(*rapid.T) { known().oneShot = true },
			"flood": func(*rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "requests") {
					w.ask(time.Duration(rapid.IntRange(1, 20000).Draw(t, "length")) * time.Millisecond)
				}
			},
			"reinit": func(*rapid.T) {
				for range rapid.IntRange(1, 3).Draw(t, "signals") {
					w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal, Fresh: rapid.Bool().Draw(t, "fresh")})
				}
			},
			"settings": func(t *rapid.T) {
				set := modelSettings(t)
				w.step(Configure{set})
			},
			"strangers": func(*rapid.T) {
				w.step(WriterLost{Writer: WriterID(rapid.IntRange(1, 50).Draw(t, "writer")) << 32, Why: Broken})
				w.step(Load{Endpoints: []EndpointLoad{{Endpoint: 1 << 40, Outstanding: 5}}, Free: []WriterID{1 << 40}})
			},
			"moment": func(*rapid.T) { w.run(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) },
			"jump": func(*rapid.T) {
				w.now += time.Duration(rapid.IntRange(1, 100).Draw(t, "minutes")) * time.Minute
				w.step(Tick{})
			},
			"while": func(*rapid.T) { w.run(time.Duration(rapid.IntRange(1, 120).Draw(t, "s")) * time.Second) },
		})
		finish(t, w)
	})
}

// finish makes the world healthy and quiet and holds convergence.
func finish(t *rapid.T, w *world) {
	for a := range w.origins {
		w.revive(a)
	}
	for g, addrs := range [][]netip.AddrPort{{at(1), at(2), v6(6)}, {at(3)}, {at(102)}} {
		w.name(g, addrs...)
	}
	w.until(15*time.Minute, "every exchange ends and the pool settles", func() bool { return len(w.waiting) == 0 && w.bound == 0 && w.settled() })
	if w.done != w.number {
		t.Fatalf("%d of %d exchanges ended", w.done, w.number)
	}
	for i, g := range w.c.Snapshot().Groups {
		if off := g.Fallback && w.c.set.Fallback == FallbackOff; g.Generation == 0 != off {
			t.Fatalf("group %d: generation %d under policy %d\n%s", i, g.Generation, w.c.set.Fallback, w.dump())
		}
	}
	// Floors sink and everything that was held for a while is given back; then nothing moves but names and probes, and a shadow every 15 minutes.
	w.run(6 * time.Minute)
	rotations := w.c.totals.Dials[Reserve]
	quiet := w.commands
	begin := w.now
	w.run(10 * time.Minute)
	rotations = w.c.totals.Dials[Reserve] - rotations
	if n := int64(w.commands[DoDial] - quiet[DoDial]); n != rotations || w.commands[DoPromote] != quiet[DoPromote] || w.commands[DoDemote] != quiet[DoDemote] {
		t.Fatalf("from %v on a quiet pool moved: %d dials, %d of them shadows, then %v\n%s", begin, n, rotations, w.log[len(w.log)-5:], w.dump())
	}
	if !w.settled() {
		t.Fatalf("not settled\n%s", w.dump())
	}
	for _, g := range w.c.Snapshot().Groups {
		for _, e := range g.Endpoints {
			if e.Active+e.Warm != len2(e) {
				t.Fatalf("endpoint %v keeps %d writers, target %d, shadows %d\n%s", e.Addr, e.Active+e.Warm, e.Target, e.Shadows, w.dump())
			}
		}
	}
	if on := w.c.Snapshot().Fallback; on != (w.c.set.Fallback == FallbackAlways) {
		t.Fatalf("fallback in use: %v under policy %d with healthy groups", on, w.c.set.Fallback)
	}
}

// len2 is how many connections a quiet endpoint should have.
func len2(e EndpointStatus) int { return e.Target + e.Shadows }

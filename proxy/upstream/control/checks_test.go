package control

import "slices"

// checkGate holds the gate by arithmetic of its own: a set that replaces one with coverage has 80 % of its floor in the Step that activates it. Where the ceiling
// binds, floors move with those of other groups, and it does not look.
func (w *world) checkGate(before *Snapshot, cmds []Command) {
	for _, cmd := range cmds {
		if w.c.set.MaxConnections < 200 || w.c.set.FloorPerCore < 64 || cmd.Do != DoActivate || before == nil || before.Groups[cmd.Group].Generation == 0 || before.Groups[cmd.Group].Why != CauseCovered {
			continue
		}
		g := w.c.Snapshot().Groups[cmd.Group]
		have, floor := 0, 0
		for _, e := range g.Endpoints {
			if e.Current && e.Rests > 0 {
				floor += min(1, e.Target)
				have += max(e.Active, 1)
			} else if e.Current {
				floor += e.Target
				have += e.Active
			}
		}
		need := (floor*w.c.set.GatePercent + 99) / 100
		for _, gen := range before.Groups[cmd.Group].Generations {
			if gen.ID == cmd.Generation {
				need = min(need, gen.Need) // a report in this Step may have raised the floor
			}
		}
		// The Step may have ended the coverage of the old set first.
		if g.Why == CauseCovered && have < need && !w.dying(before.Groups[cmd.Group]) {
			w.t.Fatalf("at %v: generation %d was activated with %d writers of a floor of %d\n%s", w.now, cmd.Generation, have, floor, w.dump())
		}
		w.gates++
	}
}

// dying reports whether a group had a single connected endpoint, whose loss ends its coverage.
func (w *world) dying(g GroupStatus) bool {
	n := 0
	for _, e := range g.Endpoints {
		if e.Current && (e.Active > 0 || e.Resting) && e.Health != Quarantined {
			n++
		}
	}
	return n <= 1
}

// checkRevision holds that a revision changes exactly when the content does.
func (w *world) checkRevision() {
	v := *w.c.View()
	old := w.view
	w.view = v
	was := old.Revision
	old.Revision = v.Revision
	if equal := sameView(old, v); equal != (was == v.Revision) {
		w.t.Fatalf("at %v: revision went %d -> %d, same content: %v\n%+v\n%+v", w.now, was, v.Revision, equal, old, v)
	}
}

func sameView(a, b View) bool {
	return a.Covered == b.Covered && a.Why == b.Why && a.Fallback == b.Fallback && a.Exhausted == b.Exhausted &&
		slices.EqualFunc(a.Choices, b.Choices, func(x, y Choice) bool {
			return x.Endpoint == y.Endpoint && x.Addr == y.Addr && x.Weight == y.Weight && slices.Equal(x.Writers, y.Writers)
		})
}

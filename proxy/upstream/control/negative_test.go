package control

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

const time5 = 5 * time.Second

// addresses returns n of them.
func addresses(n int) []netip.AddrPort {
	var out []netip.AddrPort
	for i := range n {
		out = append(out, at(i+1))
	}
	return out
}

// TestInvariantsAreSeen is the negative control of CheckInvariants: each kind of damage must be named.
func TestInvariantsAreSeen(t *testing.T) {
	first := func(c *Control) *endpoint { return c.groups[0].endpoints[0] }
	for _, test := range []struct {
		rule   string
		damage func(*Control)
	}{
		{"I1", func(c *Control) { first(c).n[Active]++ }},
		{"I1", func(c *Control) { first(c).writers = first(c).writers[1:] }},
		{"I1", func(c *Control) { c.groups[0].active.writers-- }},
		{"I1", func(c *Control) { c.groups[0].refillDials++ }},
		{"I2", func(c *Control) { c.set.MaxConnections = 1 }},
		{"I3", func(c *Control) { c.groups[0].active.state = Warmup }},
		{"I3", func(c *Control) {
			c.groups[0].next = &generation{id: 99, group: c.groups[0], state: Warmup}
		}},
		{"I4", func(c *Control) { first(c).health = Quarantined }},
		{"I5", func(c *Control) {
			c.groups[0].old = append(c.groups[0].old, &generation{id: 99, group: c.groups[0], state: Outgoing})
		}},
		{"I6", func(c *Control) { first(c).target = 1000 }},
		{"I6", func(c *Control) { first(c).target = 0 }},
		{"I7", func(c *Control) {
			for _, e := range c.groups[0].endpoints {
				for len(e.writers) > 0 {
					c.remove(e.writers[0])
				}
				e.health, e.until = Quarantined, c.now+time.Second
			}
		}},
		{"I8", func(c *Control) {
			for e := first(c); len(e.writers) > 0; {
				c.remove(e.writers[0])
			}
			first(c).health, first(c).until = Quarantined, c.now-1
		}},
		{"I9", func(c *Control) { c.fallback.on = true }},
		{"I10", func(c *Control) { c.wake = c.now }},
		{"I11", func(c *Control) { c.view.Choices[0].Writers = nil }},
		{"I11", func(c *Control) { c.view.Choices = c.view.Choices[1:] }},
		{"I11", func(c *Control) { c.view.Covered = false }},
	} {
		w := start(t, static(2), at(1), at(2))
		test.damage(w.c)
		if err := w.c.CheckInvariants(); err == nil || !strings.HasPrefix(err.Error(), test.rule+":") {
			t.Errorf("damage to %s was answered by %v", test.rule, err)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	good := Default(4)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, damage := range map[string]func(*Settings){
		"FloorMin": func(s *Settings) { s.FloorMin = 0 }, "MaxConnections": func(s *Settings) { s.MaxConnections = 0 }, "GatePercent": func(s *Settings) { s.GatePercent = 101 },
		"FloorMode": func(s *Settings) { s.FloorMode = 9 }, "Fallback": func(s *Settings) { s.Fallback = 9 }, "FloorIdle": func(s *Settings) { s.FloorIdle = 0 },
		"Silent": func(s *Settings) { s.Silent = -1 }, "Backoff": func(s *Settings) { s.BackoffMax = 1 }, "Quarantine": func(s *Settings) { s.QuarantineMin = 0 },
		"DegradeAfter": func(s *Settings) { s.DegradeAfter = 50 }, "DialsRefill": func(s *Settings) { s.DialsRefill = 0 },
	} {
		set := good
		damage(&set)
		if err := set.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := New([]Group{{Name: "a"}}, set, nil); err == nil {
			t.Errorf("%s: New takes it", field)
		}
	}
	for name, groups := range map[string][]Group{"none": nil, "fallback only": {{Fallback: true}}, "two fallbacks": {{}, {Fallback: true}, {Fallback: true}}} {
		if _, err := New(groups, good, nil); err == nil {
			t.Errorf("%s: New takes it", name)
		}
	}
}

func TestNamesOfEnums(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{Dialing.String(), Warm.String(), Active.String(), Draining.String(), CauseCovered.String(), CauseFailing.String(), Degraded.String(),
		Quarantined.String(), Reserve.String(), ReasonSignal.String(), IdleClosed.String(), TimedOut.String(), DoResolve.String(), DoRetire.String(), Warmup.String(), Outgoing.String()} {
		if name == "" || seen[name] {
			t.Errorf("%q is empty or twice", name)
		}
		seen[name] = true
	}
	if Cause(200).String() != "unknown" || Loss(200).String() != "unknown" {
		t.Error("a value outside of an enum must not panic")
	}
}

package control

import "time"

// fallback is the switch of U8. Balance is an integrator with two thresholds: it rises by dt / FallbackAfter while the other groups have no coverage and falls by
// dt / FallbackBack while they have; the fallback is used from 1 on, and left at 0. So two changes of direction are at least FallbackAfter + FallbackBack apart
// (no flapping), and an origin that is down more than its share comes to 1 however it comes and goes (no sticking).
type fallback struct {
	on      bool
	balance float64
	last    time.Duration
}

// Balances that count as full and as empty: rounding must not keep a threshold out of reach.
const (
	full  = 1 - 1e-6
	empty = 1e-6
)

// othersCovered reports whether a group that is no fallback has coverage.
func (c *Control) othersCovered() bool {
	for _, g := range c.groups {
		if !g.Fallback && g.state == CauseCovered {
			return true
		}
	}
	return false
}

// second is the fallback group, nil when there is none.
func (c *Control) second() *group {
	for _, g := range c.groups {
		if g.Fallback {
			return g
		}
	}
	return nil
}

// advance integrates over the time since the last event, with the coverage of then.
func (f *fallback) advance(c *Control) {
	dt := float64(c.now - f.last)
	f.last = c.now
	if c.draining || c.set.Fallback != FallbackOnOutage {
		return
	}
	if c.othersCovered() {
		f.balance = max(0, f.balance-dt/float64(c.set.FallbackBack))
	} else {
		f.balance = min(1, f.balance+dt/float64(c.set.FallbackAfter))
	}
}

// plan throws the switch. It reports whether it did.
func (f *fallback) plan(c *Control) bool {
	g := c.second()
	on := f.on
	switch {
	case g == nil || c.set.Fallback == FallbackOff:
		on, f.balance = false, 0
	case c.set.Fallback == FallbackAlways:
		on, f.balance = true, 1
	case c.othersCovered():
		if f.balance <= empty {
			on = false
		} else if on && g.state != CauseCovered {
			on, f.balance = false, 0 // nothing is there to stay for
		} else if on {
			c.later(c.now + time.Duration(f.balance*float64(c.set.FallbackBack)) + time.Millisecond)
		}
	case f.balance >= full:
		on = on || g.state == CauseCovered
	case !on:
		c.later(c.now + time.Duration((1-f.balance)*float64(c.set.FallbackAfter)) + time.Millisecond)
	}
	if on == f.on {
		return false
	}
	f.on = on
	if on {
		c.totals.FallbackIn++
	} else {
		c.totals.FallbackOut++
	}
	return true
}

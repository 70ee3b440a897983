package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of a policy.
const (
	MaxSessions         = 1024
	MaxWeight           = 1000
	MaxRangesPerSession = 64
	MaxQueueLimit       = 1 << 20
	MaxSessionMinBytes  = 1 << 40
	MaxIdleFor          = time.Hour
	MaxAgingEvery       = 7 * 24 * time.Hour
)

// Policy is the whole rule set of a queue: an immutable value, compared with ==. A change acts from the next decision;
// active sessions keep their slots.
type Policy struct {
	Strategy           Strategy
	Sessions           int           // slots, 1..1024
	Reserve            int           // slots that only Interactive may take, 0..Sessions-1
	PerPrincipal       int           // active sessions of one principal while another one heads the queue, 1..Sessions
	Weights            [Classes]int  // share of freed slots by class, 1..1000 each
	SessionMinBytes    int64         // objects up to this many bytes are admitted per request
	IdleFor            time.Duration // pause between responses after which the slot is freed, 1 s..1 h
	AgingEvery         time.Duration // waiting that lifts a session one class, 1 s..7 days; 0 = off
	RangesPerSession   int           // responses of one session at once, 1..64
	QueueLimit         int           // sessions in all, active and waiting, Sessions..1048576
	QueuePerPrincipal  int           // the same of one principal, 1..QueueLimit
	Preempt            bool          // a protocol client's session may lose its slot at a range boundary, see the package doc
	SessionsElastic    int           // slots that may open while the link is not full, Sessions..1024; 0 = Sessions, that is none
	BandBytesPerSecond int64         // configured band, the floor of the measured rate; 0 = none configured
	Mode               Mode          // how far decisions are carried out
}

// DefaultPolicy returns the documented defaults for that many slots.
func DefaultPolicy(sessions int) Policy {
	reserve := 0
	if sessions >= 4 {
		reserve = 1
	}
	return Policy{
		Strategy:          Ordered,
		Sessions:          sessions,
		Reserve:           reserve,
		PerPrincipal:      min(4, sessions),
		Weights:           [Classes]int{8, 4, 2, 1},
		SessionMinBytes:   16 << 20,
		IdleFor:           30 * time.Second,
		AgingEvery:        15 * time.Minute,
		RangesPerSession:  4,
		QueueLimit:        65536,
		QueuePerPrincipal: 4096,
		Preempt:           true,
	}
}

// PolicyError says which field of a policy breaks which rule.
type PolicyError struct {
	Field   string // name of the Policy field, or Weights.<class>
	Value   string
	Rule    string
	Example string
}

// Error names the field, the value, the rule and a value that would do.
func (e *PolicyError) Error() string {
	return fmt.Sprintf("cannot use %s %s: must be %s, for example %s", e.Field, e.Value, e.Rule, e.Example)
}

// Validate returns every fault of the policy at once, each a *PolicyError, joined; nil when it can be used.
func (p Policy) Validate() error {
	var faults []error
	whole := func(field string, value, low, high, example int64) {
		if value < low || value > high {
			faults = append(faults, &PolicyError{field, fmt.Sprint(value), fmt.Sprintf("a whole number %d..%d", low, high), fmt.Sprint(example)})
		}
	}
	if int(p.Strategy) >= len(strategyNames) {
		faults = append(faults, &PolicyError{"Strategy", fmt.Sprint(uint8(p.Strategy)), "one of " + strings.Join(strategyNames, ", "), "ordered"})
	}
	if int(p.Mode) >= len(modeNames) {
		faults = append(faults, &PolicyError{"Mode", fmt.Sprint(uint8(p.Mode)), "one of " + strings.Join(modeNames, ", "), "normal"})
	}
	whole("Sessions", int64(p.Sessions), 1, MaxSessions, 16)
	slots := int64(min(max(p.Sessions, 1), MaxSessions))
	if p.SessionsElastic != 0 {
		whole("SessionsElastic", int64(p.SessionsElastic), slots, MaxSessions, min(4*slots, MaxSessions))
	}
	whole("Reserve", int64(p.Reserve), 0, slots-1, 0)
	whole("PerPrincipal", int64(p.PerPrincipal), 1, slots, min(4, slots))
	for c, w := range p.Weights {
		whole("Weights."+Class(c).String(), int64(w), 1, MaxWeight, int64(8>>c))
	}
	whole("SessionMinBytes", p.SessionMinBytes, 0, MaxSessionMinBytes, 16<<20)
	whole("RangesPerSession", int64(p.RangesPerSession), 1, MaxRangesPerSession, 4)
	whole("QueueLimit", int64(p.QueueLimit), slots, MaxQueueLimit, 65536)
	whole("QueuePerPrincipal", int64(p.QueuePerPrincipal), 1, int64(min(max(p.QueueLimit, 1), MaxQueueLimit)), min(4096, int64(max(p.QueueLimit, 1))))
	if p.IdleFor < time.Second || p.IdleFor > MaxIdleFor {
		faults = append(faults, &PolicyError{"IdleFor", p.IdleFor.String(), "a duration 1s..1h", "30s"})
	}
	if p.AgingEvery != 0 && (p.AgingEvery < time.Second || p.AgingEvery > MaxAgingEvery) {
		faults = append(faults, &PolicyError{"AgingEvery", p.AgingEvery.String(), "0 (off) or a duration 1s..168h", "15m"})
	}
	if p.BandBytesPerSecond < 0 {
		faults = append(faults, &PolicyError{"BandBytesPerSecond", fmt.Sprint(p.BandBytesPerSecond), "0 (none) or positive bytes per second", "67108864"})
	}
	return errors.Join(faults...)
}

// Queues reports whether any download is a session: not under Shared, nor in the mode pass-through.
func (p *Policy) Queues() bool { return p.Strategy != Shared && p.Mode != ModePassThrough }

// session reports whether an object of that many bytes (-1 = unknown) is downloaded as a session under this policy.
func (p *Policy) session(sizeBytes int64) bool {
	return p.Queues() && sizeBytes > p.SessionMinBytes
}

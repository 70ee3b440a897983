package admission

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of a refusal's Retry-After.
const (
	retryFloor   = 2 * time.Second
	retryCeiling = 10 * time.Minute
)

// Settings size one direction. A value, compared with ==.
type Settings struct {
	Capacity         int           // requests at once, at least 1
	PerPrincipal     int           // of one principal, 1..Capacity
	WaitLimit        int           // waiting requests, 0 = nobody waits
	WaitPerPrincipal int           // of one principal, 0 = nobody waits
	Timeout          time.Duration // longest wait, above 0
}

// Validate returns every fault at once, nil when the settings can be used.
func (s Settings) Validate() error {
	var faults []error
	fault := func(field string, value any, rule, example string) {
		faults = append(faults, fmt.Errorf("cannot use admission %s %v: must be %s, for example %s", field, value, rule, example))
	}
	if s.Capacity < 1 {
		fault("Capacity", s.Capacity, "at least 1", "16")
	}
	if s.PerPrincipal < 1 || s.PerPrincipal > max(s.Capacity, 1) {
		fault("PerPrincipal", s.PerPrincipal, fmt.Sprintf("1..%d", max(s.Capacity, 1)), fmt.Sprint(min(4, max(s.Capacity, 1))))
	}
	if s.WaitLimit < 0 {
		fault("WaitLimit", s.WaitLimit, "0 or more", "64")
	}
	if s.WaitPerPrincipal < 0 {
		fault("WaitPerPrincipal", s.WaitPerPrincipal, "0 or more", "8")
	}
	if s.Timeout <= 0 {
		fault("Timeout", s.Timeout, "above 0", "20s")
	}
	return errors.Join(faults...)
}

// Reason says why a request was refused as busy.
type Reason uint8

// The reasons.
const (
	Full    Reason = iota // too many wait already
	Timeout               // its own wait took too long
)

// String returns the name used in logs and metric labels.
func (r Reason) String() string {
	if r == Timeout {
		return "timeout"
	}
	return "full"
}

// BusyError refuses a request for now.
type BusyError struct {
	RetryAfter time.Duration // 2 s..10 min, with a random part
	Reason     Reason
}

// Error names the reason and the time to come back.
func (e *BusyError) Error() string {
	return fmt.Sprintf("cannot admit request: busy (%s), retry after %s", e.Reason, e.RetryAfter.Round(time.Millisecond))
}

// Errors that Acquire returns besides *BusyError.
var (
	ErrCancelled = errors.New("cannot admit request: its client left")
	ErrDraining  = errors.New("cannot admit request: the process is stopping")
)

// Snapshot is the state of a gate at one moment, as readiness shows it. Counters only grow.
type Snapshot struct {
	Active                      int    `json:"active"`
	Waiting                     int    `json:"waiting"`
	Capacity                    int    `json:"capacity"`
	PerPrincipalCapacity        int    `json:"perPrincipalCapacity"`
	WaitingCapacity             int    `json:"waitingCapacity"`
	PerPrincipalWaitingCapacity int    `json:"perPrincipalWaitingCapacity"`
	TimeoutMs                   int64  `json:"timeoutMs"`
	Rejected                    uint64 `json:"rejected"`  // refused because too many waited
	TimedOut                    uint64 `json:"timedOut"`  // waited too long
	Cancelled                   uint64 `json:"cancelled"` // left while waiting
}

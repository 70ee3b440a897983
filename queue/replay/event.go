package replay

import (
	"time"

	"github.com/arkvory/sidecar/queue"
)

// Op is the call of the core that a line holds.
type Op uint8

// The calls, by their words in a log.
const (
	OpPolicy Op = iota
	OpConfigure
	OpAsk
	OpHold
	OpWithdraw
	OpDepart
	OpLeave
	OpProgress
	OpFinish
	OpAbandon
	OpTick
	OpDrain
	OpGrace
	OpAct
	OpGate
	OpWindows
	opCount
)

var opNames = [opCount]string{"policy", "configure", "ask", "hold", "withdraw", "depart", "leave", "progress", "finish", "abandon", "tick", "drain", "grace", "act", "gate", "windows"}

// String returns the word in a log.
func (o Op) String() string {
	if o >= opCount {
		return "unknown"
	}
	return opNames[o]
}

// Event is one call of the core with what it decided. Fields that its Op does not name in the package documentation are zero.
type Event struct {
	Line     int // in the log, from 1
	Op       Op
	Now      time.Duration
	Policy   queue.Policy
	Ask      queue.Ask // keys and validator in their hashed form; Leave has the key only
	Waiter   uint64    // held request, 0 = none
	Response uint64    // of Progress, Finish, Abandon: the one it is about; of Ask and Hold: the admitted one, 0 = none
	Verdict  queue.Verdict
	OK       bool
	Bytes    int64
	First    int64
	End      int64
	Complete bool
	Until    time.Duration // of Grace
	Gather   time.Duration // of Grace
	Action   queue.Action  // of Act, about Ask.Key; OK: it was carried out
	Open     bool          // of Gate
	Windows  queue.WindowPlan
	State    State
	Settled  []Settled
	Ended    []queue.End
}

// Settled is a held request that got its answer in a call.
type Settled struct {
	Waiter   uint64
	Response uint64 // admitted, 0 = none
	Verdict  queue.Verdict
}

// State is what a tick leaves behind. Comparable.
type State struct {
	Active  [queue.Classes]int
	Waiting [queue.Classes]int
	Paused  int
	Held    int
	Slots   int // in force
	Free    int // that new sessions could take at once
}

// StateOf reads the state of a core.
func StateOf(core *queue.Scheduler, now time.Duration) State {
	s := core.Snapshot(now)
	return State{Active: s.Active, Waiting: s.Waiting, Paused: s.Paused, Held: s.Held, Slots: s.Slots, Free: core.FreeSlots()}
}

// spreadByKey reports whether the CheckIn of an answer depends on the text of the key.
func spreadByKey(o queue.Outcome) bool { return o == queue.LimitReached || o == queue.Rejected }

// comparableVerdict clears what a replay cannot know: the retry time of a refused request is spread by the text of its key.
func comparableVerdict(v queue.Verdict) queue.Verdict {
	if spreadByKey(v.Outcome) {
		v.CheckIn = 0
	}
	if !v.EstimateKnown {
		v.StartsIn, v.EarliestIn, v.LatestIn = 0, 0, 0
	}
	return v
}

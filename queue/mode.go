package queue

import (
	"fmt"
	"strings"
	"time"
)

// Mode is how far the queue's decisions are carried out. The zero value is ModeNormal.
type Mode uint8

// The modes. A change acts from the next decision and ends no running response.
const (
	ModeNormal      Mode = iota // as the other rules say
	ModeQueueAll                // nobody gets a slot: places are kept, who has a slot keeps it
	ModePassThrough             // nobody queues: no request is one of a session
	ModeRejectNew               // a download that the queue does not know and that no ticket proves is refused
	ModeDryRun                  // every session gets a slot at once; who would have waited is counted
)

var modeNames = []string{"normal", "queue-all", "pass-through", "reject-new", "dry-run"}

// ParseMode returns the mode of that name.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames {
		if n == name {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("cannot parse queue mode %q: must be one of %s", clip(name), strings.Join(modeNames, ", "))
}

// String returns the name that settings carry.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return "unknown"
	}
	return modeNames[m]
}

// Checks of clients that no rule about their own place gives a time for.
const (
	gateCheckLow  = 2 * time.Second  // the gate is shut: those near the front
	gateCheckHigh = 10 * time.Second // the others, spread over the upper half of the time up to it
)

// SetGate says whether the upstream can serve new sessions (U7). While it cannot nobody gets a slot, in no mode: places stay, a poll keeps them, starts are
// unknown and clients are told to come again within 10 s. Who has a slot keeps it. Opened, it gives the free slots to held requests at once.
func (s *Scheduler) SetGate(now time.Duration, open bool) {
	now = s.advance(now)
	if s.gateShut == !open {
		return
	}
	was := s.halted()
	s.gateShut = !open
	s.haltChanged(now, was)
	for _, ses := range s.active {
		s.keepYielding(ses)
		s.settleActive(ses)
	}
	s.dispatch(now)
}

// halted reports whether nobody gets a slot for now because of the mode or the gate.
func (s *Scheduler) halted() bool { return s.gateShut || s.policy.Mode == ModeQueueAll }

// haltChanged follows a change of what halts the queue. What was promised before a halt is not judged by what it delayed, and clients that could not start
// widen no marks.
func (s *Scheduler) haltChanged(now time.Duration, was bool) {
	if was || s.halted() {
		s.haltSeen = true
	}
	if was && !s.halted() {
		s.haltEnded = now
	}
	s.slotChanges++
}

// waves reports whether a session starts although no free slot is its own.
func (s *Scheduler) waves() bool { return s.policy.Mode == ModeDryRun && !s.halted() && !s.draining }

// wave counts a session that starts in the dry run and would have waited, and the wait by the bytes of those that would have to end before it:
//
//	wait = owed (active - slots + 1) / active / R          seconds; not known without a rate
func (s *Scheduler) wave(now time.Duration) {
	s.counts.WouldWait++
	s.model.refresh(s, now, false)
	if over := len(s.active) - s.slots() + 1; over > 0 && s.model.peak > 0 {
		wait := s.model.owedNow * float64(over) / float64(len(s.active)) / s.model.peak
		s.counts.WouldWaitFor += seconds(min(wait, longestPromise.Seconds()))
	}
}

// waveAll gives every held request of a waiting session its slot, the first in the order first.
func (s *Scheduler) waveAll(now time.Duration) {
	for _, ses := range s.presentInOrder() {
		if !s.eligible(ses) {
			s.wave(now)
		}
		s.admit(now, ses)
		s.settleActive(ses)
	}
}

// haltCheck is when a client asks again that waits while nobody starts.
func (s *Scheduler) haltCheck(ses *session, ahead int) time.Duration {
	spread := time.Duration(mix(ses.number) % 1024)
	switch {
	case !s.gateShut:
		return unknownCheck - spread*(unknownCheck/4096)
	case ahead < 4*s.slots():
		return gateCheckLow
	default:
		return gateCheckHigh - spread*(gateCheckHigh/2048)
	}
}

// rejected answers a download that nothing is known of while new ones are refused.
func (s *Scheduler) rejected(a *Ask) Verdict {
	s.counts.RejectedNew++
	return Verdict{Outcome: Rejected, Class: a.Class, CheckIn: s.limitCheck(a.Key)}
}

package queue

import "time"

// deafToPause says that it paused a session, and does not.
type deafToPause struct{ *Scheduler }

func (f deafToPause) Act(now time.Duration, key Key, a Action) error {
	if ses := coreSession(f.Scheduler, key); a.Kind == PauseIt && ses != nil && ses.state == waiting && !ses.stopped {
		f.counts.Paused++
		return nil
	}
	return f.Scheduler.Act(now, key, a)
}

// forgivingKick forgets whom it kicked, so that a ticket brings the old place back.
type forgivingKick struct{ *Scheduler }

func (f forgivingKick) Act(now time.Duration, key Key, a Action) error {
	err := f.Scheduler.Act(now, key, a)
	f.expelled = expulsions{}
	return err
}

// payingMove lets the principal of a moved session pay a turn for its slot, as if it had stood in its lane.
type payingMove struct{ *Scheduler }

func (f payingMove) Act(now time.Duration, key Key, a Action) error {
	err := f.Scheduler.Act(now, key, a)
	if ses := coreSession(f.Scheduler, key); err == nil && a.Kind == MoveFront && ses != nil && ses.moved && f.policy.Strategy == Ordered {
		ses.principal.needLane(ses.lifted).round++
	}
	return err
}

// openGate never shuts.
type openGate struct{ *Scheduler }

func (f openGate) SetGate(now time.Duration, _ bool) { f.Scheduler.SetGate(now, true) }

// waitingDryRun lets sessions wait in a dry run as at any other time, once some have a slot.
type waitingDryRun struct{ *Scheduler }

func (f waitingDryRun) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	if mode := f.policy.Mode; mode == ModeDryRun && len(f.active) > 0 {
		f.policy.Mode = ModeNormal
		defer func() { f.policy.Mode = mode }()
	}
	return f.Scheduler.Ask(now, a)
}

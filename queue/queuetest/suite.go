package queuetest

import (
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// Grant is the right to send one response, as every implementation gives it.
type Grant interface {
	Progress(n int64)
	Finish(firstByte, lastByteExclusive int64, complete bool)
	Abandon()
}

// Queue is what every implementation offers. Admit and Hold return a nil interface without a grant.
type Queue interface {
	FreeSlot() bool
	Admit(a queue.Ask) (Grant, queue.Verdict)
	Hold(a queue.Ask, wait time.Duration, gone <-chan struct{}) (Grant, queue.Verdict)
	Leave(key queue.Key)
	Configure(policy queue.Policy) error
	Drain()
	Snapshot() queue.Snapshot
	SetGate(open bool)
	Act(id queue.SessionID, a queue.Action) (before, after queue.Shown, err error)
	Session(id queue.SessionID) (queue.Shown, bool)
	Sessions(query queue.ListQuery, from queue.Mark, limit int) queue.Page
	Overview() queue.Overview
}

// Subject is one empty queue under test and the means to move it.
type Subject struct {
	Queue   Queue
	Advance func(d time.Duration) // lets d of the queue's time pass, ticks included, and settles
	Settle  func()                // returns when every other goroutine of the test waits for an event
	Ended   func() []queue.End    // records reported so far
}

// Factory makes a queue with that policy and hold limit, hands it to body and afterwards closes it and checks that
// nothing is left running.
type Factory func(t *testing.T, policy queue.Policy, holdLimit int, body func(t *testing.T, s Subject))

// Run runs the whole suite against one implementation.
func Run(t *testing.T, factory Factory) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { factory(t, c.policy(), c.holdLimit, c.body) })
	}
}

type suiteCase struct {
	name      string
	holdLimit int
	policy    func() queue.Policy
	body      func(t *testing.T, s Subject)
}

// slots is a policy of that many slots where every object of known size is a session and nothing else limits.
func slots(n int) func() queue.Policy {
	return func() queue.Policy {
		p := queue.DefaultPolicy(n)
		p.Reserve, p.PerPrincipal, p.SessionMinBytes, p.BandBytesPerSecond = 0, n, 0, size
		return p
	}
}

// size of every object: a second of the configured band.
const size = 1 << 20

func ask(principal, object string) queue.Ask {
	return queue.Ask{Key: queue.Key{Principal: principal, Object: object, Client: "c"}, Class: queue.Release, SizeBytes: size, Validator: `"v"`}
}

// admit asks and fails the test unless the outcome is that one.
func admit(t *testing.T, s Subject, want queue.Outcome, a queue.Ask) (Grant, queue.Verdict) {
	t.Helper()
	g, v := s.Queue.Admit(a)
	if v.Outcome != want || (g != nil) != (want == queue.Admitted) {
		t.Fatalf("%s/%s: outcome %v with grant %v, want %v", a.Key.Principal, a.Key.Object, v.Outcome, g != nil, want)
	}
	return g, v
}

// answer is what a held request got.
type answer struct {
	grant   Grant
	verdict queue.Verdict
}

// hold holds a request on its own goroutine and returns when it is held or answered.
func hold(s Subject, a queue.Ask, wait time.Duration, gone <-chan struct{}) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		g, v := s.Queue.Hold(a, wait, gone)
		out <- answer{g, v}
	}()
	s.Settle()
	return out
}

// got returns the answer that must be there once everything settled.
func got(t *testing.T, s Subject, from <-chan answer, want queue.Outcome) answer {
	t.Helper()
	s.Settle()
	select {
	case a := <-from:
		if a.verdict.Outcome != want || (a.grant != nil) != (want == queue.Admitted) {
			t.Fatalf("held request got %v with grant %v, want %v", a.verdict.Outcome, a.grant != nil, want)
		}
		return a
	default:
		t.Fatalf("held request got no answer, want %v", want)
		return answer{}
	}
}

// none fails when a held request is answered already.
func none(t *testing.T, s Subject, from <-chan answer) {
	t.Helper()
	s.Settle()
	select {
	case a := <-from:
		t.Fatalf("held request got %+v, want none yet", a.verdict)
	default:
	}
}

// empty fails unless nothing is active, waiting or held.
func empty(t *testing.T, s Subject) {
	t.Helper()
	if snap := s.Queue.Snapshot(); snap.ActiveTotal() != 0 || snap.WaitingTotal() != 0 || snap.Held != 0 {
		t.Fatalf("left over: %d active, %d waiting, %d held", snap.ActiveTotal(), snap.WaitingTotal(), snap.Held)
	}
}

package replay

import (
	"fmt"
	"io"
	"slices"

	"github.com/arkvory/sidecar/queue"
)

// MaxDescribed bounds Report.Described.
const MaxDescribed = 20

// Report is what a replay found.
type Report struct {
	Events      int                // calls of the core
	Decisions   int                // facts compared: verdicts, settled requests, ended stays, states after ticks, answers to withdraw and depart
	Starts      [queue.Classes]int // sessions that got a slot, by applied class
	Preemptions int                // slots given up to the head of the queue
	Cores       int                // fresh cores: 1, and one more each time the process began anew with one
	Differences int                // facts in which the replayed core differs
	Described   []string           // the first MaxDescribed of them, each with its line
}

// Replay feeds a log to a fresh core and compares everything it decides with what the log says. Differences are no error: they are in
// the report. A log that cannot be read is a *LineError, with the report of what is before that line. A core that panics is an
// error as well.
func Replay(r io.Reader) (Report, error) {
	p := &player{}
	err := Parse(r, p.play)
	return p.report, err
}

// player is one replay under way.
type player struct {
	report    Report
	core      *queue.Scheduler
	responses map[uint64]*queue.Response // open ones of this core by their number in the log; nil when the replayed core did not admit
	waiters   map[uint64]*queue.Waiter   // the same for held requests
}

// played is what the core answered to one event, in the terms of the log.
type played struct {
	verdict queue.Verdict
	ok      bool
	state   State
	settled []queue.Settled
	ended   []queue.End
}

func (p *player) play(e *Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &LineError{e.Line, fmt.Errorf("the core panicked at the call %s: %v", e.Op, v)}
		}
	}()
	if e.Op != OpPolicy && p.core == nil {
		return &LineError{e.Line, fmt.Errorf("the first call must be policy, not %s", e.Op)}
	}
	p.report.Events++
	got, err := p.step(e)
	if err != nil {
		return &LineError{e.Line, err}
	}
	p.core.FreeSlots() // as the shell does after each call
	got.settled, got.ended = p.core.TakeSettled(), p.core.TakeEnded()
	p.compare(e, &got)
	return nil
}

// step makes the call.
func (p *player) step(e *Event) (got played, err error) {
	switch e.Op {
	case OpPolicy:
		p.core, err = queue.New(e.Policy)
		p.responses, p.waiters = map[uint64]*queue.Response{}, map[uint64]*queue.Waiter{}
		p.report.Cores++
	case OpConfigure:
		err = p.core.Configure(e.Now, e.Policy)
	case OpAsk:
		var r *queue.Response
		p.core.ExpectArrival(e.Verdict.Arrival)
		r, got.verdict = p.core.Ask(e.Now, e.Ask)
		p.admitted(e.Response, r)
	case OpHold:
		var w *queue.Waiter
		var r *queue.Response
		p.core.ExpectArrival(e.Verdict.Arrival)
		w, r, got.verdict = p.core.Hold(e.Now, e.Ask, e.Waiter)
		if e.Waiter != 0 {
			p.waiters[e.Waiter] = w
		}
		p.admitted(e.Response, r)
	case OpWithdraw, OpDepart:
		err = p.endHold(e, &got)
	case OpLeave:
		p.core.Leave(e.Now, e.Ask.Key)
	case OpProgress, OpFinish, OpAbandon:
		err = p.move(e)
	case OpTick:
		p.core.Tick(e.Now)
		got.state = StateOf(p.core, e.Now)
	case OpDrain:
		p.core.Drain(e.Now)
	case OpGrace:
		p.core.Grace(e.Gather, e.Until)
	case OpAct:
		got.ok = p.core.Act(e.Now, e.Ask.Key, e.Action) == nil
	case OpGate:
		p.core.SetGate(e.Now, e.Open)
	case OpWindows:
		err = p.core.SetWindows(e.Now, e.Windows)
	}
	return got, err
}

func (p *player) admitted(number uint64, r *queue.Response) {
	if number != 0 {
		p.responses[number] = r
	}
}

func (p *player) endHold(e *Event, got *played) error {
	w, known := p.waiters[e.Waiter]
	if !known {
		return fmt.Errorf("held request %d is not known, or was answered before", e.Waiter)
	}
	if e.OK {
		delete(p.waiters, e.Waiter)
	}
	switch {
	case w == nil: // the replayed core did not hold it: a difference that was counted there
	case e.Op == OpDepart:
		got.ok = p.core.Depart(e.Now, w)
	default:
		got.verdict, got.ok = p.core.Withdraw(e.Now, w)
	}
	return nil
}

func (p *player) move(e *Event) error {
	r, known := p.responses[e.Response]
	if !known {
		return fmt.Errorf("response %d is not known, or ended before", e.Response)
	}
	if e.Op != OpProgress {
		delete(p.responses, e.Response)
	}
	switch {
	case r == nil:
	case e.Op == OpProgress:
		p.core.Progress(e.Now, r, e.Bytes)
	case e.Op == OpFinish:
		p.core.Finish(e.Now, r, e.First, e.End, e.Complete)
	default:
		p.core.Abandon(e.Now, r)
	}
	return nil
}

// compare judges what the core answered.
func (p *player) compare(e *Event, got *played) {
	switch e.Op {
	case OpAsk, OpHold, OpWithdraw:
		p.verdict(e, "answers", &got.verdict, &e.Verdict)
	case OpTick:
		p.same(e, "leaves", got.state == e.State, got.state, e.State)
	}
	switch e.Op {
	case OpAct:
		p.same(e, "carries it out", got.ok == e.OK, got.ok, e.OK)
	case OpWithdraw, OpDepart:
		p.same(e, "takes it back", got.ok == e.OK, got.ok, e.OK)
	}
	for i := range max(len(got.settled), len(e.Settled)) {
		switch {
		case i >= len(e.Settled):
			p.differ(e, "the core settles held request %v, the log nothing more", got.settled[i].Owner)
		case i >= len(got.settled):
			p.differ(e, "the log settles held request %d, the core nothing more", e.Settled[i].Waiter)
			p.settle(&e.Settled[i], nil)
		default:
			s, want := &got.settled[i], &e.Settled[i]
			p.settle(want, s.Response)
			p.same(e, "settles first", s.Owner == any(want.Waiter), s.Owner, want.Waiter)
			p.verdict(e, fmt.Sprintf("settles held request %d with", want.Waiter), &s.Verdict, &want.Verdict)
		}
	}
	if !slices.Equal(got.ended, e.Ended) {
		p.differ(e, "the core ends %s, the log %s", ends(got.ended), ends(e.Ended))
	}
	p.report.Decisions += len(e.Ended)
	for _, end := range e.Ended {
		if end.Reason == queue.ReasonYielded {
			p.report.Preemptions++
		}
	}
}

func (p *player) settle(s *Settled, r *queue.Response) {
	delete(p.waiters, s.Waiter)
	p.admitted(s.Response, r)
}

// verdict compares two verdicts and counts the start that the log's may tell.
func (p *player) verdict(e *Event, what string, got, want *queue.Verdict) {
	if want.Outcome == queue.Admitted && want.Started {
		p.report.Starts[want.Class.Index()]++
	}
	g, w := comparableVerdict(*got), comparableVerdict(*want)
	if p.report.Decisions++; g != w {
		p.differ(e, "the core %s%s, the log%s", what, appendVerdict(nil, &g, 0), appendVerdict(nil, &w, 0))
	}
}

// same counts a comparison of another fact.
func (p *player) same(e *Event, what string, equal bool, got, want any) {
	if p.report.Decisions++; !equal {
		p.differ(e, "the core %s %v, the log %v", what, got, want)
	}
}

func (p *player) differ(e *Event, format string, values ...any) {
	p.report.Differences++
	if len(p.report.Described) < MaxDescribed {
		p.report.Described = append(p.report.Described, fmt.Sprintf("line %d, %s: ", e.Line, e.Op)+fmt.Sprintf(format, values...))
	}
}

func ends(list []queue.End) []byte {
	b := []byte("[")
	for i := range list {
		b = appendEnd(b, &list[i])
		b = append(b, ';')
	}
	return append(b, ']')
}

package queue

import (
	"hash/fnv"
	"strings"
	"testing"
	"time"
)

// The property tests prove something only if a fault makes them fail. Each of these subjects is the scheduler with one
// fault; it must be caught, and the test says by which check.

// faultHistories is how many histories a fault may survive.
const faultHistories = 2000

// reversedArrivals compares arrivals the wrong way: who came last stands first. It gives the core every arrival negated.
type reversedArrivals struct{ *Scheduler }

func (f reversedArrivals) reverse(now time.Duration, a Ask) Ask {
	if !a.Ticketed {
		a.Arrival = now
	}
	a.Ticketed, a.Arrival = true, f.turned(a.Arrival)
	return a
}

// turned reverses an arrival, and back; an hour keeps it in the past, as arrivals of tickets are.
func (f reversedArrivals) turned(at time.Duration) time.Duration { return -at - time.Hour }

func (f reversedArrivals) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	r, v := f.Scheduler.Ask(now, f.reverse(now, a))
	v.Arrival = f.turned(v.Arrival)
	return r, v
}

func (f reversedArrivals) Hold(now time.Duration, a Ask, owner any) (*Waiter, *Response, Verdict) {
	w, r, v := f.Scheduler.Hold(now, f.reverse(now, a), owner)
	v.Arrival = f.turned(v.Arrival)
	return w, r, v
}

func (f reversedArrivals) Withdraw(now time.Duration, w *Waiter) (Verdict, bool) {
	v, held := f.Scheduler.Withdraw(now, w)
	v.Arrival = f.turned(v.Arrival)
	return v, held
}

func (f reversedArrivals) TakeSettled() []Settled {
	out := f.Scheduler.TakeSettled()
	for i := range out {
		out[i].Verdict.Arrival = f.turned(out[i].Verdict.Arrival)
	}
	return out
}

func (f reversedArrivals) Order(yield func(Placed) bool) {
	f.Scheduler.Order(func(p Placed) bool {
		p.Arrival = f.turned(p.Arrival)
		return yield(p)
	})
}

// unstableTies breaks ties between arrivals of one moment by something that has nothing to do with the order of arrival,
// as pointers would: the arrival is the moment less up to a microsecond by the hash of the key.
type unstableTies struct{ *Scheduler }

func (f unstableTies) shift(now time.Duration, a Ask) Ask {
	if !a.Ticketed {
		h := fnv.New32a()
		h.Write([]byte(a.Key.Principal + a.Key.Object + a.Key.Client))
		a.Ticketed, a.Arrival = true, now-time.Duration(h.Sum32()%1000)
	}
	return a
}

// told rounds the shifted arrival up again: nothing but the order betrays the fault.
func (f unstableTies) told(v Verdict) Verdict {
	v.Arrival = f.round(v.Arrival)
	return v
}

func (f unstableTies) round(at time.Duration) time.Duration {
	up := at.Truncate(time.Millisecond)
	if up < at {
		up += time.Millisecond
	}
	return up
}

func (f unstableTies) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	r, v := f.Scheduler.Ask(now, f.shift(now, a))
	return r, f.told(v)
}

func (f unstableTies) Hold(now time.Duration, a Ask, owner any) (*Waiter, *Response, Verdict) {
	w, r, v := f.Scheduler.Hold(now, f.shift(now, a), owner)
	return w, r, f.told(v)
}

func (f unstableTies) Withdraw(now time.Duration, w *Waiter) (Verdict, bool) {
	v, held := f.Scheduler.Withdraw(now, w)
	return f.told(v), held
}

func (f unstableTies) TakeSettled() []Settled {
	out := f.Scheduler.TakeSettled()
	for i := range out {
		out[i].Verdict = f.told(out[i].Verdict)
	}
	return out
}

func (f unstableTies) Order(yield func(Placed) bool) {
	f.Scheduler.Order(func(p Placed) bool {
		p.Arrival = f.round(p.Arrival)
		return yield(p)
	})
}

// leakedSlot does not get one slot back: after an end that leaves a slot free, the slot goes to a session that nobody has asked
// for and stays there. Counters hide it.
type leakedSlot struct {
	*Scheduler
	leaked bool
}

func (f *leakedSlot) leak(now time.Duration) {
	if f.leaked || f.Policy().Strategy == Shared {
		return
	}
	a := Ask{Key: Key{Principal: "phantom"}, Class: Background, SizeBytes: 1 << 40}
	if f.FreeSlots() > 0 {
		r, _ := f.Scheduler.Ask(now, a)
		f.leaked = r != nil
	}
}

func (f *leakedSlot) Finish(now time.Duration, r *Response, first, end int64, complete bool) {
	f.Scheduler.Finish(now, r, first, end, complete)
	f.leak(now)
}

func (f *leakedSlot) Abandon(now time.Duration, r *Response) {
	f.Scheduler.Abandon(now, r)
	f.leak(now)
}

func (f *leakedSlot) Moves() Moves {
	m := f.Scheduler.Moves()
	if f.leaked {
		m.Arrived[Background]--
		m.Granted[Background]--
	}
	return m
}

func (f *leakedSlot) FreeSlots() int {
	n := f.Scheduler.FreeSlots()
	if f.leaked && f.Scheduler.Snapshot(0).WaitingTotal() == 0 && f.Policy().Strategy != Shared {
		n++
	}
	return n
}

func (f *leakedSlot) Snapshot(now time.Duration) Snapshot {
	s := f.Scheduler.Snapshot(now)
	if f.leaked {
		s.Active[Background]--
		s.Counts.Started--
	}
	return s
}

// keptSlot keeps the slot of a client that is known to have left, as if it only paused between two ranges.
type keptSlot struct{ *Scheduler }

func (f keptSlot) Abandon(now time.Duration, r *Response) { f.Finish(now, r, 0, 0, false) }

// reservedForHead holds a free slot for the absent head of the queue: a present client behind it is told to wait.
type reservedForHead struct{ *Scheduler }

func (f reservedForHead) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	if !f.policy.session(a.SizeBytes) {
		return f.Scheduler.Ask(now, a)
	}
	position, at := 0, 0
	absent := false
	f.Order(func(p Placed) bool {
		at++
		absent = absent || at == 1 && p.Held == 0
		if p.Key == a.Key {
			position = at
		}
		return true
	})
	if position < 2 || !absent || !f.eligible(coreSession(f.Scheduler, a.Key)) {
		return f.Scheduler.Ask(now, a)
	}
	return nil, Verdict{Outcome: Queued, Class: a.Class, Position: position, CheckIn: time.Second}
}

// coveredBundle ends a bundle when all it is known to want was delivered, as a download of one object ends.
type coveredBundle struct{ *Scheduler }

func (f coveredBundle) Finish(now time.Duration, r *Response, first, end int64, complete bool) {
	f.Scheduler.Finish(now, r, first, end, complete)
	if ses := r.session; ses.state == active && ses.bundle() != nil && ses.running() == 0 && ses.remaining() == 0 && !ses.yielding {
		f.stop(now, ses, ReasonCompleted)
	}
}

// grabbingPeek takes the slot that it was only to ask for.
type grabbingPeek struct{ *Scheduler }

func (f grabbingPeek) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	peeked := a.Peek
	a.Peek = false
	r, v := f.Scheduler.Ask(now, a)
	if !peeked || r == nil {
		return r, v
	}
	f.Scheduler.Finish(now, r, 0, 0, false)
	return nil, Verdict{Outcome: Ready, Class: v.Class, CheckIn: time.Second, Arrival: v.Arrival}
}

// doubledMember counts an object again whenever it is asked for.
type doubledMember struct {
	*Scheduler
	asked uint64
}

func (f *doubledMember) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	if a.Bundle {
		f.asked++
		a.Member += f.asked << 32
	}
	return f.Scheduler.Ask(now, a)
}

// hasty gives slots at once after a restart.
type hasty struct{ *Scheduler }

func (f hasty) Grace(_, until time.Duration) { f.Scheduler.Grace(0, until) }

// overtaking lets those that came back take slots by the marks, as at any other time.
type overtaking struct{ *Scheduler }

func (f overtaking) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	if ses := coreSession(f.Scheduler, a.Key); ses != nil && ses.state == waiting && !ses.newcomer() {
		until := f.graceUntil
		f.graceUntil = 0
		defer func() { f.graceUntil = until }()
	}
	return f.Scheduler.Ask(now, a)
}

func TestQ3_Q7_Q19_FaultsAreCaught(t *testing.T) {
	seed := envNumber(t, "ARKVORY_SEED", 20261130)
	for _, fault := range []struct {
		name string
		wrap func(*Scheduler) subject
	}{
		{"comparator: arrivals the wrong way", func(s *Scheduler) subject { return reversedArrivals{s} }},
		{"comparator: ties by chance", func(s *Scheduler) subject { return unstableTies{s} }},
		{"a leaked slot that no counter shows", func(s *Scheduler) subject { return &leakedSlot{Scheduler: s} }},
		{"a slot kept for a client that left", func(s *Scheduler) subject { return keptSlot{s} }},
		{"a bundle that is complete by what it covers", func(s *Scheduler) subject { return coveredBundle{s} }},
		{"a peek that takes a slot", func(s *Scheduler) subject { return grabbingPeek{s} }},
		{"an object of a bundle counted twice", func(s *Scheduler) subject { return &doubledMember{Scheduler: s} }},
		{"slots given before those who held places are back", func(s *Scheduler) subject { return hasty{s} }},
		{"marks in the grace after a restart", func(s *Scheduler) subject { return overtaking{s} }},
		{"a shut class that starts somebody", func(s *Scheduler) subject { return deafToWindows{s} }},
		{"a class that saves turns while it is shut", func(s *Scheduler) subject { return savingWindows{s} }},
		{"a pause that is not carried out", func(s *Scheduler) subject { return deafToPause{s} }},
		{"a kicked session that comes back to its place", func(s *Scheduler) subject { return forgivingKick{s} }},
		{"a move that the principal pays for", func(s *Scheduler) subject { return payingMove{s} }},
		{"a gate that does not shut", func(s *Scheduler) subject { return openGate{s} }},
		{"a dry run that lets somebody wait", func(s *Scheduler) subject { return waitingDryRun{s} }},
		{"a slot held for the absent head", func(s *Scheduler) subject { return reservedForHead{s} }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			failed, played, _ := search(seed, faultHistories, fault.wrap)
			if failed == nil {
				t.Fatalf("seed %d: %d histories did not notice", seed, played)
			}
			if strings.HasPrefix(failed.err.Error(), "panic") {
				t.Fatalf("the fault broke the machinery instead of failing a check: %v", failed.err)
			}
			short, err := shrink(randomHistory(seed, failed.at), func(h history) error { _, err := play(h, fault.wrap); return err })
			t.Logf("seed %d: caught in history %d of %d events; shortest has %d: %v", seed, failed.at, len(randomHistory(seed, failed.at).events), len(short.events), err)
			if _, err := play(short, nil); err != nil {
				t.Errorf("the same history fails without the fault too, so it proves nothing: %v", err)
			}
		})
	}
}

package queue

import (
	"math"
	"testing"
	"time"
)

// Extremes of sizes, clocks and numbers that a review looked for, and what it found.

func TestQ18_AClockOfManyYearsKeepsTheWheel(t *testing.T) {
	for _, years := range []int{10, 56} { // 56: since 1970
		h := newHarness(t, testPolicy(1))
		h.now = time.Duration(years*365*24) * time.Hour
		h.want(Admitted, askOf("p", "o"))
		h.want(Queued, askOf("q", "o"))
		h.tick(TickEvery)
		if behind := h.now - time.Duration(h.s.due.cursor)*TickEvery; behind >= time.Second {
			t.Errorf("after %d years the wheel starts %v behind", years, behind)
		}
		h.tick(30 * time.Second)
		if got := h.reasons(); len(got) != 1 || got[0] != ReasonNoShow {
			t.Errorf("after %d years ended %v, want one no-show", years, got)
		}
	}
}

// TestQ12_TheWheelKeepsUpWithContacts: a crowd whose clients come every five minutes costs the wheel a visit each time. Those must
// not use up the budget that no-shows need.
func TestQ12_TheWheelKeepsUpWithContacts(t *testing.T) {
	const n, every, ticks = 4 * crowdSize, 600, 1800
	var w dueWheel
	crowd := make([]session, n)
	dueOf := func(s *session) time.Duration { return s.noShowAt }
	for tick := range ticks {
		now := time.Duration(tick) * TickEvery
		for i := tick % every; i < n; i += every {
			crowd[i].noShowAt = now + 400*time.Second
			w.set(now, &crowd[i], crowd[i].noShowAt)
		}
		w.expire(now, expireFloor+n/expireShare, dueOf, func(s *session) { t.Error("a no-show though everybody came") })
	}
	if behind := ticks*TickEvery - time.Duration(w.cursor)*TickEvery; behind > 2*time.Second {
		t.Errorf("the wheel is %v behind", behind)
	}
}

func TestX3_ASizeThatAnOriginMadeUpKeepsTheVirtualSystem(t *testing.T) {
	p := testPolicy(1)
	p.Strategy = FairSojourn
	h := newHarness(t, p)
	r, _ := h.want(Admitted, askOf("p", "o"))
	h.s.Progress(h.now, r, mib)
	h.want(Queued, askOf("small", "o"))
	_, v := h.want(Queued, askOf("huge", "o").sized(math.MaxInt64))
	h.s.Progress(h.now, r, mib)
	h.check()
	if v.Position != 2 || h.s.fair.v <= 0 {
		t.Fatalf("position %d, V %d", v.Position, h.s.fair.v)
	}
}

// TestX3_DownloadsThatBeginLateLeaveNothingBehind: a client that resumes near the end delivers less than its object's size. What it
// never asks for must not stay in the virtual system, where it would stop V and grow the members without bound.
func TestX3_DownloadsThatBeginLateLeaveNothingBehind(t *testing.T) {
	p := testPolicy(2)
	p.Strategy = FairSojourn
	h := newHarness(t, p)
	h.want(Admitted, askOf("long", "o").sized(1<<50))
	const size, rest = 10 << 30, mib
	for i := range 200 {
		r, _ := h.want(Admitted, askOf("p", name("o", i)).sized(size).bytes(OpenFrom(size-rest)))
		h.s.Progress(h.now, r, rest)
		h.finish(r, size-rest, size, true)
		h.pass(time.Second)
	}
	// Under equal sharing some of them would still run beside the long one, about the root of twice their number.
	if n := h.s.fair.others.len(); n > 40 {
		t.Fatalf("%d members of the virtual system of 201", n)
	}
}

func TestQ8_HugeSizesSumUpInEveryOrder(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		p := testPolicy(1)
		p.Strategy, p.BandBytesPerSecond = strategy, math.MaxInt64
		h := newHarness(t, p)
		h.want(Admitted, askOf("p", "o").sized(math.MaxInt64))
		for i := range 300 {
			h.s.Ask(h.now, askOf(name("q", i%7), name("o", i)).sized(math.MaxInt64-int64(i)))
		}
		h.tick(TickEvery)
		var sum int64
		for c := range h.s.lines {
			sum += h.s.lines[c].bytes()
		}
		if sum != 300<<42 {
			t.Errorf("%v: %d bytes wait", strategy, sum)
		}
	}
}

// TestX6_WhatIsToldIsInOrder: the earliest start is not after the p50, nor that after the p90, whatever the errors before were.
func TestX6_WhatIsToldIsInOrder(t *testing.T) {
	for _, real := range []time.Duration{time.Second, 10 * time.Second, 3 * time.Hour} { // promised are 100 s each
		p := testPolicy(1)
		p.BandBytesPerSecond = mib
		h := newHarness(t, p)
		r, _ := h.want(Admitted, askOf("p", "first"))
		for i := range 40 {
			h.hold(askOf(name("q", i), "o"))
		}
		for range 30 {
			h.pass(real)
			h.finish(r, 0, 100*mib, true)
			for _, s := range h.s.TakeSettled() {
				if s.Response != nil {
					r = s.Response
				}
			}
			_, v := h.want(Queued, askOf("last", "o"))
			if v.EarliestIn < 0 || v.EarliestIn > v.StartsIn || v.StartsIn > v.LatestIn {
				t.Fatalf("each takes %v: told %v..%v, p50 %v", real, v.EarliestIn, v.LatestIn, v.StartsIn)
			}
		}
		// The farthest promise with the worst errors is still a time.
		h.s.calibration.p90 = 1e6
		v := Verdict{}
		h.s.model.starts[0], h.s.model.at = longestPromise.Seconds()-1, h.now
		h.s.estimate(h.now, h.session(askOf("last", "o").Key), 0, 0, &v)
		if !v.EstimateKnown || v.LatestIn < v.StartsIn {
			t.Fatalf("told p50 %v, p90 %v", v.StartsIn, v.LatestIn)
		}
	}
}

// TestX6_WithoutARateNothingIsTold: the forecast for the last ones was made while a rate was known.
func TestX6_WithoutARateNothingIsTold(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.want(Admitted, askOf("p", "o"))
	h.want(Queued, askOf("q", "o"))
	h.s.model.lastFrom, h.s.model.lastAt, h.s.model.n, h.s.model.peak = 1, 100, 1, 0
	v := Verdict{}
	h.s.estimate(h.now, h.session(askOf("q", "o").Key), 5, 1<<30, &v)
	if v.EstimateKnown {
		t.Fatalf("told %+v", v)
	}
}

// TestX4_SmallFilesCountAsNotHeldBack: sessions that end before their rate means something are most of a queue of small files.
func TestX4_SmallFilesCountAsNotHeldBack(t *testing.T) {
	p := testPolicy(4)
	p.BandBytesPerSecond = 100_000_000
	h := newHarness(t, p)
	for i := range 600 {
		r, _ := h.want(Admitted, askOf("p", name("o", i)))
		ticks, bytes := 2, int64(50*mib)
		if i%60 == 0 { // its client takes 200 kB/s
			ticks, bytes = 50, 100_000
		}
		for range ticks {
			h.pass(TickEvery)
			h.s.Progress(h.now, r, bytes)
			h.s.Tick(h.now)
		}
		h.finish(r, 0, 100*mib, true)
	}
	if share := h.s.model.slowShare; share > 0.06 {
		t.Fatalf("one in 60 is slow, taken for %.2f", share)
	}
}

// TestX8_TheFirstOfTheQueueHasItsTurnWhenTheGraceEnds: ticks in which a slot stayed free because newcomers were kept away say nothing
// about whether the first of them come.
func TestX8_TheFirstOfTheQueueHasItsTurnWhenTheGraceEnds(t *testing.T) {
	h := newHarness(t, testPolicy(2))
	h.s.Grace(0, 30*time.Second)
	newcomers := func(o Outcome) {
		for i := range 40 {
			h.want(o, askOf(name("q", i), "o"))
			h.pass(time.Millisecond)
		}
	}
	newcomers(Queued)
	h.tick(15*time.Second - h.now)
	newcomers(Queued)
	h.tick(30*time.Second - h.now)
	if h.s.unclaimed < 40 {
		t.Fatalf("%d ticks without a start in the grace", h.s.unclaimed)
	}
	h.want(Queued, askOf("q39", "o"))
	h.want(Admitted, askOf("q0", "o"))
}

// TestQ16_NoSlotIsGivenUpThatTheHeadMayNotHave: at the choice it was of use; since then others took the common slots, and what the
// interactive session holds is of the reserve.
func TestQ16_NoSlotIsGivenUpThatTheHeadMayNotHave(t *testing.T) {
	p := testPolicy(4)
	p.Reserve, p.PerPrincipal = 1, 1
	h := newHarness(t, p)
	other, _ := h.want(Admitted, askOf("other", "1").in(Interactive))
	vip := askOf("vip", "1").in(Interactive)
	r, _ := h.want(Admitted, vip)
	h.want(Admitted, askOf("vip", "2").in(Interactive))
	h.want(Admitted, askOf("r1", "o"))
	h.pass(PreemptAfter)
	h.want(Queued, askOf("head", "o"))
	h.want(Queued, askOf("second", "o"))
	h.tick(4 * time.Second)
	if h.session(vip.Key).yieldTo() == nil {
		t.Fatal("nobody was chosen")
	}
	h.finish(r, 0, 1, false)
	h.s.Leave(h.now, other.session.key())
	h.s.Abandon(h.now, other)
	h.want(Admitted, askOf("second", "o")) // the common slot that freed
	// All common slots but one are taken; lower that one away.
	p.Reserve = 2
	h.configure(p)
	if _, v := h.ask(vip); v.Outcome != Admitted {
		t.Fatalf("%v, yielded %v: its slot is of the reserve", v.Outcome, v.Yielded)
	}
}

// TestQ16_X8_NothingIsGivenUpForAHeadThatStandsBack: in the grace after a restart a newcomer takes no slot.
func TestQ16_X8_NothingIsGivenUpForAHeadThatStandsBack(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	x := askOf("x", "o").in(Bulk)
	h.want(Admitted, x)
	h.pass(PreemptAfter)
	h.s.Grace(0, h.now+10*time.Second)
	h.want(Queued, askOf("head", "o"))
	h.tick(4 * time.Second)
	h.want(Admitted, x)
	h.want(Queued, askOf("head", "o"))
	h.tick(10 * time.Second)
	if _, v := h.want(Queued, x); !v.Yielded {
		t.Fatal("after the grace the head gets no slot")
	}
}

package queue

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

func TestX7_QueueAllGivesNoSlotAndKeepsPlaces(t *testing.T) {
	p := testPolicy(2)
	p.Mode, p.BandBytesPerSecond = ModeQueueAll, mib
	h := newHarness(t, p)
	if h.s.FreeSlot() {
		t.Error("a slot is free for newcomers")
	}
	if _, v := h.want(Queued, askOf("a", "a")); v.Position != 1 || v.EstimateKnown || v.CheckIn < 10*time.Second || v.CheckIn > 15*time.Second {
		t.Fatalf("told %+v", v)
	}
	h.hold(askOf("b", "b"))
	h.tick(20 * time.Second)
	if snap := h.snap(); snap.WaitingTotal() != 2 || snap.ActiveTotal() != 0 {
		t.Fatalf("%+v", snap)
	}
	if missed := h.s.missed(); missed != 0 {
		t.Errorf("%d ticks are counted against clients that could not start", missed)
	}
	p.Mode = ModeNormal
	h.configure(p)
	got := h.s.TakeSettled()
	if len(got) != 1 || got[0].Response == nil {
		t.Fatalf("when it ended the held request got %+v", got)
	}
	r, _ := h.want(Admitted, askOf("a", "a"))
	p.Mode = ModeQueueAll
	h.configure(p)
	h.want(Admitted, askOf("a", "a").bytes(OpenFrom(5))) // ranges of active sessions go on
	h.finish(r, 0, 100*mib, true)
	if h.snap().ActiveTotal() != 2 {
		t.Error("the mode took a slot")
	}
}

func TestX7_PassThroughEndsWaitsAndLetsActiveOnesFinish(t *testing.T) {
	p := testPolicy(1)
	h := newHarness(t, p)
	r, _ := h.want(Admitted, askOf("first", "running"))
	h.hold(askOf("a", "a"))
	h.want(Queued, askOf("b", "b"))
	h.act(PauseIt, askOf("b", "b"), nil)
	p.Mode = ModePassThrough
	h.configure(p)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Verdict.Outcome != PerRequest {
		t.Fatalf("settled %+v", got)
	}
	h.want(PerRequest, askOf("c", "c"))
	h.want(PerRequest, askOf("b", "b"))
	h.want(Admitted, askOf("first", "running").bytes(OpenFrom(1)))
	if free := h.s.FreeSlots(); free != math.MaxInt {
		t.Errorf("%d slots are free", free)
	}
	h.finish(r, 0, 100*mib, true)
	p.Mode = ModeNormal
	h.configure(p)
	if _, v := h.want(Queued, askOf("a", "a")); v.Arrival != 0 {
		t.Fatalf("the place is forgotten: %+v", v)
	}
	if _, v := h.want(Queued, askOf("b", "b")); v.Position != 0 {
		t.Fatalf("the pause is forgotten: %+v", v)
	}
}

func TestX7_RejectNewTakesThoseItKnowsAndTickets(t *testing.T) {
	p := testPolicy(1)
	h := newHarness(t, p)
	r := queued(h, "a")
	h.want(Queued, askOf("pb", "b"))
	w, _, _ := h.hold(func() Ask { a := askOf("pc", "c"); a.Protocol = false; return a }())
	h.s.Depart(h.now, w) // remembered
	p.Mode = ModeRejectNew
	h.configure(p)
	if _, v := h.want(Rejected, askOf("new", "n")); v.CheckIn < limitCheckLow || v.CheckIn > limitCheckHigh {
		t.Fatalf("told %+v", v)
	}
	ticket := askOf("back", "t")
	ticket.Ticketed, ticket.Arrival = true, -time.Minute
	if _, v := h.want(Queued, ticket); v.Arrival != -time.Minute {
		t.Fatalf("told %+v", v)
	}
	h.want(Queued, askOf("pa", "a"))
	h.want(Queued, askOf("pc", "c"))
	h.want(Admitted, askOf("first", "running").bytes(OpenFrom(1)))
	if snap := h.snap(); snap.Counts.RejectedNew != 1 || h.s.FreeSlot() || snap.Counts.Refused != 0 {
		t.Fatalf("%+v", snap.Counts)
	}
	h.finish(r, 0, 100*mib, true)
}

func TestX7_DryRunDelaysNobodyAndCountsWhoWouldWait(t *testing.T) {
	p := testPolicy(1)
	p.Mode, p.BandBytesPerSecond, p.QueueLimit, p.QueuePerPrincipal = ModeDryRun, mib, 8, 1
	h := newHarness(t, p)
	var running []*Response
	for i := range 4 {
		r, v := h.want(Admitted, askOf("p", name("o", i)))
		if v.Waited != 0 || !v.Started {
			t.Fatalf("told %+v", v)
		}
		running = append(running, r)
	}
	c := h.snap().Counts
	// 100 MiB at 1 MiB/s each: the second would have waited for the first, and so on.
	if want := (100 + 200 + 300) * time.Second; c.WouldWait != 3 || (c.WouldWaitFor-want).Abs() > time.Second {
		t.Fatalf("%d would have waited, %v together, want 3, %v", c.WouldWait, c.WouldWaitFor, want)
	}
	p.Mode = ModeNormal
	h.configure(p)
	h.want(Queued, askOf("q", "o"))
	for i, r := range running { // those above the slots just finish
		if snap := h.snap(); snap.ActiveTotal() != 4-i {
			t.Fatalf("%d active", snap.ActiveTotal())
		}
		h.want(Queued, askOf("q", "o"))
		h.finish(r, 0, 100*mib, true)
	}
	h.want(Admitted, askOf("q", "o"))
}

func TestX7_DryRunStartsThoseWhoWait(t *testing.T) {
	p := testPolicy(1)
	h := newHarness(t, p)
	queued(h, "a")
	h.hold(askOf("b", "b"))
	h.act(PauseIt, askOf("pa", "a"), nil)
	p.Mode = ModeDryRun
	h.configure(p)
	if got := h.s.TakeSettled(); len(got) != 1 || got[0].Response == nil {
		t.Fatalf("settled %+v", got)
	}
	h.want(Queued, askOf("pa", "a")) // what the operator paused stays paused
	h.act(ResumeIt, askOf("pa", "a"), nil)
	h.want(Admitted, askOf("pa", "a"))
}

func TestU7_AShutGateKeepsPlacesAndTellsAShortTime(t *testing.T) {
	p := testPolicy(2)
	p.BandBytesPerSecond = mib
	h := newHarness(t, p)
	r, _ := h.want(Admitted, askOf("first", "running"))
	h.s.SetGate(h.now, false)
	h.check()
	if h.s.FreeSlot() {
		t.Error("a slot is free without an upstream")
	}
	for i := range 40 {
		_, v := h.want(Queued, askOf(name("p", i), "o"))
		if v.Position != i+1 || v.EstimateKnown || v.CheckIn < 2*time.Second || v.CheckIn > 10*time.Second {
			t.Fatalf("number %d is told %+v", i, v)
		}
	}
	h.hold(askOf("held", "o"))
	for range 12 { // polls keep the places
		h.tick(10 * time.Second)
		for i := range 40 {
			h.want(Queued, askOf(name("p", i), "o"))
		}
	}
	h.want(Admitted, askOf("first", "running").bytes(OpenFrom(1))) // who has a slot keeps it
	h.finish(r, 0, 100*mib, true)
	snap := h.snap()
	if snap.WaitingTotal() != 41 || snap.ActiveTotal() != 1 || snap.Counts.Started != 1 {
		t.Fatalf("%+v", snap)
	}
	judged := snap.Promises.Judged
	h.s.SetGate(h.now, true)
	h.check()
	h.want(Admitted, askOf(name("p", 0), "o"))
	if n := h.snap().Promises.Judged; n != judged {
		t.Error("a promise is judged by what the upstream delayed")
	}
}

// TestX7_SwitchingModesLosesNobody goes through all pairs of modes with held, waiting, paused and active sessions.
func TestX7_SwitchingModesLosesNobody(t *testing.T) {
	modes := []Mode{ModeNormal, ModeQueueAll, ModePassThrough, ModeRejectNew, ModeDryRun}
	for _, from := range modes {
		for _, to := range modes {
			t.Run(fmt.Sprint(from, " to ", to), func(t *testing.T) {
				p := testPolicy(1)
				h := newHarness(t, p)
				running, _ := h.want(Admitted, askOf("first", "running"))
				h.want(Queued, askOf("a", "a"))
				owners := map[any]bool{}
				for _, who := range []string{"b", "c"} {
					a := askOf(who, who)
					h.hold(a)
					owners[a.Key] = true
				}
				answered := 0
				settle := func() {
					for _, s := range h.s.TakeSettled() {
						if answered++; !owners[s.Owner] {
							t.Fatalf("an answer for nobody: %+v", s)
						}
						delete(owners, s.Owner)
						if s.Response != nil {
							h.finish(s.Response, 0, 100*mib, true)
						}
					}
				}
				for _, mode := range []Mode{from, to, from, ModeNormal} {
					p.Mode = mode
					h.configure(p)
					settle()
					h.tick(2 * time.Second)
				}
				h.finish(running, 0, 100*mib, true)
				settle()
				settle() // what the first settled freed
				if len(owners) != 0 {
					t.Fatalf("%d held requests have no answer: %v", len(owners), owners)
				}
				h.tick(30 * time.Minute)
				if snap := h.snap(); snap.ActiveTotal()+snap.WaitingTotal()+snap.Paused+snap.Held != 0 {
					t.Fatalf("left over: %+v", snap)
				}
			})
		}
	}
}

func TestX7_ModesHaveNamesAndUnknownOnesAreFaults(t *testing.T) {
	for mode := range Mode(len(modeNames)) {
		if got, err := ParseMode(mode.String()); err != nil || got != mode {
			t.Errorf("%q is %v, %v", mode, got, err)
		}
	}
	if _, err := ParseMode("Normal"); err == nil {
		t.Error("a mode is taken in another case")
	}
	p := testPolicy(1)
	p.Mode = Mode(len(modeNames))
	var fault *PolicyError
	if err := p.Validate(); !errors.As(err, &fault) || fault.Field != "Mode" {
		t.Errorf("%v", err)
	}
}

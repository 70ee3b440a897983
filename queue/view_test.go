package queue

import (
	"strconv"
	"testing"
	"time"
)

// TestX6_WhySaysWhatASessionWaitsFor meets each cause once.
func TestX6_WhySaysWhatASessionWaitsFor(t *testing.T) {
	p := testPolicy(2)
	p.Reserve, p.PerPrincipal, p.Preempt = 1, 1, true
	for _, c := range []struct {
		want  Why
		setup func(h *harness)
		ask   Ask
	}{
		{WhyNone, func(h *harness) { h.want(Admitted, askOf("p", "o")) }, askOf("p", "o")},
		{WhyOperator, func(h *harness) { busy(h); h.want(Queued, askOf("p", "o")); h.act(PauseIt, askOf("p", "o"), nil) }, askOf("p", "o")},
		{WhyGate, func(h *harness) { h.s.SetGate(h.now, false); h.want(Queued, askOf("p", "o")) }, askOf("p", "o")},
		{WhyMode, func(h *harness) { p := p; p.Mode = ModeQueueAll; h.configure(p); h.want(Queued, askOf("p", "o")) }, askOf("p", "o")},
		{WhyWindow, func(h *harness) {
			plan := OpenPlan()
			plan.Shares[Bulk] = 0
			h.must(h.s.SetWindows(h.now, plan))
			h.want(Queued, askOf("p", "o").in(Bulk))
		}, askOf("p", "o")},
		{WhyGrace, func(h *harness) { h.s.Grace(h.now+time.Minute, h.now+2*time.Minute); h.want(Queued, askOf("p", "o")) }, askOf("p", "o")},
		{WhyTurn, func(h *harness) {
			r, _ := h.want(Admitted, askOf("first", "running"))
			h.want(Queued, askOf("p", "o"))
			h.finish(r, 0, 100*mib, true)
		}, askOf("p", "o")},
		{WhySlots, func(h *harness) {
			busy(h)
			h.want(Admitted, askOf("people", "i").in(Interactive))
			h.want(Queued, askOf("p", "o"))
		}, askOf("p", "o")},
		{WhyReserve, func(h *harness) { busy(h); h.want(Queued, askOf("p", "o")) }, askOf("p", "o")},
		{WhyShare, func(h *harness) {
			wide := p
			wide.Sessions, wide.Reserve = 2, 0
			h.configure(wide)
			h.want(Admitted, askOf("p", "running"))
			r, _ := h.want(Admitted, askOf("other", "running"))
			h.want(Queued, askOf("head", "h"))
			h.want(Queued, askOf("p", "o"))
			h.finish(r, 0, 100*mib, true)
		}, askOf("p", "o")},
		{WhyOrder, func(h *harness) {
			r, _ := h.want(Admitted, askOf("first", "running"))
			for i := range 5 {
				h.want(Queued, askOf(name("q", i), "o"))
			}
			h.want(Queued, askOf("p", "o"))
			h.finish(r, 0, 100*mib, true)
		}, askOf("p", "o")},
		{WhyYielded, func(h *harness) {
			one := p
			one.Sessions, one.Reserve = 1, 0
			h.configure(one)
			r, _ := h.want(Admitted, askOf("p", "o").in(Bulk).bytes(Bounded(0, 9)))
			h.now += PreemptAfter
			h.want(Queued, askOf("head", "h"))
			h.tick(4500 * time.Millisecond) // it is to come within 6 s
			h.finish(r, 0, 10, true)
			h.want(Queued, askOf("p", "o").in(Bulk).bytes(OpenFrom(10)))
		}, askOf("p", "o")},
	} {
		t.Run(c.want.String(), func(t *testing.T) {
			h := newHarness(t, p)
			c.setup(h)
			s, ok := h.s.Show(h.now, c.ask.Key)
			if !ok || s.Why != c.want {
				t.Fatalf("it waits for %q, want %q: %+v", s.Why, c.want, s)
			}
			if (s.State == ShownWaiting) != (c.want != WhyNone) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// busy takes all slots but the reserve.
func busy(h *harness) { h.want(Admitted, askOf("first", "running")) }

func TestX6_OverviewSumsByClass(t *testing.T) {
	p := testPolicy(1)
	p.BandBytesPerSecond = mib
	h := newHarness(t, p)
	if o := h.s.Overview(h.now); !o.EmptyKnown || o.EmptyIn != 0 || !o.GateOpen {
		t.Fatalf("an empty queue is %+v", o)
	}
	r, _ := h.want(Admitted, askOf("first", "running"))
	h.pass(10 * time.Second)
	h.want(Queued, askOf("a", "a"))
	h.pass(10 * time.Second)
	h.want(Queued, askOf("b", "b").in(Bulk).sized(50*mib))
	h.s.Progress(h.now, r, 40*mib)
	h.want(Queued, askOf("c", "c").in(Bulk).sized(10*mib))
	h.act(PauseIt, askOf("c", "c"), nil)
	h.pass(5 * time.Second)
	o := h.s.Overview(h.now)
	if o.OldestWaitOf != [Classes]time.Duration{0, 15 * time.Second, 5 * time.Second, 0} || o.OldestWait != 15*time.Second {
		t.Errorf("oldest waits %v, of all %v", o.OldestWaitOf, o.OldestWait)
	}
	if o.WaitingBytes != [Classes]int64{0, 100 * mib, 60 * mib, 0} || o.RemainingBytes != 60*mib {
		t.Errorf("%d wait, %d remain", o.WaitingBytes, o.RemainingBytes)
	}
	// 60 MiB of the active one, then 100 or 50 of the first: the last of the order starts when both have come down.
	if want := 60*time.Second + 50*time.Second; !o.EmptyKnown || (o.EmptyIn-want).Abs() > 15*time.Second {
		t.Errorf("empty in %v, want about %v", o.EmptyIn, want)
	}
	h.s.SetGate(h.now, false)
	if o := h.s.Overview(h.now); o.EmptyKnown || o.GateOpen {
		t.Errorf("with a shut gate empty in %v", o.EmptyIn)
	}
}

// TestX6_EmptyInIsUnknownWithoutARate: a forecast is never made up.
func TestX6_EmptyInIsUnknownWithoutARate(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	queued(h, "a")
	if o := h.s.Overview(h.now); o.EmptyKnown {
		t.Errorf("empty in %v", o.EmptyIn)
	}
}

// TestX6_ReclassedAndResumedSessionsAreFoundByTheirAge: those that come between others in the book of waits.
func TestX6_ReclassedAndResumedSessionsAreFoundByTheirAge(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	queued(h, "a", "b", "c", "d") // at 1, 2, 3, 4 s
	at := func(class Class) time.Duration { return h.now - h.s.Overview(h.now).OldestWaitOf[class] }
	h.to(Action{Kind: MoveClass, Class: Bulk}, askOf("pb", "b"), nil)
	h.to(Action{Kind: MoveClass, Class: Bulk}, askOf("pa", "a"), nil)
	if at(Bulk) != time.Second || at(Release) != 3*time.Second {
		t.Fatalf("oldest in bulk came at %v, in release at %v", at(Bulk), at(Release))
	}
	h.act(PauseIt, askOf("pa", "a"), nil)
	if at(Bulk) != 2*time.Second {
		t.Fatalf("oldest in bulk came at %v", at(Bulk))
	}
	h.act(ResumeIt, askOf("pa", "a"), nil)
	h.to(Action{Kind: MoveClass, Class: Release}, askOf("pa", "a"), nil)
	if at(Bulk) != 2*time.Second || at(Release) != time.Second {
		t.Fatalf("oldest in bulk came at %v, in release at %v", at(Bulk), at(Release))
	}
}

// TestX6_6_6_AListingLooksAtNoMoreThanItMay counts work instead of time: with 65,536 sessions that wait, a page from anywhere in the order looks at the
// sessions it shows, a call never at more than its bound, and all calls together at each session once.
func TestX6_6_6_AListingLooksAtNoMoreThanItMay(t *testing.T) {
	s, _ := crowd(t, crowdSize, 100)
	now := time.Second
	query := ListQuery{Waiting: true}
	for _, skip := range []int{0, 1, 1000, crowdSize / 2, crowdSize - 100} {
		p := s.List(now, query, Mark{Phase: uint8(listOrder), Position: skip}, 64, 2048)
		if p.Visited > 64 || len(p.Sessions) != min(64, crowdSize-skip) {
			t.Fatalf("from %d: %d shown, %d looked at", skip, len(p.Sessions), p.Visited)
		}
		for i, one := range p.Sessions {
			if ahead, _ := s.place(s.sessions.find(&one.Key), false); one.Position != skip+i+1 || ahead != skip+i {
				t.Fatalf("from %d: number %d is at position %d of the order, shown at %d", skip, i, ahead+1, one.Position)
			}
		}
	}
	bulk := ListQuery{Waiting: true, OneClass: true, Class: Bulk, Principal: "p2"}
	page := Page{More: true}
	for page.More {
		visited := page.Visited
		if s.ListInto(now, &bulk, &page, 64, 2048); page.Visited > visited+2048 {
			t.Fatalf("a call looked at %d sessions", page.Visited-visited)
		}
	}
	all, want := 0, 0
	s.Order(func(p Placed) bool {
		if p.Key.Principal == "p2" {
			if all++; p.Class == Bulk {
				want++
			}
		}
		return true
	})
	if page.Visited != all || page.Matched != want || want == 0 {
		t.Errorf("%d sessions looked at of the principal's %d, %d found of %d", page.Visited, all, page.Matched, want)
	}
	for c := range Class(Classes) { // nobody was lifted: a class looks at its own
		if p := s.List(now, ListQuery{Waiting: true, OneClass: true, Class: c}, Mark{}, 64, 2048); p.Visited != 64 || len(p.Sessions) != 64 {
			t.Errorf("of class %v %d are looked at, %d shown", c, p.Visited, len(p.Sessions))
		}
	}
	if p := s.List(now, ListQuery{Waiting: true, Principal: "nobody"}, Mark{}, 64, 2048); p.Visited != 0 || p.More {
		t.Errorf("for nobody's %d sessions are looked at", p.Visited)
	}
	if n, told := s.CountOf(ListQuery{Waiting: true, Principal: "p2"}); n != all || !told {
		t.Errorf("%d are counted of the principal's %d", n, all)
	}
	if n, told := s.CountOf(query); n != crowdSize || !told {
		t.Errorf("%d are counted", n)
	}
}

// TestX6_6_6_AStrandIsEnteredAtItsPlace: a deep page of a principal or class begins where it begins, whatever stands before it.
func TestX6_6_6_AStrandIsEnteredAtItsPlace(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		p := testPolicy(1)
		p.Strategy, p.QueueLimit, p.QueuePerPrincipal = strategy, 1000, 1000
		h := newHarness(t, p)
		h.want(Admitted, askOf("first", "running"))
		for i := range 400 {
			h.now += time.Millisecond
			h.s.Ask(h.now, askOf(name("p", i*i%7), name("o", i)).in(Class(i%Classes)).sized(int64(100+i*37%300)*mib))
			if i%10 == 3 {
				h.act([]ActionKind{MoveFront, MoveBack}[i/10%2], askOf(name("p", i*i%7), name("o", i)), nil)
			}
		}
		apart := 0
		check := func(all strands) {
			t.Helper()
			for i := range all.all[:all.n] {
				one := &all.all[i]
				if one.strays != nil {
					apart++
				}
				for n := 0; n <= h.s.lines[one.class].count; n += 5 {
					want := 0
					for one.seek(h.s, 0); one.head != nil; one.seek(h.s, one.at+1) {
						if rank, _ := h.s.rankInLine(one.head); rank < n {
							want++
						}
					}
					if got := one.from(h.s, n); got != want {
						t.Fatalf("%v: strand %d of %d is entered at %d behind %d of the line, want %d", strategy, i, one.count, got, n, want)
					}
				}
			}
		}
		for i := range 7 {
			if who := h.s.principals[name("p", i)]; who != nil {
				check(h.s.strandsOf(who))
			}
		}
		for c := range Class(Classes) {
			check(h.s.strandsIn(c))
		}
		if (apart > 0) != (strategy == Ordered) {
			t.Errorf("%v: %d strands of those that stand apart", strategy, apart)
		}
	}
}

// TestX6_PagesFollowTheirLastSession: between two pages those in front start, and nobody is left out.
func TestX6_PagesFollowTheirLastSession(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	r := queued(h, "a", "b", "c", "d", "e")
	page := h.s.List(h.now, ListQuery{Waiting: true}, Mark{}, 2, 100)
	if len(page.Sessions) != 2 || !page.More || page.Sessions[1].Key.Object != "b" {
		t.Fatalf("%+v", page)
	}
	h.finish(r, 0, 100*mib, true)
	h.want(Admitted, askOf("pa", "a"))
	page = h.s.List(h.now, ListQuery{Waiting: true}, page.Next, 2, 100)
	if len(page.Sessions) != 2 || page.Sessions[0].Key.Object != "c" || page.Sessions[0].Position != 2 {
		t.Fatalf("%+v", page.Sessions)
	}
	h.act(KickIt, askOf("pd", "d"), nil) // the last one shown is gone: the page goes on by its place
	page = h.s.List(h.now, ListQuery{Waiting: true}, page.Next, 2, 100)
	if len(page.Sessions) != 0 || page.More {
		t.Fatalf("%+v", page.Sessions) // e has moved up by one, to where the page began: the caller sees it on the next look
	}
}

func BenchmarkX6_PageOf64(b *testing.B) {
	s, _ := crowd(b, crowdSize, 100)
	from := 0
	for b.Loop() {
		from = (from + 4099) % crowdSize
		s.List(time.Second, ListQuery{Waiting: true}, Mark{Phase: uint8(listOrder), Position: from}, 64, 2048)
	}
}

func BenchmarkX6_LookAt2048(b *testing.B) {
	s, _ := crowd(b, crowdSize, 100)
	from := 0
	for b.Loop() {
		from = (from + 2048) % crowdSize
		s.List(time.Second, ListQuery{Waiting: true}, Mark{Phase: uint8(listOrder), Position: from}, 0, 2048)
	}
}

// BenchmarkX6_PageOfAPrincipal is a page of 64 of one of 1, 256 and 65,536 principals.
func BenchmarkX6_PageOfAPrincipal(b *testing.B) {
	for _, principals := range []int{1, 256, crowdSize} {
		b.Run(strconv.Itoa(principals), func(b *testing.B) {
			s, _ := crowd(b, crowdSize, principals)
			query := ListQuery{Waiting: true, Principal: name("p", principals/2)}
			for b.Loop() {
				s.List(time.Second, query, Mark{}, 64, 2048)
			}
		})
	}
}

func BenchmarkX6_Overview(b *testing.B) {
	s, _ := crowd(b, crowdSize, 100)
	for b.Loop() {
		s.Overview(time.Second)
	}
}

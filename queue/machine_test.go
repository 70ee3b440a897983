package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// machine is what the state-machine test knows about the scheduler from outside.
type machine struct {
	*harness
	t         *rapid.T
	responses []*Response
	waiters   []*Waiter
	stays     uint64 // stays that began
}

// TestQ19_AnyHistoryKeepsTheInvariantsAndReturnsToZero drives random events, compares the scheduler with its invariants and
// with what the events themselves prove, then lets everything end and expects nothing to be left.
func TestQ19_AnyHistoryKeepsTheInvariantsAndReturnsToZero(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{harness: newHarness(t, drawPolicy(rt)), t: rt}
		m.harness.t = failNow{t, rt}
		rt.Repeat(map[string]func(*rapid.T){
			"ask":      m.askAny,
			"hold":     m.holdAny,
			"finish":   m.finishAny,
			"abandon":  m.abandonAny,
			"withdraw": m.withdrawAny,
			"leave":    func(rt *rapid.T) { m.step(func() { m.s.Leave(m.now, drawAsk(rt).Key) }) },
			"time": func(rt *rapid.T) {
				m.step(func() { m.now += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(rt, "time")) })
			},
			"tick":      func(*rapid.T) { m.step(func() { m.now += TickEvery; m.s.Tick(m.now) }) },
			"configure": m.configureAny,
			"act":       m.actAny,
			"gate":      func(rt *rapid.T) { m.step(func() { m.s.SetGate(m.now, rapid.IntRange(0, 2).Draw(rt, "gate") > 0) }) },
		})
		m.step(func() { m.s.SetGate(m.now, true) })
		m.end()
	})
}

// failNow lets the harness fail through rapid, so that histories shrink.
type failNow struct {
	testing.TB
	rt *rapid.T
}

func (f failNow) Helper()                   {}
func (f failNow) Fatal(args ...any)         { f.rt.Fatal(args...) }
func (f failNow) Fatalf(s string, a ...any) { f.rt.Fatalf(s, a...) }

func drawPolicy(rt *rapid.T) Policy {
	p := DefaultPolicy(rapid.IntRange(1, 6).Draw(rt, "sessions"))
	p.Reserve = rapid.IntRange(0, p.Sessions-1).Draw(rt, "reserve")
	p.PerPrincipal = rapid.IntRange(1, p.Sessions).Draw(rt, "perPrincipal")
	p.AgingEvery = rapid.SampledFrom([]time.Duration{0, 5 * time.Second, time.Minute}).Draw(rt, "aging")
	p.RangesPerSession = rapid.IntRange(1, 3).Draw(rt, "ranges")
	p.SessionMinBytes = rapid.SampledFrom([]int64{0, 150}).Draw(rt, "threshold")
	p.QueueLimit = 12
	p.QueuePerPrincipal = rapid.IntRange(1, 8).Draw(rt, "queuePerPrincipal")
	p.BandBytesPerSecond = rapid.SampledFrom([]int64{0, 100}).Draw(rt, "band")
	p.Mode = rapid.SampledFrom([]Mode{ModeNormal, ModeNormal, ModeNormal, ModeNormal, ModeQueueAll, ModePassThrough, ModeRejectNew, ModeDryRun}).Draw(rt, "mode")
	for c := range p.Weights {
		p.Weights[c] = rapid.IntRange(1, 9).Draw(rt, "weight")
	}
	return p
}

func drawAsk(rt *rapid.T) Ask {
	a := askOf(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "principal"), rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(rt, "object"))
	a.Class = Class(rapid.IntRange(0, Classes-1).Draw(rt, "class"))
	a.SizeBytes = rapid.SampledFrom([]int64{-1, 100, 200, 200, 200}).Draw(rt, "size")
	a.Validator = rapid.SampledFrom([]string{"", "1", "1", "2"}).Draw(rt, "validator")
	a.Range = rapid.SampledFrom([]RangeAsk{{}, OpenFrom(50), Bounded(0, 99), Bounded(150, 199), Suffix(10), {Kind: RangeMulti}}).Draw(rt, "range")
	return a
}

// step runs one event and checks what no event may do.
func (m *machine) step(event func()) {
	before, staysBefore := m.snap(), m.liveStays()
	event()
	if err := m.s.CheckInvariants(); err != nil {
		m.t.Fatal(err)
	}
	after := m.snap()
	p := m.s.Policy()
	if n := after.ActiveTotal(); p.Mode != ModeDryRun && n > max(p.Sessions, before.ActiveTotal()) {
		m.t.Fatalf("I2: %d active on %d slots", n, p.Sessions)
	}
	others := func(s Snapshot) int { return s.ActiveTotal() - s.Active[Interactive] }
	if n := others(after); p.Mode != ModeDryRun && n > max(p.Sessions-p.Reserve, others(before)) {
		m.t.Fatalf("I3: %d others active on %d-%d slots", n, p.Sessions, p.Reserve)
	}
	ended := total64(after.Counts.Ended) - total64(before.Counts.Ended)
	if uint64(m.liveStays())+ended < uint64(staysBefore) {
		m.t.Fatal("a stay vanished without a record")
	}
	m.stays += uint64(m.liveStays()) + ended - uint64(staysBefore)
	for _, settled := range m.s.TakeSettled() {
		i := slices.IndexFunc(m.waiters, func(w *Waiter) bool { return w.session == nil && w.owner == settled.Owner })
		if i < 0 {
			m.t.Fatalf("an answer for nobody: %+v", settled)
		}
		m.waiters = slices.Delete(m.waiters, i, i+1)
		if settled.Response != nil {
			m.responses = append(m.responses, settled.Response)
		}
	}
	if after.Held != len(m.waiters) {
		m.t.Fatalf("%d held, %d known", after.Held, len(m.waiters))
	}
}

func total64(v [Reasons]uint64) (n uint64) {
	for _, x := range v {
		n += x
	}
	return n
}

func (m *machine) liveStays() int { s := m.snap(); return s.ActiveTotal() + s.WaitingTotal() }

func (m *machine) askAny(rt *rapid.T) {
	a := drawAsk(rt)
	m.step(func() {
		r, v := m.s.Ask(m.now, a)
		if (r != nil) != (v.Outcome == Admitted) {
			rt.Fatalf("response %v with %v", r != nil, v.Outcome)
		}
		if v.Outcome == Queued && (v.Position < 1 && !m.session(a.Key).stopped || v.Position > m.snap().WaitingTotal() || v.CheckIn < time.Second || v.CheckIn > 5*time.Minute) {
			rt.Fatalf("told %+v with %d waiting", v, m.snap().WaitingTotal())
		}
		if r != nil {
			m.responses = append(m.responses, r)
		}
	})
}

func (m *machine) holdAny(rt *rapid.T) {
	a := drawAsk(rt)
	m.step(func() {
		w, r, v := m.s.Hold(m.now, a, new(int))
		if (w != nil) != v.Held || (w != nil && r != nil) {
			rt.Fatalf("waiter %v, response %v, verdict %+v", w != nil, r != nil, v)
		}
		if w != nil {
			m.waiters = append(m.waiters, w)
		}
		if r != nil {
			m.responses = append(m.responses, r)
		}
	})
}

// popResponse takes one of the running responses; nil when none runs.
func (m *machine) popResponse(rt *rapid.T) *Response {
	if len(m.responses) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(m.responses)-1).Draw(rt, "response")
	r := m.responses[i]
	m.responses = slices.Delete(m.responses, i, i+1)
	return r
}

func (m *machine) finishAny(rt *rapid.T) {
	r := m.popResponse(rt)
	if r == nil {
		return
	}
	first := rapid.Int64Range(-5, 210).Draw(rt, "first")
	end := rapid.SampledFrom([]int64{first, first + 40, 200, 1 << 40}).Draw(rt, "end")
	m.step(func() {
		m.s.Progress(m.now, r, rapid.Int64Range(0, 300).Draw(rt, "bytes"))
		m.s.Finish(m.now, r, first, end, rapid.Bool().Draw(rt, "complete"))
	})
}

func (m *machine) abandonAny(rt *rapid.T) {
	if r := m.popResponse(rt); r != nil {
		m.step(func() { m.s.Abandon(m.now, r) })
	}
}

func (m *machine) withdrawAny(rt *rapid.T) {
	if len(m.waiters) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.waiters)-1).Draw(rt, "waiter")
	w := m.waiters[i]
	m.step(func() {
		if _, ok := m.s.Withdraw(m.now, w); !ok {
			rt.Fatal("a waiting request cannot be withdrawn")
		}
		m.waiters = slices.Delete(m.waiters, i, i+1)
	})
}

// actAny is any action of an operator. Of a kicked session the responses are dead: they are ended like others, which must do nothing.
func (m *machine) actAny(rt *rapid.T) {
	a := Action{Kind: ActionKind(rapid.IntRange(0, int(actionCount)-1).Draw(rt, "action")), Class: Class(rapid.IntRange(0, Classes-1).Draw(rt, "class"))}
	m.step(func() {
		_ = m.s.Act(m.now, drawAsk(rt).Key, a) // refusals are the oracle's business
	})
}

func (m *machine) configureAny(rt *rapid.T) {
	p := drawPolicy(rt)
	p.Strategy = Strategy(rapid.IntRange(0, len(strategyNames)-1).Draw(rt, "strategy"))
	m.step(func() {
		if err := m.s.Configure(m.now, p); err != nil {
			rt.Fatal(err)
		}
	})
}

// end lets every response finish and every client leave; after the longest memory nothing is left.
func (m *machine) end() {
	for len(m.responses) > 0 || len(m.waiters) > 0 {
		if n := len(m.responses); n > 0 {
			r := m.responses[n-1]
			m.responses = m.responses[:n-1]
			m.step(func() { m.s.Finish(m.now, r, 0, 200, n%2 == 0) })
			continue
		}
		m.step(func() {
			if _, ok := m.s.Withdraw(m.now, m.waiters[0]); !ok {
				m.t.Fatal("cannot withdraw")
			}
			m.waiters = m.waiters[1:]
		})
	}
	for range 25 {
		m.step(func() { m.now += time.Minute; m.s.Tick(m.now) })
	}
	snap := m.snap()
	if snap.ActiveTotal() != 0 || snap.WaitingTotal() != 0 || snap.Paused != 0 || snap.Held != 0 || m.s.sessions.count != 0 || len(m.s.principals) != 0 || len(m.s.objects) != 0 || m.s.due.count != 0 ||
		m.s.parked.count != 0 || len(m.s.apart) != 0 || len(m.s.strays) != 0 || len(m.s.expelled.byKey) != 0 || len(m.s.expelled.order) != 0 {
		m.t.Fatalf("something stayed: %+v", snap)
	}
	if ends := uint64(len(m.s.TakeEnded())); ends != total64(snap.Counts.Ended) || ends != m.stays {
		m.t.Fatalf("%d stays began, %d records, %d counted", m.stays, ends, total64(snap.Counts.Ended))
	}
}

func TestQ13_CoverageIsASetOfBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var c coverage
		var set [300]bool
		for range rapid.IntRange(1, 60).Draw(rt, "n") {
			first := rapid.Int64Range(0, 299).Draw(rt, "first")
			end := rapid.Int64Range(0, 300).Draw(rt, "end")
			c = c.add(first, end)
			for i := first; i < end; i++ {
				set[i] = true
			}
		}
		from := rapid.Int64Range(0, 299).Draw(rt, "from")
		to := rapid.Int64Range(from, 300).Draw(rt, "to")
		want, all := int64(0), true
		for i := from; i < 300; i++ {
			if set[i] {
				want++
			}
			all = all && (set[i] || i >= to)
		}
		if got := c.bytesFrom(from); got != want {
			rt.Fatalf("%d bytes from %d, want %d", got, from, want)
		}
		if got := c.covers(from, to); got != all {
			rt.Fatalf("covers %d..%d: %v", from, to, got)
		}
	})
}

func TestQ13_CoverageForgetsTheShortestBeyond64(t *testing.T) {
	var c coverage
	for i := range int64(100) {
		c = c.add(i*10, i*10+1+(i*37)%9)
	}
	if len(c) != maxIntervals {
		t.Fatalf("%d intervals", len(c))
	}
	for _, i := range c {
		if i.end-i.first < 3 {
			t.Fatalf("a short interval %v was kept", i)
		}
	}
}

package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// returner is a protocol client that lives through a restart: it polls at CheckIn in whole seconds and up to a quarter more, retries a refused
// or broken connection within 2 s, and brings its ticket.
type returner struct {
	ask  Ask
	poll time.Duration // its next request
	r    *Response
	got  int64 // bytes it has
	told int64 // of them not reported yet
	done bool
	had  bool // a slot when the process was killed
}

// restart is 200 such clients on 4 slots, in steps of 50 ms, with a link that running ones share equally.
type restart struct {
	s       *Scheduler
	policy  Policy
	clients []*returner
	now     time.Duration
	random  *rand.Rand
	down    bool
	starts  []int // clients that got a slot since the restart, in order
	silent  time.Duration
}

const (
	restartStep = 50 * time.Millisecond
	restartLink = 100 * mib // bytes per second
	restartSoon = 2 * time.Second
)

func newRestart(t *testing.T, seed uint64, seconds float64) *restart {
	t.Helper()
	f := &restart{policy: testPolicy(4), random: rand.New(rand.NewPCG(seed, 8))}
	if seed%2 == 0 { // else nothing is known of the rate after the restart
		f.policy.BandBytesPerSecond = restartLink
	}
	f.fresh(t)
	for i := range 200 {
		a := askOf(fmt.Sprint("p", i), "o").sized(int64(seconds * restartLink))
		f.clients = append(f.clients, &returner{ask: a, poll: time.Duration(i) * 20 * time.Millisecond})
	}
	return f
}

func (f *restart) fresh(t *testing.T) {
	t.Helper()
	s, err := New(f.policy)
	if err != nil {
		t.Fatal(err)
	}
	f.s = s
}

// soon is a moment within the next 2 s.
func (f *restart) soon() time.Duration {
	return f.now + time.Duration(f.random.Int64N(int64(restartSoon)))
}

func (f *restart) contact(i int) {
	c := f.clients[i]
	if f.down {
		c.poll = f.soon()
		return
	}
	c.ask.Range = OpenFrom(c.got)
	r, v := f.s.Ask(f.now, c.ask)
	c.ask.Ticketed, c.ask.Arrival = true, v.Arrival
	if r != nil {
		c.r, c.poll = r, never
		f.starts = append(f.starts, i)
		return
	}
	whole := (v.CheckIn + time.Second - 1).Truncate(time.Second)
	c.poll = f.now + whole + time.Duration(f.random.Int64N(int64(whole/4)))
}

// step reports whether anybody is left.
func (f *restart) step() (left bool) {
	f.now += restartStep
	running := 0
	for _, c := range f.clients {
		left = left || !c.done
		if c.r != nil {
			running++
		}
	}
	if running == 0 {
		f.silent += restartStep
	}
	for i, c := range f.clients {
		if c.r != nil {
			n := int64(restartLink*restartStep.Seconds()) / int64(running)
			c.got, c.told = c.got+n, c.told+n
			if tick := f.now%TickEvery == 0; tick || c.got >= c.ask.SizeBytes {
				f.s.Progress(f.now, c.r, c.told)
				c.told = 0
			}
			if c.got >= c.ask.SizeBytes {
				f.s.Finish(f.now, c.r, 0, c.ask.SizeBytes, true)
				c.done, c.r = true, nil
			}
		}
		if !c.done && c.poll <= f.now {
			f.contact(i)
		}
	}
	if f.now%TickEvery == 0 && !f.down {
		f.s.Tick(f.now)
	}
	return left
}

// kill breaks all connections, keeps the port closed for so long and begins anew with nothing.
func (f *restart) kill(t *testing.T, downFor, gather, until time.Duration) {
	t.Helper()
	f.down = true
	for _, c := range f.clients {
		if c.r != nil {
			c.r, c.told, c.poll, c.had = nil, 0, f.soon(), true
		}
	}
	for end := f.now + downFor; f.now < end; {
		f.step()
	}
	f.down, f.starts, f.silent = false, nil, 0
	f.fresh(t)
	f.s.Grace(f.now+gather, f.now+until)
}

// inversions counts the pairs that started against their arrival. Who had a slot before had overtaken earlier ones then, by the marks.
func (f *restart) inversions() (n int) {
	for i, a := range f.starts {
		for _, b := range f.starts[i+1:] {
			if !f.clients[a].had && f.clients[b].ask.Arrival < f.clients[a].ask.Arrival {
				n++
			}
		}
	}
	return n
}

// TestX8_ReturningClientsStartInTheOrderOfTheirArrival: with GatherFor nobody overtakes in the grace, however short or long the files and
// the time without a process; without it many do, which is what makes the test worth something.
func TestX8_ReturningClientsStartInTheOrderOfTheirArrival(t *testing.T) {
	const grace = time.Minute
	for _, seconds := range []float64{0.5, 2, 10} {
		for _, downFor := range []time.Duration{100 * time.Millisecond, 3 * time.Second} {
			for _, gather := range []time.Duration{0, GatherFor} {
				wrong, starts, silent := 0, 0, time.Duration(0)
				for seed := range uint64(4) {
					f := newRestart(t, seed, seconds)
					for end := time.Duration(float64(40+f.random.IntN(20)) * seconds * float64(time.Second)).Truncate(restartStep); f.now < end; {
						f.step()
					}
					f.kill(t, downFor, gather, grace)
					for end := f.now + grace; f.now < end && f.step(); {
					}
					wrong, starts, silent = wrong+f.inversions(), starts+len(f.starts), silent+f.silent/4
				}
				t.Logf("files of %.1f s, %v without a process, gathered for %v: %d inversions of %d starts, the link idle for %v", seconds, downFor, gather, wrong, starts, silent)
				if starts < 20 || (wrong == 0) != (gather > 0) {
					t.Errorf("files of %.1f s, %v without a process, gathered for %v: %d inversions of %d starts", seconds, downFor, gather, wrong, starts)
				}
			}
		}
	}
}

func ticketed(i int) Ask {
	a := askOf(name("p", i), "o").sized(mib)
	a.Ticketed, a.Arrival = true, time.Duration(i-300)*time.Second
	return a
}

// TestX8_WhileClientsAreGatheredNobodyStarts: everybody is answered as always, with a start behind the gathering, and the first of the order
// come back when it ends.
func TestX8_WhileClientsAreGatheredNobodyStarts(t *testing.T) {
	p := testPolicy(4)
	p.BandBytesPerSecond = mib
	h := newHarness(t, p)
	h.s.Grace(GatherFor, 30*time.Second)
	if h.s.FreeSlots() != 0 {
		t.Error("slots are free for newcomers")
	}
	for i := 150; i > 100; i-- { // the last come first
		_, v := h.want(Queued, ticketed(i))
		if v.Position != 1 || !v.EstimateKnown || v.StartsIn < GatherFor-h.now || v.EarliestIn < GatherFor-h.now || v.LatestIn < v.StartsIn {
			t.Fatalf("#%d at %v is told %+v", i, h.now, v)
		}
		if rest := GatherFor - h.now; v.CheckIn < max(rest, headFloor) || v.CheckIn > max(rest, headFloor)+gatherSpread {
			t.Fatalf("#%d at %v comes again in %v, the gathering ends in %v", i, h.now, v.CheckIn, rest)
		}
		h.tick(90 * time.Millisecond)
	}
	w, _, v := h.hold(ticketed(100))
	if v.Outcome != Queued || w == nil {
		t.Fatalf("a held one: %+v", v)
	}
	if _, v := h.want(Queued, askOf("new", "o")); v.Position != 52 || v.CheckIn < 2*time.Second {
		t.Fatalf("a newcomer: %+v", v)
	}
	if h.s.unclaimed != 0 {
		t.Errorf("%d ticks count as unclaimed", h.s.unclaimed)
	}
	h.tick(TickEvery)
	if settled := h.s.TakeSettled(); len(settled) != 1 || settled[0].Response == nil {
		t.Fatalf("at the end of the gathering the held first one is not started: %+v", settled)
	}
	for i := 104; i > 100; i-- { // a quarter of three free slots is one
		want := Queued
		if i == 101 {
			want = Admitted
		}
		h.want(want, ticketed(i))
	}
	h.want(Admitted, ticketed(102))
	h.want(Admitted, ticketed(103))
	h.want(Queued, ticketed(104)) // all four slots are taken
}

// TestX8_InTheGraceAnAbsentClientIsWaitedForNoLongerThanToldToCome: the marks do not widen over those who came back, but who is overdue does not count.
func TestX8_InTheGraceAnAbsentClientIsWaitedForNoLongerThanToldToCome(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.s.Grace(time.Second, 10*time.Minute)
	h.want(Queued, askOf("newcomer", "o"))
	_, v := h.want(Queued, ticketed(1))
	due := v.CheckIn + v.CheckIn/2 + lateMargin
	h.want(Queued, ticketed(2))
	for h.now+TickEvery <= due {
		h.tick(TickEvery)
		h.want(Queued, ticketed(2))
		h.want(Queued, askOf("newcomer", "o"))
	}
	h.tick(TickEvery)
	h.want(Admitted, ticketed(2))
}

// TestX8_NewcomersAheadKeepNobodyBack: in the order of a class newcomers of other principals stand between the sessions of one.
func TestX8_NewcomersAheadKeepNobodyBack(t *testing.T) {
	h := newHarness(t, testPolicy(4))
	h.s.Grace(time.Second, time.Minute)
	for i := range 20 {
		h.want(Queued, askOf(name("n", i), "o"))
	}
	for i := range 4 {
		a := ticketed(i)
		a.Key.Principal, a.Key.Object = "p", name("o", i)
		h.want(Queued, a)
	}
	h.tick(time.Second)
	for i := range 4 {
		a := ticketed(i)
		a.Key.Principal, a.Key.Object = "p", name("o", i)
		h.want(Admitted, a)
		h.want(Queued, askOf(name("n", i), "o"))
	}
}

// TestX8_ManyFreeSlotsAreNotGivenOneByOne: up to a quarter of the free slots may go to whoever of the first comes first.
func TestX8_ManyFreeSlotsAreNotGivenOneByOne(t *testing.T) {
	h := newHarness(t, testPolicy(16))
	h.s.Grace(time.Second, time.Minute)
	order := []int{}
	for i := range 20 {
		h.want(Queued, ticketed(i))
		order = append(order, i)
	}
	h.tick(time.Second)
	h.want(Admitted, ticketed(3))
	h.want(Queued, ticketed(5)) // of 15 slots a quarter is 4, and 0, 1, 2 and 4 stand before it
	slices.Reverse(order)
	rounds := 0
	for ; h.snap().ActiveTotal() < 16; rounds++ {
		for _, i := range order { // the worst order to come in
			if ses := h.session(ticketed(i).Key); ses.state == waiting {
				h.ask(ticketed(i))
			}
		}
	}
	if rounds > 10 {
		t.Errorf("16 slots took %d rounds of polls", rounds)
	}
}

// TestX8_TheLastTickOfTheGatheringIsNotUnclaimed: when the gathering ends the first ones have their turn.
func TestX8_TheLastTickOfTheGatheringIsNotUnclaimed(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.s.Grace(time.Second, 0)
	for i := range 9 {
		h.want(Queued, askOf(name("p", i), "o"))
	}
	h.tick(time.Second)
	h.want(Queued, askOf("p2", "o"))
	h.want(Admitted, askOf("p1", "o"))
}

// TestX5_X8_ABundleReturnsAfterARestart at the arrival of its ticket, as all do.
func TestX5_X8_ABundleReturnsAfterARestart(t *testing.T) {
	h := newHarness(t, testPolicy(1))
	h.s.Grace(GatherFor, time.Minute)
	a := layer("p", 0, 10*mib)
	h.pass(time.Second)
	h.want(Queued, ticketed(100))
	a.Ticketed, a.Arrival = true, -500*time.Second
	if _, v := h.want(Queued, a); v.Position != 1 || v.Arrival != a.Arrival {
		t.Fatalf("%+v", v)
	}
}

package queue

import (
	"slices"
	"testing"
	"time"
)

// puller is a plain client that fetches the layers of an image, three at a time; each request is held until it may run.
type puller struct {
	name     string
	sizes    []int64
	next     int
	flights  []*flight
	left     int           // layers to come
	finished time.Duration // -1 = not yet
	waits    int           // layers that had to wait for a slot
}

// flight is one request of a puller.
type flight struct {
	of     *puller
	ask    Ask
	r      *Response
	w      *Waiter
	until  time.Duration // end of its hold
	waited bool
	got    int64
	untold int64
}

// pull is a fleet of pullers on a link that running responses share equally, in steps of 50 ms.
type pull struct {
	t       *testing.T
	s       *Scheduler
	now     time.Duration
	pullers []*puller
	bundles bool
	hold    time.Duration
}

const (
	pullStep = 50 * time.Millisecond
	pullLink = 100 * mib
)

func newPull(t *testing.T, slots int, bundles bool) *pull {
	t.Helper()
	p := testPolicy(slots)
	p.BandBytesPerSecond = pullLink
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return &pull{t: t, s: s, bundles: bundles, hold: 20 * time.Second}
}

func (f *pull) add(who string, sizes ...int64) {
	f.pullers = append(f.pullers, &puller{name: who, sizes: sizes, left: len(sizes), finished: -1})
}

// ask sends a request, the first time or after a hold that ended.
func (f *pull) ask(x *flight) {
	var v Verdict
	x.w, x.r, v = f.s.Hold(f.now, x.ask, x)
	x.until = f.now + f.hold
	if v.Outcome == Queued && !x.waited {
		x.waited = true
		x.of.waits++
	}
}

// begin lets a puller ask for layers until three are under way.
func (f *pull) begin(p *puller) {
	for len(p.flights) < 3 && p.next < len(p.sizes) {
		object := "repository"
		if !f.bundles {
			object = name("layer", p.next)
		}
		x := &flight{of: p, ask: Ask{
			Key: Key{p.name, object, "address"}, Class: Release, SizeBytes: p.sizes[p.next], Bundle: f.bundles, Member: uint64(p.next),
		}}
		p.next++
		p.flights = append(p.flights, x)
		f.ask(x)
	}
}

func (f *pull) settle() {
	for _, s := range f.s.TakeSettled() {
		x := s.Owner.(*flight)
		x.r, x.w = s.Response, nil
	}
	f.s.TakeEnded()
}

// step reports whether anybody is left.
func (f *pull) step() (left bool) {
	f.now += pullStep
	running := int64(0)
	for _, p := range f.pullers {
		for _, x := range p.flights {
			if x.r != nil {
				running++
			}
		}
	}
	tick := f.now%TickEvery == 0
	for _, p := range f.pullers {
		for _, x := range slices.Clone(p.flights) {
			if x.r != nil {
				n := min(int64(pullLink*pullStep.Seconds())/running, x.ask.SizeBytes-x.got)
				x.got, x.untold = x.got+n, x.untold+n
			}
			f.end(x, tick)
			f.settle()
		}
		if p.finished < 0 {
			left = true
			f.begin(p)
			f.settle()
		}
	}
	if tick {
		f.s.Tick(f.now)
		f.settle()
		for _, p := range f.pullers {
			for _, x := range p.flights {
				if x.w != nil && x.until <= f.now { // the refused client comes back at once
					f.s.Withdraw(f.now, x.w)
					f.ask(x)
				}
			}
		}
		if f.now%(10*time.Second) == 0 {
			if err := f.s.CheckInvariants(); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	return left
}

// end reports what a response has delivered and ends one that has all.
func (f *pull) end(x *flight, tick bool) {
	if x.r == nil {
		return
	}
	over := x.got == x.ask.SizeBytes
	if tick || over {
		f.s.Progress(f.now, x.r, x.untold)
		x.untold = 0
	}
	if !over {
		return
	}
	f.s.Finish(f.now, x.r, 0, x.ask.SizeBytes, true)
	p := x.of
	p.flights = slices.DeleteFunc(p.flights, func(y *flight) bool { return y == x })
	if p.left--; p.left == 0 {
		p.finished = f.now
	}
}

func (f *pull) run(limit time.Duration) (first, last time.Duration) {
	f.t.Helper()
	for f.step() {
		if f.now > limit {
			f.t.Fatalf("not over after %v", limit)
		}
	}
	first = never
	for _, p := range f.pullers {
		if len(p.sizes) == 1 {
			continue // not one of those that pull an image
		}
		first, last = min(first, p.finished), max(last, p.finished)
	}
	return first, last
}

// image is that many layers.
func image(layers int, bytes int64) []int64 { return slices.Repeat([]int64{bytes}, layers) }

// TestX5_TheFirstOfTwentyClientsPullsInAFifthOfTheTime: 20 clients fetch an image of 8 layers over 4 slots.
func TestX5_TheFirstOfTwentyClientsPullsInAFifthOfTheTime(t *testing.T) {
	mixed := []int64{40 * mib, 200 * mib, 80 * mib, 30 * mib, 150 * mib, 60 * mib, 120 * mib, 50 * mib}
	for what, one := range map[string]struct {
		layers []int64
		most   float64 // share of the time without bundles
	}{
		"equal layers":            {image(8, 90*mib), 0.27},
		"layers of 30 to 200 MiB": {mixed, 0.27},
	} {
		var first, last [2]time.Duration
		var waits [2]int
		for i, bundles := range []bool{false, true} {
			f := newPull(t, 4, bundles)
			for n := range 4 { // the slots are taken when the first of them comes
				f.add(name("before", n), 25*mib)
			}
			f.step()
			for n := range 20 {
				f.add(name("p", n), one.layers...)
			}
			first[i], last[i] = f.run(time.Hour)
			for _, p := range f.pullers {
				waits[i] = max(waits[i], p.waits)
			}
		}
		t.Logf("%s: without bundles the first after %v, the last after %v, up to %d layers of a client wait; with them %v, %v, %d", what, first[0], last[0], waits[0], first[1], last[1], waits[1])
		if float64(first[1]) > one.most*float64(first[0]) || last[1] > last[0]+15*time.Second {
			t.Errorf("%s: the first is done after %v, without bundles after %v", what, first[1], first[0])
		}
		if waits[1] > 3 || waits[0] < len(one.layers) {
			t.Errorf("%s: %d layers of a client wait, three are asked at once", what, waits[1])
		}
	}
}

// TestX5_PromisesHoldWithBundles: half of the clients pull images of which only three of eight layers are known while they wait.
func TestX5_PromisesHoldWithBundles(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		f := newPull(t, 4, true)
		policy := f.s.Policy()
		policy.Strategy, policy.AgingEvery = strategy, time.Minute
		if err := f.s.Configure(0, policy); err != nil {
			t.Fatal(err)
		}
		for n := range 150 {
			if n%2 == 0 {
				f.add(name("p", n), 400*mib)
			} else {
				f.add(name("p", n), 40*mib, 200*mib, 80*mib, 30*mib, 150*mib, 60*mib, 120*mib, 50*mib)
			}
		}
		f.run(time.Hour)
		p := f.s.promises
		within, held := float64(p.Within)/float64(p.Judged), float64(p.Held)/float64(p.Judged)
		t.Logf("%v: of %d promises %.2f within a tenth or a minute, %.2f not later than told; a bundle grows by %.2f", strategy, p.Judged, within, held, f.s.model.growth.factor(3))
		if p.Judged < 100 || within < 0.85 || held < 0.85 {
			t.Errorf("%v: of %d promises %.2f within a tenth or a minute, %.2f not later than told", strategy, p.Judged, within, held)
		}
	}
}

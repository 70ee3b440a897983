package bucket

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// takeAll takes without pause from a stream of its own until gone is closed and returns its bytes.
func takeAll(t *testing.T, s *Stream, gone <-chan struct{}) (sum int64) {
	defer s.Close()
	for {
		n, err := s.Take(1<<30, gone)
		if err != nil {
			if !errors.Is(err, ErrCancelled) {
				t.Error(err)
			}
			return sum
		}
		sum += n
	}
}

// crowd is what greedy streams got in virtual time with late timers.
type crowd struct {
	grouped, others []int64 // by principal
	snapshot        Snapshot
	faults          int // of B1 in the group, over the charges and over the releases
}

func (c *crowd) sums() (grouped, others int64) {
	for _, n := range c.grouped {
		grouped += n
	}
	for _, n := range c.others {
		others += n
	}
	return grouped, others
}

// runCrowd lets so many principals take in a group and so many outside of it. tune may damage the governor first.
func runCrowd(t *testing.T, total, own, group Limit, grouped, others int, duration time.Duration, tune func(*Governor)) (c crowd) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(total, own, newLateClock(MaxLateness))
		defer g.Close()
		g.ConfigureGroup(3, group)
		charged, released := newBound(group, 0), newBound(group, 0)
		released.slack = g.core.groups[3].account.maxLag
		g.core.observe = func(d grant) {
			if d.group != nil {
				charged.grant(d.bytes, d.grouped)
				released.grant(d.bytes, d.released)
			}
		}
		if tune != nil {
			tune(g)
		}
		c.grouped, c.others = make([]int64, grouped), make([]int64, others)
		gone := make(chan struct{})
		var all sync.WaitGroup
		for i := range c.grouped {
			all.Go(func() { c.grouped[i] = takeAll(t, g.OpenIn(fmt.Sprint("in", i), 3), gone) })
		}
		for i := range c.others {
			all.Go(func() { c.others[i] = takeAll(t, g.Open(fmt.Sprint("out", i)), gone) })
		}
		<-time.After(duration)
		synctest.Wait()
		c.snapshot = g.Snapshot()
		close(gone)
		all.Wait()
		if left := g.Snapshot(); left.Waiting != 0 || left.Groups[3].Waiting != 0 || g.core.held != 0 {
			t.Errorf("left over: %+v", left)
		}
		c.faults = charged.faults + released.faults
	})
	return c
}

func TestB1_GroupGetsItsRateAndTheRestGoesToOthers(t *testing.T) {
	for _, c := range []struct {
		total, group    int64 // bytes per second
		grouped, others int
		want            float64 // of the group's rate: less where its principals' turns are worth less
	}{
		{64 << 20, 16 << 20, 1, 1, 1},
		{64 << 20, 16 << 20, 3, 3, 1},
		{64 << 20, 16 << 20, 10, 3, 1},
		{64 << 20, 16 << 20, 20, 20, 1},
		{64 << 20, 16 << 20, 1, 7, 0.44}, // an eighth of the turns, each worth the group's smaller quantum
		{8 << 20, 1 << 20, 2, 2, 1},
		{8 << 20, 80 << 10, 5, 5, 1},
		{125_000_000, 31_250_000, 4, 30, 0.47}, // four turns of 34
		{125_000_000, 12_500_000, 30, 30, 1},
		{125_000_000, 100_000_000, 2, 2, 0.547}, // half of the turns
		{1_250_000_000, 312_500_000, 3, 1, 1},   // no head-room in either bucket
		{1 << 30, 20 << 30, 1, 1, 0.025},        // a limit above the total
		{0, 16 << 20, 3, 0, 1},
		{0, 400_000_000, 2, 0, 1},
	} {
		const duration = 20 * time.Second
		total, group := Limit{c.total}, Limit{c.group}
		got := runCrowd(t, total, Limit{}, group, c.grouped, c.others, duration, nil)
		in, out := got.sums()
		rate := float64(in-group.Burst()) / (float64(c.group) * duration.Seconds())
		if rate < c.want*0.98-0.005 || rate > c.want*1.02+0.005 || got.faults > 0 {
			t.Errorf("%+v: the group got %.4f of its rate, %d faults", c, rate, got.faults)
		}
		if all := float64(in+out-total.Burst()) / (float64(c.total) * duration.Seconds()); c.total > 0 && (all < 0.995 || all > 1) {
			t.Errorf("%+v: %.4f of the total", c, all)
		}
		for _, n := range got.grouped {
			if mean := in / int64(c.grouped); n < mean*99/100-2*group.Burst() || n > mean*101/100+2*group.Burst() {
				t.Errorf("%+v: unequal within the group: %v", c, got.grouped)
				break
			}
		}
		if s := got.snapshot.Groups[3]; s.BytesPerSecond != c.group || s.Waiting != c.grouped || int64(s.GrantedBytes) != in {
			t.Errorf("%+v: snapshot %+v, granted %d", c, s, in)
		}
	}
}

// Negative controls: a bucket that refills too fast is seen by the checker, and one without room for late wake-ups falls short.
func TestB1_BrokenGroupsAreCaught(t *testing.T) {
	group := Limit{16 << 20}
	fast := runCrowd(t, Limit{64 << 20}, Limit{}, group, 2, 2, 5*time.Second, func(g *Governor) { g.core.groups[3].account.bucket.rate *= 2 })
	if fast.faults == 0 {
		t.Error("twice the rate was not noticed")
	}
	tight := Limit{125_000_000}
	late := runCrowd(t, Limit{}, Limit{}, tight, 1, 0, 5*time.Second, func(g *Governor) { g.core.groups[3].most = tight.Burst() })
	if in, _ := late.sums(); float64(in) > 0.95*5*float64(tight.BytesPerSecond) {
		t.Errorf("%d bytes without head-room", in)
	}
}

func TestB2_GroupStandsInsideOfThePrincipalsLimit(t *testing.T) {
	own := Limit{4 << 20}
	got := runCrowd(t, Limit{64 << 20}, own, Limit{16 << 20}, 2, 1, 10*time.Second, nil)
	for _, n := range append(got.grouped, got.others...) {
		if n > 10*own.BytesPerSecond+own.Burst() || n < 10*own.BytesPerSecond*99/100 {
			t.Errorf("%v and %v of %d each", got.grouped, got.others, 10*own.BytesPerSecond)
		}
	}
	got = runCrowd(t, Limit{64 << 20}, own, Limit{6 << 20}, 3, 1, 10*time.Second, nil)
	if in, out := got.sums(); in < 59<<20 || in > 61<<20 || out < 39<<20 {
		t.Errorf("the group got %d of %d, the others %d of %d", in, 60<<20, out, 40<<20)
	}
}

// The limit of a group follows its settings live: the streams stay, their rate moves.
func TestW1_GroupOfRunningStreamsMovesWithItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		total := Limit{32 << 20}
		g := NewGovernor(total, Limit{}, newLateClock(MaxLateness))
		defer g.Close()
		gone := make(chan struct{})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { takeAll(t, g.OpenIn(fmt.Sprint(i%2), i%2), gone) })
		}
		all.Go(func() { takeAll(t, g.Open("plain"), gone) })
		for _, c := range []struct{ first, want, slack int64 }{ // MiB/s of group 0, and what it gets in ten seconds
			{8, 80, 2}, {2, 20, 2}, {4, 40, 2}, {0, 10 * 32 / 3, 5}, {1, 10, 2},
		} {
			g.ConfigureGroup(0, Limit{c.first << 20})
			g.ConfigureGroup(1, Limit{(c.first/2 + 11) << 20})
			before := g.Snapshot()
			<-time.After(10 * time.Second)
			synctest.Wait()
			after := g.Snapshot()
			if got := int64(after.Groups[0].GrantedBytes-before.Groups[0].GrantedBytes) >> 20; got < c.want-c.slack || got > c.want+c.slack {
				t.Errorf("at %d MiB/s it got %d MiB in 10 s, want %d", c.first, got, c.want)
			}
			if all := int64(after.GrantedBytes-before.GrantedBytes) >> 20; all < 317 {
				t.Errorf("at %d MiB/s all together got %d MiB of 320", c.first, all)
			}
		}
		close(gone)
		all.Wait()
	})
}

package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// weighted returns a view of endpoints with the given weights.
func weighted(weights ...uint32) *View {
	v := &View{Covered: true}
	sum := uint32(0)
	for i, n := range weights {
		sum += n
		v.Choices = append(v.Choices, Choice{Endpoint: EndpointID(i + 1), Weight: n, Writers: []WriterID{WriterID(i)}, upTo: sum})
	}
	return v
}

func TestPick_FollowsWeightsWhenIdle(t *testing.T) {
	v := weighted(100, 100, 25, 10)
	rng := rand.New(rand.NewPCG(1, 2))
	var got [4]int
	const n = 200000
	for range n {
		got[Pick(v, rng.Uint64(), func(int) int { return 0 })]++
	}
	for i, w := range []float64{100, 100, 25, 10} {
		want := w / 235
		if share := float64(got[i]) / n; share < want*0.95 || share > want*1.05 {
			t.Errorf("endpoint %d got %.4f of the exchanges, want %.4f", i, share, want)
		}
	}
}

func TestPick_LeastOutstandingOfTwoByWeight(t *testing.T) {
	loads := make([]int, 3)
	v := weighted(100, 100, 50)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		loads[Pick(v, rng.Uint64(), func(i int) int { return loads[i] })]++
	}
	// No exchange ends: the loads must come to the proportion of the weights, far closer than a draw alone would.
	for i, want := range []int{200, 200, 100} {
		if d := loads[i] - want; d < -4 || d > 4 {
			t.Errorf("loads %v, want %d at %d", loads, want, i)
		}
	}
	if got := Pick(weighted(100, 100), 0, func(i int) int { return []int{7, 3}[i] }); got != 1 {
		t.Errorf("chose %d, want the one with less", got)
	}
	// Negative control: a draw by weight alone is visibly worse.
	clear(loads)
	for range 500 {
		loads[v.draw(uint32(rng.Uint64()))]++
	}
	worst := 0
	for i, want := range []int{200, 200, 100} {
		worst = max(worst, loads[i]-want, want-loads[i])
	}
	if worst <= 4 {
		t.Errorf("a blind draw balances as well: %v", loads)
	}
}

func TestPick_SkipsThoseThatCanTakeNone(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 12; n++ {
		weights := make([]uint32, n)
		for i := range weights {
			weights[i] = uint32(1 + rng.IntN(100))
		}
		v := weighted(weights...)
		for only := range n {
			for range 50 {
				if got := Pick(v, rng.Uint64(), func(i int) int {
					if i == only {
						return 1000
					}
					return -1
				}); got != only {
					t.Fatalf("%d endpoints, only %d can take one: chose %d", n, only, got)
				}
			}
		}
		for range 50 {
			if got := Pick(v, rng.Uint64(), func(int) int { return -1 }); got != -1 {
				t.Fatalf("none can take one: chose %d", got)
			}
		}
	}
	if got := Pick(&View{}, 1, func(int) int { return 0 }); got != -1 {
		t.Errorf("an empty view gave %d", got)
	}
	for _, r := range []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<64 - 1} {
		if got := Pick(weighted(1, 100, 1), r, func(int) int { return 0 }); got < 0 || got > 2 {
			t.Errorf("random %d chose %d", r, got)
		}
	}
}

func TestPick_AllocatesNothing(t *testing.T) {
	v := weighted(100, 50, 25, 10, 100, 100, 100, 100)
	loads := make([]int, len(v.Choices))
	random := uint64(88172645463325252)
	load := func(i int) int { return loads[i] }
	if n := testing.AllocsPerRun(1000, func() {
		random = random*6364136223846793005 + 1442695040888963407
		loads[Pick(v, random, load)]++
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestU1_AViewNeverChanges(t *testing.T) {
	w := start(t, static(3), at(1), at(2))
	old := w.c.View()
	text := fmt.Sprintf("%+v", *old)
	writers := slices.Clone(old.Choices[0].Writers)
	w.kill(at(1))
	w.name(0, at(2), at(3))
	w.step(Reinit{Group: AnyGroup, Reason: ReasonSignal, Fresh: true})
	w.run(time5)
	if fmt.Sprintf("%+v", *old) != text || !slices.Equal(old.Choices[0].Writers, writers) {
		t.Error("a published view changed under its reader")
	}
	if w.c.View().Revision <= old.Revision {
		t.Error("the revision did not rise")
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{1, 3, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			weights := make([]uint32, n)
			for i := range weights {
				weights[i] = uint32(10 + i%91)
			}
			v := weighted(weights...)
			loads := make([]int, n)
			random := uint64(1)
			load := func(i int) int { return loads[i] }
			b.ReportAllocs()
			for b.Loop() {
				random = random*6364136223846793005 + 1442695040888963407
				i := Pick(v, random, load)
				loads[i] = int(random>>40) & 63
			}
		})
	}
}

// BenchmarkStep is one release and one report of a pool with 64 endpoints of 16 writers each.
func BenchmarkStep(b *testing.B) {
	set := static(16)
	set.FloorPerCore = 1024
	w := newWorld(b, 1, set)
	addrs := make([]int, 64)
	w.name(0)
	all := addresses(len(addrs))
	w.name(0, all...)
	w.step(Tick{})
	w.until(time5, "settled", w.settled)
	id := w.endpoint(all[7]).ID
	b.ReportAllocs()
	for b.Loop() {
		w.now += 1000
		w.c.Step(w.now, Observed{Endpoint: id, Successes: 1})
	}
}

package queue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// fleet is a crowd in a steady state: every client comes when it was told to, some never come again, slots open now and then.
type fleet struct {
	tb     testing.TB
	s      *Scheduler
	now    time.Duration
	asks   []Ask
	due    [1024][]int32 // clients by the tick in which they come, modulo
	active []*Response
	owner  []int
	rnd    *rand.Rand
	grown  int
}

const (
	benchSlots = 16
	benchBand  = 125_000_000
)

// fleetAsk is a request with a key as long as they are in production: a hashed principal, host and path, a download id.
func fleetAsk(i, principals int) Ask {
	var b strings.Builder
	fmt.Fprintf(&b, "authorization:%016x", mix(uint64(i%principals)))
	principal := strings.Clone(b.String())
	object := fmt.Sprintf("packages.example.com/releases/2026/update-%04d.img", i%1000)
	client := fmt.Sprintf("%016x%016x", mix(uint64(i)), mix(uint64(i)+1))
	return Ask{
		Key: Key{principal, object, client}, Class: Class(1 + i%3), Protocol: true, SizeBytes: int64(4+mix(uint64(i))%16) * 1_000_000_000,
		Validator: `"5f3c-1a"`,
	}
}

func newFleet(tb testing.TB, sessions, principals int, strategy Strategy) *fleet {
	tb.Helper()
	p := DefaultPolicy(benchSlots)
	p.Strategy, p.BandBytesPerSecond, p.QueueLimit, p.QueuePerPrincipal = strategy, benchBand, MaxQueueLimit, MaxQueueLimit
	s, err := New(p)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fleet{tb: tb, s: s, rnd: rand.New(rand.NewPCG(1, 2))}
	for i := range sessions {
		f.asks = append(f.asks, fleetAsk(i, principals))
	}
	for i := range f.asks {
		f.now += time.Minute / time.Duration(sessions)
		f.contact(i)
	}
	return f
}

// contact lets a client ask; one that gets a slot goes on with it.
func (f *fleet) contact(i int) Verdict {
	r, v := f.s.Ask(f.now, f.asks[i])
	if r != nil {
		f.active, f.owner = append(f.active, r), append(f.owner, i)
	}
	if v.Outcome == Queued && f.rnd.IntN(2000) > 0 { // one in two thousand contacts is the last of its client
		at := int((f.now+v.CheckIn+time.Second)/TickEvery) % len(f.due)
		f.due[at] = append(f.due[at], int32(i))
	}
	return v
}

// step lets half a second pass: bytes flow, every eighth time a download ends, and the clients whose time has come ask. Whoever
// has a file stays away; the same number of new clients comes, so that the queue keeps its length.
func (f *fleet) step(tick func()) {
	f.now += TickEvery
	for _, r := range f.active {
		f.s.Progress(f.now, r, benchBand/2/benchSlots)
	}
	if f.grown++; f.grown%8 == 0 && len(f.active) > 0 {
		k := f.rnd.IntN(len(f.active))
		r, i := f.active[k], f.owner[k]
		f.active, f.owner = slices.Delete(f.active, k, k+1), slices.Delete(f.owner, k, k+1)
		f.s.Finish(f.now, r, 0, f.asks[i].SizeBytes, true)
		f.asks[i].Key.Client = fmt.Sprintf("%016x%016x", mix(uint64(f.grown)), mix(uint64(i)))
		f.contact(i)
	}
	tick()
	f.s.TakeEnded()
	at := int(f.now/TickEvery) % len(f.due)
	come := f.due[at]
	f.due[at] = nil
	for _, i := range come {
		f.contact(int(i))
	}
}

var (
	benchSizes      = []int{1000, 65536, 1 << 20}
	benchPrincipals = []struct {
		name  string
		count func(n int) int
	}{{"few", func(int) int { return 16 }}, {"many", func(n int) int { return n }}}
)

// quantile of unsorted durations, in nanoseconds.
func quantile(took []time.Duration, q float64) float64 {
	slices.Sort(took)
	return float64(took[min(int(q*float64(len(took))), len(took)-1)])
}

func eachCrowd(b *testing.B, strategies []Strategy, run func(b *testing.B, n, principals int, strategy Strategy)) {
	for _, strategy := range strategies {
		for _, n := range benchSizes {
			for _, p := range benchPrincipals {
				b.Run(fmt.Sprintf("%s/waiting=%d/principals=%s", strategy, n, p.name), func(b *testing.B) {
					run(b, n, p.count(n), strategy)
				})
			}
		}
	}
}

// BenchmarkTick is a tick in the steady state, in processor time of its thread; p50-ns and p99-ns over the single ticks.
func BenchmarkTick(b *testing.B) {
	eachCrowd(b, []Strategy{Ordered, SmallestFirst, FairSojourn}, func(b *testing.B, n, principals int, strategy Strategy) {
		f := newFleet(b, n, principals, strategy)
		for range 1200 { // ten minutes: past the first checks, into the steady state
			f.step(func() { f.s.Tick(f.now) })
		}
		runtime.GC()
		var took []time.Duration
		for b.Loop() {
			f.step(func() {
				took = append(took, cpuTime(b, func() { f.s.Tick(f.now) }))
			})
		}
		b.ReportMetric(quantile(took, 0.5), "p50-ns")
		b.ReportMetric(quantile(took, 0.99), "p99-ns")
		b.ReportMetric(float64(f.s.Snapshot(f.now).WaitingTotal()), "waiting")
	})
}

// BenchmarkContact is one contact of a waiting client drawn at random: position, estimate, marks, next check.
func BenchmarkContact(b *testing.B) {
	eachCrowd(b, []Strategy{Ordered, SmallestFirst, FairSojourn}, func(b *testing.B, n, principals int, strategy Strategy) {
		f := newFleet(b, n, principals, strategy)
		f.s.Tick(f.now)
		runtime.GC()
		const batch = 16
		var took []time.Duration
		warm := 0
		order := f.rnd.Perm(n)
		b.ReportAllocs()
		for k := 0; b.Loop(); k++ {
			i := order[k%n]
			if k%batch != 0 {
				f.s.Ask(f.now, f.asks[i])
				continue
			}
			// A request's key was just read from its head: it is warm.
			warm += len(f.asks[i].Key.Bounded().Client)
			for _, part := range [...]string{f.asks[i].Key.Principal, f.asks[i].Key.Object, f.asks[i].Key.Client} {
				warm += int(part[0]) + int(part[len(part)-1])
			}
			if len(took) == cap(took) {
				b.StopTimer()
				took = slices.Grow(took, 1<<16)
				b.StartTimer()
			}
			start := time.Now()
			f.s.Ask(f.now, f.asks[i])
			took = append(took, time.Since(start))
		}
		b.ReportMetric(quantile(took, 0.5), "p50-ns")
		b.ReportMetric(quantile(took, 0.99), "p99-ns")
		runtime.KeepAlive(warm)
	})
}

// BenchmarkDecisions is a mix of what a busy queue decides: contacts, ranges of running downloads, downloads that end and the
// starts that follow, newcomers, and ticks. decisions/s is in processor time of one thread.
func BenchmarkDecisions(b *testing.B) {
	eachCrowd(b, []Strategy{Ordered, SmallestFirst, FairSojourn}, func(b *testing.B, n, principals int, strategy Strategy) {
		f := newFleet(b, n, principals, strategy)
		extra := make([]Ask, 4096)
		for i := range extra {
			extra[i] = fleetAsk(n+i, principals)
		}
		f.s.Tick(f.now)
		runtime.GC()
		b.ReportAllocs()
		b.ResetTimer()
		decisions, spent := 0, time.Duration(0)
		come := make([]Ask, 1024)
		for b.Loop() {
			for i := range come { // keys as a request brings them: just read from its head
				come[i] = f.asks[f.rnd.IntN(n)]
				k := &come[i].Key
				*k = Key{strings.Clone(k.Principal), strings.Clone(k.Object), strings.Clone(k.Client)}
			}
			spent += cpuTime(b, func() {
				for i := range come {
					f.decide(extra, decisions, come[i])
					decisions++
				}
				if decisions%(64*1024) == 0 { // a tick after every 65,536 decisions: twice as often as at half a million a second
					f.now += TickEvery
					f.s.Tick(f.now)
				}
				f.s.TakeEnded()
			})
		}
		b.ReportMetric(float64(decisions)/spent.Seconds(), "decisions/s")
	})
}

// decide makes one decision of the mix.
func (f *fleet) decide(extra []Ask, k int, come Ask) {
	switch k % 16 {
	case 0: // a range of a running download ends and the next one is asked for
		if len(f.active) == 0 {
			return
		}
		at := f.rnd.IntN(len(f.active))
		i := f.owner[at]
		f.s.Progress(f.now, f.active[at], 8<<20)
		f.s.Finish(f.now, f.active[at], 0, 8<<20, true)
		if r, _ := f.s.Ask(f.now, f.asks[i]); r != nil {
			f.active[at] = r
		}
	case 1: // a newcomer comes
		f.s.Ask(f.now, extra[k/16%len(extra)])
	case 2: // and leaves
		f.s.Leave(f.now, extra[k/16%len(extra)].Key)
	default:
		f.s.Ask(f.now, come)
	}
}

// heapBytes returns the live heap.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// bytesPerSession measures the live heap that a waiting session costs, everything counted: keys as they come from requests,
// indexes, orders, principals.
func bytesPerSession(tb testing.TB, n, principals int, strategy Strategy) float64 {
	p := DefaultPolicy(benchSlots)
	p.Strategy, p.BandBytesPerSecond, p.QueueLimit, p.QueuePerPrincipal = strategy, benchBand, MaxQueueLimit, MaxQueueLimit
	before := heapBytes()
	s, err := New(p)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		s.Ask(time.Duration(i)*time.Microsecond, fleetAsk(i, principals))
	}
	s.Tick(time.Minute / 2)
	s.TakeEnded()
	after := heapBytes()
	waiting := s.Snapshot(time.Minute / 2).WaitingTotal()
	if waiting < n*9/10 {
		tb.Fatalf("%d of %d wait", waiting, n)
	}
	runtime.KeepAlive(s)
	return float64(after-before) / float64(waiting)
}

// BenchmarkMemory reports the bytes of one waiting session.
func BenchmarkMemory(b *testing.B) {
	eachCrowd(b, []Strategy{Ordered, SmallestFirst, FairSojourn}, func(b *testing.B, n, principals int, strategy Strategy) {
		var worst float64
		for b.Loop() {
			worst = max(worst, bytesPerSession(b, n, principals, strategy))
		}
		b.ReportMetric(worst, "bytes/session")
	})
}

// TestQ17_AWaitingSessionCostsAtMost512Bytes holds the memory bound at 65,536; BenchmarkMemory shows it at a million.
func TestQ17_AWaitingSessionCostsAtMost512Bytes(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		for _, p := range benchPrincipals {
			got := bytesPerSession(t, crowdSize, p.count(crowdSize), strategy)
			t.Logf("%s, %s principals: %.0f bytes", strategy, p.name, got)
			if got > 512*memorySlack {
				t.Errorf("%s, %s principals: a waiting session costs %.0f bytes", strategy, p.name, got)
			}
		}
	}
}

// TestQ18_AContactAllocatesNothing is the promise of the hot path.
func TestQ18_AContactAllocatesNothing(t *testing.T) {
	for _, strategy := range []Strategy{Ordered, SmallestFirst, FairSojourn} {
		f := newFleet(t, 2000, 50, strategy)
		f.s.Tick(f.now)
		i := 0
		if n := testing.AllocsPerRun(1000, func() {
			f.s.Ask(f.now, f.asks[100+i%1500])
			i++
		}); n != 0 {
			t.Errorf("%s: a contact makes %v allocations", strategy, n)
		}
	}
}

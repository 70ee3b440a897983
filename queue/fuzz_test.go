package queue

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// FuzzPolicy feeds any policy: it is refused with faults that name their fields, or a scheduler with it survives a short
// history with all invariants.
func FuzzPolicy(f *testing.F) {
	add := func(p Policy) {
		f.Add(uint8(p.Strategy), p.Sessions, p.Reserve, p.PerPrincipal, p.Weights[0], p.Weights[3], p.SessionMinBytes, int64(p.IdleFor),
			int64(p.AgingEvery), p.RangesPerSession, p.QueueLimit, p.QueuePerPrincipal, p.Preempt, p.SessionsElastic, p.BandBytesPerSecond, uint8(p.Mode))
	}
	add(Policy{})
	add(DefaultPolicy(1))
	add(DefaultPolicy(16))
	p := DefaultPolicy(2)
	p.Strategy, p.SessionsElastic, p.AgingEvery, p.BandBytesPerSecond = SmallestFirst, 5, MaxAgingEvery, 1<<40
	add(p)
	p.Strategy, p.AgingEvery, p.QueueLimit, p.QueuePerPrincipal, p.Weights[3] = FairSojourn, time.Second, 2, 1, MaxWeight
	add(p)
	p.Mode = ModeDryRun
	add(p)
	f.Fuzz(func(t *testing.T, strategy uint8, sessions, reserve, share, first, last int, minBytes, idle, aging int64, ranges, limit, ofOne int,
		preempt bool, elastic int, band int64, mode uint8) {
		p := Policy{
			Strategy: Strategy(strategy), Sessions: sessions, Reserve: reserve, PerPrincipal: share, Weights: [Classes]int{first, 4, 2, last},
			SessionMinBytes: minBytes, IdleFor: time.Duration(idle), AgingEvery: time.Duration(aging), RangesPerSession: ranges, QueueLimit: limit,
			QueuePerPrincipal: ofOne, Preempt: preempt, SessionsElastic: elastic, BandBytesPerSecond: band, Mode: Mode(mode),
		}
		if err := p.Validate(); err != nil {
			wantNamedFields(t, err)
			if _, err := New(p); err == nil {
				t.Fatal("a refused policy makes a scheduler")
			}
			return
		}
		survive(t, p)
	})
}

// wantNamedFields fails unless every fault is a *PolicyError of a field that Policy has.
func wantNamedFields(t *testing.T, err error) {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("faults are not joined: %v", err)
	}
	for _, fault := range joined.Unwrap() {
		var named *PolicyError
		if !errors.As(fault, &named) {
			t.Fatalf("fault without a field: %v", fault)
		}
		field, _, _ := strings.Cut(named.Field, ".")
		if _, ok := reflect.TypeFor[Policy]().FieldByName(field); !ok || named.Rule == "" || named.Example == "" {
			t.Fatalf("fault of an unknown field or without a rule: %+v", named)
		}
	}
}

// survive runs a short history: more clients than slots of two principals in all classes, bytes, ticks over hours, a change
// of the policy there and back, and everybody's departure.
func survive(t *testing.T, p Policy) {
	t.Helper()
	h := newHarness(t, p)
	size := min(p.SessionMinBytes, MaxSessionMinBytes) + 1000
	var responses []*Response
	ask := func(i int) {
		a := askOf(name("p", i%2), name("o", i)).in(Class(i % Classes)).sized(size + int64(i))
		if r, _ := h.ask(a); r != nil {
			responses = append(responses, r)
		}
	}
	for round := range 3 {
		for i := range min(p.Sessions, 8) + 6 {
			ask(i)
		}
		for i, r := range responses {
			h.s.Progress(h.now, r, 500)
			if i%2 == round%2 {
				h.finish(r, 0, size+100, true)
			}
		}
		h.tick(3 * TickEvery)
		h.pass([]time.Duration{time.Minute, p.IdleFor, max(p.AgingEvery, time.Hour)}[round])
		h.tick(TickEvery)
	}
	other := DefaultPolicy(3)
	other.Strategy = SmallestFirst
	h.configure(other)
	ask(100)
	h.configure(p)
	for _, r := range responses {
		h.s.Abandon(h.now, r)
		h.check()
	}
	h.s.TakeSettled()
	for range 3 {
		h.pass(PauseMemory + MaxIdleFor)
		h.tick(2 * TickEvery)
	}
	if s := h.snap(); s.ActiveTotal()+s.WaitingTotal()+s.Paused+s.Held != 0 {
		t.Fatalf("after everybody left: %+v", s)
	}
}

// FuzzCoverage compares the coverage of a session with a set of single bytes: intervals are sorted, apart and exact until
// there are more than maxIntervals of them.
func FuzzCoverage(f *testing.F) {
	f.Add([]byte{0, 0, 10, 0, 10, 0, 20, 0})
	f.Add([]byte{5, 0, 9, 0, 1, 0, 3, 0, 0, 0, 200, 1})
	f.Add([]byte{9, 0, 3, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		const length = 1 << 9
		var (
			c        coverage
			bytes    [length + 1]bool
			exact    = true
			length64 = int64(length)
		)
		for ; len(data) >= 4; data = data[4:] {
			first, end := int64(binary.LittleEndian.Uint16(data))%length64, int64(binary.LittleEndian.Uint16(data[2:]))%(length64+1)
			full := len(c) == maxIntervals
			c = c.add(first, end)
			for i := first; i < end; i++ {
				bytes[i] = true
			}
			exact = exact && !(full && len(c) == maxIntervals)
			checkCoverage(t, c, bytes[:], exact)
		}
	})
}

func checkCoverage(t *testing.T, c coverage, bytes []bool, exact bool) {
	t.Helper()
	if len(c) > maxIntervals {
		t.Fatalf("%d intervals", len(c))
	}
	var total, want int64
	for i, v := range c {
		if v.end <= v.first || i > 0 && c[i-1].end >= v.first {
			t.Fatalf("interval %d of %v is empty, or touches the one before", i, c)
		}
		for b := v.first; b < v.end; b++ {
			if !bytes[b] {
				t.Fatalf("byte %d counts as delivered and was not", b)
			}
		}
		total += v.end - v.first
		if !c.covers(v.first, v.end) || c.covers(v.first, v.end+1) && !exact {
			t.Fatalf("covers does not agree with interval %v", v)
		}
	}
	for _, b := range bytes {
		if b {
			want++
		}
	}
	if got := c.bytesFrom(0); got != total || exact && got != want {
		t.Fatalf("%d bytes covered, intervals hold %d, %d were added", got, total, want)
	}
}

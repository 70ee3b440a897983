package bucket

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestB1_LimitRules(t *testing.T) {
	for rate, ok := range map[int64]bool{
		0: true, -1: false, 1: false, 65535: false, 65536: true, 1 << 40: true, 1<<40 + 1: false,
	} {
		if got := (Limit{rate}).Validate() == nil; got != ok {
			t.Errorf("Validate(%d): accepted %v, want %v", rate, got, ok)
		}
	}
	for _, c := range []struct{ rate, burst, quantum int64 }{
		{0, 0, 0},
		{1, 1, 1},
		{65536, 6553, 6553 - 197},    // the burst is below 16 KiB: nearly all of it
		{1 << 20, 104857, 16777},     // 16 ms
		{200_000, 20_000, 16 << 10},  // the least quantum
		{64 << 20, 1 << 20, 847_249}, // the burst less 3 ms
		{125_000_000, 1 << 20, 1<<20 - 375_000},
		{1_250_000_000, 1 << 20, 1 << 20}, // no head-room: all of it
		{1 << 40, 1 << 20, 1 << 20},
		{1 << 50, 1 << 20, 1 << 20}, // narrowed
		{-5, 1, 1},                  // narrowed, not off
	} {
		l := Limit{c.rate}
		if l.Burst() != c.burst || l.Quantum() != c.quantum {
			t.Errorf("rate %d: burst %d quantum %d, want %d and %d", c.rate, l.Burst(), l.Quantum(), c.burst, c.quantum)
		}
	}
}

func TestB1_QuantumFitsBurstAtEveryRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{rapid.Int64Range(1, MaxBytesPerSecond).Draw(t, "rate")}
		q, b := l.Quantum(), l.Burst()
		if q < 1 || q > b {
			t.Fatalf("rate %d: quantum %d outside 1..%d", l.BytesPerSecond, q, b)
		}
		if l.hasHeadroom() && q+l.lateBytes() > b {
			t.Fatalf("rate %d: a late wake-up overflows: %d + %d > %d", l.BytesPerSecond, q, l.lateBytes(), b)
		}
	})
}

// The bucket against unbounded rational numbers, with B1 checked on the same trace.
func TestB1_BucketIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(1, 1<<20), rapid.Int64Range(1<<39, 1<<40), rapid.Just(int64(1)<<40)).Draw(t, "rate")
		l := Limit{rate}
		b, checker := NewBucket(l, 0), newBound(l, 0)
		level := new(big.Rat).SetInt64(l.Burst())
		var now time.Duration
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			gap := rapid.OneOf(rapid.Int64Range(0, 2000), rapid.Int64Range(0, 2e8), rapid.Int64Range(0, 1<<52)).Draw(t, "gap")
			now += time.Duration(gap)
			refill := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(gap), big.NewInt(l.BytesPerSecond)), big.NewInt(1e9))
			level.Add(level, refill)
			if burst := new(big.Rat).SetInt64(l.Burst()); level.Cmp(burst) > 0 {
				level = burst
			}
			if rapid.IntRange(0, 9).Draw(t, "configure") == 0 {
				l = Limit{rapid.Int64Range(1, 1<<40).Draw(t, "newRate")}
				b.Configure(l, now)
				checker.configure(l, now)
				if burst := new(big.Rat).SetInt64(l.Burst()); level.Cmp(burst) > 0 {
					level = burst
				}
			}
			n := rapid.Int64Range(1, l.Burst()+1).Draw(t, "n")
			whole := new(big.Int).Quo(level.Num(), level.Denom()).Int64()
			if got := b.Available(now); got != whole {
				t.Fatalf("available %d, want %d", got, whole)
			}
			due := b.When(n)
			if (due <= now) != (n <= whole) {
				t.Fatalf("n=%d level=%v: When %v at %v", n, level, due, now)
			}
			if got := b.Take(n, now); got != (n <= whole) {
				t.Fatalf("take %d of %d: %v", n, whole, got)
			} else if got {
				level.Sub(level, new(big.Rat).SetInt64(n))
				checker.grant(n, now)
			}
			if due > now && due != never {
				early, onTime := b, b
				if early.Take(n, due-1) || !onTime.Take(n, due) {
					t.Fatalf("When(%d)=%v is not the first moment", n, due)
				}
			}
		}
		if checker.faults > 0 {
			t.Fatalf("B1 exceeded by %v billionths", checker.worst)
		}
	})
}

func TestB1_GreatestRateDoesNotOverflow(t *testing.T) {
	b := NewBucket(Limit{MaxBytesPerSecond}, 0)
	if !b.Take(MaxBurstBytes, 0) || b.Take(1, 0) {
		t.Fatal("the burst is not what a full bucket holds")
	}
	if got := b.When(MaxBurstBytes); got != 954 {
		t.Fatalf("a burst takes %d ns, want 954", got)
	}
	const far = time.Duration(1<<63 - 2)
	if got := b.Available(far); got != MaxBurstBytes {
		t.Fatalf("after 292 years: %d", got)
	}
	if b.When(MaxBurstBytes+1) != never {
		t.Fatal("more than a burst has a due moment")
	}
}

func TestB1_TimeBackAndZeroValueGrantNothing(t *testing.T) {
	b := NewBucket(Limit{1 << 20}, time.Second)
	b.Take(b.Available(time.Second), time.Second)
	if b.Available(0) != 0 || b.Available(time.Second) != 0 {
		t.Fatal("time going back refilled")
	}
	if !b.Take(0, 0) || !b.Take(-1, 0) {
		t.Fatal("taking nothing failed")
	}
	var zero Bucket
	if zero.Take(1, time.Hour) || zero.When(1) != never || zero.FullAt() != time.Hour {
		t.Fatal("the zero bucket grants")
	}
}

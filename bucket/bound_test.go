package bucket

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// bound checks B1 over every interval of a trace in one pass. With S the bytes granted and R the integral of the rate,
// the interval from grant i to grant j demands S(j) - S(i-1) <= R(j) - R(i) + burst(i); so the least value of
// S(i-1) - R(i) - burst(i), turned around, bounds S(j) - R(j) for all i at once. Intervals that begin or end between
// grants are looser. All values are exact, in billionths of a byte.
type bound struct {
	limit  Limit
	last   time.Duration
	sum    *big.Int // S
	flow   *big.Int // R
	least  *big.Int // min over i of S(i-1) - R(i) + burst(i)
	slack  time.Duration
	faults int
	worst  *big.Int // greatest excess found
}

func newBound(l Limit, now time.Duration) *bound {
	return &bound{limit: l, last: now, sum: new(big.Int), flow: new(big.Int), worst: new(big.Int)}
}

func (b *bound) advance(now time.Duration) {
	if now < b.last {
		b.faults++ // moments must not go back
		return
	}
	b.flow.Add(b.flow, new(big.Int).Mul(big.NewInt(int64(now-b.last)), big.NewInt(b.limit.BytesPerSecond)))
	b.last = now
}

func (b *bound) configure(l Limit, now time.Duration) {
	b.advance(max(now, b.last))
	b.limit = l
}

func (b *bound) grant(n int64, now time.Duration) {
	b.advance(now)
	unit := big.NewInt(int64(time.Second))
	burst := new(big.Int).Mul(big.NewInt(b.limit.Burst()), unit)
	burst.Add(burst, new(big.Int).Mul(big.NewInt(int64(b.slack)), big.NewInt(b.limit.BytesPerSecond)))
	start := new(big.Int).Sub(b.sum, b.flow)
	start.Add(start, burst)
	if b.least == nil || start.Cmp(b.least) < 0 {
		b.least = start
	}
	b.sum.Add(b.sum, new(big.Int).Mul(big.NewInt(n), unit))
	excess := new(big.Int).Sub(b.sum, b.flow)
	excess.Sub(excess, b.least)
	if excess.Sign() > 0 {
		b.faults++
		if excess.Cmp(b.worst) > 0 {
			b.worst = excess
		}
	}
}

type event struct {
	at time.Duration
	n  int64
}

// exceedsSomewhere is the definition of B1: it looks at all pairs.
func exceedsSomewhere(l Limit, trace []event) bool {
	for i := range trace {
		var sum int64
		for j := i; j < len(trace); j++ {
			sum += trace[j].n
			allowed := new(big.Int).Mul(big.NewInt(l.BytesPerSecond), big.NewInt(int64(trace[j].at-trace[i].at)))
			allowed.Add(allowed, new(big.Int).Mul(big.NewInt(l.Burst()), big.NewInt(int64(time.Second))))
			if new(big.Int).Mul(big.NewInt(sum), big.NewInt(int64(time.Second))).Cmp(allowed) > 0 {
				return true
			}
		}
	}
	return false
}

func TestB1_BoundCheckerAgreesWithItsDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	limit := Limit{BytesPerSecond: 1 << 20}
	verdicts := map[bool]int{}
	for range 400 {
		checker := newBound(limit, 0)
		var trace []event
		var at time.Duration
		for range 12 {
			at += time.Duration(random.Int64N(int64(60 * time.Millisecond)))
			n := random.Int64N(70_000) + 1
			trace = append(trace, event{at, n})
			checker.grant(n, at)
		}
		want := exceedsSomewhere(limit, trace)
		if got := checker.faults > 0; got != want {
			t.Fatalf("checker says %v, all pairs say %v: %v", got, want, trace)
		}
		verdicts[want]++
	}
	if verdicts[true] < 20 || verdicts[false] < 20 {
		t.Fatalf("one-sided sample: %v", verdicts)
	}
}

// Negative control: buckets with the classic faults, each of which the checker must catch.
func TestB1_BrokenBucketsAreCaught(t *testing.T) {
	limit := Limit{BytesPerSecond: 10 << 20}
	quantum := limit.Quantum()
	broken := map[string]func(b *Bucket, now time.Duration) bool{
		"charges a hundredth less": func(b *Bucket, now time.Duration) bool { return b.Take(quantum-quantum/100, now) },
		"gives every tenth grant back": func() func(*Bucket, time.Duration) bool {
			count := 0
			return func(b *Bucket, now time.Duration) bool {
				count++
				return count%10 == 0 && b.Available(now) > 0 || b.Take(quantum, now)
			}
		}(),
		"level not capped": func() func(*Bucket, time.Duration) bool {
			var taken int64
			return func(_ *Bucket, now time.Duration) bool {
				if taken+quantum > int64(now)*limit.BytesPerSecond/int64(time.Second)+limit.Burst() {
					return false
				}
				taken += quantum
				return true
			}
		}(),
	}
	run := func(take func(*Bucket, time.Duration) bool) int {
		b, checker := NewBucket(limit, 0), newBound(limit, 0)
		for now := time.Duration(0); now < 4*time.Second; now += time.Millisecond {
			if now > time.Second && now < 2*time.Second {
				continue // an idle second
			}
			for take(&b, now) {
				checker.grant(quantum, now)
			}
		}
		return checker.faults
	}
	for name, take := range broken {
		if run(take) == 0 {
			t.Errorf("%s: not caught", name)
		}
	}
	if n := run(func(b *Bucket, now time.Duration) bool { return b.Take(quantum, now) }); n != 0 {
		t.Errorf("the real bucket is accused %d times", n)
	}
}

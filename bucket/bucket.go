package bucket

import (
	"math"
	"time"
)

// unitsPerByte makes a nanosecond of a rate of r bytes/s worth exactly r units.
const unitsPerByte = int64(time.Second)

// never is the moment of what cannot happen.
const never = time.Duration(math.MaxInt64)

// Bucket is a pure token bucket: no lock, no clock, no allocation. Moments are monotonic time since an origin of the
// caller's choice, not negative. Not safe for concurrent use; the zero value has no capacity and grants nothing.
//
// Invariants: I1 0 <= level <= capacity <= 1 MiB in units; I2 last never decreases; I3 over any interval of moments T the
// bytes taken are at most rate*T + burst.
type Bucket struct {
	rate     int64 // units per nanosecond, which equals bytes per second
	capacity int64 // units
	level    int64 // units, as of last
	last     time.Duration
}

// NewBucket returns a full bucket. An off limit makes a bucket that grants nothing: unlimited traffic has no bucket.
func NewBucket(l Limit, now time.Duration) Bucket {
	capacity := l.Burst() * unitsPerByte
	return Bucket{rate: l.narrowed().BytesPerSecond, capacity: capacity, level: capacity, last: now}
}

// Available returns the whole bytes that can be taken at now. A now before the last event counts as that event.
func (b *Bucket) Available(now time.Duration) int64 {
	b.advance(now)
	return b.level / unitsPerByte
}

// Take grants exactly n bytes at now, or nothing. A now before the last event counts as that event. Taking n <= 0
// succeeds and changes nothing.
func (b *Bucket) Take(n int64, now time.Duration) bool {
	if n <= 0 {
		return true
	}
	b.advance(now)
	if n > b.level/unitsPerByte {
		return false
	}
	b.level -= n * unitsPerByte
	return true
}

// When returns the first moment, not before the last event, at which n bytes can be taken if nobody else takes any. More
// than the burst can never be taken: the answer is then the largest Duration.
func (b *Bucket) When(n int64) time.Duration {
	if n > b.capacity/unitsPerByte {
		return never
	}
	missing := n*unitsPerByte - b.level
	if missing <= 0 {
		return b.last
	}
	return b.last + time.Duration((missing+b.rate-1)/b.rate)
}

// FullAt returns the first moment, not before the last event, at which the bucket is full if nobody takes from it.
func (b *Bucket) FullAt() time.Duration {
	if b.rate == 0 {
		return b.last
	}
	return b.last + time.Duration((b.capacity-b.level+b.rate-1)/b.rate)
}

// Configure changes the limit at now. The level is kept, cut to the new burst; a greater burst is filled by time, not at
// once. So bytes of any interval stay within the integral of the rate plus the burst at its start.
func (b *Bucket) Configure(l Limit, now time.Duration) {
	b.advance(now)
	b.rate = l.narrowed().BytesPerSecond
	b.capacity = l.Burst() * unitsPerByte
	b.level = min(b.level, b.capacity)
}

// Drain empties the bucket at now.
func (b *Bucket) Drain(now time.Duration) {
	b.advance(now)
	b.level = 0
}

// advance refills up to now. The division comes first: elapsed*rate is computed only where it fits the capacity.
func (b *Bucket) advance(now time.Duration) {
	if now <= b.last {
		return
	}
	elapsed := int64(now - b.last)
	b.last = now
	if b.rate == 0 {
		return
	}
	if elapsed > (b.capacity-b.level)/b.rate {
		b.level = b.capacity
		return
	}
	b.level += elapsed * b.rate
}

package bucket

import (
	"fmt"
	"time"
)

const (
	// MinBytesPerSecond is the smallest rate that Validate accepts besides 0.
	MinBytesPerSecond = 64 << 10
	// MaxBytesPerSecond is the largest rate, 1 TiB/s.
	MaxBytesPerSecond = 1 << 40
	// MaxBurstBytes bounds the burst of every bucket.
	MaxBurstBytes = 1 << 20
	// MaxLateness is how late a wake-up may be without losing rate.
	MaxLateness = 3 * time.Millisecond

	minQuantumBytes = 16 << 10
	quantumMillis   = 16
	latenessMillis  = int64(MaxLateness / time.Millisecond)
)

// Limit is one rate ceiling. The zero value is off.
type Limit struct {
	// BytesPerSecond is the ceiling in bytes/s, 0 = off.
	BytesPerSecond int64
}

// Validate reports whether an operator may configure the limit: 0, or MinBytesPerSecond..MaxBytesPerSecond.
// Buckets also work below the minimum, which the shares of a divided budget may need.
func (l Limit) Validate() error {
	if l.BytesPerSecond == 0 || l.BytesPerSecond >= MinBytesPerSecond && l.BytesPerSecond <= MaxBytesPerSecond {
		return nil
	}
	return fmt.Errorf("rate %d bytes/s is outside %d..%d: set a rate in this range, or 0 for no limit",
		l.BytesPerSecond, int64(MinBytesPerSecond), int64(MaxBytesPerSecond))
}

// Off reports whether the limit is absent.
func (l Limit) Off() bool { return l.BytesPerSecond == 0 }

// Burst is the capacity of a bucket of this rate in bytes: min(floor(rate/10), 1 MiB), at least 1; 0 when off.
func (l Limit) Burst() int64 {
	if l.Off() {
		return 0
	}
	return min(max(l.narrowed().BytesPerSecond/10, 1), MaxBurstBytes)
}

// Quantum is the most bytes that one grant of this limit holds, by the formula of the package doc; 0 when off.
func (l Limit) Quantum() int64 {
	if l.Off() {
		return 0
	}
	burst := l.Burst()
	quantum := min(max(l.narrowed().BytesPerSecond*quantumMillis/1000, minQuantumBytes), burst)
	if l.hasHeadroom() {
		quantum = min(quantum, burst-l.lateBytes())
	}
	return quantum
}

// lateBytes is what flows in while a wake-up is MaxLateness late, rounded up.
func (l Limit) lateBytes() int64 { return (l.narrowed().BytesPerSecond*latenessMillis + 999) / 1000 }

// hasHeadroom reports whether a quantum of at least half the burst can leave room for a late wake-up.
func (l Limit) hasHeadroom() bool {
	burst := l.Burst()
	return burst-l.lateBytes() >= (burst+1)/2
}

// narrowed brings a limit that is on into the range of exact arithmetic. It never turns a limit off.
func (l Limit) narrowed() Limit {
	if l.Off() {
		return l
	}
	return Limit{BytesPerSecond: min(max(l.BytesPerSecond, 1), MaxBytesPerSecond)}
}

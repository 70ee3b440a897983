package object

import (
	"math"

	"github.com/arkvory/sidecar/proxy/wire"
)

// RangeKind is the form of a Range field.
type RangeKind uint8

// Forms of a Range field.
const (
	Whole   RangeKind = iota // no Range
	Bounded                  // bytes=A-B
	Open                     // bytes=A-
	Suffix                   // bytes=-N
	Multi                    // several ranges
	Ignored                  // another unit, or malformed: an origin answers as if there were none (RFC 9110 section 14.2)
)

// Range is a parsed Range field. Positions are bytes from 0, both ends inclusive; a number beyond 2^63-1 counts as that.
type Range struct {
	Kind RangeKind
	// First and Last of Bounded; First of Open (Last is MaxInt64); of Multi the smallest first and the largest last position, where
	// suffix parts count as reaching MaxInt64 only.
	First, Last int64
	// Suffix is the length N of Suffix, of Multi the longest suffix part.
	Suffix int64
	// Parts is how many ranges there are.
	Parts int
}

// ParseRange parses the value of a Range field, nil for an absent one (RFC 9110 section 14.1). ok is false, and the kind Ignored, for
// a malformed value and for a unit other than bytes. It allocates nothing.
func ParseRange(v []byte) (r Range, ok bool) {
	if v == nil {
		return Range{Kind: Whole, Last: math.MaxInt64}, true
	}
	ignored := Range{Kind: Ignored, Last: math.MaxInt64}
	if len(v) < 6 || v[5] != '=' || !wire.EqualFold(v[:5], "bytes") {
		return ignored, false
	}
	v = v[6:]
	all := Range{First: math.MaxInt64}
	for {
		end := 0
		for end < len(v) && v[end] != ',' {
			end++
		}
		part := trim(v[:end])
		if len(part) > 0 { // empty list elements are allowed (RFC 9110 section 5.6.1.2)
			one, ok := parsePart(part)
			if !ok {
				return ignored, false
			}
			all = all.join(one)
		}
		if end == len(v) {
			break
		}
		v = v[end+1:]
	}
	if all.Parts == 0 {
		return ignored, false
	}
	return all, true
}

func (r Range) join(one Range) Range {
	if r.Parts == 0 {
		one.Parts = 1
		return one
	}
	r.Kind = Multi
	r.Parts++
	r.First, r.Last, r.Suffix = min(r.First, one.First), max(r.Last, one.Last), max(r.Suffix, one.Suffix)
	return r
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

func parsePart(p []byte) (Range, bool) {
	if p[0] == '-' {
		n, rest, ok := number(p[1:])
		return Range{Kind: Suffix, First: math.MaxInt64, Last: math.MaxInt64, Suffix: n}, ok && len(rest) == 0
	}
	first, rest, ok := number(p)
	if !ok || len(rest) == 0 || rest[0] != '-' {
		return Range{}, false
	}
	rest = rest[1:]
	if len(rest) == 0 {
		return Range{Kind: Open, First: first, Last: math.MaxInt64}, true
	}
	last, rest, ok := number(rest)
	return Range{Kind: Bounded, First: first, Last: last}, ok && len(rest) == 0 && last >= first
}

// number reads digits; a value that does not fit is the largest there is, which no object reaches.
func number(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		d := int64(b[i] - '0')
		if n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64
			continue
		}
		n = n*10 + d
	}
	return n, b[i:], i > 0
}

// Resolve returns the first and last byte that a single range selects of an object of size bytes, the whole object for Whole and
// Ignored. ok is false when it selects nothing (416) and for Multi, which has no single answer.
func (r Range) Resolve(size int64) (first, last int64, ok bool) {
	switch r.Kind {
	case Whole, Ignored:
		return 0, size - 1, size >= 0
	case Bounded, Open:
		if r.First >= size {
			return 0, 0, false
		}
		return r.First, min(r.Last, size-1), true
	case Suffix:
		if r.Suffix == 0 || size <= 0 {
			return 0, 0, false
		}
		return size - min(r.Suffix, size), size - 1, true
	}
	return 0, 0, false
}

// Tail reports whether the range reads the end of an object of size bytes as rule Q13 means it: a suffix range, or a bounded one that
// ends at the last byte and does not begin at the first.
func (r Range) Tail(size int64) bool {
	switch r.Kind {
	case Suffix:
		return r.Suffix < size
	case Bounded:
		return r.First > 0 && r.Last >= size-1
	}
	return false
}

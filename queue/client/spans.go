package client

import "slices"

// span is the half-open interval of bytes [from, to).
type span struct{ from, to int64 }

// spans is a set of bytes: ascending spans that neither touch nor overlap. The zero value is empty.
type spans []span

// add returns the set with x in it; the receiver is not changed.
func (s spans) add(x span) spans {
	if x.from >= x.to {
		return s
	}
	out := make(spans, 0, len(s)+1)
	for _, one := range s {
		switch {
		case one.to < x.from:
			out = append(out, one)
		case one.from > x.to:
			out = append(out, x)
			x = one
		default:
			x = span{min(x.from, one.from), max(x.to, one.to)}
		}
	}
	return append(out, x)
}

// holds reports whether all of x is in the set.
func (s spans) holds(x span) bool {
	for _, one := range s {
		if one.from <= x.from && x.to <= one.to {
			return true
		}
	}
	return false
}

// clip returns the bytes of the set below size.
func (s spans) clip(size int64) spans {
	out := slices.Clone(s)
	for i, one := range out {
		if one.from >= size {
			return out[:i]
		}
		out[i].to = min(one.to, size)
	}
	return out
}

// sum is the number of bytes in the set.
func (s spans) sum() (n int64) {
	for _, one := range s {
		n += one.to - one.from
	}
	return n
}

// gap returns the lowest run of bytes below size that is not in the set, and whether there is one.
func (s spans) gap(size int64) (span, bool) {
	from := int64(0)
	for _, one := range s {
		if one.from > from {
			break
		}
		from = one.to
	}
	if from >= size {
		return span{}, false
	}
	to := size
	for _, one := range s {
		if one.from > from {
			to = min(to, one.from)
			break
		}
	}
	return span{from, to}, true
}

package queue

import "slices"

// maxIntervals bounds the coverage of one session.
const maxIntervals = 64

// interval is the bytes [first, end).
type interval struct{ first, end int64 }

// coverage is the set of bytes delivered to the end of their responses: sorted, disjoint and not adjacent intervals, at
// most maxIntervals. Beyond that the shortest is forgotten, which only puts completion off until the session idles.
type coverage []interval

// add merges [first, end) into the set.
func (c coverage) add(first, end int64) coverage {
	if end <= first {
		return c
	}
	// low..high are the intervals that touch the new one.
	low, _ := slices.BinarySearchFunc(c, first, func(i interval, v int64) int {
		if i.end < v {
			return -1
		}
		return 1
	})
	high := low
	for high < len(c) && c[high].first <= end {
		first, end = min(first, c[high].first), max(end, c[high].end)
		high++
	}
	c = slices.Replace(c, low, high, interval{first, end})
	if len(c) > maxIntervals {
		shortest := 0
		for i := range c {
			if c[i].end-c[i].first < c[shortest].end-c[shortest].first {
				shortest = i
			}
		}
		c = slices.Delete(c, shortest, shortest+1)
	}
	return c
}

// covers reports whether [first, end) lies in the set.
func (c coverage) covers(first, end int64) bool {
	for _, i := range c {
		if i.first <= first && i.end >= end {
			return true
		}
	}
	return first >= end
}

// bytesFrom counts the covered bytes at and after offset.
func (c coverage) bytesFrom(offset int64) int64 {
	var total int64
	for _, i := range c {
		if i.end > offset {
			total += i.end - max(i.first, offset)
		}
	}
	return total
}

package object

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

const maxInt = math.MaxInt64

func TestO3_ParseRange(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Range
		ok   bool
	}{
		{"bytes=0-99", Range{Kind: Bounded, First: 0, Last: 99, Parts: 1}, true},
		{"BYTES=5-5", Range{Kind: Bounded, First: 5, Last: 5, Parts: 1}, true},
		{"bytes=100-", Range{Kind: Open, First: 100, Last: maxInt, Parts: 1}, true},
		{"bytes=-7", Range{Kind: Suffix, First: maxInt, Last: maxInt, Suffix: 7, Parts: 1}, true},
		{"bytes=-0", Range{Kind: Suffix, First: maxInt, Last: maxInt, Parts: 1}, true},
		{"bytes= 1-2 ", Range{Kind: Bounded, First: 1, Last: 2, Parts: 1}, true},
		{"bytes=10-19, 0-4,-3", Range{Kind: Multi, First: 0, Last: maxInt, Suffix: 3, Parts: 3}, true},
		{"bytes=,1-2,,", Range{Kind: Bounded, First: 1, Last: 2, Parts: 1}, true},
		{"bytes=9223372036854775807-", Range{Kind: Open, First: maxInt, Last: maxInt, Parts: 1}, true},
		{"bytes=0-9223372036854775808", Range{Kind: Bounded, First: 0, Last: maxInt, Parts: 1}, true},
		{"bytes=99999999999999999999999999-", Range{Kind: Open, First: maxInt, Last: maxInt, Parts: 1}, true},
		{"bytes=-99999999999999999999999999", Range{Kind: Suffix, First: maxInt, Last: maxInt, Suffix: maxInt, Parts: 1}, true},
		{"bytes=5-2", Range{}, false}, {"bytes=", Range{}, false}, {"bytes=-", Range{}, false}, {"bytes=a-b", Range{}, false},
		{"bytes=1-2-3", Range{}, false}, {"bytes=+1-2", Range{}, false}, {"bytes 1-2", Range{}, false}, {"items=0-1", Range{}, false},
		{"bytes=1", Range{}, false}, {"bytes=0-1,x", Range{}, false}, {"", Range{}, false}, {"bytes=0 -1", Range{}, false},
	} {
		got, ok := ParseRange([]byte(c.in))
		if !c.ok {
			c.want = Range{Kind: Ignored, Last: maxInt}
		}
		if got != c.want || ok != c.ok {
			t.Errorf("ParseRange(%q) = %+v, %v; want %+v, %v", c.in, got, ok, c.want, c.ok)
		}
	}
	if got, ok := ParseRange(nil); !ok || got.Kind != Whole {
		t.Errorf("no field: %+v, %v", got, ok)
	}
}

func TestQ13_ResolveAndTail(t *testing.T) {
	for _, c := range []struct {
		in          string
		size        int64
		first, last int64
		ok, tail    bool
	}{
		{"bytes=0-99", 50, 0, 49, true, false},
		{"bytes=0-49", 50, 0, 49, true, false}, // the whole object is no tail
		{"bytes=40-49", 50, 40, 49, true, true},
		{"bytes=40-48", 50, 40, 48, true, false},
		{"bytes=10-", 50, 10, 49, true, false},
		{"bytes=50-", 50, 0, 0, false, false},
		{"bytes=-10", 50, 40, 49, true, true},
		{"bytes=-60", 50, 0, 49, true, false},
		{"bytes=-0", 50, 0, 0, false, true},
		{"bytes=-1", 0, 0, 0, false, false},
		{"bytes=0-0", 0, 0, 0, false, false},
		{"bytes=0-1,3-4", 50, 0, 0, false, false},
		{"lines=0-1", 50, 0, 49, true, false},
		{"bytes=-99999999999999999999", maxInt, 0, maxInt - 1, true, false},
	} {
		r, _ := ParseRange([]byte(c.in))
		first, last, ok := r.Resolve(c.size)
		if first != c.first || last != c.last || ok != c.ok {
			t.Errorf("%s of %d = %d..%d %v", c.in, c.size, first, last, ok)
		}
		if got := r.Tail(c.size); got != c.tail && c.size > 0 {
			t.Errorf("%s of %d: tail %v", c.in, c.size, got)
		}
	}
}

var rangeForm = regexp.MustCompile(`^(?i:bytes)=[ \t]*(\d*)-(\d*)[ \t]*$`)

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"bytes=0-1", "bytes=-5", "bytes=9223372036854775807-9223372036854775808", "bytes=1-,2-3", "bytes=,", "x=1-2"} {
		f.Add(s, int64(100))
	}
	f.Fuzz(func(t *testing.T, s string, size int64) {
		r, ok := ParseRange([]byte(s))
		if ok == (r.Kind == Ignored) || r.First < 0 || r.Last < 0 || r.Suffix < 0 {
			t.Fatalf("%q: %+v %v", s, r, ok)
		}
		if size < 0 {
			return
		}
		if first, last, sat := r.Resolve(size); sat && (first < 0 || last >= size || first > last && size > 0) {
			t.Fatalf("%q of %d: %d..%d", s, size, first, last)
		}
		// oracle for single ranges: a pattern and numbers without bounds
		m := rangeForm.FindStringSubmatch(s)
		if m == nil || strings.Contains(s, ",") {
			return
		}
		a, hasA := new(big.Int).SetString(m[1], 10)
		b, hasB := new(big.Int).SetString(m[2], 10)
		limit := big.NewInt(maxInt)
		capped := func(x *big.Int) int64 {
			if x.Cmp(limit) > 0 {
				return maxInt
			}
			return x.Int64()
		}
		switch {
		case hasA && hasB:
			if ok != (capped(a) <= capped(b)) || ok && (r.Kind != Bounded || r.First != capped(a) || r.Last != capped(b)) {
				t.Fatalf("%q: %+v %v", s, r, ok)
			}
		case hasA:
			if !ok || r.Kind != Open || r.First != capped(a) {
				t.Fatalf("%q: %+v %v", s, r, ok)
			}
		case hasB:
			if !ok || r.Kind != Suffix || r.Suffix != capped(b) {
				t.Fatalf("%q: %+v %v", s, r, ok)
			}
		case ok:
			t.Fatalf("%q: %+v", s, r)
		}
	})
}

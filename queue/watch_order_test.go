package queue

import (
	"fmt"
	"math"
)

// This file is what the order must keep to, whatever happens: FIFO within a principal, weights between classes, and the
// bounds on who overtakes whom, which are why nobody starves.

// fifo: under ordered the sessions of a principal in a class stand by (arrival, number); under smallest-first a session
// that came later stands before another one only by the aging of sizes.
func (w *watch) fifo(l look) error {
	if l.moves.Operated > 0 {
		return nil // the operator's order is his own
	}
	for i, b := range l.after {
		for _, a := range l.after[:i] {
			if a.Lifted != b.Lifted {
				continue
			}
			later := a.Arrival > b.Arrival || a.Arrival == b.Arrival && a.Number > b.Number
			switch {
			case w.rules.Strategy == Ordered && a.Key.Principal == b.Key.Principal && later:
				return fmt.Errorf("fifo: %v stands before %v of the same principal, which came first", a.Key, b.Key)
			case w.rules.Strategy == SmallestFirst && w.rules.AgingEvery == 0 && a.SizeBytes > b.SizeBytes:
				return fmt.Errorf("size: %v of %d bytes stands before %v of %d", a.Key, a.SizeBytes, b.Key, b.SizeBytes)
			case w.rules.Strategy == SmallestFirst && w.rules.AgingEvery > 0:
				credit := float64(w.rules.AgingEvery) * math.Log2(float64(b.SizeBytes)/float64(a.SizeBytes))
				if float64(a.Arrival-b.Arrival) > credit+1e3 {
					return fmt.Errorf("overtaking: %v came %v after %v, %v is the bound", a.Key, a.Arrival-b.Arrival, b.Key, credit)
				}
			}
		}
	}
	return nil
}

// classes: before the first session of class c stand at most
//
//	(L + S(c)) / S(d) + 1
//
// sessions of class d, and between two of c at most S(c)/S(d) + 1: L is the longest stride, S the stride of a class (the
// longest it had, where passes may come from older weights). So the weights bound what another class takes first.
func (w *watch) classes(l look) error {
	var seen [Classes][Classes]int // [c][d]: sessions of d since the last of c
	var met [Classes]bool
	for _, p := range l.after {
		c := p.Lifted
		if l.new.Windows[p.Class].Share < WholeShare || l.moves.Windows > 0 {
			continue // it comes when its window lets it
		}
		for d, n := range seen[c] {
			stride := uint64(1<<30) / uint64(w.rules.Weights[d])
			bound := 1<<30/uint64(w.rules.Weights[c])/stride + 1
			if !met[c] {
				bound = (w.longest+w.strides[c])/stride + 2
			}
			if Class(d) != c && uint64(n) > bound {
				return fmt.Errorf("overtaking: %d sessions of %v stand before the next of %v, %d is the bound", n, Class(d), c, bound)
			}
		}
		met[c], seen[c] = true, [Classes]int{}
		for other := range seen {
			if Class(other) != c {
				seen[other][c]++
			}
		}
	}
	return nil
}

// overtaking: under ordered, while a session waits in a class, another principal gets at most i + 4 slots with sessions
// that came after it and stood before it; i is the most sessions of its own principal that stood before it in the class
// meanwhile. Turns given back after pauses add one each. Derivation: it joins with turn <= R+1+i, the other lane stands at
// R-1 or above after its first slot, and each further slot moves that lane one turn on.
func (w *watch) overtaking(l look) error {
	if l.moves.Operated > 0 || l.new.Counts.Resumed > 0 {
		return nil
	}
	if w.waits == nil {
		w.waits = map[uint64]*wait{}
	}
	before := map[Key]int{}
	for i, p := range l.before {
		before[p.Key] = i
	}
	for _, key := range l.started {
		at, ok := before[key]
		if !ok {
			continue
		}
		first := l.before[at]
		for _, p := range l.before[at+1:] {
			t := w.waits[p.Number]
			came := first.Since > p.Since || first.Since == p.Since && first.Number > p.Number
			if t == nil || !came || first.Lifted != p.Lifted || first.Key.Principal == p.Key.Principal {
				continue
			}
			t.overtook[first.Key.Principal]++
			bound := t.index + 4 + int(l.new.Counts.Rejoined-t.rejoined)
			if n := t.overtook[first.Key.Principal]; n > bound {
				return fmt.Errorf("overtaking: principal %s got %d slots before %v, %d is the bound", first.Key.Principal, n, p.Key, bound)
			}
		}
	}
	waits := make(map[uint64]*wait, len(l.after))
	index := map[string]*[Classes]int{}
	for _, p := range l.after {
		own := index[p.Key.Principal]
		if own == nil {
			own = new([Classes]int)
			index[p.Key.Principal] = own
		}
		t := w.waits[p.Number]
		if t == nil || t.since != p.Since || t.lifted != p.Lifted || w.rules.Strategy != Ordered || t.strategy != w.rules.Strategy {
			t = &wait{since: p.Since, lifted: p.Lifted, strategy: w.rules.Strategy, rejoined: l.old.Counts.Rejoined, overtook: map[string]int{}}
		}
		t.index = max(t.index, own[p.Lifted])
		own[p.Lifted]++
		waits[p.Number] = t
	}
	w.waits = waits
	return nil
}

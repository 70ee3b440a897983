package upstream

import "testing"

// two is a pool over two endpoints that are ready.
func two(t testing.TB) *Pool {
	s, other := newStore(t, ""), newStore(t, "")
	p := openPool(t, nil, "http://"+s.addr().String(), "http://"+other.addr().String())
	eventually(t, "both are ready", func() bool { return p.Choices() == 2 })
	return p
}

// turn takes a writer and gives it back, as an exchange does without its bytes; false when the tick looks at the only ones.
func turn(p *Pool) bool {
	w := p.take()
	if w == nil {
		return false
	}
	w.over.Store(true)
	p.put(w, 0)
	return true
}

func TestU1_AChoiceAllocatesNothing(t *testing.T) {
	p := two(t)
	if raced {
		return
	}
	done := 0
	if n := testing.AllocsPerRun(2000, func() {
		if turn(p) {
			done++
		}
	}); n >= 1 || done < 1000 {
		t.Errorf("%v allocations, %d turns", n, done)
	}
}

// BenchmarkTurn is the choice of a writer and its way back, locks and counts included.
func BenchmarkTurn(b *testing.B) {
	p := two(b)
	b.ReportAllocs()
	for b.Loop() {
		turn(p)
	}
}

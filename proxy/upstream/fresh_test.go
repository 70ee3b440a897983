package upstream

import "testing"

// TestP7_AFreshWriterIsNoReserveThatStoodForLong: who asks for a fresh connection has met some that were closed. A reserve that was dialled before may be closed just as well, and
// the tries are counted.
func TestP7_AFreshWriterIsNoReserveThatStoodForLong(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, func(set *Settings) { set.Control.Shadow = 2 }, "http://"+s.addr().String())
	covers(t, p)
	eventually(t, "the reserve stands", func() bool { e := p.Status().Groups[0].Endpoints; return len(e) == 1 && e[0].Shadows == 2 })
	for range 2 {
		last := p.Status()
		eventually(t, "a tick", func() bool { return p.Status() != last })
	}
	old := map[string]bool{}
	s.mu.Lock()
	for c := range s.conns {
		old[c.RemoteAddr().String()] = true
	}
	s.mu.Unlock()
	w, err := p.Get(true, here)
	if err != nil {
		t.Fatal(err)
	}
	if old[w.Net().LocalAddr().String()] {
		t.Error("it stood before it was asked for")
	}
	if _, err := ask(w); err != nil {
		t.Error(err)
	}
	w.Release(1)
}

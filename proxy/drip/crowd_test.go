package drip

import (
	"testing"
	"time"
)

// TestX2_ACrowdSharesBesideManyThatShareNothing: as many clients as the store has pieces wait for an object of their own each; a crowd that waits for one object still costs the origin a
// request for a piece, and not one for each client every eight seconds.
func TestX2_ACrowdSharesBesideManyThatShareNothing(t *testing.T) {
	in(t, Settings{BytesPerSecond: 1024, Limit: 1000, StoreBytes: 1 << 20, Fetchers: 64}, func(t *testing.T, w *world) {
		w.deep = false
		for i := range 80 {
			w.begin(byte(i), 1<<30, 0, 1<<30-1)
		}
		var crowd []*seat
		for range 100 {
			crowd = append(crowd, w.begin(200, 1<<30, 0, 1<<30-1))
		}
		const span = 2 * time.Minute
		w.pass(span)
		asked := 0
		for _, s := range crowd {
			asked += s.o.count()
			if s.c.got() < 1024*int64(span/time.Second)*8/10 {
				t.Errorf("one of the crowd got %d bytes", s.c.got())
				break
			}
		}
		if most := 3 * 1024 * int(span/time.Second) / PieceBytes; asked > most {
			t.Errorf("the crowd cost the origin %d requests, want at most %d", asked, most)
		}
	})
}

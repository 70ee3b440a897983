package proxy

import (
	"fmt"
	"testing"
	"time"
)

// TestX2_AClientDoesNotWaitLongForItsHead: an origin that says nothing to requests for first pieces keeps all turns; everybody, also who got no turn, is refused in time and keeps its
// place, and is fed when the origin answers again.
func TestX2_AClientDoesNotWaitLongForItsHead(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), nil)
	l.set(func() {
		l.on = func(k *call) bool {
			if k.method != "GET" || k.field("Range") == "" {
				return false
			}
			k.closed()
			return true
		}
	})
	var clients []*client
	began := time.Now()
	for i := range dripBegins + 4 {
		clients = append(clients, s.dialFrom(fmt.Sprintf("127.0.2.%d", i+1)).get(fmt.Sprintf("/f%d", odd)))
	}
	for _, c := range clients {
		if a := c.answer(); a.StatusCode != 503 || a.Header.Get("Arkvory-Queue-Position") == "" {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	if took := time.Since(began); took > beginTime+4*time.Second {
		t.Errorf("refused after %v: behind a hold nobody bears that", took)
	}
	if n := s.left(); n.Waiting != len(clients) {
		t.Errorf("%d of %d keep their places", n.Waiting, len(clients))
	}
	l.set(func() { l.on = nil })
	c := clients[len(clients)-1].get(fmt.Sprintf("/f%d", odd))
	resp := c.begin("GET")
	s.fed(100)
	for _, other := range clients[:len(clients)-1] {
		other.close()
	}
	s.pass(time.Hour) // those in front do not come back
	s.free()
	wantBody(t, "the last", resp, bytesOf(0, odd))
	c.close()
	s.still(patience)
}

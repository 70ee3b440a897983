package proxy

import (
	"testing"
	"time"

	"github.com/arkvory/sidecar/ticket"
)

// TestX8_AKeptTicketStopsNobodyLater: a genuine ticket of the process before that comes when the time of the restart is over gives its place, and no pause for all others.
func TestX8_AKeptTicketStopsNobodyLater(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	session := ticket.HashSession("addr:127.0.0.1", "store.test/f400000", "id:d1")
	at := time.Now().Add(-time.Minute)
	text := string(ticket.NewSigner(testKey).Append(nil, session, at, at))
	s := heir(t, l.url(), t.TempDir(), nil)
	s.pass(graceFor)
	if a := s.once("GET", "/f400000", id, returns(text)); a.StatusCode != 200 || s.p.gathered.Load() {
		t.Errorf("%d, begun %v", a.StatusCode, s.p.gathered.Load())
	}
	if n := s.metric(`arkvory_queue_tickets_total{outcome="accepted"}`); n != "1" {
		t.Errorf("%s tickets accepted", n)
	}
}

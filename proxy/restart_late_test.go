package proxy

import (
	"path/filepath"
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

// TestX8_TheGraceEndsWithThoseWhoReturn: when nobody comes back with a ticket, newcomers do not leave the slots idle for the whole grace; while somebody does, they wait.
func TestX8_TheGraceEndsWithThoseWhoReturn(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	dir := t.TempDir()
	if err := writeNote(filepath.Join(dir, noteName), note{Version: 1, Sessions: 3, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	s := heir(t, l.url(), dir, nil)
	if !s.p.gathered.Load() {
		t.Fatal("the note was not heeded")
	}
	ask := func() int { return statusOf(s.once("GET", "/f400000", downloadID("new"))) }
	if got := ask(); got != 503 {
		t.Fatalf("%d while they are waited for", got)
	}
	s.pass(gatherFor)
	s.p.returned.Store(int64(s.p.queue.Now())) // somebody came back
	s.pass(returnPause - 2*time.Second)
	if got := ask(); got != 503 {
		t.Errorf("%d although somebody came back a moment ago", got)
	}
	s.pass(3 * time.Second)
	eventually(t, "newcomers are let in", func() bool { return ask() == 200 })
}

package proxy

import (
	"io"
	"testing"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// only returns the only session in a state.
func (b *bench) only(state string) admin.SessionDocument {
	b.t.Helper()
	doc, err := b.p.operator.Sessions(admin.SessionsQuery{State: state, Limit: 10})
	if err != nil || len(doc.Sessions) != 1 {
		b.t.Fatalf("%d sessions are %s, %v", len(doc.Sessions), state, err)
	}
	return doc.Sessions[0]
}

// TestX7_AKickedDownloadIsCutAndItsSlotGoesOn: the client sees a response that is visibly short, who was held starts at once, and the kicked one is told when it comes again.
func TestX7_AKickedDownloadIsCutAndItsSlotGoesOn(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	running := b.dial().get("/a/1000000000", id)
	response := running.begin("GET")
	if response.StatusCode != 200 {
		t.Fatal(response.StatusCode)
	}
	held := b.dial().get("/b/500000")
	eventually(t, "the second client is held", func() bool { return b.p.queue.Snapshot().Held == 1 })
	session := b.only(admin.StateActive)
	if _, after, err := b.p.operator.Act(session.ID, admin.Action{Kind: admin.Kick}); err != nil || after.State != admin.StateEnded {
		t.Fatalf("%+v, %v", after, err)
	}
	if n, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Errorf("after %d bytes the kicked response ends as if it were whole", n)
	}
	if a := held.ok(200); len(a.body) != 500000 {
		t.Errorf("the held client got %d bytes", len(a.body))
	}
	if a := b.once("GET", "/a/1000000000", id); a.StatusCode != 503 || a.reason(t) != "kicked" {
		t.Errorf("the kicked client is told %d %s", a.StatusCode, a.body)
	}
	b.quiet(twoTicks)
	if c := b.p.queue.Snapshot().Counts; c.Kicked != 1 || c.Ended[queue.ReasonKicked] != 1 {
		t.Errorf("%+v", c)
	}
}

// TestX7_APausedDownloadStartsAfterResume goes through the whole proxy with a client that speaks the protocol.
func TestX7_APausedDownloadStartsAfterResume(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.occupy("/a/1000000000")
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 503 {
		t.Fatal(a.StatusCode)
	}
	session := b.only(admin.StateWaiting)
	if _, after, err := b.p.operator.Act(session.ID, admin.Action{Kind: admin.Pause}); err != nil || !after.PausedByOperator {
		t.Fatalf("%+v, %v", after, err)
	}
	holder.close()
	eventually(t, "the slot is free", func() bool { return b.p.queue.FreeSlot() })
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 503 || a.reason(t) != "download_queued" || a.Header.Get("Arkvory-Queue-Position") != "" {
		t.Fatalf("a paused download is told %d %v", a.StatusCode, a.Header)
	}
	if _, _, err := b.p.operator.Act(session.ID, admin.Action{Kind: admin.Resume}); err != nil {
		t.Fatal(err)
	}
	if a := b.once("GET", "/b/1000000", id); a.StatusCode != 200 || len(a.body) != 1000000 {
		t.Errorf("resumed it gets %d", a.StatusCode)
	}
	b.quiet(twoTicks)
}

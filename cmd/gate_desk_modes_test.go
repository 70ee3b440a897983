//go:build gate

package house_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The modes' gate: two slots, objects of 64 MiB through 2 MiB/s, so that nobody ends by itself.
const (
	modeRate  = 2 * mib
	modeSlots = 2
	modeCrowd = 8
)

// floor is where the modes' gate happens.
type floor struct {
	t *testing.T
	*desk
	tickets map[string]string
	n       map[string]int // source of each client
}

// ask sends a client's next request.
func (f *floor) ask(id string) *download {
	f.t.Helper()
	if f.n[id] == 0 {
		f.n[id] = 100 + len(f.n)
	}
	one, err := f.fetch(f.n[id], "/slow", id, "Arkvory-Queue-Ticket", f.tickets[id])
	if err != nil {
		f.t.Fatalf("%s: %v", id, err)
	}
	if one.ticket != "" {
		f.tickets[id] = one.ticket
	}
	if one.status == 200 {
		f.t.Cleanup(func() { _ = one.body.Close() })
	}
	return one
}

// want is ask with the answer it must have: "" is a slot.
func (f *floor) want(id, reason string) *download {
	f.t.Helper()
	one := f.ask(id)
	if reason == "" && one.status != 200 || reason != "" && (one.status != 503 || one.reason != reason || one.retry < 1) {
		f.t.Errorf("in mode %s: %s gets %d %s, Retry-After %d; want %q", f.queue().Mode, id, one.status, one.reason, one.retry, reason)
	}
	return one
}

// obtain asks until the client has its slot.
func (f *floor) obtain(id string) (one *download) {
	f.t.Helper()
	f.await(15*time.Second, id+" gets a slot", func() bool { one = f.ask(id); return one.status == 200 })
	return one
}

// mode switches.
func (f *floor) mode(name string) {
	f.t.Helper()
	if s := f.change(`{"mode":"` + name + `"}`); s.Effective.Mode != name {
		f.t.Errorf("the mode is %q, want %q", s.Effective.Mode, name)
	}
}

// flows reports whether a response goes on: more bytes come.
func (f *floor) flows(one *download) {
	f.t.Helper()
	if n, err := io.CopyN(io.Discard, one.body, 16*kib); err != nil {
		f.t.Errorf("a running download had %d more bytes and then %v", n, err)
	}
}

// TestGateDeskModes is X7 over the running binary: the modes, and what an operator does with single sessions.
func TestGateDeskModes(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "slow", 64*mib, 4)
	s.add(t, "sized", 4*mib, 5)
	binary, origin := buildSidecar(t), startOrigin(t, s)
	variables := deskVariables("ARKVORY_MAX_DOWNLOAD_SESSIONS", fmt.Sprint(modeSlots), "ARKVORY_DOWNLOAD_BYTES_PER_SECOND", fmt.Sprint(modeRate), "ARKVORY_MAX_DOWNLOADS", "2",
		"ARKVORY_DOWNLOAD_RESERVE", "0", "ARKVORY_TICKET_KEY", strings.Repeat("5a", 32))
	begin := func(t *testing.T, name string, more ...string) *floor {
		own := map[string]string{}
		for key, value := range variables {
			own[key] = value
		}
		for i := 0; i+1 < len(more); i += 2 {
			own[more[i]] = more[i+1]
		}
		return &floor{t, startDesk(t, binary, origin, name, own), map[string]string{}, map[string]int{}}
	}
	t.Run("Modes", func(t *testing.T) {
		f := begin(t, "modes")
		first, second := f.want("first", ""), f.want("second", "")
		f.want("waiting", "download_queued")
		f.queueAll(first, second)
		f.passThrough()
		f.dryRun()
	})
	t.Run("RejectNew", func(t *testing.T) {
		f := begin(t, "reject-new")
		f.want("first", "")
		f.want("second", "")
		f.want("waiting", "download_queued")
		next := begin(t, "another process")
		next.want("theirs", "")
		next.want("also-theirs", "")
		f.rejectNew(next)
	})
	t.Run("Kick", func(t *testing.T) { begin(t, "kick").kick() })
	t.Run("Order", func(t *testing.T) {
		begin(t, "order", "ARKVORY_MAX_DOWNLOAD_SESSIONS", "1", "ARKVORY_DOWNLOAD_HOLD_SECONDS", "25").order()
	})
	t.Run("PauseActive", func(t *testing.T) { begin(t, "pause").pauseActive() })
}

// queueAll: places are kept and nobody starts, although slots come free; what runs goes on.
func (f *floor) queueAll(first, second *download) {
	f.t.Helper()
	f.mode("queue-all")
	f.act("first", "kick", "{}")
	if !first.cutShort() {
		f.t.Error("a kicked download came to its end")
	}
	f.await(5*time.Second, "a slot is free", func() bool { return f.queue().Active == 1 })
	for range 3 {
		if one := f.want("waiting", "download_queued"); one.position != 1 {
			f.t.Errorf("the place is %d, want 1", one.position)
		}
		f.want("newcomer", "download_queued")
	}
	s, _ := f.session("waiting")
	if s.Why != "mode" {
		f.t.Errorf("it waits for %q, want mode", s.Why)
	}
	f.flows(second)
	q := f.queue()
	f.t.Logf("queue-all: %d of %d slots taken, %d wait, why %q; what ran goes on", q.Active, q.Slots.Open, q.Waiting, s.Why)
	f.mode("normal")
	f.obtain("waiting")
	if got := f.want("newcomer", "download_queued").position; got != 1 {
		f.t.Errorf("the newcomer's place is %d", got)
	}
}

// passThrough: nobody queues, whatever the slots and places; bytes are still paced.
func (f *floor) passThrough() {
	f.t.Helper()
	before := f.queue()
	f.mode("pass-through")
	var bytes atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for n := range modeCrowd {
		one := f.want(fmt.Sprint("through-", n), "")
		if took := time.Since(begun); took > 5*time.Second {
			f.t.Errorf("download %d began after %v", n, took)
		}
		all.Go(func() {
			buffer := make([]byte, 16*kib)
			for time.Since(begun) < 4*time.Second {
				m, err := one.body.Read(buffer)
				if bytes.Add(int64(m)); err != nil {
					f.t.Errorf("a download that passed through: %v", err)
					return
				}
			}
		})
	}
	q := f.queue()
	all.Wait()
	took := time.Since(begun)
	rate := float64(bytes.Load()) / took.Seconds()
	// What the kernel's buffers hold was sent before it was read; nothing of that came before the band let it go.
	if most := float64(modeRate) * 1.15; rate > most || q.Counts["started"] != before.Counts["started"] || q.Active > before.Active {
		f.t.Errorf("pass-through: %.0f bytes/s of %d, %d sessions started, %d active", rate, modeRate, q.Counts["started"]-before.Counts["started"], q.Active)
	}
	f.t.Logf("pass-through: %d downloads at once on %d slots and 2 places, none a session, %.2f MiB/s together (band %d MiB/s)", modeCrowd, modeSlots, rate/float64(mib), modeRate/mib)
	f.mode("normal")
	f.want("after", "download_queued")
}

// dryRun: the queue decides and counts, and delays nobody.
func (f *floor) dryRun() {
	f.t.Helper()
	before := f.queue()
	f.mode("dry-run")
	for n := range modeCrowd {
		f.want(fmt.Sprint("dry-", n), "")
	}
	q := f.queue()
	would := q.Counts["wouldWait"] - before.Counts["wouldWait"]
	if q.Active < before.Active+modeCrowd || would < modeCrowd-modeSlots || would > modeCrowd {
		f.t.Errorf("dry-run: %d active before, %d now, %d would have waited", before.Active, q.Active, would)
	}
	f.t.Logf("dry-run: %d more at once, %d active on %d slots, %d would have waited", modeCrowd, q.Active, q.Slots.Open, would)
	f.mode("normal")
	f.want("after-dry-run", "download_queued")
	if now := f.queue(); now.Active < q.Active {
		f.t.Errorf("the end of the dry run cut %d downloads", q.Active-now.Active)
	}
}

// rejectNew: who is unknown is told so; who waits, and who has a ticket of another process, goes on.
func (f *floor) rejectNew(next *floor) {
	f.t.Helper()
	traveller := next.want("traveller", "download_queued")
	f.mode("reject-new")
	for n := range 3 {
		one := f.want(fmt.Sprint("newcomer-", n), "rejecting_new")
		if one.position != 0 || one.ticket != "" {
			f.t.Errorf("a newcomer has place %d and ticket %q", one.position, one.ticket)
		}
	}
	f.want("waiting", "download_queued")
	f.tickets["traveller"], f.n["traveller"] = traveller.ticket, next.n["traveller"]
	if one := f.want("traveller", "download_queued"); one.position != 2 {
		f.t.Errorf("the holder of a ticket has place %d, want 2", one.position)
	}
	f.want("thief", "rejecting_new")
	f.tickets["thief"] = traveller.ticket
	f.want("thief", "rejecting_new")
	q := f.queue()
	f.act("first", "kick", "{}")
	f.obtain("waiting")
	f.act("second", "kick", "{}")
	f.obtain("traveller")
	f.t.Logf("reject-new: %d refused rejecting_new; one that waited and one with a ticket of another process got slots", q.Counts["rejectedNew"])
	if q.Counts["rejectedNew"] != 5 || q.Waiting != 2 {
		f.t.Errorf("%d were rejected, want 5; %d wait", q.Counts["rejectedNew"], q.Waiting)
	}
	f.mode("normal")
	f.tickets["thief"] = ""
	f.want("thief", "download_queued")
}

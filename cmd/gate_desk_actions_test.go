//go:build gate

package house_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"
)

// kick: an active download is cut and its slot is for the next; its client is told once and may come anew, at the end.
func (f *floor) kick() {
	f.t.Helper()
	first := f.want("first", "")
	f.want("second", "")
	f.want("next", "download_queued")
	f.want("last", "download_queued")
	f.flows(first)
	begun := time.Now()
	if after := f.act("first", "kick", "{}"); after.State != "ended" {
		f.t.Errorf("after the kick it is %s", after.State)
	}
	if !first.cutShort() {
		f.t.Error("the kicked download came to its end")
	}
	cut := time.Since(begun)
	f.obtain("next")
	f.t.Logf("kick of an active one: its response was cut after %d ms, the next had the slot after %d ms", cut.Milliseconds(), time.Since(begun).Milliseconds())
	if cut > 2*time.Second {
		f.t.Errorf("it was cut after %v", cut)
	}
	f.want("first", "kicked")
	f.act("last", "kick", "{}")
	f.want("last", "kicked")
	pause(1200 * time.Millisecond) // all that comes within a second of it is of the same contact
	if again := f.want("first", "download_queued"); again.position != 1 {
		f.t.Errorf("it came anew at place %d, want 1", again.position)
	}
	if again := f.want("last", "download_queued"); again.position != 2 {
		f.t.Errorf("a waiting one that was kicked came anew at place %d, want 2", again.position)
	}
	if q := f.queue(); q.Counts["kicked"] != 2 || q.Active != 2 || q.Waiting != 2 {
		f.t.Errorf("the queue has %+v", q)
	}
	if r := f.call("POST", deskPath+"/sessions/0123456789abcdef/kick", "{}"); r.status != 404 || r.reason() != "unknown_session" {
		f.t.Errorf("the kick of nobody gets %v", r)
	}
}

// order: held plain clients, who are all present, start in exactly the order that the operator made.
func (f *floor) order() {
	f.t.Helper()
	type arrival struct {
		name string
		one  *download
		err  error
	}
	started := make(chan arrival, 16)
	come := func(n int) {
		go func() {
			one, err := f.fetch(300+n, "/slow", "")
			started <- arrival{fmt.Sprint("client-", n), one, err}
		}()
	}
	address := func(name string) string { return source(300 + int(name[len(name)-1]-'0')).IP.String() }
	next := func() (name string) {
		f.t.Helper()
		limit := time.NewTimer(15 * time.Second)
		defer limit.Stop()
		select {
		case a := <-started:
			if a.err != nil || a.one.status != 200 {
				f.t.Fatalf("%s: %+v, %v", a.name, a.one, a.err)
			}
			f.t.Cleanup(func() { _ = a.one.body.Close() })
			return a.name
		case <-limit.C:
			f.t.Fatalf("nobody starts; %+v", f.queue())
		}
		return ""
	}
	come(0)
	holder := next()
	for n := 1; n <= 5; n++ { // client-1 first
		come(n)
		f.await(5*time.Second, "it waits", func() bool { return f.queue().Waiting == n })
	}
	f.act(address("client-5"), "move", `{"to":"front"}`)
	f.act(address("client-1"), "pause", `{}`)
	f.act(address("client-2"), "move", `{"to":"back"}`)
	if paused, _ := f.session(address("client-1")); !paused.PausedByOperator || paused.Why != "operator" || paused.Position != nil {
		f.t.Errorf("the paused one is %+v", paused)
	}
	var order []string
	kick := func() {
		f.t.Helper()
		f.act(address(holder), "kick", "{}")
		holder = next()
		order = append(order, holder)
	}
	kick()
	kick()
	f.act(address("client-1"), "resume", `{}`)
	kick()
	kick()
	want := []string{"client-5", "client-3", "client-1", "client-4"}
	if !slices.Equal(order, want) {
		f.t.Errorf("they started as %v, want %v and client-2 behind them", order, want)
	}
	if s, found := f.session(address("client-2")); !found || s.State != "waiting" {
		f.t.Errorf("client-2 is %+v", s)
	}
	s, _ := f.session(address("client-2"))
	for _, bad := range []struct{ client, action, body, reason string }{
		{address("client-4"), "move", `{"to":"front"}`, "not_waiting"}, {address("client-4"), "pause", `{}`, "not_pausable"}, {address("client-2"), "resume", `{}`, "not_paused"},
	} {
		s, _ = f.session(bad.client)
		if r := f.call("POST", deskPath+"/sessions/"+s.ID+"/"+bad.action, bad.body); r.status != 409 || r.reason() != bad.reason {
			f.t.Errorf("%s of a session that is %s gets %v, want 409 %s", bad.action, s.State, r, bad.reason)
		}
	}
	kick()
	q := f.queue()
	f.t.Logf("arrived 1 2 3 4 5; moved 5 to the front and 2 to the back, paused 1 until two had started: they started as %v; counts moved %d paused %d resumed %d kicked %d", order,
		q.Counts["moved"], q.Counts["paused"], q.Counts["resumed"], q.Counts["kicked"])
	if holder != "client-2" || q.Counts["moved"] != 2 || q.Counts["paused"] != 1 || q.Counts["resumed"] != 1 || q.Counts["kicked"] != 5 {
		f.t.Errorf("the last is %s, counts %v", holder, q.Counts)
	}
	f.stop(syscall.SIGTERM)
	if log := f.lines(); strings.Contains(log, address("client-1")) || strings.Contains(log, "/slow") || strings.Count(log, `"event":"session_action"`) != 9 {
		f.t.Errorf("the audit log names a client or an object, or has not the nine actions: %s", log)
	}
}

// pauseActive: a protocol client's active session gives its slot up at its next range and goes on after the resume; a class moves up too.
func (f *floor) pauseActive() {
	f.t.Helper()
	ranged := func(id string, from int64) *download {
		one, err := f.fetch(400, "/sized", id, "Range", fmt.Sprintf("bytes=%d-%d", from, from+mib-1))
		if err != nil {
			f.t.Fatal(err)
		}
		if one.status == 206 {
			if _, err := io.Copy(io.Discard, one.body); err != nil {
				f.t.Error(err)
			}
			_ = one.body.Close()
		}
		return one
	}
	f.change(`{"sessions":1}`)
	if one := ranged("ranger", 0); one.status != 206 {
		f.t.Fatalf("the first range gets %+v", one)
	}
	f.want("next", "download_queued")
	f.act("ranger", "pause", "{}")
	if one := ranged("ranger", mib); one.status != 503 || one.reason != "download_queued" {
		f.t.Errorf("the range of a paused download gets %d %s", one.status, one.reason)
	}
	s, _ := f.session("ranger")
	if s.State != "waiting" || !s.PausedByOperator || s.Why != "operator" {
		f.t.Errorf("the paused one is %+v", s)
	}
	f.obtain("next")
	f.want("urgent", "download_queued")
	if after := f.act("urgent", "move", `{"class":"interactive"}`); after.Class != "interactive" {
		f.t.Errorf("moved up it is of class %s", after.Class)
	}
	f.act("ranger", "resume", "{}")
	if one := f.want("urgent", "download_queued"); one.position != 1 || one.header.Get("Arkvory-Download-Class") != "interactive" {
		f.t.Errorf("moved up it has place %d and class %s", one.position, one.header.Get("Arkvory-Download-Class"))
	}
	if one := ranged("ranger", mib); one.status != 503 || one.position != 2 {
		f.t.Errorf("resumed while another has the slot it gets %d, place %d, want 503 and 2", one.status, one.position)
	}
	f.act("next", "kick", "{}")
	f.obtain("urgent")
	f.act("urgent", "kick", "{}")
	f.await(15*time.Second, "the resumed one goes on", func() bool { return ranged("ranger", mib).status == 206 })
	f.t.Log("an active download gave its slot up at its next range, waited paused, and went on after its resume")
}

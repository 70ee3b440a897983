package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
)

// read turns the server's document into the one that is shown here, over the wire form.
func read[T any](t *testing.T, from any) *T {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	to := new(T)
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestV3_QueueForPeople shows three queues: a busy one, an idle one, one that is halted.
func TestV3_QueueForPeople(t *testing.T) {
	idle := admin.QueueDocument{At: admin.Moment{Time: deskDay}, Version: "1.2.3", Mode: "normal", Strategy: "shared", Admission: "per-request",
		Slots: admin.QueueSlots{Configured: 16, Open: 16, ElasticLimit: 16}, EmptyInSeconds: new(admin.Seconds)}
	for _, class := range []*admin.ClassQueue{&idle.ByClass.Interactive, &idle.ByClass.Release, &idle.ByClass.Bulk, &idle.ByClass.Background} {
		class.Window.Open = true
	}
	halted := busyQueue()
	halted.Mode, halted.Draining, halted.EmptyInSeconds, halted.EmptyAt, halted.Gate = "queue-all", true, nil, nil, admin.QueueGate{Reason: "no_live_writer"}
	for name, document := range map[string]admin.QueueDocument{"queue-busy.txt": busyQueue(), "queue-idle.txt": idle, "queue-halted.txt": halted} {
		golden(t, name, strings.Join(queueLines(read[queueSnapshot](t, document), time.FixedZone("CET", 3600)), "\n")+"\n")
	}
	golden(t, "queue-line.txt", queueLine(read[queueSnapshot](t, busyQueue()))+"\n"+queueLine(read[queueSnapshot](t, halted))+"\n")
}

// TestV3_QueueOverTheWire: the server's document is printed as it came, and for people.
func TestV3_QueueOverTheWire(t *testing.T) {
	stand(t, deskSettings{})
	expect(t, exitDone, []string{"17 of 17 taken", "312 sessions", "strategy ordered", "settings revision 3"}, "queue")
	out, _ := expect(t, exitDone, nil, "queue", "--json")
	var got admin.QueueDocument
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Waiting != 312 || !strings.HasPrefix(out, "{\n  \"at\": \"2026-03-04T05:06:07.000Z\"") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestV3_WatchIntervals(t *testing.T) {
	for _, one := range []string{"--watch=0", "--watch=1ms", "--watch=2h", "--watch=soon", "--watch=", "--watch=-5s"} {
		expect(t, exitInput, []string{"--watch", "250ms..1h0m0s", "2s"}, "queue", one)
	}
}

// TestV3_ServersTextsDrawNothing: what a server says cannot move the cursor, colour, or break a line.
func TestV3_ServersTextsDrawNothing(t *testing.T) {
	const odd = "\x1b[31m\r\nred\u202e"
	s := read[queueSnapshot](t, busyQueue())
	s.Mode, s.Strategy, s.Version, s.Gate.Reason, s.Admission = odd, odd, odd, odd, odd
	row := read[sessionRow](t, someSessions(1)[2])
	row.ID, row.State, row.Class, row.StandsIn, row.Principal, row.Object, row.Client, row.Why = odd, odd, odd, odd+"2", odd, odd, odd, odd
	var table strings.Builder
	list := &sessionTable{out: &table, now: deskDay}
	list.add(row)
	if err := list.flush(); err != nil {
		t.Fatal(err)
	}
	doc := &settingsDocument{Overrides: object{{odd, quoted(odd)}}, Effective: object{{odd, quoted(odd)}, {"windows", json.RawMessage(`{"` + `\u001b` + `":{"open":[{"from":"\u001b[1A","to":"\n"}]}}`)}},
		Problem: odd, UpdatedBy: odd, Revision: 1}
	all := map[string][]string{"queue": queueLines(s, time.UTC), "line": {queueLine(s)}, "session": sessionLines(row, deskDay), "list": strings.Split(strings.TrimSpace(table.String()), "\n"),
		"settings": doc.lines(deskDay), "change": difference(doc.Overrides, doc.Effective)}
	if got := len(all["list"]); got != 2 {
		t.Errorf("the list has %d lines", got)
	}
	for name, lines := range all {
		for _, line := range lines {
			if strings.ContainsAny(line, "\x1b\r\n\u202e") {
				t.Errorf("%s shows %q", name, line)
			}
		}
	}
}

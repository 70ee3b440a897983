package replay

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// TestX7_ActionsAndTheGateAreReplayed: each call is written down with whether it was carried out, read as what it was, and decided again.
func TestX7_ActionsAndTheGateAreReplayed(t *testing.T) {
	p := queue.DefaultPolicy(1)
	p.Reserve, p.PerPrincipal, p.SessionMinBytes, p.Mode = 0, 1, 0, queue.ModeRejectNew
	core, err := queue.New(p)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := NewRecorder(&log)
	r.Policy(0, p)
	key := queue.Key{Principal: "p", Object: "o", Client: "c"}
	ask := func(now time.Duration, ticketed bool) queue.Verdict {
		a := queue.Ask{Key: key, Class: queue.Bulk, Protocol: true, SizeBytes: 100, Ticketed: ticketed}
		_, v := core.Ask(now, a)
		r.Ask(now, &a, &v)
		return v
	}
	gate := func(now time.Duration, open bool) { core.SetGate(now, open); r.Gate(now, open) }
	act := func(now time.Duration, a queue.Action, want bool) {
		t.Helper()
		err := core.Act(now, key, a)
		r.Act(now, key, a, err == nil)
		for _, e := range core.TakeEnded() {
			r.Ended(&e)
		}
		if (err == nil) != want {
			t.Fatalf("%v: %v", a.Kind, err)
		}
	}
	gate(1, false)
	if v := ask(2, false); v.Outcome != queue.Rejected {
		t.Fatal(v.Outcome)
	}
	act(3, queue.Action{Kind: queue.MoveFront}, false)
	ask(4, true)
	for i, a := range []queue.Action{{Kind: queue.MoveFront}, {Kind: queue.MoveClass, Class: queue.Release}, {Kind: queue.MoveBack}, {Kind: queue.PauseIt}, {Kind: queue.ResumeIt}, {Kind: queue.KickIt}} {
		act(time.Duration(5+i), a, true)
	}
	if v := ask(20, true); v.Outcome != queue.Kicked {
		t.Fatal(v.Outcome)
	}
	gate(21, true)
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	r.Done()
	text := flushed(t, r, &log)
	report, err := Replay(strings.NewReader(text))
	if err != nil || report.Differences != 0 || report.Events != 13 {
		t.Fatalf("%+v, %v\n%s", report, err, text)
	}
	lie := strings.Replace(text, " front - 0", " front - 1", 1)
	if report, err = Replay(strings.NewReader(lie)); err != nil || report.Differences != 1 {
		t.Errorf("a log that says that a refused action was carried out: %+v, %v", report, err)
	}
	for _, fault := range [][2]string{{" front -", " front bulk"}, {" class release", " class -"}, {" kick ", " sack "}, {"gate 21 1", "gate 21 2"}, {" reject-new", " reject"}} {
		bad := strings.Replace(text, fault[0], fault[1], 1)
		if _, err := Replay(strings.NewReader(bad)); bad == text || err == nil {
			t.Errorf("%q for %q is taken", fault[1], fault[0])
		}
	}
	old := strings.Replace(text, " reject-new", "", 1) // a log of before there were modes
	if report, err = Replay(strings.NewReader(old)); err != nil || report.Differences == 0 {
		t.Errorf("without the mode: %+v, %v", report, err)
	}
}

// flushed is the whole log.
func flushed(t *testing.T, r *Recorder, log *bytes.Buffer) string {
	t.Helper()
	r.Tick(22, State{}) // which hands all before it to the writer
	r.Drop()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

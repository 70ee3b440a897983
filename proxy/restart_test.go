package proxy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/ticket"
)

const (
	gatherFor = 5 * time.Second
	graceFor  = time.Minute
)

// successor is a proxy that takes over a state directory, on a clock that the test moves. Its slot is free, and nobody is held or fed.
func successor(t *testing.T, url, dir string, change func(*Settings)) *stage {
	t.Helper()
	s := newStage(t, url, func(set *Settings) {
		signed(set)
		set.DripLimit, set.StateDir, set.Gather, set.Grace = 0, dir, gatherFor, graceFor
		if change != nil {
			change(set)
		}
		set.Policy.Sessions, set.Policy.PerPrincipal = 1, 1
	})
	return s
}

// heir starts one whose slot was never anybody's: newStage takes it, which a gathering queue refuses.
func heir(t *testing.T, url, dir string, change func(*Settings)) *stage {
	t.Helper()
	s, began := &stage{ahead: &atomic.Int64{}}, time.Now()
	s.bench = start(t, url, func(set *Settings) {
		oneSlot(set)
		signed(set)
		set.Hold, set.StateDir, set.Gather, set.Grace, set.Policy.IdleFor = 0, dir, gatherFor, graceFor, 30*time.Second
		set.clock = func() time.Duration { return time.Since(began) + time.Duration(s.ahead.Load()) }
		if change != nil {
			change(set)
		}
	})
	return s
}

// noter writes notes of a proxy's queue at the moments that the test chooses.
func noter(p *Proxy, dir string) *Proxy {
	q := &Proxy{set: p.set, log: p.log, front: p.front, queue: p.queue}
	q.set.StateDir = dir
	return q
}

func statusOf(a answer) int { return a.StatusCode }

// TestX8_ReturningHoldersStartInTheirOldOrder: a process that is killed with a queue, and its successor on the same state directory, which newcomers ask first.
func TestX8_ReturningHoldersStartInTheirOldOrder(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	dir := t.TempDir()
	old := successor(t, l.url(), dir, nil)
	target := "/f400000"
	tickets := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		tickets[name] = old.ticketOf(target, downloadID(name))
		eventually(t, "a millisecond has passed", func() bool {
			again := old.ticketOf(target, downloadID(name))
			return strings.Split(again, ".")[2] > strings.Split(tickets[name], ".")[2]
		})
	}
	eventually(t, "the queue is noted", func() bool {
		n, err := readNote(filepath.Join(dir, noteName))
		return err == nil && n.Sessions == 4
	})
	killed, err := os.ReadFile(filepath.Join(dir, noteName))
	if err != nil {
		t.Fatal(err)
	}
	old.close()
	if err := os.WriteFile(filepath.Join(dir, noteName), killed, 0o600); err != nil { // as a process leaves it that is killed
		t.Fatal(err)
	}
	s := heir(t, l.url(), dir, nil)
	if !s.p.gathered.Load() {
		t.Fatal("the note was not heeded")
	}
	ask := func(name string) int {
		fields := []string{downloadID(name)}
		if text := tickets[name]; text != "" {
			fields = append(fields, returns(text))
		}
		return statusOf(s.once("GET", target, fields...))
	}
	for _, name := range []string{"new", "c", "a", "b", "new2"} { // the slot is free, and nobody gets it
		if got := ask(name); got != 503 {
			t.Errorf("%s got %d while they come back", name, got)
		}
	}
	if gets := len(l.got("GET ")); gets != 0 {
		t.Errorf("%d GETs reached the origin in vain", gets)
	}
	s.pass(gatherFor)
	var order []string
	for range 4 { // whoever asks, the first of those that came back is served
		for _, name := range []string{"new", "c", "new2", "b", "a"} {
			if s.p.queue.Now() < graceFor && ask(name) == 200 {
				order = append(order, name)
			}
		}
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "a b c") || strings.Contains(got, "new") {
		t.Errorf("started in the order %s", got)
	}
	s.pass(graceFor)
	if ask("new") != 200 || ask("new2") != 200 {
		t.Error("newcomers are kept out behind the grace")
	}
}

// TestX8_TheNoteTellsWhetherAQueueStood: what it takes to begin the grace at the start, and that nothing of it keeps the process from starting.
func TestX8_TheNoteTellsWhetherAQueueStood(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	now := time.Now()
	text := func(sessions int, age time.Duration) string {
		b, err := json.Marshal(note{Version: 1, Sessions: sessions, At: now.Add(-age)})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	const absent = "absent"
	for name, c := range map[string]struct {
		note  string
		begun bool
		warns bool
		set   func(*Settings)
	}{
		"absent":            {note: absent},
		"fresh":             {note: text(3, time.Minute), begun: true},
		"nearly old":        {note: text(3, ticket.Validity-time.Minute), begun: true},
		"clocks differ":     {note: text(3, -ticket.Ahead+time.Minute), begun: true},
		"nobody":            {note: text(0, time.Minute)},
		"less than nobody":  {note: text(-1, time.Minute)},
		"old":               {note: text(3, ticket.Validity+time.Minute)},
		"of the future":     {note: text(3, -ticket.Ahead-time.Minute)},
		"corrupt":           {note: `{"version":1,"sessions":3`, warns: true},
		"empty":             {note: "", warns: true},
		"words":             {note: "sessions: 3", warns: true},
		"far too long":      {note: `{"pad":"` + strings.Repeat("x", noteBytes) + `","sessions":3}`, warns: true},
		"wrong type":        {note: `{"version":1,"sessions":"3"}`, warns: true},
		"without a time":    {note: `{"version":1,"sessions":3}`},
		"grace 0":           {note: text(3, time.Minute), set: func(s *Settings) { s.Grace = 0 }},
		"without tickets":   {note: text(3, time.Minute), set: func(s *Settings) { s.Tickets = nil }},
		"without directory": {note: text(3, time.Minute), set: func(s *Settings) { s.StateDir = "" }},
	} {
		dir := t.TempDir()
		if c.note != absent {
			if err := os.WriteFile(filepath.Join(dir, noteName), []byte(c.note), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := heir(t, l.url(), dir, c.set)
		if got := s.p.gathered.Load(); got != c.begun {
			t.Errorf("%s: begun %v", name, got)
		}
		if got := strings.Contains(s.log.String(), "is not known"); got != c.warns {
			t.Errorf("%s: warned %v:\n%s", name, got, s.log.String())
		}
		want := map[bool]int{true: 503, false: 200}[c.begun]
		if a := s.once("GET", "/f400000", id); a.StatusCode != want {
			t.Errorf("%s: a newcomer got %d", name, a.StatusCode)
		}
		s.close()
	}
}

// TestX8_TheFirstOldTicketBeginsTheGrace: where there is no note; a ticket of this process, a bad one and a switched-off grace do not.
func TestX8_TheFirstOldTicketBeginsTheGrace(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	session := ticket.HashSession("addr:127.0.0.1", "store.test/f400000", "id:d1")
	text := func(issued time.Duration) string {
		at := time.Now().Add(-issued)
		return string(ticket.NewSigner(testKey).Append(nil, session, at, at))
	}
	for name, c := range map[string]struct {
		text  string
		begun bool
		set   func(*Settings)
	}{
		"of the process before": {text(time.Minute), true, nil},
		"expired":               {text(ticket.Validity + time.Minute), false, nil},
		"forged":                {text(time.Minute)[:60] + "AAAA", false, nil},
		"of another process":    {text(-time.Minute), false, nil},
		"grace 0":               {text(time.Minute), false, func(s *Settings) { s.Grace = 0 }},
	} {
		s := heir(t, l.url(), t.TempDir(), c.set)
		want := map[bool]int{true: 503, false: 200}[c.begun]
		if a := s.once("GET", "/f400000", id, returns(c.text)); a.StatusCode != want || s.p.gathered.Load() != c.begun {
			t.Errorf("%s: %d, begun %v", name, a.StatusCode, s.p.gathered.Load())
		}
		if c.begun {
			if a := s.once("GET", "/f400000", downloadID("new")); a.StatusCode != 503 {
				t.Errorf("%s: a newcomer got %d", name, a.StatusCode)
			}
			s.pass(gatherFor)
			if a := s.once("GET", "/f400000", id); a.StatusCode != 200 {
				t.Errorf("%s: then %d", name, a.StatusCode)
			}
		}
		s.close()
	}
	s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit, set.Gather, set.Grace = 0, gatherFor, graceFor })
	first := s.ticketOf("/f400000", id)
	s.ticketOf("/f400000", id, returns(first))
	if s.p.gathered.Load() {
		t.Error("a ticket of its own began the grace")
	}
}

// TestX8_TheNoteIsWrittenWhenItMatters: at the queue's first session, every ten seconds, when it is empty again; by a stopping process as it stood; and what is known of
// the process before is not forgotten before its clients are back.
func TestX8_TheNoteIsWrittenWhenItMatters(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	dir := t.TempDir()
	path := filepath.Join(dir, noteName)
	s := newStage(t, l.url(), func(set *Settings) { signed(set); set.DripLimit, set.Grace, set.Gather = 0, graceFor, gatherFor })
	writer := noter(s.p, dir)
	read := func() note {
		n, err := readNote(path)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var last noted
	writer.noteQueue(&last)
	if n := read(); n.Sessions != 1 || n.Version != 1 || time.Since(n.At) > patience {
		t.Errorf("%+v", n)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	s.ticketOf("/f400000", id)
	writer.noteQueue(&last)
	if n := read(); n.Sessions != 1 {
		t.Errorf("%+v, before its time", n)
	}
	s.ahead.Add(int64(noteEvery))
	writer.noteQueue(&last)
	if n := read(); n.Sessions != 2 {
		t.Errorf("%+v", n)
	}
	s.p.StartDrain()
	s.free()
	s.ahead.Add(int64(noteEvery))
	writer.noteQueue(&last)
	if n := read(); n.Sessions != 2 {
		t.Errorf("a stop wrote %+v", n)
	}
	s.close()

	after := heir(t, l.url(), dir, nil) // its own watch agrees with the writer of the test
	if !after.p.gathered.Load() {
		t.Fatal("not heeded")
	}
	last, writer = noted{}, noter(after.p, dir)
	writer.gathered.Store(true)
	writer.noteQueue(&last)
	if n := read(); n.Sessions != 2 {
		t.Errorf("forgotten before the clients are back: %+v", n)
	}
	after.pass(graceFor)
	writer.noteQueue(&last)
	if n := read(); n.Sessions != 0 {
		t.Errorf("%+v", n)
	}
}

// TestX8_ADirectoryThatTakesNoNoteIsAWarning: once, and nothing more.
func TestX8_ADirectoryThatTakesNoNoteIsAWarning(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, noteName), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"no directory": file, "absent": filepath.Join(file, "none"), "a directory in its place": taken} {
		s := heir(t, l.url(), dir, nil)
		if a := s.once("GET", "/f400000", id); a.StatusCode != 200 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
		eventually(t, name+": it is logged", func() bool { return strings.Contains(s.log.String(), "cannot be noted") })
		var last noted
		for range 3 {
			s.p.noteQueue(&last)
			s.ahead.Add(int64(noteEvery))
		}
		if n := strings.Count(s.log.String(), "cannot be noted"); n != 2 { // that of the proxy's own watch, and one here
			t.Errorf("%s: %d warnings:\n%s", name, n, s.log.String())
		}
		if entries, err := os.ReadDir(taken); err != nil || len(entries) > 2 {
			t.Errorf("%v, %v are left", err, fmt.Sprint(entries))
		}
		s.close()
	}
}

// TestX8_4_1_NobodyIsOvertakenOverARestart: many clients on four slots, of one principal or each of its own; they come back in any order, among newcomers, and start in that of their
// arrival.
func TestX8_4_1_NobodyIsOvertakenOverARestart(t *testing.T) {
	t.Parallel()
	const clients = 24
	l := newLibrary(t)
	for _, each := range []bool{false, true} {
		dir := t.TempDir()
		user := func(name string) string {
			if !each {
				name = "all"
			}
			return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":p"))
		}
		old := successor(t, l.url(), dir, nil)
		var tickets [clients]string
		name := func(i int) string { return fmt.Sprintf("c%d", i) }
		for i := range clients {
			tickets[i] = old.ticketOf("/f400000", downloadID(name(i)), user(name(i)))
			millisecond := time.Now().UnixMilli()
			eventually(t, "a millisecond has passed", func() bool { return time.Now().UnixMilli() > millisecond })
		}
		old.close()
		s := heir(t, l.url(), t.TempDir(), func(set *Settings) { set.Policy.Sessions, set.Policy.PerPrincipal = 4, 4 })
		random := rand.New(rand.NewPCG(8, 1))
		order := random.Perm(clients)
		s.once("GET", "/f400000", downloadID(name(order[0])), user(name(order[0])), returns(tickets[order[0]])) // the first one begins the grace
		for n, i := range order {
			newcomer := fmt.Sprintf("new%d", n)
			if a := s.once("GET", "/f400000", downloadID(newcomer), user(newcomer)); a.StatusCode != 503 {
				t.Fatalf("a newcomer got %d", a.StatusCode)
			}
			if a := s.once("GET", "/f400000", downloadID(name(i)), user(name(i)), returns(tickets[i])); a.StatusCode != 503 {
				t.Fatalf("%d while they come back", a.StatusCode)
			}
		}
		s.pass(gatherFor)
		var started []int
		for range clients {
			for _, i := range order {
				if slices.Contains(started, i) {
					continue
				}
				a := s.once("GET", "/f400000", downloadID(name(i)), user(name(i)), returns(tickets[i])) // a grace in which no ticket comes ends early
				if tickets[i] = a.Header.Get("Arkvory-Queue-Ticket"); a.StatusCode == 200 {
					started = append(started, i)
				}
			}
		}
		if len(started) != clients || !slices.IsSorted(started) {
			t.Errorf("a principal each: %v: started in the order %v", each, started)
		}
		s.close()
	}
}

// TestX8_Q3_ANewcomerKeepsItsPrincipalsHolderNotBack: among principals that have one holder each the earlier arrival starts first, also when another download of its principal
// was there before it came back.
func TestX8_Q3_ANewcomerKeepsItsPrincipalsHolderNotBack(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	const one, two = "Authorization: Basic b25lOnA=", "Authorization: Basic dHdvOnA="
	old := successor(t, l.url(), t.TempDir(), nil)
	first := old.ticketOf("/f400000", downloadID("first"), one)
	millisecond := time.Now().UnixMilli()
	eventually(t, "a millisecond has passed", func() bool { return time.Now().UnixMilli() > millisecond })
	second := old.ticketOf("/f400000", downloadID("second"), two)
	old.close()
	s := heir(t, l.url(), t.TempDir(), nil)
	s.once("GET", "/f400000", downloadID("second"), two, returns(second))
	s.once("GET", "/f400000", downloadID("new"), one)
	s.once("GET", "/f400000", downloadID("first"), one, returns(first))
	s.pass(gatherFor)
	if a := s.once("GET", "/f400000", downloadID("second"), two); a.StatusCode != 503 {
		t.Errorf("the second one starts before the first: %d", a.StatusCode)
	}
	if a := s.once("GET", "/f400000", downloadID("first"), one); a.StatusCode != 200 {
		t.Errorf("the first one got %d at %s", a.StatusCode, a.Header.Get("Arkvory-Queue-Position"))
	}
}

// TestX2_L1_AStopWaitsForNoPiece: the origin is silent in the middle of a piece; neither the drain nor the stop waits for it, and the clients see a broken end.
func TestX2_L1_AStopWaitsForNoPiece(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.on = func(k *call) bool {
		first, last, ranged := k.asked(odd)
		if ranged && first > 0 {
			k.send(fmt.Sprintf("HTTP/1.1 206 X\r\nETag: \"v1\"\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\nabc", first, last, odd, last-first+1))
			k.closed()
			return true
		}
		return false
	}
	s := newStage(t, l.url(), nil)
	_, resp := s.fedClient(fmt.Sprintf("/f%d", odd), drip.PieceBytes)
	eventually(t, "the second piece is on its way", func() bool { return len(l.got("bytes=16384-")) == 1 })
	s.p.StartDrain()
	if a := answerOf(resp); a.err == nil || a.body != bytesOf(0, odd)[:drip.PieceBytes] {
		t.Errorf("%d bytes, %v", len(a.body), a.err)
	}
	within(t, twoTicks, "the request has ended", func() bool { return s.p.Working() == 0 && s.p.drips.Snapshot().Joined == 0 })
	if n := s.metric(`arkvory_requests_total{outcome="draining"}`); n != "1" {
		t.Errorf("%s ended by the drain", n)
	}
	if a := s.once("GET", fmt.Sprintf("/f%d", odd)); a.StatusCode != 503 || a.reason(t) != "draining" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	s.free()
	began := time.Now()
	s.close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

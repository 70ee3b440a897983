package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/admin"
)

// TestV3_SessionsForPeople: the list and each kind of session, hashed and clear.
func TestV3_SessionsForPeople(t *testing.T) {
	var list, all strings.Builder
	table := &sessionTable{out: &list, now: deskDay}
	for _, clear := range []bool{false, true} {
		for _, one := range someSessions(2) {
			row := read[sessionRow](t, shownAs(one, clear))
			table.add(row)
			all.WriteString(strings.Join(sessionLines(row, deskDay), "\n") + "\n\n")
		}
	}
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	golden(t, "sessions-list.txt", list.String())
	golden(t, "sessions-show.txt", all.String())
}

// TestV3_ListFilters reach the server, and its page is printed as it came.
func TestV3_ListFilters(t *testing.T) {
	stand(t, deskSettings{})
	for _, one := range []struct {
		args string
		ids  []string
		says string
	}{
		{"", []string{"a1", "a2", "b000", "b001", "b002"}, "5 sessions"},
		{"--state waiting", []string{"b000", "b001", "b002"}, "3 sessions"},
		{"--state remembered", []string{"a2"}, "1 session"},
		{"--class bulk --principal h:1f2e3d4c5b6a7980", []string{"a2"}, "1 session"},
		{"--class interactive", nil, "no session"},
		{"--limit 2", []string{"a1", "a2"}, "2 sessions of 5; --after 2 shows the next, --all all of them"},
		{"--limit 2 --after 4", []string{"b002"}, "1 session of 5"},
		{"--limit 2 --all", []string{"a1", "a2", "b000", "b001", "b002"}, "5 sessions"},
	} {
		out, _ := expect(t, exitDone, []string{one.says}, append([]string{"sessions", "list"}, strings.Fields(one.args)...)...)
		var ids []string
		for line := range strings.Lines(out) {
			if id, _, _ := strings.Cut(line, " "); len(id) == 16 {
				ids = append(ids, strings.TrimLeft(id, "0"))
			}
		}
		if !slices.Equal(ids, one.ids) {
			t.Errorf("%s: %v, want %v in\n%s", one.args, ids, one.ids, out)
		}
	}
	out, _ := expect(t, exitDone, nil, "sessions", "list", "--json", "--state", "active")
	var page admin.SessionsDocument
	if err := json.Unmarshal([]byte(out), &page); err != nil || page.Total != 1 || page.Sessions[0].ID != "00000000000000a1" {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = expect(t, exitDone, []string{"user:ci", "store.example/release.tar"}, "sessions", "list", "--clear-ids")
	if strings.Contains(out, "h:") {
		t.Errorf("hashes among clear ids:\n%s", out)
	}
	expect(t, exitInput, []string{"--limit", "1..1000", "100"}, "sessions", "list", "--limit", "1001")
	expect(t, exitInput, []string{"waiting"}, "sessions", "list", "--state", "asleep")
	expect(t, exitInvalid, []string{"the server refuses after: a cursor of a page before"}, "sessions", "list", "--after", "nowhere")
}

// TestV3_ListAllIsALineASession, in pages, of a long queue; a server that goes round in circles is left.
func TestV3_ListAllIsALineASession(t *testing.T) {
	s := stand(t, deskSettings{})
	s.mu.Lock()
	s.sessions = someSessions(2500)
	s.mu.Unlock()
	out, _ := expect(t, exitDone, nil, "sessions", "list", "--all", "--json", "--state", "waiting")
	n := 0
	for line := range strings.Lines(out) {
		var one admin.SessionDocument
		if err := json.Unmarshal([]byte(line), &one); err != nil || *one.Position != n+1 {
			t.Fatalf("line %d: %v: %s", n, err, line)
		}
		n++
	}
	if n != 2500 {
		t.Errorf("%d lines", n)
	}
	circle := `{"total":2,"sessions":[],"next":"x"}`
	f := foreign(t, []foreignAnswer{{200, "application/json", circle}})
	expect(t, exitWork, []string{"goes round in circles"}, "sessions", "list", "--all")
	if n := len(f.requests()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestX6_Show(t *testing.T) {
	stand(t, deskSettings{})
	expect(t, exitDone, []string{"waiting, 1st", "its class is outside its hours", "by age it stands in release", "plain client, 2 requests held", "7 objects", "h:00000000000000ff"},
		"sessions", "show", "000000000000b000")
	expect(t, exitDone, []string{"user:ci", "203.0.113.7"}, "sessions", "show", "000000000000b000", "--clear-ids")
	out, _ := expect(t, exitDone, nil, "sessions", "show", "000000000000b000", "--json")
	var one admin.SessionDocument
	if err := json.Unmarshal([]byte(out), &one); err != nil || one.Why != admin.WhyWindow {
		t.Errorf("%v: %s", err, out)
	}
	expect(t, exitRefused, []string{"there is no such session"}, "sessions", "show", "ffffffffffffffff")
	for _, odd := range []string{"1", "../../settings", "000000000000B000", "000000000000b000/kick", ""} {
		expect(t, exitInput, []string{"16 hexadecimal digits"}, "sessions", "show", odd)
	}
}

// TestX7_Actions are done to each session, in the order given; the first failure is the command's.
func TestX7_Actions(t *testing.T) {
	s := stand(t, deskSettings{})
	const first, second, active, gone = "000000000000b000", "000000000000b001", "00000000000000a1", "ffffffffffffffff"
	expect(t, exitDone, []string{first + " moved: waiting, 1st, class bulk"}, "sessions", "move", second, first, "--to", "front")
	expect(t, exitDone, []string{"class interactive"}, "sessions", "move", second, "--class", "interactive")
	expect(t, exitDone, []string{"paused: waiting, 1st, paused"}, "sessions", "pause", first)
	out, _ := expect(t, exitDone, nil, "sessions", "resume", first, second, "--json")
	for line := range strings.Lines(out) {
		var one admin.SessionDocument
		if err := json.Unmarshal([]byte(line), &one); err != nil || one.PausedByOperator {
			t.Errorf("%v: %s", err, line)
		}
	}
	out, said := expect(t, exitConflict, []string{active + ": only a waiting session can be moved", gone + ": there is no such session"}, "sessions", "move", active, gone, first, "--to", "back")
	if !strings.Contains(out, first+" moved") || strings.Count(said, "\n") != 2 {
		t.Errorf("printed %q, said %q", out, said)
	}
	expect(t, exitDone, []string{second + " kicked: ended"}, "sessions", "kick", second, "--yes")
	expect(t, exitRefused, []string{"there is no such session"}, "sessions", "kick", second, "--yes")
	want := []string{"move " + second + " front", "move " + first + " front", "move " + second + " interactive", "pause " + first, "resume " + first, "resume " + second, "move " + first + " back", "kick " + second}
	if got := s.done(); !slices.Equal(got, want) {
		t.Errorf("done were\n%q\nwant\n%q", got, want)
	}
}

// TestX7_ActionsThatAreNotAsked: what cannot be right is not sent, and nobody is kicked without a yes.
func TestX7_ActionsThatAreNotAsked(t *testing.T) {
	s := stand(t, deskSettings{})
	const id = "000000000000b000"
	for _, one := range []struct {
		args []string
		says string
	}{
		{[]string{"move", id}, "--to front"}, {[]string{"move", id, "--to", "front", "--class", "bulk"}, "--to front"}, {[]string{"move", id, "--to", "middle"}, "front"},
		{[]string{"move", id, "--class", "gold"}, "interactive"}, {[]string{"move", "--to", "front"}, "id"}, {[]string{"pause", "x"}, "16 hexadecimal"}, {[]string{"resume", id, "y"}, "16 hexadecimal"},
		{[]string{"kick", id}, "--yes"}, {[]string{"kick", "--yes"}, "id"}, {[]string{"kick", "--yes", id, "../settings"}, "16 hexadecimal"},
	} {
		expect(t, exitInput, []string{one.says}, append([]string{"sessions"}, one.args...)...)
	}
	if got := s.done(); len(got) > 0 {
		t.Errorf("done were %q", got)
	}
}

// TestX7_ManyActions go on through the server's limit of writes: its pauses are kept.
func TestX7_ManyActions(t *testing.T) {
	s := stand(t, deskSettings{})
	s.mu.Lock()
	s.sessions = someSessions(24)
	s.mu.Unlock()
	args := []string{"sessions", "pause"}
	for i := range 24 {
		args = append(args, fmt.Sprintf("%016x", 0xb000+i))
	}
	expect(t, exitDone, nil, args...)
	if n := len(s.done()); n != 24 {
		t.Errorf("%d were paused", n)
	}
}

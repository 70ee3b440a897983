//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/arkvory/sidecar/queue/client"
)

// noon is the moment in which fabricated events happen.
var noon = time.Date(2026, 11, 30, 13, 18, 0, 0, time.UTC)

// inQueue is the place that the specification shows.
var inQueue = client.Event{
	Kind: client.Queued, At: noon, Position: 312, StartsAt: noon.Add(47 * time.Minute), Earliest: noon.Add(40 * time.Minute), Latest: noon.Add(62 * time.Minute),
	Wait: time.Minute, NextTry: noon.Add(time.Minute), Total: -1,
}

// half is a download in its middle.
var half = client.Event{Kind: client.Downloading, At: noon, Bytes: 2_684_354_560, Total: 5_368_709_120, BytesPerSecond: 67e6, Left: 40 * time.Second}

func TestC4_WordsOfTheQueue(t *testing.T) {
	change := func(by func(*client.Event)) client.Event {
		e := inQueue
		by(&e)
		return e
	}
	for _, one := range []struct {
		name string
		e    client.Event
		want string
	}{
		{"all is known", inQueue, "in queue, 312th, starts about 14:05 (in 47 min), between 13:58 and 14:20"},
		{"no interval", change(func(e *client.Event) { e.Earliest, e.Latest = time.Time{}, time.Time{} }), "in queue, 312th, starts about 14:05 (in 47 min)"},
		{"no place", change(func(e *client.Event) { e.Position, e.Earliest = 0, time.Time{} }), "in queue, starts about 14:05 (in 47 min)"},
		{"no start", change(func(e *client.Event) { e.StartsAt = time.Time{} }), "in queue, 312th, asks again in 60 s"},
		{"nothing, as other servers", change(func(e *client.Event) { e.StartsAt, e.Position = time.Time{}, 0 }), "server busy, asks again in 60 s"},
		{"the promise is past", change(func(e *client.Event) { e.StartsAt = noon }), "in queue, 312th, starts any moment"},
		{"an interval of seconds", change(func(e *client.Event) {
			e.StartsAt, e.Earliest, e.Latest = noon.Add(30*time.Second), noon.Add(25*time.Second), noon.Add(40*time.Second)
		}), "in queue, 312th, starts about 13:18 (in 30 s)"},
		{"tomorrow", change(func(e *client.Event) { e.StartsAt, e.Earliest = noon.Add(20*time.Hour), time.Time{} }), "in queue, 312th, starts about Tue 09:18 (in 20 h 00 min)"},
	} {
		if got := (view{name: "f"}).line(one.e, noon)[0]; got != one.want {
			t.Errorf("%s: %q, want %q", one.name, got, one.want)
		}
	}
}

// TestC4_EveryWidthHasItsLine: whatever the width, what is drawn fits, is not empty, and says more the more room there is.
func TestC4_EveryWidthHasItsLine(t *testing.T) {
	events := map[string]client.Event{
		"queue": inQueue, "half": half, "unknown size": {Kind: client.Downloading, At: noon, Bytes: 5 << 20, Total: -1, BytesPerSecond: 1e6},
		"first byte": {Kind: client.Downloading, At: noon, Total: 5 << 30}, "window": {Kind: client.WaitingForWindow, At: noon, StartsAt: noon.Add(9 * time.Hour), Total: -1},
		"verify":   {Kind: client.Verifying, At: noon, Bytes: 3 << 30, Total: 5 << 30},
		"retry":    {Kind: client.Retrying, At: noon, Err: errors.New("the server broke the connection"), NextTry: noon.Add(3 * time.Second), Total: -1},
		"restart":  {Kind: client.Restarted, At: noon, Message: "the object changed", Total: -1},
		"connects": {Total: -1},
	}
	for name, e := range events {
		w := &terminalWatcher{view: view{name: "release-2026.11.tar.zst"}, now: func() time.Time { return noon }}
		w.event.Store(&e)
		last := 0
		for width := 200; width >= 1; width-- {
			before, behind := w.layout(width)
			size := utf8.RuneCountInString(before + behind)
			if before == "" {
				t.Fatalf("%s at %d: nothing stands before the bar", name, width)
			}
			if width >= 30 && size > width {
				t.Errorf("%s at %d: %q and %q are too long", name, width, before, behind)
			}
			if last > 0 && size > last && !barred(&e) { // where the bar goes there is room for words
				t.Errorf("%s: with %d columns it says more (%q, %q) than with one more", name, width, before, behind)
			}
			last = size
		}
	}
}

func TestC4_LinesByWidth(t *testing.T) {
	w := &terminalWatcher{view: view{name: "release.tar"}, now: func() time.Time { return noon }}
	for _, one := range []struct {
		e     client.Event
		width int
		want  string
	}{
		{inQueue, 120, "release.tar: in queue, 312th, starts about 14:05 (in 47 min), between 13:58 and 14:20|"},
		{inQueue, 80, "in queue, 312th, starts about 14:05 (in 47 min), between 13:58 and 14:20|"},
		{inQueue, 50, "in queue, 312th, starts about 14:05 (in 47 min)|"},
		{inQueue, 40, "312th, starts about 14:05 (in 47 min)|"},
		{inQueue, 20, "312th, in 47 min|"},
		{inQueue, 5, "312th|"},
		{half, 80, "release.tar  50 %|2.68 GB of 5.37 GB, 67.0 MB/s, 40 s left"},
		{half, 60, "50 %|2.68 GB of 5.37 GB, 67.0 MB/s, 40 s left"},
		{half, 50, "50 %|67.0 MB/s, 40 s left"},
		{half, 30, "50 %|40 s left"},
		{half, 20, "50 %|"},
		{half, 8, "50 %|"},
	} {
		w.event.Store(&one.e)
		if before, behind := w.layout(one.width); before+"|"+behind != one.want {
			t.Errorf("at %d: %q, want %q", one.width, before+"|"+behind, one.want)
		}
	}
}

// TestC4_TerminalIsUpdatedInPlace plays a download to a real terminal whose window is resized.
func TestC4_TerminalIsUpdatedInPlace(t *testing.T) {
	for _, colour := range []bool{true, false} {
		p := openTerminal(t, 100)
		w := newTerminalWatcher(p.slave, view{name: "release.tar"}, colour)
		w.see(inQueue)
		w.see(client.Event{Kind: client.Connecting, At: noon, Total: -1}) // asking again takes no place away
		p.sees("release.tar: in queue, 312th, ")
		p.resize(40)
		p.seesThat("a shorter line", func(text string) bool { return strings.HasSuffix(text, "any moment") || len(text) <= 40 })
		p.resize(100)
		w.see(half)
		text := p.sees("release.tar  50 %")
		if !strings.Contains(text, "=>") || !strings.Contains(text, "] 2.68 GB of 5.37 GB, 67.0 MB/s, 40 s left") || strings.Contains(text, "queue") {
			t.Errorf("the bar is not there, or the queue still is:\n%s", text)
		}
		w.see(client.Event{Kind: client.Restarted, At: noon, Message: "the object changed", Total: -1})
		w.see(half)
		p.seesThat("the news above the bar", func(text string) bool {
			first, second, _ := strings.Cut(text, "\n")
			return first == "release.tar: begins anew: the object changed" && strings.HasPrefix(second, "release.tar  50 %")
		})
		w.end(client.Result{Bytes: 5_368_709_120, Took: 48 * time.Minute, Waited: 47 * time.Minute, SHA256: "00ff"}, nil)
		text = p.sees("sha256:00ff")
		if want := "release.tar: begins anew: the object changed\nrelease.tar: done, 5.369 GB in 48 min, 47 min of it in the queue\nrelease.tar: sha256:00ff"; text != want {
			t.Errorf("at the end the screen shows\n%s\nwant\n%s", text, want)
		}
		p.hangUp()
		if (p.screen.colours > 0) != colour {
			t.Errorf("%d colours with colour %v", p.screen.colours, colour)
		}
		if strings.Contains(text, "<ESC") {
			t.Errorf("unknown sequences: %q", p.raw.String())
		}
	}
}

// TestC4_TerminalThatGoesAwayEndsNothing: the download goes on without somebody to watch it.
func TestC4_TerminalThatGoesAwayEndsNothing(t *testing.T) {
	p := openTerminal(t, 80)
	w := newTerminalWatcher(p.slave, view{name: "f"}, false)
	w.see(half)
	p.sees("50 %")
	_ = p.master.Close()
	for range 3 {
		w.see(half)
	}
	w.end(client.Result{}, nil)
}

func TestC4_OnlyTerminalsAreTerminals(t *testing.T) {
	p := openTerminal(t, 80)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	if terminalOf(p.slave) == nil || terminalOf(null) != nil || terminalOf(writer) != nil || terminalOf(&strings.Builder{}) != nil {
		t.Error("a terminal is none, or something else is one")
	}
	p.resize(0)
	if terminalOf(p.slave) != nil {
		t.Error("nothing can be drawn on a terminal without a width")
	}
}

// TestC4_TextOfServersCannotDraw: control characters of an error or a name are no control sequences of the terminal.
func TestC4_TextOfServersCannotDraw(t *testing.T) {
	v := view{name: "f"}
	e := client.Event{Kind: client.Retrying, Err: errors.New("bad\x1b[2J\r\nthing\u009b1m"), Total: -1}
	for _, line := range v.line(e, noon) {
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("%q", line)
		}
	}
}

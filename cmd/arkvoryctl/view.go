package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/arkvory/sidecar/queue/client"
)

// view puts an event into words for people.
type view struct {
	name    string // of the file
	secrets secrets
	checked bool // a digest was asked for
}

// queued are the words for a place in the queue, from the longest to the shortest.
func (v view) queued(e client.Event, now time.Time) []string {
	place := ""
	if e.Position > 0 {
		place = ordinal(int64(e.Position))
	}
	again := ""
	if d := e.NextTry.Sub(now); !e.NextTry.IsZero() && d > 0 {
		again = "asks again in " + showSpan(d)
	}
	if e.StartsAt.IsZero() {
		if place == "" {
			return shorter(join("server busy", again), "server busy")
		}
		return shorter(join("in queue", place, again), join("in queue", place), place)
	}
	start, soon, between := "starts any moment", "any moment", ""
	if d := e.StartsAt.Sub(now); d > 0 {
		start, soon = fmt.Sprintf("starts about %s (in %s)", showClock(e.StartsAt, now), showSpan(d)), "in "+showSpan(d)
		earliest, latest := showClock(e.Earliest, now), showClock(e.Latest, now)
		if !e.Earliest.IsZero() && !e.Latest.IsZero() && earliest != latest { // within one minute it says nothing
			between = "between " + earliest + " and " + latest
		}
	}
	return shorter(join("in queue", place, start, between), join("in queue", place, start), join(place, start), join(place, soon), place, soon)
}

// loading are the words beside the bar, from the most to the least: what stands before it and what stands behind it.
func (v view) loading(e client.Event) (before, behind []string) {
	rate, left := "", ""
	if e.BytesPerSecond > 0 {
		rate = showAmount(int64(e.BytesPerSecond)) + "/s"
		if e.Left > 0 {
			left = showSpan(e.Left) + " left"
		}
	}
	done := showAmount(e.Bytes)
	if e.Total <= 0 {
		return []string{v.name, ""}, shorter(join(done, rate), done)
	}
	percent := showPercent(e.Bytes, e.Total)
	return []string{v.name + "  " + percent, percent}, shorter(join(done+" of "+showAmount(e.Total), rate, left), join(rate, left), left, "")
}

// line are the words for any other event, from the longest to the shortest.
func (v view) line(e client.Event, now time.Time) []string {
	switch e.Kind {
	case client.WaitingForWindow:
		if d := e.StartsAt.Sub(now); d > 0 {
			return shorter(fmt.Sprintf("waits until %s (in %s)", showClock(e.StartsAt, now), showSpan(d)), "in "+showSpan(d))
		}
		return []string{"waits for its hour"}
	case client.Queued:
		return v.queued(e, now)
	case client.Downloading:
		if e.Bytes == 0 {
			return []string{"downloading"}
		}
		before, behind := v.loading(e)
		percent := strings.TrimPrefix(strings.TrimPrefix(before[0], v.name), "  ")
		return shorter(join("downloading", percent, behind[0]))
	case client.Retrying:
		why := "the connection broke"
		if e.Err != nil {
			why = oneLine(v.secrets.hide(e.Err.Error()))
		}
		again := "tries again"
		if d := e.NextTry.Sub(now); !e.NextTry.IsZero() && d > 0 {
			again += " in " + showSpan(d)
		}
		return shorter(again+": "+why, again)
	case client.Verifying:
		if e.Bytes <= 0 {
			return []string{"verifying"}
		}
		return shorter(join("verifying", showPercent(e.Bytes, e.Total)), "verifying")
	case client.Restarted:
		why := oneLine(v.secrets.hide(e.Message))
		if why == "" {
			return []string{"begins anew"}
		}
		return []string{"begins anew: " + why, "begins anew"}
	case client.Done:
		return []string{"done"}
	}
	return []string{"connecting"}
}

// finished is the last word on a download that came to its end.
func (v view) finished(r client.Result) string {
	done := "done, " + showBytes(r.Bytes) + " in " + showSpan(r.Took)
	waited, checked := "", ""
	if r.Waited >= time.Second {
		waited = showSpan(r.Waited) + " of it in the queue"
	}
	if v.checked {
		checked = "digest right"
	}
	text := v.name + ": " + join(done, waited, checked)
	if !v.checked {
		text += "\n" + v.name + ": sha256:" + r.SHA256
	}
	return text
}

// join puts what is not empty behind each other.
func join(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, ", ")
}

// shorter keeps the words of which each takes less room than the one before.
func shorter(all ...string) []string {
	kept := all[:1]
	for _, one := range all[1:] {
		if cells(one) < cells(kept[len(kept)-1]) {
			kept = append(kept, one)
		}
	}
	return kept
}

// oneLine makes one line of a text of a server, of a file's name and the like: without control characters, which could draw on the
// terminal, and without what turns the direction of writing or cannot be seen, which could make a name look like another.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\ufffd"), func(r rune) bool { return !unicode.IsPrint(r) }), " ")
}

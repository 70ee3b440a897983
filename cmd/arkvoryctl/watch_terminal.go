package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/arkvory/sidecar/queue/client"
)

const (
	// drawEvery is the time between two drawings: often enough for a countdown, seldom enough for a night in a queue over a slow line.
	drawEvery = 250 * time.Millisecond
	// keepRate is how long a rate is shown while no new one is known.
	keepRate = 2 * time.Second
	// leastBar is the width below which a bar says nothing.
	leastBar = 12
	// barMargin are the two spaces that the library puts around the bar.
	barMargin = 2
)

// terminalOf returns the terminal behind a writer, nil when it is none.
func terminalOf(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}

// terminalWatcher draws one line that is updated in place: words while the download waits, a bar while bytes arrive. The library draws on
// its own beat and reads the width each time, so that the line follows a window that is resized; what there is to draw is the
// newest event.
type terminalWatcher struct {
	out      *os.File
	view     view
	progress *mpb.Progress
	bar      *mpb.Bar
	now      func() time.Time
	event    atomic.Pointer[client.Event]

	// Of the library's drawing alone: the half of the line that stands behind the bar, chosen together with the half before it.
	behind string
}

func newTerminalWatcher(out *os.File, v view, colour bool) *terminalWatcher {
	w := &terminalWatcher{out: out, view: v, now: time.Now}
	w.event.Store(&client.Event{Total: -1})
	style := mpb.BarStyle().Padding(" ")
	if colour {
		green := func(text string) string { return "\x1b[32m" + text + "\x1b[0m" }
		style = style.FillerMeta(green).TipMeta(green)
	}
	filler := style.Build()
	w.progress = mpb.New(mpb.WithOutput(out), mpb.WithRefreshRate(drawEvery))
	// The bar has no total, so that the library never takes it for complete: the download says when it is done.
	bar, err := w.progress.Add(0, mpb.BarFillerFunc(func(to io.Writer, s decor.Statistics) error {
		e := w.event.Load()
		if !barred(e) || s.AvailableWidth < leastBar {
			return nil
		}
		s.Total, s.Current = e.Total, e.Bytes
		return filler.Fill(to, s)
	}), mpb.PrependDecorators(decor.Any(func(s decor.Statistics) string {
		var before string
		before, w.behind = w.layout(s.AvailableWidth)
		return before
	})), mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return w.behind })))
	if err == nil { // it is an error after the end only
		w.bar = bar
	}
	return w
}

// barred reports whether an event is shown with a bar.
func barred(e *client.Event) bool {
	return (e.Kind == client.Downloading || e.Kind == client.Verifying) && e.Total > 0
}

// layout chooses the longest words that leave room: what stands before the bar and what behind it.
func (w *terminalWatcher) layout(width int) (before, behind string) {
	e := w.event.Load()
	if e.Kind == client.Downloading {
		befores, behinds := w.view.loading(*e)
		if e.Total > 0 {
			for _, behind := range behinds {
				for _, before := range befores {
					if cells(before)+cells(behind)+barMargin+leastBar <= width {
						return before, behind
					}
				}
			}
		}
		var lines []string
		for _, before := range befores {
			for _, behind := range behinds {
				lines = append(lines, join(before, behind))
			}
		}
		return fitting(lines, width), ""
	}
	lines := w.view.line(*e, w.now())
	return fitting(append([]string{w.view.name + ": " + lines[0]}, lines...), width), ""
}

// fitting is the first of the lines that fits, else the last.
func fitting(lines []string, width int) string {
	for _, line := range lines {
		if cells(line) <= width {
			return line
		}
	}
	return lines[len(lines)-1]
}

func (w *terminalWatcher) see(e client.Event) {
	if e.Kind == client.Restarted { // stays on the screen above the line
		fmt.Fprintf(w.progress, "%s: %s\n", w.view.name, w.view.line(e, e.At)[0])
	}
	if e.Kind == client.Connecting && w.event.Load().Kind != client.Connecting {
		return // asking again is no news: the place in the queue stays to be seen
	}
	if last := w.event.Load(); e.Kind == client.Downloading && e.BytesPerSecond == 0 && last.Kind == client.Downloading && e.At.Sub(last.At) < keepRate {
		e.BytesPerSecond, e.Left = last.BytesPerSecond, last.Left // an event between two measurements: the line must not jump
	}
	w.event.Store(&e)
}

// end takes the line away; what remains on the screen is how it ended.
func (w *terminalWatcher) end(r client.Result, err error) {
	if w.bar != nil {
		w.bar.Abort(true)
	}
	w.progress.Wait()
	if err == nil {
		fmt.Fprintln(w.out, w.view.finished(r))
	}
}

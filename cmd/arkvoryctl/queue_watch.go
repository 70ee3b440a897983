package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// watch looks again and again until the command is ended. The first look is done. A sidecar that does not answer for a while ends nothing, since a restart of
// it is what one watches; one that refuses does.
func (q *queueCommand) watch(ctx context.Context, d *desk, to streams, document []byte, snapshot *queueSnapshot) error {
	show, trouble := q.watcher(to)
	for last := snapshot.At; ; {
		if err := show(document, snapshot); err != nil {
			return err
		}
		for {
			if err := pause(ctx, time.Duration(q.Watch)); err != nil {
				return err
			}
			var err error
			if document, snapshot, err = d.queue(ctx); err == nil {
				last = snapshot.At
				break
			}
			var fault *deskFault
			if !errors.As(err, &fault) || fault.code != exitWork {
				return err
			}
			if err := trouble(d.clean(err), last); err != nil {
				return err
			}
		}
	}
}

// watcher chooses how to show: what shows a snapshot, and what tells of a look that came to nothing.
func (q *queueCommand) watcher(to streams) (show func([]byte, *queueSnapshot) error, trouble func(error, time.Time) error) {
	if terminal := terminalOf(to.out); terminal != nil && !q.JSON && os.Getenv("TERM") != "dumb" {
		r := &redrawn{out: terminal, size: terminalSize}
		var lines []string
		return func(_ []byte, s *queueSnapshot) error {
				now := s.At.In(time.Local)
				lines = append([]string{now.Format("15:04:05") + ", every " + time.Duration(q.Watch).String() + "; Ctrl-C ends", ""}, queueLines(s, time.Local)...)
				return r.draw(lines)
			}, func(err error, last time.Time) error {
				return r.draw(append([]string{oneLine(err.Error()) + "; the queue as of " + last.In(time.Local).Format("15:04:05") + ":", ""}, lines[2:]...))
			}
	}
	said := "" // the trouble that was told last; it is told once
	trouble = func(err error, _ time.Time) error {
		if said != err.Error() {
			said = err.Error()
			complain(to.complaints, err)
		}
		return nil
	}
	if q.JSON {
		return func(document []byte, _ *queueSnapshot) error {
			said = ""
			return printCompact(to.out, document)
		}, trouble
	}
	return func(_ []byte, s *queueSnapshot) error {
		said = ""
		return printLines(to.out, []string{queueLine(s)})
	}, trouble
}

// queueLine is a snapshot on one line, for logs: words with values, times in UTC.
func queueLine(s *queueSnapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s mode=%s strategy=%s slots=%d/%d waiting=%d", s.At.UTC().Format("2006-01-02T15:04:05Z"), bare(s.Mode), bare(s.Strategy), s.Slots.Active, s.Slots.Open, s.Waiting)
	for _, c := range s.ByClass.named() {
		fmt.Fprintf(&b, " %s=%d", c.name, c.Waiting)
	}
	fmt.Fprintf(&b, " paused=%d held=%d oldestSeconds=%.0f emptyInSeconds=", s.PausedByOperator, s.Held, s.OldestWaitSeconds)
	if s.EmptyInSeconds == nil {
		b.WriteString("unknown")
	} else {
		fmt.Fprintf(&b, "%.0f", *s.EmptyInSeconds)
	}
	gate := "closed"
	if s.Gate.Open {
		gate = "open"
	}
	fmt.Fprintf(&b, " bytesPerSecond=%d gate=%s draining=%t", s.RateBytesPerSecond, gate, s.Draining)
	return b.String()
}

// bare is a server's word without spaces.
func bare(text string) string { return strings.ReplaceAll(word(text), " ", "_") }

// redrawn draws lines over the lines that it drew before. Nothing wraps, so that it knows how many there are; a window that was made narrower has wrapped
// them itself, which is counted.
type redrawn struct {
	out  *os.File
	size func(*os.File) (columns, rows int)
	last []string
}

// draw replaces what stands there.
func (r *redrawn) draw(lines []string) error {
	columns, rows := r.size(r.out)
	if columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	up := 0
	for _, line := range r.last {
		up += max(1, (cells(line)+columns-1)/columns)
	}
	lines = lines[:min(len(lines), max(1, rows-1))] // the cursor stands below them
	var b strings.Builder
	if up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", min(up, max(1, rows-1)))
	}
	r.last = r.last[:0]
	for _, line := range lines {
		line = cut(line, columns)
		r.last = append(r.last, line)
		b.WriteString(line + "\r\n")
	}
	_, err := io.WriteString(r.out, b.String())
	if err != nil {
		return fmt.Errorf("cannot draw: %w", err)
	}
	return nil
}

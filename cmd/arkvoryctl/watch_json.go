package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// jsonEvery is the least time between two lines about bytes that arrive or are checked.
const jsonEvery = time.Second

// eventLine is one line of --json about something that happened. Times are RFC 3339 in UTC; what is not known is left out.
type eventLine struct {
	Event          string     `json:"event" about:"connecting, waiting-for-window, queued, downloading, retrying, verifying, restarted or done"`
	At             time.Time  `json:"at" about:"when it happened"`
	Position       int        `json:"position,omitempty" about:"place in the queue, from 1"`
	StartsAt       *time.Time `json:"startsAt,omitempty" about:"when it is expected to start, or is to start by --not-before"`
	Earliest       *time.Time `json:"earliest,omitempty" about:"beginning of the interval around startsAt"`
	Latest         *time.Time `json:"latest,omitempty" about:"its end"`
	Class          string     `json:"class,omitempty" about:"class that the server applied"`
	WaitSeconds    float64    `json:"waitSeconds,omitempty" about:"how long it waits now"`
	NextTry        *time.Time `json:"nextTry,omitempty" about:"when it asks again"`
	Bytes          int64      `json:"bytes" about:"bytes that are there, from earlier runs too; of verifying: checked so far"`
	Total          *int64     `json:"total,omitempty" about:"size of the object"`
	BytesPerSecond float64    `json:"bytesPerSecond,omitempty" about:"rate of the last seconds"`
	SecondsLeft    float64    `json:"secondsLeft,omitempty" about:"time that the rest takes at that rate"`
	Retries        int        `json:"retries,omitempty" about:"faults so far, of --retries"`
	Error          string     `json:"error,omitempty" about:"the fault behind retrying"`
	Message        string     `json:"message,omitempty" about:"a sentence for people"`
}

// endLine is the last line of --json.
type endLine struct {
	Event         string  `json:"event" about:"end"`
	ExitCode      int     `json:"exitCode" about:"what the process ends with"`
	Reason        string  `json:"reason" about:"its word in the table of exit codes"`
	Error         string  `json:"error,omitempty" about:"what went wrong, as on standard error"`
	Path          string  `json:"path,omitempty" about:"the file"`
	Bytes         int64   `json:"bytes,omitempty" about:"its size"`
	SHA256        string  `json:"sha256,omitempty" about:"its SHA-256 in hexadecimal"`
	ETag          string  `json:"etag,omitempty" about:"the server's tag of the object"`
	WaitedSeconds float64 `json:"waitedSeconds,omitempty" about:"time in queues"`
	TookSeconds   float64 `json:"tookSeconds,omitempty" about:"time of the whole run"`
	Resumed       bool    `json:"resumed,omitempty" about:"bytes of an earlier run were used"`
	Retries       int     `json:"retries,omitempty" about:"faults it survived"`
}

// jsonWatcher writes every event as a line for programs.
type jsonWatcher struct {
	out     io.Writer
	secrets secrets

	said bool
	last client.Kind
	at   time.Time
}

func (w *jsonWatcher) see(e client.Event) {
	beat := e.Kind == client.Downloading || e.Kind == client.Verifying
	if beat && w.said && e.Kind == w.last && e.At.Sub(w.at) < jsonEvery && e.Bytes != e.Total {
		return
	}
	w.said, w.last, w.at = true, e.Kind, e.At
	line := eventLine{
		Event: e.Kind.String(), At: e.At.UTC(), Position: e.Position,
		StartsAt: known(e.StartsAt), Earliest: known(e.Earliest), Latest: known(e.Latest), NextTry: known(e.NextTry),
		Class: w.secrets.hide(e.Class), WaitSeconds: e.Wait.Seconds(), Bytes: e.Bytes,
		BytesPerSecond: math.Round(e.BytesPerSecond), SecondsLeft: e.Left.Seconds(), Retries: e.Retries, Message: w.secrets.hide(e.Message),
	}
	if e.Total >= 0 {
		line.Total = &e.Total
	}
	if e.Err != nil {
		line.Error = w.secrets.hide(e.Err.Error())
	}
	w.write(line)
}

func (w *jsonWatcher) end(r client.Result, err error) {
	code := exitCode(err)
	line := endLine{Event: "end", ExitCode: code, Reason: reasonOf(code)}
	if err != nil {
		line.Error = w.secrets.hide(err.Error())
	} else {
		line.Path, line.Bytes, line.SHA256, line.ETag = r.Path, r.Bytes, r.SHA256, r.ETag
		line.WaitedSeconds, line.TookSeconds, line.Resumed, line.Retries = r.Waited.Seconds(), r.Took.Seconds(), r.Resumed, r.Retries
	}
	w.write(line)
}

// write writes one line. One that has no JSON form is left out. Where writing fails the rest is left out and the download goes on: it is the file that was asked for. (A closed
// pipe on standard output ends the process, as it does with other tools.)
func (w *jsonWatcher) write(line any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(line) != nil {
		return
	}
	if _, err := w.out.Write(text.Bytes()); err != nil {
		w.out = io.Discard
	}
}

// known is a moment that may be unknown.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

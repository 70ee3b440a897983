package main

import (
	"fmt"
	"io"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// plainEvery is the least time between two lines about one and the same state.
const plainEvery = 30 * time.Second

// plainWatcher writes lines for logs and pipes: one at each change of state and one in plainEvery at most while it lasts. Requests
// that only ask again are no change: a download in a queue stays in the queue.
type plainWatcher struct {
	out  io.Writer
	view view

	said bool // a line was written
	last client.Kind
	at   time.Time
}

func (w *plainWatcher) see(e client.Event) {
	switch {
	case e.Kind == client.Done: // the end says it, with the sums
		return
	case e.Kind == client.Connecting && w.said:
		return
	case e.Kind == client.Restarted || e.Kind == client.Retrying: // each is news
	case w.said && e.Kind == w.last && e.At.Sub(w.at) < plainEvery:
		return
	}
	w.said, w.last, w.at = true, e.Kind, e.At
	fmt.Fprintf(w.out, "%s: %s\n", w.view.name, w.view.line(e, e.At)[0])
}

func (w *plainWatcher) end(r client.Result, err error) {
	if err == nil {
		fmt.Fprintln(w.out, w.view.finished(r))
	}
}

package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// probe asks an endpoint whether it lives, on an unused writer or on a connection of its own.
func (l *loop) probe(o control.Command) {
	p, e := l.p, l.endpoints[o.Endpoint]
	var w *Writer
	if !o.Anew {
		w = e.pop(true)
	}
	l.start(func() {
		p.tell(report{kind: reportEvent, event: control.ProbeDone{Endpoint: o.Endpoint, Err: p.ask(e, w)}})
	},
		report{kind: reportEvent, event: control.ProbeDone{Endpoint: o.Endpoint, Err: errPanic}})
}

// ask sends a HEAD and waits for any response head. The writer is bound, nil for a connection of its own. What becomes of the writer says nothing of the endpoint:
// the result does.
func (p *Pool) ask(e *endpoint, w *Writer) error {
	if w != nil {
		err := p.head(w)
		switch {
		case err == nil:
			w.Release(0)
			return nil
		case !errors.Is(err, relay.ErrStale):
			w.Discard(telemetry.DiscardCancelled)
			return err
		}
		w.Discard(telemetry.DiscardClosed)
	}
	conn, err := e.origin.connect(p.ctx, e.addr.String(), p.set.DialTimeout, nil)
	if err != nil {
		return err
	}
	w = &Writer{Conn: conn, origin: e.origin}
	defer func() { _ = conn.Close() }()
	return p.head(w)
}

// head is one exchange of a probe.
func (p *Pool) head(w *Writer) error {
	host, path := p.set.Host, p.set.ProbePath
	if host == "" {
		host = w.origin.host
	}
	if path == "" {
		path = "/"
	}
	limit := time.AfterFunc(p.set.DialTimeout, w.Interrupt)
	ended := context.AfterFunc(p.ctx, w.Interrupt)
	_, err := w.SendAndFill(fmt.Appendf(nil, "HEAD %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: arkvory-sidecar\r\nAccept: */*\r\n\r\n", path, host))
	for err == nil {
		if err = w.ReadHead(); err != nil || w.Resp.Status >= 200 {
			break
		}
		w.Unpin()
	}
	if unhurt := limit.Stop(); !ended() || !unhurt { // it was interrupted, or is about to be
		err = cmp.Or(err, errLate)
	}
	return err
}

var errLate = errors.New("no answer to a probe in time")

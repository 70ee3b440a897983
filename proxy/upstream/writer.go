package upstream

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/proxy/wire"
)

// Source gives writers: the pool of the configured origins, or the connections to one host that a redirect named. Safe for concurrent use.
type Source interface {
	// Get returns a writer that nobody else uses; with fresh one that has served nothing yet. It blocks while there is none, at most for the time limits of the
	// settings or until the channel that gone returns is closed; gone is called only then. Errors are sorted by Reason.
	Get(fresh bool, gone func() <-chan struct{}) (*Writer, error)
}

// home is where a writer goes when its exchange is over. Each of the two is called once at most.
type home interface {
	put(w *Writer, now int64)                               // it may serve again
	lose(w *Writer, loss control.Loss, d telemetry.Discard) // it may not; the home closes it
}

// Writer is one connection to an origin, bound to the exchange of whoever got it. One goroutine uses it at a time, but for Interrupt and Touch.
type Writer struct {
	*relay.Conn
	// Resp is the response head read by ReadHead.
	Resp wire.Head
	// Reused tells that the connection has served an exchange before.
	Reused bool

	home   home
	origin *origin
	over   atomic.Bool // its exchange gave it back
	freed  int64       // when it became unused, on the clock of a Detour
	era    int         // of the certificates that it was made with, of a Detour

	// The rest is the Pool's.
	id      control.WriterID
	ep      *endpoint
	began   time.Duration
	quiet   bool         // its exchange is a probe and no load
	lastUse atomic.Int64 // when its last exchange ended, on the Pool's clock, a tick exact
	moved   atomic.Bool  // bytes of its exchange moved since the last tick
	// Guarded by ep.mu.
	choice, bound, dead bool
}

// Host returns the authority of the writer's origin as it belongs in Host.
func (w *Writer) Host() string { return w.origin.host }

// Endpoint identifies the endpoint within its pool; 0 for that of a Detour.
func (w *Writer) Endpoint() control.EndpointID {
	if w.ep == nil {
		return 0
	}
	return w.ep.id
}

// Secure reports whether the writer's origin is spoken to over TLS.
func (w *Writer) Secure() bool { return w.origin.tls.Load() != nil }

// Touch notes that bytes of the exchange moved. It costs one load when that is known already. Safe from any goroutine.
func (w *Writer) Touch() {
	if !w.moved.Load() {
		w.moved.Store(true)
	}
}

// ReadHead reads and parses the next response head of the exchange into Resp, and counts it as read; what follows it is in Buffered. Errors: the socket's,
// io.EOF before the first byte, *wire.Error for a head that breaks the rules or is longer than 64 KiB.
func (w *Writer) ReadHead() error {
	searched := 0
	for {
		if b := w.Buffered(); len(b) > 0 {
			n, err := w.Resp.ParseResponse(b, searched)
			if err == nil {
				w.Pin(n)
				return nil
			}
			if err != wire.ErrNeedMore {
				return err
			}
			searched = len(b)
		}
		if err := w.Fill(relay.BodyBytes); err != nil {
			if errors.Is(err, relay.ErrBufferFull) {
				return &wire.Error{Status: 502, Rule: "a response head is at most 64 KiB long"}
			}
			return err
		}
	}
}

// Heard notes a final response head for the health of the endpoint: its status. It costs an atomic add.
func (w *Writer) Heard(status int) {
	if ep := w.ep; ep != nil {
		ep.heard(status, w.began)
	}
}

// Release gives a writer back after an exchange whose response was read to its end. It is closed instead when the origin said so, or when anything unread is left.
// Now is the coarse time.
func (w *Writer) Release(now int64) {
	if w.over.Swap(true) {
		return
	}
	w.Unpin()
	switch {
	case !w.Widen() || w.Interrupted():
		w.home.lose(w, control.Cancelled, telemetry.DiscardCancelled)
	case w.unasked():
		w.home.lose(w, control.Unsolicited, telemetry.DiscardUnsolicited)
	case w.Resp.Close || w.Resp.LengthAndChunked || w.Resp.Minor == 0 && !w.Resp.KeepAlive:
		w.home.lose(w, control.Spent, telemetry.DiscardSpent)
	default:
		w.Reused = true
		w.Resp.Reset()
		w.home.put(w, now)
	}
}

// unasked reports whether bytes behind the response were read already. Those inside the TLS layer are in no socket, where the peek before sending would
// see them: a read whose deadline has passed returns them, and neither waits nor touches the socket.
func (w *Writer) unasked() bool {
	if len(w.Buffered()) > 0 || w.Bare() {
		return len(w.Buffered()) > 0
	}
	var b [1]byte
	_ = w.Net().SetReadDeadline(time.Unix(1, 0))
	n, err := w.Net().Read(b[:])
	_ = w.Net().SetReadDeadline(time.Time{})
	return n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}

// carries reports whether unread bytes wait on a bare socket.
func (w *Writer) carries() bool {
	p := [1]unix.PollFd{{Fd: int32(w.FD()), Events: unix.POLLIN}}
	if n, err := unix.Poll(p[:], 0); n != 1 || err != nil || p[0].Revents&unix.POLLIN == 0 {
		return false
	}
	var b [1]byte
	n, _, err := unix.Recvfrom(w.FD(), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n > 0 && err == nil
}

// Discard closes a writer whose exchange did not end cleanly, or whose connection serves no more. Why says whose doing it was: only broken and timed out count
// against the endpoint.
func (w *Writer) Discard(why telemetry.Discard) {
	if w.over.Swap(true) {
		return
	}
	w.home.lose(w, lossOf(why), why)
}

func lossOf(why telemetry.Discard) control.Loss {
	switch why {
	case telemetry.DiscardClosed:
		return control.IdleClosed
	case telemetry.DiscardUnsolicited:
		return control.Unsolicited
	case telemetry.DiscardBroken:
		return control.Broken
	case telemetry.DiscardTimeout:
		return control.TimedOut
	case telemetry.DiscardCancelled:
		return control.Cancelled
	case telemetry.DiscardSpent:
		return control.Spent
	}
	return control.Aged
}

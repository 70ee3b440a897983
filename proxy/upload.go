package proxy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
)

// uploader sends a request's body to the upstream on a goroutine of its own, while the exchange waits for the response: the upstream may answer early, or may not
// answer Expect at all. It ends when the body is sent, a side fails, or stop is called; done is closed then.
type uploader struct {
	x      *exchange
	w      *upstream.Writer
	c      *front.Conn
	stream relay.Stream
	pace   *bucket.Stream
	done   chan struct{}
	// complete: the body went out to its end. sourceErr: the client's side failed (it left, or was silent too long, or broke the framing).
	complete  atomic.Bool
	sourceErr error
	sinkErr   error
	stopped   atomic.Bool // stop broke the client's side off: its failure is no news

	mu       sync.Mutex // guards what is below
	answered bool       // the response's head is there: its time is no longer limited
	ended    bool       // the body is out or given up
}

// startUpload begins to send the body of the request whose head was already sent.
func (x *exchange) startUpload() *uploader {
	u := &uploader{x: x, w: x.w, c: x.c, done: make(chan struct{})}
	if gov := x.p.upGov; !gov.Unlimited() {
		u.pace = gov.Open(x.paysUpload())
	}
	req := &x.c.Req
	grace := time.Duration(0)
	if req.Expect100 && req.Minor == 1 { // an upstream that never says 100 must not hold the place for ever
		grace = x.p.set.ResponseTimeout
	}
	u.stream.Flow = relay.Flow{Src: x.c.Conn, Dst: x.w.Conn, Pace: u.pace, Now: x.c.Clock(),
		Waiting: x.c.Sender(x.p.set.UploadIdleTimeout, grace), Gone: x.c.Gone(), Sent: func(n int64) {
			u.w.Touch()
			u.x.p.metrics.Delivered(telemetry.Upload, n)
		}}
	u.stream.ChunkedIn, u.stream.ChunkedOut = req.Chunked, req.Chunked
	u.stream.ReadLimit = relay.BodyBytes
	length := req.ContentLength
	go u.run(length)
	return u
}

// paysUpload is the principal in the upload's budget; a body with a method that changes nothing is the principal's.
func (x *exchange) paysUpload() string {
	if x.payer != "" {
		return x.payer
	}
	return x.id.Principal
}

func (u *uploader) run(length int64) {
	panicked := false
	defer func() { // the exchange is woken last: it stops an upload that has not ended, by what may have panicked
		close(u.done)
		if panicked {
			u.w.Interrupt()
		}
	}()
	defer func() {
		if v := recover(); v != nil { // contained like a panic of the exchange: both sides end
			u.x.p.panicked(v)
			u.sourceErr, panicked = errPanic, true
		}
	}()
	defer u.end()
	defer u.pace.Close()
	defer u.stream.Close()
	var err error
	if u.stream.ChunkedIn {
		err = u.stream.Run()
	} else {
		err = u.stream.Copy(length)
	}
	switch e := err.(type) {
	case nil:
		u.complete.Store(true)
		u.mu.Lock()
		if !u.answered {
			u.c.Hasten(u.x.p.set.ResponseTimeout) // within the deadline of the whole operation (A4)
		}
		u.mu.Unlock()
	case *relay.SinkError:
		u.sinkErr = e
	default:
		if !u.stopped.Load() {
			u.sourceErr = err
		}
		u.mu.Lock()
		if !u.answered {
			u.w.Interrupt() // the response will not come: wake the exchange
		}
		u.mu.Unlock()
	}
}

func (u *uploader) end() {
	u.mu.Lock()
	u.ended = true
	u.c.UploadOver()
	u.mu.Unlock()
}

// answer notes that the response's head was read.
func (u *uploader) answer() {
	u.mu.Lock()
	u.answered = true
	u.c.Answered() // the deadline of the whole operation goes on (A4) until the upload's end
	if u.ended {
		u.c.UploadOver()
	}
	u.mu.Unlock()
}

// stop ends the upload if it still runs and waits for its goroutine.
func (u *uploader) stop() {
	select {
	case <-u.done:
		return
	default:
	}
	u.stopped.Store(true)
	u.pace.Close() // ends a wait for a grant
	u.c.InterruptReads()
	u.w.Interrupt()
	<-u.done
	u.c.ResumeReads()
}

// finished waits a moment of grace for an upload that is all but done, so that a response that overtakes the last bytes by a hair does not cost the connection.
func (u *uploader) finished(grace time.Duration) bool {
	select {
	case <-u.done:
	case <-time.After(grace):
	}
	return u.over()
}

// slowSender reports whether an upload that has ended was not out because its client, or its budget, had not given the rest: the upstream took what there was.
func (u *uploader) slowSender() bool { return !u.complete.Load() && u.sinkErr == nil }

// over reports whether the body went out to its end; then the goroutine has ended, too.
func (u *uploader) over() bool {
	if !u.complete.Load() {
		return false
	}
	<-u.done
	return true
}

package proxy

import (
	"errors"
	"io"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
)

// smallBody is the size up to which a body is read into the upstream's own buffer: one read and one write for most small objects.
const smallBody = relay.BodyBytes - relay.HeadBytes

// sendBody relays the response's body after its head, which is in x.out, and reports whether it was sent to its end. On false the client's message
// is visibly broken and both connections must end.
func (x *exchange) sendBody(fr framing) error {
	x.c.MarkSent()
	switch fr {
	case frameNone:
		return x.c.Write(x.out)
	case frameLength:
		return x.sendLength(x.w.Resp.ContentLength)
	}
	return x.sendStream(fr)
}

// sendLength relays a body of n bytes.
func (x *exchange) sendLength(n int64) error {
	large := n-int64(len(x.w.Buffered())) >= relay.SpliceMin
	if wasLarge := x.p.largeBodies.Load(); wasLarge != (n >= relay.SpliceMin) {
		x.p.largeBodies.Store(!wasLarge)
	}
	if x.pace == nil && n <= smallBody && !(large && x.c.Bare() && x.w.Bare()) {
		return x.sendSmall(int(n))
	}
	if x.pace == nil {
		b := x.w.Buffered()
		if int64(len(b)) > n {
			b = b[:n]
		}
		if err := x.c.Write2(x.out, b); err != nil {
			return &relay.SinkError{Err: err}
		}
		x.w.Skip(len(b))
		x.passed(telemetry.PathBuffered, int64(len(b)))
		n -= int64(len(b))
	} else if err := x.c.Write(x.out); err != nil {
		return &relay.SinkError{Err: err}
	}
	x.w.Unpin() // nothing of the heads is needed any more: a long body holds no buffer
	x.freeOut()
	if x.upload == nil {
		x.c.Unpin()
	}
	f := &x.flow
	*f = x.newFlow()
	if x.fast || n <= smallBody { // what is small fits the sockets' buffers even of a slow client
		f.Trust()
	}
	err := f.Copy(n)
	f.Close()
	if n > smallBody {
		x.fast = f.Fast()
	}
	x.countFlow(f)
	return err
}

// sendSmall relays a body that fits the upstream's buffer.
func (x *exchange) sendSmall(n int) error {
	for first := true; ; first = false {
		b := x.w.Buffered()
		if len(b) > n {
			b = b[:n]
		}
		if len(b) == n || len(b) > 0 && !first {
			var err error
			switch {
			case !first:
				err = x.c.Write(b)
			case len(b) <= cap(x.out)-len(x.out):
				x.out = append(x.out, b...)
				err = x.c.Write(x.out)
			default:
				err = x.c.Write2(x.out, b)
			}
			if err != nil {
				return &relay.SinkError{Err: err}
			}
		} else if first {
			if err := x.c.Write2(x.out, b); err != nil {
				return &relay.SinkError{Err: err}
			}
		}
		x.w.Skip(len(b))
		n -= len(b)
		x.passed(telemetry.PathBuffered, int64(len(b)))
		if n == 0 {
			return nil
		}
		x.w.Unpin()
		if err := x.w.Fill(relay.BodyBytes); err != nil {
			return &relay.SourceError{Err: eof(err)}
		}
	}
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// passed notes body bytes that went to the client.
func (x *exchange) passed(p telemetry.RelayPath, n int64) {
	if n == 0 {
		return
	}
	x.c.Moved.Add(n)
	x.w.Touch()
	x.sent += n
	x.account.Add(n)
	x.p.metrics.Delivered(telemetry.Download, n)
	if x.grant != nil {
		x.grant.Progress(n)
	}
	x.p.metrics.Relayed(p, n)
}

// flowSent is the relay's Sent for downloads.
func (x *exchange) flowSent(n int64) {
	x.w.Touch()
	x.sent += n
	x.account.Add(n)
	x.p.metrics.Delivered(telemetry.Download, n)
	if x.grant != nil {
		x.grant.Progress(n)
	}
}

var flowPaths = [relay.NumPaths]telemetry.RelayPath{telemetry.PathBuffered, telemetry.PathCopy, telemetry.PathSplice, telemetry.PathTLS}

func (x *exchange) countFlow(f *relay.Flow) {
	for p, n := range f.Bytes {
		if n > 0 {
			x.p.metrics.Relayed(flowPaths[p], n)
		}
	}
}

// sendStream relays a body of unknown length: chunked or up to the end of the upstream's connection, towards a chunked client or one that reads
// to the end of its own.
func (x *exchange) sendStream(fr framing) error {
	s := &x.stream
	x.w.Unpin()
	s.Chunks.Reset()
	s.Flow = x.newFlow()
	s.ChunkedIn, s.ChunkedOut = x.w.Resp.Chunked, fr == frameChunked
	s.Prefix, s.Framed, s.ReadLimit = x.out, 0, relay.BodyBytes
	err := s.Run()
	x.out = s.Prefix[:0]
	s.Prefix = nil
	s.Chunks.Reset()
	x.p.metrics.Relayed(telemetry.PathChunked, s.Framed)
	x.countFlow(&s.Flow)
	return err
}

func (x *exchange) newFlow() relay.Flow {
	f := relay.Flow{Src: x.w.Conn, Dst: x.c.Conn, Pace: x.pace, Now: x.c.Clock(), Sent: x.sentFn}
	if x.pace != nil {
		f.Gone = x.c.Gone()
	}
	return f
}

// paceError tells whether an error comes from the governor.
func paceError(err error) bool {
	return errors.Is(err, bucket.ErrCancelled) || errors.Is(err, bucket.ErrClosed) || errors.Is(err, bucket.ErrRevoked)
}

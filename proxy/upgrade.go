package proxy

import (
	"errors"
	"io"

	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/wire"
)

// tunnel serves an upgrade: a 101 of the upstream turns both connections into streams of bytes (RFC 9110 section 7.8), any other answer is an ordinary response.
func (x *exchange) tunnel() {
	if err := x.open(x.p.pool, ask{}); err != nil {
		x.fail(err)
		return
	}
	if x.w.Resp.Status != 101 {
		x.upgrade = false
		x.relayResponse()
		return
	}
	x.out = x.appendSwitch(x.out[:0])
	x.c.MarkSent()
	if err := x.c.Write(x.out); err != nil {
		x.broken(&relay.SinkError{Err: err}, frameClose)
		return
	}
	x.w.Unpin()
	x.keep = false
	x.c.Tunnel()
	x.reason = telemetry.OK
	up := make(chan struct{})
	go func() {
		defer close(up)
		_ = pump(x.c.Conn, x.w.Conn)
	}()
	_ = pump(x.w.Conn, x.c.Conn)
	<-up
	x.drop(telemetry.DiscardClosed)
}

// pump moves bytes one way until that way ends, and passes the end on: the other way may go on. A failure ends both.
func pump(from, to *relay.Conn) error {
	s := relay.Stream{ReadLimit: relay.BodyBytes}
	s.Src, s.Dst = from, to
	err := s.Run()
	if err == nil {
		if err = to.CloseWrite(); err == nil {
			return nil
		}
	}
	var sink *relay.SinkError
	if !errors.As(err, &sink) || !errors.Is(err, io.ErrClosedPipe) {
		from.Interrupt()
		to.Interrupt()
	}
	return err
}

// appendSwitch appends the head of a 101: the upstream's fields, and the two that belong to this hop.
func (x *exchange) appendSwitch(dst []byte) []byte {
	resp := &x.w.Resp
	dst = append(dst, "HTTP/1.1 101 "...)
	dst = append(append(dst, resp.Reason...), '\r', '\n')
	for _, f := range resp.Fields {
		switch f.ID {
		case wire.Connection, wire.KeepAlive, wire.ProxyConnection, wire.TransferEncoding, wire.ContentLength:
			continue
		}
		dst = wire.AppendField(dst, resp, f)
	}
	return append(dst, "Connection: Upgrade\r\n\r\n"...)
}

package proxy

import (
	"github.com/arkvory/sidecar/bucket"
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
		if x.w.Resp.Status/100 == 2 { // no upgrade after all: what it asks for is admitted like everything else
			x.drop(telemetry.DiscardCancelled)
			x.download()
			return
		}
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
		defer func() {
			if v := recover(); v != nil {
				x.p.panicked(v)
				x.c.Interrupt()
				x.w.Interrupt()
			}
		}()
		x.pump(x.c.Conn, x.w.Conn, x.p.upGov, telemetry.Upload)
	}()
	x.pump(x.w.Conn, x.c.Conn, x.p.downGov, telemetry.Download)
	<-up
	x.drop(telemetry.DiscardSpent)
}

// pump moves bytes one way, within that direction's budget, until that way ends, and passes the end on: the other way may go on. A failure ends both.
func (x *exchange) pump(from, to *relay.Conn, budget *bucket.Governor, d telemetry.Direction) {
	s := relay.Stream{ReadLimit: relay.BodyBytes}
	s.Src, s.Dst, s.Now = from, to, x.c.Clock()
	s.Sent = func(n int64) {
		x.w.Touch()
		x.p.metrics.Delivered(d, n)
	}
	if !budget.Unlimited() {
		s.Pace, s.Gone = budget.Open(x.id.Principal), x.c.Gone()
		defer s.Pace.Close()
	}
	if err := s.Run(); err == nil && to.CloseWrite() == nil {
		return
	}
	from.Interrupt()
	to.Interrupt()
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

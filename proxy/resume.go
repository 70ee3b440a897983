package proxy

import (
	"errors"
	"time"

	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
)

// resumeLimit is how often in a row a body is resumed without a byte in between.
const resumeLimit = 3

// resumable tells, before a body is sent, from what it could be resumed should the store break in the middle (U9): a large one of known length under a strong validator, in
// answer to a plain GET. Ok is false for all else, uploads above all: nothing of a request is ever sent twice for that.
func (x *exchange) resumable(fr framing) (f object.Facts, ok bool) {
	resp := &x.w.Resp
	if !x.p.set.Resume || fr != frameLength || resp.ContentLength <= x.p.set.AdmissionMinBytes || resp.Status != 200 && resp.Status != 206 ||
		string(x.c.Req.Method) != "GET" || hasBody(&x.c.Req) || x.ntlm || x.upload != nil {
		return f, false
	}
	f = object.FromResponse(resp)
	if !f.Known || !f.Strong || f.Last-f.First+1 != resp.ContentLength || x.bound() {
		return f, false
	}
	x.c.Resumable(x.p.set.UpstreamStall)
	x.c.Req.Detach() // the buffer of the request serves others while the body is on its way, and the request may be asked again
	return f, true
}

// goOn resumes a body that broke at the store: it asks for what is missing by Range and If-Range on another connection and sends it on, so that the client sees one
// unbroken body. What was sent before of the span is in x.sent, bytes that its client was fed included. It returns the error that ends the body, nil when it was sent whole; over when the response has been ended here.
func (x *exchange) goOn(sp *span, err error) (closes, over bool, last error) {
	for tries, sent := 0, int64(-1); ; tries++ {
		var source *relay.SourceError
		if !errors.As(err, &source) || x.c.Why() != front.GoneNot || x.c.Interrupted() {
			return true, false, err
		}
		if x.sent != sent {
			tries, sent = 0, x.sent
		}
		if x.c.Dry() {
			x.drop(telemetry.DiscardTimeout)
			x.p.metrics.UpstreamError(telemetry.Stalled)
			x.p.metrics.Broke(telemetry.BreakStalled)
		} else {
			x.drop(telemetry.DiscardBroken)
			x.p.metrics.UpstreamError(telemetry.UpstreamBroken)
			x.p.metrics.Broke(telemetry.BreakBroken)
		}
		if tries == resumeLimit {
			x.p.metrics.Resumed(telemetry.ResumeGivenUp)
			return true, false, err
		}
		switch reason := x.openRest(sp, sp.first+x.sent); {
		case reason == telemetry.OK:
		case x.gone():
			return true, false, err
		case reason == telemetry.ObjectChanged:
			x.p.metrics.Resumed(telemetry.ResumeChanged)
			x.cutShort(reason)
			return true, true, nil
		default:
			x.p.metrics.Resumed(telemetry.ResumeGivenUp)
			return true, false, err
		}
		x.p.metrics.Resumed(telemetry.ResumeOK)
		if closes, err = x.sendRest(); err == nil {
			return closes, false, nil
		}
	}
}

// restWithin is how long the response head of a try for the rest may take: the object was flowing a moment ago, so one that is silent is not worth the whole time
// for first answers while others can be asked.
func (p *Proxy) restWithin(try int) time.Duration {
	if p.set.UpstreamStall <= 0 {
		return 0
	}
	return min(p.set.ResponseTimeout, p.set.UpstreamStall<<try)
}

// sendRest relays the body of a response whose head the client has. Closes: the upstream's connection is not used again; that is read before the head's buffer
// serves others.
func (x *exchange) sendRest() (closes bool, err error) {
	closes = x.w.Resp.Close || x.bound()
	x.needOut()
	return closes, x.sendBody(frameLength)
}

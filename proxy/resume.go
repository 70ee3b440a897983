package proxy

import (
	"errors"

	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
)

// resumeLimit is how often in a row a body is resumed without a byte in between.
const resumeLimit = 3

// rest is what a body is resumed by.
type rest struct{ facts object.Facts }

// resumable tells, before a body is sent, from what it could be resumed should the store break in the middle (U9): a large one of known length under a strong validator, in
// answer to a plain GET. Ok is false for all else, uploads above all: nothing of a request is ever sent twice for that.
func (x *exchange) resumable(fr framing) (r rest, ok bool) {
	resp := &x.w.Resp
	if !x.p.set.Resume || fr != frameLength || resp.ContentLength <= x.p.set.AdmissionMinBytes || resp.Status != 200 && resp.Status != 206 ||
		string(x.c.Req.Method) != "GET" || hasBody(&x.c.Req) || x.ntlm || x.upload != nil {
		return r, false
	}
	f := object.FromResponse(resp)
	if !f.Known || !f.Strong || f.Last-f.First+1 != resp.ContentLength || x.bound() {
		return r, false
	}
	return rest{f}, true
}

// goOn resumes a body that broke at the store: it asks for what is missing by Range and If-Range on another connection and sends it on, so that the client sees one
// unbroken body. It returns the error that ends the body, nil when it was sent whole; over when the response has been ended here.
func (x *exchange) goOn(r rest, err error) (last error, over bool) {
	sp := &span{part: true, first: r.facts.First, last: r.facts.Last, facts: r.facts}
	for tries, sent := 0, int64(-1); ; tries++ {
		var source *relay.SourceError
		if !errors.As(err, &source) || x.c.Why() != front.GoneNot || x.c.Interrupted() || x.c.Draining() {
			return err, false
		}
		if x.sent != sent {
			tries, sent = 0, x.sent
		}
		if tries == resumeLimit {
			x.p.metrics.Resumed(telemetry.ResumeGivenUp)
			return err, false
		}
		x.drop(telemetry.DiscardBroken)
		x.p.metrics.UpstreamError(telemetry.UpstreamBroken)
		switch reason := x.openRest(sp, sp.first+x.sent); {
		case reason == telemetry.OK:
		case x.gone():
			return err, false
		case reason == telemetry.ObjectChanged:
			x.p.metrics.Resumed(telemetry.ResumeChanged)
			x.cutShort(reason)
			return nil, true
		default:
			x.p.metrics.Resumed(telemetry.ResumeGivenUp)
			return err, false
		}
		x.p.metrics.Resumed(telemetry.ResumeOK)
		x.needOut()
		if err = x.sendBody(frameLength); err == nil {
			return nil, false
		}
	}
}

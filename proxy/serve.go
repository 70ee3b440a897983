package proxy

import (
	"bytes"
	"errors"
	"time"

	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/identity"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/proxy/wire"
)

// ServeRequest answers one request: the way of a request from top to bottom. It implements front.Handler.
func (p *Proxy) ServeRequest(c *front.Conn) bool {
	x := p.exchangeOf(c)
	x.begin()
	defer x.release()
	if p.inFlight.Add(1) > int64(p.set.MaxRequests) {
		defer p.inFlight.Add(-1)
		x.refuseAtOnce(telemetry.TooManyRequestsInFlight)
		return x.end()
	}
	defer p.inFlight.Add(-1)
	if c.Draining() {
		x.refuseAtOnce(telemetry.Draining)
		return x.end()
	}
	p.working.Add(1)
	defer p.working.Add(-1)
	if err := x.identify(); err != nil {
		r := telemetry.MalformedRequest
		var field *identity.FieldError
		if errors.As(err, &field) && field.Field == identity.ClassField {
			r = telemetry.ClassUnknown
		}
		p.metrics.ClientError(r)
		x.answerError(r, err.Error())
		return x.end()
	}
	switch kind := x.kind(); kind {
	case kindUpgrade:
		x.tunnel()
	case kindUpload:
		x.uploadOperation()
	case kindDownload:
		x.download()
	default:
		x.pass()
	}
	return x.end()
}

// end counts the exchange and says whether the client's connection serves on.
func (x *exchange) end() bool {
	x.p.metrics.Request(x.reason)
	if x.upload != nil && !x.bodyOK {
		x.bodyOK = x.upload.finished(0)
	}
	if !x.bodyOK {
		x.keep = false
		x.c.LingerOnClose()
	}
	return x.keep
}

// identify finds out who asks and what the client says about its download.
func (x *exchange) identify() error {
	req := &x.c.Req
	x.id = x.p.ids.IdentifyMemo(&x.memo, req, x.c.Peer().Addr(), x.c.Certificate())
	x.class = x.id.Class
	if req.Count(wire.Arkvory) == 0 {
		return nil
	}
	id, present, err := identity.DownloadID(req)
	if err != nil {
		return err
	}
	if present {
		x.downloadID = id
	}
	class, err := identity.ApplyClass(x.id.Class, req)
	if err != nil {
		return err
	}
	x.class, x.classAsked = class, req.Lookup("arkvory-download-class") != nil
	return nil
}

type kind uint8

const (
	kindPass     kind = iota // metadata and whatever moves no object: no place needed
	kindDownload             // GET
	kindUpload               // a method that changes something
	kindUpgrade
)

func (x *exchange) kind() kind {
	req := &x.c.Req
	switch {
	case x.upgrade:
		return kindUpgrade
	case profile.Steering(req):
		return kindPass
	}
	switch string(req.Method) {
	case "GET":
		return kindDownload
	case "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH":
		return kindPass
	}
	return kindUpload
}

// pass relays a request that needs no place. Its body, if large, is paced all the same.
func (x *exchange) pass() {
	if err := x.origin(ask{}); err != nil {
		x.fail(err)
		return
	}
	if resp := &x.w.Resp; resp.Status/100 == 2 && !x.isHead && !x.upgrade {
		switch get := string(x.c.Req.Method) == "GET"; {
		case get && x.oversized():
			x.drop(telemetry.DiscardCancelled) // a download by any other name: it goes the way of all downloads
			x.download()
			return
		case !get && resp.ContentLength > x.p.set.AdmissionMinBytes:
			x.relayPlaced()
			return
		}
	}
	x.relayResponse()
}

// oversized reports whether the response to a steering request is of an object too large for one.
func (x *exchange) oversized() bool {
	f := object.FromResponse(&x.w.Resp)
	return f.Known && f.SizeBytes > profile.SteeringLimit(&x.c.Req)
}

// uploadOperation admits an operation that changes something, and relays it (A1, A4).
func (x *exchange) uploadOperation() {
	x.payer = x.uploadPayer()
	if !x.p.passesThrough() {
		place, err := x.p.up.Acquire(x.payer, x.c.Gone())
		if err != nil {
			x.refusePlace(err)
			return
		}
		defer place.Release()
	}
	x.pass()
}

// uploadPayer is whom an upload is charged to: the principal once the upstream has accepted these credentials, until then the client's address (I2): else
// whoever knows a name could take that one's places with a wrong password.
func (x *exchange) uploadPayer() string {
	if x.id.Credentials == [16]byte{} {
		return x.id.Principal
	}
	if _, ok := x.p.objects.Get(x.p.queue.Now(), x.acceptedKey()); ok {
		return x.id.Principal
	}
	return "addr:" + x.id.Client.String()
}

// acceptedKey is the cache's key for the fact that the upstream accepted these credentials.
func (x *exchange) acceptedKey() object.Key { return object.MakeKey(acceptedName, x.id.Credentials) }

var acceptedName = []byte("\x00accepted") // no object's name begins so

// noteAccepted remembers that the upstream accepted the credentials of an upload.
func (x *exchange) noteAccepted(status int) {
	if x.payer != "" && status/100 == 2 && x.id.Credentials != [16]byte{} {
		x.p.objects.Put(x.p.queue.Now(), x.acceptedKey(), object.Facts{Known: true, SizeBytes: -1})
	}
}

// relayResponse sends the response in x.w to the client and settles both connections.
func (x *exchange) relayResponse() {
	resp := &x.w.Resp
	x.noteAccepted(resp.Status)
	fr := x.frame()
	if fr != frameNone {
		x.openPace()
	}
	if x.upload != nil && !x.bodyOK {
		// An early answer: the upload goes on while the upstream takes it, but the connection is not kept.
		if x.bodyOK = x.upload.finished(earlyGrace); !x.bodyOK {
			x.keep = false
		}
	}
	x.out = x.appendResponse(x.out[:0], fr)
	// A 204 or 304 that says it has a body may be followed by one: nobody else may read that.
	closes := resp.Close || fr == frameNone && !x.isHead && (resp.Chunked || resp.Status == 204 && resp.ContentLength > 0) || x.bound()
	refused := resp.Status >= 400
	f, may := x.resumable(fr)
	err := x.sendBody(fr)
	if err != nil && may {
		x.settleRest(&span{part: true, first: f.First, last: f.Last, facts: f}, closes, err)
		return
	}
	x.settleWith(err, fr, closes, refused)
}

// settleRest settles the exchange after the body of a response whose rest can be asked for again was sent, or broke.
func (x *exchange) settleRest(sp *span, closes bool, err error) {
	if err != nil && x.p.set.Resume {
		var over bool
		if closes, over, err = x.goOn(sp, err); over {
			return
		}
	}
	x.settleWith(err, frameLength, closes, false)
}

// settleWith settles both connections after the body was sent, or failed to be. Closes: the upstream's connection is not used again; refused: an upload was.
func (x *exchange) settleWith(err error, fr framing, closes, refused bool) {
	if err != nil {
		x.broken(err, fr)
		return
	}
	resp := &x.w.Resp
	x.reason = telemetry.OK
	ended := fr == frameNone || resp.Chunked || resp.ContentLength >= 0
	if ended && !closes && x.uploadDone() {
		x.c.Bind(nil)
		x.w.Release(x.c.Now())
		x.w = nil
		return
	}
	if u := x.upload; u != nil {
		if refused {
			u.stop()
		}
		<-u.done // a success that came early may still need the body; the deadline of the upload and the client's departure bound this
	}
	x.c.Bind(nil)
	x.w.Discard(telemetry.DiscardSpent)
	x.w = nil
}

// earlyGrace is how long a response waits for the last bytes of its request.
const earlyGrace = 20 * time.Millisecond

func (x *exchange) uploadDone() bool { return x.upload == nil || x.upload.over() }

// bound reports whether the upstream's connection carries an authentication of its own (NTLM, Negotiate): then it belongs to this client and to nobody else.
func (x *exchange) bound() bool { return x.ntlm || connectionBound(&x.w.Resp) }

// connectionBound reports whether a response says so.
func connectionBound(resp *wire.Head) bool {
	for _, f := range resp.Fields {
		if f.ID == wire.Other && wire.EqualFold(resp.Name(f), "www-authenticate") && connectionAuth(resp.Value(f)) {
			return true
		}
	}
	return false
}

// connectionAuth reports whether a value of Authorization or a list of challenges names a scheme that authenticates the connection.
func connectionAuth(v []byte) bool {
	for part := range bytes.SplitSeq(v, comma) {
		part = bytes.TrimLeft(part, " \t")
		for _, scheme := range [...]string{"ntlm", "negotiate", "kerberos"} {
			if len(part) >= len(scheme) && wire.EqualFold(part[:len(scheme)], scheme) {
				return true
			}
		}
	}
	return false
}

var comma = []byte(",")

// openPace takes part in the direction's budget when there is one, in what the session's class has outside its window, and in the principal's quotas.
func (x *exchange) openPace() {
	x.openAccount()
	if x.grant != nil && x.grant.Outside() {
		x.paceOutside()
		return
	}
	if x.pace == nil && !x.p.downGov.Unlimited() {
		x.pace = x.p.downGov.Open(x.id.Principal)
	}
}

// broken settles an exchange whose body did not reach its end: the client must see a broken message. A missing rest or last chunk says so by itself, and what was
// sent stays of use for a resume; only a body that ends with its connection needs a reset to be told from a whole one.
func (x *exchange) broken(err error, fr framing) {
	var sink *relay.SinkError
	why := telemetry.DiscardCancelled
	switch {
	case x.c.Why() == front.GoneStalled:
		x.reason = telemetry.Stalled
		if why = telemetry.DiscardTimeout; x.c.StalledOnClient() {
			why = telemetry.DiscardCancelled
			x.p.metrics.ClientError(telemetry.Stalled)
		} else {
			x.p.metrics.UpstreamError(telemetry.Stalled)
			x.brokeIn(telemetry.BreakStalled)
		}
	case x.grant != nil && x.grant.Kicked():
		x.reason = telemetry.Kicked
	case errors.As(err, &sink) || x.gone() || paceError(err):
		x.reason = telemetry.ClientGone
		x.p.metrics.ClientError(telemetry.ClientGone)
	default:
		x.reason = telemetry.UpstreamBroken
		var malformed *wire.Error
		if errors.As(err, &malformed) {
			x.reason = telemetry.UpstreamMalformed
		}
		x.p.metrics.UpstreamError(x.reason)
		x.brokeIn(telemetry.BreakBroken)
		why = telemetry.DiscardBroken
	}
	x.keep = false
	x.bodyOK = true // no linger: the connection is cut
	if fr == frameClose {
		x.c.Reset()
	}
	x.drop(why)
}

// brokeIn counts a break of the body at the upstream, unless that one was counted when it was to be resumed.
func (x *exchange) brokeIn(how telemetry.Break) {
	if x.w != nil {
		x.p.metrics.Broke(how)
	}
}

// blame says whose doing it was that the exchange did not end well.
func (x *exchange) blame() telemetry.Discard {
	switch {
	case x.gone():
		return telemetry.DiscardCancelled
	case x.c.Expired():
		return telemetry.DiscardTimeout
	}
	return telemetry.DiscardBroken
}

// fail answers for an upstream that gave no response.
func (x *exchange) fail(err error) {
	var source *relay.SourceError
	var redirect *redirectError
	expired := x.c.Expired()
	switch {
	case x.c.Starved():
		x.p.metrics.ClientError(telemetry.UploadIdle)
		x.answerError(telemetry.UploadIdle, "the sender was silent longer than ARKVORY_UPLOAD_IDLE_TIMEOUT_MS")
	case errors.As(err, &source):
		x.failUpload(source)
	case errors.Is(err, errClientGone) || x.gone():
		x.left()
	case expired && x.upload != nil && !x.upload.complete.Load():
		x.p.metrics.ClientError(telemetry.UploadDeadline)
		x.answerError(telemetry.UploadDeadline, "the upload took longer than ARKVORY_UPLOAD_DEADLINE_MS")
	case expired:
		x.upstreamFailed(telemetry.UpstreamTimeout)
	case errors.As(err, &redirect):
		x.upstreamFailed(telemetry.UpstreamRedirect)
	default:
		x.upstreamFailed(upstream.Reason(err))
	}
}

func (x *exchange) failUpload(source *relay.SourceError) {
	if errors.Is(source, errPanic) {
		x.answerError(telemetry.Panic, panicText)
		return
	}
	var malformed *wire.Error
	if errors.As(source, &malformed) {
		x.p.metrics.ClientError(telemetry.MalformedRequest)
		x.answerError(telemetry.MalformedRequest, malformed.Rule)
		return
	}
	x.left()
}

func (x *exchange) upstreamFailed(r telemetry.Reason) {
	x.p.metrics.UpstreamError(r)
	x.answerError(r, upstreamTexts[r])
}

var upstreamTexts = map[telemetry.Reason]string{
	telemetry.UpstreamUnreachable: "no connection to the upstream could be made",
	telemetry.UpstreamUntrusted:   "the upstream's certificate was not accepted",
	telemetry.UpstreamTimeout:     "the upstream did not answer in time",
	telemetry.UpstreamBroken:      "the upstream closed the connection before it answered",
	telemetry.UpstreamMalformed:   "the upstream's answer is not HTTP/1.1",
	telemetry.UpstreamBusy:        "all upstream connections are in use",
	telemetry.UpstreamRedirect:    "the upstream's redirect could not be followed",
}

// Malformed answers a request that could not be read. It implements front.Handler.
func (p *Proxy) Malformed(c *front.Conn, status int, rule string) {
	x := p.exchangeOf(c)
	defer x.release()
	x.needOut()
	x.keep, x.isHead = false, false
	reason := telemetry.MalformedRequest
	switch status {
	case 408:
		reason = telemetry.HeaderTimeout
	case 431:
		reason = telemetry.HeaderTooLarge
	}
	p.metrics.ClientError(reason)
	p.metrics.Request(reason)
	x.c.Req.Reset()
	x.respond(status, reason, rule, 0)
}

// Panicked contains a panic of ServeRequest. It implements front.Handler.
func (p *Proxy) Panicked(c *front.Conn, value any) {
	p.panicked(value)
	p.metrics.Request(telemetry.Panic)
	x := p.exchangeOf(c)
	defer x.release() // the panic may have been in the first one
	if c.AnySent() {
		c.Reset()
		return
	}
	x.freeOut()
	x.needOut()
	x.keep = false
	x.respond(500, telemetry.Panic, panicText, 0)
}

const panicText = "the proxy failed on this request; it is counted and logged"

func (p *Proxy) panicked(value any) {
	if v, ok := value.(front.Panic); ok {
		p.ReportPanic(v.Value, v.Stack)
		return
	}
	p.ReportPanic(value, nil)
}

package proxy

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/identity"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/proxy/quota"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
	"github.com/arkvory/sidecar/ticket"
)

// exchange is one request and its response. It lives on the connection's goroutine, is kept with the connection for the next request and owns what it acquires: release
// gives all of it back whatever happened.
type exchange struct {
	p *Proxy
	c *front.Conn
	w *upstream.Writer // the upstream's side, nil while there is none

	id         identity.Identity
	memo       identity.Memo
	payer      string // whom an upload is charged to, "" for all else
	class      queue.Class
	classAsked bool
	downloadID string // "" for a plain client
	name       []byte // object's name, scratch
	key        object.Key
	named      bool

	out  []byte // head being built, scratch
	flow relay.Flow
	pace *bucket.Stream
	// account counts for the principal's quotas, nil when it has none.
	account *quota.Account
	// stream is scratch for bodies of unknown length.
	stream relay.Stream

	session ticket.SessionHash // of the ask
	arrival time.Duration      // of the session, on the queue's clock, while seat is true
	seat    bool
	judged  bool // the client's ticket was judged: its outcome is counted once a request

	span   *span // of a response that is fed while its client waits, nil for all else
	grant  *memory.Grant
	held   time.Duration // time this request was held
	upload *uploader

	isHead  bool
	upgrade bool
	keep    bool // the client's connection may serve another request
	reason  telemetry.Reason
	sent    int64 // body bytes to the client
	sentFn  func(int64)
	profile profile.Profile
	bodyOK  bool // the request's body was read to its end
	looks   bool // counted in Proxy.looking
	ntlm    bool // the request authenticates its connection: see bound
	fast    bool // the client took its last large body without long waits
	heard   bool // something of the response was seen in this try
}

func (p *Proxy) exchangeOf(c *front.Conn) *exchange {
	if x, ok := c.Memo.(*exchange); ok {
		return x
	}
	x := &exchange{p: p, c: c}
	x.sentFn = x.flowSent
	c.Memo = x
	return x
}

// begin prepares the exchange for the request in c.Req.
func (x *exchange) begin() {
	req := &x.c.Req
	x.isHead = string(req.Method) == "HEAD"
	x.upgrade = req.Upgrade && tunnels(req.Get(wire.Upgrade)) && req.Minor == 1 && !hasBody(req)
	auth := req.Get(wire.Authorization)
	x.ntlm = len(auth) > 0 && connectionAuth(auth)
	x.keep = !req.Close && (req.Minor == 1 || req.KeepAlive) && !x.c.Draining()
	x.reason = telemetry.Unknown
	x.sent, x.named, x.downloadID, x.classAsked, x.payer, x.held = 0, false, "", false, "", 0
	x.seat, x.judged = false, false
	x.bodyOK = !hasBody(req)
	x.needOut()
}

// tunnels reports whether an upgrade is offered to the upstream. Other versions of HTTP and TLS are not: requests inside of them would pass by admission,
// pacing and the rules for header fields (h2c smuggling). Such a request is served as the HTTP/1.1 that it is.
func tunnels(protocols []byte) bool {
	if len(protocols) == 0 {
		return false
	}
	for _, refused := range [...]string{"h2c", "h2", "http/2.0", "http/1.1", "http/2", "tls/1.0", "tls/1.2", "tls/1.3"} {
		if wire.HasToken(protocols, refused) {
			return false
		}
	}
	return true
}

// outBytes is the pooled memory in which heads are built.
const outBytes = 4 << 10

func hasBody(req *wire.Head) bool { return req.Chunked || req.ContentLength > 0 }

// release gives back everything the exchange holds. It runs on every way out, panics included; what it calls first may panic again, and it is called a second
// time then. The slot comes last: a defect of the queue keeps nothing else.
func (x *exchange) release() {
	if u := x.upload; u != nil {
		x.upload = nil // first: a second call goes on with the rest
		u.stop()
	}
	x.looked()
	x.c.Resumable(0)
	x.c.Bind(nil)
	if x.w != nil {
		x.w.Discard(telemetry.DiscardCancelled)
		x.w = nil
	}
	x.account.Close()
	x.account = nil
	x.pace.Close()
	x.pace = nil
	x.flow.Close()
	x.flow = relay.Flow{}
	x.freeOut()
	x.profile = profile.Profile{}
	if grant := x.grant; grant != nil {
		x.grant = nil
		grant.Abandon()
	}
}

// needOut takes memory for a head, and empties what is there.
func (x *exchange) needOut() {
	if x.out == nil {
		x.out = x.p.outPool.Get().(*[outBytes]byte)[:]
	}
	x.out = x.out[:0]
}

// freeOut gives the memory for heads back: a request that waits holds none.
func (x *exchange) freeOut() {
	if cap(x.out) == outBytes {
		x.p.outPool.Put((*[outBytes]byte)(x.out[:outBytes]))
	}
	x.out = nil
}

// Errors of an exchange that are not the upstream's.
var (
	errClientGone = errors.New("client left")
	errPanic      = errors.New("panic")
)

// idempotent methods may be sent again when a kept connection failed before anything of the response was seen (RFC 9110 section 9.2.2).
func idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND", "REPORT", "SEARCH":
		return true
	}
	return false
}

// repeatable reports whether the method of the request may be sent again.
func (x *exchange) repeatable(a ask) bool {
	if a.method != "" {
		return idempotent(a.method)
	}
	return idempotent(string(x.c.Req.Method))
}

// open sends the request to the upstream and reads the head of its final response into x.w.Resp. Interim responses pass to the client on the way. A kept connection
// that proves stale costs a retry, within P7. On an error x.w is nil.
func (x *exchange) open(pool upstream.Source, a ask) error {
	req := &x.c.Req
	body := hasBody(req) && !a.noBody
	whole := !body || !req.Chunked && int64(len(x.c.Buffered())) >= req.ContentLength
	for attempt := 0; ; attempt++ {
		err := x.try(pool, a, body, whole, attempt >= staleTries)
		if err == nil {
			return nil
		}
		var t *tryError
		if !errors.As(err, &t) {
			return err
		}
		again := t.stale && attempt <= staleTries || t.reused && t.silent && whole && x.repeatable(a) && attempt == 0 ||
			t.silent && !body && attempt < elsewhereTries && x.safe(a) && hungUp(t.err) && x.p.pool.Choices() > 1
		if !again || x.gone() || x.c.Expired() {
			return t.err
		}
		x.p.metrics.UpstreamRetries.Inc()
	}
}

// elsewhereTries is how often a request that only asks is sent to another endpoint because one broke before it answered.
const elsewhereTries = 2

// safe reports whether the request only asks (RFC 9110 section 9.2.1).
func (x *exchange) safe(a ask) bool {
	m := a.method
	if m == "" {
		m = string(x.c.Req.Method)
	}
	return m == "GET" || m == "HEAD" || m == "OPTIONS"
}

// staleTries is how many kept connections may turn out closed before a fresh one is dialled.
const staleTries = 3

// tryError is a failed try: stale, nothing was sent; reused, the connection had served before; silent, nothing of the response was seen.
type tryError struct {
	err                   error
	stale, reused, silent bool
}

func (e *tryError) Error() string { return e.err.Error() }
func (e *tryError) Unwrap() error { return e.err }

func (x *exchange) gone() bool { return x.c.Why() != front.GoneNot || x.c.Interrupted() }

// try runs one try of open.
func (x *exchange) try(pool upstream.Source, a ask, body, whole, fresh bool) error {
	w, err := get(pool, a.avoid, fresh, x.c.Gone)
	if err != nil {
		return err
	}
	x.w = w
	if !x.c.Bind(w.Conn) {
		x.drop(telemetry.DiscardCancelled)
		return errClientGone
	}
	x.heard = false
	x.needOut()
	x.out = x.appendRequest(x.out, a)
	if body && whole {
		x.out = append(x.out, x.c.Buffered()[:req(x).ContentLength]...)
	}
	limit := x.p.set.ResponseTimeout
	if a.within > 0 {
		limit = min(limit, a.within)
	}
	if body && !whole {
		limit = x.p.set.UploadDeadline
	}
	x.c.Await(limit)
	w.HeadOnly(x.p.largeBodies.Load())
	if body && !whole {
		_, err = w.Send(x.out)
		if err == nil {
			x.upload = x.startUpload()
		}
	} else {
		_, err = w.SendAndFill(x.out)
	}
	stale := errors.Is(err, relay.ErrStale)
	if err == nil {
		err = x.finalHead(body)
	}
	if x.upload != nil {
		x.upload.answer()
	} else {
		x.c.Await(0)
	}
	if err == nil {
		w.Heard(w.Resp.Status)
		if body && whole {
			x.c.Skip(int(req(x).ContentLength))
			x.bodyOK = true
		}
		return nil
	}
	silent := !x.heard && len(w.Buffered()) == 0
	expired := x.c.Expired()
	err = x.cause(err)
	why := telemetry.DiscardBroken
	switch {
	case errors.Is(err, errClientGone):
		why = telemetry.DiscardCancelled
	case stale || w.Reused && silent && hungUp(err): // closed while the request was on its way, which is normal (U10)
		why = telemetry.DiscardClosed
	case x.gone() || x.upload != nil && (x.upload.sourceErr != nil || expired && x.upload.slowSender()):
		why = telemetry.DiscardCancelled
	case expired && a.hurried && limit < x.p.set.ResponseTimeout:
		why = telemetry.DiscardCancelled
	case expired:
		why = telemetry.DiscardTimeout
	}
	x.drop(why)
	if x.upload != nil && !stale {
		return err
	}
	return &tryError{err: err, stale: stale, reused: w.Reused, silent: silent && !x.c.AnySent()}
}

// get returns a writer to none of the endpoints to avoid.
func get(pool upstream.Source, avoid []control.EndpointID, fresh bool, gone func() <-chan struct{}) (*upstream.Writer, error) {
	if own, ok := pool.(*upstream.Pool); ok && len(avoid) > 0 {
		return own.GetElsewhere(avoid, gone)
	}
	return pool.Get(fresh, gone)
}

// hungUp reports whether the peer ended the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func req(x *exchange) *wire.Head { return &x.c.Req }

// cause prefers what the upload or the watcher knows about a failure over the broken read that it led to.
func (x *exchange) cause(err error) error {
	if u := x.upload; u != nil {
		u.stop()
		if u.sourceErr != nil {
			return &relay.SourceError{Err: u.sourceErr}
		}
	}
	if x.gone() {
		return errClientGone
	}
	return err
}

// drop ends the upstream's side of the exchange, which did not end cleanly.
func (x *exchange) drop(why telemetry.Discard) {
	if x.upload != nil { // it writes to the socket that is closed here, whose number may be another's a moment later
		x.upload.stop()
	}
	x.c.Bind(nil)
	if x.w != nil {
		x.w.Discard(why)
		x.w = nil
	}
}

// finalHead reads heads until the final one and passes interim ones on (RFC 9110 section 15.2).
func (x *exchange) finalHead(body bool) error {
	for {
		if err := x.w.ReadHead(); err != nil {
			if errors.Is(err, io.EOF) && len(x.w.Buffered()) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		x.heard = true
		resp := &x.w.Resp
		if resp.Status >= 200 || resp.Status == 101 && x.upgrade {
			return nil
		}
		if resp.Status == 101 {
			return &wire.Error{Status: 502, Rule: "101 answers an upgrade only"}
		}
		if x.interim() != nil {
			return errClientGone // it could not be written to
		}
		x.w.Unpin()
	}
}

// interim passes a 1xx on: to clients that know it, and 100 only to those that asked for it.
func (x *exchange) interim() error {
	req, resp := &x.c.Req, &x.w.Resp
	if x.c.AnySent() || req.Minor == 0 || resp.Status == 100 && !req.Expect100 {
		return nil
	}
	b := append(make([]byte, 0, 512), "HTTP/1.1 "...)
	b = append(b, byte('0'+resp.Status/100), byte('0'+resp.Status/10%10), byte('0'+resp.Status%10), ' ')
	b = append(append(b, resp.Reason...), '\r', '\n')
	for _, f := range resp.Fields {
		if f.Dropped() {
			continue
		}
		switch f.ID {
		case wire.Connection, wire.KeepAlive, wire.ProxyConnection, wire.TransferEncoding, wire.ContentLength, wire.Upgrade:
			continue
		}
		b = wire.AppendField(b, resp, f)
	}
	if err := x.c.Write(append(b, '\r', '\n')); err != nil {
		return err
	}
	if resp.Status == 100 {
		x.c.Continued()
	}
	return nil
}

// origin opens the exchange with the configured upstream and follows its redirects when that is switched on.
func (x *exchange) origin(a ask) error {
	if err := x.open(x.p.pool, a); err != nil {
		return err
	}
	if !x.p.set.FollowRedirects || hasBody(&x.c.Req) || x.upgrade {
		return nil
	}
	if m := string(x.c.Req.Method); m != "GET" && m != "HEAD" {
		return nil
	}
	return x.follow(a)
}

// maxRedirects bounds how many redirects are followed for one request.
const maxRedirects = 5

// follow fetches the target of a redirect (P9). Credentials of the client stay with the host it spoke to. A target on the host that the client spoke to
// is the origin's own: it is asked through the origin's pool under the client's Host, never by dialling that name, which is this proxy's.
func (x *exchange) follow(a ask) error {
	base := x.baseURL()
	last := string(x.c.Req.Target)
	for hop := 0; ; hop++ {
		switch x.w.Resp.Status {
		case 301, 302, 303, 307, 308:
		default:
			return nil
		}
		u := redirectTarget(&x.w.Resp, base)
		if u == nil {
			return nil // not ours to judge: the client gets it as it is
		}
		if hop == maxRedirects {
			return &redirectError{errors.New("too many redirects")}
		}
		own := x.p.ownHost(u.Host, string(x.c.Req.Authority))
		if own && u.RequestURI() == last {
			return nil // a redirect to itself: only the client can do something about it
		}
		x.drop(telemetry.DiscardCancelled)
		var pool upstream.Source = x.p.pool
		a.host, a.foreign = "", false
		if !own {
			var err error
			if pool, err = x.p.poolFor(u); err != nil {
				return &redirectError{err}
			}
			a.host, a.foreign = u.Host, true
		}
		last = u.RequestURI()
		a.target = []byte(last)
		if err := x.open(pool, a); err != nil {
			if errors.Is(err, errClientGone) {
				return err
			}
			return &redirectError{err}
		}
		base = u
	}
}

// scheme and host are those of the origin that serves the exchange, or of the first before one was chosen.
func (x *exchange) scheme() string {
	if x.w != nil && x.w.Secure() || x.w == nil && x.p.set.Upstreams[0].Scheme == "https" {
		return "https"
	}
	return "http"
}

func (x *exchange) host() string {
	if x.w != nil {
		return x.w.Host()
	}
	return x.p.pool.Host()
}

// baseURL is the URL of the request, which a Location may be relative to.
func (x *exchange) baseURL() *url.URL {
	base := &url.URL{Scheme: x.scheme(), Host: string(x.c.Req.Authority), Path: "/"}
	if base.Host == "" {
		base.Host = x.host()
	}
	if u, err := url.Parse(string(x.c.Req.Target)); err == nil {
		base.Path, base.RawPath = u.Path, u.RawPath
	}
	return base
}

// redirectTarget resolves Location; nil for what is no target for a request.
func redirectTarget(resp *wire.Head, base *url.URL) *url.URL {
	location := string(resp.Get(wire.Location))
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return nil
	}
	if u = base.ResolveReference(u); u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil
	}
	for _, c := range []byte(u.RequestURI() + u.Host) {
		if c <= ' ' || c == 0x7f {
			return nil
		}
	}
	return u
}

// ownHost reports whether a redirect stays with the origin: its own name, the one the client used, or the one it is called by.
func (p *Proxy) ownHost(host, authority string) bool {
	for _, own := range [...]string{authority, p.set.UpstreamHost} {
		if own != "" && strings.EqualFold(host, own) {
			return true
		}
	}
	return p.pool.Owns(func(own string) bool { return strings.EqualFold(host, own) })
}

// redirectError is a redirect that could not be followed.
type redirectError struct{ err error }

func (e *redirectError) Error() string { return "cannot follow redirect: " + e.err.Error() }
func (e *redirectError) Unwrap() error { return e.err }

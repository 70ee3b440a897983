package proxy

import (
	"strconv"
	"time"

	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/proxy/wire"
)

// ask says how the request for the upstream differs from the client's.
type ask struct {
	method  string               // "" = the client's
	target  []byte               // nil = the client's
	host    string               // "" = the client's Host, or ARKVORY_UPSTREAM_HOST
	foreign bool                 // another host than the client spoke to: its credentials stay here
	range1  bool                 // Range: bytes=0-0 instead of the client's, to learn the size
	noBody  bool                 // the body does not go along
	part    part                 // a Range of the proxy's own
	avoid   []control.EndpointID // that gave another object
	within  time.Duration        // for the response head, 0 = ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS
	hurried bool                 // within is no more than the client's patience: an origin that takes longer has not failed
}

// part is a range that the proxy asks for on its own account.
type part struct {
	on          bool
	first, last int64
	anew        bool   // the conditions of the client have been judged, or do not matter: they stay here
	validator   string // If-Range, "" = the client's own unless anew
}

// conditions of a request besides those that have an identity of their own.
func conditional(name []byte) bool {
	return wire.EqualFold(name, "if-modified-since") || wire.EqualFold(name, "if-unmodified-since")
}

// appendRequest appends the head of the upstream's request: the client's fields in their order and spelling, less those of the hop,
// plus what a proxy adds (RFC 9110 section 7.6). The result is one HTTP/1.1 head.
func (x *exchange) appendRequest(dst []byte, a ask) []byte {
	req := &x.c.Req
	if a.method != "" {
		dst = append(dst, a.method...)
	} else {
		dst = append(dst, req.Method...)
	}
	dst = append(dst, ' ')
	if a.target != nil {
		dst = append(dst, a.target...)
	} else {
		dst = append(dst, req.Target...)
	}
	dst = append(dst, " HTTP/1.1\r\n"...)
	host := false
	for _, f := range req.Fields {
		if f.Dropped() || a.foreign && !carried(req, f) {
			continue
		}
		switch f.ID {
		case wire.Connection, wire.KeepAlive, wire.ProxyConnection, wire.Upgrade, wire.TE, wire.TransferEncoding, wire.ContentLength,
			wire.ForwardedFor, wire.ForwardedProto, wire.ForwardedHost, wire.Forwarded, wire.Arkvory, wire.Shadow:
			continue
		case wire.Host:
			if !host {
				host = true
				dst = x.appendHost(append(append(dst, req.Name(f)...), ':', ' '), a)
			}
			continue
		case wire.Range:
			if a.range1 || a.part.on {
				continue
			}
		case wire.IfRange:
			if a.range1 || a.part.anew {
				continue
			}
		case wire.IfMatch, wire.IfNoneMatch:
			if a.part.validator != "" {
				continue
			}
		case wire.Other:
			if a.part.validator != "" && conditional(req.Name(f)) {
				continue
			}
		case wire.Expect:
			if req.Minor == 0 || a.noBody {
				continue
			}
		case wire.Via:
			if x.p.set.Via != "" { // continued below
				continue
			}
		}
		dst = wire.AppendField(dst, req, f)
	}
	if !host {
		dst = x.appendHost(append(dst, "Host: "...), a)
	}
	if a.range1 {
		dst = append(dst, "Range: bytes=0-0\r\n"...)
	}
	if a.part.on {
		dst = append(dst, "Range: bytes="...)
		dst = strconv.AppendInt(dst, a.part.first, 10)
		dst = append(dst, '-')
		dst = strconv.AppendInt(dst, a.part.last, 10)
		dst = append(dst, '\r', '\n')
		if a.part.validator != "" {
			dst = append(append(append(dst, "If-Range: "...), a.part.validator...), '\r', '\n')
		}
	}
	dst = x.appendHopFields(dst, a)
	return append(dst, '\r', '\n')
}

// carried reports whether a field goes along to a host that the client did not speak to: what selects the representation, and nothing else, since any
// field may be a credential of the store.
func carried(req *wire.Head, f wire.Field) bool {
	switch f.ID {
	case wire.Host, wire.Range, wire.IfRange, wire.IfMatch, wire.IfNoneMatch, wire.Accept, wire.UserAgent:
		return true
	}
	for _, n := range [...]string{"accept-encoding", "if-modified-since", "if-unmodified-since", "cache-control"} {
		if wire.EqualFold(req.Name(f), n) {
			return true
		}
	}
	return false
}

func (x *exchange) appendHost(dst []byte, a ask) []byte {
	switch {
	case a.host != "":
		dst = append(dst, a.host...)
	case x.p.set.UpstreamHost != "":
		dst = append(dst, x.p.set.UpstreamHost...)
	case len(x.c.Req.Authority) > 0 || x.c.Req.Minor == 1:
		dst = append(dst, x.c.Req.Authority...)
	default:
		dst = append(dst, x.host()...)
	}
	return append(dst, '\r', '\n')
}

// appendHopFields appends framing, connection and forwarding fields.
func (x *exchange) appendHopFields(dst []byte, a ask) []byte {
	req := &x.c.Req
	switch {
	case a.noBody:
	case req.Chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case req.ContentLength >= 0:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, req.ContentLength, 10)
		dst = append(dst, '\r', '\n')
	}
	if x.upgrade {
		dst = append(dst, "Connection: Upgrade\r\nUpgrade: "...)
		dst = append(dst, req.Get(wire.Upgrade)...)
		dst = append(dst, '\r', '\n')
	}
	if wire.HasToken(req.Get(wire.TE), "trailers") {
		dst = append(dst, "TE: trailers\r\n"...)
		if !x.upgrade {
			dst = append(dst, "Connection: TE\r\n"...)
		}
	}
	dst = x.p.ids.ForwardedFields(dst, req, x.c.Peer().Addr(), x.c.TLS())
	if via := x.p.set.Via; via != "" {
		dst = append(dst, "Via: "...)
		for _, f := range req.Fields {
			if f.ID == wire.Via && !f.Dropped() {
				dst = append(append(dst, req.Value(f)...), ',', ' ')
			}
		}
		dst = appendVia(dst, req.Minor, via)
	}
	return dst
}

func appendVia(dst []byte, minor int, name string) []byte {
	dst = append(dst, '1', '.', byte('0'+minor), ' ')
	dst = append(dst, name...)
	return append(dst, '\r', '\n')
}

// framing is how the body of a response reaches the client.
type framing uint8

const (
	frameNone    framing = iota // no body: HEAD, 1xx, 204, 304
	frameLength                 // Content-Length
	frameChunked                // chunked
	frameClose                  // ends with the connection: HTTP/1.0 clients without a length
)

// frame decides the framing towards the client and whether the connection can be kept (RFC 9112 section 6.3).
func (x *exchange) frame() framing {
	resp := &x.w.Resp
	switch {
	case x.isHead || wire.NoBody(resp.Status):
		return frameNone
	case !resp.Chunked && resp.ContentLength >= 0:
		return frameLength
	case x.c.Req.Minor == 1:
		return frameChunked
	}
	x.keep = false
	return frameClose
}

// appendResponse appends the head of the client's response: the upstream's fields in their order and spelling, less those of the hop.
func (x *exchange) appendResponse(dst []byte, fr framing) []byte {
	resp, sp := &x.w.Resp, x.span
	dst = append(dst, "HTTP/1.1 "...)
	if sp != nil && !sp.part {
		dst = append(dst, "200 OK"...)
	} else {
		dst = strconv.AppendInt(dst, int64(resp.Status), 10)
		dst = append(dst, ' ')
		dst = append(dst, resp.Reason...)
	}
	dst = append(dst, '\r', '\n')
	for _, f := range resp.Fields {
		if f.Dropped() && !(f.ID == wire.Upgrade && resp.Status == 426) {
			continue
		}
		switch f.ID {
		case wire.Connection, wire.KeepAlive, wire.ProxyConnection, wire.TransferEncoding:
			continue
		case wire.Upgrade: // 426 says what it wants (RFC 9110 section 15.5.22), always together with the option
			if resp.Status != 426 {
				continue
			}
			dst = append(dst, "Connection: Upgrade\r\n"...)
		case wire.ContentRange:
			if sp != nil {
				continue
			}
		case wire.Other:
			if sp != nil && ofContent(resp.Name(f)) {
				continue
			}
		case wire.ContentLength:
			if sp != nil || fr == frameChunked || fr == frameClose || resp.Chunked || f != x.firstLength() {
				continue
			}
		case wire.Via:
			if x.p.set.Via != "" {
				continue
			}
		}
		dst = wire.AppendField(dst, resp, f)
	}
	if fr == frameChunked {
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if sp != nil {
		dst = sp.appendFields(dst)
	}
	if via := x.p.set.Via; via != "" {
		dst = append(dst, "Via: "...)
		for _, f := range resp.Fields {
			if f.ID == wire.Via && !f.Dropped() {
				dst = append(append(dst, resp.Value(f)...), ',', ' ')
			}
		}
		dst = appendVia(dst, resp.Minor, via)
	}
	dst = x.appendOwn(dst)
	return append(x.appendConnection(dst), '\r', '\n')
}

// ofContent reports whether a field speaks of the bytes of one message and not of the object: it is not true of another range (RFC 9530 section 2, RFC 1864).
func ofContent(name []byte) bool {
	return wire.EqualFold(name, "content-digest") || wire.EqualFold(name, "content-md5")
}

// appendFields appends what a head that is made from that of a piece says about its own bytes.
func (s *span) appendFields(dst []byte) []byte {
	if s.part {
		dst = append(dst, "Content-Range: bytes "...)
		dst = strconv.AppendInt(dst, s.first, 10)
		dst = append(dst, '-')
		dst = strconv.AppendInt(dst, s.last, 10)
		dst = append(dst, '/')
		dst = strconv.AppendInt(dst, s.facts.SizeBytes, 10)
		dst = append(dst, '\r', '\n')
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, s.last-s.first+1, 10)
	return append(dst, '\r', '\n')
}

// firstLength returns the first Content-Length: equal repetitions are not passed on.
func (x *exchange) firstLength() wire.Field {
	for _, f := range x.w.Resp.Fields {
		if f.ID == wire.ContentLength {
			return f
		}
	}
	return wire.Field{}
}

// appendOwn appends the fields that the queue protocol adds to a response of the upstream.
func (x *exchange) appendOwn(dst []byte) []byte {
	if x.classAsked || x.grant != nil {
		dst = append(dst, "Arkvory-Download-Class: "...)
		dst = append(dst, x.class.String()...)
		dst = append(dst, '\r', '\n')
	}
	if x.grant != nil {
		dst = x.appendTicketField(dst)
	}
	return dst
}

// appendConnection appends what the client must know about its connection.
func (x *exchange) appendConnection(dst []byte) []byte {
	switch {
	case !x.keep:
		return append(dst, "Connection: close\r\n"...)
	case x.c.Req.Minor == 0:
		return append(dst, "Connection: keep-alive\r\n"...)
	}
	return dst
}

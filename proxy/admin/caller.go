package admin

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// trust is why a caller is trusted.
type trust uint8

const (
	stranger trust = iota // is not
	local                 // is on loopback, without a proxy or a rebound name between
	bearer                // showed the token
)

// caller is who sends a request. By names a trusted one without its secret. Wait is set when the peer's token was not looked at, because it
// showed too many wrong ones: the span until one will be.
type caller struct {
	trust trust
	by    string
	wait  time.Duration
}

// callerOf finds out who sends a request. A token that is wrong is counted against its peer. What is truly on loopback is trusted by
// its address, whatever token it shows.
func (s *Server) callerOf(ctx *fasthttp.RequestCtx) caller {
	c := caller{}
	if loopback(ctx) {
		c.trust = local
		if peer, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
			c.by = peer.IP.String()
		}
	}
	h := &ctx.Request.Header
	if len(h.Peek(fasthttp.HeaderAuthorization)) == 0 {
		return c
	}
	right := s.guard.token(h)
	if wait := s.limits.guess(ctx.RemoteAddr(), s.clock(), right); wait > 0 {
		if c.trust == stranger {
			c.wait = wait
		}
		return c
	}
	if right {
		c.trust, c.by = bearer, "token"
	}
	return c
}

// request is what the server knows of a request beside its head.
type request struct {
	route  route
	id     string // of a session, from the path
	caller caller
}

// requestKey is where a context keeps its request.
type requestKey struct{}

// requestOf returns the request of a context, nil for one whose head could not be read.
func requestOf(ctx *fasthttp.RequestCtx) *request {
	r, _ := ctx.UserValue(requestKey{}).(*request)
	return r
}

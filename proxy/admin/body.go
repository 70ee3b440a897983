package admin

import (
	"errors"
	"io"
	"mime"
	"net"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// drainBytes is how much of a body that is too large is read and dropped, so that a client that sends before it reads sees the answer and not a reset.
const drainBytes = 1 << 20

// jsonBody reads the body of a request of a trusted caller, or refuses it: what is not said to be JSON, is above the limit, comes too slowly or
// is broken. It is read here and not by fasthttp, so that nobody has memory of the process before it is known who asks.
func (s *Server) jsonBody(ctx *fasthttp.RequestCtx, limit int) ([]byte, bool) {
	h := &ctx.Request.Header
	kind, _, err := mime.ParseMediaType(string(h.ContentType()))
	if err != nil || kind != "application/json" {
		// A form of another site can send text, but never this type without asking first.
		s.refuse(ctx, telemetry.UnsupportedMediaType, "send Content-Type: application/json")
		return nil, false
	}
	if len(h.ContentEncoding()) > 0 {
		s.refuse(ctx, telemetry.UnsupportedMediaType, "send the body as it is, without Content-Encoding")
		return nil, false
	}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil, true
	}
	length := h.ContentLength() // negative: chunked
	if length > limit {
		_, _ = io.CopyN(io.Discard, stream, drainBytes)
		s.refuseTooLarge(ctx, limit)
		return nil, false
	}
	body, err := io.ReadAll(io.LimitReader(stream, int64(limit)+1))
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		ctx.SetConnectionClose()
		s.refuse(ctx, telemetry.HeaderTimeout, "the request did not arrive in time")
	case err != nil || length > len(body):
		ctx.SetConnectionClose()
		s.refuse(ctx, telemetry.MalformedRequest, "the body is not what its framing says")
	case len(body) > limit:
		_, _ = io.CopyN(io.Discard, stream, drainBytes)
		s.refuseTooLarge(ctx, limit)
	default:
		return body, true
	}
	return nil, false
}

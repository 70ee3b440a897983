package admin

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Words of refusals that only this listener gives, beside those of telemetry. They are no outcome of a proxied request and no label.
const (
	reasonUnknownSession = "unknown_session"
	reasonRateLimited    = "rate_limited"
)

// Problem is the body of a refusal.
type Problem struct {
	// Error is the status in words, Reason the shared word, Message a sentence for people.
	Error   string `json:"error"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Invalid is the body of a 400 about fields: the first fault, and all of them.
type Invalid struct {
	Problem
	SettingFault
	Faults []SettingFault `json:"faults"`
}

// Stale is the body of a 409 of the settings: the revision that is current.
type Stale struct {
	Problem
	Revision int64 `json:"revision"`
}

func problem(status int, reason, message string) Problem {
	return Problem{Error: strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"), Reason: reason, Message: message}
}

// refuse answers with a reason's own status.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r telemetry.Reason, message string) {
	s.refuseAs(ctx, r.Status(), r.String(), message)
}

// refuseAs answers with a status and a reason, and notes it.
func (s *Server) refuseAs(ctx *fasthttp.RequestCtx, status int, reason, message string) {
	s.refuseWith(ctx, status, reason, problem(status, reason, message))
}

// refuseWith answers with a body of its own, and notes it.
func (s *Server) refuseWith(ctx *fasthttp.RequestCtx, status int, reason string, body any) {
	writeJSON(ctx, status, body)
	s.noteRefusal(ctx, status, reason)
}

// refuseFault answers 400 about one field of a query or a body.
func (s *Server) refuseFault(ctx *fasthttp.RequestCtx, e *QueryError) {
	fault := SettingFault{Field: e.Field, Rule: e.Rule, Example: e.Example}
	s.refuseWith(ctx, 400, telemetry.MalformedRequest.String(), Invalid{
		Problem: problem(400, telemetry.MalformedRequest.String(), "cannot use the request: "+e.Error()), SettingFault: fault, Faults: []SettingFault{fault}})
}

// refuseTooLarge answers 413; what is left of the body is not read, so the connection ends.
func (s *Server) refuseTooLarge(ctx *fasthttp.RequestCtx, limit int) {
	ctx.SetConnectionClose()
	s.refuseAs(ctx, 413, telemetry.MalformedRequest.String(), "the body is above "+strconv.Itoa(limit)+" bytes")
}

// malformed answers what fasthttp could not read; the error's text may quote the request and is not repeated.
func (s *Server) malformed(ctx *fasthttp.RequestCtx, err error) {
	secure(&ctx.Response.Header)
	var small *fasthttp.ErrSmallBuffer
	var net net.Error
	switch {
	case errors.As(err, &small):
		s.refuse(ctx, telemetry.HeaderTooLarge, "the request head is above "+strconv.Itoa(maxHeadBytes)+" bytes")
	case errors.As(err, &net) && net.Timeout():
		s.refuse(ctx, telemetry.HeaderTimeout, "the request did not arrive in time")
	default:
		s.refuse(ctx, telemetry.MalformedRequest, "the request is not HTTP/1.1 that can be answered")
	}
}

// secure sets what every answer of this listener carries: it is for this caller alone, is what it says it is, and is shown in no other page. What may load
// what in the console is contentSecurity's.
func secure(h *fasthttp.ResponseHeader) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}

// writeJSON answers with a document.
func writeJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	if d, ok := v.(appender); ok {
		body := ctx.Response.SwapBody(nil) // the buffer of an earlier answer, when there is one
		ctx.Response.SwapBody(append(d.appendJSON(body[:0]), '\n'))
		return
	}
	b, err := json.Marshal(v)
	if err != nil { // only NaN or infinity in a source can do that
		panic(err)
	}
	ctx.SetBody(append(b, '\n'))
}

package admin

import (
	"strconv"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

const maxProfileSeconds = 60

func (s *Server) live(ctx *fasthttp.RequestCtx) { writeJSON(ctx, 200, Status{Status: "live"}) }

// ready shows its status to everybody, and the aggregates to those who may see them. A wrong token gets the status: probes must go on.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	st, code := Status{Status: "ready"}, 200
	if why := s.sources.ready(); why != telemetry.OK {
		st, code = Status{Status: "not_ready", Reason: &why}, 503
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "2")
	}
	if requestOf(ctx).caller.trust != stranger {
		writeJSON(ctx, code, s.sources.document(st, s.settings.Version))
		return
	}
	writeJSON(ctx, code, st)
}

func (s *Server) metrics(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; version=0.0.4; charset=utf-8")
	if s.sources.Metrics != nil {
		_, _ = s.sources.Metrics.WriteTo(ctx) // into the response's buffer, which cannot fail
	}
}

// profile bounds the seconds and leaves the rest to pprof.
func (s *Server) profile(ctx *fasthttp.RequestCtx) {
	if q := ctx.QueryArgs().Peek("seconds"); q != nil {
		if n, err := strconv.Atoi(string(q)); err != nil || n < 0 || n > maxProfileSeconds {
			s.refuse(ctx, telemetry.MalformedRequest, "seconds is a whole number from 0 to "+strconv.Itoa(maxProfileSeconds))
			return
		}
	}
	h := &ctx.Response.Header
	h.Del("X-Content-Type-Options") // pprof adds its own
	pprofhandler.PprofHandler(ctx)
	h.Set("X-Content-Type-Options", "nosniff")
	if ctx.Response.StatusCode() == 404 {
		ctx.Response.ResetBody()
		s.refuse(ctx, telemetry.NotFound, "there is no such profile; /debug/pprof/ lists them")
	}
}

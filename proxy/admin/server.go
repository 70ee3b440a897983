package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Bounds of the listener (I2).
const (
	maxConnections    = 128
	maxHeadBytes      = 16 << 10
	maxBodyBytes      = 64 << 10
	maxProfileSeconds = 60

	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second
)

// ErrClosed is what Serve returns when Shutdown came before it.
var ErrClosed = errors.New("cannot serve the admin listener: it was shut down")

// Settings are what New needs beside the sources. The zero value serves loopback callers only.
type Settings struct {
	// Token opens everything to callers that are not on loopback; empty: no token is ever right.
	Token string
	// Version of the build, shown in the document.
	Version string
	// OnPanic is told about a defect in a source, with the stack; nil drops it. It must not panic.
	OnPanic func(value any, stack []byte)
}

// Server is the admin listener. Its methods are safe for concurrent use.
type Server struct {
	guard    guard
	settings Settings
	sources  Sources
	routes   map[string]route
	http     fasthttp.Server

	mu       sync.Mutex
	closed   bool
	listener net.Listener
}

// route is one path: trusted says that the caller must be, put that it takes PUT beside GET and HEAD.
type route struct {
	trusted, put bool
	answer       func(*Server, *fasthttp.RequestCtx)
}

// methods are the values of Allow, and what stands in the refusal of another method.
func (r route) methods() string {
	if r.put {
		return "GET, HEAD, PUT"
	}
	return "GET, HEAD"
}

// New returns a server that shows the sources; nothing runs before Serve.
func New(o Settings, src Sources) *Server {
	s := &Server{guard: newGuard(o.Token), settings: o, sources: src}
	s.routes = map[string]route{
		"/health/live":  {answer: (*Server).live},
		"/health/ready": {answer: (*Server).ready},
		"/metrics":      {trusted: true, answer: (*Server).metrics},
	}
	if src.Settings != nil {
		s.routes[SettingsPath] = route{trusted: true, put: true, answer: (*Server).liveSettings}
	}
	s.http = fasthttp.Server{
		Handler:               s.handle,
		ErrorHandler:          s.malformed,
		Concurrency:           maxConnections,
		ReadBufferSize:        maxHeadBytes,
		MaxRequestBodySize:    maxBodyBytes,
		ReadTimeout:           readTimeout,
		WriteTimeout:          writeTimeout,
		IdleTimeout:           idleTimeout,
		NoDefaultServerHeader: true,
		CloseOnShutdown:       true,
		Logger:                silent{},
	}
	return s
}

// silent drops fasthttp's own lines: they quote requests, and a request may carry the token (I1).
type silent struct{}

func (silent) Printf(string, ...any) {}

// Serve answers on ln until Shutdown and then returns nil; ErrClosed when Shutdown came first; else the listener's error. It is
// called once and owns ln.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = ln.Close()
		return ErrClosed
	}
	s.listener = ln
	s.mu.Unlock()
	err := s.http.Serve(ln)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return err
}

// Shutdown closes the listener and idle connections and waits for running answers, at most until ctx ends; then it returns
// ctx's error. A running profile takes up to a minute. Repeated calls are harmless.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	ln := s.listener
	s.mu.Unlock()
	if ln == nil {
		return nil
	}
	err := s.http.ShutdownWithContext(ctx)
	_ = ln.Close() // fasthttp did not know it yet when Serve had only just begun
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// handle is the story of one request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer s.contain(ctx)
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")

	r, known := s.route(string(ctx.Path()))
	switch {
	case !wellFormed(&ctx.Request.Header):
		ctx.SetConnectionClose()
		refuse(ctx, telemetry.MalformedRequest, "the request is not HTTP/1.1 that can be answered")
	case crossSite(ctx):
		refuse(ctx, telemetry.CrossSite, "requests on behalf of another site are not answered")
	case !known:
		refuse(ctx, telemetry.NotFound, "there are /health/live, /health/ready, /metrics, /debug/pprof/ and "+SettingsPath)
	case !ctx.IsGet() && !ctx.IsHead() && !(ctx.IsPut() && r.put):
		h.Set(fasthttp.HeaderAllow, r.methods())
		refuse(ctx, telemetry.MethodNotAllowed, "only "+r.methods()+" are answered here")
	case r.trusted && !s.guard.trusted(ctx):
		h.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="arkvory"`)
		refuse(ctx, telemetry.Unauthorized, "send Authorization: Bearer with ARKVORY_ADMIN_TOKEN, or ask from loopback")
	default:
		r.answer(s, ctx)
	}
}

func (s *Server) route(path string) (route, bool) {
	if strings.HasPrefix(path, "/debug/pprof/") {
		return route{trusted: true, answer: (*Server).profile}, true
	}
	r, known := s.routes[path]
	return r, known
}

// contain turns a panic into a 500 (I3).
func (s *Server) contain(ctx *fasthttp.RequestCtx) {
	v := recover()
	if v == nil {
		return
	}
	if s.settings.OnPanic != nil {
		s.settings.OnPanic(v, debug.Stack())
	}
	ctx.Response.Reset()
	refuse(ctx, telemetry.Panic, "an internal error; see the log")
}

func (s *Server) live(ctx *fasthttp.RequestCtx) { writeJSON(ctx, 200, Status{Status: "live"}) }

func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	st, code := Status{Status: "ready"}, 200
	if why := s.sources.ready(); why != telemetry.OK {
		st, code = Status{Status: "not_ready", Reason: &why}, 503
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "2")
	}
	if s.guard.trusted(ctx) {
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
			refuse(ctx, telemetry.MalformedRequest, "seconds is a whole number from 0 to "+strconv.Itoa(maxProfileSeconds))
			return
		}
	}
	h := &ctx.Response.Header
	h.Del("X-Content-Type-Options") // pprof adds its own
	pprofhandler.PprofHandler(ctx)
	h.Set("X-Content-Type-Options", "nosniff")
	if ctx.Response.StatusCode() == 404 {
		ctx.Response.ResetBody()
		refuse(ctx, telemetry.NotFound, "there is no such profile; /debug/pprof/ lists them")
	}
}

// malformed answers what fasthttp could not read; the error's text may quote the request and is not repeated.
func (s *Server) malformed(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var net net.Error
	switch {
	case errors.As(err, &small):
		refuse(ctx, telemetry.HeaderTooLarge, "the request head is above "+strconv.Itoa(maxHeadBytes)+" bytes")
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		writeJSON(ctx, 413, problem(413, telemetry.MalformedRequest, "the body is above "+strconv.Itoa(maxBodyBytes)+" bytes"))
	case errors.As(err, &net) && net.Timeout():
		refuse(ctx, telemetry.HeaderTimeout, "the request did not arrive in time")
	default:
		refuse(ctx, telemetry.MalformedRequest, "the request is not HTTP/1.1 that can be answered")
	}
}

// Problem is the body of a refusal.
type Problem struct {
	// Error is the status in words, Reason the shared word, Message a sentence for people.
	Error   string           `json:"error"`
	Reason  telemetry.Reason `json:"reason"`
	Message string           `json:"message"`
}

func problem(status int, r telemetry.Reason, message string) Problem {
	return Problem{Error: strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"), Reason: r, Message: message}
}

func refuse(ctx *fasthttp.RequestCtx, r telemetry.Reason, message string) {
	writeJSON(ctx, r.Status(), problem(r.Status(), r, message))
}

func writeJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // only NaN or infinity in a source can do that
		panic(err)
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(append(b, '\n'))
}

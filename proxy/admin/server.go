package admin

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Bounds of the listener (I2).
const (
	maxConnections   = 128
	maxHeadBytes     = 16 << 10
	maxSettingsBytes = 512 << 10
	maxActionBytes   = 4 << 10

	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second
)

// ErrClosed is what Serve returns when Shutdown came before it.
var ErrClosed = errors.New("cannot serve the admin listener: it was shut down")

// Settings are what New needs beside the sources. The zero value serves loopback callers only, without a console and an audit log.
type Settings struct {
	// Token opens everything to callers that are not on loopback; empty: no token is ever right.
	Token string
	// Version of the build, shown in the documents.
	Version string
	// Console has the files below ConsolePath; nil: there is no console.
	Console Console
	// Audit is told about each change, each look at clear ids, and refused requests in samples; nil drops it. It must not block and is called from several goroutines.
	Audit func(Entry)
	// OnPanic is told about a defect in a source, with the stack; nil drops it. It must not panic.
	OnPanic func(value any, stack []byte)
	// Clock is monotonic time since any origin; nil: the process's.
	Clock func() time.Duration
}

// Server is the admin listener. Its methods are safe for concurrent use.
type Server struct {
	guard    guard
	settings Settings
	sources  Sources
	routes   routing
	clock    func() time.Duration
	limits   *limits
	sampled  *sampler
	packed   packed
	http     fasthttp.Server

	mu       sync.Mutex
	closed   bool
	listener net.Listener
}

// New returns a server that shows the sources; nothing runs before Serve.
func New(o Settings, src Sources) *Server {
	s := &Server{guard: newGuard(o.Token), settings: o, sources: src, routes: newRouting(&o, &src), clock: o.Clock, limits: newLimits(), sampled: newSampler()}
	if s.clock == nil {
		s.clock = bucket.SystemClock().Now
	}
	s.http = fasthttp.Server{
		Handler:        s.handle,
		ErrorHandler:   s.malformed,
		Concurrency:    maxConnections,
		ReadBufferSize: maxHeadBytes,
		// Bodies are read by jsonBody, when the caller is known; fasthttp reads the first 8 KiB.
		StreamRequestBody:            true,
		MaxRequestBodySize:           maxSettingsBytes,
		DisablePreParseMultipartForm: true,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		NoDefaultServerHeader:        true,
		CloseOnShutdown:              true,
		Logger:                       silent{},
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

// handle is the story of one request: is it one, does its sender's site matter, what does it ask for, who asks, how often.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer s.contain(ctx)
	h := &ctx.Response.Header
	secure(h)
	r := &request{}
	ctx.SetUserValue(requestKey{}, r)
	if !wellFormed(&ctx.Request.Header) {
		ctx.SetConnectionClose()
		s.refuse(ctx, telemetry.MalformedRequest, "the request is not HTTP/1.1 that can be answered")
		return
	}
	path, known := string(ctx.Path()), false
	r.route, r.id, known = s.routes.find(path)
	switch {
	case crossSite(ctx) && !(r.route.page && navigates(ctx)):
		s.refuse(ctx, telemetry.CrossSite, "requests on behalf of another site are not answered")
	case !known:
		s.refuse(ctx, telemetry.NotFound, s.nothingAt(path))
	case !r.route.methods.has(ctx):
		h.Set(fasthttp.HeaderAllow, string(r.route.methods))
		s.refuse(ctx, telemetry.MethodNotAllowed, "only "+string(r.route.methods)+" are answered here")
	default:
		s.admit(ctx, r)
	}
}

// admit answers those who may ask, as often as they may.
func (s *Server) admit(ctx *fasthttp.RequestCtx, r *request) {
	if !r.route.page { // the console's files need nobody's name
		r.caller = s.callerOf(ctx)
	}
	write := !ctx.IsGet() && !ctx.IsHead()
	if !write {
		_ = ctx.Request.CloseBodyStream() // no reader of the request may wait for a body
	}
	switch {
	case r.route.trusted && r.caller.wait > 0:
		s.refuseRate(ctx, r.caller.wait, "too many wrong tokens came from this address; ask again later")
		return
	case r.route.trusted && r.caller.trust == stranger:
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="arkvory"`)
		s.refuse(ctx, telemetry.Unauthorized, "send Authorization: Bearer with ARKVORY_ADMIN_TOKEN, or ask from loopback")
		return
	}
	if r.route.limited {
		if wait := s.limits.allow(call{r.caller.trust, write}, s.clock()); wait > 0 {
			s.refuseRate(ctx, wait, "too many requests of this kind; ask again later")
			return
		}
	}
	r.route.answer(s, ctx)
}

// refuseRate answers 429 with the whole seconds to wait.
func (s *Server) refuseRate(ctx *fasthttp.RequestCtx, wait time.Duration, message string) {
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	s.refuseAs(ctx, 429, reasonRateLimited, message)
}

// nothingAt says what there is instead of a path, without repeating it.
func (s *Server) nothingAt(path string) string {
	if short := strings.TrimRight(path, "/"); short != path {
		if _, _, known := s.routes.find(short); known {
			return "this path has no slash at its end"
		}
	}
	return "there are /health/live, /health/ready, /metrics, /debug/pprof/ and what " + OpenAPIPath + " describes"
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
	secure(&ctx.Response.Header)
	writeJSON(ctx, 500, problem(500, telemetry.Panic.String(), "an internal error; see the log"))
}

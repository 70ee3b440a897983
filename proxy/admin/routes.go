package admin

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// Paths of the API.
const (
	APIPath      = "/api/v1/system/downloads"
	SettingsPath = APIPath + "/settings" // where the live settings are read and changed
	QueuePath    = APIPath + "/queue"
	HistoryPath  = APIPath + "/history"
	SessionsPath = APIPath + "/sessions" // and below it one session, and its actions
	OpenAPIPath  = "/api/v1/openapi.json"
	ConsolePath  = "/console/"
)

const (
	// UpstreamPath shows the upstream pool whole.
	UpstreamPath = "/debug/upstream"
	profilesPath = "/debug/pprof/"
	sessionPath  = SessionsPath + "/{id}"
)

// route is one path. Pattern is the path as the description and the audit log have it.
type route struct {
	pattern string
	methods methods
	// trusted says that the caller must be; limited that its calls are counted.
	trusted, limited bool
	// page says that a browser may come here from another site: there is no data, and it is what a link in somebody's notes leads to.
	page   bool
	answer func(*Server, *fasthttp.RequestCtx)
}

// methods are the methods of a route as the value of Allow.
type methods string

const (
	readable methods = "GET, HEAD"
	writable methods = "GET, HEAD, PUT"
	acting   methods = "POST"
)

func (m methods) has(ctx *fasthttp.RequestCtx) bool {
	switch m {
	case acting:
		return ctx.IsPost()
	case writable:
		return ctx.IsGet() || ctx.IsHead() || ctx.IsPut()
	}
	return ctx.IsGet() || ctx.IsHead()
}

// routing finds the route of a path. It is immutable.
type routing struct {
	exact    map[string]route
	sessions map[string]route // by what follows the id: empty, or an action
	below    map[string]route // by the first folder, for all that is in it
}

func newRouting(o *Settings, src *Sources) routing {
	r := routing{exact: map[string]route{}, sessions: map[string]route{}, below: map[string]route{}}
	add := func(pattern string, one route) {
		one.pattern = pattern
		r.exact[pattern] = one
	}
	api := func(pattern string, allowed methods, answer func(*Server, *fasthttp.RequestCtx)) route {
		return route{pattern: pattern, methods: allowed, trusted: true, limited: true, answer: answer}
	}
	add("/health/live", route{methods: readable, answer: (*Server).live})
	add("/health/ready", route{methods: readable, answer: (*Server).ready})
	add("/metrics", route{methods: readable, trusted: true, answer: (*Server).metrics})
	add(OpenAPIPath, api("", readable, (*Server).openAPI))
	if src.Upstream != nil {
		add(UpstreamPath, route{methods: readable, trusted: true, answer: func(s *Server, ctx *fasthttp.RequestCtx) { writeJSON(ctx, 200, s.sources.Upstream()) }})
	}
	if src.Settings != nil {
		add(SettingsPath, api("", writable, (*Server).liveSettings))
	}
	if src.Operator != nil {
		add(QueuePath, api("", readable, (*Server).queue))
		add(HistoryPath, api("", readable, (*Server).history))
		add(SessionsPath, api("", readable, (*Server).listSessions))
		r.sessions[""] = api(sessionPath, readable, (*Server).oneSession)
		for _, kind := range actionKinds {
			r.sessions[string(kind)] = api(sessionPath+"/"+string(kind), acting, func(s *Server, ctx *fasthttp.RequestCtx) { s.act(ctx, kind) })
		}
	}
	if o.Console != nil {
		add("/", route{methods: readable, page: true, answer: (*Server).toConsole})
		add(strings.TrimSuffix(ConsolePath, "/"), route{methods: readable, page: true, answer: (*Server).toConsole})
		r.below[ConsolePath] = route{pattern: ConsolePath + "{path}", methods: readable, page: true, answer: (*Server).console}
	}
	r.below[profilesPath] = route{pattern: profilesPath + "{profile}", methods: readable, trusted: true, answer: (*Server).profile}
	return r
}

// find returns the route of a path, and the session's id in it. Paths are matched as they are; a slash at the end makes another path.
func (r *routing) find(path string) (one route, id string, known bool) {
	if one, known = r.exact[path]; known {
		return one, "", true
	}
	for folder, one := range r.below {
		if strings.HasPrefix(path, folder) {
			return one, "", true
		}
	}
	rest, found := strings.CutPrefix(path, SessionsPath+"/")
	if !found {
		return route{}, "", false
	}
	id, action, deeper := strings.Cut(rest, "/")
	if id == "" || deeper && action == "" {
		return route{}, "", false
	}
	one, known = r.sessions[action]
	return one, id, known
}

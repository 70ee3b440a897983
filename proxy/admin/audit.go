package admin

import (
	"encoding/json"
	"net"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// AuditEvent says what an Entry is about.
type AuditEvent string

// The events of the audit log.
const (
	// AuditSettings: the live settings were changed.
	AuditSettings AuditEvent = "settings_changed"
	// AuditAction: a session was moved, paused, resumed or kicked.
	AuditAction AuditEvent = "session_action"
	// AuditClearIDs: sessions were read with ids that are not hashed.
	AuditClearIDs AuditEvent = "clear_ids_read"
	// AuditRefused: a request was refused. Lines of one reason are bounded; More counts those that had none.
	AuditRefused AuditEvent = "admin_request_refused"
)

// Entry is one line of the audit log. It holds no token, no header or target of a request, no value of a setting and no clear id.
type Entry struct {
	Event AuditEvent
	// By is "token" or the loopback address of a trusted caller, else "nobody"; Peer the address of the connection's other end.
	By, Peer string
	// Method and Path say what was asked for, the path as a pattern of the description; both are empty for what is none of its.
	Method, Path string

	// Of AuditRefused: the answer, and how many more of the reason were refused since its last line.
	Status int
	Reason string
	More   uint64

	// Of AuditSettings: the revisions before and after, and the names of the overrides that differ between them, sorted.
	From, To int64
	Fields   []string

	// Of AuditAction: the session's id and what was done, as asked for, and the session before and after. Of AuditClearIDs the id is empty for a list.
	Session       string
	Action        Action
	Before, After AuditState
}

// AuditState is what an action can change of a session. Position is 0 for a session without a place.
type AuditState struct {
	State    string
	Class    string
	Position int
	Paused   bool
}

// Each calls field with the names and values of the line that belong to the event, always in the same order. The values are strings, int, int64, uint64, bool and []string.
func (e *Entry) Each(field func(name string, value any)) {
	field("event", string(e.Event))
	field("by", e.By)
	field("peer", e.Peer)
	if e.Path != "" {
		field("method", e.Method)
		field("path", e.Path)
	}
	switch e.Event {
	case AuditRefused:
		field("status", e.Status)
		field("reason", e.Reason)
		field("more", e.More)
	case AuditSettings:
		field("fromRevision", e.From)
		field("revision", e.To)
		field("fields", e.Fields)
	case AuditClearIDs:
		if e.Session != "" {
			field("session", e.Session)
		}
	case AuditAction:
		field("session", e.Session)
		field("action", string(e.Action.Kind))
		if e.Action.To != "" {
			field("to", e.Action.To)
		}
		if e.Action.Class != "" {
			field("toClass", e.Action.Class)
		}
		e.Before.each("before", field)
		e.After.each("after", field)
	}
}

func (s AuditState) each(prefix string, field func(name string, value any)) {
	field(prefix+"State", s.State)
	field(prefix+"Class", s.Class)
	field(prefix+"Position", s.Position)
	field(prefix+"Paused", s.Paused)
}

func auditState(d *SessionDocument) AuditState {
	s := AuditState{State: d.State, Class: d.Class, Paused: d.PausedByOperator}
	if d.Position != nil {
		s.Position = *d.Position
	}
	return s
}

// note sends an entry with what is known of the request.
func (s *Server) note(ctx *fasthttp.RequestCtx, e Entry) {
	if s.settings.Audit == nil {
		return
	}
	e.By = "nobody"
	if r := requestOf(ctx); r != nil {
		e.Path = r.route.pattern
		if r.caller.by != "" {
			e.By = r.caller.by
		}
	}
	if e.Path != "" {
		e.Method = string(ctx.Method())
	}
	if peer, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		e.Peer = peer.IP.String()
	}
	s.settings.Audit(e)
}

// noteRefusal notes a refused request, unless the reason had its lines lately. A path or a method that is none is a mistake of the caller's and not noted.
func (s *Server) noteRefusal(ctx *fasthttp.RequestCtx, status int, reason string) {
	if status == 404 || status == 405 || s.settings.Audit == nil {
		return
	}
	if more, ok := s.sampled.line(reason, s.clock()); ok {
		s.note(ctx, Entry{Event: AuditRefused, Status: status, Reason: reason, More: more})
	}
}

// refusalRate bounds the audit lines of each reason for a refusal.
var refusalRate = rate{every: 10 * time.Second, burst: 10}

// sampler bounds lines by reason; the reasons are a closed set. Safe for concurrent use.
type sampler struct {
	mu      sync.Mutex
	reasons map[string]*sample
}

type sample struct {
	meter meter
	more  uint64
}

func newSampler() *sampler { return &sampler{reasons: map[string]*sample{}} }

// line reports whether a line may be written, and how many were not since the last one.
func (s *sampler) line(reason string, now time.Duration) (more uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.reasons[reason]
	if one == nil {
		one = &sample{}
		s.reasons[reason] = one
	}
	if one.meter.take(refusalRate, now) > 0 {
		one.more++
		return 0, false
	}
	more, one.more = one.more, 0
	return more, true
}

// changedFields returns the sorted names of the overrides that differ, whatever way a store writes them. Both are JSON objects.
func changedFields(before, after json.RawMessage) []string {
	was, is := map[string]any{}, map[string]any{}
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
		return nil
	}
	names := []string{}
	for name, value := range is {
		if old, had := was[name]; !had || !reflect.DeepEqual(value, old) {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, kept := is[name]; !kept {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

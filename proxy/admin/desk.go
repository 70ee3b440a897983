package admin

import (
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// queue answers GET QueuePath.
func (s *Server) queue(ctx *fasthttp.RequestCtx) {
	if wrong := query(ctx); wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	doc := s.sources.Operator.Queue()
	if doc.Version == "" {
		doc.Version = s.settings.Version
	}
	writeJSON(ctx, 200, doc)
}

// history answers GET HistoryPath.
func (s *Server) history(ctx *fasthttp.RequestCtx) {
	minutes := DefaultMinutes
	if wrong := query(ctx, numberParameter("minutes", &minutes, MaxMinutes)); wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	writeJSON(ctx, 200, s.sources.Operator.History(minutes))
}

// listSessions answers GET SessionsPath.
func (s *Server) listSessions(ctx *fasthttp.RequestCtx) {
	q := SessionsQuery{State: StateAll, Limit: DefaultSessions}
	wrong := query(ctx,
		wordParameter("state", &q.State, StateWaiting, StateActive, StateRemembered, StateAll),
		wordParameter("class", &q.Class, Classes[:]...),
		textParameter("principal", &q.Principal, "h:1f2e3d4c5b6a7980"),
		numberParameter("limit", &q.Limit, MaxSessions),
		textParameter("after", &q.After, nil),
		clearParameter(&q.Clear))
	if wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	doc, err := s.sources.Operator.Sessions(q)
	if err != nil {
		if !errors.As(err, &wrong) {
			panic(err) // the contract knows no other error
		}
		s.refuseFault(ctx, wrong)
		return
	}
	if q.Clear {
		s.note(ctx, Entry{Event: AuditClearIDs})
	}
	if doc.Sessions == nil {
		doc.Sessions = []SessionDocument{}
	}
	writeJSON(ctx, 200, doc)
}

// oneSession answers GET for one session.
func (s *Server) oneSession(ctx *fasthttp.RequestCtx) {
	clear := false
	if wrong := query(ctx, clearParameter(&clear)); wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	id := requestOf(ctx).id
	if !sessionID(id) {
		s.refuseSession(ctx, ErrUnknownSession)
		return
	}
	doc, err := s.sources.Operator.Session(id, clear)
	if err != nil {
		s.refuseSession(ctx, err)
		return
	}
	if clear {
		s.note(ctx, Entry{Event: AuditClearIDs, Session: id})
	}
	writeJSON(ctx, 200, doc)
}

// act answers POST of an action on a session.
func (s *Server) act(ctx *fasthttp.RequestCtx, kind ActionKind) {
	body, ok := s.jsonBody(ctx, maxActionBytes)
	if !ok {
		return
	}
	if wrong := query(ctx); wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	a, wrong := parseAction(kind, body)
	if wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	id := requestOf(ctx).id
	if !sessionID(id) {
		s.refuseSession(ctx, ErrUnknownSession)
		return
	}
	before, after, err := s.sources.Operator.Act(id, a)
	if err != nil {
		s.refuseSession(ctx, err)
		return
	}
	s.note(ctx, Entry{Event: AuditAction, Session: id, Action: a, Before: auditState(&before), After: auditState(&after)})
	writeJSON(ctx, 200, after)
}

// refuseSession answers with the error of Session and Act.
func (s *Server) refuseSession(ctx *fasthttp.RequestCtx, err error) {
	var conflict *ConflictError
	var wrong *QueryError
	switch {
	case errors.As(err, &wrong):
		s.refuseFault(ctx, wrong)
	case errors.Is(err, ErrUnknownSession):
		s.refuseAs(ctx, 404, reasonUnknownSession, ErrUnknownSession.Error())
	case errors.As(err, &conflict):
		s.refuseWith(ctx, 409, conflict.Reason.String(), problem(409, conflict.Reason.String(), conflict.Message))
	default:
		panic(err) // the contract knows no other error
	}
}

// sessionID reports whether a part of a path can be a session's id: 16 hexadecimal digits in lower case.
func sessionID(text string) bool {
	if len(text) != 16 {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// openAPI answers with the description.
func (s *Server) openAPI(ctx *fasthttp.RequestCtx) {
	if wrong := query(ctx); wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(description)
}

// refuseChange answers with the error of a change of the settings.
func (s *Server) refuseChange(ctx *fasthttp.RequestCtx, err error) {
	var invalid *SettingsError
	var stale *RevisionError
	switch {
	case errors.As(err, &invalid):
		reason := telemetry.SettingInvalid.String()
		s.refuseWith(ctx, 400, reason, Invalid{Problem: problem(400, reason, err.Error()), SettingFault: invalid.Faults[0], Faults: invalid.Faults})
	case errors.As(err, &stale):
		reason := telemetry.RevisionMismatch.String()
		s.refuseWith(ctx, 409, reason, Stale{Problem: Problem{Error: reason, Reason: reason, Message: err.Error()}, Revision: stale.Current})
	default:
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "2")
		s.refuse(ctx, telemetry.SettingsUnavailable, "the store of the settings does not answer; nothing was changed")
	}
}

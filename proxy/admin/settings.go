package admin

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// SettingsPath is where the live settings are read and changed.
const SettingsPath = "/api/v1/system/downloads/settings"

// LiveSettings is the desk behind SettingsPath. It is safe for concurrent use.
type LiveSettings interface {
	// Current returns the settings in force. It must return quickly.
	Current() SettingsDocument
	// Change carries out the body of a PUT on behalf of by and returns what is in force then. Its errors are *SettingsError, *RevisionError, or
	// what kept the store from answering.
	Change(ctx context.Context, body []byte, by string) (SettingsDocument, error)
}

// SettingsDocument is the answer to a GET and to a PUT that was carried out.
type SettingsDocument struct {
	// Revision counts the changes; 0: nobody changed anything.
	Revision int64 `json:"revision"`
	// Overrides are the changed fields, {} when there are none. Effective is what the queue goes by: the environment and the overrides.
	Overrides json.RawMessage   `json:"overrides"`
	Effective EffectiveSettings `json:"effective"`
	// Admission is "sessions", or "per-request" while the strategy is shared.
	Admission string `json:"admission"`
	// Problem says why the record is not in force; then the environment is. Empty when all is well.
	Problem string `json:"problem"`
	// Persisted: the record outlives the process.
	Persisted bool `json:"persisted"`
	// UpdatedBy is "token" or the loopback address of the last change, UpdatedAt its wall time; empty and null before the first.
	UpdatedBy string     `json:"updatedBy"`
	UpdatedAt *time.Time `json:"updatedAt"`
}

// EffectiveSettings are the values of all fields that can be changed live, under the names of the overrides.
type EffectiveSettings struct {
	Strategy         string  `json:"strategy"`
	Sessions         int     `json:"sessions"`
	Reserve          int     `json:"reserve"`
	PerPrincipal     int     `json:"perPrincipal"`
	Weights          ByClass `json:"weights"`
	SessionMinBytes  int64   `json:"sessionMinBytes"`
	IdleSeconds      int64   `json:"idleSeconds"`
	AgingMinutes     int64   `json:"agingMinutes"`
	Preempt          bool    `json:"preempt"`
	RangesPerSession int     `json:"rangesPerSession"`
	SessionsElastic  int     `json:"sessionsElastic"`
}

// SettingFault is one field that breaks its rule, and a value that would do.
type SettingFault struct {
	Field   string `json:"field"`
	Rule    string `json:"rule"`
	Example any    `json:"example"`
}

// SettingsError is a change that was refused because of its content. There is at least one fault; the values themselves are not repeated.
type SettingsError struct{ Faults []SettingFault }

// Error names the fields and their rules.
func (e *SettingsError) Error() string {
	parts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		parts[i] = f.Field + ": " + f.Rule
	}
	return "cannot use the settings: " + strings.Join(parts, "; ")
}

// RevisionError is a change that expected another revision than the current one.
type RevisionError struct{ Current int64 }

// Error names the current revision.
func (e *RevisionError) Error() string {
	return "cannot save the settings: the current revision is " + strconv.FormatInt(e.Current, 10) + "; read them again"
}

// refusedSettings is the body of a 400 and of a 409: the first fault, all of them, or the current revision.
type refusedSettings struct {
	Error   string           `json:"error"`
	Reason  telemetry.Reason `json:"reason"`
	Message string           `json:"message"`
	*SettingFault
	Faults   []SettingFault `json:"faults,omitempty"`
	Revision *int64         `json:"revision,omitempty"`
}

// liveSettings answers GET, HEAD and PUT on SettingsPath; the caller is trusted and of no other site.
func (s *Server) liveSettings(ctx *fasthttp.RequestCtx) {
	desk := s.sources.Settings
	if !ctx.IsPut() {
		writeJSON(ctx, 200, desk.Current())
		return
	}
	if kind, _, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType())); err != nil || kind != "application/json" {
		// A form of another site can send text, but never this type without asking first.
		refuse(ctx, telemetry.UnsupportedMediaType, "send Content-Type: application/json")
		return
	}
	bounded, cancel := context.WithTimeout(context.Background(), writeTimeout/2)
	defer cancel()
	doc, err := desk.Change(bounded, ctx.PostBody(), s.guard.who(ctx))
	var invalid *SettingsError
	var stale *RevisionError
	switch {
	case err == nil:
		writeJSON(ctx, 200, doc)
	case errors.As(err, &invalid):
		writeJSON(ctx, 400, refusedSettings{Error: "bad_request", Reason: telemetry.SettingInvalid, Message: err.Error(), SettingFault: &invalid.Faults[0], Faults: invalid.Faults})
	case errors.As(err, &stale):
		writeJSON(ctx, 409, refusedSettings{Error: "revision_mismatch", Reason: telemetry.RevisionMismatch, Message: err.Error(), Revision: &stale.Current})
	default:
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "2")
		refuse(ctx, telemetry.SettingsUnavailable, "the store of the settings does not answer; nothing was changed")
	}
}

// who names a trusted caller without its secret.
func (g guard) who(ctx *fasthttp.RequestCtx) string {
	if g.token(&ctx.Request.Header) {
		return "token"
	}
	if peer, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		return peer.IP.String()
	}
	return "unknown"
}

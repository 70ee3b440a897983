package admin

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

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

// EffectiveSettings are the values of all fields that can be changed live, under the names of the overrides. The maps are never nil: without entries
// they are {} in JSON. Its values are shared by all readers of a document and must not be changed.
type EffectiveSettings struct {
	Mode             string  `json:"mode"`
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
	// Windows are those of the classes that have one, by class; a class that is absent is always open. Principals are the rules of single principals
	// by id. Quotas are those of every principal without its own.
	Windows    map[string]WindowSettings    `json:"windows"`
	Principals map[string]PrincipalSettings `json:"principals"`
	Quotas     QuotaSettings                `json:"quotas"`
}

// WindowSettings is the window of a class (W1).
type WindowSettings struct {
	Zone         string         `json:"zone"`         // IANA name
	OutsideShare float64        `json:"outsideShare"` // of slots and band outside, 0..1; 0 = waits
	Open         []SpanSettings `json:"open"`
}

// SpanSettings is one stretch of a window in local wall-clock time; To not after From is on the next day.
type SpanSettings struct {
	Days []string `json:"days,omitempty"` // mon, tue, wed, thu, fri, sat, sun: those it begins on; absent = all seven
	From string   `json:"from"`           // HH:MM
	To   string   `json:"to"`             // HH:MM, up to 24:00
}

// PrincipalSettings is what the record says about one principal; what is absent goes by the principals file and by QuotaSettings.
type PrincipalSettings struct {
	Class        string `json:"class,omitempty"`
	BytesPerDay  *int64 `json:"bytesPerDay,omitempty"` // 0 = no quota
	BytesPerWeek *int64 `json:"bytesPerWeek,omitempty"`
}

// QuotaSettings is the quota of every principal without its own (X9): whole download body bytes below 2^53, 0 = none.
type QuotaSettings struct {
	BytesPerDay  int64  `json:"bytesPerDay"`
	BytesPerWeek int64  `json:"bytesPerWeek"`
	Zone         string `json:"zone"` // IANA name: days begin at 00:00 there and weeks on Monday, for all quotas
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

// liveSettings answers GET, HEAD and PUT on SettingsPath; the caller is trusted and of no other site.
func (s *Server) liveSettings(ctx *fasthttp.RequestCtx) {
	desk := s.sources.Settings
	if !ctx.IsPut() {
		if wrong := query(ctx); wrong != nil {
			s.refuseFault(ctx, wrong)
			return
		}
		writeJSON(ctx, 200, desk.Current())
		return
	}
	body, ok := s.jsonBody(ctx, maxSettingsBytes)
	if !ok {
		return
	}
	if wrong := query(ctx); wrong != nil {
		s.refuseFault(ctx, wrong)
		return
	}
	bounded, cancel := context.WithTimeout(context.Background(), writeTimeout/2)
	defer cancel()
	before := desk.Current()
	doc, err := desk.Change(bounded, body, requestOf(ctx).caller.by)
	if err != nil {
		s.refuseChange(ctx, err)
		return
	}
	s.note(ctx, Entry{Event: AuditSettings, From: before.Revision, To: doc.Revision, Fields: changedFields(before.Overrides, doc.Overrides)})
	writeJSON(ctx, 200, doc)
}

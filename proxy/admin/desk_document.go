package admin

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Moment is a wall time that stands in JSON as RFC 3339 in UTC with milliseconds.
type Moment struct{ time.Time }

// momentLayout is the layout of a Moment.
const momentLayout = "2006-01-02T15:04:05.000Z07:00"

// NullMoment returns the moment, nil for the zero time: null in JSON.
func NullMoment(t time.Time) *Moment {
	if t.IsZero() {
		return nil
	}
	return &Moment{t}
}

// MarshalJSON writes the moment, cut to milliseconds; the error is always nil.
func (m Moment) MarshalJSON() ([]byte, error) {
	return m.UTC().AppendFormat(make([]byte, 0, len(momentLayout)+2), `"`+momentLayout+`"`), nil
}

// Seconds is a span in seconds that stands in JSON with at most three decimals.
type Seconds float64

// InSeconds converts a duration.
func InSeconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// MarshalJSON writes the number, rounded to milliseconds. NaN and infinity are a defect of the source and an error.
func (s Seconds) MarshalJSON() ([]byte, error) {
	if f := math.Round(float64(s)*1000) / 1000; !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
	}
	return nil, &json.UnsupportedValueError{Str: strconv.FormatFloat(float64(s), 'g', -1, 64)}
}

// NoSample stands in a Series for a moment without a sample: null in JSON.
const NoSample int64 = -1

// Series are samples, the oldest first. Negative ones are NoSample; nil is an empty list in JSON.
type Series []int64

// MarshalJSON writes a list of whole numbers and nulls; the error is always nil.
func (s Series) MarshalJSON() ([]byte, error) { return s.appendTo(make([]byte, 0, 2+len(s)*8)), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Series) UnmarshalJSON(text []byte) error {
	var all []*int64
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&all); err != nil {
		return err
	}
	*s = make(Series, len(all))
	for i, n := range all {
		(*s)[i] = NoSample
		if n != nil {
			(*s)[i] = *n
		}
	}
	return nil
}

// QueueDocument is one snapshot of the queue. Counters are per process.
type QueueDocument struct {
	At            Moment  `json:"at"`
	Version       string  `json:"version"` // the server fills it in when it is empty
	UptimeSeconds Seconds `json:"uptimeSeconds"`
	// Mode is "normal", "queue-all", "pass-through", "reject-new" or "dry-run"; Admission is "sessions", or "per-request" while the strategy is shared.
	Mode             string     `json:"mode"`
	Strategy         string     `json:"strategy"`
	Admission        string     `json:"admission"`
	SettingsRevision int64      `json:"settingsRevision"`
	Draining         bool       `json:"draining"`
	Slots            QueueSlots `json:"slots"`
	// Sessions by state. Waiting holds those that are PausedByOperator too. Held counts requests of plain clients that wait inside the proxy, Fed those of
	// them that get a few bytes meanwhile.
	Active               int          `json:"active"`
	Waiting              int          `json:"waiting"`
	PausedByOperator     int          `json:"pausedByOperator"`
	Remembered           int          `json:"remembered"`
	Held                 int          `json:"held"`
	Fed                  int          `json:"fed"`
	OldestWaitSeconds    Seconds      `json:"oldestWaitSeconds"`
	ByClass              QueueByClass `json:"byClass"`
	WaitingBytes         int64        `json:"waitingBytes"`
	ActiveRemainingBytes int64        `json:"activeRemainingBytes"`
	// RateBytesPerSecond is measured, BandBytesPerSecond the limit in force, 0: none.
	RateBytesPerSecond int64 `json:"rateBytesPerSecond"`
	BandBytesPerSecond int64 `json:"bandBytesPerSecond"`
	// EmptyInSeconds and EmptyAt foretell when nobody waits any more: 0 and now when nobody does, nil when it is unknown.
	EmptyInSeconds   *Seconds      `json:"emptyInSeconds"`
	EmptyAt          *Moment       `json:"emptyAt"`
	Gate             QueueGate     `json:"gate"`
	TickMilliseconds float64       `json:"tickMilliseconds"`
	Promises         QueuePromises `json:"promises"`
	Counts           QueueCounts   `json:"counts"`
}

// QueueSlots are the slots: Configured by the settings, Open in force, Elastic how many of those are open for now only, of ElasticLimit at most;
// Reserve are kept for interactive, Active taken.
type QueueSlots struct {
	Configured   int `json:"configured"`
	Open         int `json:"open"`
	Elastic      int `json:"elastic"`
	ElasticLimit int `json:"elasticLimit"`
	Reserve      int `json:"reserve"`
	Active       int `json:"active"`
}

// QueueByClass is the queue of each class.
type QueueByClass struct {
	Interactive ClassQueue `json:"interactive"`
	Release     ClassQueue `json:"release"`
	Bulk        ClassQueue `json:"bulk"`
	Background  ClassQueue `json:"background"`
}

// ClassQueue is one class. WaitingBytes counts sessions of known size.
type ClassQueue struct {
	Active            int         `json:"active"`
	Waiting           int         `json:"waiting"`
	OldestWaitSeconds Seconds     `json:"oldestWaitSeconds"`
	WaitingBytes      int64       `json:"waitingBytes"`
	Window            ClassWindow `json:"window"`
}

// ClassWindow says whether a class is inside its hours, its share (0..1) outside, and when that changes next; nil: never.
type ClassWindow struct {
	Open         bool    `json:"open"`
	OutsideShare float64 `json:"outsideShare"`
	ChangesAt    *Moment `json:"changesAt"`
}

// QueueGate says whether the upstream is covered, and in a word why or why not.
type QueueGate struct {
	Open   bool   `json:"open"`
	Reason string `json:"reason"`
}

// QueuePromises counts how good the promised starts were; see Promises.
type QueuePromises struct {
	Judged uint64 `json:"judged"`
	Within uint64 `json:"within"`
	Held   uint64 `json:"held"`
}

// QueueCounts are totals since the process started. WouldWait counts what a dry run would have queued, OverQuota refusals for a quota.
type QueueCounts struct {
	Queued      uint64 `json:"queued"`
	Rejoined    uint64 `json:"rejoined"`
	Started     uint64 `json:"started"`
	Refused     uint64 `json:"refused"`
	Completed   uint64 `json:"completed"`
	Idle        uint64 `json:"idle"`
	NoShow      uint64 `json:"noShow"`
	Cancelled   uint64 `json:"cancelled"`
	Yielded     uint64 `json:"yielded"`
	Kicked      uint64 `json:"kicked"`
	Moved       uint64 `json:"moved"`
	Paused      uint64 `json:"paused"`
	Resumed     uint64 `json:"resumed"`
	RejectedNew uint64 `json:"rejectedNew"`
	WouldWait   uint64 `json:"wouldWait"`
	OverQuota   uint64 `json:"overQuota"`
}

// HistoryDocument is what was sampled: all series have one length, at most MaxSamples, one sample each StepSeconds, the last at Until. Rates are
// means over a step, Active, Slots and Waiting are as of the sample, Started and Completed count what happened in the step.
type HistoryDocument struct {
	StepSeconds          int           `json:"stepSeconds"`
	Until                Moment        `json:"until"`
	BytesPerSecond       Series        `json:"bytesPerSecond"`
	UploadBytesPerSecond Series        `json:"uploadBytesPerSecond"`
	Active               Series        `json:"active"`
	Slots                Series        `json:"slots"`
	Waiting              SeriesByClass `json:"waiting"`
	Started              Series        `json:"started"`
	Completed            Series        `json:"completed"`
}

// SeriesByClass is a series of each class.
type SeriesByClass struct {
	Interactive Series `json:"interactive"`
	Release     Series `json:"release"`
	Bulk        Series `json:"bulk"`
	Background  Series `json:"background"`
}

// SessionsDocument is one page: Total sessions fit the query, Sessions are those of this page, Next asks for the page after it and is nil at the end.
// Waiting sessions stand in the order of their places, active ones by their start.
type SessionsDocument struct {
	Total    int               `json:"total"`
	Sessions []SessionDocument `json:"sessions"` // the server writes nil as an empty list
	Next     *string           `json:"next"`
}

// SessionDocument is one session. Principal, Object and Client are hashed ("h:" and 16 hexadecimal digits) unless clear ones were asked for.
type SessionDocument struct {
	// ID is 16 hexadecimal digits, stable for the session's life in this process.
	ID string `json:"id"`
	// State is a State word; Position counts from 1 and is nil unless the session waits for a place.
	State    string `json:"state"`
	Position *int   `json:"position"`

	Principal string `json:"principal"`
	Object    string `json:"object"`
	Client    string `json:"client"`
	// Class is the session's, StandsIn the one it has reached by aging.
	Class    string `json:"class"`
	StandsIn string `json:"standsIn"`
	// Protocol: the client speaks the queue protocol. Held counts its requests that wait inside the proxy. BundleObjects counts the objects of a bundle, else 0.
	Protocol      bool `json:"protocol"`
	Held          int  `json:"held"`
	BundleObjects int  `json:"bundleObjects"`
	// SizeBytes is nil while it is unknown.
	SizeBytes *int64 `json:"sizeBytes"`
	SentBytes int64  `json:"sentBytes"`

	ArrivedAt     Moment  `json:"arrivedAt"`
	WaitedSeconds Seconds `json:"waitedSeconds"`
	// StartedAt is nil before the start; StartsAt and StartsWindow are the estimate, nil when there is none.
	StartedAt    *Moment       `json:"startedAt"`
	StartsAt     *Moment       `json:"startsAt"`
	StartsWindow *StartsWindow `json:"startsWindow"`

	PausedByOperator bool `json:"pausedByOperator"`
	// Why is a Why word while the session waits, else empty.
	Why string `json:"why"`
}

// StartsWindow are the bounds of an estimated start.
type StartsWindow struct {
	Earliest Moment `json:"earliest"`
	Latest   Moment `json:"latest"`
}

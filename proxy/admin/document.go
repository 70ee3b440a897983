package admin

import (
	"io"
	"strconv"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Sources carry the state that the server shows. Each function may be nil, must be safe for concurrent use and must return quickly.
type Sources struct {
	// Ready returns telemetry.OK when new traffic may come, else why not (telemetry.Draining, telemetry.UpstreamNotReady).
	Ready func() telemetry.Reason
	// Uptime is the time since the process started, on the monotonic clock.
	Uptime func() time.Duration
	// Uploads and Downloads describe admission and bandwidth of their direction.
	Uploads, Downloads func() Transfers
	// Sessions describes the download queue, TickMilliseconds how long its last tick took.
	Sessions         func() Sessions
	TickMilliseconds func() float64
	// Requests and Connections count what is in progress or open against its limit.
	Requests    func() Requests
	Connections func() Connections
	// Files tells what is wrong with the operator's files as they stand.
	Files func() Files
	// Pool sums the upstream connections over all endpoints.
	Pool func() Pool
	// Upstream is the whole state of the upstream pool for UpstreamPath, names, addresses and causes included; nil: that path does not exist.
	Upstream func() any
	// Settings is the desk of the live settings; nil: there is none, and its path does not exist.
	Settings LiveSettings
	// Operator is the desk of the queue's pages and actions; nil: there is none, and their paths do not exist.
	Operator Operator
	// Relay returns payload bytes moved, by mechanism.
	Relay func() map[string]uint64
	// Metrics writes the Prometheus page.
	Metrics io.WriterTo
}

// Status is the readiness answer that everybody may see.
type Status struct {
	// Status is "ready" or "not_ready".
	Status string `json:"status"`
	// Reason is set when not ready.
	Reason *telemetry.Reason `json:"reason,omitempty"`
}

// Document is the readiness answer for trusted callers.
type Document struct {
	Status
	Version       string `json:"version"`
	UptimeSeconds int64  `json:"uptimeSeconds"`
	Transfers     struct {
		Uploads   Transfers `json:"uploads"`
		Downloads Downloads `json:"downloads"`
	} `json:"transfers"`
	Requests    Requests               `json:"requests"`
	Connections Connections            `json:"connections"`
	Files       Files                  `json:"files"`
	Pool        Pool                   `json:"pool"`
	Relay       map[string]DecimalText `json:"relay"`
}

// Transfers is one direction's admission per request and its bandwidth.
type Transfers struct {
	Admission Admission `json:"admission"`
	Bandwidth Bandwidth `json:"bandwidth"`
}

// Downloads adds the session queue to the download direction.
type Downloads struct {
	Transfers
	Sessions         Sessions `json:"sessions"`
	TickMilliseconds float64  `json:"tickMilliseconds"`
}

// Admission is the per-request admission of one direction. The last three are totals: refused because the list was full, refused
// after the term, left while waiting.
type Admission struct {
	Active                      int    `json:"active"`
	Waiting                     int    `json:"waiting"`
	Capacity                    int    `json:"capacity"`
	PerPrincipalCapacity        int    `json:"perPrincipalCapacity"`
	WaitingCapacity             int    `json:"waitingCapacity"`
	PerPrincipalWaitingCapacity int    `json:"perPrincipalWaitingCapacity"`
	TimeoutMs                   int64  `json:"timeoutMs"`
	Rejected                    uint64 `json:"rejected"`
	TimedOut                    uint64 `json:"timedOut"`
	Cancelled                   uint64 `json:"cancelled"`
}

// Bandwidth is the token bucket of one direction; a rate of 0 is off. Waiting counts quanta.
type Bandwidth struct {
	BytesPerSecond             int64       `json:"bytesPerSecond"`
	PerPrincipalBytesPerSecond int64       `json:"perPrincipalBytesPerSecond"`
	BurstBytes                 int64       `json:"burstBytes"`
	PerPrincipalBurstBytes     int64       `json:"perPrincipalBurstBytes"`
	Waiting                    int         `json:"waiting"`
	GrantedBytes               DecimalText `json:"grantedBytes"`
}

// Sessions is the download queue. Admission is "sessions", or "per-request" while the strategy is shared. Slots are those in force, Elastic how
// many of them are open for now only. Held counts requests of plain clients that wait inside the proxy; from Started on, totals.
type Sessions struct {
	Active            int             `json:"active"`
	Waiting           ByClass         `json:"waiting"`
	Held              int             `json:"held"`
	OldestWaitSeconds float64         `json:"oldestWaitSeconds"`
	Strategy          string          `json:"strategy"`
	Admission         string          `json:"admission"`
	Slots             int             `json:"slots"`
	Elastic           int             `json:"elastic"`
	Started           uint64          `json:"started"`
	Completed         uint64          `json:"completed"`
	Idle              uint64          `json:"idle"`
	NoShow            uint64          `json:"noShow"`
	Refused           uint64          `json:"refused"`
	Cancelled         uint64          `json:"cancelled"`
	Yielded           uint64          `json:"yielded"`
	Promises          Promises        `json:"promises"`
	Drips             Drips           `json:"drips"`
	Tickets           Tickets         `json:"tickets"`
	Settings          SessionSettings `json:"settings"`
}

// Drips are the plain clients that are fed a few bytes of their object while they wait: Active now, at most Limit by settings and band, each with BytesPerSecond; Started
// and Cut are totals, StoreBytes the memory of the shared pieces.
type Drips struct {
	Active         int     `json:"active"`
	Limit          int     `json:"limit"`
	BytesPerSecond float64 `json:"bytesPerSecond"`
	StoreBytes     int     `json:"storeBytes"`
	Started        uint64  `json:"started"`
	Cut            uint64  `json:"cut"`
}

// Tickets tell where the key of the queue tickets comes from: variable, state-dir, random, or "" for none. Gathered: the grace after a restart was begun.
type Tickets struct {
	KeySource string `json:"keySource"`
	Gathered  bool   `json:"gathered"`
}

// Promises say how good the promised starts were. Of every session that got its slot one answer is judged: Within, its start came within a
// tenth of the promised wait or a minute; Held, it came no later than the told latest start. The shares are null while nothing is judged.
type Promises struct {
	Judged      uint64   `json:"judged"`
	Within      uint64   `json:"within"`
	Held        uint64   `json:"held"`
	WithinShare *float64 `json:"withinShare"`
	HeldShare   *float64 `json:"heldShare"`
}

// NewPromises computes the shares.
func NewPromises(judged, within, held uint64) Promises {
	p := Promises{Judged: judged, Within: within, Held: held}
	if judged > 0 {
		w, h := float64(within)/float64(judged), float64(held)/float64(judged)
		p.WithinShare, p.HeldShare = &w, &h
	}
	return p
}

// ByClass is one number for each class.
type ByClass struct {
	Interactive int `json:"interactive"`
	Release     int `json:"release"`
	Bulk        int `json:"bulk"`
	Background  int `json:"background"`
}

// SessionSettings are the effective settings of the queue; Revision is that of the live settings, 0 while nobody changed any.
type SessionSettings struct {
	Revision          int64   `json:"revision"`
	Strategy          string  `json:"strategy"`
	Sessions          int     `json:"sessions"`
	Reserve           int     `json:"reserve"`
	PerPrincipal      int     `json:"perPrincipal"`
	Weights           ByClass `json:"weights"`
	SessionMinBytes   int64   `json:"sessionMinBytes"`
	IdleSeconds       float64 `json:"idleSeconds"`
	AgingMinutes      float64 `json:"agingMinutes"`
	Preempt           bool    `json:"preempt"`
	SessionsElastic   int     `json:"sessionsElastic"`
	RangesPerSession  int     `json:"rangesPerSession"`
	QueueLimit        int     `json:"queueLimit"`
	QueuePerPrincipal int     `json:"queuePerPrincipal"`
	HoldSeconds       float64 `json:"holdSeconds"`
}

// Requests are the requests in progress.
type Requests struct {
	Active int `json:"active"`
	Limit  int `json:"limit"`
}

// Connections are the open client connections.
type Connections struct {
	Open  int `json:"open"`
	Limit int `json:"limit"`
}

// Files are the files that are read again while the process runs, and the decision log that is written.
type Files struct {
	Principals  File `json:"principals"`
	Clients     File `json:"clients"`
	DecisionLog File `json:"decisionLog"`
}

// File is one of them. Problem of the decision log is why its writing ended. That of the others says why it cannot be used as it stands, with its variable and lines and without its values; the last good
// one is in force meanwhile. It is empty when the file is in force, or none is set.
type File struct {
	Problem string `json:"problem"`
}

// Pool is the upstream pool: its connections over all endpoints, its coverage and its generations. Names and addresses are on UpstreamPath.
type Pool struct {
	// Covered says whether downloads may start, Reason why (not); Fallback that the second origin serves.
	Covered   bool   `json:"covered"`
	Reason    string `json:"reason"`
	Fallback  bool   `json:"fallback"`
	Idle      int    `json:"idle"`
	Busy      int    `json:"busy"`
	Dials     uint64 `json:"dials"`
	Reused    uint64 `json:"reused"`
	Discarded uint64 `json:"discarded"`
	Retries   uint64 `json:"retries"`
	// Generation is the highest number of an active set of addresses; Activated, Retired and Abandoned count sets.
	Generation uint64 `json:"generation"`
	Activated  int64  `json:"activated"`
	Retired    int64  `json:"retired"`
	Abandoned  int64  `json:"abandoned"`
	// Waiting are exchanges that wait for a connection; Floor is the number of ready connections that is aimed at.
	Waiting   int           `json:"waiting"`
	Floor     int           `json:"floor"`
	Writers   PoolWriters   `json:"writers"`
	Endpoints PoolEndpoints `json:"endpoints"`
}

// PoolWriters are connections by the state of their life.
type PoolWriters struct {
	Dialing  int `json:"dialing"`
	Warm     int `json:"warm"`
	Active   int `json:"active"`
	Draining int `json:"draining"`
}

// PoolEndpoints are addresses in use by health.
type PoolEndpoints struct {
	Healthy     int `json:"healthy"`
	Degraded    int `json:"degraded"`
	Quarantined int `json:"quarantined"`
}

// DecimalText is a byte total that stands as a decimal string in JSON.
type DecimalText uint64

// MarshalText writes the decimal digits; the error is always nil.
func (d DecimalText) MarshalText() ([]byte, error) {
	return strconv.AppendUint(nil, uint64(d), 10), nil
}

// ready asks the source of readiness.
func (s *Sources) ready() telemetry.Reason { return ask(s.Ready, telemetry.OK) }

// document gathers everything.
func (s *Sources) document(st Status, version string) *Document {
	d := &Document{Status: st, Version: version, Relay: map[string]DecimalText{}}
	d.UptimeSeconds = int64(ask(s.Uptime, 0) / time.Second)
	d.Transfers.Uploads = ask(s.Uploads, Transfers{})
	d.Transfers.Downloads = Downloads{Transfers: ask(s.Downloads, Transfers{}), Sessions: ask(s.Sessions, Sessions{}),
		TickMilliseconds: ask(s.TickMilliseconds, 0)}
	d.Requests = ask(s.Requests, Requests{})
	d.Connections = ask(s.Connections, Connections{})
	d.Files = ask(s.Files, Files{})
	d.Pool = ask(s.Pool, Pool{})
	for path, n := range ask(s.Relay, nil) {
		d.Relay[path] = DecimalText(n)
	}
	return d
}

func ask[T any](f func() T, none T) T {
	if f == nil {
		return none
	}
	return f()
}

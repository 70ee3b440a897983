package main

import "time"

// The documents of the admin listener as far as people are shown them, under the names that its description gives (GET /api/v1/openapi.json). They are written
// down here a second time because the server's own types live in a package that brings the whole server with it; a test holds the two together. What
// --json prints is the server's text, so that fields of a newer one are not lost.

// queueSnapshot is the answer of /queue. Seconds are decimal, bytes whole.
type queueSnapshot struct {
	At                   time.Time     `json:"at"`
	Version              string        `json:"version"`
	UptimeSeconds        float64       `json:"uptimeSeconds"`
	Mode                 string        `json:"mode"`
	Strategy             string        `json:"strategy"`
	Admission            string        `json:"admission"`
	SettingsRevision     int64         `json:"settingsRevision"`
	Draining             bool          `json:"draining"`
	Slots                slotCounts    `json:"slots"`
	Active               int           `json:"active"`
	Waiting              int           `json:"waiting"`
	PausedByOperator     int           `json:"pausedByOperator"`
	Remembered           int           `json:"remembered"`
	Held                 int           `json:"held"`
	Fed                  int           `json:"fed"`
	OldestWaitSeconds    float64       `json:"oldestWaitSeconds"`
	ByClass              classQueues   `json:"byClass"`
	WaitingBytes         int64         `json:"waitingBytes"`
	ActiveRemainingBytes int64         `json:"activeRemainingBytes"`
	RateBytesPerSecond   int64         `json:"rateBytesPerSecond"`
	BandBytesPerSecond   int64         `json:"bandBytesPerSecond"`
	EmptyInSeconds       *float64      `json:"emptyInSeconds"` // nil: nobody knows
	EmptyAt              *time.Time    `json:"emptyAt"`
	Gate                 gateState     `json:"gate"`
	TickMilliseconds     float64       `json:"tickMilliseconds"`
	Promises             promiseCounts `json:"promises"`
	Counts               eventCounts   `json:"counts"`
}

type slotCounts struct {
	Configured   int `json:"configured"`
	Open         int `json:"open"`
	Elastic      int `json:"elastic"`
	ElasticLimit int `json:"elasticLimit"`
	Reserve      int `json:"reserve"`
	Active       int `json:"active"`
}

type classQueues struct {
	Interactive classQueue `json:"interactive"`
	Release     classQueue `json:"release"`
	Bulk        classQueue `json:"bulk"`
	Background  classQueue `json:"background"`
}

// named are the classes with their names, in the order of their urgency.
func (c *classQueues) named() []namedClass {
	return []namedClass{{classNames[0], &c.Interactive}, {classNames[1], &c.Release}, {classNames[2], &c.Bulk}, {classNames[3], &c.Background}}
}

// classNames are the classes in the order of their urgency, modeNames what the whole queue can be told to do.
var (
	classNames = []string{"interactive", "release", "bulk", "background"}
	modeNames  = []string{"normal", "queue-all", "pass-through", "reject-new", "dry-run"}
)

type namedClass struct {
	name string
	*classQueue
}

type classQueue struct {
	Active            int         `json:"active"`
	Waiting           int         `json:"waiting"`
	OldestWaitSeconds float64     `json:"oldestWaitSeconds"`
	WaitingBytes      int64       `json:"waitingBytes"`
	Window            windowState `json:"window"`
}

type windowState struct {
	Open         bool       `json:"open"`
	OutsideShare float64    `json:"outsideShare"`
	ChangesAt    *time.Time `json:"changesAt"` // nil: never
}

type gateState struct {
	Open   bool   `json:"open"`
	Reason string `json:"reason"`
}

type promiseCounts struct {
	Judged uint64 `json:"judged"`
	Within uint64 `json:"within"`
	Held   uint64 `json:"held"`
}

type eventCounts struct {
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

// sessionRow is one session; the times that may be missing are nil then.
type sessionRow struct {
	ID               string      `json:"id"`
	State            string      `json:"state"`
	Position         *int        `json:"position"`
	Principal        string      `json:"principal"`
	Object           string      `json:"object"`
	Client           string      `json:"client"`
	Class            string      `json:"class"`
	StandsIn         string      `json:"standsIn"`
	Protocol         bool        `json:"protocol"`
	Held             int         `json:"held"`
	BundleObjects    int         `json:"bundleObjects"`
	SizeBytes        *int64      `json:"sizeBytes"`
	SentBytes        int64       `json:"sentBytes"`
	ArrivedAt        time.Time   `json:"arrivedAt"`
	WaitedSeconds    float64     `json:"waitedSeconds"`
	StartedAt        *time.Time  `json:"startedAt"`
	StartsAt         *time.Time  `json:"startsAt"`
	StartsWindow     *startRange `json:"startsWindow"`
	PausedByOperator bool        `json:"pausedByOperator"`
	Why              string      `json:"why"`
}

type startRange struct {
	Earliest time.Time `json:"earliest"`
	Latest   time.Time `json:"latest"`
}

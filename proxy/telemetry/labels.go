package telemetry

import "github.com/arkvory/sidecar/ticket"

// Direction is the way of the payload as the client sees it.
type Direction uint8

// The directions.
const (
	Upload Direction = iota
	Download
	directionCount
)

// RelayPath is the mechanism that moved the bytes of a body.
type RelayPath uint8

// The relay paths.
const (
	// PathSplice: socket to socket inside the kernel (splice(2)).
	PathSplice RelayPath = iota
	// PathCopy: through a pooled buffer, length known.
	PathCopy
	// PathChunked: through a pooled buffer, chunked on at least one side.
	PathChunked
	// PathTLS: through a pooled buffer because one side is encrypted.
	PathTLS
	// PathBuffered: out of what the upstream's reader already held.
	PathBuffered
	relayPathCount
)

// Describe is how the proxy learned an object's size and validator (O1).
type Describe uint8

// The ways to describe an object.
const (
	// DescribeGet: from the response head of the GET itself.
	DescribeGet Describe = iota
	// DescribeHead: from a HEAD.
	DescribeHead
	// DescribeRange: from a GET of one byte.
	DescribeRange
	// DescribeUnread: from a GET whose body was not read.
	DescribeUnread
	describeCount
)

// Discard is why a kept-alive upstream connection was not used again.
type Discard uint8

// The reasons to discard.
const (
	// DiscardClosed: the upstream closed it, which is normal (U10).
	DiscardClosed Discard = iota
	// DiscardUnsolicited: it carried bytes nobody had asked for (P7).
	DiscardUnsolicited
	// DiscardBroken: its last exchange did not end cleanly.
	DiscardBroken
	// DiscardIdle: it was idle too long or above the number to keep.
	DiscardIdle
	// DiscardCancelled: its exchange was given up on the client's side, or by the proxy itself.
	DiscardCancelled
	// DiscardTimeout: no response head, or no byte of a body, came in time.
	DiscardTimeout
	// DiscardSpent: the upstream said that it serves no further exchange.
	DiscardSpent
	discardCount
)

// Break is how a body ended in the middle at the upstream while its client was there.
type Break uint8

// The breaks.
const (
	// BreakBroken: the connection ended or the message was malformed.
	BreakBroken Break = iota
	// BreakStalled: no byte came in time.
	BreakStalled
	breakCount
)

// Resume is what became of a body that broke at the upstream and was to be resumed (U9).
type Resume uint8

// The outcomes of a resume.
const (
	// ResumeOK: the rest was opened on another connection.
	ResumeOK Resume = iota
	// ResumeChanged: the object is another one, or is not given any more.
	ResumeChanged
	// ResumeGivenUp: the upstream did not answer, or broke again and again.
	ResumeGivenUp
	resumeCount
)

// SessionEvent is a step in the life of a download session.
type SessionEvent uint8

// The session events.
const (
	// EventQueued: a session began to wait.
	EventQueued SessionEvent = iota
	// EventRejoined: a ticket or a pause let it wait at its old arrival.
	EventRejoined
	// EventStarted: it got a slot.
	EventStarted
	// EventCompleted: its last byte was delivered.
	EventCompleted
	// EventIdle: it lost its slot to a pause (Q14, Q15).
	EventIdle
	// EventNoShow: it did not come back in time and left the queue (Q12).
	EventNoShow
	// EventRefused: the queue was full (Q17).
	EventRefused
	// EventCancelled: its client left while it waited or ran.
	EventCancelled
	// EventYielded: it gave its slot up between two ranges and waits anew (Q16).
	EventYielded
	// EventPaused: an operator paused it and it gave its slot up.
	EventPaused
	// EventKicked: an operator ended it.
	EventKicked
	sessionEventCount
)

// Class indexes the waiting sessions of a snapshot, highest first.
type Class uint8

// The classes.
const (
	Interactive Class = iota
	Release
	Bulk
	Background
	// ClassCount is the number of classes, not one of them.
	ClassCount = int(iota)
)

var (
	directionNames    = []string{"upload", "download"}
	relayPathNames    = []string{"splice", "copy", "chunked", "tls", "buffered"}
	describeNames     = []string{"get", "head", "range", "unread"}
	discardNames      = []string{"closed", "unsolicited", "broken", "idle", "cancelled", "timed_out", "spent"}
	sessionEventNames = []string{"queued", "rejoined", "started", "completed", "idle", "no_show", "refused", "cancelled", "yielded", "paused", "kicked"}
	classNames        = []string{"interactive", "release", "bulk", "background"}
	dialNames         = []string{"ok", "error"}
	connectionNames   = []string{"idle", "busy"}
	modeNames         = []string{"normal", "queue-all", "pass-through", "reject-new", "dry-run"}
	actionNames       = []string{"move", "pause", "resume", "kick"}
	breakNames        = []string{"broken", "stalled"}
	writerNames       = []string{"dialing", "warm", "active", "draining"}
	healthNames       = []string{"healthy", "degraded", "quarantined"}
	lifeNames         = []string{"begun", "activated", "retired", "abandoned"}
	turnNames         = []string{"in", "out"}
	probeNames        = []string{"ok", "error"}
	sideNames         = []string{"early", "late"}
	fileNames         = []string{"principals", "clients"}
	resumeNames       = []string{"ok", "changed", "given_up"}
	pieceNames        = []string{"origin", "store", "failed"}
	ticketNames       = func() []string {
		names := make([]string, ticket.Outcomes)
		for i := range names {
			names[i] = ticket.Outcome(i).String()
		}
		return names
	}()
	// statusNames are the statuses that the proxy itself answers with; any other is "other".
	statusNames = []string{"400", "401", "403", "404", "405", "408", "411", "413", "414", "416", "417", "421", "429", "431",
		"499", "500", "501", "502", "503", "504", "505", "other"}
)

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

// String returns the label value; "unknown" outside the enum.
func (d Direction) String() string { return name(directionNames, int(d)) }

// String returns the label value; "unknown" outside the enum.
func (p RelayPath) String() string { return name(relayPathNames, int(p)) }

// String returns the label value; "unknown" outside the enum.
func (d Describe) String() string { return name(describeNames, int(d)) }

// String returns the label value; "unknown" outside the enum.
func (d Discard) String() string { return name(discardNames, int(d)) }

// String returns the label value; "unknown" outside the enum.
func (e SessionEvent) String() string { return name(sessionEventNames, int(e)) }

// String returns the label value; "unknown" outside the enum.
func (c Class) String() string { return name(classNames, int(c)) }

package admin

import (
	"errors"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Operator is the desk behind the queue's pages and actions. It is safe for concurrent use and answers quickly: no method waits for a client, the
// upstream or a store.
type Operator interface {
	// Queue returns one snapshot of the queue. It costs at most the number of slots, whatever waits.
	Queue() QueueDocument
	// History returns the samples of the last minutes (1..360), the oldest first.
	History(minutes int) HistoryDocument
	// Sessions returns one page of sessions. Its error is a *QueryError, for a cursor that is not one.
	Sessions(q SessionsQuery) (SessionsDocument, error)
	// Session returns one session, its ids hashed unless clear; its error is ErrUnknownSession.
	Session(id string, clear bool) (SessionDocument, error)
	// Act carries out an action, all of it or nothing, and returns the session as it was and as it is, with hashed ids. Its errors are
	// ErrUnknownSession, *ConflictError, and *QueryError for an action that is none.
	Act(id string, a Action) (before, after SessionDocument, err error)
}

// ErrUnknownSession: no session has this id, or it has ended and is forgotten.
var ErrUnknownSession = errors.New("no session has this id; it may have ended")

// ConflictError is an action that does not fit the session's state. Reason is a word of the shared enum whose Status is 409.
type ConflictError struct {
	Reason  telemetry.Reason
	Message string
}

// Error returns the message.
func (e *ConflictError) Error() string { return e.Message }

// QueryError is a query parameter or a body's field that breaks its rule, and a value that would do. The value itself is not repeated.
type QueryError struct {
	Field   string
	Rule    string
	Example any
}

// Error names the field and its rule.
func (e *QueryError) Error() string { return e.Field + ": " + e.Rule }

// ActionKind is what an operator does to a session; its value is the last part of the action's path.
type ActionKind string

// The actions.
const (
	// Move changes the place or the class of a waiting session.
	Move ActionKind = "move"
	// Pause keeps a session from starting until Resume; an active one of a protocol client gives its slot up at its next range.
	Pause ActionKind = "pause"
	// Resume ends Pause.
	Resume ActionKind = "resume"
	// Kick ends a session: a waiting one is refused at its next contact, the responses of an active one are cut.
	Kick ActionKind = "kick"
)

// The values of Action.To.
const (
	// ToFront is before all others of its class.
	ToFront = "front"
	// ToBack is behind all others of its class.
	ToBack = "back"
)

// Action is one action. Of a Move exactly one of To (ToFront, ToBack) and Class (a class of Classes) is set; of the others neither is.
type Action struct {
	Kind  ActionKind
	To    string
	Class string
}

// Classes are the names of the classes, the most urgent first.
var Classes = [4]string{"interactive", "release", "bulk", "background"}

// The states of a session. Sessions that have ended are seen in the answer to a Kick only.
const (
	StateWaiting    = "waiting"
	StateActive     = "active"
	StateRemembered = "remembered" // gave its slot back after a pause; its place is kept for a while
	StateEnded      = "ended"
	StateAll        = "all" // of a query: every state
)

// The words for why a session waits, SessionDocument.Why.
const (
	WhySlots    = "slots"    // no slot is free
	WhyOrder    = "order"    // slots are free or about to be, and others come first
	WhyShare    = "share"    // its principal has its share
	WhyReserve  = "reserve"  // what is free is kept for interactive
	WhyWindow   = "window"   // its class is outside its hours
	WhyGate     = "gate"     // there is no upstream
	WhyGrace    = "grace"    // the process has just started and waits for those who were there before
	WhyOperator = "operator" // paused by the operator
	WhyMode     = "mode"     // the mode is queue-all
	WhyTurn     = "turn"     // it may start at its next contact
	WhyYielded  = "yielded"  // it gave its slot up and waits for the head to start
)

// Whys are all the words for why a session waits.
var Whys = []string{WhySlots, WhyOrder, WhyShare, WhyReserve, WhyWindow, WhyGate, WhyGrace, WhyOperator, WhyMode, WhyTurn, WhyYielded}

// SessionsQuery says which sessions a page shows. The server has judged all but After: State is a state or StateAll, Class a class or empty,
// Limit 1..MaxSessions, Principal empty or an exact id, clear or hashed.
type SessionsQuery struct {
	State     string
	Class     string
	Principal string
	Limit     int
	// After is the Next of the page before, or empty.
	After string
	// Clear shows principals, objects and clients as they are; else hashed.
	Clear bool
}

// Bounds of the operator's queries.
const (
	DefaultSessions = 100
	MaxSessions     = 1000
	DefaultMinutes  = 60
	MaxMinutes      = 360
	// MaxSamples is how many samples each series of a HistoryDocument has at most.
	MaxSamples = 720
	// MaxIDBytes bounds a principal id in a query.
	MaxIDBytes = 256
)

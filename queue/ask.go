package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// MaxKeyBytes bounds each part of a Key; a longer part is replaced by its hash.
const MaxKeyBytes = 256

// Key names a session: who downloads what, and which of his clients does. It never holds a secret.
type Key struct {
	Principal string // who asks
	Object    string // what is fetched
	Client    string // Arkvory-Download-Id, else the client's address
}

// Bounded returns the key with every over-long part replaced by "sha256:" and its digest in hex, so that a key never
// costs more than 3*MaxKeyBytes of memory. Two keys are the same session exactly when their bounded forms are equal.
func (k Key) Bounded() Key {
	return Key{bounded(k.Principal), bounded(k.Object), bounded(k.Client)}
}

func bounded(part string) string {
	if len(part) <= MaxKeyBytes {
		return part
	}
	sum := sha256.Sum256([]byte(part))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// RangeKind tells the forms of a Range header apart.
type RangeKind uint8

// The forms of a request's range.
const (
	RangeNone    RangeKind = iota // no Range: the whole object
	RangeOpen                     // bytes=X-
	RangeBounded                  // bytes=X-Y
	RangeSuffix                   // bytes=-N
	RangeMulti                    // several ranges in one request
)

// RangeAsk is the range a request asks for. The zero value is the whole object.
type RangeAsk struct {
	Kind  RangeKind
	First int64 // RangeOpen, RangeBounded: offset of the first byte
	Last  int64 // RangeBounded: offset of the last byte, inclusive; RangeSuffix: number of bytes from the end
}

// OpenFrom is bytes=first-.
func OpenFrom(first int64) RangeAsk { return RangeAsk{Kind: RangeOpen, First: first} }

// Bounded is bytes=first-last, both inclusive.
func Bounded(first, last int64) RangeAsk {
	return RangeAsk{Kind: RangeBounded, First: first, Last: last}
}

// Suffix is bytes=-count.
func Suffix(count int64) RangeAsk { return RangeAsk{Kind: RangeSuffix, Last: count} }

// startOf returns the offset that this range sets as a candidate for the session's start, and false for a tail read: a
// suffix, or a bounded range that ends at the last byte. A read that begins at offset 0 leaves nothing before it and is
// therefore never only a tail.
func (r RangeAsk) startOf(sizeBytes int64) (int64, bool) {
	switch r.Kind {
	case RangeOpen:
		return max(r.First, 0), true
	case RangeBounded:
		return max(r.First, 0), r.First <= 0 || r.Last < sizeBytes-1
	case RangeSuffix:
		return 0, r.Last >= sizeBytes
	default: // none and several ranges start the object; the latter covers nothing
		return 0, true
	}
}

// Ask is one request for bytes of an object: the fact the core decides about.
type Ask struct {
	Key       Key
	Class     Class    // applied class: the identity's, lowered by the client at most
	Protocol  bool     // the client sent Arkvory-Download-Id
	SizeBytes int64    // length of the whole object; -1 = unknown
	Validator string   // strong or weak validator of the object's bytes; empty = unknown
	Range     RangeAsk // range asked for

	// Ticketed says that a valid ticket proves the place in time Arrival, on the clock of now; it may be negative. It counts only
	// when the request makes a session anew.
	Ticketed bool
	Arrival  time.Duration

	// Peek asks what the answer would be without taking a slot or beginning a response: where it would be Admitted the outcome is Ready.
	// It counts as a contact of the client and makes the session when there is none.
	Peek bool

	// Bundle says that Key.Object names a repository from which one plain client fetches several objects in one session, and that this
	// request is for the one of them whose hash is Member; SizeBytes and Range are of that object. Of a Protocol request it is ignored.
	Bundle bool
	Member uint64

	place int // of the member in its bundle
}

// Outcome is the decision about one request.
type Outcome uint8

// The outcomes.
const (
	Admitted     Outcome = iota // a response may run now
	Queued                      // the session waits for a slot
	RangesBusy                  // the session is active, all its places for responses are taken
	PerRequest                  // no session is needed: admit the request by itself
	LimitReached                // the queue is full: nothing is kept of the request
	Draining                    // the process stops: nothing is kept of the request
	Gone                        // the client left while its request was held
	Ready                       // a peeking request would be Admitted now; nothing was taken for it
	Rejected                    // new downloads are refused (ModeRejectNew): nothing is kept of the request
	Kicked                      // the operator ended the session: the next request may join anew, at the end
	outcomeCount
)

// Outcomes is the number of outcomes.
const Outcomes = outcomeCount

var outcomeNames = [outcomeCount]string{
	"admitted", "queued", "ranges-busy", "per-request", "limit-reached", "draining", "gone", "ready", "rejected", "kicked",
}

// String returns the name used in logs.
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return "unknown"
	}
	return outcomeNames[o]
}

// Verdict is a decision with the facts a waiting client is told. Durations count from the now of the call that
// returned it.
type Verdict struct {
	Outcome  Outcome
	Class    Class         // applied class of the session (before aging); of the request when there is no session
	Held     bool          // a Queued or RangesBusy request is, or was, held; false: it was not worth or not possible to
	Position int           // place in the order, from 1; 0 when not Queued, or when the operator paused it
	Yielded  bool          // Queued: the session has just given its slot up to the head of the queue, or is about to
	Started  bool          // Admitted: this is the response that took the slot, once a stay; Waited is then its whole wait
	Waited   time.Duration // time this session has waited for the slot so far, or waited for the one it has

	// Estimate of the start; valid only while EstimateKnown: without any measured or configured rate there is none.
	EstimateKnown bool
	StartsIn      time.Duration // p50: half of such promises start earlier
	EarliestIn    time.Duration // lower end of the interval
	LatestIn      time.Duration // p90: nine of ten such promises have started by then

	CheckIn time.Duration // when to ask again; above zero in every outcome but Admitted, PerRequest and Gone
	Arrival time.Duration // the session's place in time on the clock of now, to sign a ticket with; may be negative
}

// Reason says why the admission or the wait of a session ended.
type Reason uint8

// The reasons.
const (
	ReasonCompleted Reason = iota // every byte from the start to the last was delivered
	ReasonIdle                    // no response for Policy.IdleFor; the place in time is kept for PauseMemory
	ReasonNoShow                  // a waiting client did not come back in time
	ReasonCancelled               // the client left or cancelled
	ReasonDrained                 // the process stops
	ReasonPolicy                  // the policy no longer makes it a session; the place in time is kept for PauseMemory
	ReasonYielded                 // it gave its slot up to the head of the queue and waits anew
	ReasonPaused                  // it gave its slot up because the operator paused it, and waits at its arrival until it is resumed
	ReasonKicked                  // the operator ended it
	reasonCount
)

// Reasons is the number of reasons, for arrays indexed by one.
const Reasons = int(reasonCount)

var reasonNames = [reasonCount]string{"completed", "idle", "no-show", "cancelled", "drained", "policy", "yielded", "paused", "kicked"}

// String returns the name used in logs and metric labels.
func (r Reason) String() string {
	if r >= reasonCount {
		return "unknown"
	}
	return reasonNames[r]
}

// End is the record of one stay of a session, from its arrival or return to the loss of its slot or place.
type End struct {
	Class    Class
	Reason   Reason
	Started  bool          // it had a slot; false: it ended waiting
	Wait     time.Duration // time in the queue
	Promised time.Duration // wait that its first estimate promised; -1 = no estimate was known
	Duration time.Duration // time with the slot; 0 when not Started
	Bytes    int64         // bytes delivered while it had the slot
}

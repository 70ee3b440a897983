package client

import (
	"context"
	"net/http"
	"time"
)

// Options say what to download and how patient to be. The zero value of every field but URL and Output is a working
// choice. Options are read once, when Download starts; the header is copied.
type Options struct {
	// URL is the http or https address of the object. User information in it is sent as Basic credentials unless Header
	// has its own Authorization. Neither it nor the query ever shows in errors, events or the checkpoint.
	URL string
	// Output is the path of the file to make. Bytes gather in Output+".part", which takes the name once verified.
	Output string
	// NoReplace ends the download with ErrExists when something else stands at Output, at the start or when it is to be named; then
	// the whole file is kept for the next run. false replaces a file that is there.
	NoReplace bool
	// Checkpoint is the path of the file that lets another process continue; empty means Output+".arkvory".
	Checkpoint string
	// Fresh ignores what an earlier run left, whatever it is, and starts from the first byte with a new id.
	Fresh bool

	// Header holds further request fields, such as credentials. They go only to the host of URL, not where it redirects.
	Header http.Header
	// Class asks for a lower class of the queue (interactive, release, bulk, background); empty leaves it to the server.
	Class string
	// ID is the download id, 1..128 of A-Z a-z 0-9 . _ ~ -; empty means the checkpoint's, else a random one.
	ID string

	// Parallel is how many ranges may be fetched at once, 1..16; 0 means 4. A server that turns further connections away
	// gets fewer.
	Parallel int
	// RangeBytes is the length of one range, 64 KiB..1 GiB; 0 means 8 MiB.
	RangeBytes int64

	// WaitLimit bounds the time spent in queues, all of it together; 0 means no bound. It ends with ErrWaitLimit as soon
	// as the next time the server may be asked lies past it.
	WaitLimit time.Duration
	// NotBefore is when the server may be asked first; zero means now.
	NotBefore time.Time
	// NotAfter is until when the download must have started; zero means no such bound. A download that runs is not cut.
	NotAfter time.Time

	// Size is the expected length of the object in bytes; 0 and -1 mean unknown.
	Size int64
	// Digest is the expected digest of the object; the zero Digest means none.
	Digest Digest

	// Retries is how many real faults one Download survives; 0 means 20. Progress does not refill it.
	Retries int
	// Attempts is how many requests in a row may fail without a byte of progress between them; 0 means 5.
	Attempts int
	// AttemptTimeout is how long a request may be silent, before its answer or within it; 0 means 60 s.
	AttemptTimeout time.Duration

	// Client sends the requests; nil means one of Download's own: HTTP/1.1, connections kept, no overall timeout, no
	// transparent compression. A given client is used as a copy: its CheckRedirect still decides whether to follow.
	Client *http.Client
	// Clock rules every wait; nil means the system's.
	Clock Clock
	// Observe is told what happens. All calls come from the goroutine of Download, one after another; a call that
	// blocks holds up the download. nil means nobody watches.
	Observe func(Event)
}

// Clock is the time Download lives in: the wall clock and waits for it to advance. The term of a silent attempt and the
// beat of progress events are timers of the runtime. Implementations are used from several goroutines.
type Clock interface {
	// Now returns the wall time; a monotonic reading in it is used when there.
	Now() time.Time
	// Sleep returns nil after d, or the context's error as soon as it ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// Kind says what an Event tells.
type Kind int

// Kinds of events.
const (
	Connecting       Kind = iota // a server is asked; nothing is known yet
	WaitingForWindow             // Options.NotBefore is in the future: StartsAt, Wait
	Queued                       // the server is busy: Wait, NextTry, and what it told of Position, StartsAt, Earliest, Latest, Class
	Downloading                  // bytes arrive: Bytes, Total, BytesPerSecond, Left
	Retrying                     // something broke: Err, Wait, NextTry
	Verifying                    // the file is read to check it: Bytes of Total checked so far
	Restarted                    // what was got cannot be used and the download starts from the first byte: Message says why
	Done                         // the file stands at its place
)

// kindNames are the words of Kind.String, by Kind.
var kindNames = [...]string{"connecting", "waiting-for-window", "queued", "downloading", "retrying", "verifying", "restarted", "done"}

// String returns the kind as one lower-case word fit for JSON, such as "queued".
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Event is one thing that happened to a download. Kind says which fields are set; Bytes, Total and Kept are always.
type Event struct {
	Kind Kind
	// At is when it happened, by Options.Clock.
	At time.Time

	// Position is the place in the queue from 1, 0 when the server did not tell.
	Position int
	// StartsAt is when the download is expected to start, Earliest and Latest the interval around it; zero when not told.
	StartsAt, Earliest, Latest time.Time
	// Class is the class the server applied, empty when it did not tell.
	Class string
	// Wait is how long it waits now, NextTry when it asks again.
	Wait    time.Duration
	NextTry time.Time

	// Bytes is how much of the object is there, from earlier runs too (of Verifying: how much is checked).
	Bytes int64
	// Total is the size of the object, -1 while unknown.
	Total int64
	// Kept is true when Bytes survive a stop for the next run; those of a download in one stream do not.
	Kept bool
	// BytesPerSecond is the rate of the last seconds, 0 while unknown; Left is the time the rest takes at it, 0 while unknown.
	BytesPerSecond float64
	Left           time.Duration

	// Err is the fault behind Retrying, without addresses' queries or credentials.
	Err error
	// Retries is how much of the budget of faults is spent.
	Retries int
	// Message is one sentence in English for people, without a full stop; it may be empty.
	Message string
}

// Result is what a finished Download made.
type Result struct {
	Path    string        // the file, Options.Output
	Bytes   int64         // its length
	SHA256  string        // its SHA-256 in lower-case hex
	Waited  time.Duration // time in queues
	Took    time.Duration // time of the whole call, waits included
	Resumed bool          // true when bytes of an earlier run were used
	Retries int           // real faults it survived
	ETag    string        // entity tag of the object, empty when it has none
}

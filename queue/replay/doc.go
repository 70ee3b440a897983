// Package replay writes down every call that a queue's core received, with the decision it gave, and proves later that the core decides
// the same when it is fed the same calls. An operator's question "why did this client wait" becomes a file that can be run again, and an
// acceptance test can hold a running process against the core.
//
// A Recorder belongs to one shell around the core (queue/memory), which calls one method for each call of the core, under its own
// lock and in the order of the calls. Replay feeds such a log to a fresh queue.Scheduler; Parse only reads it.
//
// # Format, version 1
//
// Lines of fields that one space separates, each ended by a line feed. Times are nanoseconds on the shell's monotonic clock, as the
// core saw them (never going back); sizes are bytes. The first line is "arkvory-decisions 1". Every other line is one call:
//
//	policy    NOW POLICY                              a fresh core; what was known before is void
//	configure NOW POLICY                              one that the core took: a refused one changes nothing
//	ask       NOW ASK = VERDICT
//	hold      NOW ASK WAITER = VERDICT                WAITER: number of the held request, 0 = not held
//	withdraw  NOW WAITER OK = VERDICT                 OK: 1, or 0 when it had its answer before
//	depart    NOW WAITER OK
//	leave     NOW KEY
//	progress  NOW RESPONSE BYTES
//	finish    NOW RESPONSE FIRST END COMPLETE         the bytes [FIRST, END), COMPLETE: 1 or 0
//	abandon   NOW RESPONSE
//	tick      NOW = STATE
//	drain     NOW
//	grace     NOW UNTIL GATHER                        GATHER is missing in older logs: 0
//	act       NOW KEY ACTION CLASS OK                 of an operator: front, back, class, pause, resume, kick; CLASS "-" but of class
//	gate      NOW OPEN                                1: new sessions can be served
//	windows   NOW SHARES EDGE ...                     SHARES by class per mille: 1000,1000,0,1000; EDGE AT:CLASS:SHARE:SEED, 0..256 of them
//
//	KEY       PRINCIPAL OBJECT CLIENT                 see below
//	ASK       KEY CLASS PROTOCOL SIZE VALIDATOR RANGE TICKET [peek] [bundle:MEMBER]
//	          PROTOCOL 1 or 0; SIZE -1 = unknown; VALIDATOR "-" = none; RANGE none, multi, open:X, bounded:X:Y (both
//	          inclusive), suffix:N; TICKET the arrival that a ticket proves, "-" = none; "peek" of a request that only asks; MEMBER the hash of
//	          the object in its bundle, in hex, as the caller gave it. Older logs have neither word
//	VERDICT   OUTCOME CLASS POSITION WAITED CHECKIN ARRIVAL STARTS EARLIEST LATEST FLAGS RESPONSE
//	          STARTS, EARLIEST, LATEST "-" without an estimate; CHECKIN "-" when the queue is full or new ones are refused; FLAGS of h held,
//	          y yielded, s started, "-" = none; RESPONSE the number of the admitted response, 0 = none
//	STATE     ACTIVE WAITING PAUSED HELD SLOTS FREE   after the call; ACTIVE and WAITING by class: 1,0,0,0
//	POLICY    STRATEGY SESSIONS RESERVE PERPRINCIPAL WEIGHTS SESSIONMIN IDLE AGING RANGES LIMIT LIMITPERPRINCIPAL PREEMPT ELASTIC BAND [MODE]
//
// What the call settled and ended follows on its line, in order, each behind " | ":
//
//	settled WAITER VERDICT
//	ended   CLASS REASON STARTED WAIT PROMISED DURATION BYTES
//
// A call in which the core panicked is not in the log: a fresh core's policy line stands in its place.
//
// Numbers of responses and of held requests count from 1 in each log and are never used twice.
//
// # What is not in it
//
// No name and no secret: parts of keys and validators are written as the first 16 hex digits of their SHA-256 (64 bits: among a million
// sessions two share one with a probability of 1 in 30 million) and replayed under that form. The hash has no key, so that a log can be
// matched with an id one knows; whoever can guess a name or an address can confirm it. Treat a log as confidential as an access log.
//
// The core decides by equality of keys and never by their text, with two exceptions. The retry time of a request that is refused (limit-reached, rejected) is spread by
// the key: it is left out. At the opening of a window arrivals of newcomers are drawn by the key: the one in the log is taken over when it is one that could have been
// drawn. queue.Scheduler.Shuffle apart from openings has no line.
//
// # Equality
//
// Every field of a verdict, every settled request, every ended stay and the state after every tick must be equal, to the
// nanosecond. Estimates are computed in floating point: a log is replayed exactly on the architecture it was written on; another one may
// fuse multiplications and differ in the last digits.
//
// # Cost, bounds, failure
//
// A call appends some 200 bytes to a buffer and hashes what it writes; nothing waits for the writer. A short-lived goroutine writes when
// 64 KiB are there and after every tick, so that the file is at most a tick behind. At most MaxBuffered bytes wait for the writer or are being written, and a line is no longer
// than that (one call that ends some 250,000 sessions): beyond it, or after a failed write, the recorder stops for good, keeps the reason and costs a comparison a call; a log with a hole would prove nothing. The log then ends
// somewhere, perhaps inside a line; what is before is whole. A log that ends after a line is a complete log of its beginning. A damaged line is an error
// with its number; nothing behind it is replayed.
//
// Rejected: a binary format (a log that nobody can read is not consulted); JSON lines (four times the size for the same fields); comparing starts
// only (a position that is off by one shows the defect hours before a start does); a goroutine for the recorder's life (somebody would have to end it); writing under the
// queue's lock (a disk that stalls would stop all downloads).
package replay

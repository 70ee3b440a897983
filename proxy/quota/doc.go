// Package quota counts what each principal was sent in the present day and the present week, and says who has used up its quota (X9).
//
// # Model
//
//	day  = [00:00, next 00:00) of the wall clock in Rules.Zone      week = from Monday 00:00 to the next Monday 00:00 there
//	used(p, period) = download body bytes that p was sent since the period began
//	over(p) = used(p, day) >= dayBytes(p) > 0,  or used(p, week) >= weekBytes(p) > 0
//
// A day has 23 or 25 hours where the clock changes; where a zone skips midnight the day begins at the first moment that bears its date, and where midnight
// comes twice at the first one. A quota that is used up resets when its period ends; of two the later end counts. Limits are compared when somebody asks:
// a raised one lifts at once, a lowered one holds at once.
//
// An [Account] is one principal's counter. It has one number that only grows and two marks of it, where the day and where the week began:
//
//	used(day) = bytes - dayMark      used(week) = bytes - weekMark
//
// so that counting is one atomic addition, without a lock and without memory, however many connections the principal has.
//
// # Who calls it
//
// The proxy opens an account for a response that it sends, adds to it with each quantum, closes it with the exchange, and asks Over before it admits something
// new. Its tick calls Roll, its goroutine of files calls Save. There is no clock here: every moment is given, on the wall clock, whose days are meant. Everything
// is safe for concurrent use. Lock order: saving, turn, a shard; nothing is called under the latter two. A disk that hangs holds up Save alone.
//
// # Invariants
//
//	I1  0 <= dayMark <= bytes and 0 <= weekMark <= bytes of every account, at every moment.
//	I2  A ledger never holds more accounts than its capacity.
//	I3  An account that an exchange has open is not forgotten.
//
// # Bounds
//
// At most Settings.Principals accounts are kept (65536 without a setting). Only principals with a limit have one: without quotas nothing is counted and a request
// costs one atomic load. When the ledger is full, a newcomer takes the place of one of a few others that nobody has open: of one without use in the
// present periods, else of the one with the least use among them. What that one had used is forgotten, which Snapshot.Forgotten counts; those
// who come near their quotas are never the least. Where all are in use the newcomer is not counted (Snapshot.Uncounted): a full ledger lets through
// rather than refuses strangers. Accounts without use are dropped when a period begins.
//
// # Times between
//
// Bytes that are sent after a period's end and before the next Roll, a second at most, count to the period that ended. Over goes by the moment it is
// given and not by Roll: nobody waits for the tick to be let in again. A wall clock that is set back keeps the counts and takes the period it is in then.
// When the zone changes, the counts stay and the periods are those of the new zone: the present day is the present day.
//
// # Restart and failure
//
// Save writes the counts to a file and Load reads them: at most what was sent since the last write is lost, ten seconds as the proxy calls it. A count is taken
// over when the period it was counted in still lasts. A file that cannot be read or understood is a problem that is told, and the count starts from zero: the
// other choices were to refuse everybody or to stop. The next Save replaces it.
//
// The file holds principal ids in clear, mode 0600. They are no secrets: package identity makes them so that no token, signature or cookie is ever part of one,
// only keyed hashes of such, and the settings record beside it names principals too. Hashing the rest (user names, addresses) under a key that lies in the same
// directory would hide them from nobody who can read it.
//
// # Several processes
//
// Each process counts what it sent itself. Behind a balancer over n processes a principal gets up to n times its quota; processes that share one state
// directory overwrite each other's counts, so give each its own.
//
// # Decisions
//
// Counted is what was sent, not what was asked: a download that breaks costs what it took. Running downloads go on over the quota: cut ones would be
// fetched again from the start, by clients that mostly cannot resume, and cost more than they save. Rejected: a sliding window of 24 hours (nobody can tell when he
// may go on), counting when the exchange ends (a download of hours would be invisible to the limit), a global lock, one shared account for
// everybody beyond the capacity (a client that makes up principals would lock out all newcomers).
package quota

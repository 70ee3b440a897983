// Package admission admits single requests of one direction: uploads, and downloads that are no sessions.
//
// A Gate has Capacity places, at most PerPrincipal of them for one principal. Who finds none waits, at most WaitLimit
// requests in all and WaitPerPrincipal of one principal, for at most Timeout. Freed places go to the waiting principals in
// turns: the ring's first principal below its limit gets one place for its oldest request and moves to the end. A principal
// at its limit is passed over and keeps its turn.
//
// A refusal (*BusyError) says when to come back:
//
//	RetryAfter = (waiting + 1) / rate x (1 + random 0..1/4), within 2 s..10 min
//	rate       = releases / time since the oldest of them, of the last 256 releases within a minute
//
// The time is at least a second, so that one release does not promise thousands; without a release in the last minute the
// first factor is one waiting term (Timeout).
//
// Enter never blocks: a request that must wait is a Wait, which its owner polls or is told of, and may cancel. Acquire is Enter with
// the caller's goroutine on the wait's reused channel: it blocks its caller and nothing else. A term is ended by
// Tick from outside, a departure by the channel that Acquire gets. When a departure and a turn meet, the place is given back
// before Acquire returns. An uncontended Acquire and Release cost one short lock each and no allocation; a Place is a value
// with a generation, so releasing it twice is harmless.
//
// The clock and the random source are Options, so that a simulation over this gate repeats itself to the byte.
//
// Settings may change at any time: places above a lowered capacity are kept until released. Drain refuses all waiters and
// newcomers with ErrDraining. State is the process's own and is lost with it.
//
// Rejected: golang.org/x/sync/semaphore (no turns, no bound on waiters), a timer per waiter, a constant Retry-After (every
// refused client would return at once, and to a queue of any length).
package admission

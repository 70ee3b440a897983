// Package memory is the queue of one process: the scheduler core of package queue behind a lock, a tick and wake-ups.
//
// The proxy calls FreeSlot on every GET, Admit or Hold for requests that may be sessions, and Progress and Finish or
// Abandon on the grant. Exactly one goroutine runs Run, again if it panicked; there is no other goroutine and no timer: a held request is its
// own handler goroutine waiting on one reused channel.
//
// A hold ends, whichever comes first, by a grant (in the call that freed the slot, not at the next tick), by the end of
// its wait (at a tick), by the client's departure, by a policy under which the object needs no session, or by a drain. A
// departing client and its grant may meet: the grant is then abandoned before Hold returns, and the slot goes on to the
// next. A client that was answered keeps its place until its no-show time; one that left while it was held is out of
// the line at once and remembered at its arrival: stock clients time out early and come back.
//
// One mutex guards the core; it is a leaf and is held for the core's decision only, at most for a tick. FreeSlot reads an
// atomic copy of the core's answer, Progress adds to an atomic counter that the tick collects. The observer of ended
// sessions runs outside the lock and may call the queue; records of concurrent calls may reach it in any order.
//
// A tick comes every 500 ms, or after ten times its own duration when that is longer: a huge queue costs rarer decisions,
// never more than a tenth of a core. All times are those of Options.Clock, which is monotonic; a change of the system's
// time moves nothing. Nothing survives the process.
//
// Rejected: a goroutine and timer per held request (memory and wake-ups grow with the clients that wait), one global pool
// of waiters (a channel then serves several queues and crosses synctest bubbles), a random part in CheckIn (the core
// spreads clients by session number, which is repeatable).
package memory

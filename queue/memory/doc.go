// Package memory is the queue of one process: the scheduler core of package queue behind a lock, a tick and wake-ups.
//
// The proxy calls FreeSlot on every GET, Admit or Hold for requests that may be sessions, and Progress and Finish or
// Abandon on the grant. Exactly one goroutine runs Run, again if it panicked; there is no other goroutine and no timer: a held request is its
// own handler goroutine waiting on one reused channel. (A recorder has a short-lived goroutine of its own while it writes.)
//
// A hold ends, whichever comes first, by a grant (in the call that freed the slot, not at the next tick), by the end of
// its wait (at a tick), by the client's departure, by a policy under which the object needs no session, or by a drain. A
// departing client and its grant may meet: the grant is then abandoned before Hold returns, and the slot goes on to the
// next. A client that was answered keeps its place until its no-show time; one that left while it was held is out of
// the line at once and remembered at its arrival: stock clients time out early and come back.
//
// One mutex guards the core; it is a leaf and is held for the core's decision only, at most for a tick. FreeSlot and Policy read atomic
// copies of the core's answers, Progress adds to an atomic counter that the tick collects. The observer of ended
// sessions runs outside the lock and may call the queue; records of concurrent calls may reach it in any order.
//
// A tick comes every 500 ms, or after ten times its own duration when that is longer: a huge queue costs rarer decisions,
// never more than a tenth of a core. All times are those of Options.Clock, which is monotonic; a change of the system's
// time moves nothing. Nothing survives the process.
//
// # Decision log
//
// With Options.Recorder every call of the core is written down with its decision, in the order of the calls and under the lock
// (about 2 us a request, for hashing; package replay has the format and replays it). Without one the only cost is a comparison. Times
// reach the core through one place that never lets them go back, so that the log holds the times by which the core decided.
//
// # The operator's desk
//
// Act, Session, Sessions, CountSessions, Principals and Overview serve an operator; package queue says what the actions mean. An action is carried out in one hold of
// the lock, held requests that it concerns are answered in it, and the responses of a kicked session are cut before it returns, with the lock free: each
// grant names how (OnCut). A response that ends at the same moment is not cut: Finish and Abandon take the name back before they return, so that a
// connection that serves its next request is never hit. A listing takes the lock for 64 sessions shown or 1024 looked at, at most some 0.2 ms, and gives it and
// the processor back in between; it shows different moments of a queue that moves. Names of principals are copied 1024 at a time and looked at with the lock free.
//
// Ids of sessions outlive a fresh core, as do the mode and the gate. Lost with the old one are pauses, moves and whom an operator kicked; a response that
// was cut is not taken in again.
//
// # Panics
//
// A panic under the lock is a defect of the core. Its caller gets it, with the stack of the defect; the lock is free, and the queue goes
// on with a fresh core, because what a decision left half-way can be worse than no memory: a slot that nobody frees, a tree that never ends.
// Nothing is read of the old core but its counts and records. The fresh one has the same policy, drain and grace, and is fed with
// what the shell itself holds:
//
//   - each open grant, at its session's arrival: its slot stays taken until its response ends;
//   - each held request, at its session's arrival, the higher class and then the earlier first: it waits on or, as slots of
//     sessions without a response are free now, starts;
//   - the counts and the judged promises: Snapshot continues them, where the old core cannot even be read from what was told last.
//
// What the panicking call would have given to its caller, a grant or a place among the held, is taken back: nobody would end it. The same holds for a panic of
// the observer, behind which the core is whole. The call is not in the decision log.
//
// Of a bundle the fresh core knows the objects whose responses run; the others add up when they are asked for again.
//
// Lost are the waiting and remembered sessions of clients that are not here (they join again when they come back, at the arrival of
// their ticket if they have one), the slots of sessions between two responses (the next range asks for one again), coverage (completion
// waits for the idle pause), the measured rate (estimates begin anew) and credit between classes. When feeding panics as well, the fresh core
// stays empty: held requests are answered LimitReached with a CheckIn of 2 s, and open grants go on without a session, which
// can be active sessions beyond the slots until they end. A response that has no slot in the fresh core, because the slots became fewer since, goes on
// in the same way.
//
// The way there costs one deferred call an operation, and in each grant 80 bytes that a fresh core must know (208 bytes and 0.4 us for a pair of Admit and
// Finish in all).
//
// Rejected: going on with the old core when its invariants hold (they are checks, no proof); ending the queue for good
// with an error (every big download would need the operator, for a defect that one request may have met); per-request admission from then on
// (it forgets all order until the next restart).
//
// # Windows
//
// SetWindows takes the schedules of the classes and the wall clock. The core gets their edges on its own clock, eight days ahead: translated at once, each minute, and
// when the two clocks have moved apart by more than 100 ms (the wall clock was set, or the machine slept). A translation that says the same within that is not
// handed on, so the core's plan, and the recorder's log, change once an edge. A clock that is set opens or shuts windows from the next tick on; waiting sessions stay, those with
// slots go on. After a panic the fresh core gets the windows behind the open grants, which it then counts as begun inside.
//
// # Rejected elsewhere
//
// A goroutine and timer per held request (memory and wake-ups grow with the clients that wait), one global pool
// of waiters (a channel then serves several queues and crosses synctest bubbles), a random part in CheckIn (the core
// spreads clients by session number, which is repeatable).
package memory

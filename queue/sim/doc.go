// Package sim is a discrete-event simulation of fleets of clients over the scheduler that ships: queue.Scheduler decides about sessions
// and queue/admission about single requests, called with virtual time. What it shows of a policy is what runs.
//
// # Model
//
// Transport is fluid. The link carries LinkBytesPerSecond, shared as the governor of the sidecar does: equally between the
// principals with running responses, within one between its responses, each client at most at its own rate, what somebody cannot take
// going to the others (water-filling):
//
//	rate of a taker = min(its cap, weight x level), the level being the greatest at which the sum fits the link
//
// Rates change only when the running responses do; between two changes progress is linear, so an event per end of a response
// is exact. There are no round trips: the next range begins at the moment the last one ends.
//
// The shell is imitated: Tick every queue.TickEvery with the bytes delivered since told before it, requests of plain clients held for
// Hold at most (observed at ticks), at most HoldLimit at once and HoldPerPrincipal of one principal, answers of the core handed out in
// the call that made them.
//
// # Clients
//
// A protocol client asks for ranges of RangeBytes, RangesAtOnce at a time. Told to wait it comes back after CheckIn in whole seconds, rounded
// up as Retry-After is, plus up to Jitter of it; it never tires of that. A broken connection costs its budget (Faults an
// operation, RequestFaults a range), counts for nothing and is asked for again. Where single requests are admitted
// (strategy shared, small objects) a refused client pauses as a whole for the told time, then tries with one request.
//
// A plain client asks for the whole object and is held; a refusal, a silence beyond its patience and a broken body are repeated
// as its profile says (Profiles), and then it gives up: it counts as failed. NATClients of them share address, key and object.
//
// A share of the clients vanishes at a random moment if it waits then, another after a random part of its bytes. Nobody is told: the core
// learns of it as it does in life.
//
// # Reference and measures
//
// Equal sharing is ideal processor sharing of the same arrivals, sizes and own rates with no admission at all, computed exactly, all
// clients alike. Mean and lateness compare all clients that the scenario lets stay with the same ones of the reference. One that gave
// up is not left out, which would flatter: it is later, and counts as done when everybody was, or when it would have been under equal
// sharing if that is later.
//
//	linkBusy  = bytes carried / (link x time), over the time in which anybody waits
//	idleSlots = slot-seconds free although somebody waited who could use them (the reserve is of use to Interactive only)
//	            / (slots in force x that time)
//
// A client waits while it wants bytes, gets none, and does not pause after a fault. Promises are all starts told in answers, judged when
// the client starts: within 10 % of the promised wait or a minute, and not later than the told p90. Those of a client that ends
// without a start are broken if they were due before, else open (counted apart). Under shared nothing is promised. Where nothing was
// there to measure, a measure is no number, and null in JSON. A position that rose between two contacts is put down to what
// queue.Scheduler.Moves counted between them; what is left is unexplained, and there must be none.
//
// With Windows the run has a time on the wall (Begin): the core is told the edges each hour, eight days ahead, as by the shell. A class that may start nobody does not count
// as waiting for linkBusy and idleSlots. startsOutside counts first responses outside the window by the calendar itself. The reference of equal sharing knows no windows.
//
// # Determinism
//
// All randomness comes from Seed, in separate streams for the population, the run and the gate. Events of one time go in the order in
// which they were planned, ends of responses before them, the tick last. The same settings give the same trace to the byte on
// one architecture (floating point is not promised to round alike on another).
//
// # Failure
//
// Invalid settings are refused with every fault at once. A run that is not over at Limit is ErrTooLong; one in which clients wait and
// nobody gets a byte for hours is ErrStalled. After the last client the core is given the time to forget everybody, and a session,
// place or wait that is left over then is an error, as is an invariant of the core that does not hold (InvariantsEvery), and a run in
// which the bytes of all responses are not what the link carried. Memory is bounded by the number of clients: of promises not judged
// yet some 4 million are kept, beyond that every second, fourth, ... of a client, which then counts twice, four times, ...
//
// # Decided, and rejected
//
// Packets, TCP and round trips: they change rates by a little and nothing about the order, at a thousand times the events. A goroutine a
// client in virtual time (synctest): nice to read, too slow by orders of magnitude, and not repeatable to the byte. Calling
// queue/memory instead of the core: its holds block goroutines. One event a response in the heap: a client's responses have
// equal rates, so one number a client does, and the next end is looked up among the few that run.
//
// It is called by arkvoryctl simulate and by tests. It imports queue and queue/admission.
package sim

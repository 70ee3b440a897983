// Package queue is the pure core of the download scheduler: it decides which client may download which whole object
// now, and tells the others when their turn comes. It has no clock, goroutine, I/O, log or lock. A shell (queue/memory,
// and whatever else shares the core) calls it with the monotonic time of each event and serialises the calls.
//
// # Why sessions
//
// Serving equal files one after another halves the mean completion time against sharing the link between all of them:
// n files of b bytes at R bytes/s end at b/R, 2b/R, ..., nb/R instead of all at nb/R. So the unit of admission is the
// session, one client's download of one object, and not the request. A session holds a slot from its first response to its
// last byte; its ranges need no further admission, at most Policy.RangesPerSession responses at once.
//
// # States
//
//	          Ask/Hold                       slot free, in the marks, client present
//	(none) ------------> waiting ------------------------------------> active
//	                      |  ^ |                                        | | |
//	  no-show, leave,     |  | | policy no longer makes it a session    | | | all bytes delivered, leave
//	  drain               v  | v                                        | | v
//	(none) <--------------+  paused <-----------------------------------+ | (none)
//	                          ^ a held plain client that left (from waiting)
//	                          | idle longer than IdleFor, client gone     |
//	(none) <------------------+ PauseMemory (10 min)
//
// paused holds no slot and no place; it remembers arrival and coverage, so a returning client waits again at its old
// arrival and never ahead of those who waited longer. Every stay in waiting+active ends with exactly one End record.
//
// # Order
//
// Between classes: stride scheduling (Waldspurger and Weihl 1995). Class c has pass P(c) and stride S(c) = 2^30 / weight(c).
// The next slot belongs to the non-empty class with the least pass (the higher class on a tie), which then pays S(c). A
// class that becomes non-empty starts at max(P(c), V), V being the least pass of the non-empty classes at the last grant,
// so that an absence earns nothing; a class whose clients did not come keeps at most one stride of the lightest class as
// credit.
//
// Within a class: principals take turns, each is FIFO. The lane of a principal in a class has a round r; its sessions by
// (arrival, number) have the turns r, r+1, r+2, ... All sessions of the class are ordered by (turn, arrival, number) in
// one balanced tree with counts and byte sums. A grant moves the lane to r+1; a lane that becomes non-empty starts at the
// class's current round. A session that gave its slot up and returns gets the turn back that was paid for it.
//
// Aging lifts a waiting session by floor(time waited / AgingEvery) classes, never above Release; it then stands in the
// higher class's lane by its arrival. The applied class that is reported does not change.
//
// A position is counted, not enumerated: for a session of rank k (from 0) in class c,
//
//	pass   = P(c) + k S(c)
//	ahead  = k + sum over d != c of min(len(d), number of j >= 0 with P(d) + j S(d) before pass)
//
// which costs O(log n), as do joining, leaving and granting. Positions ignore the reserve and shares, which bind only at
// the moment of a grant.
//
// # Who gets a free slot
//
// free = Sessions - active; classes below Interactive may use min(free, Sessions - Reserve - active below Interactive) of
// them. No slot is kept for an absent client. The first w sessions of the order are marked, and the first marked client to
// come takes the slot; a held request counts as come, and is answered in the same call that freed the slot.
//
//	w = 2 (free + sessions that end within 5 s) (1 + u)
//
// u being the ticks in a row in which a free slot found nobody, so that clients which never return do not keep it empty. A
// principal with PerPrincipal active sessions is passed over while another one's session heads the order; after 20 such
// ticks it may take what the others leave of w.
//
// # Estimate
//
// The rate R is the peak one-second rate of the last minute, not below the configured band. The peak and not the mean:
// the mean falls while slots idle, promises later starts, clients return later and slots idle more. An active session of
// remaining bytes m opens its slot in m n / R seconds, n being the sessions with a running response. Every session ahead
// takes the first slot that opens and keeps it for h = mean size of those ahead x min(Sessions, active + waiting) / R. The
// start is the least T at which more slots have opened than sessions are ahead:
//
//	sum over slots with open time o <= T of (floor((T-o)/h) + 1)  >  ahead
//
// Classes below Interactive count only the slots outside the reserve. The interval reaches from 3/4 of the point (some of
// those ahead never come) to the point times peak/mean within 1.25..3, plus one tick. Without any rate there is no estimate
// (EstimateKnown false), never a made-up one.
//
// A waiting client asks again after 2 s at its first contact (a crowd of newcomers is spread over up to 4 s more, never
// beyond halfway to the start), later halfway to its start within 2 s..5 min (from 1 s when
// marked), less a quarter at most that is fixed per session, so that clients told the same time do not come together. Who
// is not back after 1.5 times that plus 15 s is a no-show: dropped, and free to join the end again.
//
// # Completion
//
// Coverage is the set of byte intervals of responses that were sent to their end, at most 64 (beyond, the shortest is
// forgotten and completion waits for the idle pause). The start is the smallest offset asked, tail reads (suffix, or a
// bounded range to the last byte, not from offset 0) aside. The session is complete when [start, size) is covered and no
// response runs. After nothing but tail reads it keeps the slot only 5 s without responses. A changed validator forgets
// start and coverage.
//
// # Bounds and failure
//
// Sessions of all states <= QueueLimit (paused ones make way, the oldest first), active and waiting ones of a principal <=
// QueuePerPrincipal, key parts <= 256 bytes (longer ones are hashed), 64 intervals a session. Beyond them requests are
// refused with LimitReached and nothing is kept. Tick costs what is due and, while slots are free, the marks; it never
// sorts the queue. Nothing survives a restart; Verdict.Arrival is what a ticket would sign.
//
// # Decided, and rejected
//
// Sorting the queue on every tick (simple, O(n log n) each time, and positions half a second old): rejected for the counted
// order. A virtual finish time per session by size: needs sizes to be honest across principals, and equal turns are what
// operators expect. Marks computed at each contact only: the marks are also who is told to come back within a second.
// Freeing the slot on every broken response: a client on a poor line would queue again after each break, so only a client
// known to have left (Abandon) loses it at once. One due time per session in one heap instead of a timer or list per rule:
// a session has never more than two things to wait for, and the earlier one decides.
package queue

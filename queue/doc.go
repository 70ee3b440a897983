// Package queue is the pure core of the download scheduler: it decides which client may download which whole object
// now, and tells the others when their turn comes. It has no clock, goroutine, I/O, log or lock. A shell (queue/memory,
// queue/sim, queue/replay) calls it with the monotonic time of each event and serialises the calls. The same events give the
// same decisions in every process.
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
//	(none) ---> waiting -----> active <----> yielding
//	              ^ |  ^         |  |           |
//	              | v  +---------|--+-----------+
//	             paused <--------+         any of them ---> (none)
//
//	(none)    Ask, Hold                                            waiting
//	waiting   slot free, near enough to the front, client here     active
//	waiting   held plain client left; policy makes it no session   paused
//	waiting   no-show, leave, drain                                (none)
//	active    idle beyond IdleFor (a bundle: BundleHold)           paused
//	active    client gone (Abandon of the last response)           paused
//	active    chosen, and it asks while a response of it runs      yielding
//	active    chosen, and it asks while none runs                  waiting, anew
//	active    all bytes delivered, leave                           (none)
//	yielding  last response ended                                  waiting, anew
//	yielding  a slot freed, the head is gone                       active
//	paused    Ask, Hold                                            waiting, at its old arrival
//	paused    PauseMemory (10 min; a complete bundle: IdleFor)     (none)
//	paused    room for others, leave, drain                        (none)
//	waiting   an operator pauses it                                parked
//	active    an operator paused it, and it asks for more          parked, at its old arrival
//	parked    an operator resumes it                               waiting, at its old arrival
//	parked    no-show                                              paused
//	parked    leave, drain, policy                                 as of waiting
//	any       an operator kicks it                                 (none)
//
// paused holds no slot and no place; it remembers arrival, coverage and the time that aging counts, so a returning client
// waits again at its old arrival and never ahead of those who waited longer. yielding still holds its slot. Every stay in
// waiting, active and yielding ends with exactly one End record; one that gives its slot up begins another.
//
// # Order
//
// Between classes: stride scheduling (Waldspurger and Weihl 1995). Class c has pass P(c) and stride S(c) = 2^30 / weight(c).
// The next slot belongs to the non-empty class with the least pass (the higher class on a tie), which then pays S(c). A
// class that becomes non-empty starts at max(P(c), V), V being the least pass of the non-empty classes at the last grant,
// so that an absence earns nothing; a class whose clients did not come keeps at most one stride of the lightest class as
// credit.
//
// Aging lifts a waiting session by floor(time waited / AgingEvery) classes, never above Release; it then stands in the
// higher class by its arrival. The applied class that is reported does not change.
//
// Within a class under Ordered: principals take turns, each is FIFO. A lane is the waiting sessions of a principal in a class
// by (arrival, number); it has a round r and a ring key, arrival and number of the session that made it non-empty, or of an earlier one that came back since. Its
// sessions have the turns r, r+1, r+2, ..., and the class is ordered by (turn, ring key). What the order holds is one entry a
// turn that names the lane, not the session: whoever stands i-th in the lane has the turn r+i, so one that leaves from the
// middle takes the last entry along and those behind it move up untouched. With R the turn of the last session of the class
// that took a slot, a grant does
//
//	r = max(r, R-1)        a lane passed over for long keeps one round as credit
//	R = max(R, r); r++     whichever session of the lane took it
//
// and a lane that becomes non-empty has r = max(r, R). A session that returns from a pause gives the turn back that it paid.
//
// Under a size order the class is ordered by (key, arrival, number), with a key that does not change while the session waits:
//
//	smallest-first  arrival + AgingEvery log2(size)   ns; AgingEvery = 0: size in bytes alone
//	fair-sojourn    F = V(join) + remaining bytes      bytes
//
// Under smallest-first AgingEvery of waiting counts like half the size: one of S bytes is overtaken by one of s bytes only when
// that comes within AgingEvery log2(S/s) after it. Without aging nothing bounds overtaking. F is the finish under equal sharing
// (Friedman and Henderson 2003): V grows by delivered bytes / N, N being the sessions with F > V that wait, are active, or are
// complete and would still be served. F is kept over a yield; a pause leaves the virtual system. Only
// newcomers with less than F - V to come overtake, and V moves on with what is delivered. A client that began at offset X counts without the X bytes
// once it is complete: work that nobody asks for would otherwise slow V down for ever.
//
// A position is counted, not enumerated: for a session of rank k (from 0) in class c,
//
//	pass   = P(c) + k S(c)
//	ahead  = k + sum over d != c of min(len(d), number of j >= 0 with P(d) + j S(d) before pass)
//
// Orders are B+ trees (64 entries a leaf) with counts and byte sums. Positions ignore the reserve and shares, which bind only
// at the moment of a grant. Moves counts what lets a position rise.
//
// # Who gets a free slot
//
// free = slots in force - active; classes below Interactive may use common = min(free, slots - Reserve - active below Interactive)
// of them. No slot is kept for an absent client, and nobody is marked in a list: a session whose client is here may take one when
//
//	ahead < w        w = 2 (free or common + sessions that end within 5 s) (1 + u)
//
// u being the ticks in a row in which a free slot found nobody, so that clients which never return do not keep it empty.
// Sessions of principals with PerPrincipal active ones are passed over, that is not counted as ahead and kept from the slot,
// while another principal's session heads the order; from u = 20 (shareGrace) on they may take what the others leave, all sessions
// ahead counted. Without a common slot only Interactive ones count. A held request counts as here: at each slot that frees and each
// tick the first held one that may takes it, in the call that freed the slot.
//
// # Peeking
//
// A request with Ask.Peek is answered as any other, but takes no slot and begins no response: where it would be Admitted the outcome is Ready, of an
// active session RangesBusy while all places are taken. It is for a page that shows the place and starts the download itself. It makes or refreshes the
// session, so that its client keeps the place as long as it peeks; it never counts as here, is never held, and no slot is kept for it:
// who is Ready may be told to wait a moment later. A session that was chosen to give its slot up does that at a request for bytes, not at a peek.
//
// # Bundles
//
// A plain client that pulls an image fetches its layers three or so at a time and the next one as soon as one is there. As sessions of
// their own they would queue again and again, and all clients would end at the end. With Ask.Bundle the object of the key is the repository, and Ask.Member says
// which object of it a request is for: they are one session with one slot and one arrival, whose responses share RangesPerSession.
//
//	size      = sum of the sizes of the objects known so far                          bytes
//	remaining = sum of (size - delivered) - bytes of running responses, at least 0    bytes
//
// delivered grows by what responses brought to their end, up to the size of the object; a broken or abandoned one gives its bytes back. There is no coverage
// and no validator. An object asked again counts once; when the bundle is not active and the object was delivered in full, as to come once more. 64 objects
// are told apart, what comes beyond them is one more, in which 256 hashes are.
//
// A bundle is never known to be complete, as its client may ask for one more object. It keeps its slot for BundleHold (2 s; IdleFor if that is less) without a
// response, since docker, skopeo and containerd ask for the next layer at once, and is paused then: completed when everything it asked for was delivered, remembered
// for IdleFor so that downloads started within that time keep the arrival of the first; else idle, remembered for PauseMemory. It comes back as any paused
// session does. A request for an object of at most SessionMinBytes is PerRequest and touches nothing; a change of the policy looks at the largest
// object. The first request decides whether a session is a bundle; protocol clients have none, and so nobody yields one.
//
// What later layers are is not known while a bundle waits. So under a size order it stands where the known ones put it, and moves back
// when it asks for more (under fair-sojourn with a new F; the F of an active one stays, and it leaves the virtual system with its slot). Under
// Ordered a size moves nobody. An active bundle counts as ending soon by what it is expected to want; one between two layers does too, and one
// more layer then makes it a wrong guess that costs the first waiting clients a check. Estimates expect more than is known:
//
//	expected = known x G(k)        G(k) = fetched / known a second after the start, over the last bundles with k = 1, 2, 3, 4 or more objects known then
//
// and the BundleHold behind it. G is 1 before the first of such bundles is complete: promises made before that are early.
//
// # Preemption
//
// At a tick without a free slot for the head of the order, if that head may take one, and its client is here or was told to come within
// 2 s, at most one active session is chosen: of a protocol client, with its slot for a minute, not chosen before, and
// with a slot of use to the head (not one of the reserve for a head below Interactive). It must be of a lower class, or of a principal above
// its share while the head's is below; under fair-sojourn also of the same class with a later F, when the head, starting with the
// next slot that opens, would end more than a minute later than under equal sharing. Lowest class first, then most above the share,
// then most bytes to come. When it asks next, and all this still holds, it is told Queued with Yielded; the slot is free when its last
// response ends. It then waits at a new arrival, without age, and takes no slot while the head waits. That is remembered for this
// one wait of the head: a head that got its slot and came back is another matter, so two can not wait for each other. Otherwise the choice
// is void.
//
// # Elastic slots
//
// Between Sessions and SessionsElastic slots open one a second, while somebody waits and no slot is free, for one of three reasons: the last
// second's rate is below 95 % of the capacity (the band, else the peak, halved each hour it is not reached); of those that share the link all end
// within 5 s and slow ones would remain; or what waits is less than capacity / slowRate sessions: n files of b bytes take nb / capacity then, less
// than the b / slowRate of one slow client that starts last, so the last ones all start. One closes each 10 s at 98 % of the
// capacity, and all that are not used when nobody waits. Active sessions are never touched.
//
// # Estimate
//
// The rate R is the peak one-second rate of the last minute, not below the band. The peak and not the mean: the mean falls
// while slots idle, promises later starts, clients return later and slots idle more. While only slow clients run the last R is
// kept, halved each 10 min. A session is slow when after 20 s it has got less than half an even share of R.
//
// The forecast walks the order: sessions that share the link have (R - slow rates) / k bytes/s each, slow ones keep their own rate,
// and of those to come as many are slow as were. Each end starts the next session that the reserve allows. It follows the first 1024
// sessions, 256 when more than 2048 wait; of up to 64 waiting it is made anew for the first contact after any change, of more each
// 5 s, or 100 ms after slots changed hands. Beyond it,
//
//	start = max(last of the walk, (owed + bytes ahead - tail) / R)            seconds
//
// owed being what active sessions have to come, tail the mean of what running ones still have to come when another one starts,
// over the walk's second half. All is divided by the use of the link, the average of rate / R over 30 min while anybody waits, 0.5..1.
// Where the elastic slots will open for the last ones, from the session lastFrom on, lastStart = when that comes + 1 s for each further
// one is taken if it is less. Byte sums take a session for at most 4 TiB, and may lag behind changes in the middle of long lanes.
//
// StartsIn is this start. The interval comes from errors (actual - told) / (told + 10 s) of the last 128 promises that came due, of each
// wait one answer drawn evenly (Vitter 1985) and weighted by how many answers it stands for: empirical quantiles, as in conformal
// prediction (Vovk et al. 2005). The level of LatestIn is steered by whether promises hold (Gibbs and Candes 2021):
//
//	level += 0.02 weight (0.91 - held)        0.7..1.3; above 1 the interval reaches beyond the largest error
//
// Before 12 errors it is a quarter to either side. Beyond the walk 1.28 times the spread of tail / R is added to either side. EarliestIn <=
// StartsIn <= LatestIn always. Without a rate, or beyond a year, there is no estimate (EstimateKnown false), never a made-up one.
// Promises count what was kept.
//
// # Checks and no-shows
//
// A waiting client asks again after 2 s at its first contact (a crowd of newcomers is spread over up to 4 s more, never beyond
// halfway to the start), later halfway to its start within 2 s..5 min (from 1 s near the front), after 15 s without an
// estimate; less a quarter at most that is fixed per session, so that clients told the same time do not come together. Who is not back
// after 1.5 times that plus 15 s is a no-show: dropped, and free to join the end again.
//
// No-shows, lifts and ends of memory stand in one timing wheel (Varghese and Lauck 1987) of 2048 slots of TickEvery. A contact only
// moves a time later and touches no wheel: a session is put again when its slot comes. A tick handles at most 192 + n/2048 due ones, or puts four times as
// many again; the rest wait for the next ticks. Sessions with slots are looked at on every tick.
//
// # Completion
//
// Coverage is the set of byte intervals of responses that were sent to their end, at most 64 (beyond, the shortest is
// forgotten and completion waits for the idle pause). The start is the smallest offset asked, tail reads (suffix, or a
// bounded range to the last byte, not from offset 0) aside. The session is complete when [start, size) is covered and no
// response runs. After nothing but tail reads it keeps the slot only 5 s without responses. A changed validator forgets
// start and coverage.
//
// # Costs
//
// n sessions wait, a are active (at most 1024), h requests are held. Measured on one of two busy cores.
//
//	                          grows with                          65,536        1,048,576
//	contact                   log n; the head's also a            p50 below 2 us, no allocation
//	slot freed                h log n with absent heads           4,096 held: 5 ms
//	k slots freed at once     k h log n                           1,024 slots, 4,096 held: 3 s
//	grant to a lane passed    rounds that went by, log n each     200,000 rounds: 60 ms
//	tick                      a, due ones, the walk               p99 0.2 ms    p99 3.1 ms
//	change of the strategy    n log n                             26-55 ms      0.5-1.2 s
//	window opens or shuts     n, and log n for each one moved     as aging      as aging
//	change of the aging       n, and log n for each one moved     3-11 ms       0.07-0.23 s
//	drain                     n log n                             60-80 ms      1.5-1.8 s
//
// A waiting session costs 360-500 bytes with keys of production's length, indexes and orders included (BenchmarkMemory); one that has or
// had a slot some 140 more, and 16 an interval. A bundle costs 340 more than others with three objects, 2.6 KB at most.
//
// # Bounds and failure
//
// Sessions of all states <= QueueLimit (paused ones make way, the oldest first), active and waiting ones of a principal <=
// QueuePerPrincipal, key parts <= 256 bytes (longer ones are hashed), 64 intervals a session. Beyond them requests are
// refused with LimitReached and nothing is kept. A lowered limit or fewer slots bind newcomers only; while more are active than slots
// sessions yield to a head until it can start. A size that an origin makes up counts at most 2^60 bytes in F. now may start anywhere
// up to 68 years. A panic is for the shell to survive: the core keeps no invariant half-way through a call.
//
// Shuffle draws the arrivals of a class's newcomers evenly
// from a window's opening, the same for a key in every process; until then an arrival may lie ahead of now.
//
// # Windows
//
// A class may have windows outside of which it starts nobody, or few. The core knows no wall clock: SetWindows gives it a plan, the share of each class now
// (per mille; 1000 = open, 0 = shut) and up to 256 edges at which shares change; after the last one the last shares stay. An edge is carried out by the first
// call at or after it, as of its own time, so that no event sees a window that is over and a log of calls replays. Outside its window
//
//	a class may have ceil(share x slots in force / 1000) active sessions that began outside; those that began before do not count
//
// A class that may start nobody more (barred) stands in nobody's way: the head of the order, the marks, the unclaimed ticks, the elastic slots and the use of the link are
// about the others. It pays nothing for it and earns nothing: when it may start again its pass is max(P(c), V), as of one that becomes non-empty. Who has a slot
// keeps it to its end, and is not asked to give it up outside its window, for it would wait until the next one. A session that lost its slot in a pause
// waits like all others.
//
// The applied class decides. Outside its window nobody of a class is lifted, lifted ones go back to it, and nobody of another class is lifted into it, so its order holds its own
// sessions alone; lifts aim at the nearest class above that is open. Aging counts open time only, the time before the window shut and from its opening on. A
// head whose class shuts is given way to by nobody, and who gave way to it before waits for it no longer.
//
// Places: those that are not shut stand first, in their order; then the shut classes by when they open, those that open together by their passes. An opening moves others
// back, which Moves.Windows explains. An opening by an edge shuffles the arrivals of newcomers for 15 s; those that wait keep their places.
//
// Estimates follow each class of its own while somebody waits whose class is outside its window or leaves it before twice the time that all that waits takes: the walk
// chooses the next class at every start, by passes, shares and edges, and follows 256 sessions of a class (all, of up to 1024) for at most 4096
// steps; the others start in a fluid limit, in which classes share R by weight and mean size (see classForecast). What is uncertain is open time alone: a start in t seconds, d of them
// shut, is x = t - d; the interval is made of x, and its ends become the moments at which the class will have been open for so long. A promise "before six"
// may so have a p90 in the next night, and errors are learned in open time. R is then at least the peak of the last time in which anybody waited who could start, since before an opening
// the link need not be full.
//
// Under a size order those who come while a class is shut go ahead of bigger downloads, and nobody learns of it before the opening. So the p90 of a session that waits for
// its window allows for newcomers until its start: as many as came in as long a time before (of the last 16 h; scaled up from what was seen, from half an hour on), of the sizes
// of the last 64, the bytes of those that stand before it being A. Under fair-sojourn their F grows with V, as V did lately, slower by the members that come. Errors
// learned and newcomers being independent,
//
//	p90 = p50 + sqrt((learned p90 - p50)^2 + (0.8 A / R)^2)        seconds of open time
//
// The p50 stays that of a queue to which nobody comes: a crowd that came at once does not come again. 0.8 is by experiment: a night's window with arrivals all day holds the p90
// for 90-94 % of the promises then, a crowd within ten minutes for 91-95 %, and 84-98 % over other numbers of clients, slots and links; without it 79-81, 89-95 and 68-98 %. What comes while the window is open is not foretold,
// nor are the lifts of then: with arrivals all day and night 42-66 % of the promises are in tolerance and the p90 holds for 41-79 %, under every strategy.
//
// # After a restart
//
// Nothing survives one. Verdict.Arrival is what a ticket would sign: an Ask with Ticketed joins at it. But clients return one by one: the one at place 150
// may come 3 s before the one at 101, and would find the queue empty. So Grace(gather, until) has two parts.
//
// Until gather nobody takes a slot. Everybody gets a place and an estimate, the rest of that time added to it; those at the front are told to come when
// it ends (at least 1 s, spread over half a second). The time is fixed: nobody knows who is missing, so it neither ends early nor is
// extended.
//
// From then on, until `until`, only sessions with a ticket and those paused here take slots, in their order and not by the marks: one may when fewer than
// a quarter of the free slots, rounded up, of sessions stand before it that may take one too and whose clients are here or come within 5 s and are not overdue
// (half their CheckIn and 2 s past their time). Those within four times the slots are told 5 s at most, so that this does not depend on a rate of which
// nothing is known yet. So up to four slots are given strictly one after another, more as fast as clients poll, nothing widens over those who
// are back, and one that vanished again delays the rest for some seconds, once. Newcomers keep nobody back. u of this time does not count afterwards.
//
// How long to gather follows from when a client comes that is due early. Who was told CheckIn C stands about 2C before its start, so it is back
// long before its turn, whatever C is; except at the floors: the first ones poll each 1-2 s, which whole seconds and jitter make 3.75 s, and those who had a slot, or
// found the port closed, retry within 2 s. Simulated (200 clients on 4 slots, files of 0.5-40 s, 0.1-3 s without a process, 20 runs each), the
// pairs that started against their arrival, by the starts in the grace:
//
//	gather        0 s        1 s       2, 3, 4, 5, 6, 8 s
//	inversions    0.6-1.5    0-0.05    0
//
// 5 s (GatherFor) leave room for slow handshakes and a client's second try, and cost 5 s of the link and one or two more until the first have polled. When clients
// that had slots never return, those behind them are due before they were told to come, and no gathering short of the longest CheckIn, 5 min, is enough: with files of
// 10 s 0.2-0.4 inversions a start are left of 1.3. Strict order idles the link between two polls when a file takes less time than a poll: with files of
// 0.5 s a fifth to a third of the grace. After until the marks rule, by which neighbours overtake each other as always (in the same simulation without a
// restart 0.4 inversions a start with files of 10 s and 1.6 with files of 2 s).
//
// # Modes and the gate
//
// Policy.Mode says how far decisions are carried out; a change acts from the next one and cuts nobody.
//
//	normal        as the other rules say
//	queue-all     nobody gets a slot, places and ranges of active sessions go on; the start is unknown, CheckIn 11..15 s
//	pass-through  no object is a session: who waits leaves with its place remembered (as under Shared), active sessions go on
//	reject-new    a key that is neither known, remembered nor proved by a ticket is Rejected; nothing is kept of it
//	dry-run       every session gets a slot at once, outside its window too; QueuePerPrincipal does not bind, QueueLimit does
//
// A dry run counts the sessions for which eligible said no (WouldWait) and what that would have cost: with a active sessions on n slots, a-n+1 of them
// would have to end before it,
//
//	wait = owed (a - n + 1) / a / R        seconds; owed = bytes that active sessions have to come
//
// When it ends, the active sessions above the slots finish, and nobody starts until there are fewer than slots.
//
// SetGate(false) is for the time in which the upstream serves no new session. It goes before every mode but pass-through: nobody gets a slot, a poll keeps
// a place, the start is unknown, CheckIn is 2 s for the first 4 times the slots of the order and 5..10 s behind them. The ticks of such a time (or of
// queue-all) widen no window, the link's use is not learned from it, and promises made before its end are not judged.
//
// # What an operator does
//
// Act moves, pauses, resumes or kicks the session of a key.
//
//	front    before all of the class it stands in; its arrival becomes one before that of the first, if it was later
//	back     behind all that stand there now; its arrival becomes now
//	class    any, up too; what its client says of its class does not count any more. It keeps its age
//	pause    waiting: out of the order (parked), its arrival kept. Active, of a protocol client: its next range is told Queued, the slot
//	         goes with its last response (End with ReasonPaused), and it is parked. Resumed before that it keeps the slot
//	resume   back into the order at its arrival, with the turn it may have paid
//	kick     waiting or remembered: dropped; its next request within 17 min is Kicked, once. Active: dropped with its responses, which
//	         are over for this core; the shell cuts them
//
// Under a size order a moved session has the key of the first or the last session. Under Ordered a turn follows from the lane, so a moved one gets a lane
// apart, of one turn that no grant to others shifts: its principal's others stay where they are, and it pays no turn and moves no R. Under fair-sojourn it
// is to the virtual system one with the F of its key. A moved session does not age into another class; a new size or class, a pause, a change of the
// strategy, a window that parts its class from the one that it stands in, and its start end the move.
//
// A parked session has no position and no start and is never chosen, marked or granted, in no mode. It counts for the limits, and to Snapshot as waiting
// and Stopped. Its client polls each 11..15 s and is a no-show when it does not come. Its held requests stay held. Under fair-sojourn it stays among those
// that share the link. A session that was paused stays so over an idle pause. A kicked key is remembered with the time of the kick (4096 of them): a
// ticket of an older arrival does not bring the old place back. So is one that was moved back: such a ticket then is one of the arrival that the move gave.
//
// # What an operator sees
//
// List, Show and Overview change nothing, not even a forecast: a log of calls replays without them. A place in the order is found by its number: of each
// class as many sessions stand before the p-th as have a lesser pass, so the pass at which their sum reaches p is looked for by halving, 60 steps of four
// divisions, and each class is entered at its rank. So a page costs what it shows. A query of a class goes through the line of that class, and through those
// above it into which any of its sessions can have been lifted; one of a principal through its lanes. Each of these stands in the order of its line, and
// merging them by the places of their heads gives the order of the queue. Counts are read from counters; only a class of a principal is counted session by
// session. All of it is bounded for each call, and a shell gives its lock back in between. Other states are listed by trees of (start of the state, number), of
// which a principal's are picked. The waiting sessions of a
// class are kept in the order of their waits in a list that costs nothing beyond a session's links; only those that change their class or are resumed come
// between others and stand in a tree.
//
// Why tells the first of these that holds: operator, gate, mode, window, grace, yielded, turn (it starts at its next contact), slots (none is free),
// reserve, share, order.
//
// Of n = 65,536 waiting sessions a page of 64 costs 0.1 ms, of all or of one class or principal, 2048 looked at 0.2 ms, an overview with one active session 3 us
// (each another 0.1 us).
//
// # Decided, and rejected
//
//   - Sorting the queue on every tick: simple, O(n log n) each time, and positions half a second old.
//   - A treap: a cache miss and 100 bytes for every level and session; B+ leaves are read in a row.
//   - Marks as lists, made by ticks: a client that comes between two ticks is judged by an old list. The count of those ahead is exact.
//   - A heap of due times: every contact would move its session through it, log n misses for a time that is mostly moved again.
//   - Entries of sessions instead of turns: each departure from a lane would touch everybody behind it.
//   - Starts from the mean size of each class: wrong as soon as sizes differ and the order sorts them.
//   - Errors in bands by horizon: those of far starts become known only when these come, long after they were needed.
//   - Correcting the estimate itself by its drift: it feeds back on the clients' checks and swings; only the interval learns.
//   - Preempting for an absent head: the slot idles until it comes.
//   - Giving slots in the grace by the marks: twice the free ones may take them, so the eighth starts before the first that polls a second later.
//   - Giving all free slots in the grace strictly in order: 256 slots take two minutes of polls.
//   - Bundles that are complete when all they asked for is there: between two layers of a client with one request at a time that is always so.
//   - Estimates of bundles by what is known of them: with three of eight layers known 45 % of the promises miss by more than a tenth and a minute, with G 1-2 %.
//   - A paused session in the order, skipped: every count of those ahead would need the number of skipped ones, too.
//   - Moving a lane as a whole to the front: the principal's other sessions would come along.
//   - Ids of sessions by their number, with an index: 20 bytes a session; the hash of the key that finds it anyway is an id under a seed nobody knows.
//   - Windows by shut sessions in a list of their own: an edge would rebuild the order of a class, n log n, and a share needs the order in any case.
//   - Counting shut time as age: at the opening all of a class would be lifted into another one at once.
//   - Newcomers in the p50: half of those foretold leave 73-76 % of a crowd's promises in tolerance, instead of 98 %.
//   - Convoys of far sessions in the walk instead of a fluid limit: those that start together hide each other, by a tenth and more of the wait.
//   - Freeing the slot on every broken response: a client on a poor line would queue again after each break, so only a client known to have
//     left (Abandon) loses it at once.
package queue

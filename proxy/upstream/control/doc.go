// Package control is the pure control plane of the upstream pool (U1): it decides which connections to the origins exist, which of them are for choice, and
// whether there is coverage. It has no clock, goroutine, I/O, lock or log. A shell owns sockets, name resolution and timers: it feeds one event with the monotonic
// time to [Control.Step], carries the returned commands out, and publishes [Control.View] behind an atomic pointer. The data plane, which binds exchanges to
// connections, knows only the view and [Pick], and never waits for this package. The same events and random numbers give the same decisions.
//
// # Words
//
//	group       one origin name. All groups but the fallback are equal: an exchange may run on any with coverage
//	endpoint    one ip:port of a group; it and what is known of its health outlive generations
//	generation  one endpoint set of a group; numbers rise over all groups
//	writer      one connection to one endpoint
//	floor       target of connections of an endpoint
//	coverage    an endpoint of an active generation is alive
//	alive       not quarantined, fewer than QuarantineAfter failures in a row, and connected or resting
//	resting     without connection, and nothing failed since the last good contact, at most 2 RestMax ago
//
// # States
//
// Writer (U2). A dial is not a state of the contract; it is counted apart.
//
//	dialing ---ok---> warm ----generation active----> active ----> draining ---> removed
//	   |               |  shadow: stays, promoted when needed        ^    |
//	   | failed,       | given up, rotated, no room                  |    | Load.Free: carries no exchange
//	   v outgoing      v                                             |    | no movement for DrainTTL (90 s)
//	removed         removed      trim of a sunk floor, set replaced, |    | lost, Stop
//	                             quarantine, room for a warm-up -----+    v
//	any -- WriterLost --> removed                                      removed
//
// Generation (U3).
//
//	(none) -- first addresses --> bootstrap -- one live writer ---------------------------> active
//	active -- other addresses, SIGHUP, setting; none other warms up --> a new one: warmup
//	warmup -- have >= need --> active, and in the same Step the former becomes drain
//	warmup -- WarmupLimit (30 s), or superseded and unreachable --> drain; retried after 5 s..5 min
//	bootstrap -- other addresses --> replaced, connections to addresses in both are kept
//	active -- addresses expired, fallback switched off --> drain
//	drain  -- last writer gone --> retired
//
// Endpoint.
//
//	healthy  -- 3 failures in a row, 20 % of 20 observations, server errors unlike its siblings --> degraded (a quarter of the weight)
//	degraded -- no more of it, at least 10 s --> healthy
//	any      -- 5 failures in a row, 50 % of 20 observations, while another is alive --> quarantined (writers drain, only probes)
//	quarantined -- probe answers --> healthy, weight from a tenth in ten steps over SlowStart
//	quarantined -- no other is alive any more --> degraded (never all of a group)
//
// Fallback (U8), policy on-outage. x is a balance in 0..1.
//
//	first  -- x = 1 and no coverage and the second has coverage --> second
//	second -- x = 0 and coverage, or coverage and the second lost its own --> first
//	dx/dt = +1/FallbackAfter without coverage of the others, -1/FallbackBack with it
//
// So it is in after FallbackAfter of outage and out after FallbackBack of coverage; a full cycle takes at least their sum, and an origin that is down more than
// FallbackAfter / (FallbackAfter + FallbackBack) of the time counts as down however fast it comes and goes. off: the second origin is neither resolved nor dialled.
// always: it serves alone, and no outage of it brings the others back, for the operator said so.
//
// # How a shell drives it
//
//	one goroutine:
//	    for each event from its queue, a tick (100..500 ms) or the timer set to Next:
//	        commands += Step(now, event)          until the queue is empty
//	    if View is another pointer: publish it    before Promote and after Demote are carried out is as good: writers carry their own mark
//	    carry commands out in order of each writer; Resolve, Dial and Probe on goroutines of their own, each answered exactly once
//	    on its tick: Load with Complete, Demand while exchanges wait, Observed of each endpoint that ended some
//
//	data plane:
//	    i = Pick(view, random, outstanding of endpoint i or -1 when it has no free writer)
//	    pop a free writer of it whose mark is not demoted, else wait for a promoted or released one and let the level of Demand rise
//
// A promoted writer goes to an exchange that waits first. A demoted one that is free, or becomes free, is told by Load.Free and kept unbound until its Close.
//
// # Formulas
//
//	C         = min(FloorPerCore Cores, MaxConnections / 2), at least one a group     ceiling of the sum of targets of a set
//	peak      = highest number of exchanges at once over the last one to two FloorIdle
//	floor     = max(FloorMin, peak + ceil(peak / 4)); within FloorHold of a demand at least what it was before the last sink
//	            FloorMin once idle for FloorIdle and not held; FloorStatic under static; never more than FloorMax
//	allowed   = max(floor + lent, peak)                                               more than that is trimmed, the oldest first
//	lent      = writers that siblings lack which cannot be connected, spread over those that can; kept 30 s
//	need      = max(1, ceil(GatePercent/100 sum of floors))                           1 at bootstrap and when the active set has no coverage
//	new floor = ceil(sum of the group's floors / number of addresses)                 of an endpoint in a set that warms up
//	pause(n)  = uniform in FastDelay/2 .. T; T = FastDelay for n <= FastTries, else min(Max, Base 2^(n-FastTries-1))
//	            Base..Max = 0.5..30 s; 0.25..3 s while the group has no coverage
//	rest(n)   = 0 for the first early idle close, then uniform in T/2..T with T = min(RestMax, RestBase 2^(n-1))
//	quarantine= uniform in T/2..T with T = 2 s, doubled by each failed probe and by each relapse within 5 min, up to 60 s
//	weight    = 100 min(1, (1 + floor(9 age / SlowStart)) / 10), a quarter of it when degraded
//
// A failure counts once for what it took down together: of the dials or connections that existed when it was first seen, only the first makes the row longer.
//
// # What bounds what
//
// Dials: 8 at once a group for floors, warm-ups and shadows; DialsDemand at once a group for exchanges that wait, since U4 promises them one dial and no queue behind
// eight; DialsAll for all. An endpoint that was never connected, fails, or whose dial runs longer than Hedge gets one dial at a time, all such together half of the
// refill dials, and a family of which nothing is connected while the other is a quarter. An endpoint that closes idle connections early (rest) gets one refill at a
// time with rest(n) between; demand does not wait for it. MaxConnections bounds everything, dials included; when it keeps a floor or warm-up from its writers and
// nobody waits, shadows are closed first, then connections beyond floor and load drain.
//
// # Failures
//
//	connect fails                    same endpoint: 3 fast tries, then backoff; siblings stand in after the third; 5 without a connection: quarantine
//	connect hangs                    after Hedge siblings stand in and waiting exchanges are dialled elsewhere
//	connect fails, connections live  degraded, nothing is closed: an origin at its limit serves on
//	exchange breaks, times out       counted; refill at once; 5 in a row: quarantine
//	origin accepts, never answers    silent for 15 s: probed, then at the pace of the backoff; the last of a group stays for choice without giving coverage
//	peer closes idle, 408, spent     normal: no failure, no backoff; early ones make the endpoint rest
//	whole group unreachable          no coverage, outage pace, names asked every 5 s, quarantines lifted
//	single endpoint lost             shadow promoted in the same Step
//	name negative or unanswered      last good set for 5 min or 1 h, then outage with running exchanges left alone
//	new set unreachable              the old one serves on; problem, tries, pending are visible; a signal is given up after RetryTries
//	old set dead during a warm-up    gate falls to one writer, the pause of a failed one ends
//	MaxConnections reached           View.Exhausted
//	process stopped, shell late      only a complete Load made after the term ends a drain TTL; all other terms only delay or probe
//	late, doubled, unknown reports   nothing; a connection nobody knows is closed
//
// Nothing survives a restart of the process; the pool is built anew.
//
// # Decisions
//
//   - A generation belongs to a group; one warm-up at a time in the pool. Rejected: one generation over all groups, where a dead group blocks the change of another
//     or needs a waiver of the gate.
//   - Unchanged endpoints keep their connections, and count for the gate. A fresh reinit (TLS settings) keeps none. Rejected: always new, which doubles connections
//     and dials for each address that comes or goes.
//   - The share of an unreachable new endpoint is made up by its siblings before the gate. Rejected: a gate that one dead address of three closes for ever.
//   - Bootstrap opens at one live writer (U7); 80 % protects an active set, and there is none.
//   - Coverage counts resting endpoints. Rejected: coverage by connections alone, which an origin with a short idle life takes away every second or makes the pool
//     dial every second.
//   - Outage pace for every group without coverage, not for single endpoints only: three dead endpoints are no better than one.
//   - Load follows endpoints, not groups: a name with more addresses gets more. Rejected: equal shares of names, which overloads a name with one address.
//   - 5xx is no failure: it degrades an endpoint only while its siblings answer well. Rejected: quarantine by 5xx, which one broken object could set off.
//   - Latency is measured and shown, and steers nothing: the least outstanding of two sends less to a slow endpoint already, and sizes differ too much to compare.
//   - Both families are used alike, IPv6 dialled first. Rejected: a preferred family with the other idle, which halves a pool whose families are different paths.
//   - Demand and load are levels, not deltas: a lost or doubled report heals itself.
//   - An origin that hands out other addresses at each resolution makes a generation each time; the resolver of the shell may join answers. Rejected: keeping addresses
//     that the name no longer has, since that is how an operator takes one out.
package control

// Package upstream owns the connections to the origins and binds exchanges to them.
//
// # Two planes (U1)
//
// Package control decides which connections exist, which are for choice and whether there is coverage; it is pure and is driven by one goroutine, the loop. This package
// is the shell around it and the data plane:
//
//	exchange:  Get -> Writer -> Release | Discard           locks: one endpoint's, for a few loads and stores
//	loop:      reports, tick (250 ms), the timer of control -> Step -> commands: resolve, dial, promote, demote, close, probe
//	           each resolution, dial and probe has a goroutine and is answered exactly once, panics included
//
// A [Pool] serves the configured origins. A [Detour] holds the connections to one host that a redirect named; they are dialled on demand, kept while they are of use, and
// have no control plane: such hosts come and go, and nobody asked to keep them warm. Both are a [Source].
//
// # A writer's way
//
//	dialled -> promoted: handed to the exchange that waits first, else unused -> bound -> unused -> bound ...
//	  demoted: unused ones are closed, bound ones after their exchange (control: draining, at most 90 s without a byte)
//	  any -> closed
//
// Unused writers of an endpoint are a stack: the warmest is used first and the others age out after IdleTimeout, which should be below the origin's own limit. The floor
// replaces them while there is reason to.
//
// # Choice
//
// [Pool.Get] reads the view behind an atomic pointer, draws two endpoints by weight and takes the less loaded one: O(1), no allocation, about a tenth of a microsecond.
// When no endpoint has an unused writer the exchange waits in one list, and the number of those that wait is told to the control plane as a level. Whoever puts a
// writer back looks for exchanges that wait after he did, and whoever comes to wait looks for writers after he stands in the list: so none is missed.
//
// # Answers
//
// Each wait ends in exactly one of: a writer; the failure of a dial or resolution that began after the exchange came, when no endpoint is left to choose and Wait is over;
// [ErrExhausted] or [ErrUncovered] after Wait and an eighth more than the dial timeout; the client's departure; the end of the pool. A writer that was handed over in the same moment goes back.
//
// # Invariants
//
//	I1  a writer is bound to at most one exchange; Release and Discard together act once for each binding
//	I2  an unused writer stands in the stack of its endpoint, or is warm and the loop's own
//	I3  the registry holds exactly the connections that the control plane knows as connected; each leaves it once
//	I4  outstanding of an endpoint is the number of its bound writers but those of probes; all counts are zero when nothing runs
//	I5  a writer that was closed by the origin or that carries bytes nobody asked for is never used: the check is part of sending (one peek on the socket, RFC
//	    9112 section 9.5), and the tick polls all unused ones by one poll(2). So the answer to one client's request can never be another's
//	I6  no lock is held over a system call, but that an interrupt of a bound writer is ordered before its close
//
// # What a loss says (U10)
//
//	closed, unsolicited   between exchanges, or before the first byte of an answer on a kept connection: normal
//	spent, idle           the origin said so, or it aged: normal
//	cancelled             the client left, or the proxy gave the exchange up: says nothing of the endpoint
//	broken, timed_out     the endpoint failed: five in a row take it out of use while another lives
//
// Server errors, answers and times to the first byte are collected with atomics at the endpoint and told on the tick.
//
// # Failures
//
//	the loop panics in a step       contained and reported; the next ticks tell levels again, so that what was lost heals
//	a dial, probe or lookup panics  contained, answered as a failure
//	the name server hangs           5 s, then the last addresses stay (control: an hour)
//	TLS files changed               SIGHUP reads them again and builds a fresh generation; a file that cannot be read leaves the old ones in use
//	a poll's answer is out of date  the connection is looked at again under the endpoint's lock
//
// # Decisions
//
// Exchanges wait for a connection instead of dialling their own: a thousand requests that meet an origin that restarts are one dial at a time, and each still has an
// honest attempt. Rejected: a lock-free stack for unused writers (the lock is held for some ten nanoseconds, by one endpoint's exchanges only); sharded counts of
// exchanges; latency as a measure of load (sizes differ too much to compare); a health check by connecting alone, since the kernel of a stopped origin connects.
package upstream

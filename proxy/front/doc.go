// Package front owns the client connections: it accepts, reads request heads, keeps connections alive and notices who left.
//
// # Model
//
// One goroutine a connection, blocking in the poller while idle, without any buffer (behind TLS with one of 4 KiB). A connection is in one state:
//
//	idle -> head -> busy -> idle ...        (keep-alive, pipelined requests one after another)
//	  any -> closed
//
// In busy the [Handler] runs on the same goroutine and answers by writing to the connection itself; every answer leaves at once, so that a
// request that waits in the queue never holds back the pipelined answer before it.
//
// # The watcher
//
// One goroutine ticks every 250 ms for all connections; there is no timer and no deadline per request. It advances the coarse clock and
//
//   - closes connections that idle beyond IdleTimeout and ends heads that take longer than HeaderTimeout (408),
//   - asks the kernel with one poll(2) whether the client of a busy connection left (RST, or FIN: a client that shuts its sending side
//     while it waits counts as gone, as in nginx; while bytes move it is not asked),
//   - ends waits for an upstream beyond their limit, uploads without sender data or beyond their deadline, and transfers that stand still for StallTimeout:
//     no byte moved here and the kernel's send queue did not drain either; a wait for the budget is no standstill.
//
// A departure closes the channel of [Conn.Gone], interrupts the upstream connection of the exchange and the client's own.
//
// # Failure
//
// Malformed heads are answered (400, 408, 431, 501, 505) and the connection is closed after a short linger, so that the answer is not lost in a
// reset. A panic of the handler is counted, answered with 500 when nothing was sent, and never ends the process. Above MaxConnections a
// connection gets 503 at once.
//
// # Invariants
//
// I1 a descriptor is in the watcher's set only while its Conn is open: it is taken out, under the lock, before it is closed.
// I2 the watcher never closes a connection, it interrupts; the owner closes.
// I3 Serve's goroutines have all ended when Shutdown returns nil.
//
// # Decision
//
// This is not fasthttp.Server: see packages wire and relay for the reasons (pipelined answers behind a held request, the
// upstream's word on Expect, interim responses, exact heads, the bare socket for splice).
package front

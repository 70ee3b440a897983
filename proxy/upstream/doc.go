// Package upstream owns the connections to the origin and the exchanges that run on them.
//
// # Model
//
// A [Pool] holds the connections to one origin (scheme and host:port). A [Writer] is one connection; it is bound to at most one exchange. Free writers are
// kept on a stack, so that the warmest is used first and the others age out:
//
//	dialled -> bound -> idle -> bound ...
//	  any -> closed
//
// [Pool.Get] hands out a free writer or dials one. A writer goes back by [Writer.Release] only after an exchange that ended cleanly on its framing; everything
// else is [Writer.Discard].
//
// # Rules
//
// A writer that was closed by the origin or that carries bytes nobody asked for is never used: the check is part of sending (one peek on the socket, RFC 9112
// section 9.5), and the tick sweeps idle writers with one poll(2). So the answer to one client's request can never be another's.
// Whether a request may be sent again on a fresh connection is the caller's decision ([ErrStale] and the Written result say what is known).
//
// # Bounds
//
// MaxIdle writers are kept, MaxConnections may be open. Idle writers are closed after IdleTimeout, which should be below the origin's own limit. Dialling is
// bounded by DialTimeout and ends when the client leaves.
//
// Generations, floor, refill and health are the next stage of this room; the data plane above (Get, exchange, Release) stays as it is.
package upstream

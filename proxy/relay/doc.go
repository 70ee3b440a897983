// Package relay moves the bytes of bodies between two connections: paced, byte-exact and with bounded memory.
//
// # Model
//
// A [Conn] is one client or upstream connection: the socket and what was read from it ahead of use. A [Flow] moves a known number
// of bytes from one Conn to another, slice by slice. With a bucket stream every slice is first granted by the governor; without one a
// slice is as large as the path allows. Bytes per system call decide the cost, so the slices are large:
//
//	buffered   what the source's buffer already holds, written at once
//	copy       plain TCP both sides: MSG_PEEK into scratch memory, send what fits, drop exactly that from the source. Scratch is
//	           only held while bytes move, never while waiting: a thousand slow readers pin no user memory
//	splice     plain TCP both sides, once a stream has proved fast: splice(2) through a pooled pipe, no copy to user space
//	tls        a side that is no bare TCP socket: pooled 64 KiB buffers
//
// A stream is fast when it moved 512 KiB without waiting for its reader; it is slow again when a single wait for the reader lasted
// longer than a tick of the coarse clock (250 ms). Slow streams move 64 KiB slices by copy and give their pipe back.
//
// # Bounds
//
// Pipes: at most maxPipes in the process, 1 MiB where the kernel grants it (CAP_SYS_RESOURCE) and 256 KiB else, so that an
// unprivileged process stays far below pipe-user-pages-soft; past that limit the kernel hands out two-page pipes and every
// stream of the user crawls. A stream that gets no pipe copies. Kernel queues: TCP_NOTSENT_LOWAT on client sockets bounds
// what waits unsent, and
// what is received ahead is left to the kernel's autotuning: a stream that is slow from its start never grows its buffer (about half a megabyte in
// all), a fast one may reach net.ipv4.tcp_rmem's maximum. When a stream turns slow its upstream buffer is cut down (SO_RCVBUF), so that what piled up
// while it was fast drains once and does not come again; an exchange that stands still is ended by the stall timeout. A fixed SO_RCVBUF of 1 MiB
// from the start was measured and rejected: 27 % more CPU on large bodies.
//
// # Time
//
// No deadline and no timer is set per slice. Every transfer counts its bytes in [Conn.Moved]; the watcher of proxy/front looks at
// that counter on its tick and interrupts connections that stand still too long ([Conn.Interrupt]).
//
// # Failure
//
// Errors say which side failed ([SourceError], [SinkError]), so that the caller knows whose connection is dead. After any error neither connection
// may be reused: bytes can be in a pipe or half a frame on the wire.
//
// # Decisions
//
// Linux only. The bodies do not pass through fasthttp's BodyWriterTo: its server keeps earlier pipelined responses in a buffer that a
// handler cannot flush, so that a held request would hold back the response before it, and it answers Expect: 100-continue itself. With
// an own connection loop the same splice path needs none of that. Rejected as well: a goroutine pair per exchange with
// channels (wake-ups cost more than the copies), io.Copy (1 MiB pipe held per running splice: the hazard above).
package relay

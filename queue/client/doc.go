// Package client downloads one object over HTTP with the patience that a queue asks for. It is the client side of the
// queue protocol: it waits for as long as the server says, keeps its place over restarts of either side, and brings the
// object to disk byte-exact, in parallel ranges, resumable at any moment. Against a server that knows nothing of queues it
// is simply a careful downloader.
//
// It is called by arkvoryctl and by anybody's program; it imports nothing but the standard library. Download is the only
// way in.
//
// # States
//
//	               NotBefore ahead                 503/429 + Retry-After
//	start ──────► waiting for window        ┌──────────────────────────────┐
//	  │                 │ time comes        ▼                              │
//	  └─────────────────┴──────────► gate shut: ONE request asks ──────────┤
//	                                  ▲  ▲      │ 200/206                  │ fault: budget, backoff
//	            object changed:       │  │      ▼                          │ (or the ticket's outage)
//	            all dropped (max 3) ──┘  └── gate open: Parallel ranges ◄──┘
//	                                            │ every byte there
//	                                            ▼
//	                                verify ──► name the file ──► done
//
// A setback (a queue answer, a fault, a change of the object) shuts the gate and starts a new epoch. Running bodies go
// on; requests of an older epoch that also fail are parts of the same setback: they cost nothing and change nothing. So
// one restart of a server that breaks four connections is one fault.
//
// # Waiting
//
// wait = told + jitter, told in [1 s, 1 h], jitter uniform in [0.1 s, max(0.5 s, told/10)]. Never earlier than told; a
// Retry-After above an hour is a proxy's mistake more often than a plan: after an hour it asks again. A Retry-After date
// counts from the answer's own Date. Waits are slept in steps of at most a minute; a wall clock two minutes past the end
// of a wait means that the machine slept, and ends it. WaitLimit and NotAfter end a download as soon as the next
// permitted question lies past them: nothing could happen in between. NotAfter binds until the first good answer of this
// call, Starts-At past it ends at once.
//
// backoff after the n-th fault in a row is uniform in [0, min(30 s, 0.25 s x 2^(n-1))]. With a ticket younger than 15 min it is
// uniform in [b/2, b), b = min(2 s, 0.25 s x 2^(n-1)), because a restarted server seats those that come back at once: who was being
// refused is back within 2 s, spread over the second of them. The ticket's age is the larger one of the monotonic and the wall clock; a
// ticket more than 2 min in the future is of a clock that was set back and buys no time.
//
// # What happens when
//
//	met                                              answer
//	503 or 429 with Retry-After, or queue fields,    come back later: no budget, no bound but WaitLimit and NotAfter;
//	or a JSON body {"error":"busy"}                  without a told time 5 s
//	503 or 429 that tells nothing                    fault; to a further range while others flow: no fault, fewer ranges at once
//	                                                 until the gate opens anew (servers that limit connections)
//	500, 502, 504, other 5xx, 408, 425               fault
//	connection refused, reset, broken, silent for    fault; what came of the body is kept
//	AttemptTimeout, body shorter than promised
//	any fault while queued with a young ticket;      outage: no budget, bounded by the ticket's 15 min
//	a server that cannot be reached, ticket young
//	206 with another Content-Range than asked        fault
//	206 with another validator, size or encoding,    object changed: all dropped, from the first byte, at most 3 times, then
//	200 or 416 to a further range                    ErrChanged; where the size stayed the third start is one stream, since servers
//	                                                 behind a balancer may tag one object differently
//	Content-Encoding though identity was asked for   bytes are kept as they come (some servers so mark what is stored)
//	206 without strong validator, 416 at first       asked again without a range: one stream
//	200 at first                                     one stream; after a break it starts from its first byte
//	other size than Size                             ErrSize, before the first byte where the head tells it
//	body longer than promised                        cut
//	other 4xx, other statuses, endless redirects     ErrRefused
//	redirect from https to http                      ErrRefused, unless Digest vouches for the bytes
//	budget spent                                     ErrBudget
//	wrong digest                                     ErrDigest; bytes to Output+".bad", checkpoint removed
//	disk full, any file error                        ErrDisk with the path
//	a flush fails                                    ErrDisk; the checkpoint stays as it was: systems tell of it once, and a second
//	                                                 flush that succeeds proves nothing
//	a link, a pipe, or another user's file under     ErrDisk; nothing is written or believed (another user's: in folders that others
//	one of the names                                 than its owner may write to)
//	checkpoint damaged                               fresh start, event Restarted
//	checkpoint of another address or newer version   ErrCheckpoint; nothing is touched (Options.Fresh overrides)
//	part file shorter than recorded, or missing      only what is there counts
//	another process                                  ErrLocked
//	ctx cancelled                                    checkpoint written, the context's error
//
// # Ranges
//
// The first request names both ends ("bytes=0-8388607"): an open one would have to be cut off, and a cut answer counts
// nothing for the server's completion. Its answer tells size and validator. Further ranges carry If-Range and every 206 is
// held to the exact Content-Range, size and validator. Only a strong entity tag, or a Last-Modified at least a minute
// older than the Date beside it and no tag at all, may join parts. The last missing piece is asked for as "from on", since
// a bounded range at the end looks like a look at the tail, which does not say where a download starts. Ends of ranges are
// multiples of RangeBytes (64 KiB..1 GiB); at most 2 x Parallel + 1 runs of bytes are ever in a checkpoint, and 4096 in a trail.
//
// A body that only the close of the connection ends, of a size nobody knows, cannot be told from a broken one; give Size
// or Digest for such servers.
//
// # Budget
//
// Retries (20) counts faults of the whole call and nothing refills it; Attempts (5) counts faults in a row; any byte of
// progress and any answer of a queue refill it. So a link that breaks now and then is borne, and one that never gets anywhere is given up after
// seconds; the next run continues either way.
//
// # Files
//
// Output+".part" gathers bytes; Output+".arkvory" is the checkpoint (0600: it holds the ticket): version, address without
// query, keyed hash of the query, id, ticket, validator, size, safe bytes, under a checksum. It is written to a temporary
// file, flushed, renamed, and the folder flushed, at most every 2 s and a quarter of the time while bytes flow, at every
// answer of a queue, and at the stop. What was written since is in Output+".arkvory.trail", every 0.5 s, unflushed: runs of bytes with
// their CRC-32C. A later run reads those runs again and takes the ones whose sum is right, so that a kill on a slow disk costs half a second and
// a power cut what it costs. Bytes are flushed before a checkpoint claims them, and before the first byte of
// another state of the object is written a checkpoint that claims nothing is on disk: so no crash, of the process or of
// the power, at any moment, joins bytes of two states. After verification the checkpoint says "whole, with this SHA-256";
// then the part takes the name. A whole file found within 15 minutes is named without a question; later its last 64 KiB
// are asked for again under If-Range. Bytes of one-stream downloads are never recorded.
//
// The lock is an flock on a file of its own beside the checkpoint (that one is replaced by renames) and one on the part
// itself, for two callers with different checkpoints, held until the part has its name; systems without flock in the standard library rely on the lock
// file's existence. A run killed between naming the file and removing the checkpoint is recognised by the next one.
//
// # Secrets
//
// Options.Header, the user and the query of URL reach nobody but the host of URL: redirects elsewhere carry neither them
// nor a Referer. A ticket goes back only to who gave it. Errors of the network libraries repeat whole addresses, so their
// texts are cleaned and they are not wrapped: errors.Is finds system errors such as ECONNRESET, io.ErrUnexpectedEOF and the
// package's own.
//
// # Decisions
//
//   - One goroutine owns all state and calls Observe; requests, the saver and the sleeper report to it. Rejected: workers
//     that share state under a lock: "one asks, the others pause" becomes a protocol between them.
//   - Clock rules waits only. The term of silence and the beat of progress are timers of the runtime, which testing/synctest
//     makes virtual: a clock with only Sleep would need a goroutine for each and tick wherever a test's clock jumps.
//   - Restart on a 200 asks anew instead of reading on from that answer: one request more, in a case that is rare, for one
//     way to begin.
//   - The trail is borne out by its sums. Rejected: to trust unflushed bytes while the boot id is the same, which a disk that was pulled, a
//     snapshot that was put back, or a flush that failed before the kill would make wrong.
//   - Parallel downloads are summed by reading the file once more; a sequential one (Parallel 1, one stream) on the way.
//   - HTTP/1.1 in its own transport: parallel ranges are then connections, and one that breaks is one range.
//
// Memory: 64 KiB for each running range, and the list of runs.
package client

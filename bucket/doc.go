// Package bucket paces bytes: it says when how many bytes of a direction may move, for the direction as a whole,
// for each principal and for groups of streams, and lets principals take turns.
//
// # Model
//
// A token bucket has a rate r (bytes/s) and a burst b = min(floor(r/10), 1 MiB). Its level, in bytes, starts at b,
// grows by r per second up to b, and falls by n when n bytes are granted. Hence, over any interval of length T,
//
//	granted <= r*T + b                                                              (B1)
//
// The level is kept in billionths of a byte, of which a nanosecond brings exactly r; so refilling is an exact integer
// sum and neither many small steps nor rates up to 1 TiB/s round or overflow (a level never exceeds 1 MiB = 1.05e15).
//
// A quantum is the most that one [Stream.Take] grants. A wake-up with its system calls costs about 0.2 ms of CPU, so a
// quantum lasts q/r = 16 ms where the burst allows it, and is never below 16 KiB unless the burst is:
//
//	q = clamp(r * 16 ms, 16 KiB, b),  then  min(q, b - r * 3 ms)  while r * 3 ms <= b/2
//
// The second step leaves head-room: a sleeper that waits for q bytes and wakes up to 3 ms late finds at most b of them,
// so a late wake-up wastes nothing. With both limits on, the smaller quantum applies.
//
// # Late wake-ups of fast buckets
//
// Above about 175 MB/s, 3 ms bring more than half of the 1 MiB burst, and no head-room is left: at 1.25 GB/s the
// whole burst lasts 0.84 ms, less than the precision of a timer. There q = b, and the moment of a grant is the moment it
// was due: a stream that waited is charged, in each bucket, at max(asked, due there, now - 3 ms), not at the moment its timer got round to
// it nor at that when another bucket had the tokens, so the bucket goes on refilling from the due moment. A stream that asks at once (it was late only because its
// previous grant was released late) is charged with the same lag, as long as the bucket did not overflow meanwhile:
// an overflowing bucket has nothing to make up, and its lag ends. Consequences, each held by a test:
//
//   - B1 is exact over any interval in the moments of charge, at every rate;
//   - B1 is exact in the moments of release as well while r * 3 ms <= b/2 (there the two moments are one);
//   - above that, releases stay within r*(T + 3 ms) + b over any interval, and within r*T + b counted from any moment at
//     which nobody was waiting and the bucket had been full for 3 ms;
//   - greedy streams whose timers are up to 3 ms late get the rate within 0.1 %.
//
// # Turns
//
// A principal with waiting streams is ready (its own bucket covers its next quantum; it stands in the ring) or parked (it
// does not; it stands in a heap by the moment it will). The shared bucket serves the head of the ring, which then goes to
// the end; within a principal streams are served in the order they asked, and as a stream has one request at a time, that
// is a round of its streams. A short shared bucket makes all wait for the head, so small wants are no bypass; a principal
// short of its own tokens stands in nobody's way; a stream that does not ask (a slow reader) has no place in the ring and
// leaves its share to the others.
//
// # Groups
//
// A stream may be opened in one of eight groups ([Governor.OpenIn]). A group that has a limit has a bucket of its own, of the rates and bursts above. A grant to a
// stream is charged at once in all the buckets that limit it: the shared one, its principal's and its group's; so B1 holds for each of them, whatever runs beside
// it. A group's limit can be above what the others leave; it is a ceiling and promises nothing. A group without a limit costs nothing: its streams are
// those of their principals and no more.
//
// A group stands inside of the turns, it gives no further ones. A principal whose turn comes at the ring's head with a stream whose group is short leaves
// that stream in the group's lane for this principal, and goes on with its next one. The lanes of a group take turns at its bucket. When it covers the first
// lane's quantum, that stream is called: the tokens stay reserved for it, and it is the next of its principal. If the principal had come to its turn with nothing else
// to ask for, it is owed that turn and stands at the ring's head; else it has the next turn it would have had anyway. Hence
//
//   - a short group stands in the way of nobody outside of it, streams of the same principals included;
//   - a group that is asked for more than its rate gets its rate as long as its principals' turns at the shared bucket are worth that much;
//   - a principal with streams in several groups gets no more turns than one with a single stream;
//   - a called stream whose principal is short of its own tokens keeps a quantum of its group until these have come, 100 ms at most.
//
// Called streams may have to wait for the shared bucket while the group's fills up. So beside a shared limit of rate R and a quantum q the quantum of a group of rate g
// and burst b_g leaves room for that time and for two late wake-ups:
//
//	q_g = min(q, max(b_g / 2, b_g - g * (q/R + 6 ms)))
//
// Without a shared limit q_g is that of the rate g. Where no head-room is left (above 175 MB/s) the lag of the charges makes up for both, and q_g = min(q, b_g).
//
// # Who calls it
//
// The relay opens one [Stream] per body and takes before it moves bytes. Settings call [Governor.Configure], class windows [Governor.ConfigureGroup]; the shared budget
// calls [Governor.Configure] with its leased share, [Governor.Revoke] when the lease could have ended and
// [Governor.Restore] when it is held again; health and metrics read [Governor.Snapshot]. Nothing survives a restart.
//
// # Failure
//
// A revoked or closed governor grants nothing and fails those waiting at once. Grants are never given back: not by a
// cancelled caller, nor when the connection broke after them. Limits are trusted to be validated; out-of-range ones
// are narrowed into 1..MaxBytesPerSecond, never widened to unlimited.
//
// # Decisions
//
//   - State of a principal outlives its last stream until its bucket is full again (100 ms at most), else reopening would
//     refill it. Full ones are removed four at a time by later calls and all at once by Snapshot. Rejected: a sweeping goroutine;
//     evicting by count, which hands out fresh bursts to whoever floods with principals.
//   - A principal seen for the first time starts with the level of one that never took a byte, not simply full: so raising
//     a limit hands no burst to those that were forgotten, and B1 holds across changes of the limit.
//   - One timer for a governor, armed for the next moment at which anything can be granted. Rejected: a timer per stream (B4),
//     and a ticker, which costs wake-ups without traffic.
//   - Restore starts from an empty shared bucket and empty ones of groups: while the right was lost another process may have spent them.
//   - A change of any limit ends the calls of groups: the quanta that were reserved for may have changed. Who was called takes its turn in its group anew.
//   - Rejected for groups: a governor for each one in a row with the shared one (a quantum granted by the first and not yet by the second piles up there, and B1 does not hold
//     in the moments of release); a place in the ring for each principal and group (a client that names several classes would have several turns); taking all that a
//     group lets wait through the ring to see whether it is still short (a visit of everybody for each quantum).
//   - Rejected for late wake-ups: letting the level rise above the burst (B1 would not hold from an idle bucket), spinning
//     (a core for each governor), and smaller quanta at high rates (more wake-ups exactly where they are dearest).
package bucket

// Package ticket signs a download's place in the queue, so that it survives the process that gave it.
//
// A ticket is the header Arkvory-Queue-Ticket. Every answer of a session carries a fresh one with the session's arrival; the
// client returns the latest. A process that does not know the session (it was restarted, or is another one) takes the arrival
// from the ticket and the download stands where it stood (T1).
//
// # Format
//
//	2.<arrival>.<issued>.<MAC>        at most MaxBytes = 65 bytes
//
//	arrival, issued   milliseconds since the Unix epoch, wall time, base 36 in lower case, 0 <= t < 36^9 (year 5188)
//	MAC               base64 (URL alphabet, no padding) of all 32 bytes of
//	                  HMAC-SHA256(key, "arkvory/ticket/2" 0x00 | session hash, 32 bytes | arrival, 8 bytes | issued, 8 bytes)
//	session hash      SHA-256("arkvory/session/1" 0x00 | for each part of the session's key: its length, 8 bytes | the part)
//
// Integers are big endian. A ticket has one spelling: leading zeros, signs, upper case, padding, spaces, line breaks and set
// trailing bits of the base64 are refused, so a ticket that is accepted is byte for byte one that [Signer.Append] writes.
//
// # What the MAC binds
//
// The version (through the domain), the session (principal, object, client: whatever the caller hashes) and both times.
// Lengths are fixed or written, so no two meanings give one message. The domains of tickets, of derived keys and of session hashes differ in
// their first bytes and none begins with another, so nothing signed in one place is worth anything in another.
//
// # Judging
//
// [Signer.Verify] stops at the first that applies:
//
//	Oversized           longer than MaxBytes; nothing else is looked at, so the cost of a ticket is bounded
//	Malformed           not the spelling above
//	UnknownVersion      a number other than 2 before the first dot, in particular the former 1
//	BadMAC              forged, of another session, or signed with another key; compared in constant time
//	ArrivalAfterIssue   genuine, yet no Append writes it: another program signs with this key
//	Future              genuine, issued more than Ahead (2 min) ahead of now
//	Expired             genuine, issued more than Validity (15 min) ago; exactly 15 min is still accepted
//	Accepted
//
// Times are judged after the MAC: who cannot sign learns nothing about the clock. Every outcome but Accepted means that the download
// joins anew; none is an error towards the client (T2). An outcome is a label of a metric, never an answer.
//
// # Threats
//
//	forged                  needs the key; BadMAC
//	replayed                gives the arrival it always gave, so twice is once; the session's key stands for one download however often it comes
//	moved to another        the session hash differs: another principal, object or download id; BadMAC
//	shifted earlier         the arrival is under the MAC; BadMAC
//	old ticket, old place   a download that gave up and comes back later than Validity after its last answer joins anew; one that
//	                        keeps asking gets a fresh ticket each time and may wait for days
//	stolen                  is of use only to who has the same principal, object and download id: that client
//	clock behind the issuer an issue up to Ahead ahead counts as now (nodes of one installation differ by seconds); further ahead: Future.
//	                        An arrival may then lie ahead of now: the queue takes it as now
//	clock set back          tickets issued before are Future until the clock is within Ahead of them again
//	clock set forward       tickets expire earlier; by more than Validity: all join anew, once
//	key rotated or lost     BadMAC for every ticket, so every waiting download of which the process knows nothing joins anew, once
//
// # Keys
//
// [Source] is where the key comes from, in this order of preference (T3): the variable ARKVORY_TICKET_KEY, the database, a file of mode 0600
// in ARKVORY_STATE_DIR, random bytes. Only the last does not survive a restart. A key never prints; a file that others may read is refused and
// not repaired, since a key that was readable may have been read. The database may be down when a process starts: the signer of [NewPendingSigner] works without tickets until
// SetKey gives it one. [Signer.Derive] gives the process further keys that live as
// long as this one, for hashes that must be the same after a restart.
//
// The state directory is trusted: who may write to it may choose the key. It is not created, so that a wrong or unmounted path is
// seen at the start and not when the places are lost. In Kubernetes a pod with fsGroup widens modes of files at each mount unless
// fsGroupChangePolicy is OnRootMismatch; a secret for ARKVORY_TICKET_KEY avoids the volume.
//
// # Use
//
//	key, err := source.Key(ctx)                                        // at the start
//	signer := ticket.NewSigner(key)
//	session := ticket.HashSession(principal, object, client)           // for each request
//	arrival, _, outcome := signer.Verify(text, session, now)           // when the queue does not know the session
//	text = signer.Append(text[:0], session, arrival, now)              // with each answer
//
// The proxy calls these. The package reads no clock, starts no goroutine and logs nothing; Verify and Append allocate nothing.
//
// # Survives a restart
//
// Arrival, by ticket, if the key survives. Not: the class, coverage and slot of a session. A restart with the same key and
// another version of the program is the same as long as the format's version is: a test pins the bytes.
//
// # Decided, and rejected
//
//   - A random ticket with a table of places: needs a store that is as available as the queue, for what the client can carry itself.
//   - The class or the size in the ticket: the request says them anyway, and a ticket would keep a class that was since lowered.
//   - A shortened MAC: 22 bytes saved in a header, and a second security argument to keep.
//   - Tickets of the former version: they lose their place once, on the day of the upgrade; a reader would stay for ever.
//   - Several keys for rotation: a rotation costs places that 15 minutes without tickets cost too. One key, one rule.
//   - A finer arrival than milliseconds: signing and verifying repeatedly must not move it, and at milliseconds it does not.
//   - Stretching a passphrase into a key: it invites short ones. The rule is 32 bytes; judging their randomness is left alone.
//   - Refusing tickets seen before: state in every process, and a client that repeats a request after a broken answer is honest.
//   - Creating the key file in place: a crash between creation and writing leaves an empty key. By rename: two processes end with two keys.
package ticket

// Package proxy is the sidecar's data plane: it tells the story of one request from its head to the release of everything it held.
//
// # The way of a request
//
//	front reads the head (wire)            malformed: 400/408/431/501/505 and close
//	ARKVORY_MAX_REQUESTS, draining         503
//	identify: principal, class, id         an Arkvory-* field out of its rule: 400
//	steering (manifests, indexes, HEAD)    passed on, never queued; an object too large for its name goes the way of a GET
//	upgrade (WebSocket and others)         tunnelled after a 101, within the principal's budget; upgrades to other versions of HTTP and to TLS are not
//	                                       offered to the upstream
//	method that changes something          a place of the upload direction, held until the response has ended; charged to the client's address until
//	                                       the upstream has accepted the credentials once
//	GET                                    describe the object, claim a session's slot or a download place where its size asks for one
//	open                                   request to the upstream, interim responses passed on, final head read
//	relay                                  body, paced, to its end
//	release                                one deferred call, whatever happened, panics included
//
// # Who owns what
//
// An [exchange] owns its upstream writer, grant, place, pace and upload; release gives all of them back and is safe to call after any of them was settled. The client's
// connection is owned by front, which closes it; a handler can only ask for that (keep, Reset, LingerOnClose).
//
// An uploader runs on a goroutine of its own and writes to the upstream's socket past the poller. So the order is fixed: it is stopped and has ended before
// that socket is closed (drop, release), since the number of a closed descriptor may be another client's a moment later.
//
// # Honest ends
//
// A response that cannot be brought to its end ends short of its length or without its last chunk, or with RST where neither would show, so that no client takes a part for the whole. A session's bytes count as
// delivered only when their response was sent to the end. A client that left frees its slot at once; one whose upstream broke keeps it for the idle time, it comes back for the rest.
//
// # Bodies that go on
//
// A large body that breaks at the store is asked for again from the missing byte on, by Range and If-Range with its strong validator (U9, resume.go): the same way by which the rest of a
// fed response is opened. What was sent is counted where it is written to the client's socket, so the offset is exact; the bytes of another object never follow. Three breaks
// without a byte in between, or half a minute without an answer, end the body short. While it waits the session keeps its slot.
//
// # Connections that belong to one client
//
// A connection on which NTLM, Negotiate or Kerberos authentication was seen is closed after its exchange: what such an origin believes of a connection must not serve another client.
// Schemes that need several exchanges on one connection therefore do not work through the proxy.
//
// # Retries
//
// A request is sent again only when a kept connection failed before any byte of the response was seen, the method is idempotent and its body (if any) is still whole in memory
// (RFC 9110 section 9.2.2), once, on a fresh connection. Connections that were closed while idle are found out before anything is sent and cost nothing.
//
// # A policy that changes meanwhile
//
// The policy is the queue's and changes live (room live). A request reads it once, to know whether to ask the queue at all; what the queue then decides may
// go by a newer one, so every outcome is handled whatever was read: PerRequest leaves for the admission per request, also from a hold; Queued after a look
// by GET drops that response and waits, with what is left of the request's hold; the wait for a place after a hold is bounded by the same patience of the client. After the first change of the strategy or the threshold the queue is asked about every response that needs
// a place: a session of an earlier policy has its slot to its end, and its ranges go on in it.
//
// A protocol client's session that makes way (Q16) gets the answer of any that waits; the grants of its running responses are untouched.
//
// # Waiting without failing
//
// A protocol client is told its place at once, with a ticket of its session (ticketing.go, room ticket). A plain client is held in silence first; then, in this order:
//
//	a browser's navigation        the waiting page (waiting.go, room waitpage); its script asks with a field of its own and takes no slot by asking
//	length, strong validator,     the head of the answer, and real bytes of it until the slot comes (dripping.go, piece.go, room drip); the rest by Range and If-Range,
//	ranges, a place to be fed     or a visibly broken end
//	all else                      503 or 429 with the facts
//
// The head of a fed response is that of the store's own 206 to a first piece that was asked for in the client's name: status and length are those of the range the client asked for, fields that
// speak of the message's bytes alone (Content-Digest, Content-MD5) are left out. From then on the exchange waits in the queue as a held request does and the dripper writes to the client's
// socket; Stop hands the socket back. A fed request holds no writer, no buffer but its head, and does not count as in progress.
//
// Credentials are the client's of its first request. A store that refuses them later (a registry token of five minutes) ends a fed response with a cut: the client has the
// chance to come back with a new one, which those that survive a cut do.
//
// # Bundles
//
// What one plain client fetches from one repository (object.Repository) is one session under the repository's name (X5). A protocol client's downloads are its own to name.
//
// # A restart
//
// Tickets carry the places over (X8): restart.go begins the grace when the note in the state directory says that a queue stood, or when the first valid ticket of an earlier process comes.
//
// # Decision: describe by GET when free
//
// See download. A queue that is idle costs no extra request; a storm costs the origin one small request a new session, and polls of waiting sessions never reach it. Where HEAD is
// refused and the client's own Range is part of a signature, the client's GET itself is the description: its exchange is dropped unread when the answer must wait.
package proxy

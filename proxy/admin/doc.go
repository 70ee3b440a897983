// Package admin is the listener on which operators and orchestrators look at the proxy, change its live settings and act on single downloads: health,
// readiness, metrics, profiles, settings, the queue, its sessions, the console.
//
// # Purpose
//
//	GET /health/live      200 as long as the process answers; no lock, no source is asked
//	GET /health/ready     200 or 503: may new traffic be sent here
//	GET /metrics          Prometheus text
//	GET /debug/pprof/*    Go profiles
//	GET /api/v1/openapi.json    OpenAPI 3.1 description of all of this
//	GET / and /console, to /console/; GET /console/*    the console ([Console])
//
// and below /api/v1/system/downloads
//
//	GET, PUT settings                       live settings of the download queue ([LiveSettings])
//	GET queue                               one snapshot ([QueueDocument])
//	GET history?minutes=                    what was sampled ([HistoryDocument])
//	GET sessions?state=&class=&principal=&limit=&after=&ids=    one page ([SessionsDocument])
//	GET sessions/{id}?ids=                  one session ([SessionDocument])
//	POST sessions/{id}/move, pause, resume, kick    an [Action]; the answer is the session after it
//
// HEAD is answered as GET without the body. Everything else is a JSON 404, or 405 with Allow. Paths are matched as they are, after dots and doubled slashes are
// resolved: a slash at the end makes another path, whose 404 says so; only /console leads to /console/. What has no source ([Sources], [Settings]) has no path.
//
// # Who may see what
//
// A caller is trusted when it shows the admin token (Authorization: Bearer, compared in constant time over digests) or is on
// loopback. Loopback counts only when all of these hold: the peer's address is a loopback address; no header says that a proxy
// stands between (Forwarded, X-Forwarded-*, X-Real-Ip, Via and the like, whatever their value); Host is localhost or a loopback
// literal, since a page that rebinds its own name to 127.0.0.1 in somebody's browser has a loopback address as well.
//
// Readiness shows its status to everybody, since a kubelet or a balancer has no credentials, and the aggregates ([Document]) to trusted
// callers. The console's files are for everybody too: they hold no data, and the page asks for the token. All else is for trusted callers only. Requests that a
// browser sends for another site (Sec-Fetch-Site cross-site or same-site, or an Origin that is not this Host) are refused on every path; a link that a person
// follows may lead to the console's page, into a tab of its own.
//
// # How often
//
// With t the moment of an event, a meter of rate 1/T and burst N takes it when max(full, t) + T - t <= N*T, and full becomes max(full, t) + T. Below
// /api/ each class of callers (token, loopback) has a meter for reads (T = 20 ms, N = 100) and one for writes (T = 200 ms, N = 20). Each peer (an IPv4 address, an IPv6
// /64; at most 1024 are told apart, the rest share one, but for 64 that have shown the right token) has a meter for tokens that were wrong (T = 6 s, N = 10). Beyond: 429 with Retry-After. A wrong token is
// counted in one step with the question whether one more may be, so no number of connections gets more guesses; while a peer's meter is used
// up no token of it is taken, not even the right one, and readiness shows it the bare status. Behind one address (a proxy, a NAT) whoever guesses so keeps the others
// out; callers on true loopback need no token and are never kept out.
//
// # Readiness
//
// Not ready while the process drains and before the upstream is known: 503 with the reason. A full queue is normal work and stays
// ready: taking a proxy out of service because clients wait would move the waiting to another one and lose their places. The status asks
// neither the origin nor the queue; the aggregates take the queue's lock for a moment.
//
// # Changing settings, acting on sessions
//
// Bodies are application/json; a page of another site cannot send that type without a preflight, which is not answered. The body is read when the caller is
// trusted, at most 512 KiB of settings (1024 principals with the longest ids fit) and 4 KiB of an action; before that at most 8 KiB of it are in memory.
// PUT takes {"expectedRevision": N, "overrides": {...}}. A wrong field, of a body or of a query, is a 400 {error, reason, message, field, rule, example} (with all
// faults, at most 32, in faults), another revision than the current one a 409 revision_mismatch with the current one. What a change means is the desk's to say
// (proxy/live); this room tells it who asks: "token", or the loopback address. An action that does not fit the session's state is a 409 with the reason, an
// unknown session a 404 unknown_session.
//
// # Audit log
//
// [Settings].Audit gets an [Entry] for each change (who, from which revision to which and the names of the fields that differ; or which session, what was done and
// the session before and after), for each look at clear ids, and for refused requests: those in samples, 10 lines and then one in 10 s for each reason, with the number
// that had none. Mistyped paths and methods are not noted. Two changes at the same time may name each other's fields; their revisions say so.
//
// # Ids
//
// Principals, objects and clients are hashed unless ids=clear asks for them as they are. Settings hold the ids of principals that have rules, and show them to
// trusted callers. Readiness holds numbers and settings only: no ids, paths, host names or tokens. Counters are per process. Byte totals of readiness are decimal
// strings, because JSON numbers lose digits above 2^53; the desk's byte counts are below that and are numbers.
//
// # Invariants
//
//	I1  No answer and no audit entry contains a credential, a request's target or a header of the request. Names of parameters and fields that are none are not repeated.
//	I2  Bounded: connections, head, body, time to read, time to write, length of a profile, rate, peers, log lines. What is above is refused, not queued.
//	I3  A panic in a source costs one answer (500), never the process.
//	I4  This package imports no room whose state it shows; plain functions and interfaces in [Sources] carry it, and [Settings] the console.
//	I5  openapi.json, the routes and the types of the documents say the same; tests compare all three and judge every example and answer by it.
//
// # Callers
//
// The composition root builds one Server, runs Serve in a goroutine and calls Shutdown last, after the drain, so that the 503 of
// readiness stays visible while running downloads end. arkvoryctl and the console are clients of the API.
//
// # Failure
//
// A nil source of readiness shows as zeros, nil readiness as ready. Above the number of connections fasthttp itself answers 503 in plain text and
// closes; a connection that sends nothing for 10 s ends with 408. Containers of one pod share the loopback address: whoever must not trust its neighbours there sets a
// listener address of its own and the token.
//
// # Decisions
//
// Rejected: Basic authentication and tokens in the query (they end in browser histories and access logs); cookies (a browser sends them for other sites); trusting private
// networks (a cluster is one); mutual TLS here (a sidecar's admin port belongs on loopback or behind the cluster's own policy); looking at the right token while a peer's
// meter is used up (whoever guesses would see which one is right); answers kept for some 100 ms and shared by
// several tabs, or entity tags for them (each answer tells the time and how long everybody has waited, so an honest tag never matches; and who has just kicked, or
// started a download, and looks, must see it; a page of 100 of 65,536 sessions takes 0.2 ms of a processor, an empty answer as much: there is little to share); a
// description made from the types (a change of a type would change the contract unseen).
package admin

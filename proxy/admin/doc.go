// Package admin is the listener on which operators and orchestrators look at the proxy and change its live settings: health, readiness,
// metrics, profiles, settings.
//
// # Purpose
//
//	GET /health/live      200 as long as the process answers; no lock, no source is asked
//	GET /health/ready     200 or 503: may new traffic be sent here
//	GET /metrics          Prometheus text
//	GET /debug/pprof/*    Go profiles
//	GET, PUT /api/v1/system/downloads/settings    live settings of the download queue ([LiveSettings])
//
// HEAD is answered as GET without the body. Everything else is a JSON 404 or 405.
//
// # Who may see what
//
// A caller is trusted when it shows the admin token (Authorization: Bearer, compared in constant time over digests) or is on
// loopback. Loopback counts only when all of these hold: the peer's address is a loopback address; no header says that a proxy
// stands between (Forwarded, X-Forwarded-*, X-Real-Ip, Via and the like, whatever their value); Host is localhost or a loopback
// literal, since a page that rebinds its own name to 127.0.0.1 in somebody's browser has a loopback address as well.
//
// Readiness shows its status to everybody, since a kubelet or a balancer has no credentials, and the aggregates ([Document]) to trusted
// callers. Metrics, profiles and settings are for trusted callers only. Requests that a browser sends for another site (Sec-Fetch-Site
// cross-site or same-site, or an Origin that is not this Host) are refused on every path.
//
// # Readiness
//
// Not ready while the process drains and before the upstream is known: 503 with the reason. A full queue is normal work and stays
// ready: taking a proxy out of service because clients wait would move the waiting to another one and lose their places. The status asks
// neither the origin nor the queue; the aggregates take the queue's lock for a moment.
//
// # Changing settings
//
// PUT takes {"expectedRevision": N, "overrides": {...}} as application/json; a page of another site cannot send that type without a
// preflight, which is not answered. A wrong field is a 400 {error, field, rule, example} (with all faults, at most 32, in faults), another revision than the
// current one a 409 revision_mismatch with the current one. What a change means is the desk's to say (proxy/live); this room tells it who asks:
// "token", or the loopback address.
//
// The document holds numbers and settings only: no ids, paths, host names or tokens. Counters are per process. Byte totals are decimal
// strings, because JSON numbers lose digits above 2^53.
//
// # Invariants
//
//	I1  No answer contains a credential, a request's target or a header of the request.
//	I2  Bounded: connections, head, body, time to read, time to write, length of a profile. What is above is refused, not queued.
//	I3  A panic in a source costs one answer (500), never the process.
//	I4  This package imports no room whose state it shows; plain functions in [Sources] carry it.
//
// # Callers
//
// The composition root builds one Server, runs Serve in a goroutine and calls Shutdown last, after the drain, so that the 503 of
// readiness stays visible while running downloads end.
//
// # Failure
//
// A nil source shows as zeros, nil readiness as ready. Above the number of connections fasthttp itself answers 503 in plain text and
// closes. Containers of one pod share the loopback address: whoever must not trust its neighbours there sets a listener address of
// its own and the token.
//
// # Decisions
//
// Rejected: Basic authentication and tokens in the query (they end in browser histories and access logs); trusting private
// networks (a cluster is one); mutual TLS here (a sidecar's admin port belongs on loopback or behind the cluster's own policy).
package admin

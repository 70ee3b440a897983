package telemetry

// Reason is why an exchange ended as it did. Its names are part of the product's interface: they stand in JSON bodies, metric
// labels and log fields, and never change once released. The zero value is Unknown, so that a forgotten reason is visible.
type Reason uint8

// The reasons. The comment of a group says who caused it.
const (
	// Unknown: nobody said why. Seeing it is a defect of the proxy.
	Unknown Reason = iota
	// OK: the exchange went through to its end, whatever status the upstream answered with.
	OK

	// Answers of admission; a later request may succeed.

	// Busy: no place for this request came free within the waiting term (A2).
	Busy
	// DownloadQueued: the download session waits for a slot (Q10).
	DownloadQueued
	// QueueFull: the waiting list or the session queue holds as many as it may (A1, Q17).
	QueueFull
	// TooManyRequestsInFlight: ARKVORY_MAX_REQUESTS are in progress (P10).
	TooManyRequestsInFlight
	// TooManyConnections: ARKVORY_MAX_CONNECTIONS are open.
	TooManyConnections
	// Draining: the process is stopping (L1).
	Draining
	// RejectingNew: the operator lets no new download in (X7).
	RejectingNew
	// Kicked: the operator ended the download's session (X7).
	Kicked
	// QuotaExceeded: the principal has used up its quota of the day or the week (X9).
	QuotaExceeded

	// Faults of the upstream.

	// UpstreamUnreachable: no connection to the upstream could be made.
	UpstreamUnreachable
	// UpstreamUntrusted: the TLS handshake with the upstream failed or its certificate did not verify.
	UpstreamUntrusted
	// UpstreamTimeout: the upstream sent no response head in ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS.
	UpstreamTimeout
	// UpstreamBroken: the upstream's connection ended before its response did.
	UpstreamBroken
	// UpstreamMalformed: the upstream's response is not HTTP that may be passed on.
	UpstreamMalformed
	// UpstreamBusy: ARKVORY_UPSTREAM_MAX_CONNECTIONS are all in use.
	UpstreamBusy
	// UpstreamNotReady: the pool has no coverage yet or lost it (U7).
	UpstreamNotReady
	// UpstreamRedirect: a redirect that the proxy follows itself could not be followed (P9).
	UpstreamRedirect
	// ObjectChanged: the object's validator changed between two parts of one response (U9, X2).
	ObjectChanged

	// Faults or decisions of the client.

	// MalformedRequest: the request's framing or head is not acceptable (P5).
	MalformedRequest
	// HeaderTimeout: the request head did not arrive in ARKVORY_HEADER_TIMEOUT_MS.
	HeaderTimeout
	// HeaderTooLarge: the request head is above ARKVORY_MAX_HEADER_BYTES.
	HeaderTooLarge
	// ExpectationFailed: an Expect other than 100-continue.
	ExpectationFailed
	// ClassUnknown: Arkvory-Download-Class names no class (I4).
	ClassUnknown
	// ClientGone: the client closed its connection before the end (P6).
	ClientGone
	// ClientHandshake: the TLS handshake with the client failed.
	ClientHandshake
	// Stalled: a running direction moved no byte for ARKVORY_STALL_TIMEOUT_MS.
	Stalled
	// UploadIdle: the sender was silent for ARKVORY_UPLOAD_IDLE_TIMEOUT_MS (A4).
	UploadIdle
	// UploadDeadline: the upload took longer than ARKVORY_UPLOAD_DEADLINE_MS (A4).
	UploadDeadline
	// NotAllowed: the proxy refuses this method or target on principle (CONNECT, for one).
	NotAllowed

	// Panic: a defect of the proxy, contained to one exchange.
	Panic

	// Answers of the admin listener only; never an outcome of a proxied request.

	// NotFound: the admin listener has no such path.
	NotFound
	// MethodNotAllowed: the path exists, the method does not.
	MethodNotAllowed
	// Unauthorized: the path needs the admin token or a caller on loopback.
	Unauthorized
	// CrossSite: a browser sent the request on behalf of another site.
	CrossSite
	// UnsupportedMediaType: the body is not said to be JSON.
	UnsupportedMediaType
	// SettingInvalid: a field of the live settings breaks its rule (S2).
	SettingInvalid
	// RevisionMismatch: another change of the live settings came first (S2).
	RevisionMismatch
	// SettingsUnavailable: the store of the live settings does not answer.
	SettingsUnavailable
	// NotWaiting, NotPausable, NotPaused: an operator's action does not fit the state of its session (X7).
	NotWaiting
	NotPausable
	NotPaused

	// ReasonCount is the number of reasons, not one of them; use it to size arrays that a Reason indexes.
	ReasonCount = int(iota)
)

// side says in which families a reason is a label value.
type side uint8

const (
	ofRequest  side = 1 << iota // arkvory_requests_total
	ofUpstream                  // arkvory_upstream_errors_total
	ofClient                    // arkvory_client_errors_total
)

var reasons = [ReasonCount]struct {
	name   string
	status int
	side   side
}{
	Unknown:                 {"unknown", 500, ofRequest | ofUpstream | ofClient},
	OK:                      {"ok", 0, ofRequest},
	Busy:                    {"busy", 503, ofRequest},
	DownloadQueued:          {"download_queued", 503, ofRequest},
	QueueFull:               {"queue_full", 503, ofRequest},
	TooManyRequestsInFlight: {"too_many_requests_in_flight", 503, ofRequest},
	TooManyConnections:      {"too_many_connections", 503, ofRequest},
	Draining:                {"draining", 503, ofRequest},
	RejectingNew:            {"rejecting_new", 503, ofRequest},
	Kicked:                  {"kicked", 503, ofRequest},
	QuotaExceeded:           {"quota_exceeded", 503, ofRequest},
	UpstreamUnreachable:     {"upstream_unreachable", 502, ofRequest | ofUpstream},
	UpstreamUntrusted:       {"upstream_untrusted", 502, ofRequest | ofUpstream},
	UpstreamTimeout:         {"upstream_timeout", 504, ofRequest | ofUpstream},
	UpstreamBroken:          {"upstream_broken", 502, ofRequest | ofUpstream},
	UpstreamMalformed:       {"upstream_malformed", 502, ofRequest | ofUpstream},
	UpstreamBusy:            {"upstream_busy", 503, ofRequest | ofUpstream},
	UpstreamNotReady:        {"upstream_not_ready", 503, ofRequest | ofUpstream},
	UpstreamRedirect:        {"upstream_redirect", 502, ofRequest | ofUpstream},
	ObjectChanged:           {"object_changed", 502, ofRequest | ofUpstream},
	MalformedRequest:        {"malformed_request", 400, ofRequest | ofClient},
	HeaderTimeout:           {"header_timeout", 408, ofRequest | ofClient},
	HeaderTooLarge:          {"header_too_large", 431, ofRequest | ofClient},
	ExpectationFailed:       {"expectation_failed", 417, ofRequest | ofClient},
	ClassUnknown:            {"class_unknown", 400, ofRequest | ofClient},
	ClientGone:              {"client_gone", 499, ofRequest | ofClient},
	ClientHandshake:         {"client_handshake", 0, ofClient},
	Stalled:                 {"stalled", 408, ofRequest | ofUpstream | ofClient},
	UploadIdle:              {"upload_idle", 408, ofRequest | ofClient},
	UploadDeadline:          {"upload_deadline", 408, ofRequest | ofClient},
	NotAllowed:              {"not_allowed", 405, ofRequest | ofClient},
	Panic:                   {"panic", 500, ofRequest},
	NotFound:                {"not_found", 404, 0},
	MethodNotAllowed:        {"method_not_allowed", 405, 0},
	Unauthorized:            {"unauthorized", 401, 0},
	CrossSite:               {"cross_site", 403, 0},
	UnsupportedMediaType:    {"unsupported_media_type", 415, 0},
	SettingInvalid:          {"setting_invalid", 400, 0},
	RevisionMismatch:        {"revision_mismatch", 409, 0},
	SettingsUnavailable:     {"settings_unavailable", 503, 0},
	NotWaiting:              {"not_waiting", 409, 0},
	NotPausable:             {"not_pausable", 409, 0},
	NotPaused:               {"not_paused", 409, 0},
}

// String returns the stable name; "unknown" for a value outside the enum.
func (r Reason) String() string {
	if int(r) >= ReasonCount {
		return reasons[Unknown].name
	}
	return reasons[r].name
}

// Status returns the HTTP status with which the proxy answers for this reason when nothing of a response has been sent. It is 0
// where no answer of the proxy's own exists (ok: the upstream's; client_handshake: no HTTP yet) and 499 for client_gone, which
// is for logs only: nobody is left to receive it.
func (r Reason) Status() int {
	if int(r) >= ReasonCount {
		return reasons[Unknown].status
	}
	return reasons[r].status
}

// MarshalText writes the stable name, so that a Reason in a JSON document or a log field is its word. The error is always nil.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// namesOf returns the names of the reasons that belong to a family, in the order of the enum.
func namesOf(s side) []string {
	var names []string
	for _, r := range reasons {
		if r.side&s != 0 {
			names = append(names, r.name)
		}
	}
	return names
}

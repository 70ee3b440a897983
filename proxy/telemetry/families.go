package telemetry

import (
	"fmt"
	"strings"

	"github.com/arkvory/sidecar/proxy/quota"
)

// family is one metric name with its type, its closed labels and its help.
type family struct {
	name, kind, help string
	labels           []label
}

// label is a label with every value it may have. A label without values has one value that the build or the process gives.
type label struct {
	name   string
	values []string
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

func by(name string, values []string) []label { return []label{{name, values}} }

// Names of the families; each is used once to register and once in the catalog.
const (
	nameBuildInfo         = "arkvory_build_info"
	nameRequests          = "arkvory_requests_total"
	nameRequestsInFlight  = "arkvory_requests_in_flight"
	nameRefusals          = "arkvory_refusals_total"
	namePanics            = "arkvory_panics_total"
	nameAccepted          = "arkvory_connections_accepted_total"
	nameRefused           = "arkvory_connections_refused_total"
	nameOpen              = "arkvory_connections_open"
	nameClientErrors      = "arkvory_client_errors_total"
	nameDelivered         = "arkvory_delivered_bytes_total"
	nameRelay             = "arkvory_relay_bytes_total"
	nameConnections       = "arkvory_upstream_connections"
	nameDials             = "arkvory_upstream_dials_total"
	nameReused            = "arkvory_upstream_reused_total"
	nameRetries           = "arkvory_upstream_retries_total"
	nameResumes           = "arkvory_upstream_resumes_total"
	nameBreaks            = "arkvory_upstream_breaks_total"
	nameWriters           = "arkvory_upstream_writers"
	nameCoverage          = "arkvory_upstream_coverage"
	nameFallback          = "arkvory_upstream_fallback"
	nameFallbacks         = "arkvory_upstream_fallback_switches_total"
	nameGeneration        = "arkvory_upstream_generation"
	nameGenerations       = "arkvory_upstream_generations_total"
	nameEndpoints         = "arkvory_upstream_endpoints"
	nameFloor             = "arkvory_upstream_floor"
	nameWanted            = "arkvory_upstream_waiting_exchanges"
	nameProbes            = "arkvory_upstream_probes_total"
	nameResolves          = "arkvory_upstream_resolutions_total"
	nameDiscarded         = "arkvory_upstream_discarded_total"
	nameUpstreamErrors    = "arkvory_upstream_errors_total"
	nameDescribe          = "arkvory_object_describe_total"
	nameSlots             = "arkvory_download_slots"
	nameElastic           = "arkvory_download_elastic_slots"
	nameActive            = "arkvory_download_sessions_active"
	nameWaiting           = "arkvory_download_sessions_waiting"
	nameOldest            = "arkvory_download_queue_oldest_wait_seconds"
	namePaused            = "arkvory_download_sessions_paused"
	nameMode              = "arkvory_download_mode"
	nameActions           = "arkvory_operator_actions_total"
	nameRejectedNew       = "arkvory_download_rejected_new_total"
	nameWouldWait         = "arkvory_download_would_wait_total"
	nameWouldWaitFor      = "arkvory_download_would_wait_seconds_total"
	nameHeld              = "arkvory_held_requests"
	nameTick              = "arkvory_queue_tick_seconds"
	nameEvents            = "arkvory_download_session_events_total"
	nameWait              = "arkvory_download_wait_seconds"
	nameStartError        = "arkvory_download_start_error_seconds"
	namePromises          = "arkvory_download_promises_total"
	namePromisesWithin    = "arkvory_download_promises_within_total"
	nameTickets           = "arkvory_queue_tickets_total"
	nameDrips             = "arkvory_download_drips"
	nameDripStarted       = "arkvory_download_drips_started_total"
	nameDripCut           = "arkvory_download_drips_cut_total"
	nameDripBytes         = "arkvory_download_drip_bytes_total"
	nameDripPieces        = "arkvory_download_drip_pieces_total"
	namePages             = "arkvory_waiting_pages_total"
	namePromisesHeld      = "arkvory_download_promises_held_total"
	nameAdmissionActive   = "arkvory_admission_active"
	nameAdmissionWaiting  = "arkvory_admission_waiting"
	nameAdmissionCapacity = "arkvory_admission_capacity"
	nameAdmissionRejected = "arkvory_admission_rejected_total"
	nameAdmissionTimedOut = "arkvory_admission_timed_out_total"
	nameAdmissionCancel   = "arkvory_admission_cancelled_total"
	nameQuotaRefusals     = "arkvory_quota_refusals_total"
	nameQuotaOver         = "arkvory_quota_principals_over"
	nameQuotaPrincipals   = "arkvory_quota_principals"
	nameQuotaForgotten    = "arkvory_quota_principals_forgotten_total"
	nameQuotaUncounted    = "arkvory_quota_uncounted_responses_total"
	nameQuotaFaulty       = "arkvory_quota_file_faulty"
	nameRate              = "arkvory_bandwidth_bytes_per_second"
	nameBandwidthWaiting  = "arkvory_bandwidth_waiting"
	nameGranted           = "arkvory_bandwidth_granted_bytes_total"
	nameFileFaulty        = "arkvory_file_faulty"
)

// catalog holds every family of the product in the order of the README's table.
var catalog = []family{
	{nameBuildInfo, gauge, "Always 1; the labels say what runs.", []label{{"version", nil}, {"go", nil}}},

	{nameRequests, counter, "Requests ended, by how they ended; everything that passed through is ok.", by("outcome", namesOf(ofRequest))},
	{nameRequestsInFlight, gauge, "Requests in progress.", nil},
	{nameRefusals, counter, "Answers that the proxy gave itself, by status.", by("status", statusNames)},
	{namePanics, counter, "Defects contained to one exchange; anything above zero is a bug to report.", nil},

	{nameAccepted, counter, "Client connections accepted.", nil},
	{nameRefused, counter, "Client connections closed at once because too many were open.", nil},
	{nameOpen, gauge, "Client connections open.", nil},
	{nameClientErrors, counter, "Faults on the client's side, by reason.", by("reason", namesOf(ofClient))},

	{nameDelivered, counter, "Payload bytes written to their receiver: the client for a download, the upstream for an upload.", by("direction", directionNames)},
	{nameRelay, counter, "Payload bytes moved, by mechanism.", by("path", relayPathNames)},

	{nameConnections, gauge, "Upstream connections, kept alive (idle) or in an exchange (busy).", by("state", connectionNames)},
	{nameDials, counter, "Upstream connections attempted.", by("result", dialNames)},
	{nameReused, counter, "Exchanges that began on a kept-alive upstream connection.", nil},
	{nameRetries, counter, "Exchanges repeated on a fresh connection because the kept-alive one was stale.", nil},
	{nameWriters, gauge, "Connections of the upstream pool by the state of their life: being dialled, connected and not for choice (warm), for choice (active), finishing their last exchange (draining).", by("state", writerNames)},
	{nameFloor, gauge, "Ready connections that the pool aims at, over all endpoints.", nil},
	{nameWanted, gauge, "Exchanges that wait for an upstream connection.", nil},
	{nameCoverage, gauge, "1 while an endpoint of the upstream is alive; without it no download starts and waiting ones keep their places.", nil},
	{nameEndpoints, gauge, "Addresses of the upstream in use, by health.", by("state", healthNames)},
	{nameGeneration, gauge, "Highest number of an active generation of addresses.", nil},
	{nameGenerations, counter, "Generations of addresses: begun, activated, retired with their last connection, or abandoned before they were active.", by("event", lifeNames)},
	{nameFallback, gauge, "1 while the fallback serves.", nil},
	{nameFallbacks, counter, "Switches to the fallback (in) and back (out).", by("direction", turnNames)},
	{nameProbes, counter, "Requests of the proxy's own to endpoints that were silent or failing, by result.", by("result", probeNames)},
	{nameResolves, counter, "Resolutions of upstream names, by result.", by("result", probeNames)},
	{nameBreaks, counter, "Bodies that ended in the middle at the upstream while their client was there: the connection broke, or no byte came for ARKVORY_UPSTREAM_STALL_SECONDS.", by("cause", breakNames)},
	{nameResumes, counter, "Bodies that broke at the store and were asked for from the missing byte on: opened again (ok), cut since the object changed (changed), or given up.", by("outcome", resumeNames)},
	{nameDiscarded, counter, "Upstream connections not used again, by reason.", by("reason", discardNames)},
	{nameUpstreamErrors, counter, "Faults on the upstream's side, by reason.", by("reason", namesOf(ofUpstream))},
	{nameDescribe, counter, "Objects whose size and validator were learned, by how: from the answer that was passed on (get), a HEAD, a GET of one byte (range), or a GET that was given up before its body because the download must wait (unread).", by("how", describeNames)},

	{nameSlots, gauge, "Slots in force: the configured ones and the elastic ones that are open.", nil},
	{nameElastic, gauge, "Elastic slots that are open: somebody waits and the link was not full.", nil},
	{nameActive, gauge, "Download sessions that hold a slot.", nil},
	{nameWaiting, gauge, "Download sessions that wait for a slot, by class.", by("class", classNames)},
	{nameOldest, gauge, "Longest wait among the waiting sessions.", nil},
	{namePaused, gauge, "Of these, those that an operator paused, by class.", by("class", classNames)},
	{nameMode, gauge, "1 for the operator's mode in force.", by("mode", modeNames)},
	{nameActions, counter, "Actions of operators on sessions that were carried out.", by("action", actionNames)},
	{nameRejectedNew, counter, "Downloads refused in mode reject-new.", nil},
	{nameWouldWait, counter, "Downloads that would have waited, counted in mode dry-run.", nil},
	{nameWouldWaitFor, counter, "The waits of these together, as the queue's model has them.", nil},
	{nameHeld, gauge, "Requests that wait inside the proxy for their turn.", nil},
	{nameTick, gauge, "Duration of the scheduler's last tick.", nil},
	{nameEvents, counter, "Steps in the life of download sessions.", by("event", sessionEventNames)},
	{nameWait, histogram, "Wait of a session from its arrival to its slot.", nil},
	{nameStartError, histogram, "Distance between the promised and the real start of a session, by whether it came early or late.", by("side", sideNames)},
	{namePromises, counter, "Answers with a promised start that were judged: of every session that got its slot one answer, drawn from all it got.", nil},
	{namePromisesWithin, counter, "Those whose start came within a tenth of the promised wait, or within a minute.", nil},
	{namePromisesHeld, counter, "Those whose start came no later than the told latest start (nine of ten should).", nil},

	{nameTickets, counter, "Queue tickets that clients returned, by what became of them; all but accepted ones are ignored.", by("outcome", ticketNames)},
	{nameDrips, gauge, "Plain clients that are fed a few bytes of their object while they wait.", nil},
	{nameDripStarted, counter, "Responses that began so.", nil},
	{nameDripCut, counter, "Those cut because the object changed, the origin refused it, or the client took no more.", nil},
	{nameDripBytes, counter, "Bytes fed so.", nil},
	{nameDripPieces, counter, "Pieces of objects for that, by where they came from.", by("source", pieceNames)},
	{namePages, counter, "Waiting pages given to browsers.", nil},

	{nameAdmissionActive, gauge, "Transfers admitted per request and running.", by("direction", directionNames)},
	{nameAdmissionWaiting, gauge, "Transfers waiting for a place.", by("direction", directionNames)},
	{nameAdmissionCapacity, gauge, "Places.", by("direction", directionNames)},
	{nameAdmissionRejected, counter, "Transfers refused because the waiting list was full.", by("direction", directionNames)},
	{nameAdmissionTimedOut, counter, "Transfers refused after the waiting term.", by("direction", directionNames)},
	{nameAdmissionCancel, counter, "Transfers whose client left while they waited.", by("direction", directionNames)},

	{nameRate, gauge, "Ceiling of the token bucket; 0 means off.", by("direction", directionNames)},
	{nameBandwidthWaiting, gauge, "Quanta waiting for tokens.", by("direction", directionNames)},
	{nameGranted, counter, "Bytes granted by the token bucket, repeated and cancelled ones included.", by("direction", directionNames)},

	{nameQuotaRefusals, counter, "Downloads refused because their principal had used up its quota, by the quota's period.", by("period", quota.Words())},
	{nameQuotaOver, gauge, "Principals that have used up a quota.", nil},
	{nameQuotaPrincipals, gauge, "Principals whose bytes are counted for quotas.", nil},
	{nameQuotaForgotten, counter, "Principals whose count made way for another one's: more are active than are counted.", nil},
	{nameQuotaUncounted, counter, "Responses that were not counted, since all counts were in use.", nil},
	{nameQuotaFaulty, gauge, "1 while the quotas' counts cannot be kept in ARKVORY_STATE_DIR; the log says why.", nil},
	{nameFileFaulty, gauge, "1 while the file as it stands cannot be used and the last good one is in force; the log and the readiness answer say why.", by("file", fileNames)},
}

// byName finds a family by its name; filled once, read only.
var byName = func() map[string]*family {
	m := make(map[string]*family, len(catalog))
	for i := range catalog {
		m[catalog[i].name] = &catalog[i]
	}
	return m
}()

// waitBuckets are the upper bounds of waits in seconds, 0.1 s to 24 h: fine around the hold (20 s), coarse over hours.
var waitBuckets = []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400}

// startErrorBuckets are the upper bounds of estimate errors in seconds, from one tick to 4 h.
var startErrorBuckets = []float64{0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400}

// Table returns the metrics as a markdown table, one row a family in the catalog's order. Labels with up to ten values are
// spelled out; the reasons follow below the table.
func Table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range catalog {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, labelText(f.labels), f.help)
	}
	fmt.Fprintf(&b, "\nValues of `outcome`: `%s`.\nOf `reason` at the client: `%s`.\nOf `reason` at the upstream: `%s`.\nOf `status`: `%s`.\n",
		strings.Join(namesOf(ofRequest), "`, `"), strings.Join(namesOf(ofClient), "`, `"),
		strings.Join(namesOf(ofUpstream), "`, `"), strings.Join(statusNames, "`, `"))
	b.WriteString("\nThe page also carries the usual `process_*` and `go_*` metrics. All labels are closed lists: no request adds a series.\n")
	return b.String()
}

func labelText(labels []label) string {
	var parts []string
	for _, l := range labels {
		switch {
		case len(l.values) == 0:
			parts = append(parts, "`"+l.name+"`")
		case len(l.values) <= 10:
			parts = append(parts, "`"+l.name+"`: "+strings.Join(l.values, ", "))
		default:
			parts = append(parts, "`"+l.name+"` (below)")
		}
	}
	return strings.Join(parts, "; ")
}

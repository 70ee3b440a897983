package telemetry

import (
	"encoding/json"
	"regexp"
	"testing"
)

func TestV2_ReasonNamesAreCompleteUniqueAndPlain(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]Reason{}
	for i := range ReasonCount {
		r := Reason(i)
		if !word.MatchString(r.String()) {
			t.Errorf("reason %d has the name %q, want lower-case words joined by _", i, r)
		}
		if other, dup := seen[r.String()]; dup {
			t.Errorf("reasons %d and %d share the name %q", other, r, r)
		}
		seen[r.String()] = r
		if s := r.Status(); r != OK && r != ClientHandshake && (s < 400 || s > 504) {
			t.Errorf("%v answers with status %d, want an error status", r, s)
		}
	}
}

func TestV2_ReasonNamesAreStable(t *testing.T) {
	// what clients and dashboards already match on; a change here is a change of the interface
	for want, r := range map[string]Reason{
		"ok": OK, "busy": Busy, "download_queued": DownloadQueued, "queue_full": QueueFull,
		"too_many_requests_in_flight": TooManyRequestsInFlight, "draining": Draining,
		"upstream_unreachable": UpstreamUnreachable, "upstream_timeout": UpstreamTimeout, "upstream_broken": UpstreamBroken,
		"upstream_malformed": UpstreamMalformed, "malformed_request": MalformedRequest, "header_timeout": HeaderTimeout,
		"header_too_large": HeaderTooLarge, "client_gone": ClientGone, "stalled": Stalled, "upload_idle": UploadIdle,
		"upload_deadline": UploadDeadline, "panic": Panic, "not_allowed": NotAllowed, "unknown": Unknown,
	} {
		if r.String() != want {
			t.Errorf("reason %d is called %q, want %q", r, r, want)
		}
	}
}

func TestV2_ReasonOutsideTheEnumIsUnknown(t *testing.T) {
	r := Reason(ReasonCount)
	if r.String() != "unknown" || r.Status() != 500 {
		t.Errorf("got %q with status %d, want unknown with 500", r, r.Status())
	}
	var zero Reason
	if zero != Unknown {
		t.Errorf("the zero reason is %v, want unknown", zero)
	}
}

func TestV2_ReasonInJSONIsItsWord(t *testing.T) {
	got, err := json.Marshal(map[string]any{"reason": DownloadQueued})
	if err != nil || string(got) != `{"reason":"download_queued"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestP7_StatusOfUpstreamFaults(t *testing.T) {
	for r, want := range map[Reason]int{UpstreamUnreachable: 502, UpstreamBroken: 502, UpstreamMalformed: 502, UpstreamTimeout: 504,
		TooManyRequestsInFlight: 503, Draining: 503, MalformedRequest: 400, HeaderTooLarge: 431, HeaderTimeout: 408} {
		if got := r.Status(); got != want {
			t.Errorf("%v answers with %d, want %d", r, got, want)
		}
	}
}

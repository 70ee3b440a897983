package config

import (
	"strings"
	"testing"
)

func TestL2_UnknownVariablesAreWarnings(t *testing.T) {
	for _, one := range []struct{ assignment, want string }{
		{"ARKVORY_MAX_DOWNLOAD=5", "ARKVORY_MAX_DOWNLOAD: unknown, ignored; did you mean ARKVORY_MAX_DOWNLOADS?"},
		{"ARKVORY_UPSTEAM=http://u:p@x", "ARKVORY_UPSTEAM: unknown, ignored; did you mean ARKVORY_UPSTREAM?"},
		{"arkvory_listen=:1", "arkvory_listen: unknown, ignored; did you mean ARKVORY_LISTEN?"},
		{"ARKVORY_DOWNLOAD_HOLD_MS=6", "ARKVORY_DOWNLOAD_HOLD_MS: unknown, ignored; did you mean ARKVORY_DOWNLOAD_HOLD_SECONDS?"},
		{"ARKVORY_QQQQQQQQQQQQ=1", "ARKVORY_QQQQQQQQQQQQ: unknown, ignored"},
		{"ARKVORY_" + strings.Repeat("A", 200) + "=1", "ARKVORY_" + strings.Repeat("A", 200) + ": unknown, ignored"},
		{"ARKVORY_A\nB=1", `"ARKVORY_A\nB": unknown, ignored`},
		{"ARKVORY_UNHEARD_OF=", "ARKVORY_UNHEARD_OF: unknown, ignored"},
		{"ARKVORY_QUEUE=postgres", "ARKVORY_QUEUE: not in this version, ignored"},
		{"ARKVORY_DATABASE_URLS=postgres://u:p@h/d", "ARKVORY_DATABASE_URLS: unknown, ignored; did you mean ARKVORY_DATABASE_URL?"},
		{"ARKVORY_QUEUES=postgres", "ARKVORY_QUEUES: unknown, ignored"},
		{"ARKVORY_STATEDIR=/var/lib/arkvory", "ARKVORY_STATEDIR: unknown, ignored; did you mean ARKVORY_STATE_DIR?"},
		{"ARKVORY_TICKET_KEYS=k", "ARKVORY_TICKET_KEYS: unknown, ignored; did you mean ARKVORY_TICKET_KEY?"},
		{"ARKVORY_DOWNLOAD_DRIP_LIMITS=0", "ARKVORY_DOWNLOAD_DRIP_LIMITS: unknown, ignored; did you mean ARKVORY_DOWNLOAD_DRIP_LIMIT?"},
		{"ARKVORY_RESTART_GRACE_MS=30000", "ARKVORY_RESTART_GRACE_MS: unknown, ignored; did you mean ARKVORY_RESTART_GRACE_SECONDS?"},
		{"ARKVORY_DOWNLOAD_PREEMPTION=false", "ARKVORY_DOWNLOAD_PREEMPTION: unknown, ignored; did you mean ARKVORY_DOWNLOAD_PREEMPT?"},
		{"ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=1024", "ARKVORY_MAX_REQUESTS: is below the 4184 requests that ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC times " +
			"ARKVORY_DOWNLOAD_RANGES_PER_SESSION, ARKVORY_MAX_DOWNLOADS, ARKVORY_MAX_UPLOADS and ARKVORY_TRANSFER_QUEUE_LIMIT allow together"},
		{"ARKVORY_MAX_REQUESTS=10", "ARKVORY_MAX_REQUESTS: is below the 152 requests that ARKVORY_MAX_DOWNLOAD_SESSIONS times ARKVORY_DOWNLOAD_RANGES_PER_SESSION, " +
			"ARKVORY_MAX_DOWNLOADS, ARKVORY_MAX_UPLOADS and ARKVORY_TRANSFER_QUEUE_LIMIT allow together"},
		{"ARKVORY_PRINCIPAL_FROM=client-cert,address", "ARKVORY_PRINCIPAL_FROM: client-cert never hits while ARKVORY_TLS_CLIENT_CA_FILE is unset"},
		{"ARKVORY_PRINCIPAL_FROM=address,signature", "ARKVORY_PRINCIPAL_FROM: entries after address are never reached: every request has an address"},
	} {
		_, warnings := mustLoad(t, one.assignment)
		if len(warnings) != 1 || warnings[0].String() != one.want {
			t.Errorf("%q warns %v, want %q", one.assignment, warnings, one.want)
		}
	}
}

func TestB1_RateOfAPrincipalAboveItsDirectionIsAWarning(t *testing.T) {
	_, warnings := mustLoad(t, "ARKVORY_UPLOAD_BYTES_PER_SECOND=65536", "ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL=65537",
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND=65536", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL=65537")
	if len(warnings) != 2 || warnings[0].Variable != "ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL" ||
		warnings[1].Variable != "ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL" {
		t.Errorf("warnings are %v, want both rates, sorted", warnings)
	}
}

func TestL2_NamesOfOthersPassWithoutWarning(t *testing.T) {
	_, warnings := mustLoad(t, "PATH=/bin", "ARKVORY=1", "MY_ARKVORY_LISTEN=1", "no-equals-sign", "=", "",
		"ARKVORY_SERVICE_HOST=10.0.0.1", "ARKVORY_SERVICE_PORT=80", "ARKVORY_SERVICE_PORT_HTTP=80", "ARKVORY_PORT=tcp://10.0.0.1:80",
		"ARKVORY_PORT_80_TCP=tcp://10.0.0.1:80", "ARKVORY_PORT_80_TCP_ADDR=10.0.0.1", "ARKVORY_SIDECAR_PORT_80_UDP_PROTO=udp")
	if len(warnings) != 0 {
		t.Errorf("warnings are %v, want none", warnings)
	}
	_, warnings = mustLoad(t, "ARKVORY_PORT=8080")
	if len(warnings) != 1 {
		t.Errorf("a port that is no service link warns %v, want one warning", warnings)
	}
}

func TestL2_Distance(t *testing.T) {
	for _, one := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"same", "same", 0}, {"ab", "ba", 2}} {
		if got := distance(one.a, one.b); got != one.want {
			t.Errorf("distance(%q, %q) = %d, want %d", one.a, one.b, got, one.want)
		}
	}
}

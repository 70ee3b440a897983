package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const wantDefaults = `ARKVORY_LISTEN=:8080
ARKVORY_ADMIN_LISTEN=127.0.0.1:8081
ARKVORY_ADMIN_TOKEN=(unset)
ARKVORY_TLS_CERT_FILE=
ARKVORY_TLS_KEY_FILE=
ARKVORY_TLS_CLIENT_CA_FILE=
ARKVORY_MAX_REQUESTS=1024
ARKVORY_MAX_CONNECTIONS=16384
ARKVORY_MAX_HEADER_BYTES=65536
ARKVORY_HEADER_TIMEOUT_MS=10000
ARKVORY_CLIENT_IDLE_TIMEOUT_SECONDS=75
ARKVORY_STALL_TIMEOUT_MS=300000
ARKVORY_DRAIN_SECONDS=25
ARKVORY_UPSTREAM=
ARKVORY_UPSTREAM_HOST=
ARKVORY_UPSTREAM_CA_FILE=
ARKVORY_UPSTREAM_FOLLOW_REDIRECTS=false
ARKVORY_UPSTREAM_DIAL_TIMEOUT_MS=5000
ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS=300000
ARKVORY_UPSTREAM_IDLE_TIMEOUT_SECONDS=45
ARKVORY_UPSTREAM_MAX_IDLE=256
ARKVORY_UPSTREAM_MAX_CONNECTIONS=4096
ARKVORY_UPSTREAM_RESOLVER=
ARKVORY_UPSTREAM_RESOLVE_SECONDS=30
ARKVORY_UPSTREAM_FLOOR=adaptive
ARKVORY_UPSTREAM_FLOOR_IDLE_SECONDS=90
ARKVORY_UPSTREAM_FLOOR_HOLD_SECONDS=180
ARKVORY_UPSTREAM_SHADOW=1
ARKVORY_UPSTREAM_PROBE_SECONDS=15
ARKVORY_UPSTREAM_PROBE_PATH=/
ARKVORY_UPSTREAM_QUARANTINE_FAILURES=5
ARKVORY_UPSTREAM_SLOW_START_SECONDS=30
ARKVORY_UPSTREAM_FALLBACK=
ARKVORY_UPSTREAM_FALLBACK_POLICY=off
ARKVORY_UPSTREAM_FALLBACK_AFTER_SECONDS=10
ARKVORY_UPSTREAM_FALLBACK_BACK_SECONDS=30
ARKVORY_UPSTREAM_WAIT_MS=3000
ARKVORY_UPSTREAM_STALL_SECONDS=15
ARKVORY_UPSTREAM_RESUME=true
ARKVORY_VIA=
ARKVORY_TRUSTED_PROXIES=
ARKVORY_PRINCIPAL_FROM=signature,authorization,address
ARKVORY_PRINCIPALS_FILE=
ARKVORY_CLIENTS_FILE=
ARKVORY_MAX_UPLOADS=8
ARKVORY_MAX_DOWNLOADS=16
ARKVORY_MAX_UPLOADS_PER_PRINCIPAL=4
ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL=4
ARKVORY_TRANSFER_QUEUE_LIMIT=64
ARKVORY_TRANSFER_QUEUE_PER_PRINCIPAL=8
ARKVORY_TRANSFER_QUEUE_TIMEOUT_MS=20000
ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES=1048576
ARKVORY_UPLOAD_IDLE_TIMEOUT_MS=30000
ARKVORY_UPLOAD_DEADLINE_MS=1800000
ARKVORY_UPLOAD_BYTES_PER_SECOND=0
ARKVORY_DOWNLOAD_BYTES_PER_SECOND=0
ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL=0
ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL=0
ARKVORY_DOWNLOAD_STRATEGY=ordered
ARKVORY_MAX_DOWNLOAD_SESSIONS=16
ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=16
ARKVORY_DOWNLOAD_RESERVE=1
ARKVORY_DOWNLOAD_WEIGHTS=interactive=8,release=4,bulk=2,background=1
ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=16777216
ARKVORY_DOWNLOAD_IDLE_SECONDS=30
ARKVORY_DOWNLOAD_AGING_MINUTES=15
ARKVORY_DOWNLOAD_PREEMPT=true
ARKVORY_DOWNLOAD_RANGES_PER_SESSION=4
ARKVORY_DOWNLOAD_QUEUE_LIMIT=65536
ARKVORY_DOWNLOAD_QUEUE_PER_PRINCIPAL=4096
ARKVORY_DOWNLOAD_HOLD_SECONDS=20
ARKVORY_DOWNLOAD_BUNDLES=true
ARKVORY_DOWNLOAD_DRIP_LIMIT=4096
ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND=1024
ARKVORY_DATABASE_URL=(unset)
ARKVORY_TICKET_KEY=(unset)
ARKVORY_STATE_DIR=
ARKVORY_RESTART_GRACE_SECONDS=30
ARKVORY_OBJECT_CACHE_ENTRIES=65536
ARKVORY_OBJECT_CACHE_SECONDS=600
ARKVORY_DECISION_LOG=
ARKVORY_LOG_LEVEL=info
ARKVORY_LOG_FORMAT=auto
`

func TestL2_DefaultsOfAnEmptyEnvironment(t *testing.T) {
	c, warnings := mustLoad(t)
	if got := printed(c); got != wantDefaults {
		t.Errorf("defaults are\n%s\nwant\n%s", got, wantDefaults)
	}
	if len(warnings) != 0 {
		t.Errorf("defaults warn: %v", warnings)
	}
	if c.HeaderTimeout != 10*time.Second || c.DownloadAging != 15*time.Minute || c.DownloadHold != 20*time.Second || c.RestartGrace != 30*time.Second || c.Upstream != nil {
		t.Errorf("units are lost: %+v", c)
	}
}

func TestL2_EmptyIsUnset(t *testing.T) {
	var environ []string
	for _, name := range Known() {
		environ = append(environ, name+"=")
	}
	c, warnings := mustLoad(t, append(environ, "ARKVORY_QUEUE=")...)
	if got := printed(c); got != wantDefaults || len(warnings) != 0 {
		t.Errorf("empty variables give\n%s with %v, want the defaults", got, warnings)
	}
}

func TestA1_DefaultsFollowOtherVariables(t *testing.T) {
	for _, one := range []struct{ environ, want []string }{
		{[]string{"MAX_UPLOADS=2", "MAX_DOWNLOADS=3"}, []string{"MAX_UPLOADS_PER_PRINCIPAL=2", "MAX_DOWNLOADS_PER_PRINCIPAL=3", "MAX_DOWNLOAD_SESSIONS=3", "DOWNLOAD_RESERVE=0"}},
		{[]string{"MAX_DOWNLOADS=200"}, []string{"MAX_DOWNLOADS_PER_PRINCIPAL=4", "MAX_DOWNLOAD_SESSIONS=200", "DOWNLOAD_RESERVE=1"}},
		{[]string{"MAX_DOWNLOAD_SESSIONS=4"}, []string{"DOWNLOAD_RESERVE=1", "MAX_DOWNLOAD_SESSIONS_ELASTIC=4"}},
		{[]string{"MAX_DOWNLOADS=200"}, []string{"MAX_DOWNLOAD_SESSIONS_ELASTIC=200"}},
		{[]string{"MAX_DOWNLOAD_SESSIONS=4", "MAX_DOWNLOAD_SESSIONS_ELASTIC=8"}, []string{"MAX_DOWNLOAD_SESSIONS=4", "MAX_DOWNLOAD_SESSIONS_ELASTIC=8"}},
		{[]string{"MAX_DOWNLOAD_SESSIONS=3"}, []string{"DOWNLOAD_RESERVE=0"}},
		{[]string{"DOWNLOAD_RESERVE=0"}, []string{"DOWNLOAD_RESERVE=0"}},
		{[]string{"TRANSFER_QUEUE_TIMEOUT_MS=60000"}, []string{"DOWNLOAD_HOLD_SECONDS=25"}},
		{[]string{"TRANSFER_QUEUE_TIMEOUT_MS=24001"}, []string{"DOWNLOAD_HOLD_SECONDS=25"}},
		{[]string{"TRANSFER_QUEUE_TIMEOUT_MS=500"}, []string{"DOWNLOAD_HOLD_SECONDS=1"}},
		{[]string{"TRANSFER_QUEUE_TIMEOUT_MS=500", "DOWNLOAD_HOLD_SECONDS=0"}, []string{"DOWNLOAD_HOLD_SECONDS=0"}},
		{[]string{"TRANSFER_QUEUE_LIMIT=5"}, []string{"TRANSFER_QUEUE_PER_PRINCIPAL=5"}},
		{[]string{"DOWNLOAD_QUEUE_LIMIT=50"}, []string{"DOWNLOAD_QUEUE_PER_PRINCIPAL=50"}},
		{[]string{"UPLOAD_DEADLINE_MS=5"}, []string{"UPLOAD_IDLE_TIMEOUT_MS=5"}},
		{[]string{"DOWNLOAD_SESSION_MIN_BYTES=5"}, []string{"DOWNLOAD_ADMISSION_MIN_BYTES=5"}},
		{[]string{"UPSTREAM_MAX_CONNECTIONS=5"}, []string{"UPSTREAM_MAX_IDLE=5"}},
		{[]string{"DOWNLOAD_WEIGHTS=bulk=7"}, []string{"DOWNLOAD_WEIGHTS=interactive=8,release=4,bulk=7,background=1"}},
	} {
		var environ []string
		for _, assignment := range one.environ {
			environ = append(environ, "ARKVORY_"+assignment)
		}
		text := printed(first(mustLoad(t, environ...)))
		for _, want := range one.want {
			if !strings.Contains(text, "ARKVORY_"+want+"\n") {
				t.Errorf("%q does not give %s", one.environ, want)
			}
		}
	}
}

func TestL2_LoadedValues(t *testing.T) {
	c, _ := mustLoad(t, "ARKVORY_UPSTREAM=https://Origin.test:5000/", "ARKVORY_PRINCIPAL_FROM=header:X-User, cookie:sid ,address",
		"ARKVORY_TRUSTED_PROXIES=10.1.2.3/8, ::ffff:192.0.2.1,::ffff:10.0.0.0/104,2001:db8::1", "ARKVORY_UPSTREAM_FOLLOW_REDIRECTS=true",
		"ARKVORY_MAX_UPLOADS=0008", "ARKVORY_LOG_LEVEL=warn", "ARKVORY_LOG_LEVEL=error", "ARKVORY_ADMIN_TOKEN=sixteen-letters-")
	if c.Upstream.String() != "https://Origin.test:5000" {
		t.Errorf("upstream is %v", c.Upstream)
	}
	if want := (PrincipalSources{{KindHeader, "X-User"}, {KindCookie, "sid"}, {KindAddress, ""}}); !slices.Equal(c.PrincipalFrom, want) {
		t.Errorf("principal sources are %v, want %v", c.PrincipalFrom, want)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"),
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}
	if !slices.Equal(c.TrustedProxies, networks) {
		t.Errorf("trusted proxies are %v, want %v", c.TrustedProxies, networks)
	}
	if !c.UpstreamFollowRedirects || c.MaxUploads != 8 || c.LogLevel != "error" || c.AdminToken.Reveal() != "sixteen-letters-" {
		t.Errorf("values are lost: %+v", c)
	}
}

// everyVariable returns an assignment of an accepted value to each variable: its example, with files that exist.
func everyVariable(t *testing.T) []string {
	cert, key := pair(t)
	files := map[string]string{
		"ARKVORY_TLS_CERT_FILE": cert, "ARKVORY_TLS_KEY_FILE": key, "ARKVORY_TLS_CLIENT_CA_FILE": cert, "ARKVORY_UPSTREAM_CA_FILE": cert,
		"ARKVORY_PRINCIPALS_FILE": write(t, "p.yaml", "{}"), "ARKVORY_CLIENTS_FILE": write(t, "c.yaml", "{}"),
		"ARKVORY_DECISION_LOG": filepath.Join(t.TempDir(), "decisions.log"), "ARKVORY_STATE_DIR": t.TempDir(),
	}
	var environ []string
	for _, one := range definitions {
		value := one.example
		if files[one.name] != "" {
			value = files[one.name]
		}
		environ = append(environ, one.name+"="+value)
	}
	return environ
}

func TestL2_ExamplesAreAcceptedAndPrintLoadsAgain(t *testing.T) {
	environ := everyVariable(t)
	c, warnings := mustLoad(t, environ...)
	if len(warnings) != 0 {
		t.Errorf("the examples warn: %v", warnings)
	}
	var again []string
	for line := range strings.Lines(printed(c)) {
		again = append(again, strings.TrimSuffix(line, "\n"))
	}
	for i, one := range definitions {
		if one.secret {
			again[i] = environ[i]
		}
	}
	if second, _ := mustLoad(t, again...); !reflect.DeepEqual(c, second) {
		t.Errorf("what Print wrote loads as\n%+v\nwant\n%+v", second, c)
	}
}

func TestL2_DefinitionsAreTheFieldsOfConfig(t *testing.T) {
	var tags []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		name := field.Tag.Get("env")
		tags = append(tags, name)
		if isTime := field.Type == reflect.TypeFor[time.Duration](); isTime != (unitOf(name) != "") {
			t.Errorf("%s of type %v does not suit the unit in its name", name, field.Type)
		}
	}
	if !slices.Equal(tags, Known()) {
		t.Errorf("the fields are %q, the definitions %q", tags, Known())
	}
	for _, one := range definitions {
		if one.derived != "" && defaults[one.name] != "" {
			t.Errorf("%s has a default and a derived one", one.name)
		}
		if strings.ContainsAny(one.rule+one.meaning+one.derived, "|\n") || one.rule == "" || one.meaning == "" || one.example == "" {
			t.Errorf("%s has a text that breaks the table or is missing", one.name)
		}
	}
}

func TestL2_SeedProfilesAreValid(t *testing.T) {
	base := []string{"ARKVORY_UPSTREAM=http://127.0.0.1:9", "ARKVORY_LISTEN=127.0.0.1:7001", "ARKVORY_ADMIN_LISTEN=127.0.0.1:7002", "ARKVORY_DOWNLOAD_RESERVE=0",
		"ARKVORY_MAX_DOWNLOADS=64", "ARKVORY_MAX_UPLOADS=32", "ARKVORY_DOWNLOAD_HOLD_SECONDS=6", "ARKVORY_DOWNLOAD_IDLE_SECONDS=2"}
	for name, more := range map[string][]string{
		"plain": {"ARKVORY_MAX_DOWNLOAD_SESSIONS=64", "ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL=64", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=1073741824"},
		"queue": {"ARKVORY_MAX_DOWNLOAD_SESSIONS=2", "ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL=2", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=1048576"},
		"pace":  {"ARKVORY_DOWNLOAD_BYTES_PER_SECOND=4194304", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL=2097152"},
		"huge":  {"ARKVORY_UPLOAD_BYTES_PER_SECOND=1099511627776", "ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL=1099511627776"},
	} {
		if _, warnings := mustLoad(t, slices.Concat(base, more)...); len(warnings) != 0 {
			t.Errorf("profile %s warns: %v", name, warnings)
		}
	}
}

func TestI5_SecretsAreNeverShown(t *testing.T) {
	const secret = "Tr0ub4dor-and-3-more"
	c, _ := mustLoad(t, "ARKVORY_ADMIN_TOKEN="+secret)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{printed(c), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		shown = append(shown, fmt.Sprintf(verb, c), fmt.Sprintf(verb, c.AdminToken), fmt.Sprintf(verb, &c))
	}
	for _, environ := range [][]string{
		{"ARKVORY_ADMIN_TOKEN=" + secret + " x"}, {"ARKVORY_ADMIN_TOKEN=" + secret + "\n"}, {"ARKVORY_ADMIN_TOKEN=" + strings.Repeat(secret, 300)},
		{"ARKVORY_UPSTREAM=http://user:" + secret + "@origin"}, {"ARKVORY_UPSTREAM=ftp://user:" + secret + "@origin:x"},
		{"ARKVORY_UPSTREAM=http://origin?sig=" + secret}, {"ARKVORY_UPSTREAM=http://user:" + secret + "%zz@origin/"},
	} {
		_, _, err := Load(environ)
		if err == nil {
			t.Errorf("Load(%q) has no fault", environ)
			continue
		}
		shown = append(shown, err.Error())
	}
	_, warnings := mustLoad(t, "ARKVORY_ADMIN_TOKENS="+secret, "ARKVORY_DATABASE_URLS=postgres://u:"+secret+"@h/d", "ARKVORY_DATABASE_URL=postgres://u:"+secret+"@h/d")
	if len(warnings) != 2 {
		t.Errorf("warnings are %v, want two", warnings)
	}
	shown = append(shown, fmt.Sprint(warnings))
	for _, text := range shown {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
			t.Errorf("the secret is shown in %.300q", text)
		}
	}
	if got := valueIn(t, shown[0], "ARKVORY_ADMIN_TOKEN"); got != "(set)" {
		t.Errorf("the set token prints as %q", got)
	}
}

func TestL2_LongValuesAreCut(t *testing.T) {
	if got := len(faultsOf(t, "ARKVORY_MAX_UPLOADS="+strings.Repeat("9", 100000))[0].Error()); got > 600 {
		t.Errorf("a long value makes a fault of %d bytes", got)
	}
}

func TestL2_FaultsUnwrap(t *testing.T) {
	_, _, err := Load([]string{"ARKVORY_MAX_UPLOADS=0"})
	var one Fault
	if !errors.As(err, &one) || one.Variable != "ARKVORY_MAX_UPLOADS" || one.Value != `"0"` {
		t.Errorf("errors.As gave %+v", one)
	}
}

func TestP10_ListenersCollide(t *testing.T) {
	for _, one := range []struct {
		left, right string
		want        bool
	}{
		{":1", ":1", true}, {":1", ":2", false}, {":0", ":0", false}, {"127.0.0.1:1", "127.0.0.2:1", false}, {"0.0.0.0:1", "10.0.0.1:1", true},
		{"[::]:1", "10.0.0.1:1", true}, {"LOCALHOST:1", "localhost:1", true}, {"localhost:1", "[::1]:1", true}, {"localhost:1", "10.0.0.1:1", false},
		{"a:1", "b:1", false}, {"[::ffff:10.0.0.1]:1", "10.0.0.1:1", true},
	} {
		if collide(one.left, one.right) != one.want || collide(one.right, one.left) != one.want {
			t.Errorf("collide(%q, %q) is not %v", one.left, one.right, one.want)
		}
	}
}

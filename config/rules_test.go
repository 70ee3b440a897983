package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// wrong is a value that must be refused, with a part of the problem. with adds variables that provoke a conflict.
type wrong struct {
	value   string
	problem string
	with    []string
}

// numberCases are the ways a whole number can be wrong.
func numberCases(low, high string, more ...wrong) []wrong {
	return append([]wrong{
		{low, "is below", nil}, {"-99999999999999999999", "is below", nil},
		{high, "is above", nil}, {"99999999999999999999", "is above", nil},
		{"many", "is not a whole number", nil}, {"1.5", "is not a whole number", nil}, {"+5", "is not a whole number", nil},
		{"5s", "is not a whole number", nil}, {" 5", "is not a whole number", nil}, {"0x10", "is not a whole number", nil},
		{"5\r", "control character", nil},
	}, more...)
}

func hostCases() []wrong {
	return []wrong{
		{"host:99999", "port above 65535", nil}, {"host:100000", "no number", nil}, {"host:http", "no number", nil}, {"host:", "no number", nil},
		{"::1", "more than one colon", nil}, {"[::1", "brackets", nil}, {"[::1]80", "closing bracket", nil}, {"[host]:80", "brackets", nil},
		{"[::g]:80", "no IPv6", nil}, {"1.2.3.999:80", "neither a name nor an address", nil}, {"a..b:80", "neither a name", nil},
		{"a b:80", "neither a name", nil}, {"-a:80", "neither a name", nil}, {strings.Repeat("a", 64) + ":80", "neither a name", nil},
	}
}

// pipeOf makes a named pipe: to open one blocks.
func pipeOf(t *testing.T) string {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	return pipe
}

func fileCases(t *testing.T) []wrong {
	return []wrong{
		{"/nowhere/at/all", "no such file", nil}, {t.TempDir(), "not a regular file", nil}, {pipeOf(t), "not a regular file", nil},
		{write(t, "file", "x") + "/below", "not a directory", nil},
	}
}

func certificateCases(t *testing.T) []wrong {
	return append(fileCases(t), wrong{write(t, "no.crt", "not PEM"), "without a PEM certificate", nil})
}

// wrongValues holds the refused values of every variable.
func wrongValues(t *testing.T) map[string][]wrong {
	cert, _ := pair(t)
	_, otherKey := pair(t)
	return map[string][]wrong{
		"ARKVORY_LISTEN": append(hostCases(), wrong{"localhost", "has no port", nil}, wrong{":-1", "no number", nil}),
		"ARKVORY_ADMIN_LISTEN": append(hostCases(),
			wrong{":8080", "cannot be bound next to", nil},
			wrong{"127.0.0.1:9000", "cannot be bound next to", []string{"ARKVORY_LISTEN=:9000"}},
			wrong{"localhost:9000", "cannot be bound next to", []string{"ARKVORY_LISTEN=127.0.0.1:9000"}},
			wrong{"[::1]:9000", "cannot be bound next to", []string{"ARKVORY_LISTEN=[0::1]:9000"}}),
		"ARKVORY_ADMIN_TOKEN": {{"fifteen-letters", "shorter than 16", nil}, {strings.Repeat("a", 4097), "longer than 4096", nil},
			{"a token with spaces", "a space or", nil}, {"token-with-umlaut-ü", "outside visible ASCII", nil}},
		"ARKVORY_TLS_CERT_FILE": append(certificateCases(t)[:5:5],
			wrong{cert, "does not form a pair", []string{"ARKVORY_TLS_KEY_FILE=" + otherKey}}),
		"ARKVORY_TLS_KEY_FILE": fileCases(t),
		"ARKVORY_TLS_CLIENT_CA_FILE": append(certificateCases(t),
			wrong{cert, "without ARKVORY_TLS_CERT_FILE", []string{"ARKVORY_TLS_CERT_FILE=", "ARKVORY_TLS_KEY_FILE="}}),
		"ARKVORY_MAX_REQUESTS":                numberCases("0", "65537"),
		"ARKVORY_MAX_CONNECTIONS":             numberCases("0", "1048577"),
		"ARKVORY_MAX_HEADER_BYTES":            numberCases("8191", "1048577"),
		"ARKVORY_HEADER_TIMEOUT_MS":           numberCases("0", "3600001"),
		"ARKVORY_CLIENT_IDLE_TIMEOUT_SECONDS": numberCases("0", "86401"),
		"ARKVORY_STALL_TIMEOUT_MS":            numberCases("0", "86400001"),
		"ARKVORY_DRAIN_SECONDS":               numberCases("-1", "86401"),
		"ARKVORY_UPSTREAM": {{"http://a,origin:80", "an entry 2 that does not begin", nil}, {"http://a,http://A", "stands in the list already", nil}, {"http://a,", "an entry 2", nil},
			{strings.TrimSuffix(strings.Repeat("http://a,", 33), ","), "more than 32", nil}, {"origin:80", "http:// or https://", nil}, {"ftp://origin", "http:// or https://", nil}, {"http://", "no host", nil},
			{"http:origin", "no host", nil}, {"http://u:p@origin", "user or password", nil}, {"http://origin/path", "has a path", nil},
			{"http://origin//", "has a path", nil}, {"http://origin?", "query or a fragment", nil}, {"http://origin#", "query or a fragment", nil},
			{"http://origin:0", "port 0", nil}, {"http://origin:65536", "above 65535", nil}, {"http://origin:x", "not a URL", nil},
			{"http://o rigin", "not a URL", nil}, {"http://origin:", "no number", nil}, {"http://1.2.3.4.5", "neither a name", nil}},
		"ARKVORY_UPSTREAM_HOST": append(hostCases(), wrong{":80", "neither a name", nil}, wrong{"host:0", "port 0", nil}, wrong{"host:-1", "no number", nil},
			wrong{"[fe80::1%eth0]:80", "has a zone", nil}),
		"ARKVORY_UPSTREAM_CA_FILE":              certificateCases(t),
		"ARKVORY_UPSTREAM_FOLLOW_REDIRECTS":     {{"yes", "none of true, false", nil}, {"1", "none of", nil}, {"True", "none of", nil}},
		"ARKVORY_UPSTREAM_DIAL_TIMEOUT_MS":      numberCases("0", "3600001"),
		"ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS":  numberCases("0", "86400001"),
		"ARKVORY_UPSTREAM_IDLE_TIMEOUT_SECONDS": numberCases("0", "3601"),
		"ARKVORY_UPSTREAM_MAX_IDLE": numberCases("-1", "1048577",
			wrong{"4097", "above ARKVORY_UPSTREAM_MAX_CONNECTIONS, which is 4096", nil},
			wrong{"11", "which is 10", []string{"ARKVORY_UPSTREAM_MAX_CONNECTIONS=10"}}),
		"ARKVORY_UPSTREAM_MAX_CONNECTIONS": numberCases("0", "1048577"),
		"ARKVORY_VIA":                      {{"two words", "neither a word nor", nil}, {"host:0", "neither a word", nil}, {"a,b", "neither a word", nil}, {"(x)", "neither a word", nil}},
		"ARKVORY_TRUSTED_PROXIES": {{"proxy", "entry 1 that is no address", nil}, {"10.0.0.1,10.0.0.0/33", "entry 2 that is no address with a prefix", nil},
			{"10.0.0.1,", "entry 2 that is empty", nil}, {"fe80::1%eth0", "without a zone", nil}, {"::ffff:0:0/90", "IPv4-mapped", nil},
			{strings.Repeat("::1,", 4096) + "::1", "more than 4096", nil}},
		"ARKVORY_PRINCIPAL_FROM": {{"token", "entry 1 that is no kind", nil}, {"address,", "entry 2 that is empty", nil},
			{"signature,signature", "stands in the list already", nil}, {"cookie", "lacks a name", nil}, {"cookie:", "lacks a name", nil},
			{"cookie:a b", "characters that no cookie name", nil}, {"address:x", "takes none", nil}, {"Address", "no kind", nil},
			{"header:X-User,header:x-user", "stands in the list already", []string{"ARKVORY_TRUSTED_PROXIES=::1"}},
			{"header:X-User", "while ARKVORY_TRUSTED_PROXIES is unset", nil},
			{strings.Repeat("cookie:a,", 17), "more than 16", nil}},
		"ARKVORY_PRINCIPALS_FILE": fileCases(t),
		"ARKVORY_CLIENTS_FILE":    fileCases(t),
		"ARKVORY_MAX_UPLOADS":     numberCases("0", "33"),
		"ARKVORY_MAX_DOWNLOADS":   numberCases("0", "257"),
		"ARKVORY_MAX_UPLOADS_PER_PRINCIPAL": numberCases("0", "33",
			wrong{"9", "above ARKVORY_MAX_UPLOADS, which is 8", nil}, wrong{"3", "which is 2", []string{"ARKVORY_MAX_UPLOADS=2"}}),
		"ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL": numberCases("0", "257",
			wrong{"17", "above ARKVORY_MAX_DOWNLOADS, which is 16", nil}, wrong{"3", "which is 2", []string{"ARKVORY_MAX_DOWNLOADS=2"}}),
		"ARKVORY_TRANSFER_QUEUE_LIMIT":         numberCases("0", "65537"),
		"ARKVORY_TRANSFER_QUEUE_PER_PRINCIPAL": numberCases("0", "65537", wrong{"65", "above ARKVORY_TRANSFER_QUEUE_LIMIT, which is 64", nil}),
		"ARKVORY_TRANSFER_QUEUE_TIMEOUT_MS":    numberCases("0", "3600001"),
		"ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES": numberCases("-1", "1099511627777",
			wrong{"16777217", "above ARKVORY_DOWNLOAD_SESSION_MIN_BYTES, which is 16777216", nil}),
		"ARKVORY_UPLOAD_IDLE_TIMEOUT_MS": numberCases("0", "1800001",
			wrong{"1001", "above ARKVORY_UPLOAD_DEADLINE_MS, which is 1000", []string{"ARKVORY_UPLOAD_DEADLINE_MS=1000"}}),
		"ARKVORY_UPLOAD_DEADLINE_MS":                      numberCases("0", "1800001"),
		"ARKVORY_UPLOAD_BYTES_PER_SECOND":                 numberCases("65535", "1099511627777", wrong{"1", "below 65536 and not 0", nil}),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND":               numberCases("65535", "1099511627777", wrong{"-1", "below", nil}),
		"ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL":   numberCases("65535", "1099511627777"),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL": numberCases("65535", "1099511627777"),
		"ARKVORY_DOWNLOAD_STRATEGY":                       {{"fifo", "none of ordered, smallest-first, fair-sojourn, shared", nil}, {"Ordered", "none of", nil}, {"smallest first", "none of", nil}},
		"ARKVORY_MAX_DOWNLOAD_SESSIONS":                   numberCases("0", "1025"),
		"ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC": numberCases("0", "1025",
			wrong{"15", "below ARKVORY_MAX_DOWNLOAD_SESSIONS, which is 16", nil},
			wrong{"7", "which is 8", []string{"ARKVORY_MAX_DOWNLOAD_SESSIONS=8"}},
			wrong{"31", "which is 32", []string{"ARKVORY_MAX_DOWNLOADS=32"}}),
		"ARKVORY_DOWNLOAD_RESERVE": numberCases("-1", "1024",
			wrong{"16", "not below ARKVORY_MAX_DOWNLOAD_SESSIONS, which is 16", nil},
			wrong{"2", "which is 2", []string{"ARKVORY_MAX_DOWNLOAD_SESSIONS=2"}}),
		"ARKVORY_DOWNLOAD_WEIGHTS": {{"8", "no class=weight", nil}, {"human=8", "names no class", nil}, {"bulk=0", "outside 1..1000", nil},
			{"bulk=1001", "outside 1..1000", nil}, {"bulk=99999999999999999999", "outside 1..1000", nil}, {"bulk=", "no whole number", nil},
			{"bulk=x", "no whole number", nil}, {"bulk=+1", "no whole number", nil}, {"bulk=1,bulk=2", "entry 2 that names no class, or one", nil},
			{"bulk=1,", "entry 2 that is no class=weight", nil}},
		"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES":  numberCases("-1", "1099511627777"),
		"ARKVORY_DOWNLOAD_IDLE_SECONDS":       numberCases("0", "3601"),
		"ARKVORY_DOWNLOAD_AGING_MINUTES":      numberCases("-1", "10081"),
		"ARKVORY_DOWNLOAD_PREEMPT":            {{"yes", "none of true, false", nil}, {"0", "none of", nil}, {"False", "none of", nil}},
		"ARKVORY_DOWNLOAD_RANGES_PER_SESSION": numberCases("0", "65"),
		"ARKVORY_DOWNLOAD_QUEUE_LIMIT": numberCases("0", "1048577",
			wrong{"15", "below ARKVORY_MAX_DOWNLOAD_SESSIONS, which is 16", nil},
			wrong{"999", "which is 1000", []string{"ARKVORY_MAX_DOWNLOAD_SESSIONS=1000", "ARKVORY_MAX_REQUESTS=9999"}}),
		"ARKVORY_DOWNLOAD_QUEUE_PER_PRINCIPAL": numberCases("0", "1048577", wrong{"65537", "above ARKVORY_DOWNLOAD_QUEUE_LIMIT, which is 65536", nil}),
		"ARKVORY_DOWNLOAD_HOLD_SECONDS":        numberCases("-1", "26"),
		"ARKVORY_UPSTREAM_RESOLVER":            {{"dns.internal:53", "no address with a port", nil}, {"127.0.0.1", "no address", nil}, {"127.0.0.1:0", "no address", nil}},
		"ARKVORY_UPSTREAM_RESOLVE_SECONDS":     numberCases("0", "3601"),
		"ARKVORY_UPSTREAM_FLOOR":               {{"0", "neither adaptive", nil}, {"4097", "neither adaptive", nil}, {"many", "neither adaptive", nil}, {"1.5", "neither", nil}},
		"ARKVORY_UPSTREAM_FLOOR_IDLE_SECONDS":  numberCases("0", "86401"),
		"ARKVORY_UPSTREAM_FLOOR_HOLD_SECONDS":  numberCases("0", "86401"),
		"ARKVORY_UPSTREAM_SHADOW":              numberCases("-1", "17"),
		"ARKVORY_UPSTREAM_PROBE_SECONDS":       numberCases("-1", "3601"),
		"ARKVORY_UPSTREAM_PROBE_PATH":          {{"v2/", "does not begin with /", nil}, {"/a b", "no path has", nil}, {"/a#b", "no path has", nil}, {"/\u00e9", "no path has", nil}},
		"ARKVORY_UPSTREAM_QUARANTINE_FAILURES": numberCases("-1", "1025"),
		"ARKVORY_UPSTREAM_SLOW_START_SECONDS":  numberCases("-1", "3601"),
		"ARKVORY_UPSTREAM_FALLBACK": {{"mirror:80", "http:// or https://", nil}, {"http://mirror/path", "has a path", nil},
			{"http://Origin:5000", "is one of ARKVORY_UPSTREAM", []string{"ARKVORY_UPSTREAM=http://a,http://origin:5000"}}},
		"ARKVORY_UPSTREAM_FALLBACK_POLICY": {{"sometimes", "none of off, on-outage, always", nil}, {"always", "while ARKVORY_UPSTREAM_FALLBACK is unset", nil},
			{"on-outage", "while ARKVORY_UPSTREAM_FALLBACK is unset", nil}},
		"ARKVORY_UPSTREAM_FALLBACK_AFTER_SECONDS": numberCases("0", "86401"),
		"ARKVORY_UPSTREAM_FALLBACK_BACK_SECONDS":  numberCases("0", "86401"),
		"ARKVORY_UPSTREAM_WAIT_MS":                numberCases("-1", "60001"),
		"ARKVORY_UPSTREAM_STALL_SECONDS":          numberCases("-1", "3601"),
		"ARKVORY_UPSTREAM_RESUME":                 {{"yes", "none of true, false", nil}, {"0", "none of", nil}},
		"ARKVORY_DOWNLOAD_BUNDLES":                {{"yes", "none of true, false", nil}, {"1", "none of", nil}, {"True", "none of", nil}},
		"ARKVORY_DOWNLOAD_DRIP_LIMIT":             numberCases("-1", "65537"),
		"ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND":  numberCases("0", "65537"),
		"ARKVORY_DATABASE_URL":                    {{value: "mysql://h/d", problem: "does not begin with"}, {value: "postgres://u@/d", problem: "no host"}},
		"ARKVORY_TICKET_KEY":                      wrongKeys(),
		"ARKVORY_STATE_DIR": {{"/nowhere/at/all", "no such file", nil}, {write(t, "file", "x"), "not a directory", nil},
			{write(t, "file", "x") + "/below", "not a directory", nil}, {pipeOf(t), "not a directory", nil}, {t.TempDir() + "\n", "control character", nil},
			{linkTo(t, "/nowhere/at/all"), "no such file", nil}, {linkTo(t, write(t, "file", "x")), "not a directory", nil}},
		"ARKVORY_RESTART_GRACE_SECONDS": numberCases("-1", "601"),
		"ARKVORY_OBJECT_CACHE_ENTRIES":  numberCases("0", "1048577"),
		"ARKVORY_OBJECT_CACHE_SECONDS":  numberCases("0", "86401"),
		"ARKVORY_DECISION_LOG": {{"/nowhere/at/all", "its directory: no such file", nil}, {t.TempDir(), "not a regular file", nil},
			{write(t, "file", "x") + "/below", "not a directory", nil}, {pipeOf(t), "not a regular file", nil}},
		"ARKVORY_LOG_LEVEL":  {{"loud", "none of", nil}, {"INFO", "none of", nil}},
		"ARKVORY_LOG_FORMAT": {{"xml", "none of", nil}},
	}
}

func TestL2_EveryWrongValueIsOneFaultOfItsVariable(t *testing.T) {
	cert, key := pair(t)
	companions := map[string][]string{
		"ARKVORY_TLS_CERT_FILE":      {"ARKVORY_TLS_KEY_FILE=" + key},
		"ARKVORY_TLS_KEY_FILE":       {"ARKVORY_TLS_CERT_FILE=" + cert},
		"ARKVORY_TLS_CLIENT_CA_FILE": {"ARKVORY_TLS_CERT_FILE=" + cert, "ARKVORY_TLS_KEY_FILE=" + key},
	}
	cases := wrongValues(t)
	for _, name := range Known() {
		if len(cases[name]) == 0 {
			t.Errorf("no wrong value of %s is tested", name)
		}
		for _, one := range cases[name] {
			environ := slices.Concat(companions[name], one.with, []string{name + "=" + one.value})
			faults := faultsOf(t, environ...)
			if len(faults) != 1 || faults[0].Variable != name || !strings.Contains(faults[0].Problem, one.problem) {
				t.Errorf("%s=%.60q gave %v, want one fault of it with %q", name, one.value, faults, one.problem)
				continue
			}
			if faults[0].Rule == "" || !strings.HasPrefix(faults[0].Example, name+"=") {
				t.Errorf("%s: the fault lacks its rule or example: %v", name, faults[0])
			}
		}
	}
	if len(cases) != len(Known()) {
		t.Errorf("%d variables are tested, %d are known", len(cases), len(Known()))
	}
}

func TestL2_TheEndsOfEveryRangeAreAccepted(t *testing.T) {
	// The values are grouped so that no rule between two variables interferes.
	for _, environ := range [][]string{
		{"ARKVORY_MAX_REQUESTS=1", "ARKVORY_MAX_CONNECTIONS=1", "ARKVORY_MAX_HEADER_BYTES=8192", "ARKVORY_HEADER_TIMEOUT_MS=1",
			"ARKVORY_CLIENT_IDLE_TIMEOUT_SECONDS=1", "ARKVORY_STALL_TIMEOUT_MS=1", "ARKVORY_DRAIN_SECONDS=0", "ARKVORY_UPSTREAM_MAX_IDLE=0",
			"ARKVORY_MAX_UPLOADS=1", "ARKVORY_MAX_DOWNLOADS=1", "ARKVORY_TRANSFER_QUEUE_LIMIT=1", "ARKVORY_UPLOAD_DEADLINE_MS=1",
			"ARKVORY_UPLOAD_BYTES_PER_SECOND=65536", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND=0", "ARKVORY_DOWNLOAD_RESERVE=0",
			"ARKVORY_DOWNLOAD_WEIGHTS=bulk=1", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=0", "ARKVORY_DOWNLOAD_IDLE_SECONDS=1",
			"ARKVORY_DOWNLOAD_AGING_MINUTES=0", "ARKVORY_DOWNLOAD_PREEMPT=false", "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=1", "ARKVORY_DOWNLOAD_QUEUE_LIMIT=1", "ARKVORY_DOWNLOAD_HOLD_SECONDS=0",
			"ARKVORY_DOWNLOAD_BUNDLES=false", "ARKVORY_DOWNLOAD_DRIP_LIMIT=0", "ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND=1", "ARKVORY_RESTART_GRACE_SECONDS=0", "ARKVORY_LISTEN=:0", "ARKVORY_ADMIN_LISTEN=:0"},
		{"ARKVORY_MAX_REQUESTS=65536", "ARKVORY_MAX_HEADER_BYTES=1048576", "ARKVORY_DRAIN_SECONDS=86400", "ARKVORY_MAX_UPLOADS=32", "ARKVORY_MAX_DOWNLOADS=256",
			"ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL=256", "ARKVORY_MAX_UPLOADS_PER_PRINCIPAL=32", "ARKVORY_UPLOAD_IDLE_TIMEOUT_MS=1800000",
			"ARKVORY_UPLOAD_DEADLINE_MS=1800000", "ARKVORY_MAX_DOWNLOAD_SESSIONS=1024", "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=1024", "ARKVORY_DOWNLOAD_PREEMPT=true", "ARKVORY_DOWNLOAD_RESERVE=1023",
			"ARKVORY_DOWNLOAD_WEIGHTS=interactive=1000,release=1000,bulk=1000,background=1000", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=1099511627776",
			"ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES=1099511627776", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND=1099511627776", "ARKVORY_DOWNLOAD_IDLE_SECONDS=3600",
			"ARKVORY_DOWNLOAD_RANGES_PER_SESSION=64", "ARKVORY_DOWNLOAD_QUEUE_LIMIT=1048576", "ARKVORY_DOWNLOAD_HOLD_SECONDS=25",
			"ARKVORY_DOWNLOAD_BUNDLES=true", "ARKVORY_DOWNLOAD_DRIP_LIMIT=65536", "ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND=65536", "ARKVORY_RESTART_GRACE_SECONDS=600", "ARKVORY_LISTEN=:65535"},
	} {
		text := printed(first(mustLoad(t, environ...)))
		for _, assignment := range environ {
			name, value, _ := strings.Cut(assignment, "=")
			if got := valueIn(t, text, name); !strings.Contains(got, value) {
				t.Errorf("%s: effective value %q, want %q", name, got, value)
			}
		}
	}
}

func first(c Config, _ []Warning) Config { return c }

func TestL2_AllFaultsAtOnceInTheOrderOfTheTable(t *testing.T) {
	names := []string{"ARKVORY_LISTEN", "ARKVORY_TLS_KEY_FILE", "ARKVORY_MAX_REQUESTS", "ARKVORY_UPSTREAM", "ARKVORY_MAX_UPLOADS_PER_PRINCIPAL", "ARKVORY_LOG_LEVEL"}
	cert, _ := pair(t)
	faults := faultsOf(t, "ARKVORY_LOG_LEVEL=loud", "ARKVORY_MAX_UPLOADS_PER_PRINCIPAL=9", "ARKVORY_UPSTREAM=nowhere",
		"ARKVORY_MAX_REQUESTS=0", "ARKVORY_TLS_CERT_FILE="+cert, "ARKVORY_LISTEN=x")
	var got []string
	for _, one := range faults {
		got = append(got, one.Variable)
	}
	if !slices.Equal(got, names) {
		t.Errorf("faults of %q, want %q", got, names)
	}
	text := (&Faults{List: faults}).Error()
	for _, want := range []string{"6 faults", `ARKVORY_MAX_REQUESTS="0": is below 1; rule: whole number 1..65536; example: ARKVORY_MAX_REQUESTS=1024`,
		`ARKVORY_TLS_KEY_FILE=(unset): is missing while ARKVORY_TLS_CERT_FILE is set`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

func TestL2_FaultsOfVariablesThatAreNotGiven(t *testing.T) {
	_, key := pair(t)
	for _, one := range []struct{ environ, want string }{
		{"ARKVORY_TLS_KEY_FILE=" + key, "ARKVORY_TLS_CERT_FILE=(unset): is missing while ARKVORY_TLS_KEY_FILE is set"},
		{"ARKVORY_LISTEN=:8081", "ARKVORY_ADMIN_LISTEN=(default 127.0.0.1:8081): cannot be bound next to ARKVORY_LISTEN, which is :8081"},
	} {
		if faults := faultsOf(t, one.environ); len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), one.want) {
			t.Errorf("%s gave %v, want %q", one.environ, faults, one.want)
		}
	}
}

func TestL2_TheFileToWriteIsLookedAtAndNotTouched(t *testing.T) {
	there := write(t, "decisions.log", "of the last run")
	fresh := filepath.Join(t.TempDir(), "decisions.log")
	for _, path := range []string{there, fresh} {
		if c, _ := mustLoad(t, "ARKVORY_DECISION_LOG="+path); c.DecisionLog != path {
			t.Errorf("the path became %q", c.DecisionLog)
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "of the last run" {
		t.Errorf("the file that was there holds %q, %v", text, err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the check made a file: %v", err)
	}
}

func TestL2_OneMistakeIsOneFault(t *testing.T) {
	for _, environ := range [][]string{
		{"ARKVORY_MAX_DOWNLOADS=0", "ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL=200", "ARKVORY_DOWNLOAD_RESERVE=200"},
		{"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=x", "ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES=99999999"},
		{"ARKVORY_TRUSTED_PROXIES=x", "ARKVORY_PRINCIPAL_FROM=header:X-User"},
		{"ARKVORY_LISTEN=:x", "ARKVORY_ADMIN_LISTEN=:8080"},
		{"ARKVORY_MAX_DOWNLOAD_SESSIONS=x", "ARKVORY_DOWNLOAD_QUEUE_LIMIT=5"},
		{"ARKVORY_MAX_DOWNLOAD_SESSIONS=x", "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=5"},
		{"ARKVORY_MAX_DOWNLOADS=x", "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=5"},
	} {
		faults := faultsOf(t, environ...)
		if name, _, _ := strings.Cut(environ[0], "="); len(faults) != 1 || faults[0].Variable != name {
			t.Errorf("Load(%q) gave %v, want one fault of %s", environ, faults, name)
		}
	}
}

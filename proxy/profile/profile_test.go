package profile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/wire"
)

func request(t testing.TB, method, target string, lines ...string) *wire.Head {
	t.Helper()
	h := &wire.Head{}
	raw := method + " " + target + " HTTP/1.1\r\nHost: store.example\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
	if _, err := h.ParseRequest([]byte(raw), 0); err != nil {
		t.Fatalf("%s %q: %v", target, lines, err)
	}
	return h
}

func newTable(t testing.TB, text string) (*Table, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clients.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := New(Settings{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return table, path
}

func TestX1_MeasuredClients(t *testing.T) {
	table, err := New(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		userAgent, target, name string
		hold                    time.Duration
		status                  int
		body                    BodyKind
	}{
		{"skopeo/1.9.3", "/v2/a/blobs/sha256:0", "skopeo", MaxHold, 429, OCI},
		{"libpod/4.3.1", "/v2/a/blobs/sha256:0", "podman", MaxHold, 429, OCI},
		{"containers/5.23.1 (github.com/containers/image)", "/v2/a/blobs/sha256:0", "containers", MaxHold, 429, OCI},
		{"oras/1.3.0", "/v2/a/blobs/sha256:0", "oras", MaxHold, 429, OCI},
		{"containerd/1.6.20~ds1", "/v2/a/blobs/sha256:0", "containerd", MaxHold, 429, OCI},
		{"git-lfs/3.8.1 (GitHub; linux amd64; go 1.26)", "/r.git/info/lfs/objects/0", "git-lfs", MaxHold, 429, LFS},
		{"git-lfs/3.8.1", "/objects/0", "git-lfs", MaxHold, 429, LFS},
		{"docker/20.10.24 go/go1.19 kernel/6.1", "/v2/a/blobs/sha256:0", "docker", MaxHold, 503, OCI},
		{"crane/0.22 go-containerregistry/0.22", "/v2/a/blobs/sha256:0", "crane", MaxHold, 503, OCI},
		{"pip/23.0.1 {\"ci\":null}", "/packages/a.whl", "pip", shortHold, 503, Plain},
		{"PIP/23.0.1", "/packages/a.whl", "pip", shortHold, 503, Plain},
		{"poetry/1.8", "/packages/a.whl", "poetry", shortHold, 503, Plain},
		{"Debian APT-HTTP/1.3 (2.6.1)", "/pool/a.deb", "apt", MaxHold, 503, Plain},
		{"curl/7.88.1", "/a", "curl", MaxHold, 503, Plain},
		{"curl/7.88.1", "/v2/a/blobs/sha256:0", "curl", MaxHold, 503, OCI},
		{"curl/7.88.1", "/v2", "curl", MaxHold, 503, OCI},
		{"curl/7.88.1", "/v2x/a", "curl", MaxHold, 503, Plain},
		{"Wget/1.21.3", "/a", "wget", MaxHold, 503, Plain},
		{"npm/11.0.0 node/v20", "/a/-/a-1.tgz", "npm", MaxHold, 503, Plain},
		{"aws-cli/2.9.19 Python/3.11", "/b/k", "aws", MaxHold, 503, Plain},
		{"MinIO (linux; amd64) minio-go/v7.4.1", "/b/k", "minio-go", MaxHold, 503, Plain},
		{"Go-http-client/1.1", "/r.git/info/lfs/objects/0", "go-http-client", MaxHold, 503, LFS},
		{"pi", "/a", "other", MaxHold, 503, Plain},
		{"", "/a", "other", MaxHold, 503, Plain},
		{"\xe9tranger/1", "/a", "other", MaxHold, 503, Plain},
	} {
		want := Profile{Name: c.name, HoldLimit: c.hold, RefuseStatus: c.status, Body: c.body}
		if got := table.Match(request(t, "GET", c.target, "User-Agent: "+c.userAgent)); got != want {
			t.Errorf("%s %s: %+v, want %+v", c.userAgent, c.target, got, want)
		}
	}
	if got := table.Match(request(t, "GET", "/a")); got.Name != "other" {
		t.Errorf("no User-Agent: %+v", got)
	}
	// Q10: a protocol client gets 503 and our JSON whatever it calls itself
	if got := table.Match(request(t, "GET", "/v2/a/blobs/sha256:0", "User-Agent: skopeo/1", "Arkvory-Download-Id: d")); got != protocol {
		t.Errorf("protocol client: %+v", got)
	}
}

func TestX1_HoldsEndBeforeTheClientGivesUp(t *testing.T) {
	names := map[string]bool{}
	for _, r := range append([]row{other}, builtins...) {
		p := r.profile
		if p.HoldLimit <= 0 || p.HoldLimit > MaxHold || strings.HasPrefix(p.Name, "pip") && p.HoldLimit >= 15*time.Second {
			t.Errorf("%s is held for %s", p.Name, p.HoldLimit)
		}
		if !validName(p.Name) || names[p.Name] || r.userAgent != strings.ToLower(r.userAgent) {
			t.Errorf("%s: a bad or repeated name, or a User-Agent in upper case", p.Name)
		}
		names[p.Name] = true
	}
}

func TestV4_ABrowserNavigation(t *testing.T) {
	table, err := New(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	const mozilla = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)"
	for _, c := range []struct {
		method string
		lines  []string
		want   bool
	}{
		{"GET", []string{mozilla, "Sec-Fetch-Mode: navigate", "Accept: */*"}, true},
		{"GET", []string{mozilla, "Sec-Fetch-Mode: cors", "Accept: text/html"}, false},
		{"GET", []string{mozilla, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, true},
		{"GET", []string{mozilla, "Sec-Fetch-Dest: iframe", "Sec-Fetch-Mode: navigate"}, true},
		{"GET", []string{mozilla, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: empty"}, false}, // a link that saves
		{"GET", []string{mozilla, "Accept: text/html,application/xml;q=0.9"}, true},
		{"GET", []string{mozilla, "Accept: */*"}, false},
		{"GET", []string{mozilla}, false},
		{"POST", []string{mozilla, "Sec-Fetch-Mode: navigate"}, false},
		{"GET", []string{"User-Agent: curl/8", "Accept: text/html"}, false},
	} {
		if got := table.Match(request(t, c.method, "/a", c.lines...)).Browser; got != c.want {
			t.Errorf("%s %q: %v", c.method, c.lines, got)
		}
	}
}

func TestX1_TheFileComesFirst(t *testing.T) {
	table, path := newTable(t, `
clients:
  - {name: corp, userAgent: CorpFetch/, holdSeconds: 0, refuseStatus: 429, body: lfs}
  - {name: old-curl, userAgent: curl/7.1, holdSeconds: 5, body: plain}
  - {name: kiosk, userAgent: Kiosk, browser: true}
  - {name: app, userAgent: Mozilla/5.0 (App), browser: false}
`)
	for _, c := range []struct {
		userAgent, target string
		want              Profile
	}{
		{"corpfetch/2", "/v2/a", Profile{"corp", 0, 429, LFS, false}},
		{"curl/7.1.0", "/v2/a", Profile{"old-curl", 5 * time.Second, 503, Plain, false}},
		{"curl/8.1.0", "/v2/a", Profile{"curl", MaxHold, 503, OCI, false}},
		{"kiosk", "/v2/a", Profile{"kiosk", MaxHold, 503, OCI, true}},
		{"Mozilla/5.0 (App) x", "/a", Profile{"app", MaxHold, 503, Plain, false}},
		{"Mozilla/5.0 (X)", "/a", Profile{"browser", MaxHold, 503, Plain, true}},
	} {
		if got := table.Match(request(t, "GET", c.target, "User-Agent: "+c.userAgent, "Accept: text/html")); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.userAgent, got, c.want)
		}
	}
	if table.Match(request(t, "POST", "/a", "User-Agent: kiosk")).Browser {
		t.Error("a POST is no navigation")
	}
	if err := os.WriteFile(path, []byte("clients: [{name: X}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if table.Poll() || !strings.Contains(table.Problem(), "ARKVORY_CLIENTS_FILE") || table.Match(request(t, "GET", "/", "User-Agent: kiosk")).Name != "kiosk" {
		t.Errorf("problem %q; the last good table must stay", table.Problem())
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := table.Reload(); err != nil || table.Problem() != "" || table.Match(request(t, "GET", "/", "User-Agent: kiosk")).Name != "other" {
		t.Errorf("%v, problem %q; an emptied file leaves the built-in table", err, table.Problem())
	}
}

func TestX1_EveryFaultOfTheFileWithItsLine(t *testing.T) {
	_, err := parseRows([]byte(`clients:
  - {name: Corp, userAgent: a}
  - {name: a, userAgent: ""}
  - {name: a, userAgent: x, holdSeconds: 26}
  - {name: b, userAgent: y, refuseStatus: 500}
  - {name: c, userAgent: z, body: xml}
  - {name: d, userAgent: q, browser: 1}
  - {name: e, userAgent: "X"}
  - {name: f, userAgent: r, hold: 1}
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range []string{
		"line 2: a client needs a name of 1 to 32", "line 3: a client needs a userAgent of 1 to 128", "line 4: holdSeconds must be a whole number from 0 to 25",
		"line 5: refuseStatus must be 503 or 429", "line 6: body must be plain, oci or lfs", "line 7: browser must be true or false",
		"line 8: the same userAgent is given on line 4 already", `line 9: a client: the key "hold" is unknown`,
	} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
	if _, err := parseRows([]byte("clients:\n" + strings.Repeat("  - {name: a, userAgent: b}\n", maxRows+1))); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("%v", err)
	}
	if _, err := New(Settings{File: "/nonexistent"}); err == nil {
		t.Error("an absent file must stop the start")
	}
}

func TestX1_MatchAndSteeringAllocateNothing(t *testing.T) {
	table, _ := newTable(t, "clients: [{name: corp, userAgent: CorpFetch/}]")
	for _, userAgent := range []string{"docker/20.10 go/go1.19", "curl/8", "npm/11 node/v20", "Mozilla/5.0 (X11)", "CorpFetch/1", "nobody/1", "pip/23"} {
		for _, target := range []string{"/v2/a/blobs/sha256:0", "/a/b.iso?x=1", "/@scope%2fname", "/debian/dists/stable/InRelease", "/simple/a/"} {
			h := request(t, "GET", target, "User-Agent: "+userAgent, "Accept: text/html,*/*", "Sec-Fetch-Mode: navigate")
			if n := testing.AllocsPerRun(100, func() { table.Match(h); Steering(h) }); n != 0 {
				t.Errorf("%s %s: %v allocations", userAgent, target, n)
			}
		}
	}
}

func FuzzClientsFile(f *testing.F) {
	f.Add([]byte("clients: [{name: a, userAgent: b, holdSeconds: 1, refuseStatus: 429, body: oci, browser: true}]"), "b/1")
	f.Add([]byte("clients:\n- userAgent: \"\\x00\"\n"), "")
	f.Fuzz(func(t *testing.T, b []byte, userAgent string) {
		v, err := parseRows(b)
		if err != nil {
			return
		}
		p := v.find([]byte(userAgent)).profile
		if p.HoldLimit < 0 || p.HoldLimit > MaxHold || p.RefuseStatus != 503 && p.RefuseStatus != 429 || !validName(p.Name) {
			t.Fatalf("%+v", p)
		}
	})
}

func TestQ10_RefusalBodies(t *testing.T) {
	at := time.Date(2026, 11, 30, 14, 5, 0, 0, time.FixedZone("", 3600))
	full := Refusal{Status: 503, Reason: "download_queued", Message: "The download waits <in> the queue.", RetryAfterSeconds: 12, Position: 312,
		StartsAt: at, StartsEarliest: at.Add(-time.Minute), StartsLatest: at.Add(time.Minute), Ticket: "2.a.b.c", Class: "bulk"}
	const facts = `"reason":"download_queued","message":"The download waits \u003cin\u003e the queue.","status":503,"retryAfterSeconds":12,"queuePosition":312,"startsAt":"2026-11-30T13:05:00Z","startsWindow":{"earliest":"2026-11-30T13:04:00Z","latest":"2026-11-30T13:06:00Z"},"queueTicket":"2.a.b.c","downloadClass":"bulk"`
	for _, c := range []struct {
		name string
		kind BodyKind
		r    Refusal
		mime string
		want string
	}{
		{"plain", Plain, full, "application/json", `{"error":"busy",` + facts + `}`},
		{"lfs", LFS, full, "application/vnd.git-lfs+json", `{"error":"busy",` + facts + `}`},
		{"oci", OCI, full, "application/json", `{"errors":[{"code":"TOOMANYREQUESTS","message":"The download waits \u003cin\u003e the queue.","detail":{"error":"busy",` + strings.Replace(facts, `"message":"The download waits \u003cin\u003e the queue.",`, "", 1) + `}}]}`},
		{"plain, little known", Plain, Refusal{Error: "draining"}, "application/json", `{"error":"draining"}`},
		{"lfs needs a message", LFS, Refusal{}, "application/vnd.git-lfs+json", `{"error":"busy","message":"busy"}`},
		{"oci needs a message", OCI, Refusal{}, "application/json", `{"errors":[{"code":"TOOMANYREQUESTS","message":"busy","detail":{"error":"busy"}}]}`},
		{"half a window", Plain, Refusal{StartsLatest: at}, "application/json", `{"error":"busy"}`},
	} {
		mime, body := Body(Profile{Body: c.kind}, c.r)
		if mime != c.mime || string(body) != c.want+"\n" {
			t.Errorf("%s: %s\n got %swant %s", c.name, mime, body, c.want)
		}
		if !json.Valid(body) {
			t.Errorf("%s: no JSON", c.name)
		}
	}
}

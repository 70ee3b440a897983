package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// foreignAnswer is an answer of something that need not be an admin listener.
type foreignAnswer struct {
	status int
	kind   string
	body   string
}

// foreignServer answers one after another, the last for ever, and keeps what it was asked.
type foreignServer struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	header http.Header
	retry  string // Retry-After of a 429
}

func (f *foreignServer) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func foreign(t *testing.T, answers []foreignAnswer) *foreignServer {
	t.Helper()
	t.Setenv(tokenVariable, "")
	t.Setenv("ARKVORY_ADMIN_TOKEN_FILE", "")
	f := &foreignServer{retry: "0"}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		one := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		f.asked, f.header = append(f.asked, r.Method+" "+r.URL.String()), r.Header.Clone()
		if one.status == http.StatusTooManyRequests && f.retry != "" {
			w.Header().Set("Retry-After", f.retry)
		}
		f.mu.Unlock()
		if one.kind != "" {
			w.Header().Set("Content-Type", one.kind)
		}
		if one.status >= 300 && one.status < 400 {
			w.Header().Set("Location", "http://198.51.100.1/elsewhere")
		}
		w.WriteHeader(one.status)
		_, _ = io.WriteString(w, one.body)
	}))
	t.Cleanup(f.Close)
	t.Setenv("ARKVORY_ADMIN_URL", f.URL)
	return f
}

// queueAnswer is the busy queue as a server sends it.
func queueAnswer(t *testing.T) foreignAnswer {
	t.Helper()
	text, err := json.Marshal(busyQueue())
	if err != nil {
		t.Fatal(err)
	}
	return foreignAnswer{200, "application/json", string(text)}
}

const tooMany = `{"error":"too_many_requests","reason":"rate_limited","message":"slower"}`

// TestV3_WhatIsNoAdminListener is told from one, whatever it answers.
func TestV3_WhatIsNoAdminListener(t *testing.T) {
	for name, one := range map[string]foreignAnswer{
		"a page": {200, "text/html", "<html>"}, "not found": {404, "text/plain", "404"}, "another API": {200, "application/json", `{"hello":1}`}, "a list": {200, "application/json", `[]`},
		"a redirect": {302, "text/html", ""}, "a refusal of another": {401, "application/json", `{"detail":"who are you"}`}, "half a document": {200, "application/json", `{"mode":`},
		"without a type": {500, "", ""}, "wrong types": {200, "application/json", `{"mode":7,"slots":[],"byClass":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := foreign(t, []foreignAnswer{one})
			out, said := expect(t, exitWork, []string{f.URL}, "queue")
			if out != "" || name != "wrong types" && !strings.Contains(said, "is no admin listener of an Arkvory sidecar") {
				t.Errorf("printed %q, said %q", out, said)
			}
			if n := len(f.requests()); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestV3_Unreached: nobody there, nobody answers, another protocol.
func TestV3_Unreached(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + ln.Addr().String() // takes connections and says nothing
	expect(t, exitWork, []string{"no answer from " + silent + " within 50ms"}, "queue", "--admin", silent, "--timeout", "50ms")
	_ = ln.Close()
	expect(t, exitWork, []string{"nobody listens at " + silent, "ARKVORY_ADMIN_LISTEN", "--admin"}, "queue", "--admin", silent)
	s := stand(t, deskSettings{})
	expect(t, exitWork, []string{"speaks http, not https"}, "queue", "--admin", strings.Replace(s.url, "http:", "https:", 1))
}

// TestV3_ConnectionFlags are judged together, before anything is asked, and what is wrong with a secret does not show it.
func TestV3_ConnectionFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv(tokenVariable, "")
	for _, one := range []struct {
		args []string
		says []string
	}{
		{[]string{"--admin", "127.0.0.1:8081"}, []string{"--admin", deskAddress}},
		{[]string{"--admin", "ftp://host"}, []string{"--admin"}},
		{[]string{"--admin", "http://user:" + deskToken + "@host"}, []string{"--admin", "without user"}},
		{[]string{"--admin", "http://host/?token=" + deskToken}, []string{"--admin", "query"}},
		{[]string{"--timeout", "0"}, []string{"--timeout", "10s"}},
		{[]string{"--token-file", dir + "/none"}, []string{"--token-file", "no such file"}},
		{[]string{"--token-file", file("empty", "\n")}, []string{"--token-file", "empty"}},
		{[]string{"--token-file", file("two", deskToken+"\nsecond\n")}, []string{"--token-file", "visible ASCII"}},
		{[]string{"--token-file", file("long", strings.Repeat("x", 5000))}, []string{"--token-file", "4096"}},
		{[]string{"--ca-file", file("ca", "no certificate")}, []string{"--ca-file", "PEM"}},
		{[]string{"--admin", "x", "--timeout", "y", "--ca-file", "/none"}, []string{"--admin", "--timeout", "--ca-file"}},
	} {
		out, _ := expect(t, exitInput, one.says, append([]string{"queue"}, one.args...)...)
		if out != "" {
			t.Errorf("%v printed %q", one.args, out)
		}
	}
	t.Setenv(tokenVariable, "two words "+deskToken)
	expect(t, exitInput, []string{"$" + tokenVariable}, "queue")
}

// TestV3_Tokens: from a file and from the environment, the file first; without one and with a wrong one it is said what is missing.
func TestV3_Tokens(t *testing.T) {
	s := stand(t, deskSettings{far: true})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(deskToken+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"queue"}, {"settings", "get"}, {"settings", "set", "sessions=3"}, {"sessions", "list"}, {"sessions", "kick", "--yes", "00000000000000a1"}} {
		expect(t, exitRefused, []string{"does not trust this caller", "--token-file", "$" + tokenVariable}, command...)
	}
	expect(t, exitDone, []string{"312 sessions"}, "queue", "--token-file", file)
	t.Setenv(tokenVariable, "wrong-token-of-16-and-more")
	expect(t, exitRefused, []string{"does not take this token"}, "queue")
	expect(t, exitDone, nil, "queue", "--token-file", file)
	t.Setenv("ARKVORY_ADMIN_TOKEN_FILE", file)
	expect(t, exitDone, nil, "settings", "set", "sessions=3")
	t.Setenv("ARKVORY_ADMIN_TOKEN_FILE", "")
	t.Setenv(tokenVariable, deskToken)
	out, _ := expect(t, exitDone, []string{"changed by token"}, "settings", "get")
	if out == "" || s.settings.Current().Revision != 1 {
		t.Errorf("revision %d, printed %q", s.settings.Current().Revision, out)
	}
}

// TestV3_HTTPS trusts what --ca-file names and nothing else.
func TestV3_HTTPS(t *testing.T) {
	config, ca := certificate(t)
	s := stand(t, deskSettings{tls: config})
	expect(t, exitWork, []string{"of no known authority", "--ca-file"}, "queue")
	expect(t, exitDone, []string{"312 sessions"}, "queue", "--ca-file", ca)
	expect(t, exitWork, []string{"certificate", "does not fit"}, "queue", "--ca-file", ca, "--admin", strings.Replace(s.url, "127.0.0.1", "localhost", 1))
}

// TestV3_RedirectsAreNotFollowed: the token goes to nobody but the host that was named.
func TestV3_RedirectsAreNotFollowed(t *testing.T) {
	elsewhere := foreign(t, []foreignAnswer{queueAnswer(t)})
	first := httptest.NewServer(http.RedirectHandler(elsewhere.URL+deskPath+"/queue", http.StatusTemporaryRedirect))
	defer first.Close()
	t.Setenv(tokenVariable, deskToken)
	expect(t, exitWork, []string{"307"}, "queue", "--admin", first.URL)
	if asked := elsewhere.requests(); len(asked) > 0 {
		t.Errorf("asked elsewhere: %v", asked)
	}
}

// TestV3_RateLimit: the pause that is asked for is kept, once; without one, or with a long one, it is said.
func TestV3_RateLimit(t *testing.T) {
	f := foreign(t, []foreignAnswer{{429, "application/json", tooMany}, queueAnswer(t)})
	expect(t, exitDone, []string{"312 sessions"}, "queue")
	if n := len(f.requests()); n != 2 {
		t.Errorf("asked %d times", n)
	}
	f = foreign(t, []foreignAnswer{{429, "application/json", tooMany}})
	expect(t, exitRefused, []string{"was asked too often", "pause of 0 s"}, "queue")
	if n := len(f.requests()); n != 2 {
		t.Errorf("asked %d times", n)
	}
	for _, retry := range []string{"", "3600", "soon"} {
		f = foreign(t, []foreignAnswer{{429, "application/json", tooMany}})
		f.retry = retry
		expect(t, exitRefused, []string{"was asked too often"}, "queue")
		if n := len(f.requests()); n != 1 {
			t.Errorf("Retry-After %q: asked %d times", retry, n)
		}
	}
	for text, want := range map[string]time.Duration{"7": 7 * time.Second, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0} {
		if got, ok := retryAfter(http.Header{"Retry-After": {text}}); got != want || !ok {
			t.Errorf("Retry-After %q is %v, %v", text, got, ok)
		}
	}
}

// TestV3_OlderSidecar: one that has no such path says so.
func TestV3_OlderSidecar(t *testing.T) {
	stand(t, deskSettings{without: true})
	expect(t, exitDone, nil, "settings", "get")
	for _, command := range [][]string{{"queue"}, {"sessions", "list"}, {"sessions", "pause", "00000000000000a1"}} {
		expect(t, exitRefused, []string{"does not know this", "older"}, command...)
	}
}

// TestV3_PathBeforeTheAPI: an address with a path, as behind another server, has it before every request.
func TestV3_PathBeforeTheAPI(t *testing.T) {
	f := foreign(t, []foreignAnswer{queueAnswer(t)})
	expect(t, exitDone, nil, "queue", "--admin", f.URL+"/store/admin/")
	if asked := f.requests(); len(asked) != 1 || asked[0] != "GET /store/admin"+deskPath+"/queue" {
		t.Errorf("asked %v", asked)
	}
}

// TestV3_HelpHasTheExitCodes of every command that speaks with the listener, and an example that names it.
func TestV3_HelpHasTheExitCodes(t *testing.T) {
	for _, command := range []string{"queue", "settings get", "settings set", "settings edit", "settings reset", "sessions list", "sessions show", "sessions move", "sessions pause",
		"sessions resume", "sessions kick"} {
		code, out, _ := ctl(t, append(strings.Fields(command), "--help")...)
		flat := strings.Join(strings.Fields(out), " ")
		for _, one := range deskOutcomes {
			if want := strings.Join(strings.Fields(one.word+". "+one.meaning), " "); code != exitDone || !strings.Contains(flat, want) {
				t.Errorf("%s --help does not say %q", command, want)
			}
		}
		if !strings.Contains(flat, "arkvoryctl "+command+" ") {
			t.Errorf("%s --help has no example", command)
		}
	}
	for _, one := range deskOutcomes { // a number means one thing in the whole program
		for _, other := range outcomes {
			if one.code == other.code && one.word != other.reason {
				t.Errorf("%d is %s here and %s of a download", one.code, one.word, other.reason)
			}
		}
	}
}

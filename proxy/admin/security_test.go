package admin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// book keeps audit entries. Safe for concurrent use.
type book struct {
	mu      sync.Mutex
	entries []Entry
}

func (b *book) write(e Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, e)
}

// take returns the entries as lines of JSON, and forgets them.
func (b *book) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for _, e := range b.entries {
		line := []string{}
		e.Each(func(name string, value any) {
			text, err := json.Marshal(value)
			if err != nil {
				panic(err)
			}
			line = append(line, fmt.Sprintf("%s=%s", name, text))
		})
		lines = append(lines, strings.Join(line, " "))
	}
	b.entries = nil
	return lines
}

// The secrets that the requests of these tests carry. They stand in no answer and in no line.
var carried = []string{token, "hunter2", clearSecret}

func holdsSecret(text string) bool {
	return slices.ContainsFunc(carried, func(secret string) bool { return strings.Contains(text, secret) })
}

// withBook serves everything near and far, with an audit log and a clock that no rate keeps up with.
func withBook(t *testing.T, o Settings) (near, far string, lines *book, asked func() int) {
	t.Helper()
	src, d, b := allSources()
	lines = &book{}
	o.Token, o.Console, o.Audit = token, files, lines.write
	if o.Clock == nil {
		o.Clock = ticking(time.Minute)
	}
	return run(t, New(o, src), false), run(t, New(o, src), true), lines, func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return d.asked() + len(b.queries) + len(b.acts) + len(b.minutes)
	}
}

func TestV3_WhoIsRefusedAndWhatTheLogSays(t *testing.T) {
	near, far, lines, asked := withBook(t, Settings{})
	s := described(t)
	own := "Authorization: Bearer " + token
	for _, c := range []struct {
		name, addr string
		lines      []string
		status     int
		reason     string
	}{
		{"remote, no token", far, nil, 401, "unauthorized"},
		{"remote, wrong token", far, []string{"Authorization: Bearer hunter2"}, 401, "unauthorized"},
		{"remote, wrong token like the right one", far, []string{own + "x"}, 401, "unauthorized"},
		{"remote that says it is loopback", far, []string{"X-Forwarded-For: 127.0.0.1", "Host: localhost"}, 401, "unauthorized"},
		{"remote, token in the query only", far, []string{"X-Token: hunter2"}, 401, "unauthorized"},
		{"remote, cookie", far, []string{"Cookie: token=hunter2"}, 401, "unauthorized"},
		{"loopback behind a proxy", near, []string{"X-Forwarded-For: 198.51.100.7"}, 401, "unauthorized"},
		{"loopback behind a proxy, RFC 7239", near, []string{"Forwarded: for=198.51.100.7"}, 401, "unauthorized"},
		{"loopback, rebound name", near, []string{"Host: evil.example"}, 401, "unauthorized"},
		{"cross-site", near, []string{"Sec-Fetch-Site: cross-site"}, 403, "cross_site"},
		{"same-site", near, []string{"Sec-Fetch-Site: same-site"}, 403, "cross_site"},
		{"foreign origin", near, []string{"Origin: https://evil.example"}, 403, "cross_site"},
		{"opaque origin", near, []string{"Origin: null"}, 403, "cross_site"},
		{"foreign origin that has the token", far, []string{own, "Origin: https://evil.example"}, 403, "cross_site"},
		{"cross-site navigation to data", near, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403, "cross_site"},
	} {
		s.operations(func(pattern, method string, operation node) {
			if !strings.HasPrefix(pattern, "/api/") {
				return
			}
			path := s.target(pattern, operation)
			var a answer
			switch method {
			case "PUT":
				a = put(t, c.addr, changeText, append(c.lines, isJSON)...)
			case "POST":
				a = post(t, c.addr, path, "{}", append(c.lines, isJSON)...)
			default:
				a = send(t, c.addr, method, path, c.lines...)
			}
			s.conforms(t, method, pattern, a)
			if a.status != c.status || method != "HEAD" && !strings.Contains(a.body, `"reason":"`+c.reason+`"`) || holdsSecret(a.body) {
				t.Errorf("%s: %s %s: %d %s", c.name, method, path, a.status, a.body)
			}
			got := lines.take()
			if len(got) != 1 || !strings.Contains(got[0], `event="admin_request_refused" by="nobody"`) || holdsSecret(got[0]) ||
				!strings.Contains(got[0], fmt.Sprintf(`method=%q path=%q status=%d reason=%q more=0`, method, pattern, c.status, c.reason)) {
				t.Errorf("%s: %s %s is logged as %q", c.name, method, path, got)
			}
		})
	}
	if asked() != 0 {
		t.Errorf("the desk was asked %d times", asked())
	}
}

func TestV3_BodiesThatAreRefused(t *testing.T) {
	near, _, lines, asked := withBook(t, Settings{})
	s := described(t)
	kick := SessionsPath + "/" + knownID + "/kick"
	secret := `{"password":"hunter2"}`
	chunk := func(n int) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("a", n))
	}
	sized := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	for name, c := range map[string]struct {
		head, rest string
		status     int
		reason     string
	}{
		"form":                     {"POST " + kick, "Content-Type: application/x-www-form-urlencoded\r\n" + sized("a=hunter2"), 415, "unsupported_media_type"},
		"text":                     {"POST " + kick, "Content-Type: text/plain\r\n" + sized(secret), 415, "unsupported_media_type"},
		"multipart":                {"PUT " + SettingsPath, "Content-Type: multipart/form-data; boundary=b\r\n" + sized("--b\r\n\r\nhunter2\r\n--b--\r\n"), 415, "unsupported_media_type"},
		"no type":                  {"POST " + kick, sized(secret), 415, "unsupported_media_type"},
		"compressed":               {"PUT " + SettingsPath, isJSON + "\r\nContent-Encoding: gzip\r\n" + sized(secret), 415, "unsupported_media_type"},
		"action above its bound":   {"POST " + kick, isJSON + "\r\n" + sized(strings.Repeat(" ", maxActionBytes+1)), 413, "malformed_request"},
		"action far above":         {"POST " + kick, isJSON + "\r\n" + sized(strings.Repeat("hunter2 ", 100_000)), 413, "malformed_request"},
		"action in chunks":         {"POST " + kick, isJSON + "\r\n" + chunk(maxActionBytes+1), 413, "malformed_request"},
		"settings above the bound": {"PUT " + SettingsPath, isJSON + "\r\n" + sized(strings.Repeat(" ", maxSettingsBytes+1)), 413, "malformed_request"},
		"settings in chunks":       {"PUT " + SettingsPath, isJSON + "\r\n" + chunk(maxSettingsBytes+1), 413, "malformed_request"},
		"no object":                {"POST " + kick, isJSON + "\r\n" + sized("hunter2"), 400, "malformed_request"},
		"foreign field":            {"POST " + kick, isJSON + "\r\n" + sized(secret), 400, "malformed_request"},
		"broken chunk":             {"POST " + kick, isJSON + "\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhunter2\r\n", 400, "malformed_request"},
		"chunk without its end":    {"POST " + kick, isJSON + "\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}hunter2\r\n0\r\n\r\n", 400, "malformed_request"},
	} {
		method, path, _ := strings.Cut(c.head, " ")
		a := raw(t, near, method, c.head+" HTTP/1.1\r\nHost: "+near+"\r\nConnection: close\r\n"+c.rest)
		pattern := SettingsPath
		if method == "POST" {
			pattern = sessionPath + "/kick"
		}
		s.conforms(t, method, pattern, a)
		if a.status != c.status || !strings.Contains(a.body, `"reason":"`+c.reason+`"`) || holdsSecret(a.body) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		got := lines.take()
		if len(got) != 1 || !strings.Contains(got[0], `by="127.0.0.1" peer="127.0.0.1"`) || !strings.Contains(got[0], fmt.Sprintf("status=%d reason=%q", c.status, c.reason)) || holdsSecret(got[0]) {
			t.Errorf("%s: %s is logged as %q", name, path, got)
		}
	}
	if asked() != 0 {
		t.Errorf("the desk was asked %d times", asked())
	}
	for name, rest := range map[string]string{"a full body": sized(strings.Repeat(" ", maxActionBytes)), "in chunks": chunked("{}")} {
		if a := raw(t, near, "POST", "POST "+kick+" HTTP/1.1\r\nHost: "+near+"\r\nConnection: close\r\n"+isJSON+"\r\n"+rest); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func chunked(body string) string {
	return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}

// patient returns the address of a server that waits so long for a request.
func patient(t *testing.T, lines *book, wait time.Duration) string {
	t.Helper()
	src, _, _ := allSources()
	s := New(Settings{Token: token, Audit: lines.write, Clock: ticking(time.Minute)}, src)
	s.http.ReadTimeout = wait
	return run(t, s, false)
}

func TestV3_SlowAndBrokenBodiesEnd(t *testing.T) {
	lines := &book{}
	short, long, s := patient(t, lines, 200*time.Millisecond), patient(t, lines, readTimeout), described(t)
	for name, c := range map[string]struct {
		length, sent int
		hangUp       bool
		status       int
		reason       string
	}{
		"nothing comes":            {100, 0, false, 408, "header_timeout"},
		"a part comes":             {100, 50, false, 408, "header_timeout"},
		"more than a buffer comes": {20_000, 12_000, false, 408, "header_timeout"},
		"ends in the middle":       {20_000, 12_000, true, 400, "malformed_request"},
		"ends early":               {100, 50, true, 400, "malformed_request"},
	} {
		addr := short
		if c.hangUp { // what has come is read, however busy the machine is
			addr = long
		}
		c0, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c0, fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Length: %d\r\n\r\n%s", SettingsPath, addr, isJSON, c.length, strings.Repeat("hunter2", c.sent/7+1)[:c.sent]))
		if err != nil {
			t.Fatal(err)
		}
		if c.hangUp {
			if err := c0.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.ReadResponse(bufio.NewReader(c0), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.conforms(t, "PUT", SettingsPath, answer{r.StatusCode, r.Header, string(body)})
		if r.StatusCode != c.status || !strings.Contains(string(body), c.reason) || !r.Close || holdsSecret(string(body)) {
			t.Errorf("%s: %d %s, closes: %v", name, r.StatusCode, body, r.Close)
		}
		if _, err := c0.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the connection goes on", name)
		}
		_ = c0.Close()
		if got := lines.take(); len(got) != 1 || !strings.Contains(got[0], c.reason) || holdsSecret(got[0]) {
			t.Errorf("%s is logged as %q", name, got)
		}
	}
}

func TestL3_SlowConnectionsDoNotKeepTheOperatorOut(t *testing.T) {
	lines := &book{}
	addr := patient(t, lines, time.Second)
	var open []net.Conn
	for i := range maxConnections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		part := "GET /health/ready HTTP/1.1\r\nHos" // half of them hang in the head, half in the body
		if i%2 == 0 {
			part = "PUT " + SettingsPath + " HTTP/1.1\r\nHost: " + addr + "\r\n" + isJSON + "\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 10_000)
		}
		if _, err := io.WriteString(c, part); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for _, c := range open {
		if b, err := io.ReadAll(c); err != nil && len(b) == 0 { // a reset may follow the answer
			t.Errorf("a slow connection ended with %v", err)
		} else if !strings.HasPrefix(string(b), "HTTP/1.1 408 ") && !strings.HasPrefix(string(b), "HTTP/1.1 503 ") {
			t.Errorf("a slow connection got %.60q", b)
		}
	}
	if a := send(t, addr, "GET", QueuePath); a.status != 200 {
		t.Errorf("afterwards: %d", a.status)
	}
	if n := len(lines.take()); n > maxConnections {
		t.Errorf("%d lines", n)
	}
}

func TestV3_ChangesAreLogged(t *testing.T) {
	near, far, lines, _ := withBook(t, Settings{})
	own := "Authorization: Bearer " + token
	session := SessionsPath + "/" + knownID
	for _, c := range []struct {
		name string
		do   func() answer
		want string
	}{
		{"settings", func() answer { return put(t, near, changeText, isJSON) },
			`event="settings_changed" by="127.0.0.1" peer="127.0.0.1" method="PUT" path="` + SettingsPath + `" fromRevision=3 revision=4 fields=["sessions"]`},
		{"settings by token", func() answer { return put(t, far, changeText, isJSON, own) },
			`event="settings_changed" by="token" peer="192.0.2.7" method="PUT" path="` + SettingsPath + `" fromRevision=3 revision=4 fields=["sessions"]`},
		{"move", func() answer { return post(t, far, session+"/move", `{"to":"front"}`, isJSON, own) },
			`event="session_action" by="token" peer="192.0.2.7" method="POST" path="` + sessionPath + `/move" session="` + knownID + `" action="move" to="front" ` +
				`beforeState="waiting" beforeClass="bulk" beforePosition=312 beforePaused=false afterState="waiting" afterClass="bulk" afterPosition=1 afterPaused=false`},
		{"class", func() answer { return post(t, near, session+"/move", `{"class":"release"}`, isJSON) },
			`event="session_action" by="127.0.0.1" peer="127.0.0.1" method="POST" path="` + sessionPath + `/move" session="` + knownID + `" action="move" toClass="release" ` +
				`beforeState="waiting" beforeClass="bulk" beforePosition=312 beforePaused=false afterState="waiting" afterClass="release" afterPosition=1 afterPaused=false`},
		{"kick", func() answer { return post(t, near, session+"/kick", ``, isJSON) },
			`event="session_action" by="127.0.0.1" peer="127.0.0.1" method="POST" path="` + sessionPath + `/kick" session="` + knownID + `" action="kick" ` +
				`beforeState="waiting" beforeClass="bulk" beforePosition=312 beforePaused=false afterState="ended" afterClass="bulk" afterPosition=0 afterPaused=false`},
		{"clear ids", func() answer { return send(t, near, "GET", SessionsPath+"?ids=clear") },
			`event="clear_ids_read" by="127.0.0.1" peer="127.0.0.1" method="GET" path="` + SessionsPath + `"`},
		{"clear ids of one", func() answer { return send(t, near, "GET", session+"?ids=clear") },
			`event="clear_ids_read" by="127.0.0.1" peer="127.0.0.1" method="GET" path="` + sessionPath + `" session="` + knownID + `"`},
		{"hashed ids", func() answer { return send(t, near, "GET", SessionsPath) }, ""},
		{"settings read", func() answer { return send(t, near, "GET", SettingsPath) }, ""},
		{"a mistyped path", func() answer { return send(t, far, "GET", "/hunter2", own) }, ""},
	} {
		c.do()
		if got := strings.Join(lines.take(), "\n"); got != c.want || holdsSecret(got) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestV3_NamesOfChangedFields(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{`{}`, `{}`, []string{}}, {`{"a":1}`, `{"a":2}`, []string{"a"}}, {`{"a":1}`, `{}`, []string{"a"}}, {`{}`, `{"b":{},"a":null}`, []string{"a", "b"}},
		{`{"a":{"x":1,"y":[2]}}`, `{ "a": {"y":[2], "x":1} }`, []string{}}, {``, `{}`, nil}, {`{}`, `[]`, nil},
	} {
		if got := changedFields([]byte(c.before), []byte(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: %v, want %v", c.before, c.after, got, c.want)
		}
	}
}

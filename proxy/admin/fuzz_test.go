package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// listen serves until the fuzzing ends and returns the address.
func listen(f *testing.F, s *Server, far bool) string {
	f.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	addr := ln.Addr().String()
	if far {
		ln = farListener{ln}
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	f.Cleanup(func() {
		if err := s.Shutdown(f.Context()); err != nil && f.Context().Err() == nil {
			f.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			f.Errorf("serve: %v", err)
		}
	})
	return addr
}

// allowed is an independent judge of an action's body: what encoding/json makes of it.
func allowed(kind ActionKind, body []byte) (Action, bool) {
	if len(strings.Trim(string(body), " \t\r\n")) == 0 {
		return Action{Kind: kind}, kind != Move
	}
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return Action{}, false
	}
	if kind != Move {
		return Action{Kind: kind}, len(fields) == 0
	}
	to, _ := fields["to"].(string)
	class, _ := fields["class"].(string)
	return Action{kind, to, class}, len(fields) == 1 && (to == ToFront || to == ToBack || slices.Contains(Classes[:], class))
}

func FuzzV3_ActionBody(f *testing.F) {
	for _, body := range []string{`{}`, ``, " \n", "\v", `{"to":"front"}`, `{"to":"back"}`, `{"class":"bulk"}`, `{"to":"front","to":"back"}`, `{"to":"front"}}`, `[{"to":"front"}]`, `{"to":"front","class":"bulk"}`,
		`{"\u0074o":"front"}`, "{\"to\":\"fr\x00ont\"}", `nul`, `{"to":{"to":"front"}}`, strings.Repeat(`{"a":`, 700)} {
		for kind := range actionKinds {
			f.Add(uint8(kind), []byte(body))
		}
	}
	src, _, b := allSources()
	panics := make(chan any, 1)
	s := New(Settings{Clock: ticking(time.Minute), OnPanic: func(v any, _ []byte) { panics <- v }}, src)
	addr, client := listen(f, s, false), &http.Client{}
	f.Cleanup(client.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		kind := actionKinds[int(which)%len(actionKinds)]
		b.acts = nil
		r, err := client.Post("http://"+addr+SessionsPath+"/"+knownID+"/"+string(kind), "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		select {
		case v := <-panics:
			t.Fatalf("panic: %v", v)
		default:
		}
		if len(body) > maxActionBytes {
			if r.StatusCode != 413 || len(b.acts) != 0 {
				t.Errorf("%d bytes: %d, asked %v", len(body), r.StatusCode, b.acts)
			}
			return
		}
		want, ok := allowed(kind, body)
		switch {
		case r.StatusCode == 200 && (!ok || !slices.Equal(b.acts, []Action{want})):
			t.Errorf("%s %q was done as %+v, means %+v, %v", kind, body, b.acts, want, ok)
		case r.StatusCode != 200 && len(b.acts) > 0:
			t.Errorf("%s %q is refused and done", kind, body)
		case r.StatusCode == 400:
			if checkFault(t, string(body), answer{400, r.Header, string(text)}, faultField(text)); ok && strings.Count(string(body), `:`) < 2 { // a name that stands twice has two
				t.Errorf("%s %q is refused: %s", kind, body, text)
			}
		case r.StatusCode != 200:
			t.Errorf("%s %q: %d", kind, body, r.StatusCode)
		}
	})
}

// faultField is the field that a 400 names.
func faultField(text []byte) string {
	var fault Invalid
	_ = json.Unmarshal(text, &fault)
	return fault.Field
}

// Whatever a peer without credentials sends, it learns and changes nothing, and nothing of it is repeated to it.
func FuzzV3_StrangersLearnNothing(f *testing.F) {
	session := SessionsPath + "/" + knownID
	for _, line := range []string{"GET " + QueuePath, "GET " + session + "?ids=clear", "GET " + SettingsPath, "POST " + session + "/kick", "PUT " + SettingsPath, "GET /metrics", "GET /health/ready", "GET /debug/pprof/",
		"GET /console/", "GET http://localhost" + QueuePath, "GET /health/live/../../metrics", "GET /%6detrics", "HEAD /metrics"} {
		for _, rest := range []string{"", isJSON + "\r\nContent-Length: 2\r\n\r\n{}", "X-Forwarded-For : 127.0.0.1\r\n", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n",
			"Authorization: Bearer \r\n", "Authorization: bearer\x00" + token[:4] + "\r\n", "Host: 127.0.0.1\r\n"} {
			f.Add([]byte(line + " HTTP/1.1\r\nHost: localhost\r\n" + rest + "\r\n"))
		}
	}
	src, d, b := allSources()
	lines := &book{}
	panics := make(chan any, 1)
	s := New(Settings{Token: token, Console: files, Audit: lines.write, Clock: ticking(time.Minute), OnPanic: func(v any, _ []byte) { panics <- v }}, src)
	addr := listen(f, s, true)
	f.Fuzz(func(t *testing.T, request []byte) {
		if strings.Contains(string(request), token) {
			return
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// Both ways at once, for the server may end before it has read all; what a reset cuts off is not judged.
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = c.Write(request)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		text, _ := io.ReadAll(c)
		<-sent
		select {
		case v := <-panics:
			t.Fatalf("panic: %v", v)
		default:
		}
		if d.asked()+len(b.queries)+len(b.acts)+len(b.minutes) != 0 {
			t.Fatalf("%q reached the desk", request)
		}
		for _, secret := range []string{token, clearSecret, "arkvory_", `"transfers"`, `"effective"`, "h:1f2e3d4c5b6a7980", "goroutine", `"openapi"`} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%q learned %s: %s", request, secret, text)
			}
		}
		for _, line := range lines.take() {
			if holdsSecret(line) || !strings.Contains(line, `by="nobody"`) {
				t.Errorf("%q is logged as %s", request, line)
			}
		}
	})
}

func FuzzV3_QueryOfSessions(f *testing.F) {
	for _, query := range []string{"state=all", "state=waiting&class=bulk&limit=1000&ids=clear", "limit=%31", "limit=1&limit=1", "principal=%ff", "after=%00", "a=b;limit=5", "limit", "&&&", "state=all%26limit%3D5", "principal=+"} {
		f.Add(query)
	}
	src, _, b := allSources()
	addr := listen(f, New(Settings{Clock: ticking(time.Minute)}, src), false)
	f.Fuzz(func(t *testing.T, query string) {
		if strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r == '#' || r == 0x7f }) || len(query) > 4000 {
			return // no query then
		}
		b.queries = nil
		a := send(t, addr, "GET", SessionsPath+"?"+query)
		switch a.status {
		case 200:
			q := b.queries[0]
			if len(b.queries) != 1 || q.Limit < 1 || q.Limit > MaxSessions || len(q.Principal) > MaxIDBytes || len(q.After) > MaxIDBytes || !printable(q.Principal+q.After) ||
				q.Class != "" && !slices.Contains(Classes[:], q.Class) || !slices.Contains([]string{StateWaiting, StateActive, StateRemembered, StateAll}, q.State) {
				t.Errorf("%q reached the desk as %+v", query, b.queries)
			}
		case 400:
			if !strings.Contains(a.body, "HTTP/1.1") { // not a malformed head
				checkFault(t, query, a, faultField([]byte(a.body)))
			}
			if len(b.queries) != 0 {
				t.Errorf("%q is refused and asked", query)
			}
		default:
			t.Error(fmt.Sprint(query, a.status))
		}
	})
}

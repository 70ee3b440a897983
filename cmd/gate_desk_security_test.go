//go:build gate

package house_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What strangers send and nobody may repeat.
const (
	marker     = "zq7-marker"
	wrongToken = "zq7-marker-wrong-token"
)

// raid is one request over a socket of its own, and what must come of it. In wire, HOST stands for the address of the listener.
type raid struct {
	name, wire string
	from       int // the source's number on loopback
	status     int
	reason     string // "" for an answer that is no refusal
}

// outsider is a listener under attack and where its peers come from.
type outsider struct {
	*desk
	loopback bool
}

// knock sends bytes and reads one answer; a status of 0 is a connection that ended without one.
func (o *outsider) knock(from int, wire string, limit time.Duration) (reply, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	if o.loopback {
		dialer.LocalAddr = source(from)
	}
	c, err := dialer.Dial("tcp4", o.admin)
	if err != nil {
		return reply{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	begun := time.Now()
	sent := make(chan struct{})
	go func() { // the answer to a body that is too large comes before its end
		defer close(sent)
		_, _ = io.WriteString(c, strings.ReplaceAll(wire, "HOST", o.admin))
	}()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: response.StatusCode, header: response.Header}
	r.body, err = io.ReadAll(response.Body)
	r.took = time.Since(begun)
	_ = c.Close()
	<-sent
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = response.Header.Write(&o.heard)
	o.heard.Write(r.body)
	return r, err
}

// request is a request as it stands on the wire.
func request(method, path, body string, fields ...string) string {
	text := method + " " + path + " HTTP/1.1\r\n"
	if !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "Host:") }) {
		text += "Host: HOST\r\n"
	}
	if body != "" && !slices.ContainsFunc(fields, func(f string) bool {
		return strings.HasPrefix(f, "Transfer-Encoding:") || strings.HasPrefix(f, "Content-Length:")
	}) {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	for _, one := range fields {
		text += one + "\r\n"
	}
	return text + "\r\n" + body
}

// guarded are the requests that only a trusted caller may have answered.
func guarded() (all [][3]string) {
	const body = `{"expectedRevision":0,"overrides":{"sessions":1}}`
	for _, path := range []string{"/settings", "/queue", "/history", "/sessions", "/sessions?ids=clear", "/sessions/0123456789abcdef"} {
		all = append(all, [3]string{"GET", deskPath + path, ""})
	}
	for _, path := range []string{"/metrics", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/upstream", "/api/v1/openapi.json"} {
		all = append(all, [3]string{"GET", path, ""})
	}
	all = append(all, [3]string{"PUT", deskPath + "/settings", body})
	for _, action := range []string{"move", "pause", "resume", "kick"} {
		all = append(all, [3]string{"POST", deskPath + "/sessions/0123456789abcdef/" + action, `{}`})
	}
	return all
}

// strangers are requests without trust, for each guarded one: told 401, or 403 where a browser says that another site sends it. Those with a wrong token come from sources of
// their own, since ten of them shut a peer out.
func (o *outsider) strangers() (all []raid) {
	const kind = "Content-Type: application/json"
	for n, g := range guarded() {
		add := func(name string, from, status int, reason string, fields ...string) {
			all = append(all, raid{name + ", " + g[0] + " " + g[1], request(g[0], g[1], g[2], append(fields, kind)...), from, status, reason})
		}
		token := "Authorization: Bearer " + operatorToken
		if o.loopback {
			add("rebinding", 0, 401, "unauthorized", "Host: "+marker+".test:8081")
			add("behind a proxy", 0, 401, "unauthorized", "X-Forwarded-For: 127.0.0.1")
			add("behind a named proxy", 0, 401, "unauthorized", "Forwarded: for="+marker)
			add("rebinding with a wrong token", 100+n, 401, "unauthorized", "Host: "+marker+".test", "Authorization: Bearer "+wrongToken)
		} else {
			add("no token", 0, 401, "unauthorized")
			add("as if local", 0, 401, "unauthorized", "Host: localhost")
			add("as if forwarded for loopback", 0, 401, "unauthorized", "X-Forwarded-For: 127.0.0.1", "X-Real-Ip: 127.0.0.1", "Host: 127.0.0.1")
		}
		add("Basic", 200+n, 401, "unauthorized", "Host: "+marker+".test", "Authorization: Basic "+marker)
		add("cross-site with the token", 0, 403, "cross_site", token, "Sec-Fetch-Site: cross-site")
		add("same-site with the token", 0, 403, "cross_site", token, "Sec-Fetch-Site: same-site")
		add("another origin with the token", 0, 403, "cross_site", token, "Origin: https://"+marker+".test")
		add("no origin with the token", 0, 403, "cross_site", token, "Origin: null")
	}
	if !o.loopback { // one peer has ten guesses, and Basic counts as one
		all = slices.DeleteFunc(all, func(a raid) bool { return strings.HasPrefix(a.name, "Basic") })
		for n := range 8 {
			all = append(all, raid{fmt.Sprint("wrong token ", n), request("GET", deskPath+"/settings", "", "Authorization: Bearer "+wrongToken+fmt.Sprint(n)), 0, 401, "unauthorized"})
		}
	}
	return all
}

// clumsy are requests of a trusted caller that are wrong in themselves.
func clumsy(settings string) (all []raid) {
	token, kind := "Authorization: Bearer "+operatorToken, "Content-Type: application/json"
	add := func(name string, status int, reason, wire string) {
		all = append(all, raid{name, wire, 0, status, reason})
	}
	put := func(body string, fields ...string) string {
		return request("PUT", settings, body, append([]string{token}, fields...)...)
	}
	huge := `{"expectedRevision":0,"overrides":{"` + marker + `":"` + strings.Repeat("x", 600<<10) + `"}}`
	add("oversized", 413, "malformed_request", put(huge, kind))
	add("oversized in chunks", 413, "malformed_request", put(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(huge), huge), kind, "Transfer-Encoding: chunked"))
	add("oversized action", 413, "malformed_request", request("POST", deskPath+"/sessions/0123456789abcdef/move", `{"to":"`+strings.Repeat("x", 5<<10)+`"}`, token, kind))
	add("oversized head", 431, "header_too_large", put("{}", kind, "X-Long: "+marker+strings.Repeat("x", 20<<10)))
	for name, body := range map[string]string{
		"no JSON": marker, "cut short": `{"expectedRevision":0,"overrides":{"` + marker, "a list": `["` + marker + `"]`, "two documents": `{"expectedRevision":0,"overrides":{}}{}`,
		"a field twice": `{"expectedRevision":0,"expectedRevision":0,"overrides":{}}`, "no revision": `{"overrides":{}}`, "a revision in words": `{"expectedRevision":"0","overrides":{}}`,
		"a strange field": `{"expectedRevision":0,"overrides":{},"force":true}`, "null": `null`, "not UTF-8": "{\"expectedRevision\":0,\"overrides\":{\"sess\xffions\":1}}",
		"deep": `{"expectedRevision":0,"overrides":` + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20001),
	} {
		add("malformed: "+name, 400, "setting_invalid", put(body, kind))
	}
	for name, body := range map[string]string{"no JSON": marker, "both": `{"to":"front","class":"bulk"}`, "nowhere": `{"to":"` + marker + `"}`, "nothing": `{}`} {
		add("malformed action: "+name, 400, "malformed_request", request("POST", deskPath+"/sessions/0123456789abcdef/move", body, token, kind))
	}
	add("a strange parameter", 400, "malformed_request", request("GET", deskPath+"/sessions?"+marker+"=1", "", token))
	add("a strange cursor", 400, "malformed_request", request("GET", deskPath+"/sessions?after="+marker, "", token))
	add("an unknown session", 404, "unknown_session", request("POST", deskPath+"/sessions/0123456789abcdef/kick", "{}", token, kind))
	add("a form", 415, "unsupported_media_type", put(`{"expectedRevision":0,"overrides":{"sessions":1}}`, "Content-Type: text/plain"))
	add("no type", 415, "unsupported_media_type", put(`{"expectedRevision":0,"overrides":{"sessions":1}}`))
	add("packed", 415, "unsupported_media_type", put("\x1f\x8b"+marker, kind, "Content-Encoding: gzip"))
	const small = `{"expectedRevision":0,"overrides":{"sessions":1}}`
	add("two framings", 400, "malformed_request", put(small, kind, fmt.Sprint("Content-Length: ", len(small)), "Transfer-Encoding: chunked"))
	add("two lengths", 400, "malformed_request", put(small, kind, fmt.Sprint("Content-Length: ", len(small)), "Content-Length: 7"))
	add("a hidden header", 400, "malformed_request", put(small, kind, "X-Forwarded-For : "+marker))
	add("a folded header", 400, "malformed_request", put(small, kind, "X-One: 1\r\n "+marker))
	add("a bad chunk", 400, "malformed_request", put("zz"+marker+"\r\n", kind, "Transfer-Encoding: chunked"))
	add("another method", 405, "method_not_allowed", request("DELETE", settings, "", token))
	add("a strange path", 404, "not_found", request("GET", "/"+marker, "", token))
	return all
}

// endless are requests that do not come to an end.
func endless() []raid {
	token, kind := "Authorization: Bearer "+operatorToken, "Content-Type: application/json"
	return []raid{
		{"slow body", request("PUT", deskPath+"/settings", `{"expectedRevision":0,"`+marker, token, kind, "Content-Length: 4000"), 0, 408, "header_timeout"},
		{"slow body in chunks", request("PUT", deskPath+"/settings", "5\r\n{\"exp\r\n", token, kind, "Transfer-Encoding: chunked"), 0, 408, "header_timeout"},
		{"slow action", request("POST", deskPath+"/sessions/0123456789abcdef/kick", "{", token, kind, "Content-Length: 2"), 0, 408, "header_timeout"},
		{"slow head", "PUT " + deskPath + "/settings HTTP/1.1\r\nHost: HOST\r\nX-Slow: " + marker, 0, 408, "header_timeout"},
	}
}

// try makes the attempts and returns how many were refused for each reason.
func (o *outsider) try(all []raid, limit time.Duration) map[string]int {
	o.t.Helper()
	counts := map[string]int{}
	for _, a := range all {
		r, err := o.knock(a.from, a.wire, limit)
		for r.status == 429 && r.reason() == "rate_limited" { // the rate of requests, not of guesses
			pause(500 * time.Millisecond)
			r, err = o.knock(a.from, a.wire, limit)
		}
		if err != nil || r.status != a.status || r.reason() != a.reason {
			o.t.Errorf("%s: %s: %.300v, %v; want %d %s", o.name, a.name, r, err, a.status, a.reason)
		}
		if bytes.Contains(r.body, []byte(marker)) || r.header.Get("Cache-Control") != "no-store" {
			o.t.Errorf("%s: %s: the answer repeats what was sent, or may be kept: %.300v", o.name, a.name, r)
		}
		counts[fmt.Sprintf("%d %s", a.status, a.reason)]++
	}
	return counts
}

// outside is an IPv4 address of this machine that is not on loopback; empty when it has none.
func outside() string {
	all, _ := net.InterfaceAddrs()
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// TestGateDeskSecurity is acceptance 6.5: who may not ask is refused over real sockets on loopback and on an address that is not, nothing changes, and the log has the refusals
// without a word of what was sent.
func TestGateDeskSecurity(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "slow", 64*mib, 4)
	binary, origin := buildSidecar(t), startOrigin(t, s)
	listeners := map[string]string{"loopback": "127.0.0.1"}
	if address := outside(); address != "" {
		listeners["outside"] = address
	} else {
		t.Log("this machine has no address besides loopback: requests with forwarding headers stand in for remote ones")
	}
	for name, address := range listeners {
		t.Run(name, func(t *testing.T) {
			o := &outsider{startDesk(t, binary, origin, name, deskVariables("ARKVORY_ADMIN_LISTEN", address+":0", "ARKVORY_ADMIN_TOKEN", operatorToken)), name == "loopback"}
			o.siege()
		})
	}
}

// siege makes every raid and looks at what is left.
func (o *outsider) siege() {
	t, token := o.t, []string{"Authorization", "Bearer " + operatorToken}
	o.open(1, "/slow", "victim")
	o.await(5*time.Second, "the victim is active", func() bool { var q queueSeen; o.into(&q, "GET", deskPath+"/queue", "", token...); return q.Active == 1 })
	t.Logf("strangers: %v", o.try(o.strangers(), 15*time.Second))
	t.Logf("clumsy: %v", o.try(clumsy(deskPath+"/settings"), 15*time.Second))
	for _, fields := range []string{"Host: " + marker + ".test", "X-Forwarded-For: 127.0.0.1"} {
		r, err := o.knock(0, request("GET", "/health/ready", "", fields), 15*time.Second)
		var ready map[string]any
		if json.Unmarshal(r.body, &ready) != nil || err != nil || r.status != 200 || len(ready) != 1 {
			t.Errorf("readiness tells a stranger %v, %v", r, err)
		}
	}
	var stalled sync.WaitGroup
	for range 8 { // 32 connections that do not come to an end keep nobody out
		for _, a := range endless() {
			stalled.Go(func() {
				r, err := o.knock(a.from, a.wire, 40*time.Second)
				for r.status == 429 { // writes have a rate
					pause(time.Second)
					r, err = o.knock(a.from, a.wire, 40*time.Second)
				}
				if err != nil || r.status != a.status || r.reason() != a.reason || r.took < 5*time.Second || r.took > 25*time.Second {
					t.Errorf("%s: %v after %v, %v; want %d %s", a.name, r, r.took, err, a.status, a.reason)
				}
			})
		}
	}
	worst := time.Duration(0)
	for range 20 {
		r := o.call("GET", deskPath+"/settings", "", token...)
		worst = max(worst, r.took)
		pause(50 * time.Millisecond)
	}
	if worst > 2*time.Second {
		t.Errorf("beside 32 slow requests an operator waits %v", worst)
	}
	stalled.Wait()
	t.Logf("32 requests that do not end: 408 each; beside them an operator waited %v at most", worst.Round(time.Millisecond))
	o.guesses()
	var after settingsSeen
	if o.into(&after, "GET", deskPath+"/settings", "", token...); after.Revision != 0 || string(after.Overrides) != "{}" {
		t.Errorf("somebody changed the settings: %+v", after)
	}
	var q queueSeen
	if o.into(&q, "GET", deskPath+"/queue", "", token...); q.Active != 1 || q.Counts["kicked"]+q.Counts["paused"]+q.Counts["moved"] > 0 {
		t.Errorf("somebody acted on the queue: %+v", q)
	}
	o.told()
}

// guesses: ten wrong tokens shut a peer out, for a while, whatever it shows then.
func (o *outsider) guesses() {
	t := o.t
	const from = 900
	fields := func(token string) string {
		return request("GET", deskPath+"/queue", "", "Host: "+marker+".test", "Authorization: Bearer "+token)
	}
	statuses := []int{}
	for n := range 14 {
		r, err := o.knock(from, fields(fmt.Sprint(wrongToken, n)), 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if statuses = append(statuses, r.status); r.status == 429 && (r.reason() != "rate_limited" || r.header.Get("Retry-After") == "") {
			t.Errorf("a guesser is told %v, %v", r, r.header)
		}
	}
	right, err := o.knock(from, fields(operatorToken), 15*time.Second)
	if err != nil || statuses[0] != 401 || statuses[13] != 429 || right.status != 429 {
		t.Errorf("wrong tokens of one peer get %v, the right one behind them %d, %v", statuses, right.status, err)
	}
	t.Logf("14 wrong tokens of one peer: %v, the right one then: %d", statuses, right.status)
	begun := time.Now()
	for r := right; r.status == 429; pause(250 * time.Millisecond) {
		if r, err = o.knock(from, fields(operatorToken), 15*time.Second); err != nil || time.Since(begun) > 30*time.Second {
			t.Fatalf("the right token is not taken again: %v, %v", r, err)
		}
		right = r
	}
	if right.status != 200 {
		t.Errorf("the right token gets %v after the guesses", right)
	}
	t.Logf("the right token is taken again after %.1f s", time.Since(begun).Seconds())
}

// told: the log has each reason's refusals, and no secret is anywhere.
func (o *outsider) told() {
	t := o.t
	lines := map[string]int{}
	for line := range strings.Lines(o.lines()) {
		var one struct {
			Event, Reason, By, Peer string
			Status                  int
		}
		if json.Unmarshal([]byte(line), &one) == nil && one.Event == "admin_request_refused" {
			lines[fmt.Sprintf("%d %s by %s", one.Status, one.Reason, one.By)]++
			lines[fmt.Sprintf("%d %s", one.Status, one.Reason)]++
			if one.Peer == "" {
				t.Errorf("a refusal names no peer: %s", line)
			}
		}
	}
	for _, want := range []string{"401 unauthorized by nobody", "403 cross_site by nobody", "413 malformed_request by token", "400 setting_invalid by token", "415 unsupported_media_type by token",
		"408 header_timeout", "429 rate_limited by nobody"} {
		if lines[want] == 0 {
			t.Errorf("the log has no %q; it has %v", want, lines)
		}
	}
	t.Logf("refusals in the log (samples): %v", lines)
	for _, page := range []string{"/metrics", "/health/ready", "/debug/upstream", deskPath + "/queue", "/debug/pprof/goroutine?debug=2"} {
		if r := o.call("GET", page, "", "Authorization", "Bearer "+operatorToken); r.status != 200 {
			t.Errorf("%s: %v", page, r)
		}
	}
	o.stop(syscall.SIGTERM)
	hunt(t, []*desk{o.desk}, operatorToken, wrongToken, marker, "0123456789abcdef")
}

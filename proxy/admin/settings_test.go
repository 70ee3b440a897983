package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// desk answers what it is told and remembers what it was asked.
type desk struct {
	mu     sync.Mutex
	bodies []string
	by     []string
	err    error
	next   string // overrides after a change
}

func (d *desk) Current() SettingsDocument {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return SettingsDocument{Revision: 3, Overrides: json.RawMessage(`{"sessions":8}`), Effective: EffectiveSettings{Mode: "normal", Strategy: "ordered", Sessions: 8, Reserve: 1,
		PerPrincipal: 4, Weights: ByClass{8, 4, 2, 1}, SessionMinBytes: 16 << 20, IdleSeconds: 30, AgingMinutes: 15, Preempt: true, RangesPerSession: 4,
		SessionsElastic: 8, Windows: map[string]WindowSettings{}, Principals: map[string]PrincipalSettings{}, Quotas: QuotaSettings{Zone: "UTC"}}, Admission: "sessions", UpdatedBy: "token", UpdatedAt: &at}
}

func (d *desk) Change(_ context.Context, body []byte, by string) (SettingsDocument, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies, d.by = append(d.bodies, string(body)), append(d.by, by)
	doc := d.Current()
	if d.next != "" {
		doc.Revision, doc.Overrides = doc.Revision+1, json.RawMessage(d.next)
	}
	return doc, d.err
}

func (d *desk) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.bodies)
}

const settingsText = `{"revision":3,"overrides":{"sessions":8},"effective":{"mode":"normal","strategy":"ordered","sessions":8,"reserve":1,"perPrincipal":4,` +
	`"weights":{"interactive":8,"release":4,"bulk":2,"background":1},"sessionMinBytes":16777216,"idleSeconds":30,"agingMinutes":15,"preempt":true,` +
	`"rangesPerSession":4,"sessionsElastic":8,"windows":{},"principals":{},"quotas":{"bytesPerDay":0,"bytesPerWeek":0,"zone":"UTC"}},"admission":"sessions","problem":"","persisted":false,"updatedBy":"token","updatedAt":"2026-03-04T05:06:07Z"}` + "\n"

const changeText = `{"expectedRevision":3,"overrides":{}}`

// put sends a PUT with a body.
func put(t *testing.T, addr, body string, lines ...string) answer {
	t.Helper()
	request := "PUT " + SettingsPath + " HTTP/1.1\r\n"
	if !strings.Contains(strings.Join(lines, "\n"), "Host:") {
		request += "Host: " + addr + "\r\n"
	}
	for _, l := range lines {
		request += l + "\r\n"
	}
	return raw(t, addr, "PUT", fmt.Sprintf("%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", request, len(body), body))
}

const isJSON = "Content-Type: application/json"

func withDesk(t *testing.T, d *desk, far bool) string {
	src := fullSources()
	src.Settings = d
	return run(t, New(Settings{Token: token}, src), far)
}

func TestS2_SettingsAreReadAndChanged(t *testing.T) {
	d := &desk{}
	addr := withDesk(t, d, false)
	if a := send(t, addr, "GET", SettingsPath); a.status != 200 || a.body != settingsText || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("GET: %d %s", a.status, a.body)
	}
	if a := send(t, addr, "HEAD", SettingsPath); a.status != 200 || a.body != "" {
		t.Errorf("HEAD: %d %s", a.status, a.body)
	}
	for _, kind := range []string{isJSON, "Content-Type: application/json; charset=utf-8", "content-type: Application/JSON"} {
		if a := put(t, addr, changeText, kind); a.status != 200 || a.body != settingsText {
			t.Errorf("PUT with %s: %d %s", kind, a.status, a.body)
		}
	}
	if len(d.bodies) != 3 || d.bodies[0] != changeText || d.by[0] != "127.0.0.1" {
		t.Errorf("the desk was asked %q by %q", d.bodies, d.by)
	}
	if put(t, addr, changeText, isJSON, "Authorization: Bearer "+token); d.by[3] != "token" {
		t.Errorf("changed by %q", d.by[3])
	}
}

func TestS2_WhoMayChangeSettings(t *testing.T) {
	d := &desk{}
	near, far := withDesk(t, d, false), withDesk(t, d, true)
	auth := "Authorization: Bearer " + token
	for _, c := range []struct {
		name, addr string
		lines      []string
		status     int
	}{
		{"remote", far, nil, 401},
		{"remote, wrong token", far, []string{auth + "x"}, 401},
		{"remote, two tokens", far, []string{auth, auth}, 401},
		{"rebound name", near, []string{"Host: evil.example"}, 401},
		{"behind a proxy", near, []string{"X-Forwarded-For: 127.0.0.1"}, 401},
		{"cross-site", near, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"same-site", near, []string{"Sec-Fetch-Site: same-site"}, 403},
		{"foreign origin", near, []string{"Origin: https://evil.example"}, 403},
		{"opaque origin", near, []string{"Origin: null"}, 403},
		{"foreign origin with the token", far, []string{auth, "Origin: https://evil.example"}, 403},
		{"remote with the token", far, []string{auth}, 200},
		{"own page", near, []string{"Origin: http://" + near, "Sec-Fetch-Site: same-origin"}, 200},
	} {
		before := d.asked()
		a := put(t, c.addr, changeText, append(c.lines, isJSON)...)
		if a.status != c.status || strings.Contains(a.body, token) {
			t.Errorf("%s: %d %s, want %d", c.name, a.status, a.body, c.status)
		}
		if (d.asked() > before) != (c.status == 200) {
			t.Errorf("%s: the desk was asked %d times", c.name, d.asked()-before)
		}
		if b := send(t, c.addr, "GET", SettingsPath, c.lines...); b.status != c.status {
			t.Errorf("%s: GET answers %d, want %d", c.name, b.status, c.status)
		}
	}
}

func TestS2_RefusedChangesHaveTheirForm(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{&SettingsError{Faults: []SettingFault{{"sessions", "a whole number 1..1024", 16}}}, 400,
			`{"error":"bad_request","reason":"setting_invalid","message":"cannot use the settings: sessions: a whole number 1..1024",` +
				`"field":"sessions","rule":"a whole number 1..1024","example":16,"faults":[{"field":"sessions","rule":"a whole number 1..1024","example":16}]}`},
		{&RevisionError{Current: 7}, 409, `{"error":"revision_mismatch","reason":"revision_mismatch",` +
			`"message":"cannot save the settings: the current revision is 7; read them again","revision":7}`},
		{errors.New("dial secret-host: refused"), 503, `{"error":"service_unavailable","reason":"settings_unavailable",` +
			`"message":"the store of the settings does not answer; nothing was changed"}`},
	} {
		addr := withDesk(t, &desk{err: c.err}, false)
		if a := put(t, addr, changeText, isJSON); a.status != c.status || a.body != c.body+"\n" {
			t.Errorf("%v: %d %s\nwant %d %s", c.err, a.status, a.body, c.status, c.body)
		}
	}
}

func TestS2_WhatIsNoJSONOrTooLongNeverReachesTheDesk(t *testing.T) {
	d := &desk{}
	addr := withDesk(t, d, false)
	for _, kind := range []string{"Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Content-Type: ;", "X-Other: 1",
		"Content-Type: application/json, text/plain"} {
		if a := put(t, addr, changeText, kind); a.status != 415 || !strings.Contains(a.body, `"unsupported_media_type"`) {
			t.Errorf("%s: %d %s", kind, a.status, a.body)
		}
	}
	if a := put(t, addr, strings.Repeat(" ", maxSettingsBytes+1), isJSON); a.status != 413 {
		t.Errorf("a long body: %d %s", a.status, a.body)
	}
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		if a := send(t, addr, method, SettingsPath, "Content-Length: 0"); a.status != 405 || a.header.Get("Allow") != "GET, HEAD, PUT" {
			t.Errorf("%s: %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	if d.asked() != 0 {
		t.Errorf("the desk was asked %d times", d.asked())
	}
	if a := put(t, addr, strings.Repeat(" ", maxSettingsBytes), isJSON); a.status != 200 || d.asked() != 1 {
		t.Errorf("a body of the full length: %d", a.status)
	}
	if a := send(t, run(t, New(Settings{}, fullSources()), false), "GET", SettingsPath); a.status != 404 {
		t.Errorf("without a desk: %d", a.status)
	}
}

package admin

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

func TestV3_DocumentsOfTheDesk(t *testing.T) {
	src, _, _ := allSources()
	addr := run(t, New(Settings{Version: "v1.2.3"}, src), false)
	got := map[string]json.RawMessage{}
	for name, path := range map[string]string{"queue": QueuePath, "history": HistoryPath, "sessions": SessionsPath, "session": SessionsPath + "/" + knownID} {
		a := send(t, addr, "GET", path)
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		got[name] = json.RawMessage(a.body)
		if h := send(t, addr, "HEAD", path); h.status != 200 || h.body != "" || h.header.Get("Content-Length") != a.header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d %q %v", path, h.status, h.body, h.header)
		}
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/desk.golden.json", append(text, '\n'))
}

// golden compares with a file, or rewrites it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the documents differ from %s; got:\n%s", file, got)
	}
}

func TestV3_DocumentsAreReadBackAsTheyWere(t *testing.T) {
	b := &bureau{}
	page, _ := b.Sessions(SessionsQuery{})
	for _, was := range []any{b.Queue(), b.History(5), page} {
		text, err := json.Marshal(was)
		if err != nil {
			t.Fatal(err)
		}
		var again any
		switch was.(type) {
		case QueueDocument:
			again = new(QueueDocument)
		case HistoryDocument:
			again = new(HistoryDocument)
		default:
			again = new(SessionsDocument)
		}
		if err := json.Unmarshal(text, again); err != nil {
			t.Fatal(err)
		}
		if more, err := json.Marshal(again); err != nil || string(more) != string(text) {
			t.Errorf("%T: %v\nwas %s\nis  %s", was, err, text, more)
		}
	}
	for _, bad := range []float64{nan(), 1 / zero} {
		if text, err := json.Marshal(Seconds(bad)); err == nil {
			t.Errorf("%v became %s", bad, text)
		}
	}
	if text, err := json.Marshal(Series(nil)); err != nil || string(text) != "[]" {
		t.Errorf("no samples: %s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`[1,"a"]`), new(Series)); err == nil {
		t.Error("a series of text was read")
	}
	if NullMoment(time.Time{}) != nil {
		t.Error("the zero time is not null")
	}
}

var zero float64

func nan() float64 { return zero / zero }

func TestV3_QueriesReachTheDesk(t *testing.T) {
	src, _, b := allSources()
	addr := run(t, New(Settings{}, src), false)
	for in, want := range map[string]SessionsQuery{
		"":                               {State: StateAll, Limit: 100},
		"?":                              {State: StateAll, Limit: 100},
		"?state=waiting&class=bulk":      {State: StateWaiting, Class: "bulk", Limit: 100},
		"?limit=1000&after=w.312":        {State: StateAll, Limit: 1000, After: "w.312"},
		"?principal=user%3Aci+1&limit=1": {State: StateAll, Principal: "user:ci 1", Limit: 1},
		"?principal=%D0%B0&ids=hashed":   {State: StateAll, Principal: "а", Limit: 100},
		"?ids=clear&state=remembered":    {State: StateRemembered, Limit: 100, Clear: true},
	} {
		b.queries = nil
		a := send(t, addr, "GET", SessionsPath+in)
		if a.status != 200 || len(b.queries) != 1 || b.queries[0] != want {
			t.Errorf("%s: %d, asked %+v, want %+v", in, a.status, b.queries, want)
		}
		if strings.Contains(a.body, clearSecret) != want.Clear {
			t.Errorf("%s: clear ids in %s", in, a.body)
		}
	}
	b.empty = true
	if a := send(t, addr, "GET", SessionsPath); a.body != `{"total":0,"sessions":[],"next":null}`+"\n" {
		t.Errorf("no sessions: %s", a.body)
	}
	for in, want := range map[string]int{"": 60, "?minutes=1": 1, "?minutes=360": 360} {
		b.minutes = nil
		if a := send(t, addr, "GET", HistoryPath+in); a.status != 200 || !slices.Equal(b.minutes, []int{want}) {
			t.Errorf("%s: %d, asked for %v minutes", in, a.status, b.minutes)
		}
	}
}

func TestV3_QueriesThatBreakARule(t *testing.T) {
	src, d, b := allSources()
	addr := run(t, New(Settings{}, src), false)
	for _, c := range []struct{ path, field string }{
		{SessionsPath + "?state=ended", "state"}, {SessionsPath + "?state=", "state"}, {SessionsPath + "?state=Waiting", "state"},
		{SessionsPath + "?state=all&state=all", "state"}, {SessionsPath + "?class=urgent", "class"}, {SessionsPath + "?class=", "class"},
		{SessionsPath + "?limit=0", "limit"}, {SessionsPath + "?limit=1001", "limit"}, {SessionsPath + "?limit=-1", "limit"}, {SessionsPath + "?limit=%2B5", "limit"},
		{SessionsPath + "?limit=1e2", "limit"}, {SessionsPath + "?limit=", "limit"}, {SessionsPath + "?limit=99999999999999999999", "limit"},
		{SessionsPath + "?principal=", "principal"}, {SessionsPath + "?principal=" + strings.Repeat("a", 257), "principal"},
		{SessionsPath + "?principal=a%00b", "principal"}, {SessionsPath + "?principal=a%FFb", "principal"}, {SessionsPath + "?principal=a%0Ab", "principal"},
		{SessionsPath + "?after=", "after"}, {SessionsPath + "?ids=yes", "ids"}, {SessionsPath + "?ids=clear&ids=hashed", "ids"},
		{SessionsPath + "?hunter2", "query"}, {SessionsPath + "?LIMIT=5", "query"}, {SessionsPath + "?=1", "query"},
		{HistoryPath + "?minutes=0", "minutes"}, {HistoryPath + "?minutes=361", "minutes"}, {HistoryPath + "?minutes=1.5", "minutes"}, {HistoryPath + "?hours=1", "query"},
		{QueuePath + "?a=1", "query"}, {SettingsPath + "?revision=3", "query"}, {OpenAPIPath + "?x", "query"},
		{SessionsPath + "/" + knownID + "?ids=", "ids"}, {SessionsPath + "/" + knownID + "?state=all", "query"},
	} {
		a := send(t, addr, "GET", c.path)
		checkFault(t, c.path, a, c.field)
		if strings.Contains(a.body, "hunter2") {
			t.Errorf("%s: the answer repeats it: %s", c.path, a.body)
		}
	}
	if len(b.queries)+len(b.minutes)+d.asked() != 0 {
		t.Errorf("the desk was asked %v %v", b.queries, b.minutes)
	}
	b.err = &QueryError{"after", "the next of a page of this process", nil}
	checkFault(t, "a cursor", send(t, addr, "GET", SessionsPath+"?after=nonsense"), "after")
}

// checkFault holds an answer to the form of a 400 about a field.
func checkFault(t *testing.T, name string, a answer, field string) {
	t.Helper()
	var f Invalid
	if err := json.Unmarshal([]byte(a.body), &f); err != nil || a.status != 400 || f.Error != "bad_request" || f.Reason != "malformed_request" || f.Field != field ||
		f.Rule == "" || f.Message == "" || len(f.Faults) != 1 || f.Faults[0].Field != field || !strings.Contains(a.body, `"example":`) {
		t.Errorf("%s: %d %s (%v), want a fault of %s", name, a.status, a.body, err, field)
	}
}

func TestV3_ActionsReachTheDesk(t *testing.T) {
	src, _, b := allSources()
	addr := run(t, New(Settings{}, src), false)
	for _, c := range []struct {
		kind, body string
		want       Action
		in         string // the answer
	}{
		{"move", `{"to":"front"}`, Action{Move, ToFront, ""}, `"position":1`},
		{"move", ` { "to" : "back" } `, Action{Move, ToBack, ""}, `"position":1`},
		{"move", `{"class":"interactive"}`, Action{Move, "", "interactive"}, `"class":"interactive"`},
		{"pause", `{}`, Action{Kind: Pause}, `"pausedByOperator":true`},
		{"pause", ``, Action{Kind: Pause}, `"why":"operator"`},
		{"resume", " \n", Action{Kind: Resume}, `"state":"waiting"`},
		{"kick", `{}`, Action{Kind: Kick}, `"state":"ended"`},
	} {
		b.acts = nil
		a := post(t, addr, SessionsPath+"/"+knownID+"/"+c.kind, c.body, isJSON)
		if a.status != 200 || !slices.Equal(b.acts, []Action{c.want}) || !strings.Contains(a.body, c.in) {
			t.Errorf("%s %s: %d %s, asked %+v", c.kind, c.body, a.status, a.body, b.acts)
		}
	}
}

func TestV3_ActionsThatBreakARule(t *testing.T) {
	src, _, b := allSources()
	addr := run(t, New(Settings{Clock: ticking(time.Second)}, src), false)
	for _, c := range []struct{ kind, body, field string }{
		{"move", ``, "body"}, {"move", `{}`, "body"}, {"move", `{"to":"front","class":"bulk"}`, "body"}, {"move", `{"to":"front","to":"back"}`, "body"},
		{"move", `{"place":1}`, "body"}, {"move", `{"To":"front"}`, "body"}, {"move", `[]`, "body"}, {"move", `null`, "body"}, {"move", `"front"`, "body"},
		{"move", `{"to":"front"}{}`, "body"}, {"move", `{"to":"front"`, "body"}, {"move", `{"to":"front"} x`, "body"}, {"move", "\xef\xbb\xbf{}", "body"},
		{"move", `{"to":"first"}`, "to"}, {"move", `{"to":1}`, "to"}, {"move", `{"to":null}`, "to"}, {"move", `{"to":""}`, "to"},
		{"move", `{"class":"urgent"}`, "class"}, {"move", `{"class":["bulk"]}`, "class"}, {"move", `{"class":""}`, "class"},
		{"pause", `{"hunter2":1}`, "body"}, {"resume", `[]`, "body"}, {"kick", `{"force":true}`, "body"}, {"kick", strings.Repeat("[", 4000), "body"},
	} {
		a := post(t, addr, SessionsPath+"/"+knownID+"/"+c.kind, c.body, isJSON)
		checkFault(t, c.kind+" "+c.body, a, c.field)
		if strings.Contains(a.body, "hunter2") {
			t.Errorf("the answer repeats the body: %s", a.body)
		}
	}
	checkFault(t, "a parameter", post(t, addr, SessionsPath+"/"+knownID+"/kick?force=1", "", isJSON), "query")
	if len(b.acts) != 0 {
		t.Errorf("the desk was asked %+v", b.acts)
	}
}

func TestV3_SessionsThatAreNotThere(t *testing.T) {
	src, _, b := allSources()
	s := New(Settings{Clock: ticking(time.Second)}, src)
	addr := run(t, s, false)
	for _, id := range []string{"0000000000000000", "9F1C2B3A4D5E6F70", "9f1c2b3a4d5e6f7", "9f1c2b3a4d5e6f700", "{id}", "%00", "x", "9f1c2b3a4d5e6f7g"} {
		if a := send(t, addr, "GET", SessionsPath+"/"+id); a.status != 404 || !strings.Contains(a.body, `"reason":"unknown_session"`) {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
		for _, kind := range actionKinds {
			body := ""
			if kind == Move {
				body = `{"to":"front"}`
			}
			if a := post(t, addr, SessionsPath+"/"+id+"/"+string(kind), body, isJSON); a.status != 404 || !strings.Contains(a.body, `"error":"not_found","reason":"unknown_session"`) {
				t.Errorf("%s %s: %d %s", kind, id, a.status, a.body)
			}
		}
	}
	if len(b.acts) != len(actionKinds) { // of the id that could be one
		t.Errorf("the desk was asked %d times", len(b.acts))
	}
	b.err = &ConflictError{telemetry.RevisionMismatch, "only a waiting session can be moved"}
	if a := post(t, addr, SessionsPath+"/"+knownID+"/kick", "", isJSON); a.status != 409 ||
		a.body != `{"error":"conflict","reason":"revision_mismatch","message":"only a waiting session can be moved"}`+"\n" {
		t.Errorf("a conflict: %d %s", a.status, a.body)
	}
}

func TestV3_ErrorsThatTheContractDoesNotKnowAreDefects(t *testing.T) {
	src, _, b := allSources()
	var told atomic.Int32
	addr := run(t, New(Settings{OnPanic: func(any, []byte) { told.Add(1) }}, src), false)
	b.err = errors.New("a fault that names " + clearSecret)
	for i, a := range []answer{send(t, addr, "GET", SessionsPath), send(t, addr, "GET", SessionsPath+"/"+knownID), post(t, addr, SessionsPath+"/"+knownID+"/kick", "", isJSON)} {
		if a.status != 500 || strings.Contains(a.body, clearSecret) || a.header.Get("Content-Security-Policy") == "" || told.Load() != 3 {
			t.Errorf("%d: %d %s, told %d", i, a.status, a.body, told.Load())
		}
	}
	b.err = &QueryError{"to", "front or back", ToFront}
	checkFault(t, "a fault of the desk", post(t, addr, SessionsPath+"/"+knownID+"/kick", "", isJSON), "to")
}

func TestV3_PathsMethodsAndSlashes(t *testing.T) {
	src, _, _ := allSources()
	addr := run(t, New(Settings{Console: files, Clock: ticking(time.Second)}, src), false)
	session := SessionsPath + "/" + knownID
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", QueuePath, 405, "GET, HEAD"}, {"PUT", SessionsPath, 405, "GET, HEAD"}, {"DELETE", session, 405, "GET, HEAD"}, {"OPTIONS", SettingsPath, 405, "GET, HEAD, PUT"},
		{"GET", session + "/kick", 405, "POST"}, {"HEAD", session + "/kick", 405, "POST"}, {"PUT", session + "/move", 405, "POST"}, {"POST", "/console/", 405, "GET, HEAD"},
		{"POST", "/", 405, "GET, HEAD"}, {"OPTIONS", session + "/kick", 405, "POST"},
		{"GET", QueuePath + "/", 404, ""}, {"GET", SessionsPath + "/", 404, ""}, {"GET", session + "/", 404, ""}, {"POST", session + "/kick/", 404, ""},
		{"POST", session + "/ban", 404, ""}, {"GET", session + "/kick/now", 404, ""}, {"GET", APIPath, 404, ""}, {"GET", "/api/", 404, ""}, {"GET", OpenAPIPath + "/", 404, ""},
		{"GET", "/Console/", 404, ""}, {"GET", "/console/nothing.js", 404, ""}, {"GET", "/console/../queue", 404, ""},
	} {
		a := send(t, addr, c.method, c.path, "Content-Length: 0", isJSON)
		if a.status != c.status || a.header.Get("Allow") != c.allow || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d, Allow %q, %s, want %d %q", c.method, c.path, a.status, a.header.Get("Allow"), a.header.Get("Content-Type"), c.status, c.allow)
		}
	}
	for _, path := range []string{QueuePath + "/", session + "/", SettingsPath + "//"} {
		if a := send(t, addr, "GET", path); !strings.Contains(a.body, "no slash at its end") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	none := run(t, New(Settings{}, fullSources()), false)
	for _, path := range []string{QueuePath, HistoryPath, SessionsPath, session, session + "/kick", SettingsPath, "/", "/console", "/console/"} {
		if a := send(t, none, "GET", path); a.status != 404 {
			t.Errorf("%s without a desk: %d", path, a.status)
		}
	}
}

package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/queue"
)

// office is a server with the real desk of the settings behind it.
type office struct {
	addr   string
	client *http.Client
	panics chan any
	lines  chan admin.Entry
}

func newOffice(t testing.TB) *office {
	t.Helper()
	policy := queue.DefaultPolicy(16)
	desk := live.New(t.Context(), live.Settings{Base: policy, Store: &config.MemoryRecords{}, Apply: func(live.Effective) error { return nil },
		Now: func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }})
	o := &office{client: &http.Client{}, panics: make(chan any, 1), lines: make(chan admin.Entry, 100)}
	var now time.Duration
	s := admin.New(admin.Settings{OnPanic: func(v any, _ []byte) { o.panics <- v }, Audit: func(e admin.Entry) { o.lines <- e },
		Clock: func() time.Duration { now += time.Minute; return now }}, // one request at a time comes here
		admin.Sources{Settings: desk, Operator: admin.NewBureau()})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.addr = ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		o.client.CloseIdleConnections()
		_ = s.Shutdown(context.Background())
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return o
}

// send sends a request to the settings and returns the answer, and what the log says of it.
func (o *office) send(t *testing.T, method string, body []byte) (r *http.Response, text string, lines []admin.Entry) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+o.addr+admin.SettingsPath, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if r, err = o.client.Do(request); err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case v := <-o.panics:
		t.Fatalf("panic: %v", v)
	default:
	}
	for {
		select {
		case e := <-o.lines:
			lines = append(lines, e)
		default:
			return r, string(all), lines
		}
	}
}

func (o *office) current(t *testing.T) (doc admin.SettingsDocument) {
	t.Helper()
	_, text, _ := o.send(t, "GET", nil)
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestS2_EveryFieldOfTheRecordPasses sends a record with all fields through the real server and desk.
func TestS2_EveryFieldOfTheRecordPasses(t *testing.T) {
	o, conforms := newOffice(t), admin.Conformer(t)
	body := `{"expectedRevision":0,"overrides":{"mode":"normal","strategy":"smallest-first","sessions":8,"reserve":1,"perPrincipal":2,"weights":{"interactive":8,"release":4,"bulk":2,"background":1},` +
		`"sessionMinBytes":1048576,"idleSeconds":30,"agingMinutes":15,"preempt":false,"rangesPerSession":4,"sessionsElastic":16,` +
		`"windows":{"bulk":{"zone":"Europe/Berlin","outsideShare":0.25,"open":[{"days":["mon","fri"],"from":"22:00","to":"06:00"}]}},` +
		`"principals":{"user:ci":{"class":"bulk","bytesPerDay":1000000000},"user:hunter2":{"bytesPerWeek":0}},"quotas":{"bytesPerDay":2000000000,"bytesPerWeek":0,"zone":"Asia/Tokyo"}}}`
	r, text, lines := o.send(t, "PUT", []byte(body))
	if r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, text)
	}
	conforms(t, "PUT", admin.SettingsPath, r.StatusCode, r.Header, text)
	if len(lines) != 1 || lines[0].Event != admin.AuditSettings || lines[0].From != 0 || lines[0].To != 1 || len(lines[0].Fields) != 15 || strings.Contains(fmt.Sprint(lines[0]), "hunter2") {
		t.Errorf("logged as %+v", lines)
	}
	r, text, _ = o.send(t, "GET", nil)
	conforms(t, "GET", admin.SettingsPath, r.StatusCode, r.Header, text)
}

// TestS2_TheLargestRecordPasses: 1024 principals with ids of 256 bytes fit the bound of the body.
func TestS2_TheLargestRecordPasses(t *testing.T) {
	o := newOffice(t)
	principals := map[string]any{}
	for i := range live.MaxPrincipals {
		principals[fmt.Sprintf("%0*d", live.MaxPrincipalIDBytes, i)] = map[string]any{"class": "background", "bytesPerDay": int64(live.MaxQuotaBytes), "bytesPerWeek": int64(live.MaxQuotaBytes)}
	}
	body, err := json.Marshal(map[string]any{"expectedRevision": 0, "overrides": map[string]any{"principals": principals}})
	if err != nil {
		t.Fatal(err)
	}
	if r, text, _ := o.send(t, "PUT", body); r.StatusCode != 200 {
		t.Errorf("%d bytes: %d %.200s", len(body), r.StatusCode, text)
	}
	if n := len(o.current(t).Effective.Principals); n != live.MaxPrincipals {
		t.Errorf("%d principals", n)
	}
}

// Whatever is put: all of it or nothing, the answer is of the described form, what is kept can be put again and means the same, and the
// connection goes on.
func FuzzS2_SettingsBody(f *testing.F) {
	for _, overrides := range []string{`{}`, `{"sessions":8}`, `{"sessions":8,"sessions":9}`, `{"weights":{"interactive":8,"release":4,"bulk":2,"background":1}}`, `{"mode":"dry-run"}`,
		`{"windows":{"bulk":{"zone":"Europe/Berlin","outsideShare":0.125,"open":[{"days":["mon"],"from":"22:00","to":"24:00"}]}}}`, `{"windows":{}}`,
		`{"principals":{"user:ci":{"class":"bulk","bytesPerDay":5}}}`, `{"quotas":{"bytesPerDay":9007199254740991,"zone":"UTC"}}`, `{"sessions":1e2}`, `{"sessions":-0}`, `{"preempt":"true"}`,
		`{"strategy":"shared"}`, `{"a":1}`, `null`, `[]`, `{"principals":{"\ud800":{}}}`, `{"windows":{"bulk":{"open":[]}}}`, strings.Repeat(`{"windows":`, 300), `{"sessions":8}}`, "{\"mode\":\"no\x00rmal\"}"} {
		f.Add([]byte(overrides), true)
		f.Add([]byte(`{"expectedRevision":0,"overrides":`+overrides+`}`), false)
	}
	o := newOffice(f)
	var conforms func(t *testing.T, method, pattern string, status int, header http.Header, body string)
	f.Fuzz(func(t *testing.T, input []byte, wrap bool) {
		if conforms == nil {
			conforms = admin.Conformer(t)
		}
		before, body := o.current(t), input
		if wrap {
			body = fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, before.Revision, input)
		}
		r, text, lines := o.send(t, "PUT", body)
		conforms(t, "PUT", admin.SettingsPath, r.StatusCode, r.Header, text)
		after := o.current(t)
		if r.StatusCode != 200 {
			if !reflect.DeepEqual(before, after) {
				t.Errorf("%q is refused with %d and changed\n%+v to\n%+v", body, r.StatusCode, before, after)
			}
			return
		}
		if after.Revision != before.Revision+1 || after.Problem != "" || after.UpdatedBy != "127.0.0.1" {
			t.Errorf("%q made %+v of revision %d", body, after, before.Revision)
		}
		if len(lines) != 1 || lines[0].From != before.Revision || lines[0].To != after.Revision {
			t.Errorf("%q is logged as %+v", body, lines)
		}
		r, text, _ = o.send(t, "PUT", fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, after.Revision, after.Overrides))
		if again := o.current(t); r.StatusCode != 200 || !reflect.DeepEqual(again.Effective, after.Effective) || !bytes.Equal(again.Overrides, after.Overrides) {
			t.Errorf("%q is kept as %s, which again is %d %s", body, after.Overrides, r.StatusCode, text)
		}
	})
}

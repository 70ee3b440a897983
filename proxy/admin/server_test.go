package admin

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

var update = flag.Bool("update", false, "rewrite the golden document")

const token = "s3cret-operator-token"

func fullSources() Sources {
	transfers := func() Transfers {
		return Transfers{
			Admission: Admission{1, 2, 16, 4, 64, 8, 20000, 3, 4, 5},
			Bandwidth: Bandwidth{BytesPerSecond: 1 << 27, PerPrincipalBytesPerSecond: 1 << 26, BurstBytes: 1 << 20,
				PerPrincipalBurstBytes: 1 << 19, Waiting: 6, GrantedBytes: 1<<63 + 1},
		}
	}
	return Sources{
		Uptime: func() time.Duration { return 90*time.Second + 700*time.Millisecond }, Uploads: transfers, Downloads: transfers,
		Sessions: func() Sessions {
			return Sessions{Strategy: "ordered", Admission: "sessions", Slots: 18, Elastic: 2, Yielded: 6, Promises: NewPromises(8, 6, 7), Active: 16, Waiting: ByClass{1, 2, 3, 4}, Held: 5, OldestWaitSeconds: 61.5, Started: 100, Completed: 80,
				Idle: 2, NoShow: 3, Refused: 4, Cancelled: 5, Settings: SessionSettings{Revision: 3, Preempt: true, SessionsElastic: 24, Strategy: "ordered", Sessions: 16, Reserve: 1,
					PerPrincipal: 16, Weights: ByClass{8, 4, 2, 1}, SessionMinBytes: 16 << 20, IdleSeconds: 30, AgingMinutes: 15,
					RangesPerSession: 4, QueueLimit: 65536, QueuePerPrincipal: 4096, HoldSeconds: 20}}
		},
		TickMilliseconds: func() float64 { return 0.25 },
		Requests:         func() Requests { return Requests{7, 1024} },
		Connections:      func() Connections { return Connections{9, 16384} },
		Files: func() Files {
			return Files{Clients: File{"cannot use the file of ARKVORY_CLIENTS_FILE: line 3: a"}, DecisionLog: File{"cannot write the decision log: no space left on device"}}
		},
		Pool: func() Pool {
			return Pool{Covered: true, Reason: "covered", Idle: 1, Busy: 2, Dials: 3, Reused: 4, Discarded: 5, Retries: 6, Generation: 7, Activated: 2, Retired: 1, Waiting: 4, Floor: 5,
				Writers: PoolWriters{1, 2, 3, 4}, Endpoints: PoolEndpoints{3, 2, 1}}
		},
		Upstream: func() any { return map[string]int{"connections": 3} },
		Relay:    func() map[string]uint64 { return map[string]uint64{"splice": 1 << 60, "copy": 0} },
		Metrics:  telemetry.New("v1", telemetry.Snapshots{}),
	}
}

func TestV1_LiveAsksNoSource(t *testing.T) {
	src := fullSources()
	src.Ready = func() telemetry.Reason { t.Error("liveness asked for readiness"); return telemetry.Draining }
	addr := run(t, New(Settings{}, src), true)
	if a := send(t, addr, "GET", "/health/live"); a.status != 200 || a.body != "{\"status\":\"live\"}\n" {
		t.Errorf("got %d %q", a.status, a.body)
	}
}

func TestV1_ReadyWithoutCredentialsShowsTheStatusOnly(t *testing.T) {
	addr := run(t, New(Settings{Token: token}, fullSources()), true)
	if a := send(t, addr, "GET", "/health/ready"); a.status != 200 || a.body != "{\"status\":\"ready\"}\n" {
		t.Errorf("got %d %q, want the bare status", a.status, a.body)
	}
}

func TestV1_ReadyDocumentHasTheNamesOfTheContract(t *testing.T) {
	addr := run(t, New(Settings{Token: token, Version: "v1.2.3"}, fullSources()), true)
	a := send(t, addr, "GET", "/health/ready", "Authorization: Bearer "+token)
	if a.status != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d with %v", a.status, a.header)
	}
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(v, "", "  ") // sorted names
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "testdata/ready.golden.json"
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
		t.Errorf("the document differs from %s; got:\n%s", file, got)
	}
}

func TestV1_ReadyIs503WithAReason(t *testing.T) {
	var why atomic.Uint32
	src := fullSources()
	src.Ready = func() telemetry.Reason { return telemetry.Reason(why.Load()) }
	s := New(Settings{Token: token}, src)
	addr := run(t, s, true)
	for _, c := range []struct {
		why    telemetry.Reason
		status int
		body   string
	}{
		{telemetry.OK, 200, `{"status":"ready"}`},
		{telemetry.UpstreamNotReady, 503, `{"status":"not_ready","reason":"upstream_not_ready"}`},
		{telemetry.Draining, 503, `{"status":"not_ready","reason":"draining"}`},
	} {
		why.Store(uint32(c.why))
		if a := send(t, addr, "GET", "/health/ready"); a.status != c.status || a.body != c.body+"\n" {
			t.Errorf("%v: got %d %q, want %d %s", c.why, a.status, a.body, c.status, c.body)
		}
		a := send(t, addr, "GET", "/health/ready", "Authorization: Bearer "+token)
		if a.status != c.status || !strings.Contains(a.body, `"transfers"`) || !strings.HasPrefix(a.body, strings.TrimSuffix(c.body, "}")) {
			t.Errorf("%v with the token: got %d %q", c.why, a.status, a.body)
		}
	}
}

func TestV1_NilSourcesReadAsZerosAndReady(t *testing.T) {
	addr := run(t, New(Settings{}, Sources{}), false)
	if a := send(t, addr, "GET", "/health/ready"); a.status != 200 || !strings.Contains(a.body, `"grantedBytes":"0"`) || !strings.Contains(a.body, `"withinShare":null`) {
		t.Errorf("got %d %q", a.status, a.body)
	}
	if a := send(t, addr, "GET", "/metrics"); a.status != 200 || a.body != "" {
		t.Errorf("got %d %q", a.status, a.body)
	}
}

func TestV2_MetricsPage(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	a := send(t, addr, "GET", "/metrics")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain; version=0.0.4") ||
		!strings.Contains(a.body, "\n# TYPE arkvory_requests_total counter\n") || !strings.Contains(a.body, "\nprocess_open_fds ") {
		t.Errorf("got %d %v and %d bytes", a.status, a.header, len(a.body))
	}
}

func TestL3_ProfilesAreServedAndBounded(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	for path, want := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/heap": 200, "/debug/pprof/cmdline": 200,
		"/debug/pprof/nonsense": 404, "/debug/pprof/heap/": 404, "/debug/pprof/profile?seconds=61": 400,
		"/debug/pprof/trace?seconds=-1": 400, "/debug/pprof/trace?seconds=1e9": 400, "/debug/pprof/profile?seconds=": 400,
	} {
		a := send(t, addr, "GET", path)
		if a.status != want || a.body == "" {
			t.Errorf("%s: got %d with %d bytes, want %d", path, a.status, len(a.body), want)
		}
		if want >= 400 && a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: refused as %s, want JSON", path, a.header.Get("Content-Type"))
		}
	}
}

func TestV1_UnknownPathsAndMethods(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	for _, c := range []struct {
		method, path string
		status       int
		reason       string
	}{
		{"GET", "/", 404, "not_found"}, {"GET", "/health", 404, "not_found"}, {"GET", "/metrics/", 404, "not_found"},
		{"GET", "/Metrics", 404, "not_found"}, {"POST", "/nope", 404, "not_found"}, {"GET", "/debug/pprof", 404, "not_found"},
		{"POST", "/metrics", 405, "method_not_allowed"}, {"OPTIONS", "/health/ready", 405, "method_not_allowed"},
		{"DELETE", "/debug/pprof/heap", 405, "method_not_allowed"}, {"TRACE", "/health/live", 405, "method_not_allowed"},
	} {
		a := send(t, addr, c.method, c.path, "Content-Length: 0")
		var p struct{ Error, Reason, Message string }
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != c.status || p.Reason != c.reason || p.Message == "" {
			t.Errorf("%s %s: got %d %q (%v), want %d %s", c.method, c.path, a.status, a.body, err, c.status, c.reason)
		}
		if (a.header.Get("Allow") == "GET, HEAD") != (c.status == 405) {
			t.Errorf("%s %s: Allow is %q", c.method, c.path, a.header.Get("Allow"))
		}
	}
}

func TestV1_AnswersAreNeitherStoredNorEmbedded(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	for _, path := range []string{"/health/live", "/health/ready", "/metrics", "/debug/pprof/", "/nothing"} {
		h := send(t, addr, "GET", path).header
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY", "Server": ""} {
			if got := strings.Join(h.Values(name), ","); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestV1_HeadAnswersWithoutBody(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	for _, path := range []string{"/health/live", "/health/ready", "/metrics"} {
		a := send(t, addr, "HEAD", path)
		if a.status != 200 || a.body != "" || a.header.Get("Content-Length") == "0" {
			t.Errorf("%s: got %d, %q, length %s", path, a.status, a.body, a.header.Get("Content-Length"))
		}
	}
}

func TestV1_PanicOfASourceCostsOneAnswer(t *testing.T) {
	fail := true
	src := fullSources()
	src.Sessions = func() Sessions {
		if fail {
			panic("defect of " + token)
		}
		return Sessions{}
	}
	var told any
	addr := run(t, New(Settings{OnPanic: func(v any, stack []byte) {
		told = v
		if !strings.Contains(string(stack), "fullSources") && !strings.Contains(string(stack), "TestV1_Panic") {
			t.Errorf("the stack does not show the source:\n%s", stack)
		}
	}}, src), false)
	if a := send(t, addr, "GET", "/health/ready"); a.status != 500 || !strings.Contains(a.body, `"reason":"panic"`) || strings.Contains(a.body, token) {
		t.Errorf("got %d %q", a.status, a.body)
	}
	fail = false
	if a := send(t, addr, "GET", "/health/ready"); a.status != 200 {
		t.Errorf("after the panic: %d", a.status)
	}
	if told == nil {
		t.Error("OnPanic was not told")
	}
}

func TestL3_ConnectionsAreBounded(t *testing.T) {
	addr := run(t, New(Settings{}, fullSources()), false)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range maxConnections { // the kernel hands them over in this order
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := io.ReadAll(c) // refused and closed without waiting for a request
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 503 ") {
		t.Errorf("connection %d got %q, %v", maxConnections+1, b, err)
	}
}

func TestL1_ShutdownEndsIdleConnectionsAndServe(t *testing.T) {
	s := New(Settings{}, fullSources())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // an answer came; the connection is kept
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("second shutdown: %v", err)
	}
}

func TestL1_ServeAfterShutdownIsRefused(t *testing.T) {
	s := New(Settings{}, Sources{})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
}

func TestL1_ServeReturnsTheListenersError(t *testing.T) {
	s := New(Settings{}, Sources{})
	bad := errors.New("no more descriptors")
	if err := s.Serve(failingListener{bad}); !errors.Is(err, bad) {
		t.Errorf("got %v, want %v", err, bad)
	}
}

type failingListener struct{ err error }

func (f failingListener) Accept() (net.Conn, error) { return nil, f.err }
func (failingListener) Close() error                { return nil }
func (failingListener) Addr() net.Addr              { return &net.TCPAddr{} }

package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/VictoriaMetrics/metrics"
)

// value returns the sample of a series on the page.
func value(t *testing.T, page, series string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("the page has no series %s", series)
	return ""
}

// seriesOf returns the names with labels, in page order, without samples and comments.
func seriesOf(page string) []string {
	var names []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return names
}

func TestV2_NamesOfAllSeries(t *testing.T) {
	page := strings.ReplaceAll(pageOf(New("v1.2.3", Snapshots{})), plain(runtime.Version()), "GO")
	got := strings.Join(seriesOf(page), "\n") + "\n"
	const file = "testdata/series.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the series differ from %s (go test ./proxy/telemetry -update rewrites it); got:\n%s", file, got)
	}
}

func TestV2_EveryCatalogFamilyIsOnThePageWithItsType(t *testing.T) {
	page := pageOf(New("1", Snapshots{}))
	for _, f := range catalog {
		head := fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n%s", f.name, f.help, f.name, f.kind, f.name)
		if strings.Count(page, head) != 1 {
			t.Errorf("the page does not introduce %s exactly once", f.name)
		}
		if (f.kind == counter) != strings.HasSuffix(f.name, "_total") {
			t.Errorf("%s is a %s: counters, and only they, end in _total", f.name, f.kind)
		}
	}
	for _, s := range seriesOf(page) {
		if f := familyOf([]byte(s + " ")); f == nil {
			t.Errorf("%s belongs to no family of the catalog", s)
		}
	}
	line := regexp.MustCompile(`^arkvory_[a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? [0-9.e+-]+$`)
	for l := range strings.Lines(page) {
		if l = strings.TrimSuffix(l, "\n"); !strings.HasPrefix(l, "#") && !line.MatchString(l) {
			t.Errorf("line is not a sample: %q", l)
		}
	}
}

func TestV2_LabelsStayBounded(t *testing.T) {
	// case 59: no traffic, however odd, adds a series
	m := New("1", Snapshots{})
	before := seriesOf(pageOf(m))
	for i := range 256 {
		m.Request(Reason(i))
		m.UpstreamError(Reason(i))
		m.ClientError(Reason(i))
		m.Delivered(Direction(i), 1)
		m.Relayed(RelayPath(i), 1)
		m.Discarded(Discard(i))
		m.Described(Describe(i))
		m.SessionEvent(SessionEvent(i))
	}
	for status := -3; status < 1200; status++ {
		m.Refusal(status)
	}
	for _, e := range []float64{-1e9, -1, 0, 1, 1e9} {
		m.StartError(e)
		m.DownloadWait.Update(e)
	}
	after := seriesOf(pageOf(m))
	if len(after) != len(before) {
		t.Errorf("%d series became %d", len(before), len(after))
	}
}

func TestV2_CountersCount(t *testing.T) {
	m := New("1", Snapshots{})
	m.Request(OK)
	m.Request(OK)
	m.Request(DownloadQueued)
	m.Request(Reason(200))  // outside
	m.Request(Unauthorized) // never an outcome
	m.UpstreamError(UpstreamTimeout)
	m.UpstreamError(OK) // not a fault
	m.ClientError(ClientHandshake)
	m.Refusal(503)
	m.Refusal(418)
	m.Refusal(-1)
	m.Delivered(Download, 70)
	m.Delivered(Upload, 7)
	m.Delivered(Upload, -7)
	m.Relayed(PathSplice, 1<<40)
	m.Dialled(nil)
	m.Dialled(errors.New("refused"))
	m.Dialled(errors.New("refused"))
	m.Discarded(DiscardUnsolicited)
	m.Described(DescribeHead)
	m.SessionEvent(EventNoShow)
	m.SessionEvent(EventYielded)
	m.StartError(-4)
	m.StartError(9)
	m.DownloadWait.Update(90000)
	m.Panics.Inc()
	page := pageOf(m)
	for series, want := range map[string]string{
		`arkvory_requests_total{outcome="ok"}`:                                  "2",
		`arkvory_requests_total{outcome="download_queued"}`:                     "1",
		`arkvory_requests_total{outcome="unknown"}`:                             "2",
		`arkvory_upstream_errors_total{reason="upstream_timeout"}`:              "1",
		`arkvory_upstream_errors_total{reason="unknown"}`:                       "1",
		`arkvory_client_errors_total{reason="client_handshake"}`:                "1",
		`arkvory_refusals_total{status="503"}`:                                  "1",
		`arkvory_refusals_total{status="other"}`:                                "2",
		`arkvory_delivered_bytes_total{direction="download"}`:                   "70",
		`arkvory_delivered_bytes_total{direction="upload"}`:                     "7",
		`arkvory_relay_bytes_total{path="splice"}`:                              "1099511627776",
		`arkvory_upstream_dials_total{result="ok"}`:                             "1",
		`arkvory_upstream_dials_total{result="error"}`:                          "2",
		`arkvory_upstream_discarded_total{reason="unsolicited"}`:                "1",
		`arkvory_object_describe_total{how="head"}`:                             "1",
		`arkvory_download_session_events_total{event="no_show"}`:                "1",
		`arkvory_download_session_events_total{event="yielded"}`:                "1",
		`arkvory_download_start_error_seconds_sum{side="early"}`:                "4",
		`arkvory_download_start_error_seconds_bucket{side="late",le="10"}`:      "1",
		`arkvory_download_start_error_seconds_bucket{side="late",le="5"}`:       "0",
		`arkvory_download_wait_seconds_bucket{le="86400"}`:                      "0",
		`arkvory_download_wait_seconds_bucket{le="+Inf"}`:                       "1",
		`arkvory_panics_total`:                                                  "1",
		`arkvory_build_info{version="1",go="` + plain(runtime.Version()) + `"}`: "1",
	} {
		if got := value(t, page, series); got != want {
			t.Errorf("%s is %s, want %s", series, got, want)
		}
	}
	tot := m.Totals()
	if tot.Dials != 1 || tot.Discarded != 1 || tot.Relay["splice"] != 1<<40 || tot.Events["no_show"] != 1 {
		t.Errorf("totals are %+v", tot)
	}
}

func TestV2_EveryReasonHasItsOwnSeries(t *testing.T) {
	for i := range ReasonCount {
		m := New("1", Snapshots{})
		r := Reason(i)
		m.Request(r)
		m.UpstreamError(r)
		m.ClientError(r)
		page := pageOf(m)
		for family, s := range map[string]side{nameRequests + `{outcome="`: ofRequest, nameUpstreamErrors + `{reason="`: ofUpstream,
			nameClientErrors + `{reason="`: ofClient} {
			want := r.String()
			if reasons[i].side&s == 0 {
				want = "unknown"
			}
			if got := value(t, page, family+want+`"}`); got != "1" {
				t.Errorf("%v in %s counted %s under %s, want 1", r, family, got, want)
			}
		}
	}
}

func TestV2_GaugesReadOneSnapshotAPage(t *testing.T) {
	calls := map[string]int{}
	m := New("1", Snapshots{
		RequestsInFlight: func() int { calls["requests"]++; return 3 },
		ConnectionsOpen:  func() int { calls["connections"]++; return 5 },
		HeldRequests:     func() int { calls["held"]++; return 2 },
		Sessions: func() Sessions {
			calls["sessions"]++
			return Sessions{Active: 4, Waiting: [ClassCount]int{1, 20, 300, 4000}, OldestWaitSeconds: 12.5, TickSeconds: 0.003,
				Slots: 18, Elastic: 2, PromisesJudged: 10, PromisesWithin: 8, PromisesHeld: 9}
		},
		Admission: func(d Direction) Admission {
			calls["admission "+d.String()]++
			return Admission{Active: 1 + int(d), Waiting: 2, Capacity: 16, Rejected: 9, TimedOut: 8, Cancelled: 7}
		},
		Bandwidth: func(d Direction) Bandwidth {
			calls["bandwidth "+d.String()]++
			return Bandwidth{BytesPerSecond: 1 << 27, Waiting: 6, GrantedBytes: 1 << 50}
		},
		UpstreamConnections: func() (int, int) { calls["pool"]++; return 10, 11 },
		FilesFaulty:         func() (bool, bool) { calls["files"]++; return false, true },
	})
	page := pageOf(m)
	for series, want := range map[string]string{
		"arkvory_requests_in_flight": "3", "arkvory_connections_open": "5", "arkvory_held_requests": "2",
		"arkvory_download_sessions_active": "4", `arkvory_download_sessions_waiting{class="interactive"}`: "1",
		`arkvory_download_sessions_waiting{class="background"}`: "4000", "arkvory_download_queue_oldest_wait_seconds": "12.5",
		"arkvory_download_slots": "18", "arkvory_download_elastic_slots": "2", "arkvory_download_promises_total": "10",
		"arkvory_download_promises_within_total": "8", "arkvory_download_promises_held_total": "9",
		"arkvory_queue_tick_seconds": "0.003", `arkvory_admission_active{direction="upload"}`: "1",
		`arkvory_admission_active{direction="download"}`: "2", `arkvory_admission_rejected_total{direction="upload"}`: "9",
		`arkvory_admission_timed_out_total{direction="upload"}`: "8", `arkvory_admission_cancelled_total{direction="upload"}`: "7",
		`arkvory_bandwidth_granted_bytes_total{direction="download"}`: "1125899906842624",
		`arkvory_upstream_connections{state="idle"}`:                  "10", `arkvory_upstream_connections{state="busy"}`: "11",
		`arkvory_file_faulty{file="principals"}`: "0", `arkvory_file_faulty{file="clients"}`: "1",
	} {
		if got := value(t, page, series); got != want {
			t.Errorf("%s is %s, want %s", series, got, want)
		}
	}
	if len(calls) != 10 {
		t.Errorf("called %v, want ten snapshots", calls)
	}
	for what, n := range calls {
		if n != 1 {
			t.Errorf("the snapshot of %s was taken %d times for one page, want 1", what, n)
		}
	}
}

func TestV2_InstancesShareNothing(t *testing.T) {
	a, b := New("1", Snapshots{}), New("1", Snapshots{})
	a.Request(OK)
	if got := value(t, pageOf(b), `arkvory_requests_total{outcome="ok"}`); got != "0" {
		t.Errorf("a request of one instance shows as %s in another, want 0", got)
	}
	for _, n := range metrics.ListMetricNames() {
		if strings.HasPrefix(n, "arkvory_") {
			t.Errorf("the library's global set holds %s", n)
		}
	}
}

func TestV2_PageEndsWithProcessMetrics(t *testing.T) {
	var b bytes.Buffer
	n, err := New("1", Snapshots{}).WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes, %v", n, b.Len(), err)
	}
	for _, want := range []string{"\nprocess_resident_memory_bytes ", "\ngo_goroutines ", "\nprocess_open_fds "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestV2_WriterErrorComesBack(t *testing.T) {
	if _, err := New("1", Snapshots{}).WriteTo(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

func TestV2_PanicOfASnapshotLeavesTheLockFree(t *testing.T) {
	fail := true
	m := New("1", Snapshots{HeldRequests: func() int {
		if fail {
			panic("no")
		}
		return 1
	}})
	func() {
		defer func() { _ = recover() }()
		pageOf(m)
		t.Error("the panic was swallowed")
	}()
	fail = false
	if got := value(t, pageOf(m), "arkvory_held_requests"); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
}

func TestV2_VersionIsMadePlain(t *testing.T) {
	for in, want := range map[string]string{"": "unknown", "v1.2-3+dirty": "v1.2-3+dirty", "a\"b\n{}": "a_b___",
		strings.Repeat("9", 99): strings.Repeat("9", 64)} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestV2_ConcurrentUse(t *testing.T) {
	m := New("1", Snapshots{Sessions: func() Sessions { return Sessions{Active: 1} }})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				m.Request(Reason(i % ReasonCount))
				m.Delivered(Download, 1)
				if i%100 == 0 {
					pageOf(m)
				}
			}
		})
	}
	wg.Wait()
	if got := value(t, pageOf(m), `arkvory_delivered_bytes_total{direction="download"}`); got != "2000" {
		t.Errorf("counted %s bytes, want 2000", got)
	}
}

func TestV2_HotPathAllocatesNothing(t *testing.T) {
	m := New("1", Snapshots{})
	if n := testing.AllocsPerRun(100, func() {
		m.Request(OK)
		m.Delivered(Download, 1)
		m.Relayed(PathSplice, 1)
		m.Refusal(503)
		m.ClientError(ClientGone)
		m.Dialled(nil)
	}); n != 0 {
		t.Errorf("counting allocates %v times, want 0", n)
	}
}

func BenchmarkV2_Request(b *testing.B) {
	m := New("1", Snapshots{})
	b.ReportAllocs()
	for b.Loop() {
		m.Request(OK)
	}
}

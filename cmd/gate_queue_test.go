//go:build gate

package house_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// The fleet: 64 clients of four classes want 1.1 GiB through 8 MiB/s and eight slots, some two and a half minutes.
const (
	fleetClients = 64
	fleetSlots   = 8
	fleetReserve = 1
	fleetShare   = 4
	fleetRate    = 8 * mib
	fleetBig     = 80 * mib // more than a minute at a slot's share: such sessions can be asked to yield
	fleetBigs    = 8
	fleetPiece   = 2 * mib
	fleetAging   = 15 * time.Minute
	fleetSecret  = "gate-secret-word"
	// fleetSwitch is the number of starts after which smallest-first takes over.
	fleetSwitch = 26
)

// fleet is one run.
type fleet struct {
	store   *store
	sidecar *sidecar
	limit   context.Context
	clients []*fleetClient
}

// fleetClient is one client and what it was told, in order.
type fleetClient struct {
	n         int
	id        string // Arkvory-Download-Id; empty for a plain client
	principal string
	class     queue.Class
	file      string
	size      int64
	http      *http.Client

	mu       sync.Mutex // one question at a time until its answer's head, so that the order of the answers is known
	contacts []contact
	admitted chan struct{} // closed at the next admission: whoever waits for this download's turn asks at once then
}

// contact is one answer, as the client saw it.
type contact struct {
	sent, got time.Time
	status    int
	header    http.Header
	reason    string
	admitted  <-chan struct{}
}

// newFleet makes the clients: the big ones of the lower classes first, so that they hold all slots outside the reserve when the others come.
func newFleet(t *testing.T) *fleet {
	f := &fleet{store: newStore(t, 0, 0)}
	f.store.add(t, "big", fleetBig, 1)
	for size := int64(3); size <= 16; size++ {
		f.store.add(t, fmt.Sprint("small", size), size*mib, byte(size))
	}
	for n := range fleetClients {
		c := &fleetClient{n: n, file: "big", size: fleetBig, class: queue.Bulk + queue.Class(n%2), admitted: make(chan struct{})}
		if n >= fleetBigs {
			c.size = int64(3+n*5%14) * mib
			c.file, c.class = fmt.Sprint("small", c.size/mib), queue.Class((n/2)%queue.Classes)
		}
		if n < fleetBigs-1 || n >= fleetBigs && n%2 == 0 {
			c.id = fmt.Sprintf("gate-queue-%02d", n)
		}
		c.principal = fmt.Sprintf("%s-user-%d", c.class, n/8%3)
		dialer := net.Dialer{LocalAddr: source(n), Timeout: 10 * time.Second}
		c.http = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, MaxConnsPerHost: 2}}
		f.clients = append(f.clients, c)
	}
	return f
}

// TestGateQueueDecisions is acceptance 3.6: what the running sidecar decides before a real nginx is what the core decides when it is
// fed the same events.
//
//   - The log of decisions replays through a fresh core without a difference.
//   - Read without the core, the log shows: never more than eight active sessions, seven outside interactive; in each lane (class
//     and principal) no present session is passed by a later one under ordered, in each class none by a bigger one after the switch
//     to smallest-first while it runs; only protocol clients yield.
//   - What each client was told is what the log says for that contact: outcome, position, class, times, Retry-After.
//   - Each client has its file, byte by byte, those that had to yield their slot as well.
func TestGateQueueDecisions(t *testing.T) {
	raiseFiles(t)
	f := newFleet(t)
	dir := openDir(t, "")
	path, users := filepath.Join(dir, "decisions.log"), filepath.Join(dir, "principals.yaml")
	text := "principals:\n"
	for i := range 3 {
		text += fmt.Sprintf("  - id: person-%d\n    class: interactive\n    users: [interactive-user-%d]\n", i, i)
	}
	if err := os.WriteFile(users, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f.sidecar = startSidecar(t, buildSidecar(t), startOrigin(t, f.store), false, map[string]string{
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND":    strconv.FormatInt(fleetRate, 10),
		"ARKVORY_MAX_DOWNLOAD_SESSIONS":        strconv.Itoa(fleetSlots),
		"ARKVORY_DOWNLOAD_RESERVE":             strconv.Itoa(fleetReserve),
		"ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL":  strconv.Itoa(fleetShare),
		"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES":   strconv.FormatInt(mib, 10),
		"ARKVORY_TRANSFER_QUEUE_PER_PRINCIPAL": "64",
		"ARKVORY_PRINCIPALS_FILE":              users,
		"ARKVORY_DECISION_LOG":                 path,
	})
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	f.limit = limit
	var all sync.WaitGroup
	for _, c := range f.clients {
		all.Go(func() {
			if err := f.download(c); err != nil {
				t.Errorf("client %d: %v", c.n, err)
				cancel()
			}
		})
	}
	f.switchStrategy(t)
	all.Wait()
	if t.Failed() {
		return
	}
	for _, c := range f.clients {
		c.http.CloseIdleConnections()
	}
	f.sidecar.settle(5*time.Second, (*readiness).counters)
	f.judge(t, wholeLog(t, path))
}

// switchStrategy changes the strategy of the running sidecar when a part of the fleet has started.
func (f *fleet) switchStrategy(t *testing.T) {
	t.Helper()
	for started := uint64(0); started < fleetSwitch; pause(200 * time.Millisecond) {
		if f.limit.Err() != nil {
			return // a client failed
		}
		r, err := f.sidecar.ready()
		if err != nil {
			t.Fatal(err)
		}
		started = r.Transfers.Downloads.Sessions.Started
	}
	const settings = "/api/v1/system/downloads/settings"
	body, err := f.sidecar.get(settings)
	if err != nil {
		t.Fatal(err)
	}
	var now struct{ Revision *int64 }
	if err := json.Unmarshal(body, &now); err != nil || now.Revision == nil {
		t.Fatalf("settings without a revision (%v): %s", err, body)
	}
	change := fmt.Sprintf(`{"expectedRevision":%d,"overrides":{"strategy":"smallest-first"}}`, *now.Revision)
	request, err := http.NewRequestWithContext(f.limit, "PUT", "http://"+f.sidecar.admin+settings, strings.NewReader(change))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.sidecar.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != 200 {
		t.Fatalf("the change of the strategy: status %d, %v: %s", response.StatusCode, err, answer)
	}
}

// wholeLog returns the log once its last tick shows an empty queue: the recorder is at most a tick behind.
func wholeLog(t *testing.T, path string) (log []byte) {
	t.Helper()
	within(t, 10*time.Second, "the log of decisions shows that everything ended", func() bool {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		log = b[:bytes.LastIndexByte(b, '\n')+1]
		lines := bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n"))
		last := lines[len(lines)-1]
		return bytes.HasPrefix(last, []byte("tick ")) && bytes.Contains(last, []byte(" = 0,0,0,0 0,0,0,0 "))
	})
	return log
}

// download comes in its turn and fetches the file.
func (f *fleet) download(c *fleetClient) error {
	pause(time.Duration(c.n) * 150 * time.Millisecond)
	if c.id == "" {
		response, err := f.ask(c, "")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		hash := sha256.New()
		size, err := io.Copy(hash, response.Body)
		if want := f.store.sums[c.file]; err != nil || size != c.size || [sha256.Size]byte(hash.Sum(nil)) != want {
			return fmt.Errorf("%d of %d bytes, SHA-256 %x, want %x, %v", size, c.size, hash.Sum(nil), want, err)
		}
		return nil
	}
	original, err := os.Open(filepath.Join(f.store.dir, c.file))
	if err != nil {
		return err
	}
	defer original.Close()
	var next, received atomic.Int64
	var failed firstError
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for first := next.Add(fleetPiece) - fleetPiece; first < c.size; first = next.Add(fleetPiece) - fleetPiece {
				n, err := f.piece(c, original, first, min(first+fleetPiece, c.size))
				if received.Add(n); err != nil {
					failed.set(fmt.Errorf("from %d: %w", first, err))
					return
				}
			}
		})
	}
	workers.Wait()
	if failed.err == nil && received.Load() != c.size {
		return fmt.Errorf("%d of %d bytes", received.Load(), c.size)
	}
	return failed.err
}

// piece fetches the bytes [first, end) and compares them with the file.
func (f *fleet) piece(c *fleetClient, original *os.File, first, end int64) (int64, error) {
	response, err := f.ask(c, fmt.Sprintf("bytes=%d-%d", first, end-1))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	want := make([]byte, end-first)
	if _, err := original.ReadAt(want, first); err != nil {
		return 0, err
	}
	if !bytes.Equal(got, want) {
		return 0, fmt.Errorf("%d bytes that are not the file's", len(got))
	}
	return int64(len(got)), nil
}

// ask sends one request, obeying Retry-After for as long as the answer is 503, and notes every answer.
func (f *fleet) ask(c *fleetClient, span string) (*http.Response, error) {
	for {
		response, told, err := f.contact(c, span)
		if err != nil || told.status == 200 || told.status == 206 {
			return response, err
		}
		seconds, err := strconv.Atoi(told.header.Get("Retry-After"))
		if told.status != 503 || err != nil || seconds < 1 {
			return nil, fmt.Errorf("status %d, Retry-After %q, reason %q", told.status, told.header.Get("Retry-After"), told.reason)
		}
		select {
		case <-time.NewTimer(time.Duration(seconds) * time.Second).C:
		case <-told.admitted:
		case <-f.limit.Done():
			return nil, f.limit.Err()
		}
	}
}

// contact asks once.
func (f *fleet) contact(c *fleetClient, span string) (*http.Response, contact, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request, err := http.NewRequestWithContext(f.limit, "GET", "http://"+f.sidecar.listen+"/"+c.file, nil)
	if err != nil {
		return nil, contact{}, err
	}
	request.SetBasicAuth(c.principal, fleetSecret)
	if c.class > queue.Release {
		request.Header.Set("Arkvory-Download-Class", c.class.String())
	}
	if c.id != "" {
		request.Header.Set("Arkvory-Download-Id", c.id)
		request.Header.Set("Range", span)
	}
	told := contact{sent: time.Now()}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, told, err
	}
	told.got, told.status, told.header = time.Now(), response.StatusCode, response.Header
	if told.status != 200 && told.status != 206 {
		var body struct{ Reason string }
		err = json.NewDecoder(response.Body).Decode(&body)
		_ = response.Body.Close()
		told.reason = body.Reason
	} else {
		close(c.admitted)
		c.admitted = make(chan struct{})
	}
	told.admitted = c.admitted
	c.contacts = append(c.contacts, told)
	return response, told, err
}

// judge reads the log with and without the core and holds it against what the clients saw.
func (f *fleet) judge(t *testing.T, log []byte) {
	t.Helper()
	report, err := replay.Replay(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range report.Described {
		t.Errorf("replay differs at %s", one)
	}
	for _, word := range []string{fleetSecret, "gate-queue", "-user-", "person-", "127."} {
		if bytes.Contains(log, []byte(word)) {
			t.Errorf("the log of decisions holds %q", word)
		}
	}
	s := &story{t: t, sessions: map[queue.Key]*told{}, responses: map[uint64]*told{}, waiters: map[uint64]*told{}, active: map[string]int{}}
	if err := replay.Parse(bytes.NewReader(log), func(e *replay.Event) error { s.tell(e); return nil }); err != nil {
		t.Fatal(err)
	}
	s.judge()
	heads := f.judgeHeaders(t, s)
	t.Logf("replay: %d events, %d decisions compared, %d differences; starts by class %v, preemptions %d", report.Events, report.Decisions,
		report.Differences, report.Starts, report.Preemptions)
	ordered, smallest := queue.Ordered, queue.SmallestFirst
	t.Logf("order: at most %d active, %d outside interactive; ended %v", s.most, s.mostCommon, s.reasons)
	t.Logf("ordered: %d starts; beside present sessions of the lane %d of %d in order, beside all of it %d of %d", s.starts[ordered],
		s.present[ordered].right, s.present[ordered].all, s.lane.right, s.lane.all)
	t.Logf("smallest-first: %d starts; beside present sessions of the class %d of %d in order, beside all of it %d of %d by size (before the switch %d of %d)",
		s.starts[smallest], s.present[smallest].right, s.present[smallest].all, s.sizes[smallest].right, s.sizes[smallest].all,
		s.sizes[ordered].right, s.sizes[ordered].all)
	t.Logf("clients: %d answers equal to the log (%d refusals with all facts, %d of them told to yield); %d questions asked twice in one contact",
		heads.equal, heads.refusals, heads.yields, heads.skipped)
}

// judgeHeaders compares each client's answers with the log's, in order.
func (f *fleet) judgeHeaders(t *testing.T, s *story) (sum struct{ equal, refusals, yields, skipped int }) {
	t.Helper()
	byClient := map[string]*told{}
	for key, one := range s.sessions {
		byClient[key.Client] = one
	}
	for _, c := range f.clients {
		name := "addr:" + source(c.n).IP.String()
		if c.id != "" {
			name = "id:" + c.id
		}
		one := byClient[replay.Hash(name)]
		if one == nil {
			t.Errorf("client %d is not in the log", c.n)
			continue
		}
		answers := one.answers
		for i, seen := range c.contacts {
			// A contact that looked at the origin while a slot was free, and came too late for it, asks a second time: its first answer is not seen.
			for len(answers) > 1 && answers[0].Outcome == queue.Queued && seen.differs(answers[0]) != "" {
				answers = answers[1:]
				sum.skipped++
			}
			if len(answers) == 0 {
				t.Errorf("client %d, answer %d of %d: the log has no more", c.n, i, len(c.contacts))
				break
			}
			if why := seen.differs(answers[0]); why != "" {
				t.Errorf("client %d, answer %d of %d: %s; the log says %+v", c.n, i, len(c.contacts), why, answers[0])
				break
			}
			sum.equal++
			if answers[0].Outcome == queue.Queued {
				sum.refusals++
			}
			if answers[0].Yielded {
				sum.yields++
			}
			answers = answers[1:]
		}
		if len(answers) > 0 && !t.Failed() {
			t.Errorf("client %d saw %d answers, the log has %d more", c.n, len(c.contacts), len(answers))
		}
	}
	if sum.yields == 0 {
		t.Error("no client was told that it yields its slot")
	}
	if sum.skipped*20 > sum.equal {
		t.Errorf("%d of %d answers of the log were seen by nobody", sum.skipped, sum.equal)
	}
	return sum
}

// differs returns what the client saw otherwise than the verdict says; empty when nothing.
func (c *contact) differs(v queue.Verdict) string {
	if (c.status != 503) != (v.Outcome == queue.Admitted) {
		return fmt.Sprintf("status %d for the outcome %s", c.status, v.Outcome)
	}
	if class := c.header.Get("Arkvory-Download-Class"); class != v.Class.String() {
		return fmt.Sprintf("class %q", class)
	}
	if v.Outcome == queue.Admitted {
		return ""
	}
	retry := max(1, int(math.Ceil(v.CheckIn.Seconds())))
	for name, want := range map[string]string{"Arkvory-Queue-Position": strconv.Itoa(v.Position), "Retry-After": strconv.Itoa(retry)} {
		if got := c.header.Get(name); got != want {
			return fmt.Sprintf("%s %q, not %q", name, got, want)
		}
	}
	if c.reason != "download_queued" {
		return fmt.Sprintf("reason %q", c.reason)
	}
	starts, window := c.header.Get("Arkvory-Starts-At"), c.header.Get("Arkvory-Starts-Window")
	if !v.EstimateKnown {
		if starts+window != "" {
			return "a start without an estimate"
		}
		return ""
	}
	earliest, latest, _ := strings.Cut(window, "/")
	for _, one := range []struct {
		said string
		in   time.Duration
	}{{starts, v.StartsIn}, {earliest, v.EarliestIn}, {latest, v.LatestIn}} {
		// The sidecar's wall clock was read between question and answer, and shows whole seconds.
		at, err := time.Parse(time.RFC3339, one.said)
		if err != nil || at.Before(c.sent.Add(one.in).Truncate(time.Second)) || at.After(c.got.Add(one.in)) {
			return fmt.Sprintf("start %q / %q, not %v after a moment in %v..%v", starts, window, one.in, c.sent, c.got)
		}
	}
	return ""
}

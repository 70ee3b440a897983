//go:build gate

package house_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/client"
	"github.com/arkvory/sidecar/queue/replay"
)

// The crowd: 200 clients want 4 MiB each through four slots; the process dies when a third of them are done, and 20 newcomers are there when it is back.
const (
	crowdClients   = 200
	crowdNewcomers = 20
	crowdSlots     = 4
	crowdObjects   = 4
	crowdSize      = 4 * mib
	crowdRate      = 10 * mib // bytes/s; each slot has a quarter
	crowdStagger   = 25 * time.Millisecond
	crowdSecret    = "gate-secret-word"
	// crowdGrace covers the time in which those who were in the queue come to their turn: the order within it is what is judged.
	crowdGrace = 180
	// crowdTie is how far apart two ends must lie to be in an order: a quantum's time at a slot's rate and what the scheduling of 200 clients on a busy
	// machine adds between a byte's arrival and its reader's look at the clock.
	crowdTie = 50 * time.Millisecond
)

// crowdRun is one way to die and to be told apart.
type crowdRun struct {
	name   string
	signal syscall.Signal
	own    bool // a principal each; else one for all
	grace  int  // seconds
}

// crowd is the state of one run.
type crowd struct {
	crowdRun
	t        *testing.T
	store    *store
	address  string
	clients  []*crowdClient
	restarts atomic.Int64 // 1 once the successor serves
	finished atomic.Int64
	requests atomic.Int64
	retrying atomic.Int64 // faults that were waited out; those of a server that is away cost no budget
}

// crowdClient is one Download and what it saw.
type crowdClient struct {
	*crowd
	n        int
	newcomer bool
	class    queue.Class
	id, file string
	result   client.Result

	mu    sync.Mutex
	heads [2]time.Time // first good answer from each process
	bytes [2]time.Time // first byte of a body from each process
	last  time.Time    // last byte of all
	got   [2]int64     // bytes from each process
}

// note sends a request, counts it and notes what its answer brings.
func (c *crowdClient) note(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	process := c.restarts.Load()
	response, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if response.StatusCode >= 300 {
		return response, nil
	}
	if c.heads[process].IsZero() {
		c.heads[process] = time.Now()
	}
	response.Body = &crowdBody{response.Body, c, process}
	return response, nil
}

type crowdTransport struct {
	*http.Transport
	client *crowdClient
}

func (t crowdTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.client.note(t.Transport, r)
}

// crowdBody notes when bytes come.
type crowdBody struct {
	io.ReadCloser
	client  *crowdClient
	process int64
}

func (b *crowdBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		c := b.client
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = time.Now()
		if c.got[b.process] += int64(n); c.bytes[b.process].IsZero() {
			c.bytes[b.process] = c.last
		}
	}
	return n, err
}

// download is what a user's program does; the file is compared with the origin's and removed.
func (c *crowdClient) download(ctx context.Context, dir string) error {
	dialer := net.Dialer{LocalAddr: source(c.n), Timeout: 10 * time.Second}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}
	defer transport.CloseIdleConnections()
	header := http.Header{}
	if !c.own {
		header.Set("Authorization", basic("everybody", crowdSecret))
	}
	output := filepath.Join(dir, c.id)
	result, err := client.Download(ctx, client.Options{
		URL: "http://" + c.address + "/" + c.file, Output: output, Header: header, Class: c.class.String(), ID: c.id, Parallel: 1, Size: crowdSize,
		Client: &http.Client{Transport: crowdTransport{transport, c}},
		Observe: func(e client.Event) {
			if e.Kind == client.Retrying {
				c.retrying.Add(1)
			}
		},
	})
	if err != nil {
		return err
	}
	c.result = result
	c.finished.Add(1)
	text, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	if sum, want := sha256.Sum256(text), c.store.sums[c.file]; sum != want || result.SHA256 != fmt.Sprintf("%x", want) {
		return fmt.Errorf("SHA-256 %x of the file, %s of the result, want %x", sum, result.SHA256, want)
	}
	return os.Remove(output)
}

// basic is the field of a Basic credential.
func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// fixedAddress is one that a successor can have too: below the range from which the kernel takes ports of outgoing connections.
func fixedAddress(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%5000; port < 32000; port++ {
		if listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// doomed is a sidecar that does not live as long as the test.
type doomed struct {
	command *exec.Cmd
	admin   string
	lines   []string
	read    chan struct{}
}

// startDoomed starts the binary and returns when it serves. Whatever happens it is gone when the test ends.
func startDoomed(t *testing.T, binary, origin string, variables map[string]string) *doomed {
	t.Helper()
	d := &doomed{command: exec.Command(binary), read: make(chan struct{})}
	d.command.Env = []string{"ARKVORY_ADMIN_LISTEN=127.0.0.1:0", "ARKVORY_UPSTREAM=http://" + origin, "ARKVORY_DRAIN_SECONDS=2"}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		d.command.Env = append(d.command.Env, name+"="+variables[name])
	}
	d.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := d.command.StderrPipe()
	if err == nil {
		err = d.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan string, 1)
	go func() {
		defer close(d.read)
		defer close(serving)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var said struct{ Message, Admin string }
			if json.Unmarshal(scan.Bytes(), &said) == nil && said.Message == "serving" {
				serving <- said.Admin
			}
		}
	}()
	t.Cleanup(func() { _ = d.end(syscall.SIGKILL) })
	if d.admin = <-serving; d.admin == "" {
		t.Fatal("the sidecar ended before it served")
	}
	return d
}

// end ends the process by the signal and waits for it, once.
func (d *doomed) end(signal syscall.Signal) error {
	if d.command.ProcessState != nil {
		return nil
	}
	_ = d.command.Process.Signal(signal)
	<-d.read
	return d.command.Wait()
}

// TestGateRestart is acceptance 4.1: 200 clients of package queue/client on four slots, of three classes, with one principal for all and with one each;
// the process is killed (-9) or stopped (SIGTERM) when a third is done, and its successor has the same address and state directory. Newcomers
// without a ticket arrive at once behind the restart.
//
// What counts as an inversion: a pair of one class of which the later arrival comes first. Arrivals are the order in which the first process saw the clients
// (its log of decisions), newcomers behind them.
//
//   - starts: the order in which the successor gave slots (its log), of those who got one in the grace before anybody else did.
//   - ends: the order of the last bytes of the same, as the clients saw them. All objects have one size and all slots one rate, so ends follow
//     starts. Two ends within crowdTie are in no order. Who had bytes from the first process has less to get and does not count
//     as too early.
//   - behind: starts behind the grace, and before: first answers of the first process, both against everybody who had arrived. There Q7 lets twice as many come
//     to a slot as are free or end within 5 s, so that neighbours overtake each other. That is no matter of the restart: it is reported only.
//
// Starts and ends must be 0, and with a grace as long as the queue nobody who returned may start behind it and no newcomer before them. The control has no
// grace: it must have inversions, else the count shows nothing. A run with the default grace shows both parts.
func TestGateRestart(t *testing.T) {
	raiseFiles(t)
	objects := newStore(t, crowdObjects, crowdSize)
	binary, origin := buildSidecar(t), startOrigin(t, objects)
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("runs", func(t *testing.T) {
		for _, run := range []crowdRun{
			{"kill -9, a principal each", syscall.SIGKILL, true, crowdGrace},
			{"kill -9, one principal", syscall.SIGKILL, false, crowdGrace},
			{"SIGTERM, a principal each", syscall.SIGTERM, true, crowdGrace},
			{"SIGTERM, one principal", syscall.SIGTERM, false, crowdGrace},
			{"kill -9, a principal each, grace of 30 s", syscall.SIGKILL, true, 30},
			{"control: kill -9, no grace", syscall.SIGKILL, true, 0},
		} {
			t.Run(run.name, func(t *testing.T) {
				t.Parallel()
				f := &crowd{crowdRun: run, t: t, store: objects, address: fixedAddress(t)}
				row := f.run(binary, origin)
				mu.Lock()
				defer mu.Unlock()
				rows[run.name] = row
			})
		}
	})
	text := "\n| run | clients | inversions of starts | of ends | behind the grace | before the restart | tickets | newcomers before returned | restart to first byte | requests | retries |\n" +
		"|" + strings.Repeat("---|", 11) + "\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text += rows[name]
	}
	t.Log(text)
}

// run plays one run and returns its row of the table.
func (f *crowd) run(binary, origin string) string {
	t := f.t
	dir := openDir(t, "/dev/shm")
	state, logs := filepath.Join(dir, "state"), [2]string{filepath.Join(dir, "first.log"), filepath.Join(dir, "second.log")}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"ARKVORY_LISTEN": f.address, "ARKVORY_STATE_DIR": state, "ARKVORY_DECISION_LOG": logs[0],
		"ARKVORY_RESTART_GRACE_SECONDS":     strconv.Itoa(f.grace),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(crowdRate, 10),
		"ARKVORY_MAX_DOWNLOAD_SESSIONS":     strconv.Itoa(crowdSlots), "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_PREEMPT": "false",
		"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(mib, 10),
	}
	if f.own {
		variables["ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL"] = strconv.FormatInt(crowdRate/crowdSlots, 10)
	}
	first := startDoomed(t, binary, origin, variables)
	limit, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	f.arrive(limit, &all, dir, crowdClients)
	third := int64(crowdClients / 3)
	for f.finished.Load() < third && limit.Err() == nil {
		pause(5 * time.Millisecond)
	}
	stopped := time.Now()
	if err := first.end(f.signal); f.signal == syscall.SIGTERM && err != nil {
		t.Errorf("the first process ended with %v", err)
	}
	done := f.finished.Load()
	variables["ARKVORY_DECISION_LOG"] = logs[1]
	f.restarts.Store(1)
	second := startSidecar(t, binary, origin, false, variables)
	serving := time.Now()
	f.arrive(limit, &all, dir, crowdNewcomers)
	all.Wait()
	if t.Failed() {
		return ""
	}
	second.settle(10*time.Second, (*readiness).counters)
	ended := time.Now()
	tickets := second.ticketCounts()
	j := f.judge(wholeLines(t, logs[0]), wholeLog(t, logs[1]))
	f.check(&j, tickets)
	byte1, retries, most := ended, 0, 0
	for _, c := range f.clients {
		retries, most = retries+c.result.Retries, max(most, c.result.Retries)
		if at := c.bytes[1]; !at.IsZero() && at.Before(byte1) {
			byte1 = at
		}
	}
	t.Logf("%d done before; %v from the signal to the successor; the last who returned started after %v, the grace was over after %v, all was done after %v",
		done, serving.Sub(stopped).Round(time.Millisecond), j.returned.Round(time.Second), j.until.Round(time.Second), ended.Sub(serving).Round(time.Second))
	return fmt.Sprintf("| %s | %d + %d | %s | %s | %s | %s | %s | %d | %.2f s (%.2f s from the signal) | %d | %d of the budget, %d at most; %d free |\n", f.name,
		crowdClients, crowdNewcomers, &j.grace, &j.ends, &j.behind, &j.before, outcomes(tickets), j.newcomers, byte1.Sub(serving).Seconds(), byte1.Sub(stopped).Seconds(), f.requests.Load(),
		retries, most, f.retrying.Load()-int64(retries))
}

// outcomes shows the counters that are not 0.
func outcomes(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n != 0 {
			out = append(out, name+" "+strconv.Itoa(n))
		}
	}
	return strings.Join(out, ", ")
}

// arrive starts clients one after another; it returns when the last has started.
func (f *crowd) arrive(ctx context.Context, all *sync.WaitGroup, dir string, count int) {
	for range count {
		n := len(f.clients)
		c := &crowdClient{crowd: f, n: n, newcomer: n >= crowdClients, class: queue.Release + queue.Class(n%3), id: fmt.Sprintf("gate-restart-%03d", n),
			file: "file" + strconv.Itoa(n%crowdObjects)}
		f.clients = append(f.clients, c)
		all.Go(func() {
			if err := c.download(ctx, dir); err != nil {
				f.t.Errorf("client %d: %v", c.n, err)
			}
		})
		pause(crowdStagger)
	}
}

// wholeLines returns a log whose writer was killed up to its last whole line.
func wholeLines(t *testing.T, path string) []byte {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return log[:bytes.LastIndexByte(log, '\n')+1]
}

// ticketCounts reads the counters of tickets by outcome.
func (s *sidecar) ticketCounts() map[string]int {
	s.t.Helper()
	body, err := s.get("/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, `arkvory_queue_tickets_total{outcome="`); ok {
			name, value, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
			if counts[name], err = strconv.Atoi(value); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return counts
}

// inversions counts by class the pairs of which the later arrival came first.
type inversions struct {
	by    [queue.Classes]int
	seen  [queue.Classes]int // clients that could have come too early
	pairs string
}

func (i *inversions) String() string {
	var out []string
	for class := queue.Release; int(class) < queue.Classes; class++ {
		out = append(out, fmt.Sprintf("%s %d of %d", class, i.by[class], i.seen[class]))
	}
	return strings.Join(out, ", ")
}

func (i *inversions) sum() (n int) {
	for _, of := range i.by {
		n += of
	}
	return n
}

// count goes through an order. arrival is each client's rank, in what says for the one that came first and the one behind it where a pair counts; nil: nowhere.
func count(order []*crowdClient, arrival map[*crowdClient]int, in func(first, second *crowdClient) *inversions) {
	for at, first := range order {
		if i := in(first, nil); i != nil {
			i.seen[first.class]++
		}
		for _, second := range order[at+1:] {
			if first.class != second.class || arrival[second] > arrival[first] {
				continue
			}
			if i := in(first, second); i != nil {
				i.by[first.class]++
				i.pairs += fmt.Sprintf(" %d<%d", first.n, second.n)
			}
		}
	}
}

// judgement is what a run showed.
type judgement struct {
	before, grace, behind, ends inversions
	newcomers                   int           // that came before one who returned
	returned                    time.Duration // of the successor's clock: when the last one who returned got a slot
	until                       time.Duration // and when the grace ended
}

// judge reads both logs and what the clients saw.
func (f *crowd) judge(first, second []byte) (j judgement) {
	t := f.t
	byKey, arrival := map[string]*crowdClient{}, map[*crowdClient]int{}
	for _, c := range f.clients {
		byKey[replay.Hash("id:"+c.id)] = c
	}
	var starts []*crowdClient
	started := map[*crowdClient]time.Duration{}
	tell := func(e *replay.Event) error {
		if e.Op == replay.OpGrace {
			j.until = e.Until
		}
		c := byKey[e.Ask.Key.Client]
		if c == nil || e.Op != replay.OpAsk {
			return nil
		}
		if _, known := arrival[c]; !known {
			arrival[c] = len(arrival)
		}
		if _, known := started[c]; e.Verdict.Started && !known {
			starts, started[c] = append(starts, c), e.Now
			if !c.newcomer {
				j.returned = max(j.returned, e.Now)
			}
		}
		return nil
	}
	parse := func(log []byte) {
		starts, j.returned = nil, 0
		clear(started)
		if err := replay.Parse(bytes.NewReader(log), tell); err != nil {
			t.Fatal(err)
		}
	}
	if parse(first); len(arrival) != crowdClients {
		t.Fatalf("%d clients are in the first log, want %d", len(arrival), crowdClients)
	}
	for c, at := range arrival {
		if c.n-at > 20 || at-c.n > 20 {
			t.Errorf("client %d arrived as number %d", c.n, at)
		}
	}
	before := slices.DeleteFunc(slices.Clone(f.clients), func(c *crowdClient) bool { return c.newcomer })
	slices.SortFunc(before, func(a, b *crowdClient) int {
		x, y := a.heads[0], b.heads[0]
		if x.IsZero() || y.IsZero() { // those without an answer behind all others, in their order
			return cmp.Or(btoi(x.IsZero())-btoi(y.IsZero()), arrival[a]-arrival[b])
		}
		return x.Compare(y)
	})
	count(before, arrival, func(first, second *crowdClient) *inversions {
		if first.heads[0].IsZero() {
			return nil
		}
		return &j.before
	})
	parse(second)
	count(starts, arrival, func(first, second *crowdClient) *inversions {
		if second != nil && first.newcomer && !second.newcomer {
			j.newcomers++
		}
		if started[first] < j.until {
			return &j.grace
		}
		return &j.behind
	})
	served := slices.DeleteFunc(slices.Clone(f.clients), func(c *crowdClient) bool { return c.got[1] == 0 })
	slices.SortFunc(served, func(a, b *crowdClient) int { return a.last.Compare(b.last) })
	count(served, arrival, func(first, second *crowdClient) *inversions {
		if started[first] >= j.until || first.got[0] > 0 || second != nil && second.last.Sub(first.last) < crowdTie {
			return nil
		}
		return &j.ends
	})
	if len(starts) != len(served) || len(starts) < crowdClients/2+crowdNewcomers {
		t.Errorf("%d starts, %d clients served after the restart", len(starts), len(served))
	}
	report, err := replay.Replay(bytes.NewReader(second))
	if err != nil || report.Differences != 0 {
		t.Errorf("the successor's log replays with %d differences, %v", report.Differences, err)
	}
	return j
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// check holds the counts to what they must be.
func (f *crowd) check(j *judgement, tickets map[string]int) {
	f.t.Helper()
	if wrong := j.grace.sum() + j.ends.sum(); wrong > 0 {
		f.t.Errorf("inversions of starts:%s; of ends:%s", j.grace.pairs, j.ends.pairs)
	}
	if f.grace == crowdGrace && (j.returned > j.until || j.newcomers > 0) {
		f.t.Errorf("the last who returned started at %v, the grace ended at %v; %d pairs of a newcomer before one who returned", j.returned, j.until, j.newcomers)
	}
	if f.grace == 0 && j.behind.sum() == 0 {
		f.t.Error("no inversions without the grace either: the count shows nothing")
	}
	for outcome, n := range tickets {
		if (n > 0) != (outcome == "accepted") {
			f.t.Errorf("%d tickets were %s", n, outcome)
		}
	}
}

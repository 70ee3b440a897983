//go:build gate

package house_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	"github.com/arkvory/sidecar/ticket"
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
	// crowdTie is how far apart two ends must lie to be in an order: some quanta's time at a slot's rate, and a reader's way to the clock on a busy machine.
	crowdTie = 50 * time.Millisecond
	// crowdSame is how far apart two arrivals must lie to be in an order: tickets hold milliseconds, and each signing and reading looks at two clocks.
	crowdSame = 3 * time.Millisecond
)

// crowd is one run: a way to die and to be told apart.
type crowd struct {
	name   string
	signal syscall.Signal
	own    bool // a principal each; else one for all
	grace  int  // seconds

	t                  *testing.T
	store              *store
	address            string
	clients            []*crowdClient
	process            atomic.Int64 // 0, 1 for the successor
	finished, requests atomic.Int64
}

// crowdClient is one Download and what it saw. It is its transport too.
type crowdClient struct {
	*crowd
	http.Transport
	n        int
	newcomer bool
	class    queue.Class
	id, file string
	result   client.Result

	mu    sync.Mutex
	first time.Time // byte from the successor
	last  time.Time // byte of all
	got   [2]int64  // bytes from each process
}

// RoundTrip sends and counts a request.
func (c *crowdClient) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	process := c.process.Load()
	response, err := c.Transport.RoundTrip(r)
	if err == nil && response.StatusCode < 300 {
		response.Body = &crowdBody{response.Body, c, process}
	}
	return response, err
}

// crowdBody notes when bytes come.
type crowdBody struct {
	io.ReadCloser
	client  *crowdClient
	process int64
}

func (b *crowdBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if c := b.client; n > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = time.Now()
		if c.got[b.process] += int64(n); b.process == 1 && c.first.IsZero() {
			c.first = c.last
		}
	}
	return n, err
}

// download is what a user's program does; the file is compared with the origin's and removed.
func (c *crowdClient) download(ctx context.Context, dir string) error {
	dialer := net.Dialer{LocalAddr: source(c.n), Timeout: 10 * time.Second}
	c.DialContext, c.DisableCompression = dialer.DialContext, true
	defer c.CloseIdleConnections()
	user := ""
	if !c.own {
		user = "everybody:" + crowdSecret + "@"
	}
	output := filepath.Join(dir, c.id)
	result, err := client.Download(ctx, client.Options{
		URL: "http://" + user + c.address + "/" + c.file, Output: output, Class: c.class.String(), ID: c.id, Parallel: 1, Size: crowdSize,
		Client: &http.Client{Transport: c},
	})
	if c.result = result; err != nil {
		return err
	}
	c.finished.Add(1)
	text, err := os.ReadFile(output)
	if sum, want := sha256.Sum256(text), c.store.sums[c.file]; err != nil || sum != want || result.SHA256 != fmt.Sprintf("%x", want) {
		return fmt.Errorf("SHA-256 %x of the file, %s of the result, want %x, %v", sum, result.SHA256, want, err)
	}
	return os.Remove(output)
}

// fixedAddress is one that a successor can have too: the n-th loopback address of this process's own.
func fixedAddress(n int) string { return fmt.Sprintf("127.9.%d.%d:18080", os.Getpid()%250, 1+n) }

// crowdVariables are those of one slot of 64 KiB/s without a grace.
func crowdVariables(address, state string) map[string]string {
	return map[string]string{"ARKVORY_LISTEN": address, "ARKVORY_STATE_DIR": state, "ARKVORY_DOWNLOAD_BYTES_PER_SECOND": "65536", "ARKVORY_MAX_DOWNLOAD_SESSIONS": "1",
		"ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_PREEMPT": "false", "ARKVORY_RESTART_GRACE_SECONDS": "0", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": "1048576"}
}

// startDoomed starts a sidecar that need not live as long as the test and returns when it listens.
func startDoomed(t *testing.T, binary, origin string, variables map[string]string) *exec.Cmd {
	t.Helper()
	command := exec.Command(binary)
	command.Env = []string{"ARKVORY_ADMIN_LISTEN=127.0.0.1:0", "ARKVORY_UPSTREAM=http://" + origin, "ARKVORY_DRAIN_SECONDS=2", "ARKVORY_LOG_LEVEL=warn"}
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	command.SysProcAttr, command.Stderr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() }) // errors: it has ended long ago
	within(t, 20*time.Second, "the sidecar listens", func() bool {
		connection, err := net.Dial("tcp4", variables["ARKVORY_LISTEN"])
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	return command
}

// TestGateRestart is acceptance 4.1: 200 clients of package queue/client on four slots, of three classes, with one principal for all and with one each;
// the process is killed (-9) or stopped (SIGTERM) when a third is done, and its successor has the same address and state directory. Newcomers
// without a ticket arrive at once behind the restart.
//
// An inversion is a pair of one class of which the later arrival comes first. Arrivals are those of the first process's log, newcomers behind them; two
// within crowdSame are in no order, since a ticket does not tell them apart.
//
//   - starts: the successor's order (its log), of those who got a slot in the grace before others did.
//   - ends: the order of last bytes of the same, as the clients saw them; objects have one size and slots one rate. Ends within crowdTie are in no
//     order, and who had bytes from the first process, which has less to get, is never too early.
//   - behind the grace and before the restart: starts there. Q7 lets twice as many come to a slot as are free or end within 5 s, so that neighbours
//     overtake each other. That is no matter of the restart and reported only.
//
// Starts and ends must be 0, and with a grace as long as the queue nobody who returned may start behind it, and no newcomer before them. The control
// has no grace and must have inversions, else the count shows nothing. A run with the default grace shows both parts.
func TestGateRestart(t *testing.T) {
	raiseFiles(t)
	objects := newStore(t, crowdObjects, crowdSize)
	binary, origin := buildSidecar(t), startOrigin(t, objects)
	runs := []*crowd{
		{name: "kill -9, a principal each", signal: syscall.SIGKILL, own: true, grace: crowdGrace},
		{name: "kill -9, one principal", signal: syscall.SIGKILL, grace: crowdGrace},
		{name: "SIGTERM, a principal each", signal: syscall.SIGTERM, own: true, grace: crowdGrace},
		{name: "SIGTERM, one principal", signal: syscall.SIGTERM, grace: crowdGrace},
		{name: "kill -9, a principal each, grace of 30 s", signal: syscall.SIGKILL, own: true, grace: 30},
		{name: "control: kill -9, no grace", signal: syscall.SIGKILL, own: true},
	}
	rows := make([]string, len(runs))
	var running sync.WaitGroup
	for i, run := range runs { // at once, whatever -parallel says: they cost little, and each is mostly waiting
		running.Go(func() {
			t.Run(run.name, func(t *testing.T) {
				run.t, run.store, run.address = t, objects, fixedAddress(i)
				rows[i] = run.run(binary, origin)
			})
		})
	}
	running.Wait()
	text := "\n| run | clients | inversions of starts | of ends | behind the grace | before the restart | tickets | newcomers before returned | restart to first byte | requests | retries |\n" +
		"|" + strings.Repeat("---|", 11) + "\n"
	t.Log(text + strings.Join(rows, ""))
}

// run plays one run and returns its row of the table.
func (f *crowd) run(binary, origin string) string {
	t := f.t
	dir := openDir(t, "/dev/shm")
	logs := [2]string{filepath.Join(dir, "first.log"), filepath.Join(dir, "second.log")}
	variables := crowdVariables(f.address, t.TempDir())
	variables["ARKVORY_DECISION_LOG"], variables["ARKVORY_RESTART_GRACE_SECONDS"] = logs[0], strconv.Itoa(f.grace)
	variables["ARKVORY_MAX_DOWNLOAD_SESSIONS"], variables["ARKVORY_DOWNLOAD_BYTES_PER_SECOND"] = strconv.Itoa(crowdSlots), strconv.FormatInt(crowdRate, 10)
	if f.own {
		variables["ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL"] = strconv.FormatInt(crowdRate/crowdSlots, 10)
	}
	first := startDoomed(t, binary, origin, variables)
	limit, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	f.arrive(limit, &all, dir, crowdClients)
	for f.finished.Load() < crowdClients/3 && limit.Err() == nil {
		pause(5 * time.Millisecond)
	}
	stopped := time.Now()
	_ = first.Process.Signal(f.signal)
	if err := first.Wait(); (err == nil) != (f.signal == syscall.SIGTERM) {
		t.Errorf("the first process ended with %v", err)
	}
	done := f.finished.Load()
	variables["ARKVORY_DECISION_LOG"] = logs[1]
	f.process.Store(1)
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
	log, _ := os.ReadFile(logs[0])                                             // that all clients are in it is checked
	j := f.judge(log[:bytes.LastIndexByte(log, '\n')+1], wholeLog(t, logs[1])) // a killed writer leaves a part of a line
	f.check(&j, tickets)
	byte1, retries, most := ended, 0, 0
	for _, c := range f.clients {
		retries, most = retries+c.result.Retries, max(most, c.result.Retries)
		if at := c.first; !at.IsZero() && at.Before(byte1) {
			byte1 = at
		}
	}
	t.Logf("%d done before; %v from the signal to the successor; the last who returned started after %v, the grace was over after %v, all was done after %v",
		done, serving.Sub(stopped).Round(time.Millisecond), j.returned.Round(time.Second), j.until.Round(time.Second), ended.Sub(serving).Round(time.Second))
	return fmt.Sprintf("| %s | %d + %d | %s | %s | %s | %s | %s | %d | %.2f s (%.2f s from the signal) | %d | %d, %d at most |\n", f.name,
		crowdClients, crowdNewcomers, &j.grace, &j.ends, &j.behind, &j.before, fmt.Sprint(tickets), j.newcomers, byte1.Sub(serving).Seconds(), byte1.Sub(stopped).Seconds(), f.requests.Load(),
		retries, most)
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

var ticketCount = regexp.MustCompile(`(?m)^arkvory_queue_tickets_total\{outcome="(\w+)"\} (\d+)$`)

// ticketCounts reads the counters of tickets by outcome.
func (s *sidecar) ticketCounts() map[string]int {
	s.t.Helper()
	body, err := s.get("/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, match := range ticketCount.FindAllSubmatch(body, -1) {
		counts[string(match[1])], _ = strconv.Atoi(string(match[2]))
	}
	return counts
}

// inversions counts by class the pairs of which the later arrival came first.
type inversions struct {
	by, seen [queue.Classes]int // pairs; clients that could have come too early
	pairs    []string
}

func (i *inversions) String() string {
	const r, u, b = queue.Release, queue.Bulk, queue.Background
	return fmt.Sprintf("release %d of %d, bulk %d of %d, background %d of %d", i.by[r], i.seen[r], i.by[u], i.seen[u], i.by[b], i.seen[b])
}

// count goes through an order. in says for the client that came first and one behind it, or none, where it counts; nil: nowhere.
func count(order []*crowdClient, arrival map[*crowdClient]time.Duration, in func(first, second *crowdClient) *inversions) {
	for at, first := range order {
		if i := in(first, nil); i != nil {
			i.seen[first.class]++
		}
		for _, second := range order[at+1:] {
			if first.class != second.class || arrival[second]+crowdSame > arrival[first] {
				continue // in order, or in none
			}
			if i := in(first, second); i != nil {
				i.by[first.class]++
				i.pairs = append(i.pairs, fmt.Sprintf("%d<%d", first.n, second.n))
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

// crowdStory is what the log of a process tells: when the clients got their slots, in that order, and when the grace ended.
type crowdStory struct {
	order []*crowdClient
	at    map[*crowdClient]time.Duration
	until time.Duration
}

// read tells a log and adds those who are new in it to the arrivals, which are times of the first process's clock; of the second they are far behind it.
func (f *crowd) read(log []byte, arrival map[*crowdClient]time.Duration, behind time.Duration) crowdStory {
	byKey, s := map[string]*crowdClient{}, crowdStory{at: map[*crowdClient]time.Duration{}}
	for _, c := range f.clients {
		byKey[replay.Hash("id:"+c.id)] = c
	}
	if err := replay.Parse(bytes.NewReader(log), func(e *replay.Event) error {
		if e.Op == replay.OpGrace {
			s.until = max(e.Until, e.Now) // one that is over at once ends the one before
		}
		c := byKey[e.Ask.Key.Client]
		if c == nil || e.Op != replay.OpAsk {
			return nil
		}
		if _, known := arrival[c]; !known {
			arrival[c] = e.Now + behind
		}
		if _, known := s.at[c]; e.Verdict.Started && !known {
			s.order, s.at[c] = append(s.order, c), e.Now
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// judge reads both logs and what the clients saw.
func (f *crowd) judge(first, second []byte) (j judgement) {
	arrival := map[*crowdClient]time.Duration{}
	before := f.read(first, arrival, 0)
	if len(arrival) != crowdClients {
		f.t.Fatalf("%d clients are in the first log, want %d", len(arrival), crowdClients)
	}
	for _, c := range f.clients[:crowdClients] {
		if _, had := before.at[c]; !had {
			before.order = append(before.order, c)
		}
	}
	count(before.order, arrival, func(first, _ *crowdClient) *inversions {
		if _, had := before.at[first]; had {
			return &j.before
		}
		return nil
	})
	after := f.read(second, arrival, time.Hour)
	j.until = after.until
	count(after.order, arrival, func(first, second *crowdClient) *inversions {
		switch {
		case second == nil && !first.newcomer:
			j.returned = after.at[first]
		case second != nil && first.newcomer && !second.newcomer:
			j.newcomers++
		}
		if after.at[first] < j.until {
			return &j.grace
		}
		return &j.behind
	})
	served := slices.DeleteFunc(slices.Clone(f.clients), func(c *crowdClient) bool { return c.got[1] == 0 })
	slices.SortFunc(served, func(a, b *crowdClient) int { return a.last.Compare(b.last) })
	count(served, arrival, func(first, second *crowdClient) *inversions {
		if after.at[first] >= j.until || first.got[0] > 0 || second != nil && second.last.Sub(first.last) < crowdTie {
			return nil
		}
		return &j.ends
	})
	if len(after.order) != len(served) || len(served) < crowdClients/2+crowdNewcomers {
		f.t.Errorf("%d starts, %d clients served after the restart", len(after.order), len(served))
	}
	if report, err := replay.Replay(bytes.NewReader(second)); err != nil || report.Differences != 0 || report.Cores != 1 {
		f.t.Errorf("the successor's log has %d cores (one more after each panic) and replays with %d differences, %v", report.Cores, report.Differences, err)
	}
	return j
}

// check holds the counts to what they must be.
func (f *crowd) check(j *judgement, tickets map[string]int) {
	f.t.Helper()
	if len(j.grace.pairs)+len(j.ends.pairs) > 0 {
		f.t.Errorf("inversions of starts: %s; of ends: %s", j.grace.pairs, j.ends.pairs)
	}
	if f.grace == crowdGrace && (j.returned > j.until || j.newcomers > 0) {
		f.t.Errorf("the last who returned started at %v, the grace ended at %v; %d pairs of a newcomer before one who returned", j.returned, j.until, j.newcomers)
	}
	if f.grace == 0 && len(j.behind.pairs) == 0 {
		f.t.Error("no inversions without the grace either: the count shows nothing")
	}
	if maps.DeleteFunc(tickets, func(_ string, n int) bool { return n == 0 }); len(tickets) != 1 || tickets["accepted"] == 0 {
		f.t.Errorf("tickets: %v", tickets)
	}
}

// question is a protocol client's request for one object.
type question struct{ file, id, user, ticket string }

// asked is its answer: the place and the arrival that the new ticket carries.
type asked struct {
	status, position int
	ticket           string
	arrival          time.Time
}

// ask sends the question; the body of a 200 stays unread until the test ends, so that it keeps its slot.
func (q question) ask(t *testing.T, address string, brings bool) (a asked) {
	t.Helper()
	request := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: address, Path: "/" + q.file}, Host: "gate.test", Header: http.Header{}}
	request.Header.Set("Arkvory-Download-Id", q.id)
	if q.user != "" {
		request.SetBasicAuth(q.user, crowdSecret)
	}
	if brings {
		request.Header.Set("Arkvory-Queue-Ticket", q.ticket)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	a.status, a.ticket = response.StatusCode, response.Header.Get("Arkvory-Queue-Ticket")
	a.position, _ = strconv.Atoi(response.Header.Get("Arkvory-Queue-Position"))
	if parts := strings.Split(a.ticket, "."); len(parts) == 4 {
		ms, _ := strconv.ParseInt(parts[1], 36, 64) // else 1970, which is no arrival of the table
		a.arrival = time.UnixMilli(ms)
	}
	return a
}

// ticketRow is one input of the table: the outcome that is counted and the arrival that is kept; zero: it joins anew.
type ticketRow struct {
	name string
	question
	outcome ticket.Outcome
	keeps   time.Time
}

// TestGateTicketTable is the first half of acceptance 4.2: what the successor of a killed process makes of tickets, genuine ones of that process and others
// signed or forged with the key of the state directory.
func TestGateTicketTable(t *testing.T) {
	objects := newStore(t, 2, crowdSize)
	binary, origin, state := buildSidecar(t), startOrigin(t, objects), t.TempDir()
	variables := crowdVariables(fixedAddress(100), state)
	first := startDoomed(t, binary, origin, variables)
	address := variables["ARKVORY_LISTEN"]
	occupy := question{file: "file0", id: "occupant"}
	if a := occupy.ask(t, address, false); a.status != 200 {
		t.Fatalf("the occupant of the slot: %+v", a)
	}
	real := map[string]asked{}
	for _, id := range []string{"waits", "again", "moves"} {
		real[id] = question{file: "file0", id: id}.ask(t, address, false)
		pause(crowdStagger) // another millisecond, another arrival
	}
	latest := question{"file0", "again", "", real["again"].ticket}.ask(t, address, true)
	_, _ = first.Process.Kill(), first.Wait()
	second := startSidecar(t, binary, origin, false, variables)
	if a := occupy.ask(t, address, false); a.status != 200 {
		t.Fatalf("the occupant of the slot: %+v", a)
	}
	stander := question{file: "file0", id: "newcomer"}.ask(t, address, false)
	arrivals := map[question]time.Time{{id: "newcomer"}: stander.arrival}
	text := "\n| input | outcome | place |\n|---|---|---|\n"
	counted := second.ticketCounts()
	for _, row := range ticketRows(t, state, real, latest) {
		pause(crowdStagger)
		a := row.ask(t, address, true)
		if counted[row.outcome.String()]++; !maps.Equal(second.ticketCounts(), counted) {
			t.Errorf("%s: not %s, counted %v", row.name, row.outcome, second.ticketCounts())
			counted = second.ticketCounts()
		}
		place := "new"
		if row.keeps.IsZero() {
			if a.arrival.Before(stander.arrival) {
				t.Errorf("%s: arrived at %v, before the newcomer", row.name, a.arrival)
			}
		} else if place = "kept"; a.arrival.Sub(row.keeps).Abs() > 10*time.Millisecond { // the clocks of two processes and of the wall are read one after another
			t.Errorf("%s: the arrival moved by %v", row.name, a.arrival.Sub(row.keeps))
		}
		want := 1
		for who, other := range arrivals {
			if other.Before(a.arrival) && who.id != row.id {
				want++
			}
		}
		arrivals[question{row.file, row.id, row.user, ""}] = a.arrival
		if a.status != 503 || row.user == "" && a.position != want {
			t.Errorf("%s: status %d, place %d of %d, want %d", row.name, a.status, a.position, len(arrivals), want)
		}
		text += fmt.Sprintf("| %s | %s | %s, %d of %d |\n", row.name, row.outcome, place, a.position, len(arrivals))
	}
	long := question{"file0", "long", "", strings.Repeat("A", 70<<10)}.ask(t, address, true)
	if after := second.ticketCounts(); long.status != 431 || !maps.Equal(after, counted) {
		t.Errorf("70 KiB: status %d, counted %v after %v", long.status, after, counted)
	}
	t.Log(text + "| 70 KiB, beyond the bound of a head | none: status 431 | none |\n")
}

// ticketRows are the inputs. Each is of a download that the process does not know yet, unless it says so: a place once taken stands whatever a ticket says.
func ticketRows(t *testing.T, state string, real map[string]asked, latest asked) []ticketRow {
	t.Helper()
	key, err := ticket.FromStateDir(state).Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, never := time.Now(), time.Time{}
	at := func(d time.Duration) time.Time { return now.Add(d).Truncate(time.Millisecond) }
	hash := func(id string) ticket.SessionHash {
		return ticket.HashSession("addr:127.0.0.1", "gate.test/file0", "id:"+id)
	}
	sign := func(id string, arrival, issued time.Duration) string {
		return string(ticket.NewSigner(key).Append(nil, hash(id), at(arrival), at(issued)))
	}
	good := func(id string) string { return sign(id, -time.Hour, -time.Minute) }
	forge := func(id string, part int, change func(string) string) string {
		parts := strings.Split(good(id), ".")
		parts[part] = change(parts[part])
		return strings.Join(parts, ".")
	}
	stamp := func(d time.Duration) func(string) string {
		return func(string) string { return strconv.FormatInt(at(d).UnixMilli(), 36) }
	}
	letter := func(mac string) string {
		return mac[:9] + map[bool]string{true: "B", false: "A"}[mac[9] == 'A'] + mac[10:]
	}
	row := func(name, id, text string, outcome ticket.Outcome, keeps time.Time) ticketRow {
		return ticketRow{name, question{"file0", id, "", text}, outcome, keeps}
	}
	const minute, second, valid, ahead = time.Minute, time.Second, ticket.Validity, ticket.Ahead
	return []ticketRow{
		row("of the killed process", "waits", real["waits"].ticket, ticket.Accepted, real["waits"].arrival),
		row("replayed: the same again, of a place that is known", "waits", real["waits"].ticket, ticket.Accepted, real["waits"].arrival),
		row("replayed: not the latest of its download", "again", real["again"].ticket, ticket.Accepted, real["again"].arrival),
		row("the latest of it, of a place that is known", "again", latest.ticket, ticket.Accepted, real["again"].arrival),
		row("signed with the key of the state directory", "t1", good("t1"), ticket.Accepted, at(-time.Hour)),
		row("issued 14 min 30 s ago", "t2", sign("t2", -2*time.Hour, -valid+30*second), ticket.Accepted, at(-2*time.Hour)),
		row("issued 1 min 30 s ahead", "t3", sign("t3", -3*time.Hour, ahead-30*second), ticket.Accepted, at(-3*time.Hour)),
		row("arrived and issued 1 min 30 s ahead: counts as now", "t4", sign("t4", ahead-30*second, ahead-30*second), ticket.Accepted, never),
		row("expired: issued 15 min 5 s ago", "t5", sign("t5", -time.Hour, -valid-5*second), ticket.Expired, never),
		row("future: issued 2 min 30 s ahead", "t6", sign("t6", -time.Hour, ahead+30*second), ticket.Future, never),
		row("forged: a letter of the MAC", "t7", forge("t7", 3, letter), ticket.BadMAC, never),
		row("forged: an earlier arrival", "t8", forge("t8", 1, stamp(-2*time.Hour)), ticket.BadMAC, never),
		row("forged: a later issue", "t9", forge("t9", 2, stamp(minute)), ticket.BadMAC, never),
		row("signed with another key", "t10", string(ticket.NewSigner(ticket.Key{9}).Append(nil, hash("t10"), at(-minute), now)), ticket.BadMAC, never),
		row("moved to another download id", "thief", real["moves"].ticket, ticket.BadMAC, never),
		{"moved to another object", question{"file1", "moves", "", real["moves"].ticket}, ticket.BadMAC, never},
		row("version 1", "t12", "1"+good("t12")[1:], ticket.UnknownVersion, never),
		row("version 3", "t13", "3"+good("t13")[1:], ticket.UnknownVersion, never),
		row("truncated by a letter", "t14", good("t14")[:len(good("t14"))-1], ticket.Malformed, never),
		row("truncated to its half", "t15", good("t15")[:len(good("t15"))/2], ticket.Malformed, never),
		row("empty", "t16", "", ticket.Malformed, never),
		row("a letter too long", "t17", good("t17")+"A", ticket.Malformed, never),
		row("oversized: 66 bytes", "t18", strings.Repeat("2", ticket.MaxBytes+1), ticket.Oversized, never),
		row("oversized: 60 KiB", "t19", strings.Repeat("2", 60<<10), ticket.Oversized, never),
		{"moved to another principal, whose first it is", question{"file0", "moves", "thief", real["moves"].ticket}, ticket.BadMAC, never},
	}
}

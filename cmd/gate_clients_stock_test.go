//go:build gate

package house_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The stock clients' gate: one sidecar an origin and mode, 4 slots, a slow link.
const (
	stockSlots = 4
	stockRate  = 4 * mib
	stockFull  = 90 // seconds; ARKVORY_GATE_FULL_SECONDS=600 is the record
	// stockSession makes every layer of the images a session.
	stockSession = 4 * mib
)

// stockModes are the columns: as it comes, without early headers and drips (X2), and so again but with the clients told to be patient. The last two share
// their sidecars.
var stockModes = []string{"on", "off", "tuned"}

// behind is the mode whose sidecars a mode's clients use.
func behind(mode string) string {
	if mode == "tuned" {
		return "off"
	}
	return mode
}

// fullSeconds is how long the queue is full.
func fullSeconds(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("ARKVORY_GATE_FULL_SECONDS")
	if text == "" {
		return stockFull
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 40 || n > 3600 {
		t.Fatalf("ARKVORY_GATE_FULL_SECONDS=%q: a whole number 40..3600", text)
	}
	return n
}

// filler holds one slot: a protocol client that downloads size bytes. Together with the others of its sidecar it takes the whole link.
func filler(ctx context.Context, address, path string, n int, size int64) error {
	transport := transportFrom(n)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Arkvory-Download-Id", "filler-"+strconv.Itoa(n))
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.Copy(io.Discard, response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || got != size) {
		err = fmt.Errorf("status %d, %d of %d bytes", response.StatusCode, got, size)
	}
	return err
}

// stockRun is the gate's state.
type stockRun struct {
	origins  *origins
	full     time.Duration
	fillers  sync.WaitGroup
	began    time.Time
	mu       sync.Mutex
	ended    map[string]time.Duration // by mode: when the last filler ended
	sidecars map[string]*sidecar      // by mode and store
	source   int
}

// TestGateStockClients starts stock clients with their default settings while every slot is taken and stays so for ARKVORY_GATE_FULL_SECONDS (90; the record
// is 600), with early headers and dripped bytes (X2), without, and without but with the settings that README recommends then, all at the same time. With X2, and with those
// settings, nobody may fail.
// A Markdown table goes to the log and, when set, to the file ARKVORY_GATE_TABLE. A tool that is missing fails the test unless ARKVORY_GATE_MAY_LACK lists it.
func TestGateStockClients(t *testing.T) {
	raiseFiles(t)
	binary := buildSidecar(t)
	r := &stockRun{origins: startOrigins(t), full: time.Duration(fullSeconds(t)) * time.Second, ended: map[string]time.Duration{}, sidecars: map[string]*sidecar{}}
	for mode, settings := range map[string][]string{"on": nil, "off": nil, "tuned": {dockerTuned}} {
		if err := r.origins.startDocker(t, mode, settings...); err != nil {
			t.Logf("no Docker here: %v", err)
			clear(r.origins.docker)
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), r.full+6*time.Minute)
	defer cancel()
	attempts := r.prepare(t, binary)
	r.fill(ctx, t)
	r.began = time.Now()
	var running sync.WaitGroup
	for _, mode := range stockModes {
		for _, a := range attempts[mode] {
			if a.wire != nil {
				running.Go(func() { a.run(ctx, r.origins); t.Logf("%s, X2 %s: %s", a.client.name, mode, a.cell()) })
			}
		}
	}
	running.Wait()
	r.fillers.Wait()
	r.judge(t, attempts)
	for _, s := range r.sidecars {
		s.settle(40*time.Second, busyNow)
	}
}

// busyNow are the counters that must be zero when all clients have ended, however they did. Kept connections are theirs, and the places of those who
// left while they waited are kept by rule.
func busyNow(r *readiness) map[string]int {
	left := r.counters()
	delete(left, "connections.open")
	delete(left, "sessions.waiting")
	return left
}

// prepare starts the sidecars and seeds what each client fetches.
func (r *stockRun) prepare(t *testing.T, binary string) map[string][]*attempt {
	attempts := map[string][]*attempt{}
	for _, mode := range stockModes {
		if behind(mode) == mode {
			r.start(t, binary, mode)
		}
		for i, client := range stockClients() {
			a := &attempt{client: client, id: mode + "-" + strconv.Itoa(i), docker: r.origins.docker[mode]}
			attempts[mode] = append(attempts[mode], a)
			if mode == "tuned" {
				a.tune = client.tuned
			}
			if a.lacks, _ = client.lack(r.origins); a.lacks != "" || mode == "tuned" && a.tune == "" {
				continue
			}
			r.source++
			a.dir = openDir(t, "")
			a.wire = newWire(t, r.sidecars[behind(mode)+client.store].listen, source(r.source))
			for _, name := range []string{"out", "etc"} {
				if err := os.Mkdir(filepath.Join(a.dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			a.want = client.seed(t, r.origins, a.id, a.wire.address)
		}
	}
	return attempts
}

// start runs a mode's two sidecars.
func (r *stockRun) start(t *testing.T, binary, mode string) {
	variables := map[string]string{"ARKVORY_MAX_DOWNLOAD_SESSIONS": strconv.Itoa(stockSlots), "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_PREEMPT": "false",
		"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(stockSession, 10), "ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(stockRate, 10)}
	if mode == "off" {
		variables["ARKVORY_DOWNLOAD_DRIP_LIMIT"] = "0"
	}
	r.sidecars[mode+"files"] = startSidecar(t, binary, r.origins.files, false, variables)
	r.sidecars[mode+"registry"] = startSidecar(t, binary, r.origins.registry, false, variables)
}

// fill takes every slot of every sidecar, for as long as the link needs for the fillers' bytes.
func (r *stockRun) fill(ctx context.Context, t *testing.T) {
	size := stockRate * int64(r.full/time.Second) / stockSlots
	sparse(t, filepath.Join(r.origins.dir, "filler.bin"), size)
	paths := map[string]string{"files": "/filler.bin", "registry": r.origins.plantBlob(t, "filler", size)}
	begun := time.Now()
	for _, mode := range []string{"on", "off"} {
		for store, path := range paths {
			address := r.sidecars[mode+store].listen
			for range stockSlots {
				r.source++
				n := r.source
				r.fillers.Go(func() {
					if err := filler(ctx, address, path, n, size); err != nil {
						t.Errorf("a download that was to hold a slot ended: %v", err)
					}
					r.mu.Lock()
					defer r.mu.Unlock()
					r.ended[mode] = max(r.ended[mode], time.Since(begun))
				})
			}
		}
	}
	for name, s := range r.sidecars {
		for {
			now, err := s.ready()
			if err != nil {
				t.Fatal(err)
			}
			if now.Transfers.Downloads.Sessions.Active == stockSlots {
				break
			}
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("only %d of %d slots of %s are taken", now.Transfers.Downloads.Sessions.Active, stockSlots, name)
			}
			pause(20 * time.Millisecond)
		}
	}
}

// cell is an outcome as the table shows it.
func (a *attempt) cell() string {
	if a.lacks != "" {
		return a.lacks
	}
	if a.wire == nil {
		return "none known"
	}
	outcome := "ok"
	if a.err != nil {
		outcome = "**fails**"
	}
	tune := ""
	if a.tune != "" {
		tune = "`" + a.tune + "`: "
	}
	return fmt.Sprintf("%s%s, %.0f s, %d requests", tune, outcome, a.took.Seconds(), a.asked)
}

// judge prints the table and holds the rules to it.
func (r *stockRun) judge(t *testing.T, attempts map[string][]*attempt) {
	var table strings.Builder
	fmt.Fprintf(&table, "Queue full for %.0f s (with X2) and %.0f s (without); after that %d slots share %d MiB/s.\n\n", r.ended["on"].Seconds(), r.ended["off"].Seconds(), stockSlots, stockRate/mib)
	table.WriteString("| client | version | X2 on | X2 off | X2 off, with settings |\n|---|---|---|---|---|\n")
	for i, on := range attempts["on"] {
		off, tuned := attempts["off"][i], attempts["tuned"][i]
		_, version := on.client.lack(r.origins)
		settings := tuned.cell()
		if tuned.wire == nil && off.wire != nil && off.err == nil {
			settings = "none needed"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", on.client.name, version, on.cell(), off.cell(), settings)
		r.hold(t, on, off, tuned)
	}
	t.Logf("\n%s", table.String())
	if path := os.Getenv("ARKVORY_GATE_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	for mode, ended := range r.ended {
		if ended < r.full*9/10 {
			t.Errorf("with X2 %s the slots were taken for %v only, want %v", mode, ended, r.full)
		}
	}
}

// impatient are clients that a single refusal ends for certain: without X2 they must fail, or the queue was not full and the other column proves nothing.
var impatient = []string{"curl", "wget", "aria2c", "python requests"}

// hold is the judgement of one row.
func (r *stockRun) hold(t *testing.T, on, off, tuned *attempt) {
	name := on.client.name
	if on.lacks != "" {
		if !mayLack(on.client.needs[0]) {
			t.Errorf("%s: %s; ARKVORY_GATE_MAY_LACK=%s lets the gate pass without it", name, on.lacks, on.client.needs[0])
		}
		return
	}
	if on.err != nil {
		t.Errorf("%s fails with X2: %v\nwhat it sent and got:\n%s", name, on.err, on.wire.story())
	}
	if tuned.err != nil {
		t.Errorf("%s fails without X2 with %s: %v\nwhat it sent and got:\n%s", name, tuned.tune, tuned.err, tuned.wire.story())
	}
	if off.err != nil {
		t.Logf("%s fails without X2, after %.0f s: %v", name, off.took.Seconds(), off.err)
	} else if slices.Contains(impatient, name) {
		t.Errorf("%s does not fail without X2: the queue was not full", name)
	}
	if on.err == nil && on.took < r.full*8/10 {
		t.Errorf("%s was done after %v with every slot taken for %v", name, on.took, r.full)
	}
}

// transportFrom makes a transport whose connections come from the n-th client's own address.
func transportFrom(n int) *http.Transport {
	return &http.Transport{DialContext: dialerFrom(n), MaxConnsPerHost: 8, DisableCompression: true}
}

// mayLack reports whether the gates may pass without a tool: ARKVORY_GATE_MAY_LACK is a list with commas.
func mayLack(tool string) bool {
	return slices.Contains(strings.Split(os.Getenv("ARKVORY_GATE_MAY_LACK"), ","), tool)
}

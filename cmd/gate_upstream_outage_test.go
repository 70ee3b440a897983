//go:build gate

package house_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

const (
	outageWaiting = 200
	outageSlots   = 4
	outageRate    = 16 * mib // bytes/s; each slot has a quarter
	outageLong    = 160 * mib
	outageShort   = 2 * mib
	outageStagger = 25 * time.Millisecond
	outageHold    = 20 // seconds, the default of ARKVORY_DOWNLOAD_HOLD_SECONDS
	outageLasts   = time.Minute
)

// outage is one run.
type outage struct {
	t       *testing.T
	store   *store
	sidecar *sidecar
	origins []*webOrigin
	dir     string
	clients []*outageClient
	all     sync.WaitGroup
	down    outageTimes
}

// outageTimes are when the origins were away.
type outageTimes struct {
	mu       sync.Mutex
	from, to time.Time
}

func (o *outageTimes) has(at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.from.IsZero() && at.After(o.from) && (o.to.IsZero() || at.Before(o.to))
}

// outageClient is one download, of a protocol client (id) or a plain one, and what it saw. It is its transport too.
type outageClient struct {
	*outage
	http.Transport
	n        int
	id, file string
	size     int64
	occupies bool

	mu      sync.Mutex
	told    []outageAnswer
	silence time.Duration // longest time of a plain client without a byte, from its head on
	quiet   time.Duration // and within the outage
	err     error
	retries int
}

// outageAnswer is one answer to a protocol client.
type outageAnswer struct {
	at       time.Time
	status   int
	retry    string
	position int
	arrival  string // of the ticket
	reason   string
}

// RoundTrip sends and notes what it was told.
func (c *outageClient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.Transport.RoundTrip(r)
	if err != nil {
		return response, err
	}
	a := outageAnswer{at: time.Now(), status: response.StatusCode, retry: response.Header.Get("Retry-After")}
	a.position, _ = strconv.Atoi(response.Header.Get("Arkvory-Queue-Position"))
	if parts := strings.Split(response.Header.Get("Arkvory-Queue-Ticket"), "."); len(parts) == 4 {
		a.arrival = parts[1]
	}
	if a.status >= 400 {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(text))
		var body struct{ Reason string }
		_ = json.Unmarshal(text, &body)
		a.reason = body.Reason
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, a)
	return response, nil
}

// run is the download, of either kind; the bytes must be the object's.
func (c *outageClient) run(ctx context.Context) error {
	dialer := net.Dialer{LocalAddr: source(c.n), Timeout: 10 * time.Second}
	c.DialContext, c.DisableCompression = dialer.DialContext, true
	defer c.CloseIdleConnections()
	url := "http://" + c.sidecar.listen + "/" + c.file
	want := c.store.sums[c.file]
	if c.id == "" {
		return c.plain(ctx, url, want)
	}
	output := filepath.Join(c.dir, c.id)
	result, err := client.Download(ctx, client.Options{URL: url, Output: output, ID: c.id, Parallel: 1, Size: c.size, Client: &http.Client{Transport: c}})
	if c.retries = result.Retries; err != nil {
		return err
	}
	if result.SHA256 != fmt.Sprintf("%x", want) {
		return fmt.Errorf("SHA-256 %s, want %x", result.SHA256, want)
	}
	return os.Remove(output)
}

// plain asks once and waits for whatever comes.
func (c *outageClient) plain(ctx context.Context, url string, want [sha256.Size]byte) error {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	response, err := c.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		return fmt.Errorf("status %d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
	hash, buffer, size := sha256.New(), make([]byte, 64<<10), int64(0)
	for last := time.Now(); ; {
		n, err := response.Body.Read(buffer)
		if now := time.Now(); n > 0 {
			c.silence = max(c.silence, now.Sub(last))
			if c.down.has(last) {
				c.quiet = max(c.quiet, now.Sub(last))
			}
			last = now
		}
		size += int64(n)
		hash.Write(buffer[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("cut at %d of %d bytes: %w", size, c.size, err)
		}
	}
	if got := [sha256.Size]byte(hash.Sum(nil)); size != c.size || got != want {
		return fmt.Errorf("%d of %d bytes, SHA-256 %x, want %x", size, c.size, got, want)
	}
	return nil
}

// TestGateUpstreamOutage is acceptance 5.5: all three origins die while four downloads run and 200 wait, half of them clients of package queue/client, half plain ones
// that are held and fed as by default. They stay dead for a minute; then one returns. TestGateUpstreamOutage/Fallback is the second origin of U8.
//
//   - In the outage no session starts, and as many wait as before it; each answer to a waiting protocol client is 503 with Retry-After, its ticket keeps its arrival, and its
//     position is not behind the one before.
//   - No plain client is refused or cut. Each of the 204 has its object in the end, byte by byte, those that ran as well.
//   - The order, by the log of decisions: whoever starts has no more than 2 x slots - 1 of those who arrived before it still waiting, which is what Q7 allows (twice
//     as many may come as slots are free or about to be). A slot that nobody claims for a tick widens that, so that one in twenty may have up to twice as many.
func TestGateUpstreamOutage(t *testing.T) {
	raiseFiles(t)
	binary := buildSidecar(t)
	t.Run("Minute", func(t *testing.T) { gateOutage(t, binary) })
	t.Run("Fallback", func(t *testing.T) { gateFallback(t, binary) })
}

func gateOutage(t *testing.T, binary string) {
	o := &outage{t: t, store: newStore(t, 4, outageShort), dir: openDir(t, "/dev/shm")}
	o.store.add(t, "long", outageLong, 50)
	addresses, names := originAddresses(t, 3, true), startNames(t)
	for i, address := range addresses {
		origin := newOrigin(t, o.store, string(rune('a'+i)), address, 5*time.Minute)
		origin.start()
		o.origins = append(o.origins, origin)
	}
	names.set(poolName, addresses...)
	log := filepath.Join(o.dir, "decisions.log")
	o.sidecar = startSidecar(t, binary, poolOrigin(portOf(addresses[0])), false, poolVariables(names, map[string]string{
		"ARKVORY_MAX_DOWNLOAD_SESSIONS": strconv.Itoa(outageSlots), "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(mib, 10),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND":               strconv.FormatInt(outageRate, 10),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL": strconv.FormatInt(outageRate/outageSlots, 10),
		"ARKVORY_DOWNLOAD_PREEMPT":                        "false", "ARKVORY_DECISION_LOG": log, "ARKVORY_UPSTREAM_RESUME": "true",
		"ARKVORY_TRANSFER_QUEUE_LIMIT": strconv.Itoa(2 * outageWaiting), // how many may be held
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	o.arrive(ctx, outageSlots, true)
	within(t, 20*time.Second, "the slots are taken", func() bool { active, _ := o.sessions(); return active == outageSlots })
	o.arrive(ctx, outageWaiting, false)
	within(t, 10*time.Second, "all wait", func() bool { _, waiting := o.sessions(); return waiting == outageWaiting })
	within(t, (outageHold+15)*time.Second, "the plain ones are fed", func() bool { return o.sidecar.drips().Transfers.Downloads.Sessions.Drips.Active == outageWaiting/2 })
	rows := o.blackout(ctx)
	o.all.Wait()
	o.judge(rows, log)
}

// sessions are those that hold a slot and those that wait.
func (o *outage) sessions() (active, waiting int) {
	o.t.Helper()
	page := o.sidecar.pool()
	return page.of(o.t, "arkvory_download_sessions_active"), page.sum("arkvory_download_sessions_waiting", "")
}

// arrive starts clients one after another; every second that waits is a plain one.
func (o *outage) arrive(ctx context.Context, count int, occupies bool) {
	for range count {
		n := len(o.clients)
		c := &outageClient{outage: o, n: n, occupies: occupies, file: "file" + strconv.Itoa(n%4), size: outageShort}
		if occupies {
			c.file, c.size = "long", outageLong
		}
		if occupies || n%2 == 0 {
			c.id = fmt.Sprintf("gate-outage-%03d", n)
		}
		o.clients = append(o.clients, c)
		o.all.Go(func() { c.err = c.run(ctx) })
		pause(outageStagger)
	}
}

// blackout kills all origins for a minute, looks at the queue meanwhile and starts the second of them again.
func (o *outage) blackout(ctx context.Context) (rows string) {
	t := o.t
	t.Helper()
	row := func(what string, page poolPage, waiting, started int) {
		rows += fmt.Sprintf("| %s | %d | %d | %d | %d | %.0f |\n", what, waiting, started, page.of(t, "arkvory_download_drips"), page.of(t, seriesCovered), page["arkvory_upstream_dials_total{result=\"error\"}"])
	}
	look := func() (page poolPage, waiting, started int) {
		page = o.sidecar.pool()
		return page, page.sum("arkvory_download_sessions_waiting", ""), page.of(t, `arkvory_download_session_events_total{event="started"}`)
	}
	page, waiting, started := look()
	row("before", page, waiting, started)
	o.down.mu.Lock()
	o.down.from = time.Now()
	o.down.mu.Unlock()
	for _, origin := range o.origins {
		origin.kill()
	}
	within(t, 10*time.Second, "coverage is gone", func() bool { return o.sidecar.pool().of(t, seriesCovered) == 0 })
	_, _, from := look()
	least, most, begun := waiting, waiting, time.Now()
	for next := 10 * time.Second; time.Since(begun) < outageLasts && ctx.Err() == nil; pause(500 * time.Millisecond) {
		page, waiting, started = look()
		least, most = min(least, waiting), max(most, waiting)
		if started != from {
			t.Errorf("%d sessions started without coverage", started-from)
			from = started
		}
		if time.Since(begun) > next {
			row(fmt.Sprintf("%.0f s without an origin", time.Since(begun).Seconds()), page, waiting, started)
			next += 10 * time.Second
		}
	}
	rows += o.newcomers()
	if least < outageWaiting || most > outageWaiting+outageSlots { // those that ran may have to wait again
		t.Errorf("between %d and %d waited in the outage, %d before it", least, most, outageWaiting)
	}
	o.origins[1].start()
	o.down.mu.Lock()
	o.down.to = time.Now()
	o.down.mu.Unlock()
	within(t, 15*time.Second, "coverage is back", func() bool { return o.sidecar.pool().of(t, seriesCovered) == 1 })
	page, waiting, started = look()
	row("one is back", page, waiting, started)
	return rows
}

// newcomers ask in the outage. A new protocol client is told when to come back, as those that wait are; a small request has nothing to wait for and gets a definite answer.
func (o *outage) newcomers() string {
	text := ""
	for _, one := range []struct{ who, file, id string }{{"protocol newcomer", "file0", "gate-outage-newcomer"}, {"plain newcomer", "tiny", ""}} {
		request, err := http.NewRequestWithContext(o.t.Context(), "GET", "http://"+o.sidecar.listen+"/"+one.file, nil)
		if err != nil {
			o.t.Fatal(err)
		}
		if one.id != "" {
			request.Header.Set("Arkvory-Download-Id", one.id)
		}
		begun := time.Now()
		response, err := (&http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			o.t.Errorf("%s for %s: %v", one.who, one.file, err)
			continue
		}
		var said struct{ Reason string }
		_ = json.NewDecoder(response.Body).Decode(&said)
		_ = response.Body.Close()
		retry := response.Header.Get("Retry-After")
		text += fmt.Sprintf("| %s for %s: status %d %s, Retry-After %q after %v | | | | | |\n", one.who, one.file, response.StatusCode, said.Reason, retry, time.Since(begun).Round(time.Millisecond))
		seconds, err := strconv.Atoi(retry)
		if told := err == nil && seconds > 0; said.Reason == "" || response.StatusCode != 503 && response.StatusCode != 502 || one.id != "" && (response.StatusCode != 503 || !told) {
			o.t.Errorf("%s for %s in the outage: status %d %s, Retry-After %q", one.who, one.file, response.StatusCode, said.Reason, retry)
		}
	}
	return text
}

//go:build gate

package house_test

import (
	"bytes"
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
	"syscall"
	"testing"
	"time"
)

// The gates of the operator's desk run whole processes and speak to both of their listeners. This file is what they share.

// deskPath is where the desk's API begins.
const deskPath = "/api/v1/system/downloads"

// deskHost is the Host of all downloads: it is a part of an object's name, which two processes must see alike.
const deskHost = "gate.test"

// desk is one sidecar process. Its log and all answers of its admin listener are kept, for the hunt for secrets.
type desk struct {
	t             *testing.T
	name, log     string
	command       *exec.Cmd
	ended         chan struct{}
	listen, admin string
	http          *http.Client

	mu    sync.Mutex
	heard bytes.Buffer
}

// startDesk runs the binary with these variables and returns when it serves. It may be stopped before the test ends.
func startDesk(t *testing.T, binary, origin, name string, variables map[string]string) *desk {
	t.Helper()
	d := &desk{t: t, name: name, log: filepath.Join(t.TempDir(), "log"), ended: make(chan struct{}), http: &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{}}}
	file, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d.command = exec.Command(binary)
	d.command.Dir, d.command.Stderr, d.command.Stdout = "/", file, file
	d.command.Env = []string{"ARKVORY_LISTEN=127.0.0.1:0", "ARKVORY_UPSTREAM=http://" + origin, "ARKVORY_DRAIN_SECONDS=1"}
	if variables["ARKVORY_ADMIN_LISTEN"] == "" {
		d.command.Env = append(d.command.Env, "ARKVORY_ADMIN_LISTEN=127.0.0.1:0")
	}
	for _, variable := range slices.Sorted(maps.Keys(variables)) {
		d.command.Env = append(d.command.Env, variable+"="+variables[variable])
	}
	d.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.ended)
		_ = d.command.Wait()
	}()
	t.Cleanup(func() {
		d.stop(syscall.SIGTERM)
		if t.Failed() {
			lines := strings.Split(strings.TrimSpace(d.lines()), "\n")
			t.Logf("%s: %s", name, strings.Join(lines[max(0, len(lines)-12):], "\n"))
		}
	})
	d.await(30*time.Second, "it serves", func() bool {
		for line := range strings.Lines(d.lines()) {
			var said struct{ Message, Listen, Admin string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Message == "serving" {
				d.listen, d.admin = said.Listen, said.Admin
			}
		}
		select {
		case <-d.ended:
			t.Fatalf("%s ended before it served: %s", name, d.lines())
		default:
		}
		return d.listen != ""
	})
	return d
}

// stop ends the process and waits for that; twice is once.
func (d *desk) stop(signal syscall.Signal) {
	d.http.CloseIdleConnections()
	_ = d.command.Process.Signal(signal)
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case <-d.ended:
	case <-limit.C:
		_ = d.command.Process.Kill()
		<-d.ended
		d.t.Errorf("%s did not end within 20 s of %v", d.name, signal)
	}
}

// lines is its log.
func (d *desk) lines() string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// await waits for a state, looking below the listener's rate of reads, and returns how long it took.
func (d *desk) await(limit time.Duration, what string, state func() bool) time.Duration {
	d.t.Helper()
	begun := time.Now()
	for !state() {
		if time.Since(begun) > limit {
			d.t.Fatalf("%s: not within %v: %s", d.name, limit, what)
		}
		pause(30 * time.Millisecond)
	}
	return time.Since(begun)
}

// reply is one answer of the admin listener.
type reply struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

// reason is the word of a refusal.
func (r reply) reason() string {
	var body struct{ Reason string }
	_ = json.Unmarshal(r.body, &body)
	return body.Reason
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, bytes.TrimSpace(r.body)) }

// ask sends a request to the admin listener; fields are names and values in turns, of which Host is one.
func (d *desk) ask(method, path, body string, fields ...string) (reply, error) {
	request, err := http.NewRequest(method, "http://"+d.admin+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if method == "PUT" || method == "POST" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if request.Header.Set(fields[i], fields[i+1]); fields[i] == "Host" {
			request.Host = fields[i+1]
		}
	}
	begun := time.Now()
	response, err := d.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	r := reply{status: response.StatusCode, header: response.Header}
	r.body, err = io.ReadAll(response.Body)
	r.took = time.Since(begun)
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = response.Header.Write(&d.heard)
	d.heard.Write(r.body)
	return r, err
}

// call is ask for what must be answered; what is not fails the test and is a reply of status 0. An operator in a hurry (429) waits as long as he is told.
func (d *desk) call(method, path, body string, fields ...string) reply {
	d.t.Helper()
	for {
		r, err := d.ask(method, path, body, fields...)
		if err != nil {
			d.t.Errorf("%s: %s %s: %v", d.name, method, path, err)
			return reply{}
		}
		after, _ := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != 429 || after < 1 || after > 5 {
			return r
		}
		pause(time.Duration(after) * time.Second)
	}
}

// into is call for what must be a 200 with a document.
func (d *desk) into(document any, method, path, body string, fields ...string) {
	d.t.Helper()
	r := d.call(method, path, body, fields...)
	if err := json.Unmarshal(r.body, document); err != nil || r.status != 200 {
		d.t.Fatalf("%s: %s %s: %v, %v", d.name, method, path, r, err)
	}
}

// settingsSeen is what the gates read of the settings.
type settingsSeen struct {
	Revision  int64
	Overrides json.RawMessage
	Effective struct {
		Mode     string
		Strategy string
		Sessions int
		Reserve  int
		Weights  map[string]int

		SessionMinBytes, IdleSeconds, AgingMinutes int64
		Windows                                    map[string]struct {
			Zone         string
			OutsideShare float64
		}
		Quotas struct{ BytesPerDay int64 }
	}
	Problem   string
	Persisted bool
	UpdatedBy string
}

func (d *desk) settings() (s settingsSeen) {
	d.t.Helper()
	d.into(&s, "GET", deskPath+"/settings", "")
	return s
}

// put sends a change.
func (d *desk) put(expected int64, overrides string, fields ...string) reply {
	d.t.Helper()
	return d.call("PUT", deskPath+"/settings", fmt.Sprintf(`{"expectedRevision":%d,"overrides":%s}`, expected, overrides), fields...)
}

// change is a put that must succeed, from the revision that is current.
func (d *desk) change(overrides string) (s settingsSeen) {
	d.t.Helper()
	r := d.put(d.settings().Revision, overrides)
	if err := json.Unmarshal(r.body, &s); err != nil || r.status != 200 {
		d.t.Fatalf("%s: PUT %s: %v", d.name, overrides, r)
	}
	return s
}

// sessionSeen is what the gates read of a session.
type sessionSeen struct {
	ID, State, Principal, Class, Why, Client string
	Position                                 *int
	SentBytes                                int64
	PausedByOperator                         bool
}

type sessionsSeen struct {
	Total    int
	Sessions []sessionSeen
	Next     *string
}

// queueSeen is what the gates read of the queue.
type queueSeen struct {
	Mode                              string
	Active, Waiting, PausedByOperator int
	TickMilliseconds                  float64
	Slots                             struct{ Open, Active int }
	Counts                            map[string]uint64
	ByClass                           map[string]struct{ Waiting int }
}

func (d *desk) queue() (q queueSeen) {
	d.t.Helper()
	d.into(&q, "GET", deskPath+"/queue", "")
	return q
}

// session finds the session of a client by what ids=clear says of it.
func (d *desk) session(client string) (sessionSeen, bool) {
	d.t.Helper()
	var page sessionsSeen
	d.into(&page, "GET", deskPath+"/sessions?limit=1000&ids=clear", "")
	i := slices.IndexFunc(page.Sessions, func(s sessionSeen) bool { return strings.Contains(s.Client, client) })
	if i < 0 {
		return sessionSeen{}, false
	}
	return page.Sessions[i], true
}

// act carries an action out on the session of a client and returns the answer.
func (d *desk) act(client, action, body string) (after sessionSeen) {
	d.t.Helper()
	s, found := d.session(client)
	if !found {
		d.t.Fatalf("%s has no session of %s to %s", d.name, client, action)
	}
	d.into(&after, "POST", deskPath+"/sessions/"+s.ID+"/"+action, body)
	return after
}

// download is one response of the proxy; of a refusal the body has been read.
type download struct {
	status   int
	header   http.Header
	reason   string
	position int
	retry    int
	ticket   string
	size     int64
	body     io.ReadCloser // of a 200
}

// fetch asks the proxy from the n-th loopback address, as a client of the protocol when id is not empty.
func (d *desk) fetch(n int, path, id string, fields ...string) (*download, error) {
	dialer := net.Dialer{LocalAddr: source(n), Timeout: 10 * time.Second}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, DisableKeepAlives: true}
	request, err := http.NewRequest("GET", "http://"+d.listen+path, nil)
	if err != nil {
		return nil, err
	}
	request.Host = deskHost
	if id != "" {
		request.Header.Set("Arkvory-Download-Id", id)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			request.Header.Set(fields[i], fields[i+1])
		}
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	one := &download{status: response.StatusCode, header: response.Header, ticket: response.Header.Get("Arkvory-Queue-Ticket"), size: response.ContentLength, body: response.Body}
	one.position, _ = strconv.Atoi(response.Header.Get("Arkvory-Queue-Position"))
	one.retry, _ = strconv.Atoi(response.Header.Get("Retry-After"))
	if one.status < 300 {
		return one, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	var said struct{ Reason string }
	_ = json.Unmarshal(text, &said)
	one.reason = said.Reason
	return one, err
}

// open is fetch for a download that must get a slot at once; it is read by nobody and holds the slot until the test ends or it is cut.
func (d *desk) open(n int, path, id string, fields ...string) *download {
	d.t.Helper()
	one, err := d.fetch(n, path, id, fields...)
	if err != nil || one.status != 200 {
		d.t.Fatalf("%s: %s gets %+v, %v, want a slot", d.name, id, one, err)
	}
	d.t.Cleanup(func() { _ = one.body.Close() })
	return one
}

// cutShort reads on and reports that the response ended before its length.
func (o *download) cutShort() bool {
	n, err := io.Copy(io.Discard, o.body)
	return err != nil && n < o.size
}

// hunt looks for secrets in all that the processes wrote and answered, with the pages asked for once more.
func hunt(t *testing.T, desks []*desk, secrets ...string) {
	t.Helper()
	total := 0
	for _, d := range desks {
		select {
		case <-d.ended:
		default:
			for _, path := range []string{"/metrics", "/health/ready", "/health/live", deskPath + "/settings", deskPath + "/queue", deskPath + "/history", deskPath + "/sessions?ids=clear",
				"/debug/upstream", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
				if r := d.call("GET", path, ""); r.status != 200 && r.status != 503 {
					t.Errorf("%s: %s: %v", d.name, path, r)
				}
			}
		}
		d.mu.Lock()
		places := map[string]string{"answers": d.heard.String(), "log": d.lines()}
		d.mu.Unlock()
		for place, text := range places {
			total += len(text)
			for _, secret := range secrets {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s: a secret is in its %s: %.120q", d.name, place, text[max(0, at-60):])
				}
			}
		}
	}
	if total < 1000 {
		t.Errorf("only %d bytes were looked through", total)
	}
	t.Logf("%d secrets looked for in %d KiB of logs and answers of %d processes", len(secrets), total>>10, len(desks))
}

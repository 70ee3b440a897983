//go:build gate

package house_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is the user of the unprivileged runs.
const nobody = 65534

// sidecar is one running process under test.
type sidecar struct {
	t             *testing.T
	pid           int
	listen, admin string
	http          *http.Client // for the admin listener: one kept connection
}

// buildSidecar builds the binary as `make build` does, readable for every user.
func buildSidecar(t *testing.T) string {
	t.Helper()
	path := filepath.Join(openDir(t, ""), "arkvory-sidecar")
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./arkvory-sidecar")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// startSidecar runs the binary before the origin with these variables and nothing else, as nobody when asked to (a process
// that is not root already lacks the capability in question).
func startSidecar(t *testing.T, binary, origin string, unprivileged bool, variables map[string]string) *sidecar {
	t.Helper()
	command := exec.Command(binary)
	command.Dir = "/"
	command.Env = []string{"ARKVORY_LISTEN=127.0.0.1:0", "ARKVORY_ADMIN_LISTEN=127.0.0.1:0", "ARKVORY_UPSTREAM=http://" + origin, "ARKVORY_DRAIN_SECONDS=2"}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		command.Env = append(command.Env, name+"="+variables[name])
	}
	if debug := os.Getenv("GODEBUG"); debug != "" { // memprofilerate=1 with GATE_PROFILES names every byte
		command.Env = append(command.Env, "GODEBUG="+debug)
	}
	if unprivileged && os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	lines := run(t, command, "sidecar", syscall.SIGTERM)
	s := &sidecar{t: t, pid: command.Process.Pid, http: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxConnsPerHost: 1}}}
	t.Cleanup(s.http.CloseIdleConnections)
	for line := range lines {
		var said struct{ Message, Listen, Admin string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Message == "serving" {
			s.listen, s.admin = said.Listen, said.Admin
			return s
		}
	}
	t.Fatal("the sidecar ended before it served")
	return nil
}

// get asks the admin listener.
func (s *sidecar) get(path string) ([]byte, error) {
	response, err := s.http.Get("http://" + s.admin + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("%s: status %d", path, response.StatusCode)
	}
	return body, err
}

// readiness is what the gates read of /health/ready.
type readiness struct {
	Transfers struct {
		Uploads   transfers
		Downloads struct {
			transfers
			Sessions struct {
				Active, Held                                         int
				Waiting                                              map[string]int
				Started, Completed, Idle, NoShow, Refused, Cancelled uint64
			}
		}
	}
	Requests    struct{ Active int }
	Connections struct{ Open int }
	Pool        struct {
		Idle, Busy int
		Writers    struct{ Warm int } // reserves, which are not for choice
	}
	Relay map[string]string
}

type transfers struct {
	Admission struct{ Active, Waiting int }
	Bandwidth struct {
		Waiting      int
		GrantedBytes string
	}
}

func (s *sidecar) ready() (readiness, error) {
	var r readiness
	body, err := s.get("/health/ready")
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	return r, err
}

func (r *readiness) granted() int64 {
	n, _ := strconv.ParseInt(r.Transfers.Downloads.Bandwidth.GrantedBytes, 10, 64)
	return n
}

func (r *readiness) waiting() (n int) {
	for _, of := range r.Transfers.Downloads.Sessions.Waiting {
		n += of
	}
	return n
}

// counters are the gauges that must return to zero. Waiting sessions stand apart: the place of a client that left while it waited
// is kept until its no-show, by rule (Q12, X1b).
func (r *readiness) counters() map[string]int {
	up, down := &r.Transfers.Uploads, &r.Transfers.Downloads
	return map[string]int{
		"uploads.active": up.Admission.Active, "uploads.waiting": up.Admission.Waiting, "uploads.bandwidth.waiting": up.Bandwidth.Waiting,
		"downloads.active": down.Admission.Active, "downloads.waiting": down.Admission.Waiting, "downloads.bandwidth.waiting": down.Bandwidth.Waiting,
		"sessions.active": down.Sessions.Active, "sessions.held": down.Sessions.Held, "sessions.waiting": r.waiting(),
		"requests.active": r.Requests.Active, "connections.open": r.Connections.Open, "pool.busy": r.Pool.Busy,
	}
}

// settle polls until no counter is above zero and returns how long that took; it fails after the limit.
func (s *sidecar) settle(limit time.Duration, counters func(*readiness) map[string]int) time.Duration {
	s.t.Helper()
	for begun := time.Now(); ; pause(10 * time.Millisecond) {
		r, err := s.ready()
		if err != nil {
			s.t.Fatal(err)
		}
		left := counters(&r)
		maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
		if took := time.Since(begun); len(left) == 0 || took > limit {
			if len(left) > 0 {
				s.t.Errorf("after %v not at zero: %v", took.Round(time.Millisecond), left)
			}
			return took
		}
	}
}

var goroutineTotal = regexp.MustCompile(`^goroutine profile: total (\d+)`)

// goroutines returns their number and the profile that names them.
func (s *sidecar) goroutines() (int, string) {
	s.t.Helper()
	body, err := s.get("/debug/pprof/goroutine?debug=1")
	match := goroutineTotal.FindSubmatch(body)
	if err != nil || match == nil {
		s.t.Fatalf("no goroutine profile: %v", err)
	}
	n, _ := strconv.Atoi(string(match[1]))
	return n, string(body)
}

// rss returns the resident memory of the process in bytes.
func (s *sidecar) rss() int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Rss:" {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n * kib
		}
	}
	s.t.Fatal("no Rss in smaps_rollup")
	return 0
}

// heapFields are the runtime's own figures behind an RSS.
var heapFields = []string{"HeapAlloc", "HeapInuse", "HeapIdle", "HeapReleased", "Stack", "GCSys", "NumGC"}

// heap returns those figures as one line. It is asked after the measurement: a profile costs memory itself.
func (s *sidecar) heap() string {
	body, err := s.get("/debug/pprof/heap?debug=1")
	if err != nil {
		return err.Error()
	}
	var out []string
	for line := range bytes.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(line)), "# "), " = ")
		if ok && slices.Contains(heapFields, name) {
			value, _, _ = strings.Cut(value, " / ")
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 1<<16 {
				value = strconv.FormatInt(n>>10, 10) + "K"
			}
			out = append(out, name+" "+value)
		}
	}
	return strings.Join(out, ", ")
}

// profiles saves the heap and goroutine profiles under GATE_PROFILES, when that is set, to find out what dominates a figure.
func (s *sidecar) profiles(name string) {
	dir := os.Getenv("GATE_PROFILES")
	if dir == "" {
		return
	}
	for _, kind := range []string{"heap", "goroutine"} {
		body, err := s.get("/debug/pprof/" + kind)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"."+kind), body, 0o644)
		}
		if err != nil {
			s.t.Errorf("profile %s: %v", kind, err)
		}
	}
}

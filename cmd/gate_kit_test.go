//go:build gate

package house_test

// The gates run the built binary as a process before a real nginx and measure it from outside. This file is what they share:
// the origin, the sidecar, its admin listener. (Go allows one external test package a folder, hence the name house_test.)

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	// gateFiles is the number of descriptors the gates need on either side of the sidecar.
	gateFiles = 20000
	// nobody is the user of the unprivileged runs.
	nobody = 65534
)

// pause waits without a clock of its own in the gate's assertions: clients obey Retry-After with it, pollers space their looks.
func pause(d time.Duration) { <-time.NewTimer(d).C }

// gateScale divides the sizes of the main job: GATE_SCALE=8 is for a quick look while developing, 1 is the gate.
func gateScale(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("GATE_SCALE")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 8 {
		t.Fatalf("GATE_SCALE=%q: a whole number 1..8", text)
	}
	return n
}

// raiseFiles lifts the limit on open files for this process and the ones it starts.
func raiseFiles(t *testing.T) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur, limit.Max = max(limit.Cur, gateFiles), max(limit.Max, gateFiles)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatalf("cannot raise the limit on open files to %d: %v", gateFiles, err)
	}
}

// openDir makes a folder that other users may enter, below parent, and removes it at the end.
func openDir(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "gate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// store is the origin's folder: its files and what they hash to.
type store struct {
	dir  string
	sums map[string][sha256.Size]byte
}

// newStore makes count incompressible files file0, file1, ... of size bytes, and tiny of 1 KiB.
func newStore(t *testing.T, count int, size int64) *store {
	t.Helper()
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	s := &store{dir: openDir(t, parent), sums: map[string][sha256.Size]byte{}}
	s.add(t, "tiny", kib, 99)
	for i := range count {
		s.add(t, "file"+strconv.Itoa(i), size, byte(i))
	}
	return s
}

func (s *store) add(t *testing.T, name string, size int64, seed byte) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(file, hash), rand.NewChaCha8([32]byte{seed}), size); err != nil {
		t.Fatal(err)
	}
	s.sums[name] = [sha256.Size]byte(hash.Sum(nil))
}

// startOrigin runs nginx on the folder and returns its address. nginx inherits a socket that listens already, so no port is
// lost between choosing and binding it.
func startOrigin(t *testing.T, s *store) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx"
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	address := listener.Addr().String()
	dir := openDir(t, "")
	text := "daemon off; worker_processes 1; worker_rlimit_nofile " + strconv.Itoa(gateFiles) + "; pid nginx.pid; error_log stderr warn;\n" +
		"events { worker_connections 8192; }\nhttp { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; keepalive_timeout 300s;\n" +
		"send_timeout 300s; client_max_body_size 0;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	text += "server { listen " + address + "; root " + s.dir + "; location /put/ { dav_methods PUT; } } }\n"
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-p", dir, "-c", conf)
	command.Env = append(os.Environ(), "NGINX=3;")
	command.ExtraFiles = []*os.File{socket}
	run(t, command, "nginx", syscall.SIGTERM)
	return address
}

// run starts a program that ends with the test, by its pid. What it says is shown when the test failed. A line channel is
// returned; it drops lines nobody reads.
func run(t *testing.T, command *exec.Cmd, name string, stop syscall.Signal) <-chan string {
	t.Helper()
	out, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", name, err)
	}
	lines, read := make(chan string, 64), make(chan struct{})
	var last [20]string
	count := 0
	go func() {
		defer close(read)
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); count++ {
			last[count%len(last)] = scan.Text()
			select {
			case lines <- scan.Text():
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(stop)
		end := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
		<-read
		err := command.Wait()
		end.Stop()
		if err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
		if t.Failed() {
			for i := max(0, count-len(last)); i < count; i++ {
				t.Logf("%s: %s", name, last[i%len(last)])
			}
		}
	})
	return lines
}

// sidecar is one running process under test.
type sidecar struct {
	t             *testing.T
	pid           int
	listen, admin string
	http          *http.Client // for the admin listener: one kept connection
}

// buildSidecar builds the binary as `make build` does, readable for every user.
var buildSidecar = func(t *testing.T) string {
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
	Pool        struct{ Idle, Busy int }
	Relay       map[string]string
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
		"sessions.active": down.Sessions.Active, "sessions.held": down.Sessions.Held,
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

// source is the n-th client's own loopback address: clients that are told apart by address are as many principals.
func source(n int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, byte(10+n>>16), byte(n>>8), byte(n)|1)}
}

// once guards a result that several goroutines may report; the first one counts.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

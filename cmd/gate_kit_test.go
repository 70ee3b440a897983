//go:build gate

package house_test

// The gates run the built binary as a process before a real nginx and measure it from outside. This file is what they share:
// the origin, the sidecar, its admin listener. (Go allows one external test package a folder, hence the name house_test.)

import (
	"bufio"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	command.SysProcAttr.Pdeathsig = stop
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", name, err)
	}
	lines, read := make(chan string, 64), make(chan struct{})
	var last [20]string
	count := 0
	go func() {
		defer close(read)
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			if !strings.Contains(scan.Text(), "download session ended") { // thousands of them hide what went wrong
				last[count%len(last)] = scan.Text()
				count++
			}
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

// source is the n-th client's own loopback address, n below 15 million: clients told apart by address are as many principals.
func source(n int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, byte(10+n/62500), byte(n/250%250), byte(1+n%250))}
}

// firstError keeps the first of the errors that several goroutines report.
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

//go:build gate && linux

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// gateSize is the object of the gate; GATE_SCALE=8 divides it, for a quick look while developing.
	gateSize = int64(5) << 30
	// gateRate is what the sidecar passes on. It stretches the download to some twenty seconds, so that a quarter is a quarter.
	gateRate = int64(256) << 20
	// gateFlight is what may be on its way at a kill, besides what the killed run had and its checkpoint did not say: a second of the rate.
	gateFlight = gateRate
)

// TestGateC4_LargeDownloadKilledThreeTimes: 5 GiB from a real nginx through the real sidecar. arkvoryctl is killed with SIGKILL after about a
// quarter, half and three quarters, and started again each time. The file must be the object to the byte.
func TestGateC4_LargeDownloadKilledThreeTimes(t *testing.T) {
	size := gateSize
	if scale := os.Getenv("GATE_SCALE"); scale != "" {
		n, err := strconv.ParseInt(scale, 10, 64)
		if err != nil || n < 1 || n > 64 {
			t.Fatalf("GATE_SCALE=%q: a whole number 1..64", scale)
		}
		size /= n
	}
	dir := gateFolder(t, 2*size+size/4)
	sum := gateSource(t, filepath.Join(dir, "store", "large.bin"), size)
	side := gateSidecar(t, gateOrigin(t, filepath.Join(dir, "store")))
	args := []string{"download", "http://" + side.listen + "/large.bin", "--json", "--id", "gate"}
	begun := time.Now()
	percent := func(bytes int64) float64 { return 100 * float64(bytes) / float64(size) }
	safe, lost := int64(0), int64(0) // bytes in the checkpoint of the last killed run, and those of all runs that were not
	for _, quarter := range []int64{1, 2, 3} {
		from, last := gateKill(t, dir, args, quarter*size/4)
		if from < safe {
			t.Errorf("a run went on from %d bytes though the checkpoint had %d", from, safe)
		}
		safe = vouched(t, filepath.Join(dir, "large.bin.arkvory"))
		lost += last - safe
		t.Logf("%8v: ran from %.1f %%, killed at %.1f %%; the checkpoint has %.1f %%", time.Since(begun).Round(time.Millisecond), percent(from), percent(last), percent(safe))
	}
	code, out, complaint := finish(t, dir, args...)
	took := time.Since(begun)
	if code != exitDone {
		t.Fatalf("code %d: %s", code, complaint)
	}
	events, end := jsonLines(t, out)
	t.Logf("%8v: ran from %.1f %% to the end", took.Round(time.Millisecond), percent(gateFrom(events)))
	if end.SHA256 != sum || end.Bytes != size || !end.Resumed {
		t.Errorf("%+v, want the sum %s", end, sum)
	}
	if got := gateSum(t, filepath.Join(dir, "large.bin")); got != sum {
		t.Errorf("the file's SHA-256 is %s, the object's %s", got, sum)
	}
	again := side.granted(t) - size
	t.Logf("%d MiB in %v with three kills; %d MiB (%.1f %%) were fetched again", size>>20, took.Round(time.Millisecond), again>>20, percent(again))
	if most := lost + 3*gateFlight; again < 0 || again > most {
		t.Errorf("%d bytes were fetched again, want 0..%d: what no checkpoint had, and what was on its way", again, most)
	}
}

// gateKill starts a run and kills it when it says that it has so many bytes. It returns how many it began with and had last.
func gateKill(t *testing.T, dir string, args []string, at int64) (from, last int64) {
	t.Helper()
	lines := openPipe(t)
	p := start(t, dir, nil, func(c *exec.Cmd) { c.Stdout = lines.writer }, args...)
	from = -1
	for last < at {
		var e eventLine
		if err := json.Unmarshal([]byte(lines.until(`"event":`)), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == "end" || e.Event == "verifying" {
			t.Fatalf("it came to its end before it had %d bytes: %s", at, p.errors.String())
		}
		if e.Event == "downloading" && from < 0 {
			from = e.Bytes
		}
		last = e.Bytes
	}
	p.signal(syscall.SIGKILL)
	if code := p.end(); code != -1 {
		t.Fatalf("ended with code %d", code)
	}
	return from, last
}

// gateFrom is how many bytes a run began with.
func gateFrom(events []eventLine) int64 {
	for _, e := range events {
		if e.Event == "downloading" {
			return e.Bytes
		}
	}
	return -1
}

// gateFolder makes a folder that nginx may enter, where there is room for so many bytes.
func gateFolder(t *testing.T, need int64) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gate-download")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need {
		t.Fatalf("%s has %d MiB free and the gate needs %d: set TMPDIR to a disk with room", dir, free>>20, need>>20)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gateSource writes an incompressible object without holes and returns its SHA-256.
func gateSource(t *testing.T, path string, size int64) string {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(file, hash), bufio.NewReaderSize(rand.NewChaCha8([32]byte{5}), 1<<20), size); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func gateSum(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// gateRun starts a program that ends with the test, and returns its lines on standard error.
func gateRun(t *testing.T, command *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", command.Path, err)
	}
	lines := bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
		defer late.Stop()
		for lines.Scan() {
			if t.Failed() {
				t.Logf("%s: %s", filepath.Base(command.Path), lines.Text())
			}
		}
		_ = command.Wait()
	})
	return lines
}

// gateOrigin runs nginx on a folder and returns its address. nginx inherits a socket that listens already.
func gateOrigin(t *testing.T, store string) string {
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
	address, dir := listener.Addr().String(), t.TempDir()
	var text strings.Builder
	text.WriteString("daemon off; worker_processes 1; pid nginx.pid; error_log stderr warn;\nevents { worker_connections 512; }\nhttp { access_log off; sendfile on;\n")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&text, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	fmt.Fprintf(&text, "server { listen %s; root %s; } }\n", address, store)
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-p", dir, "-c", conf)
	command.Env = append(os.Environ(), "NGINX=3;")
	command.ExtraFiles = []*os.File{socket}
	gateRun(t, command)
	return address
}

// sidecarRun is a running sidecar.
type sidecarRun struct{ listen, admin string }

// gateSidecar builds the sidecar and runs it before the origin.
func gateSidecar(t *testing.T, upstream string) sidecarRun {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arkvory-sidecar")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, "../arkvory-sidecar").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	command := exec.Command(path)
	command.Env = []string{"ARKVORY_LISTEN=127.0.0.1:0", "ARKVORY_ADMIN_LISTEN=127.0.0.1:0", "ARKVORY_UPSTREAM=http://" + upstream, "ARKVORY_DRAIN_SECONDS=2",
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND=" + strconv.FormatInt(gateRate, 10)}
	lines := gateRun(t, command)
	for lines.Scan() {
		var said struct{ Message, Listen, Admin string }
		if json.Unmarshal(lines.Bytes(), &said) == nil && said.Message == "serving" {
			return sidecarRun{listen: said.Listen, admin: said.Admin}
		}
	}
	t.Fatal("the sidecar ended before it served")
	return sidecarRun{}
}

// granted is how many bytes of bodies the sidecar passed on in all.
func (s sidecarRun) granted(t *testing.T) int64 {
	t.Helper()
	response, err := http.Get("http://" + s.admin + "/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var ready struct {
		Transfers struct {
			Downloads struct{ Bandwidth struct{ GrantedBytes string } }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(ready.Transfers.Downloads.Bandwidth.GrantedBytes, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

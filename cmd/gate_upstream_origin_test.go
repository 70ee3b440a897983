//go:build gate

package house_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// webOrigin is one nginx on an address of its own that can be killed, stopped and started again. It is a single process, so that one pid is all of it.
type webOrigin struct {
	t       *testing.T
	name    string // in the field Gate-Origin of its answers
	address string
	dir     string // its root: hard links, so that all origins give one object one modification time, and with it one ETag, from one page cache
	conf    string
	command *exec.Cmd
	ended   chan struct{}
	stopped bool
}

// originAddresses returns count addresses of loopback with one port that nobody listens on; name resolution tells no ports. The last one is IPv6 when
// six is set and the machine has it.
func originAddresses(t *testing.T, count int, six bool) []string {
	t.Helper()
	hosts := make([]string, count)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("127.8.%d.%d", os.Getpid()%250, 1+i)
	}
	if probe, err := net.Listen("tcp6", "[::1]:0"); six && err == nil {
		_ = probe.Close()
		hosts[count-1] = "::1"
	}
	for range 50 {
		_, port, _ := net.SplitHostPort(freeAddress(t))
		addresses, free := make([]string, count), true
		for i, host := range hosts {
			addresses[i] = net.JoinHostPort(host, port)
			listener, err := net.Listen("tcp", addresses[i])
			if free = free && err == nil; err == nil {
				_ = listener.Close()
			}
		}
		if free {
			return addresses
		}
	}
	t.Fatal("no port that is free on all addresses")
	return nil
}

// portOf returns the port of an address.
func portOf(address string) string { _, port, _ := net.SplitHostPort(address); return port }

// otherObject gives a file a modification time of its own, so that nginx, whose entity tags are that time in seconds and the size, does not take it for another of its size.
func (s *store) otherObject(t *testing.T, name string) {
	t.Helper()
	if at := time.Unix(1_700_000_000, 0); os.Chtimes(filepath.Join(s.dir, name), at, at) != nil {
		t.Fatalf("cannot date %s", name)
	}
}

// newOrigin prepares an origin with the files of s; idle is how long it keeps an unused connection.
func newOrigin(t *testing.T, s *store, name, address string, idle time.Duration) *webOrigin {
	t.Helper()
	work := openDir(t, "")
	o := &webOrigin{t: t, name: name, address: address, dir: openDir(t, filepath.Dir(s.dir)), conf: filepath.Join(work, "nginx.conf")}
	for file := range s.sums {
		o.link(filepath.Join(s.dir, file), file)
	}
	seconds := strconv.Itoa(max(1, int(idle/time.Second))) + "s"
	text := "daemon off; master_process off; worker_rlimit_nofile " + strconv.Itoa(gateFiles) + "; pid nginx.pid; error_log stderr warn;\nevents { worker_connections 8192; }\n" +
		"http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; keepalive_timeout " + seconds + "; client_header_timeout " + seconds +
		"; send_timeout 300s; types {} default_type application/octet-stream; add_header Gate-Origin " + name + " always;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + work + "/" + kind + ";\n"
	}
	text += "server { listen " + address + "; root " + o.dir + "; location = /gate-status { stub_status; } } }\n"
	if err := os.WriteFile(o.conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.kill() })
	return o
}

// link makes the file from appear under name in one step, in place of what was there; who has it open keeps reading the old one.
func (o *webOrigin) link(from, name string) {
	o.t.Helper()
	beside := filepath.Join(o.dir, "beside")
	if err := errors.Join(os.Link(from, beside), os.Rename(beside, filepath.Join(o.dir, name))); err != nil {
		o.t.Fatal(err)
	}
	_ = os.Remove(beside) // rename of two links to one file leaves both, by POSIX
}

// start runs it and returns when it accepts connections.
func (o *webOrigin) start() {
	o.t.Helper()
	command := exec.Command(needTool(o.t, "nginx"), "-p", filepath.Dir(o.conf), "-c", o.conf)
	said := &bytes.Buffer{}
	command.Stderr = said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.command, o.ended, o.stopped = command, make(chan struct{}), false
	ended := o.ended
	go func() {
		defer close(ended)
		_ = command.Wait() // it is killed
	}()
	within(o.t, 20*time.Second, "origin "+o.name+" listens", func() bool {
		select {
		case <-ended:
			o.t.Fatalf("origin %s ended at once: %s", o.name, said)
		default:
		}
		connection, err := net.Dial("tcp", o.address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
}

// kill ends it at once, as a crash does: its kernel resets connections with unread or unsent bytes.
func (o *webOrigin) kill() {
	if o.command == nil {
		return
	}
	_ = o.command.Process.Kill()
	<-o.ended
	o.command, o.stopped = nil, false
}

// halt stops it without closing anything (SIGSTOP); its kernel still accepts connections and sends what was written.
func (o *webOrigin) halt() {
	o.stopped = true
	_ = o.command.Process.Signal(syscall.SIGSTOP)
}

// goOn lets it run again.
func (o *webOrigin) goOn() {
	o.stopped = false
	_ = o.command.Process.Signal(syscall.SIGCONT)
}

var statusAccepts = regexp.MustCompile(`accepts handled requests\n (\d+) \d+ (\d+)`)

// accepts returns how many connections the origin took since it was started, and the requests, this question's left out.
func (o *webOrigin) accepts() (connections, requests int) {
	o.t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + o.address + "/gate-status")
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	match := statusAccepts.FindSubmatch(text)
	if err != nil || match == nil {
		o.t.Fatalf("status of origin %s: %v: %s", o.name, err, text)
	}
	connections, _ = strconv.Atoi(string(match[1]))
	requests, _ = strconv.Atoi(string(match[2]))
	return connections - 1, requests - 1
}

// establishedTo counts the established TCP connections by the address they lead to, as the kernel has them: the other ends, on this machine as well, are left out.
func establishedTo(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a machine without IPv6
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "01" {
				count[kernelAddress(fields[2])]++
			}
		}
	}
	return count
}

// kernelAddress reads the notation of /proc/net/tcp: hexadecimal words in the machine's byte order, here little endian.
func kernelAddress(text string) string {
	host, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil || len(host)%8 != 0 {
		return text
	}
	var ip []byte
	for ; len(host) >= 8; host = host[8:] {
		for i := 6; i >= 0; i -= 2 {
			b, _ := strconv.ParseUint(host[i:i+2], 16, 8)
			ip = append(ip, byte(b))
		}
	}
	address, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(address.Unmap(), uint16(number)).String()
}

// blackHole makes an address answer no connection attempt until the returned function is called: a listener whose queue is full drops what comes.
func blackHole(t *testing.T, address string) (open func()) {
	t.Helper()
	at := netip.MustParseAddrPort(address)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	here := &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, here), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	fillers := []int{}
	for range 4 { // one is taken into the queue, the rest hang
		filler, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(filler, here); err != nil && !errors.Is(err, unix.EINPROGRESS) {
			t.Fatal(err)
		}
		fillers = append(fillers, filler)
	}
	closed := false
	open = func() {
		if closed {
			return
		}
		closed = true
		for _, filler := range fillers {
			_ = unix.Close(filler)
		}
		_ = unix.Close(fd)
	}
	t.Cleanup(open)
	return open
}

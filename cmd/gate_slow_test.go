//go:build gate

package house_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rawClient is a client's connection below net/http: it discards bodies in the kernel, so that thousands of them cost this process little.
type rawClient struct {
	*net.TCPConn
	raw   syscall.RawConn
	early int64 // body bytes that came with the head
	size  int64 // Content-Length
	code  int
}

// dialRaw connects from the n-th source address; receive is SO_RCVBUF, 0 leaves the kernel's own.
func dialRaw(address string, n, receive int) (*rawClient, error) {
	dialer := net.Dialer{LocalAddr: source(n), Timeout: 10 * time.Second}
	if receive > 0 {
		dialer.Control = receiveBuffer(receive)
	}
	connection, err := dialer.Dial("tcp4", address)
	if err != nil {
		return nil, err
	}
	c := &rawClient{TCPConn: connection.(*net.TCPConn)}
	c.raw, err = c.SyscallConn()
	return c, err
}

// send writes a GET.
func (c *rawClient) send(path, fields string) error {
	_, err := c.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: gate.test\r\n" + fields + "\r\n"))
	return err
}

var contentLength = regexp.MustCompile(`(?i)\r\ncontent-length: *(\d+)\r\n`)

// head reads a response's head within the limit.
func (c *rawClient) head(limit time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	var b [4096]byte
	n := 0
	for {
		m, err := c.Read(b[n:])
		if n += m; err != nil {
			return err
		}
		if end := bytes.Index(b[:n], []byte("\r\n\r\n")); end >= 0 {
			c.early = int64(n - end - 4)
			match := contentLength.FindSubmatch(b[:end+2])
			if match == nil || end < 12 {
				return fmt.Errorf("no length in %q", b[:end])
			}
			c.size, _ = strconv.ParseInt(string(match[1]), 10, 64)
			c.code, _ = strconv.Atoi(string(b[9:12]))
			return c.SetReadDeadline(time.Time{})
		}
		if n == len(b) {
			return errors.New("response head above 4 KiB")
		}
	}
}

// blind is where discarded bytes would go if the kernel copied them.
var blind [8 << 20]byte

// discard drops up to most bytes of the body; without wait it takes what is there. 0 bytes without an error: nothing is there.
func (c *rawClient) discard(most int, wait bool) (n int, err error) {
	failed := c.raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), blind[:min(most, len(blind))], unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		return !wait || err != unix.EAGAIN
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == unix.EAGAIN:
		return 0, nil
	case err == nil && n == 0:
		return 0, errors.New("connection ended in mid-body")
	}
	return max(n, 0), err
}

// drain reads the body to its end.
func (c *rawClient) drain() error {
	for left := c.size - c.early; left > 0; {
		n, err := c.discard(int(min(left, int64(len(blind)))), true)
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// cut ends a connection with RST.
func (c *rawClient) cut() {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// openMany runs open for 0..count-1, at most 64 at once, and fails the test with the first error. The connections are cut when the test ends.
func openMany(t *testing.T, count int, open func(n int) (*rawClient, error)) []*rawClient {
	t.Helper()
	clients := make([]*rawClient, count)
	places := make(chan struct{}, 64)
	var running sync.WaitGroup
	var failed firstError
	for n := range count {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			c, err := open(n)
			clients[n] = c
			if err != nil {
				failed.set(fmt.Errorf("connection %d: %w", n, err))
			}
		})
	}
	running.Wait()
	t.Cleanup(func() { cutAll(clients) })
	if failed.err != nil {
		t.Fatal(failed.err)
	}
	return clients
}

func cutAll(clients []*rawClient) {
	for _, c := range clients {
		if c != nil {
			c.cut()
		}
	}
}

const (
	slowReceive = 64 << 10 // SO_RCVBUF of a slow reader, bytes
	slowRate    = 16 << 10 // bytes/s it reads
)

// openSlow opens count downloads whose readers take first(n) bytes as fast as they come and slowRate from then on, until stop
// is called. Every client has its own address.
func openSlow(t *testing.T, s *sidecar, path string, count int, first func(n int) int64) (stop func()) {
	t.Helper()
	clients := openMany(t, count, func(n int) (*rawClient, error) {
		c, err := dialRaw(s.listen, n, slowReceive)
		if err == nil {
			err = c.send(path, "")
		}
		if err == nil {
			err = c.head(20 * time.Second)
		}
		if err == nil && c.code != 200 {
			err = fmt.Errorf("status %d", c.code)
		}
		for left := first(n); left > 0 && err == nil; {
			var m int
			m, err = c.discard(int(min(left, int64(len(blind)))), true)
			left -= int64(m)
		}
		return c, err
	})
	quit, ended := make(chan struct{}), make(chan struct{})
	var moved atomic.Int64
	begun := time.Now()
	go func() {
		defer close(ended)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for {
			for n, c := range clients {
				m, err := c.discard(slowRate, false)
				if err != nil {
					t.Errorf("slow download %d: %v", n, err)
					return
				}
				moved.Add(int64(m))
			}
			select {
			case <-quit:
				return
			case <-second.C:
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-ended
		cutAll(clients)
		rate := float64(moved.Load()) / time.Since(begun).Seconds() / float64(count)
		if rate < slowRate/2 {
			t.Errorf("a slow download moved %.0f bytes/s, its reader takes %d", rate, slowRate)
		}
	})
}

// queues is the kernel memory of a set of sockets, in bytes: r received and unread, w queued to send (sent and unacknowledged
// included), f reserved by the socket beyond both.
// rb, the receive buffer's bound at this moment, is no memory: it explains r.
type queues struct{ sockets, r, w, f, rb int64 }

func (q queues) sum() int64 { return q.r + q.w + q.f }

// each gives an average in KiB.
func (q queues) each() string {
	n := max(q.sockets, 1) * kib
	return fmt.Sprintf("%d sockets, r %d + w %d + f %d KiB each (rb %d)", q.sockets, q.r/n, q.w/n, q.f/n, q.rb/n)
}

// pipesOf returns how many pipes a process has and the bytes inside them: kernel memory that no socket shows.
func pipesOf(t *testing.T, pid int) (count, bytes int64) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, entry := range entries {
		name, err := os.Readlink(dir + entry.Name())
		if err != nil || !strings.HasPrefix(name, "pipe:") || seen[name] {
			continue
		}
		fd, err := unix.Open(dir+entry.Name(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		seen[name] = true
		n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
		_ = unix.Close(fd)
		if err == nil {
			count, bytes = count+1, bytes+int64(n)
		}
	}
	return count, bytes
}

// never and fastFirst are firsts of openSlow.
func never(int) int64 { return 0 }

// fastFirst: enough bytes for autotuned buffers and for the fast path of the sidecar.
func fastFirst(int) int64 { return 4 * mib }

var skmem = regexp.MustCompile(`skmem:\(r(\d+),rb(\d+),t\d+,tb\d+,f(\d+),w(\d+),`)

// kernelQueues sums skmem of the sockets that ss's filter selects.
func kernelQueues(t *testing.T, filter ...string) (q queues) {
	t.Helper()
	out, err := exec.Command("ss", append([]string{"-tmnH", "state", "established"}, filter...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ss: %v\n%s", err, out)
	}
	for _, match := range skmem.FindAllSubmatch(out, -1) {
		// f is a signed number in the kernel, below zero for a moment after a buffer was cut down, and printed as unsigned.
		value := func(i int) int64 { n, _ := strconv.ParseUint(string(match[i]), 10, 64); return max(int64(int32(n)), 0) }
		q.sockets++
		q.r, q.rb, q.f, q.w = q.r+value(1), q.rb+value(2), q.f+value(3), q.w+value(4)
	}
	return q
}

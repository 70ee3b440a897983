//go:build gate

package house_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// consoleVariable makes the test binary a console: a process of its own, whose work is not done by the one that measures.
const consoleVariable = "ARKVORY_GATE_CONSOLE"

func TestMain(m *testing.M) {
	if os.Getenv(consoleVariable) == "" {
		os.Exit(m.Run())
	}
	if err := consoleMain(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// consoleOrder is what the process does for a span: look at the desk at Base, or without one take the processor for as long a look as Burst says.
type consoleOrder struct {
	Span, Burst time.Duration
	Base        string
}

// consoleReport is what it did.
type consoleReport struct {
	Looks     int
	Processor time.Duration
	Error     string
}

// consoleProcess is the process as its parent sees it.
type consoleProcess struct {
	t   *testing.T
	to  *json.Encoder
	got *json.Decoder
}

func startConsole(t *testing.T) *consoleProcess {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), consoleVariable+"=1"), os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with its orders
		if err := command.Wait(); err != nil {
			t.Errorf("the console ended with %v", err)
		}
	})
	return &consoleProcess{t: t, to: json.NewEncoder(in), got: json.NewDecoder(bufio.NewReader(out))}
}

// run gives an order and waits until it is done. It returns the looks and the processor time of the process.
func (c *consoleProcess) run(o consoleOrder) (looks int, processor time.Duration) {
	var r consoleReport
	if err := c.to.Encode(o); err != nil {
		c.t.Errorf("cannot reach the console: %v", err)
		return 0, 0
	}
	if err := c.got.Decode(&r); err != nil || r.Error != "" {
		c.t.Errorf("the console says %q, %v", r.Error, err)
	}
	return r.Looks, r.Processor
}

// consoleMain carries orders out until there are none.
func consoleMain(in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // the thread's own clock tells how long a burst was
	orders, reports := json.NewDecoder(in), json.NewEncoder(out)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 20 * time.Second}
	for {
		var o consoleOrder
		if err := orders.Decode(&o); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := reports.Encode(o.carryOut(client)); err != nil {
			return err
		}
	}
}

// carryOut looks ten times a second: at the queue and at a page each time, at the history and at a principal once a second each.
func (o *consoleOrder) carryOut(client *http.Client) (r consoleReport) {
	before := clockOf(unix.CLOCK_PROCESS_CPUTIME_ID)
	defer func() { r.Processor = clockOf(unix.CLOCK_PROCESS_CPUTIME_ID) - before }()
	until := time.Now().Add(o.Span)
	for n := 0; time.Now().Before(until); n++ {
		paths := []string{"/queue", [...]string{"/sessions?limit=100", "/sessions?state=waiting&class=bulk&limit=100"}[n%2]}
		switch n % 10 {
		case 0:
			paths = append(paths, "/history")
		case 5:
			paths = append(paths, "/sessions?limit=100&principal=header:"+crowdUser(n))
		}
		for _, path := range paths {
			r.Looks++
			if o.Base == "" {
				burn(o.Burst)
				continue
			}
			response, err := client.Get(o.Base + path)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			if err != nil || response.StatusCode != 200 {
				r.Error = fmt.Sprintf("%s: %v, %v", path, response, err)
				return r
			}
		}
		pause(95 * time.Millisecond)
	}
	return r
}

// burn takes the processor for that time.
func burn(span time.Duration) {
	for until := clockOf(unix.CLOCK_THREAD_CPUTIME_ID) + span; clockOf(unix.CLOCK_THREAD_CPUTIME_ID) < until; {
		for i := range 256 {
			burnt = (burnt ^ uint64(i)) * 1099511628211
		}
	}
}

// burnt keeps the work of burn from being optimized away.
var burnt uint64

// clockOf reads a processor clock.
func clockOf(id int32) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		panic(err) // the clock is there, or nothing can be measured
	}
	return time.Duration(at.Nano())
}

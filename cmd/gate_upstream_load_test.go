//go:build gate

package house_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// load is an open-loop stream of small GETs: they are due at fixed times whatever became of those before, and late ones count as late.
type load struct {
	address, path string
	size          int64 // of the object
	perSecond     int
	workers       int // connections, each with one request at a time

	stop    chan struct{}
	running sync.WaitGroup
	begun   time.Time

	mu      sync.Mutex
	due, ok int
	failed  map[string]int // by what the client saw
	origins map[string]int // by the field Gate-Origin
	took    []time.Duration
	faults  []string // the first of them with their times
	ended   time.Time
}

// start begins the stream.
func (l *load) start() {
	l.stop, l.failed, l.origins, l.begun = make(chan struct{}), map[string]int{}, map[string]int{}, time.Now()
	jobs := make(chan time.Time, 1<<16)
	for n := range l.workers {
		l.running.Go(func() { l.work(n, jobs) })
	}
	l.running.Go(func() {
		defer close(jobs)
		step := time.Second / time.Duration(l.perSecond)
		for next := l.begun; ; next = next.Add(step) {
			if wait := time.Until(next); wait > 0 {
				select {
				case <-time.NewTimer(wait).C:
				case <-l.stop:
					return
				}
			}
			select {
			case <-l.stop:
				return
			case jobs <- next:
			}
		}
	})
}

// finish ends the stream and waits for the last answers.
func (l *load) finish() {
	close(l.stop)
	l.running.Wait()
	l.ended = time.Now()
	slices.Sort(l.took)
}

// work sends what is due, on one connection of its own.
func (l *load) work(n int, jobs <-chan time.Time) {
	c := &smallClient{address: l.address, n: n}
	defer c.close()
	for due := range jobs {
		origin, err := c.get(l.path, l.size, 30*time.Second)
		took := time.Since(due)
		l.mu.Lock()
		l.due++
		if l.took = append(l.took, took); err == nil {
			l.ok++
			l.origins[origin]++
		} else {
			l.failed[err.Error()]++
			if len(l.faults) < 20 {
				l.faults = append(l.faults, fmt.Sprintf("due at %.1f s, after %v: %v", due.Sub(l.begun).Seconds(), took.Round(time.Millisecond), err))
			}
		}
		l.mu.Unlock()
	}
}

// counts returns the answers and failures so far.
func (l *load) counts() (due, ok int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due, l.ok
}

// slowest returns the longest time of the answers from the first-th on, and how many there are in all. Only before finish, which sorts them.
func (l *load) slowest(first int) (longest time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, took := range l.took[first:] {
		longest = max(longest, took)
	}
	return longest, len(l.took)
}

// failures returns what clients saw instead of an answer.
func (l *load) failures() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.failed)
}

// seen returns the answers by origin so far.
func (l *load) seen() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.origins)
}

// rate is what was really reached, in answers/s. Only after finish.
func (l *load) rate() float64 { return float64(l.due) / l.ended.Sub(l.begun).Seconds() }

// quantile of the times from when a request was due to its answer. Only after finish.
func (l *load) quantile(q float64) time.Duration {
	if len(l.took) == 0 {
		return 0
	}
	return l.took[min(len(l.took)-1, int(q*float64(len(l.took))))]
}

// smallClient asks one thing after another on a kept connection.
type smallClient struct {
	address    string
	n          int // its loopback address
	connection net.Conn
	reader     *bufio.Reader
}

func (c *smallClient) close() {
	if c.connection != nil {
		_ = c.connection.Close()
		c.connection = nil
	}
}

// get asks for an object of a known size and returns which origin answered. Errors are short and name no address, so that they can be counted.
func (c *smallClient) get(path string, size int64, limit time.Duration) (origin string, err error) {
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.connection == nil {
		dialer := net.Dialer{LocalAddr: source(c.n), Timeout: limit}
		connection, err := dialer.Dial("tcp4", c.address)
		if err != nil {
			return "", fmt.Errorf("connecting to the sidecar failed")
		}
		c.connection, c.reader = connection, bufio.NewReaderSize(connection, 4<<10)
	}
	_ = c.connection.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(c.connection, "GET "+path+" HTTP/1.1\r\nHost: gate.test\r\n\r\n"); err != nil {
		return "", fmt.Errorf("sending failed")
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", fmt.Errorf("no response head within %v or a cut connection", limit)
	}
	var text strings.Builder
	n, err := io.Copy(&text, response.Body)
	switch origin = response.Header.Get("Gate-Origin"); {
	case err != nil:
		return origin, fmt.Errorf("cut in the body")
	case response.StatusCode != 200:
		var said struct{ Reason string }
		_ = json.Unmarshal([]byte(text.String()), &said) // an origin's own page has no reason
		return origin, fmt.Errorf("status %d %s, Retry-After %q", response.StatusCode, said.Reason, response.Header.Get("Retry-After"))
	case n != size:
		return origin, fmt.Errorf("a short body")
	}
	return origin, nil
}

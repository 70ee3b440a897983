//go:build gate

package house_test

import (
	"bufio"
	"container/heap"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// due is when one client of a throng asks next.
type due struct {
	at time.Time
	n  int
}

type agenda []due

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(due)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// throng is the clients of one connection. Each asks once and then when it was told to, to keep its place.
type throng struct {
	t       *testing.T
	first   int
	count   int
	c       net.Conn
	r       *bufio.Reader
	created *atomic.Int64
	polls   *atomic.Int64
	lost    bool // an answer was wrong
}

// run goes on until quit.
func (w *throng) run(quit <-chan struct{}) {
	var next agenda
	for made := 0; ; {
		now := time.Now()
		switch {
		case len(next) > 0 && !next[0].at.After(now):
			one := heap.Pop(&next).(due)
			heap.Push(&next, due{w.poll(one.n), one.n})
		case made < w.count:
			heap.Push(&next, due{w.poll(w.first + made), w.first + made})
			made++
			w.created.Add(1)
		default:
			wait := time.NewTimer(next[0].at.Sub(now))
			select {
			case <-wait.C:
			case <-quit:
				wait.Stop()
				return
			}
			continue
		}
		select {
		case <-quit:
			return
		default:
		}
		if w.lost {
			return
		}
	}
}

// crowdUser is the user of the n-th client.
func crowdUser(n int) string { return fmt.Sprintf("user-%03d", n%multitudeWho) }

// poll asks for the n-th client and returns when it is to ask again.
func (w *throng) poll(n int) time.Time {
	w.polls.Add(1)
	class := [...]string{"interactive", "release", "bulk", "background"}[n/multitudeWho%4]
	_, err := fmt.Fprintf(w.c, "GET /big HTTP/1.1\r\nHost: %s\r\nX-User: %s\r\nArkvory-Download-Id: client-%d\r\nArkvory-Download-Class: %s\r\n\r\n", deskHost, crowdUser(n), n, class)
	if err != nil {
		w.lost = true
		w.t.Errorf("client %d: %v", n, err)
		return time.Now()
	}
	response, err := http.ReadResponse(w.r, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
	}
	if err != nil || response.StatusCode != 503 || response.Header.Get("Arkvory-Queue-Position") == "" {
		w.lost = true
		w.t.Errorf("client %d: %v, %v", n, response, err)
		return time.Now()
	}
	after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Now().Add(time.Duration(max(after, 1)) * time.Second)
}

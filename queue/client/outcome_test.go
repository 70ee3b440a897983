package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// row is one line of the table of outcomes: a server's or a network's doing, and what a download may at most make of it.
type row struct {
	name    string
	set     func(*trial) // options and shape
	script  func(*trial, int, *http.Request) (*http.Response, error)
	ends    error // nil: the file is right
	want    []byte
	waits   [2]time.Duration // least and most virtual time in queues
	retries int              // exactly
	asks    int              // most requests
	again   int64            // most bytes fetched again
}

const outcomeSize, outcomeRange = 2 << 20, 256 << 10

// outcomeRows are the servers. Their object is noise(80), of 8 ranges of 4 reads, a read every 10 ms; noise(81) comes after it.
func outcomeRows() []row {
	first, second, window := noise(80, outcomeSize), noise(81, outcomeSize), func(r *trial, d time.Duration) bool { return time.Since(r.began) < d }
	busy := func(d time.Duration, fields ...string) func(*trial, int, *http.Request) (*http.Response, error) {
		return func(r *trial, _ int, _ *http.Request) (*http.Response, error) {
			if window(r, d) {
				return status(503, fields...)
			}
			return nil, nil
		}
	}
	// once bends the n-th answer.
	once := func(n int, bend func(*http.Response) *http.Response) func(*trial, int, *http.Request) (*http.Response, error) {
		return func(r *trial, i int, q *http.Request) (*http.Response, error) {
			if i != n {
				return nil, nil
			}
			return bend(r.origin.serve(q)), nil
		}
	}
	lone := func(r *trial) { r.opts.Parallel = 1 }
	return []row{
		{name: "nothing happens", asks: 8},
		{name: "busy for an hour", script: busy(time.Hour, "Retry-After", "60", fieldTicket, "2.t"), waits: [2]time.Duration{time.Hour, 70 * time.Minute}, asks: 68},
		{name: "busy for an hour, says nothing of when", script: busy(time.Hour, fieldPosition, "9"), waits: [2]time.Duration{time.Hour, time.Hour + time.Minute}, asks: 740},
		{name: "Retry-After of a day", script: busy(24*time.Hour, "Retry-After", "86400"), waits: [2]time.Duration{24 * time.Hour, 26 * time.Hour}, asks: 33},
		{name: "Retry-After of a day, wait limit 2 h", set: func(r *trial) { r.opts.WaitLimit = 2 * time.Hour }, script: busy(24*time.Hour, "Retry-After", "86400"), ends: ErrWaitLimit, asks: 3},
		{name: "starts after --not-after", set: func(r *trial) { r.opts.NotAfter = time.Now().Add(30 * time.Minute) },
			script: busy(24*time.Hour, "Retry-After", "60", fieldStarts, "2000-01-01T03:00:00Z"), ends: ErrQueueDeadline, asks: 1},
		{name: "breaks in mid-body", script: once(2, func(a *http.Response) *http.Response { return cut(a, 100_000, errReset) }), retries: 1, asks: 10},
		{name: "one stream breaks in mid-body", set: func(r *trial) { r.origin.rangeless = true },
			script: once(0, func(a *http.Response) *http.Response { return cut(a, 1_000_000, errReset) }), retries: 1, asks: 2, again: 1_000_000},
		{name: "restarts while we wait (10 min away)", script: func(r *trial, n int, _ *http.Request) (*http.Response, error) {
			switch {
			case n == 0:
				return status(503, "Retry-After", "30", fieldTicket, "2.t")
			case window(r, 10*time.Minute):
				return nil, errRefusedDial
			}
			return nil, nil
		}, waits: [2]time.Duration{10 * time.Minute, 10*time.Minute + 3*time.Second}, asks: 620},
		{name: "restarts in mid-download (30 s away)", script: func(r *trial, n int, q *http.Request) (*http.Response, error) {
			switch {
			case n == 3:
				r.began = time.Now()
				return cut(r.origin.serve(q), 70_000, errReset), nil
			case n > 3 && window(r, 30*time.Second):
				return nil, errRefusedDial
			}
			response := r.origin.serve(q)
			response.Header.Set(fieldTicket, "2.t")
			return response, nil
		}, set: lone, retries: 1, asks: 40},
		{name: "object changes once", script: func(r *trial, n int, _ *http.Request) (*http.Response, error) {
			if n == 5 {
				r.origin.change(second, `"second"`)
			}
			return nil, nil
		}, want: second, asks: 18, again: outcomeSize},
		{name: "object changes for ever", script: func(r *trial, n int, _ *http.Request) (*http.Response, error) {
			r.origin.change(second[n:], fmt.Sprintf(`"%d"`, n))
			return nil, nil
		}, ends: ErrChanged, asks: 20},
		{name: "balancer: another tag each time", script: func(r *trial, n int, _ *http.Request) (*http.Response, error) {
			r.origin.change(first, fmt.Sprintf(`"%d"`, n))
			return nil, nil
		}, asks: 13, again: 3 * 4 * outcomeRange},
		{name: "body longer than its range", script: once(2, func(a *http.Response) *http.Response {
			a.ContentLength, a.Body.(*body).data = -1, append(bytes.Clone(a.Body.(*body).data), "and more"...)
			return a
		}), asks: 8, again: 1},
		{name: "body shorter than its length", script: once(2, func(a *http.Response) *http.Response {
			a.Body.(*body).data = a.Body.(*body).data[:1000]
			return a
		}), retries: 1, asks: 10},
		{name: "Content-Length against Content-Range", script: once(2, func(a *http.Response) *http.Response {
			a.ContentLength++
			return a
		}), retries: 1, asks: 10},
		{name: "other bytes than asked for", script: once(2, func(a *http.Response) *http.Response {
			a.Header.Set("Content-Range", "bytes 1-262144/2097152")
			return a
		}), retries: 1, asks: 10},
		{name: "several ranges in one", script: once(2, func(a *http.Response) *http.Response {
			a.Header.Set("Content-Type", "multipart/byteranges; boundary=x")
			a.Header.Del("Content-Range")
			return a
		}), retries: 1, asks: 10},
		{name: "200 to a range once", script: func(r *trial, n int, q *http.Request) (*http.Response, error) {
			if n == 5 {
				q.Header.Del("Range")
			}
			return nil, nil
		}, asks: 18, again: outcomeSize},
		{name: "another size than expected", set: func(r *trial) { r.opts.Size = outcomeSize + 1 }, ends: ErrSize, asks: 1},
		{name: "silent in mid-body", script: once(2, func(a *http.Response) *http.Response {
			b := a.Body.(*body)
			b.data, b.stall = b.data[:70_000], true
			return a
		}), retries: 1, asks: 10},
		{name: "two connections, not more", script: func(r *trial, n int, _ *http.Request) (*http.Response, error) {
			if r.origin.seen()[n].inFlight > 2 {
				return status(503)
			}
			return nil, nil
		}, asks: 10},
		{name: "502 for ever", script: func(*trial, int, *http.Request) (*http.Response, error) { return status(502) }, ends: ErrBudget, asks: 5},
		{name: "404", script: func(*trial, int, *http.Request) (*http.Response, error) { return status(404) }, ends: ErrRefused, asks: 1},
	}
}

// TestC1_OutcomeTable prints with -v what becomes of a download, and at which price, and holds each price to its bound.
func TestC1_OutcomeTable(t *testing.T) {
	var table bytes.Buffer
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(lines, "server\toutcome\twaited in queues\ttook\tretries\trequests\tfetched again")
	for _, one := range outcomeRows() {
		in(t, func(t *testing.T) {
			want := noise(80, outcomeSize)
			o := newOrigin(want)
			o.pace = 10 * time.Millisecond
			r := newTrial(t, o)
			r.opts.RangeBytes = outcomeRange
			if one.set != nil {
				one.set(r)
			}
			if one.script != nil {
				o.script = func(n int, q *http.Request) (*http.Response, error) { return one.script(r, n, q) }
			}
			if one.want != nil {
				want = one.want
			}
			begin := time.Now()
			r.began = begin
			result, err := r.run(context.Background())
			took, outcome, retries, again := time.Since(begin), "right, resumable", 0, int64(0)
			waited := time.Duration(0) // as planned, where there is no result to say
			for _, e := range r.events {
				retries = max(retries, e.Retries)
				if e.Kind == Queued {
					waited += e.Wait
				}
			}
			if err == nil {
				r.right(result, want)
				waited = result.Waited
				outcome, again = fmt.Sprintf("right after %d starts", 1+r.count(Restarted)), o.sent-int64(len(want))
			} else {
				outcome, _, _ = strings.Cut(err.Error(), ":")
			}
			fmt.Fprintf(lines, "%s\t%s\t%v\t%v\t%d\t%d\t%d\n", one.name, outcome, waited.Round(time.Second), took.Round(100*time.Millisecond), retries, len(o.seen()), again)
			if !errors.Is(err, one.ends) || retries != one.retries && one.ends == nil || len(o.seen()) > one.asks || again > one.again {
				t.Errorf("%s: %v, want %v; %d retries, want %d; %d requests of at most %d; %d bytes of at most %d again", one.name, err, one.ends, retries, one.retries,
					len(o.seen()), one.asks, again, one.again)
			}
			if one.ends == nil && (waited < one.waits[0] || waited > one.waits[1]) {
				t.Errorf("%s: waited %v, want %v", one.name, waited, one.waits)
			}
		})
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// TestC1_ReturnAfterARestart: two hundred that wait come back within about two seconds of the server, and not in one instant.
func TestC1_ReturnAfterARestart(t *testing.T) {
	in(t, func(t *testing.T) {
		const clients, bin = 200, 100 * time.Millisecond
		begin := time.Now()
		down, up := begin.Add(100*time.Second), begin.Add(130*time.Second)
		back := make(chan time.Duration, clients)
		var downloads sync.WaitGroup
		for i := range clients {
			o := newOrigin(noise(uint64(i), 100))
			returned := false
			o.script = func(int, *http.Request) (*http.Response, error) {
				switch now := time.Now(); {
				case now.Before(down):
					return status(503, "Retry-After", "5", fieldTicket, "2.t")
				case now.Before(up):
					return nil, errRefusedDial
				case !returned:
					returned = true
					back <- now.Sub(up)
				}
				return nil, nil
			}
			r := newTrial(t, o)
			downloads.Go(func() {
				<-time.After(time.Duration(rand.Int64N(int64(5 * time.Second))))
				if _, err := r.run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		downloads.Wait()
		bins := map[time.Duration]int{}
		latest := time.Duration(0)
		for range clients {
			one := <-back
			bins[one/bin]++
			latest = max(latest, one)
		}
		most := 0
		for _, n := range bins {
			most = max(most, n)
		}
		t.Logf("the last is back after %v; at most %d of %d within %v", latest.Round(time.Millisecond), most, clients, bin)
		if latest > placeBackoff || most > clients/6 {
			t.Errorf("the last is back after %v; %d of %d within %v", latest, most, clients, bin)
		}
	})
}

package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestC1_FaultsSpendTheBudget tables the faults: Attempts of them in a row end the download, with the cause in the error.
func TestC1_FaultsSpendTheBudget(t *testing.T) {
	for _, one := range []struct {
		name  string
		fault func(o *origin, r *http.Request) (*http.Response, error)
		cause error
		says  string
	}{
		{"reset", func(*origin, *http.Request) (*http.Response, error) { return nil, errReset }, syscall.ECONNRESET, "reset"},
		{"refused without a ticket", func(*origin, *http.Request) (*http.Response, error) { return nil, errRefusedDial }, syscall.ECONNREFUSED, "refused"},
		{"502", func(*origin, *http.Request) (*http.Response, error) { return status(502) }, nil, "502"},
		{"504", func(*origin, *http.Request) (*http.Response, error) { return status(504) }, nil, "504"},
		{"500", func(*origin, *http.Request) (*http.Response, error) { return status(500) }, nil, "500"},
		{"503 that says nothing", func(*origin, *http.Request) (*http.Response, error) { return status(503) }, nil, "503"},
		{"503 that says soon", func(*origin, *http.Request) (*http.Response, error) { return status(503, "Retry-After", "soon") }, nil, "503"},
		{"429 that says nothing", func(*origin, *http.Request) (*http.Response, error) { return status(429) }, nil, "429"},
		{"silence", func(_ *origin, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, errSilent, "silent"},
		{"an answer without bytes", func(o *origin, r *http.Request) (*http.Response, error) {
			return cut(o.serve(r), 0, errReset), nil
		}, syscall.ECONNRESET, "broke off"},
		{"a range that nobody asked for", func(o *origin, r *http.Request) (*http.Response, error) {
			response := o.serve(r)
			response.Header.Set("Content-Range", "bytes 1-1000/100000")
			return response, nil
		}, nil, "other bytes"},
		{"a range that says nothing", func(o *origin, r *http.Request) (*http.Response, error) {
			response := o.serve(r)
			response.Header.Del("Content-Range")
			return response, nil
		}, nil, "Content-Range"},
	} {
		t.Run(one.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				o := newOrigin(noise(3, 100_000))
				o.script = func(_ int, r *http.Request) (*http.Response, error) { return one.fault(o, r) }
				r := newTrial(t, o)
				err := r.ends(ErrBudget)
				if n := len(o.seen()); n != defaultAttempts {
					t.Errorf("%d requests, want %d", n, defaultAttempts)
				}
				if one.cause != nil && !errors.Is(err, one.cause) || !strings.Contains(err.Error(), one.says) {
					t.Errorf("error %v", err)
				}
				if r.count(Retrying) != defaultAttempts-1 || r.last(Retrying).Err == nil {
					t.Errorf("%d events of retrying", r.count(Retrying))
				}
			})
		})
	}
}

// TestC1_ProgressRefillsAttemptsNotRetries: breaks in mid-body go on from the first missing byte until Retries are spent.
func TestC1_ProgressRefillsAttemptsNotRetries(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(4, 1<<20)
		o := newOrigin(want)
		o.script = func(_ int, r *http.Request) (*http.Response, error) { return cut(o.serve(r), 40_000, errReset), nil }
		r := newTrial(t, o)
		r.opts.Parallel, r.opts.Attempts = 1, 2
		err := r.ends(ErrBudget) // the object has 26.2 such pieces
		if n := len(o.seen()); n != defaultRetries+1 || !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("%d requests, %v", n, err)
		}
		requests := o.seen()
		for i, one := range requests[1:] {
			if want := fmt.Sprintf("bytes=%d-", (i+1)*40_000); !strings.HasPrefix(one.rng, want) || one.ifRange != o.etag {
				t.Errorf("request %d asks %q if %q, want %q", i+1, one.rng, one.ifRange, want)
			}
		}
		result := r.gets(want) // the next run has a budget of its own
		if !result.Resumed || result.Retries != 5 {
			t.Errorf("%+v", result)
		}
	})
}

// TestC1_BackoffIsBounded holds the waits between faults to full jitter below 0.25 s doubling to 30 s.
func TestC1_BackoffIsBounded(t *testing.T) {
	in(t, func(t *testing.T) {
		o := newOrigin(nil)
		o.script = func(int, *http.Request) (*http.Response, error) { return nil, errReset }
		r := newTrial(t, o)
		r.opts.Attempts, r.opts.Retries = 40, 40
		r.ends(ErrBudget)
		requests := o.seen()
		var sum time.Duration
		for i := 1; i < len(requests); i++ {
			gap, bound := requests[i].at.Sub(requests[i-1].at), doubled(i, longestBackoff)
			if gap > bound {
				t.Errorf("gap %d is %v, bound %v", i, gap, bound)
			}
			sum += gap
		}
		if sum < 3*time.Minute || sum > 18*time.Minute { // 39 gaps, about 33 of them uniform below 30 s
			t.Errorf("%v in all", sum)
		}
	})
}

// TestC1_ServerRestartKeepsThePlace: a queued client survives ten minutes of refused connections, asks at least every two
// seconds, and returns the same ticket and id.
func TestC1_ServerRestartKeepsThePlace(t *testing.T) {
	for name, down := range map[string]func(*http.Request) (*http.Response, error){
		"refused":        func(*http.Request) (*http.Response, error) { return nil, errRefusedDial },
		"balancer's 502": func(*http.Request) (*http.Response, error) { return status(502) },
		"reset":          func(*http.Request) (*http.Response, error) { return nil, errReset },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				want := noise(5, 1<<20)
				o := newOrigin(want)
				begin := time.Now()
				o.script = func(n int, r *http.Request) (*http.Response, error) {
					if n == 0 {
						return status(503, "Retry-After", "5", fieldTicket, "2.t.i.ck")
					}
					if time.Since(begin) < 10*time.Minute {
						return down(r)
					}
					return nil, nil
				}
				r := newTrial(t, o)
				result := r.gets(want)
				requests := o.seen()
				for i := 2; i < len(requests); i++ {
					if gap := requests[i].at.Sub(requests[i-1].at); gap > placeBackoff {
						t.Errorf("gap %v", gap)
					}
				}
				if end := requests[len(requests)-1]; result.Retries != 0 || end.ticket != "2.t.i.ck" || end.id != requests[0].id {
					t.Errorf("%+v %+v", result, end)
				}
				if len(requests) > 800 {
					t.Errorf("%d requests", len(requests))
				}
			})
		})
	}
}

// TestC1_OutageEndsWithTheTicket: once the ticket is too old to be taken, the budget rules again.
func TestC1_OutageEndsWithTheTicket(t *testing.T) {
	in(t, func(t *testing.T) {
		o := newOrigin(nil)
		begin := time.Now()
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			if n == 0 {
				return status(503, "Retry-After", "5", fieldTicket, "2.t.i.ck")
			}
			return nil, errRefusedDial
		}
		r := newTrial(t, o)
		r.ends(ErrBudget)
		if took := time.Since(begin); took < ticketTerm || took > ticketTerm+time.Minute {
			t.Errorf("gave up after %v", took)
		}
	})
}

// TestC1_RestartInMidDownload: connections break, then nobody listens for two minutes, then the download goes on.
func TestC1_RestartInMidDownload(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(6, 4<<20)
		o := newOrigin(want)
		var downUntil time.Time
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			if n == 5 {
				downUntil = time.Now().Add(2 * time.Minute)
				return cut(o.serve(r), 1000, errReset), nil
			}
			if time.Now().Before(downUntil) {
				return nil, errRefusedDial
			}
			response := o.serve(r)
			response.Header.Set(fieldTicket, "2.s.e.s")
			return response, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes = 256 << 10
		result := r.gets(want)
		if result.Retries > 1 { // none when a refused range is heard of before the broken one
			t.Errorf("%d retries, want at most the one break", result.Retries)
		}
	})
}

// TestC1_OneOutageIsOneFault: connections that break together spend one retry, and afterwards one request asks alone.
func TestC1_OneOutageIsOneFault(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(6, 4<<20)
		o := newOrigin(want)
		o.pace = 100 * time.Millisecond
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			response := o.serve(r)
			if n >= 4 && n < 8 {
				return cut(response, 100_000, errReset), nil
			}
			return response, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes = 256 << 10
		result := r.gets(want)
		if result.Retries != 1 || r.count(Retrying) != 1 {
			t.Errorf("%d retries, %d events", result.Retries, r.count(Retrying))
		}
		if o.seen()[8].inFlight != 1 {
			t.Errorf("the first request after the outage is one of %d", o.seen()[8].inFlight)
		}
	})
}

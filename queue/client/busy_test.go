package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// in runs a test in a bubble of virtual time.
func in(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// until answers busy before a time and lets the origin serve after it.
func busyFor(d time.Duration, fields ...string) func(int, *http.Request) (*http.Response, error) {
	end := time.Now().Add(d)
	return func(int, *http.Request) (*http.Response, error) {
		if time.Now().Before(end) {
			return status(503, fields...)
		}
		return nil, nil
	}
}

// TestC1_BusyForHoursCostsNothing: an hour in line, asked about once in the told time, spends no budget.
func TestC1_BusyForHoursCostsNothing(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(1, 3<<20)
		o := newOrigin(want)
		starts := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		o.script = busyFor(time.Hour, "Retry-After", "60", fieldPosition, "312", fieldStarts, starts.Format(time.RFC3339),
			fieldWindow, starts.Add(-time.Minute).Format(time.RFC3339)+"/"+starts.Add(time.Minute).Format(time.RFC3339),
			fieldTicket, "2.a.b.c", fieldClass, "bulk")
		r := newTrial(t, o)
		r.opts.RangeBytes, r.opts.Class, r.opts.Retries, r.opts.Attempts = 1<<20, "bulk", 1, 1
		result := r.gets(want)
		if result.Retries != 0 || result.Waited < time.Hour || result.Waited > time.Hour+10*time.Minute {
			t.Errorf("retries %d, waited %v", result.Retries, result.Waited)
		}
		e := r.last(Queued)
		if e.Position != 312 || !e.StartsAt.Equal(starts) || !e.Earliest.Equal(starts.Add(-time.Minute)) || !e.Latest.Equal(starts.Add(time.Minute)) || e.Class != "bulk" {
			t.Errorf("event %+v", e)
		}
		requests := o.seen()
		polls := 0
		for i, one := range requests {
			if one.id == "" || one.id != requests[0].id || one.class != "bulk" || one.encoding != "identity" {
				t.Errorf("request %d: %+v", i, one)
			}
			if i > 0 && one.ticket != "2.a.b.c" {
				t.Errorf("request %d carries ticket %q", i, one.ticket)
			}
			if i == 0 || one.at.Sub(requests[0].at) > time.Hour+7*time.Minute {
				continue
			}
			if gap := one.at.Sub(requests[i-1].at); gap > 0 {
				polls++
				if gap < 60*time.Second+leastJitter || gap > 66*time.Second {
					t.Errorf("poll %d came after %v, told 60 s", i, gap)
				}
				if one.inFlight != 1 {
					t.Errorf("poll %d was one of %d", i, one.inFlight)
				}
			}
		}
		if polls < 54 || polls > 60 {
			t.Errorf("%d polls in an hour", polls)
		}
	})
}

// TestC1_ComeBackLater tables the answers that are no faults, and how long each is waited for.
func TestC1_ComeBackLater(t *testing.T) {
	now := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, one := range []struct {
		name        string
		code        int
		body        string
		fields      func() []string
		least, most time.Duration
	}{
		{"503 with seconds", 503, "", func() []string { return []string{"Retry-After", "10"} }, 10 * time.Second, 11 * time.Second},
		{"429 with seconds", 429, "", func() []string { return []string{"Retry-After", "10"} }, 10 * time.Second, 11 * time.Second},
		{"zero seconds are a second", 503, "", func() []string { return []string{"Retry-After", "0"} }, time.Second, 1500 * time.Millisecond},
		{"a date by the server's own clock", 503, "", func() []string {
			return []string{"Retry-After", now(time.Hour + 30*time.Second), "Date", now(time.Hour)}
		}, 30 * time.Second, 33 * time.Second},
		{"a date without Date", 503, "", func() []string { return []string{"Retry-After", now(40 * time.Second), "Date", ""} }, 39 * time.Second, 44 * time.Second},
		{"a date that has passed", 503, "", func() []string { return []string{"Retry-After", now(-time.Hour)} }, time.Second, 1500 * time.Millisecond},
		{"a day is an hour", 503, "", func() []string { return []string{"Retry-After", "86400"} }, time.Hour, 66 * time.Minute},
		{"more digits than a number has", 503, "", func() []string { return []string{"Retry-After", strings.Repeat("9", 40)} }, time.Hour, 66 * time.Minute},
		{"queue fields without Retry-After", 503, "", func() []string { return []string{fieldPosition, "3"} }, unstatedWait, unstatedWait + smallJitter},
		{"a JSON body where fields were dropped", 503, `{"error":"busy","retryAfterSeconds":7,"queueTicket":"2.x.y.z","queuePosition":4}`, func() []string { return []string{"Content-Type", "application/json"} }, 7 * time.Second, 8 * time.Second},
		{"a JSON body that only says busy", 503, `{"error":"busy"}`, func() []string { return []string{"Content-Type", "application/json; charset=utf-8"} }, unstatedWait, unstatedWait + smallJitter},
	} {
		t.Run(one.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				want := noise(2, 1000)
				o := newOrigin(want)
				o.script = func(n int, _ *http.Request) (*http.Response, error) {
					if n == 0 {
						return statusBody(one.code, one.body, one.fields()...)
					}
					return nil, nil
				}
				r := newTrial(t, o)
				r.opts.Retries, r.opts.Attempts = 1, 1
				if result := r.gets(want); result.Retries != 0 {
					t.Errorf("%d retries", result.Retries)
				}
				if gap := o.seen()[1].at.Sub(o.seen()[0].at); gap < one.least || gap > one.most {
					t.Errorf("asked again after %v, want %v..%v", gap, one.least, one.most)
				}
				if one.body != "" && strings.Contains(one.body, "2.x.y.z") && o.seen()[1].ticket != "2.x.y.z" {
					t.Error("the ticket of the body is not sent")
				}
			})
		})
	}
}

// TestC1_RetryAfterOfADay asks every hour for a day.
func TestC1_RetryAfterOfADay(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(2, 1000)
		o := newOrigin(want)
		o.script = busyFor(24*time.Hour, "Retry-After", "86400")
		r := newTrial(t, o)
		result := r.gets(want)
		if n := r.count(Queued); n < 21 || n > 24 || result.Retries != 0 || result.Waited < 24*time.Hour {
			t.Errorf("%d polls, %+v", n, result)
		}
	})
}

// TestC1_PreemptedInMidDownload: when ranges get 503, all of them pause and one asks; running bodies go on.
func TestC1_PreemptedInMidDownload(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(7, 8<<20)
		o := newOrigin(want)
		o.pace = 10 * time.Millisecond
		var from, to time.Time
		var lock sync.Mutex
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			lock.Lock()
			defer lock.Unlock()
			if n == 12 {
				from, to = time.Now(), time.Now().Add(10*time.Minute)
			}
			if time.Now().Before(to) {
				return status(503, "Retry-After", "30", fieldPosition, "2", fieldTicket, "2.p.r.e")
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes, r.opts.Retries = 256<<10, 1
		result := r.gets(want)
		if result.Retries != 0 || result.Waited < 9*time.Minute {
			t.Errorf("%+v", result)
		}
		most, polls := 0, 0
		for _, one := range o.seen() {
			most = max(most, one.inFlight)
			if one.at.After(from.Add(time.Second)) && one.at.Before(to) {
				polls++
				if one.inFlight != 1 {
					t.Errorf("a poll was one of %d", one.inFlight)
				}
			}
		}
		if most != 4 || polls < 17 || polls > 20 {
			t.Errorf("%d at once at most, %d polls", most, polls)
		}
	})
}

// TestC1_WaitLimit ends the wait when the next time to ask lies past the limit, never later than it.
func TestC1_WaitLimit(t *testing.T) {
	in(t, func(t *testing.T) {
		o := newOrigin(nil)
		begin := time.Now()
		o.script = busyFor(time.Hour, "Retry-After", "60", fieldTicket, "2.t.t.t")
		r := newTrial(t, o)
		r.opts.WaitLimit = 10 * time.Minute
		r.ends(ErrWaitLimit)
		if took := time.Since(begin); took < 8*time.Minute || took > 10*time.Minute {
			t.Errorf("gave up after %v", took)
		}
		// The place outlives the process: the next run brings the same id and ticket.
		o.script = nil
		o.change(noise(1, 10), `"x"`)
		r.gets(noise(1, 10))
		requests := o.seen()
		if end := requests[len(requests)-1]; end.id != requests[0].id || end.ticket != "2.t.t.t" {
			t.Errorf("%+v", end)
		}
	})
}

// TestC1_Refused tables what waiting does not mend.
func TestC1_Refused(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 410, 304, 204} {
		in(t, func(t *testing.T) {
			o := newOrigin(nil)
			o.script = func(int, *http.Request) (*http.Response, error) {
				return statusBody(code, `{"message":"no such thing for `+testSecret+`"}`, "Content-Type", "application/json")
			}
			r := newTrial(t, o)
			err := r.ends(ErrRefused)
			var refused *StatusError
			if !errors.As(err, &refused) || refused.Status != code || len(o.seen()) != 1 || !strings.Contains(refused.Message, "no such thing") {
				t.Errorf("%d: %v after %d requests", code, err, len(o.seen()))
			}
			if n := len(r.disk.(*memDisk).names); n != 0 {
				t.Errorf("%d: %d files are left behind", code, n)
			}
		})
	}
}

// TestC1_CancelStopsAtOnce at every event of a long story, and the next run goes on.
func TestC1_CancelStopsAtOnce(t *testing.T) {
	want := noise(8, 500_000)
	story := func(o *origin) func(int, *http.Request) (*http.Response, error) {
		return func(n int, r *http.Request) (*http.Response, error) {
			switch {
			case n < 3:
				return status(503, "Retry-After", "100", fieldTicket, "2.t.t.t")
			case n == 5:
				return cut(o.serve(r), 100, errReset), nil
			}
			return nil, nil
		}
	}
	for at := 1; ; at++ {
		reached := false
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			o.pace = time.Second
			o.script = story(o)
			r := newTrial(t, o)
			r.opts.RangeBytes, r.opts.NotBefore = 125_000, time.Now().Add(3*time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var when time.Time
			r.watch = func(e Event) {
				if len(r.events) == at && e.Kind != Done {
					reached = true
					when = time.Now()
					cancel()
				}
			}
			_, err := r.run(ctx)
			if !reached {
				return
			}
			if !errors.Is(err, context.Canceled) || time.Since(when) > 0 {
				t.Errorf("event %d: %v after %v", at, err, time.Since(when))
			}
			before := r.bytesRecorded()
			r.watch = nil
			result := r.gets(want)
			if (before > 0) != result.Resumed {
				t.Errorf("event %d: %d bytes recorded, resumed %v", at, before, result.Resumed)
			}
			for _, one := range o.seen()[1:] {
				if one.id != o.seen()[0].id {
					t.Errorf("event %d: another id", at)
				}
			}
		})
		if !reached {
			if at < 12 {
				t.Fatalf("the story has only %d events", at)
			}
			return
		}
	}
}

// bytesRecorded is what the checkpoint vouches for.
func (r *trial) bytesRecorded() int64 {
	r.t.Helper()
	data, err := slurp(r.disk, "/d/out.arkvory", maxCheckpoint)
	if err != nil {
		r.t.Fatalf("no checkpoint: %v", err)
	}
	c, err := decodeCheckpoint(data)
	if err != nil {
		r.t.Fatalf("checkpoint: %v", err)
	}
	return c.done().sum()
}

package client

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// TestC2_NotBefore asks nobody before the window and looks at the wall clock at least every minute.
func TestC2_NotBefore(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(1, 1000)
		o := newOrigin(want)
		r := newTrial(t, o)
		r.opts.NotBefore = time.Now().Add(90*time.Minute + 30*time.Second)
		r.gets(want)
		if at := o.seen()[0].at; at.Before(r.opts.NotBefore) || at.Sub(r.opts.NotBefore) > time.Second {
			t.Errorf("asked at %v, not before %v", at, r.opts.NotBefore)
		}
		if n := r.count(WaitingForWindow); n < 90 {
			t.Errorf("%d looks at the clock", n)
		}
	})
}

// jumpClock is virtual time whose wall clock somebody sets while it is slept through.
type jumpClock struct {
	systemClock
	offset time.Duration
	jumps  []time.Duration // one a sleep
	slept  []time.Duration
}

func (c *jumpClock) Now() time.Time { return c.systemClock.Now().Round(0).Add(c.offset) }

func (c *jumpClock) Sleep(ctx context.Context, d time.Duration) error {
	c.slept = append(c.slept, d)
	if len(c.jumps) > 0 {
		c.offset, c.jumps = c.offset+c.jumps[0], c.jumps[1:]
	}
	return c.systemClock.Sleep(ctx, d)
}

// TestC2_NotBeforeFollowsTheWallClock: a machine that slept, or whose clock was set back, starts at the time on the wall.
func TestC2_NotBeforeFollowsTheWallClock(t *testing.T) {
	for _, jump := range []time.Duration{45 * time.Minute, -20 * time.Minute} {
		in(t, func(t *testing.T) {
			want := noise(1, 1000)
			o := newOrigin(want)
			clock := &jumpClock{jumps: []time.Duration{0, jump}}
			begin := time.Now()
			r := newTrial(t, o)
			r.opts.Clock, r.opts.NotBefore = clock, begin.Add(time.Hour)
			r.gets(want)
			if at, due := o.seen()[0].at, begin.Add(time.Hour-jump); at.Before(due) || at.Sub(due) > time.Minute {
				t.Errorf("jump %v: asked at %v, due %v", jump, at, due)
			}
			for _, d := range clock.slept {
				if d > windowStep {
					t.Errorf("slept %v at once", d)
				}
			}
		})
	}
}

// TestC2_NotAfter tables how a start past the bound ends, and that a started download is not cut.
func TestC2_NotAfter(t *testing.T) {
	for _, one := range []struct {
		name          string
		start         time.Duration // told by the server, 0 = not told
		retryAfter    string
		bound         time.Duration
		least, most   time.Duration
		requestsLeast int
	}{
		{"told to start too late", 2 * time.Hour, "60", time.Hour, 0, 0, 1},
		{"may not even ask in time", 0, "3600", 10 * time.Minute, 0, 0, 1},
		{"passes in the queue", 0, "60", 10 * time.Minute, 8 * time.Minute, 10 * time.Minute, 9},
		{"has passed before", 0, "60", -time.Second, 0, 0, 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				o := newOrigin(nil)
				begin := time.Now()
				o.script = func(int, *http.Request) (*http.Response, error) {
					fields := []string{"Retry-After", one.retryAfter, fieldPosition, "9"}
					if one.start > 0 {
						fields = append(fields, fieldStarts, time.Now().Add(one.start).UTC().Format(time.RFC3339))
					}
					return status(503, fields...)
				}
				r := newTrial(t, o)
				r.opts.NotAfter = begin.Add(one.bound)
				r.ends(ErrQueueDeadline)
				if took := time.Since(begin); took < one.least || took > one.most || len(o.seen()) < one.requestsLeast {
					t.Errorf("ended after %v and %d requests", took, len(o.seen()))
				}
			})
		})
	}
	t.Run("does not cut a running download", func(t *testing.T) {
		in(t, func(t *testing.T) {
			want := noise(1, 1<<20)
			o := newOrigin(want)
			o.pace = time.Minute
			o.script = func(n int, _ *http.Request) (*http.Response, error) {
				if n == 3 {
					return status(503, "Retry-After", "60")
				}
				return nil, nil
			}
			r := newTrial(t, o)
			r.opts.RangeBytes, r.opts.Parallel, r.opts.NotAfter = 256<<10, 1, time.Now().Add(time.Second)
			r.opts.AttemptTimeout = time.Hour
			r.gets(want)
		})
	})
}

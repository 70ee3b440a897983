package client

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestC4_RateIsMeasuredOverRanges: the rate is forgotten after a wait and not at every range, and no range has an event
// of its own.
func TestC4_RateIsMeasuredOverRanges(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(40, 4<<20)
		o := newOrigin(want)
		o.pace = 50 * time.Millisecond
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			if n == 30 {
				return cut(o.serve(r), 1000, errReset), nil
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes = 64 << 10
		r.gets(want)
		blind := 0
		for _, e := range r.events {
			if e.Kind == Downloading && e.BytesPerSecond == 0 {
				blind++
			}
		}
		if opened := 1 + r.count(Retrying); blind > 2*opened || opened != 2 {
			t.Errorf("%d of %d events tell no rate; the gate opened %d times in %d requests", blind, r.count(Downloading), opened, len(o.seen()))
		}
	})
}

// TestC1_LimitedConnections: a server that takes so many connections from one client and turns the others away without a
// word of when to come back, as limits of connections do, is downloaded from by as many. It costs no budget.
func TestC1_LimitedConnections(t *testing.T) {
	for _, code := range []int{503, 429} {
		for _, most := range []int{1, 3} {
			t.Run(fmt.Sprint(code, " above ", most), func(t *testing.T) {
				in(t, func(t *testing.T) {
					want := noise(41, 2<<20)
					o := newOrigin(want)
					o.pace = 100 * time.Millisecond
					o.script = func(n int, _ *http.Request) (*http.Response, error) {
						if o.seen()[n].inFlight > most {
							return status(code)
						}
						return nil, nil
					}
					r := newTrial(t, o)
					r.opts.RangeBytes, r.opts.Parallel = 256<<10, 8
					result := r.gets(want)
					if result.Retries != 0 || len(o.seen()) > 8+8 {
						t.Errorf("%d retries, %d requests", result.Retries, len(o.seen()))
					}
				})
			})
		}
	}
}

// TestC3_BalancerWithDifferentTags: servers behind one name that tag one object differently allow no ranges together. In
// the end it comes in one stream, which is of one of them.
func TestC3_BalancerWithDifferentTags(t *testing.T) {
	for _, knows := range []bool{true, false} {
		in(t, func(t *testing.T) {
			want := noise(42, 2<<20)
			o := newOrigin(want)
			o.script = func(n int, r *http.Request) (*http.Response, error) {
				o.change(want, fmt.Sprintf(`"server-%d"`, n%3))
				if !knows {
					r.Header.Del("If-Range")
				}
				return nil, nil
			}
			r := newTrial(t, o)
			r.opts.RangeBytes = 64 << 10
			r.gets(want)
			if n := r.count(Restarted); n != maxRestarts {
				t.Errorf("%d restarts", n)
			}
		})
	}
}

// TestC3_EncodingIsOfTheObject: bytes are kept as they come, but parts in another encoding are of another object even under
// one tag and of one length.
func TestC3_EncodingIsOfTheObject(t *testing.T) {
	plain, packed := noise(43, 1<<20), noise(44, 1<<20)
	in(t, func(t *testing.T) {
		o := newOrigin(plain)
		o.etag = `"one"`
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			if n < 3 {
				return nil, nil
			}
			o.change(packed, `"one"`)
			response := o.serve(r)
			response.Header.Set("Content-Encoding", "gzip")
			return response, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes = 64 << 10
		r.gets(packed)
		if r.count(Restarted) != 1 {
			t.Errorf("%d restarts", r.count(Restarted))
		}
	})
}

// TestC1_ToldWaitOutlivesAChange: a body that ends with news of a change after the server said when to come back does not
// make the client come earlier.
func TestC1_ToldWaitOutlivesAChange(t *testing.T) {
	in(t, func(t *testing.T) {
		first, second := noise(45, 4<<20), noise(46, 4<<20)
		o := newOrigin(first)
		o.etag = `"first"`
		var told time.Time
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			switch n {
			case 1:
				told = time.Now()
				return status(503, "Retry-After", "600", fieldTicket, "2.t.t.t")
			case 2: // sent together with the one before, answered after it
				<-time.After(5 * time.Second)
				o.change(second, `"second"`)
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes = 64 << 10
		r.gets(second)
		for i, one := range o.seen() {
			if gap := one.at.Sub(told); gap > 0 && gap < 600*time.Second {
				t.Errorf("request %d came %v after it was told 10 min", i, gap)
			}
		}
	})
}

// TestC1_NoWayFromHTTPSToHTTP: bytes that came without protection are taken only where a digest vouches for them.
func TestC1_NoWayFromHTTPSToHTTP(t *testing.T) {
	want := noise(47, 300_000)
	for _, one := range []struct {
		url, to string
		digest  bool
		fine    bool
	}{
		{"https://store.test/f", "http://mirror.test/f", false, false},
		{"https://store.test/f", "http://store.test/f", false, false},
		{"https://store.test/f", "http://mirror.test/f", true, true},
		{"https://store.test/f", "https://mirror.test/f", false, true},
		{"http://store.test/f", "http://mirror.test/f", false, true},
		{"http://store.test/f", "https://mirror.test/f", false, true},
	} {
		t.Run(one.url+" "+one.to, func(t *testing.T) {
			in(t, func(t *testing.T) {
				o := newOrigin(want)
				o.script = func(_ int, r *http.Request) (*http.Response, error) {
					if r.URL.String() == one.url {
						return status(302, "Location", one.to)
					}
					return nil, nil
				}
				r := newTrial(t, o)
				r.opts.URL = one.url
				if one.digest {
					var err error
					if r.opts.Digest, err = ParseDigest("sha256:" + sha(want)); err != nil {
						t.Fatal(err)
					}
				}
				if one.fine {
					r.gets(want)
				} else if err := r.ends(ErrRefused); !strings.Contains(err.Error(), "https") {
					t.Errorf("%v", err)
				}
				for _, each := range o.seen() {
					if each.host != "store.test" && each.auth != "" {
						t.Errorf("credentials at %s", each.host)
					}
				}
			})
		})
	}
	in(t, func(t *testing.T) { // there and back: http, https, http
		o := newOrigin(want)
		o.script = func(_ int, r *http.Request) (*http.Response, error) {
			switch r.URL.String() {
			case "http://store.test/a":
				return status(302, "Location", "https://store.test/b")
			case "https://store.test/b":
				return status(302, "Location", "http://store.test/c")
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.opts.URL = "http://store.test/a"
		r.ends(ErrRefused)
	})
}

// TestC4_HostileWords: what a server says reaches the observer without anything that draws on a terminal, breaks lines or
// cannot be written as JSON, and is not sent back where it could not be sent.
func TestC4_HostileWords(t *testing.T) {
	evil := "\\u001b]0;owned\\u0007\\u001b[2J\\r\\nX: y\\u202eexe\\u0085\\u009b31m"
	in(t, func(t *testing.T) {
		want := noise(48, 1000)
		o := newOrigin(want)
		o.script = func(n int, _ *http.Request) (*http.Response, error) {
			switch n {
			case 0:
				return statusBody(503, `{"error":"busy","message":"`+evil+`","queueTicket":"2.a\r\nX-Evil: 1","downloadClass":"`+evil+`","queuePosition":99999999999999999,
					"startsAt":"9999-12-31T23:59:59-23:59","retryAfterSeconds":9223372036854775807}`, "Content-Type", "application/json")
			case 1:
				return status(503, fieldTicket, strings.Repeat("t", 70_000), fieldPosition, "-1", fieldStarts, "0000-01-01T00:00:00+23:59",
					fieldClass, "\x1b[2J", "Retry-After", "1", fieldWindow, "0000-01-01T00:00:00+23:59/9999-12-31T23:59:59-23:59")
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.gets(want)
		for _, e := range r.events {
			for _, at := range []time.Time{e.StartsAt, e.Earliest, e.Latest, e.NextTry} {
				if _, err := at.UTC().MarshalJSON(); err != nil {
					t.Errorf("%v tells %v: %v", e.Kind, at, err)
				}
			}
			if strings.ContainsFunc(e.Message+e.Class, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e }) || e.Position < 0 || e.Position > maxPosition {
				t.Errorf("%+v", e)
			}
		}
		for _, one := range o.seen() {
			if one.ticket != "" {
				t.Errorf("ticket of %d bytes sent", len(one.ticket))
			}
		}
	})
}

// TestC1_TicketOfAClockThatWentBack: a clock that is set back by a day does not make a ticket good for a day.
func TestC1_TicketOfAClockThatWentBack(t *testing.T) {
	in(t, func(t *testing.T) {
		o := newOrigin(nil)
		begin := time.Now()
		clock := &shiftedClock{}
		o.script = func(n int, _ *http.Request) (*http.Response, error) {
			if n == 0 {
				return status(503, "Retry-After", "5", fieldTicket, "2.t.i.ck")
			}
			clock.shift.Store(int64(-24 * time.Hour))
			return nil, errRefusedDial
		}
		r := newTrial(t, o)
		r.opts.Clock = clock
		r.ends(ErrBudget)
		if took := time.Since(begin); took > ticketTerm+2*time.Minute {
			t.Errorf("gave up after %v", took)
		}
		// The next process finds a ticket of tomorrow: it is sent, but buys no time.
		begin = time.Now()
		r.ends(ErrBudget)
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("a ticket of tomorrow: gave up after %v", took)
		}
	})
}

// shiftedClock is the runtime's clock whose wall was set by somebody; its monotonic reading goes on.
type shiftedClock struct {
	systemClock
	shift atomic.Int64
}

func (c *shiftedClock) Now() time.Time { return setWall(time.Now(), time.Duration(c.shift.Load())) }

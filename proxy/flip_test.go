package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// flips are policies between which an operator changes his mind.
var flips = []string{`{"strategy":"shared"}`, `{"strategy":"smallest-first"}`, `{"sessions":1}`, `{"strategy":"fair-sojourn","sessions":4}`, `{"sessionMinBytes":900000}`,
	`{"strategy":"ordered","rangesPerSession":1}`, `{"sessionMinBytes":0,"idleSeconds":1}`, `{"strategy":"shared","sessions":3}`, `{}`}

// flip changes the policy all the time until the returned function is called.
func (b *bench) flip() (stop func()) {
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(7 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			body := fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, b.p.desk.Current().Revision, flips[i%len(flips)])
			if _, err := b.p.desk.Change(context.Background(), body, "token"); err != nil {
				b.t.Error(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wait.Wait() })
}

// fetch reads one object of a million bytes by ranges, as a client that resumes; it returns the first status that is no 206. Every second one leaves once in the
// middle and comes back.
func (b *bench) fetch(n int, fields ...string) (int, error) {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	leaves := n%2 == 0
	for at := 0; at < 1000000; {
		request, err := http.NewRequest("GET", fmt.Sprintf("http://%s/o%d/1000000", b.addr, n), nil)
		if err != nil {
			return 0, err
		}
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, min(at+250000, 1000000)-1))
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			request.Header.Set(name, value)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, err
		}
		if response.StatusCode != 206 {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			return response.StatusCode, nil
		}
		if leaves && at > 0 {
			leaves = false
			_, _ = io.CopyN(io.Discard, response.Body, 1000)
			_ = response.Body.Close() // broken off
			client.CloseIdleConnections()
			continue
		}
		got, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil || got != 250000 {
			return 206, errors.Join(err, fmt.Errorf("%d bytes", got))
		}
		at += 250000
	}
	return 206, nil
}

// TestQ11_PlainClientsGoThroughEveryChangeOfPolicy: whatever an operator does, no plain client is refused, and nothing is left of anybody.
func TestQ11_PlainClientsGoThroughEveryChangeOfPolicy(t *testing.T) {
	t.Parallel()
	var log record
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		s.Decisions, s.Policy.PerPrincipal = &log, 2
		s.DownloadTotal = bucket.Limit{BytesPerSecond: 16 * mib} // so that it takes a while
	})
	stop := b.flip()
	defer stop()
	var wait sync.WaitGroup
	for n := range 24 {
		wait.Go(func() {
			if status, err := b.fetch(n); status != 206 || err != nil {
				t.Errorf("client %d: %d, %v", n, status, err)
			}
		})
	}
	wait.Wait()
	stop()
	b.quiet(patience)
	b.close()
	report, err := replay.Replay(strings.NewReader(log.String()))
	if err != nil || report.Differences != 0 {
		t.Errorf("the log does not replay: %v, %+v", err, report)
	}
}

// TestL1_ADrainAmidChangesOfPolicyLeavesNothing: protocol and plain clients, held and running, and the end.
func TestL1_ADrainAmidChangesOfPolicyLeavesNothing(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	stop := b.flip()
	defer stop()
	var wait sync.WaitGroup
	var served atomic.Int64
	for n := range 24 {
		wait.Go(func() {
			var fields []string
			if n%3 == 0 {
				fields = []string{fmt.Sprintf("Arkvory-Download-Id: d%d", n)}
			}
			for {
				status, err := b.fetch(n, fields...)
				switch {
				case b.p.Draining(): // it is told so, or its kept connection is closed under it
					return
				case err != nil || status != 206 && !(status == 503 && fields != nil):
					t.Errorf("client %d: %d, %v", n, status, err)
					return
				}
				served.Add(1)
			}
		})
	}
	eventually(t, "many are served", func() bool { return served.Load() > 20 })
	b.p.StartDrain()
	wait.Wait()
	stop()
	b.close()
	b.change(`{}`) // a change after the end opens nothing
	if grant, verdict := b.p.queue.Admit(holding()); grant != nil || verdict.Outcome != queue.Draining {
		t.Errorf("a slot after the drain: %+v", verdict)
	}
}

// TestX1_TheSilenceOfTwoWaitsIsOneHold: who was held in the queue when the strategy became shared has little patience left for a place.
func TestX1_TheSilenceOfTwoWaitsIsOneHold(t *testing.T) {
	t.Parallel()
	t.Run("no place comes", func(t *testing.T) { t.Parallel(); leaveForPlaces(t, true) })
	t.Run("places come", func(t *testing.T) { t.Parallel(); leaveForPlaces(t, false) })
}

func leaveForPlaces(t *testing.T, refused bool) {
	var jump atomic.Int64
	began := time.Now()
	o := store(t)
	b := start(t, o.url(), func(s *Settings) {
		oneSlot(s)
		s.Hold = profile.MaxHold
		s.Downloads.Capacity, s.Downloads.PerPrincipal = 1, 1
		s.clock = func() time.Duration { return time.Since(began) + time.Duration(jump.Load()) }
	})
	holder := b.occupy("/a/1000000000")
	defer holder.close()
	taken, err := b.p.down.Acquire("somebody", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second, left := b.dial().get("/b/1000000"), b.dial().get("/c/1000000"), b.dial().get("/d/1000000")
	eventually(t, "they are held", func() bool { return b.left().Held == 3 })
	jump.Store(int64(profile.MaxHold - 3*time.Second))
	b.change(`{"strategy":"shared"}`)
	switched := time.Now()
	eventually(t, "they wait for a place", func() bool { return b.left().DownWt == 3 })
	left.close()
	eventually(t, "one left", func() bool { return b.left().DownWt == 2 })
	if !refused { // one after the other
		taken.Release()
		var both sync.WaitGroup
		for _, c := range []*client{first, second} {
			both.Go(func() {
				resp, err := http.ReadResponse(c.br, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n, err := io.Copy(io.Discard, resp.Body); n != 1000000 || err != nil || resp.StatusCode != 200 {
					t.Errorf("%d, %d bytes, %v", resp.StatusCode, n, err)
				}
			})
		}
		both.Wait()
	} else {
		for _, c := range []*client{first, second} {
			if a := c.ok(503); a.reason(t) != "busy" || a.Header.Get("Retry-After") == "" {
				t.Errorf("%v %s", a.Header, a.body)
			}
		}
		if took := time.Since(switched); took > 7*time.Second {
			t.Errorf("%v more of silence", took)
		}
		taken.Release()
	}
	eventually(t, "all places are free", func() bool { s := b.left(); return s.DownActive == 0 && s.DownWt == 0 })
}

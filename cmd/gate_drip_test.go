//go:build gate

package house_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	dripClients  = 1000     // fed while they wait
	dripEnding   = 20       // more, of another object, that get it whole
	dripBand     = 64 * mib // of the link
	dripEach     = 32 * kib // of the same when no two wait for one object: what is fetched for them cannot be shared
	dripLimit    = 24 * kib // of RSS a fed client
	dripPatience = 5        // seconds within which each must get a byte
	dripWatch    = 32       // seconds of watching
	dripObject   = 16 * mib // size of the objects
	dripFiller   = 16 << 30 // bytes of what keeps the link and the only slot busy; a file without blocks
)

// dripState is what the gate reads of the readiness answer.
type dripState struct {
	Transfers struct {
		Downloads struct {
			Sessions struct {
				Drips struct {
					Active, Limit, StoreBytes int
					BytesPerSecond            float64
					Started, Cut              uint64
				}
			}
		}
	}
}

func (s *sidecar) drips() (d dripState) {
	s.t.Helper()
	body, err := s.get("/health/ready")
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// counter reads a series of the metrics page.
func (s *sidecar) counter(series string) float64 {
	s.t.Helper()
	page, err := s.get("/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(page) {
		if rest, ok := bytes.CutPrefix(line, []byte(series+" ")); ok {
			v, err := strconv.ParseFloat(string(bytes.TrimSpace(rest)), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return v
		}
	}
	s.t.Fatalf("no series %s", series)
	return 0
}

// fed is one client that is fed: what it got, and the longest time without a byte after the head.
type fed struct {
	got     []byte
	longest time.Duration
	ended   error
	whole   bool
}

// take reads a response as it comes. The bytes are kept: they must be the object's.
func (f *fed) take(c *rawClient, most int64, stop *atomic.Bool) {
	b := make([]byte, 64<<10)
	last := time.Now()
	for int64(len(f.got)) < most {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := c.Read(b)
		if now := time.Now(); n > 0 {
			if !stop.Load() {
				f.longest = max(f.longest, now.Sub(last))
			}
			last = now
		}
		f.got = append(f.got, b[:n]...)
		if err != nil {
			f.ended = err
			return
		}
	}
	f.whole = true
}

// TestGateX2_Drips: a thousand plain clients are fed while they wait behind a download that takes the whole link (acceptance 4.6).
func TestGateX2_Drips(t *testing.T) {
	raiseFiles(t)
	t.Run("OneObject", func(t *testing.T) { gateDrips(t, dripLimit, func(int) string { return "/file0" }) })
	t.Run("AnObjectEach", func(t *testing.T) {
		gateDrips(t, dripEach, func(n int) string { return "/file0?n=" + strconv.Itoa(n) })
	})
}

// gateDrips does so with the names by which the clients call their object.
func gateDrips(t *testing.T, limit int64, name func(n int) string) {
	s := newStore(t, 2, dripObject)
	filler, err := os.Create(filepath.Join(s.dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(filler.Truncate(dripFiller), filler.Close()); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(s.dir, "file0"))
	if err != nil {
		t.Fatal(err)
	}
	origin := startOrigin(t, s)
	car := startSidecar(t, buildSidecar(t), origin, false, map[string]string{
		"ARKVORY_MAX_DOWNLOAD_SESSIONS": "1", "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(mib, 10),
		"ARKVORY_DOWNLOAD_HOLD_SECONDS": "1", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(dripBand, 10), "ARKVORY_DOWNLOAD_IDLE_SECONDS": "1",
	})
	warm(t, car, false)
	busy, stopFiller := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stopFiller()
	running.Go(func() {
		request, err := http.NewRequestWithContext(busy, "GET", "http://"+car.listen+"/filler", nil)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Arkvory-Download-Id", "filler")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); busy.Err() == nil {
			t.Errorf("the filler ended: %v", err)
		}
	})
	within(t, 10*time.Second, "the slot is taken", func() bool { r, err := car.ready(); return err == nil && r.Transfers.Downloads.Sessions.Active == 1 })

	var quiet atomic.Bool
	feed := func(from, count int, path func(int) string, size int64) []*fed {
		all := make([]*fed, count)
		clients := openMany(t, count, func(n int) (*rawClient, error) {
			c, err := dialRaw(car.listen, from+n, 0)
			if err == nil {
				err = c.send(path(from+n), "Connection: close\r\n")
			}
			return c, err
		})
		for n, c := range clients {
			all[n] = &fed{}
			running.Go(func() {
				if err := c.head(time.Minute); err != nil || c.code != 200 || c.size != size {
					all[n].ended = fmt.Errorf("head of client %d: status %d, %d bytes: %v", from+n, c.code, c.size, err)
					return
				}
				all[n].take(c, size-c.early, &quiet)
			})
		}
		return all
	}
	fedAll := func(n int) func() bool {
		return func() bool { return car.drips().Transfers.Downloads.Sessions.Drips.Active == n }
	}
	feed(0, 1, name, dripObject) // warms what feeding needs once
	within(t, 20*time.Second, "one client is fed", fedAll(1))
	before := car.rss()
	first := feed(1, dripClients-1, name, dripObject)
	within(t, 60*time.Second, "a thousand clients are fed", fedAll(dripClients))
	pause(settleTime)
	grown := (car.rss() - before) / (dripClients - 1)

	bytesBefore, begun := car.counter("arkvory_download_drip_bytes_total"), time.Now()
	pause(dripWatch * time.Second)
	took := time.Since(begun).Seconds()
	rate := (car.counter("arkvory_download_drip_bytes_total") - bytesBefore) / took
	car.profiles("drip")
	again := (car.rss() - before) / (dripClients - 1)
	t.Logf("fed: %.1f KiB of RSS a client at first, %.1f KiB after %d s (limit %d) from %d KiB; %s", float64(grown)/1024, float64(again)/1024, dripWatch, limit/kib, before/kib, car.heap())
	t.Logf("all together %.0f bytes/s, %.2f %% of the band; pieces fetched %.0f, shared %.0f", rate, 100*rate/float64(dripBand),
		car.counter(`arkvory_download_drip_pieces_total{source="origin"}`), car.counter(`arkvory_download_drip_pieces_total{source="store"}`))
	if max(grown, again) > limit {
		t.Errorf("a fed client costs %d bytes of RSS, the limit is %d", max(grown, again), limit)
	}
	if rate > float64(dripBand)/100 {
		t.Errorf("all take %.0f bytes/s, 1 %% of the band is %d", rate, dripBand/100)
	}
	whole := feed(dripClients, dripEnding, func(int) string { return "/file1" }, dripObject)
	within(t, 30*time.Second, "the others are fed too", fedAll(dripClients+dripEnding))
	quiet.Store(true)

	// The object is replaced by another of the same length: no client may see a byte of it.
	replaced := filepath.Join(s.dir, "new")
	other := bytes.Clone(old)
	for i := range other {
		other[i] ^= 0xff
	}
	if err := os.WriteFile(replaced, other, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(replaced, filepath.Join(s.dir, "file0")); err != nil {
		t.Fatal(err)
	}
	stopFiller()
	running.Wait()
	judgeFed(t, first, old)
	for n, f := range whole {
		if sum := sha256.Sum256(f.got); !f.whole || sum != s.sums["file1"] {
			t.Errorf("client %d of the object that stays: %d bytes, whole %v, %v", n, len(f.got), f.whole, f.ended)
		}
	}
	r, err := car.ready()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ended: %d whole, %.0f cut because the object changed; completed %d", dripEnding,
		car.counter(`arkvory_upstream_errors_total{reason="object_changed"}`), r.Transfers.Downloads.Sessions.Completed)
	car.settle(10*time.Second, func(r *readiness) map[string]int { c := r.counters(); delete(c, "sessions.waiting"); return c })
	if left := car.drips().Transfers.Downloads.Sessions.Drips.Active; left != 0 {
		t.Errorf("%d clients are still fed", left)
	}
}

// judgeFed checks clients whose object was replaced while they waited: each got the first bytes of the old one and was cut then.
func judgeFed(t *testing.T, all []*fed, object []byte) {
	t.Helper()
	var least, most, sum int
	var longest time.Duration
	for n, f := range all {
		switch {
		case f.whole:
			t.Errorf("client %d got a whole object", n)
		case !bytes.HasPrefix(object, f.got):
			t.Errorf("client %d got bytes that are not the object's", n)
		case !errors.Is(f.ended, io.EOF):
			var network net.Error
			if !errors.As(f.ended, &network) || network.Timeout() {
				t.Errorf("client %d ended with %v", n, f.ended)
			}
		}
		if n == 0 || len(f.got) < least {
			least = len(f.got)
		}
		most, sum, longest = max(most, len(f.got)), sum+len(f.got), max(longest, f.longest)
	}
	t.Logf("%d clients got %d to %d bytes (mean %d), all the object's; longest time without one %.1f s", len(all), least, most, sum/len(all), longest.Seconds())
	if longest > dripPatience*time.Second {
		t.Errorf("a client waited %v for a byte, the limit is %d s", longest, dripPatience)
	}
}

//go:build gate

package house_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The multitude: 65,536 protocol clients of 256 principals and four classes behind four slots that come free for nobody.
const (
	multitude     = 65536
	multitudeBy   = 32 // connections, each of as many clients
	multitudeWho  = 256
	multitudeFile = 17 * mib
	scaleLooks    = 100
	// lookLimit is how long a snapshot or a page may take beyond what the machine takes for an answer that holds nothing.
	lookLimit = 50 * time.Millisecond
)

// span is a sorted set of durations.
type span []time.Duration

func (s span) at(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	return s[min(int(share*float64(len(s))), len(s)-1)]
}

func (s span) String() string {
	return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms, max %.2f ms (%d)", s.at(0.5).Seconds()*1e3, s.at(0.99).Seconds()*1e3, s.at(1).Seconds()*1e3, len(s))
}

func sorted(all ...[]time.Duration) span {
	one := slices.Concat(all...)
	slices.Sort(one)
	return one
}

// TestGateDeskScale is acceptance 6.6 over the running binary: with 65,536 waiting sessions each page of the desk is there at once, and a console that
// looks ten times a second is not to be seen in the time of relays and ticks.
func TestGateDeskScale(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "big", multitudeFile, 3)
	s.add(t, "relay", mib, 4)
	d := startDesk(t, buildSidecar(t), startOrigin(t, s), "multitude", map[string]string{
		"ARKVORY_DOWNLOAD_QUEUE_LIMIT": "70000", "ARKVORY_DOWNLOAD_QUEUE_PER_PRINCIPAL": "70000", "ARKVORY_MAX_DOWNLOAD_SESSIONS": "4", "ARKVORY_DOWNLOAD_RESERVE": "0",
		"ARKVORY_DOWNLOAD_PREEMPT": "false", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(256*mib, 10), "ARKVORY_STALL_TIMEOUT_MS": "3600000",
		"ARKVORY_TRUSTED_PROXIES": "127.0.0.0/8", "ARKVORY_PRINCIPAL_FROM": "header:X-User,address", "ARKVORY_UPSTREAM_STALL_SECONDS": "0", "ARKVORY_UPSTREAM_MAX_IDLE": "64",
	})
	for n := range 4 {
		d.open(3000+n, "/big", fmt.Sprint("holder-", n), "X-User", fmt.Sprint("holder-", n))
	}
	quit, running := make(chan struct{}), sync.WaitGroup{}
	t.Cleanup(func() { close(quit); running.Wait() })
	var created, polls atomic.Int64
	begun := time.Now()
	for n := range multitudeBy {
		c, err := net.Dial("tcp4", d.listen)
		if err != nil {
			t.Fatal(err)
		}
		w := &throng{t: t, first: n * multitude / multitudeBy, count: multitude / multitudeBy, c: c, r: bufio.NewReaderSize(c, 16<<10), created: &created, polls: &polls}
		running.Go(func() { defer c.Close(); w.run(quit) })
	}
	d.await(4*time.Minute, "all have asked", func() bool { return created.Load() == multitude || t.Failed() })
	filled, asked := time.Since(begun), polls.Load()
	d.await(time.Minute, "all were told a longer time", func() bool { return d.rest(&polls) || t.Failed() })
	if t.Failed() {
		return
	}
	m := &sidecar{t: t, pid: d.command.Process.Pid}
	q := d.queue()
	t.Logf("%d sessions wait: all were there after %.1f s and %d polls, and rested after %d polls; tick %.2f ms; RSS %d MiB", q.Waiting, filled.Seconds(), asked, polls.Load(), q.TickMilliseconds, m.rss()/mib)
	if q.Waiting != multitude || q.Active != 4 {
		t.Errorf("%d wait and %d are active, want %d and 4", q.Waiting, q.Active, multitude)
	}
	d.look(d.walk())
	d.beside()
	if q = d.queue(); q.Waiting != multitude || q.Counts["noShow"] > 0 || q.Counts["started"] != 4 {
		t.Errorf("at the end %d wait, %v", q.Waiting, q.Counts)
	}
	t.Logf("at the end: %d wait, %d polls, tick %.2f ms, RSS %d MiB", q.Waiting, polls.Load(), q.TickMilliseconds, m.rss()/mib)
}

// rest reports whether the clients ask rarely: first and second questions are over.
func (d *desk) rest(polls *atomic.Int64) bool {
	was := polls.Load()
	pause(time.Second)
	return polls.Load()-was < 1500
}

// walk goes through all pages, each session once, and returns the cursors to a page in the middle and to the last.
func (d *desk) walk() (middle, far string) {
	d.t.Helper()
	seen, after, places := map[string]bool{}, "", 0
	var times []time.Duration
	for pages := 0; ; pages++ {
		path := deskPath + "/sessions?state=waiting&limit=1000"
		if after != "" {
			path += "&after=" + after
		}
		r := d.call("GET", path, "")
		var page sessionsSeen
		if err := json.Unmarshal(r.body, &page); err != nil || r.status != 200 || page.Total != multitude {
			d.t.Fatalf("page %d: %.200v, %v", pages, r, err)
		}
		times = append(times, r.took)
		for _, one := range page.Sessions {
			seen[one.ID] = true
			if places++; one.Position == nil || *one.Position != places {
				d.t.Errorf("session %d of the list has place %v", places, one.Position)
			}
		}
		if page.Next == nil {
			break
		}
		if after = *page.Next; pages == 32 {
			middle = after
		}
		far = after
	}
	d.t.Logf("all pages of 1000: %d sessions, %d different, places 1..%d in order; a page took %v", places, len(seen), places, sorted(times))
	if len(seen) != multitude {
		d.t.Errorf("the pages show %d sessions", len(seen))
	}
	return middle, far
}

// hashOf is what stands for a user's principal where ids are not clear.
func (d *desk) hashOf(user string) string {
	d.t.Helper()
	var page sessionsSeen
	d.into(&page, "GET", deskPath+"/sessions?limit=1&principal=header:"+user, "")
	if len(page.Sessions) != 1 || page.Total != multitude/multitudeWho {
		d.t.Fatalf("%s has %d sessions on the page, %d in all", user, len(page.Sessions), page.Total)
	}
	return page.Sessions[0].Principal
}

// look times each kind of page, in pairs with an answer that holds nothing.
func (d *desk) look(middle, far string) {
	d.t.Helper()
	kinds := []struct{ name, path string }{
		{"queue", "/queue"}, {"sessions, first page", "/sessions?limit=100"}, {"sessions, a page in the middle", "/sessions?state=waiting&limit=100&after=" + middle},
		{"sessions, the far end", "/sessions?state=waiting&limit=100&after=" + far}, {"sessions of a class", "/sessions?class=background&limit=100"},
		{"sessions of a principal", "/sessions?principal=header:" + crowdUser(77) + "&limit=100"}, {"history", "/history"},
		{"sessions of a principal by its hash", "/sessions?limit=100&principal=" + d.hashOf(crowdUser(77))}, {"sessions of nobody by a hash", "/sessions?limit=100&principal=h:0000000000000000"},
	}
	raw, net, work := make([][]time.Duration, len(kinds)), make([][]time.Duration, len(kinds)), make([][]time.Duration, len(kinds))
	var nothing []time.Duration
	for range scaleLooks {
		for i, kind := range kinds {
			before := d.call("GET", "/health/live", "").took
			worked := d.processor()
			r := d.call("GET", deskPath+kind.path, "")
			work[i] = append(work[i], d.processor()-worked)
			after := d.call("GET", "/health/live", "").took
			if r.status != 200 {
				d.t.Fatalf("%s: %v", kind.name, r)
			}
			if kind.name != "queue" && kind.name != "history" {
				var page sessionsSeen
				if err := json.Unmarshal(r.body, &page); err != nil || len(page.Sessions) != 100 && page.Total > 0 {
					d.t.Fatalf("%s: %d sessions, %v", kind.name, len(page.Sessions), err)
				}
			}
			raw[i], net[i] = append(raw[i], r.took), append(net[i], max(0, r.took-max(before, after)))
			nothing = append(nothing, before, after)
			pause(20 * time.Millisecond) // below the rate of reads
		}
	}
	d.t.Logf("an answer that holds nothing: %v", sorted(nothing))
	for i, kind := range kinds {
		own := sorted(net[i])
		cost := sorted(work[i])
		d.t.Logf("%s: %v; beyond that answer %v; processor time of the process meanwhile %v", kind.name, sorted(raw[i]), own, cost)
		if own.at(0.99) >= lookLimit && cost.at(0.99) >= lookLimit { // one alone is the machine's noise, or the other clients'
			d.t.Errorf("%s takes %v at p99 beyond what the machine takes, and %v of the processor; the limit is %v", kind.name, own.at(0.99), cost.at(0.99), lookLimit)
		}
	}
}

// processor is the time that the threads of the process have run.
func (d *desk) processor() (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.command.Process.Pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread that has ended meanwhile
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

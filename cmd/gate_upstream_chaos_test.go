//go:build gate

package house_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	chaosClients = 50
	chaosBytes   = 200 * mib
	chaosRate    = 128 * mib // bytes/s of all: at least 78 s
	chaosStall   = 3         // seconds without a byte that end a body
	// chaosStop is how long a stopped origin stays so: beyond the stall, and what its kernel had buffered before it.
	chaosStop = (chaosStall + 4) * time.Second
	// chaosSettled is how long an origin must have been up, right and named to count as the one that is left: names are asked for once a second.
	chaosSettled = 3 * time.Second
	chaosSmall   = 20 // small GETs a second beside
)

// chaosOrigin is one origin and what chaos made of it.
type chaosOrigin struct {
	*webOrigin
	killed, dropped, wrong bool
	since                  time.Time // of the last change
	until                  time.Time // of being stopped
}

func (o *chaosOrigin) good() bool { return !o.killed && !o.dropped && !o.wrong && !o.stopped }

// chaos changes the origins behind the name by chance, so that always one that has settled is left.
type chaos struct {
	t       *testing.T
	random  *rand.Rand
	store   *store
	names   *nameServer
	sidecar *sidecar
	origins []*chaosOrigin
	begun   time.Time
	rows    []chaosRow
	counts  map[string]int
}

// chaosRow is one event: what ran on the origin as the kernel shows it, and the breaks until the next.
type chaosRow struct {
	at          time.Duration
	what        string
	connections int
	breaks, ok  int
}

// TestGateUpstreamChaos is acceptance 5.2: 50 downloads of 200 MiB run through one sidecar from three nginx behind one name, IPv4 and IPv6, which are killed (-9),
// stopped (SIGSTOP) beyond the stall limit, started again, taken out of the name and put in again, or give another object (other bytes of the same size, another
// entity tag) under the object's name. One origin at least is always up, right and named, and has been for 3 s.
//
//   - Every download ends with the object's SHA-256; no client sees an error, those of small GETs beside neither.
//   - The count of resumes equals the count of breaks; none is given up, none cut because the object changed.
//   - Chaos was real: bodies broke and stalled, by the sidecar's own count; each kind of event happened.
func TestGateUpstreamChaos(t *testing.T) {
	raiseFiles(t)
	size := chaosBytes / gateScale(t)
	s := newStore(t, 0, 0)
	s.add(t, "object", size, 1)
	s.add(t, "other", size, 2)
	s.otherObject(t, "other")
	seed := gateSeed(t)
	c := &chaos{t: t, random: rand.New(rand.NewPCG(seed, 5)), store: s, names: startNames(t), counts: map[string]int{}}
	addresses := originAddresses(t, 3, true)
	for i, address := range addresses {
		o := newOrigin(t, s, string(rune('a'+i)), address, 5*time.Minute)
		o.start()
		c.origins = append(c.origins, &chaosOrigin{webOrigin: o})
	}
	c.publish()
	c.sidecar = startSidecar(t, buildSidecar(t), poolOrigin(portOf(addresses[0])), false, poolVariables(c.names, map[string]string{
		"ARKVORY_MAX_DOWNLOAD_SESSIONS": strconv.Itoa(chaosClients), "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(mib, 10),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(chaosRate, 10), "ARKVORY_UPSTREAM_RESUME": "true", "ARKVORY_UPSTREAM_STALL_SECONDS": strconv.Itoa(chaosStall),
	}))
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var running, whole atomic.Int64
	for n := range chaosClients {
		all.Go(func() {
			if err := c.download(limit, n, size, &running); err != nil {
				t.Errorf("download %d: %v", n, err)
				return
			}
			whole.Add(1)
		})
	}
	within(t, 60*time.Second, "all downloads run", func() bool { return running.Load() == chaosClients })
	small := &load{address: c.sidecar.listen, path: "/tiny", size: kib, perSecond: chaosSmall, workers: 200}
	small.start()
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	c.run(ended)
	small.finish()
	c.judge(seed, int(whole.Load()), size, small)
}

// download fetches the object as a plain client does and hashes it as it comes.
func (c *chaos) download(ctx context.Context, n int, size int64, running *atomic.Int64) error {
	dialer := net.Dialer{LocalAddr: source(n), Timeout: 10 * time.Second}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.sidecar.listen+"/object", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	hash := sha256.New()
	first, err := io.CopyN(hash, response.Body, 1)
	running.Add(1)
	if err != nil {
		return err
	}
	rest, err := io.CopyBuffer(hash, response.Body, make([]byte, 256<<10))
	if got := [sha256.Size]byte(hash.Sum(nil)); err != nil || first+rest != size || got != c.store.sums["object"] {
		return fmt.Errorf("%d of %d bytes, SHA-256 %x, want %x, %v", first+rest, size, got, c.store.sums["object"], err)
	}
	return nil
}

// publish puts the origins that are not dropped into the name.
func (c *chaos) publish() {
	var named []string
	for _, o := range c.origins {
		if !o.dropped {
			named = append(named, o.address)
		}
	}
	c.names.set(poolName, named...)
}

// run makes an event every one to three seconds until the downloads ended, and heals everything then.
func (c *chaos) run(ended <-chan struct{}) {
	c.begun = time.Now()
	for _, o := range c.origins {
		o.since = c.begun.Add(-time.Minute)
	}
	next := c.begun.Add(time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		case <-tick.C:
		}
		now := time.Now()
		for _, o := range c.origins {
			if o.stopped && (done || now.After(o.until)) {
				c.event(o, "goes on")
			}
		}
		if !done && now.After(next) {
			next = now.Add(time.Second + time.Duration(c.random.Int64N(int64(2*time.Second))))
			c.draw(now)
		}
	}
	c.close()
}

// choice is an event that may be.
type choice struct {
	o    *chaosOrigin
	what string
}

// draw makes one event that leaves a settled origin. Most harm goes where most connections are: else all downloads soon run on the one origin that is left, and chaos
// goes on among the others. When that one may not be harmed, another is healed.
func (c *chaos) draw(now time.Time) {
	var harm, busy, heal []choice
	connected, most := establishedTo(c.t), 0
	for _, o := range c.origins {
		most = max(most, connected[o.address])
	}
	for _, o := range c.origins {
		heal = append(heal, o.cures()...)
		if o.stopped || !c.leaves(o, now) {
			continue // stopped ones go on by themselves
		}
		all := o.harms()
		if harm = append(harm, all...); connected[o.address] == most {
			busy = append(busy, all...)
		}
	}
	from := heal
	switch pick := c.random.IntN(10); {
	case len(busy) > 0 && pick < 5:
		from = busy
	case len(harm) > 0 && (pick < 7 && len(busy) > 0 || len(heal) == 0):
		from = harm
	}
	if len(from) > 0 {
		one := from[c.random.IntN(len(from))]
		c.event(one.o, one.what)
	}
}

// leaves reports whether another origin than this is settled.
func (c *chaos) leaves(o *chaosOrigin, now time.Time) bool {
	for _, other := range c.origins {
		if other != o && other.good() && now.Sub(other.since) >= chaosSettled {
			return true
		}
	}
	return false
}

// harms are the events that make an origin worse, some likelier.
func (o *chaosOrigin) harms() (all []choice) {
	if !o.killed {
		all = append(all, choice{o, "killed"}, choice{o, "killed"}, choice{o, "stopped"}, choice{o, "stopped"})
	}
	if !o.dropped {
		all = append(all, choice{o, "dropped"})
	}
	if !o.wrong {
		all = append(all, choice{o, "wrong"})
	}
	return all
}

// cures are the events that make it better.
func (o *chaosOrigin) cures() (all []choice) {
	if o.killed {
		all = append(all, choice{o, "starts"})
	}
	if o.dropped {
		all = append(all, choice{o, "named again"})
	}
	if o.wrong {
		all = append(all, choice{o, "right again"})
	}
	return all
}

// event does one thing to an origin and notes it.
func (c *chaos) event(o *chaosOrigin, what string) {
	c.t.Helper()
	c.close()
	row := chaosRow{at: time.Since(c.begun), what: o.name + " " + what, connections: establishedTo(c.t)[o.address]}
	page := c.sidecar.pool()
	row.breaks, row.ok = -page.breaks(), -page.opened(c.t)
	c.counts[what]++
	o.since = time.Now()
	switch what {
	case "killed":
		o.kill()
		o.killed = true
	case "starts":
		o.start()
		o.killed = false
	case "stopped":
		o.halt()
		o.until = time.Now().Add(chaosStop)
	case "goes on":
		o.goOn()
	case "dropped", "named again":
		o.dropped = what == "dropped"
		c.publish()
	case "wrong":
		o.link(filepath.Join(c.store.dir, "other"), "object")
		o.wrong = true
	case "right again":
		o.link(filepath.Join(c.store.dir, "object"), "object")
		o.wrong = false
	}
	c.rows = append(c.rows, row)
}

// close ends the row before: its breaks are those since its event.
func (c *chaos) close() {
	if len(c.rows) == 0 {
		return
	}
	page, row := c.sidecar.pool(), &c.rows[len(c.rows)-1]
	row.breaks += page.breaks()
	row.ok += page.opened(c.t)
}

// judge prints the table and holds the counts to what they must be.
func (c *chaos) judge(seed uint64, whole int, size int64, small *load) {
	t := c.t
	t.Helper()
	text := fmt.Sprintf("\nseed %d: %d downloads of %d MiB in %.0f s\n| at | event | connections to it | breaks until the next | resumes |\n|---|---|---|---|---|\n", seed, chaosClients, size/mib,
		time.Since(c.begun).Seconds())
	for _, row := range c.rows {
		text += fmt.Sprintf("| %.1f s | %s | %d | %d | %d |\n", row.at.Seconds(), row.what, row.connections, row.breaks, row.ok)
	}
	page := c.sidecar.pool()
	broken, stalled := page.sum("arkvory_upstream_breaks_total", "broken"), page.sum("arkvory_upstream_breaks_total", "stalled")
	opened, ended, changed := page.opened(t), page.of(t, seriesResumeEnds), page.of(t, seriesChanged)
	text += fmt.Sprintf("\n| downloads with the right SHA-256 | breaks: broken + stalled | resumes | given up | object changed | small GETs, failed | slowest |\n|---|---|---|---|---|---|---|\n"+
		"| %d of %d | %d + %d = %d | %d | %d | %d | %d, %v | %v |\n", whole, chaosClients, broken, stalled, broken+stalled, opened, ended, changed, small.due, small.failures(),
		small.quantile(1).Round(time.Millisecond))
	text += fmt.Sprintf("events: %v; generations activated %d, retired %d", c.counts, page.of(t, generationsThat("activated")), page.of(t, generationsThat("retired")))
	t.Log(text)
	if len(small.faults) > 0 {
		t.Logf("small GETs that failed (they began %.1f s before the events): %s", c.begun.Sub(small.begun).Seconds(), strings.Join(small.faults, "; "))
	}
	if whole != chaosClients || small.ok != small.due {
		t.Errorf("%d of %d downloads and %d of %d small GETs succeeded", whole, chaosClients, small.ok, small.due)
	}
	if broken+stalled != opened || ended != 0 || changed != 0 {
		t.Errorf("%d breaks, %d resumes, %d given up, %d changed", broken+stalled, opened, ended, changed)
	}
	if gateScale(t) == 1 && (broken == 0 || stalled == 0 || c.counts["wrong"] == 0 || c.counts["dropped"] == 0 || c.counts["starts"] == 0) {
		t.Error("chaos without one of its kinds shows nothing: another seed")
	}
	c.sidecar.settle(10*time.Second, (*readiness).counters)
}

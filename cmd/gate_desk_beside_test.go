//go:build gate

package house_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// What else the process does is measured in rounds of three segments: nobody looks; a console looks; and nobody looks while an unrelated process takes as much
// of the processors, in bursts as often and as long, as the console and its answers took. The last is the control: two cores are shorter by that time whoever
// takes it, so that what the looks themselves hold up, by locks, collections of garbage and the like, is the second beside the third.
const (
	besideRounds    = 12
	besideSpan      = 2500 * time.Millisecond
	calibrateRounds = 3 // of the first two, before the control is known
)

// side is a segment of a round.
type side int

const (
	quiet side = iota
	looked
	control
	sidesCount
)

func (s side) String() string {
	return [...]string{"without a console", "with a console", "control"}[s]
}

// besideOf is what one segment, or all of a side, measured.
type besideOf struct {
	tiny, relay, tick []time.Duration
	own               time.Duration // processor time of the sidecar
	other             time.Duration // of the console's process, or of the control
	looks             int
}

func (b *besideOf) add(o besideOf) {
	b.tiny, b.relay, b.tick = append(b.tiny, o.tiny...), append(b.relay, o.relay...), append(b.tick, o.tick...)
	b.own, b.other, b.looks = b.own+o.own, b.other+o.other, b.looks+o.looks
}

// beside measures the rounds.
func (d *desk) beside() {
	d.t.Helper()
	c := startConsole(d.t)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	segment := func(s side, burst time.Duration) besideOf { return d.segment(client, c, s, burst) }
	var all [sidesCount]besideOf
	var known [2]besideOf
	for range calibrateRounds {
		for s := range known {
			known[s].add(segment(side(s), 0))
		}
	}
	rounds := make([][sidesCount]besideOf, besideRounds)
	for n := range rounds {
		took := known[looked].other + max(known[looked].own-known[quiet].own, 0)
		burst := took / time.Duration(max(known[looked].looks, 1))
		for turn := range sidesCount {
			s := (side(n) + turn) % sidesCount // who is first changes
			rounds[n][s] = segment(s, burst)
			all[s].add(rounds[n][s])
			if s < control {
				known[s].add(rounds[n][s])
			}
		}
	}
	for s := range sidesCount {
		a := &all[s]
		d.t.Logf("%v: small requests %v; relays of 1 MiB %v; ticks %v; processor: sidecar %.0f ms a second, %d looks, console or control %.2f ms a look", s, sorted(a.tiny), sorted(a.relay),
			sorted(a.tick), a.own.Seconds()*1e3/(besideRounds*besideSpan.Seconds()), a.looks, a.other.Seconds()*1e3/float64(max(a.looks, 1)))
	}
	extra := (all[looked].own - all[quiet].own).Seconds() * 1e3 / float64(max(all[looked].looks, 1))
	d.t.Logf("a look takes the sidecar %.2f ms of a processor", extra)
	d.judge(rounds, &all)
}

// besideLimits are how much longer what is asked for beside a console may take than beside the control and beside nobody. Of relays the ninth decile is the last
// that is the sidecar's: now and then the kernel keeps a MiB waiting for windows to open, 35 ms here, straight from the origin more often than through the sidecar.
var besideLimits = []struct {
	name  string
	of    func(*besideOf) []time.Duration
	share float64
	than  [sidesCount]float64 // by the other side
}{
	{"small requests, p50", tinyOf, 0.5, [sidesCount]float64{quiet: 1.5, control: 1.25}},
	{"small requests, p99", tinyOf, 0.99, [sidesCount]float64{quiet: 2, control: 1.2}},
	{"relays of 1 MiB, p50", relayOf, 0.5, [sidesCount]float64{quiet: 1.5, control: 1.25}},
	{"relays of 1 MiB, p90", relayOf, 0.9, [sidesCount]float64{quiet: 2, control: 1.3}},
}

func tinyOf(b *besideOf) []time.Duration  { return b.tiny }
func relayOf(b *besideOf) []time.Duration { return b.relay }

// besideRatio is how much longer one side took than another: the median of the rounds, each compared in itself, and that of all requests together. Noise that fell on
// one side is seldom in both.
func besideRatio(rounds [][sidesCount]besideOf, all *[sidesCount]besideOf, over, than side, share float64, of func(*besideOf) []time.Duration) (median, together float64, each []float64) {
	for i := range rounds {
		each = append(each, float64(sorted(of(&rounds[i][over])).at(share))/float64(max(sorted(of(&rounds[i][than])).at(share), 1)))
	}
	slices.Sort(each)
	return each[len(each)/2], float64(sorted(of(&all[over])).at(share)) / float64(max(sorted(of(&all[than])).at(share), 1)), each
}

// judge compares a console with the control, and with nobody.
func (d *desk) judge(rounds [][sidesCount]besideOf, all *[sidesCount]besideOf) {
	d.t.Helper()
	for _, l := range besideLimits {
		for _, than := range []side{control, quiet} {
			median, together, each := besideRatio(rounds, all, looked, than, l.share, l.of)
			d.t.Logf("%s with a console to %v: median of %d rounds x%.2f (%.2f..%.2f), all together x%.2f, limit %.2f", l.name, than, len(each), median, each[0], each[len(each)-1], together, l.than[than])
			if min(median, together) > l.than[than] {
				d.t.Errorf("%s are slowed by a console: x%.2f and x%.2f of %v", l.name, median, together, than)
			}
		}
		median, together, _ := besideRatio(rounds, all, control, quiet, l.share, l.of)
		d.t.Logf("%s, %v to %v: median x%.2f, all together x%.2f", l.name, control, quiet, median, together)
	}
	for _, kind := range []struct {
		name string
		of   func(*besideOf) []time.Duration
	}{{"small requests", tinyOf}, {"relays", relayOf}, {"ticks", func(b *besideOf) []time.Duration { return b.tick }}} {
		without, with := sorted(kind.of(&all[quiet])), sorted(kind.of(&all[looked]))
		if len(with) < 50 || with.at(1) > 3*without.at(1)+50*time.Millisecond {
			d.t.Errorf("%s pause for a console: %v without, %v with", kind.name, without, with)
		}
	}
	if without, with := sorted(all[quiet].tick), sorted(all[looked].tick); with.at(0.5) > 2*without.at(0.5)+time.Millisecond || with.at(0.9) > 2*without.at(0.9)+2*time.Millisecond {
		d.t.Errorf("ticks are slowed by a console: %v without, %v with", without, with)
	}
}

var tickSeconds = regexp.MustCompile(`(?m)^arkvory_queue_tick_seconds (\S+)$`)

// segment measures one span.
func (d *desk) segment(client *http.Client, c *consoleProcess, s side, burst time.Duration) (b besideOf) {
	until := time.Now().Add(besideSpan)
	var all sync.WaitGroup
	begun := d.processor()
	all.Go(func() { d.times(client, until, "/tiny", kib, 4*time.Millisecond, &b.tiny) })
	all.Go(func() { d.times(client, until, "/relay", mib, 15*time.Millisecond, &b.relay) })
	all.Go(func() {
		for ; time.Now().Before(until); pause(400 * time.Millisecond) {
			match := tickSeconds.FindSubmatch(d.call("GET", "/metrics", "").body)
			if match == nil {
				d.t.Error("no tick in the metrics")
				return
			}
			seconds, _ := strconv.ParseFloat(string(match[1]), 64)
			b.tick = append(b.tick, time.Duration(seconds*1e9))
		}
	})
	switch s {
	case looked:
		all.Go(func() { b.looks, b.other = c.run(consoleOrder{Span: besideSpan, Base: "http://" + d.admin + deskPath}) })
	case control:
		all.Go(func() { b.looks, b.other = c.run(consoleOrder{Span: besideSpan, Burst: burst}) })
	}
	all.Wait()
	b.own = d.processor() - begun
	return b
}

// times asks one after the other.
func (d *desk) times(client *http.Client, until time.Time, path string, size int64, every time.Duration, into *[]time.Duration) {
	for time.Now().Before(until) {
		begun := time.Now()
		response, err := client.Get("http://" + d.listen + path)
		n := int64(0)
		if err == nil {
			n, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		if err != nil || n != size {
			d.t.Errorf("%s: %d bytes, %v", path, n, err)
			return
		}
		*into = append(*into, time.Since(begun))
		pause(every)
	}
}

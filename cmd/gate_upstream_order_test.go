//go:build gate

package house_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/arkvory/sidecar/queue/replay"
)

// judge holds what the clients saw, and the log, to what an outage may do.
func (o *outage) judge(rows, log string) {
	t := o.t
	t.Helper()
	t.Logf("\n| state | waiting | started, total | fed | coverage | dials that failed |\n|---|---|---|---|---|---|\n%s", rows)
	failed, retries := 0, 0
	for _, c := range o.clients {
		retries += c.retries
		if c.err != nil {
			failed++
			kind := map[bool]string{true: "plain", false: "protocol"}[c.id == ""]
			if failed <= 12 {
				t.Errorf("client %d (%s, occupies %v): %v", c.n, kind, c.occupies, c.err)
			}
		}
	}
	told := o.judgeAnswers()
	var silence, quiet time.Duration
	for _, c := range o.clients {
		silence, quiet = max(silence, c.silence), max(quiet, c.quiet)
	}
	t.Logf("\n| clients | whole | answers in the outage to waiting protocol clients | with Retry-After (s) | places kept | longest silence of a fed client: ever, of one that began in the outage | retries |\n"+
		"|---|---|---|---|---|---|---|\n| %d + %d | %d | %d: %s | %d (%d to %d) | %d of %d | %v, %v | %d |\n", outageSlots, outageWaiting, len(o.clients)-failed, told.answers, told.statuses(), told.told, told.shortest,
		told.longest, told.kept, told.clients, silence.Round(100*time.Millisecond), quiet.Round(100*time.Millisecond), retries)
	if failed > 0 {
		t.Errorf("%d of %d clients failed", failed, len(o.clients))
	}
	o.sidecar.settle(15*time.Second, (*readiness).counters)
	o.judgeOrder(wholeLog(t, log))
}

// answersTold sums the answers to those who waited in the outage.
type answersTold struct {
	answers, told, shortest, longest int
	byStatus                         map[string]int
	clients, kept                    int
}

func (a *answersTold) statuses() string { return strings.Trim(fmt.Sprint(a.byStatus), "map[]") }

// judgeAnswers goes through what the waiting protocol clients were told.
func (o *outage) judgeAnswers() answersTold {
	t := o.t
	t.Helper()
	sum := answersTold{byStatus: map[string]int{}}
	for _, c := range o.clients {
		if c.id == "" {
			continue
		}
		var before, first outageAnswer
		kept := true
		for _, a := range c.told {
			if first.arrival == "" {
				first = a
			}
			if a.arrival != "" && !sameArrival(a.arrival, first.arrival) {
				kept = false
				t.Errorf("client %d: the ticket's arrival changed from %s to %s", c.n, first.arrival, a.arrival)
			}
			if in := o.down.has(a.at); in && !c.occupies {
				sum.answers++
				sum.byStatus[strconv.Itoa(a.status)+" "+a.reason]++
				seconds, err := strconv.Atoi(a.retry)
				if a.status != 503 || err != nil || seconds < 1 {
					t.Errorf("client %d in the outage: status %d %s, Retry-After %q", c.n, a.status, a.reason, a.retry)
				} else {
					sum.told++
					sum.longest = max(sum.longest, seconds)
					if sum.shortest == 0 || seconds < sum.shortest {
						sum.shortest = seconds
					}
				}
				if before.position > 0 && (a.position == 0 || a.position > before.position+outageSlots) { // those that ran come before it when they wait again
					kept = false
					t.Errorf("client %d was %d. before and is %d. in the outage", c.n, before.position, a.position)
				}
			}
			if a.position > 0 && !o.down.has(a.at) {
				before = a
			}
		}
		if !c.occupies {
			sum.clients++
			if kept {
				sum.kept++
			}
		}
	}
	if sum.answers == 0 {
		t.Error("no waiting client asked in the outage")
	}
	return sum
}

// sameArrival compares the arrivals of two tickets: milliseconds, base 36. Each signing reads two clocks one after another.
func sameArrival(a, b string) bool {
	x, err := strconv.ParseInt(a, 36, 64)
	y, other := strconv.ParseInt(b, 36, 64)
	return err == nil && other == nil && max(x-y, y-x) <= 10
}

// judgeOrder reads the starts after the outage off the log and counts for each who arrived before it and still waits.
func (o *outage) judgeOrder(log []byte) {
	t := o.t
	t.Helper()
	byKey := map[string]*outageClient{}
	for _, c := range o.clients {
		name := "addr:" + source(c.n).IP.String()
		if c.id != "" {
			name = "id:" + c.id
		}
		byKey[replay.Hash(name)] = c
	}
	arrival, waiters, started := map[*outageClient]time.Duration{}, map[uint64]*outageClient{}, map[*outageClient]bool{}
	var starts []*outageClient
	begin := func(c *outageClient, is bool) {
		if c != nil && is && !started[c] {
			started[c] = true
			starts = append(starts, c)
		}
	}
	if err := replay.Parse(bytes.NewReader(log), func(e *replay.Event) error {
		if e.Op == replay.OpAsk || e.Op == replay.OpHold {
			c := byKey[e.Ask.Key.Client]
			if _, known := arrival[c]; c != nil && !known {
				arrival[c] = e.Now
			}
			if e.Waiter != 0 {
				waiters[e.Waiter] = c
			}
			begin(c, e.Verdict.Started)
		}
		for i := range e.Settled {
			begin(waiters[e.Settled[i].Waiter], e.Settled[i].Verdict.Started)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ahead, worst, beyond := map[int]int{}, 0, 0
	for i, c := range starts {
		n := 0
		for _, later := range starts[i+1:] {
			if arrival[later]+crowdSame < arrival[c] {
				n++
			}
		}
		ahead[n]++
		if worst = max(worst, n); n >= 2*outageSlots {
			beyond++
		}
		if n >= 4*outageSlots {
			t.Errorf("client %d started as the %d. with %d before it still waiting", c.n, i+1, n)
		}
	}
	if beyond*20 > len(starts) {
		t.Errorf("%d of %d starts had more before them than Q7 lets come", beyond, len(starts))
	}
	t.Logf("\n| starts | with up to %d of earlier arrivals still waiting | beyond | the most | starts by that number |\n|---|---|---|---|---|\n| %d | %d | %d | %d | %v |\n",
		2*outageSlots-1, len(starts), len(starts)-beyond, beyond, worst, ahead)
	if len(starts) != outageSlots+outageWaiting {
		t.Errorf("%d starts in the log, want %d", len(starts), outageSlots+outageWaiting)
	}
}

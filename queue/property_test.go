package queue

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// envNumber reads a number that steers the random histories: ARKVORY_SEED replays the run of another seed, ARKVORY_HISTORIES says
// how many.
func envNumber(t testing.TB, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("cannot read %s %q: must be a whole number, for example %d", name, text, otherwise)
	}
	return n
}

// found is the first failing history of a run.
type found struct {
	at  uint64
	err error
}

// search plays histories of a seed on all cores until one fails or all have passed.
func search(seed, histories uint64, wrap func(*Scheduler) subject) (failed *found, played uint64, sum result) {
	var (
		next  atomic.Uint64
		done  atomic.Uint64
		mutex sync.Mutex
		group sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= histories {
					return
				}
				res, err := play(randomHistory(seed, i), wrap)
				done.Add(1)
				mutex.Lock()
				sum.steps, sum.starts, sum.undecided = sum.steps+res.steps, sum.starts+res.starts, sum.undecided+res.undecided
				sum.seen = sum.seen.plus(res.seen)
				if err != nil && (failed == nil || i < failed.at) {
					failed = &found{i, err}
					next.Store(histories)
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return failed, done.Load(), sum
}

// TestQ3_Q19_RandomHistoriesAgreeWithTheOracle plays ARKVORY_HISTORIES random histories (the default is for a quick run;
// make check asks for 100,000) of ARKVORY_SEED against the oracle and the invariants.
func TestQ3_Q19_RandomHistoriesAgreeWithTheOracle(t *testing.T) {
	seed := envNumber(t, "ARKVORY_SEED", 20261130)
	histories := envNumber(t, "ARKVORY_HISTORIES", 5000)
	if slower > 1 {
		histories = min(histories, 3000)
	}
	failed, played, sum := search(seed, histories, nil)
	t.Logf("seed %d: %d histories, %d events, %d starts; %d questions left to the core", seed, played, sum.steps, sum.starts, sum.undecided)
	t.Logf("%d changes of windows, %d actions of an operator, %d sessions waved through in a dry run", sum.seen.windows, sum.seen.acts, sum.seen.waved)
	t.Logf("%d peeks were ready, %d bundles of several objects got all of them, %d sessions started in the grace after a restart, %d were passed by as overdue",
		sum.seen.ready, sum.seen.bundles, sum.seen.returned, sum.seen.overdue)
	if least := int(histories / 100); failed == nil && (sum.seen.ready < least || sum.seen.bundles < least || sum.seen.returned < least || sum.seen.overdue < least/10 || sum.seen.windows < least ||
		sum.seen.acts < least || sum.seen.waved < least/10) {
		t.Error("too little of that happens in the histories")
	}
	if failed == nil {
		return
	}
	short, err := shrink(randomHistory(seed, failed.at), func(h history) error { _, err := play(h, nil); return err })
	t.Fatalf("history %d of seed %d: %v\nshortest: %v\n%v", failed.at, seed, failed.err, err, short)
}

// TestQ3_Q19_RapidHistories lets rapid draw the same events, for its own way to a shortest failure.
func TestQ3_Q19_RapidHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := number(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") })
		h := history{policy: draw.bits()}
		for range rapid.IntRange(0, 40).Draw(rt, "events") {
			h.events = append(h.events, draw.event())
		}
		if _, err := play(h, nil); err != nil {
			rt.Fatal(fmt.Sprintf("%v\n%v", err, h))
		}
	})
}

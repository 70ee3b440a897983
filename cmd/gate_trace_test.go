//go:build gate

package house_test

import (
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/bucket"
)

// point is one observation of a growing number of bytes: between the moments from and to it grew from before to after.
type point struct {
	from, to      time.Duration
	before, after int64
}

// excess returns by how many bytes the worst interval of a trace exceeds rate*length + burst, over all pairs of points, in one
// pass; negative when every interval stays below. The interval from point i to point j has the bytes after(j) - before(i)
// and is at most to(j) - from(i) long, so with R(x) = rate*x the least value of before(i) - R(from(i)) so far bounds all i
// at once. Intervals with other ends hold no more bytes than the one between the points inside them, and are longer.
func excess(points []point, rate, burst int64) float64 {
	worst, least := -float64(burst), 0.0
	for i, p := range points {
		start := float64(p.before) - float64(rate)*p.from.Seconds()
		if i == 0 || start < least {
			least = start
		}
		worst = max(worst, float64(p.after)-float64(rate)*p.to.Seconds()-least-float64(burst))
	}
	return worst
}

// excessByPairs is the definition that excess computes.
func excessByPairs(points []point, rate, burst int64) float64 {
	worst := -float64(burst)
	for i, p := range points {
		for _, q := range points[i:] {
			worst = max(worst, float64(q.after-p.before)-float64(rate)*(q.to-p.from).Seconds()-float64(burst))
		}
	}
	return worst
}

// TestGateB1_CheckerAgreesWithItsDefinition holds the one-pass check against all pairs, on traces within and beyond the bound.
func TestGateB1_CheckerAgreesWithItsDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	within, beyond := 0, 0
	for range 500 {
		var points []point
		var at time.Duration
		var sum int64
		for range 1 + random.IntN(30) {
			at += time.Duration(random.Int64N(int64(20 * time.Millisecond)))
			end, n := at+time.Duration(random.Int64N(int64(time.Millisecond))), random.Int64N(15_000)
			points = append(points, point{at, end, sum, sum + n})
			sum, at = sum+n, end
		}
		got, want := excess(points, 1_000_000, 20_000), excessByPairs(points, 1_000_000, 20_000)
		if diff := got - want; diff > 1e-3 || diff < -1e-3 {
			t.Fatalf("one pass says %g, all pairs %g: %v", got, want, points)
		}
		if want > 0 {
			beyond++
		} else {
			within++
		}
	}
	if within < 50 || beyond < 50 {
		t.Fatalf("%d traces within the bound and %d beyond: too one-sided to tell", within, beyond)
	}
}

// trace records what all clients together receive. Moments are taken under the lock, so they never go back.
type trace struct {
	start  time.Time
	mu     sync.Mutex
	sum    int64
	points []point
}

func (r *trace) note(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Since(r.start)
	r.points = append(r.points, point{at, at, r.sum, r.sum + int64(n)})
	r.sum += int64(n)
}

// reader notes what passes it.
type reader struct {
	io.Reader
	trace *trace
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.trace.note(n)
	}
	return n, err
}

// TestGateB1_GrantsOfTheMainJob proves the bound exactly, where it is defined: at the grants. The governor runs in virtual time
// under the streams of the main job (20 principals of 256 MiB, four at once, alternately one stream and four streams of 8 MiB
// ranges, each pausing between its quanta as a socket would make it), and every grant is in the trace with its exact
// moment. The same job against the real process, where the moments of single grants cannot be seen, is TestGateMainJob.
func TestGateB1_GrantsOfTheMainJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := bucket.Limit{BytesPerSecond: jobRate}
		governor := bucket.NewGovernor(limit, bucket.Limit{}, bucket.SystemClock())
		defer governor.Close()
		granted := &trace{start: time.Now()}
		slots := make(chan struct{}, jobSlots)
		var clients sync.WaitGroup
		for client := range jobClients {
			clients.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				takeObject(t, governor, granted, client)
			})
		}
		clients.Wait()
		if granted.sum != jobClients*jobSize {
			t.Errorf("granted %d bytes, the job has %d", granted.sum, jobClients*jobSize)
		}
		if over := excess(granted.points, limit.BytesPerSecond, limit.Burst()); over > 1 {
			t.Errorf("an interval exceeds rate x time + burst by %.0f bytes", over)
		}
		took := time.Since(granted.start).Seconds()
		if least := float64(jobClients*jobSize-limit.Burst()) / float64(jobRate); took < least || took > 1.005*least {
			t.Errorf("the job took %.2f s of virtual time, %.2f at the full rate", took, least)
		}
		t.Logf("%d grants in %.2f s of virtual time", len(granted.points), took)
	})
}

// takeObject takes one object's bytes: even clients by four streams, range by range, odd ones by one.
func takeObject(t *testing.T, governor *bucket.Governor, granted *trace, client int) {
	streams, piece := 1, jobSize
	if client%2 == 0 {
		streams, piece = 4, jobRange
	}
	ranges := make(chan int64, jobSize/piece)
	for range jobSize / piece {
		ranges <- piece
	}
	close(ranges)
	var running sync.WaitGroup
	for i := range streams {
		random := rand.New(rand.NewPCG(uint64(client), uint64(i)))
		running.Go(func() {
			for left := range ranges {
				stream := governor.Open(source(client).String())
				for left > 0 {
					n, err := stream.Take(left, nil)
					if err != nil {
						t.Error(err)
						return
					}
					granted.note(int(n))
					left -= n
					pause(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
				}
				stream.Close()
			}
		})
	}
	running.Wait()
}

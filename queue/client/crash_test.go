package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestC3_CrashBetweenAnyTwoOperations kills the process, or the power, before the n-th operation on files for every n, and
// lets the next process finish: it always ends byte-exact, and the place in the queue is kept from the first answer on.
func TestC3_CrashBetweenAnyTwoOperations(t *testing.T) {
	want := noise(20, 400_000)
	for _, powerCut := range []bool{false, true} {
		for n := 1; ; n++ {
			finished := false
			in(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(n), 7))
				o := newOrigin(want)
				o.pace = time.Second // several checkpoints in one run
				o.script = func(n int, _ *http.Request) (*http.Response, error) {
					if n == 0 {
						return status(503, "Retry-After", "5", fieldTicket, "2.t.t.t")
					}
					return nil, nil
				}
				d := newMemDisk()
				d.dieAt = n
				r := newTrial(t, o)
				r.disk, r.opts.RangeBytes, r.opts.Parallel = d, 100_000, 2
				_, err := r.run(t.Context())
				finished = err == nil
				if !finished && !errors.Is(err, errDead) {
					t.Errorf("operation %d: %v", n, err)
				}
				asked := len(o.seen())
				r.disk = d.restart(random, powerCut)
				result, err := r.run(t.Context())
				if err != nil {
					t.Fatalf("operation %d, power cut %v: %v", n, powerCut, err)
				}
				r.right(result, want)
				if requests := o.seen(); asked > 0 && len(requests) > asked && !finished {
					next := requests[asked]
					if next.id != requests[0].id && d.names["/d/out"] == nil {
						t.Errorf("operation %d: another id after the crash", n)
					}
				}
			})
			if finished {
				if n < 40 {
					t.Fatalf("only %d operations", n)
				}
				break
			}
		}
	}
}

// TestC3_PropertyNeverWrongBytes: a random schedule of faults, kills, power cuts, cancels, busy answers and changes of the
// object, there and back again, ends with the exact bytes of one of its states or with an error, never with others.
func TestC3_PropertyNeverWrongBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Sizes and probabilities come from the seed: drawn ones would nearly always be small, and small objects have no story.
		seed := rapid.Uint64().Draw(rt, "seed")
		shape := rapid.SampledFrom([]string{"strong", "strong", "weak", "none", "rangeless", "chunked", "ignores If-Range"}).Draw(rt, "shape")
		random := rand.New(rand.NewPCG(seed, 3))
		s := story{t: t, random: random, shape: shape, size: random.IntN(300_000), rare: 4 << random.IntN(6), flips: 8 << random.IntN(5)}
		if random.IntN(10) == 0 {
			s.size = random.IntN(3)
		}
		synctest.Test(t, func(t *testing.T) {
			s.t = t
			s.play([]int64{4096, 20_000, 100_000, 1 << 20}[random.IntN(4)], 1+random.IntN(5), random.IntN(8))
		})
	})
}

type story struct {
	t      *testing.T
	random *rand.Rand
	size   int
	shape  string
	rare   int // one request in so many meets a fault
	flips  int // at one request in so many the object changes
}

// play runs one story: rounds of trouble, then a round without.
func (s story) play(rangeBytes int64, parallel, rounds int) {
	versions := [][]byte{noise(s.random.Uint64(), s.size), noise(s.random.Uint64(), s.size), noise(s.random.Uint64(), s.size+1)}
	o := newOrigin(nil)
	put := func(v int) {
		tag := fmt.Sprintf(`"v%d"`, v)
		if s.shape == "weak" {
			tag = "W/" + tag
		}
		if s.shape == "none" {
			tag = ""
		}
		o.change(versions[v], tag)
	}
	o.rangeless, o.chunked = s.shape == "rangeless" || s.shape == "chunked", s.shape == "chunked"
	o.pace = 300 * time.Millisecond
	put(0)
	r := newTrial(s.t, o)
	r.opts.RangeBytes, r.opts.Parallel = rangeBytes, parallel
	disk := newMemDisk()
	disk.lag = time.Duration(s.random.IntN(2)) * time.Second
	for round := 0; ; round++ {
		calm := round >= rounds
		disk.dieAt = 0
		if !calm && s.random.IntN(3) > 0 {
			disk.dieAt = 1 + s.random.IntN(120)
		}
		o.script = s.trouble(o, put, calm)
		r.disk = disk
		ctx, cancel := context.WithCancel(context.Background())
		if !calm && s.random.IntN(3) == 0 {
			time.AfterFunc(time.Duration(s.random.Int64N(int64(20*time.Second))), cancel)
		}
		result, err := r.run(ctx)
		cancel()
		switch {
		case err == nil:
			s.check(r, result, versions)
			return
		case calm && s.shape != "ignores If-Range" || !known(err):
			s.t.Fatalf("round %d: %v", round, err)
		case calm:
			return // a server that lies about its tags may only be told by an error
		}
		disk = disk.restart(s.random, s.random.IntN(2) == 0)
	}
}

// known reports whether an error is one of those that the package promises.
func known(err error) bool {
	for _, one := range []error{errDead, context.Canceled, ErrBudget, ErrChanged} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (s story) check(r *trial, result Result, versions [][]byte) {
	for _, one := range versions {
		if result.SHA256 == sha(one) {
			r.right(result, one)
			return
		}
	}
	s.t.Fatal("the file is none of the object's states")
}

// trouble is a server with faults. Everything random is drawn under the lock of the script, but the order of parallel
// requests is the scheduler's.
func (s story) trouble(o *origin, put func(int), calm bool) func(int, *http.Request) (*http.Response, error) {
	lock := make(chan struct{}, 1)
	return func(_ int, r *http.Request) (*http.Response, error) {
		lock <- struct{}{}
		defer func() { <-lock }()
		if calm {
			return nil, nil
		}
		if s.random.IntN(s.flips) == 0 {
			put(s.random.IntN(3))
		}
		if s.shape == "ignores If-Range" {
			r.Header.Del("If-Range")
		}
		switch s.random.IntN(s.rare) {
		case 0:
			return status(503, "Retry-After", "3", fieldTicket, "2.t.t.t")
		case 1:
			return nil, errReset
		case 2:
			return status(502)
		case 3:
			return cut(o.serve(r), s.random.IntN(40_000), io.ErrUnexpectedEOF), nil
		case 4:
			response := o.serve(r)
			if b := response.Body.(*body); response.StatusCode == 206 && len(b.data) > 1 {
				response.Header.Set("Content-Range", "bytes 7-9/100")
			}
			return response, nil
		}
		return nil, nil
	}
}

// TestC3_ThereAndBackAgain: the object changes in mid-download, the process dies at any moment after that, and the object
// changes back. Bytes of the state between must not stand where the old checkpoint vouched for the first one's.
func TestC3_ThereAndBackAgain(t *testing.T) {
	first, between := noise(30, 560_000), noise(31, 560_000)
	for _, lag := range []time.Duration{0, 5 * time.Second} {
		for n := 1; ; n++ {
			finished := false
			in(t, func(t *testing.T) {
				o := newOrigin(first)
				o.etag, o.pace = `"first"`, time.Second
				o.script = func(n int, _ *http.Request) (*http.Response, error) {
					if n == 6 {
						o.change(between, `"between"`)
					}
					return nil, nil
				}
				d := newMemDisk()
				d.dieAt, d.lag = n, lag
				r := newTrial(t, o)
				r.disk, r.opts.RangeBytes, r.opts.Parallel = d, 70_000, 3
				_, err := r.run(t.Context())
				finished = err == nil
				o.script = nil
				o.change(first, `"first"`)
				r.disk = d.restart(rand.New(rand.NewPCG(uint64(n), 9)), false)
				if finished {
					return
				}
				result, err := r.run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := first
				if result.SHA256 == sha(between) { // it was whole when the process died, and is named as it was
					want = between
				}
				r.right(result, want)
			})
			if finished {
				if n < 50 {
					t.Fatalf("only %d operations", n)
				}
				break
			}
		}
	}
}

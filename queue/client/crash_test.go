package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestC3_CheckpointsThatCannotBeUsed: damaged ones start afresh and say so, foreign and newer ones stop the download before
// anything is lost.
func TestC3_CheckpointsThatCannotBeUsed(t *testing.T) {
	want := noise(21, 200_000)
	half := func(t *testing.T) (*trial, []byte) {
		o := newOrigin(want)
		o.script = func(n int, _ *http.Request) (*http.Response, error) {
			if n >= 1 {
				return status(404)
			}
			return nil, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes, r.opts.Parallel = 50_000, 1
		r.ends(ErrRefused)
		data, err := slurp(r.disk, "/d/out.arkvory", maxCheckpoint)
		if err != nil {
			t.Fatal(err)
		}
		o.script = nil
		return r, data
	}
	for name, change := range map[string]struct {
		edit  func(string) string
		fresh bool
		fails bool
	}{
		"as it was":     {func(s string) string { return s }, false, false},
		"one digit off": {func(s string) string { return strings.Replace(s, "50000]", "90000]", 1) }, true, false},
		"cut":           {func(s string) string { return s[:len(s)/2] }, true, false},
		"empty":         {func(string) string { return "" }, true, false},
		"not JSON":      {func(string) string { return "\x00\x01" }, true, false},
		"version 0":     {func(s string) string { return strings.Replace(s, `"version":1`, `"version":0`, 1) }, true, false},
		"newer":         {func(s string) string { return `{"version":2,"news":[]}` }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				r, data := half(t)
				if err := replace(r.disk, "/d/out.arkvory", []byte(change.edit(string(data)))); err != nil {
					t.Fatal(err)
				}
				if change.fails {
					r.ends(ErrCheckpoint)
					r.opts.Fresh = true
				}
				result := r.gets(want)
				if resumed := !change.fresh && !change.fails; result.Resumed != resumed || (r.count(Restarted) > 0) != change.fresh {
					t.Errorf("%+v, %d restarts", result, r.count(Restarted))
				}
			})
		})
	}
	for name, other := range map[string]struct {
		url  string
		same bool
	}{
		"another path":         {"http://store.test/files/other.iso?access=SECRETQUERY1", false},
		"another query":        {"http://store.test/files/big.iso?access=other", false},
		"another host":         {"http://other.test/files/big.iso?access=SECRETQUERY1", false},
		"the port written out": {"http://Store.test:80/files/big.iso?access=SECRETQUERY1#part", true},
		"the link signed anew": {"http://store.test/files/big.iso?access=SECRETQUERY1&X-Amz-Date=1&X-Amz-Signature=2", true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				r, _ := half(t)
				r.opts.URL = other.url
				if !other.same {
					r.ends(ErrCheckpoint)
					r.opts.URL = testURL // nothing was lost
				}
				if result := r.gets(want); !result.Resumed {
					t.Error("not resumed")
				}
			})
		})
	}
	t.Run("a shorter and a missing file", func(t *testing.T) {
		in(t, func(t *testing.T) {
			r, _ := half(t)
			file, _ := r.disk.open("/d/out.part")
			_ = file.Truncate(20_000)
			o := r.origin
			o.script = nil
			asked := len(o.seen())
			r.gets(want)
			if first := o.seen()[asked]; first.rng != "bytes=20000-49999" {
				t.Errorf("asked %s", first.rng)
			}
			r, _ = half(t)
			_ = r.disk.remove("/d/out.part")
			if r.gets(want).Resumed {
				t.Error("resumed from nothing")
			}
		})
	})
	t.Run("a longer file", func(t *testing.T) {
		in(t, func(t *testing.T) {
			r, _ := half(t)
			file, _ := r.disk.open("/d/out.part")
			_, _ = file.WriteAt(noise(1, 1000), 500_000)
			r.gets(want)
		})
	})
}

// TestC3_WholeButUnnamed: a file that was whole long ago is not taken for the object without a question.
func TestC3_WholeButUnnamed(t *testing.T) {
	want, next := noise(22, 200_000), noise(23, 200_000)
	for _, one := range []struct {
		age     time.Duration
		changed bool
		want    []byte
		asks    bool
	}{{time.Minute, true, want, false}, {time.Hour, false, want, true}, {time.Hour, true, next, true}} {
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			r := newTrial(t, o)
			d := newMemDisk()
			d.fault = func(operation, path string) error {
				if operation == "rename" && path == "/d/out.part" {
					return errors.New("not now")
				}
				return nil
			}
			r.disk = d
			r.ends(ErrDisk)
			d.fault = nil
			<-time.After(one.age)
			if one.changed {
				o.change(next, `"next"`)
			}
			asked := len(o.seen())
			r.gets(one.want)
			if (len(o.seen()) > asked) != one.asks {
				t.Errorf("%+v: %d questions", one, len(o.seen())-asked)
			}
		})
	}
}

// TestC3_TwoProcesses: the second is turned away while the first runs, by the checkpoint or by the output, and the lock
// goes with the process.
func TestC3_TwoProcesses(t *testing.T) {
	if path := os.Getenv("CLIENT_TEST_HOLD"); path != "" { // the other process
		release, err := osDisk{}.lock(path)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	folder := t.TempDir()
	output := filepath.Join(folder, "out")
	o := newOrigin(noise(1, 100))
	options := Options{URL: testURL, Output: output, Client: &http.Client{Transport: o}}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestC3_TwoProcesses$")
	other.Env = append(os.Environ(), "CLIENT_TEST_HOLD="+output+".arkvory.lock")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := Download(t.Context(), options); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), output) {
		t.Errorf("while the other holds it: %v", err)
	}
	_ = other.Process.Kill()
	_ = in.Close()
	_ = other.Wait()
	// Another checkpoint, the same file: the first stands still while it watches the second fail.
	second := options
	second.Checkpoint = filepath.Join(folder, "elsewhere")
	var turned error
	options.Observe = func(e Event) {
		if e.Kind == Connecting {
			_, turned = Download(t.Context(), second)
		}
	}
	if _, err := Download(t.Context(), options); err != nil {
		t.Errorf("after the other was killed: %v", err)
	}
	if !errors.Is(turned, ErrLocked) {
		t.Errorf("the same output with another checkpoint: %v", turned)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 2 { // the second's lock is gone, the file and no more
		for _, path := range left {
			if path != output {
				t.Errorf("left behind: %s", path)
			}
		}
	}
}

// TestC3_CheckpointIsPrivate: only its owner may read the ticket.
func TestC3_CheckpointIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path+".new", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := replace(osDisk{}, path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestC3_ServerShapes downloads the same bytes from servers of every kind, with and without a broken body.
func TestC3_ServerShapes(t *testing.T) {
	want := noise(2, 1<<20)
	old := time.Now().Add(-time.Hour)
	for _, one := range []struct {
		name     string
		shape    func(o *origin)
		parallel bool // whether ranges may go at once
	}{
		{"strong tag", func(*origin) {}, true},
		{"strong date", func(o *origin) { o.etag, o.modified = "", old.Add(-100*24*time.Hour*365) }, true},
		{"weak date", func(o *origin) { o.etag, o.modified = "", time.Now().Add(-time.Second) }, false},
		{"weak tag", func(o *origin) { o.etag = `W/"1"` }, false},
		{"no validator", func(o *origin) { o.etag = "" }, false},
		{"no ranges", func(o *origin) { o.rangeless = true }, false},
		{"chunked", func(o *origin) { o.rangeless, o.chunked = true, true }, false},
	} {
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, broken %v", one.name, broken), func(t *testing.T) {
				in(t, func(t *testing.T) {
					o := newOrigin(want)
					one.shape(o)
					o.pace = time.Millisecond
					var cuts atomic.Int32
					o.script = func(_ int, r *http.Request) (*http.Response, error) {
						response := o.serve(r)
						if response.StatusCode < 300 && broken && (one.parallel || response.StatusCode == 200) && cuts.Add(1) <= 3 {
							return cut(response, 50_000, io.ErrUnexpectedEOF), nil
						}
						return response, nil
					}
					r := newTrial(t, o)
					r.opts.RangeBytes = 100_000
					result := r.gets(want)
					most := 0
					for _, request := range o.seen() {
						most = max(most, request.inFlight)
						if !one.parallel && request.ifRange != "" {
							t.Errorf("If-Range %q without a strong validator", request.ifRange)
						}
					}
					if one.parallel != (most > 1) || broken != (result.Retries > 0) {
						t.Errorf("%d at once, %d retries", most, result.Retries)
					}
				})
			})
		}
	}
}

// TestC3_SmallObjects: of nothing, of one byte, of exactly one range.
func TestC3_SmallObjects(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 8192} {
		for _, parallel := range []int{1, 4} {
			in(t, func(t *testing.T) {
				want := noise(3, size)
				r := newTrial(t, newOrigin(want))
				r.opts.RangeBytes, r.opts.Parallel = 4096, parallel
				r.opts.Digest, _ = ParseDigest("sha256:" + sha(want))
				r.gets(want)
				if r.last(Done).Bytes != int64(size) || r.last(Done).Total != int64(size) {
					t.Errorf("%+v", r.last(Done))
				}
			})
		}
	}
}

// TestC3_RangesTellTheServerWhereTheDownloadStands: the first range names both ends from 0, and the last piece of all asks
// "from on", also after a resume, so that the queue sees where the download starts and that it is complete.
func TestC3_RangesTellTheServerWhereTheDownloadStands(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(4, 1_000_000)
		o := newOrigin(want)
		o.pace = time.Millisecond
		r := newTrial(t, o)
		r.opts.RangeBytes = 256 << 10
		r.opts.Parallel = 1
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			if n == 3 { // the last piece breaks and the client is stopped
				response := cut(o.serve(r), 65_000, nil)
				response.Body.(*body).stall = true
				time.AfterFunc(time.Second, cancel)
				return response, nil
			}
			return nil, nil
		}
		if _, err := r.run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		o.script = nil
		r.gets(want)
		var asked []string
		for _, one := range o.seen() {
			asked = append(asked, one.rng)
		}
		if got := strings.Join(asked, " "); got != "bytes=0-262143 bytes=262144-524287 bytes=524288-786431 bytes=786432- bytes=851432-" {
			t.Errorf("asked %s", got)
		}
	})
}

// TestC3_ObjectChanges: once means a new start, for ever an error, and never a mixture.
func TestC3_ObjectChanges(t *testing.T) {
	versions := [][]byte{noise(10, 1<<20), noise(11, 1<<20), noise(12, 1<<20)}
	for _, how := range []string{"200", "206 with another tag", "206 with another size", "416"} {
		t.Run(how, func(t *testing.T) {
			in(t, func(t *testing.T) {
				o := newOrigin(versions[0])
				o.pace = time.Millisecond
				o.script = func(n int, r *http.Request) (*http.Response, error) {
					if n != 5 {
						return nil, nil
					}
					next := versions[1]
					if how == "416" {
						next = next[:1000]
					}
					o.change(next, `"v1"`)
					if strings.HasPrefix(how, "206") || how == "416" { // a server that does not know If-Range
						r.Header.Del("If-Range")
					}
					response := o.serve(r)
					if how == "206 with another size" {
						response.Header.Set("ETag", `"`+sha(versions[0])[:12]+`"`)
						response.Header.Set("Content-Range", strings.ReplaceAll(response.Header.Get("Content-Range"), "/1048576", "/1048577"))
					}
					return response, nil
				}
				r := newTrial(t, o)
				r.opts.RangeBytes = 64 << 10
				want := versions[1]
				if how == "416" {
					want = want[:1000]
				}
				r.gets(want)
				if r.count(Restarted) != 1 {
					t.Errorf("%d restarts", r.count(Restarted))
				}
			})
		})
	}
	t.Run("for ever", func(t *testing.T) {
		in(t, func(t *testing.T) {
			o := newOrigin(versions[0])
			o.script = func(n int, r *http.Request) (*http.Response, error) {
				o.change(versions[n%3][n:], fmt.Sprintf(`"v%d"`, n))
				return nil, nil
			}
			r := newTrial(t, o)
			r.opts.RangeBytes = 64 << 10
			r.ends(ErrChanged)
			if r.count(Restarted) != maxRestarts || r.file() != nil {
				t.Errorf("%d restarts", r.count(Restarted))
			}
		})
	})
}

// TestC4_LiesAboutLength: more bytes than promised are cut, fewer are a fault, and another size than expected ends the
// download before the first byte.
func TestC4_LiesAboutLength(t *testing.T) {
	want := noise(5, 300_000)
	t.Run("longer", func(t *testing.T) {
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			o.script = func(_ int, r *http.Request) (*http.Response, error) {
				response := o.serve(r)
				response.ContentLength = -1
				b := response.Body.(*body)
				b.data = append(bytes.Clone(b.data), "and more than that"...)
				return response, nil
			}
			r := newTrial(t, o)
			r.opts.RangeBytes = 100_000
			r.gets(want)
		})
	})
	t.Run("shorter once", func(t *testing.T) {
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			o.script = func(n int, r *http.Request) (*http.Response, error) {
				response := o.serve(r)
				if n == 1 {
					response.Body.(*body).data = response.Body.(*body).data[:10]
				}
				return response, nil
			}
			r := newTrial(t, o)
			r.opts.RangeBytes = 100_000
			if result := r.gets(want); result.Retries != 1 {
				t.Errorf("%d retries", result.Retries)
			}
		})
	})
	for name, shape := range map[string]func(*origin){"ranges": func(*origin) {}, "one stream": func(o *origin) { o.rangeless = true }, "chunked": func(o *origin) { o.rangeless, o.chunked = true, true }} {
		for _, expected := range []int64{299_999, 300_001} {
			t.Run(fmt.Sprint(name, expected), func(t *testing.T) {
				in(t, func(t *testing.T) {
					o := newOrigin(want)
					shape(o)
					r := newTrial(t, o)
					r.opts.Size = expected
					r.ends(ErrSize)
					if len(o.seen()) != 1 || r.file() != nil {
						t.Errorf("%d requests", len(o.seen()))
					}
				})
			})
		}
	}
	t.Run("a close that ends the body is not trusted", func(t *testing.T) {
		in(t, func(t *testing.T) {
			o := newOrigin(want)
			o.rangeless, o.chunked = true, true
			o.script = func(n int, r *http.Request) (*http.Response, error) {
				response := o.serve(r)
				response.TransferEncoding = nil
				if n == 0 {
					response.Body.(*body).data = response.Body.(*body).data[:10]
				}
				return response, nil
			}
			r := newTrial(t, o)
			r.opts.Size = int64(len(want))
			if result := r.gets(want); result.Retries != 1 {
				t.Errorf("%+v", result)
			}
		})
	})
}

// TestC4_Digest: right, wrong (set aside, and the next run starts from the first byte), of both algorithms and both ways
// of summing.
func TestC4_Digest(t *testing.T) {
	want := noise(6, 500_000)
	for _, parallel := range []int{1, 4} {
		for _, algorithm := range []string{"sha256", "sha512"} {
			in(t, func(t *testing.T) {
				right := newSums(Digest{algorithm: "sha512"})
				right.add(want)
				sum := map[string]string{"sha256": right.hex(), "sha512": fmt.Sprintf("%x", right.sha512.Sum(nil))}[algorithm]
				o := newOrigin(want)
				r := newTrial(t, o)
				r.opts.RangeBytes, r.opts.Parallel = 100_000, parallel
				var err error
				if r.opts.Digest, err = ParseDigest(strings.ToUpper(algorithm + ":" + sum)); err != nil || r.opts.Digest.String() != algorithm+":"+sum {
					t.Fatal(r.opts.Digest, err)
				}
				o.change(noise(7, 500_000), `"bad"`)
				r.ends(ErrDigest)
				if bad, _ := slurp(r.disk, "/d/out.bad", 1<<30); !bytes.Equal(bad, noise(7, 500_000)) || r.file() != nil {
					t.Error("wrong bytes are not set aside")
				}
				_ = r.disk.remove("/d/out.bad")
				o.change(want, `"good"`)
				if result := r.gets(want); result.Resumed {
					t.Error("wrong bytes were resumed")
				}
				if (r.count(Verifying) > 0) != (parallel > 1) {
					t.Errorf("%d events of verifying with %d ranges", r.count(Verifying), parallel)
				}
			})
		}
	}
	for _, bad := range []string{"", "sha256", "md5:00", "sha256:00", "sha256:" + strings.Repeat("g", 64), "sha512:" + strings.Repeat("0", 64)} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("ParseDigest(%q) is fine", bad)
		}
	}
}

// TestC4_ProgressTellsRateAndTimeLeft on a server of known speed.
func TestC4_ProgressTellsRateAndTimeLeft(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(8, 8<<20)
		o := newOrigin(want)
		o.pace = 100 * time.Millisecond // 64 KiB each
		r := newTrial(t, o)
		r.opts.Parallel = 2
		right := 0
		r.watch = func(e Event) {
			if e.Kind != Downloading || e.Total != 8<<20 {
				return
			}
			rate := 640.0 * 1024
			if e.BytesPerSecond > rate*0.7 && e.BytesPerSecond < rate*1.3 && (e.Left-time.Duration(float64(e.Total-e.Bytes)/rate*float64(time.Second))).Abs() < 5*time.Second {
				right++
			}
		}
		r.gets(want)
		if right < 20 {
			t.Errorf("%d of %d events are right", right, r.count(Downloading))
		}
	})
}

// TestC3_DiskFull is told at once, with the path, and the rest is kept for the next run.
func TestC3_DiskFull(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(9, 1<<20)
		o := newOrigin(want)
		d := newMemDisk()
		writes := 0
		d.fault = func(operation, path string) error {
			if operation == "write" && path == "/d/out.part" {
				if writes++; writes > 8 {
					return syscall.ENOSPC
				}
			}
			return nil
		}
		r := newTrial(t, o)
		r.disk = d
		r.opts.Parallel, r.opts.RangeBytes = 1, 128<<10
		if err := r.ends(ErrDisk); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/d/out.part") {
			t.Error(err)
		}
		d.fault = nil
		if result := r.gets(want); !result.Resumed {
			t.Error("not resumed")
		}
	})
}

package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testURL    = "http://store.test/files/big.iso?access=SECRETQUERY1"
	testSecret = "SECRETTOKEN2"
)

// noise is n bytes that differ with the seed.
func noise(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// seen is one request as the origin saw it.
type seen struct {
	at                              time.Time
	rng, ifRange, id, ticket, class string
	auth, encoding                  string
	host, query                     string
	inFlight                        int // requests running, this one too
}

// origin is a scripted server behind the client's transport. Without a script it serves data by the book.
type origin struct {
	mu       sync.Mutex
	data     []byte
	etag     string
	modified time.Time
	rangeless,
	chunked bool
	pace     time.Duration // of every read of 64 KiB at most
	requests []seen
	inFlight int
	sent     int64 // bytes of good answers that the client took
	// script answers request n (from 0) itself, or returns nil, nil to let the origin.
	script func(n int, r *http.Request) (*http.Response, error)
}

func newOrigin(data []byte) *origin {
	return &origin{data: data, etag: `"` + sha(data)[:12] + `"`}
}

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	o.mu.Lock()
	n := len(o.requests)
	o.inFlight++
	h := r.Header
	o.requests = append(o.requests, seen{time.Now(), h.Get("Range"), h.Get("If-Range"), h.Get(fieldID), h.Get(fieldTicket), h.Get(fieldClass),
		h.Get("Authorization"), h.Get("Accept-Encoding"), r.URL.Host, r.URL.RawQuery, o.inFlight})
	script := o.script
	o.mu.Unlock()
	response, err := (*http.Response)(nil), error(nil)
	if script != nil {
		response, err = script(n, r)
	}
	if response == nil && err == nil {
		response = o.serve(r)
	}
	if err != nil {
		o.left()
		return nil, err
	}
	response.Request = r
	response.Body = &leaving{response.Body, sync.OnceFunc(o.left), o, response.StatusCode == 200 || response.StatusCode == 206}
	return response, nil
}

func (o *origin) left() {
	o.mu.Lock()
	o.inFlight--
	o.mu.Unlock()
}

// leaving counts a request out when its body is closed.
type leaving struct {
	io.ReadCloser
	leave func()
	o     *origin
	good  bool
}

func (l *leaving) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.good {
		l.o.mu.Lock()
		l.o.sent += int64(n)
		l.o.mu.Unlock()
	}
	return n, err
}

func (l *leaving) Close() error { l.leave(); return l.ReadCloser.Close() }

// change puts another object in place.
func (o *origin) change(data []byte, etag string) {
	o.mu.Lock()
	o.data, o.etag = data, etag
	o.mu.Unlock()
}

func (o *origin) seen() []seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]seen(nil), o.requests...)
}

// serve answers as RFC 9110 says.
func (o *origin) serve(r *http.Request) *http.Response {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	if o.etag != "" {
		h.Set("ETag", o.etag)
	}
	if !o.modified.IsZero() {
		h.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	}
	from, to, ranged := askedRange(r, int64(len(o.data)))
	if condition := r.Header.Get("If-Range"); condition != "" && (condition != o.etag && condition != h.Get("Last-Modified") || strings.HasPrefix(condition, "W/")) {
		ranged = false
	}
	if o.rangeless || !ranged {
		from, to = 0, int64(len(o.data))
		body := &body{ctx: r.Context(), data: o.data, pace: o.pace}
		if o.chunked {
			response := answer(200, h, body, -1)
			response.TransferEncoding = []string{"chunked"}
			return response
		}
		return answer(200, h, body, to-from)
	}
	if from >= int64(len(o.data)) {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", len(o.data)))
		return answer(416, h, &body{ctx: r.Context()}, 0)
	}
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(o.data)))
	return answer(206, h, &body{ctx: r.Context(), data: o.data[from:to], pace: o.pace}, to-from)
}

// askedRange reads "bytes=a-" and "bytes=a-b".
func askedRange(r *http.Request, size int64) (from, to int64, ok bool) {
	rest, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !ok {
		return 0, size, false
	}
	first, last, _ := strings.Cut(rest, "-")
	from, _ = strconv.ParseInt(first, 10, 64)
	to = size
	if last != "" {
		end, _ := strconv.ParseInt(last, 10, 64)
		to = min(end+1, size)
	}
	return from, to, true
}

func answer(status int, h http.Header, b io.ReadCloser, length int64) *http.Response {
	return &http.Response{StatusCode: status, Header: h, Body: b, ContentLength: length, ProtoMajor: 1, ProtoMinor: 1}
}

// body gives data, slowly or not, and then ends, breaks or falls silent.
type body struct {
	ctx   context.Context
	data  []byte
	pace  time.Duration
	fail  error
	stall bool
}

func (b *body) Read(p []byte) (int, error) {
	var wait <-chan time.Time
	if b.pace > 0 {
		wait = time.After(b.pace)
	} else {
		ready := make(chan time.Time)
		close(ready)
		wait = ready
	}
	if len(b.data) == 0 && b.stall {
		wait = nil
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-wait:
	}
	if len(b.data) == 0 {
		if b.fail != nil {
			return 0, b.fail
		}
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *body) Close() error { return nil }

// cut makes an answer that gives only its first bytes and then breaks.
func cut(response *http.Response, bytes int, failure error) *http.Response {
	b := response.Body.(*body)
	if bytes < len(b.data) {
		b.data, b.fail = b.data[:bytes], failure
	}
	return response
}

// status is an answer without bytes; fields are pairs.
func status(code int, fields ...string) (*http.Response, error) {
	return statusBody(code, "", fields...)
}

func statusBody(code int, text string, fields ...string) (*http.Response, error) {
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return answer(code, h, io.NopCloser(strings.NewReader(text)), int64(len(text))), nil
}

var (
	errRefusedDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset       = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// trial is one download of a test, on a disk in memory unless the test brings another.
type trial struct {
	t      *testing.T
	origin *origin
	disk   disk
	opts   Options
	events []Event
	watch  func(Event)
	began  time.Time // for scripts
}

func newTrial(t *testing.T, o *origin) *trial {
	r := &trial{t: t, origin: o, disk: newMemDisk(), opts: Options{URL: testURL, Output: "/d/out", Header: http.Header{"Authorization": {"Bearer " + testSecret}}}}
	r.opts.Client = &http.Client{Transport: o}
	return r
}

// run downloads once.
func (r *trial) run(ctx context.Context) (Result, error) {
	r.t.Helper()
	r.opts.Observe = func(e Event) {
		r.events = append(r.events, e)
		if r.watch != nil {
			r.watch(e)
		}
	}
	o := r.opts
	if o.RangeBytes < minRange { // ranges of a few bytes make short stories
		o.RangeBytes = 0
	}
	s, err := settle(o)
	if err != nil {
		return Result{}, err
	}
	if r.opts.RangeBytes != 0 {
		s.RangeBytes = r.opts.RangeBytes
	}
	result, err := download(ctx, s, r.disk)
	r.noSecrets(err)
	return result, err
}

// noSecrets looks for the secrets of the test wherever somebody may see them.
func (r *trial) noSecrets(err error) {
	r.t.Helper()
	places := map[string]string{"error": fmt.Sprint(err), "error in full": fmt.Sprintf("%+v %#v", err, err), "events": fmt.Sprintf("%+v", r.events)}
	if data, err := slurp(r.disk, "/d/out.arkvory", maxCheckpoint); err == nil {
		places["checkpoint"] = string(data)
	}
	for where, text := range places {
		for _, secret := range []string{"SECRETQUERY1", testSecret} {
			if strings.Contains(text, secret) {
				r.t.Errorf("the %s tells %s: %s", where, secret, text)
			}
		}
	}
}

// file is what stands at the output.
func (r *trial) file() []byte {
	data, err := slurp(r.disk, r.opts.Output, 1<<40)
	if err != nil {
		return nil
	}
	return data
}

// gets checks that the download ended well with these bytes, and leaves nothing behind.
func (r *trial) gets(want []byte) Result {
	r.t.Helper()
	result, err := r.run(context.Background())
	if err != nil {
		r.t.Fatalf("download: %v", err)
	}
	r.right(result, want)
	return result
}

func (r *trial) right(result Result, want []byte) {
	r.t.Helper()
	if !bytes.Equal(r.file(), want) {
		r.t.Fatal("the file has wrong bytes")
	}
	if result.SHA256 != sha(want) || result.Bytes != int64(len(want)) {
		r.t.Fatalf("result %+v, want %d bytes with SHA-256 %s", result, len(want), sha(want))
	}
	if m, ok := r.disk.(*memDisk); ok {
		for name := range m.names {
			if name != r.opts.Output {
				r.t.Errorf("%s is left behind", name)
			}
		}
	}
}

// ends checks that the download ended with an error.
func (r *trial) ends(want error) error {
	r.t.Helper()
	_, err := r.run(context.Background())
	if !errors.Is(err, want) {
		r.t.Fatalf("error %v, want %v", err, want)
	}
	return err
}

// count is how many events of a kind there were.
func (r *trial) count(kind Kind) (n int) {
	for _, e := range r.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// last is the last event of a kind.
func (r *trial) last(kind Kind) Event {
	for i := len(r.events) - 1; i >= 0; i-- {
		if r.events[i].Kind == kind {
			return r.events[i]
		}
	}
	r.t.Fatalf("no event %v", kind)
	return Event{}
}

// setWall returns a moment whose wall clock is shifted while its monotonic reading, where it has one, is not: Add moves both.
func setWall(at time.Time, shift time.Duration) time.Time {
	if shift == 0 {
		return at
	}
	return at.Round(0).Add(shift)
}

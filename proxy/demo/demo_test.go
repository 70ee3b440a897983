package demo

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// smallOrigin serves objects of the same kinds that are quick to read whole.
func smallOrigin(t *testing.T) *Origin {
	t.Helper()
	release, err := archive("/release.tar", 64<<10, 1)
	if err != nil {
		t.Fatal(err)
	}
	o, err := start(text("/hello.txt", "text/plain; charset=utf-8", hello), release,
		&object{path: "/image.bin", mediaType: "application/octet-stream", size: 100_003, seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func do(t *testing.T, method, url string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b}
}

func whole(t *testing.T, o *object) []byte {
	t.Helper()
	b, err := io.ReadAll(o.reader())
	if err != nil || int64(len(b)) != o.size {
		t.Fatalf("read %d of %d bytes: %v", len(b), o.size, err)
	}
	return b
}

func TestP1_ObjectsHaveLengthTypeAndStrongValidators(t *testing.T) {
	o, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if !strings.HasPrefix(o.URL(), "http://127.0.0.1:") || strings.HasSuffix(o.URL(), "/") {
		t.Errorf("the URL is %q", o.URL())
	}
	for path, want := range map[string]struct {
		size      int64
		mediaType string
	}{
		"/":            {int64(len(index)), "text/html; charset=utf-8"},
		"/hello.txt":   {int64(len(hello)), "text/plain; charset=utf-8"},
		"/release.tar": {64 << 20, "application/x-tar"},
		"/image.bin":   {256 << 20, "application/octet-stream"},
	} {
		a := do(t, "HEAD", o.URL()+path)
		if a.status != 200 || a.header.Get("Content-Length") != strconv.FormatInt(want.size, 10) || a.header.Get("Content-Type") != want.mediaType ||
			a.header.Get("Accept-Ranges") != "bytes" || a.header.Get("Last-Modified") != "Thu, 01 Jan 2026 00:00:00 GMT" || len(a.body) != 0 {
			t.Errorf("HEAD %s: %d %v", path, a.status, a.header)
		}
		tag := a.header.Get("ETag")
		if len(tag) != 34 || tag[0] != '"' {
			t.Errorf("HEAD %s: the entity tag %s is not strong", path, tag)
		}
	}
}

func TestO1_ContentAndValidatorsAreTheSameInEveryRun(t *testing.T) {
	// digests over the first 64 KiB and the last 2 KiB; a second implementation of the package doc's formula gave the same
	o, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for path, want := range map[string][2]string{
		"/release.tar": {"3d4e264dad71b9c89b6412871b64890ea821358d9b0f675785a6948412c446ca", `"78eea08fa8bc38c24e867749ec156656"`},
		"/image.bin":   {"79f9566c24fd6290ffb041a91567750616e303869a246810447960ddfc182b93", `"fd619f15901d65eed6584e98d92899c4"`},
	} {
		first := do(t, "GET", o.URL()+path, "Range", "bytes=0-65535")
		last := do(t, "GET", o.URL()+path, "Range", "bytes=-2048")
		got := fmt.Sprintf("%x", sha256.Sum256(append(first.body, last.body...)))
		if first.status != 206 || last.status != 206 || got != want[0] || first.header.Get("ETag") != want[1] {
			t.Errorf("%s: %d, %d, digest %s, tag %s", path, first.status, last.status, got, first.header.Get("ETag"))
		}
	}
}

func TestC4_ChecksumsAreTrue(t *testing.T) {
	o := smallOrigin(t)
	a := do(t, "GET", o.URL()+"/SHA256SUMS")
	if a.status != 200 || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatalf("got %d %v", a.status, a.header)
	}
	var names []string
	for line := range strings.Lines(string(a.body)) {
		sum, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !found {
			t.Fatalf("line %q is not in the format of sha256sum", line)
		}
		body := do(t, "GET", o.URL()+"/"+name).body
		if got := fmt.Sprintf("%x", sha256.Sum256(body)); got != sum {
			t.Errorf("%s: the digest is %s, the file says %s", name, got, sum)
		}
		names = append(names, name)
	}
	if strings.Join(names, " ") != "hello.txt image.bin release.tar" {
		t.Errorf("the file names %v", names)
	}
	again := do(t, "GET", o.URL()+"/SHA256SUMS", "If-None-Match", a.header.Get("ETag"))
	if again.status != 304 {
		t.Errorf("the second time: %d, want 304", again.status)
	}
}

func TestO3_Ranges(t *testing.T) {
	o := smallOrigin(t)
	obj := o.objects["/image.bin"]
	all, tag := whole(t, obj), obj.etag()
	size := len(all)
	for _, c := range []struct {
		name     string
		headers  []string
		status   int
		from, to int // to is exclusive
	}{
		{"whole", nil, 200, 0, size},
		{"first byte", []string{"Range", "bytes=0-0"}, 206, 0, 1},
		{"across words", []string{"Range", "bytes=13-4102"}, 206, 13, 4103},
		{"open end", []string{"Range", "bytes=99999-"}, 206, 99999, size},
		{"suffix", []string{"Range", "bytes=-7"}, 206, size - 7, size},
		{"suffix above the size", []string{"Range", "bytes=-999999"}, 206, 0, size},
		{"end above the size", []string{"Range", "bytes=100000-999999"}, 206, 100000, size},
		{"unit unknown", []string{"Range", "lines=1-2"}, 416, 0, 0},
		{"behind the end", []string{"Range", "bytes=100003-"}, 416, 0, 0},
		{"If-Range holds", []string{"Range", "bytes=5-9", "If-Range", tag}, 206, 5, 10},
		{"If-Range is another", []string{"Range", "bytes=5-9", "If-Range", `"other"`}, 200, 0, size},
		{"If-Range is weak", []string{"Range", "bytes=5-9", "If-Range", "W/" + tag}, 200, 0, size},
		{"If-Range date holds", []string{"Range", "bytes=5-9", "If-Range", "Thu, 01 Jan 2026 00:00:00 GMT"}, 206, 5, 10},
		{"If-Range date is another", []string{"Range", "bytes=5-9", "If-Range", "Fri, 02 Jan 2026 00:00:00 GMT"}, 200, 0, size},
		{"known", []string{"If-None-Match", tag}, 304, 0, 0},
		{"not the one expected", []string{"If-Match", `"other"`}, 412, 0, 0},
	} {
		a := do(t, "GET", o.URL()+"/image.bin", c.headers...)
		if a.status != c.status {
			t.Errorf("%s: got %d, want %d", c.name, a.status, c.status)
			continue
		}
		if c.status < 300 && !bytes.Equal(a.body, all[c.from:c.to]) {
			t.Errorf("%s: got %d other bytes", c.name, len(a.body))
		}
		if want := fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, size); c.status == 206 && a.header.Get("Content-Range") != want {
			t.Errorf("%s: Content-Range is %q, want %q", c.name, a.header.Get("Content-Range"), want)
		}
		if c.status == 206 && a.header.Get("Content-Length") != strconv.Itoa(c.to-c.from) {
			t.Errorf("%s: Content-Length is %s", c.name, a.header.Get("Content-Length"))
		}
	}
}

func TestO3_SeveralRangesComeAsParts(t *testing.T) {
	o := smallOrigin(t)
	all := whole(t, o.objects["/image.bin"])
	a := do(t, "GET", o.URL()+"/image.bin", "Range", "bytes=3-10,50001-50020")
	_, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if a.status != 206 || err != nil {
		t.Fatalf("got %d %v", a.status, a.header)
	}
	r := multipart.NewReader(bytes.NewReader(a.body), params["boundary"])
	for _, want := range [][]byte{all[3:11], all[50001:50021]} {
		p, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a part holds %x (%v), want %x", got, err, want)
		}
	}
}

func TestP1_ArchiveUnpacks(t *testing.T) {
	obj, err := archive("/release.tar", 64<<10, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(bytes.NewReader(whole(t, obj)))
	var names []string
	var n int64
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		k, err := io.Copy(io.Discard, r)
		if err != nil || k != h.Size {
			t.Errorf("%s: read %d of %d bytes, %v", h.Name, k, h.Size, err)
		}
		names, n = append(names, h.Name), n+k
	}
	if strings.Join(names, " ") != "release/NOTE.txt release/data.bin" || n < 60<<10 {
		t.Errorf("the archive holds %v with %d bytes", names, n)
	}
}

func TestO3_EveryOffsetReadsTheSameBytes(t *testing.T) {
	obj, err := archive("/a", 4096, 7)
	if err != nil {
		t.Fatal(err)
	}
	all := whole(t, obj)
	if err := iotest.TestReader(obj.reader(), all); err != nil {
		t.Error(err)
	}
	for off := range len(all) {
		for _, n := range []int{1, 7, 8, 9, 600} {
			p := bytes.Repeat([]byte{0xEE}, n)
			k, err := obj.ReadAt(p, int64(off))
			if want := all[off:min(off+n, len(all))]; !bytes.Equal(p[:k], want) || (k < n) != (err == io.EOF) {
				t.Fatalf("%d bytes at %d: got %x, %v, want %x", n, off, p[:k], err, want)
			}
		}
	}
	if _, err := obj.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("a negative offset gives %v", err)
	}
}

func TestP1_UnknownPathsAndMethods(t *testing.T) {
	o := smallOrigin(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{{"GET", "/nothing", 404}, {"PUT", "/nothing", 404}, {"PUT", "/hello.txt", 405}, {"DELETE", "/SHA256SUMS", 405}, {"GET", "/hello.txt/", 404}} {
		a := do(t, c.method, o.URL()+c.path)
		if a.status != c.status || (c.status == 405) != (a.header.Get("Allow") == "GET, HEAD") {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.path, a.status, a.header, c.status)
		}
	}
}

func TestP1_IndexNamesWhatThereIs(t *testing.T) {
	o, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	page := string(do(t, "GET", o.URL()+"/").body)
	for path := range o.objects {
		if path != "/" && !strings.Contains(page, `href="`+path+`"`) {
			t.Errorf("the index does not link to %s", path)
		}
	}
	if !strings.Contains(page, `href="`+sumsPath+`"`) {
		t.Error("the index does not link to the checksums")
	}
}

func TestL1_CloseCutsRunningDownloadsAndIsIdempotent(t *testing.T) {
	o, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	r, err := http.NewRequest("GET", o.URL()+"/image.bin", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := o.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= imageBytes {
		t.Errorf("a cut download gave %d bytes and %v, want an error", n, err)
	}
	if err := o.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if o.enter() {
		t.Error("a request is let in after Close")
	}
	if o.checksums() != nil {
		t.Error("checksums are computed after Close")
	}
}

func TestL1_ReaderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	u := untilDone{ctx, strings.NewReader("ab")}
	if n, err := u.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	cancel()
	if _, err := u.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func BenchmarkB4_Generate(b *testing.B) {
	p := make([]byte, 32<<10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		generate(p, 1, 12345)
	}
}

package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"
)

const sumsPath = "/SHA256SUMS"

const hello = "Hello from the demo origin behind the proxy.\n"

const index = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Demo origin</title>
<h1>The proxy works</h1>
<p>This page comes from the built-in demo origin. Set <code>ARKVORY_UPSTREAM</code> to put your own store behind the proxy.</p>
<ul>
<li><a href="/hello.txt">/hello.txt</a>: small, passes without admission</li>
<li><a href="/release.tar">/release.tar</a>: 64 MiB, a download session</li>
<li><a href="/image.bin">/image.bin</a>: 256 MiB</li>
<li><a href="/SHA256SUMS">/SHA256SUMS</a>: digests for <code>sha256sum -c</code></li>
</ul>
<p>Try, with the proxy's address instead of localhost:8080 where it differs:</p>
<pre>
curl -O http://localhost:8080/release.tar
curl -C - -O http://localhost:8080/image.bin        # stop it and go on
curl -s http://localhost:8080/SHA256SUMS | sha256sum -c --ignore-missing
curl -s http://127.0.0.1:8081/health/ready          # what the queue does meanwhile
</pre>
</html>
`

// Origin is a running demo origin. Its methods are safe for concurrent use.
type Origin struct {
	url     string
	objects map[string]*object
	etags   map[string]string
	server  *http.Server
	ctx     context.Context // ends with Close; SHA256SUMS watches it
	cancel  context.CancelFunc
	running sync.WaitGroup // the accept loop and the handlers

	mu     sync.Mutex
	closed bool

	computing sync.Mutex // held while the objects are read; never together with mu
	sums      *object    // nil until first asked for; guarded by computing
}

// Start listens on a free port of 127.0.0.1 and serves until Close. It fails when no port can be had.
func Start() (*Origin, error) {
	release, err := archive("/release.tar", releaseBytes, 1)
	if err != nil {
		return nil, err
	}
	return start(text("/hello.txt", "text/plain; charset=utf-8", hello), release,
		&object{path: "/image.bin", mediaType: "application/octet-stream", size: imageBytes, seed: 2})
}

// start serves the index and the given objects.
func start(objects ...*object) (*Origin, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the demo origin: %w", err)
	}
	o := &Origin{url: "http://" + ln.Addr().String(), objects: map[string]*object{}, etags: map[string]string{}}
	for _, obj := range append(objects, text("/", "text/html; charset=utf-8", index)) {
		o.objects[obj.path], o.etags[obj.path] = obj, obj.etag()
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	o.server = &http.Server{
		Handler:           o,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // broken clients are the proxy's to report
	}
	o.running.Go(func() { _ = o.server.Serve(ln) }) // returns ErrServerClosed, at Close
	return o, nil
}

// URL returns the origin's base, http://127.0.0.1:PORT, without a slash at the end.
func (o *Origin) URL() string { return o.url }

// Close cuts all connections and returns when nothing of the origin runs any more. Repeated calls are harmless; the error is
// that of closing the listener.
func (o *Origin) Close() error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.cancel()
	err := o.server.Close()
	o.running.Wait()
	return err
}

// enter counts a handler in, unless the origin is closed: Close must not wait on a group that still grows.
func (o *Origin) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.running.Add(1)
	}
	return !o.closed
}

// ServeHTTP answers GET and HEAD for the objects.
func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !o.enter() {
		http.Error(w, "the origin is closed", http.StatusServiceUnavailable)
		return
	}
	defer o.running.Done()
	obj, etag := o.objects[r.URL.Path], o.etags[r.URL.Path]
	switch {
	case obj == nil && r.URL.Path != sumsPath:
		http.Error(w, "the demo origin has no such object; / lists them", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the demo origin only reads", http.StatusMethodNotAllowed)
		return
	case obj == nil:
		if obj = o.checksums(); obj == nil {
			http.Error(w, "the origin is closed", http.StatusServiceUnavailable)
			return
		}
		etag = obj.etag()
	}
	h := w.Header()
	h.Set("Content-Type", obj.mediaType)
	h.Set("ETag", etag)
	h.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", modified, obj.reader())
}

// checksums returns the object of SHA256SUMS, computed at the first call while later ones wait; nil when the origin closes.
func (o *Origin) checksums() *object {
	o.computing.Lock()
	defer o.computing.Unlock()
	if o.sums != nil {
		return o.sums
	}
	var paths []string
	for path := range o.objects {
		if path != "/" {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	var b strings.Builder
	for _, path := range paths {
		h := sha256.New()
		if _, err := io.Copy(h, untilDone{o.ctx, o.objects[path].reader()}); err != nil {
			return nil
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), strings.TrimPrefix(path, "/"))
	}
	o.sums = text(sumsPath, "text/plain; charset=utf-8", b.String())
	return o.sums
}

// untilDone is a reader that fails when its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

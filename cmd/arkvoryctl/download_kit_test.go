//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// built builds the program once.
var built = sync.OnceValues(func() (string, error) {
	var err error
	if builtIn, err = os.MkdirTemp("", "arkvoryctl"); err != nil {
		return "", err
	}
	path := filepath.Join(builtIn, "arkvoryctl")
	out, err := exec.Command("go", slices.Concat([]string{"build", "-o", path}, raceFlags, []string{"."})...).CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
})

// program is a run of the built program.
type program struct {
	t           *testing.T
	command     *exec.Cmd
	out, errors bytes.Buffer // complete when it ended
}

// start runs the program in dir with what env adds to a clean environment. Streams that adjust sets stay set.
func start(t *testing.T, dir string, env []string, adjust func(*exec.Cmd), args ...string) *program {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, command: exec.Command(path, args...)}
	p.command.Dir = dir
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color", "TZ=UTC"}, env...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if adjust != nil {
		adjust(p.command)
	}
	if p.command.Stdout == nil {
		p.command.Stdout = &p.out
	}
	if p.command.Stderr == nil {
		p.command.Stderr = &p.errors
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the program and returns its exit code, -1 when a signal ended it.
func (p *program) end() int {
	p.t.Helper()
	late := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer late.Stop()
	err := p.command.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.command.ProcessState.ExitCode()
}

// finish runs the program to its end.
func finish(t *testing.T, dir string, args ...string) (code int, out, complaint string) {
	t.Helper()
	p := start(t, dir, nil, nil, args...)
	code = p.end()
	return code, p.out.String(), p.errors.String()
}

// origin is a server on loopback with one object. It answers with what is in busy first, one a request, and stops in the middle of the
// object until it is let go.
type origin struct {
	*httptest.Server
	body []byte
	sum  string // SHA-256 in hex

	mu     sync.Mutex
	busy   []func(http.ResponseWriter, *http.Request)
	holdAt int64         // bytes from here on are held back, 0 = none
	letGo  chan struct{} // closed when they may go
	served int64         // bytes written in all
	asked  chan struct{} // receives one a request
	header http.Header   // of the last request
}

// newOrigin makes an object of size bytes at /release.tar and everywhere else.
func newOrigin(t *testing.T, size int) *origin {
	o := &origin{body: make([]byte, size), letGo: make(chan struct{}), asked: make(chan struct{}, 4096)}
	_, _ = rand.NewChaCha8([32]byte{7}).Read(o.body)
	sum := sha256.Sum256(o.body)
	o.sum = hex.EncodeToString(sum[:])
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.header = r.Header.Clone()
	var first func(http.ResponseWriter, *http.Request)
	if len(o.busy) > 0 {
		first, o.busy = o.busy[0], o.busy[1:]
	}
	o.mu.Unlock()
	o.asked <- struct{}{}
	if first != nil {
		first(w, r)
		return
	}
	w.Header().Set("ETag", `"one"`)
	http.ServeContent(w, r, "", time.Time{}, &heldReader{Reader: bytes.NewReader(o.body), origin: o, w: w, r: r})
}

// heldReader counts what it gives and stops where the origin holds.
type heldReader struct {
	*bytes.Reader
	origin *origin
	w      http.ResponseWriter
	r      *http.Request
}

func (h *heldReader) Read(p []byte) (int, error) {
	o := h.origin
	at := h.Size() - int64(h.Len())
	o.mu.Lock()
	hold, letGo := o.holdAt, o.letGo
	o.mu.Unlock()
	if hold > 0 {
		if at >= hold {
			_ = http.NewResponseController(h.w).Flush()
			select {
			case <-letGo:
			case <-h.r.Context().Done():
				return 0, io.ErrUnexpectedEOF
			}
		} else {
			p = p[:min(int64(len(p)), hold-at)]
		}
	}
	n, err := h.Reader.Read(p)
	o.mu.Lock()
	o.served += int64(n)
	o.mu.Unlock()
	return n, err
}

// WriteTo must not be used: it would read past Read.
func (h *heldReader) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, io.MultiReader(h)) }

// first puts answers before the object.
func (o *origin) first(answers ...func(http.ResponseWriter, *http.Request)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = append(o.busy, answers...)
}

// hold keeps back what lies behind an offset; the answer of the call lets it go.
func (o *origin) hold(at int64) (letGo func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holdAt, o.letGo = at, make(chan struct{})
	return sync.OnceFunc(func() { close(o.letGo) })
}

// bytes returns how many were written so far.
func (o *origin) bytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.served
}

// lastHeader is the header of the last request.
func (o *origin) lastHeader() http.Header {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.header
}

// url is the object's.
func (o *origin) url() string { return o.URL + "/release.tar" }

// status answers with a status and a JSON reason.
func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"error":"no","message":"not for you"}`)
	}
}

// queued answers as a sidecar does whose queue the download waits in.
func queued(place string, starts time.Duration, retryAfter string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		at := time.Now().Add(starts).UTC()
		h := w.Header()
		h.Set("Retry-After", retryAfter)
		h.Set("Arkvory-Queue-Position", place)
		h.Set("Arkvory-Starts-At", at.Format(time.RFC3339))
		h.Set("Arkvory-Starts-Window", at.Add(-5*time.Minute).Format(time.RFC3339)+"/"+at.Add(10*time.Minute).Format(time.RFC3339))
		h.Set("Arkvory-Download-Class", "release")
		h.Set("Arkvory-Queue-Ticket", "2.a.b.c")
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"busy","reason":"download_queued","message":"this download waits in the queue","status":503}`)
	}
}

// whole fails unless the file is the object.
func (o *origin) whole(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, o.body) {
		t.Errorf("%s is not the object (%d bytes of %d)", path, len(data), len(o.body))
	}
}

// lines reads the output of --json: the events and the end. Unknown fields fail.
func jsonLines(t *testing.T, out string) (events []eventLine, end endLine) {
	t.Helper()
	for line := range strings.Lines(out) {
		var kind struct{ Event string }
		if err := json.Unmarshal([]byte(line), &kind); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if end.Event != "" {
			t.Fatalf("%q comes after the end", line)
		}
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var err error
		if kind.Event == "end" {
			err = decoder.Decode(&end)
		} else {
			var e eventLine
			err = decoder.Decode(&e)
			events = append(events, e)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	if end.Event == "" {
		t.Fatalf("no end in\n%s", out)
	}
	return events, end
}

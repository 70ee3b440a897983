package waitpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// filePath is where the file of a testProxy is, as a browser writes it; the empty query must come back as it is.
const filePath = "/pool/debian%2013.iso?"

// fileBytes is the file: long enough to come in several reads, with bytes of every value.
var fileBytes = bytes.Repeat([]byte("\x00\xff<html>\r\n0123456789"), 20000)

// answer is one answer of a testProxy to a question of the page.
type answer func(p *testProxy, w http.ResponseWriter, r *http.Request)

// testProxy behaves to a browser as the proxy does: navigations get the page until the file is open to them, questions get the next
// of a list of answers.
type testProxy struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	facts     Facts
	ahead     time.Duration               // of this proxy's clock to the browser's
	page      func(w http.ResponseWriter) // in place of the page, once
	answers   []answer
	questions int
	asking    int // questions under way
	pages     int // pages sent
	files     int // files sent
	open      bool
	tickets   []string
	arrived   chan string // what came: "page", "question", "file"
	gone      chan struct{}
}

func newTestProxy(t *testing.T, f Facts, answers ...answer) *testProxy {
	p := &testProxy{t: t, facts: f, answers: answers, arrived: make(chan string, 1000), gone: make(chan struct{}, 10)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	return p
}

// address is that of the file.
func (p *testProxy) address() string { return p.URL + filePath }

func (p *testProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI != filePath || r.Method != http.MethodGet {
		p.t.Errorf("the browser asked for %s %s", r.Method, r.RequestURI)
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Header.Get(PollField) != "" {
		p.question(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch page := p.page; {
	case page != nil:
		p.page = nil
		page(w)
		p.arrived <- "other"
	case p.open:
		p.files++
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="debian 13.iso"`)
		w.Write(fileBytes)
		p.arrived <- "file"
	default:
		p.pages++
		p.facts.Now, p.facts.Language = time.Now().Add(p.ahead), r.Header.Get("Accept-Language")
		w.Header().Set("Content-Type", ContentType)
		w.Header().Set("Content-Security-Policy", ContentSecurityPolicy)
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write(Append(nil, p.facts))
		p.arrived <- "page"
	}
}

// question answers what the script asks, and holds it to its rules.
func (p *testProxy) question(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.asking++; p.asking > 1 {
		p.t.Errorf("%d questions at once", p.asking)
	}
	for field, want := range map[string]string{PollField: "1", "Accept": "application/json", "Sec-Fetch-Mode": "same-origin", "Cache-Control": "no-cache"} {
		if got := r.Header.Get(field); got != want {
			p.t.Errorf("a question has %s: %q, want %q", field, got, want)
		}
	}
	p.tickets = append(p.tickets, r.Header.Get("Arkvory-Queue-Ticket"))
	next := answer(func(_ *testProxy, w http.ResponseWriter, _ *http.Request) {
		p.t.Error("a question too many")
		w.WriteHeader(http.StatusTeapot)
	})
	if p.questions < len(p.answers) {
		next = p.answers[p.questions]
	}
	p.questions++
	p.mu.Unlock()
	p.arrived <- "question"
	defer func() {
		p.mu.Lock()
		p.asking--
		p.mu.Unlock()
	}()
	next(p, w, r)
}

// give sends JSON.
func give(w http.ResponseWriter, status int, facts map[string]any) {
	body, err := json.Marshal(facts)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// placed says the place, as a refusal of the proxy does; the start is so far from now.
func placed(position int, starts time.Duration, retry int) answer {
	return func(_ *testProxy, w http.ResponseWriter, _ *http.Request) {
		at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
		give(w, http.StatusServiceUnavailable, map[string]any{"error": "busy", "reason": "download_queued", "status": 503, "retryAfterSeconds": retry,
			"queuePosition": position, "startsAt": at(starts), "startsWindow": map[string]string{"earliest": at(starts), "latest": at(starts)},
			"queueTicket": fmt.Sprintf("2.a.%d.c", position), "downloadClass": "release"})
	}
}

// ready opens the file and says so.
func ready(p *testProxy, w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	p.open = true
	p.mu.Unlock()
	give(w, http.StatusOK, map[string]any{"ready": true})
}

// broken cuts the connection in mid-answer: before it, a browser may ask again by itself.
func broken(_ *testProxy, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	w.WriteHeader(http.StatusServiceUnavailable)
	w.Write([]byte("{"))
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
	panic(http.ErrAbortHandler)
}

// after holds an answer back until the channel is closed.
func after(told <-chan struct{}, next answer) answer {
	return func(p *testProxy, w http.ResponseWriter, r *http.Request) {
		select {
		case <-told:
			next(p, w, r)
		case <-r.Context().Done():
		}
	}
}

// hanging never answers; it reports when the browser has given up.
func hanging(p *testProxy, _ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	p.gone <- struct{}{}
}

// other answers in a way that is not of the protocol.
func other(status int, contentType, body string) answer {
	return func(_ *testProxy, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

// counts returns what was sent and asked so far.
func (p *testProxy) counts() (pages, questions, files int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages, p.questions, p.files
}

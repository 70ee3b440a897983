package waitpage

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds every wait for the browser: on a loaded machine it is slow, not wrong.
const patience = 30 * time.Second

// browserNames are the programs that the tests can drive, the smallest first.
var browserNames = []string{"chromium-headless-shell", "headless_shell", "/usr/lib/chromium/headless_shell", "/usr/lib/chromium/chromium-headless-shell",
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// sharedBrowser is one browser for all tests: each has its own tab and its own profile in it.
var sharedBrowser = sync.OnceValues(func() (context.Context, error) {
	var path string
	for _, name := range browserNames {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errors.New("no Chromium is on PATH: apt-get install chromium-headless-shell; looked for " + strings.Join(browserNames, ", "))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", path, err)
	}
	closeBrowser = func() error { return chromedp.Cancel(ctx) }
	return ctx, nil
})

// closeBrowser ends the shared browser, if it was started.
var closeBrowser = func() error { return nil }

func TestMain(m *testing.M) {
	// The tests in the browser wait for seconds that the page counts, not for the processor. -parallel on the command line still wins.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := closeBrowser(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot close the browser:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// tab is a browser tab with a profile of its own. It notes what a page must not do.
type tab struct {
	context.Context
	t         *testing.T
	downloads string // folder
	progress  chan browser.EventDownloadProgress

	mu     sync.Mutex
	faults []string // messages on the console that are errors or warnings
	hosts  map[string]bool
}

// newTab opens a tab with Accept-Language as given and the page's zone in India, half an hour off the full hours.
func newTab(t *testing.T, language string) *tab {
	t.Helper()
	shared, err := sharedBrowser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t, downloads: t.TempDir(), progress: make(chan browser.EventDownloadProgress, 1000), hosts: map[string]bool{}}
	must(t, chromedp.Do(ctx))
	limited, stop := context.WithTimeout(ctx, patience)
	t.Cleanup(stop)
	b.Context = limited
	must(t, chromedp.Listen(ctx, b.note))
	on := true
	_, err = chromedp.Call(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID, DownloadPath: b.downloads, EventsEnabled: &on})
	must(t, err)
	_, err = chromedp.Call(ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}})
	must(t, err)
	_, err = chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	must(t, err)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// note runs on the goroutine that reads from the browser.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.faults = append(b.faults, "console: "+string(e.Type))
	case *log.EventEntryAdded:
		// The browser itself reports every answer that is not 2xx, which here are meant.
		if e.Entry.Source != log.EntrySourceNetwork {
			b.faults = append(b.faults, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			b.hosts[u.Host] = true
		}
	case *browser.EventDownloadProgress:
		b.progress <- *e
	}
}

// open navigates to the file's address and waits for the document.
func (b *tab) open(p *testProxy) {
	b.t.Helper()
	must(b.t, chromedp.Do(b, chromedp.Navigate(p.address())))
}

// before runs a script in each document before the scripts of its own.
func (b *tab) before(script string) {
	b.t.Helper()
	_, err := chromedp.Call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: "{" + script + "}"})
	must(b.t, err)
}

// until waits for the predicate, a JavaScript expression, to hold in the document, looking whenever it changes.
func (b *tab) until(predicate string) {
	b.t.Helper()
	_, err := chromedp.Run(b, chromedp.Evaluate[bool](`new Promise(done => {
		const watch = new MutationObserver(() => look()), look = () => { if (`+predicate+`) { watch.disconnect(); done(true) } };
		watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		look();
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("waiting for %s: %v; the page says %q", predicate, err, b.text("body"))
	}
}

// text is what the element shows.
func (b *tab) text(id string) string {
	expression := "document.getElementById('" + id + "').innerText"
	if id == "body" {
		expression = "document.body.innerText"
	}
	return evaluate[string](b, expression)
}

// evaluate runs an expression in the page.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	// After the tab's own deadline a failing test still wants to say what the page shows.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context), patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Errorf("evaluating %.80s: %v", expression, err)
	}
	return value
}

// expect waits until the proxy has got what is named.
func (b *tab) expect(p *testProxy, what string) {
	b.t.Helper()
	for {
		select {
		case got := <-p.arrived:
			if got == what {
				return
			}
		case <-b.Done():
			pages, questions, files := p.counts()
			b.t.Fatalf("no %s came; %d pages, %d questions, %d files; the page says %q", what, pages, questions, files, b.text("body"))
		}
	}
}

// downloaded waits for the end of one download and compares its bytes.
func (b *tab) downloaded() {
	b.t.Helper()
	for {
		select {
		case e := <-b.progress:
			switch e.State {
			case browser.DownloadProgressStateCanceled:
				b.t.Fatal("the browser gave the download up")
			case browser.DownloadProgressStateCompleted:
				got, err := os.ReadFile(filepath.Join(b.downloads, e.GUID))
				must(b.t, err)
				if string(got) != string(fileBytes) {
					b.t.Fatalf("%d bytes came, not the %d of the file", len(got), len(fileBytes))
				}
				return
			}
		case <-b.Done():
			b.t.Fatalf("no download ended; the page says %q", b.text("body"))
		}
	}
}

// clean reports what the page should not have done.
func (b *tab) clean(p *testProxy) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Errorf("the browser reports %s", fault)
	}
	for host := range b.hosts {
		if p.URL != "http://"+host {
			b.t.Errorf("the page asked %s", host)
		}
	}
	if len(b.hosts) == 0 {
		b.t.Error("no request was seen")
	}
}

// screenshot keeps a picture of the tab among the test's artifacts, or in the folder that ARKVORY_SCREENSHOTS names.
func (b *tab) screenshot(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b, chromedp.FullScreenshot(100))
	must(b.t, err)
	folder := os.Getenv("ARKVORY_SCREENSHOTS")
	if folder == "" {
		folder = b.t.ArtifactDir()
	}
	must(b.t, os.MkdirAll(folder, 0o755))
	must(b.t, os.WriteFile(filepath.Join(folder, "waitpage-"+name+".png"), picture, 0o644))
}

// media emulates media features, as name and value in turn.
func (b *tab) media(features ...string) {
	b.t.Helper()
	var all []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		all = append(all, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: all})
	must(b.t, err)
}

// plain is the Go value of a JSON string, "" for anything else.
func plain(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

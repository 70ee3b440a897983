package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/admin/console"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/queue"
)

// patience bounds every wait for the browser, and visit all that a test does in one tab: on a loaded machine it is slow, not wrong.
const (
	patience = 60 * time.Second
	visit    = 4 * time.Minute
)

// strangeHost is a name of loopback under which the browser is no trusted caller.
const strangeHost = "desk.test"

// browserNames are the programs that the tests can drive, the smallest first.
var browserNames = []string{"chromium-headless-shell", "headless_shell", "/usr/lib/chromium/headless_shell", "/usr/lib/chromium/chromium-headless-shell",
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// sharedBrowser is one browser for all tests: each has its own tab and its own profile in it.
var sharedBrowser = sync.OnceValues(func() (context.Context, error) {
	var program string
	for _, name := range browserNames {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return nil, errors.New("no Chromium is on PATH: apt-get install chromium-headless-shell; looked for " + strings.Join(browserNames, ", "))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU, chromedp.Flag("host-resolver-rules", "MAP "+strangeHost+" 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	closeBrowser = func() error { return chromedp.Cancel(ctx) }
	return ctx, nil
})

// closeBrowser ends the shared browser, if it was started.
var closeBrowser = func() error { return nil }

func TestMain(m *testing.M) {
	// The tests in the browser wait for seconds that the page counts, not for the processor. -parallel on the command line still wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := closeBrowser(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot close the browser:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is the real admin server with the real desk of settings before a modelled queue.
type house struct {
	*floor
	desk  *live.Desk
	base  string // http://127.0.0.1:port
	audit chan admin.Entry
}

func newHouse(t *testing.T, token string) *house {
	t.Helper()
	h := &house{floor: newFloor(), audit: make(chan admin.Entry, 1000)}
	policy := queue.DefaultPolicy(16)
	policy.SessionsElastic = 32
	h.desk = live.New(t.Context(), live.Settings{Base: policy, Store: new(config.MemoryRecords), Now: time.Now, Apply: func(live.Effective) error { return nil }})
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	server := admin.New(admin.Settings{Token: token, Version: "v0.6.0", Console: console.Asset, Audit: func(e admin.Entry) { h.audit <- e }},
		admin.Sources{Settings: h.desk, Operator: h.floor})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // the browser keeps connections until its own tab closes
		<-ended
	})
	h.base = "http://" + listener.Addr().String()
	return h
}

// put changes the settings past the page.
func (h *house) put(t *testing.T, overrides string) {
	t.Helper()
	_, err := h.desk.Change(t.Context(), fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, h.desk.Current().Revision, overrides), "token")
	must(t, err)
}

// tab is a browser tab with a profile of its own. It notes what a page must not do.
type tab struct {
	context.Context
	t *testing.T

	mu     sync.Mutex
	faults []string
	urls   []string
}

// newTab opens a tab with the languages as given, 1280 x 900, and the zone of India, half an hour off the full hours.
func newTab(t *testing.T, languages string) *tab {
	t.Helper()
	shared, err := sharedBrowser()
	must(t, err)
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	must(t, chromedp.Do(ctx))
	limited, stop := context.WithTimeout(ctx, visit)
	t.Cleanup(stop)
	b := &tab{Context: limited, t: t}
	must(t, chromedp.Listen(ctx, b.note))
	agent := evaluate[string](b, "navigator.userAgent")
	_, err = chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: languages})
	must(t, err)
	_, err = chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	must(t, err)
	b.size(1280, 900)
	return b
}

// note runs on the goroutine that reads from the browser.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.faults = append(b.faults, "exception: "+text)
	case *runtime.EventConsoleAPICalled:
		said := "console: " + string(e.Type)
		for _, one := range e.Args {
			said += " " + one.Description
		}
		b.faults = append(b.faults, said)
	case *log.EventEntryAdded:
		// The browser itself reports every answer that is not 2xx, which here are meant.
		// It reports as well that it leaves a header aside which counts over TLS only.
		if e.Entry.Source != log.EntrySourceNetwork && !strings.HasPrefix(e.Entry.Text, "The Cross-Origin-Opener-Policy header has been ignored") {
			b.faults = append(b.faults, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.urls = append(b.urls, e.Request.URL)
	}
}

// clean reports what the page should not have done: faults, other hosts, and any of the secrets in an address.
func (b *tab) clean(base string, secrets ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Errorf("the browser reports %s", fault)
	}
	for _, one := range b.urls {
		u, err := url.Parse(one)
		if err != nil || u.Scheme+"://"+u.Host != base {
			b.t.Errorf("the page asked %s", one)
		}
		for _, secret := range secrets {
			if strings.Contains(one, secret) {
				b.t.Errorf("%s has a secret in it", one)
			}
		}
	}
	if len(b.urls) == 0 {
		b.t.Error("no request was seen")
	}
}

// open navigates and waits for the first answer to be shown.
func (b *tab) open(base, view string) {
	b.t.Helper()
	must(b.t, chromedp.Do(b, chromedp.Navigate(base+"/console/#/"+view)))
	b.until(`document.body.dataset.state === "live"`)
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
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`new Promise(done => {
		const watch = new MutationObserver(() => look()), look = () => { if (`+predicate+`) { watch.disconnect(); done(true) } };
		watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		look();
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("waiting for %s: %v; the page says %q; faults %q", predicate, err, evaluate[string](b, "document.body.innerText"), b.faults)
	}
}

// text is what the first element of a selector shows.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return evaluate[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? "(none)"`, selector))
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

// click clicks the first element of a selector that is shown, as a mouse does.
func (b *tab) click(selector string) {
	b.t.Helper()
	must(b.t, chromedp.Do(b, chromedp.Click(chromedp.CSS(selector))))
}

// press types keys, one after the other.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, one := range keys {
		must(b.t, chromedp.Do(b, chromedp.KeyEvent(one)))
	}
}

// reach goes on with the tabulator until the focus is at the selector, and fails where it does not come or cannot be seen.
func (b *tab) reach(selector string) {
	b.t.Helper()
	at := fmt.Sprintf(`document.activeElement.matches(%q)`, selector)
	for range 400 {
		if evaluate[bool](b, at) {
			if !evaluate[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== "none" || document.activeElement.matches("h1, h2")`) {
				b.t.Errorf("%s has the focus, which cannot be seen", selector)
			}
			return
		}
		b.press("\t")
	}
	b.t.Fatalf("the tabulator does not come to %s", selector)
}

// fill sets a text control as somebody who types over what stands there.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => { const at = document.querySelector(%q); at.focus(); at.select(); return true })()`, selector))
	b.press("\b")
	for _, r := range text {
		b.press(string(r))
	}
}

// choose sets a select.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	if !evaluate[bool](b, fmt.Sprintf(`(() => { const at = document.querySelector(%q); at.focus(); at.value = %q; at.dispatchEvent(new Event("change", { bubbles: true })); return at.value === %q })()`, selector, value, value)) {
		b.t.Fatalf("%s has no %s", selector, value)
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	must(b.t, chromedp.Do(b, chromedp.EmulateViewport(width, height)))
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

// screenshot keeps a picture of the whole page in the folder that ARKVORY_SCREENSHOTS names; a test that nobody looks at takes none.
func (b *tab) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv("ARKVORY_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b, chromedp.FullScreenshot(100))
	must(b.t, err)
	must(b.t, os.MkdirAll(folder, 0o755))
	must(b.t, os.WriteFile(filepath.Join(folder, "console-"+name+".png"), picture, 0o644))
}

// axe lets axe-core judge the page when ARKVORY_AXE names its file.
func (b *tab) axe(state string) {
	b.t.Helper()
	file := os.Getenv("ARKVORY_AXE")
	if file == "" {
		return
	}
	source, err := os.ReadFile(file)
	must(b.t, err)
	must(b.t, chromedp.Do(b, chromedp.Evaluate[chromedp.Void](string(source)+"\n;0")))
	found, err := chromedp.Run(b, chromedp.Evaluate[[]byte](`axe.run({ resultTypes: ["violations"] }).then(r => r.violations.map(v => ({ id: v.id, help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary) })))`,
		chromedp.EvalAwaitPromise))
	must(b.t, err)
	var violations []any
	must(b.t, json.Unmarshal(found, &violations))
	if len(violations) > 0 {
		b.t.Errorf("%s: axe-core: %s", state, found)
	}
}

//go:build gate

package house_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The audience of the console: clients of the protocol that want a file each through a narrow link, so that the queue moves all the time and is not empty
// before the operator is through.
const (
	audience      = 240
	audienceSlots = 4
	audienceQueue = 200 // sessions that wait when the operator comes
	audienceFile  = 6 * mib
	audienceRate  = 3 * mib
	operatorToken = "gate-console-token"
	strangeName   = "desk.test" // a name of loopback that makes the browser a stranger
)

// TestGateConsole is acceptance 6.4: the operator's console, out of the running sidecar, in a real browser.
//
//   - A queue of 200 sessions moves before the operator's eyes: numbers and places change, rows stay the rows they are.
//   - By keyboard alone the strategy and the weights are changed, an invalid value is refused beside its field, a conflict with another operator is settled
//     field by field, and a session is kicked after a question.
//   - axe-core (ARKVORY_AXE) finds nothing in any view or dialog, in both themes and languages; pictures of all go to ARKVORY_SCREENSHOTS.
//   - A browser that is no trusted caller is asked for the token; the token is in no address and in no line of the page's own stores but the tab's.
func TestGateConsole(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "wanted", audienceFile, 7)
	running := startSidecar(t, buildSidecar(t), startOrigin(t, s), false, map[string]string{
		"ARKVORY_ADMIN_TOKEN":                 operatorToken,
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND":   strconv.FormatInt(audienceRate, 10),
		"ARKVORY_MAX_DOWNLOAD_SESSIONS":       strconv.Itoa(audienceSlots),
		"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES":  strconv.FormatInt(mib, 10),
		"ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL": strconv.Itoa(audienceSlots),
	})
	limit, leave := context.WithTimeout(t.Context(), 10*time.Minute)
	crowd := gather(limit, running.listen)
	t.Cleanup(func() {
		leave()
		crowd.Wait()
	})
	for waiting := 0; waiting < audienceQueue; pause(100 * time.Millisecond) {
		r, err := running.ready()
		if waiting = r.waiting(); err != nil || limit.Err() != nil {
			t.Fatalf("%d sessions wait, %v", waiting, err)
		}
	}
	o := &operator{t: t, admin: "http://" + running.admin, sidecar: running}
	o.browse(limit)
	o.watch()
	o.pictures("en")
	o.settings()
	o.conflict()
	o.kick()
	o.choose("#language", "ru")
	o.pictures("ru")
	o.stranger(limit)
}

// gather lets the crowd in; it goes when the context ends.
func gather(ctx context.Context, listen string) *sync.WaitGroup {
	var all sync.WaitGroup
	for n := range audience {
		all.Go(func() {
			dialer := net.Dialer{LocalAddr: source(n), Timeout: 10 * time.Second}
			transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}
			defer transport.CloseIdleConnections()
			client, ticket := &http.Client{Transport: transport}, ""
			for ctx.Err() == nil {
				request, _ := http.NewRequestWithContext(ctx, "GET", "http://"+listen+"/wanted", nil)
				request.Header.Set("Arkvory-Download-Id", fmt.Sprintf("crowd-%03d", n))
				request.Header.Set("Arkvory-Download-Class", []string{"release", "bulk", "background"}[n%3])
				if ticket != "" {
					request.Header.Set("Arkvory-Queue-Ticket", ticket)
				}
				response, err := client.Do(request)
				if err != nil {
					continue // it was kicked, or all leave
				}
				ticket = response.Header.Get("Arkvory-Queue-Ticket")
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.StatusCode == 200 && err == nil {
					return
				}
				after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(max(1, min(after, 5))) * time.Second):
				}
			}
		})
	}
	return &all
}

// operator is who sits before the browser.
type operator struct {
	context.Context
	t       *testing.T
	admin   string
	sidecar *sidecar
}

// browse starts the browser.
func (o *operator) browse(ctx context.Context) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findTool(chromium)), chromedp.NoSandbox, chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP "+strangeName+" 127.0.0.1"))
	ctx, free := chromedp.NewExecAllocator(ctx, options...)
	o.t.Cleanup(free)
	ctx, end := chromedp.NewContext(ctx)
	o.t.Cleanup(end)
	o.Context = ctx
	o.do(chromedp.EmulateViewport(1440, 900))
	o.must(chromedp.Listen(ctx, o.note))
}

// note fails the test for what the browser holds against the page; the browser reports refusals of the server by itself, which here are meant.
func (o *operator) note(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		o.t.Errorf("the page throws %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		o.t.Errorf("the page writes %s", e.Type)
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork && !strings.HasPrefix(e.Entry.Text, "The Cross-Origin-Opener-Policy header has been ignored") {
			o.t.Errorf("the browser reports %s", e.Entry.Text)
		}
	}
}

func (o *operator) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *operator) do(actions ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	for _, one := range actions {
		o.must(chromedp.Do(o, one))
	}
}

// see is the value of an expression in the page.
func see[T any](o *operator, expression string) T {
	o.t.Helper()
	value, err := chromedp.Run(o, chromedp.Evaluate[T](expression))
	if err != nil {
		o.t.Fatalf("%.100s: %v", expression, err)
	}
	return value
}

// until waits for a predicate, looking whenever the document changes.
func (o *operator) until(predicate string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o, time.Minute)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`new Promise(done => {
		const watch = new MutationObserver(() => look()), look = () => { if (`+predicate+`) { watch.disconnect(); done(true) } };
		watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		look();
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		o.t.Fatalf("waiting for %s: %v; the page says %q", predicate, err, see[string](o, "document.body.innerText"))
	}
}

func (o *operator) visit(view string) {
	o.t.Helper()
	o.do(chromedp.Navigate(o.admin + "/console/#/" + view))
	o.until(`document.body.dataset.state === "live"`)
}

func (o *operator) press(keys ...string) {
	o.t.Helper()
	for _, one := range keys {
		o.do(chromedp.KeyEvent(one))
	}
}

// reach goes on with the tabulator until the focus is at the selector.
func (o *operator) reach(selector string) {
	o.t.Helper()
	for range 300 {
		if see[bool](o, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
		o.press("\t")
	}
	o.t.Fatalf("the tabulator does not come to %s", selector)
}

// write types over what stands in the control that has the focus.
func (o *operator) write(text string) {
	o.t.Helper()
	see[bool](o, `(document.activeElement.select(), true)`)
	o.press(strings.Split(text, "")...)
}

func (o *operator) choose(selector, value string) {
	o.t.Helper()
	see[bool](o, fmt.Sprintf(`(() => { const at = document.querySelector(%q); at.value = %q; return at.dispatchEvent(new Event("change")) })()`, selector, value))
}

// look lets axe judge the page and takes a picture, in both themes.
func (o *operator) look(name string) {
	o.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		_, err := chromedp.Call(o, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		o.must(err)
		if file := os.Getenv("ARKVORY_AXE"); file != "" {
			source, err := os.ReadFile(file)
			o.must(err)
			found, err := chromedp.Run(o, chromedp.Evaluate[string](string(source)+`;axe.run({ resultTypes: ["violations"] }).then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 160))])))`, chromedp.EvalAwaitPromise))
			if err != nil || found != "[]" {
				o.t.Errorf("%s, %s: axe-core: %v %s", name, theme, err, found)
			}
		}
		if folder := os.Getenv("ARKVORY_SCREENSHOTS"); folder != "" {
			picture, err := chromedp.Run(o, chromedp.FullScreenshot(100))
			o.must(err)
			o.must(os.MkdirAll(folder, 0o755))
			o.must(os.WriteFile(filepath.Join(folder, "gate-console-"+name+"-"+theme+".png"), picture, 0o644))
		}
	}
}

// watch sees the queue move.
func (o *operator) watch() {
	o.visit("queue")
	o.until(fmt.Sprintf(`+document.querySelectorAll(".tiles .big")[1].textContent >= %d`, audienceQueue-20))
	was := see[string](o, `document.querySelectorAll(".tiles .big")[1].textContent`)
	o.until(fmt.Sprintf(`document.querySelectorAll(".tiles .big")[1].textContent !== %q`, was))
	o.until(`document.querySelector(".chart .line[d]")`)
	o.visit("sessions")
	o.until(`document.querySelectorAll(".sessions tbody tr").length === 100`)
	moved := see[string](o, `(() => { window.row = document.querySelectorAll(".sessions tbody tr")[60]; row.querySelector("button").focus(); return row.dataset.id + " " + row.firstChild.textContent })()`)
	id, place, _ := strings.Cut(moved, " ")
	o.until(fmt.Sprintf(`row.isConnected && row.dataset.id === %q && +row.firstChild.textContent < %s`, id, place))
	if !see[bool](o, `document.activeElement === row.querySelector("button")`) {
		o.t.Error("a row that moved lost the focus")
	}
	if got := see[[]string](o, `[...new Set([...document.querySelectorAll(".why")].map(n => n.textContent))]`); slices.Contains(got, "") {
		o.t.Errorf("why they wait: %q", got)
	}
}

// pictures looks at every view, wide and narrow.
func (o *operator) pictures(language string) {
	for _, width := range []int64{1440, 320} {
		o.do(chromedp.EmulateViewport(width, 900))
		for _, view := range []string{"queue", "sessions", "settings", "windows"} {
			o.visit(view)
			o.until(`document.querySelector(".tiles, .sessions tbody tr, .savebar, .weeks .badge:not(:empty)")`)
			if got := see[int64](o, "document.documentElement.scrollWidth"); got > width {
				o.t.Errorf("%s is %d pixels wide on a screen of %d", view, got, width)
			}
			if got := see[string](o, "document.documentElement.lang"); got != language {
				o.t.Errorf("%s is in %s, want %s", view, got, language)
			}
			o.look(fmt.Sprint(view, "-", language, "-", width))
		}
	}
	o.do(chromedp.EmulateViewport(1440, 900))
}

// document are the settings as the API has them.
func (o *operator) document() (doc struct {
	Revision  int64
	Overrides map[string]any
}) {
	o.t.Helper()
	body, err := o.sidecar.get("/api/v1/system/downloads/settings")
	o.must(err)
	o.must(json.Unmarshal(body, &doc))
	return doc
}

// settings changes the strategy and a weight and is refused a value, by keyboard alone.
func (o *operator) settings() {
	o.visit("settings")
	o.reach(`[data-field=strategy]`)
	o.press("s") // the first that begins with it: smallest first
	o.until(`document.querySelector("[data-field=strategy]").value === "smallest-first"`)
	o.reach(`[data-field="weights.bulk"]`)
	o.write("6")
	o.press("\r")
	o.until(`document.getElementById("said").textContent === "Saved as revision 1."`)
	if got := fmt.Sprint(o.document().Overrides); got != "map[strategy:smallest-first weights:map[background:1 bulk:6 interactive:8 release:4]]" {
		o.t.Errorf("saved is %s", got)
	}
	see[bool](o, `(document.querySelector("h1").tabIndex = -1, document.querySelector("h1").focus(), true)`)
	o.reach(`[data-field=sessions]`)
	o.write("0")
	o.press("\r")
	o.until(`document.activeElement.matches("[data-field=sessions][aria-invalid=true]") && document.querySelector("[data-fault=sessions]")`)
	o.look("refused")
	if got := o.document().Revision; got != 1 {
		o.t.Errorf("after a refused value the revision is %d", got)
	}
}

// conflict lets another operator be faster and settles it.
func (o *operator) conflict() {
	o.write("5")
	now := o.document()
	now.Overrides["sessions"], now.Overrides["agingMinutes"] = 6, 20
	body, err := json.Marshal(map[string]any{"expectedRevision": now.Revision, "overrides": now.Overrides})
	o.must(err)
	request, _ := http.NewRequest("PUT", o.admin+"/api/v1/system/downloads/settings", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	response, err := o.sidecar.http.Do(request)
	if err != nil || response.StatusCode != 200 {
		o.t.Fatalf("the other operator: %v %v", response, err)
	}
	_ = response.Body.Close()
	o.press("\r")
	o.until(`document.activeElement.matches("section.conflict h2")`)
	o.look("conflict")
	o.reach(`tr[data-path=sessions] input`)
	o.press(" ")
	o.reach(`section.conflict .primary`)
	o.press("\r")
	o.until(`document.getElementById("said").textContent === "Saved as revision 3."`)
	if got := o.document().Overrides; fmt.Sprintf("%v %v %v", got["sessions"], got["agingMinutes"], got["strategy"]) != "5 20 smallest-first" {
		o.t.Errorf("the conflict ended in %v", got)
	}
}

// kick ends a session after a question.
func (o *operator) kick() {
	o.visit("sessions")
	o.reach(".sessions tbody tr:nth-child(5) button")
	id := see[string](o, `document.activeElement.textContent`)
	o.press("\r")
	o.until(`document.querySelector("[data-action=kick]:not([hidden])")`)
	o.look("detail")
	o.reach("[data-action=kick]")
	o.press("\r")
	o.until(`document.querySelector("dialog[open] .danger")`)
	o.look("kick")
	o.press("\t", "\r")
	o.until(fmt.Sprintf(`document.getElementById("said").textContent === "Session %s was kicked."`, id))
	if _, err := o.sidecar.get("/api/v1/system/downloads/sessions/" + url.PathEscape(id)); err == nil || !strings.Contains(err.Error(), "status 404") {
		o.t.Errorf("the kicked session: %v", err)
	}
	var queue struct{ Counts struct{ Kicked int } }
	body, err := o.sidecar.get("/api/v1/system/downloads/queue")
	o.must(err)
	if o.must(json.Unmarshal(body, &queue)); queue.Counts.Kicked != 1 {
		o.t.Errorf("%d sessions were kicked", queue.Counts.Kicked)
	}
}

// stranger is the same browser under a name that is not loopback's own.
func (o *operator) stranger(ctx context.Context) {
	base := strings.Replace(o.admin, "127.0.0.1", strangeName, 1)
	o.do(chromedp.Navigate(base + "/console/"))
	o.until(`document.querySelector("dialog[open] input[type=password]") === document.activeElement`)
	o.look("token")
	o.press(strings.Split(operatorToken, "")...)
	o.press("\r")
	o.until(`document.body.dataset.state === "live" && !document.querySelector("dialog")`)
	if got := see[bool](o, fmt.Sprintf(`performance.getEntries().some(e => e.name.includes(%[1]q)) || location.href.includes(%[1]q) || Object.values(localStorage).join().includes(%[1]q)`, operatorToken)); got {
		o.t.Error("the token is in an address or outlives the tab")
	}
	if ctx.Err() != nil {
		o.t.Error("the operator took too long")
	}
}

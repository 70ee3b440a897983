package waitpage

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestV4_StartsByItself is the way of nearly everybody: the place falls, the turn comes, the file arrives; nobody clicks.
func TestV4_StartsByItself(t *testing.T) {
	t.Parallel()
	// Each answer waits until the test has seen what the one before changed.
	var seen [3]chan struct{}
	for i := range seen {
		seen[i] = make(chan struct{})
	}
	p := newTestProxy(t, Facts{Name: "debian 13.iso", Position: 3, StartsAt: time.Now().Add(95 * time.Minute), RetryAfter: 1},
		after(seen[0], placed(2, 5*time.Minute, 1)), after(seen[1], placed(1, 20*time.Second, 1)), after(seen[2], ready))
	b := newTab(t, "en-US,en;q=0.9")
	b.open(p)
	b.until(`document.title === "Place 3 in the queue – debian 13.iso"`)
	if got := b.text("ahead"); got != "2 downloads are ahead of yours." {
		t.Errorf("ahead: %q", got)
	}
	if got := b.text("when"); !strings.HasSuffix(got, "(in about 2 hours)") {
		t.Errorf("the start is %q", got)
	}
	close(seen[0])
	b.until(`document.getElementById("place").textContent === "2" && document.title.startsWith("Place 2 ")`)
	if got := b.text("when"); !strings.HasSuffix(got, "(in 5 minutes)") {
		t.Errorf("the start is %q", got)
	}
	b.until(`document.getElementById("said").textContent.startsWith("Place in the queue: 2. 1 download is ahead of yours. Expected start: about ")`)
	close(seen[1])
	b.until(`document.getElementById("place").textContent === "1" && document.getElementById("ahead").textContent === "Yours is the next one."`)
	if value := evaluate[float64](b, `document.getElementById("bar").value / document.getElementById("bar").max`); value < 0.6 || value > 0.7 {
		t.Errorf("two of three places on, the bar is at %v", value)
	}
	close(seen[2])
	b.until(`document.getElementById("head").textContent === "Your download has started"`)
	b.downloaded()
	if got := b.text("state"); !strings.Contains(got, "the download has started") {
		t.Errorf("the state is %q", got)
	}
	if got := evaluate[string](b, "document.title"); got != "Download started – debian 13.iso" {
		t.Errorf("the title is %q", got)
	}
	b.screenshot("started")
	// The page has said what it had to say and offers a plain link.
	must(t, chromedp.Do(b, chromedp.Click(chromedp.CSS("#now"))))
	b.downloaded()
	if pages, questions, files := p.counts(); pages != 1 || questions != 3 || files != 2 {
		t.Errorf("%d pages, %d questions, %d files; want 1, 3, and 2 with the link", pages, questions, files)
	}
	if want := []string{"", "2.a.2.c", "2.a.1.c"}; !slices.Equal(p.tickets, want) {
		t.Errorf("tickets %q came back, want %q", p.tickets, want)
	}
	b.clean(p)
}

// TestV4_WithoutScripts: the page loads itself again, and the load whose turn it is becomes the download.
func TestV4_WithoutScripts(t *testing.T) {
	t.Parallel()
	starts := time.Now().Add(10 * time.Minute)
	p := newTestProxy(t, Facts{Name: "debian 13.iso", Position: 3, StartsAt: starts, RetryAfter: 1})
	b := newTab(t, "ru")
	_, err := chromedp.Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	must(t, err)
	b.open(p)
	for id, want := range map[string]string{"place": "3", "ahead": "Впереди 2 скачивания.",
		"when": "около " + strings.TrimSuffix(visible(russian.appendTime(nil, starts, time.Now())), " UTC") + " UTC (через 10 минут)"} {
		if got := b.text(id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if got := b.text("body"); !strings.Contains(got, "страница обновляется раз в 5 секунд") {
		t.Errorf("the page does not say that it loads itself again: %q", got)
	}
	b.screenshot("without-scripts")
	p.mu.Lock()
	p.open = true
	p.mu.Unlock()
	b.downloaded()
	if pages, questions, files := p.counts(); pages != 1 || questions != 0 || files != 1 {
		t.Errorf("%d pages, %d questions, %d files; want 1, 0, 1", pages, questions, files)
	}
	b.clean(p)
}

// TestV4_SlotLostAfterReady: the navigation finds the slot gone and shows the page again, which goes on.
func TestV4_SlotLostAfterReady(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "a", Position: 2, RetryAfter: 1},
		func(_ *testProxy, w http.ResponseWriter, _ *http.Request) {
			give(w, 200, map[string]any{"ready": true})
		}, ready)
	b := newTab(t, "en")
	// A fragment must not make the navigation a mere scroll, nor a password make asking impossible.
	must(t, chromedp.Do(b, chromedp.Navigate(strings.Replace(p.address(), "//", "//user:secret@", 1)+"#part")))
	b.expect(p, "page")
	b.expect(p, "question")
	b.expect(p, "page")
	b.downloaded()
	if pages, questions, files := p.counts(); pages != 2 || questions != 2 || files != 1 {
		t.Errorf("%d pages, %d questions, %d files; want 2, 2, 1", pages, questions, files)
	}
	b.clean(p)
}

// TestV4_ConnectionLost: no answer is borne and told, coming online and coming to the front ask at once, news ends it.
func TestV4_ConnectionLost(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "a", Position: 3, RetryAfter: 1}, broken, placed(2, time.Minute, 20), placed(1, time.Minute, 20))
	b := newTab(t, "en")
	// The first question comes by time, all others that wait longer would never come.
	b.before(`const real = setTimeout, ask = fetch;
		window.setTimeout = (f, ms) => ms < 1500 ? real(f, ms) : 0;
		window.asked = 0;
		window.fetch = (...all) => { asked++; return ask(...all) }`)
	b.open(p)
	b.until(`document.getElementById("state").textContent === "Connection lost, trying again."`)
	if got := b.text("place"); got != "3" {
		t.Errorf("while the connection is lost the place is %q", got)
	}
	b.screenshot("lost")
	if got := evaluate[int](b, `dispatchEvent(new Event("online")), dispatchEvent(new Event("online")), asked`); got != 2 {
		t.Errorf("%d questions when the browser is online again, want the second one", got)
	}
	b.until(`document.getElementById("state").textContent === "Waiting for your turn." && document.getElementById("place").textContent === "2"`)
	// Before its time a page that comes to the front asks nothing, after it at once.
	for i, seconds := range []string{"10", "30"} {
		front := `(() => {
			const clock = performance.timeOrigin + performance.now();
			Date.now = () => clock + ` + seconds + ` * 1000;
			document.dispatchEvent(new Event("visibilitychange"));
			return asked;
		})()`
		if got, want := evaluate[int](b, front), 2+i; got != want {
			t.Errorf("%d questions of a page that comes to the front after %s s, want %d", got, seconds, want)
		}
	}
	b.until(`document.getElementById("place").textContent === "1"`)
	if _, questions, _ := p.counts(); questions != 3 {
		t.Errorf("%d questions, want 3", questions)
	}
	b.clean(p)
}

// TestV4_WaitsBetweenQuestions: what the page waits for, in seconds, by the answer; its timers are noted and run out at once.
func TestV4_WaitsBetweenQuestions(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "a", Position: 9, RetryAfter: 4},
		broken, other(502, "text/html", "<h1>Bad gateway</h1>"), other(503, "text/plain", "busy"), other(503, "application/json", "{"),
		other(503, "application/json", "null"), other(500, "application/json", `{"error":"internal_error","retryAfterSeconds":1}`), other(418, "text/plain", ""),
		placed(8, time.Minute, 7), placed(7, time.Minute, 9999),
		other(429, "application/json; charset=utf-8", `{"error":"busy","reason":"draining","retryAfterSeconds":2}`),
		other(503, "application/json", `{"queuePosition":6}`), placed(5, time.Minute, 33), hanging)
	b := newTab(t, "en")
	b.before(`const real = setTimeout; window.waits = []; window.setTimeout = (f, ms) => ms === 60000 ? 0 : (waits.push(ms / 1000), real(f, 0))`)
	b.open(p)
	b.until(`document.getElementById("place").textContent === "5"`)
	got := evaluate[[]float64](b, "waits")
	want := []float64{4, 2, 4, 8, 16, 32, 60, 60, 7, 300, 2, 2, 33}
	if len(got) != len(want) {
		t.Fatalf("the page waited %v, want about %v", got, want)
	}
	spread := false
	for i := range want {
		if got[i] < want[i] || got[i] > want[i]*1.1+0.001 {
			t.Errorf("wait %d is %v s, want %v and up to a tenth more", i, got[i], want[i])
		}
		spread = spread || got[i] != want[i]
	}
	if !spread {
		t.Errorf("no wait has a random part: %v", got)
	}
	b.clean(p)
}

// TestV4_SpeaksWhenItIsWorthIt: a screen reader is interrupted by news of a tenth of the way, not by each step and not by the same again.
func TestV4_SpeaksWhenItIsWorthIt(t *testing.T) {
	t.Parallel()
	const start = 10 * time.Hour
	p := newTestProxy(t, Facts{Name: "a", Position: 312, StartsAt: time.Now().Add(start), RetryAfter: 300},
		placed(312, start, 300), placed(311, start, 300), placed(282, start, 300), placed(280, start, 300), placed(279, start, 300),
		placed(279, start+time.Hour, 300), placed(278, start+4*time.Hour, 300), placed(250, start+4*time.Hour, 300), placed(10, start+4*time.Hour, 300),
		placed(9, start+4*time.Hour, 300), hanging)
	b := newTab(t, "en")
	b.before(`const real = setTimeout; window.setTimeout = (f, ms) => ms === 60000 ? 0 : real(f, 0);
		window.spoken = [];
		addEventListener("DOMContentLoaded", () => {
			new MutationObserver(() => spoken.push(document.getElementById("said").textContent.match(/[0-9]+/)[0]))
				.observe(document.querySelector("[role=status]"), { subtree: true, childList: true, characterData: true });
		})`)
	b.open(p)
	b.until(`document.getElementById("place").textContent === "9"`)
	if got, want := evaluate[[]string](b, "spoken"), []string{"280", "278", "250", "10", "9"}; !slices.Equal(got, want) {
		t.Errorf("the reader speaks at the places %v, want %v", got, want)
	}
	b.clean(p)
}

// TestV4_RealAnswer: a refusal of the server is shown as it is, by one reload; when the reload is the page again, by no second one.
func TestV4_RealAnswer(t *testing.T) {
	t.Parallel()
	denied := other(403, "application/json", `{"error":"denied"}`)
	p := newTestProxy(t, Facts{Name: "a", Position: 2, RetryAfter: 1}, denied, denied, placed(2, time.Minute, 1), denied)
	b := newTab(t, "en")
	b.open(p)
	b.expect(p, "question")
	b.expect(p, "page") // the reload
	b.expect(p, "question")
	b.until(`document.getElementById("state").textContent === "Connection lost, trying again."`)
	p.mu.Lock()
	p.page = func(w http.ResponseWriter) { other(403, "text/html", "<p id=real>No</p>")(p, w, nil) }
	p.mu.Unlock()
	// A good answer makes up for the reload: the next refusal is worth another one.
	b.expect(p, "other")
	must(t, chromedp.Do(b, chromedp.WaitReady(chromedp.CSS("#real"))))
	if pages, questions, _ := p.counts(); pages != 2 || questions != 4 {
		t.Errorf("%d pages, %d questions; want 2, 4", pages, questions)
	}
	b.clean(p)
}

// TestV4_FileInsteadOfAnAnswer: a server that knows nothing of questions sends the file to them. One such answer is a fault, the second
// in a row means that there is no queue any more.
func TestV4_FileInsteadOfAnAnswer(t *testing.T) {
	t.Parallel()
	file := func(p *testProxy, w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.open = true
		p.asking-- // the page is through with it before this side learns that
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Write(slices.Concat([]byte(`["`), fileBytes))
		<-r.Context().Done() // the page must not read to an end that does not come
		p.mu.Lock()
		p.asking++
		p.mu.Unlock()
	}
	p := newTestProxy(t, Facts{Name: "a", Position: 2, RetryAfter: 1}, file, other(200, "application/json", `{"ready":false}`))
	b := newTab(t, "en")
	b.open(p)
	b.until(`document.getElementById("state").textContent === "Connection lost, trying again."`)
	b.downloaded()
	b.clean(p)
}

// TestV4_LinkAsksFirst: the link by keyboard asks at once instead of waiting, and does not navigate before the turn.
func TestV4_LinkAsksFirst(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "a", Position: 2, RetryAfter: 300}, placed(1, time.Minute, 300), ready)
	b := newTab(t, "en")
	b.open(p)
	must(t, chromedp.Do(b, chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r")))
	b.until(`document.getElementById("state").textContent === "It is not your turn yet."`)
	must(t, chromedp.Do(b, chromedp.KeyEvent("\r")))
	b.downloaded()
	if pages, questions, files := p.counts(); pages != 1 || questions != 2 || files != 1 {
		t.Errorf("%d pages, %d questions, %d files; want 1, 2, 1", pages, questions, files)
	}
	b.clean(p)
}

// TestV4_PutAwayAndBack: a page in the browser's back-forward cache asks nothing; brought back it asks at once, and only one question at a time.
func TestV4_PutAwayAndBack(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "a", Position: 9, RetryAfter: 1}, hanging, placed(4, time.Minute, 300), hanging, placed(3, time.Minute, 300))
	b := newTab(t, "en")
	b.open(p)
	transition := func(kinds ...string) {
		must(t, chromedp.Do(b, chromedp.Evaluate[chromedp.Void](`for (const kind of "`+strings.Join(kinds, " ")+`".split(" "))
			dispatchEvent(new PageTransitionEvent(kind, { persisted: true }))`)))
	}
	for _, place := range []string{"4", "3"} {
		if place == "3" {
			transition("pageshow") // asks at once, whatever the last answer said
		}
		b.expect(p, "question")
		transition("pagehide")
		select {
		case <-p.gone:
		case <-b.Done():
			t.Fatal("the question of a page that was put away goes on")
		}
		if got := b.text("state"); got != "Waiting for your turn." {
			t.Errorf("the state is %q: a dropped question was taken for a fault", got)
		}
		transition("pageshow", "pageshow")
		b.until(`document.getElementById("place").textContent === "` + place + `"`)
		b.expect(p, "question") // the one that was answered, not to be taken for the next
	}
	b.clean(p)
}

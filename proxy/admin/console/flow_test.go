package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestV3_TokenIsAskedOnceAndKeptInTheTab: a caller that is not trusted sees nothing but the question; the token is in no address.
func TestV3_TokenIsAskedOnceAndKeptInTheTab(t *testing.T) {
	t.Parallel()
	const token = "desk-token-4711"
	h := newHouse(t, token)
	base := strings.Replace(h.base, "127.0.0.1", strangeHost, 1)
	b := newTab(t, "en")
	must(t, chromedp.Do(b, chromedp.Navigate(base+"/console/")))
	b.until(`document.querySelector("dialog[open] input[type=password]") === document.activeElement`)
	if got := evaluate[int](b, `document.querySelectorAll("dialog").length`); got != 1 {
		t.Errorf("%d questions for two calls", got)
	}
	b.axe("token")
	b.screenshot("token")
	b.press("w", "r", "o", "n", "g", "\r")
	b.until(`document.querySelector("dialog .fault:not([hidden])")?.textContent === "This token is not the right one."`)
	if got := evaluate[bool](b, `document.activeElement.matches("dialog input[aria-invalid=true]")`); !got {
		t.Error("after a wrong token the focus is not in the control")
	}
	b.axe("wrong token")
	b.press("\x1b")
	b.until(`document.body.dataset.state === "locked" && !document.querySelector("dialog")`)
	if got := b.text("#status"); !strings.Contains(got, "The admin token is needed.") {
		t.Errorf("the status is %q", got)
	}
	b.axe("locked")
	b.reach("#again")
	b.press("\r")
	b.until(`document.querySelector("dialog[open]")`)
	for _, r := range token {
		b.press(string(r))
	}
	b.press("\r")
	b.until(`document.body.dataset.state === "live" && !document.querySelector("dialog")`)
	if got := evaluate[string](b, `sessionStorage.getItem("arkvory.token") + " " + Object.values(localStorage).join() + document.cookie`); got != token+" " {
		t.Errorf("stored are %q", got)
	}
	must(t, chromedp.Do(b, chromedp.Reload()))
	b.until(`document.body.dataset.state === "live"`)
	b.click("#forget")
	b.until(`document.querySelector("dialog[open]") && !sessionStorage.getItem("arkvory.token")`)
	b.clean(base, token)
}

// TestV3_TooManyWrongTokens: the server looks at no more tokens of this peer for a while, and the question says so.
func TestV3_TooManyWrongTokens(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "desk-token-4711")
	base := strings.Replace(h.base, "127.0.0.1", strangeHost, 1)
	b := newTab(t, "ru")
	must(t, chromedp.Do(b, chromedp.Navigate(base+"/console/")))
	b.until(`document.querySelector("dialog[open]")`)
	for range 14 {
		b.press("x", "\r")
		b.until(`!document.querySelector("dialog [aria-disabled]") && document.querySelector("dialog .fault:not([hidden])")`)
		if strings.HasPrefix(b.text("dialog .fault"), "Слишком много попыток. Повторите через ") {
			b.clean(base)
			return
		}
	}
	t.Errorf("after 14 wrong tokens the question says %q", b.text("dialog .fault"))
}

// TestV3_QueueMovesInPlace: what is shown changes, the nodes stay, and with them the focus and a selection.
func TestV3_QueueMovesInPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "sessions")
	b.until(`document.querySelectorAll(".sessions tbody tr").length === 100`)
	const watched = 20
	id := evaluate[string](b, fmt.Sprintf(`(() => {
		window.row = document.querySelectorAll(".sessions tbody tr")[%d];
		row.querySelector("button").focus();
		const text = row.children[3].firstChild;
		getSelection().setBaseAndExtent(text, 0, text, 6);
		window.nodes = [row, row.children[0], row.children[3], text];
		window.blurred = 0;
		document.addEventListener("focusout", () => blurred++);
		return row.dataset.id;
	})()`, watched))
	for range 15 {
		h.move()
	}
	b.until(fmt.Sprintf(`+row.children[0].textContent < %d`, watched))
	got := evaluate[[]bool](b, fmt.Sprintf(`[row.isConnected, row.dataset.id === %q, nodes[1] === row.children[0], nodes[3] === row.children[3].firstChild, document.activeElement === row.querySelector("button"),
		String(getSelection()).length === 6, [...row.parentNode.children].indexOf(row) === row.children[0].textContent - 1]`, id))
	if slices.Contains(got, false) {
		t.Errorf("after a move: connected, same row, cell, text, focus, selection, place are %v", got)
	}
	if got := b.text("h1 + .sub"); !strings.HasSuffix(got, " sessions") {
		t.Errorf("the total is %q", got)
	}
	b.clean(h.base)
}

// TestV3_QueueView: the figures are those of the snapshot, charts have a text, and change when the queue does.
func TestV3_QueueView(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "queue")
	b.settled()
	if got := b.text(".tiles .big"); got != "17 of 17" {
		t.Errorf("the slots are %q", got)
	}
	if got := evaluate[string](b, `document.querySelector(".chart svg").getAttribute("aria-label")`); !strings.HasPrefix(got, "Bytes per second. Delivered: now ") || !strings.Contains(got, " highest ") {
		t.Errorf("the chart says %q", got)
	}
	b.click(".chart summary")
	b.until(`document.querySelectorAll(".chart details[open] tbody tr").length === 12`)
	middle := evaluate[[]float64](b, `(() => { const art = document.querySelector(".chart svg"); art.scrollIntoView({ block: "center" }); const box = art.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()`)
	_, err := chromedp.Call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: middle[0], Y: middle[1]})
	must(t, err)
	b.until(`document.querySelector(".chart .reading").textContent.includes("Delivered ")`)
	for _, one := range []struct {
		change func()
		says   string
	}{
		{func() { h.closed = true }, "The upstream is not covered (upstream_unreachable). Nothing starts until it is."},
		{func() { h.closed, h.mode = false, "queue-all" }, "Mode: queue all."},
		{func() { h.drain = true }, "The process drains: running downloads end, nothing new starts."},
	} {
		h.does(one.change)
		b.until(fmt.Sprintf(`document.getElementById("said").textContent === %q`, one.says))
		if got := evaluate[string](b, `[...document.querySelectorAll(".notice:not([hidden])")].map(n => n.innerText).join("|")`); !strings.Contains(got, one.says) {
			t.Errorf("notices: %q, want %q", got, one.says)
		}
	}
	b.axe("queue with notices")
	b.screenshot("queue-notices")
	h.does(func() { h.waiting, h.drain, h.mode = nil, false, "normal" })
	b.until(`document.querySelector(".tiles").innerText.includes("nobody waits")`)
	b.clean(h.base)
}

// TestV3_StaleIsToldAndEnds: no answer is told with the moment of what is shown, the pauses grow, a tab that is not seen asks nothing.
func TestV3_StaleIsToldAndEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.before(`window.broken = 0; window.asked = 0; window.waits = [];
		const real = fetch, later = window.later = setTimeout;
		window.fetch = (...all) => { asked++; return broken === 429 ? Promise.resolve(new Response('{"reason":"too_many"}', { status: 429, headers: { "Retry-After": "7" } })) : broken ? Promise.reject(new TypeError("gone")) : real(...all) };
		window.setTimeout = (f, ms) => { if (broken && ms >= 2000 && ms <= 60000) { document.body.dataset.waits = waits.push(ms / 1000); return later(f, waits.length < 8 ? 0 : 1e9) } return later(f, ms) };`)
	b.open(h.base, "windows")
	b.until(`document.querySelector(".weeks .badge:not(:empty)")`)
	shown := b.text("main")
	evaluate[bool](b, `broken = 1, document.querySelector("main").innerText.length > 0`)
	b.until(`document.body.dataset.state === "stale" && waits.length >= 8`)
	if got := evaluate[[]float64](b, `waits.slice(0, 7)`); !slices.Equal(got, []float64{2, 4, 8, 16, 32, 60, 60}) {
		t.Errorf("the page waited %v", got)
	}
	if got := b.text("#status"); !strings.HasPrefix(got, "No answer since ") {
		t.Errorf("the status is %q", got)
	}
	if got := b.text("main"); !strings.Contains(got, "The server does not answer. Below is what was known at ") || !strings.Contains(got, strings.Split(shown, "\n")[0]) {
		t.Errorf("the page shows %q", got)
	}
	b.until(`document.getElementById("said").textContent.startsWith("No answer since ")`)
	b.axe("stale")
	b.screenshot("stale")
	evaluate[bool](b, `broken = 429, document.getElementById("again").click(), true`)
	b.until(`document.body.dataset.state === "slowed"`)
	if got := evaluate[float64](b, `waits.at(-1)`); got < 7 {
		t.Errorf("after Retry-After: 7 the page waits %v s", got)
	}
	evaluate[bool](b, `broken = 0, document.getElementById("again").click(), true`)
	b.until(`document.body.dataset.state === "live" && document.getElementById("said").textContent === "The figures are live again."`)
	// Out of sight nothing is asked, and at once when the tab is back.
	seen := `(hidden => { Object.defineProperty(document, "hidden", { configurable: true, value: hidden }); document.dispatchEvent(new Event("visibilitychange")); return window.asked })`
	before := evaluate[int](b, seen+"(true)")
	after, err := chromedp.Run(b, chromedp.Evaluate[int](`new Promise(done => later(() => done(asked), 2600))`, chromedp.EvalAwaitPromise)) // longer than the time between two questions
	must(t, err)
	if after != before {
		t.Errorf("a hidden tab asked %d times", after-before)
	}
	if got := evaluate[int](b, seen+"(false)"); got != before+2 {
		t.Errorf("a tab that is back asked %d times at once, want 2", got-before)
	}
	b.clean(h.base)
}

// TestV3_ActionsByKeyboardAlone is the way of an operator without a mouse: to a session, its details, each action with its question.
func TestV3_ActionsByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "queue")
	b.reach("#skip")
	b.press("\r")
	b.until(`document.activeElement.id === "main"`)
	b.reach(`a[href="#/sessions?class=bulk"]`)
	b.press("\r")
	b.until(`document.activeElement.matches("h1") && document.querySelectorAll(".sessions tbody tr").length > 20`)
	if got := evaluate[string](b, `document.title + " " + [...document.querySelectorAll(".filters select")].map(s => s.value)`); got != "Sessions – Arkvory waiting,bulk,100" {
		t.Errorf("the link leads to %q", got)
	}
	b.reach(".sessions tbody tr:nth-child(3) button")
	id := evaluate[string](b, `document.activeElement.textContent`)
	b.press("\r")
	b.until(`document.activeElement.matches(".detail h2") && document.querySelector(".detail dd")`)
	b.axe("detail")
	b.screenshot("detail")
	ask := func(action, title, said string) {
		t.Helper()
		b.until(`document.querySelector(".detail .tools")`)
		b.reach(".detail .tools button:not([hidden])[data-action=" + action + "]")
		b.press("\r")
		b.until(`document.querySelector("dialog[open]")`)
		if got := b.text("dialog h2"); got != title {
			t.Errorf("%s asks %q, want %q", action, got, title)
		}
		if got := evaluate[string](b, `document.activeElement.textContent`); got != "Cancel" {
			t.Errorf("%s: the focus is on %q, want Cancel", action, got)
		}
		b.axe("question " + action)
		b.screenshot("ask-" + action)
		b.press("\t", "\r")
		b.until(fmt.Sprintf(`!document.querySelector("dialog") && document.getElementById("said").textContent === %q`, said))
	}
	ask("front", "Move to the front?", "Session "+id+" is at the front of its class.")
	ask("pause", "Pause this session?", "Session "+id+" is paused.")
	b.until(`document.querySelector("[data-action=resume]:not([hidden])")`)
	b.press("\x1b") // puts the panel away, back to where the reader was
	b.until(fmt.Sprintf(`document.querySelector(".detail").hidden && document.activeElement.textContent === %q`, id))
	b.press("\r")
	b.until(`document.querySelector("[data-action=resume]:not([hidden])")`)
	ask("resume", "Resume this session?", "Session "+id+" is resumed.")
	b.until(`document.querySelector("[data-action=pause]:not([hidden])")`)
	ask("class", "Move to another class?", "Session "+id+" has changed its class.")
	h.does(func() { h.refuse = refusal() })
	b.reach("[data-action=back]")
	b.press("\r", "\t", "\r")
	b.until(`document.querySelector("dialog .fault:not([hidden])")?.textContent.startsWith("The session’s state does not allow this any more: ")`)
	b.axe("refused action")
	b.press("\x1b")
	b.until(`!document.querySelector("dialog")`)
	h.does(func() { h.refuse = nil })
	ask("kick", "Kick this session?", "Session "+id+" was kicked.")
	b.until(`document.querySelector(".detail .notice:not([hidden])") && document.activeElement.matches(".detail h2")`)
	h.does(func() {
		want := []string{"movefront " + id, "pause " + id, "resume " + id, "movebulk " + id, "kick " + id}
		if !slices.Equal(h.acted, want) || h.find(id) != nil {
			t.Errorf("done was %q, want %q", h.acted, want)
		}
	})
	b.clean(h.base)
}

// TestV3_PagesFiltersAndClearIDs: pages follow each other, filters narrow, and clear ids cost one look and not one each two seconds.
func TestV3_PagesFiltersAndClearIDs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "sessions?state=all")
	b.until(`document.querySelector(".shown").textContent === "1–100 of 200"`)
	b.click(".pages button:last-child")
	b.until(`document.querySelector(".shown").textContent === "101–200 of 200" && document.querySelector(".pages button:last-child").getAttribute("aria-disabled")`)
	b.until(`document.getElementById("said").textContent === "101–200 of 200"`)
	b.click(".pages button:first-child")
	b.until(`document.querySelector(".shown").textContent === "1–100 of 200" && document.querySelector(".pages button:first-child").getAttribute("aria-disabled")`)
	b.click(".filters input[type=checkbox]")
	b.until(`document.querySelector(".sessions tbody tr").children[2].textContent.startsWith("user:team-")`)
	// The whole table is asked again, with hashed ids, and shows clear ones.
	polls := `new Promise(done => { let n = 0; new PerformanceObserver(list => { if ((n += list.getEntries().length) > 2) done(true) }).observe({ type: "resource" }) })`
	_, err := chromedp.Run(b, chromedp.Evaluate[bool](polls, chromedp.EvalAwaitPromise))
	must(t, err)
	if got := evaluate[string](b, `document.querySelector(".sessions tbody tr").children[2].textContent`); !strings.HasPrefix(got, "user:team-") {
		t.Errorf("the principal is %q after some polls", got)
	}
	b.click(".sessions tbody tr button")
	b.until(`document.querySelector(".detail")?.innerText.includes("user:team-")`)
	b.screenshot("clear")
	h.does(func() {
		if h.clears != 1 {
			t.Errorf("%d looks at clear ids, want 1", h.clears)
		}
	})
	principal := evaluate[string](b, `document.querySelector(".sessions tbody tr").children[2].textContent`)
	b.fill(".filters input[type=search]", principal)
	b.press("\r")
	b.until(fmt.Sprintf(`document.querySelectorAll(".sessions tbody tr").length < 20 && [...document.querySelectorAll(".sessions tbody tr")].every(row => row.children[2].textContent === %q)`, principal))
	b.fill(".filters input[type=search]", "nobody")
	b.press("\r")
	b.until(`!document.querySelector(".none").hidden`)
	b.axe("no sessions")
	if got := evaluate[string](b, "location.href"); strings.Contains(got, "team") || strings.Contains(got, "nobody") {
		t.Errorf("the address is %s", got)
	}
	b.clean(h.base)
}

// TestV3_LanguageAndThemeAreTheReaders: by the browser, then by choice, which outlives a reload.
func TestV3_LanguageAndThemeAreTheReaders(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	for languages, want := range map[string]string{"fr-FR,ru,en": "ru", "de-DE": "en", "ru-RU": "ru", "en-US,ru": "en"} {
		b := newTab(t, languages)
		b.open(h.base, "queue")
		if got := evaluate[string](b, "document.documentElement.lang"); got != want {
			t.Errorf("%s: the language is %s, want %s", languages, got, want)
		}
		if want == "en" {
			continue
		}
		b.media("prefers-color-scheme", "light")
		b.choose("#language", "en")
		b.until(`document.documentElement.lang === "en" && document.querySelector("h1").textContent === "Queue" && document.activeElement.id === "language"`)
		paper := `getComputedStyle(document.body).backgroundColor`
		light := evaluate[string](b, paper)
		b.choose("#theme", "dark")
		dark := evaluate[string](b, paper)
		must(t, chromedp.Do(b, chromedp.Reload()))
		b.until(`document.body.dataset.state === "live"`)
		if got := evaluate[string](b, `document.documentElement.lang + " " + document.querySelector("#theme").value + " " + (`+paper+`)`); got != "en dark "+dark || light == dark {
			t.Errorf("after a reload: %q; light is %s", got, light)
		}
		b.clean(h.base)
	}
}

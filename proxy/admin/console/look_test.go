package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var views = []string{"queue", "sessions", "settings", "windows"}

// TestV3_EveryViewInBothThemesLanguagesAndWidths: axe has nothing to say, nothing is wider than the screen, no text is missing.
func TestV3_EveryViewInBothThemesLanguagesAndWidths(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.put(t, `{"sessions":20,"weights":{"interactive":8,"release":4,"bulk":3,"background":1},"windows":{"bulk":{"zone":"Europe/Berlin","outsideShare":0.25,"open":[{"days":["mon","tue","wed","thu","fri"],"from":"22:00","to":"06:00"},{"days":["sat","sun"],"from":"00:00","to":"24:00"}]},"background":{"zone":"Asia/Tokyo","open":[{"from":"01:00","to":"05:30"}]}},"principals":{"user:ci":{"class":"interactive","bytesPerDay":1099511627776},"user:mirror":{"class":"background","bytesPerWeek":5497558138880}},"quotas":{"bytesPerDay":549755813888}}`)
	for _, language := range []string{"en-GB,en;q=0.9", "ru-RU,ru;q=0.9"} {
		for _, one := range []struct {
			theme         string
			width, height int64
		}{{"light", 1440, 900}, {"dark", 1440, 900}, {"light", 320, 640}, {"dark", 320, 640}} {
			b := newTab(t, language)
			b.size(one.width, one.height)
			b.media("prefers-color-scheme", one.theme, "prefers-reduced-motion", "reduce")
			for _, view := range views {
				name := view + "-" + language[:2] + "-" + one.theme + map[bool]string{true: "-narrow"}[one.width == 320]
				b.open(h.base, view)
				must(t, chromedp.Do(b, chromedp.Navigate("about:blank"))) // each view is entered as a page
				b.open(h.base, view)
				b.settled()
				b.axe(name)
				if got := evaluate[int64](b, "document.documentElement.scrollWidth"); got > one.width {
					t.Errorf("%s: the page is %d pixels wide on a screen of %d: %s", name, got, one.width, evaluate[string](b, `[...document.querySelectorAll("body *")].filter(n => !n.closest(".scroll, .said, .art") && n.getBoundingClientRect().right > 321).slice(0, 5).map(n => n.outerHTML.slice(0, 120)).join(" | ")`))
				}
				if got := evaluate[int](b, `document.querySelectorAll("h1").length`); got != 1 {
					t.Errorf("%s has %d headings of the first level", name, got)
				}
				if got := evaluate[string](b, "document.documentElement.lang"); got != language[:2] {
					t.Errorf("%s is in the language %q", name, got)
				}
				if got := evaluate[[]string](b, `[...new Set(document.body.innerText.match(/\b[a-z]+\.[a-z][a-zA-Z.-]+\b|\{\w+\}|undefined|NaN|\[object/g) || [])].filter(s => !/^(store|user)\b/.test(s))`); len(got) > 0 {
					t.Errorf("%s shows %q", name, got)
				}
				b.screenshot(name)
			}
			b.clean(h.base)
		}
	}
}

// settled waits until the view shows its data.
func (b *tab) settled() {
	b.t.Helper()
	b.until(`document.querySelector(".tiles .big:not(:empty)") && document.querySelector(".charts .line[d]") || document.querySelector(".sessions tbody tr") ||
		document.querySelector(".savebar") || document.querySelector(".weeks .open")`)
}

// TestV3_EveryStateInBothThemesAndLanguages: axe judges the dialogs, the details, the faults, the conflict and the loss of the server as well.
func TestV3_EveryStateInBothThemesAndLanguages(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ru"} {
		h := newHouse(t, "desk-token-4711")
		b := newTab(t, language)
		b.before(`const real = fetch; window.fetch = (...all) => window.broken ? Promise.reject(new TypeError("gone")) : real(...all)`)
		look := func(state string) {
			t.Helper()
			for _, theme := range []string{"light", "dark"} {
				b.media("prefers-color-scheme", theme, "prefers-reduced-motion", "reduce")
				b.axe(state + " " + language + " " + theme)
				b.screenshot("state-" + state + "-" + language + "-" + theme)
			}
		}
		stranger := strings.Replace(h.base, "127.0.0.1", strangeHost, 1)
		must(t, chromedp.Do(b, chromedp.Navigate(stranger+"/console/")))
		b.until(`document.querySelector("dialog[open]")`)
		b.press("x", "\r")
		b.until(`document.querySelector("dialog .fault:not([hidden])")`)
		look("token-wrong")
		b.press("\x1b")
		b.until(`document.body.dataset.state === "locked"`)
		look("locked")

		b.open(h.base, "sessions")
		b.settled()
		b.click(".sessions tbody tr:nth-child(2) button")
		b.until(`document.querySelector(".detail dd")`)
		look("detail")
		for _, action := range []string{"front", "class", "pause", "kick"} {
			b.click("[data-action=" + action + "]")
			b.until(`document.querySelector("dialog[open]")`)
			look("ask-" + action)
			b.press("\x1b")
			b.until(`!document.querySelector("dialog")`)
		}
		h.does(func() { h.refuse = refusal() })
		b.click("[data-action=kick]")
		b.click("dialog .danger")
		b.until(`document.querySelector("dialog .fault:not([hidden])")`)
		look("ask-refused")
		b.press("\x1b")
		b.until(`!document.querySelector("dialog")`)

		b.open(h.base, "settings")
		b.settled()
		b.fill(field("sessions"), "0")
		b.fill(field("weights.bulk"), "x")
		b.click(".savebar .primary")
		b.until(`document.querySelectorAll("[data-fault]").length === 2`)
		look("faults")
		b.fill(field("sessions"), "8")
		b.fill(field("weights.bulk"), "5")
		h.put(t, `{"sessions":9,"windows":{"bulk":{"open":[{"from":"22:00","to":"06:00"}]}}}`)
		b.click(".savebar .primary")
		b.until(`document.querySelector("section.conflict")`)
		b.click("section.conflict .primary")
		b.until(`document.querySelector("section.conflict .fault:not([hidden])")`)
		look("conflict")

		b.open(h.base, "queue")
		b.settled()
		b.click(".chart summary")
		h.does(func() { h.closed, h.drain, h.mode = true, true, "dry-run" })
		b.until(`document.querySelectorAll(".notice:not([hidden])").length === 3`)
		look("notices")
		evaluate[bool](b, `window.broken = true`)
		b.until(`document.body.dataset.state === "stale"`)
		look("stale")
	}
}

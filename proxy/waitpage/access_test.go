package waitpage

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
)

// contrast is a script whose value is the least contrast of any text to the page, as WCAG defines it, and that text.
const contrast = `(() => {
	const light = color => {
		const [r, g, b] = color.match(/[\d.]+/g).map(n => n / 255).map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	const paper = light(getComputedStyle(document.body).backgroundColor);
	let least = { Ratio: 99, Text: "" };
	for (const element of document.querySelectorAll("main *")) {
		const text = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join("");
		const found = ratio(light(getComputedStyle(element).color), paper);
		if (text && found < least.Ratio) least = { Ratio: found, Text: text };
	}
	const bar = getComputedStyle(document.getElementById("bar"));
	return { ...least, Bar: ratio(light(bar.borderTopColor), paper), Paper: paper };
})()`

// TestV4_SchemesAndNarrowScreens: contrast AA in both schemes, no movement for who wants none, no sideways scrolling at 320 pixels.
func TestV4_SchemesAndNarrowScreens(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "обновление-" + strings.Repeat("длинное", 20) + ".tar.gz", Position: 312, StartsAt: time.Now().Add(30 * time.Hour),
		Earliest: time.Now().Add(20 * time.Hour), Latest: time.Now().Add(50 * time.Hour), RetryAfter: 300, Yielded: true})
	b := newTab(t, "ru-RU,ru;q=0.9")
	papers := map[string]float64{}
	for _, one := range []struct {
		scheme        string
		width, height int64
	}{{"light", 1280, 900}, {"dark", 1280, 900}, {"dark", 320, 640}, {"light", 320, 256}} {
		must(t, chromedp.Do(b, chromedp.EmulateViewport(one.width, one.height)))
		b.media("prefers-color-scheme", one.scheme)
		b.open(p)
		got := evaluate[struct {
			Ratio, Bar, Paper float64
			Text              string
		}](b, contrast)
		papers[one.scheme] = got.Paper
		if got.Ratio < 4.5 || got.Text == "" {
			t.Errorf("%s: %q has a contrast of %.2f, want 4.5", one.scheme, got.Text, got.Ratio)
		}
		if got.Bar < 3 {
			t.Errorf("%s: the bar's edge has a contrast of %.2f, want 3", one.scheme, got.Bar)
		}
		if width := evaluate[int64](b, "document.documentElement.scrollWidth"); width > one.width {
			t.Errorf("the page is %d pixels wide on a screen of %d", width, one.width)
		}
		b.screenshot(one.scheme + map[bool]string{true: "-narrow"}[one.width == 320])
	}
	if papers["light"] < 0.5 || papers["dark"] > 0.2 {
		t.Errorf("the papers of the schemes are %v", papers)
	}
	// An unknown place makes the bar move, if that is welcome.
	moves := `document.getElementById("bar").removeAttribute("value"), getComputedStyle(document.getElementById("bar")).animationName`
	for preference, want := range map[string]string{"no-preference": "slide", "reduce": "none"} {
		b.media("prefers-reduced-motion", preference)
		if got := evaluate[string](b, moves); got != want {
			t.Errorf("with reduced motion %s the bar's animation is %q, want %q", preference, got, want)
		}
	}
	b.clean(p)
}

// TestV4_ScreenReaderAndKeyboard: what a screen reader is told, and where the tabulator goes.
func TestV4_ScreenReaderAndKeyboard(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t, Facts{Name: "debian 13.iso", Position: 312, StartsAt: time.Now().Add(47 * time.Minute), RetryAfter: 300})
	b := newTab(t, "en")
	b.open(p)
	b.until(`document.querySelector("time").textContent && !document.querySelector("time").textContent.includes("UTC")`)
	tree, err := chromedp.Call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	must(t, err)
	names := map[string][]string{}
	for _, node := range tree.Nodes {
		if !node.Ignored && node.Role != nil && node.Name != nil {
			names[plain(node.Role.Value)] = append(names[plain(node.Role.Value)], plain(node.Name.Value))
		}
	}
	for role, want := range map[string]string{
		"RootWebArea": "Place 312 in the queue – debian 13.iso",
		"main":        "",
		"heading":     "Your download is in the queue",
		"progressbar": "Way through the queue",
		"link":        "Download now if your turn has come",
		"status":      "",
	} {
		if got := names[role]; len(got) != 1 || got[0] != want {
			t.Errorf("role %s has the names %q, want one, %q", role, got, want)
		}
	}
	if got := strings.Join(names["StaticText"], "|"); !strings.Contains(got, "Place in the queue|312|311 downloads are ahead of yours.|Expected start|about ") ||
		!strings.Contains(got, "Waiting for your turn.") {
		t.Errorf("a reader hears %q", got)
	}
	if got := evaluate[string](b, "document.documentElement.lang"); got != "en" {
		t.Errorf("the language is %q", got)
	}
	for range 2 { // from the document to the link, and out to the browser's own controls
		must(t, chromedp.Do(b, chromedp.KeyEvent("\t")))
		if evaluate[string](b, `document.activeElement.id`) == "now" {
			break
		}
	}
	if got := evaluate[string](b, `document.activeElement.id + " " + getComputedStyle(document.activeElement).outlineStyle + " " +
		getComputedStyle(document.activeElement).outlineWidth + " " + (document.activeElement.getBoundingClientRect().height >= 24)`); got != "now solid 3px true" {
		t.Errorf("the first stop of the tabulator is %q, want the link with a visible focus, high enough", got)
	}
	b.screenshot("focus")
	if stops := evaluate[int](b, `[...document.querySelectorAll("a, button, input, [tabindex]")].length`); stops != 1 {
		t.Errorf("%d stops, want the link alone", stops)
	}
	b.axe()
	b.clean(p)
}

// axe lets axe-core judge the page when ARKVORY_AXE names its file.
func (b *tab) axe() {
	path := os.Getenv("ARKVORY_AXE")
	if path == "" {
		return
	}
	source, err := os.ReadFile(path)
	must(b.t, err)
	must(b.t, chromedp.Do(b, chromedp.Evaluate[chromedp.Void](string(source)+"\n;0")))
	found, err := chromedp.Run(b, chromedp.Evaluate[[]byte](`axe.run().then(r => r.violations.map(v => ({ id: v.id, help: v.help, nodes: v.nodes.map(n => n.html) })))`,
		chromedp.EvalAwaitPromise))
	must(b.t, err)
	var violations []any
	must(b.t, json.Unmarshal(found, &violations))
	if len(violations) > 0 {
		b.t.Errorf("axe-core: %s", found)
	}
}

// TestV4_TimesAreTheReadersOwn: times in the reader's zone and by the reader's clock, else in the words of the page without scripts.
func TestV4_TimesAreTheReadersOwn(t *testing.T) {
	t.Parallel()
	india := time.FixedZone("", 5*3600+1800)
	for _, ahead := range []time.Duration{0, -3 * time.Hour} {
		starts := time.Now().Add(47 * time.Minute).Truncate(time.Second)
		p := newTestProxy(t, Facts{Name: "a", Position: 5, StartsAt: starts.Add(ahead), RetryAfter: 300})
		p.ahead = ahead
		b := newTab(t, "ru")
		b.open(p)
		local := starts.In(india).Format("15:04")
		shown := evaluate[string](b, `document.querySelector("time").textContent`)
		// Over midnight the day stands before the time, in the browser's own form. The proxy's clock is told in whole seconds.
		if earlier := starts.Add(-time.Second).In(india).Format("15:04"); !strings.HasSuffix(shown, local) && (ahead == 0 || !strings.HasSuffix(shown, earlier)) {
			t.Errorf("proxy ahead by %v: the time is %q, want %q", ahead, shown, local)
		}
		if got, want := b.text("when"), "около "+shown+" (через 47 минут)"; got != want {
			t.Errorf("proxy ahead by %v: the start is %q, want %q", ahead, got, want)
		}
		at, err := time.Parse(time.RFC3339, evaluate[string](b, `document.querySelector("time").dateTime`))
		must(t, err)
		if off := at.Sub(starts).Abs(); off > 20*time.Second {
			t.Errorf("proxy ahead by %v: the time element is off by %v", ahead, off)
		}
		b.clean(p)
	}
}

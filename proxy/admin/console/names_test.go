package console_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestV3_NoNameOfAPrincipalIsLost: the form replaces the whole record, so that a rule which it cannot hold would be taken back unseen.
func TestV3_NoNameOfAPrincipalIsLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.put(t, `{"principals":{"__proto__":{"class":"background","bytesPerDay":5},"constructor":{"class":"bulk"},"user:ci":{"class":"bulk"}}}`)
	b := newTab(t, "en")
	b.open(h.base, "settings")
	b.settled()
	b.choose(field("principals.user:ci.class"), "interactive")
	b.click(".savebar .primary")
	b.until(`document.getElementById("said").textContent === "Saved as revision 2."`)
	want := `{"principals":{"__proto__":{"class":"background","bytesPerDay":5},"constructor":{"class":"bulk"},"user:ci":{"class":"interactive"}}}`
	if got := h.overrides(); !sameJSON(t, got, want) {
		t.Errorf("saved is\n%s, want\n%s", got, want)
	}
	for _, one := range []struct{ base, mine, theirs, want string }{ // which of mine is chosen whole
		{`{}`, `{"principals":{"a":{"class":"bulk"}}}`, `{"principals":{"__proto__":{"class":"release"}}}`, `{"principals":{"a":{"class":"bulk"}}}`},
		{`{}`, `{"principals":{"__proto__":{"class":"bulk"}}}`, `{"principals":{"a":{"class":"release"}}}`, `{"principals":{"__proto__":{"class":"bulk"}}}`},
		{`{}`, `{"principals":{"constructor":{"class":"bulk"}}}`, `{"principals":{}}`, `{"principals":{"constructor":{"class":"bulk"}}}`},
	} {
		got, err := chromedp.Run(b, chromedp.Evaluate[string](fmt.Sprintf(`import("./model.js").then(m => { const [base, mine, theirs] = [%q, %q, %q].map(t => JSON.parse(t)), found = m.differing(base, mine, theirs);
			return JSON.stringify(m.merged(theirs, found, found.map(() => true))); })`, one.base, one.mine, one.theirs), chromedp.EvalAwaitPromise))
		must(t, err)
		if got != one.want {
			t.Errorf("merged %s, want %s", got, one.want)
		}
	}
	b.clean(h.base)
}

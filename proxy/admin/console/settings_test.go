package console_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/arkvory/sidecar/proxy/admin"
)

// field is the selector of a control by its path.
func field(path string) string { return `[data-field="` + path + `"]` }

// overrides are those in force, as JSON.
func (h *house) overrides() string { return string(h.desk.Current().Overrides) }

// TestV3_SettingsFormSavesWhatWasChanged: each kind of field is changed, saved and reset; untouched fields stay the environment's.
func TestV3_SettingsFormSavesWhatWasChanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "settings")
	b.settled()
	b.choose(field("strategy"), "smallest-first")
	b.fill(field("weights.bulk"), "3")
	b.fill(field("sessionMinBytes"), "1.5 GiB")
	b.click(field("preempt"))
	b.until(`document.querySelector(".savebar .left").textContent === "4 fields changed"`)
	if got := b.text(`[data-name=strategy] .source`); !strings.Contains(got, "Not saved yet") || !strings.Contains(got, "In force: ordered") || !strings.Contains(got, "Environment: ordered") {
		t.Errorf("the source is told as %q", got)
	}
	b.click(field("windows.bulk"))
	b.until(`document.querySelector('[data-field="windows.bulk.open[0].from"]')`)
	b.fill(field("windows.bulk.zone"), "Europe/Berlin")
	b.fill(field("windows.bulk.outsideShare"), "0.25")
	b.click(`[data-holder="windows.bulk.open[0]"] .day:nth-child(6) input`)
	b.click(`[data-name=principals] button[data-field=principals]`)
	b.until(`document.activeElement.dataset.field === "principals."`)
	b.fill(field("principals."), "user:ci")
	b.choose(field("principals.user:ci.class"), "interactive")
	b.fill(field("quotas.bytesPerDay"), "1T")
	b.axe("changed settings")
	b.screenshot("settings-changed")
	b.click(".savebar .primary")
	b.until(`document.getElementById("said").textContent === "Saved as revision 1."`)
	want := `{"strategy":"smallest-first","weights":{"interactive":8,"release":4,"bulk":3,"background":1},"sessionMinBytes":1610612736,"preempt":false,"windows":{"bulk":{"zone":"Europe/Berlin","outsideShare":0.25,"open":[{"days":["mon","tue","wed","thu","fri","sun"],"from":"22:00","to":"06:00"}]}},"principals":{"user:ci":{"class":"interactive"}},"quotas":{"bytesPerDay":1099511627776,"bytesPerWeek":0,"zone":"UTC"}}`
	if got := h.overrides(); !sameJSON(t, got, want) {
		t.Errorf("saved is\n%s, want\n%s", got, want)
	}
	if got := evaluate[bool](b, `document.activeElement.matches(".savebar .primary")`); !got {
		t.Error("after saving the focus is elsewhere")
	}
	for _, name := range []string{"windows", "principals", "quotas", "weights", "preempt", "sessionMinBytes"} {
		b.click(`[data-name=` + name + `] .source button`)
	}
	b.until(`document.querySelector(".savebar .left").textContent === "6 fields changed"`)
	b.click(".savebar .primary")
	b.until(`document.getElementById("said").textContent === "Saved as revision 2."`)
	if got := h.overrides(); !sameJSON(t, got, `{"strategy":"smallest-first"}`) {
		t.Errorf("after the resets: %s", got)
	}
	// What another one saves is shown where nothing is being changed.
	h.put(t, `{"sessions":9}`)
	b.until(`document.querySelector('[data-field=sessions]').value === "9" && document.querySelector('[data-field=strategy]').value === "ordered"`)
	b.clean(h.base)
}

// sameJSON compares two texts as JSON.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var one, other any
	must(t, json.Unmarshal([]byte(a), &one))
	must(t, json.Unmarshal([]byte(b), &other))
	return fmt.Sprint(one) == fmt.Sprint(other)
}

// TestV3_FaultsStandBesideTheirFields: a 400 marks each field, describes it, takes the focus to the first, and goes with the next change.
func TestV3_FaultsStandBesideTheirFields(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "ru")
	b.open(h.base, "settings")
	b.settled()
	b.fill(field("sessions"), "много")
	b.fill(field("weights.release"), "0")
	b.click(field("windows.release"))
	b.until(`document.querySelector('[data-field="windows.release.open[0].from"]')`)
	b.fill(field("windows.release.open[0].from"), "25:00")
	b.fill(field("windows.release.zone"), "Mars/Base")
	b.press("\r") // sends the form
	b.until(`document.querySelectorAll("[data-fault]").length === 4`)
	if got := evaluate[string](b, `document.activeElement.dataset.field`); got != "sessions" {
		t.Errorf("the focus is at %s, want the first wrong field", got)
	}
	wrong := evaluate[[]string](b, `[...document.querySelectorAll("[aria-invalid=true]")].map(c => c.dataset.field + ": " + c.getAttribute("aria-describedby").split(" ").map(id => document.getElementById(id).textContent).join(" "))`)
	for i, want := range []string{"sessions: ", "weights.release: ", "windows.release.zone: ", "windows.release.open[0].from: "} {
		if i >= len(wrong) || !strings.HasPrefix(wrong[i], want) || !strings.Contains(wrong[i], "Не принято. Допустимо: ") {
			t.Errorf("wrong are %q, want %s at %d", wrong, want, i)
		}
	}
	if got := b.text(".savebar .fault"); got != "Ничего не сохранено: не приняты 4 поля." {
		t.Errorf("the bar says %q", got)
	}
	b.axe("faults")
	b.media("prefers-color-scheme", "dark")
	b.axe("faults, dark")
	b.screenshot("settings-faults")
	if h.desk.Current().Revision != 0 {
		t.Error("something was saved")
	}
	b.fill(field("sessions"), "12")
	b.until(`document.querySelectorAll("[data-fault]").length === 3 && !document.querySelector('[data-field=sessions]').hasAttribute("aria-invalid")`)
	b.click(".savebar .actions button")
	b.until(`!document.querySelector("[data-fault]") && document.querySelector(".savebar .left").textContent === "Изменений нет"`)
	b.clean(h.base)
}

// TestV3_ConflictIsSettledFieldByField: both versions stand side by side, one side's changes are chosen, what both changed is asked, and the rest stays theirs.
func TestV3_ConflictIsSettledFieldByField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.put(t, `{"sessions":10,"agingMinutes":20,"principals":{"user:a":{"class":"bulk"}}}`)
	b := newTab(t, "en")
	b.open(h.base, "settings")
	b.settled()
	b.fill(field("sessions"), "11")
	b.fill(field("idleSeconds"), "45")
	b.click(`[data-name=principals] button[data-field=principals]`)
	b.fill(field("principals."), "user:mine")
	b.choose(field("principals.user:mine.class"), "release")
	h.put(t, `{"sessions":12,"agingMinutes":30,"principals":{"user:a":{"class":"bulk"},"user:theirs":{"class":"background"}}}`)
	b.until(`document.querySelector(".notice.warn:not([hidden])")?.textContent.startsWith("Changes are kept") && [...document.querySelectorAll(".notice:not([hidden])")].some(n => n.textContent.startsWith("Revision 2 was saved by token"))`)
	b.click(".savebar .primary")
	b.until(`document.activeElement.matches("section.conflict h2")`)
	rows := evaluate[[]string](b, `[...document.querySelectorAll("table.conflict tbody tr")].map(row => row.dataset.path + ": " + (row.querySelector("input:checked")?.value ?? "open"))`)
	slices.Sort(rows)
	if want := []string{"agingMinutes: theirs", "idleSeconds: mine", "principals.user:mine: mine", "principals.user:theirs: theirs", "sessions: open"}; !slices.Equal(rows, want) {
		t.Errorf("the conflict shows %q, want %q", rows, want)
	}
	if got := b.text(`tr[data-path=sessions]`); !strings.Contains(got, "10") || !strings.Contains(got, "11") || !strings.Contains(got, "12") {
		t.Errorf("before, mine and theirs are %q", got)
	}
	for _, theme := range []string{"light", "dark"} {
		b.media("prefers-color-scheme", theme)
		b.axe("conflict " + theme)
		b.screenshot("conflict-" + theme)
	}
	b.size(320, 640)
	b.screenshot("conflict-narrow")
	b.size(1280, 900)
	b.click("section.conflict .primary")
	b.until(`document.querySelector("section.conflict .fault:not([hidden])")?.textContent === "Choose a value for Slots."`)
	b.until(`document.activeElement.matches("tr[data-path=sessions] input")`)
	b.axe("undecided conflict")
	b.press(" ") // mine
	b.click("section.conflict .primary")
	b.until(`document.getElementById("said").textContent === "Saved as revision 3." && !document.querySelector("section.conflict")`)
	want := `{"sessions":11,"idleSeconds":45,"agingMinutes":30,"principals":{"user:a":{"class":"bulk"},"user:mine":{"class":"release"},"user:theirs":{"class":"background"}}}`
	if got := h.overrides(); !sameJSON(t, got, want) {
		t.Errorf("saved is %s, want %s", got, want)
	}
	b.clean(h.base)
}

// TestV3_ConflictCanBeGivenUp: dropping mine leaves theirs, and nothing is saved.
func TestV3_ConflictCanBeGivenUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "settings")
	b.settled()
	b.fill(field("idleSeconds"), "45")
	h.put(t, `{"sessions":12}`)
	b.click(".savebar .primary")
	b.until(`document.querySelector("section.conflict")`)
	b.click("section.conflict .actions button")
	b.until(`!document.querySelector("section.conflict") && document.querySelector('[data-field=sessions]').value === "12" && document.querySelector('[data-field=idleSeconds]').value === "30"`)
	if doc := h.desk.Current(); doc.Revision != 1 {
		t.Errorf("the revision is %d", doc.Revision)
	}
	b.clean(h.base)
}

// TestV3_DraftOutlivesAVisit: changes that are not saved are there when the reader comes back to the form.
func TestV3_DraftOutlivesAVisit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "settings")
	b.settled()
	b.fill(field("idleSeconds"), "45")
	b.click(`nav a[href="#/queue"]`)
	b.until(`document.querySelector(".tiles")`)
	b.click(`nav a[href="#/settings"]`)
	b.until(`document.querySelector('[data-field=idleSeconds]')?.value === "45" && document.querySelector(".savebar .left").textContent === "1 field changed"`)
	b.choose("#language", "ru")
	b.until(`document.querySelector('[data-field=idleSeconds]')?.value === "45" && document.querySelector(".savebar .left").textContent === "изменено 1 поле"`)
	b.clean(h.base)
}

// TestV3_ProblemsOfTheRecordAreShown: a record that is not in force says why.
func TestV3_ProblemsOfTheRecordAreShown(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.before(`const real = fetch; window.fetch = async (...all) => {
		const answer = await real(...all);
		if (!String(all[0]).endsWith("/settings")) return answer;
		return new Response(JSON.stringify({ ...await answer.json(), problem: "the store does not answer", persisted: true, revision: 7, updatedBy: "token", updatedAt: "2026-03-04T05:06:07.089Z" }));
	}`)
	b.open(h.base, "settings")
	b.settled()
	if got := evaluate[string](b, `[...document.querySelectorAll(".notice:not([hidden])")].map(n => n.innerText).join("|")`); got != "The saved settings are not in force: the store does not answer" {
		t.Errorf("notices: %q", got)
	}
	if got := b.text("h1 + .sub"); !strings.HasPrefix(got, "Revision 7, saved by token · 4 Mar, ") && !strings.HasPrefix(got, "Revision 7, saved by token · Mar 4, ") {
		t.Errorf("the revision is told as %q", got)
	}
	b.clean(h.base)
}

// TestV3_ModuleReadsSizes: what people type as a size.
func TestV3_ModuleReadsSizes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "queue")
	for text, want := range map[string]string{"16777216": "16777216", " 16 MiB ": "16777216", "16M": "16777216", "1.5g": "1610612736", "1,5 ГиБ": "1610612736", "2т": "2199023255552",
		"0": "0", "": `""`, "MiB": `"MiB"`, "1.5": `"1.5"`, "-1": `"-1"`, "16 XB": `"16 XB"`, "9999999 PiB": `"9999999 PiB"`, "1e3": `"1e3"`} {
		got, err := chromedp.Run(b, chromedp.Evaluate[string](fmt.Sprintf(`import("./model.js").then(m => JSON.stringify(m.size(%q)))`, text), chromedp.EvalAwaitPromise))
		if must(t, err); got != want {
			t.Errorf("%q is read as %s, want %s", text, got, want)
		}
	}
	b.clean(h.base)
}

var _ admin.Operator = (*floor)(nil)

package console_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/admin/console"
)

// sources returns the files as they are in the folder, by name: what is served must be the same.
func sources(t *testing.T) map[string]string {
	t.Helper()
	files, err := fs.Glob(os.DirFS("assets"), "*")
	must(t, err)
	all := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile("assets/" + name)
		must(t, err)
		all[name] = string(text)
	}
	if len(all) < 10 {
		t.Fatalf("%d files", len(all))
	}
	return all
}

func TestV3_AssetsAreServedAsTheyAre(t *testing.T) {
	types := map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	tags, total := map[string]string{}, 0
	for name, text := range sources(t) {
		body, kind, etag, ok := console.Asset(name)
		if !ok || string(body) != text || kind == "" || kind != types[path.Ext(name)] {
			t.Errorf("%s: ok %v, %d of %d bytes, type %q", name, ok, len(body), len(text), kind)
		}
		if !regexp.MustCompile(`^"[\w-]{20,}"$`).MatchString(etag) || tags[etag] != "" {
			t.Errorf("%s has the tag %s, as %q has", name, etag, tags[etag])
		}
		tags[etag] = name
		total += len(body)
		if lines := strings.Count(text, "\n"); lines > 400 && !strings.HasPrefix(name, "words.") {
			t.Errorf("%s has %d lines", name, lines)
		}
	}
	if total > 256<<10 {
		t.Errorf("the console has %d bytes", total)
	}
	page, kind, _, ok := console.Asset("")
	index, _, _, _ := console.Asset("index.html")
	if !ok || string(page) != string(index) || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the page: ok %v, type %q", ok, kind)
	}
	for _, name := range []string{"/", "index.htm", "../doc.go", "assets/index.html", "Index.html", "index.html/", "."} {
		if _, _, _, ok := console.Asset(name); ok {
			t.Errorf("%q is served", name)
		}
	}
}

// forbidden are what a strict policy refuses, and what turns text into markup or code.
var forbidden = map[string]*regexp.Regexp{
	"an outside address":     regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}|@import|\burl\(\s*['"]?(?:https?:|//|data:)`),
	"markup from text":       regexp.MustCompile(`\b(?:innerHTML|outerHTML|insertAdjacentHTML|DOMParser|createContextualFragment)\b|document\.write`),
	"code from text":         regexp.MustCompile(`\beval\(|new Function\b|setTimeout\(\s*['"]|javascript:`),
	"a style as attribute":   regexp.MustCompile(`setAttribute\(\s*['"]style|\.cssText\b`),
	"a handler as attribute": regexp.MustCompile(`setAttribute\(\s*['"]on`),
	"storage for the token":  regexp.MustCompile(`localStorage\.setItem\('arkvory\.token|document\.cookie`),
}

func TestV3_NothingFromElsewhereNothingInline(t *testing.T) {
	for name, text := range sources(t) {
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "") // a name, not an address
		for what, pattern := range forbidden {
			if found := pattern.FindString(text); found != "" {
				t.Errorf("%s has %s: %q", name, what, found)
			}
		}
	}
	page := sources(t)["index.html"]
	for what, pattern := range map[string]string{"a handler": `(?i)<[^>]*\son[a-z]+\s*=`, "a style": `(?i)<style|\sstyle\s*=`, "an inline script": `(?is)<script[^>]*>\s*\S[^<]*</script`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page has %s: %q", what, found)
		}
	}
}

// TestV3_ForbiddenIsFound shows that the patterns can find something.
func TestV3_ForbiddenIsFound(t *testing.T) {
	for what, text := range map[string]string{"an outside address": `@font-face { src: url(//fonts.example.com/a.woff2) }`, "markup from text": "node.innerHTML = name", "code from text": `eval(x)`,
		"a style as attribute": `setAttribute('style', 'x')`, "a handler as attribute": `setAttribute("onclick", x)`, "storage for the token": "localStorage.setItem('arkvory.token', t)"} {
		if !forbidden[what].MatchString(text) {
			t.Errorf("%s is not found in %q", what, text)
		}
	}
}

func TestV3_EveryReferenceHasItsFile(t *testing.T) {
	all := sources(t)
	used := map[string]bool{"index.html": true}
	for name, text := range all {
		pattern := `from '\./([^']+)'`
		if name == "index.html" {
			pattern = `(?:src|href)="([^"#]+)"`
		}
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			if _, ok := all[found[1]]; !ok {
				t.Errorf("%s refers to %s, which is not there", name, found[1])
			}
			used[found[1]] = true
		}
	}
	for name := range all {
		if !used[name] {
			t.Errorf("nothing refers to %s", name)
		}
	}
}

var phrase = regexp.MustCompile(`(?m)^  '([^']+)': '((?:[^'\\]|\\.)*)',$`)

// phrases reads the words of a language.
func phrases(t *testing.T, file string) map[string]string {
	t.Helper()
	text, all := sources(t)[file], map[string]string{}
	for _, one := range phrase.FindAllStringSubmatch(text, -1) {
		if _, twice := all[one[1]]; twice {
			t.Errorf("%s has %s twice", file, one[1])
		}
		all[one[1]] = one[2]
	}
	if lines := strings.Count(text, "\n  '"); lines != len(all) || lines < 300 {
		t.Fatalf("%s: %d of %d lines are phrases", file, len(all), lines)
	}
	return all
}

func TestV3_EveryPhraseInBothLanguages(t *testing.T) {
	english, russian := phrases(t, "words.en.js"), phrases(t, "words.ru.js")
	holes := regexp.MustCompile(`\{\w+\}`)
	set := func(text string) map[string]bool {
		all := map[string]bool{}
		for _, hole := range holes.FindAllString(text, -1) {
			all[hole] = true
		}
		return all
	}
	for name, text := range english {
		other, ok := russian[name]
		if !ok {
			t.Errorf("%s is not in Russian", name)
			continue
		}
		a, b := set(text), set(other)
		for hole := range a {
			if !b[hole] {
				t.Errorf("%s: %s is not in %q", name, hole, other)
			}
		}
		if len(a) != len(b) {
			t.Errorf("%s: %q and %q have not the same holes", name, text, other)
		}
		if forms := strings.Count(text, "|"); forms > 0 && (forms != 1 || strings.Count(other, "|") != 2) {
			t.Errorf("%s has the forms %q and %q, want two and three", name, text, other)
		}
		if strings.TrimSpace(text) == "" || strings.TrimSpace(other) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	for name := range russian {
		if _, ok := english[name]; !ok {
			t.Errorf("%s is not in English", name)
		}
	}
}

func TestV3_PhrasesAreThereAndUsed(t *testing.T) {
	english := phrases(t, "words.en.js")
	direct := regexp.MustCompile(`\b(?:t|count)\('([^']+)'`)
	quoted := regexp.MustCompile(`'([a-z]+\.[\w.-]+)'`)
	pattern := regexp.MustCompile("`([a-zA-Z]+)\\.\\$\\{")
	wordy := regexp.MustCompile(`word\('([a-zA-Z]+)'`)
	used, kinds := map[string]bool{"cancel": true, "close": true, "remove": true}, map[string]bool{"unit": true}
	for name, text := range sources(t) {
		if path.Ext(name) != ".js" || strings.HasPrefix(name, "words.") {
			continue
		}
		for _, one := range direct.FindAllStringSubmatch(text, -1) {
			if english[one[1]] == "" && one[1] != "unit." {
				t.Errorf("%s says %s, which no language has", name, one[1])
			}
		}
		for _, one := range quoted.FindAllStringSubmatch(text, -1) {
			used[one[1]] = true
		}
		for _, one := range append(pattern.FindAllStringSubmatch(text, -1), wordy.FindAllStringSubmatch(text, -1)...) {
			kinds[one[1]] = true
		}
	}
	for name := range english {
		kind, _, _ := strings.Cut(name, ".")
		if !used[name] && !kinds[kind] {
			t.Errorf("nothing says %s", name)
		}
	}
}

// TestV3_EveryPathIsOfTheContract: each endpoint of the console stands in the description that the real server gives of itself.
func TestV3_EveryPathIsOfTheContract(t *testing.T) {
	h := newHouse(t, "")
	response, err := http.Get(h.base + "/api/v1/openapi.json")
	must(t, err)
	defer response.Body.Close()
	var described struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	must(t, json.NewDecoder(response.Body).Decode(&described))
	endpoints := regexp.MustCompile(`(?m)^  (\w+): \['([A-Z]+)', '([^']+)'\],$`).FindAllStringSubmatch(sources(t)["api.js"], -1)
	if len(endpoints) != 10 {
		t.Fatalf("%d endpoints", len(endpoints))
	}
	for _, one := range endpoints {
		if described.Paths[one[3]][strings.ToLower(one[2])] == nil {
			t.Errorf("%s: %s %s is not in the description", one[1], one[2], one[3])
		}
	}
	for name, text := range sources(t) {
		if name != "api.js" && name != "index.html" && strings.Contains(text, "/api/") {
			t.Errorf("%s asks by itself", name)
		}
	}
}

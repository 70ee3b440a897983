package waitpage

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden pages anew")

var noon = time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC)

// hostileNames are names that try to leave their place, to lie, or to be too much.
var hostileNames = map[string]string{
	"script":       `</title></bdi><script>alert(1)</script>.iso`,
	"attribute":    `" onload="alert(1)" x='`,
	"entity":       `&lt;b&gt;&#60;script&#62;&amp`,
	"comment":      `<!-- --!> ]]> <![CDATA[`,
	"override":     "invoice\u202Egpj.exe\u2066\u2069\u200F\u061C",
	"controls":     "a\x00b\r\nc\x1b[31m\u0085\u2028\ufeff",
	"invalid":      "caf\xe9\xff\xfe\xc0\xaf<\xed\xa0\x80",
	"long":         strings.Repeat("<long>&\"'", 1200) + ".tar.gz",
	"long invalid": strings.Repeat("\xff", 10<<10),
	"long wide":    strings.Repeat("𝔸", 10<<10),
	"braces":       "{n}{f}{t}{",
}

// document returns the page as text.
func document(f Facts) string { return string(Append(nil, f)) }

func TestV4_GoldenPages(t *testing.T) {
	for name, f := range map[string]Facts{
		"en-place": {Name: "debian 13.iso", Position: 312, StartsAt: noon.Add(47 * time.Minute), Earliest: noon.Add(44 * time.Minute),
			Latest: noon.Add(50 * time.Minute), Now: noon, RetryAfter: 20, Language: "en-GB,en;q=0.9"},
		"en-unknown": {RetryAfter: 2},
		"ru-interval": {Name: "обновление.tar.gz", Position: 3, StartsAt: noon.Add(11 * time.Hour), Earliest: noon.Add(9 * time.Hour),
			Latest: noon.Add(14 * time.Hour), Now: noon, RetryAfter: 400, Language: "ru-RU,ru;q=0.9,en;q=0.8"},
		"ru-next": {Name: "a.bin", Position: 1, StartsAt: noon.Add(12 * time.Second), Now: noon, RetryAfter: 1, Language: "ru", Yielded: true},
		"en-hostile": {Name: hostileNames["script"] + hostileNames["attribute"] + hostileNames["override"], Position: 2, StartsAt: noon,
			Now: noon, RetryAfter: -1, Language: "\"><script>"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".html")
			got := Append([]byte("kept"), f)
			if !bytes.HasPrefix(got, []byte("kept<!DOCTYPE html>\n")) {
				t.Fatalf("the page does not follow what was there: %.40q", got)
			}
			got = got[len("kept"):]
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the page differs from %s; look at it and run with -update:\n%s", path, got)
			}
			if err := wellFormed(string(got)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestV4_HostileNames(t *testing.T) {
	plain := document(Facts{Name: "x", Position: 7})
	for kind, name := range hostileNames {
		page := document(Facts{Name: name, Position: 7})
		if err := wellFormed(page); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if got, want := strings.Count(page, "<"), strings.Count(plain, "<"); got != want {
			t.Errorf("%s: %d times '<' in the page, want %d: the name brought its own", kind, got, want)
		}
		for _, r := range "\u202E\u2066\u2069\u200F\u061C\x00\r\x1b\u0085\u2028\ufeff" {
			if strings.ContainsRune(page, r) {
				t.Errorf("%s: %U is in the page", kind, r)
			}
		}
	}
}

func TestV4_NameIsShown(t *testing.T) {
	for name, want := range map[string]string{
		"debian.iso":                         "debian.iso",
		`a&b<c>"d"'e'`:                       "a&amp;b&lt;c&gt;&#34;d&#34;&#39;e&#39;",
		"caf\xe9":                            "caf\uFFFD",
		"x\u202Egpj.exe":                     "x\uFFFDgpj.exe",
		"می\u200Cخواهم":                      "می\u200Cخواهم",
		"\U0001F600\ue000":                   "\U0001F600\uFFFD",
		strings.Repeat("a", 119):             strings.Repeat("a", 119),
		strings.Repeat("b", 200) + ".tar.gz": strings.Repeat("b", 80) + "…" + strings.Repeat("b", 32) + ".tar.gz",
	} {
		if got := string(appendName(nil, name)); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	for language, want := range map[string]string{"en": ">the file<", "ru": ">файл<"} {
		if page := document(Facts{Language: language}); !strings.Contains(page, want) {
			t.Errorf("%s: a page without a name has no %q", language, want)
		}
	}
}

// TestV4_SizeBound holds the largest of everything at once below the bound.
func TestV4_SizeBound(t *testing.T) {
	const bound = 16 << 10
	far := time.Date(math.MaxInt32, time.September, 1, 0, 0, 0, 0, time.UTC)
	for kind, name := range hostileNames {
		for _, language := range []string{"en", "ru"} {
			page := document(Facts{Name: name, Position: math.MaxInt, StartsAt: far.Add(30 * time.Hour), Earliest: far, Latest: far.Add(time.Hour * 1e6),
				Now: far.Add(-time.Hour), RetryAfter: math.MaxInt, Language: language + strings.Repeat(",x", 1<<16), Yielded: true})
			if len(page) >= bound {
				t.Errorf("%s, %s: %d bytes, want less than %d", kind, language, len(page), bound)
			}
			if !utf8.ValidString(page) {
				t.Errorf("%s, %s: the page is not UTF-8", kind, language)
			}
		}
	}
}

func TestV4_PolicyNamesTheHashesOfThePage(t *testing.T) {
	page := document(Facts{Name: "x"})
	for _, tag := range []string{"script", "style"} {
		found := regexp.MustCompile(`(?s)<`+tag+`[^>]*>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("%d elements %s, want 1", len(found), tag)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
		if !strings.Contains(ContentSecurityPolicy, want) {
			t.Errorf("ContentSecurityPolicy must hold %q", want)
		}
	}
	for _, directive := range []string{"default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(ContentSecurityPolicy, directive) {
			t.Errorf("ContentSecurityPolicy has no %s", directive)
		}
	}
	if strings.Contains(ContentSecurityPolicy, "unsafe") {
		t.Error("ContentSecurityPolicy allows something unsafe")
	}
}

// TestV4_NothingThePolicyForbids: handlers and styles in attributes would be dead text, sinks of markup in the script a way in.
func TestV4_NothingThePolicyForbids(t *testing.T) {
	page := document(Facts{Name: "x", Position: 1})
	markup := strings.NewReplacer(script, "", style, "").Replace(page)
	if found := regexp.MustCompile(`(?i)\s(on\w+|style|src)=`).FindString(markup); found != "" {
		t.Errorf("the markup has %q", found)
	}
	if found := regexp.MustCompile(`(?i)https?:|//\w`).FindString(page); found != "" {
		t.Errorf("the page names something outside: %q", found)
	}
	if found := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(|</`).FindString(script); found != "" {
		t.Errorf("the script has %q", found)
	}
	if !strings.Contains(markup, `data-field="`+PollField+`"`) {
		t.Error("the script is not told its field")
	}
}

// TestV4_RefreshOnlyWithoutScripts: the refresh is in bounds and inside noscript, in the head.
func TestV4_RefreshOnlyWithoutScripts(t *testing.T) {
	for retry, want := range map[int]string{-3: "5", 0: "5", 5: "5", 17: "17", 60: "60", 61: "60", math.MaxInt: "60"} {
		page := document(Facts{RetryAfter: retry})
		head, _, _ := strings.Cut(page, "</head>")
		if element := `<noscript><meta http-equiv="refresh" content="` + want + `"></noscript>`; !strings.Contains(head, element) {
			t.Errorf("retry after %d: the head has no %s", retry, element)
		}
		if strings.Count(page, "http-equiv") != 1 {
			t.Errorf("retry after %d: a refresh stands outside noscript", retry)
		}
	}
	for retry, want := range map[int]string{-3: "1", 1: "1", 299: "299", math.MaxInt: "300"} {
		if page := document(Facts{RetryAfter: retry}); !strings.Contains(page, ` data-retry="`+want+`"`) {
			t.Errorf("retry after %d: the script is not told %s", retry, want)
		}
	}
}

func TestV4_AppendAllocatesNothing(t *testing.T) {
	facts := []Facts{
		{Name: strings.Repeat("<имя>", 999), Position: 22, StartsAt: noon.Add(time.Hour), Earliest: noon, Latest: noon.Add(9 * time.Hour), Now: noon,
			Language: "de, ru;q=0.7, *;q=0.1", Yielded: true},
		{Name: "a.iso", Position: 1, StartsAt: noon.Add(30 * time.Hour), Now: noon, Language: "en"},
		{},
	}
	buffer := make([]byte, 0, 16<<10)
	if n := testing.AllocsPerRun(100, func() {
		for i := range facts {
			buffer = Append(buffer[:0], facts[i])
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	f := Facts{Name: "debian-13.1.0-amd64-DVD-1.iso", Position: 312, StartsAt: noon.Add(47 * time.Minute), Now: noon, Language: "ru-RU,ru;q=0.9"}
	buffer := make([]byte, 0, 16<<10)
	b.ReportAllocs()
	for b.Loop() {
		buffer = Append(buffer[:0], f)
	}
}

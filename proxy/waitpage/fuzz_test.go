package waitpage

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// tagForm is a start or end tag as this package writes them: attribute values quoted, nothing of '<' and '>' inside them.
var tagForm = regexp.MustCompile(`^<(/?)([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*)>`)

// voids are elements without an end tag.
var voids = map[string]bool{"meta": true, "link": true}

// wellFormed is a reader of HTML that is stricter than a browser: it says what is wrong when a document is not UTF-8, a '<' does not begin a
// tag, a tag is not of the plain form, or elements are not nested. The text of script and style ends at the first "</".
func wellFormed(page string) error {
	if !utf8.ValidString(page) {
		return fmt.Errorf("not UTF-8")
	}
	rest, found := strings.CutPrefix(page, "<!DOCTYPE html>\n")
	if !found {
		return fmt.Errorf("no doctype")
	}
	var open []string
	for {
		text, after, found := strings.Cut(rest, "<")
		if strings.ContainsAny(text, ">\"") && len(open) > 0 && open[len(open)-1] != "script" && open[len(open)-1] != "style" {
			return fmt.Errorf("unescaped text %.60q in %v", text, open)
		}
		if !found {
			break
		}
		rest = "<" + after
		tag := tagForm.FindStringSubmatch(rest)
		if tag == nil {
			return fmt.Errorf("no tag: %.60q in %v", rest, open)
		}
		rest = rest[len(tag[0]):]
		switch name := tag[2]; {
		case tag[1] == "/":
			if len(open) == 0 || open[len(open)-1] != name {
				return fmt.Errorf("</%s> in %v", name, open)
			}
			open = open[:len(open)-1]
		case voids[name]:
		default:
			open = append(open, name)
			if name == "script" || name == "style" {
				end := strings.Index(rest, "</")
				if end < 0 {
					return fmt.Errorf("%s does not end", name)
				}
				rest = rest[end:]
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("not closed: %v", open)
	}
	return nil
}

// TestV4_ReaderRefuses shows that the reader can say no.
func TestV4_ReaderRefuses(t *testing.T) {
	for _, body := range []string{"<p>", "</p>", "<p></b></p>", "<p>a > b</p>", "<p>a < b</p>", "<p x='y'></p>", "<p>\xff</p>", "<script>", "<p><!-- --></p>", "<p x=\"<\"></p>"} {
		if wellFormed("<!DOCTYPE html>\n"+body) == nil {
			t.Errorf("%q passes", body)
		}
	}
	if wellFormed("<html></html>") == nil {
		t.Error("a document without a doctype passes")
	}
	if err := wellFormed("<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><style>a > b</style><p hidden>&lt;</p></html>\n"); err != nil {
		t.Error(err)
	}
}

// FuzzAppend: whatever the facts, the page is well formed, of the same elements as any other one, and in its bound.
func FuzzAppend(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name, "ru;q=0.3, en;q=0.2", 3, int64(60), int64(-60), int64(3600), 7, false)
	}
	f.Add("", "", 0, int64(0), int64(0), int64(0), 0, true)
	f.Add("x", "*", math.MinInt, int64(math.MinInt64), int64(math.MaxInt64), int64(math.MinInt64), math.MinInt, true)
	elements := regexp.MustCompile(`<time [^>]*>|</time>`)
	f.Fuzz(func(t *testing.T, name, language string, position int, starts, earliest, latest int64, retry int, yielded bool) {
		at := func(seconds int64) time.Time {
			if seconds == 0 {
				return time.Time{}
			}
			return time.Unix(noon.Unix()+seconds, 0)
		}
		facts := Facts{Name: name, Position: position, StartsAt: at(starts), Earliest: at(earliest), Latest: at(latest), Now: noon, RetryAfter: retry,
			Language: language, Yielded: yielded}
		page := document(facts)
		if err := wellFormed(page); err != nil {
			t.Fatal(err)
		}
		if len(page) >= 16<<10 {
			t.Fatalf("%d bytes", len(page))
		}
		// A name that is not there at all makes the page to compare with: times aside, the tags are the same.
		plain := document(Facts{Name: "x", Yielded: yielded})
		if got, want := strings.Count(elements.ReplaceAllString(page, ""), "<"), strings.Count(plain, "<"); got != want {
			t.Fatalf("%d times '<', want %d", got, want)
		}
	})
}

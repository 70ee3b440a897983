package rulefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestL2_ParseKeepsTextAndLines(t *testing.T) {
	var f Faults
	n := Parse([]byte("# rules\na: 007\nb:\n  - x\n  - \"y z\"\nc: {d: true, e: 1.50}\ng:\n"), &f)
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	if s, _ := n.String(&f, "a"); s != "007" {
		t.Errorf("a = %q, digits must keep their zeros", s)
	}
	items := n.List(&f, "b")
	if len(items) != 2 || items[0].Text != "x" || items[1].Text != "y z" || items[1].Line != 5 {
		t.Errorf("b = %+v", items)
	}
	c, _ := n.Get("c")
	if v, ok := c.Bool(&f, "d"); !v || !ok {
		t.Error("c.d must be true")
	}
	if s, _ := c.String(&f, "e"); s != "1.50" {
		t.Errorf("c.e = %q", s)
	}
	if g, ok := n.Get("g"); !ok || g.Kind != Null || g.Line != 7 {
		t.Errorf("g = %+v %v", g, ok)
	}
	if err := f.Err(); err != nil {
		t.Error(err)
	}
}

func TestL2_ParseNamesEveryFaultWithItsLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"no yaml", "a: [1,\nb: }", []string{"line "}},
		{"anchor", "a: &x 1\nb: *x\n", []string{"line 1: anchors", "line 2: anchors"}},
		{"tag", "a: !!str 1\n", []string{"line 1: anchors"}},
		{"two documents", "a: 1\n---\nb: 1\n", []string{"line 3: there must be one document"}},
		{"deep", "a: " + strings.Repeat("[", 20) + strings.Repeat("]", 20), []string{"line 1: more than 8 levels"}},
		{"very deep", "b: 1\na: " + strings.Repeat("[", 100000), []string{"line 2: more than 8 levels"}},
		{"long", "a: " + strings.Repeat("x", MaxBytes), []string{"more than 1048576 bytes"}},
	} {
		var f Faults
		Parse([]byte(c.text), &f)
		err := f.Err()
		if err == nil {
			t.Errorf("%s: no fault", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", c.name, err, w)
			}
		}
	}
}

func TestL2_OnlyFindsUnknownAndRepeatedKeysWithoutQuotingSecrets(t *testing.T) {
	var f Faults
	n := Parse([]byte("id: 1\nklass: 2\nid: 3\nghp_not-a-real-token: 4\n"), &f)
	n.Only(&f, "a row", "id", "class")
	got := f.Error()
	for _, w := range []string{`line 2: a row: the key "klass" is unknown, known are id, class`, `line 3: a row: the key "id" is given twice`, "line 4: a row: a key is unknown"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q lacks %q", got, w)
		}
	}
	if strings.Contains(got, "ghp_") {
		t.Errorf("%q quotes what may be a secret", got)
	}
	if n.Int(&f, "class", 1, 2); len(f.List()) != 3 {
		t.Error("an absent number is no fault")
	}
	if _, ok := n.Int(&f, "klass", 5, 9); ok || !strings.Contains(f.Error(), "klass must be a whole number from 5 to 9") {
		t.Error("a number out of range must be a fault")
	}
}

func TestL3_FaultsAreBounded(t *testing.T) {
	var f Faults
	for i := range 10 * MaxFaults {
		f.Addf(i, "x")
	}
	if len(f.List()) != MaxFaults || !strings.Contains(f.Error(), "and 450 more") {
		t.Errorf("%d faults, %q", len(f.List()), f.Error())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// parseUpper accepts text without a question mark.
func parseUpper(b []byte) (*string, error) {
	if strings.Contains(string(b), "?") {
		return nil, errors.New("line 1: a question")
	}
	s := strings.ToUpper(string(b))
	return &s, nil
}

func TestI3_FileKeepsTheLastGoodValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if _, err := Open("ARKVORY_X_FILE", path, parseUpper); err == nil || !strings.Contains(err.Error(), "ARKVORY_X_FILE") || strings.Contains(err.Error(), path) {
		t.Errorf("an absent file must be an error that names the variable: %v", err)
	}
	write(t, path, "?")
	if _, err := Open("ARKVORY_X_FILE", path, parseUpper); err == nil {
		t.Error("a faulty file must not open")
	}
	write(t, path, "a")
	w, err := Open("ARKVORY_X_FILE", path, parseUpper)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		text    string // "-" removes the file, "" leaves it
		changed bool
		value   string
		problem string
	}{
		{"", false, "A", ""},
		{"b", true, "B", ""},
		{"b", false, "B", ""}, // same text, other inode
		{"?", false, "B", "a question"},
		{"", false, "B", "a question"},
		{"b", false, "B", ""},
		{"-", false, "B", "cannot read"},
		{"c", true, "C", ""},
	} {
		switch step.text {
		case "":
		case "-":
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		default:
			write(t, path, step.text)
		}
		if got := w.Poll(); got != step.changed || *w.Load() != step.value || !strings.Contains(w.Problem(), step.problem) || (step.problem == "") != (w.Problem() == "") {
			t.Errorf("step %d: changed %v, value %q, problem %q; want %+v", i, got, *w.Load(), w.Problem(), step)
		}
	}
	write(t, path, "?")
	if err := w.Reload(); err == nil || *w.Load() != "C" {
		t.Errorf("reload of a faulty file: %v, %q", err, *w.Load())
	}
}

// A write in place within one tick of the file system's clock leaves the stamp as it is; the poll after a change reads once more.
func TestI3_PollReadsOnceMoreAfterAChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, "a")
	w, err := Open("X", path, parseUpper)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "b")
	w.Poll()
	// what a write within the clock's resolution looks like: other bytes under the stamp already seen
	if err := os.WriteFile(path, []byte("c"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.stamp, err = stampOf(path); err != nil {
		t.Fatal(err)
	}
	if !w.Poll() || *w.Load() != "C" {
		t.Errorf("value %q, the second write was missed", *w.Load())
	}
}

func TestI3_NoFileIsAnEmptyOne(t *testing.T) {
	w, err := Open("X", "", parseUpper)
	if err != nil || *w.Load() != "" || w.Poll() || w.Reload() != nil || w.Problem() != "" {
		t.Errorf("%v %q", err, *w.Load())
	}
	if _, err := Open("X", t.TempDir(), parseUpper); err == nil {
		t.Error("a folder is no file of rules")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a: 1", "a:\n- b\n- {c: d}", "? a\n: b", "a: |\n x\n", "- [", "<<: *a", "a: &b c", "%YAML 1.2\n---\na", "\ta"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var f Faults
		n := Parse(b, &f)
		var walk func(Node, int)
		walk = func(n Node, depth int) {
			if depth > MaxDepth+1 {
				t.Fatal("too deep")
			}
			for _, k := range n.Keys {
				walk(k.Value, depth+1)
			}
			for _, i := range n.Items {
				walk(i, depth+1)
			}
		}
		walk(n, 0)
		n.Only(&f, "it", "a")
		_ = fmt.Sprint(f.Err())
	})
}

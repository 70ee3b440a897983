package main

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/queue/sim"
)

// TestSeedsAreRunsWithSeedsInARow: each value of a spread is the figure of the run with that seed alone.
func TestSeedsAreRunsWithSeedsInARow(t *testing.T) {
	type output struct {
		Scenario   struct{ Seed, Seeds int }
		Strategies []map[string]any
		Spreads    []struct {
			Name    string
			Figures map[string]struct {
				Min, Median, Max *float64
				Values           []*float64
			}
		}
	}
	read := func(args ...string) (o output) {
		t.Helper()
		code, out, complaint := ctl(t, with(small, append(args, "--json", "--strategy", "ordered,shared")...)...)
		if code != exitDone {
			t.Fatal(complaint)
		}
		if err := json.Unmarshal([]byte(out), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	many := read("--seed", "7", "--seeds", "3")
	if len(many.Spreads) != 2 || many.Scenario.Seeds != 3 || many.Scenario.Seed != 7 {
		t.Fatalf("%+v", many.Scenario)
	}
	for i, seed := range []string{"7", "8", "9"} {
		one := read("--seed", seed)
		if len(one.Spreads) != 0 {
			t.Error("one seed has spreads")
		}
		for j, s := range many.Spreads {
			if got := s.Figures["meanVsSharing"].Values[i]; got == nil || *got != one.Strategies[j]["meanVsSharing"] {
				t.Errorf("seed %s, %s: %v, alone %v", seed, s.Name, got, one.Strategies[j]["meanVsSharing"])
			}
			if i == 0 && many.Strategies[j]["meanVsSharing"] != one.Strategies[j]["meanVsSharing"] {
				t.Error("strategies are not those of the first seed")
			}
		}
	}
	mean := many.Spreads[0].Figures["meanVsSharing"]
	values := []float64{*mean.Values[0], *mean.Values[1], *mean.Values[2]}
	slices.Sort(values)
	if *mean.Min != values[0] || *mean.Median != values[1] || *mean.Max != values[2] || values[0] == values[2] {
		t.Errorf("%v: %v %v %v", values, *mean.Min, *mean.Median, *mean.Max)
	}
	if p := many.Spreads[1].Figures["p90Holds"]; p.Median != nil || len(p.Values) != 3 || p.Values[0] != nil {
		t.Errorf("shared promised something: %+v", p)
	}
	code, table, complaint := ctl(t, with(small, "--seeds", "2", "--strategy", "ordered,shared")...)
	if code != exitDone || !strings.Contains(table, "seeds 1..2") || !strings.Contains(table, "least / median / most of 2 runs") || !strings.Contains(table, "clients that gave up") {
		t.Errorf("%s%s", table, complaint)
	}
}

func TestSpreadLeavesOutWhatThereWasNot(t *testing.T) {
	f := figures[0]
	runs := [][]sim.Result{{{MeanVsSharing: 3}}, {{MeanVsSharing: sim.Measure(math.NaN())}}, {{MeanVsSharing: 1}}}
	if s := f.over(runs, 0); s.Least != 1 || s.Median != 2 || s.Most != 3 || len(s.Values) != 3 || s.Values[1].Known() {
		t.Errorf("%+v", s)
	}
	if s := f.over(runs[1:2], 0); s.Least.Known() || s.Median.Known() || s.Most.Known() {
		t.Errorf("a spread of nothing: %+v", s)
	}
}

// TestJSONSchemaIsStable pins every name and kind of the output: what others read must not change by accident.
func TestJSONSchemaIsStable(t *testing.T) {
	var names []string
	var walk func(prefix string, of reflect.Type)
	walk = func(prefix string, of reflect.Type) {
		switch {
		case of.Kind() == reflect.Slice:
			walk(prefix+"[]", of.Elem())
		case of.Kind() == reflect.Map:
			walk(prefix+".*", of.Elem())
		case of.Kind() == reflect.Struct:
			for i := range of.NumField() {
				name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
				if name != "-" {
					walk(prefix+"."+name, of.Field(i).Type)
				}
			}
		case of == reflect.TypeFor[sim.Measure]():
			names = append(names, strings.TrimPrefix(prefix, ".")+" number or null")
		case of.Kind() == reflect.String:
			names = append(names, strings.TrimPrefix(prefix, ".")+" text")
		default:
			names = append(names, strings.TrimPrefix(prefix, ".")+" number")
		}
	}
	walk("", reflect.TypeFor[report]())
	got := strings.Join(names, "\n") + "\n"
	want, err := os.ReadFile("testdata/schema.txt")
	if err != nil || got != string(want) {
		t.Errorf("the fields of the output are not those of testdata/schema.txt (%v):\n%s", err, got)
	}
}

// TestEveryFlagHasItsOption: a flag without one would be ignored in silence.
func TestEveryFlagHasItsOption(t *testing.T) {
	var s simulate
	value := reflect.ValueOf(&s).Elem()
	for i := range value.NumField() {
		if value.Field(i).Kind() == reflect.String {
			value.Field(i).SetString(value.Type().Field(i).Name)
		}
	}
	seen := map[string]bool{}
	for _, f := range options {
		if f.meaning == "" || f.example == "" || f.rule == "" || f.name == "" {
			t.Errorf("an option without rule, example, name or meaning: %+v", f)
		}
		if f.flag == "" {
			continue
		}
		if got := s.given(f.flag); !strings.EqualFold(got, strings.ReplaceAll(f.flag, "-", "")) {
			t.Errorf("--%s reads %q", f.flag, got)
		}
		seen[s.given(f.flag)] = true
	}
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; value.Field(i).Kind() == reflect.String && !seen[name] && !slices.Contains([]string{"Scenario", "SVG", "PNG", "Trace"}, name) {
			t.Errorf("the flag of %s sets nothing", name)
		}
	}
}

// TestExamplesOfOptionsAreAccepted: what help and complaints propose works.
func TestExamplesOfOptionsAreAccepted(t *testing.T) {
	for _, f := range options {
		p, err := (&simulate{}).plan()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.set("it", f.name, f.example); err != nil {
			t.Error(err)
		}
	}
}

// TestReadmeExplainsEveryOptionAndRow holds the README to the program: the table of options to the letter, and a line for each row.
func TestReadmeExplainsEveryOptionAndRow(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	_, table, _ := strings.Cut(readme, "<!-- simulate:begin -->\n")
	table, _, _ = strings.Cut(table, "<!-- simulate:end -->")
	if want := optionTable(); table != want {
		t.Errorf("the table of options is not this:\n%s", want)
	}
	_, output, found := strings.Cut(readme, "$ bin/arkvoryctl simulate --clients 1000 --size 4GB..20GB --link 1Gbit --slots 16 --strategy ordered,smallest-first,fair-sojourn,shared\n")
	output, _, _ = strings.Cut(output, "```")
	for _, row := range rows {
		if !found || !strings.Contains(output, row.name+"  ") {
			t.Errorf("the output in the README has no row %q", row.name)
		}
	}
}

// optionTable is the table of the README.
func optionTable() string {
	var b strings.Builder
	b.WriteString("| field of a file | flag | rule | example | meaning (default) |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range options {
		flag := ""
		if f.flag != "" {
			flag = "`--" + f.flag + "`"
		}
		b.WriteString("| `" + f.name + "` | " + flag + " | " + f.rule + " | `" + f.example + "` | " + f.meaning + " |\n")
	}
	return b.String()
}

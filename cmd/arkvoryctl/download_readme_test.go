package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestC4_ReadmeExplainsDownload holds the README to the program to the letter: flags, exit codes, fields of --json, and the screen that a run of
// the tests showed.
func TestC4_ReadmeExplainsDownload(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	for name, want := range map[string]string{"download-flags": downloadTable(t), "download-exit": exitTable(), "download-json": jsonTable()} {
		_, table, _ := strings.Cut(readme, "<!-- "+name+":begin -->\n")
		table, _, _ = strings.Cut(table, "<!-- "+name+":end -->")
		if table != want {
			t.Errorf("what stands between the marks of %s is not this:\n%s", name, want)
		}
	}
	screen, err := os.ReadFile("testdata/terminal.txt")
	if err != nil || !strings.Contains(readme, string(screen)) {
		t.Errorf("the README does not show testdata/terminal.txt (%v):\n%s", err, screen)
	}
}

// downloadTable is the table of flags.
func downloadTable(t *testing.T) string {
	t.Helper()
	var line cli
	parser, err := newParser(&line, streams{&strings.Builder{}, &strings.Builder{}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| flag | rule | example | meaning (default) |\n| --- | --- | --- | --- |\n")
	row := func(name string, short rune, rule, example, meaning string) {
		if short != 0 {
			name += "`, `-" + string(short)
		}
		if example != "" {
			example = "`" + example + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s | %s |\n", name, rule, example, meaning)
	}
	for _, command := range parser.Model.Children {
		if command.Name != "download" {
			continue
		}
		next := 0
		for _, flag := range command.Flags {
			if flag.IsBool() {
				row(flag.Name, flag.Short, "", "", flag.Help)
				continue
			}
			f := downloadOptions[next] // they stand in the same order, TestC4_EveryDownloadFlagHasItsOption
			next++
			row(f.flag, flag.Short, f.rule, f.example, f.meaning)
		}
	}
	return b.String()
}

// exitTable is the table of exit codes.
func exitTable() string {
	var b strings.Builder
	b.WriteString("| code | `reason` | meaning |\n| --- | --- | --- |\n")
	for _, one := range outcomes {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", one.code, one.reason, one.meaning)
	}
	return b.String()
}

// jsonTable is the table of the fields of --json.
func jsonTable() string {
	var b strings.Builder
	b.WriteString("| field | of | meaning |\n| --- | --- | --- |\n")
	for _, one := range []struct {
		of    string
		shape reflect.Type
	}{{"events", reflect.TypeFor[eventLine]()}, {"the end", reflect.TypeFor[endLine]()}} {
		for i := range one.shape.NumField() {
			field := one.shape.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, one.of, field.Tag.Get("about"))
		}
	}
	return b.String()
}

// TestC4_HelpHasTheExitCodes: whoever writes a script finds them without the README.
func TestC4_HelpHasTheExitCodes(t *testing.T) {
	code, out, _ := ctl(t, "download", "--help")
	flat := strings.Join(strings.Fields(out), " ")
	for _, one := range outcomes {
		if want := fmt.Sprintf("%d: %s. %s", one.code, one.reason, one.meaning); code != exitDone || !strings.Contains(flat, want) {
			t.Errorf("the help does not say %q", want)
		}
	}
	for code, want := range map[int]string{exitDone: "done", exitRefused: "refused", exitTerminated: "terminated"} {
		if got := reasonOf(code); got != want {
			t.Errorf("code %d is %s", code, got)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestV3_DocumentsObeyNoStranger: the name of an object is what a client sent, and --json shows it on a terminal.
func TestV3_DocumentsObeyNoStranger(t *testing.T) {
	name := "store/\u009b2J\u009d0;owned\u009c\x7f\u202egnp.exe\u2066\U000e0001 配布 é 📦\ufffd"
	plain, err := json.Marshal(map[string]string{"object": name})
	if err != nil {
		t.Fatal(err)
	}
	broken := append(bytes.Clone(plain[:len(plain)-2]), "\x9b31m\"}"...)
	for _, document := range [][]byte{plain, broken} {
		for kind, print := range map[string]func(*bytes.Buffer) error{
			"indented": func(b *bytes.Buffer) error { return printIndented(b, document) },
			"compact":  func(b *bytes.Buffer) error { return printCompact(b, document) },
		} {
			var out bytes.Buffer
			if err := print(&out); err != nil {
				t.Fatal(err)
			}
			odd := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' || r == unicode.ReplacementChar }
			if text := out.String(); strings.ContainsFunc(text, odd) || !strings.Contains(text, "配布 é 📦") {
				t.Errorf("%s: %q", kind, text)
			}
			var got, want struct{ Object string }
			if json.Unmarshal(document, &want) != nil || json.Unmarshal(out.Bytes(), &got) != nil || got != want {
				t.Errorf("%s: %q, want %q", kind, got.Object, want.Object)
			}
		}
	}
}

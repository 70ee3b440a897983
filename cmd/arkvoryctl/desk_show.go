package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// deskMeanings are the texts that the helps of queue, settings and sessions take from here.
func deskMeanings() kong.Vars {
	return kong.Vars{"desk_address": deskAddress, "desk_timeout": deskTimeout}
}

// printIndented prints a server's document as it came, laid out for reading. New fields of a newer server stay in.
func printIndented(out io.Writer, document []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(document), "", "  "); err != nil {
		return fmt.Errorf("cannot print the answer: %w", err)
	}
	b.WriteByte('\n')
	return emit(out, harmless(b.Bytes()))
}

// printCompact prints it on one line.
func printCompact(out io.Writer, document []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, document); err != nil {
		return fmt.Errorf("cannot print the answer: %w", err)
	}
	b.WriteByte('\n')
	return emit(out, harmless(b.Bytes()))
}

// harmless writes the same JSON without a character that a terminal obeys: names in it are what strangers sent, and a terminal takes U+009B for the beginning of a
// command and U+202E for a turn of the line. JSON itself escapes those below the space only. Outside of texts a document is ASCII, so that an escape is right wherever
// such a character stands.
func harmless(document []byte) []byte {
	plain := func(r rune) bool { return r < utf8.RuneSelf && r != 0x7f || r != utf8.RuneError && unicode.IsPrint(r) }
	if bytes.IndexFunc(document, func(r rune) bool { return !plain(r) }) < 0 {
		return document
	}
	out := make([]byte, 0, len(document)+64)
	for len(document) > 0 {
		r, n := utf8.DecodeRune(document)
		if plain(r) {
			out = append(out, document[:n]...)
		} else {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
		document = document[n:]
	}
	return out
}

// emit writes what was asked for. Where it cannot be written the command has failed.
func emit(out io.Writer, text []byte) error {
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// columnsOf lays rows out in columns two spaces apart, those of the given indices to the right. Cells are taken as clean.
func columnsOf(rows [][]string, right ...int) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(padded(cell, widths[i], slices.Contains(right, i)))
			b.WriteString("  ")
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// padded fills a cell up to a width; a wider one stays whole.
func padded(cell string, width int, right bool) string {
	fill := strings.Repeat(" ", max(0, width-cells(cell)))
	if right {
		return fill + cell
	}
	return cell + fill
}

// cut shortens a line to so many cells of a terminal.
func cut(line string, width int) string {
	if width <= 0 || cells(line) <= width {
		return line
	}
	used := 0
	for i, r := range line {
		if used += cells(string(r)); used > width-1 {
			return line[:i] + "…"
		}
	}
	return line
}

// inSpan is a number of seconds as a duration; what no duration can hold is cut.
func inSpan(seconds float64) time.Duration {
	const most = 1e9 // 31 years
	return time.Duration(min(max(seconds, 0), most) * float64(time.Second))
}

// ago writes a wait, a dash for none.
func ago(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return showSpan(inSpan(seconds))
}

// counted writes a number with its word: 1 session, 2 sessions.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// mostWord is how many cells a word of a server takes at most.
const mostWord = 64

// word makes one short clean word of a server's text, a dash of none.
func word(text string) string {
	text = oneLine(text)
	if text == "" {
		return "-"
	}
	return cut(text, mostWord)
}

// when writes a moment for people at now, the bare clock for today; nil is a dash.
func when(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return showClock(*at, now)
}

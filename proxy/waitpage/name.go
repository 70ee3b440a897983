package waitpage

import (
	"unicode"
	"unicode/utf8"
)

// A name longer than headRunes+tailRunes characters is shown as its head, an ellipsis and its tail, which holds the extension.
const (
	headRunes = 80
	tailRunes = 39
)

// appendName appends a file's name for the text of an element or of the title: escaped, bounded, and without characters that a reader
// cannot see or that reorder what stands around them. What is not UTF-8 or not shown becomes U+FFFD. dst grows by at most
// (headRunes+tailRunes+1)*5 bytes.
func appendName(dst []byte, name string) []byte {
	tail := len(name)
	for n := 0; n < tailRunes && tail > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(name[:tail])
		tail -= size
	}
	head := 0
	for n := 0; n < headRunes && head < tail; n++ {
		_, size := utf8.DecodeRuneInString(name[head:tail])
		head += size
	}
	dst = appendShown(dst, name[:head])
	if head < tail {
		dst = append(dst, "…"...)
	}
	return appendShown(dst, name[tail:])
}

func appendShown(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '<':
			dst = append(dst, "&lt;"...)
		case r == '>':
			dst = append(dst, "&gt;"...)
		case r == '&':
			dst = append(dst, "&amp;"...)
		case r == '"':
			dst = append(dst, "&#34;"...)
		case r == '\'':
			dst = append(dst, "&#39;"...)
		case shown(r):
			dst = utf8.AppendRune(dst, r)
		default:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	return dst
}

// shown tells the characters of words from controls: bidirectional marks and overrides can make "gpj.exe" read "exe.jpg". The joiners stay,
// Persian and the languages of India cannot be written without them.
func shown(r rune) bool {
	const nonJoiner, joiner = 0x200C, 0x200D
	return unicode.IsGraphic(r) || r == nonJoiner || r == joiner
}

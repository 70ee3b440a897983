package admin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// parameter is one that a query may have: its rule, a value that would do, and what takes it and reports whether it can be used.
type parameter struct {
	name    string
	rule    string
	example any
	take    func(value string) bool
}

// wordParameter takes one of the words.
func wordParameter(name string, into *string, words ...string) parameter {
	return parameter{name, "one of " + strings.Join(words, ", "), words[0], func(value string) bool {
		*into = value
		return slices.Contains(words, value)
	}}
}

// textParameter takes printable text.
func textParameter(name string, into *string, example any) parameter {
	return parameter{name, "1.." + strconv.Itoa(MaxIDBytes) + " printable bytes", example, func(value string) bool {
		*into = value
		return value != "" && len(value) <= MaxIDBytes && printable(value)
	}}
}

// numberParameter takes a whole number in decimal digits.
func numberParameter(name string, into *int, most int) parameter {
	return parameter{name, "a whole number 1.." + strconv.Itoa(most), *into, func(value string) bool {
		n, err := strconv.Atoi(value)
		*into = n
		return err == nil && n >= 1 && n <= most && value[0] != '+'
	}}
}

// clearParameter takes whether ids are wanted as they are.
func clearParameter(into *bool) parameter {
	return parameter{"ids", "one of hashed, clear", "hashed", func(value string) bool {
		*into = value == "clear"
		return *into || value == "hashed"
	}}
}

func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) < 0
}

// query gives the parameters of a request to those that take them; each may come once. The names of others are not repeated: what is pasted into an
// address is not always a name.
func query(ctx *fasthttp.RequestCtx, known ...parameter) *QueryError {
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		i := slices.IndexFunc(known, func(p parameter) bool { return p.name == string(name) })
		if i < 0 {
			return noParameter(known)
		}
		p := known[i]
		if seen[p.name] {
			return &QueryError{p.name, "at most once", p.example}
		}
		seen[p.name] = true
		if !p.take(string(value)) {
			return &QueryError{p.name, p.rule, p.example}
		}
	}
	return nil
}

func noParameter(known []parameter) *QueryError {
	if len(known) == 0 {
		return &QueryError{"query", "there are no parameters here", ""}
	}
	names := make([]string, len(known))
	for i, p := range known {
		names[i] = p.name
	}
	return &QueryError{"query", "the only parameters are " + strings.Join(names, ", "), known[0].name}
}

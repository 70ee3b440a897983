package main

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// hidden stands where a secret was.
const hidden = "***"

// shortSecret is the length below which a text is hidden in addresses only: hiding every "1" would make errors unreadable.
const shortSecret = 6

// webAddress finds addresses in a text. Those of redirects carry secrets that nobody gave on the command line.
var webAddress = regexp.MustCompile(`(https?://)(?:[^\s/?#"@]*@)?([^\s"?#]*)([?#][^\s"]*)?`)

// secrets are texts that must never be shown: values of headers and what a URL carries besides its place. The download's own errors
// are clean already; this is the last look at everything that leaves the process, since errors of the network quote URLs.
type secrets []string

// secretsOf collects the secrets of a download.
func secretsOf(address *url.URL, header http.Header) secrets {
	var all secrets
	add := func(text string) {
		for _, form := range []string{text, url.QueryEscape(text), url.PathEscape(text)} {
			if len(form) >= shortSecret && !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	for _, values := range header {
		for _, value := range values {
			add(value)
			if _, credential, ok := strings.Cut(value, " "); ok { // Bearer TOKEN
				add(credential)
			}
		}
	}
	if address != nil {
		add(address.RawQuery)
		for pair := range strings.FieldsFuncSeq(address.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
			_, value, _ := strings.Cut(pair, "=")
			add(value)
			if plain, err := url.QueryUnescape(value); err == nil {
				add(plain)
			}
		}
		if address.User != nil {
			add(address.User.String())
			password, _ := address.User.Password()
			add(password)
		}
	}
	// The longest first: a short one may be a part of it.
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// hide returns the text without the secrets, and its addresses without user, query and fragment.
func (s secrets) hide(text string) string {
	text = webAddress.ReplaceAllString(text, "$1$2")
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// hiddenError is an error that shows no secret; what it wraps can still be asked for by errors.Is and errors.As.
type hiddenError struct {
	text  string
	cause error
}

func (e hiddenError) Error() string { return e.text }
func (e hiddenError) Unwrap() error { return e.cause }

// clean returns the error without the secrets.
func (s secrets) clean(err error) error {
	if err == nil {
		return nil
	}
	return hiddenError{text: s.hide(err.Error()), cause: err}
}

// secretsOfArguments are those of every URL on a command line that could not be parsed: its complaint may quote them.
func secretsOfArguments(args []string) secrets {
	var all secrets
	for i, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if address, err := url.Parse(arg); err == nil && address.Host != "" {
			all = append(all, secretsOf(address, nil)...)
		}
		if i > 0 && (args[i-1] == "-H" || args[i-1] == "--header") {
			_, value, _ := strings.Cut(arg, ":")
			all = append(all, secretsOf(nil, http.Header{"": {strings.TrimSpace(value)}})...)
		}
	}
	return all
}

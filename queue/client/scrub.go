package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
)

// fault is something that broke and may work the next time. Its text is clean of secrets. It unwraps only to causes
// that cannot carry any: errors of the network libraries hold whole addresses, queries included.
type fault struct {
	text        string
	cause       error
	unreachable bool // no server was reached: dialling or the name failed
}

func (f *fault) Error() string { return f.text }

func (f *fault) Unwrap() error { return f.cause }

// errSilent ends an attempt that brought no byte for Options.AttemptTimeout.
var errSilent = errors.New("the server was silent for too long")

// errRedirects ends a chain of redirects.
var errRedirects = errors.New("the server redirects without end")

// errUnprotected ends a chain of redirects that leaves https while nothing vouches for the bytes.
var errUnprotected = errors.New("the server redirects from https to http; give the digest, or the http address, to allow it")

// hidden stands where a secret stood.
const hidden = "[hidden]"

// shortestSecret keeps common short words, such as a query's "v=1", from being cut out of every sentence.
const shortestSecret = 5

// scrubber removes what must not be seen from texts that others wrote.
type scrubber struct {
	secrets []string // longest first is not needed: each is replaced wherever it still stands
}

var (
	queryInText = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>?]*)\?[^\s"'<>]*`)
	userInText  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s"'/<>?]*@`)
)

// newScrubber knows the secrets of an address and of request fields.
func newScrubber(u *url.URL, header http.Header) *scrubber {
	s := &scrubber{}
	s.know(u.RawQuery)
	for _, values := range u.Query() {
		for _, value := range values {
			s.know(value)
			s.know(url.QueryEscape(value))
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		s.know(password)
		s.know(u.User.String())
	}
	for _, values := range header {
		for _, value := range values {
			s.know(value)
			for _, word := range strings.Fields(value) {
				s.know(word)
			}
		}
	}
	return s
}

func (s *scrubber) know(secret string) {
	if len(secret) >= shortestSecret {
		s.secrets = append(s.secrets, secret)
	}
}

// clean returns a text without the secrets, and without the query and the user of any address in it.
func (s *scrubber) clean(text string, more ...string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	for _, secret := range more {
		if len(secret) >= shortestSecret {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	text = userInText.ReplaceAllString(text, "$1")
	return queryInText.ReplaceAllString(text, "$1?"+hidden)
}

// fault makes a fault of an error of the HTTP client or of a body.
func (s *scrubber) fault(doing string, err error) *fault {
	f := &fault{}
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	var errno syscall.Errno
	var operation *net.OpError
	var name *net.DNSError
	switch {
	case errors.Is(err, errSilent):
		f.cause = errSilent
	case errors.As(err, &errno):
		f.cause = errno
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.cause = io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		f.cause = io.EOF
	case errors.Is(err, context.DeadlineExceeded):
		f.cause = context.DeadlineExceeded
	}
	f.unreachable = errors.As(err, &operation) && operation.Op == "dial" || errors.As(err, &name) ||
		errors.Is(err, syscall.ECONNREFUSED)
	text := err.Error()
	switch f.cause {
	case io.ErrUnexpectedEOF, io.EOF:
		text = "the connection broke"
	case errSilent:
		text = errSilent.Error()
	}
	f.text = doing + ": " + printable(s.clean(text))
	return f
}

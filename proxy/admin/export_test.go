package admin

import (
	"net/http"
	"testing"
)

// What the tests from outside, which have the real desk of the settings, use of those from inside.

// SessionOfTests is the id of the one session that a Bureau knows.
const SessionOfTests = knownID

// NewBureau returns an Operator of one session.
func NewBureau() Operator { return &bureau{} }

// Conformer returns what holds an answer to the description.
func Conformer(t *testing.T) func(t *testing.T, method, pattern string, status int, header http.Header, body string) {
	s := described(t)
	return func(t *testing.T, method, pattern string, status int, header http.Header, body string) {
		t.Helper()
		s.conforms(t, method, pattern, answer{status, header, body})
	}
}

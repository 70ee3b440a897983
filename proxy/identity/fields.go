package identity

import (
	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
)

// Request fields that this package reads.
const (
	ClassField      = "Arkvory-Download-Class"
	DownloadIDField = "Arkvory-Download-Id"
)

// MaxDownloadIDBytes bounds Arkvory-Download-Id.
const MaxDownloadIDBytes = 128

// FieldError is a request field that breaks its rule; the answer is 400. It does not quote the value.
type FieldError struct {
	Field, Rule, Example string
}

// Error names the field, its rule and an example.
func (e *FieldError) Error() string {
	return e.Field + " must be " + e.Rule + ", such as " + e.Example
}

var (
	errClass = &FieldError{Field: ClassField, Rule: "given once and be interactive, release, bulk or background", Example: "bulk"}
	errID    = &FieldError{Field: DownloadIDField, Rule: "given once and have 1 to 128 letters, digits or ._~-", Example: "0f8e2c4a-7d1b-4c55-9a50-2b1f6f0f9d11"}
)

// single finds the one Arkvory field of a name; n is how many there are.
func single(h *wire.Head, name string) (v []byte, n int) {
	for _, f := range h.Fields {
		if f.ID == wire.Arkvory && wire.EqualFold(h.Name(f), name) {
			v = h.Value(f)
			n++
		}
	}
	return v, n
}

// ApplyClass returns the class of a request: base, lowered by Arkvory-Download-Class when it asks for a lower one. Asking for a higher
// class is no error and changes nothing (I4). The error is a *[FieldError] for an unknown class or a repeated field; the class returned
// with it is base. It allocates nothing.
func ApplyClass(base queue.Class, h *wire.Head) (queue.Class, error) {
	v, n := single(h, ClassField)
	if n == 0 {
		return base, nil
	}
	if n > 1 || len(v) > 16 {
		return base, errClass
	}
	for c := queue.Interactive; c.Index() == int(c); c++ { // no string of the value, hence no allocation
		if string(v) == c.String() {
			return base.Lower(c), nil
		}
	}
	return base, errClass
}

// DownloadID returns the value of Arkvory-Download-Id, which makes the sender a protocol client. present is false when the field is
// absent. The error is a *[FieldError] for a malformed or repeated field, present is true then.
func DownloadID(h *wire.Head) (id string, present bool, err error) {
	v, n := single(h, DownloadIDField)
	if n == 0 {
		return "", false, nil
	}
	if n > 1 || len(v) == 0 || len(v) > MaxDownloadIDBytes {
		return "", true, errID
	}
	for _, c := range v {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '~' || c == '-') {
			return "", true, errID
		}
	}
	return string(v), true, nil
}

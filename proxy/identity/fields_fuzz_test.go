package identity

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
)

var idForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// FuzzFields feeds any values of the download class and id, once or twice, among other fields. Whatever the request parser
// lets through, the class is never raised, an id is what its pattern says, and a refusal names its field and never the value.
func FuzzFields(f *testing.F) {
	f.Add("bulk", "0f8e2c4a-7d1b-4c55-9a50-2b1f6f0f9d11", "X: y", uint8(1), false)
	f.Add("Interactive", "", "arkvory-download-class: background", uint8(0), false)
	f.Add(" release\t", strings.Repeat("a", 129), "ARKVORY-DOWNLOAD-ID: b", uint8(3), true)
	f.Add("", "a b", "Arkvory-Download-Idx: c", uint8(9), true)
	f.Add("interactive, bulk", "a\x80", "", uint8(2), false)
	f.Fuzz(func(t *testing.T, class, id, other string, base uint8, twice bool) {
		raw := "GET /x HTTP/1.1\r\nHost: h\r\n" + ClassField + ":" + class + "\r\n" + DownloadIDField + ":" + id + "\r\n"
		if twice {
			raw += strings.ToLower(DownloadIDField) + ":" + id + "\r\n"
		}
		if other != "" {
			raw += other + "\r\n"
		}
		var h wire.Head
		if _, err := h.ParseRequest([]byte(raw+"\r\n"), 0); err != nil {
			return
		}
		from := queue.Class(base % queue.Classes)
		classes, ids := fieldValues(&h, ClassField), fieldValues(&h, DownloadIDField)
		got, err := ApplyClass(from, &h)
		wantFieldError(t, err, errClass)
		asked, unknown := queue.ParseClass(strings.Join(classes, "\n"))
		switch bad := len(classes) > 1 || len(classes) == 1 && unknown != nil; {
		case (err != nil) != bad:
			t.Fatalf("classes %q: error %v", classes, err)
		case got < from || bad && got != from || len(classes) == 0 && got != from || len(classes) == 1 && !bad && got != max(from, asked):
			t.Fatalf("classes %q turn %v into %v", classes, from, got)
		}
		value, present, err := DownloadID(&h)
		wantFieldError(t, err, errID)
		good := len(ids) == 1 && idForm.MatchString(ids[0])
		if present != (len(ids) > 0) || (err == nil) != (good || len(ids) == 0) || good && value != ids[0] || !good && value != "" {
			t.Fatalf("ids %q: %q %v %v", ids, value, present, err)
		}
	})
}

// fieldValues reads a field the slow way: every value under that name in any case.
func fieldValues(h *wire.Head, name string) (out []string) {
	for _, f := range h.Fields {
		if strings.EqualFold(string(h.Name(f)), name) {
			out = append(out, string(h.Value(f)))
		}
	}
	return out
}

// wantFieldError fails unless a refusal is the field's fixed one, which cannot hold a value.
func wantFieldError(t *testing.T, err error, fixed *FieldError) {
	t.Helper()
	var typed *FieldError
	if err != nil && (!errors.As(err, &typed) || *typed != *fixed || err.Error() != fixed.Error()) {
		t.Fatalf("error %v instead of %v", err, fixed)
	}
}

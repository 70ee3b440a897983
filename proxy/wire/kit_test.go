package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// get is a request head with lines between the Host and the end.
func get(lines ...string) string {
	return "GET /a HTTP/1.1\r\nHost: h\r\n" + strings.Join(lines, "\r\n") + crlfIf(len(lines) > 0) + "\r\n"
}

func crlfIf(b bool) string {
	if b {
		return "\r\n"
	}
	return ""
}

// status is what a refusal tells the client, 0 for no error.
func status(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is not a *wire.Error: %v", err)
	}
	if e.Rule == "" || !strings.Contains(e.Error(), e.Rule) {
		t.Fatalf("a refusal names its rule, got %q", e.Error())
	}
	return e.Status
}

// parse is ParseRequest or ParseResponse.
type parse func(h *Head, b []byte, searched int) (int, error)

// splitFeed gives the bytes in two parts at every point, and in the smallest parts, and demands the result of the whole feed.
func splitFeed(t *testing.T, f parse, b []byte) {
	t.Helper()
	var whole Head
	n, err := f(&whole, b, 0)
	want := summary(&whole, n, err)
	for cut := 0; cut <= len(b); cut += 1 + len(b)/256 { // long inputs: a sample
		var h Head
		m, e := f(&h, b[:cut], 0)
		if e == ErrNeedMore {
			m, e = f(&h, b, cut)
		}
		if got := summary(&h, m, e); got != want {
			t.Fatalf("fed %d + %d bytes of %q: got %s, want %s", cut, len(b)-cut, b, got, want)
		}
	}
	var h Head
	searched := 0
	for k := min(1, len(b)); k <= len(b); k = min(k+1+len(b)/256, max(len(b), k+1)) {
		m, e := f(&h, b[:k], searched)
		if e == ErrNeedMore && k < len(b) {
			searched = k
			continue
		}
		if got := summary(&h, m, e); got != want {
			t.Fatalf("fed in small parts to %d of %q: got %s, want %s", k, b, got, want)
		}
		return
	}
}

// summary renders what callers can see of a parsed head. Of refusals only the fact counts: which of two broken rules is seen
// first may depend on how the bytes came.
func summary(h *Head, n int, err error) string {
	if err == ErrNeedMore {
		return "need more"
	}
	if err != nil {
		return "refused"
	}
	return fmt.Sprintf("n=%d %q %q %d %q minor=%d cl=%d %v %v%v%v%v%v %q %q", n, h.Method, h.Target, h.Status, h.Reason, h.Minor,
		h.ContentLength, h.Chunked, h.Close, h.KeepAlive, h.Upgrade, h.Expect100, h.LengthAndChunked, h.Authority, fieldLines(h))
}

// fieldLines lists the fields as NAME: VALUE, with a minus before dropped ones.
func fieldLines(h *Head) []string {
	var out []string
	for _, f := range h.Fields {
		mark := ""
		if f.Dropped() {
			mark = "-"
		}
		out = append(out, mark+string(h.Name(f))+": "+string(h.Value(f)))
	}
	return out
}

func wantLines(t *testing.T, h *Head, want ...string) {
	t.Helper()
	if got := fieldLines(h); !slices.Equal(got, want) {
		t.Fatalf("fields are %q, want %q", got, want)
	}
}

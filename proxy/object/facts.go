package object

import (
	"bytes"
	"math"
	"time"

	"github.com/arkvory/sidecar/proxy/wire"
)

// MaxValidatorBytes is the longest validator that is kept; an entity tag beyond it counts as absent.
const MaxValidatorBytes = 256

// Facts is what a response head says about an object. It holds no memory of the head.
type Facts struct {
	// Known: SizeBytes is the length of the whole object. Without it SizeBytes is -1.
	Known     bool
	SizeBytes int64
	// First and Last are the bytes this response carries, both inclusive; Last is First-1 when it carries none, and -1 when unknown.
	First, Last int64
	// Validator is the entity tag as written (it begins with '"' or W/) or else the Last-Modified date, fit for If-Range when Strong;
	// "" when there is none.
	Validator string
	Strong    bool
}

// FromResponse reads the facts from a response head: 200 (to GET or HEAD), 206 with one range, 416 with its total, 304 (validator only).
// Every other status, and framing that contradicts itself, yields nothing known. It allocates the validator only.
func FromResponse(h *wire.Head) Facts {
	f := Facts{SizeBytes: -1, Last: -1}
	switch h.Status {
	case 200:
		if h.ContentLength >= 0 {
			f.Known, f.SizeBytes, f.Last = true, h.ContentLength, h.ContentLength-1
		}
	case 206:
		first, last, total, ok := parseContentRange(h.Get(wire.ContentRange))
		if !ok || last < 0 || h.Count(wire.ContentRange) > 1 || h.ContentLength >= 0 && h.ContentLength != last-first+1 {
			return f
		}
		f.First, f.Last = first, last
		if total >= 0 {
			f.Known, f.SizeBytes = true, total
		}
	case 416:
		if _, last, total, ok := parseContentRange(h.Get(wire.ContentRange)); ok && last < 0 {
			f.Known, f.SizeBytes = true, total
		}
		return f // validators of an error answer are those of the error's text
	case 304:
	default:
		return f
	}
	f.Validator, f.Strong = validator(h)
	return f
}

// parseContentRange parses "bytes A-B/T", "bytes A-B/*" (total -1) and "bytes */T" (last -1), RFC 9110 section 14.4.
func parseContentRange(v []byte) (first, last, total int64, ok bool) {
	if len(v) < 7 || !wire.EqualFold(v[:5], "bytes") || v[5] != ' ' {
		return 0, 0, 0, false
	}
	v = trim(v[6:])
	if len(v) > 2 && v[0] == '*' && v[1] == '/' {
		total, rest, ok := number(v[2:])
		return 0, -1, total, ok && len(rest) == 0 && total < math.MaxInt64
	}
	first, v, ok = number(v)
	if !ok || len(v) == 0 || v[0] != '-' {
		return 0, 0, 0, false
	}
	last, v, ok = number(v[1:])
	if !ok || last < first || last == math.MaxInt64 || len(v) < 2 || v[0] != '/' { // number ends at the largest
		return 0, 0, 0, false
	}
	if string(v) == "/*" {
		return first, last, -1, true
	}
	total, v, ok = number(v[1:])
	return first, last, total, ok && len(v) == 0 && last < total && total < math.MaxInt64
}

func validator(h *wire.Head) (string, bool) {
	tag, weak, ok := parseTag(h.Get(wire.ETag))
	if ok && h.Count(wire.ETag) > 1 {
		ok = false
	}
	if ok && !weak {
		return string(tag), true
	}
	date := h.Get(wire.LastModified)
	modified, dated := parseDate(date)
	if dated {
		sent, has := parseDate(h.Get(wire.Date))
		if has && sent.Sub(modified) >= time.Minute {
			return string(date), true
		}
	}
	switch {
	case ok:
		return string(tag), false
	case dated:
		return string(date), false
	}
	return "", false
}

// parseTag checks an entity tag (RFC 9110 section 8.8.3).
func parseTag(v []byte) (tag []byte, weak, ok bool) {
	if len(v) > MaxValidatorBytes {
		return nil, false, false
	}
	q := v
	if bytes.HasPrefix(q, []byte("W/")) {
		weak, q = true, q[2:]
	}
	if len(q) < 2 || q[0] != '"' || q[len(q)-1] != '"' {
		return nil, false, false
	}
	for _, c := range q[1 : len(q)-1] {
		if c == '"' || c < 0x21 || c == 0x7f {
			return nil, false, false
		}
	}
	return v, weak, true
}

// parseDate reads the one form of an HTTP date that senders may write (RFC 9110 section 5.6.7).
func parseDate(v []byte) (time.Time, bool) {
	const form = "Mon, 02 Jan 2006 15:04:05 GMT"
	if len(v) != len(form) {
		return time.Time{}, false
	}
	t, err := time.Parse(form, string(v))
	return t, err == nil
}

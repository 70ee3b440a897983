package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrNeedMore says that the bytes given so far hold no complete head or chunk line.
var ErrNeedMore = errors.New("need more bytes")

// Error is a message that this package refuses: Status is the answer for a client (400, 431, 501, 505), Rule names the rule that
// was broken without quoting the message, so that it can be logged and sent back.
type Error struct {
	Status int
	Rule   string
}

func (e *Error) Error() string { return fmt.Sprintf("malformed message: %s", e.Rule) }

func bad(rule string) error { return &Error{Status: 400, Rule: rule} }

// Field is one header field: offsets into [Head.Raw]. The value has no surrounding white space.
type Field struct {
	ID              ID
	name, nameEnd   uint32
	value, valueEnd uint32
	dropped         bool // named by Connection (RFC 9110 section 7.6.1)
}

// Head is the parsed head of one message, an index over Raw. The zero value is ready for use; Parse methods reset it and keep
// its capacity, at most [MaxFields] fields. It is valid only as long as the bytes it was parsed from.
type Head struct {
	// Raw holds the head from the first byte of its start line to the empty line, that one included.
	Raw []byte
	// Method, Target and Minor describe a request; Status, Reason and Minor a response. Minor is 0 or 1 (HTTP/1.0, HTTP/1.1).
	Method, Target []byte
	Status         int
	Reason         []byte
	Minor          int
	// Fields in the order received.
	Fields []Field
	// ContentLength in bytes, -1 when absent. Chunked: the body is chunked (then ContentLength is -1).
	ContentLength int64
	Chunked       bool
	// Close and KeepAlive repeat the Connection options of that name, Upgrade that Connection names upgrade.
	Close, KeepAlive, Upgrade bool
	// Expect100: the request says Expect: 100-continue (in any case of letters).
	Expect100 bool
	// LengthAndChunked: a response carried both (the length was dropped), or was chunked under HTTP/1.0; its connection must not
	// be used again.
	LengthAndChunked bool
	// Authority is the Host value, or the authority of an absolute-form target, which wins (RFC 9112 section 3.2.2).
	Authority []byte
	hosts     int
}

// Name returns the bytes of the field's name as received.
func (h *Head) Name(f Field) []byte { return h.Raw[f.name:f.nameEnd] }

// Value returns the bytes of the field's value as received, without surrounding white space.
func (h *Head) Value(f Field) []byte { return h.Raw[f.value:f.valueEnd] }

// Dropped reports whether the field's name was listed in Connection, so that it must not cross this hop.
func (f Field) Dropped() bool { return f.dropped }

// Get returns the value of the first field with a known id, nil when there is none.
func (h *Head) Get(id ID) []byte {
	for i := range h.Fields {
		if h.Fields[i].ID == id {
			return h.Value(h.Fields[i])
		}
	}
	return nil
}

// Lookup returns the value of the first field of that name, compared without regard to case; nil when there is none.
func (h *Head) Lookup(name string) []byte {
	for i := range h.Fields {
		if equalFold(h.Name(h.Fields[i]), name) {
			return h.Value(h.Fields[i])
		}
	}
	return nil
}

// AppendValues appends the values of all fields of that name in their order, each behind its length, so that no two lists of values give the same bytes.
func (h *Head) AppendValues(dst []byte, name string) []byte {
	dst = append(append(dst, name...), 0)
	for i := range h.Fields {
		if f := h.Fields[i]; !f.dropped && equalFold(h.Name(f), name) {
			v := h.Value(f)
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
			dst = append(dst, v...)
		}
	}
	return dst
}

// Count returns how many fields have the id.
func (h *Head) Count(id ID) int {
	n := 0
	for i := range h.Fields {
		if h.Fields[i].ID == id {
			n++
		}
	}
	return n
}

// HeadEnd returns the length of the head at the start of b, its empty line included, or 0 when b holds no end yet. From is the
// offset up to which b was searched before.
func headEnd(b []byte, from int, strict bool) int {
	if from > 3 {
		from -= 3
	} else {
		from = 0
	}
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0
		}
		i += from
		// an empty line follows: CRLF CRLF, or with bare LF in responses
		if i+1 < len(b) && b[i+1] == '\n' && !strict {
			return i + 2
		}
		if i+2 < len(b) && b[i+1] == '\r' && b[i+2] == '\n' {
			return i + 3
		}
		if strict && i+1 < len(b) && b[i+1] == '\n' {
			return i + 2 // refused by the line parser; an end all the same, so that it is not waited for
		}
		from = i + 1
	}
}

// ParseRequest parses the request head at the start of b and returns its length in bytes. Searched is the length of b that an
// earlier call that returned ErrNeedMore had seen. Errors: ErrNeedMore, *Error.
func (h *Head) ParseRequest(b []byte, searched int) (int, error) {
	skip := 0
	for skip < 4 && skip+1 < len(b) && b[skip] == '\r' && b[skip+1] == '\n' { // RFC 9112 section 2.2: empty lines before a request
		skip += 2
	}
	if skip > 0 && searched > skip {
		searched -= skip
	} else if skip > 0 {
		searched = 0
	}
	raw := b[skip:]
	n := headEnd(raw, searched, true)
	if n == 0 {
		if !beginsMethod(raw) {
			return 0, bad("the method is a token")
		}
		return 0, ErrNeedMore
	}
	h.reset(raw[:n])
	line, rest, err := h.line(0, true)
	if err != nil {
		return 0, err
	}
	if err := h.requestLine(line); err != nil {
		return 0, err
	}
	if err := h.fields(rest, true); err != nil {
		return 0, err
	}
	if err := h.requestFraming(); err != nil {
		return 0, err
	}
	return skip + n, nil
}

// maxMethod is more than any registered method has.
const maxMethod = 64

// beginsMethod reports whether an incomplete head can still become a request. Clients that try TLS first on a plain port (container tools told not to
// verify do) fall back at once when they are refused at once; to let them run into the head's time limit would cost them that each time.
func beginsMethod(raw []byte) bool {
	for i, c := range raw {
		switch {
		case c == ' ':
			return i > 0
		case c == '\r' && i == 0: // the first half of an empty line
			return len(raw) == 1
		case !tokenByte[c], i >= maxMethod:
			return false
		}
	}
	return true
}

// ParseResponse parses the response head at the start of b and returns its length in bytes; the rest is as for ParseRequest.
func (h *Head) ParseResponse(b []byte, searched int) (int, error) {
	n := headEnd(b, searched, false)
	if n == 0 {
		if len(b) >= 5 && string(b[:5]) != "HTTP/" {
			return 0, bad("status line begins with HTTP/")
		}
		return 0, ErrNeedMore
	}
	h.reset(b[:n])
	line, rest, err := h.line(0, false)
	if err != nil {
		return 0, err
	}
	if err := h.statusLine(line); err != nil {
		return 0, err
	}
	if err := h.fields(rest, false); err != nil {
		return 0, err
	}
	if err := h.responseFraming(); err != nil {
		return 0, err
	}
	return n, nil
}

// Bounds of the fields of one head or trailer section: what is taken, and what a head keeps room for between messages.
const (
	// MaxFields is the largest number of fields; a message with more is refused with status 431. Ordinary messages have some ten to
	// forty, and nginx and Apache stop at a hundred.
	MaxFields  = 256
	keptFields = 64 // 1.5 KiB
)

var errManyFields = &Error{Status: 431, Rule: fmt.Sprintf("a message has at most %d header or trailer fields", MaxFields)}

func (h *Head) reset(raw []byte) {
	f := h.Fields[:0]
	*h = Head{Raw: raw, Fields: f, ContentLength: -1}
}

// Reset forgets the message, with all references to its bytes, and keeps the capacity that ordinary messages need, see [Head.Shrink].
func (h *Head) Reset() {
	h.reset(nil)
	h.Shrink()
}

// Shrink gives back the room of a message with more than 64 fields, its fields with it; otherwise it does nothing. Call it when the
// message is done with and the connection goes idle: thousands of idle connections must not keep what one message each made them grow to.
func (h *Head) Shrink() {
	if cap(h.Fields) > keptFields {
		h.Fields = nil
	}
}

// line returns the line at offset off without its end, and the offset of the next.
func (h *Head) line(off int, strict bool) ([]byte, int, error) {
	i := bytes.IndexByte(h.Raw[off:], '\n')
	if i < 0 {
		return nil, 0, bad("every line ends with CRLF")
	}
	end := off + i
	if end > off && h.Raw[end-1] == '\r' {
		return h.Raw[off : end-1], end + 1, nil
	}
	if strict {
		return nil, 0, bad("every line ends with CRLF, not with a bare LF")
	}
	return h.Raw[off:end], end + 1, nil
}

func (h *Head) requestLine(l []byte) error {
	a := bytes.IndexByte(l, ' ')
	z := bytes.LastIndexByte(l, ' ')
	if a <= 0 || z <= a+1 {
		return bad("the request line is METHOD SP TARGET SP HTTP/1.1")
	}
	h.Method, h.Target = l[:a], l[a+1:z]
	for _, c := range h.Method {
		if !tokenByte[c] {
			return bad("the method is a token")
		}
	}
	for _, c := range h.Target {
		if c <= ' ' || c == 0x7f {
			return bad("the target has no white space and no control bytes")
		}
	}
	minor, err := version(l[z+1:])
	if err != nil {
		return err
	}
	h.Minor = minor
	return nil
}

func version(v []byte) (int, error) {
	if len(v) != 8 || string(v[:5]) != "HTTP/" || v[6] != '.' || v[5] < '0' || v[5] > '9' || v[7] < '0' || v[7] > '9' {
		return 0, bad("the version is HTTP/1.0 or HTTP/1.1")
	}
	if v[5] != '1' {
		return 0, &Error{Status: 505, Rule: "the version is HTTP/1.0 or HTTP/1.1"}
	}
	if v[7] == '0' {
		return 0, nil
	}
	return 1, nil
}

func (h *Head) statusLine(l []byte) error {
	if len(l) < 12 || l[8] != ' ' {
		return bad("the status line is HTTP/1.1 SP CODE SP REASON")
	}
	minor, err := version(l[:8])
	if err != nil {
		return err
	}
	h.Minor = minor
	for _, c := range l[9:12] {
		if c < '0' || c > '9' {
			return bad("the status code has three digits")
		}
	}
	h.Status = int(l[9]-'0')*100 + int(l[10]-'0')*10 + int(l[11]-'0')
	if h.Status < 100 || len(l) > 12 && l[12] != ' ' {
		return bad("the status line is HTTP/1.1 SP CODE SP REASON")
	}
	if len(l) > 13 {
		h.Reason = l[13:]
		for _, c := range h.Reason {
			if !valueByte[c] {
				return bad("the reason has no control bytes")
			}
		}
	}
	return nil
}

func (h *Head) fields(off int, strict bool) error {
	for {
		start := off
		l, next, err := h.line(off, strict)
		if err != nil {
			return err
		}
		off = next
		if len(l) == 0 {
			break
		}
		c := bytes.IndexByte(l, ':')
		if l[0] == ' ' || l[0] == '\t' {
			return bad("a field line begins with its name, folded lines are obsolete")
		}
		if c <= 0 {
			return bad("a field line is NAME ':' VALUE")
		}
		for _, b := range l[:c] {
			if !tokenByte[b] {
				return bad("a field name is a token, without white space before the colon")
			}
		}
		v, e := c+1, len(l)
		for v < e && (l[v] == ' ' || l[v] == '\t') {
			v++
		}
		for e > v && (l[e-1] == ' ' || l[e-1] == '\t') {
			e--
		}
		for _, b := range l[v:e] {
			if !valueByte[b] {
				return bad("a field value has no control bytes")
			}
		}
		if len(h.Fields) == MaxFields {
			return errManyFields
		}
		f := Field{name: uint32(start), nameEnd: uint32(start + c), value: uint32(start + v), valueEnd: uint32(start + e)}
		f.ID = identify(l[:c])
		h.Fields = append(h.Fields, f)
		if f.ID != Other {
			if err := h.note(f, l[v:e]); err != nil {
				return err
			}
		}
	}
	if !h.markDropped() {
		return bad("Connection names few fields")
	}
	return nil
}

// note takes in the fields that decide framing and connection.
func (h *Head) note(f Field, v []byte) error {
	switch f.ID {
	case Host:
		h.hosts++
		h.Authority = v
	case Connection:
		forEachToken(v, func(t []byte) {
			switch {
			case equalFold(t, "close"):
				h.Close = true
			case equalFold(t, "keep-alive"):
				h.KeepAlive = true
			case equalFold(t, "upgrade"):
				h.Upgrade = true
			}
		})
	case Expect:
		if equalFold(v, "100-continue") {
			h.Expect100 = true
		}
	case ContentLength:
		n, ok := parseLength(v)
		if !ok {
			return bad("Content-Length is one decimal number")
		}
		if h.ContentLength >= 0 && (h.Status == 0 || n != h.ContentLength) {
			return bad("there is one Content-Length")
		}
		h.ContentLength = n
	case TransferEncoding:
		if h.Chunked {
			return bad("there is one Transfer-Encoding")
		}
		if !equalFold(v, "chunked") {
			return &Error{Status: 501, Rule: "the only transfer coding is chunked"}
		}
		h.Chunked = true
	}
	return nil
}

// parseLength reads a Content-Length: digits only, below 2^62.
func parseLength(v []byte) (int64, bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// maxNamed bounds what Connection may name in one head: every name is compared with every field, so that without a bound a
// head of the largest size would cost seconds.
const maxNamed = 64

// markDropped marks the fields that Connection names. The framing and routing fields cannot be named away. It reports whether
// the names are few enough.
func (h *Head) markDropped() bool {
	named := 0
	for i := range h.Fields {
		if h.Fields[i].ID != Connection {
			continue
		}
		forEachToken(h.Value(h.Fields[i]), func(t []byte) {
			if len(t) == 5 && equalFold(t, "close") || len(t) == 10 && equalFold(t, "keep-alive") {
				return
			}
			if named++; named > maxNamed {
				return
			}
			for j := range h.Fields {
				f := &h.Fields[j]
				switch f.ID {
				case Host, ContentLength, TransferEncoding, Authorization:
					continue
				}
				if equalFoldBytes(h.Name(*f), t) {
					f.dropped = true
				}
			}
		})
	}
	return named <= maxNamed
}

package wire

import (
	"bytes"
	"fmt"
)

// Bounds of the chunked coding: a peer cannot make the proxy read framing without end.
const (
	maxChunkLine    = 4096
	maxTrailerBytes = 16 << 10
	keptTrailer     = 1 << 10 // bytes of a trailer section that a decoder keeps room for between bodies
)

var errLongTrailer = &Error{Status: 431, Rule: fmt.Sprintf("a trailer section has at most %d bytes", maxTrailerBytes)}

// Chunks decodes the chunked transfer coding (RFC 9112 section 7.1) out of a stream of bytes that the caller holds. Chunk
// extensions are dropped, as the RFC lets an intermediary do. The zero value is at the start of a body.
type Chunks struct {
	left    int64 // data bytes left in the current chunk
	state   uint8
	Trailer Head // the trailer section once Done, Fields empty when there is none
	trailer []byte
}

const (
	stSize uint8 = iota
	stData
	stDataEnd
	stTrailer
	stDone
)

// Done reports whether the last chunk and the trailer section were read.
func (c *Chunks) Done() bool { return c.state == stDone }

// Left returns the data bytes left in the current chunk; that many bytes of the stream are plain data.
func (c *Chunks) Left() int64 {
	if c.state != stData {
		return 0
	}
	return c.left
}

// Took tells the decoder that n bytes of the current chunk (at most Left) were taken from the stream by other means.
func (c *Chunks) Took(n int64) {
	c.left -= n
	if c.left == 0 {
		c.state = stDataEnd
	}
}

// Reset brings the decoder to the start of a body. It keeps the capacity that ordinary trailer sections need, up to 1 KiB and 64 fields.
func (c *Chunks) Reset() {
	t, f := c.trailer[:0], c.Trailer.Fields[:0]
	if cap(t) > keptTrailer {
		t, f = nil, nil
	}
	*c = Chunks{trailer: t}
	c.Trailer.Fields = f
	c.Trailer.Reset()
}

// Next consumes framing at the start of b until data, the end or the end of b. It returns the data bytes at hand (a slice of b)
// and how many bytes of b are used up, framing and data together. Errors: ErrNeedMore when nothing could be used, *Error.
func (c *Chunks) Next(b []byte) (data []byte, used int, err error) {
	for {
		rest := b[used:]
		switch c.state {
		case stDone:
			return nil, used, nil
		case stData:
			if len(rest) == 0 {
				return nil, used, nil
			}
			n := int(min(int64(len(rest)), c.left))
			c.Took(int64(n))
			return rest[:n], used + n, nil
		case stDataEnd:
			if len(rest) < 2 {
				return nil, used, needMore(used)
			}
			if rest[0] != '\r' || rest[1] != '\n' {
				return nil, used, bad("chunk data ends with CRLF")
			}
			used += 2
			c.state = stSize
		case stSize:
			n, size, err := chunkLine(rest)
			if err != nil {
				if err == ErrNeedMore {
					err = needMore(used)
				}
				return nil, used, err
			}
			used += n
			c.left = size
			c.state = stData
			if size == 0 {
				c.state = stTrailer
			}
		case stTrailer:
			n, err := c.trailerLine(rest)
			if err != nil {
				if err == ErrNeedMore {
					err = needMore(used)
				}
				return nil, used, err
			}
			used += n
		}
	}
}

func needMore(used int) error {
	if used > 0 {
		return nil
	}
	return ErrNeedMore
}

// chunkLine parses SIZE [;EXT] CRLF.
func chunkLine(b []byte) (n int, size int64, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		if len(b) > maxChunkLine {
			return 0, 0, bad("a chunk line is short")
		}
		return 0, 0, ErrNeedMore
	}
	if i > maxChunkLine {
		return 0, 0, bad("a chunk line is short")
	}
	if i == 0 || b[i-1] != '\r' {
		return 0, 0, bad("a chunk line ends with CRLF")
	}
	l := b[:i-1]
	k := 0
	for k < len(l) {
		d := hexDigit(l[k])
		if d < 0 {
			break
		}
		if k >= 15 {
			return 0, 0, bad("a chunk size is below 2^60")
		}
		size = size<<4 | int64(d)
		k++
	}
	if k == 0 {
		return 0, 0, bad("a chunk line begins with the size in hexadecimal digits")
	}
	for k < len(l) && (l[k] == ' ' || l[k] == '\t') {
		k++
	}
	if k < len(l) && l[k] != ';' {
		return 0, 0, bad("a chunk size is followed by CRLF or an extension")
	}
	for _, c := range l[k:] {
		if !valueByte[c] {
			return 0, 0, bad("a chunk extension has no control bytes")
		}
	}
	return i + 1, size, nil
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// trailerLine takes in one line of the trailer section; the empty one ends the body.
func (c *Chunks) trailerLine(b []byte) (int, error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		if len(b)+len(c.trailer) > maxTrailerBytes {
			return 0, errLongTrailer
		}
		return 0, ErrNeedMore
	}
	if i == 0 || b[i-1] != '\r' {
		return 0, bad("a trailer line ends with CRLF")
	}
	if len(c.trailer)+i+1 > maxTrailerBytes { // before anything is kept of it
		return 0, errLongTrailer
	}
	c.trailer = append(c.trailer, b[:i+1]...)
	if i > 1 {
		return i + 1, nil
	}
	c.Trailer.reset(c.trailer)
	if err := c.Trailer.trailerFields(); err != nil {
		return 0, err
	}
	c.state = stDone
	return i + 1, nil
}

// trailerFields parses the section and drops the fields that must not come there (RFC 9110 section 6.5.1): framing and routing fields
// are refused; credentials, connection fields and what tells an origin who asks are left out, since an origin that merges trailers
// into its header section would believe them after the proxy has let the header section through.
func (h *Head) trailerFields() error {
	off, lines := 0, 0
	kept := h.Fields[:0]
	for {
		start := off
		l, next, err := h.line(off, true)
		if err != nil {
			return err
		}
		off = next
		if len(l) == 0 {
			break
		}
		if lines++; lines > MaxFields {
			return errManyFields
		}
		c := bytes.IndexByte(l, ':')
		if c <= 0 {
			return bad("a trailer line is NAME ':' VALUE")
		}
		for _, b := range l[:c] {
			if !tokenByte[b] {
				return bad("a trailer name is a token")
			}
		}
		for _, b := range l[c:] {
			if !valueByte[b] {
				return bad("a trailer value has no control bytes")
			}
		}
		f := Field{ID: identify(l[:c]), name: uint32(start), nameEnd: uint32(start + c), value: uint32(start + c + 1), valueEnd: uint32(start + len(l))}
		for f.value < f.valueEnd && (h.Raw[f.value] == ' ' || h.Raw[f.value] == '\t') {
			f.value++
		}
		for f.valueEnd > f.value && (h.Raw[f.valueEnd-1] == ' ' || h.Raw[f.valueEnd-1] == '\t') {
			f.valueEnd--
		}
		switch f.ID {
		case ContentLength, TransferEncoding, Host:
			return bad("a trailer has no framing or routing field")
		case Connection, KeepAlive, ProxyConnection, TE, Trailer, Upgrade, Expect, Authorization, Cookie, Range, Arkvory, Shadow, Via,
			Forwarded, ForwardedFor, ForwardedProto, ForwardedHost, ContentRange, ContentEncoding, ContentType:
			continue
		case Other:
			if vouching(l[:c]) {
				continue
			}
		}
		kept = append(kept, f)
	}
	h.Fields = kept
	return nil
}

// vouching reports whether origins take a field outside the known ones for a credential, or for the word of a proxy in front of them
// about who asks. Underscores count as hyphens, as CGI programs read them.
func vouching(name []byte) bool {
	for _, prefix := range [...]string{"x-forwarded-", "x-remote-", "x-auth-request-"} {
		if len(name) > len(prefix) && equalHyphened(name[:len(prefix)], prefix) {
			return true
		}
	}
	for _, n := range [...]string{"remote-user", "x-real-ip", "proxy-authorization", "set-cookie", "true-client-ip", "x-client-ip",
		"x-webauth-user", "x-original-authorization"} {
		if equalHyphened(name, n) {
			return true
		}
	}
	return false
}

// AppendChunkSize appends the line that begins a chunk of n bytes.
func AppendChunkSize(dst []byte, n int64) []byte {
	const hex = "0123456789abcdef"
	var b [16]byte
	i := len(b)
	for {
		i--
		b[i] = hex[n&15]
		n >>= 4
		if n == 0 {
			break
		}
	}
	dst = append(dst, b[i:]...)
	return append(dst, '\r', '\n')
}

// AppendLastChunk appends the last chunk, the trailer section of t (nil: none) and the empty line.
func AppendLastChunk(dst []byte, t *Head) []byte {
	dst = append(dst, '0', '\r', '\n')
	if t != nil {
		for _, f := range t.Fields {
			dst = AppendField(dst, t, f)
		}
	}
	return append(dst, '\r', '\n')
}

// AppendField appends one field with the bytes of its name and value.
func AppendField(dst []byte, h *Head, f Field) []byte {
	dst = append(dst, h.Name(f)...)
	dst = append(dst, ':', ' ')
	dst = append(dst, h.Value(f)...)
	return append(dst, '\r', '\n')
}

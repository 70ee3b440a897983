package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// unchunk decodes what feed gives piece by piece, the way a caller with a buffer does. It returns the data, the bytes used and the error;
// ErrNeedMore when the pieces end before the body.
func unchunk(c *Chunks, pieces ...[]byte) (data []byte, used int, err error) {
	var pending []byte
	for _, p := range pieces {
		pending = append(pending, p...)
		for {
			d, n, err := c.Next(pending)
			if n < 0 || n > len(pending) || len(d) > n {
				return data, used, fmt.Errorf("used %d of %d bytes for %d of data", n, len(pending), len(d))
			}
			data, used, pending = append(data, d...), used+n, pending[n:]
			if c.Done() {
				return data, used, nil
			}
			if err == ErrNeedMore || err == nil && n == 0 {
				break
			}
			if err != nil {
				return data, used, err
			}
		}
	}
	return data, used, ErrNeedMore
}

// outcome renders a decoded body for comparison.
func outcome(c *Chunks, data []byte, used int, err error) string {
	switch {
	case err == ErrNeedMore:
		return fmt.Sprintf("open after %q", data)
	case err != nil:
		return fmt.Sprintf("refused after %q", data)
	}
	return fmt.Sprintf("%q in %d bytes, trailer %q", data, used, fieldLines(&c.Trailer))
}

func decode(b []byte) string {
	var c Chunks
	data, used, err := unchunk(&c, b)
	return outcome(&c, data, used, err)
}

func TestP5_ChunkedBodies(t *testing.T) {
	long := strings.Repeat("x", maxChunkLine)
	for name, c := range map[string]struct{ in, want string }{
		"two chunks":          {"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\nrest", `"abcdefg" in 22 bytes, trailer []`},
		"empty":               {"0\r\n\r\n", `"" in 5 bytes, trailer []`},
		"many zeros":          {"000\r\n\r\n", `"" in 7 bytes, trailer []`},
		"hex of both cases":   {"00a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", `"01234567890123456789" in 37 bytes, trailer []`},
		"extensions":          {"1;a=b\r\nx\r\n1 ; c=\"d;e\"\r\ny\r\n0;last\r\n\r\n", `"xy" in 36 bytes, trailer []`},
		"CRLF as data":        {"4\r\n\r\n\r\n\r\n0\r\n\r\n", `"\r\n\r\n" in 14 bytes, trailer []`},
		"trailer":             {"0\r\nX-Sum: a b \t\r\nx-b:\r\nETag: y\r\n\r\n", `"" in 34 bytes, trailer ["X-Sum: a b" "x-b: " "ETag: y"]`},
		"unsafe trailers":     {"0\r\nCookie: a\r\nAuthorization: b\r\nConnection: c\r\nArkvory-X: d\r\nTE: e\r\nContent-Type: g\r\nOk: f\r\n\r\n", `"" in 94 bytes, trailer ["Ok: f"]`},
		"longest line":        {"1;" + long[:maxChunkLine-3] + "\r\nx\r\n0\r\n\r\n", `"x" in 4105 bytes, trailer []`},
		"largest size":        {"fffffffffffffff\r\nx", `open after "x"`},
		"line too long":       {"1;" + long + "\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"endless line":        {"1;" + long, `refused after ""`},
		"size of 16 digits":   {"0000000000000001\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"size wraps":          {"10000000000000001\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"no size":             {"\r\nabc", `refused after ""`},
		"only an extension":   {";a\r\nabc", `refused after ""`},
		"minus":               {"-1\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"plus":                {"+1\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"0x":                  {"0x1\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"underscore":          {"1_0\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"space before":        {" 1\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"no hex":              {"g\r\n", `refused after ""`},
		"two sizes":           {"1 1\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"line ends with LF":   {"1\nx\r\n0\r\n\r\n", `refused after ""`},
		"CR inside the line":  {"1\r;a\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"NUL in extension":    {"1;\x00\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"CR in extension":     {"1;a\rb\r\nx\r\n0\r\n\r\n", `refused after ""`},
		"data too long":       {"1\r\nxy\r\n0\r\n\r\n", `refused after "x"`},
		"data ends with LF":   {"1\r\nx\n0\r\n\r\n", `refused after "x"`},
		"data ends with CR":   {"1\r\nx\rx0\r\n\r\n", `refused after "x"`},
		"no last chunk":       {"1\r\nx\r\n", `open after "x"`},
		"no final CRLF":       {"1\r\nx\r\n0\r\n", `open after "x"`},
		"half final CRLF":     {"1\r\nx\r\n0\r\n\r", `open after "x"`},
		"final LF":            {"1\r\nx\r\n0\r\n\n", `refused after "x"`},
		"trailer with LF":     {"0\r\nA: b\n\r\n", `refused after ""`},
		"trailer fold":        {"0\r\nA: b\r\n c\r\n\r\n", `refused after ""`},
		"trailer space":       {"0\r\nA : b\r\n\r\n", `refused after ""`},
		"trailer no colon":    {"0\r\nAb\r\n\r\n", `refused after ""`},
		"trailer empty name":  {"0\r\n: b\r\n\r\n", `refused after ""`},
		"trailer NUL":         {"0\r\nA: \x00\r\n\r\n", `refused after ""`},
		"trailer CR":          {"0\r\nA: b\rc\r\n\r\n", `refused after ""`},
		"trailer CL":          {"0\r\nContent-Length: 5\r\n\r\n", `refused after ""`},
		"trailer TE":          {"0\r\ntransfer-encoding: chunked\r\n\r\n", `refused after ""`},
		"trailer Host":        {"0\r\nHost: h\r\n\r\n", `refused after ""`},
		"trailer of one line": {"0\r\nA: " + strings.Repeat("x", maxTrailerBytes) + "\r\n\r\n", `refused after ""`},
		"trailer of many":     {"0\r\n" + strings.Repeat("A: x\r\n", maxTrailerBytes/6) + "A: x\r\n\r\n", `refused after ""`},
		"endless trailer":     {"0\r\n" + strings.Repeat("x", maxTrailerBytes+1), `refused after ""`},
		"pipelined":           {"0\r\n\r\n0\r\n\r\n", `"" in 5 bytes, trailer []`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decode([]byte(c.in)); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
			everySplit(t, []byte(c.in))
		})
	}
}

// everySplit demands the whole input's outcome of every two parts of it, and of single bytes.
func everySplit(t *testing.T, in []byte) {
	t.Helper()
	want := decode(in)
	step := 1 + len(in)/512 // long inputs: a sample
	for cut := 0; cut <= len(in); cut += step {
		var c Chunks
		data, used, err := unchunk(&c, in[:cut], in[cut:])
		if got := outcome(&c, data, used, err); got != want {
			t.Fatalf("split at %d of %.80q: got %s, want %s", cut, in, got, want)
		}
	}
	if len(in) > 8<<10 {
		return
	}
	var single [][]byte
	for i := range in {
		single = append(single, in[i:i+1])
	}
	var c Chunks
	data, used, err := unchunk(&c, single...)
	if got := outcome(&c, data, used, err); got != want {
		t.Fatalf("byte by byte of %.80q: got %s, want %s", in, got, want)
	}
}

func TestL3_TrailerStatusIs431(t *testing.T) {
	var c Chunks
	_, _, err := unchunk(&c, []byte("0\r\n"), bytes.Repeat([]byte("x"), maxTrailerBytes+1))
	if status(t, err) != 431 {
		t.Fatal(err)
	}
}

func TestP3_DataTakenByOtherMeans(t *testing.T) {
	var c Chunks
	data, used, err := c.Next([]byte("a\r\n01"))
	if string(data) != "01" || used != 5 || err != nil || c.Left() != 8 {
		t.Fatalf("%q %d %v, %d left", data, used, err, c.Left())
	}
	c.Took(5)
	if c.Left() != 3 || c.Done() {
		t.Fatalf("%d left", c.Left())
	}
	c.Took(3)
	if c.Left() != 0 {
		t.Fatalf("%d left at the end of a chunk", c.Left())
	}
	if data, used, err := c.Next([]byte("\r\n1\r\nx")); string(data) != "x" || used != 6 || err != nil {
		t.Fatalf("%q %d %v", data, used, err)
	}
	if _, _, err := c.Next(nil); err != ErrNeedMore {
		t.Fatalf("after the data of a chunk: %v", err)
	}
	if _, used, err := c.Next([]byte("\r\n0\r\nA: b\r\n\r\nmore")); used != 13 || err != nil || !c.Done() {
		t.Fatalf("%d %v, done %v", used, err, c.Done())
	}
	if d, used, err := c.Next([]byte("more")); d != nil || used != 0 || err != nil {
		t.Fatal("bytes behind the body were used")
	}
	wantLines(t, &c.Trailer, "A: b")
	c.Reset()
	if c.Done() || len(c.Trailer.Fields) != 0 || c.Left() != 0 {
		t.Fatal("Reset leaves a body behind")
	}
	if got, used, err := unchunk(&c, []byte("2\r\nhi\r\n0\r\n\r\n")); string(got) != "hi" || used != 12 || err != nil || len(c.Trailer.Fields) != 0 {
		t.Fatalf("after Reset: %q %d %v %q", got, used, err, fieldLines(&c.Trailer))
	}
}

func TestP4_ChunkedRoundTrip(t *testing.T) {
	var source Chunks
	if _, _, err := unchunk(&source, []byte("0\r\nX-Sum:  a b\r\nx-sum: c\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 9, 15, 16, 255, 256, 4096, 65535, 1 << 20} {
		body := bytes.Repeat([]byte{'x'}, n)
		out := append(AppendChunkSize(nil, int64(n)), body...)
		out = AppendLastChunk(append(out, "\r\n"...), &source.Trailer)
		if want := fmt.Sprintf("%x\r\n", n); !bytes.HasPrefix(out, []byte(want)) {
			t.Fatalf("%d bytes begin with %.10q", n, out)
		}
		var c Chunks
		data, used, err := unchunk(&c, out)
		if !bytes.Equal(data, body) || used != len(out) || err != nil {
			t.Fatalf("%d bytes: %d of data, %d of %d used, %v", n, len(data), used, len(out), err)
		}
		wantLines(t, &c.Trailer, "X-Sum: a b", "x-sum: c")
	}
	if got := string(AppendLastChunk(AppendChunkSize(nil, 0xfffffffffffffff), nil)); got != "fffffffffffffff\r\n0\r\n\r\n" {
		t.Fatalf("%q", got)
	}
	if got := string(AppendChunkSize(nil, 0)); got != "0\r\n" {
		t.Fatalf("%q", got)
	}
}

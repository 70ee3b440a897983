package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const follower = "GET /second HTTP/1.1\r\nHost: second\r\n\r\n"

// dirty is a head that has parsed a message with everything set.
func dirty(t *testing.T) *Head {
	var h Head
	if _, err := h.ParseRequest([]byte("POST http://x/y HTTP/1.1\r\nHost: d\r\nConnection: close, keep-alive, upgrade, z\r\nZ: 1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"), 0); err != nil {
		t.Fatal(err)
	}
	return &h
}

// stream is the head, a body as the head frames it, and another request.
func stream(h *Head, head []byte) []byte {
	out := bytes.Clone(head)
	switch {
	case h.Chunked:
		out = append(out, "5\r\nhello\r\n0\r\n\r\n"...)
	case h.ContentLength > 0:
		out = append(out, bytes.Repeat([]byte("x"), int(h.ContentLength))...)
	}
	return append(out, follower...)
}

// others lists the fields that none of the oracles takes out of its list, names in lower case, sorted.
func others(all func(yield func(name, value string))) []string {
	var out []string
	all(func(name, value string) {
		switch name = strings.ToLower(name); name {
		case "host", "content-length", "transfer-encoding", "trailer", "cache-control":
			return
		}
		out = append(out, name+": "+value)
	})
	slices.Sort(out)
	return out
}

func (h *Head) each(yield func(name, value string)) {
	for _, f := range h.Fields {
		yield(string(h.Name(f)), string(h.Value(f)))
	}
}

func each(header http.Header) func(func(name, value string)) {
	return func(yield func(name, value string)) {
		for name, values := range header {
			for _, v := range values {
				yield(name, v)
			}
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, s := range []string{
		get(), get("Content-Length: 5"), get("Transfer-Encoding: chunked"), get("Transfer-Encoding:\tCHUNKED ", "Trailer: X"),
		get("Content-Length: 5", "Transfer-Encoding: chunked"), get("Content-Length: 5, 5"), get("A : b"), get("A: b", " c"), get("A:\x00"),
		"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h:80/a?b HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: h\nContent-Length: 5\r\n\r\n", "POST /\xff%zz HTTP/1.1\r\nHost:\r\nPragma: no-cache\r\nCookie: a=b; c\r\ncookie: d\r\n\r\n",
		typicalRequest, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 00000000000000005\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\rA: b\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return
		}
		var h Head
		n, err := h.ParseRequest(b, 0)
		splitFeed(t, (*Head).ParseRequest, b)
		d := dirty(t)
		if m, e := d.ParseRequest(b, 0); err == nil && summary(d, m, e) != summary(&h, n, err) || (e == nil) != (err == nil) {
			t.Fatalf("a used head reads %s, a new one %s", summary(d, m, e), summary(&h, n, err))
		}
		if err != nil {
			if n != 0 {
				t.Fatalf("%d bytes used of a refused head", n)
			}
			return
		}
		if h.ContentLength > 1<<16 || h.Chunked && h.ContentLength >= 0 {
			return
		}
		head := bytes.TrimLeft(b[:n], "\r\n")
		whole := stream(&h, head)
		againstNetHTTP(t, &h, whole)
		againstFasthttp(t, &h, whole, len(head))
	})
}

func againstNetHTTP(t *testing.T, h *Head, whole []byte) {
	in := bufio.NewReader(bytes.NewReader(whole))
	r, err := http.ReadRequest(in)
	if err != nil {
		return // stricter in places: URLs, trailers
	}
	if r.Method != string(h.Method) {
		t.Fatalf("method %q, net/http reads %q", h.Method, r.Method)
	}
	if r.RequestURI[0] == '/' || r.RequestURI == "*" {
		if r.RequestURI != string(h.Target) {
			t.Fatalf("target %q, net/http reads %q", h.Target, r.RequestURI)
		}
	} else if !strings.HasSuffix(r.RequestURI, string(h.Target)) && len(h.Target) > 1 {
		t.Fatalf("target %q, net/http reads %q", h.Target, r.RequestURI)
	}
	if !strings.Contains(string(h.Authority), "%") && r.Host != string(h.Authority) {
		t.Fatalf("authority %q, net/http reads %q", h.Authority, r.Host)
	}
	chunked := slices.Equal(r.TransferEncoding, []string{"chunked"})
	if chunked != h.Chunked || !chunked && r.ContentLength != max(h.ContentLength, 0) {
		t.Fatalf("length %d chunked %v, net/http reads %d %v", h.ContentLength, h.Chunked, r.ContentLength, r.TransferEncoding)
	}
	if got, want := others(each(r.Header)), others(h.each); !slices.Equal(got, want) {
		t.Fatalf("fields %q, net/http reads %q", want, got)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatalf("net/http cannot read the body as framed: %v", err)
	}
	second, err := http.ReadRequest(in)
	if err != nil || second.RequestURI != "/second" {
		t.Fatalf("net/http does not find the second request where the first ends: %v", err)
	}
}

func againstFasthttp(t *testing.T, h *Head, whole []byte, head int) {
	var r fasthttp.RequestHeader
	r.DisableNormalizing()
	in := bufio.NewReaderSize(bytes.NewReader(whole), len(whole)+16)
	if err := r.Read(in); err != nil {
		return
	}
	if left := in.Buffered(); left != len(whole)-head {
		t.Fatalf("head of %d bytes, fasthttp reads %d", head, len(whole)-left)
	}
	if string(r.Method()) != string(h.Method) {
		t.Fatalf("method %q, fasthttp reads %q", h.Method, r.Method())
	}
	if uri := string(r.RequestURI()); uri != string(h.Target) && (uri[0] == '/' || len(h.Target) > 1 && !strings.HasSuffix(uri, string(h.Target))) {
		t.Fatalf("target %q, fasthttp reads %q", h.Target, uri)
	}
	want := int(h.ContentLength)
	switch {
	case h.Chunked:
		want = -1
	case h.ContentLength < 0:
		want = -2
	}
	if got := r.ContentLength(); got != want && !(want == -2 && got == 0) {
		t.Fatalf("length %d chunked %v, fasthttp reads %d", h.ContentLength, h.Chunked, got)
	}
	got := others(func(yield func(name, value string)) {
		for k, v := range r.AllInOrder() {
			yield(string(k), string(v))
		}
	})
	if want := others(h.each); !slices.Equal(got, want) {
		t.Fatalf("fields %q, fasthttp reads %q", want, got)
	}
}

func FuzzParseResponse(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 204\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", "HTTP/1.0 200 \r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\n\n", typicalResponse, "HTTP/1.1 200 OK\r\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return
		}
		var h Head
		n, err := h.ParseResponse(b, 0)
		splitFeed(t, (*Head).ParseResponse, b)
		d := dirty(t)
		if m, e := d.ParseResponse(b, 0); err == nil && summary(d, m, e) != summary(&h, n, err) || (e == nil) != (err == nil) {
			t.Fatalf("a used head reads %s, a new one %s", summary(d, m, e), summary(&h, n, err))
		}
		if err != nil {
			return
		}
		in := bufio.NewReader(bytes.NewReader(b))
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		if r.StatusCode != h.Status || r.ProtoMinor == 0 != (h.Minor == 0) {
			t.Fatalf("status %d HTTP/1.%d, net/http reads %d %s", h.Status, h.Minor, r.StatusCode, r.Proto)
		}
		if got, want := others(each(r.Header)), others(h.each); !slices.Equal(got, want) {
			t.Fatalf("fields %q, net/http reads %q", want, got)
		}
		if NoBody(h.Status) || h.Minor == 0 && h.LengthAndChunked {
			return // the status decides; HTTP/1.0 with a coding is read either way and never followed by another message
		}
		chunked := slices.Equal(r.TransferEncoding, []string{"chunked"})
		if chunked != h.Chunked || !chunked && r.ContentLength != h.ContentLength {
			t.Fatalf("length %d chunked %v, net/http reads %d %v", h.ContentLength, h.Chunked, r.ContentLength, r.TransferEncoding)
		}
	})
}

func FuzzChunks(f *testing.F) {
	for _, s := range []string{
		"5\r\nhello\r\n0\r\n\r\n", "a;x=\"y\"\r\n0123456789\r\n0\r\nX: y\r\n\r\nrest", "1\nx\n0\n\n", "0\r\nHost: a\r\n\r\n", "ffffffffffffffff\r\nx",
		"000005\r\nhello\r\n00\r\n\r\n", "1\r\nx\r\n1 \r\ny\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "1\r\nx\rx", "+1\r\nx\r\n0\r\n\r\n", "0x1\r\nx\r\n0\r\n\r\n",
	} {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		if len(b) > 32<<10 {
			return
		}
		var whole, parts Chunks
		data, used, err := unchunk(&whole, b)
		at := int(cut) % (len(b) + 1)
		d, u, e := unchunk(&parts, b[:at], b[at:])
		if got, want := outcome(&parts, d, u, e), outcome(&whole, data, used, err); got != want {
			t.Fatalf("split at %d: %s, whole: %s", at, got, want)
		}
		if err != nil {
			return
		}
		in := bufio.NewReader(io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), bytes.NewReader(b[:used]), strings.NewReader(follower)))
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // stricter about extensions and trailers
		}
		if !bytes.Equal(body, data) {
			t.Fatalf("data %q, net/http reads %q", data, body)
		}
		if second, err := http.ReadRequest(in); err != nil || second.RequestURI != "/second" {
			t.Fatalf("net/http does not end the body after %d bytes: %v", used, err)
		}
		out := AppendChunkSize(nil, int64(len(data)))
		if len(data) > 0 {
			out = append(append(out, data...), "\r\n"...)
			out = AppendLastChunk(out, &whole.Trailer)
		} else {
			out = AppendLastChunk(nil, &whole.Trailer)
		}
		want := strconv.Quote(string(data)) + " in " + strconv.Itoa(len(out)) + " bytes, trailer "
		if got := decode(out); !strings.HasPrefix(got, want) {
			t.Fatalf("encoded anew: %s, want %s", got, want)
		}
	})
}

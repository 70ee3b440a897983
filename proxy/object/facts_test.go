package object

import (
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
)

func response(t testing.TB, status string, lines ...string) *wire.Head {
	t.Helper()
	h := &wire.Head{}
	raw := "HTTP/1.1 " + status + "\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
	if _, err := h.ParseResponse([]byte(raw), 0); err != nil {
		t.Fatalf("%s %q: %v", status, lines, err)
	}
	return h
}

func TestO1_FactsFromResponse(t *testing.T) {
	const modified, later, soon = "Last-Modified: Mon, 30 Nov 2026 10:00:00 GMT", "Date: Mon, 30 Nov 2026 10:01:00 GMT", "Date: Mon, 30 Nov 2026 10:00:59 GMT"
	none := Facts{SizeBytes: -1, Last: -1}
	for _, c := range []struct {
		name, status string
		lines        []string
		want         Facts
	}{
		{"whole", "200 OK", []string{"Content-Length: 10", `ETag: "a"`}, Facts{Known: true, SizeBytes: 10, Last: 9, Validator: `"a"`, Strong: true}},
		{"empty", "200 OK", []string{"Content-Length: 0"}, Facts{Known: true, Last: -1}},
		{"chunked", "200 OK", []string{"Transfer-Encoding: chunked", `ETag: "a"`}, Facts{SizeBytes: -1, Last: -1, Validator: `"a"`, Strong: true}},
		{"part", "206 Partial Content", []string{"Content-Length: 5", "Content-Range: bytes 5-9/100", `ETag: W/"a"`},
			Facts{Known: true, SizeBytes: 100, First: 5, Last: 9, Validator: `W/"a"`}},
		{"part of unknown", "206 Partial Content", []string{"Content-Range: bytes 5-9/*"}, Facts{SizeBytes: -1, First: 5, Last: 9}},
		{"part beyond its total", "206 Partial Content", []string{"Content-Range: bytes 5-9/9"}, none},
		{"length against range", "206 Partial Content", []string{"Content-Length: 6", "Content-Range: bytes 5-9/100"}, none},
		{"two ranges", "206 Partial Content", []string{"Content-Range: bytes 5-9/100", "Content-Range: bytes 5-9/200"}, none},
		{"multipart", "206 Partial Content", []string{"Content-Type: multipart/byteranges; boundary=x"}, none},
		{"other unit", "206 Partial Content", []string{"Content-Range: lines 5-9/100"}, none},
		{"overflow", "206 Partial Content", []string{"Content-Range: bytes 0-9223372036854775807/*"}, none},
		{"overflow of the total", "206 Partial Content", []string{"Content-Range: bytes 0-1/99999999999999999999"}, none},
		{"not satisfiable", "416 Range Not Satisfiable", []string{"Content-Range: bytes */100", `ETag: "error"`}, Facts{Known: true, SizeBytes: 100, Last: -1}},
		{"not satisfiable, bare", "416 Range Not Satisfiable", nil, none},
		{"not modified", "304 Not Modified", []string{`ETag: "a"`, "Content-Length: 10"}, Facts{SizeBytes: -1, Last: -1, Validator: `"a"`, Strong: true}},
		{"refused", "403 Forbidden", []string{"Content-Length: 10", `ETag: "a"`}, none},
		{"old date", "200 OK", []string{"Content-Length: 1", modified, later}, Facts{Known: true, SizeBytes: 1, Validator: modified[15:], Strong: true}},
		{"fresh date", "200 OK", []string{"Content-Length: 1", modified, soon}, Facts{Known: true, SizeBytes: 1, Validator: modified[15:]}},
		{"date without clock", "200 OK", []string{"Content-Length: 1", modified}, Facts{Known: true, SizeBytes: 1, Validator: modified[15:]}},
		{"weak tag, old date", "200 OK", []string{"Content-Length: 1", `ETag: W/"a"`, modified, later}, Facts{Known: true, SizeBytes: 1, Validator: modified[15:], Strong: true}},
		{"bare tag", "200 OK", []string{"Content-Length: 1", "ETag: abc"}, Facts{Known: true, SizeBytes: 1}},
		{"two tags", "200 OK", []string{"Content-Length: 1", `ETag: "a"`, `ETag: "b"`}, Facts{Known: true, SizeBytes: 1}},
		{"giant tag", "200 OK", []string{"Content-Length: 1", `ETag: "` + strings.Repeat("x", MaxValidatorBytes) + `"`}, Facts{Known: true, SizeBytes: 1}},
	} {
		if got := FromResponse(response(t, c.status, c.lines...)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestO1_FactsOutliveTheHead(t *testing.T) {
	h := response(t, "200 OK", "Content-Length: 1", `ETag: "a"`)
	f := FromResponse(h)
	for i := range h.Raw {
		h.Raw[i] = 'x'
	}
	if f.Validator != `"a"` {
		t.Errorf("validator %q lives in the buffer of the connection", f.Validator)
	}
}

func FuzzFromResponse(f *testing.F) {
	f.Add("206 x", "Content-Range: bytes 0-1/2\r\nETag: \"a\"")
	f.Add("416 x", "Content-Range: bytes */9223372036854775807")
	f.Fuzz(func(t *testing.T, status, lines string) {
		h := &wire.Head{}
		if _, err := h.ParseResponse([]byte("HTTP/1.1 "+status+"\r\n"+lines+"\r\n\r\n"), 0); err != nil {
			return
		}
		x := FromResponse(h)
		if x.Known != (x.SizeBytes >= 0) || x.First < 0 || x.Last < -1 || x.Known && x.Last >= x.SizeBytes && x.Last >= 0 || len(x.Validator) > MaxValidatorBytes || x.Strong && x.Validator == "" {
			t.Fatalf("%+v", x)
		}
	})
}

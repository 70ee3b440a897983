package wire

import "testing"

const typicalRequest = "GET /v2/library/app/blobs/sha256:0a1b2c3d4e5f?X-Amz-Signature=abc HTTP/1.1\r\nHost: registry.example:5000\r\n" +
	"User-Agent: docker/27.1.1 go/go1.22\r\nAccept: application/vnd.oci.image.layer.v1.tar+gzip, */*\r\n" +
	"Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" +
	"Range: bytes=0-1048575\r\nAccept-Encoding: identity\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nX-Request-Id: 7\r\n\r\n"

const typicalResponse = "HTTP/1.1 206 Partial Content\r\nServer: nginx/1.27\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: application/octet-stream\r\n" +
	"Content-Length: 1048576\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"65920080-40000000\"\r\n" +
	"Content-Range: bytes 0-1048575/1073741824\r\nAccept-Ranges: bytes\r\n\r\n"

func TestB4_ParsingAllocatesNothing(t *testing.T) {
	request, response := []byte(typicalRequest), []byte(typicalResponse)
	literal := []byte("GET http://[2001:db8::1]:80/a HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n")
	body := []byte("5;x=y\r\nhello\r\n0\r\nX-Sum: a\r\n\r\n")
	var h Head
	var c Chunks
	out := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(200, func() {
		for _, r := range [][]byte{request, literal} {
			if _, err := h.ParseRequest(r, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.ParseResponse(response, 0); err != nil {
			t.Fatal(err)
		}
		if h.Lookup("accept-ranges") == nil || HasToken(h.Get(Connection), "close") {
			t.Fatal("wrong fields")
		}
		c.Reset()
		for b := body; !c.Done(); {
			_, used, err := c.Next(b)
			if err != nil {
				t.Fatal(err)
			}
			b = b[used:]
		}
		out = AppendLastChunk(AppendChunkSize(out[:0], 1<<40), &c.Trailer)
	}); n != 0 {
		t.Fatalf("parsing two requests, a response and a chunked body allocates %v times", n)
	}
}

func BenchmarkParseRequest(b *testing.B) {
	raw := []byte(typicalRequest)
	var h Head
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.ParseRequest(raw, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseResponse(b *testing.B) {
	raw := []byte(typicalResponse)
	var h Head
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.ParseResponse(raw, 0); err != nil {
			b.Fatal(err)
		}
	}
}

package wire

import (
	"bytes"
	"testing"
)

func TestP1_DetachedHeadIsTheSameHead(t *testing.T) {
	for _, text := range []string{
		"GET /a%2Fb?x=1 HTTP/1.1\r\nHost: Example.org:80\r\nRange: bytes=1-2\r\nX-A: b\r\nX-A: c\r\n\r\n",
		"GET http://other.example/x HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close, x-b\r\nX-B: 1\r\n\r\n",
	} {
		buffer := append(make([]byte, 0, 4096), text+"rest of the buffer"...)
		var h, want Head
		n, err := h.ParseRequest(buffer, 0)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if _, err := want.ParseRequest([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		h.Detach()
		clear(buffer[:cap(buffer)])
		if cap(h.Raw) >= 2*n+64 {
			t.Errorf("%q: %d bytes kept for %d", text, cap(h.Raw), n)
		}
		if !bytes.Equal(h.Raw, want.Raw) || !bytes.Equal(h.Method, want.Method) || !bytes.Equal(h.Target, want.Target) || !bytes.Equal(h.Authority, want.Authority) {
			t.Errorf("%q became %q %q %q %q", text, h.Raw, h.Method, h.Target, h.Authority)
		}
		for i, f := range h.Fields {
			if !bytes.Equal(h.Name(f), want.Name(want.Fields[i])) || !bytes.Equal(h.Value(f), want.Value(want.Fields[i])) || f.Dropped() != want.Fields[i].Dropped() {
				t.Errorf("%q: field %d is %q: %q", text, i, h.Name(f), h.Value(f))
			}
		}
	}
}

package wire

import (
	"strings"
	"testing"
)

func TestP4_Responses(t *testing.T) {
	for name, c := range map[string]struct{ head, want string }{
		"plain": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
			`n=38 "" "" 200 "OK" minor=1 cl=5 false falsefalsefalsefalsefalse "" ["Content-Length: 5"]`},
		"no reason":        {"HTTP/1.1 204 \r\n\r\n", `n=17 "" "" 204 "" minor=1 cl=-1 false falsefalsefalsefalsefalse "" []`},
		"no reason, no SP": {"HTTP/1.1 204\r\n\r\n", `n=16 "" "" 204 "" minor=1 cl=-1 false falsefalsefalsefalsefalse "" []`},
		"long reason":      {"HTTP/1.0 404 Not  Found \xe4\r\n\r\n", `n=29 "" "" 404 "Not  Found \xe4" minor=0 cl=-1 false falsefalsefalsefalsefalse "" []`},
		"interim":          {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", `n=40 "" "" 103 "Early Hints" minor=1 cl=-1 false falsefalsefalsefalsefalse "" ["Link: </a>"]`},
		"switch":           {"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", `n=51 "" "" 101 "S" minor=1 cl=-1 false falsefalsetruefalsefalse "" ["Connection: upgrade" "-Upgrade: x"]`},
		"bare LF":          {"HTTP/1.1 200 OK\nA: b\nContent-Length: 3\n\nabc", `n=40 "" "" 200 "OK" minor=1 cl=3 false falsefalsefalsefalsefalse "" ["A: b" "Content-Length: 3"]`},
		"mixed ends":       {"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\n", `n=29 "" "" 200 "OK" minor=1 cl=-1 false falsefalsefalsefalsefalse "" ["A: b" "C: d"]`},
		"mixed ends again": {"HTTP/1.1 200 OK\nA: b\n\r\n", `n=23 "" "" 200 "OK" minor=1 cl=-1 false falsefalsefalsefalsefalse "" ["A: b"]`},
		"CL and chunked":   {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", `n=66 "" "" 200 "OK" minor=1 cl=-1 true falsefalsefalsefalsetrue "" ["Content-Length: 3" "Transfer-Encoding: chunked"]`},
		"chunked 1.0":      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", `n=71 "" "" 200 "OK" minor=0 cl=-1 true falsetruefalsefalsetrue "" ["Connection: keep-alive" "Transfer-Encoding: chunked"]`},
		"equal lengths":    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", `n=57 "" "" 200 "OK" minor=1 cl=3 false falsefalsefalsefalsefalse "" ["Content-Length: 3" "Content-Length: 3"]`},
	} {
		t.Run(name, func(t *testing.T) {
			var h Head
			n, err := h.ParseResponse([]byte(c.head), 0)
			if got := summary(&h, n, err); got != c.want {
				t.Fatalf("got  %s\nwant %s (%v)", got, c.want, err)
			}
			splitFeed(t, (*Head).ParseResponse, []byte(c.head))
		})
	}
}

func TestP5_MalformedResponseHeads(t *testing.T) {
	for name, c := range map[string]struct {
		head string
		want int
	}{
		"other protocol":    {"SSH-2.0-x\r\n\r\n", 400},
		"early":             {"SSH-2", 400},
		"lower case":        {"http/1.1 200 OK\r\n\r\n", 400},
		"HTTP/2":            {"HTTP/2.0 200 OK\r\n\r\n", 505},
		"short version":     {"HTTP/1 200 OK\r\n\r\n", 400},
		"no code":           {"HTTP/1.1 \r\n\r\n", 400},
		"two digits":        {"HTTP/1.1 20 OK\r\n\r\n", 400},
		"four digits":       {"HTTP/1.1 2000 OK\r\n\r\n", 400},
		"code letters":      {"HTTP/1.1 2x0 OK\r\n\r\n", 400},
		"code below 100":    {"HTTP/1.1 099 OK\r\n\r\n", 400},
		"signed code":       {"HTTP/1.1 +20 OK\r\n\r\n", 400},
		"no space":          {"HTTP/1.1 200OK\r\n\r\n", 400},
		"two spaces":        {"HTTP/1.1  200 OK\r\n\r\n", 400},
		"empty line before": {"\r\nHTTP/1.1 200 OK\r\n\r\n", 400},
		"NUL in reason":     {"HTTP/1.1 200 O\x00K\r\n\r\n", 400},
		"CR in reason":      {"HTTP/1.1 200 O\rK\r\n\r\n", 400},
		"fold":              {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", 400},
		"space in name":     {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", 400},
		"no colon":          {"HTTP/1.1 200 OK\r\nAb\r\n\r\n", 400},
		"NUL in value":      {"HTTP/1.1 200 OK\r\nA: \x00\r\n\r\n", 400},
		"two lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400},
		"length list":       {"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n", 400},
		"length sign":       {"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n", 400},
		"length huge":       {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", 400},
		"gzip coding":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
		"chunked twice":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			var h Head
			n, err := h.ParseResponse([]byte(c.head), 0)
			if got := status(t, err); got != c.want || n != 0 {
				t.Fatalf("%q: status %d and %d bytes, want %d and 0", c.head, got, n, c.want)
			}
			if strings.HasSuffix(c.head, "\n") {
				splitFeed(t, (*Head).ParseResponse, []byte(c.head))
			}
		})
	}
}

func TestP4_StatusesWithoutBody(t *testing.T) {
	for status, want := range map[int]bool{100: true, 101: true, 103: true, 199: true, 200: false, 204: true, 205: false, 206: false, 304: true, 404: false} {
		if NoBody(status) != want {
			t.Errorf("NoBody(%d) is %v", status, !want)
		}
	}
}

package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/drip"
)

// TestX2_I5_WhoIsToldApartSharesNothing: the origin's answers begin alike under one validator and go on as the client's field says; how it tells that, in which line and by
// which field, makes no difference.
func TestX2_I5_WhoIsToldApartSharesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fields, by string }{
		"language":                    {"Vary: Accept-Language\r\n", "Accept-Language"},
		"a field of its own":          {"Vary: Accept-Encoding,X-Tenant\r\n", "X-Tenant"},
		"second line of Vary":         {"Vary: Accept-Encoding\r\nVary: Cookie\r\n", "Cookie"},
		"second line, any":            {"Vary: Accept-Encoding\r\nVary: *\r\n", "X-Who"},
		"second line of control":      {"Cache-Control: max-age=1\r\nCache-Control: private\r\n", "X-Who"},
		"private with names":          {"Cache-Control: private=\"set-cookie\"\r\n", "X-Who"},
		"no-store, in another letter": {"cache-control: No-Store\r\n", "X-Who"},
		"a date and credentials":      {"Date: Mon, 30 Nov 2026 10:00:00 GMT\r\nLast-Modified: Sun, 29 Nov 2026 10:00:00 GMT\r\n", "Authorization"},
	} {
		if !strings.HasPrefix(c.fields, "Date") {
			c.fields += "ETag: \"v1\"\r\n"
		}
		l := newLibrary(t)
		object := func(seed byte) string {
			return bytesOf(0, odd)[:drip.PieceBytes] + bytesOf(seed, odd)[drip.PieceBytes:]
		}
		l.on = func(k *call) bool {
			seed := byte(1)
			if strings.HasSuffix(k.field(c.by), "2") {
				seed = 2
			}
			first, last, ranged := k.asked(odd)
			if k.method == "HEAD" || !ranged {
				return false
			}
			k.send(fmt.Sprintf("HTTP/1.1 206 X\r\n%sContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n", c.fields, first, last, odd, last-first+1),
				object(seed)[first:last+1])
			return true
		}
		s := newStage(t, l.url(), nil)
		var bodies []*http.Response
		for n := 1; n <= 2; n++ {
			bodies = append(bodies, s.dialFrom(fmt.Sprintf("127.0.2.%d", n)).get(fmt.Sprintf("/f%d", odd), fmt.Sprintf("%s: token %d", c.by, n)).begin("GET"))
		}
		s.fed(3 * drip.PieceBytes)
		s.free()
		for i, resp := range bodies {
			wantBody(t, fmt.Sprintf("%s: client %d", name, i+1), resp, object(byte(i+1)))
		}
		s.still(patience)
		s.close()
	}
}

// TestX2_WhoIsNotToldApartShares: requests that agree in all that the origin looks at cost it one piece and not one each.
func TestX2_WhoIsNotToldApartShares(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.fields = "Accept-Ranges: bytes\r\nVary: Accept-Language\r\nVary: Accept-Encoding\r\nCache-Control: max-age=1\r\n"
	s := newStage(t, l.url(), nil)
	var bodies []*http.Response
	for n := 1; n <= 2; n++ {
		bodies = append(bodies, s.dialFrom(fmt.Sprintf("127.0.2.%d", n)).get(fmt.Sprintf("/f%d", odd), "Accept-Language: en", fmt.Sprintf("X-Who: %d", n)).begin("GET"))
	}
	s.fed(6 * drip.PieceBytes)
	if s.p.drips.Snapshot().Shared == 0 {
		t.Error("no piece was shared")
	}
	s.free()
	for _, resp := range bodies {
		wantBody(t, "shared", resp, bytesOf(0, odd))
	}
	s.still(patience)
}

package proxy

import (
	"fmt"
	"testing"
)

// TestX2_O3_AnAnswerThatNoWaitingChangesIsGivenAtOnce: a client that waits is told by the origin that nothing will come, as it would be while slots are free.
func TestX2_O3_AnAnswerThatNoWaitingChangesIsGivenAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		fields []string
		own    string // field of a request that the origin answers so; "" = every GET
	}{
		"not modified":     {304, []string{`If-None-Match: "v1"`}, "If-None-Match"},
		"condition failed": {412, []string{`If-Match: "v0"`}, "If-Match"},
		"gone":             {410, nil, ""},
		"not found":        {404, nil, ""},
		"who is it":        {401, nil, ""},
		"behind the end":   {416, []string{fmt.Sprintf("Range: bytes=%d-", odd)}, "Range"},
	} {
		l := newLibrary(t)
		l.on = func(k *call) bool {
			switch {
			case k.method != "GET" || k.target == "/small10" || c.own != "" && k.field(c.own) == "":
				return false
			case c.status == 416 && k.field("Range") != fmt.Sprintf("bytes=%d-", odd):
				return false
			case c.status == 304:
				k.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nX-From: origin\r\n\r\n")
			default:
				k.reply(c.status, "X-From: origin\r\n", "so it is")
			}
			return true
		}
		s := newStage(t, l.url(), nil)
		conn := s.dial()
		a := conn.get(fmt.Sprintf("/f%d", odd), c.fields...).answer()
		if a.StatusCode != c.status || a.err != nil || a.Header.Get("X-From") != "origin" || c.status != 304 && a.body != "so it is" {
			t.Errorf("%s: %d %v %q, %v", name, a.StatusCode, a.Header, a.body, a.err)
		}
		conn.get("/small10").ok(200)
		conn.close()
		s.close()
	}
}

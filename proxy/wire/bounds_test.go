package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// fields is n field lines.
func fields(n int) string { return strings.Repeat("X-F: y\r\n", n) }

func TestP10_FieldsOfAHeadAreBounded(t *testing.T) {
	var h Head
	request := func(n int) []byte { return []byte("GET / HTTP/1.1\r\nHost: h\r\n" + fields(n-1) + "\r\n") }
	response := func(n int) []byte { return []byte("HTTP/1.1 200 OK\r\n" + fields(n) + "\r\n") }
	for name, c := range map[string]struct {
		parse parse
		make  func(n int) []byte
	}{"request": {(*Head).ParseRequest, request}, "response": {(*Head).ParseResponse, response}} {
		if _, err := c.parse(&h, c.make(MaxFields), 0); err != nil || len(h.Fields) != MaxFields {
			t.Errorf("%s with %d fields: %v", name, MaxFields, err)
		}
		_, err := c.parse(&h, c.make(MaxFields+1), 0)
		if status(t, err) != 431 || !strings.Contains(err.Error(), fmt.Sprint(MaxFields)) {
			t.Errorf("%s with one field more: %v", name, err)
		}
		if _, err := c.parse(&h, c.make(16000), 0); status(t, err) != 431 || cap(h.Fields) > 2*MaxFields {
			t.Errorf("%s with 16000 fields: %v, room for %d", name, err, cap(h.Fields))
		}
	}
}

func TestP10_FieldsOfATrailerAreBounded(t *testing.T) {
	for n, want := range map[int]int{MaxFields: 0, MaxFields + 1: 431, 1500: 431} {
		for _, line := range []string{"X: y\r\n", "Cookie: y\r\n"} { // those left out count as well
			if len(line)*n > maxTrailerBytes {
				continue
			}
			var c Chunks
			_, _, err := unchunk(&c, []byte("0\r\n"+strings.Repeat(line, n)+"\r\n"))
			if status(t, err) != want || want != 0 && !strings.Contains(err.Error(), fmt.Sprint(MaxFields)) {
				t.Errorf("%d lines %q: %v", n, line, err)
			}
		}
	}
	var c Chunks
	if _, _, err := unchunk(&c, []byte("0\r\n"), bytes.Repeat([]byte("x"), 8<<20), []byte("\r\n\r\n")); status(t, err) != 431 || cap(c.trailer) > 0 {
		t.Errorf("a refused line of 8 MiB: %v, %d bytes are kept of it", err, cap(c.trailer))
	}
}

func TestL3_AnIdleHeadKeepsLittle(t *testing.T) {
	large := []byte(get(strings.Split(strings.TrimSuffix(fields(200), "\r\n"), "\r\n")...))
	for name, free := range map[string]func(*Head){"Reset": (*Head).Reset, "Shrink": (*Head).Shrink} {
		var h Head
		if _, err := h.ParseRequest(large, 0); err != nil {
			t.Fatal(err)
		}
		if free(&h); cap(h.Fields) > keptFields {
			t.Errorf("%s keeps room for %d fields", name, cap(h.Fields))
		}
		if _, err := h.ParseRequest([]byte(typicalRequest), 0); err != nil || len(h.Fields) == 0 {
			t.Fatalf("a head after %s: %v", name, err)
		}
		room := cap(h.Fields)
		h.Shrink()
		if len(h.Fields) == 0 || h.Get(Host) == nil {
			t.Errorf("Shrink takes the fields of an ordinary head")
		}
		if h.Reset(); cap(h.Fields) != room || h.Raw != nil || h.Authority != nil {
			t.Errorf("Reset keeps room for %d fields of %d, and bytes: %v", cap(h.Fields), room, h.Raw != nil)
		}
	}
}

func TestL3_AnIdleDecoderKeepsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		trailer        string
		bytes, entries int // least room that must stay
	}{
		"ordinary":    {"X-Sum: a\r\n", 1, 1},
		"long line":   {"X-Sum: " + strings.Repeat("a", 8<<10) + "\r\n", 0, 0},
		"many fields": {strings.Repeat("X: \r\n", 100), 1, 0},
	} {
		var d Chunks
		if _, _, err := unchunk(&d, []byte("0\r\n"+c.trailer+"\r\n")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.Reset()
		if cap(d.trailer) > keptTrailer || cap(d.Trailer.Fields) > keptFields || cap(d.trailer) < c.bytes || cap(d.Trailer.Fields) < c.entries || d.Trailer.Raw != nil {
			t.Errorf("%s: %d bytes and %d fields stay", name, cap(d.trailer), cap(d.Trailer.Fields))
		}
	}
}

func TestP2_TrailersCannotSayWhoAsks(t *testing.T) {
	for _, name := range []string{
		"X-Forwarded-For", "x-forwarded-proto", "X-Forwarded-Host", "X-Forwarded-User", "X-Forwarded-Groups", "Forwarded", "Via", "Arkvory-Download-Class",
		"Arkvory-", "X_Forwarded_For", "Arkvory_Download_Id", "Forwarded_For", "X-Remote-User", "X_Remote_User", "Remote-User", "REMOTE_USER",
		"X-Real-IP", "X_Real_Ip", "Authorization", "Proxy-Authorization", "Proxy_Authorization", "Cookie", "Set-Cookie", "Set_Cookie", "X-Auth-Request-Email",
	} {
		var c Chunks
		if _, _, err := unchunk(&c, []byte("0\r\nX-Sum: a\r\n"+name+": 10.0.0.1\r\nETag: b\r\n\r\n")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := string(AppendLastChunk(nil, &c.Trailer)); got != "0\r\nX-Sum: a\r\nETag: b\r\n\r\n" {
			t.Errorf("%s passes in a trailer: %q", name, got)
		}
	}
	var c Chunks
	if _, _, err := unchunk(&c, []byte("0\r\nX-Remote-: a\r\nRemote-Users: b\r\nX-Checksum_Sha256: c\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	wantLines(t, &c.Trailer, "X-Remote-: a", "Remote-Users: b", "X-Checksum_Sha256: c")
}

func TestP2_ShadowSpellingsAreNeverBelieved(t *testing.T) {
	var h Head
	if _, err := h.ParseRequest([]byte(get("X_Forwarded_For: 10.0.0.1", "Arkvory_Download_Class: bulk", "X_Forwarded-Host: evil")), 0); err != nil {
		t.Fatal(err)
	}
	if h.Get(ForwardedFor) != nil || h.Get(ForwardedHost) != nil || h.Count(Arkvory) != 0 || h.Lookup("x-forwarded-for") != nil || h.Lookup("arkvory-download-class") != nil {
		t.Error("a spelling with underscores is taken for the field")
	}
	if h.Count(Shadow) != 3 {
		t.Errorf("%d of 3 can be told for dropping", h.Count(Shadow))
	}
}

package wire

import (
	"strings"
	"testing"
)

func TestP5_MalformedRequestHeads(t *testing.T) {
	long := strings.Repeat("9", 19)
	for name, c := range map[string]struct {
		head string
		want int
	}{
		"CL and TE":               {get("Content-Length: 5", "Transfer-Encoding: chunked"), 400},
		"TE and CL":               {get("Transfer-Encoding: chunked", "Content-Length: 0"), 400},
		"two equal CL":            {get("Content-Length: 5", "Content-Length: 5"), 400},
		"two CL":                  {get("Content-Length: 5", "Content-length: 6"), 400},
		"CL 0 twice":              {get("Content-Length: 0", "Content-Length: 0"), 400},
		"CL list":                 {get("Content-Length: 5, 5"), 400},
		"CL empty":                {get("Content-Length:"), 400},
		"CL plus":                 {get("Content-Length: +5"), 400},
		"CL minus":                {get("Content-Length: -5"), 400},
		"CL minus zero":           {get("Content-Length: -0"), 400},
		"CL hex":                  {get("Content-Length: 0x5"), 400},
		"CL underscore":           {get("Content-Length: 1_0"), 400},
		"CL fraction":             {get("Content-Length: 5.0"), 400},
		"CL exponent":             {get("Content-Length: 1e3"), 400},
		"CL inner space":          {get("Content-Length: 1 0"), 400},
		"CL huge":                 {get("Content-Length: " + long), 400},
		"CL wraps 64 bits":        {get("Content-Length: 18446744073709551621"), 400},
		"CL other digits":         {get("Content-Length: \u0665"), 400},
		"CL vertical tab":         {get("Content-Length: \v5"), 400},
		"TE gzip":                 {get("Transfer-Encoding: gzip"), 501},
		"TE identity":             {get("Transfer-Encoding: identity"), 501},
		"TE gzip, chunked":        {get("Transfer-Encoding: gzip, chunked"), 501},
		"TE chunked, gzip":        {get("Transfer-Encoding: chunked, gzip"), 501},
		"TE chunked twice":        {get("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 400},
		"TE chunked list":         {get("Transfer-Encoding: chunked, chunked"), 501},
		"TE identity second":      {get("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), 400},
		"TE with parameter":       {get("Transfer-Encoding: chunked;q=1"), 501},
		"TE quoted":               {get(`Transfer-Encoding: "chunked"`), 501},
		"TE xchunked":             {get("Transfer-Encoding: xchunked"), 501},
		"TE trailing comma":       {get("Transfer-Encoding: chunked,"), 501},
		"TE empty":                {get("Transfer-Encoding:"), 501},
		"TE vertical tab":         {get("Transfer-Encoding: \vchunked"), 400},
		"TE space before colon":   {get("Transfer-Encoding : chunked"), 400},
		"TE HTTP/1.0":             {"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		"fold":                    {get("A: b", " c"), 400},
		"fold with tab":           {get("A: b", "\tc"), 400},
		"fold first":              {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
		"fold of spaces only":     {get("A: b", "  "), 400},
		"bare LF after a field":   {"GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", 400},
		"bare LF after the line":  {"GET / HTTP/1.1\nHost: h\r\n\r\n", 400},
		"bare LF at the end":      {"GET / HTTP/1.1\r\nHost: h\r\n\n", 400},
		"bare LF all":             {"GET / HTTP/1.1\nHost: h\n\n", 400},
		"bare LF before":          {"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"bare CR before":          {"\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"three empty lines first": {"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"bare CR in value":        {get("A: b\rc"), 400},
		"bare CR at value end":    {get("A: b\r"), 400},
		"bare CR in name":         {get("A\r: b"), 400},
		"bare CR in target":       {"GET /\r HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"bare CR in version":      {"GET / HTTP/1.1\r\r\nHost: h\r\n\r\n", 400},
		"NUL in value":            {get("A: b\x00c"), 400},
		"NUL in name":             {get("A\x00: b"), 400},
		"NUL in target":           {"GET /\x00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"DEL in value":            {get("A: \x7f"), 400},
		"DEL in target":           {"GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"space before colon":      {get("A : b"), 400},
		"tab before colon":        {get("A\t: b"), 400},
		"space in name":           {get("A B: c"), 400},
		"no colon":                {get("Abc"), 400},
		"empty name":              {get(": b"), 400},
		"only a colon":            {get(":"), 400},
		"name in parentheses":     {get("(A): b"), 400},
		"name not ASCII":          {get("\u00c4: b"), 400},
		"no Host":                 {"GET / HTTP/1.1\r\nA: b\r\n\r\n", 400},
		"two Host":                {get("Host: h"), 400},
		"two Host, HTTP/1.0":      {"GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n", 400},
		"no target":               {"GET HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"empty target":            {"GET  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"two spaces":              {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"space at line end":       {"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400},
		"tab separates":           {"GET\t/\tHTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"space in target":         {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"no method":               {" / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"method no token":         {"G{T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"HTTP/0.9":                {"GET /\r\n\r\n", 400},
		"version 2.0":             {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
		"version 0.9":             {"GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505},
		"version 1":               {"GET / HTTP/1\r\nHost: h\r\n\r\n", 400},
		"version 1.10":            {"GET / HTTP/1.10\r\nHost: h\r\n\r\n", 400},
		"version 1.x":             {"GET / HTTP/1.x\r\nHost: h\r\n\r\n", 400},
		"version lower case":      {"GET / http/1.1\r\nHost: h\r\n\r\n", 400},
		"other protocol":          {"GET / HTCP/1.1\r\nHost: h\r\n\r\n", 400},
		"HTTP/2 preface":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		"relative target":         {"GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"question mark target":    {"GET ?a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"asterisk with GET":       {"GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"asterisk and more":       {"OPTIONS ** HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"absolute ftp":            {"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"absolute no authority":   {"GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"absolute with user":      {"GET http://u:p@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"absolute with query":     {"GET http://h?a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"absolute bad port":       {"GET http://h:x/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"CONNECT authority":       {"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 501},
		"CONNECT path":            {"CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n", 501},
		"CONNECT asterisk":        {"CONNECT * HTTP/1.1\r\nHost: h\r\n\r\n", 501},
		"CONNECT absolute":        {"CONNECT http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 501},
		"Connection names many":   {get("Connection: " + strings.Repeat("a,", maxNamed+1)), 400},
		"Connections name many":   {get("Connection: "+strings.Repeat("a,", maxNamed), "Connection: b"), 400},
	} {
		t.Run(name, func(t *testing.T) {
			var h Head
			n, err := h.ParseRequest([]byte(c.head), 0)
			if got := status(t, err); got != c.want || n != 0 {
				t.Fatalf("%q: status %d and %d bytes, want %d and 0", c.head, got, n, c.want)
			}
			splitFeed(t, (*Head).ParseRequest, []byte(c.head))
		})
	}
}

func TestP5_HostForms(t *testing.T) {
	for v, ok := range map[string]bool{
		"": true, "h": true, "a.b-c_d.example": true, "H:80": true, "h:": true, "127.0.0.1": true, "127.0.0.1:8080": true, "8080": true,
		"[::1]": true, "[::1]:443": true, "[2001:db8::1]": true, "[::ffff:1.2.3.4]:1": true, "[::1]:": true, "a,b": true, "%41": true,
		strings.Repeat("a", 255) + ":65535": true, strings.Repeat("a", 262): false,
		":": false, ":80": false, "h:80:80": false, "h:x": false, "h:-1": false, "h:+1": false, "h:8 0": false, "u@h": false,
		"u:p@h": false, "h/": false, "h/a": false, "h?a": false, "h#a": false, "h\\a": false, "h h": false, "h\th": false, "::1": false,
		"[]": false, "[]:80": false, "[": false, "]": false, "[::1": false, "::1]": false, "[::1]8": false, "[::1]x": false,
		"[::1]x:80": false, "[a]b]": false, "[[::1]]": false, "[::1]:80]": false, "[::1]:x": false, "[h]": false, "[1.2.3.4]": false,
		"[fe80::1%25eth0]": false, "[v1.a]": false, "a[::1]": false, "h\u00e9": false, `"h"`: false, "<h>": false, "h^": false,
		"h|a": false, "{h}": false, "http://h": false,
	} {
		var h Head
		_, err := h.ParseRequest([]byte("GET / HTTP/1.1\r\nHost: "+v+"\r\n\r\n"), 0)
		if got := status(t, err); (got == 0) != ok || got != 0 && got != 400 {
			t.Errorf("Host %q: status %d, want accepted %v", v, got, ok)
		}
		if ok && string(h.Authority) != v {
			t.Errorf("Host %q: authority %q", v, h.Authority)
		}
		if v == "" {
			continue
		}
		_, err = h.ParseRequest([]byte("GET http://"+v+"/ HTTP/1.1\r\nHost: other\r\n\r\n"), 0)
		inPath := strings.Contains(v, "/") // the authority ends at the slash
		if got := status(t, err); !inPath && (got == 0) != ok {
			t.Errorf("absolute target of %q: status %d, want accepted %v", v, got, ok)
		}
		if ok && string(h.Authority) != v {
			t.Errorf("absolute target of %q wins over Host, authority is %q", v, h.Authority)
		}
	}
}

func TestP1_TargetsAndMethodsPassUnchanged(t *testing.T) {
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/", "/"}, {"GET", "//a//b", "//a//b"}, {"GET", "/@scope%2fname", "/@scope%2fname"},
		{"GET", "/%2F%2f/../a/./b", "/%2F%2f/../a/./b"}, {"GET", "/a?", "/a?"}, {"GET", "/a?b=c&&d=%zz#e", "/a?b=c&&d=%zz#e"},
		{"PROPFIND", "/x", "/x"}, {"get", "/x", "/x"}, {"M-SEARCH", "/x", "/x"}, {"GET", "/\xe4\xff", "/\xe4\xff"},
		{"GET", "/http://a/b", "/http://a/b"}, {"OPTIONS", "*", "*"}, {"OPTIONS", "/a", "/a"},
		{"GET", "http://o.example/a%2Fb?c", "/a%2Fb?c"}, {"GET", "HTTPS://o.example//", "//"}, {"GET", "http://o.example", "/"},
		{"OPTIONS", "http://o.example", "*"}, {"OPTIONS", "http://o.example/", "/"},
	} {
		raw := c.method + " " + c.target + " HTTP/1.1\r\nHost: h\r\n\r\n"
		var h Head
		n, err := h.ParseRequest([]byte(raw), 0)
		if err != nil || n != len(raw) {
			t.Errorf("%s %s: %d, %v", c.method, c.target, n, err)
			continue
		}
		if string(h.Method) != c.method || string(h.Target) != c.want || h.Minor != 1 {
			t.Errorf("%s %s: got %s %s HTTP/1.%d, want target %s", c.method, c.target, h.Method, h.Target, h.Minor, c.want)
		}
	}
}

func TestP1_FieldsKeepCaseOrderAndRepetition(t *testing.T) {
	raw := "GET /a HTTP/1.1\r\nhOsT:h\r\nX-b: 1\r\nX-A:\t two  words \t\r\nx-B:2\r\nEmpty:\r\nObs: \xe4\xff\r\nX-b: 1\r\n\r\nrest"
	var h Head
	n, err := h.ParseRequest([]byte(raw), 0)
	if err != nil || n != len(raw)-4 {
		t.Fatal(n, err)
	}
	wantLines(t, &h, "hOsT: h", "X-b: 1", "X-A: two  words", "x-B: 2", "Empty: ", "Obs: \xe4\xff", "X-b: 1")
	if string(h.Lookup("x-a")) != "two  words" || h.Lookup("none") != nil || h.Get(Host) == nil || h.Count(Other) != 6 {
		t.Fatal("look-up by name or id is wrong")
	}
	if got := string(AppendField(nil, &h, h.Fields[2])); got != "X-A: two  words\r\n" {
		t.Fatalf("appended field is %q", got)
	}
}

func TestP2_FieldsThatConnectionNames(t *testing.T) {
	raw := get("Connection: close, X-Hop ,,\tfoo", "x-hop: 1", "Foo: 2", "foo: 3", "Bar: 4", "Content-Length: 5", "Authorization: a",
		"connection: Host, CONTENT-LENGTH,Transfer-Encoding, authorization, KEEP-ALIVE, Keep, upgrade", "Keep-Alive: 5", "Upgrade: x")
	var h Head
	if _, err := h.ParseRequest([]byte(raw), 0); err != nil {
		t.Fatal(err)
	}
	wantLines(t, &h, "Host: h", "Connection: close, X-Hop ,,\tfoo", "-x-hop: 1", "-Foo: 2", "-foo: 3", "Bar: 4", "Content-Length: 5",
		"Authorization: a", "connection: Host, CONTENT-LENGTH,Transfer-Encoding, authorization, KEEP-ALIVE, Keep, upgrade",
		"Keep-Alive: 5", "-Upgrade: x")
	if !h.Close || !h.KeepAlive || !h.Upgrade || h.ContentLength != 5 {
		t.Fatalf("options are %v %v %v, length %d", h.Close, h.KeepAlive, h.Upgrade, h.ContentLength)
	}
	if _, err := h.ParseRequest([]byte(get("Connection: "+strings.Repeat("a,", maxNamed), "A: b")), 0); err != nil || !h.Fields[2].Dropped() {
		t.Fatalf("%d names are few enough: %v", maxNamed, err)
	}
}

func TestP5_RequestFraming(t *testing.T) {
	for _, c := range []struct {
		head    string
		length  int64
		chunked bool
		minor   int
	}{
		{get(), -1, false, 1},
		{get("Content-Length: 0"), 0, false, 1},
		{get("content-length:\t007 "), 7, false, 1},
		{get("Content-Length: 999999999999999999"), 999999999999999999, false, 1},
		{get("transfer-ENCODING: ChunkeD"), -1, true, 1},
		{"GET / HTTP/1.0\r\n\r\n", -1, false, 0},
		{"POST http://h/a HTTP/1.0\r\nContent-Length: 4\r\n\r\n", 4, false, 0},
		{"GET / HTTP/1.9\r\nHost:\r\n\r\n", -1, false, 1},
		{"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", -1, false, 1},
	} {
		var h Head
		n, err := h.ParseRequest([]byte(c.head), 0)
		if err != nil || n != len(c.head) || h.ContentLength != c.length || h.Chunked != c.chunked || h.Minor != c.minor {
			t.Errorf("%q: %d, %v, length %d, chunked %v, minor %d", c.head, n, err, h.ContentLength, h.Chunked, h.Minor)
		}
		splitFeed(t, (*Head).ParseRequest, []byte(c.head))
	}
	var h Head
	if _, err := h.ParseRequest([]byte(get("Expect: 100-Continue")), 0); err != nil || !h.Expect100 {
		t.Error("Expect: 100-Continue was not seen", err)
	}
	if _, err := h.ParseRequest([]byte(get("Expect: 200-ok")), 0); err != nil || h.Expect100 {
		t.Error("another expectation was taken for 100-continue", err)
	}
}

func TestP5_PipelinedRequestsOnOneHead(t *testing.T) {
	first := "POST /one HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\nX: 1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
	second := "GET /two HTTP/1.0\r\n\r\n"
	b := []byte(first + second)
	var h Head
	n, err := h.ParseRequest(b, 0)
	if err != nil || n != len(first) || string(h.Target) != "/one" || string(h.Raw) != first {
		t.Fatalf("first: %d, %v, %q", n, err, h.Target)
	}
	n, err = h.ParseRequest(b[n:], 0)
	if want := `n=21 "GET" "/two" 0 "" minor=0 cl=-1 false falsefalsefalsefalsefalse "" []`; err != nil || summary(&h, n, err) != want {
		t.Fatalf("the second is read as %s, want %s", summary(&h, n, err), want)
	}
	h.Reset()
	if h.Raw != nil || len(h.Fields) != 0 || h.Method != nil || h.ContentLength != -1 {
		t.Fatal("Reset leaves a message behind")
	}
}

func TestP5_IncompleteHeadsWait(t *testing.T) {
	raw := get("A: b")
	for cut := range len(raw) {
		var h Head
		if n, err := h.ParseRequest([]byte(raw[:cut]), 0); err != ErrNeedMore || n != 0 {
			t.Fatalf("%q: %d, %v", raw[:cut], n, err)
		}
	}
}

// Every name is compared with every field; without the bound of names this head of 1 MiB costs seconds of the test's time limit.
func TestP10_GiantConnectionFieldIsCheap(t *testing.T) {
	raw := get("Connection: "+strings.Repeat("x,", 256<<10), strings.Repeat("y:\r\n", MaxFields-3)+"z:")
	var h Head
	if _, err := h.ParseRequest([]byte(raw), 0); status(t, err) != 400 {
		t.Fatal("a giant Connection field was taken")
	}
}

func TestKnownFieldsHaveIDs(t *testing.T) {
	for id, name := range names {
		if name == "" {
			continue
		}
		if got := identify([]byte(strings.ToUpper(name))); got != ID(id) {
			t.Errorf("%s has id %d, want %d", name, got, id)
		}
		if got := identify([]byte(name + "x")); got != Other {
			t.Errorf("%sx has id %d", name, got)
		}
	}
	for name, want := range map[string]ID{"arkvory-x": Arkvory, "Arkvory-Download-Id": Arkvory, "Arkvory-": Arkvory, "Arkvory": Other, "Arkvory_": Shadow,
		"Arkvory_Download_Class": Shadow, "ARKVORY_download-class": Shadow, "Arkvory-Download_Class": Arkvory, "Arkvory_x": Shadow,
		"X_Forwarded_For": Shadow, "X-Forwarded_For": Shadow, "x_forwarded-PROTO": Shadow, "X_Forwarded_Host": Shadow, "Forwarded_For": Shadow,
		"X_Forwarded_Port": Other, "X-Forwarded-For_": Other, "_forwarded": Other, "_X_Forwarded_For": Other, "User_Agent": Other, "a_b": Other,
		"Xrkvory-Download": Other, strings.Repeat("a", 64): Other} {
		if got := identify([]byte(name)); got != want {
			t.Errorf("%s has id %d, want %d", name, got, want)
		}
	}
	if !HasToken([]byte(" a ,\tGZip,"), "gzip") || HasToken([]byte("gzipx, x"), "gzip") || !EqualFold([]byte("ETag"), "etag") || EqualFold([]byte("a"), "ab") {
		t.Error("token comparison is wrong")
	}
}

// A head that cannot become a request is refused before it is complete: a TLS hello on a plain port, for one.
func TestP5_WhatIsNoRequestIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		in   string
		more bool
	}{
		{"", true}, {"\r", true}, {"\r\n", true}, {"G", true}, {"GET", true}, {"GET ", true}, {"GET /a", true}, {"\r\nPOST /", true},
		{"\x16\x03\x01\x02\x00\x01\x00", false}, {"\x80", false}, {" GET", false}, {"{", false}, {"\rG", false}, {strings.Repeat("A", 65), false},
		{"GE\x00", false},
	} {
		var h Head
		_, err := h.ParseRequest([]byte(c.in), 0)
		if (err == ErrNeedMore) != c.more {
			t.Errorf("%q: %v", c.in, err)
		}
	}
}

package admin

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestV3_ConsoleIsServed(t *testing.T) {
	src, _, _ := allSources()
	addr := run(t, New(Settings{Console: files, Token: token}, src), true) // the page itself needs no trust
	for path, want := range map[string]string{"/console/": "text/html; charset=utf-8", "/console/index.html": "text/html; charset=utf-8", "/console/app.js": "text/javascript; charset=utf-8"} {
		a := send(t, addr, "GET", path)
		body, kind, tag, _ := files(strings.TrimPrefix(path, "/console/"))
		if path == "/console/" {
			body, kind, tag, _ = files("index.html")
		}
		if a.status != 200 || a.body != string(body) || a.header.Get("Content-Type") != want || kind != want || a.header.Get("Etag") != tag {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		for name, want := range map[string]string{"Content-Security-Policy": contentSecurity, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Server": ""} {
			if got := strings.Join(a.header.Values(name), ","); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if h := send(t, addr, "HEAD", path); h.status != 200 || h.body != "" || h.header.Get("Content-Length") != a.header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d %v", path, h.status, h.header)
		}
	}
	for _, word := range []string{"unsafe", "data:", "blob:", "*", "http"} {
		if strings.Contains(contentSecurity, word) {
			t.Errorf("the policy has %s", word)
		}
	}
	for _, path := range []string{"/", "/console"} {
		if a := send(t, addr, "GET", path); a.status != 303 || a.header.Get("Location") != "/console/" {
			t.Errorf("%s: %d to %q", path, a.status, a.header.Get("Location"))
		}
	}
}

func TestV3_ConsoleIsCompressedAndKept(t *testing.T) {
	src, _, _ := allSources()
	addr := run(t, New(Settings{Console: files}, src), false)
	for _, c := range []struct {
		path, accepts string
		gzip          bool
	}{
		{"app.js", "gzip", true}, {"app.js", "br, GZIP;q=0.5, *", true}, {"app.js", "deflate", false}, {"app.js", "gzip;q=0", false}, {"app.js", "gzip; q=0.000", false}, {"app.js", "xgzip", false},
		{"icon.png", "gzip", false}, {"index.html", "gzip", false}, {"app.js", "", false},
	} {
		a := send(t, addr, "GET", "/console/"+c.path, "Accept-Encoding: "+c.accepts)
		want, _, tag, _ := files(c.path)
		got := a.body
		if (a.header.Get("Content-Encoding") == "gzip") != c.gzip {
			t.Errorf("%s for %q: %v", c.path, c.accepts, a.header)
			continue
		}
		if c.gzip {
			tag = `"app-1-gzip"`
			r, err := gzip.NewReader(strings.NewReader(a.body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if got = string(text); err != nil || len(a.body) >= len(want) {
				t.Errorf("%v, %d bytes of %d", err, len(a.body), len(want))
			}
		}
		if a.status != 200 || got != string(want) || a.header.Get("Etag") != tag {
			t.Errorf("%s for %q: %d %v", c.path, c.accepts, a.status, a.header)
		}
		for _, have := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			kept := send(t, addr, "GET", "/console/"+c.path, "Accept-Encoding: "+c.accepts, "If-None-Match: "+have)
			if kept.status != 304 || kept.body != "" || kept.header.Get("Etag") != tag || kept.header.Get("Content-Encoding") != "" {
				t.Errorf("%s for who has %s: %d %v", c.path, have, kept.status, kept.header)
			}
		}
		if other := send(t, addr, "GET", "/console/"+c.path, "If-None-Match: \"other\""); other.status != 200 {
			t.Errorf("%s for who has another: %d", c.path, other.status)
		}
	}
}

func TestV3_LinksOfOtherSitesLeadToThePageOnly(t *testing.T) {
	src, _, _ := allSources()
	addr := run(t, New(Settings{Console: files}, src), false)
	follows := []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}
	for path, want := range map[string]int{"/console/": 200, "/": 303, "/console": 303, QueuePath: 403, SettingsPath: 403, "/metrics": 403, "/health/ready": 403, OpenAPIPath: 403} {
		if a := send(t, addr, "GET", path, follows...); a.status != want {
			t.Errorf("a link to %s: %d, want %d", path, a.status, want)
		}
	}
	for name, lines := range map[string][]string{
		"frame":  {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"},
		"fetch":  {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"},
		"script": {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"},
		"form":   append([]string{"Origin: https://evil.example"}, follows...),
	} {
		if a := send(t, addr, "GET", "/console/", lines...); a.status != 403 {
			t.Errorf("%s of another site: %d", name, a.status)
		}
	}
}

func TestL3_ABodyThatNobodyReadsDoesNotDisturbTheNextRequest(t *testing.T) {
	src, _, _ := allSources()
	addr := run(t, New(Settings{Console: files}, src), false)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	hidden := "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, body := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hidden), hidden), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)} {
		for _, head := range []string{"GET " + QueuePath, "GET /debug/pprof/cmdline", "GET /console/", "POST " + QueuePath, "GET /nothing", "PUT " + SettingsPath} {
			if _, err := io.WriteString(c, head+" HTTP/1.1\r\nHost: "+addr+"\r\n"+body+"GET /health/live HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"", "{\"status\":\"live\"}\n"} {
				a, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("%s: answer %d: %v", head, i, err)
				}
				text, err := io.ReadAll(a.Body)
				_ = a.Body.Close()
				if err != nil || i == 1 && string(text) != want {
					t.Errorf("%s: answer %d is %q, %v", head, i, text, err)
				}
			}
		}
	}
}

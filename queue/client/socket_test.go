package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestC1_RedirectsKeepSecretsAtHome: the other host gets neither the caller's fields nor the query nor the ticket of the
// first; its own ticket goes back to it.
func TestC1_RedirectsKeepSecretsAtHome(t *testing.T) {
	in(t, func(t *testing.T) {
		want := noise(1, 500_000)
		o := newOrigin(want)
		o.script = func(n int, r *http.Request) (*http.Response, error) {
			if r.URL.Host == "store.test" {
				if n == 0 {
					return status(503, "Retry-After", "1", fieldTicket, "2.first")
				}
				return status(307, "Location", "http://bucket.test/x?sign=abc")
			}
			if r.Referer() != "" || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
				t.Errorf("the other host got %v", r.Header)
			}
			response := o.serve(r)
			response.Header.Set(fieldTicket, "2.second")
			return response, nil
		}
		r := newTrial(t, o)
		r.opts.RangeBytes, r.opts.Parallel = 100_000, 1
		r.opts.Header.Set("Cookie", "c="+testSecret)
		r.gets(want)
		for i, one := range o.seen() {
			home := one.host == "store.test"
			if home != (one.auth == "Bearer "+testSecret) || home && one.ticket == "2.second" || !home && one.ticket == "2.first" {
				t.Errorf("request %d: %+v", i, one)
			}
			if i > 4 && !home && one.ticket != "2.second" {
				t.Errorf("request %d carries ticket %q", i, one.ticket)
			}
		}
	})
	in(t, func(t *testing.T) {
		o := newOrigin(nil)
		o.script = func(int, *http.Request) (*http.Response, error) { return status(302, "Location", testURL) }
		newTrial(t, o).ends(ErrRefused)
	})
}

// TestC1_OverSockets runs the public function with its own transport against a real server that is busy at first and
// breaks a connection.
func TestC1_OverSockets(t *testing.T) {
	want := noise(1, 5<<20)
	requests := make(chan int, 1)
	requests <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := <-requests
		requests <- n + 1
		user, password, _ := r.BasicAuth()
		w.Header().Set("ETag", `"one"`)
		switch {
		case user != "me" || password != testSecret:
			w.WriteHeader(http.StatusUnauthorized)
		case n == 0:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case n == 3:
			http.ServeContent(&breaking{ResponseWriter: w}, r, "", time.Time{}, bytes.NewReader(want))
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(want))
		}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "out")
	digest, err := ParseDigest("sha256:" + sha(want))
	if err != nil {
		t.Fatal(err)
	}
	result, err := Download(t.Context(), Options{URL: strings.Replace(server.URL, "://", "://me:"+testSecret+"@", 1) + "/f?x=1", Output: path, RangeBytes: 1 << 20, Digest: digest, Size: 5 << 20})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) || result.ETag != `"one"` || result.Retries != 1 || result.Waited < time.Second {
		t.Errorf("%+v %v", result, err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// breaking ends the connection after some of the body.
type breaking struct {
	http.ResponseWriter
	got int
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.got += len(p); b.got > 300_000 {
		panic(http.ErrAbortHandler)
	}
	return b.ResponseWriter.Write(p)
}

// TestC1_WrongOptions names every wrong field at once, and never the address's secrets.
func TestC1_WrongOptions(t *testing.T) {
	_, err := Download(t.Context(), Options{URL: "ftp://me:" + testSecret + "@h/\x7f?" + testSecret, ID: "a b", Class: "vip", Parallel: 17, RangeBytes: -1, WaitLimit: -1, Size: -2, Retries: -1,
		Attempts: -1, AttemptTimeout: -1, NotBefore: time.Unix(2, 0), NotAfter: time.Unix(1, 0)})
	if !errors.Is(err, ErrOptions) || strings.Contains(err.Error(), testSecret) {
		t.Fatal(err)
	}
	for _, field := range []string{"URL", "Output", "ID", "Class", "Parallel", "RangeBytes", "WaitLimit", "Size", "Retries", "Attempts", "AttemptTimeout", "NotAfter"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
	if _, err := Download(t.Context(), Options{URL: testURL, Output: t.TempDir()}); !errors.Is(err, ErrOptions) {
		t.Errorf("a folder as output: %v", err)
	}
}

// TestC1_RawServers are those that no library would make: each ends in a fault after the term of silence or at once, or is cut, and in no
// case does the download hang, grow or take a byte that was not promised.
func TestC1_RawServers(t *testing.T) {
	want := noise(2, 70_000)
	head := fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Range: bytes 0-%d/%d\r\n", len(want)-1, len(want))
	for name, one := range map[string]struct {
		say  func(w io.Writer) error
		fine bool
	}{
		"1xx without end": {say: func(w io.Writer) (err error) {
			for err == nil {
				_, err = io.WriteString(w, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
			}
			return err
		}},
		"header without end": {say: func(w io.Writer) (err error) {
			_, err = io.WriteString(w, head)
			for err == nil {
				_, err = io.WriteString(w, "X: "+strings.Repeat("y", 1000)+"\r\n")
			}
			return err
		}},
		"header that stops": {say: func(w io.Writer) error { _, err := io.WriteString(w, head+"X: y"); return err }},
		"nothing":           {say: func(io.Writer) error { return nil }},
		"noise":             {say: func(w io.Writer) error { _, err := w.Write(want); return err }},
		"two lengths": {say: func(w io.Writer) error {
			_, err := io.WriteString(w, head+"Content-Length: 70000\r\nContent-Length: 70001\r\n\r\n"+string(want))
			return err
		}},
		"body without end": {fine: true, say: func(w io.Writer) error {
			_, err := io.WriteString(w, head+"\r\n"+string(want))
			for err == nil {
				_, err = w.Write(want)
			}
			return err
		}},
		"chunks without end": {fine: true, say: func(w io.Writer) error {
			_, err := io.WriteString(w, head+"Transfer-Encoding: chunked\r\n\r\n11170\r\n"+string(want)+"\r\n")
			return err
		}},
		"a bad chunk": {say: func(w io.Writer) error {
			_, err := io.WriteString(w, head+"Transfer-Encoding: chunked\r\n\r\n-1\r\n"+string(want))
			return err
		}},
		"line breaks in a ticket": {fine: true, say: func(w io.Writer) error {
			_, err := io.WriteString(w, head+fieldTicket+": 2.a\r\n\tX-Evil: 1\r\nContent-Length: 70000\r\n\r\n"+string(want))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			served.Go(func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					served.Go(func() {
						defer conn.Close()
						if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil && one.say(conn) == nil {
							_, _ = io.Copy(io.Discard, conn) // until the client has enough
						}
					})
				}
			})
			defer served.Wait()
			defer listener.Close()
			output := filepath.Join(t.TempDir(), "out")
			_, err = Download(t.Context(), Options{URL: "http://" + listener.Addr().String() + "/", Output: output, Attempts: 1, AttemptTimeout: 200 * time.Millisecond})
			got, _ := os.ReadFile(output)
			if one.fine && (err != nil || !bytes.Equal(got, want)) || !one.fine && (!errors.Is(err, ErrBudget) || got != nil) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

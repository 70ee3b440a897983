package admin

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

// Two goroutines of fasthttp outlive a server that has ended: the process-wide date, and the worker pool's cleaner, which looks for the
// stop signal every ten seconds. That each Serve returns is checked by run.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// farListener makes every peer look like one on another machine.
type farListener struct{ net.Listener }

type farConn struct{ net.Conn }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40000} }

// run serves on a free loopback port until the test ends and returns the address. Far peers look remote.
func run(t *testing.T, s *Server, far bool) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if far {
		ln = farListener{ln}
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return addr
}

type answer struct {
	status int
	header http.Header
	body   string
}

// raw sends bytes as they are and reads one answer to a request of the method.
func raw(t *testing.T, addr, method, request string) answer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{r.StatusCode, r.Header, string(b)}
}

// send sends METHOD PATH with the given header lines; Host is the address unless a line gives it.
func send(t *testing.T, addr, method, path string, lines ...string) answer {
	t.Helper()
	host, rest := "Host: "+addr+"\r\n", ""
	for _, l := range lines {
		if len(l) > 5 && l[:5] == "Host:" {
			host = l + "\r\n"
			continue
		}
		rest += l + "\r\n"
	}
	return raw(t, addr, method, method+" "+path+" HTTP/1.1\r\n"+host+rest+"Connection: close\r\n\r\n")
}

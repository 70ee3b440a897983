package proxy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// freePort returns an address of 127.0.0.1 that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = probe.Close() }()
	return probe.Addr().String()
}

// nginx starts a real nginx on a free port over a folder and ends it with the test. It speaks TLS when certificate files are given.
func nginx(t *testing.T, root, certFile, keyFile string) string {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatal("nginx is needed: apt-get install nginx")
	}
	addr := vacant(t)
	if certFile != "" { // which is for 127.0.0.1
		addr = freePort(t)
	}
	dir := t.TempDir()
	secure, scheme := "", "http"
	if certFile != "" {
		secure, scheme = fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s; ssl_protocols TLSv1.2 TLSv1.3;", certFile, keyFile), "https"
		addr += " ssl"
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // the folders of a test belong to whoever runs it
	}
	var temp strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "%s_temp_path %s/%s; ", kind, dir, kind)
	}
	conf := fmt.Sprintf(`%s daemon off; worker_processes 1; pid %s/pid; error_log %s/error.log;
events { worker_connections 256; }
http { access_log off; %s keepalive_timeout 60s;
server { listen %s; %s root %s; dav_methods PUT DELETE; client_max_body_size 0; gzip on; gzip_types text/plain; } }
`, user, dir, dir, temp.String(), addr, secure, root)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "-p", dir, "-c", file, "-e", filepath.Join(dir, "start.log"))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt) // fast shutdown of the master, which ends its worker
		<-ended
	})
	addr, _, _ = strings.Cut(addr, " ")
	eventually(t, "nginx listens", func() bool {
		select {
		case err := <-ended:
			log, _ := os.ReadFile(filepath.Join(dir, "start.log"))
			t.Fatalf("nginx ended: %v\n%s", err, log)
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return scheme + "://" + addr
}

func TestP1_P8_NginxServesExactBytes(t *testing.T) {
	t.Parallel()
	_, _, certFile, keyFile := authority(t)
	random := rand.NewChaCha8([32]byte{7})
	big, small := make([]byte, 3*mib+77), make([]byte, 4*kib)
	_, _ = random.Read(big)
	_, _ = random.Read(small)
	root := t.TempDir()
	for name, data := range map[string][]byte{"big.bin": big, "small.bin": small, "a b.txt": bytes.Repeat([]byte("text "), 1000)} {
		if err := os.WriteFile(filepath.Join(root, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, secure := range []bool{false, true} {
		url := nginx(t, root, "", "")
		if secure {
			url = nginx(t, root, certFile, keyFile)
		}
		b := start(t, url, func(s *Settings) {
			if secure {
				s.UpstreamCAFile = certFile
			}
		})
		c := b.dial()
		if a := c.get("/big.bin").ok(200); sha256.Sum256([]byte(a.body)) != sha256.Sum256(big) {
			t.Errorf("%s: big differs, %d bytes", url, len(a.body))
		}
		if a := c.get("/big.bin", "Range: bytes=1000000-2000000").ok(206); a.body != string(big[1000000:2000001]) {
			t.Errorf("%s: range differs", url)
		}
		if a := c.get("/big.bin", "Range: bytes=9000000-").ok(416); a.Header.Get("Content-Range") == "" {
			t.Errorf("%s: no Content-Range", url)
		}
		for range 20 {
			if a := c.get("/small.bin").ok(200); a.body != string(small) {
				t.Fatalf("%s: small differs", url)
			}
		}
		if a := c.get("/a%20b.txt", "Accept-Encoding: gzip").ok(200); a.Header.Get("Content-Encoding") != "gzip" || len(a.TransferEncoding) != 1 {
			t.Errorf("%s: %v %v", url, a.Header, a.TransferEncoding) // nginx compresses on the fly: no Via was seen
		}
		if a := c.send(request("HEAD", "/big.bin")).answerTo("HEAD"); a.ContentLength != int64(len(big)) {
			t.Errorf("%s: HEAD says %d", url, a.ContentLength)
		}
		c.get("/missing").ok(404)
		name := "/up.bin"
		c.send(request("PUT", name, fmt.Sprintf("Content-Length: %d", len(big)), "Expect: 100-continue"))
		if h := c.head(); !strings.HasPrefix(h, "HTTP/1.1 100") {
			t.Fatalf("%s: %q", url, h)
		}
		if a := c.send(string(big)).answer(); a.StatusCode/100 != 2 {
			t.Fatalf("%s: PUT %d", url, a.StatusCode)
		}
		if got, err := os.ReadFile(filepath.Join(root, "up.bin")); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%s: %v, %d bytes arrived", url, err, len(got))
		}
		if totals := b.p.Metrics().Totals(); totals.Dials > 2 || totals.Reused < 20 {
			t.Errorf("%s: %d dials, %d reused", url, totals.Dials, totals.Reused)
		}
		b.quiet(patience)
	}
}

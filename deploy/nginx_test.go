package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// frontLimit ends a test whose front never passes on what it was given.
const frontLimit = 20 * time.Second

// nginxPath finds nginx; Debian keeps it outside the path of ordinary users.
func nginxPath(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("nginx"); err == nil {
		return path
	}
	const debian = "/usr/sbin/nginx"
	if _, err := os.Stat(debian); err != nil {
		t.Fatal("nginx is not installed; make test installs it")
	}
	return debian
}

// frontConf writes a whole nginx configuration around nginx/arkvory.conf into dir: addresses and certificate are replaced,
// everything else stands as operators get it. It returns the arguments that select it.
func frontConf(t *testing.T, dir, listen, backend string) []string {
	t.Helper()
	certificate(t, dir)
	text := read(t, "nginx/arkvory.conf")
	for old, replacement := range map[string]string{
		"listen 443 ssl;":                      "listen " + listen + " ssl;",
		"server 127.0.0.1:8080;":               "server " + backend + ";",
		"/etc/nginx/tls/files.example.com.crt": filepath.Join(dir, "cert.pem"),
		"/etc/nginx/tls/files.example.com.key": filepath.Join(dir, "key.pem"),
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("nginx/arkvory.conf has %q %d times, want once", old, strings.Count(text, old))
		}
		text = strings.Replace(text, old, replacement, 1)
	}
	whole := "daemon off; worker_processes 1; pid nginx.pid; error_log stderr notice;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += kind + "_temp_path temp_" + kind + ";\n"
	}
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(whole+text+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-p", dir, "-c", path}
}

// certificate writes a pair for files.example.com into dir.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"files.example.com"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// startFront runs nginx with the example before backend and returns its address. nginx takes over a socket that the test
// already listens on, so no port can be lost between choosing and binding it; connections wait in its queue until nginx is up.
func startFront(t *testing.T, backend string) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	address := listener.Addr().String()
	var log bytes.Buffer
	command := exec.Command(nginxPath(t), frontConf(t, t.TempDir(), address, backend)...)
	command.Env = append(os.Environ(), "NGINX=3;")
	command.ExtraFiles = []*os.File{socket}
	command.Stdout, command.Stderr = &log, &log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		err := command.Wait()
		if t.Failed() {
			t.Logf("nginx ended with %v and said:\n%s", err, log.String())
		}
	})
	return address
}

// frontClient trusts any certificate: what is tested is what passes, not who signed.
func frontClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestV5_FrontConfigurationParses lets nginx read the example.
func TestV5_FrontConfigurationParses(t *testing.T) {
	dir := t.TempDir()
	arguments := append(frontConf(t, dir, "unix:"+filepath.Join(dir, "s"), "127.0.0.1:1"), "-t")
	out, err := exec.Command(nginxPath(t), arguments...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "[warn]") {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
}

// TestP1_FrontKeepsTargetAndReplacesForwarding runs the example: the target arrives byte for byte, Host is kept, and what a
// client claims about its address does not pass (P2).
func TestP1_FrontKeepsTargetAndReplacesForwarding(t *testing.T) {
	type arrival struct {
		target, host string
		header       http.Header
	}
	got := make(chan arrival, 1)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- arrival{r.RequestURI, r.Host, r.Header.Clone()}
	}))
	defer backend.Close()
	address := startFront(t, backend.Listener.Addr().String())
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: frontLimit}, "tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(frontLimit))
	const target = "/@scope%2fname//a/./b?x=1%2F2&"
	_, _ = io.WriteString(connection, "GET "+target+" HTTP/1.1\r\nHost: files.example.com:8443\r\nX-Forwarded-For: 203.0.113.9\r\n"+
		"X-Forwarded-Proto: gopher\r\nForwarded: for=203.0.113.9\r\nArkvory-Download-Id: one\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	arrived := <-got
	if arrived.target != target || arrived.host != "files.example.com:8443" {
		t.Errorf("arrived as %q for %q", arrived.target, arrived.host)
	}
	for name, want := range map[string]string{
		"X-Forwarded-For":     "127.0.0.1",
		"X-Forwarded-Proto":   "https",
		"X-Forwarded-Host":    "files.example.com:8443",
		"Forwarded":           "",
		"Arkvory-Download-Id": "one",
	} {
		if got := arrived.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestP3_FrontDoesNotBuffer runs the example: the first bytes of a response reach the client while the backend still waits, and
// the first bytes of an upload reach the backend while the client still waits.
func TestP3_FrontDoesNotBuffer(t *testing.T) {
	const first, second = "first", "second"
	release, arrived := make(chan struct{}), make(chan string, 1)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			part := make([]byte, len(first))
			_, _ = io.ReadFull(r.Body, part)
			arrived <- string(part)
			_, _ = io.Copy(w, r.Body)
			return
		}
		_, _ = io.WriteString(w, first)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, second)
	}))
	defer backend.Close()
	url := "https://" + startFront(t, backend.Listener.Addr().String())
	client := frontClient(t)
	limit, cancel := context.WithTimeout(t.Context(), frontLimit)
	defer cancel()

	request, _ := http.NewRequestWithContext(limit, http.MethodGet, url+"/down", nil)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	part := make([]byte, len(first))
	if _, err := io.ReadFull(response.Body, part); err != nil || string(part) != first {
		t.Fatalf("the first bytes are %q, %v: the front buffers responses", part, err)
	}
	close(release)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != second {
		t.Fatalf("the rest is %q, %v", rest, err)
	}

	body, sender := io.Pipe()
	go func() {
		_, _ = io.WriteString(sender, first)
		select {
		case part := <-arrived:
			_, _ = io.WriteString(sender, strings.ToUpper(part))
			_ = sender.Close()
		case <-limit.Done():
			_ = sender.CloseWithError(limit.Err())
		}
	}()
	request, _ = http.NewRequestWithContext(limit, http.MethodPut, url+"/up", body)
	response, err = client.Do(request)
	if err != nil {
		t.Fatalf("%v: the front buffers uploads", err)
	}
	defer response.Body.Close()
	if echoed, err := io.ReadAll(response.Body); err != nil || string(echoed) != strings.ToUpper(first) {
		t.Fatalf("the backend returned %q, %v", echoed, err)
	}
}

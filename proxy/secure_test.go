package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// authority makes a certificate for loopback that is its own authority; the files hold it in PEM.
func authority(t *testing.T) (pair tls.Certificate, pool *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"store.test"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, data := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pair, pool, certFile, keyFile
}

func (b *bench) dialTLS(pool *x509.CertPool) *client {
	b.t.Helper()
	conn, err := tls.Dial("tcp", b.addr, &tls.Config{RootCAs: pool})
	if err != nil {
		b.t.Fatal(err)
	}
	return wrap(b.t, conn)
}

func TestP8_TLSOnBothSides(t *testing.T) {
	t.Parallel()
	pair, pool, certFile, _ := authority(t)
	body := strings.Repeat("0123456789abcdef", 64*kib)
	o := newTLSOrigin(t, &tls.Config{Certificates: []tls.Certificate{pair}}, func(k *call) {
		if k.field("X-Forwarded-Proto") != "https" {
			k.o.t.Errorf("X-Forwarded-Proto %q", k.field("X-Forwarded-Proto"))
		}
		if k.method == "PUT" {
			k.reply(201, "", fmt.Sprint(len(k.body())))
			return
		}
		k.reply(200, "", body)
	})
	b := start(t, o.url(), func(s *Settings) {
		s.TLS, s.UpstreamCAFile = &tls.Config{Certificates: []tls.Certificate{pair}}, certFile
	})
	c := b.dialTLS(pool)
	for range 3 {
		if a := c.get("/f").ok(200); a.body != body {
			t.Errorf("%d bytes", len(a.body))
		}
		if a := c.send(request("PUT", "/f", "Content-Length: 300000") + strings.Repeat("u", 300000)).ok(201); a.body != "300000" {
			t.Errorf("the origin got %s bytes", a.body)
		}
	}
	if o.accepted() != 1 {
		t.Errorf("%d upstream connections", o.accepted())
	}
	c.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").ok(400)
	c.atEnd()
}

func TestP8_ForeignCertificateIsNotAccepted(t *testing.T) {
	t.Parallel()
	pair, _, _, _ := authority(t)
	_, _, other, _ := authority(t)
	o := newTLSOrigin(t, &tls.Config{Certificates: []tls.Certificate{pair}}, func(k *call) { k.reply(200, "", "") })
	b := start(t, o.url(), func(s *Settings) { s.UpstreamCAFile = other })
	if a := b.once("GET", "/", "Authorization: Basic dTpw"); a.StatusCode != 502 || a.reason(t) != "upstream_untrusted" || len(o.requests()) != 0 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	plain := newOrigin(t, func(k *call) { k.closed() })
	b = start(t, strings.Replace(plain.url(), "http:", "https:", 1), nil)
	plain.ln.Close()
	if a := b.once("GET", "/"); a.StatusCode != 502 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestP8_TruncationIsVisibleBehindTLS(t *testing.T) {
	t.Parallel()
	pair, pool, _, _ := authority(t)
	o := newOrigin(t, func(k *call) {
		k.over = true
		k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
	})
	b := start(t, o.url(), func(s *Settings) { s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} })
	for _, version := range []string{"1.0", "1.1"} {
		c := b.dialTLS(pool).send("GET / HTTP/" + version + "\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(c.br, nil)
		if err != nil {
			continue
		}
		if body, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("HTTP/%s: a whole response %q", version, body)
		}
	}
}

// glued writes two TLS records in one segment, so that the second one waits inside the reader's TLS layer and not in its socket.
type glued struct {
	net.Conn
	hold bool
	b    bytes.Buffer
}

func (g *glued) Write(p []byte) (int, error) {
	if g.hold {
		return g.b.Write(p)
	}
	return g.Conn.Write(p)
}

func TestP7_UnaskedBytesInsideTLSNeverReachAnotherClient(t *testing.T) {
	t.Parallel()
	pair, _, certFile, _ := authority(t)
	raw := newOrigin(t, func(*call) {})
	raw.ln.Close() // only its socket handling below is used
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		var each sync.WaitGroup
		defer each.Wait()
		for n := 0; ; n++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			first := n == 0
			each.Go(func() { // a client may come before the connection of the one before it is free
				g := &glued{Conn: nc}
				c := tls.Server(g, &tls.Config{Certificates: []tls.Certificate{pair}})
				k := &call{o: raw, conn: c}
				w := wrap(t, c)
				for ; ; first = false {
					if _, err := readHead(w.br); err != nil {
						break
					}
					g.hold = true
					k.reply(200, "", "clean")
					if first {
						k.reply(200, "", "poison")
					}
					g.hold = false
					if _, err := g.b.WriteTo(nc); err != nil {
						break
					}
				}
				_ = nc.Close()
			})
		}
	}()
	b := start(t, "https://"+ln.Addr().String(), func(s *Settings) { s.UpstreamCAFile = certFile })
	for i := range 3 {
		if a := b.once("GET", "/"); a.body != "clean" {
			t.Errorf("client %d got %q", i, a.body)
		}
	}
	b.close()
	_ = ln.Close()
	<-served
}

func TestP9_RedirectsPassUnlessFollowed(t *testing.T) {
	t.Parallel()
	target := newOrigin(t, func(k *call) {
		for _, secret := range []string{"Authorization", "Cookie", "X-Api-Key", "Private-Token", "X-Amz-Security-Token", "Proxy-Authorization"} {
			if v := k.field(secret); v != "" {
				k.o.t.Errorf("%s went to another host", secret)
			}
		}
		if k.field("Range") != "bytes=0-3" || k.field("Host") != k.o.ln.Addr().String() || k.field("Accept-Encoding") != "br" {
			k.o.t.Errorf("head:\n%s", k.raw)
		}
		k.send("HTTP/1.1 206 X\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\nblob")
	})
	front := newOrigin(t, func(k *call) {
		switch {
		case k.target == "/same":
			k.reply(302, "Location: here?x=1\r\n", "moved")
		case k.target == "/here?x=1":
			if k.field("Authorization") == "" {
				k.o.t.Error("the own host did not get the credentials")
			}
			k.reply(200, "", "own")
		case k.target == "/loop":
			k.reply(307, "Location: /loop\r\n", "")
		case k.target == "/odd":
			k.reply(302, "Location: ftp://x/\r\n", "odd")
		case k.target == "/ping":
			k.reply(302, "Location: /pong\r\n", "")
		case k.target == "/pong":
			k.reply(302, "Location: /ping\r\n", "")
		case k.target == "/canonical":
			k.reply(301, "Location: http://"+k.field("Host")+"/here?x=1\r\n", "")
		case k.target == "/dead":
			k.reply(302, "Location: http://127.0.0.1:1/\r\n", "")
		default:
			k.reply(307, "Location: "+target.url()+"/bucket/blob?sig=1\r\n", "moved")
		}
	})
	fields := []string{"Authorization: Bearer abc", "Cookie: a=b", "X-Api-Key: k", "Private-Token: p", "X-Amz-Security-Token: s", "Proxy-Authorization: q",
		"Range: bytes=0-3", "Accept-Encoding: br"}
	b := start(t, front.url(), nil)
	if a := b.once("GET", "/blob", fields...); a.StatusCode != 307 || a.body != "moved" || len(target.requests()) != 0 {
		t.Errorf("not followed: %d %q", a.StatusCode, a.body)
	}
	b = start(t, front.url(), func(s *Settings) { s.FollowRedirects = true })
	if a := b.once("GET", "/blob", fields...); a.StatusCode != 206 || a.body != "blob" {
		t.Errorf("followed: %d %q", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/same", fields...); a.StatusCode != 200 || a.body != "own" {
		t.Errorf("relative: %d %q", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/odd"); a.StatusCode != 302 || a.body != "odd" {
		t.Errorf("odd: %d %q", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/loop"); a.StatusCode/100 != 3 || front.count("GET /loop") != 1 { // to itself: the client's to judge
		t.Errorf("loop: %d %s after %d", a.StatusCode, a.body, front.count("GET /loop"))
	}
	if a := b.once("GET", "/ping"); a.StatusCode != 502 || a.reason(t) != "upstream_redirect" || front.count("GET /ping") != 3 {
		t.Errorf("loop of two: %d %s after %d", a.StatusCode, a.body, front.count("GET /ping"))
	}
	if a := b.once("GET", "/canonical", fields...); a.StatusCode != 200 || a.body != "own" { // the name that the client used is this proxy's: it is not dialled
		t.Errorf("canonical: %d %q", a.StatusCode, a.body)
	}
	if a := b.once("GET", "/dead"); a.StatusCode != 502 || a.reason(t) != "upstream_redirect" {
		t.Errorf("dead: %d %s", a.StatusCode, a.body)
	}
	if a := b.once("PUT", "/blob", "Content-Length: 0"); a.StatusCode != 307 {
		t.Errorf("a PUT was followed: %d", a.StatusCode)
	}
	b.quiet(patience)
}

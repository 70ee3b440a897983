package config

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mustLoad loads an environment that has no fault.
func mustLoad(t *testing.T, environ ...string) (Config, []Warning) {
	t.Helper()
	c, warnings, err := Load(environ)
	if err != nil {
		t.Fatalf("Load(%q): %v", environ, err)
	}
	return c, warnings
}

// faultsOf loads an environment that has faults.
func faultsOf(t *testing.T, environ ...string) []Fault {
	t.Helper()
	c, _, err := Load(environ)
	var faults *Faults
	if !errors.As(err, &faults) {
		t.Fatalf("Load(%q) gave error %v, want *Faults", environ, err)
	}
	if c.Listen != "" || c.MaxRequests != 0 {
		t.Errorf("Load(%q) gave a filled Config with its faults", environ)
	}
	return faults.List
}

// printed returns what Print writes.
func printed(c Config) string {
	var text bytes.Buffer
	c.Print(&text)
	return text.String()
}

// write puts a file into a folder of the test and returns its path.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pair writes a self-signed certificate and its key.
func pair(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "arkvory.test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile = write(t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	keyFile = write(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes})))
	return certFile, keyFile
}

// valueIn returns the value of a variable in the output of Print.
func valueIn(t *testing.T, text, name string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+"="); found {
			return value
		}
	}
	t.Fatalf("%s is not printed", name)
	return ""
}

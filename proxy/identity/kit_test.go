package identity

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// request parses a head of a target and lines.
func request(t testing.TB, target string, lines ...string) *wire.Head {
	t.Helper()
	h := &wire.Head{}
	raw := "GET " + target + " HTTP/1.1\r\nHost: store.example\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
	if _, err := h.ParseRequest([]byte(raw), 0); err != nil {
		t.Fatalf("%s %q: %v", target, lines, err)
	}
	return h
}

func newIdentifier(t testing.TB, s Settings) *Identifier {
	t.Helper()
	if s.Key == nil {
		s.Key = testKey
	}
	d, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// s3 is the query of an S3 link whose signature is the two digits 32 times.
func s3(digits string) string {
	return "X-Amz-Credential=AKEXAMPLE%2F1&X-Amz-Date=20261130T000000Z&X-Amz-Signature=" + strings.Repeat(digits, 32)
}

// azure is the query of an Azure link whose signature is 32 times the byte.
func azure(b byte) string {
	return "sv=1&se=2&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)))
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func networks(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func basicField(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func jwt(payload string) string {
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(`{"alg":"none"}`)) + "." + e([]byte(payload)) + "." + e([]byte("unchecked"))
}

func tableFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "principals.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

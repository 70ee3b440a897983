package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/queue"
)

func sumOf(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

func TestI3_SeveralKeysOneID(t *testing.T) {
	path := tableFile(t, fmt.Sprintf(`
principals:
  - id: ci
    class: bulk
    keys: [AKEXAMPLE1, AKEXAMPLE2, 0012]
    users: [jenkins, oauth2]
    subjects: ["https://issuer.example|bot", "CN=build,O=Acme"]
    tokenHashes: [%s, %s]
    cidrs: [10.20.0.0/16, 2001:db8::/32]
  - id: desk
    class: interactive
    cidrs: [10.20.7.7]
  - id: plain
    users: [ann]
`, sumOf("tok-a"), strings.ToUpper(sumOf("sid-a"))))
	d := newIdentifier(t, Settings{From: []string{"client-cert", "cookie:sid", "signature", "authorization", "address"}, PrincipalsFile: path})
	cert := &x509.Certificate{Raw: []byte("der"), Subject: pkix.Name{CommonName: "build", Organization: []string{"Acme"}}}
	for _, c := range []struct {
		name, target, peer string
		line               string
		cert               *x509.Certificate
		want               string
		class              queue.Class
	}{
		{"key of sigv4", "/x", "192.0.2.1", "Authorization: AWS4-HMAC-SHA256 Credential=AKEXAMPLE1/d/r/s3/aws4_request, Signature=1", nil, "ci", queue.Bulk},
		{"key of sigv2", "/x", "192.0.2.1", "Authorization: AWS AKEXAMPLE2:1", nil, "ci", queue.Bulk},
		{"key of digits", "/x", "192.0.2.1", "Authorization: AWS 0012:1", nil, "ci", queue.Bulk},
		{"user", "/x", "192.0.2.1", basicField("jenkins", "pw-1"), nil, "ci", queue.Bulk},
		{"user that many share", "/x", "192.0.2.1", basicField("oauth2", "pw-1"), nil, "ci", queue.Bulk},
		{"digest user", "/x", "192.0.2.1", `Authorization: Digest username="jenkins"`, nil, "ci", queue.Bulk},
		{"user without class", "/x", "192.0.2.1", basicField("ann", "pw-1"), nil, "plain", queue.Release},
		{"subject", "/x", "192.0.2.1", "Authorization: Bearer " + jwt(`{"iss":"https://issuer.example","sub":"bot"}`), nil, "ci", queue.Bulk},
		{"certificate", "/x", "192.0.2.1", "A: b", cert, "ci", queue.Bulk},
		{"token", "/x", "192.0.2.1", "Authorization: Bearer tok-a", nil, "ci", queue.Bulk},
		{"token as password", "/x", "192.0.2.1", basicField("x-access-token", "tok-a"), nil, "ci", queue.Bulk},
		{"token as user", "/x", "192.0.2.1", basicField("tok-a", ""), nil, "ci", queue.Bulk},
		{"cookie", "/x", "192.0.2.1", "Cookie: sid=sid-a", nil, "ci", queue.Bulk},
		{"network", "/x", "10.20.1.1", "A: b", nil, "ci", queue.Bulk},
		{"network, longest first", "/x", "10.20.7.7", "A: b", nil, "desk", queue.Interactive},
		{"network of IPv6", "/x", "2001:db8::5", "A: b", nil, "ci", queue.Bulk},
		{"network says nothing about a user", "/x", "10.20.1.1", basicField("bob", "pw-1"), nil, "user:bob", queue.Release},
	} {
		id := d.Identify(request(t, c.target, c.line), addr(c.peer), c.cert)
		if id.Principal != c.want || id.Class != c.class {
			t.Errorf("%s: %+v, want %s, %s", c.name, id, c.want, c.class)
		}
	}
	link := d.Identify(request(t, "/x?AWSAccessKeyId=AKEXAMPLE1&Expires=1&Signature="+strings.Repeat("abcd", 6)+"abc="), addr("192.0.2.1"), nil)
	if !strings.HasPrefix(link.Principal, "link:") {
		t.Errorf("a link is never its issuer: %+v", link)
	}
}

func TestI3_EveryFaultOfTheFileWithItsLine(t *testing.T) {
	_, err := New(Settings{PrincipalsFile: tableFile(t, `principals:
  - id: "a:b"
    users: [ann]
  - id: ci
    class: fast
    users: [ann, bob]
  - id: ci
    tokenHashes: [not-a-real-token]
    cidrs: [10.0.0.1/8, 10.0.0.0/8, 10.0.0.0/8]
  - id: empty
  - id: shape
    users: ann
    nets: []
  - just text
`)})
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range []string{
		"ARKVORY_PRINCIPALS_FILE", "line 2: a principal needs an id of 1 to 64", "line 5: class must be interactive, release, bulk or background",
		"line 6: users: the same text is given before", `line 7: the id "ci" is given on line 4 already`, "line 8: tokenHashes must hold SHA-256 sums",
		"line 9: cidrs must hold addresses or networks without host bits", "line 9: cidrs: 10.0.0.0/8 is given before", "line 10: a principal needs at least one of",
		"line 12: users must be a list", `line 13: a principal: the key "nets" is unknown`, "line 14: a principal must be a mapping",
	} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q", w)
		}
	}
	if strings.Contains(err.Error(), "not-a-real-token") {
		t.Error("the error quotes what may be a token")
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestI3_AFaultyEditKeepsTheTableInForce(t *testing.T) {
	path := tableFile(t, "principals: [{id: one, users: [ann]}]\n")
	d := newIdentifier(t, Settings{PrincipalsFile: path})
	if d.Poll() || d.Problem() != "" {
		t.Error("nothing changed")
	}
	if err := os.WriteFile(path, []byte("principals: [{id: }]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d.Poll() || !strings.Contains(d.Problem(), "line 1: a principal needs an id") {
		t.Errorf("problem %q", d.Problem())
	}
	if id := d.Identify(request(t, "/x", basicField("ann", "pw-1")), addr("::1"), nil); id.Principal != "one" {
		t.Errorf("%+v", id)
	}
}

func TestL2_SettingsNameRuleAndExample(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		want []string
	}{
		{Settings{From: []string{"magic", "header", "cookie:", "address:x", "cookie:a b"}}, []string{`unknown source "magic"`, `"header": header and cookie are followed`,
			`"cookie:": the name must be`, `"address:x": header and cookie`, `"cookie:a b": the name must be`, "such as signature,authorization,address"}},
		{Settings{From: []string{"header:X-User"}}, []string{"set ARKVORY_TRUSTED_PROXIES, such as 10.0.0.0/8"}},
		{Settings{From: []string{"cookie:a", "cookie:a"}}, []string{`"cookie:a" stands there twice`}},
		{Settings{From: strings.Split(strings.Repeat("address,", 17), ",")}, []string{"at most 16"}},
		{Settings{Key: []byte("short")}, []string{"at least 16"}},
		{Settings{PrincipalsFile: "/nonexistent"}, []string{"cannot read the file of ARKVORY_PRINCIPALS_FILE"}},
	} {
		_, err := New(c.s)
		if err == nil {
			t.Errorf("%+v: no error", c.s)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q lacks %q", err, w)
			}
		}
	}
	a, err := New(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := New(Settings{})
	h := request(t, "/x", "Authorization: Bearer tok-a")
	if a.Identify(h, addr("::1"), nil).Credentials == b.Identify(h, addr("::1"), nil).Credentials {
		t.Error("without a key each process takes a random one")
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("principals: [{id: a, class: bulk, users: [b], cidrs: [10.0.0.0/8]}]"))
	f.Add([]byte("principals:\n- id: a\n  keys:\n  - |\n   x\n  tokenHashes: [00]\n  subjects: {}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parseTable(b)
		if err == nil && v == nil || err != nil && err.Error() == "" {
			t.Fatal("a table or a fault")
		}
	})
}

package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/queue"
)

func TestI1_PrincipalOfEachSource(t *testing.T) {
	const sigv4 = "Authorization: AWS4-HMAC-SHA256 Credential=AKEXAMPLE/20261130/eu/s3/aws4_request, SignedHeaders=host, Signature=5151"
	d := newIdentifier(t, Settings{})
	for _, c := range []struct {
		name, target string
		lines        []string
		want         string // a trailing * stands for a hash
		kind         Kind
	}{
		{"nothing", "/x", nil, "addr:192.0.2.7", Address},
		{"basic", "/x", []string{basicField("jenkins", "pw-example")}, "user:jenkins", Authorization},
		{"basic without padding", "/x", []string{strings.TrimRight(basicField("jenkins", "pw-example"), "=")}, "user:jenkins", Authorization},
		{"basic, scheme in any case", "/x", []string{strings.Replace(basicField("jenkins", "pw-example"), "Basic", "bAsIc", 1)}, "user:jenkins", Authorization},
		{"basic, name with spaces", "/x", []string{basicField("Ann Lee", "pw-example")}, "user:Ann Lee", Authorization},
		{"basic, name with odd bytes", "/x", []string{basicField("\x01\xff", "pw-example")}, "user:#*", Authorization},
		{"basic, token as user", "/x", []string{basicField("not-a-real-token", "")}, "token:*", Authorization},
		{"basic, token as user", "/x", []string{basicField("not-a-real-token", "x-oauth-basic")}, "token:*", Authorization},
		{"basic, long user", "/x", []string{basicField(strings.Repeat("t", 49), "pw")}, "token:*", Authorization},
		{"basic, user of everyone", "/x", []string{basicField("oauth2", "not-a-real-token")}, "token:*", Authorization},
		{"basic, user of everyone", "/x", []string{basicField("AWS", "not-a-real-token")}, "token:*", Authorization},
		{"basic, no colon", "/x", []string{"Authorization: Basic bm9ib2R5"}, "addr:192.0.2.7", Address},
		{"basic, no base64", "/x", []string{"Authorization: Basic %%%"}, "addr:192.0.2.7", Address},
		{"basic, empty", "/x", []string{basicField("", "")}, "addr:192.0.2.7", Address},
		{"digest", "/x", []string{`Authorization: Digest realm="a, b", username="ann", nonce="n", uri="/x"`}, "user:ann", Authorization},
		{"digest without user", "/x", []string{`Authorization: Digest nonce="n"`}, "addr:192.0.2.7", Address},
		{"sigv4", "/x", []string{sigv4}, "key:AKEXAMPLE", Authorization},
		{"sigv4 without scope", "/x", []string{"Authorization: AWS4-HMAC-SHA256 Credential=AKEXAMPLE, Signature=1"}, "addr:192.0.2.7", Address},
		{"sigv2", "/x", []string{"Authorization: AWS AKEXAMPLE:c2ln"}, "key:AKEXAMPLE", Authorization},
		{"goog4", "/x", []string{"Authorization: GOOG4-RSA-SHA256 Credential=svc@p.example/20261130/auto/storage/goog4_request,SignedHeaders=host,Signature=1"}, "key:svc@p.example", Authorization},
		{"azure", "/x", []string{"Authorization: SharedKey account1:c2ln"}, "key:account1", Authorization},
		{"jwt", "/x", []string{"Authorization: Bearer " + jwt(`{"iss":"i","sub":"s"}`)}, "jwt:*", Authorization},
		{"jwt, anonymous pull", "/x", []string{"Authorization: Bearer " + jwt(`{"iss":"i","sub":""}`)}, "addr:192.0.2.7", Address},
		{"bearer", "/x", []string{"Authorization: Bearer not-a-real-token"}, "token:*", Authorization},
		{"bearer that looks like a jwt", "/x", []string{"Authorization: Bearer a.b.c"}, "token:*", Authorization},
		{"negotiate", "/x", []string{"Authorization: Negotiate YII"}, "addr:192.0.2.7", Address},
		{"unknown with parameters", "/x", []string{`Authorization: Hawk id="a", mac="b"`}, "addr:192.0.2.7", Address},
		{"scheme alone", "/x", []string{"Authorization: Bearer"}, "addr:192.0.2.7", Address},
		{"two fields", "/x", []string{basicField("ann", "pw-1"), basicField("bob", "pw-2")}, "addr:192.0.2.7", Address},
		{"link", "/x?" + s3("ab"), nil, "link:*", Signature},
		{"link before field", "/x?" + s3("ab"), []string{basicField("ann", "pw-1")}, "link:*", Signature},
		{"azure link", "/x?" + azure(1), nil, "link:*", Signature},
		{"no link", "/x?sig=1&sv=1", nil, "addr:192.0.2.7", Address},
		{"no link", "/x?X-Amz-Signature=ab&X-Amz-Credential=c&X-Amz-Date=d", nil, "addr:192.0.2.7", Address},
		{"field before what is no link", "/x?X-Amz-Signature=ab", []string{basicField("ann", "pw-1")}, "user:ann", Authorization},
		{"two signatures", "/x?" + s3("ab") + "&" + azure(1), []string{basicField("ann", "pw-1")}, "user:ann", Authorization},
	} {
		id := d.Identify(request(t, c.target, c.lines...), addr("192.0.2.7"), nil)
		ok := id.Principal == c.want
		if p, hashed := strings.CutSuffix(c.want, "*"); hashed {
			rest, has := strings.CutPrefix(id.Principal, p)
			ok = has && len(rest) == 22
		}
		if !ok || id.Kind != c.kind || id.Class != queue.Release {
			t.Errorf("%s: %+v, want %s by %s", c.name, id, c.want, c.kind)
		}
	}
}

func TestI1_OnePersonOnePrincipal(t *testing.T) {
	d := newIdentifier(t, Settings{})
	of := func(target string, lines ...string) string {
		return d.Identify(request(t, target, lines...), addr("192.0.2.7"), nil).Principal
	}
	bearer := func(payload string) string {
		return of("/x", "Authorization: Bearer "+jwt(payload))
	}
	if bearer(`{"iss":"i","sub":"s","jti":"1"}`) != bearer(`{"jti":"2","sub":"s","iss":"i"}`) {
		t.Error("tokens minted for each pull are one principal")
	}
	if bearer(`{"iss":"i","sub":"s"}`) == bearer(`{"iss":"is","sub":""}`) || bearer(`{"iss":"i","sub":"s"}`) == bearer(`{"iss":"j","sub":"s"}`) {
		t.Error("issuer and subject both count")
	}
	if of("/x", "Authorization: Bearer tok-a") != of("/x", "Authorization: token tok-a") || of("/x", "Authorization: Bearer tok-a") == of("/x", "Authorization: Bearer tok-b") {
		t.Error("a token is one principal under any scheme")
	}
	respelled := strings.NewReplacer("X-Amz-Signature=a", "X-Amz-Sign%61ture=%41", "20261130T", "20261130%54").Replace(s3("ab"))
	if of("/a?"+s3("ab")) != of("/a?y=1&"+respelled+"&z=2") || !strings.HasPrefix(of("/a?"+respelled), "link:") {
		t.Error("re-spelling a link must not make a second principal of it")
	}
	if of("/a?"+s3("ab")) == of("/a?"+s3("ac")) || of("/a?"+s3("ab")) == of("/a?"+strings.ReplaceAll(s3("ab"), "Amz", "Goog")) {
		t.Error("two links are two principals")
	}
	if of("/x", basicField("oauth2", "tok-a")) == of("/x", basicField("oauth2", "tok-b")) {
		t.Error("accounts that share a fixed user name are different")
	}
}

// An origin that ignores queries answers 2xx whatever they say, so what is no link must make no principal of its own.
func TestI1_InventedQueriesMakeNoPrincipals(t *testing.T) {
	d := newIdentifier(t, Settings{})
	for i := range 10 {
		for _, query := range []string{"sig=%d&sv=1", "X-Amz-Signature=%d", "Signature=%d&AWSAccessKeyId=a&Expires=1", "Signature=%d&Key-Pair-Id=k&Policy=p",
			"X-Goog-Signature=%d&X-Goog-Date=d&X-Goog-Credential=c", s3("ab") + "&X-Amz-Signature=%d", "X-Amz-Signature=%d&" + azure(1)} {
			h := request(t, "/x?"+strings.Replace(query, "%d", strconv.Itoa(i), 1))
			if got := d.Identify(h, addr("192.0.2.7"), nil); got.Principal != "addr:192.0.2.7" || got.Kind != Address {
				t.Errorf("%s: %+v", h.Target, got)
			}
		}
	}
}

// Fields that only look like the ones a proxy vouches for say nothing, whoever sends them.
func TestP2_SpellingsWithUnderscoresAreNotBelieved(t *testing.T) {
	d := newIdentifier(t, Settings{TrustedProxies: networks("10.0.0.0/8")})
	h := request(t, "/x", "X_Forwarded_For: 192.0.2.9", "X-Forwarded_For: 192.0.2.9", "Forwarded_For: 192.0.2.9", "Arkvory_Download_Class: bulk", "Arkvory_Download_Id: a")
	if got := d.Identify(h, addr("10.0.0.1"), nil); got.Principal != "addr:10.0.0.1" {
		t.Errorf("%+v", got)
	}
	if c, err := ApplyClass(queue.Release, h); c != queue.Release || err != nil {
		t.Errorf("class %s, %v", c, err)
	}
	if _, present, err := DownloadID(h); present || err != nil {
		t.Errorf("a download id: %v", err)
	}
	if got := string(d.ForwardedFields(nil, h, addr("10.0.0.1"), false)); strings.Contains(got, "192.0.2.9") {
		t.Errorf("passed on: %s", got)
	}
}

func TestI1_AddressesOfOneSubscriberAreOnePrincipal(t *testing.T) {
	d := newIdentifier(t, Settings{From: []string{"address"}})
	for in, want := range map[string]string{
		"10.0.0.1": "addr:10.0.0.1", "::ffff:10.0.0.1": "addr:10.0.0.1", "2001:db8:1:2:3::4": "addr:2001:db8:1:2::/64",
		"fd00::1": "addr:fd00::1", "fe80::1%eth0": "addr:fe80::1", "::1": "addr:::1",
	} {
		if got := d.Identify(request(t, "/x"), addr(in), nil); got.Principal != want || got.Client != addr(in).Unmap().WithZone("") {
			t.Errorf("%s: %+v, want %s", in, got, want)
		}
	}
	if got := d.Identify(request(t, "/x"), netip.Addr{}, nil); got.Principal != "addr:unknown" || got.Client.IsValid() {
		t.Errorf("a connection without address: %+v", got)
	}
}

func TestI4_ClassesOfKinds(t *testing.T) {
	s := Settings{From: []string{"header:X-User", "client-cert", "cookie:sid", "address"}, TrustedProxies: networks("10.0.0.0/8")}
	d := newIdentifier(t, s)
	cert := &x509.Certificate{Raw: []byte("der"), Subject: pkix.Name{CommonName: "build", Organization: []string{"Acme"}}}
	uri, _ := url.Parse("spiffe://acme/build")
	spiffe := &x509.Certificate{Raw: []byte("der"), URIs: []*url.URL{uri}}
	bare := &x509.Certificate{Raw: []byte("der")}
	for _, c := range []struct {
		name, peer string
		lines      []string
		cert       *x509.Certificate
		want       string
		class      queue.Class
	}{
		{"trusted header", "10.0.0.1", []string{"x-user: ann"}, cert, "header:ann", queue.Interactive},
		{"header of a stranger", "192.0.2.1", []string{"X-User: ann"}, nil, "addr:192.0.2.1", queue.Release},
		{"header twice", "10.0.0.1", []string{"X-User: ann", "X-User: bob"}, nil, "addr:10.0.0.1", queue.Release},
		{"header that ends here", "10.0.0.1", []string{"X-User: ann", "Connection: x-user"}, nil, "addr:10.0.0.1", queue.Release},
		{"empty header", "10.0.0.1", []string{"X-User:"}, nil, "addr:10.0.0.1", queue.Release},
		{"certificate", "192.0.2.1", []string{"Cookie: sid=1"}, cert, "cert:CN=build,O=Acme", queue.Interactive},
		{"certificate without subject", "192.0.2.1", nil, spiffe, "cert:spiffe://acme/build", queue.Interactive},
		{"certificate without names", "192.0.2.1", nil, bare, "cert:#*", queue.Interactive},
		{"cookie", "192.0.2.1", []string{"Cookie: a=b; sid=secret-example"}, nil, "cookie:*", queue.Interactive},
		{"cookie in the second field", "192.0.2.1", []string{"Cookie: a=b", "Cookie: sid=secret-example"}, nil, "cookie:*", queue.Interactive},
		{"cookie that ends here", "192.0.2.1", []string{"Cookie: sid=secret-example", "Connection: cookie"}, nil, "addr:192.0.2.1", queue.Release},
		{"empty cookie", "192.0.2.1", []string{"Cookie: sid="}, nil, "addr:192.0.2.1", queue.Release},
		{"cookie of another name", "192.0.2.1", []string{"Cookie: SID=1; xsid=2"}, nil, "addr:192.0.2.1", queue.Release},
	} {
		id := d.Identify(request(t, "/x", c.lines...), addr(c.peer), c.cert)
		ok := id.Principal == c.want
		if p, hashed := strings.CutSuffix(c.want, "*"); hashed {
			ok = strings.HasPrefix(id.Principal, p) && len(id.Principal) == len(p)+22
		}
		if !ok || id.Class != c.class {
			t.Errorf("%s: %+v, want %s, %s", c.name, id, c.want, c.class)
		}
	}
}

func TestI5_NoSecretInThePrincipal(t *testing.T) {
	d := newIdentifier(t, Settings{From: []string{"cookie:sid", "signature", "authorization", "address"}})
	const secret = "s3cr3t-example"
	for _, c := range []struct {
		target string
		line   string
	}{
		{"/x", "Cookie: sid=" + secret}, {"/x?X-Amz-Signature=" + secret, "A: b"}, {"/x?sig=" + secret + "&se=1", "A: b"},
		{"/x", "Authorization: Bearer " + secret}, {"/x", basicField(secret, "")}, {"/x", basicField("x-access-token", secret)},
		{"/x", basicField("ann", secret)}, {"/x", "Authorization: AWS AKEXAMPLE:" + secret}, {"/x", "Authorization: Other " + secret},
	} {
		id := d.Identify(request(t, c.target, c.line), addr("192.0.2.7"), nil)
		if strings.Contains(id.Principal, secret) || len(id.Principal) > MaxPrincipalBytes {
			t.Errorf("%s %s: %s", c.target, c.line, id.Principal)
		}
	}
	if id := d.Identify(request(t, "/x?"+s3("5e")), addr("192.0.2.7"), nil); strings.Contains(id.Principal, "5e5e5e") || id.Kind != Signature {
		t.Errorf("%+v", id)
	}
	other := newIdentifier(t, Settings{Key: []byte("another key of 24 bytes.")})
	h := request(t, "/x", "Authorization: Bearer "+secret)
	if a, b := d.Identify(h, addr("::1"), nil), other.Identify(h, addr("::1"), nil); a.Principal == b.Principal || a.Credentials == b.Credentials {
		t.Error("hashes must depend on the key")
	}
}

func TestO2_CredentialsCoverWhatTheUpstreamCouldBelieve(t *testing.T) {
	d := newIdentifier(t, Settings{From: []string{"header:Accept-Language", "address"}, TrustedProxies: networks("10.0.0.0/8")})
	cert := &x509.Certificate{Raw: []byte("der"), Subject: pkix.Name{CommonName: "a"}}
	seen := map[[16]byte]string{}
	for _, c := range []struct {
		target string
		lines  []string
		cert   *x509.Certificate
	}{
		{"/x", nil, nil},
		{"/x", []string{"Authorization: Bearer a"}, nil},
		{"/x", []string{"Authorization: Bearer b"}, nil},
		{"/x", []string{"Authorization: Bearer a", "Authorization: Bearer b"}, nil},
		{"/x", []string{"Cookie: a=1"}, nil},
		{"/x", []string{"Cookie: a=1", "Cookie: b=2"}, nil},
		{"/x", []string{"Cookie: a=1; b=2"}, nil},
		{"/x?" + s3("ab"), nil, nil},
		{"/x?" + s3("ab") + "&X-Amz-Expires=2", nil, nil},
		{"/x", []string{"X-JFrog-Art-Api: k"}, nil},
		{"/x", []string{"PRIVATE-TOKEN: k"}, nil},
		{"/x", []string{"X-Amz-Server-Side-Encryption-Customer-Key: k"}, nil},
		{"/x", []string{"Accept-Language: ann"}, nil}, // the upstream may believe it whoever sends it
		{"/x", nil, cert},
		{"/x", nil, &x509.Certificate{Raw: []byte("other")}},
	} {
		got := d.Identify(request(t, c.target, c.lines...), addr("192.0.2.1"), c.cert).Credentials
		what := c.target + strings.Join(c.lines, "|")
		if before, twice := seen[got]; twice {
			t.Errorf("%s has the credentials of %s", what, before)
		}
		seen[got] = what
	}
	if seen[[16]byte{}] != "/x" {
		t.Error("zero must mean none, and only that")
	}
	same := func(a, b string, lines ...string) bool {
		return d.Identify(request(t, a, lines...), addr("192.0.2.1"), nil).Credentials == d.Identify(request(t, b, append(lines, "Accept: x", "Range: bytes=0-1")...), addr("192.0.2.9"), nil).Credentials
	}
	if !same("/x?"+s3("ab"), "/x?a=1&"+s3("ab"), "Authorization: Bearer a") {
		t.Error("what is no credential must not enter")
	}
}

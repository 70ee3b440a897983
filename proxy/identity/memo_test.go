package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/queue"
)

func TestI1_AMemoAllocatesNothing(t *testing.T) {
	d := newIdentifier(t, Settings{TrustedProxies: networks("10.0.0.0/8")})
	cert := &x509.Certificate{Raw: []byte("der"), Subject: pkix.Name{CommonName: "a"}}
	for name, lines := range map[string][]string{
		"none":    nil,
		"bearer":  {"Authorization: Bearer " + jwt(`{"iss":"i","sub":"s"}`)},
		"many":    {"Cookie: a=1", basicField("ann", "pw-1"), "X-Forwarded-For: 192.0.2.9", "X-Api-Key: k", "Accept: */*"},
		"forward": {"Forwarded: for=192.0.2.9"},
	} {
		for _, target := range []string{"/x", "/x?" + s3("ab")} {
			h := request(t, target, lines...)
			want := d.Identify(h, addr("10.0.0.1"), cert)
			var m Memo
			d.IdentifyMemo(&m, h, addr("10.0.0.1"), cert)
			var got Identity
			if n := testing.AllocsPerRun(100, func() { got = d.IdentifyMemo(&m, h, addr("10.0.0.1"), cert) }); n != 0 {
				t.Errorf("%s %s: %v allocations", name, target, n)
			}
			if got != want {
				t.Errorf("%s %s: %+v, want %+v", name, target, got, want)
			}
		}
	}
}

// Whatever follows whatever on one connection, a memo must answer as if there were none.
func TestI1_AMemoNeverMixesPeople(t *testing.T) {
	d := newIdentifier(t, Settings{From: []string{"header:X-User", "cookie:sid", "signature", "authorization", "address"}, TrustedProxies: networks("10.0.0.0/8")})
	long := "Authorization: Bearer " + strings.Repeat("t", maxMemo)
	requests := [][]string{
		{"/x"}, {"/x", "Cookie: sid=a"}, {"/x", "Cookie: sid=b"}, {"/x", "Cookie: sid=a", "Connection: cookie"}, {"/x", "X-User: a"},
		{"/x", "X-User: a", "X-User: a"}, {"/x", basicField("ann", "pw-1")}, {"/x", basicField("ann", "pw-2")}, {"/x", long}, {"/x", long + "u"},
		{"/x", "X-Forwarded-For: 192.0.2.1"}, {"/x", "X-Forwarded-For: 192.0.2.2"}, {"/x", "Forwarded: for=192.0.2.1"},
		{"/x", "X-Forwarded-For: 10.0.0.9", "X-Forwarded-For: 192.0.2.1"}, {"/x?" + s3("aa")}, {"/x?" + s3("ab")}, {"/x?" + azure(1)}, {"/x?sig=a&sv=1"},
	}
	certs := []*x509.Certificate{nil, {Raw: []byte("a"), Subject: pkix.Name{CommonName: "a"}}}
	var m Memo
	for _, first := range requests {
		for _, second := range requests {
			for _, peer := range []string{"10.0.0.1", "192.0.2.5"} {
				for i, cert := range certs {
					d.IdentifyMemo(&m, request(t, first[0], first[1:]...), addr("10.0.0.1"), certs[0])
					h := request(t, second[0], second[1:]...)
					if got, want := d.IdentifyMemo(&m, h, addr(peer), cert), d.Identify(h, addr(peer), cert); got != want {
						t.Fatalf("%q then %q from %s with certificate %d: %+v, want %+v", first, second, peer, i, got, want)
					}
					if len(m.tape) > maxMemo {
						t.Fatalf("a memo of %d bytes", len(m.tape))
					}
				}
			}
		}
	}
	tape := m.tape[:cap(m.tape)]
	m.Reset()
	if m.set || m.id != (Identity{}) || strings.Contains(string(tape), "sid=") {
		t.Error("Reset must wipe what it knew")
	}
}

func TestI3_AMemoSeesANewTable(t *testing.T) {
	path := tableFile(t, "principals: [{id: one, users: [ann]}]\n")
	d := newIdentifier(t, Settings{PrincipalsFile: path})
	h := request(t, "/x", basicField("ann", "pw-1"))
	var m Memo
	if id := d.IdentifyMemo(&m, h, addr("::1"), nil); id.Principal != "one" {
		t.Fatalf("%+v", id)
	}
	if err := os.WriteFile(path, []byte("principals: [{id: two, class: background, users: [ann]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if id := d.IdentifyMemo(&m, h, addr("::1"), nil); id.Principal != "two" || id.Class != queue.Background {
		t.Errorf("%+v", id)
	}
}

package identity

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
)

var trusting = Settings{From: []string{"address"}, TrustedProxies: networks("10.0.0.0/8", "::ffff:172.16.0.0/108", "fd00::/8")}

func TestP2_TheClientIsTheRightmostUntrustedAddress(t *testing.T) {
	d := newIdentifier(t, trusting)
	for _, c := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"stranger lies", "192.0.2.1", []string{"X-Forwarded-For: 1.1.1.1", "X-Real-IP: 2.2.2.2", "Forwarded: for=3.3.3.3"}, "192.0.2.1"},
		{"one hop", "10.0.0.1", []string{"X-Forwarded-For: 192.0.2.9"}, "192.0.2.9"},
		{"client forged the left end", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1, 192.0.2.9, 10.0.0.2"}, "192.0.2.9"},
		{"two fields", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 192.0.2.9,10.0.0.2"}, "192.0.2.9"},
		{"all trusted", "10.0.0.1", []string{"X-Forwarded-For: 10.0.0.7, 172.16.0.2"}, "10.0.0.7"},
		{"garbage ends the walk", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"empty elements", "10.0.0.1", []string{"X-Forwarded-For: , 192.0.2.9,, "}, "192.0.2.9"},
		{"ports", "10.0.0.1", []string{"X-Forwarded-For: 192.0.2.9:1234"}, "192.0.2.9"},
		{"IPv6", "fd00::1", []string{"X-Forwarded-For: 2001:db8::9"}, "2001:db8::9"},
		{"IPv6 with port", "fd00::1", []string{"X-Forwarded-For: [2001:db8::9]:443"}, "2001:db8::9"},
		{"mapped peer", "::ffff:10.0.0.1", []string{"X-Forwarded-For: ::ffff:192.0.2.9"}, "192.0.2.9"},
		{"no field", "10.0.0.1", nil, "10.0.0.1"},
		{"Forwarded", "10.0.0.1", []string{`Forwarded: for=1.1.1.1, for="[2001:db8::9]:47";proto=https;by=10.0.0.2, For=10.0.0.2`}, "2001:db8::9"},
		{"Forwarded, bare port", "10.0.0.1", []string{"Forwarded: for=192.0.2.9:80"}, "192.0.2.9"},
		{"Forwarded, two fields", "10.0.0.1", []string{"Forwarded: for=1.1.1.1", "Forwarded: for=192.0.2.9"}, "192.0.2.9"},
		{"Forwarded, hidden", "10.0.0.1", []string{"Forwarded: for=1.1.1.1, for=_hidden, for=10.0.0.2"}, "10.0.0.2"},
		{"Forwarded, element without for", "10.0.0.1", []string{"Forwarded: for=1.1.1.1, proto=http"}, "10.0.0.1"},
		{"Forwarded, open quote", "10.0.0.1", []string{`Forwarded: for=1.1.1.1;x=", for=192.0.2.9`}, "10.0.0.1"},
		{"Forwarded, escaped", "10.0.0.1", []string{`Forwarded: for="192.0.2\.9"`}, "192.0.2.9"},
		{"both fields", "10.0.0.1", []string{"Forwarded: for=1.1.1.1", "X-Forwarded-For: 192.0.2.9"}, "192.0.2.9"},
		{"a long chain", "10.0.0.1", []string{"Forwarded: for=1.1.1.1, " + strings.Repeat("for=10.0.0.2, ", maxHops) + "for=10.0.0.3"}, "10.0.0.2"},
	} {
		if got := d.Identify(request(t, "/x", c.lines...), addr(c.peer), nil).Client; got != addr(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Case 49: without trusted proxies one client with many forged fields is one client.
func TestP2_ForgedFieldsMakeNoClients(t *testing.T) {
	d := newIdentifier(t, Settings{})
	for _, v := range []string{"1.1.1.1", "2.2.2.2", "127.0.0.1", "::1"} {
		id := d.Identify(request(t, "/x", "X-Forwarded-For: "+v, "X-Real-IP: "+v, `Forwarded: for="`+v+`"`), addr("192.0.2.1"), nil)
		if id.Principal != "addr:192.0.2.1" || id.Client != addr("192.0.2.1") || id.Credentials != [16]byte{} {
			t.Errorf("%s: %+v", v, id)
		}
	}
}

func TestP2_ForwardedFields(t *testing.T) {
	d := newIdentifier(t, trusting)
	for _, c := range []struct {
		name  string
		peer  netip.Addr
		tls   bool
		lines []string
		want  string
	}{
		{"stranger", addr("192.0.2.1"), false, []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "Forwarded: for=1.1.1.1"},
			"X-Forwarded-For: 192.0.2.1|X-Forwarded-Proto: http|X-Forwarded-Host: store.example|" + `Forwarded: for=192.0.2.1;host="store.example";proto=http|`},
		{"trusted", addr("10.0.0.1"), false, []string{"X-Forwarded-For: 192.0.2.9", "x-forwarded-for: 10.0.0.5", "X-Forwarded-Proto: https", "X-Forwarded-Host: pub.example", "Forwarded: for=192.0.2.9;proto=https"},
			"X-Forwarded-For: 192.0.2.9, 10.0.0.5, 10.0.0.1|X-Forwarded-Proto: https|X-Forwarded-Host: pub.example|" + `Forwarded: for=192.0.2.9;proto=https, for=10.0.0.1;host="store.example";proto=http|`},
		{"IPv6 over TLS", addr("2001:db8::1"), true, nil,
			"X-Forwarded-For: 2001:db8::1|X-Forwarded-Proto: https|X-Forwarded-Host: store.example|" + `Forwarded: for="[2001:db8::1]";host="store.example";proto=https|`},
		{"mapped peer", addr("::ffff:192.0.2.1"), false, nil,
			"X-Forwarded-For: 192.0.2.1|X-Forwarded-Proto: http|X-Forwarded-Host: store.example|" + `Forwarded: for=192.0.2.1;host="store.example";proto=http|`},
		{"open quote of a client behind a trusted proxy", addr("10.0.0.1"), false, []string{`Forwarded: for="`},
			"X-Forwarded-For: 10.0.0.1|X-Forwarded-Proto: http|X-Forwarded-Host: store.example|" + `Forwarded: for=10.0.0.1;host="store.example";proto=http|`},
		{"named by Connection", addr("10.0.0.1"), false, []string{"X-Forwarded-For: 192.0.2.9", "Connection: x-forwarded-for"},
			"X-Forwarded-For: 10.0.0.1|X-Forwarded-Proto: http|X-Forwarded-Host: store.example|" + `Forwarded: for=10.0.0.1;host="store.example";proto=http|`},
		{"no address", netip.Addr{}, false, nil,
			"X-Forwarded-For: unknown|X-Forwarded-Proto: http|X-Forwarded-Host: store.example|" + `Forwarded: for=unknown;host="store.example";proto=http|`},
	} {
		got := strings.ReplaceAll(string(d.ForwardedFields(nil, request(t, "/x", c.lines...), c.peer, c.tls)), "\r\n", "|")
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	var old wire.Head
	if _, err := old.ParseRequest([]byte("GET /x HTTP/1.0\r\n\r\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got := string(d.ForwardedFields([]byte("A: b\r\n"), &old, addr("192.0.2.1"), false)); got != "A: b\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nForwarded: for=192.0.2.1;proto=http\r\n" {
		t.Errorf("without Host: %q", got)
	}
	h, buf := request(t, "/x"), make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { buf = d.ForwardedFields(buf[:0], h, addr("2001:db8::1"), true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// head builds a request with one field of any legal bytes; nil when wire refuses them.
func head(name, value string) *wire.Head {
	h := &wire.Head{}
	if _, err := h.ParseRequest([]byte("GET /x HTTP/1.1\r\nHost: h\r\n"+name+": "+value+"\r\n\r\n"), 0); err != nil {
		return nil
	}
	return h
}

// checkForwarding holds what must be true of every forwarding field from a trusted peer.
func checkForwarding(t *testing.T, h *wire.Head) {
	t.Helper()
	d := newIdentifier(t, trusting)
	peer := addr("10.0.0.1")
	id := d.Identify(h, peer, nil)
	if !id.Client.IsValid() || id.Client.Zone() != "" || id.Client.Is4In6() {
		t.Fatalf("client %s", id.Client)
	}
	out := "GET /x HTTP/1.1\r\nHost: h\r\n" + string(d.ForwardedFields(nil, h, peer, false)) + "\r\n"
	var next wire.Head
	if _, err := next.ParseRequest([]byte(out), 0); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if next.Count(wire.ForwardedFor) != 1 || next.Count(wire.Forwarded) != 1 || !strings.HasSuffix(string(next.Get(wire.ForwardedFor)), "10.0.0.1") {
		t.Fatalf("%q", out)
	}
	var last []byte
	if !eachForwarded(next.Get(wire.Forwarded), func(n []byte) { last = n }) || string(last) != "10.0.0.1" {
		t.Fatalf("the peer is not the last element of %q", next.Get(wire.Forwarded))
	}
	// the next hop, which trusts us, finds the client that we found
	if found := d.Identify(&next, addr("10.9.9.9"), nil).Client; found != id.Client && h.Count(wire.ForwardedFor) > 0 {
		t.Fatalf("we found %s, the next hop %s in %q", id.Client, found, out)
	}
}

func FuzzForwardedFor(f *testing.F) {
	for _, s := range []string{"1.1.1.1, 10.0.0.2", "[::1]:80, unknown", ",,", "::ffff:10.0.0.1%x", "10.0.0.2:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if h := head("X-Forwarded-For", s); h != nil && h.Count(wire.ForwardedFor) == 1 {
			checkForwarding(t, h)
		}
	})
}

func FuzzForwarded(f *testing.F) {
	for _, s := range []string{`for="[::1]:80";host=h, for=_x`, `for="a\"b"`, "for=1.1.1.1;;", "for", `for=";`, "a=b;for=10.0.0.2,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if h := head("Forwarded", s); h != nil {
			checkForwarding(t, h)
		}
	})
}

func FuzzAuthorization(f *testing.F) {
	for _, s := range []string{"Basic YTpi", "Bearer " + jwt(`{"iss":"i","sub":"s"}`), "AWS4-HMAC-SHA256 Credential=A/b, Signature=c", `Digest username="a\"b", x=`, "AWS a:b", "X y", "Basic ="} {
		f.Add(s)
	}
	d := newIdentifier(f, Settings{})
	f.Fuzz(func(t *testing.T, s string) {
		h := head("Authorization", s)
		if h == nil {
			return
		}
		id := d.Identify(h, addr("10.0.0.1"), nil)
		if id.Principal == "" || len(id.Principal) > MaxPrincipalBytes || id.Credentials == [16]byte{} {
			t.Fatalf("%q: %+v", s, id)
		}
		for _, c := range []byte(id.Principal) {
			if !clearByte[c] && c != '#' && c != '_' {
				t.Fatalf("%q: byte %q in %s", s, c, id.Principal)
			}
		}
		if again := d.Identify(h, addr("10.0.0.1"), nil); again != id {
			t.Fatalf("%q: %+v and %+v", s, id, again)
		}
	})
}

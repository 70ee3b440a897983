package object

import (
	"bytes"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
)

// request parses a head out of a target and further lines.
func request(t testing.TB, method, target string, lines ...string) *wire.Head {
	t.Helper()
	h := &wire.Head{}
	raw := method + " " + target + " HTTP/1.1\r\nHost: Store.Example:8080\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
	if _, err := h.ParseRequest([]byte(raw), 0); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return h
}

func TestO1_NameDropsSignatureParametersOnly(t *testing.T) {
	const host = "store.example:8080"
	for _, c := range []struct {
		target, want string
		family       Family
	}{
		{"/a/b?x=1&y=2", "/a/b?x=1&y=2", Unsigned},
		{"/a//b/%2F?", "/a//b/%2F?", Unsigned},
		{"/b/k?versionId=7&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F1&X-Amz-Date=D&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=ab&partNumber=2&x-id=GetObject",
			"/b/k?versionId=7&partNumber=2", S3v4},
		{"/b/k?X-Amz-Security-Token=t&X-Amz-Signature=ab", "/b/k", S3v4},
		{"/b/k?X%2DAmz-Sign%61ture=ab", "/b/k", S3v4},
		{"/b/k?X-Amz-Date=D&X-Amz-Expires=60", "/b/k?X-Amz-Date=D&X-Amz-Expires=60", Unsigned}, // no signature, no link
		{"/b/k?AWSAccessKeyId=AK&Expires=1&Signature=a%2Bb%3D&response-content-type=x", "/b/k?response-content-type=x", S3v2},
		{"/b/k?x-goog-signature=ab&X-Goog-Date=D&generation=3", "/b/k?generation=3", GCSv4},
		{"/b/k?GoogleAccessId=s&Expires=1&Signature=ab&generation=3", "/b/k?generation=3", GCSv2},
		{"/c/k?sv=2024-01-01&se=2030&sr=b&sp=r&sig=ab%2B&snapshot=s", "/c/k?snapshot=s", Azure},
		{"/c/k?sig=ab&si=policy&se=x", "/c/k", Azure},
		{"/c/k?sig=ab&page=2", "/c/k?sig=ab&page=2", Unsigned},
		{"/k?Policy=p&Signature=s&Key-Pair-Id=K1&v=1", "/k?v=1", CloudFront},
		{"/k?Signature=s&Expires=1", "/k?Signature=s&Expires=1", Unsigned},
		{"/k?a&&X-Amz-Signature=ab&b=", "/k?a&&b=", S3v4},
	} {
		h := request(t, "GET", c.target)
		if got := string(Name(h, nil)); got != host+c.want {
			t.Errorf("Name(%s) = %s, want %s", c.target, got, host+c.want)
		}
		if got := FamilyOf(h.Target); got != c.family {
			t.Errorf("FamilyOf(%s) = %s, want %s", c.target, got, c.family)
		}
	}
}

func TestI1_ALinkIsNamedByItsSignatureWhateverTheOrder(t *testing.T) {
	links := []string{
		"/k?Expires=1&AWSAccessKeyId=AK&Signature=a%2Bb%3D",
		"/k?Signature=a%2bb%3d&AWSAccessKeyId=AK&Expires=1",
		"/k?Signature&AWSAccessKeyId=AK&Expires=1&Signature=a%2Bb%3D",
		"/k?Signature=a+b=&AWSAccessKeyId=AK&Expires=1&Signature=other",
	}
	for _, l := range links {
		if got := string(AppendSignature(nil, []byte(l), FamilyOf([]byte(l)))); got != "a+b=" {
			t.Errorf("AppendSignature(%s) = %q", l, got)
		}
	}
	if got := string(AppendParams([]byte("x"), []byte(links[0]+"&z=1"), S3v2)); got != "x&Expires=1&AWSAccessKeyId=AK&Signature=a%2Bb%3D" {
		t.Errorf("AppendParams = %q", got)
	}
}

func TestO2_KeysDifferByNameAndCredentials(t *testing.T) {
	a, b := MakeKey([]byte("h/x"), [16]byte{}), MakeKey([]byte("h/x"), [16]byte{1})
	if a == b || a == MakeKey([]byte("h/y"), [16]byte{}) || a != MakeKey([]byte("h/x"), [16]byte{}) {
		t.Error("a key is a function of name and credentials, and no less")
	}
}

func TestO1_NameAndKeyAllocateNothing(t *testing.T) {
	h := request(t, "GET", "/b/k?X-Amz-Algorithm=A&X-Amz-Signature=ab&versionId=7")
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = Name(h, buf[:0]); MakeKey(buf, [16]byte{1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzName(f *testing.F) {
	f.Add([]byte("/b/k?X-Amz-Signature=ab&x=%2"))
	f.Add([]byte("/?sig=%41&se&sv=&&=%"))
	f.Fuzz(func(t *testing.T, target []byte) {
		h := &wire.Head{Authority: []byte("H"), Target: target}
		once := Name(h, nil)
		if !bytes.HasPrefix(once, []byte("h")) || len(once) > len(target)+1 {
			t.Fatalf("%q", once)
		}
		// a name is the target of an unsigned request, and naming that changes nothing more of the same family
		family := FamilyOf(target)
		if family == Unsigned {
			if string(once[1:]) != string(target) {
				t.Fatalf("%q is no link but became %q", target, once[1:])
			}
			return
		}
		if left := AppendParams(nil, once[1:], family); len(left) != 0 {
			t.Fatalf("%q keeps %q", once, left)
		}
	})
}

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

// Values of the form that the makers of links write.
var (
	hex64  = strings.Repeat("0a", 32)
	hex512 = strings.Repeat("c3", 256)
	mac20  = strings.Repeat("ab%2Bc", 6) + "ab8%3D"  // 20 bytes
	mac32  = strings.Repeat("a%2Fc9", 10) + "a%2bM=" // 32 bytes
	rsa    = strings.Repeat("Zm9v", 85) + "Zg%3D%3D" // 256 bytes
	cloud  = strings.Repeat("Z-~9", 85) + "Zg__"     // the same in CloudFront's alphabet
	amz    = "X-Amz-Credential=c&X-Amz-Date=D&X-Amz-Signature=" + hex64
)

func TestO1_NameDropsSignatureParametersOnly(t *testing.T) {
	const host = "store.example:8080"
	for _, c := range []struct {
		target, want string
		family       Family
	}{
		{"/a/b?x=1&y=2", "/a/b?x=1&y=2", Unsigned},
		{"/a//b/%2F?", "/a//b/%2F?", Unsigned},
		{"/b/k?versionId=7&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F1&X-Amz-Date=D&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=" + hex64 + "&partNumber=2&x-id=GetObject",
			"/b/k?versionId=7&partNumber=2", S3v4},
		{"/b/k?X-Amz-Security-Token=t&" + amz, "/b/k", S3v4},
		{"/b/k?X-Amz-Credential=c&X-Amz-Date=D&X%2DAmz-Sign%61ture=" + hex64, "/b/k", S3v4},
		{"/b/k?X-Amz-Date=D&X-Amz-Expires=60", "/b/k?X-Amz-Date=D&X-Amz-Expires=60", Unsigned}, // no signature, no link
		{"/b/k?AWSAccessKeyId=AK&Expires=1&Signature=" + mac20 + "&response-content-type=x", "/b/k?response-content-type=x", S3v2},
		{"/b/k?x-goog-signature=" + hex512 + "&X-Goog-Date=D&X-Goog-Credential=c&generation=3", "/b/k?generation=3", GCSv4},
		{"/b/k?GoogleAccessId=s&Expires=1&Signature=" + rsa + "&generation=3", "/b/k?generation=3", GCSv2},
		{"/c/k?sv=2024-01-01&se=2030&sr=b&sp=r&sig=" + mac32 + "&snapshot=s", "/c/k?snapshot=s", Azure},
		{"/c/k?sig=" + mac32 + "&si=policy&se=x", "/c/k", Azure},
		{"/c/k?sig=" + mac32 + "&page=2", "/c/k?sig=" + mac32 + "&page=2", Unsigned},
		{"/k?Policy=p&Signature=" + cloud + "&Key-Pair-Id=K1&v=1", "/k?v=1", CloudFront},
		{"/k?Expires=1&Signature=" + cloud + "&Key-Pair-Id=K1", "/k", CloudFront},
		{"/k?Signature=" + mac20 + "&Expires=1", "/k?Signature=" + mac20 + "&Expires=1", Unsigned},
		{"/k?a&&" + amz + "&b=", "/k?a&&b=", S3v4},
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
		"/k?Expires=1&AWSAccessKeyId=AK&Signature=" + mac20,
		"/k?Sign%61ture=" + strings.ReplaceAll(mac20, "%2B", "%2b") + "&AWSAccessKeyId=AK&Expires=1",
		"/k?AWSAccessKeyId=AK&Expires=1&x=1&signature=" + strings.ReplaceAll(strings.ReplaceAll(mac20, "%2B", "+"), "%3D", "="),
	}
	want := strings.Repeat("ab+c", 6) + "ab8="
	for _, l := range links {
		if got := string(AppendSignature(nil, []byte(l), FamilyOf([]byte(l)))); got != want {
			t.Errorf("AppendSignature(%s) = %q", l, got)
		}
	}
	if got := string(AppendParams([]byte("x"), []byte(links[0]+"&z=1"), S3v2)); got != "x&Expires=1&AWSAccessKeyId=AK&Signature="+mac20 {
		t.Errorf("AppendParams = %q", got)
	}
	upper := []byte("/k?" + strings.Replace(amz, hex64, strings.ToUpper(hex64), 1))
	if got := string(AppendSignature(nil, upper, FamilyOf(upper))); got != hex64 {
		t.Errorf("digits of another case name another link: %q", got)
	}
}

func TestI1_OnlyWellFormedLinksAreLinks(t *testing.T) {
	const v4, v2, azure = "&X-Amz-Credential=c&X-Amz-Date=D", "&AWSAccessKeyId=AK&Expires=1", "&sv=1&se=2"
	for _, query := range []string{
		"sig=7&sv=1", "sig=7" + azure, "sig=" + mac20 + azure, "sig=" + mac32, "sig=&sv=1", "sig" + azure, "sig=" + mac32 + "&sv=&se=", "sig=" + mac32 + "&sv&se",
		"sig=" + strings.TrimSuffix(mac32, "=") + azure,         // no padding
		"sig=" + strings.TrimSuffix(mac32, "M=") + "N=" + azure, // the same bytes in another spelling
		"sig=" + strings.Replace(mac32, "%2F", "_", 1) + azure, "sig=" + mac32 + "%3D" + azure, "sig=%3D" + mac32 + azure,
		"X-Amz-Signature=" + hex64, "X-Amz-Signature=" + hex64 + "&X-Amz-Date=D", "X-Amz-Signature=" + hex64 + "&X-Amz-Credential=c&X-Amz-Date",
		"X-Amz-Signature=1" + v4, "X-Amz-Signature=" + hex64 + "0" + v4, "X-Amz-Signature=" + hex64[1:] + "g" + v4, "X-Amz-Signature=" + hex512 + v4,
		"X-Goog-Signature=" + hex512, "X-Goog-Signature=ab&X-Goog-Credential=c&X-Goog-Date=D", "X-Goog-Signature=" + hex512 + v4,
		"Signature=1" + v2, "Signature=" + mac20 + "&AWSAccessKeyId=AK", "Signature=" + mac20 + "&Expires=1&AWSAccessKeyId=", "Signature=" + rsa + v2,
		"Signature=1&GoogleAccessId=g&Expires=1", "Signature=" + rsa + "&GoogleAccessId=g", "Signature=" + mac32 + "&GoogleAccessId=g&Expires=1",
		"Signature=1&Key-Pair-Id=K&Expires=1", "Signature=" + cloud + "&Key-Pair-Id=K", "Signature=" + rsa + "&Key-Pair-Id=K&Policy=p",
		// the origin may check either: then the other would be free to choose
		amz + "&X-Amz-Signature=" + strings.Repeat("11", 32), "x-amz-signature&" + amz, amz + "&sig=" + mac32 + azure, amz + "&Signature=" + mac20 + v2, "sig=1&" + amz,
	} {
		if f := FamilyOf([]byte("/k?" + query)); f != Unsigned {
			t.Errorf("%s is taken for a link of %s", query, f)
		}
	}
	for query, want := range map[string]Family{
		amz: S3v4, "X-Amz-Signature=" + strings.Repeat("30", 71) + v4: S3v4, "Signature=" + mac32 + v2: S3v2,
		"X-Goog-Signature=" + hex64 + "&X-Goog-Credential=c&X-Goog-Date=D": GCSv4, "Signature=" + mac20 + "&GoogleAccessId=g&Expires=1": GCSv2,
		"sig=" + mac32 + "&sv=1": Azure, "sig=" + mac32 + "&se=1": Azure,
	} {
		if f := FamilyOf([]byte("/k?" + query)); f != want {
			t.Errorf("%s is a link of %s, want %s", query, f, want)
		}
	}
}

func TestO2_KeysDifferByNameAndCredentials(t *testing.T) {
	a, b := MakeKey([]byte("h/x"), [16]byte{}), MakeKey([]byte("h/x"), [16]byte{1})
	if a == b || a == MakeKey([]byte("h/y"), [16]byte{}) || a != MakeKey([]byte("h/x"), [16]byte{}) {
		t.Error("a key is a function of name and credentials, and no less")
	}
}

func TestO1_NameAndKeyAllocateNothing(t *testing.T) {
	h := request(t, "GET", "/b/k?X-Amz-Algorithm=A&versionId=7&"+amz)
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = Name(h, buf[:0]); MakeKey(buf, [16]byte{1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzName(f *testing.F) {
	f.Add([]byte("/b/k?X-Amz-Signature=ab&x=%2"))
	f.Add([]byte("/?sig=%41&se&sv=&&=%"))
	for _, q := range []string{amz, "sig=" + mac32 + "&sv=1", "Signature=" + cloud + "&Key-Pair-Id=K&Policy=p", "Signature=" + mac20 + "&AWSAccessKeyId=a&Expires=1&a=%4"} {
		f.Add([]byte("/k?x&" + q))
	}
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
		if n := len(AppendSignature(nil, target, family)); n < 28 {
			t.Fatalf("%q is a link by a signature of %d bytes", target, n)
		}
	})
}

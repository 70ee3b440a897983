package wire

import "bytes"

// ID names the fields that the proxy itself looks at; all others are Other.
type ID uint8

// Known fields.
const (
	Other ID = iota
	Host
	Connection
	ContentLength
	TransferEncoding
	KeepAlive
	ProxyConnection
	TE
	Trailer
	Upgrade
	Expect
	Range
	IfRange
	IfMatch
	IfNoneMatch
	Authorization
	Cookie
	UserAgent
	Accept
	Via
	Forwarded
	ForwardedFor
	ForwardedProto
	ForwardedHost
	ETag
	LastModified
	ContentRange
	ContentType
	ContentEncoding
	Location
	Date
	Server
	RetryAfter
	Arkvory // any field that begins with Arkvory-
	// Shadow is a spelling with underscores of a forwarding or an Arkvory- field. CGI and WSGI origins read it as the field itself,
	// so it must not go upstream; it is never believed.
	Shadow
)

var names = [...]string{
	Other: "", Host: "host", Connection: "connection", ContentLength: "content-length", TransferEncoding: "transfer-encoding",
	KeepAlive: "keep-alive", ProxyConnection: "proxy-connection", TE: "te", Trailer: "trailer", Upgrade: "upgrade", Expect: "expect",
	Range: "range", IfRange: "if-range", IfMatch: "if-match", IfNoneMatch: "if-none-match", Authorization: "authorization",
	Cookie: "cookie", UserAgent: "user-agent", Accept: "accept", Via: "via", Forwarded: "forwarded", ForwardedFor: "x-forwarded-for",
	ForwardedProto: "x-forwarded-proto", ForwardedHost: "x-forwarded-host", ETag: "etag", LastModified: "last-modified",
	ContentRange: "content-range", ContentType: "content-type", ContentEncoding: "content-encoding", Location: "location",
	Date: "date", Server: "server", RetryAfter: "retry-after",
}

// byLength lists the known names by their length, so that a field is compared with two or three candidates at most.
var byLength = func() (t [32][]ID) {
	for id, n := range names {
		if n != "" {
			t[len(n)] = append(t[len(n)], ID(id))
		}
	}
	return
}()

func identify(name []byte) ID {
	if len(name) < len(byLength) {
		for _, id := range byLength[len(name)] {
			if equalFold(name, names[id]) {
				return id
			}
		}
	}
	if len(name) >= len(arkvory) && (name[0] == 'A' || name[0] == 'a') && equalFold(name[:len(arkvory)], arkvory) {
		return Arkvory
	}
	if bytes.IndexByte(name, '_') > 0 && shadows(name) {
		return Shadow
	}
	return Other
}

const arkvory = "arkvory-"

// shadows reports whether a name with an underscore becomes one of the fields that a proxy vouches for once an origin takes
// underscores for hyphens, as RFC 3875 section 4.1.18 makes every CGI program do.
func shadows(name []byte) bool {
	if len(name) >= len(arkvory) && equalHyphened(name[:len(arkvory)], arkvory) {
		return true
	}
	for _, n := range [...]string{names[ForwardedFor], names[ForwardedProto], names[ForwardedHost], "forwarded-for"} {
		if equalHyphened(name, n) {
			return true
		}
	}
	return false
}

// equalHyphened is equalFold with underscores of b taken for hyphens.
func equalHyphened(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if c == '_' {
			c = '-'
		}
		if lower[c] != s[i] {
			return false
		}
	}
	return true
}

// equalFold compares b with s without regard to ASCII case; s is in lower case.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := 0; i < len(b); i++ {
		if lower[b[i]] != lower[s[i]] {
			return false
		}
	}
	return true
}

// EqualFold reports whether b is s without regard to ASCII case.
func EqualFold(b []byte, s string) bool { return equalFold(b, s) }

func equalFoldBytes(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower[a[i]] != lower[b[i]] {
			return false
		}
	}
	return true
}

// forEachToken calls f for each element of a comma list, white space removed, empty ones left out (RFC 9110 section 5.6.1).
func forEachToken(v []byte, f func([]byte)) {
	for len(v) > 0 {
		i := 0
		for i < len(v) && v[i] != ',' {
			i++
		}
		a, b := 0, i
		for a < b && (v[a] == ' ' || v[a] == '\t') {
			a++
		}
		for b > a && (v[b-1] == ' ' || v[b-1] == '\t') {
			b--
		}
		if a < b {
			f(v[a:b])
		}
		if i == len(v) {
			return
		}
		v = v[i+1:]
	}
}

// HasToken reports whether a comma list holds the token, compared without regard to case.
func HasToken(v []byte, token string) bool {
	found := false
	forEachToken(v, func(t []byte) { found = found || equalFold(t, token) })
	return found
}

var (
	tokenByte [256]bool // RFC 9110 section 5.6.2
	valueByte [256]bool // RFC 9110 section 5.5: VCHAR, SP, HTAB, obs-text
	hostByte  [256]bool // reg-name of RFC 3986 section 3.2.2
	lower     [256]byte
)

func init() {
	for c := 0; c < 256; c++ {
		lower[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			lower[c] = byte(c + 'a' - 'A')
		}
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		tokenByte[c] = alnum
		hostByte[c] = alnum
		valueByte[c] = c >= ' ' && c != 0x7f || c == '\t'
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		tokenByte[c] = true
	}
	for _, c := range "-._~!$&'()*+,;=%" {
		hostByte[c] = true
	}
}

// validAuthority holds Host to uri-host [":" port]. An empty value is legal (RFC 9112 section 3.2). Of bracketed literals only IPv6
// addresses are taken, without a zone, which has no meaning for another machine.
func validAuthority(v []byte) bool {
	if len(v) > 255+6 {
		return false
	}
	i := 0
	if len(v) > 0 && v[0] == '[' {
		colons := 0
		for i = 1; i < len(v) && (hexDigit(v[i]) >= 0 || v[i] == ':' || v[i] == '.'); i++ {
			if v[i] == ':' {
				colons++
			}
		}
		if colons < 2 || i == len(v) || v[i] != ']' {
			return false
		}
		i++
	} else {
		for i < len(v) && hostByte[v[i]] {
			i++
		}
		if i == 0 {
			return len(v) == 0
		}
	}
	if i == len(v) {
		return true
	}
	if v[i] != ':' {
		return false
	}
	for _, c := range v[i+1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

package identity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/arkvory/sidecar/proxy/identity/rulefile"
)

// Kind is the source that a principal came from; its names are a closed set, fit for metric labels.
type Kind uint8

// Kinds.
const (
	Address Kind = iota
	Header
	ClientCert
	Cookie
	Signature
	Authorization
)

var kindNames = [...]string{"address", "header", "client-cert", "cookie", "signature", "authorization"}

// String returns the name as ARKVORY_PRINCIPAL_FROM writes it, without the name of a header or cookie.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

const (
	maxSources = 16
	minKey     = 16
)

// Settings configure an [Identifier].
type Settings struct {
	// From lists the sources in order: header:NAME, client-cert, cookie:NAME, signature, authorization, address. Empty means
	// signature, authorization, address. At most 16.
	From []string
	// TrustedProxies are the networks whose forwarding and identity fields are believed.
	TrustedProxies []netip.Prefix
	// PrincipalsFile is the path of the YAML table, "" for none.
	PrincipalsFile string
	// Key is the key of all hashes, at least 16 bytes; nil takes 32 random ones.
	Key []byte
}

// source is one parsed entry of From.
type source struct {
	kind Kind
	name string // of a header (lower case) or a cookie (as written)
}

var defaultFrom = []string{"signature", "authorization", "address"}

func parseFrom(from []string, trusted bool) ([]source, error) {
	if len(from) == 0 {
		from = defaultFrom
	}
	const rule = "ARKVORY_PRINCIPAL_FROM: %s; it is an ordered list of header:NAME, client-cert, cookie:NAME, signature, authorization, address, such as signature,authorization,address"
	var faults []error
	if len(from) > maxSources {
		return nil, fmt.Errorf(rule, fmt.Sprintf("%d sources, at most %d are allowed", len(from), maxSources))
	}
	out := make([]source, 0, len(from))
	seen := map[source]bool{}
	for _, s := range from {
		src, err := parseSource(s)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf(rule, err))
			continue
		case seen[src]:
			faults = append(faults, fmt.Errorf(rule, fmt.Sprintf("%q stands there twice", s)))
		case src.kind == Header && !trusted:
			faults = append(faults, fmt.Errorf("ARKVORY_PRINCIPAL_FROM: %q is believed from trusted proxies only, set ARKVORY_TRUSTED_PROXIES, such as 10.0.0.0/8", s))
		}
		seen[src] = true
		out = append(out, src)
	}
	return out, errors.Join(faults...)
}

func parseSource(s string) (source, error) {
	kind, name, named := strings.Cut(s, ":")
	for k, n := range kindNames {
		if n != kind {
			continue
		}
		src := source{kind: Kind(k), name: name}
		if wants := src.kind == Header || src.kind == Cookie; wants != named {
			return source{}, fmt.Errorf("%q: header and cookie are followed by a colon and a name, the others stand alone", s)
		}
		if named && !isToken(name) {
			return source{}, fmt.Errorf("%q: the name must be 1 to 64 characters out of letters, digits and -._ only", s)
		}
		if src.kind == Header {
			src.name = strings.ToLower(name)
		}
		return src, nil
	}
	return source{}, fmt.Errorf("unknown source %q", s)
}

func isToken(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// Identifier identifies requests. Its fields are fixed after New; the table of principals and the classes of the live settings are exchanged as a whole.
type Identifier struct {
	sources []source
	trusted []netip.Prefix
	hash    hasher
	table   *rulefile.File[table]
	classes atomic.Pointer[classes] // never nil after New
	headers []string                // lower-case names of the header sources
}

// New checks the settings and reads the principals file. The error lists all faults of both.
func New(s Settings) (*Identifier, error) {
	sources, err := parseFrom(s.From, len(s.TrustedProxies) > 0)
	faults := []error{err}
	d := &Identifier{sources: sources}
	d.SetClasses(nil)
	for _, p := range s.TrustedProxies {
		if !p.IsValid() {
			faults = append(faults, errors.New("ARKVORY_TRUSTED_PROXIES: a network is not valid, write it such as 10.0.0.0/8"))
			continue
		}
		d.trusted = append(d.trusted, unmapPrefix(p))
	}
	key := s.Key
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails (crypto/rand)
	}
	if len(key) < minKey {
		faults = append(faults, fmt.Errorf("the key of the identity hashes has %d bytes, at least %d are needed", len(key), minKey))
	}
	d.hash = newHasher(key)
	for _, src := range sources {
		if src.kind == Header {
			d.headers = append(d.headers, src.name)
		}
	}
	d.table, err = rulefile.Open("ARKVORY_PRINCIPALS_FILE", s.PrincipalsFile, parseTable)
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return d, nil
}

// Poll reads the principals file again when it changed; it reports whether a new table came into force. Call it from a tick.
func (d *Identifier) Poll() bool { return d.table.Poll() }

// Reload reads the principals file now. On an error the last good table stays in force.
func (d *Identifier) Reload() error { return d.table.Reload() }

// Problem returns what is wrong with the principals file as it stands, "" when it is in force.
func (d *Identifier) Problem() string { return d.table.Problem() }

// unmapPrefix writes an IPv4 network that is given as IPv4-mapped IPv6 as the plain one, since addresses are compared unmapped.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked()
	}
	return p.Masked()
}

// Trusted reports whether the forwarding fields of a peer are believed.
func (d *Identifier) Trusted(peer netip.Addr) bool {
	peer = peer.Unmap().WithZone("")
	for _, p := range d.trusted {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

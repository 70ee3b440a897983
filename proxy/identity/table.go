package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"github.com/arkvory/sidecar/proxy/identity/rulefile"
	"github.com/arkvory/sidecar/queue"
)

// entry is what the principals file says about one principal.
type entry struct {
	id       string
	class    queue.Class
	hasClass bool
}

// table is the parsed principals file; it is immutable.
//
//	principals:
//	  - id: ci
//	    class: bulk
//	    keys: [AKIAEXAMPLE1, AKIAEXAMPLE2]
//	    users: [jenkins]
//	    subjects: ["https://issuer.example|build-bot", "CN=build,O=Acme"]
//	    tokenHashes: [<64 hex digits of SHA-256>]
//	    cidrs: [10.20.0.0/16]
type table struct {
	keys     map[string]*entry // access key ids of request signatures, account names of Azure
	users    map[string]*entry // Basic and Digest users, values of trusted headers
	subjects map[string]*entry // JWT "iss|sub"; certificate subject or SAN
	tokens   map[[sha256.Size]byte]*entry
	networks []network // longest prefix first
}

type network struct {
	prefix netip.Prefix
	entry  *entry
}

// Bounds of one file, beside its bytes.
const (
	maxIDBytes    = 64
	maxNameBytes  = 1024
	maxNetworks   = 1024 // walked for each new address
	maxPrincipals = 65536
)

func parseTable(text []byte) (*table, error) {
	t := &table{keys: map[string]*entry{}, users: map[string]*entry{}, subjects: map[string]*entry{}, tokens: map[[sha256.Size]byte]*entry{}}
	var f rulefile.Faults
	root := rulefile.Parse(text, &f)
	if root.Kind == rulefile.Null { // empty, or no YAML at all and noted
		return t, f.Err()
	}
	if !root.Only(&f, "the file", "principals") {
		return nil, f.Err()
	}
	rows := root.List(&f, "principals")
	if len(rows) > maxPrincipals {
		f.Addf(root.Line, "principals: %d rows, at most %d are allowed", len(rows), maxPrincipals)
		return nil, f.Err()
	}
	lines := map[string]int{}
	for _, row := range rows {
		t.row(row, lines, &f)
	}
	slices.SortStableFunc(t.networks, func(a, b network) int { return b.prefix.Bits() - a.prefix.Bits() })
	if err := f.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *table) row(n rulefile.Node, lines map[string]int, f *rulefile.Faults) {
	if !n.Only(f, "a principal", "id", "class", "keys", "users", "subjects", "tokenHashes", "cidrs") {
		return
	}
	e := &entry{}
	id, ok := n.String(f, "id")
	if !validID(id) {
		f.Addf(n.Line, "a principal needs an id of 1 to %d letters, digits or ._@+~/-, such as ci", maxIDBytes)
	} else if at, twice := lines[id]; twice && ok {
		f.Addf(n.Line, "the id %q is given on line %d already, put all its keys into one row", id, at)
	}
	lines[id] = n.Line
	e.id = id
	if name, ok := n.String(f, "class"); ok {
		c, err := queue.ParseClass(name)
		if err != nil {
			at, _ := n.Get("class")
			f.Addf(at.Line, "class must be interactive, release, bulk or background, such as bulk")
		}
		e.class, e.hasClass = c, true
	}
	found := t.names(n, "keys", t.keys, e, f) + t.names(n, "users", t.users, e, f) + t.names(n, "subjects", t.subjects, e, f)
	found += t.hashes(n, e, f) + t.cidrs(n, e, f)
	if found == 0 {
		f.Addf(n.Line, "a principal needs at least one of keys, users, subjects, tokenHashes, cidrs")
	}
}

func validID(id string) bool {
	if id == "" || len(id) > maxIDBytes {
		return false
	}
	for i := 0; i < len(id); i++ {
		// neither space nor colon: it must not look like the principal of a client that is in no table
		if c := id[i]; !clearByte[c] || c == ' ' || c == ':' || c == ',' || c == '=' {
			return false
		}
	}
	return true
}

// names reads one list of names; faults never quote them, since a token may stand there by mistake.
func (t *table) names(n rulefile.Node, key string, into map[string]*entry, e *entry, f *rulefile.Faults) int {
	items := n.List(f, key)
	for _, i := range items {
		switch {
		case i.Kind != rulefile.Scalar || i.Text == "" || len(i.Text) > maxNameBytes:
			f.Addf(i.Line, "%s must hold texts of 1 to %d bytes", key, maxNameBytes)
		case into[i.Text] != nil:
			f.Addf(i.Line, "%s: the same text is given before, for the id %q", key, into[i.Text].id)
		default:
			into[i.Text] = e
		}
	}
	return len(items)
}

func (t *table) hashes(n rulefile.Node, e *entry, f *rulefile.Faults) int {
	items := n.List(f, "tokenHashes")
	for _, i := range items {
		b, err := hex.DecodeString(i.Text)
		if i.Kind != rulefile.Scalar || err != nil || len(b) != sha256.Size {
			f.Addf(i.Line, "tokenHashes must hold SHA-256 sums of 64 hexadecimal digits, as sha256sum prints them; never the token itself")
			continue
		}
		k := [sha256.Size]byte(b)
		if old := t.tokens[k]; old != nil {
			f.Addf(i.Line, "tokenHashes: the same sum is given before, for the id %q", old.id)
			continue
		}
		t.tokens[k] = e
	}
	return len(items)
}

func (t *table) cidrs(n rulefile.Node, e *entry, f *rulefile.Faults) int {
	items := n.List(f, "cidrs")
	for _, i := range items {
		p, err := parseCIDR(i.Text)
		if err != nil || i.Kind != rulefile.Scalar {
			f.Addf(i.Line, "cidrs must hold addresses or networks without host bits, such as 10.20.0.0/16 or 2001:db8::/32")
			continue
		}
		if len(t.networks) == maxNetworks {
			f.Addf(i.Line, "cidrs: more than %d networks in the file", maxNetworks)
			continue
		}
		if k := slices.IndexFunc(t.networks, func(x network) bool { return x.prefix == p }); k >= 0 {
			f.Addf(i.Line, "cidrs: %s is given before, for the id %q", p, t.networks[k].entry.id)
			continue
		}
		t.networks = append(t.networks, network{p, e})
	}
	return len(items)
}

func parseCIDR(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, err
	}
	if p = unmapPrefix(p); p.Addr().String() != hostOf(s) {
		return p, fmt.Errorf("host bits are set")
	}
	return p, nil
}

// hostOf returns the canonical text of the address before the slash.
func hostOf(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return ""
	}
	return p.Addr().Unmap().String()
}

// byAddress returns the entry of the longest network that holds a.
func (t *table) byAddress(a netip.Addr) *entry {
	for i := range t.networks {
		if t.networks[i].prefix.Contains(a) {
			return t.networks[i].entry
		}
	}
	return nil
}

// byToken looks a token up by its sum; without any sums in the file it costs nothing.
func (t *table) byToken(token []byte) *entry {
	if len(t.tokens) == 0 {
		return nil
	}
	return t.tokens[sha256.Sum256(token)]
}

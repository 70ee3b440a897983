package identity

import (
	"bytes"
	"net/netip"
	"strconv"

	"github.com/arkvory/sidecar/proxy/wire"
)

// maxHops is how many elements of a Forwarded chain are looked at, from the right.
const maxHops = 64

// client returns the address of the real client, see the package comment.
func (d *Identifier) client(h *wire.Head, peer netip.Addr, trusted bool) netip.Addr {
	if !trusted {
		return peer
	}
	last, found := peer, false
	for i := len(h.Fields) - 1; i >= 0; i-- {
		f := h.Fields[i]
		if f.ID != wire.ForwardedFor {
			continue
		}
		found = true
		var done bool
		if last, done = d.walk(h.Value(f), last); done {
			return last
		}
	}
	if found {
		return last
	}
	return d.walkForwarded(h, peer)
}

// walk goes through one X-Forwarded-For value from the right. done is true when the client was found: an untrusted address, or
// something that is no address, behind which nothing is believed.
func (d *Identifier) walk(v []byte, last netip.Addr) (client netip.Addr, done bool) {
	for len(v) > 0 {
		i := bytes.LastIndexByte(v, ',')
		e := trim(v[i+1:])
		v = v[:max(i, 0)]
		if len(e) == 0 {
			continue
		}
		a, ok := parseNode(e)
		if !ok {
			return last, true
		}
		last = a
		if !d.Trusted(a) {
			return a, true
		}
	}
	return last, false
}

func (d *Identifier) walkForwarded(h *wire.Head, peer netip.Addr) netip.Addr {
	var store [maxHops]netip.Addr // a ring of the last elements; the zero address stands for one that cannot be believed
	n := 0
	for _, f := range h.Fields {
		if f.ID != wire.Forwarded {
			continue
		}
		ok := eachForwarded(h.Value(f), func(node []byte) {
			a, _ := parseNode(node)
			store[n%maxHops] = a
			n++
		})
		if !ok {
			return peer
		}
	}
	last := peer
	for k := n - 1; k >= 0 && k > n-1-maxHops; k-- {
		a := store[k%maxHops]
		if !a.IsValid() {
			return last
		}
		last = a
		if !d.Trusted(a) {
			return a
		}
	}
	return last
}

// parseNode parses an address with an optional port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. Zones are
// dropped, IPv4-mapped addresses become IPv4. Names such as unknown and _hidden are refused.
func parseNode(b []byte) (netip.Addr, bool) {
	if len(b) == 0 || len(b) > 64 {
		return netip.Addr{}, false
	}
	s := string(b)
	if s[0] == '[' {
		i := bytes.IndexByte(b, ']')
		if i < 0 || !isPort(s[i+1:]) {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(s[1:i])
		return a.Unmap().WithZone(""), err == nil && a.Is6()
	}
	if bytes.Count(b, []byte(":")) == 1 {
		i := bytes.IndexByte(b, ':')
		if !isPort(s[i:]) {
			return netip.Addr{}, false
		}
		s = s[:i]
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}

// isPort accepts nothing, or a colon and a port. Forwarded also allows obfuscated ports, which begin with '_' (RFC 7239 section 6.2).
func isPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) < 2 || len(s) > 32 {
		return false
	}
	if s[1] == '_' {
		return true
	}
	_, err := strconv.ParseUint(s[1:], 10, 16)
	return err == nil
}

// eachForwarded parses one Forwarded value (RFC 7239 section 4) and calls f with the for parameter of each element, nil when an
// element has none. It reports whether the value is well formed.
func eachForwarded(v []byte, f func(node []byte)) bool {
	var node, scratch []byte
	pairs := 0
	for {
		v = trim(v)
		if len(v) == 0 {
			if pairs > 0 {
				f(node)
			}
			return true
		}
		switch v[0] {
		case ',':
			if pairs > 0 {
				f(node)
			}
			node, pairs = nil, 0
			v = v[1:]
			continue
		case ';':
			v = v[1:]
			continue
		}
		eq := bytes.IndexByte(v, '=')
		if eq <= 0 || !isName(v[:eq]) {
			return false
		}
		name := v[:eq]
		value, rest, ok := forwardedValue(v[eq+1:], &scratch)
		if !ok {
			return false
		}
		rest = trim(rest)
		if len(rest) > 0 && rest[0] != ',' && rest[0] != ';' {
			return false
		}
		if wire.EqualFold(name, "for") {
			if node != nil {
				return false // a parameter occurs once in an element
			}
			node = append([]byte{}, value...)
		}
		pairs++
		v = rest
	}
}

// forwardedValue reads a token or a quoted string. A bare token is taken up to the next delimiter, since many senders write
// addresses with a port unquoted.
func forwardedValue(v []byte, scratch *[]byte) (value, rest []byte, ok bool) {
	if len(v) > 0 && v[0] == '"' {
		b := (*scratch)[:0]
		for i := 1; i < len(v); i++ {
			switch c := v[i]; c {
			case '"':
				*scratch = b
				return b, v[i+1:], true
			case '\\':
				i++
				if i == len(v) {
					return nil, nil, false
				}
				b = append(b, v[i])
			default:
				b = append(b, c)
			}
		}
		return nil, nil, false
	}
	i := 0
	for i < len(v) && v[i] != ',' && v[i] != ';' && v[i] != ' ' && v[i] != '\t' {
		if v[i] == '"' {
			return nil, nil, false
		}
		i++
	}
	return v[:i], v[i:], i > 0
}

func isName(b []byte) bool {
	for _, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// public6 is the IPv6 space that is routed; one subscriber there has a /64 at least.
var public6 = netip.MustParsePrefix("2000::/3")

// appendAddress appends the principal of an address.
func appendAddress(dst []byte, a netip.Addr) []byte {
	dst = append(dst, "addr:"...)
	switch {
	case !a.IsValid():
		return append(dst, "unknown"...)
	case public6.Contains(a):
		p, _ := a.Prefix(64)
		return p.AppendTo(dst)
	}
	return a.AppendTo(dst)
}

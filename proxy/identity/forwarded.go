package identity

import (
	"net/netip"

	"github.com/arkvory/sidecar/proxy/wire"
)

// ForwardedFields appends to dst the lines X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host and Forwarded that go upstream in place of
// those received; the caller leaves the received ones out. peer is the other end of the connection, tls whether it is encrypted.
//
// From a trusted peer the received values are kept: the peer is added to the lists, and scheme and host stay as the first proxy
// saw them. From any other peer they are replaced, so that the last element is the peer always, and the only one unless the peer is
// trusted. A received Forwarded that is malformed is replaced too: an open quote would swallow what is appended. It allocates only to grow
// dst and to read a received Forwarded.
func (d *Identifier) ForwardedFields(dst []byte, h *wire.Head, peer netip.Addr, tls bool) []byte {
	peer = peer.Unmap().WithZone("")
	trusted := d.Trusted(peer)
	proto := "http"
	if tls {
		proto = "https"
	}

	dst = append(dst, "X-Forwarded-For: "...)
	n := len(dst)
	if trusted {
		dst = appendValues(dst, h, wire.ForwardedFor)
	}
	if len(dst) > n {
		dst = append(dst, ", "...)
	}
	dst = append(appendNode(dst, peer), "\r\nX-Forwarded-Proto: "...)

	n = len(dst)
	if trusted {
		dst = appendValues(dst, h, wire.ForwardedProto)
	}
	if len(dst) == n {
		dst = append(dst, proto...)
	}
	dst = append(dst, "\r\n"...)

	start := len(dst)
	dst = append(dst, "X-Forwarded-Host: "...)
	n = len(dst)
	if trusted {
		dst = appendValues(dst, h, wire.ForwardedHost)
	}
	if len(dst) == n {
		dst = append(dst, h.Authority...)
	}
	if len(dst) == n { // an HTTP/1.0 request without Host
		dst = dst[:start]
	} else {
		dst = append(dst, "\r\n"...)
	}

	dst = append(dst, "Forwarded: "...)
	n = len(dst)
	if trusted && wellFormed(h) {
		dst = appendValues(dst, h, wire.Forwarded)
	}
	if len(dst) > n {
		dst = append(dst, ", "...)
	}
	return appendElement(dst, peer, h.Authority, proto)
}

// appendValues appends the values of all fields of an id that cross this hop, joined by a comma.
func appendValues(dst []byte, h *wire.Head, id wire.ID) []byte {
	n := len(dst)
	for _, f := range h.Fields {
		v := h.Value(f)
		if f.ID != id || f.Dropped() || len(v) == 0 {
			continue
		}
		if len(dst) > n {
			dst = append(dst, ", "...)
		}
		dst = append(dst, v...)
	}
	return dst
}

func wellFormed(h *wire.Head) bool {
	for _, f := range h.Fields {
		if f.ID == wire.Forwarded && !f.Dropped() && !eachForwarded(h.Value(f), func([]byte) {}) {
			return false
		}
	}
	return true
}

func appendNode(dst []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return append(dst, "unknown"...)
	}
	return a.AppendTo(dst)
}

// appendElement appends one element of Forwarded (RFC 7239): an IPv6 address goes in brackets and quotes, and host is quoted
// always, since the colon of a port is no token character.
func appendElement(dst []byte, peer netip.Addr, authority []byte, proto string) []byte {
	dst = append(dst, "for="...)
	if peer.Is6() {
		dst = append(dst, `"[`...)
		dst = append(appendNode(dst, peer), `]"`...)
	} else {
		dst = appendNode(dst, peer)
	}
	if len(authority) > 0 {
		dst = append(dst, `;host="`...)
		for _, c := range authority {
			if c == '"' || c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
		dst = append(dst, '"')
	}
	dst = append(dst, ";proto="...)
	dst = append(dst, proto...)
	return append(dst, "\r\n"...)
}

package object

import (
	"crypto/sha256"

	"github.com/arkvory/sidecar/proxy/wire"
)

// Name appends the object's name to dst: the lower-case authority, then the target without the parameters of a presigned link. The
// result is as long as Host and target at most; it may hold what a client wrote, so it goes into no log. It allocates only to grow
// dst.
func Name(h *wire.Head, dst []byte) []byte {
	for _, c := range h.Authority {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	f := FamilyOf(h.Target)
	if f == Unsigned {
		return append(dst, h.Target...)
	}
	path, query, _ := splitTarget(h.Target)
	dst = append(dst, path...)
	sep := byte('?')
	for len(query) > 0 {
		var p []byte
		p, query = next(query)
		if classify(nameOf(p))&strips[f] != 0 {
			continue
		}
		dst = append(dst, sep)
		dst = append(dst, p...)
		sep = '&'
	}
	return dst
}

// Key is what facts are kept under: SHA-256 of an object's name and the credentials of who asked. The zero value is the key of nothing.
type Key [sha256.Size]byte

// MakeKey returns the key of an object's name and the hash of the credentials that came with the request (zero when there were none).
// It allocates nothing for names up to 1000 bytes.
func MakeKey(name []byte, credentials [16]byte) Key {
	var scratch [1024]byte
	b := append(scratch[:0], credentials[:]...)
	return sha256.Sum256(append(b, name...))
}

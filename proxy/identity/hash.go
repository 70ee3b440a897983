package identity

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
)

// hasher is HMAC-SHA256 (RFC 2104) with the padded key prepared, written over one-shot sums so that it allocates nothing.
type hasher struct {
	inner, outer [sha256.BlockSize]byte
}

func newHasher(key []byte) (h hasher) {
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	copy(h.inner[:], key)
	copy(h.outer[:], key)
	for i := range h.inner {
		h.inner[i] ^= 0x36
		h.outer[i] ^= 0x5c
	}
	return h
}

// buffers hold the message of a hash while it is put together.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

const maxPooled = 64 << 10

// sum returns the first 128 bits of the MAC over a purpose and the parts, each with its length, so that no two lists of parts
// give one message.
func (h *hasher) sum(purpose byte, parts ...[]byte) [16]byte {
	p := buffers.Get().(*[]byte)
	b := append((*p)[:0], h.inner[:]...)
	b = append(b, purpose)
	for _, x := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(x)))
		b = append(b, x...)
	}
	in := sha256.Sum256(b)
	b = append(b[:0], h.outer[:]...)
	b = append(b, in[:]...)
	out := sha256.Sum256(b)
	if cap(b) <= maxPooled {
		clear(b[:cap(b)]) // it held a secret
		*p = b[:0]
		buffers.Put(p)
	}
	return [16]byte(out[:16])
}

// Purposes keep hashes of one value in two places apart.
const (
	forCredentials = 'c'
	forCookie      = 'k'
	forLink        = 'l'
	forJWT         = 'j'
	forToken       = 't'
	forBasic       = 'b'
	forName        = 'n'
)

func appendHash(dst []byte, sum [16]byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, sum[:])
}

const (
	// maxClear is the longest name that a principal shows as it is.
	maxClear = 64
	// MaxPrincipalBytes bounds Identity.Principal.
	MaxPrincipalBytes = len("header:") + maxClear
)

// clearByte is the alphabet of names that are shown; it leaves out '#', which marks a hash, and everything that needs care in
// logs.
var clearByte = func() (t [256]bool) {
	for c := '0'; c <= 'z'; c++ {
		t[c] = c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a'
	}
	for _, c := range " ._@+~/:=,-" {
		t[c] = true
	}
	return
}()

// appendName appends a name as it is when it is short and plain, else "#" and its hash.
func (h *hasher) appendName(dst []byte, name []byte) []byte {
	plain := len(name) <= maxClear
	for i := 0; plain && i < len(name); i++ {
		plain = clearByte[name[i]]
	}
	if plain {
		return append(dst, name...)
	}
	return appendHash(append(dst, '#'), h.sum(forName, name))
}

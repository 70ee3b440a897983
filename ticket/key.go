package ticket

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// KeyBytes is the length of a key.
const KeyBytes = sha256.Size

// Key is the secret of one installation. It prints as "hidden" under every verb that asks a value's methods (all but %p, which vet
// refuses) and encodes to text and JSON likewise; a binary encoding fails.
//
// Printing a struct asks no methods of its unexported fields, so keep keys in locals and closures, not in fields.
type Key [KeyBytes]byte

const hidden = "hidden"

// errHidden answers encoders for which a placeholder could later be taken for a key.
var errHidden = errors.New("cannot encode a ticket key: it is a secret")

// String returns a placeholder.
func (Key) String() string { return hidden }

// Format writes the placeholder, whatever the verb and its flags.
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// MarshalText returns the placeholder, which encoding/json, encoding/xml and log/slog use too.
func (Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalBinary fails, which encoding/gob passes on.
func (Key) MarshalBinary() ([]byte, error) { return nil, errHidden }

// pads is HMAC-SHA256 (RFC 2104) with the padded key prepared. MACs are taken with one-shot sums over arrays on the stack: a
// hash.Hash would have to be allocated or pooled for each.
type pads struct {
	inner, outer [sha256.BlockSize]byte
}

func newPads(key Key) *pads {
	p := new(pads)
	copy(p.inner[:], key[:])
	copy(p.outer[:], key[:])
	for i := range p.inner {
		p.inner[i] ^= 0x36
		p.outer[i] ^= 0x5c
	}
	return p
}

// finish returns the MAC of a message that begins with p.inner.
func (p *pads) finish(padded []byte) [sha256.Size]byte {
	var b [sha256.BlockSize + sha256.Size]byte
	copy(b[:], p.outer[:])
	inner := sha256.Sum256(padded)
	copy(b[sha256.BlockSize:], inner[:])
	return sha256.Sum256(b[:])
}

// Domains separate what one key signs. None is the beginning of another.
const (
	ticketDomain  = "arkvory/ticket/2\x00"
	deriveDomain  = "arkvory/derive/1\x00"
	sessionDomain = "arkvory/session/1\x00"
)

// derive returns HMAC-SHA256(key, deriveDomain | purpose).
func (p *pads) derive(purpose string) Key {
	b := append([]byte(nil), p.inner[:]...)
	b = append(b, deriveDomain...)
	b = append(b, purpose...)
	return p.finish(b)
}

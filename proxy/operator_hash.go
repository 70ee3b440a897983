package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// Purposes keep the hashes of one text in two places apart.
const (
	hashPrincipal = 'p'
	hashObject    = 'o'
	hashClient    = 'c'
)

// hashKey is the key of the hashes that stand for ids. The hash is SipHash-2-4 (Aumasson and Bernstein 2012), a keyed function of 64 bits made for short
// texts: a listing by a hashed principal looks at every principal of a full queue, and a MAC of SHA-256 would take most of the time that it may take.
type hashKey [2]uint64

// newHashKey draws a key.
func newHashKey() (k hashKey) {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return hashKey{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// sum hashes a text for a purpose.
func (k hashKey) sum(purpose byte, text string) uint64 {
	v := [4]uint64{k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d, k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573}
	// The message is the purpose and the text; its last word holds what is left and the length.
	word, filled := uint64(purpose), uint(1)
	for i := range len(text) {
		word |= uint64(text[i]) << (8 * filled)
		if filled++; filled == 8 {
			sipWord(&v, word)
			word, filled = 0, 0
		}
	}
	sipWord(&v, word|uint64(byte(len(text)+1))<<56)
	v[2] ^= 0xff
	for range 4 {
		sipRound(&v)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipWord(v *[4]uint64, word uint64) {
	v[3] ^= word
	sipRound(v)
	sipRound(v)
	v[0] ^= word
}

func sipRound(v *[4]uint64) {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}

// hashMark stands before a hash in documents, where ids are to name nobody.
const hashMark = "h:"

// parseHash reads a hash as rows writes it.
func parseHash(text string) (uint64, bool) {
	hex, marked := strings.CutPrefix(text, hashMark)
	if !marked || len(hex) != 16 || strings.Trim(hex, "0123456789abcdef") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	return n, err == nil
}

// resolved remembers which principals stood behind hashes that were asked for: a hash is always the same principal's. It is safe for concurrent use; the zero
// value is empty.
type resolved struct {
	mu    sync.Mutex
	names [64]string // by the low bits of the hash
}

// at returns the place of a hash.
func (r *resolved) at(hash uint64) *string { return &r.names[hash%uint64(len(r.names))] }

// principal returns the name of the principal that a query asks for, by its clear name or its hash; empty for an empty one. Who has no session that a
// hash could be of is looked for by the hash as a name. The first look by a hash costs some 40 ns for each principal that has sessions, most of it with the queue's
// lock free; further ones find it remembered.
func (o *operator) principal(id string) string {
	want, hashed := parseHash(id)
	if !hashed {
		return id
	}
	o.resolved.mu.Lock()
	name := *o.resolved.at(want)
	o.resolved.mu.Unlock()
	if name != "" && o.hashes.sum(hashPrincipal, name) == want {
		return name
	}
	name = id
	o.queue.Principals(func(principal string) bool {
		if o.hashes.sum(hashPrincipal, principal) != want {
			return true
		}
		name = principal
		o.resolved.mu.Lock()
		defer o.resolved.mu.Unlock()
		*o.resolved.at(want) = principal
		return false
	})
	return name
}

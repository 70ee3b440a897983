package client

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
)

// Digest is an expected digest of an object: an algorithm, "sha256" or "sha512", and a sum. The zero Digest is none.
// Digests are comparable.
type Digest struct {
	algorithm string
	sum       string // raw bytes
}

// digestSizes are the algorithms and the lengths of their sums in bytes.
var digestSizes = map[string]int{"sha256": sha256.Size, "sha512": sha512.Size}

// ParseDigest reads "sha256:<64 hex digits>" or "sha512:<128 hex digits>", in either case of letters.
func ParseDigest(s string) (Digest, error) {
	algorithm, digits, found := strings.Cut(s, ":")
	algorithm = strings.ToLower(algorithm)
	size, known := digestSizes[algorithm]
	if !found || !known {
		return Digest{}, fmt.Errorf("cannot read digest %q: it must be sha256:<hex> or sha512:<hex>", shorten(s, 160))
	}
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != size {
		return Digest{}, fmt.Errorf("cannot read digest %q: %s needs %d hex digits", shorten(s, 160), algorithm, 2*size)
	}
	return Digest{algorithm: algorithm, sum: string(sum)}, nil
}

// IsZero reports whether there is no digest to check.
func (d Digest) IsZero() bool { return d.algorithm == "" }

// String returns the digest in the form ParseDigest reads, in lower case; of the zero Digest an empty string.
func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return d.algorithm + ":" + hex.EncodeToString([]byte(d.sum))
}

// matches reports whether a sum of the digest's algorithm is the expected one.
func (d Digest) matches(sum []byte) bool {
	return subtle.ConstantTimeCompare([]byte(d.sum), sum) == 1
}

// shorten cuts a text that goes into an error to a bearable length.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

package ticket

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// Validity is how long after its issue a ticket is accepted: the 10 minutes that the queue remembers a pause, and a reserve.
	Validity = 15 * time.Minute
	// Ahead is how far ahead of now an issue may lie and count as now: clocks of several nodes differ.
	Ahead = 2 * time.Minute
	// MaxBytes is the length of the longest ticket.
	MaxBytes = len(version) + 2*(maxDigits+1) + macChars

	version   = "2."
	maxDigits = 9
	maxMillis = 36*36*36*36*36*36*36*36*36 - 1 // the largest number of maxDigits digits
	macChars  = (sha256.Size*8 + 5) / 6
)

// strict refuses trailing bits, by which one MAC would have four spellings. It still skips line breaks: the decoded length tells.
var strict = base64.RawURLEncoding.Strict()

// SessionHash stands for the key of a session in a ticket. See [HashSession].
type SessionHash [sha256.Size]byte

// HashSession returns the hash of a session's key from its parts, in their order. Each part is hashed with its length, so no two
// lists of parts give one hash. Parts of together up to about 900 bytes cost no allocation.
func HashSession(parts ...string) SessionHash {
	b := make([]byte, 0, 1024)
	b = append(b, sessionDomain...)
	for _, part := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}

// Signer signs and verifies the tickets of one key. It is safe for concurrent use; printing it does not show the key. A copy shares the key. The
// zero value is not usable.
type Signer struct {
	// key holds nil until there is one. Package fmt follows even unexported pointers when a verb does not fit, but not that of an atomic.
	key *atomic.Pointer[pads]
}

// NewPendingSigner returns a signer that has no key yet: it signs nothing and accepts nothing until SetKey gives it one, once.
func NewPendingSigner() *Signer { return &Signer{key: new(atomic.Pointer[pads])} }

// NewSigner returns the signer of a key.
func NewSigner(key Key) *Signer {
	s := NewPendingSigner()
	s.SetKey(key)
	return s
}

// SetKey gives a signer without a key its key and reports whether it did. A signer that has one keeps it: tickets of two keys in one process would cost places.
func (s *Signer) SetKey(key Key) bool { return s.key.CompareAndSwap(nil, newPads(key)) }

// Ready reports whether there is a key. Once true it stays true. A nil Signer is never ready.
func (s *Signer) Ready() bool { return s != nil && s.key.Load() != nil }

// Derive returns HMAC-SHA256 of a purpose under this key: a key for other hashes of the process that lives as long as
// this one. One purpose gives one key; no purpose gives one that helps to sign tickets. It panics while there is no key: ask Ready.
func (s *Signer) Derive(purpose string) Key {
	p := s.key.Load()
	if p == nil {
		panic("ticket: a signer without a key has nothing to derive from")
	}
	return p.derive(purpose)
}

// Append appends the ticket of a session that arrived at arrival, issued at issued, and returns the longer slice. It appends at most
// MaxBytes bytes, none while there is no key, and allocates only to grow dst. Times are cut to milliseconds, which keeps the arrival of a ticket that
// was verified exactly, and to the range 1970..5188; an arrival later than the issue is signed as the issue.
func (s *Signer) Append(dst []byte, session SessionHash, arrival, issued time.Time) []byte {
	p := s.key.Load()
	if p == nil {
		return dst
	}
	i := millis(issued)
	a := min(millis(arrival), i)
	dst = append(dst, version...)
	dst = strconv.AppendInt(dst, a, 36)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, i, 36)
	dst = append(dst, '.')
	mac := p.mac(&session, a, i)
	return strict.AppendEncode(dst, mac[:])
}

// Verify judges the ticket that a request of the session brought at now, wall time. The times are those that were signed, in
// UTC, and valid only if the outcome is Accepted, else zero; either may lie up to Ahead ahead of now and then counts as now. A ticket that
// was accepted is accepted again, with the same arrival. While there is no key every well-formed ticket is BadMAC. Verify allocates nothing, does not keep text, and takes the same
// time for every MAC.
func (s *Signer) Verify(text []byte, session SessionHash, now time.Time) (arrival, issued time.Time, o Outcome) {
	a, i, signed, o := parse(text)
	if o != Accepted {
		return time.Time{}, time.Time{}, o
	}
	p := s.key.Load()
	if p == nil {
		return time.Time{}, time.Time{}, BadMAC
	}
	mac := p.mac(&session, a, i)
	if subtle.ConstantTimeCompare(mac[:], signed[:]) != 1 {
		return time.Time{}, time.Time{}, BadMAC
	}
	arrival, issued = time.UnixMilli(a).UTC(), time.UnixMilli(i).UTC()
	age := now.Sub(issued)
	switch {
	case a > i:
		o = ArrivalAfterIssue
	case age < -Ahead:
		o = Future
	case age > Validity:
		o = Expired
	default:
		return arrival, issued, Accepted
	}
	return time.Time{}, time.Time{}, o
}

// mac returns the MAC over the session and both times.
func (p *pads) mac(session *SessionHash, arrival, issued int64) [sha256.Size]byte {
	const length = sha256.BlockSize + len(ticketDomain) + sha256.Size + 2*8
	var buffer [length]byte
	b := append(buffer[:0], p.inner[:]...)
	b = append(b, ticketDomain...)
	b = append(b, session[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(arrival))
	b = binary.BigEndian.AppendUint64(b, uint64(issued))
	return p.finish(b)
}

// parse reads a ticket's text; nothing in it is believed yet. The outcome is Accepted, Oversized, Malformed or UnknownVersion.
func parse(text []byte) (arrival, issued int64, mac [sha256.Size]byte, o Outcome) {
	if len(text) > MaxBytes {
		return 0, 0, mac, Oversized
	}
	if len(text) < len(version) || string(text[:len(version)]) != version {
		if otherVersion(text) {
			return 0, 0, mac, UnknownVersion
		}
		return 0, 0, mac, Malformed
	}
	arrival, rest, ok := number(text[len(version):])
	if !ok {
		return 0, 0, mac, Malformed
	}
	if issued, rest, ok = number(rest); !ok || len(rest) != macChars {
		return 0, 0, mac, Malformed
	}
	if n, err := strict.Decode(mac[:], rest); err != nil || n != len(mac) {
		return 0, 0, mac, Malformed
	}
	return arrival, issued, mac, Accepted
}

// number reads a number in its one spelling and the dot behind it.
func number(text []byte) (value int64, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == '.':
			return value, text[i+1:], i == 1 || i > 1 && text[0] != '0'
		case i == maxDigits:
			return 0, nil, false
		case c >= '0' && c <= '9':
			value = value*36 + int64(c-'0')
		case c >= 'a' && c <= 'z':
			value = value*36 + int64(c-'a') + 10
		default:
			return 0, nil, false
		}
	}
	return 0, nil, false
}

// otherVersion reports whether a text that is not of this version begins with a number of one to three digits and a dot, as
// every version of the format does.
func otherVersion(text []byte) bool {
	for i := 0; i < len(text) && i < 4; i++ {
		switch c := text[i]; {
		case c == '.':
			return i > 0 && text[0] != '0'
		case c < '0' || c > '9':
			return false
		}
	}
	return false
}

// millis returns a time in milliseconds since the epoch, cut to what a ticket holds.
func millis(t time.Time) int64 {
	switch seconds := t.Unix(); { // UnixMilli is undefined far out, Unix is not
	case seconds < 0:
		return 0
	case seconds > maxMillis/1000:
		return maxMillis
	}
	return min(t.UnixMilli(), maxMillis)
}

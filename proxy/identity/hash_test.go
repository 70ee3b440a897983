package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"testing"
)

func TestI5_TheHashIsHMAC(t *testing.T) {
	for _, key := range []string{string(testKey), strings.Repeat("k", 64), strings.Repeat("long", 40)} {
		h := newHasher([]byte(key))
		m := hmac.New(sha256.New, []byte(key))
		m.Write([]byte("t\x00\x00\x00\x02ab\x00\x00\x00\x00\x00\x00\x00\x01c"))
		if got := h.sum(forToken, []byte("ab"), nil, []byte("c")); string(got[:]) != string(m.Sum(nil)[:16]) {
			t.Errorf("a key of %d bytes: another MAC than crypto/hmac", len(key))
		}
	}
}

func TestI5_HashesOfDifferentThingsDiffer(t *testing.T) {
	h := newHasher(testKey)
	a := h.sum(forToken, []byte("ab"), []byte("c"))
	if a == h.sum(forToken, []byte("a"), []byte("bc")) || a == h.sum(forToken, []byte("abc")) || a == h.sum(forCookie, []byte("ab"), []byte("c")) {
		t.Error("the purpose and the lengths of the parts must enter the hash")
	}
	if n := testing.AllocsPerRun(100, func() { h.sum(forToken, testKey) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

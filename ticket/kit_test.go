package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"regexp"
	"strconv"
	"time"
)

// testKey is 1, 2, ... 32.
var testKey = func() (k Key) {
	for i := range k {
		k[i] = byte(i + 1)
	}
	return k
}()

var (
	testSession = HashSession("user:ann", "store.example/images/5.iso", "id:7f3a")
	// testNow is the moment of issue in the tests, on a whole millisecond.
	testNow = time.Date(2026, 11, 30, 18, 0, 0, 123e6, time.UTC)
	// testArrival is the place in time that the tickets of the tests prove.
	testArrival = testNow.Add(-26 * time.Hour)
)

// issue returns the ticket of testSession that was issued so long before testNow.
func issue(age time.Duration) string {
	return string(NewSigner(testKey).Append(nil, testSession, testArrival, testNow.Add(-age)))
}

// slowMAC is the MAC of a ticket by crypto/hmac and the package documentation.
func slowMAC(key Key, session SessionHash, arrival, issued int64) []byte {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("arkvory/ticket/2"))
	h.Write([]byte{0})
	h.Write(session[:])
	binary.Write(h, binary.BigEndian, arrival)
	binary.Write(h, binary.BigEndian, issued)
	return h.Sum(nil)
}

// sealed is a text with a right MAC over the numbers that its spellings mean.
func sealed(arrivalText, issuedText string, arrival, issued int64) string {
	mac := slowMAC(testKey, testSession, arrival, issued)
	return "2." + arrivalText + "." + issuedText + "." + base64.RawURLEncoding.EncodeToString(mac)
}

func base10(n int) string { return strconv.Itoa(n) }

func base36(n int64) string { return strconv.FormatInt(n, 36) }

var (
	shape         = regexp.MustCompile(`\A2\.(0|[1-9a-z][0-9a-z]{0,8})\.(0|[1-9a-z][0-9a-z]{0,8})\.([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])\z`)
	otherVersions = regexp.MustCompile(`\A[1-9][0-9]{0,2}\.`)
)

// oracle judges a ticket from the package documentation, by a regular expression, big numbers and crypto/hmac.
func oracle(key Key, session SessionHash, text string, now time.Time) (arrival int64, o Outcome) {
	match := shape.FindStringSubmatch(text)
	switch {
	case len(text) > 65:
		return 0, Oversized
	case match == nil && !otherVersions.MatchString(text), match == nil && len(text) > 1 && text[:2] == "2.":
		return 0, Malformed
	case match == nil:
		return 0, UnknownVersion
	}
	a, _ := new(big.Int).SetString(match[1], 36)
	i, _ := new(big.Int).SetString(match[2], 36)
	mac, err := base64.RawURLEncoding.DecodeString(match[3])
	if err != nil || !hmac.Equal(mac, slowMAC(key, session, a.Int64(), i.Int64())) {
		return 0, BadMAC
	}
	nanos := new(big.Int).Add(new(big.Int).Mul(big.NewInt(now.Unix()), big.NewInt(1e9)), big.NewInt(int64(now.Nanosecond())))
	age := nanos.Sub(nanos, new(big.Int).Mul(i, big.NewInt(1e6)))
	switch {
	case a.Cmp(i) > 0:
		return 0, ArrivalAfterIssue
	case age.Cmp(big.NewInt(-120e9)) < 0:
		return 0, Future
	case age.Cmp(big.NewInt(900e9)) > 0:
		return 0, Expired
	}
	return a.Int64(), Accepted
}

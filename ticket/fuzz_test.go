package ticket

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// FuzzVerify holds Verify to the oracle and to one spelling: what is accepted is what Append writes for the times that come back. As
// nobody guesses a MAC, each text is tried a second time with the right MAC for what its numbers could be taken to mean.
func FuzzVerify(f *testing.F) {
	a, i := testArrival.UnixMilli(), testNow.UnixMilli()
	for _, text := range []string{
		issue(0), issue(Validity), issue(-Ahead), issue(Validity + time.Millisecond), issue(-Ahead - time.Millisecond), "", "2.", "1.x", "2...", "127.0",
		sealed(base36(i+1), base36(i), i+1, i), sealed("0", "0", 0, 0), sealed("0"+base36(a), base36(i), a, i), sealed("+1", base36(i), 1, i),
		sealed(strings.ToUpper(base36(a)), base36(i), a, i), issue(0) + "\n", issue(0)[:62] + "\n", strings.Repeat("z", 70), "2.zzzzzzzzz.zzzzzzzzz." + strings.Repeat("A", 43),
	} {
		f.Add([]byte(text), int64(0))
	}
	signer := NewSigner(testKey)
	f.Fuzz(func(t *testing.T, text []byte, later int64) {
		now := testNow.Add(time.Duration(later))
		check(t, signer, text, now)
		// Everything up to the last dot is kept as it is spelt.
		dot := bytes.LastIndexByte(text, '.')
		if dot < 0 {
			return
		}
		parts := strings.Split(string(text[:dot]), ".")
		arrival, issued := loose(parts, 1), loose(parts, 2)
		mac := slowMAC(testKey, testSession, arrival, issued)
		resealed := base64.RawURLEncoding.AppendEncode(append([]byte(nil), text[:dot+1]...), mac)
		check(t, signer, resealed, now)
		// And as another process would write it, at a now near its issue.
		near := time.UnixMilli(issued).Add(time.Duration(later) % time.Hour)
		check(t, signer, resealed, near)
	})
}

// loose reads a number in every spelling that a careless parser might take.
func loose(parts []string, n int) int64 {
	if n >= len(parts) {
		return 0
	}
	var value int64
	for _, c := range strings.ToLower(parts[n]) {
		switch {
		case c >= '0' && c <= '9':
			value = value*36 + int64(c-'0')
		case c >= 'a' && c <= 'z':
			value = value*36 + int64(c-'a') + 10
		}
	}
	return value
}

func check(t *testing.T, signer *Signer, text []byte, now time.Time) {
	t.Helper()
	before := bytes.Clone(text)
	arrival, issued, o := signer.Verify(text, testSession, now)
	if !bytes.Equal(text, before) {
		t.Fatalf("%q was changed to %q", before, text)
	}
	if wantArrival, want := oracle(testKey, testSession, string(text), now); o != want || o == Accepted && arrival.UnixMilli() != wantArrival {
		t.Fatalf("%q at %v: %v, arrival %v, want %v", text, now, o, arrival, want)
	}
	if o != Accepted {
		if !arrival.IsZero() || !issued.IsZero() {
			t.Fatalf("%q: %v with times", text, o)
		}
		return
	}
	if arrival.After(issued) || now.Sub(issued) > Validity || issued.Sub(now) > Ahead {
		t.Fatalf("%q at %v: accepted with arrival %v, issued %v", text, now, arrival, issued)
	}
	if same := signer.Append(nil, testSession, arrival, issued); !bytes.Equal(same, text) {
		t.Fatalf("%q is accepted, and signed as %q", text, same)
	}
	other := testSession
	other[0] ^= 1
	if _, _, o := signer.Verify(text, other, now); o != BadMAC {
		t.Fatalf("%q is %v for another session", text, o)
	}
}

// FuzzRoundTrip signs any times for any session: what comes back is the arrival, cut to the range and to the issue, unless the ticket is out of
// time; and a renewal does not move it.
func FuzzRoundTrip(f *testing.F) {
	n := testNow.UnixNano()
	f.Add("ann", "object", testArrival.Unix(), int64(1), testNow.Unix(), int64(2), n)
	f.Add("", "", int64(0), int64(0), int64(0), int64(0), int64(0))
	f.Add("a", "b", int64(-1<<62), int64(-1), int64(1<<62), int64(1<<62), int64(1<<62))
	f.Add("a", "b", int64(maxMillis/1000), int64(999_999_999), int64(maxMillis/1000), int64(999_999_999), int64(1))
	f.Add("a", "b", testNow.Unix()+1, int64(0), testNow.Unix(), int64(0), n+int64(Validity))
	f.Fuzz(func(t *testing.T, principal, object string, arrivalSeconds, arrivalNanos, issuedSeconds, issuedNanos, late int64) {
		signer, session := NewSigner(testKey), HashSession(principal, object)
		arrival, issued := time.Unix(arrivalSeconds, arrivalNanos%1e9), time.Unix(issuedSeconds, issuedNanos%1e9)
		text := signer.Append(nil, session, arrival, issued)
		if len(text) > MaxBytes {
			t.Fatalf("%q is longer than MaxBytes", text)
		}
		cut := clamp(issued)
		want := clamp(arrival)
		if want.After(cut) {
			want = cut
		}
		now := cut.Add(time.Duration(late) % (2 * Validity))
		gotArrival, gotIssued, o := signer.Verify(text, session, now)
		switch age := now.Sub(cut); {
		case age > Validity:
			if o != Expired {
				t.Fatalf("%q %v after its issue: %v", text, age, o)
			}
			return
		case age < -Ahead:
			if o != Future {
				t.Fatalf("%q %v after its issue: %v", text, age, o)
			}
			return
		}
		if o != Accepted || !gotArrival.Equal(want) || !gotIssued.Equal(cut) {
			t.Fatalf("%q: %v, arrival %v, issued %v; want %v, %v", text, o, gotArrival, gotIssued, want, cut)
		}
		renewed := signer.Append(nil, session, gotArrival, now)
		second, _, o := signer.Verify(renewed, session, now)
		if o != Accepted || second.After(gotArrival) || now.After(cut) && !second.Equal(gotArrival) {
			t.Fatalf("%q renewed: %v, arrival %v, was %v", renewed, o, second, gotArrival)
		}
		if _, _, o := signer.Verify(text, HashSession(principal+object, ""), now); object != "" && o != BadMAC {
			t.Fatalf("%q is %v for other parts of the same text", text, o)
		}
	})
}

// clamp cuts a time to milliseconds within the format's range, by comparing times and not numbers.
func clamp(t time.Time) time.Time {
	first, last := time.UnixMilli(0), time.UnixMilli(maxMillis)
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t.Truncate(time.Millisecond)
}

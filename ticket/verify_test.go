package ticket

import (
	"strings"
	"testing"
	"time"
)

// attempt is one row of the table: what a client brings, and what becomes of it.
type attempt struct {
	what    string
	text    string
	signer  *Signer       // of testKey when nil
	session *SessionHash  // testSession when nil
	later   time.Duration // now, from testNow
	want    Outcome
}

func (a attempt) verify() (arrival, issued time.Time, o Outcome) {
	signer, session := a.signer, a.session
	if signer == nil {
		signer = NewSigner(testKey)
	}
	if session == nil {
		session = &testSession
	}
	return signer.Verify([]byte(a.text), *session, testNow.Add(a.later))
}

// printable keeps odd bytes of a ticket visible in the table.
func printable(text string) string {
	if text == "" {
		return "(empty)"
	}
	if len(text) > 90 {
		return text[:60] + "... (" + base10(len(text)) + " bytes)"
	}
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`, "\x00", `\0`, " ", "␠").Replace(text)
}

// judge runs a table and prints it. Times must be there with Accepted and only with it.
func judge(t *testing.T, table []attempt) {
	t.Helper()
	for _, a := range table {
		arrival, issued, got := a.verify()
		t.Logf("%-19s %-48s %s", got, a.what, printable(a.text))
		if got != a.want {
			t.Errorf("%s: %v, want %v", a.what, got, a.want)
		}
		if accepted := got == Accepted; accepted == arrival.IsZero() || accepted == issued.IsZero() {
			t.Errorf("%s: %v with arrival %v, issued %v", a.what, got, arrival, issued)
		}
		if got == Accepted && !arrival.Equal(testArrival) {
			t.Errorf("%s: arrival %v, want %v", a.what, arrival, testArrival)
		}
	}
}

// TestT2_TableOfRefusals: forged, moved, shifted, expired, future, truncated and odd tickets are told apart and never accepted; run it
// with -v for the table.
func TestT2_TableOfRefusals(t *testing.T) {
	good := issue(0)
	parts := strings.Split(good, ".")
	a, i, mac := testArrival.UnixMilli(), testNow.UnixMilli(), parts[3]
	spell := func(arrival, issued, mac string) string { return "2." + arrival + "." + issued + "." + mac }
	otherKey := testKey
	otherKey[31] ^= 1
	sessions := []SessionHash{
		HashSession("user:bob", "store.example/images/5.iso", "id:7f3a"),
		HashSession("user:ann", "store.example/images/6.iso", "id:7f3a"),
		HashSession("user:ann", "store.example/images/5.iso", "id:7f3b"),
	}
	judge(t, []attempt{
		{what: "genuine", text: good, want: Accepted},
		{what: "replayed: the same ticket a minute later", text: good, later: time.Minute, want: Accepted},
		{what: "forged: a MAC of zeros", text: spell(parts[1], parts[2], strings.Repeat("A", 43)), want: BadMAC},
		{what: "forged: signed with another key", text: string(NewSigner(otherKey).Append(nil, testSession, testArrival, testNow)), want: BadMAC},
		{what: "the key was rotated", text: good, signer: NewSigner(otherKey), want: BadMAC},
		{what: "moved to another principal", text: good, session: &sessions[0], want: BadMAC},
		{what: "moved to another object", text: good, session: &sessions[1], want: BadMAC},
		{what: "moved to another download id", text: good, session: &sessions[2], want: BadMAC},
		{what: "shifted: arrival 1 ms earlier", text: spell(base36(a-1), parts[2], mac), want: BadMAC},
		{what: "shifted: arrival at the epoch", text: spell("0", parts[2], mac), want: BadMAC},
		{what: "renewed: issue 1 ms later", text: spell(parts[1], base36(i+1), mac), want: BadMAC},
		{what: "times exchanged", text: spell(parts[2], parts[1], mac), want: BadMAC},
		{what: "just not expired: 15 min", text: good, later: Validity, want: Accepted},
		{what: "expired: 1 ns over 15 min", text: good, later: Validity + 1, want: Expired},
		{what: "expired: a year", text: good, later: 365 * 24 * time.Hour, want: Expired},
		{what: "expired and forged: says nothing of the time", text: good, session: &sessions[0], later: time.Hour, want: BadMAC},
		{what: "ahead: just within 2 min", text: good, later: -Ahead, want: Accepted},
		{what: "future: 1 ns over 2 min ahead", text: good, later: -Ahead - 1, want: Future},
		{what: "future: clock set back a year", text: good, later: -365 * 24 * time.Hour, want: Future},
		{what: "future and forged: says nothing of the time", text: good, session: &sessions[0], later: -time.Hour, want: BadMAC},
		{what: "arrival 1 ms after issue, genuine MAC", text: sealed(base36(i+1), base36(i), i+1, i), want: ArrivalAfterIssue},
		{what: "arrival after issue, and expired", text: sealed(base36(i+1), base36(i), i+1, i), later: time.Hour, want: ArrivalAfterIssue},
		{what: "version 1", text: "1" + good[1:], want: UnknownVersion},
		{what: "version 1 as it was, shorter", text: "1.mh8x2k1s.aGVsbG8", want: UnknownVersion},
		{what: "version 3", text: "3" + good[1:], want: UnknownVersion},
		{what: "version 127", text: "127.x", want: UnknownVersion},
		{what: "version 0", text: "0" + good[1:], want: Malformed},
		{what: "version 02", text: "0" + good, want: Malformed},
		{what: "oversized by one byte", text: good + strings.Repeat("A", MaxBytes+1-len(good)), want: Oversized},
		{what: "oversized: 8 KiB", text: strings.Repeat("2.", 4096), want: Oversized},
		{what: "oversized: 1 MiB of another version", text: "3." + strings.Repeat("z", 1<<20), want: Oversized},
		{what: "empty", text: "", want: Malformed},
		{what: "dots", text: "2...", want: Malformed},
	})
}

// TestT2_OddSpellings: one ticket has one spelling. The MACs are right for what the spellings mean.
func TestT2_OddSpellings(t *testing.T) {
	good := issue(0)
	a, i := testArrival.UnixMilli(), testNow.UnixMilli()
	at, it := base36(a), base36(i)
	head, mac := good[:len(good)-43], good[len(good)-43:]
	last := mac[42]
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	trailing := alphabet[strings.IndexByte(alphabet, last)^1 : strings.IndexByte(alphabet, last)^1+1]
	table := []attempt{
		{what: "as signed", text: sealed(at, it, a, i), want: Accepted},
		{what: "leading zero of arrival", text: sealed("0"+at, it, a, i), want: Malformed},
		{what: "leading zero of issue", text: sealed(at, "0"+it, a, i), want: Malformed},
		{what: "arrival 00", text: sealed("00", it, 0, i), want: Malformed},
		{what: "plus sign", text: sealed("+"+at, it, a, i), want: Malformed},
		{what: "minus sign", text: sealed("-1", it, -1, i), want: Malformed},
		{what: "minus zero", text: sealed("-0", it, 0, i), want: Malformed},
		{what: "upper case arrival", text: sealed(strings.ToUpper(at), it, a, i), want: Malformed},
		{what: "upper case issue", text: sealed(at, strings.ToUpper(it), a, i), want: Malformed},
		{what: "underscore in a number", text: sealed(at[:2]+"_"+at[2:], it, a, i), want: Malformed},
		{what: "empty arrival", text: sealed("", it, 0, i), want: Malformed},
		{what: "empty issue", text: sealed("0", "", 0, 0), want: Malformed},
		{what: "ten digits", text: sealed("0", "1000000000", 0, maxMillis+1), want: Malformed},
		{what: "ten digits and a dot missing", text: "2." + strings.Repeat("z", 60), want: Malformed},
		{what: "space before", text: " " + good, want: Malformed},
		{what: "space after", text: good + " ", want: Malformed},
		{what: "line break after", text: good + "\n", want: Malformed},
		{what: "line break for the last character", text: good[:len(good)-1] + "\n", want: Malformed},
		{what: "line break within the MAC", text: head + mac[:20] + "\n" + mac[20:], want: Malformed},
		{what: "line break within the MAC, same length", text: head + mac[:20] + "\n" + mac[20:42], want: Malformed},
		{what: "line break within a MAC of zeros", text: head + strings.Repeat("A", 20) + "\n" + strings.Repeat("A", 22), want: Malformed},
		{what: "NUL after", text: good + "\x00", want: Malformed},
		{what: "padding", text: good + "=", want: Malformed},
		{what: "padding for the last character", text: good[:len(good)-1] + "=", want: Malformed},
		{what: "trailing bits of the MAC set", text: good[:len(good)-1] + trailing, want: Malformed},
		{what: "standard alphabet of base64", text: head + "+/" + mac[2:], want: Malformed},
		{what: "MAC one character short", text: good[:len(good)-1], want: Malformed},
		{what: "MAC cut to 16 bytes", text: head + mac[:22], want: Malformed},
		{what: "no MAC", text: strings.TrimSuffix(head, "."), want: Malformed},
		{what: "a fifth part", text: good + ".x", want: Malformed},
		{what: "quoted", text: `"` + good + `"`, want: Malformed},
	}
	judge(t, table)
}

// TestT2_Truncated: no beginning and no end of a ticket is one.
func TestT2_Truncated(t *testing.T) {
	good := issue(0)
	var table []attempt
	for n := range good {
		table = append(table, attempt{what: "first " + base10(n) + " bytes", text: good[:n], want: Malformed})
	}
	judge(t, table)
	for n := 1; n < len(good); n++ {
		if _, _, o := (attempt{text: good[n:]}).verify(); o == Accepted {
			t.Errorf("the last %d bytes are accepted", len(good)-n)
		}
	}
}

// TestT2_EveryBitFlipIsRefused also holds the outcomes to those of the oracle.
func TestT2_EveryBitFlipIsRefused(t *testing.T) {
	good := []byte(issue(time.Minute))
	var seen [Outcomes]int
	for bit := range len(good) * 8 {
		text := append([]byte(nil), good...)
		text[bit/8] ^= 1 << (bit % 8)
		_, _, got := NewSigner(testKey).Verify(text, testSession, testNow)
		if _, want := oracle(testKey, testSession, string(text), testNow); got != want || got == Accepted {
			t.Errorf("bit %d: %q is %v, want %v", bit, text, got, want)
		}
		seen[got]++
	}
	for o, n := range seen {
		t.Logf("%-19s %4d of %d flipped bits", Outcome(o), n, len(good)*8)
	}
	if seen[Malformed] == 0 || seen[BadMAC] == 0 || seen[UnknownVersion] == 0 {
		t.Error("the flips do not reach what they should")
	}
	for bit := range len(testSession) * 8 {
		session := testSession
		session[bit/8] ^= 1 << (bit % 8)
		key := testKey
		key[bit/8] ^= 1 << (bit % 8)
		if _, _, o := NewSigner(testKey).Verify(good, session, testNow); o != BadMAC {
			t.Errorf("bit %d of the session: %v", bit, o)
		}
		if _, _, o := NewSigner(key).Verify(good, testSession, testNow); o != BadMAC {
			t.Errorf("bit %d of the key: %v", bit, o)
		}
	}
}

// TestT2_NoReplayToAnEarlierTime: a client that keeps every ticket it ever got can prove its arrival and nothing earlier,
// and renewals through many processes do not move it.
func TestT2_NoReplayToAnEarlierTime(t *testing.T) {
	// Not on a millisecond: the first signing cuts it, no later one moves it again.
	arrived := testArrival.Add(999_999 * time.Nanosecond)
	now := arrived
	text := NewSigner(testKey).Append(nil, testSession, arrived, now)
	var kept [][]byte
	for hop := range 200 {
		kept = append(kept, text)
		now = now.Add(14*time.Minute + 59*time.Second + time.Duration(hop)*1237*time.Microsecond)
		signer := NewSigner(testKey) // another process
		arrival, _, o := signer.Verify(text, testSession, now)
		if o != Accepted || !arrival.Equal(testArrival) {
			t.Fatalf("hop %d: %v, arrival %v, want %v", hop, o, arrival, testArrival)
		}
		text = signer.Append(nil, testSession, arrival, now)
	}
	if waited := now.Sub(arrived); waited < 48*time.Hour {
		t.Fatalf("waited only %v", waited)
	}
	accepted := 0
	for _, old := range kept {
		for range 2 {
			arrival, _, o := NewSigner(testKey).Verify(old, testSession, now)
			switch {
			case o == Accepted && arrival.Equal(testArrival):
				accepted++
			case o != Expired:
				t.Errorf("%s: %v, arrival %v", old, o, arrival)
			}
		}
	}
	if accepted > 2 {
		t.Errorf("%d old tickets are still good", accepted)
	}
}

// TestT2_OutcomeNames: the labels are a closed set of distinct words.
func TestT2_OutcomeNames(t *testing.T) {
	want := "accepted malformed oversized unknown_version bad_mac expired future arrival_after_issue"
	var names []string
	for o := range Outcomes {
		names = append(names, Outcome(o).String())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Outcome(Outcomes).String(); got != "invalid" {
		t.Errorf("no outcome is %q", got)
	}
}

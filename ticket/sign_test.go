package ticket

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestT1_BytesOfATicket pins the format: tickets of one version of the program must be good in the next.
func TestT1_BytesOfATicket(t *testing.T) {
	const want = "2.mx20z5vf.mx3kpc3f.-Aou-WpPhyicKDtBxsmMlLtyJlHEOwWheI1XuAGmZ-A"
	if got := issue(0); got != want {
		t.Errorf("ticket %s, want %s", got, want)
	}
	if got := sealed(base36(testArrival.UnixMilli()), base36(testNow.UnixMilli()), testArrival.UnixMilli(), testNow.UnixMilli()); got != want {
		t.Errorf("by crypto/hmac %s, want %s", got, want)
	}
}

// TestT1_RejoinsAtItsArrival: a ticket brings back the arrival that it was issued with.
func TestT1_RejoinsAtItsArrival(t *testing.T) {
	arrival, issued, o := NewSigner(testKey).Verify([]byte(issue(0)), testSession, testNow.Add(time.Second))
	if o != Accepted || !arrival.Equal(testArrival) || !issued.Equal(testNow) {
		t.Errorf("%v, arrival %v, issued %v", o, arrival, issued)
	}
}

// TestT1_TimesThatAreSigned: cut to milliseconds and to the range of the format, an arrival at most the issue.
func TestT1_TimesThatAreSigned(t *testing.T) {
	ms := func(n int64) time.Time { return time.UnixMilli(n) }
	for _, one := range []struct {
		what            string
		arrival, issued time.Time
		a, i            int64
	}{
		{"epoch", ms(0), ms(0), 0, 0},
		{"within a millisecond", ms(5).Add(999_999), ms(6).Add(1), 5, 6},
		{"arrival later than issue", ms(7), ms(6), 6, 6},
		{"arrival a year later than issue", testNow.AddDate(1, 0, 0), ms(1234), 1234, 1234},
		{"arrival before the epoch", ms(-1), ms(6), 0, 6},
		{"both before the epoch", ms(-10), ms(-5), 0, 0},
		{"zero time", time.Time{}, time.Time{}, 0, 0},
		{"the last time", ms(maxMillis), ms(maxMillis), maxMillis, maxMillis},
		{"after the last time", ms(maxMillis + 1), ms(maxMillis + 2), maxMillis, maxMillis},
		{"last second", ms(0), ms(maxMillis).Add(time.Second), 0, maxMillis},
		{"far out", time.Unix(-1<<55, 0), time.Unix(1<<55, 0), 0, maxMillis},
		{"another zone", time.UnixMilli(99).In(time.FixedZone("x", 3600)), ms(100), 99, 100},
	} {
		text := string(NewSigner(testKey).Append(nil, testSession, one.arrival, one.issued))
		if want := sealed(base36(one.a), base36(one.i), one.a, one.i); text != want {
			t.Errorf("%s: %s, want %s", one.what, text, want)
		}
		arrival, issued, o := NewSigner(testKey).Verify([]byte(text), testSession, time.UnixMilli(one.i))
		if o != Accepted || arrival.UnixMilli() != one.a || issued.UnixMilli() != one.i {
			t.Errorf("%s: %v, arrival %v, issued %v", one.what, o, arrival, issued)
		}
	}
}

// TestT1_MaxBytes is the length of the longest ticket, which is accepted.
func TestT1_MaxBytes(t *testing.T) {
	end := time.UnixMilli(maxMillis)
	text := NewSigner(testKey).Append(nil, testSession, end, end)
	if len(text) != MaxBytes || MaxBytes != 65 {
		t.Errorf("%d bytes, MaxBytes %d", len(text), MaxBytes)
	}
	if _, _, o := NewSigner(testKey).Verify(text, testSession, end); o != Accepted {
		t.Error(o)
	}
}

// TestT1_AppendKeepsWhatIsThere and writes into the capacity it finds.
func TestT1_AppendKeepsWhatIsThere(t *testing.T) {
	dst := append(make([]byte, 0, 200), "before "...)
	got := NewSigner(testKey).Append(dst, testSession, testArrival, testNow)
	if string(got) != "before "+issue(0) || &got[0] != &dst[0] {
		t.Errorf("%s", got)
	}
}

// TestT1_SessionHashOfParts: no two lists of parts give one hash, however their texts are cut.
func TestT1_SessionHashOfParts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	lists := [][]string{
		nil, {""}, {"", ""}, {"", "", ""}, {"a"}, {"", "a"}, {"a", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a\x00b"}, {"a", "", "b"},
		{"\x00\x00\x00\x00\x00\x00\x00\x00"}, {"\x00\x00\x00\x00\x00\x00\x00\x01a"}, {long}, {long[1:], "x"}, {"x", long[1:]}, {long, ""}, {long + "x"},
	}
	seen := map[SessionHash][]string{}
	for _, parts := range lists {
		hash := HashSession(parts...)
		if other, dup := seen[hash]; dup {
			t.Errorf("%q and %q give one hash", parts, other)
		}
		if hash != HashSession(append([]string(nil), parts...)...) {
			t.Errorf("%q gives two hashes", parts)
		}
		seen[hash] = parts
	}
}

// TestT1_NoAllocations on the hot path, whatever the outcome.
func TestT1_NoAllocations(t *testing.T) {
	signer := NewSigner(testKey)
	dst := make([]byte, 0, MaxBytes)
	free := func(what string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
	free("Append", func() { dst = signer.Append(dst[:0], testSession, testArrival, testNow) })
	long := strings.Repeat("p", 280)
	free("HashSession", func() { HashSession(long, long, long) })
	i := testNow.UnixMilli()
	good := issue(0)
	var reached [Outcomes]bool
	for _, one := range []struct {
		text  string
		later time.Duration
	}{
		{good, 0}, {good, time.Hour}, {good, -time.Hour}, {"", 0}, {"1.x", 0}, {good[:len(good)-1], 0}, {good[:30] + "\n" + good[31:], 0}, {good[:len(good)-2] + "\xff\xff", 0},
		{strings.Repeat("x", 1000), 0}, {"2.1." + good[len(good)-45:], 0}, {sealed(base36(i+1), base36(i), i+1, i), 0},
		{sealed("0", base36(i), 1, i), 0},
	} {
		text, now := []byte(one.text), testNow.Add(one.later)
		_, _, o := signer.Verify(text, testSession, now)
		reached[o] = true
		free("Verify: "+o.String(), func() { signer.Verify(text, testSession, now) })
	}
	for o, done := range reached {
		if !done {
			t.Errorf("no case is %v", Outcome(o))
		}
	}
}

// TestT1_ConcurrentUse of one signer, for the race detector.
func TestT1_ConcurrentUse(t *testing.T) {
	signer := NewSigner(testKey)
	want := []byte(issue(0))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				got := signer.Append(nil, testSession, testArrival, testNow)
				if _, _, o := signer.Verify(got, testSession, testNow); o != Accepted || !bytes.Equal(got, want) {
					t.Errorf("%v %s", o, got)
				}
				signer.Derive("purpose")
			}
		})
	}
	group.Wait()
}

func BenchmarkT1_Append(b *testing.B) {
	signer, dst := NewSigner(testKey), make([]byte, 0, MaxBytes)
	for b.Loop() {
		dst = signer.Append(dst[:0], testSession, testArrival, testNow)
	}
}

func BenchmarkT1_Verify(b *testing.B) {
	signer, text := NewSigner(testKey), []byte(issue(0))
	for b.Loop() {
		if _, _, o := signer.Verify(text, testSession, testNow); o != Accepted {
			b.Fatal(o)
		}
	}
}

func BenchmarkT1_HashSession(b *testing.B) {
	for b.Loop() {
		HashSession("user:ann", "store.example/images/5.iso", "id:7f3a")
	}
}

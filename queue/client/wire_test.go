package client

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestC3_ContentRangeIsReadStrictly: anything looser could put bytes at the wrong place.
func TestC3_ContentRangeIsReadStrictly(t *testing.T) {
	for in, want := range map[string]contentRange{
		"bytes 0-0/1":  {0, 1, 1},
		"bytes 5-9/10": {5, 10, 10},
		"bytes 5-9/*":  {5, 10, -1},
		"bytes 0-4611686018427387903/4611686018427387904": {0, 1 << 62, 1 << 62},
	} {
		if got, ok := parseContentRange(in); !ok || got != want {
			t.Errorf("%q: %v %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "bytes", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-9/+10", "bytes -1-9/10", "bytes 0-9", "bytes  0-9/10", "Bytes 0-9/10",
		"items 0-9/10", "bytes 0-9/10 ", "bytes 0-9/", "bytes 0x0-9/10", "bytes 0-9223372036854775807/*", "bytes 0-9/99999999999999999999"} {
		if got, ok := parseContentRange(in); ok {
			t.Errorf("%q is read as %v", in, got)
		}
	}
}

// TestC3_Validators tables which of them may join parts (RFC 9110 sections 8.8.1 and 8.8.2.2).
func TestC3_Validators(t *testing.T) {
	modified := "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, one := range []struct{ etag, modified, date, want string }{
		{`"a"`, "", "", `"a"`},
		{`"a"`, modified, "Mon, 02 Jan 2006 16:04:05 GMT", `"a"`},
		{`W/"a"`, modified, "Mon, 02 Jan 2006 16:04:05 GMT", ""},
		{`a`, modified, "Mon, 02 Jan 2006 16:04:05 GMT", ""},
		{`"a" "b"`, "", "", ""},
		{`"` + strings.Repeat("a", maxValidator) + `"`, "", "", ""},
		{"", modified, "Mon, 02 Jan 2006 15:05:05 GMT", modified},
		{"", modified, "Mon, 02 Jan 2006 15:05:04 GMT", ""},
		{"", modified, "Mon, 02 Jan 2006 14:05:04 GMT", ""},
		{"", modified, "", ""},
		{"", "yesterday", "Mon, 02 Jan 2006 15:05:05 GMT", ""},
		{"", "", "", ""},
	} {
		h := http.Header{}
		for name, value := range map[string]string{"ETag": one.etag, "Last-Modified": one.modified, "Date": one.date} {
			if value != "" {
				h.Set(name, value)
			}
		}
		rep := readRepresentation(h)
		if got := rep.validator(); got != one.want {
			t.Errorf("%+v: %q", one, got)
		}
		if one.want != "" && !rep.same(h) {
			t.Errorf("%+v is not the same as itself", one)
		}
	}
}

// TestC3_SpansAgainstASlowSet compares the set of spans with a set of bytes.
func TestC3_SpansAgainstASlowSet(t *testing.T) {
	const size = 40
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s spans
		var slow [size]bool
		for range random.IntN(12) {
			from := random.Int64N(size)
			x := span{from, from + random.Int64N(size-from+1)}
			before := slices.Clone(s)
			next := s.add(x)
			if !slices.Equal(before, s) {
				t.Fatal("add changed its receiver")
			}
			s = next
			for i := x.from; i < x.to; i++ {
				slow[i] = true
			}
		}
		limit := random.Int64N(size + 1)
		var sum int64
		gap, found := span{}, false
		for i := range int64(size) {
			if slow[i] {
				sum++
			}
			if i < limit && !slow[i] && (!found || gap.to == i) {
				if !found {
					gap.from = i
				}
				gap.to, found = i+1, true
			}
		}
		if got, ok := s.gap(limit); ok != found || found && got != gap {
			t.Fatalf("%v below %d: gap %v %v, want %v %v", s, limit, got, ok, gap, found)
		}
		if s.sum() != sum || !slices.IsSortedFunc(s, func(a, b span) int { return int(a.to - b.from) }) {
			t.Fatalf("%v: sum %d, want %d", s, s.sum(), sum)
		}
		clipped := s.clip(limit)
		for _, one := range clipped {
			if one.to > limit || one.from >= one.to {
				t.Fatalf("%v clipped at %d is %v", s, limit, clipped)
			}
		}
	}
}

// TestC1_SecretsAreCutFromTexts of others, whatever form they come in.
func TestC1_SecretsAreCutFromTexts(t *testing.T) {
	u, err := url.Parse("https://me:pass%20word9@h.test/f?token=s3cr3t%2Fvalue&v=1")
	if err != nil {
		t.Fatal(err)
	}
	s := newScrubber(u, http.Header{"Authorization": {"Bearer abcdef"}})
	for _, text := range []string{`Get "https://me:pass%20word9@h.test/f?token=s3cr3t%2Fvalue&v=1": EOF`, "pass word9", "s3cr3t/value", "s3cr3t%2Fvalue", "bad abcdef here",
		`parse "http://other:pw12@x.test/?sig=zzz999": no`, "ticket 2.aaaa.bb"} {
		got := s.clean(text, "2.aaaa.bb")
		for _, secret := range []string{"word9", "s3cr3t", "abcdef", "zzz999", "pw12", "2.aaaa"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
	if got := s.clean("version v=1 is fine"); got != "version v=1 is fine" {
		t.Errorf("%q", got)
	}
}

// FuzzHeaders reads any fields and body of a refusal: what comes out is within bounds and can be sent back.
func FuzzHeaders(f *testing.F) {
	f.Add("60", "", "1", "2026-11-30T18:00:00Z", "2026-11-30T18:00:00Z/2026-11-30T19:00:00Z", "2.a.b.c", "bulk", "bytes 0-9/10", `"a"`, `{"error":"busy","retryAfterSeconds":-5}`)
	f.Add("Mon, 02 Jan 2006 15:04:05 GMT", "Mon, 02 Jan 2006 15:04:06 GMT", "0", "x", "/", "a b", "VIP", "bytes 9-0/1", `W/"`, "[]")
	f.Add("99999999999999999999999", "x", "-1", "", "a/b/c", strings.Repeat("t", 600), "", "bytes */1", "", `{"startsWindow":{"earliest":"2026-11-30T18:00:00Z"}}`)
	f.Fuzz(func(t *testing.T, retry, date, position, starts, window, ticket, class, contents, etag, text string) {
		h := http.Header{"Retry-After": {retry}, "Date": {date}, fieldPosition: {position}, fieldStarts: {starts}, fieldWindow: {window},
			fieldTicket: {ticket}, fieldClass: {class}, "Etag": {etag}, "Content-Type": {"application/json"}}
		got := readFacts(h, time.Unix(1<<30, 0))
		got.addBody(h, strings.NewReader(text))
		if got.wait < 0 || got.wait > longestWait || !got.told && got.wait != 0 {
			t.Errorf("waits %v", got.wait)
		}
		if got.position < 0 || got.position > maxPosition || len(got.ticket) > maxTicket || len(got.class) > 32 || len(got.message) > maxMessage+3 {
			t.Errorf("%+v", got)
		}
		if got.latest.Before(got.earliest) || strings.ContainsAny(got.ticket+got.class, " \r\n\x00") || strings.ContainsAny(got.message, "\r\n\x00\x1b") {
			t.Errorf("%+v", got)
		}
		if c, ok := parseContentRange(contents); ok {
			again := fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, c.total)
			if c.total < 0 {
				again = fmt.Sprintf("bytes %d-%d/*", c.from, c.to-1)
			}
			if c.from < 0 || c.to <= c.from || c.total >= 0 && c.to > c.total {
				t.Errorf("%q is read as %+v", contents, c)
			}
			if twice, ok := parseContentRange(again); !ok || twice != c {
				t.Errorf("%q, again %q: %+v", contents, again, twice)
			}
		}
		if v := readRepresentation(h).validator(); v != "" && (v != etag || strings.HasPrefix(v, "W/") || strings.ContainsAny(v, " \r\n")) {
			t.Errorf("validator %q of %q", v, etag)
		}
	})
}

// FuzzCheckpoint reads any file: what is accepted is what encode writes, byte for byte after one turn.
func FuzzCheckpoint(f *testing.F) {
	for _, c := range []checkpoint{
		{URL: "http://h/p", ID: "a", Size: -1, Done: [][2]int64{}},
		{URL: "http://h/p", ID: "a.b", Ticket: "2.a.b.c", TicketAt: time.Unix(5, 0).UTC(), TicketFrom: "http://h:80", Class: "bulk", Size: 100, ETag: `"x"`, Done: [][2]int64{{0, 10}, {20, 100}}},
		{URL: "http://h/p", ID: "a", Size: 10, Modified: "x", Done: [][2]int64{{0, 10}}, SHA256: sha(nil)},
	} {
		data, err := c.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		if _, err := decodeCheckpoint(data); err != nil {
			f.Fatalf("%s: %v", data, err)
		}
		f.Add(bytes.ReplaceAll(data, []byte("10"), []byte("11")))
		f.Add(data[:len(data)/2])
		// The state alone, to be put under a right sum.
		f.Add(data[bytes.Index(data, []byte(`"state":`))+8 : bytes.LastIndex(data, []byte(`,"sum"`))])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := [][]byte{data}
		if bytes.HasPrefix(data, []byte("{")) { // past the sum, which mutations never meet
			files = append(files, fmt.Appendf(nil, `{"version":1,"state":%s,"sum":%q}`, data, stateSum(data)))
		}
		for _, file := range files {
			c, err := decodeCheckpoint(file)
			if err != nil {
				continue
			}
			var end int64
			for _, one := range c.Done {
				if one[0] < end || one[1] <= one[0] || one[1] > c.Size {
					t.Fatalf("accepted %+v", c)
				}
				end = one[1]
			}
			if len(c.Done) > 0 && c.representation().validator() == "" && c.done().sum() != c.Size {
				t.Fatalf("bytes without a validator: %+v", c)
			}
			again, err := c.encode()
			if err != nil {
				t.Fatal(err)
			}
			twice, err := decodeCheckpoint(again)
			if err != nil {
				t.Fatalf("%s: %v", again, err)
			}
			if final, err := twice.encode(); err != nil || !bytes.Equal(final, again) {
				t.Fatalf("%s became %s", again, final)
			}
		}
	})
}

// FuzzUnsigned: the hash of a query never depends on what a signature's parameters hold.
func FuzzUnsigned(f *testing.F) {
	f.Add("a=b&X-Amz-Signature=1&X-Amz-Date=2")
	f.Add("sig=1&se=2&name=3")
	f.Add("&&=&")
	f.Fuzz(func(t *testing.T, query string) {
		got := unsigned(query)
		if again := unsigned(got); again != got {
			t.Errorf("%q: %q, again %q", query, got, again)
		}
		if strings.Contains(got, "=") && !strings.Contains(query, "=") || len(got) > len(query) {
			t.Errorf("%q became %q", query, got)
		}
	})
}

package window_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue/window"
)

func compile(t *testing.T, spec window.Spec) *window.Schedule {
	t.Helper()
	s, faults := window.Compile(spec)
	if len(faults) > 0 {
		t.Fatalf("%+v: %v", spec, faults)
	}
	return s
}

// night is one span of every day in a zone.
func night(zone, from, to string, days ...string) window.Spec {
	return window.Spec{Zone: zone, Open: []window.Span{{Days: days, From: from, To: to}}}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// TestW1_EdgesOverClockChanges names each edge in UTC, so that the zone's own rules are the test's and not the code's.
func TestW1_EdgesOverClockChanges(t *testing.T) {
	for _, c := range []struct {
		name     string
		spec     window.Spec
		from, to string   // UTC
		want     []string // UTC; the first one opens
	}{
		{"Berlin spring: seven hours", night("Europe/Berlin", "22:00", "06:00"), "2027-03-27T12:00:00Z", "2027-03-28T20:00:00Z",
			[]string{"2027-03-27T21:00:00Z", "2027-03-28T04:00:00Z", "2027-03-28T20:00:00Z"}},
		{"Berlin autumn: nine hours", night("Europe/Berlin", "22:00", "06:00"), "2027-10-30T12:00:00Z", "2027-10-31T20:00:00Z",
			[]string{"2027-10-30T20:00:00Z", "2027-10-31T05:00:00Z"}},
		{"Berlin spring: a skipped from opens at the jump", night("Europe/Berlin", "02:30", "04:00"), "2027-03-28T00:00:00Z", "2027-03-28T12:00:00Z",
			[]string{"2027-03-28T01:00:00Z", "2027-03-28T02:00:00Z"}},
		{"Berlin spring: a skipped to closes at the jump", night("Europe/Berlin", "01:00", "02:30"), "2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z",
			[]string{"2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z"}},
		{"Berlin spring: a span that is skipped whole", night("Europe/Berlin", "02:10", "02:50"), "2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z", nil},
		{"Berlin autumn: a doubled span opens twice", night("Europe/Berlin", "02:15", "02:45"), "2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z",
			[]string{"2027-10-31T00:15:00Z", "2027-10-31T00:45:00Z", "2027-10-31T01:15:00Z", "2027-10-31T01:45:00Z"}},
		{"Berlin autumn: a doubled to", night("Europe/Berlin", "01:00", "02:30"), "2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z",
			[]string{"2027-10-30T23:00:00Z", "2027-10-31T00:30:00Z", "2027-10-31T01:00:00Z", "2027-10-31T01:30:00Z"}},
		{"Berlin autumn: a span around the doubled hour", night("Europe/Berlin", "02:00", "03:00"), "2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z",
			[]string{"2027-10-31T00:00:00Z", "2027-10-31T02:00:00Z"}},
		{"New York spring", night("America/New_York", "02:30", "05:00"), "2027-03-14T00:00:00Z", "2027-03-15T00:00:00Z",
			[]string{"2027-03-14T07:00:00Z", "2027-03-14T09:00:00Z"}},
		{"New York autumn", night("America/New_York", "01:30", "02:00"), "2027-11-07T00:00:00Z", "2027-11-08T00:00:00Z",
			[]string{"2027-11-07T05:30:00Z", "2027-11-07T06:00:00Z", "2027-11-07T06:30:00Z", "2027-11-07T07:00:00Z"}},
		{"Lord Howe, half an hour forward in October", night("Australia/Lord_Howe", "02:15", "04:00"), "2027-10-02T06:00:00Z", "2027-10-03T06:00:00Z",
			[]string{"2027-10-02T15:30:00Z", "2027-10-02T17:00:00Z"}},
		{"Lord Howe, half an hour back in April", night("Australia/Lord_Howe", "01:45", "02:15"), "2027-04-03T06:00:00Z", "2027-04-04T06:00:00Z",
			[]string{"2027-04-03T14:45:00Z", "2027-04-03T15:00:00Z", "2027-04-03T15:15:00Z", "2027-04-03T15:45:00Z"}},
		{"Santiago skips midnight", night("America/Santiago", "00:00", "06:00"), "2027-09-04T12:00:00Z", "2027-09-05T12:00:00Z",
			[]string{"2027-09-05T04:00:00Z", "2027-09-05T09:00:00Z"}},
		{"Kathmandu has no change and three quarters of an hour", night("Asia/Kathmandu", "22:00", "06:00"), "2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z",
			[]string{"2027-03-27T16:15:00Z", "2027-03-28T00:15:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compile(t, c.spec)
			edges := s.Edges(at(t, c.from), at(t, c.to), 100)
			if len(edges) != len(c.want) {
				t.Fatalf("edges are %v, want %v", edges, c.want)
			}
			for i, e := range edges {
				if !e.At.Equal(at(t, c.want[i])) || e.Open != (i%2 == 0) {
					t.Errorf("edge %d is %v, want %s, open %v", i, e, c.want[i], i%2 == 0)
				}
				if s.Open(e.At) != e.Open || s.Open(e.At.Add(-time.Nanosecond)) == e.Open {
					t.Errorf("the window does not change at edge %d, %v", i, e)
				}
			}
		})
	}
}

// TestW1_ReadingsOfTheWeek looks at moments: nights over the end of a week, ends of days, overlapping spans, whole days.
func TestW1_ReadingsOfTheWeek(t *testing.T) {
	weekend := night("Europe/Berlin", "22:00", "06:00", "sun")
	joined := window.Spec{Zone: "America/New_York", OutsideShare: 0.125, Open: []window.Span{
		{Days: []string{"mon", "tue"}, From: "08:00", To: "12:00"}, {Days: []string{"tue"}, From: "11:00", To: "14:00"}, {Days: []string{"tue"}, From: "14:00", To: "15:00"}}}
	for _, c := range []struct {
		name  string
		spec  window.Spec
		at    string // with the offset of the zone
		share int
	}{
		{"Sunday's night begins", weekend, "2027-01-10T22:00:00+01:00", 1000},
		{"a moment before it", weekend, "2027-01-10T21:59:59.999999999+01:00", 0},
		{"it goes on on Monday", weekend, "2027-01-11T05:59:59+01:00", 1000},
		{"and ends", weekend, "2027-01-11T06:00:00+01:00", 0},
		{"Monday has no night", weekend, "2027-01-11T23:00:00+01:00", 0},
		{"no night before Sunday", weekend, "2027-01-10T05:00:00+01:00", 0},
		{"Saturday's night ends on the first day of the table", night("UTC", "22:00", "06:00", "sat"), "2027-01-10T05:59:00Z", 1000},
		{"24:00 is the end of the day", night("UTC", "18:00", "24:00", "fri"), "2027-01-08T23:59:59Z", 1000},
		{"and not of the next one", night("UTC", "18:00", "24:00", "fri"), "2027-01-09T00:00:00Z", 0},
		{"from 00:00 to 24:00", night("UTC", "00:00", "24:00", "fri"), "2027-01-08T00:00:00Z", 1000},
		{"from == to is 24 hours", night("UTC", "08:00", "08:00", "fri"), "2027-01-09T07:59:59Z", 1000},
		{"and no more", night("UTC", "08:00", "08:00", "fri"), "2027-01-09T08:00:00Z", 0},
		{"00:00 to 00:00", night("UTC", "00:00", "00:00", "fri"), "2027-01-08T23:59:59Z", 1000},
		{"overlapping spans join", joined, "2027-01-12T11:30:00-05:00", 1000},
		{"one after another, too", joined, "2027-01-12T14:00:00-05:00", 1000},
		{"and end with the last", joined, "2027-01-12T15:00:00-05:00", 125},
		{"a span of two days", joined, "2027-01-11T11:30:00-05:00", 1000},
		{"each of its days has its own", joined, "2027-01-11T12:30:00-05:00", 125},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := compile(t, c.spec).Share(at(t, c.at)); got != c.share {
				t.Errorf("the share at %s is %d, want %d", c.at, got, c.share)
			}
		})
	}
}

func TestW1_NilAndAlwaysOpenHaveNoEdges(t *testing.T) {
	var none *window.Schedule
	now := at(t, "2027-01-10T22:00:00Z")
	if !none.Open(now) || none.Share(now) != window.Whole || none.OutsideShare() != window.Whole || none.Zone() != time.UTC || none.Edges(now, now.AddDate(1, 0, 0), 10) != nil {
		t.Error("a class without a schedule is not always open")
	}
	full := compile(t, night("Europe/Berlin", "05:00", "05:00"))
	if edges := full.Edges(now, now.AddDate(5, 0, 0), 10); len(edges) > 0 || !full.Open(now) {
		t.Errorf("whole days are open %v, with edges %v", full.Open(now), edges)
	}
}

func TestW1_EdgesAreBounded(t *testing.T) {
	s, now := compile(t, night("Europe/Berlin", "22:00", "06:00")), at(t, "2027-01-10T12:00:00Z")
	if edges := s.Edges(now, now.AddDate(10, 0, 0), 7); len(edges) != 7 {
		t.Errorf("asked for 7 edges, got %d", len(edges))
	}
	if edges := s.Edges(at(t, "2027-01-10T21:00:00Z"), at(t, "2027-01-11T05:00:00Z"), 7); len(edges) != 1 || edges[0].Open {
		t.Errorf("edges after the first and up to the last moment are %v, want the one that closes", edges)
	}
	if edges := s.Edges(now, now, 7); len(edges) != 0 {
		t.Errorf("no time has edges %v", edges)
	}
}

// TestW1_EdgesAgreeWithEveryMinute walks years minute by minute in zones with changes of all kinds, from a moment that is on no minute.
func TestW1_EdgesAgreeWithEveryMinute(t *testing.T) {
	specs := []window.Spec{
		night("", "22:00", "06:00"), night("", "02:15", "02:45"), night("", "00:00", "24:00", "mon", "wed"), night("", "23:30", "00:30", "sat"),
		{OutsideShare: 0.5, Open: []window.Span{{From: "01:00", To: "02:30"}, {Days: []string{"sun"}, From: "02:45", To: "03:10"}, {Days: []string{"fri"}, From: "12:00", To: "12:00"}}},
	}
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Kathmandu"}
	for z, zone := range zones {
		for i, spec := range specs {
			if z > 2 && i != z-2 {
				continue // the race detector makes a minute of a second
			}
			t.Run(fmt.Sprintf("%s %d", zone, i), func(t *testing.T) {
				spec.Zone = zone
				s := compile(t, spec)
				from := at(t, "2026-12-30T10:00:17.25Z")
				until := from.AddDate(2, 0, 0)
				edges := s.Edges(from, until, 1<<20)
				open, n := s.Open(from), 0
				for at := from.Truncate(time.Minute).Add(time.Minute); !at.After(until); at = at.Add(time.Minute) {
					for ; n < len(edges) && !edges[n].At.After(at); n++ {
						if edges[n].Open == open || edges[n].At.Second() != 0 || edges[n].At.Nanosecond() != 0 {
							t.Fatalf("edge %v after open=%v", edges[n], open)
						}
						open = edges[n].Open
					}
					if s.Open(at) != open {
						t.Fatalf("open is %v at %s, by the edges %v", !open, at, open)
					}
				}
				if n != len(edges) || n < 50 {
					t.Errorf("%d of %d edges were met", n, len(edges))
				}
			})
		}
	}
}

func TestW1_AheadMergesClasses(t *testing.T) {
	bulk, release := night("UTC", "22:00", "06:00"), night("UTC", "06:00", "22:00")
	bulk.OutsideShare = 0.25
	from := at(t, "2027-01-10T12:00:00Z")
	shares, edges := window.Ahead([]*window.Schedule{nil, compile(t, release), compile(t, bulk)}, from, from.Add(24*time.Hour), 3)
	if fmt.Sprint(shares) != "[1000 1000 250]" || len(edges) != 4 {
		t.Fatalf("shares %v, edges %v", shares, edges)
	}
	for i, want := range []struct{ class, share int }{{1, 0}, {2, 1000}, {1, 1000}, {2, 250}} {
		if e := edges[i]; e.Class != want.class || e.Share != want.share || i%2 == 1 && !e.At.Equal(edges[i-1].At) {
			t.Errorf("edge %d is %+v, want %+v", i, e, want)
		}
	}
	if edges[0].Seed == edges[1].Seed || edges[0].Seed == edges[2].Seed {
		t.Error("two openings are shuffled alike")
	}
}

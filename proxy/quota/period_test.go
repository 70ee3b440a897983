package quota

import (
	"testing"
	"time"
)

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestX9_DaysAndWeeksOfAZone(t *testing.T) {
	for _, one := range []struct{ zone, at, dayFrom, dayUntil, weekFrom, weekUntil string }{
		{"UTC", "2026-12-02T12:00:00Z", "2026-12-02T00:00:00Z", "2026-12-03T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"UTC", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"}, // a Monday's first moment
		{"UTC", "2026-12-06T23:59:59Z", "2026-12-06T00:00:00Z", "2026-12-07T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"}, // a Sunday's last second
		{"UTC", "2027-01-01T09:00:00Z", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"}, // over the year
		{"UTC", "2028-02-29T09:00:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z", "2028-02-28T00:00:00Z", "2028-03-06T00:00:00Z"}, // a leap day
		// Berlin: 23 hours on 2026-03-29, 25 on 2026-10-25; both are Sundays, so the weeks have 167 and 169.
		{"Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"America/New_York", "2026-11-02T04:59:59Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"Asia/Kolkata", "2026-12-02T18:29:59Z", "2026-12-01T18:30:00Z", "2026-12-02T18:30:00Z", "2026-11-29T18:30:00Z", "2026-12-06T18:30:00Z"},
		{"Pacific/Kiritimati", "2026-12-02T10:00:00Z", "2026-12-02T10:00:00Z", "2026-12-03T10:00:00Z", "2026-11-29T10:00:00Z", "2026-12-06T10:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-04T02:00:00Z", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z", "2026-09-27T13:30:00Z", "2026-10-04T13:00:00Z"}, // half an hour
		// Beirut skips 00:00-01:00 on 2026-03-29: the day begins at 01:00.
		{"Asia/Beirut", "2026-03-29T12:00:00Z", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z", "2026-03-22T22:00:00Z", "2026-03-29T21:00:00Z"},
		{"Asia/Beirut", "2026-03-28T21:59:59Z", "2026-03-27T22:00:00Z", "2026-03-28T22:00:00Z", "2026-03-22T22:00:00Z", "2026-03-29T21:00:00Z"},
		// Havana has 00:00-01:00 twice on 2026-11-01: the day begins at the first of them.
		{"America/Havana", "2026-11-01T04:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"America/Havana", "2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"America/Havana", "2026-11-01T03:59:59Z", "2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"},
		// Sao Paulo had 23:00-24:00 twice on 2018-02-17: midnight comes after the second.
		{"America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", "2018-02-12T02:00:00Z", "2018-02-19T03:00:00Z"},
		{"America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", "2018-10-29T03:00:00Z", "2018-11-05T02:00:00Z"}, // skipped midnight
		// St. John's went back from 00:01 to 23:01 on 2010-11-07: the day that began a minute ago goes on.
		{"America/St_Johns", "2010-11-07T02:29:59Z", "2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z", "2010-11-01T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"America/St_Johns", "2010-11-07T02:40:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", "2010-11-01T02:30:00Z", "2010-11-08T03:30:00Z"},
		// Samoa left 2011-12-30 out.
		{"Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},
	} {
		p := periodsOf(moment(t, one.at), load(t, one.zone))
		want := periods{{moment(t, one.dayFrom), moment(t, one.dayUntil)}, {moment(t, one.weekFrom), moment(t, one.weekUntil)}}
		if !p[Day].equal(want[Day]) || !p[Week].equal(want[Week]) {
			t.Errorf("%s in %s: %v, want %v", one.at, one.zone, p, want)
		}
	}
}

// Over three years of every zone with a strange clock, days follow each other without a gap, each holds the moment it was asked for, and each week is of whole days.
func TestX9_PeriodsCoverTimeWithoutGaps(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Beirut", "Asia/Gaza", "Africa/Cairo", "Africa/Casablanca", "America/Santiago",
		"America/Asuncion", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "America/St_Johns", "America/Sao_Paulo", "Antarctica/Troll", "Asia/Tehran"} {
		zone := load(t, name)
		for _, year := range []int{2010, 2018, 2026} {
			at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			day := periodsOf(at, zone)[Day]
			for at.Year() == year {
				p := periodsOf(at, zone)
				if !p[Day].holds(at) || !p[Week].holds(at) || p[Day].From.Before(p[Week].From) || p[Week].Until.Before(p[Day].Until) {
					t.Fatalf("%s at %v: %v", name, at, p)
				}
				if hours := p[Day].Until.Sub(p[Day].From).Hours(); hours < 21.9 || hours > 26.1 {
					t.Fatalf("%s at %v: a day of %v hours", name, at, hours)
				}
				if !p[Day].equal(day) && !p[Day].From.Equal(day.Until) {
					t.Fatalf("%s at %v: a gap between %v and %v", name, at, day, p[Day])
				}
				day = p[Day]
				at = at.Add(101 * time.Minute)
			}
		}
	}
}

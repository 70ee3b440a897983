package main

import (
	"testing"
	"time"
)

func TestC4_Ordinals(t *testing.T) {
	for n, want := range map[int64]string{
		1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 10: "10th", 11: "11th", 12: "12th", 13: "13th", 14: "14th", 20: "20th", 21: "21st", 22: "22nd", 23: "23rd",
		101: "101st", 111: "111th", 112: "112th", 113: "113th", 121: "121st", 312: "312th", 1002: "1002nd", 1011: "1011th", 65536: "65536th",
	} {
		if got := ordinal(n); got != want {
			t.Errorf("ordinal(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestC4_SpansAndAmounts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", time.Millisecond: "1 s", 40 * time.Second: "40 s", 99 * time.Second: "99 s", 100 * time.Second: "2 min",
		47 * time.Minute: "47 min", 59*time.Minute + 29*time.Second: "59 min", 59*time.Minute + 31*time.Second: "1 h 00 min",
		125 * time.Minute: "2 h 05 min", 49 * time.Hour: "2 d 01 h",
	} {
		if got := showSpan(d); got != want {
			t.Errorf("showSpan(%v) = %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.00 kB", 1536: "1.54 kB", 99_960: "100 kB", 999_600: "1.00 MB", 12_345_678: "12.3 MB", 5 << 30: "5.37 GB", 1 << 62: "4612 PB",
	} {
		if got := showAmount(n); got != want {
			t.Errorf("showAmount(%d) = %s, want %s", n, got, want)
		}
	}
	for _, one := range []struct {
		part, total int64
		want        string
	}{{0, 10, "0 %"}, {5, 10, "50 %"}, {9_999_999, 10_000_000, "99 %"}, {10, 10, "100 %"}, {11, 10, "100 %"}, {0, 0, "100 %"}} {
		if got := showPercent(one.part, one.total); got != one.want {
			t.Errorf("showPercent(%d, %d) = %s, want %s", one.part, one.total, got, one.want)
		}
	}
}

func TestC4_ClockSaysTheDayWhenItIsNotToday(t *testing.T) {
	zone := time.FixedZone("east", 3*3600)
	now := time.Date(2026, 11, 30, 13, 18, 0, 0, zone) // a Monday
	for _, one := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2026, 11, 30, 11, 5, 0, 0, time.UTC), "14:05"}, // told in UTC, read on the wall here
		{time.Date(2026, 11, 30, 0, 0, 0, 0, zone), "00:00"},
		{time.Date(2026, 12, 1, 0, 0, 0, 0, zone), "Tue 00:00"},
		{time.Date(2026, 12, 6, 9, 30, 0, 0, zone), "Sun 09:30"},
		{time.Date(2026, 12, 7, 9, 30, 0, 0, zone), "7 Dec 2026 09:30"},
		{time.Date(2026, 11, 29, 23, 59, 0, 0, zone), "Sun 23:59"},
	} {
		if got := showClock(one.at, now); got != one.want {
			t.Errorf("%v is shown as %s, want %s", one.at, got, one.want)
		}
	}
}

func TestC2_MomentsAreTheNextOccurrence(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	day := func(d, h, m, s int) time.Time { return time.Date(2026, 11, d, h, m, s, 0, zone) }
	for _, one := range []struct {
		name, before, after string
		now                 time.Time
		from, to            time.Time
	}{
		{"later today", "22:00", "", day(30, 13, 0, 0), day(30, 22, 0, 0), time.Time{}},
		{"tomorrow", "09:00", "", day(30, 13, 0, 0), day(31, 9, 0, 0), time.Time{}},
		{"a minute that runs counts", "22:00", "", day(30, 22, 0, 59), day(30, 22, 0, 0), time.Time{}},
		{"a minute that is over does not", "22:00", "", day(30, 22, 1, 0), day(31, 22, 0, 0), time.Time{}},
		{"one night", "22:00", "06:00", day(30, 13, 0, 0), day(30, 22, 0, 0), day(31, 6, 0, 0)},
		{"one night, the next", "22:00", "06:00", day(30, 23, 0, 0), day(31, 22, 0, 0), day(32, 6, 0, 0)},
		{"an end alone", "", "06:00", day(30, 5, 0, 0), time.Time{}, day(30, 6, 0, 0)},
		{"an end is past as soon as it is there", "", "06:00", day(30, 6, 0, 0), time.Time{}, day(31, 6, 0, 0)},
		{"RFC 3339", "2026-12-24T18:00:00Z", "2026-12-25T01:00:00+02:00", day(30, 13, 0, 0),
			time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC), time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)},
		{"a day of 25 hours", "02:30", "", time.Date(2026, 10, 25, 1, 0, 0, 0, zone), time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC), time.Time{}},
		{"a day without 02:30", "02:30", "", time.Date(2026, 3, 29, 1, 0, 0, 0, zone), time.Date(2026, 3, 29, 2, 30, 0, 0, zone), time.Time{}},
	} {
		from, to, err := parseBounds(one.before, one.after, one.now)
		if err != nil || !from.Equal(one.from) || !to.Equal(one.to) {
			t.Errorf("%s: %v .. %v, %v, want %v .. %v", one.name, from, to, err, one.from, one.to)
		}
	}
	for _, one := range [][2]string{{"tonight", ""}, {"", "24:00"}, {"7pm", "x"}, {"", "2026-12-24 18:00"}, {"2026-12-25T00:00:00Z", "2026-12-24T00:00:00Z"}} {
		if _, _, err := parseBounds(one[0], one[1], day(30, 13, 0, 0)); err == nil {
			t.Errorf("%v was accepted", one)
		}
	}
}

// FuzzC2_Moment: the next occurrence lies after the moment it is counted from, and less than two days after.
func FuzzC2_Moment(f *testing.F) {
	f.Add("22:00", int64(1_796_040_000))
	f.Add("02:30", int64(1_774_745_999))
	f.Add("2026-12-24T18:00:00Z", int64(0))
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		after := time.Unix(unix%(1<<33), 0).In(zone)
		at, err := parseMoment(text, after)
		if _, exact := time.Parse(time.RFC3339, text); err != nil || exact == nil {
			return
		}
		if d := at.Sub(after); d <= 0 || d > 50*time.Hour {
			t.Errorf("%q after %v is %v", text, after, at)
		}
	})
}

// TestC2_ClocksThatAreSet: an hour that comes twice has two occurrences, one that does not come is as far after midnight as on other days, and
// midnight is passed.
func TestC2_ClocksThatAreSet(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ now, text, want string }{
		{"2026-10-25T02:15:00+02:00", "02:30", "2026-10-25T02:30:00+02:00"},
		{"2026-10-25T02:45:00+02:00", "02:30", "2026-10-25T02:30:00+01:00"},
		{"2026-10-25T02:45:00+01:00", "02:30", "2026-10-26T02:30:00+01:00"},
		{"2026-10-24T23:59:59+02:00", "00:00", "2026-10-25T00:00:00+02:00"},
		{"2026-10-25T00:00:00+02:00", "00:00", "2026-10-26T00:00:00+01:00"},
		{"2026-03-29T01:00:00+01:00", "02:30", "2026-03-29T03:30:00+02:00"},
		{"2026-12-31T23:30:00+01:00", "06:00", "2027-01-01T06:00:00+01:00"},
	} {
		now, err := time.Parse(time.RFC3339, one.now)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseMoment(one.text, now.In(berlin)); err != nil || got.Format(time.RFC3339) != one.want {
			t.Errorf("%s after %s: %s, %v; want %s", one.text, one.now, got.Format(time.RFC3339), err, one.want)
		}
	}
}

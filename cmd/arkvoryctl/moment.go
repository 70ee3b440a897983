package main

import (
	"errors"
	"time"
)

var errMoment = errors.New("neither RFC 3339 nor HH:MM")

// parseMoment reads a moment as RFC 3339, or as HH:MM of the wall clock where after is read: its next occurrence later than after.
// A day has no 02:30 when clocks jump over it; then the moment is as far after midnight as 02:30 is on other days.
func parseMoment(text string, after time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, errMoment
	}
	for day := 0; ; day++ {
		at := time.Date(after.Year(), after.Month(), after.Day()+day, clock.Hour(), clock.Minute(), 0, 0, after.Location())
		if first := firstOf(at, after); first.After(after) {
			return first, nil
		}
	}
}

// firstOf returns the first moment later than after at which the wall clock shows what it shows at that moment, of the same day: when clocks
// are set back an hour comes twice. It is the moment itself where it comes once or none is later.
func firstOf(at, after time.Time) time.Time {
	for _, shift := range []time.Duration{-time.Hour, -30 * time.Minute, 0, 30 * time.Minute, time.Hour} { // Lord Howe sets its clocks by half an hour
		one := at.Add(shift)
		if one.After(after) && one.Day() == at.Day() && one.Hour() == at.Hour() && one.Minute() == at.Minute() {
			return one
		}
	}
	return at
}

// parseBounds reads --not-before and --not-after together. A job that cron starts at 22:00 with --not-before 22:00 means this
// very minute, so a minute that runs counts as its occurrence. A --not-after of HH:MM is the first after the beginning:
// 22:00 and 06:00 are one night, whenever they are given. Empty = no bound.
func parseBounds(before, after string, now time.Time) (notBefore, notAfter time.Time, err error) {
	var faults []error
	if before != "" {
		if notBefore, err = parseMoment(before, now.Truncate(time.Minute).Add(-time.Nanosecond)); err != nil {
			faults = append(faults, faulty("--not-before", before, "RFC 3339 or HH:MM", "22:00"))
		}
	}
	if after != "" {
		from := now
		if notBefore.After(now) {
			from = notBefore.In(now.Location())
		}
		if notAfter, err = parseMoment(after, from); err != nil {
			faults = append(faults, faulty("--not-after", after, "RFC 3339 or HH:MM", "06:00"))
		}
	}
	if len(faults) == 0 && !notBefore.IsZero() && !notAfter.IsZero() && !notBefore.Before(notAfter) {
		faults = append(faults, errors.New("cannot use --not-after: must be later than --not-before"))
	}
	return notBefore, notAfter, errors.Join(faults...)
}

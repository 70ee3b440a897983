package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"
)

// ordinal writes a place as English does: 1st, 2nd, 3rd, 4th, 11th, 112th.
func ordinal(n int64) string {
	ending := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return strconv.FormatInt(n, 10) + ending
}

// showSpan writes a wait in whole seconds, minutes or more, with two units at most: nobody plans by the seconds of an hour.
func showSpan(d time.Duration) string {
	seconds := int64(math.Ceil(d.Seconds()))
	minutes := int64(math.Round(d.Minutes()))
	switch {
	case seconds < 1:
		return "0 s"
	case seconds < 100:
		return fmt.Sprintf("%d s", seconds)
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	case minutes < 48*60:
		return fmt.Sprintf("%d h %02d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d d %02d h", minutes/1440, minutes%1440/60)
}

// showClock writes a moment as a clock on the wall does where now is read: with the weekday when it is not today, with the
// date when it is a week away or more.
func showClock(at, now time.Time) string {
	at = at.In(now.Location())
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch {
	case !at.Before(midnight) && at.Before(midnight.AddDate(0, 0, 1)):
		return at.Format("15:04")
	case !at.Before(midnight.AddDate(0, 0, -1)) && at.Before(midnight.AddDate(0, 0, 7)):
		return at.Format("Mon 15:04")
	}
	return at.Format("2 Jan 2006 15:04")
}

// showPercent never says 100 before all is there.
func showPercent(part, total int64) string {
	if total <= 0 {
		return "100 %"
	}
	percent := int64(float64(part) / float64(total) * 100)
	if part < total {
		percent = min(percent, 99)
	}
	return strconv.FormatInt(max(0, min(percent, 100)), 10) + " %"
}

// showAmount writes bytes for a line that is drawn again and again: always three digits, so that it does not dance.
func showAmount(n int64) string {
	value, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if value < 999.5 {
			break
		}
		value, unit = value/1000, next
	}
	switch {
	case unit == "B" || value >= 99.95:
		return fmt.Sprintf("%.0f %s", value, unit)
	case value >= 9.995:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}

// wideRunes are those that take two cells of a terminal: scripts of East Asia, full-width forms, pictures (UAX 11).
var wideRunes = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97f, 1},
		{0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x16fe0, 0x18aff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f1e6, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

// cells is how many cells of a terminal a text takes; where terminals differ, the most.
func cells(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.Is(wideRunes, r):
			n += 2
		default:
			n++
		}
	}
	return n
}

package quota

import "time"

// Period is one of the two stretches of time that have a limit; its words are a closed set, fit for metric labels.
type Period uint8

// The periods.
const (
	Day Period = iota
	Week
	// Periods is the number of periods, not one of them.
	Periods = int(iota)
)

var words = [Periods]string{"day", "week"}

// Words returns the words of the periods in their order.
func Words() []string { return words[:] }

// String returns "day" or "week".
func (p Period) String() string {
	if int(p) >= Periods {
		return "unknown"
	}
	return words[p]
}

// stretch is [From, Until).
type stretch struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

func (s stretch) holds(at time.Time) bool { return !at.Before(s.From) && at.Before(s.Until) }

func (s stretch) equal(other stretch) bool {
	return s.From.Equal(other.From) && s.Until.Equal(other.Until)
}

// periods are the day and the week of one moment in one zone.
type periods [Periods]stretch

// periodsOf returns the day and the week that hold a moment.
func periodsOf(at time.Time, zone *time.Location) periods {
	if zone == nil {
		zone = time.UTC
	}
	local := at.In(zone)
	y, m, d := local.Date()
	if !at.Before(startOf(y, m, d+1, zone)) { // the clock went back over midnight, a moment after it: the new day has begun and goes on
		d++
	}
	since := (int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()) + 6) % 7 // days since Monday
	return periods{
		Day:  {startOf(y, m, d, zone), startOf(y, m, d+1, zone)},
		Week: {startOf(y, m, d-since, zone), startOf(y, m, d-since+7, zone)},
	}
}

// startOf returns the first moment of a local date, in UTC. time.Date alone does not: of a midnight that is skipped it gives a moment of the day before or
// the first of the day, of one that comes twice either.
func startOf(y int, m time.Month, d int, zone *time.Location) time.Time {
	y, m, d = time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Date() // days beyond the month are of the next one
	at := time.Date(y, m, d, 0, 0, 0, 0, zone)
	for range 2 {
		if !before(at, y, m, d) {
			break
		}
		hour, minute, second := at.Clock()
		at = at.Add(24*time.Hour - time.Duration(hour)*time.Hour - time.Duration(minute)*time.Minute - time.Duration(second)*time.Second)
	}
	if changed, _ := at.ZoneBounds(); !changed.IsZero() {
		_, now := at.Zone()
		_, earlier := changed.Add(-time.Nanosecond).Zone()
		if first := at.Add(time.Duration(now-earlier) * time.Second); first.Before(changed) && first.Before(at) && !before(first, y, m, d) {
			at = first
		}
	}
	return at.UTC()
}

// before reports whether the local date of a moment is before that one.
func before(at time.Time, y int, m time.Month, d int) bool {
	year, month, day := at.Date()
	return year < y || year == y && (month < m || month == m && day < d)
}

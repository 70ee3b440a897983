package window

import "time"

const (
	dayMinutes  = 24 * 60
	weekMinutes = 7 * dayMinutes
	weekSeconds = 60 * weekMinutes
)

// Schedule is a compiled Spec: immutable, safe for concurrent use. A nil Schedule is always open.
type Schedule struct {
	zone    *time.Location
	outside int // share outside, per mille
	week    week
}

// Edge is a moment at which a schedule opens or closes; from At on it is Open or not.
type Edge struct {
	At   time.Time
	Open bool
}

// Open reports whether the window is open at that moment. O(1).
func (s *Schedule) Open(at time.Time) bool {
	if s == nil {
		return true
	}
	return s.week.at(localSecond(at.In(s.zone)) / 60)
}

// Share is the share of slots and band at that moment in per mille: Whole while the window is open. O(1).
func (s *Schedule) Share(at time.Time) int {
	if s.Open(at) {
		return Whole
	}
	return s.outside
}

// OutsideShare is the share while the window is closed, in per mille; Whole of a nil Schedule.
func (s *Schedule) OutsideShare() int {
	if s == nil {
		return Whole
	}
	return s.outside
}

// Zone returns the time zone; UTC of a nil Schedule.
func (s *Schedule) Zone() *time.Location {
	if s == nil {
		return time.UTC
	}
	return s.zone
}

// Edges returns the moments after from and not after until at which the window opens or closes, in order, at most limit of them. It costs O(log w) of the
// w spans' ends an edge, and one comparison for each change of the zone's offset.
func (s *Schedule) Edges(from, until time.Time, limit int) []Edge {
	if s == nil {
		return nil
	}
	var out []Edge
	for open := s.Open(from); len(out) < limit && from.Before(until); {
		local := from.In(s.zone)
		_, jump := local.ZoneBounds()
		at, ok := until, true
		if wait, changes := s.week.next(localSecond(local)); changes {
			at = from.Add(time.Duration(wait)*time.Second - time.Duration(local.Nanosecond()))
		} else {
			ok = false
		}
		if !jump.IsZero() && (!ok || !jump.After(at)) {
			at, ok = jump, true // whatever the table says, the clock reads another time from here on
		}
		if !ok || at.After(until) {
			break
		}
		if now := s.Open(at); now != open {
			open = now
			out = append(out, Edge{At: at.UTC(), Open: now})
		}
		from = at
	}
	return out
}

// localSecond is the second of the week that a wall clock shows, from Sunday 00:00 on.
func localSecond(local time.Time) int {
	hour, min, sec := local.Clock()
	return int(local.Weekday())*60*dayMinutes + hour*3600 + min*60 + sec
}

// week is a table of the minutes of a week, from Sunday 00:00 on, and the minutes at which it changes.
type week struct {
	bits    [(weekMinutes + 63) / 64]uint64
	changes []int // minutes, ascending
}

func (w *week) at(minute int) bool { return w.bits[minute/64]>>(minute%64)&1 == 1 }

// open marks the minutes [from, to); those after the end of the week are of its beginning.
func (w *week) open(from, to int) {
	for i := from; i < to; i++ {
		m := i % weekMinutes
		w.bits[m/64] |= 1 << (m % 64)
	}
}

// settle finds the changes.
func (w *week) settle() {
	for m := range weekMinutes {
		if w.at(m) != w.at((m+weekMinutes-1)%weekMinutes) {
			w.changes = append(w.changes, m)
		}
	}
}

// next returns the seconds from that second of the week to the next change of the table, more than 0; false when it never changes.
func (w *week) next(second int) (int, bool) {
	if len(w.changes) == 0 {
		return 0, false
	}
	low, high := 0, len(w.changes)
	for low < high {
		if mid := (low + high) / 2; 60*w.changes[mid] > second {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if low == len(w.changes) {
		return 60*w.changes[0] + weekSeconds - second, true
	}
	return 60*w.changes[low] - second, true
}

package window

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // an image without a zone database must know the same zones
)

// Bounds of a specification.
const (
	MaxSpans     = 16
	MaxZoneBytes = 64
	Whole        = 1000 // a whole share, in per mille
)

// Span is one stretch of local wall-clock time on some days of the week.
type Span struct {
	Days []string `json:"days,omitempty" yaml:"days,omitempty"` // of mon, tue, wed, thu, fri, sat, sun: those it begins on; nil = all seven
	From string   `json:"from" yaml:"from"`                     // "HH:MM", 00:00..23:59
	To   string   `json:"to" yaml:"to"`                         // "HH:MM", 00:00..24:00; not after From = on the next day
}

// Spec is the window of one class as an operator writes it. The zero value has no spans and cannot be compiled.
type Spec struct {
	Zone         string  `json:"zone,omitempty" yaml:"zone,omitempty"`                 // IANA name; "" = UTC
	OutsideShare float64 `json:"outsideShare,omitempty" yaml:"outsideShare,omitempty"` // of slots and band outside, 0..1 with at most three decimals; 0 = waits
	Open         []Span  `json:"open" yaml:"open"`                                     // 1..MaxSpans
}

// Fault says which field of a specification breaks which rule, and gives a value that would do.
type Fault struct{ Field, Value, Rule, Example string }

// Error names the field, the value, the rule and the example.
func (f Fault) Error() string {
	return fmt.Sprintf("cannot use %s %s: must be %s, for example %s", f.Field, f.Value, f.Rule, f.Example)
}

var dayNames = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

const (
	dayRule   = "names of days, each once: mon, tue, wed, thu, fri, sat, sun; left out for all seven"
	fromRule  = `a local time "HH:MM" from 00:00 to 23:59`
	toRule    = `a local time "HH:MM" from 00:00 to 24:00`
	zoneRule  = "an IANA time zone name of at most 64 bytes"
	shareRule = "a number 0..1 with at most three decimals"
)

// Compile returns the schedule of a specification, or every fault of it at once with fields like "open[0].from".
func Compile(spec Spec) (*Schedule, []Fault) { return compile("", spec) }

// CompileAll compiles the windows of several classes. Fields of faults begin with field and the class, as "windows.bulk.open[0].from"; a class that is not
// among classes is a fault of its own. A class that is absent is always open and has no schedule.
func CompileAll(field string, specs map[string]Spec, classes []string) (map[string]*Schedule, []Fault) {
	out, faults := make(map[string]*Schedule, len(specs)), []Fault(nil)
	for _, class := range slices.Sorted(maps.Keys(specs)) {
		if !slices.Contains(classes, class) {
			faults = append(faults, Fault{field + "." + clip(class), "of a class that does not exist", "named after one of " + strings.Join(classes, ", "), classes[len(classes)/2]})
			continue
		}
		schedule, more := compile(field+"."+class+".", specs[class])
		out[class], faults = schedule, append(faults, more...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return out, nil
}

// compiler collects the faults of one specification.
type compiler struct {
	prefix string
	faults []Fault
}

func (c *compiler) fault(field, value, rule, example string) {
	c.faults = append(c.faults, Fault{c.prefix + field, value, rule, example})
}

func compile(prefix string, spec Spec) (*Schedule, []Fault) {
	c := &compiler{prefix: prefix}
	s := &Schedule{zone: c.zone(spec.Zone), outside: c.share(spec.OutsideShare)}
	if len(spec.Open) < 1 || len(spec.Open) > MaxSpans {
		c.fault("open", fmt.Sprintf("of %d spans", len(spec.Open)), fmt.Sprintf("1..%d spans", MaxSpans), `[{"from":"22:00","to":"06:00"}]`)
	} else {
		for i := range spec.Open {
			c.span(&s.week, fmt.Sprintf("open[%d].", i), &spec.Open[i])
		}
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	s.week.settle()
	return s, nil
}

func (c *compiler) zone(name string) *time.Location {
	if name == "" {
		return time.UTC
	}
	if len(name) <= MaxZoneBytes && name != "Local" { // the zone of the machine is no name that means the same everywhere
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
	}
	c.fault("zone", clip(name), zoneRule, "Europe/Berlin")
	return nil
}

func (c *compiler) share(share float64) int {
	mille := math.Round(share * Whole)
	if !(share >= 0 && share <= 1) || math.Abs(share*Whole-mille) > 1e-9 {
		c.fault("outsideShare", fmt.Sprint(share), shareRule, "0.25")
	}
	return int(mille)
}

// span puts one span into the week.
func (c *compiler) span(w *week, field string, s *Span) {
	days := c.days(field+"days", s.Days)
	from, ok := minute(s.From)
	if !ok || from == dayMinutes {
		c.fault(field+"from", clip(s.From), fromRule, "22:00")
	}
	to, ok := minute(s.To)
	if !ok {
		c.fault(field+"to", clip(s.To), toRule, "06:00")
	}
	if len(c.faults) > 0 {
		return
	}
	if to <= from {
		to += dayMinutes
	}
	for day, begins := range days {
		if begins {
			w.open(day*dayMinutes+from, day*dayMinutes+to)
		}
	}
}

func (c *compiler) days(field string, names []string) (days [7]bool) {
	if names == nil {
		return [7]bool{true, true, true, true, true, true, true}
	}
	for _, name := range names {
		day := slices.Index(dayNames[:], name)
		if day < 0 || days[day] {
			c.fault(field, clip(name), dayRule, `["mon","tue"]`)
			return days
		}
		days[day] = true
	}
	if len(names) == 0 {
		c.fault(field, "an empty list", dayRule, `["mon","tue"]`)
	}
	return days
}

// minute returns the minute of the day that "HH:MM" names, 0..1440.
func minute(text string) (int, bool) {
	if len(text) != 5 || text[2] != ':' {
		return 0, false
	}
	for _, i := range [...]int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	hour, min := int(text[0]-'0')*10+int(text[1]-'0'), int(text[3]-'0')*10+int(text[4]-'0')
	at := hour*60 + min
	return at, min < 60 && at <= dayMinutes
}

// clip quotes a foreign text that a fault repeats, and bounds it.
func clip(text string) string {
	const limit = 64
	if len(text) > limit {
		text = text[:limit] + "..."
	}
	return fmt.Sprintf("%q", text)
}

package live

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// overrides are the changed fields; nil is unchanged. Their order here is that of the stored record.
type overrides struct {
	Mode             *string `json:"mode,omitempty"`
	Strategy         *string `json:"strategy,omitempty"`
	Sessions         *int64  `json:"sessions,omitempty"`
	Reserve          *int64  `json:"reserve,omitempty"`
	PerPrincipal     *int64  `json:"perPrincipal,omitempty"`
	Weights          *shares `json:"weights,omitempty"`
	SessionMinBytes  *int64  `json:"sessionMinBytes,omitempty"`
	IdleSeconds      *int64  `json:"idleSeconds,omitempty"`
	AgingMinutes     *int64  `json:"agingMinutes,omitempty"`
	Preempt          *bool   `json:"preempt,omitempty"`
	RangesPerSession *int64  `json:"rangesPerSession,omitempty"`
	SessionsElastic  *int64  `json:"sessionsElastic,omitempty"`

	Windows    *windowSpecs    `json:"windows,omitempty"`
	Principals *principalTexts `json:"principals,omitempty"`
	Quotas     *quotaText      `json:"quotas,omitempty"`
}

// shares are the weights of the four classes, in the order of queue's classes.
type shares struct {
	Interactive int64 `json:"interactive"`
	Release     int64 `json:"release"`
	Bulk        int64 `json:"bulk"`
	Background  int64 `json:"background"`
}

func (s *shares) of(c queue.Class) *int64 {
	return [queue.Classes]*int64{&s.Interactive, &s.Release, &s.Bulk, &s.Background}[c]
}

const (
	modeRule     = "one of normal, queue-all, pass-through, reject-new, dry-run"
	strategyRule = "one of ordered, smallest-first, fair-sojourn, shared"
	weightsRule  = "an object with interactive, release, bulk and background, whole numbers 1..1000, all four"
	numberRule   = "a whole number without fraction or exponent"
	flagRule     = "true or false"
	unknownRule  = "no field of the settings"
	twiceRule    = "given once"
)

var weightsExample = shares{Interactive: 8, Release: 4, Bulk: 2, Background: 1}

// faults collects what is wrong, one fault a field and at most maxFaults.
type faults []admin.SettingFault

// maxFaults are more than the settings have fields; a body of thousands of foreign names is told the first.
const maxFaults = 32

func (f *faults) add(field, rule string, example any) {
	if len(*f) == maxFaults {
		return
	}
	for _, one := range *f {
		if one.Field == field {
			return
		}
	}
	*f = append(*f, admin.SettingFault{Field: field, Rule: rule, Example: example})
}

// parse reads the text of an overrides object. What has the wrong type is a fault; ranges are judged by effectiveOf. Lenient skips fields that
// this version does not know, on every level, as a record of a newer one may have them.
func parse(text []byte, lenient bool) (overrides, faults) {
	var o overrides
	var wrong faults
	fields, err := object(text)
	if err == errNoObject {
		wrong.add("overrides", "a JSON object", json.RawMessage("{}"))
		return o, wrong
	}
	if err == errTwice {
		wrong.add(shown(fields[len(fields)-1].name), twiceRule, nil)
		return o, wrong
	}
	for _, one := range fields {
		if number, example := o.number(one.name); number != nil {
			if *number = whole(one.value); *number == nil {
				wrong.add(one.name, numberRule, example)
			}
			continue
		}
		switch one.name {
		case "strategy":
			o.Strategy = words(one.value, one.name, strategyRule, "ordered", &wrong)
		case "mode":
			o.Mode = words(one.value, one.name, modeRule, "normal", &wrong)
		case "preempt":
			on := string(one.value) == "true"
			if !on && string(one.value) != "false" {
				wrong.add(one.name, flagRule, true)
				continue
			}
			o.Preempt = &on
		case "weights":
			o.Weights = weights(one.value, lenient, &wrong)
		case "windows":
			o.Windows = reader{lenient, &wrong}.windows(one.value)
		case "principals":
			o.Principals = reader{lenient, &wrong}.principals(one.value)
		case "quotas":
			o.Quotas = reader{lenient, &wrong}.quotas(one.value)
		default:
			if !lenient {
				wrong.add(shown(one.name), unknownRule, nil)
			}
		}
	}
	return o, wrong
}

// number returns where the whole number of that name goes, and an example of it; nil when the name is of no number.
func (o *overrides) number(name string) (**int64, int64) {
	switch name {
	case "sessions":
		return &o.Sessions, 16
	case "reserve":
		return &o.Reserve, 1
	case "perPrincipal":
		return &o.PerPrincipal, 4
	case "sessionMinBytes":
		return &o.SessionMinBytes, 16 << 20
	case "idleSeconds":
		return &o.IdleSeconds, 30
	case "agingMinutes":
		return &o.AgingMinutes, 15
	case "rangesPerSession":
		return &o.RangesPerSession, 4
	case "sessionsElastic":
		return &o.SessionsElastic, 64
	}
	return nil, 0
}

// weights reads the four weights.
func weights(value []byte, lenient bool, wrong *faults) *shares {
	fields, err := object(value)
	if lenient { // classes of a newer version are skipped
		fields = slices.DeleteFunc(fields, func(one member) bool { _, err := queue.ParseClass(one.name); return err != nil })
	}
	if err != nil || len(fields) != queue.Classes {
		wrong.add("weights", weightsRule, weightsExample)
		return nil
	}
	var s shares
	for _, one := range fields {
		class, err := queue.ParseClass(one.name)
		if err != nil {
			wrong.add("weights", weightsRule, weightsExample)
			return nil
		}
		n := whole(one.value)
		if n == nil {
			wrong.add("weights."+one.name, numberRule, *weightsExample.of(class))
			return nil
		}
		*s.of(class) = *n
	}
	return &s
}

// words reads a text; a fault of that rule and nil when it is none.
func words(value []byte, field, rule string, example any, wrong *faults) *string {
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		wrong.add(field, rule, example)
		return nil
	}
	return &text
}

// whole reads a whole number in plain digits; nil when it is none. A number too large for 64 bits becomes the largest or least.
func whole(text []byte) *int64 {
	for i, b := range text {
		if (b < '0' || b > '9') && (i > 0 || b != '-') {
			return nil
		}
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		if len(text) < 19 {
			return nil
		}
		n = math.MaxInt64
		if text[0] == '-' {
			n = math.MinInt64
		}
	}
	return &n
}

// shown bounds a foreign field name that an answer repeats.
func shown(name string) string { return bounded(name, 64) }

package live

import (
	"encoding/json"
	"strconv"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/window"
)

// windowSpecs are the windows by the name of their class, as they are stored and compiled.
type windowSpecs map[string]window.Spec

// principalTexts are the rules of principals in the order in which they were given. Stored they are one object, by id.
type principalTexts []principalText

// principalText is the rule of one principal; nil is not said.
type principalText struct {
	Class        *string `json:"class,omitempty"`
	BytesPerDay  *int64  `json:"bytesPerDay,omitempty"`
	BytesPerWeek *int64  `json:"bytesPerWeek,omitempty"`

	id    string
	field string // how faults name it
}

// MarshalJSON writes one object with the ids in their order; the error is always nil.
func (p principalTexts) MarshalJSON() ([]byte, error) {
	byID := make(map[string]principalText, len(p))
	for _, one := range p {
		byID[one.id] = one
	}
	return json.Marshal(byID)
}

// quotaText is the quota of every principal without its own; nil is not said.
type quotaText struct {
	BytesPerDay  *int64  `json:"bytesPerDay,omitempty"`
	BytesPerWeek *int64  `json:"bytesPerWeek,omitempty"`
	Zone         *string `json:"zone,omitempty"`
}

const (
	windowsRule    = "an object of windows by class: interactive, release, bulk, background; {} for none"
	windowRule     = "an object with open, and where they differ zone and outsideShare"
	spansRule      = "a list of 1..16 spans"
	spanRule       = "an object with from and to, and days where not all seven are meant"
	daysRule       = "names of days, each once: mon, tue, wed, thu, fri, sat, sun; left out for all seven"
	timeRule       = `a local time "HH:MM"`
	zoneRule       = "an IANA time zone name of at most 64 bytes"
	shareRule      = "a number 0..1 with at most three decimals and no exponent"
	principalsRule = "an object of rules by principal id, at most 1024; {} for none"
	idRule         = "a principal id of 1..256 printable ASCII characters"
	principalRule  = "an object with at least one of class, bytesPerDay and bytesPerWeek"
	classRule      = "one of interactive, release, bulk, background"
	quotasRule     = "an object with bytesPerDay, bytesPerWeek and zone, each of which may be left out"
	bytesRule      = "a whole number of bytes 0..9007199254740991, 0 = none"
)

// bytesExample is 10 GB, a number small enough for every quota that stands beside it.
const bytesExample int64 = 10_000_000_000

var (
	windowExample    = json.RawMessage(`{"zone":"Europe/Berlin","open":[{"from":"22:00","to":"06:00"}]}`)
	spansExample     = json.RawMessage(`[{"from":"22:00","to":"06:00"}]`)
	spanExample      = json.RawMessage(`{"days":["mon","tue"],"from":"22:00","to":"06:00"}`)
	principalExample = json.RawMessage(`{"class":"bulk"}`)
	emptyExample     = json.RawMessage(`{}`)
)

// reader reads the fields that have fields of their own. What cannot be read is a fault, and something harmless stands in for it, so that the rest is judged.
type reader struct {
	lenient bool // skip what a newer version may know
	wrong   *faults
}

// members returns the fields of an object; false, with a fault, when it is none.
func (r reader) members(value []byte, field, rule string, example any) ([]member, bool) {
	fields, err := object(value)
	switch err {
	case nil:
		return fields, true
	case errTwice:
		if r.lenient { // the name may be that of a principal
			r.wrong.add(field, "an object without a name that stands twice", nil)
			break
		}
		r.wrong.add(field+"."+bounded(fields[len(fields)-1].name, MaxPrincipalIDBytes), twiceRule, nil)
	default:
		r.wrong.add(field, rule, example)
	}
	return nil, false
}

// unknown is a field of no meaning here.
func (r reader) unknown(field, name string) {
	if !r.lenient {
		r.wrong.add(field+"."+shown(name), unknownRule, nil)
	}
}

func (r reader) windows(value []byte) *windowSpecs {
	fields, ok := r.members(value, "windows", windowsRule, emptyExample)
	if !ok {
		return nil
	}
	specs := make(windowSpecs, len(fields))
	for _, one := range fields {
		if _, err := queue.ParseClass(one.name); err != nil {
			r.unknown("windows", one.name)
			continue
		}
		if spec, ok := r.window(one.value, "windows."+one.name); ok {
			specs[one.name] = spec
		}
	}
	return &specs
}

func (r reader) window(value []byte, at string) (window.Spec, bool) {
	var spec window.Spec
	fields, ok := r.members(value, at, windowRule, windowExample)
	if !ok {
		return spec, false
	}
	for _, one := range fields {
		switch field := at + "." + one.name; one.name {
		case "zone":
			if name := words(one.value, field, zoneRule, "Europe/Berlin", r.wrong); name != nil {
				spec.Zone = *name
				if *name == "" { // left out it is UTC; given it names one
					r.wrong.add(field, zoneRule, "Europe/Berlin")
				}
			}
		case "outsideShare":
			if spec.OutsideShare, ok = share(one.value); !ok {
				r.wrong.add(field, shareRule, json.Number("0.25"))
			}
		case "open":
			spec.Open = r.spans(one.value, field)
		default:
			r.unknown(at, one.name)
		}
	}
	return spec, true
}

// spans reads the list of a window's spans, at most one more than there may be.
func (r reader) spans(value []byte, at string) []window.Span {
	items, ok := list(value)
	if !ok {
		r.wrong.add(at, spansRule, spansExample)
		return []window.Span{{From: "00:00", To: "24:00"}}
	}
	spans := make([]window.Span, min(len(items), window.MaxSpans+1))
	for i := range spans {
		spans[i] = r.span(items[i], at+"["+strconv.Itoa(i)+"]")
	}
	return spans
}

func (r reader) span(value []byte, at string) window.Span {
	whole := window.Span{From: "00:00", To: "24:00"}
	fields, ok := r.members(value, at, spanRule, spanExample)
	if !ok {
		return whole
	}
	var s window.Span
	for _, one := range fields {
		switch field := at + "." + one.name; one.name {
		case "days":
			s.Days = r.days(one.value, field)
		case "from":
			s.From = r.time(one.value, field, "22:00")
		case "to":
			s.To = r.time(one.value, field, "06:00")
		default:
			r.unknown(at, one.name)
		}
	}
	return s
}

// time reads a time of day. What is no text stands in as one, so that it is named once.
func (r reader) time(value []byte, field, example string) string {
	if text := words(value, field, timeRule, example, r.wrong); text != nil {
		return *text
	}
	return example
}

func (r reader) days(value []byte, field string) []string {
	items, ok := list(value)
	days := make([]string, 0, 8)
	for i := 0; ok && i < len(items) && i < 8; i++ { // of eight one stands twice
		var name string
		ok = items[i][0] == '"' && json.Unmarshal(items[i], &name) == nil
		days = append(days, name)
	}
	if !ok {
		r.wrong.add(field, daysRule, json.RawMessage(`["mon","tue"]`))
		return nil
	}
	return days
}

func (r reader) principals(value []byte) *principalTexts {
	fields, ok := r.members(value, "principals", principalsRule, emptyExample)
	if !ok {
		return nil
	}
	if len(fields) > MaxPrincipals {
		r.wrong.add("principals", principalsRule, emptyExample)
		return nil
	}
	all := make(principalTexts, 0, len(fields))
	for i, one := range fields {
		field := "principals." + bounded(one.name, MaxPrincipalIDBytes)
		if r.lenient { // the fault goes to the log, which names nobody
			field = "principals[" + strconv.Itoa(i) + "]"
		}
		if !printable(one.name) {
			r.wrong.add(field, idRule, nil)
			continue
		}
		rule := principalText{id: one.name, field: field}
		if r.principal(&rule, one.value) {
			all = append(all, rule)
		}
	}
	return &all
}

// principal reads the rule of one principal; false when it says nothing.
func (r reader) principal(rule *principalText, value []byte) bool {
	fields, ok := r.members(value, rule.field, principalRule, principalExample)
	if !ok {
		return false
	}
	if len(fields) == 0 && !r.lenient {
		r.wrong.add(rule.field, principalRule, principalExample)
	}
	for _, one := range fields {
		switch field := rule.field + "." + one.name; one.name {
		case "class":
			rule.Class = words(one.value, field, classRule, "bulk", r.wrong)
		case "bytesPerDay":
			rule.BytesPerDay = r.amount(one.value, field)
		case "bytesPerWeek":
			rule.BytesPerWeek = r.amount(one.value, field)
		default:
			r.unknown(rule.field, one.name)
		}
	}
	return rule.Class != nil || rule.BytesPerDay != nil || rule.BytesPerWeek != nil
}

func (r reader) quotas(value []byte) *quotaText {
	fields, ok := r.members(value, "quotas", quotasRule, emptyExample)
	if !ok {
		return nil
	}
	var q quotaText
	for _, one := range fields {
		switch field := "quotas." + one.name; one.name {
		case "bytesPerDay":
			q.BytesPerDay = r.amount(one.value, field)
		case "bytesPerWeek":
			q.BytesPerWeek = r.amount(one.value, field)
		case "zone":
			q.Zone = words(one.value, field, zoneRule, "Europe/Berlin", r.wrong)
		default:
			r.unknown("quotas", one.name)
		}
	}
	return &q
}

// amount reads a number of bytes; a fault when it is no whole number.
func (r reader) amount(value []byte, field string) *int64 {
	n := whole(value)
	if n == nil {
		r.wrong.add(field, bytesRule, bytesExample)
	}
	return n
}

// list splits a JSON array into its items.
func list(value []byte) (items []json.RawMessage, ok bool) {
	ok = value[0] == '[' && json.Unmarshal(value, &items) == nil
	return items, ok
}

// share reads a number of at most one digit before the point and three behind it.
func share(value []byte) (float64, bool) {
	for i, b := range value {
		if i == 1 && b != '.' || i != 1 && (b < '0' || b > '9') || i > 4 {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(string(value), 64)
	return n, err == nil && n <= 1
}

// printable reports whether a text may be a principal id: all ids that this proxy makes are of these characters (see proxy/identity).
func printable(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= MaxPrincipalIDBytes
}

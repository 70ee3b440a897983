package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file turns what a person writes behind field= into the JSON that the server takes, and back. It judges nothing that the server judges: a text that is of
// no form it knows goes there as a text, and the answer says the field's rule.

// valueOf reads the value of a field, name being the last part of its name.
func valueOf(name, text string) json.RawMessage {
	text = strings.TrimSpace(text)
	plain := json.RawMessage(text)
	switch {
	case json.Valid(plain):
		return plain
	case strings.Contains(strings.ToLower(name), "bytes"):
		if n, err := parseBytes(text); err == nil {
			return json.RawMessage(strconv.FormatInt(n, 10))
		}
	case strings.HasSuffix(name, "Seconds"), strings.HasSuffix(name, "Minutes"):
		unit := time.Second
		if strings.HasSuffix(name, "Minutes") {
			unit = time.Minute
		}
		if d, err := time.ParseDuration(text); err == nil && d%unit == 0 {
			return json.RawMessage(strconv.FormatInt(int64(d/unit), 10))
		}
	}
	return quoted(text)
}

// quoted is a text in JSON.
func quoted(text string) json.RawMessage {
	value, err := json.Marshal(text)
	if err != nil { // a string has always a form
		return json.RawMessage(`""`)
	}
	return value
}

// weightsOf reads 8,4,2,1.
func weightsOf(text string) (json.RawMessage, bool) {
	parts := strings.Split(text, ",")
	if len(parts) != len(classNames) {
		return nil, false
	}
	var o object
	for i, part := range parts {
		o = append(o, member{classNames[i], valueOf(classNames[i], part)})
	}
	value, err := json.Marshal(o)
	return value, err == nil
}

// dayNames are the days of a week, as they stand in windows.
var dayNames = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// window is the hours of a class, as the server has them.
type window struct {
	Zone         string       `json:"zone,omitempty"`
	OutsideShare json.Number  `json:"outsideShare,omitempty"`
	Open         []windowSpan `json:"open"`
}

type windowSpan struct {
	Days []string `json:"days,omitempty"`
	From string   `json:"from"`
	To   string   `json:"to"`
}

const (
	windowRule    = "spans FROM-TO with days before them, a time zone, and outside SHARE; or always"
	windowExample = "'mon-fri 22:00-06:00, sat,sun 00:00-24:00 Europe/Berlin outside 10%'"
	quotaRule     = "a class, BYTES/day and BYTES/week, in any order; or none"
	quotaExample  = "'bulk 100GB/day 1TB/week'"
)

// windowOf reads the hours of a class. A span without days of its own has those of the span before it; without any it holds on all days. That hours, zone and share
// are right is the server's to say.
func windowOf(text string) (json.RawMessage, error) {
	wrong := fmt.Errorf("must be %s, for example %s", windowRule, windowExample)
	var w window
	var days []string
	given := false // days came since the last span
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '\t' })
	for i := 0; i < len(words); i++ {
		one := words[i]
		from, to, isRange := strings.Cut(one, "-")
		some := daysOf(strings.ToLower(one))
		switch {
		case len(some) > 0:
			if !given {
				days = nil
			}
			days, given = append(days, some...), true
		case isRange && strings.Contains(from, ":") && strings.Contains(to, ":"):
			w.Open, given = append(w.Open, windowSpan{Days: slices.Clone(days), From: from, To: to}), false
		case strings.EqualFold(one, "outside") && i+1 < len(words):
			i++
			share, err := parseShare(words[i])
			if err != nil {
				return nil, wrong
			}
			// A tenth of a per cent has no exact form: 33.3 % is 0.333 and not the number beside it.
			w.OutsideShare = json.Number(strconv.FormatFloat(math.Round(share*1e9)/1e9, 'f', -1, 64))
		case w.Zone == "" && !strings.ContainsAny(one, ":%") && (strings.Contains(one, "/") || strings.ToUpper(one) == one):
			w.Zone = one
		default:
			return nil, wrong
		}
	}
	if len(w.Open) == 0 || given {
		return nil, wrong
	}
	return json.Marshal(w)
}

// daysOf reads mon, or mon-fri, or fri-mon; nil when it is neither. daily stands for all of them.
func daysOf(text string) []string {
	if text == "daily" {
		return dayNames
	}
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, to := slices.Index(dayNames, first), slices.Index(dayNames, last)
	if from < 0 || to < 0 {
		return nil
	}
	var all []string
	for day := from; ; day = (day + 1) % len(dayNames) {
		if all = append(all, dayNames[day]); day == to {
			return all
		}
	}
}

// showDays writes days as daysOf reads them, three or more in a row as a range.
func showDays(days []string) string {
	var parts []string
	for from := 0; from < len(days); {
		to := from
		for to+1 < len(days) && slices.Contains(dayNames, days[to]) && days[to+1] == dayNames[(slices.Index(dayNames, days[to])+1)%len(dayNames)] && to+1-from < len(dayNames) {
			to++
		}
		if to-from < 2 {
			parts = append(parts, days[from])
			from++
			continue
		}
		parts = append(parts, days[from]+"-"+days[to])
		from = to + 1
	}
	return strings.Join(parts, ",")
}

// showWindow writes the hours as windowOf reads them; ok is false where it has no such form.
func showWindow(value json.RawMessage) (text string, ok bool) {
	var w window
	if json.Unmarshal(value, &w) != nil || len(w.Open) == 0 {
		return "", false
	}
	var parts []string
	for i, span := range w.Open {
		days := ""
		switch {
		case len(span.Days) > 0 && (i == 0 || !slices.Equal(span.Days, w.Open[i-1].Days)):
			days = showDays(span.Days) + " "
		case len(span.Days) == 0 && i > 0 && len(w.Open[i-1].Days) > 0:
			days = "daily "
		}
		parts = append(parts, days+span.From+"-"+span.To)
	}
	text = strings.Join(parts, ", ")
	if w.Zone != "" {
		text += " " + w.Zone
	}
	if share, err := w.OutsideShare.Float64(); err == nil && share != 0 {
		text += " outside " + strconv.FormatFloat(share*100, 'g', 6, 64) + "%"
	}
	return oneLine(text), true
}

// quotaOf reads what a principal gets.
func quotaOf(text string) (json.RawMessage, error) {
	var o object
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }) {
		amount, day := strings.CutSuffix(one, "/day")
		amount, week := strings.CutSuffix(amount, "/week")
		switch n, err := parseBytes(amount); {
		case (day || week) && err != nil:
			return nil, fmt.Errorf("must be %s, for example %s", quotaRule, quotaExample)
		case day:
			o = o.with("bytesPerDay", json.RawMessage(strconv.FormatInt(n, 10)))
		case week:
			o = o.with("bytesPerWeek", json.RawMessage(strconv.FormatInt(n, 10)))
		default:
			o = o.with("class", quoted(one))
		}
	}
	if len(o) == 0 {
		return nil, fmt.Errorf("must be %s, for example %s", quotaRule, quotaExample)
	}
	return json.Marshal(o)
}

// showQuota writes what a principal gets as quotaOf reads it; ok is false where it has no such form.
func showQuota(value json.RawMessage) (text string, ok bool) {
	o, ok := objectOf(value)
	if !ok || len(o) == 0 {
		return "", false
	}
	var parts []string
	for _, one := range o {
		n, err := strconv.ParseInt(string(one.value), 10, 64)
		switch {
		case one.name == "class" && len(one.value) > 2:
			parts = append(parts, plainText(one.value))
		case one.name == "bytesPerDay" && err == nil:
			parts = append(parts, exactBytes(n)+"/day")
		case one.name == "bytesPerWeek" && err == nil:
			parts = append(parts, exactBytes(n)+"/week")
		default:
			return "", false
		}
	}
	return strings.Join(parts, " "), true
}

// exactBytes writes a number of bytes with the largest unit that leaves none out.
func exactBytes(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// plainText is a JSON value for people: a text without its quotes.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return oneLine(text)
	}
	return oneLine(canonical(value))
}

// showValue writes the value of a field, of the name it is shown under.
func showValue(name string, value json.RawMessage) string {
	if string(value) == "{}" {
		return "none"
	}
	switch top(name) {
	case "windows":
		if text, ok := showWindow(value); ok {
			return text
		}
	case "principals":
		if text, ok := showQuota(value); ok {
			return text
		}
	}
	text := plainText(value)
	if strings.Contains(strings.ToLower(name), "bytes") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			if exact := exactBytes(n); exact != text {
				text += " (" + exact + ")"
			}
		}
	}
	return text
}

package config

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Print writes the effective settings to w, one VARIABLE=value a line in the order of Table, in the form that Load
// reads; an unset variable has nothing after the equals sign and a secret is "(set)" or "(unset)". Errors of w end the
// writing and are not reported.
func (c Config) Print(w io.Writer) {
	for _, one := range definitions {
		if _, err := fmt.Fprintf(w, "%s=%s\n", one.name, c.text(one.name)); err != nil {
			return
		}
	}
}

// text returns the value of a variable as an operator would write it. A value of a type without a case here prints as
// fmt prints it.
func (c Config) text(name string) string {
	fields := reflect.ValueOf(c)
	for i := range fields.NumField() {
		if fields.Type().Field(i).Tag.Get("env") != name {
			continue
		}
		switch value := fields.Field(i).Interface().(type) {
		case time.Duration:
			return strconv.FormatInt(int64(value/unitDuration(name)), 10)
		case *url.URL:
			if value == nil {
				return ""
			}
			return value.String()
		case []netip.Prefix:
			parts := make([]string, len(value))
			for i, network := range value {
				parts[i] = network.String()
			}
			return strings.Join(parts, ",")
		default:
			return fmt.Sprint(value)
		}
	}
	return ""
}

// unitDuration returns one unit of a variable that is a time.
func unitDuration(name string) time.Duration {
	unit, err := time.ParseDuration("1" + unitOf(name))
	if err != nil {
		return time.Nanosecond
	}
	return unit
}

// Table returns the markdown table of all variables: variable, default, rule, meaning. It ends with a line end.
func Table() string {
	var text strings.Builder
	text.WriteString("| Variable | Default | Rule | Meaning |\n| --- | --- | --- | --- |\n")
	for _, one := range definitions {
		shown := "unset"
		switch {
		case one.derived != "":
			shown = one.derived
		case defaults[one.name] != "":
			shown = "`" + defaults[one.name] + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", one.name, shown, one.rule, one.meaning)
	}
	return text.String()
}

// Known returns the names of all variables that this version reads, in the order of Table. The slice is the caller's.
func Known() []string {
	names := make([]string, len(definitions))
	for i, one := range definitions {
		names[i] = one.name
	}
	return names
}

package config

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caarlos0/env/v11"
)

// load is one run of Load. given holds the texts of known variables that are set and not empty; faulty marks those
// variables whose value cannot be used in a rule between variables.
type load struct {
	config   Config
	given    map[string]string
	faulty   map[string]bool
	faults   map[string][]Fault
	warnings []Warning
}

// Load checks the variables of environ, which has the form of os.Environ (of two entries with one name the last holds),
// and returns the effective configuration. The warnings are sorted by variable and come with a fault as well as without.
// On faults the error is a *Faults with all of them and the Config is zero. Load opens the files that variables name,
// blocks for nothing else, and is safe for concurrent use.
func Load(environ []string) (Config, []Warning, error) {
	run := &load{faulty: map[string]bool{}, faults: map[string][]Fault{}}
	all := env.ToMap(environ)
	run.given = pickKnown(all)
	run.warnings = strangers(all)
	run.bind(run.canonical())
	run.settle()
	sortWarnings(run.warnings)
	var faults Faults
	for _, one := range definitions {
		faults.List = append(faults.List, run.faults[one.name]...)
	}
	if len(faults.List) > 0 {
		return Config{}, run.warnings, &faults
	}
	return run.config, run.warnings, nil
}

// pickKnown returns the variables of this package that are set to something. Leaving out the empty ones here is what
// makes an empty variable an unset one everywhere.
func pickKnown(all map[string]string) map[string]string {
	known := make(map[string]string, len(definitions))
	for _, one := range definitions {
		if text := all[one.name]; text != "" {
			known[one.name] = text
		}
	}
	return known
}

// canonical checks each given text and returns what is to be bound: the canonical text of good values, the default
// of all others.
func (l *load) canonical() map[string]string {
	texts := maps.Clone(defaults)
	for _, one := range definitions {
		text, given := l.given[one.name]
		if !given {
			text = texts[one.name]
		}
		if text == "" {
			continue
		}
		canonical, err := one.judge(text)
		if err != nil {
			l.fault(one.name, err.Error())
			canonical, _ = one.judge(texts[one.name])
		}
		texts[one.name] = canonical
	}
	return texts
}

// judge applies the rules of the variable. Control characters are refused in every value: they would forge lines in logs.
func (d definition) judge(text string) (string, error) {
	text = strings.Trim(text, d.margin)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("holds a control character or broken UTF-8 (a line end of an env file, perhaps)")
	}
	return d.check(text)
}

// bind fills the fields of the configuration. No value that passed its check can fail here: an error means that a check
// accepts what its field cannot hold, and becomes a fault of that variable all the same.
func (l *load) bind(texts map[string]string) {
	err := env.ParseWithOptions(&l.config, env.Options{Environment: texts})
	if err == nil {
		return
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		all.Errors = []error{err}
	}
	for _, one := range all.Errors {
		var parse env.ParseError
		if !errors.As(one, &parse) {
			// The tags or types of Config are wrong, which every test of this package would show.
			panic("config: cannot bind: " + one.Error())
		}
		l.fault(variableOf(parse.Name), "does not fit its setting")
	}
}

// fault records what is wrong with the value of a variable.
func (l *load) fault(name, problem string) {
	for _, one := range definitions {
		if one.name == name {
			l.faulty[name] = true
			l.faults[name] = append(l.faults[name], Fault{
				Variable: name, Value: l.shown(one), Problem: problem, Rule: one.rule, Example: name + "=" + one.example,
			})
		}
	}
}

// maxShown bounds the part of a value that a fault repeats, in bytes.
const maxShown = 160

// shown returns the value of a variable as a fault may show it.
func (l *load) shown(one definition) string {
	text, given := l.given[one.name]
	switch {
	case !given && defaults[one.name] == "":
		return "(unset)"
	case !given:
		return "(default " + defaults[one.name] + ")"
	case one.secret:
		return "(set, not shown)"
	case one.opaque && strings.ContainsAny(text, "@?#"):
		return "(not shown, it may hold credentials)"
	case len(text) > maxShown:
		return strconv.Quote(strings.ToValidUTF8(text[:maxShown], "")) + "..."
	}
	return strconv.Quote(text)
}

// warn records a warning.
func (l *load) warn(name, text string) {
	l.warnings = append(l.warnings, Warning{Variable: name, Text: text})
}

// defaults holds the default text of each variable that has one, as an operator would write it.
var defaults = readDefaults()

func readDefaults() map[string]string {
	texts := map[string]string{}
	fields := reflect.TypeFor[Config]()
	for i := range fields.NumField() {
		tag := fields.Field(i).Tag
		if text := tag.Get("envDefault"); text != "" {
			texts[tag.Get("env")] = text
		}
	}
	return texts
}

// variableOf returns the variable of a field of Config.
func variableOf(field string) string {
	found, _ := reflect.TypeFor[Config]().FieldByName(field)
	return found.Tag.Get("env")
}

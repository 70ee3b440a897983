package config

import (
	"strconv"
	"strings"
)

// Fault is one wrong variable.
type Fault struct {
	// Variable is the full name, ARKVORY_ included.
	Variable string
	// Value is the given value, quoted and cut to a readable length, or a word in parentheses where the value is a
	// secret, may contain one, or was not given.
	Value string
	// Problem says what is wrong with this value, and the remedy where it is not plain from the rule.
	Problem string
	// Rule is what the variable accepts.
	Rule string
	// Example is an assignment that is accepted.
	Example string
}

// Error returns the fault on one line.
func (f Fault) Error() string {
	return f.Variable + "=" + f.Value + ": " + f.Problem + "; rule: " + f.Rule + "; example: " + f.Example
}

// Faults is every fault that Load found, in the order of the variables in Table. It is never empty when returned.
type Faults struct {
	List []Fault
}

// Error returns one line for the number of faults and one for each fault.
func (f *Faults) Error() string {
	noun := " faults"
	if len(f.List) == 1 {
		noun = " fault"
	}
	var text strings.Builder
	text.WriteString("cannot use the configuration: " + strconv.Itoa(len(f.List)) + noun)
	for _, one := range f.List {
		text.WriteString("\n  " + one.Error())
	}
	return text.String()
}

// Unwrap lets errors.As find single faults.
func (f *Faults) Unwrap() []error {
	all := make([]error, len(f.List))
	for i, one := range f.List {
		all[i] = one
	}
	return all
}

// Warning is something an operator should know that does not stop the start. It never holds a value.
type Warning struct {
	// Variable is the name as it was given.
	Variable string
	// Text is the whole message without the name.
	Text string
}

// String returns the warning on one line.
func (w Warning) String() string { return w.Variable + ": " + w.Text }

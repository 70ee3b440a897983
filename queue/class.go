package queue

import (
	"fmt"
	"strings"
)

// Class is the priority class of a session. The zero value is Interactive.
type Class uint8

// The classes from the first to the last; their numbers are their indexes in every [Classes]T of this module.
const (
	Interactive Class = iota // people: browsers, client certificates, trusted header identities
	Release                  // CI, deployments, links
	Bulk                     // mass updates
	Background               // mirrors and other work nobody waits for
)

// Classes is the number of classes.
const Classes = 4

var classNames = [Classes]string{"interactive", "release", "bulk", "background"}

// ParseClass returns the class of that name. The match is exact: header values are lower-cased by nobody on the way.
func ParseClass(name string) (Class, error) {
	for i, n := range classNames {
		if n == name {
			return Class(i), nil
		}
	}
	return 0, fmt.Errorf("cannot parse download class %q: must be one of %s", clip(name), strings.Join(classNames[:], ", "))
}

// String returns the name that headers, logs and metric labels carry.
func (c Class) String() string {
	if c >= Classes {
		return "unknown"
	}
	return classNames[c]
}

// Index returns the class as an index of a [Classes]T array; an unknown class counts as the last.
func (c Class) Index() int {
	if c >= Classes {
		return Classes - 1
	}
	return int(c)
}

// Lower returns the lower in priority of the two: a client may only lower the class its identity gives it.
func (c Class) Lower(asked Class) Class { return max(c, asked) }

// Strategy is the rule that orders waiting sessions.
type Strategy uint8

// The strategies this core carries out. All but Shared order classes by weight; they differ within a class.
const (
	Ordered       Strategy = iota // principals in turns, FIFO by arrival within one
	Shared                        // no sessions: every request is admitted by itself
	SmallestFirst                 // smaller objects first, bigger ones age
	FairSojourn                   // by the finish each download would have under equal sharing
)

var strategyNames = []string{"ordered", "shared", "smallest-first", "fair-sojourn"}

// ParseStrategy returns the strategy of that name.
func ParseStrategy(name string) (Strategy, error) {
	for i, n := range strategyNames {
		if n == name {
			return Strategy(i), nil
		}
	}
	return 0, fmt.Errorf("cannot parse download strategy %q: must be one of %s", clip(name), strings.Join(strategyNames, ", "))
}

// String returns the name that settings carry.
func (s Strategy) String() string {
	if int(s) >= len(strategyNames) {
		return "unknown"
	}
	return strategyNames[s]
}

// clip bounds a foreign text that an error repeats.
func clip(text string) string {
	const limit = 64
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "..."
}

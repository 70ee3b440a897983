package rulefile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the shape of a [Node].
type Kind uint8

// Shapes. Null is an absent value as in "key:".
const (
	Null Kind = iota
	Scalar
	Map
	List
)

func (k Kind) String() string {
	return [...]string{"nothing", "a single value", "a mapping", "a list"}[min(k, List)]
}

// Node is one value of a document. The zero value is a Null node.
type Node struct {
	Kind  Kind
	Line  int    // from 1
	Text  string // of a Scalar, without quotes
	Keys  []Key  // of a Map, in the order written
	Items []Node // of a List
}

// Key is one entry of a mapping.
type Key struct {
	Name  string
	Line  int
	Value Node
}

// Fault is one thing wrong with a file. Text says what and how it should be; it quotes values only where they cannot be secret.
type Fault struct {
	Line int
	Text string
}

// Faults collects what is wrong with a file, at most [MaxFaults] of them; the zero value is ready.
type Faults struct {
	list []Fault
	more int
}

// Addf notes a fault at a line.
func (f *Faults) Addf(line int, format string, args ...any) {
	if len(f.list) >= MaxFaults {
		f.more++
		return
	}
	f.list = append(f.list, Fault{Line: line, Text: fmt.Sprintf(format, args...)})
}

// List returns the faults in the order of their lines.
func (f *Faults) List() []Fault {
	l := slices.Clone(f.list)
	slices.SortStableFunc(l, func(a, b Fault) int { return a.Line - b.Line })
	return l
}

// Err returns nil when there is no fault, else an error that lists all with their lines.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return f
}

// Error lists the faults, "line 3: ...; line 9: ...".
func (f *Faults) Error() string {
	var b strings.Builder
	for i, x := range f.List() {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "line %d: %s", x.Line, x.Text)
	}
	if f.more > 0 {
		fmt.Fprintf(&b, "; and %d more", f.more)
	}
	return b.String()
}

// Only notes each key of a mapping that is not allowed and each one that is repeated. It reports whether n is a mapping and notes
// it when not; what names the place in that fault.
func (n Node) Only(f *Faults, what string, allowed ...string) bool {
	if n.Kind != Map {
		f.Addf(n.Line, "%s must be a mapping with the keys %s, it is %s", what, strings.Join(allowed, ", "), n.Kind)
		return false
	}
	seen := make(map[string]bool, len(n.Keys))
	for _, k := range n.Keys {
		switch {
		case seen[k.Name]:
			f.Addf(k.Line, "%s: %s is given twice", what, word(k.Name))
		case !slices.Contains(allowed, k.Name):
			f.Addf(k.Line, "%s: %s is unknown, known are %s", what, word(k.Name), strings.Join(allowed, ", "))
		}
		seen[k.Name] = true
	}
	return true
}

// word quotes a key for a fault when it can be a misspelt word; anything else may be a secret in the wrong place.
func word(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i] | 0x20; len(s) > 24 || c < 'a' || c > 'z' {
			return "a key"
		}
	}
	return "the key " + strconv.Quote(s)
}

// Get returns the value of a key, false when the mapping has none of that name.
func (n Node) Get(name string) (Node, bool) {
	for _, k := range n.Keys {
		if k.Name == name {
			return k.Value, true
		}
	}
	return Node{}, false
}

// List returns the items under a key; an absent key is an empty list, another shape is noted.
func (n Node) List(f *Faults, name string) []Node {
	v, ok := n.Get(name)
	if !ok {
		return nil
	}
	if v.Kind != List {
		f.Addf(v.Line, "%s must be a list, it is %s", name, v.Kind)
		return nil
	}
	return v.Items
}

// String returns the text of a scalar under a key, "" and false when the key is absent; another shape is noted.
func (n Node) String(f *Faults, name string) (string, bool) {
	v, ok := n.Get(name)
	if !ok {
		return "", false
	}
	if v.Kind != Scalar {
		f.Addf(v.Line, "%s must be a single value, it is %s", name, v.Kind)
		return "", false
	}
	return v.Text, true
}

// Int returns a whole number in [low, high] under a key, false when the key is absent or what stands there was noted.
func (n Node) Int(f *Faults, name string, low, high int) (int, bool) {
	s, ok := n.String(f, name)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < low || v > high {
		at, _ := n.Get(name)
		f.Addf(at.Line, "%s must be a whole number from %d to %d, such as %d", name, low, high, high)
		return 0, false
	}
	return v, true
}

// Bool returns true or false under a key; ok is false when the key is absent or what stands there was noted.
func (n Node) Bool(f *Faults, name string) (value, ok bool) {
	s, ok := n.String(f, name)
	if !ok {
		return false, false
	}
	switch s {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	at, _ := n.Get(name)
	f.Addf(at.Line, "%s must be true or false", name)
	return false, false
}

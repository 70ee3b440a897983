package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// object is a JSON object that keeps the order and the text of its members, known to this program or not: what a newer server sends goes back as it came.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("no JSON object with each name once")

// UnmarshalJSON reads an object; a name that comes twice is an error, since nobody could say which counts.
func (o *object) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return errNoObject
	}
	*o = object{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if o.get(name.(string)) != nil { // the decoder lets nothing but a text stand here
			return errNoObject
		}
		*o = append(*o, member{name.(string), value})
	}
	_, err := decoder.Token()
	return err
}

// MarshalJSON writes the members in their order; nil is {}.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(one.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// get returns a member, nil when there is none.
func (o object) get(name string) json.RawMessage {
	for _, one := range o {
		if one.name == name {
			return one.value
		}
	}
	return nil
}

// with returns the object with a member set; o stays as it is.
func (o object) with(name string, value json.RawMessage) object {
	o = slices.Clone(o)
	for i := range o {
		if o[i].name == name {
			o[i].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

// without returns the object without a member; o stays as it is.
func (o object) without(name string) object {
	return slices.DeleteFunc(slices.Clone(o), func(one member) bool { return one.name == name })
}

// objectOf reads a member that is an object; ok is false of another.
func objectOf(value json.RawMessage) (o object, ok bool) {
	if len(value) == 0 || value[0] != '{' {
		return nil, false
	}
	return o, json.Unmarshal(value, &o) == nil
}

// same reports whether two JSON texts mean the same: the order of members and spaces say nothing, the digits of numbers do.
func same(a, b json.RawMessage) bool {
	return canonical(a) == canonical(b)
}

// canonical is the text of a value with sorted names and without spaces; what is no JSON stands as it is.
func canonical(text json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(text)
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return string(text)
	}
	return string(sorted)
}

// flat are the members as they are shown and named in changes: objects one deep as name.member, an empty one as itself.
func (o object) flat() []member {
	var all []member
	for _, one := range o {
		inner, ok := objectOf(one.value)
		if !ok || len(inner) == 0 {
			all = append(all, one)
			continue
		}
		for _, part := range inner {
			all = append(all, member{one.name + "." + part.name, part.value})
		}
	}
	return all
}

// top is the field that a shown name belongs to.
func top(name string) string {
	field, _, _ := strings.Cut(name, ".")
	return field
}

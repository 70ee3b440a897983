package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// actionKinds are the actions in the order of the description.
var actionKinds = []ActionKind{Move, Pause, Resume, Kick}

// noValue is a body that is right for every action but Move; an example.
var noValue = json.RawMessage("{}")

// aMove is a body that is right for Move.
var aMove = json.RawMessage(`{"to":"front"}`)

// parseAction reads the body of an action: for Move an object with one field, else an empty object or nothing.
func parseAction(kind ActionKind, body []byte) (Action, *QueryError) {
	a := Action{Kind: kind}
	fields, wrong := bodyFields(kind, body)
	if wrong != nil {
		return a, wrong
	}
	if kind != Move {
		if len(fields) > 0 {
			return a, &QueryError{"body", "this action has no fields", noValue}
		}
		return a, nil
	}
	const rule = "exactly one of to and class"
	if len(fields) != 1 {
		return a, &QueryError{"body", rule, aMove}
	}
	var value string
	err := json.Unmarshal(fields[0].value, &value)
	switch fields[0].name {
	case "to":
		if a.To = value; err != nil || value != ToFront && value != ToBack {
			return a, &QueryError{"to", "one of " + ToFront + ", " + ToBack, ToFront}
		}
	case "class":
		if a.Class = value; err != nil || !slices.Contains(Classes[:], value) {
			return a, &QueryError{"class", "one of " + strings.Join(Classes[:], ", "), Classes[2]}
		}
	default: // its name is not repeated
		return a, &QueryError{"body", rule, aMove}
	}
	return a, nil
}

// bodyField is one field of an object, its value as it stands.
type bodyField struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("not one JSON object")

// bodyFields takes an object apart, which encoding/json alone would not do with a name that stands twice. An empty body is an object without
// fields.
func bodyFields(kind ActionKind, body []byte) ([]bodyField, *QueryError) {
	example := noValue
	if kind == Move {
		example = aMove
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 { // the white space of JSON, no other
		return nil, nil
	}
	fields, err := objectFields(body)
	if err != nil {
		return nil, &QueryError{"body", "one JSON object, each field once", example}
	}
	return fields, nil
}

func objectFields(body []byte) (fields []bodyField, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, errNoObject
	}
	for d.More() {
		name, err := d.Token()
		text, ok := name.(string)
		if err != nil || !ok || slices.ContainsFunc(fields, func(f bodyField) bool { return f.name == text }) {
			return nil, errNoObject
		}
		one := bodyField{name: text}
		if err := d.Decode(&one.value); err != nil {
			return nil, errNoObject
		}
		fields = append(fields, one)
	}
	if _, err := d.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return fields, nil
}

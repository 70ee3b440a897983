package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// member is one field of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

var (
	errNoObject = errors.New("not one JSON object")
	errTwice    = errors.New("a field stands twice")
)

// object splits the text of one JSON object into its fields, in their order. Names are exact, and none may stand twice: encoding/json
// would match them in any case and silently take the last. On errTwice the fields before the repeated one, and it as the last, are returned.
func object(text []byte) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, errNoObject
	}
	var fields []member
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, errNoObject
		}
		one := member{name: name}
		if err := decoder.Decode(&one.value); err != nil {
			return nil, errNoObject
		}
		fields = append(fields, one)
		if seen[name] {
			return fields, errTwice
		}
		seen[name] = true
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errNoObject
	}
	return fields, nil
}

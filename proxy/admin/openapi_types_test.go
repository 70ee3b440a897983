package admin

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// documents are the types that stand in bodies, by the name of their schema.
var documents = map[string]reflect.Type{
	"Settings": reflect.TypeFor[SettingsDocument](), "EffectiveSettings": reflect.TypeFor[EffectiveSettings](), "Queue": reflect.TypeFor[QueueDocument](),
	"History": reflect.TypeFor[HistoryDocument](), "Sessions": reflect.TypeFor[SessionsDocument](), "Session": reflect.TypeFor[SessionDocument](), "Ready": reflect.TypeFor[Document](),
	"Status": reflect.TypeFor[Status](), "Problem": reflect.TypeFor[Problem](), "Invalid": reflect.TypeFor[Invalid](), "Stale": reflect.TypeFor[Stale](), "Fault": reflect.TypeFor[SettingFault](),
}

func TestV3_SchemasHaveTheFieldsOfTheTypes(t *testing.T) {
	s := described(t)
	for name, of := range documents {
		s.compare(t, name, s.at(s.root, "components", "schemas", name), of)
	}
	effective, overrides := s.at(s.root, "components", "schemas", "EffectiveSettings", "properties"), s.at(s.root, "components", "schemas", "Overrides", "properties")
	if a, b := slices.Sorted(maps.Keys(effective)), slices.Sorted(maps.Keys(overrides)); !slices.Equal(a, b) {
		t.Errorf("the overrides are %v, in force are %v", b, a)
	}
}

func TestV3_WordsAreThoseOfTheCode(t *testing.T) {
	s := described(t)
	words := func(names ...string) []string {
		n := s.at(s.root, names...)
		var all []string
		for _, one := range anyList(n["enum"]) {
			all = append(all, one.(string))
		}
		return all
	}
	for name, c := range map[string]struct{ got, want []string }{
		"why":   {words("components", "schemas", "Session", "properties", "why"), append([]string{""}, Whys...)},
		"class": {words("components", "schemas", "Session", "properties", "class"), Classes[:]},
		"state": {words("components", "schemas", "Session", "properties", "state"), []string{StateWaiting, StateActive, StateRemembered, StateEnded}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s is described as %q, is %q", name, c.got, c.want)
		}
	}
}

var (
	rawType     = reflect.TypeFor[json.RawMessage]()
	momentTypes = []reflect.Type{reflect.TypeFor[Moment](), reflect.TypeFor[time.Time]()}
	seriesType  = reflect.TypeFor[Series]()
)

// compare holds a schema to a type: the same fields, required and null where the type says so.
func (s schemas) compare(t *testing.T, where string, schema node, of reflect.Type) {
	t.Helper()
	schema = s.at(schema)
	optional := of.Kind() == reflect.Pointer
	if optional {
		of = of.Elem()
		if alternatives := anyList(schema["oneOf"]); len(alternatives) == 2 && s.at(alternatives[1].(node))["type"] == "null" {
			s.compare(t, where, alternatives[0].(node), of)
			return
		}
	}
	want := ""
	switch {
	case of == rawType:
		want = "object"
	case slices.Contains(momentTypes, of), of.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()), of.Kind() == reflect.String:
		want = "string"
	case of.Kind() == reflect.Interface: // any value
		return
	case of == seriesType, of.Kind() == reflect.Slice:
		want = "array"
	case of.Kind() == reflect.Struct, of.Kind() == reflect.Map:
		want = "object"
	case of.Kind() == reflect.Bool:
		want = "boolean"
	case of.Kind() == reflect.Float64:
		want = "number"
	default:
		want = "integer"
	}
	if _, constant := schema["const"]; !constant {
		types := typeNames(schema["type"])
		if types[0] != want || optional != slices.Contains(types, "null") {
			t.Errorf("%s: described as %v, is %v", where, schema["type"], of)
		}
	}
	if slices.Contains(momentTypes, of) && schema["format"] != "date-time" {
		t.Errorf("%s: format %v", where, schema["format"])
	}
	switch {
	case of == rawType || of == seriesType || want != "object" && want != "array":
	case of.Kind() == reflect.Slice:
		s.compare(t, where+"[]", schema["items"].(node), of.Elem())
	case of.Kind() == reflect.Map:
		inner, given := schema["additionalProperties"].(node)
		if !given {
			for _, one := range s.at(schema, "properties") {
				inner = one.(node)
			}
		}
		s.compare(t, where+"{}", inner, of.Elem())
	default:
		s.compareStruct(t, where, schema, of)
	}
}

func (s schemas) compareStruct(t *testing.T, where string, schema node, of reflect.Type) {
	t.Helper()
	properties, required := maps.Clone(s.at(schema, "properties")), anyList(schema["required"])
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		for i := range of.NumField() {
			field := of.Field(i)
			if field.Anonymous {
				visit(field.Type)
				continue
			}
			name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner, there := properties[name].(node)
			if !there {
				t.Errorf("%s: %s is not described", where, name)
				continue
			}
			delete(properties, name)
			if must := slices.Contains(required, any(name)); must != (rest != "omitempty") {
				t.Errorf("%s: %s is required: %v", where, name, must)
			}
			kind := field.Type
			if rest == "omitempty" && kind.Kind() == reflect.Pointer { // left out, never null
				kind = kind.Elem()
			}
			s.compare(t, where+"."+name, inner, kind)
		}
	}
	visit(of)
	for name := range properties {
		t.Errorf("%s: %s is described and is no field of %v", where, name, of)
	}
}

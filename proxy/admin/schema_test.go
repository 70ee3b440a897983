package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// schemas judges values by the schemas of a description, as far as the description uses JSON Schema 2020-12. A word that it does not know is a fault of
// the description, so that nothing is passed over.
type schemas struct {
	root map[string]any
}

type node = map[string]any

// resolve follows a reference inside the description.
func (s schemas) resolve(ref string) (node, error) {
	path, found := strings.CutPrefix(ref, "#/")
	if !found {
		return nil, fmt.Errorf("%s leads out of the description", ref)
	}
	at := any(s.root)
	for part := range strings.SplitSeq(path, "/") {
		inner, _ := at.(node)
		if at, found = inner[part]; !found {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
	}
	target, ok := at.(node)
	if !ok {
		return nil, fmt.Errorf("%s is no object", ref)
	}
	return target, nil
}

// check returns what is wrong with a value, by where.
func (s schemas) check(where string, schema node, value any) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, where+": "+fmt.Sprintf(format, args...)) }
	for word, rule := range schema {
		switch word {
		case "$ref":
			target, err := s.resolve(rule.(string))
			if err != nil {
				add("%v", err)
				continue
			}
			wrong = append(wrong, s.check(where, target, value)...)
		case "oneOf", "anyOf":
			fits, tried := 0, []string{}
			for _, one := range rule.([]any) {
				if w := s.check(where, one.(node), value); len(w) == 0 {
					fits++
				} else {
					tried = append(tried, w...)
				}
			}
			if fits == 0 || word == "oneOf" && fits > 1 {
				add("fits %d of %s: %s", fits, word, strings.Join(tried, "; "))
			}
		case "type":
			if !slices.ContainsFunc(typeNames(rule), func(name string) bool { return isType(name, value) }) {
				add("%v is not %v", value, rule)
			}
		case "enum":
			if !slices.ContainsFunc(rule.([]any), func(one any) bool { return reflect.DeepEqual(one, value) }) {
				add("%v is none of %v", value, rule)
			}
		case "const":
			if !reflect.DeepEqual(rule, value) {
				add("%v is not %v", value, rule)
			}
		case "description", "default", "example":
		default:
			if w, known := s.checkInside(where, schema, word, rule, value); known {
				wrong = append(wrong, w...)
			} else {
				add("the schema has %q", word)
			}
		}
	}
	return wrong
}

// checkInside judges what only values of one type have; known is false for a word that is none.
func (s schemas) checkInside(where string, schema node, word string, rule, value any) (wrong []string, known bool) {
	limit, _ := rule.(float64)
	text, isText := value.(string)
	number, isNumber := value.(float64)
	list, isList := value.([]any)
	object, isObject := value.(node)
	broken := false
	switch word {
	case "minimum":
		broken = isNumber && number < limit
	case "maximum":
		broken = isNumber && number > limit
	case "minLength":
		broken = isText && utf8.RuneCountInString(text) < int(limit)
	case "maxLength":
		broken = isText && utf8.RuneCountInString(text) > int(limit)
	case "pattern":
		broken = isText && !regexp.MustCompile(rule.(string)).MatchString(text)
	case "format":
		_, err := time.Parse(time.RFC3339, text)
		broken = rule != "date-time" || isText && err != nil
	case "minItems":
		broken = isList && len(list) < int(limit)
	case "maxItems":
		broken = isList && len(list) > int(limit)
	case "maxProperties":
		broken = isObject && len(object) > int(limit)
	case "items":
		for i, one := range list {
			wrong = append(wrong, s.check(fmt.Sprintf("%s[%d]", where, i), rule.(node), one)...)
		}
	case "required":
		for _, name := range rule.([]any) {
			if _, there := object[name.(string)]; isObject && !there {
				wrong = append(wrong, where+": has no "+name.(string))
			}
		}
	case "propertyNames":
		for name := range object {
			wrong = append(wrong, s.check(where+" name", rule.(node), name)...)
		}
	case "properties":
		for name, inner := range rule.(node) {
			if one, there := object[name]; there {
				wrong = append(wrong, s.check(where+"."+name, inner.(node), one)...)
			}
		}
	case "additionalProperties":
		properties, _ := schema["properties"].(node)
		for name, one := range object {
			if _, listed := properties[name]; listed || rule == true {
				continue
			}
			if rule == false {
				wrong = append(wrong, where+": has "+name)
				continue
			}
			wrong = append(wrong, s.check(where+"."+name, rule.(node), one)...)
		}
	default:
		return nil, false
	}
	if broken {
		wrong = append(wrong, fmt.Sprintf("%s: %v breaks %s %v", where, value, word, rule))
	}
	return wrong, true
}

// typeNames are the names in a type, which may be one or a list.
func typeNames(rule any) []string {
	if name, one := rule.(string); one {
		return []string{name}
	}
	var names []string
	for _, name := range rule.([]any) {
		names = append(names, name.(string))
	}
	return names
}

func isType(name string, value any) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	case node:
		return name == "object"
	}
	return false
}

// The judge itself: each row breaks one rule.
func TestV3_SchemaJudgeCanSayNo(t *testing.T) {
	s := schemas{node{"a": node{"type": "integer"}}}
	for schema, values := range map[string][2]string{ // one that fits, one that does not
		`{"type":"integer"}`: {"1", "1.5"}, `{"type":["string","null"]}`: {"null", "1"}, `{"type":"object"}`: {"{}", "[]"}, `{"type":"boolean"}`: {"true", `"true"`},
		`{"enum":["a"]}`: {`"a"`, `"b"`}, `{"const":1}`: {"1", "2"}, `{"$ref":"#/a"}`: {"1", `"1"`}, `{"minimum":1}`: {"1", "0"}, `{"maximum":1}`: {"1", "2"},
		`{"minLength":1}`: {`"a"`, `""`}, `{"maxLength":1}`: {`"a"`, `"aa"`}, `{"pattern":"^a$"}`: {`"a"`, `"ab"`}, `{"format":"date-time"}`: {`"2026-03-04T05:06:07.089Z"`, `"today"`},
		`{"minItems":1}`: {"[1]", "[]"}, `{"maxItems":0}`: {"[]", "[1]"}, `{"items":{"type":"null"}}`: {"[null]", "[1]"}, `{"maxProperties":0}`: {"{}", `{"a":1}`},
		`{"required":["a"]}`: {`{"a":1}`, "{}"}, `{"propertyNames":{"maxLength":1}}`: {`{"a":1}`, `{"ab":1}`}, `{"properties":{"a":{"type":"null"}}}`: {`{"b":1}`, `{"a":1}`},
		`{"properties":{"a":{}},"additionalProperties":false}`: {`{"a":1}`, `{"b":1}`}, `{"additionalProperties":{"type":"null"}}`: {`{"a":null}`, `{"a":1}`},
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`: {"1.5", "1"}, `{"anyOf":[{"type":"integer"},{"type":"number"}]}`: {"1", `"1"`},
	} {
		for i, text := range values {
			var rule node
			var value any
			if json.Unmarshal([]byte(schema), &rule) != nil || json.Unmarshal([]byte(text), &value) != nil {
				t.Fatal(schema, text)
			}
			if wrong := s.check("value", rule, value); (len(wrong) == 0) != (i == 0) {
				t.Errorf("%s of %s: %q", schema, text, wrong)
			}
		}
	}
	if len(s.check("value", node{"multipleOf": 2.0}, 1.0)) == 0 || len(s.check("value", node{"$ref": "#/b"}, 1.0)) == 0 {
		t.Error("what is not known passes")
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// fieldsOf lists the fields of a document with their JSON types, by path. A null that may come shows as "?".
func fieldsOf(shape reflect.Type, path string, into map[string]string) {
	null := ""
	if shape.Kind() == reflect.Pointer {
		shape, null = shape.Elem(), "?"
	}
	switch {
	case shape == reflect.TypeFor[time.Time](), shape == reflect.TypeFor[admin.Moment]():
		into[path] = "time" + null
	case shape.Kind() == reflect.Struct:
		for i := range shape.NumField() {
			field := shape.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Anonymous {
				name = ""
			}
			fieldsOf(field.Type, strings.Trim(path+null+"."+name, "."), into)
		}
	case shape.Kind() == reflect.Float64:
		into[path] = "number" + null
	case shape.Kind() == reflect.Int, shape.Kind() == reflect.Int64, shape.Kind() == reflect.Uint64:
		into[path] = "whole number" + null
	case shape == reflect.TypeFor[object](), shape == reflect.TypeFor[admin.EffectiveSettings]():
		into[path] = "object"
	default:
		into[path] = shape.Kind().String() + null
	}
}

// TestV3_DocumentsAreThoseOfTheServer holds the types here to those of the listener, field by field.
func TestV3_DocumentsAreThoseOfTheServer(t *testing.T) {
	for _, one := range []struct{ here, there reflect.Type }{
		{reflect.TypeFor[queueSnapshot](), reflect.TypeFor[admin.QueueDocument]()},
		{reflect.TypeFor[sessionRow](), reflect.TypeFor[admin.SessionDocument]()},
		{reflect.TypeFor[refusal](), reflect.TypeFor[admin.Invalid]()},
	} {
		here, there := map[string]string{}, map[string]string{}
		fieldsOf(one.here, "", here)
		fieldsOf(one.there, "", there)
		if !maps.Equal(here, there) {
			for name := range maps.All(there) {
				if here[name] != there[name] {
					t.Errorf("%v: %s is %q here and %q there", one.there, name, here[name], there[name])
				}
				delete(here, name)
			}
			if len(here) > 0 {
				t.Errorf("%v: not there is %v", one.there, here)
			}
		}
	}
	page, there := reflect.TypeFor[sessionsPage](), reflect.TypeFor[admin.SessionsDocument]()
	settings, documents := reflect.TypeFor[settingsDocument](), reflect.TypeFor[admin.SettingsDocument]()
	for _, one := range [][2]reflect.Type{{page, there}, {settings, documents}} {
		var names [2][]string
		for i, shape := range one {
			for n := range shape.NumField() {
				names[i] = append(names[i], shape.Field(n).Tag.Get("json"))
			}
		}
		if !slices.Equal(names[0], names[1]) {
			t.Errorf("%v has %v, %v has %v", one[0], names[0], one[1], names[1])
		}
	}
}

// TestV3_WordsAreThoseOfTheServer: classes, modes, strategies, the words for why a session waits, the fields that can be changed, the address.
func TestV3_WordsAreThoseOfTheServer(t *testing.T) {
	if !slices.Equal(classNames, admin.Classes[:]) {
		t.Errorf("classes are %v there", admin.Classes)
	}
	if known := slices.Sorted(maps.Keys(whyWords)); !slices.Equal(known, slices.Sorted(slices.Values(admin.Whys))) {
		t.Errorf("sessions wait because of %v there, %v here", admin.Whys, known)
	}
	for i, name := range classNames {
		if got := queue.Class(i).String(); got != name {
			t.Errorf("class %d is %s, not %s", i, got, name)
		}
	}
	shape := reflect.TypeFor[admin.EffectiveSettings]()
	var fields []string
	for i := range shape.NumField() {
		name, _, _ := strings.Cut(shape.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	if !slices.Equal(slices.Sorted(slices.Values(fields)), slices.Sorted(slices.Values(settingNames))) {
		t.Errorf("fields are %v there, %v here", fields, settingNames)
	}
	for _, field := range fields {
		if !strings.Contains(settingsHelp, " "+field) {
			t.Errorf("the help does not name %s", field)
		}
	}
	loaded, _, err := config.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := "http://" + loaded.AdminListen; got != deskAddress {
		t.Errorf("the listener is at %s, not at %s", got, deskAddress)
	}
	if deskPath != admin.APIPath {
		t.Errorf("the API is at %s", admin.APIPath)
	}
	rule := modeRuleOf(t)
	for _, mode := range modeNames {
		if !strings.Contains(rule, mode) {
			t.Errorf("the server's modes are %q, %s is none", rule, mode)
		}
	}
	if want := fmt.Sprint("one of ", strings.Join(modeNames, ", ")); rule != want {
		t.Errorf("the server's modes are %q, here %q", rule, want)
	}
}

// modeRuleOf asks the settings for their rule of mode.
func modeRuleOf(t *testing.T) string {
	t.Helper()
	s := stand(t, deskSettings{})
	_, err := s.settings.Change(t.Context(), []byte(`{"expectedRevision":0,"overrides":{"mode":7}}`), "token")
	invalid, ok := err.(*admin.SettingsError)
	if !ok {
		t.Fatalf("a mode of 7: %v", err)
	}
	return invalid.Faults[0].Rule
}

// TestV3_ObjectsKeepWhatTheyDoNotKnow: order, digits and unknown members go back as they came.
func TestV3_ObjectsKeepWhatTheyDoNotKnow(t *testing.T) {
	const text = `{"z":1.50,"a":{"new":[1,{"x":null}]},"m":9007199254740993}`
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(o)
	if err != nil || string(back) != text {
		t.Errorf("%s became %s (%v)", text, back, err)
	}
	for _, wrong := range []string{`{"a":1,"a":2}`, `[]`, `7`, `{"a":1`, ``} {
		if err := json.Unmarshal([]byte(wrong), &o); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	if !same(json.RawMessage(`{"a":1,"b":[2]}`), json.RawMessage(` {"b": [2], "a":1}`)) || same(json.RawMessage(`1`), json.RawMessage(`1.0`)) {
		t.Error("what is the same?")
	}
}

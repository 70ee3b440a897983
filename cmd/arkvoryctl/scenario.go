package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxScenario bounds a scenario file.
const maxScenario = 1 << 20

// load reads a scenario file over the plan. All faults are reported at once.
func (p *plan) load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot use --scenario: %w", err)
	}
	if len(data) > maxScenario {
		return fmt.Errorf("cannot use --scenario %s: must be at most %d bytes", path, maxScenario)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return fmt.Errorf("cannot use --scenario %s: must be YAML with fields, for example \"clients: 1000\": %w", path, err)
	}
	flat := map[string]string{}
	var faults []error
	if windows, ok := tree["windows"]; ok { // a tree of its own, which is no list of settings
		delete(tree, "windows")
		text, err := json.Marshal(windows)
		if err == nil {
			err = setWindows(p, string(text))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("cannot use field windows: must be %s, for example %s: %w", fields["windows"].rule, fields["windows"].example, err))
		}
	}
	flatten(tree, "", flat, &faults)
	names := slices.Sorted(maps.Keys(flat))
	if i := slices.Index(names, "slots"); i > 0 { // what depends on the slots comes after them
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "slots")
	}
	ways := slices.DeleteFunc([]string{"burst", "poisson", "ramp"}, func(name string) bool { _, ok := flat[name]; return !ok })
	if len(ways) > 1 {
		faults = append(faults, fmt.Errorf("cannot use fields %s together: must be one way to come, for example \"burst: 10s\"", strings.Join(ways, ", ")))
	}
	for _, name := range names {
		if _, ok := fields[name]; !ok {
			faults = append(faults, fmt.Errorf("cannot use field %s: must be one of %s, for example \"clients: 1000\"",
				clip(name), strings.Join(slices.Sorted(maps.Keys(fields)), ", ")))
			continue
		}
		faults = append(faults, p.set("field "+name, name, flat[name]))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("cannot use --scenario %s: %w", path, err)
	}
	return nil
}

// flatten writes every value of the tree as text under its path; a list becomes its items with commas between.
func flatten(tree map[string]any, prefix string, into map[string]string, faults *[]error) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := prefix + name
		switch v := tree[name].(type) {
		case map[string]any:
			flatten(v, path+".", into, faults)
		case []any:
			var items []string
			for _, item := range v {
				items = append(items, fmt.Sprint(item))
			}
			into[path] = strings.Join(items, ",")
		case nil:
			*faults = append(*faults, fmt.Errorf("cannot use field %s: must have a value, for example \"%s: 1\"", clip(path), clip(path)))
		default:
			into[path] = fmt.Sprint(v)
		}
	}
}

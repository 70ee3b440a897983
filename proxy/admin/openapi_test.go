package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// described reads the description.
func described(t *testing.T) schemas {
	t.Helper()
	var root node
	if err := json.Unmarshal(description, &root); err != nil {
		t.Fatal(err)
	}
	return schemas{root}
}

// at follows names from a node; a reference on the way is followed too. Nil when there is nothing.
func (s schemas) at(n node, names ...string) node {
	for _, name := range append(names, "") {
		if ref, is := n["$ref"].(string); is {
			n, _ = s.resolve(ref)
		}
		if name != "" {
			n, _ = n[name].(node)
		}
	}
	return n
}

// operations calls visit with each operation.
func (s schemas) operations(visit func(pattern, method string, operation node)) {
	paths := s.at(s.root, "paths")
	for _, pattern := range slices.Sorted(maps.Keys(paths)) {
		item := paths[pattern].(node)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			visit(pattern, strings.ToUpper(method), item[method].(node))
		}
	}
}

// walk calls visit with every node of the description.
func walk(where string, value any, visit func(where string, n node)) {
	switch v := value.(type) {
	case node:
		visit(where, v)
		for name, inner := range v {
			if name != "example" && name != "default" {
				walk(where+"/"+name, inner, visit)
			}
		}
	case []any:
		for i, inner := range v {
			walk(fmt.Sprintf("%s/%d", where, i), inner, visit)
		}
	}
}

func TestV3_DescriptionIsSound(t *testing.T) {
	s := described(t)
	if s.root["openapi"] != "3.1.0" || s.at(s.root, "info")["title"] == "" || s.at(s.root, "info")["version"] == "" {
		t.Errorf("openapi %v, info %v", s.root["openapi"], s.root["info"])
	}
	used, ids, tags := map[string]bool{}, map[string]bool{}, map[any]bool{}
	walk("#", s.root, func(where string, n node) {
		if ref, is := n["$ref"].(string); is {
			used[ref] = true
			if _, err := s.resolve(ref); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	})
	for kind, all := range s.at(s.root, "components") {
		for name := range all.(node) {
			if kind != "securitySchemes" && !used["#/components/"+kind+"/"+name] {
				t.Errorf("nothing uses %s/%s", kind, name)
			}
		}
	}
	for _, one := range s.root["tags"].([]any) {
		tags[one.(node)["name"]] = true
	}
	s.operations(func(pattern, method string, operation node) {
		id, _ := operation["operationId"].(string)
		if id == "" || ids[id] || operation["summary"] == nil || operation["security"] == nil || len(s.at(operation, "responses")) == 0 {
			t.Errorf("%s %s: operationId %q, or a field is missing", method, pattern, id)
		}
		ids[id] = true
		for _, tag := range operation["tags"].([]any) {
			if !tags[tag] {
				t.Errorf("%s %s: tag %v is not described", method, pattern, tag)
			}
		}
		given := map[string]bool{}
		for _, one := range anyList(operation["parameters"]) {
			if p := s.at(one.(node)); p["in"] == "path" {
				given[p["name"].(string)] = p["required"] == true
			}
		}
		for part := range strings.SplitSeq(pattern, "/") {
			if name, is := strings.CutPrefix(part, "{"); is && !given[strings.TrimSuffix(name, "}")] {
				t.Errorf("%s %s: %s is no required parameter", method, pattern, part)
			}
		}
	})
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

func TestV3_ExamplesFitTheirSchemas(t *testing.T) {
	s, judged := described(t), 0
	walk("#", s.root, func(where string, n node) {
		schema, is := n["schema"].(node)
		example, has := n["example"]
		if !is {
			return
		}
		if !has {
			if kind := schema["type"]; kind != "string" && kind != "integer" && kind != "object" {
				t.Errorf("%s has a schema of %v and no example", where, schema)
			}
			return
		}
		judged++
		for _, wrong := range s.check(where, schema, example) {
			t.Error(wrong)
		}
	})
	if judged < 40 {
		t.Errorf("only %d examples were judged", judged)
	}
}

// routesOf are the patterns and methods of a server.
func routesOf(s *Server) map[string]string {
	all := map[string]string{}
	for _, table := range []map[string]route{s.routes.exact, s.routes.sessions, s.routes.below} {
		for _, one := range table {
			all[one.pattern] = string(one.methods)
		}
	}
	return all
}

func TestV3_DescriptionAndRoutesAreTheSame(t *testing.T) {
	src, _, _ := allSources()
	routes, s := routesOf(New(Settings{Console: files}, src)), described(t)
	methods := map[string][]string{}
	s.operations(func(pattern, method string, _ node) { methods[pattern] = append(methods[pattern], method) })
	for pattern, allowed := range routes {
		if got := strings.Join(methods[pattern], ", "); got != allowed {
			t.Errorf("%s is described with %q and answers %q", pattern, got, allowed)
		}
	}
	for pattern := range methods {
		if routes[pattern] == "" {
			t.Errorf("%s is described and not answered", pattern)
		}
	}
}

// conforms holds an answer to what the description says of an operation.
func (s schemas) conforms(t *testing.T, method, pattern string, a answer) {
	t.Helper()
	operation := s.at(s.root, "paths", pattern, strings.ToLower(method))
	response := s.at(operation, "responses", fmt.Sprint(a.status))
	if operation == nil || response == nil {
		t.Errorf("%s %s: the answer %d is not described: %s", method, pattern, a.status, a.body)
		return
	}
	for name := range s.at(response, "headers") {
		if a.header.Get(name) == "" {
			t.Errorf("%s %s: %d has no %s", method, pattern, a.status, name)
		}
	}
	kinds := s.at(response, "content")
	if method == "HEAD" || len(kinds) == 0 {
		if a.body != "" {
			t.Errorf("%s %s: %d has a body: %q", method, pattern, a.status, a.body)
		}
		return
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	content := s.at(kinds, kind)
	if content == nil {
		if content = s.at(kinds, "*/*"); content == nil {
			t.Errorf("%s %s: %d is %s", method, pattern, a.status, kind)
		}
		return
	}
	if kind != "application/json" {
		return
	}
	var value any
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Errorf("%s %s: %v in %s", method, pattern, err, a.body)
		return
	}
	for _, wrong := range s.check(fmt.Sprintf("%s %s %d", method, pattern, a.status), s.at(content, "schema"), value) {
		t.Error(wrong)
	}
}

// target fills a pattern with the examples of its parameters.
func (s schemas) target(pattern string, operation node) string {
	for _, one := range anyList(operation["parameters"]) {
		if p := s.at(one.(node)); p["in"] == "path" {
			pattern = strings.ReplaceAll(pattern, "{"+p["name"].(string)+"}", p["example"].(string))
		}
	}
	return pattern
}

func TestV3_EveryOperationAnswersAsDescribed(t *testing.T) {
	src, d, b := allSources()
	addr, s := run(t, New(Settings{Console: files, Clock: ticking(time.Second)}, src), false), described(t)
	s.operations(func(pattern, method string, operation node) {
		path := s.target(pattern, operation)
		var a answer
		body, isBody := s.at(operation, "requestBody", "content", "application/json")["example"]
		switch text, err := json.Marshal(body); {
		case err != nil:
			t.Fatal(err)
		case !isBody:
			a = send(t, addr, method, path)
		case method == "PUT":
			a = put(t, addr, string(text), isJSON)
		default:
			a = post(t, addr, path, string(text), isJSON)
		}
		if want := 200; a.status != want && (a.status != 303 || !strings.HasPrefix(operation["operationId"].(string), "to") && !strings.HasPrefix(operation["operationId"].(string), "headTo")) {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
		s.conforms(t, method, pattern, a)
		for _, one := range anyList(operation["parameters"]) {
			if p := s.at(one.(node)); p["in"] == "query" && pattern != "/debug/pprof/{profile}" {
				a := send(t, addr, method, fmt.Sprintf("%s?%s=%v", path, p["name"], p["example"]))
				if s.conforms(t, method, pattern, a); a.status != 200 {
					t.Errorf("%s %s with %s: %d %s", method, path, p["name"], a.status, a.body)
				}
			}
		}
		if pattern != "/debug/pprof/{profile}" && pattern != "/metrics" && pattern != "/debug/upstream" && !strings.Contains(pattern, "console") && pattern != "/" && !strings.HasPrefix(pattern, "/health") {
			path += "?nonsense=1"
			switch method {
			case "PUT":
				a = raw(t, addr, "PUT", "PUT "+path+" HTTP/1.1\r\nHost: "+addr+"\r\nConnection: close\r\nContent-Length: 0\r\n"+isJSON+"\r\n\r\n")
			case "POST":
				a = post(t, addr, path, "", isJSON)
			default:
				a = send(t, addr, method, path)
			}
			if s.conforms(t, method, pattern, a); a.status != 400 {
				t.Errorf("%s %s: %d", method, path, a.status)
			}
		}
	})
	if d.asked() != 1 || len(b.acts) != len(actionKinds) {
		t.Errorf("the desk was asked %d times, and for %v", d.asked(), b.acts)
	}
}

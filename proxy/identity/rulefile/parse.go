package rulefile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file.
const (
	MaxBytes  = 1 << 20 // some ten thousand rules
	MaxDepth  = 8       // of nested mappings and lists
	MaxFaults = 50      // listed one by one, further ones are counted
)

// Parse turns a document into a tree. Faults found on the way are noted in f; a document that is no YAML at all has one fault. An empty
// document is a Null node.
func Parse(text []byte, f *Faults) (root Node) {
	if len(text) > MaxBytes {
		f.Addf(1, "the file has more than %d bytes", MaxBytes)
		return Node{}
	}
	// The YAML library indexes into its tokens freely; a panic of its on odd bytes is a fault of the file, not the end of the
	// process.
	defer func() {
		if r := recover(); r != nil {
			f.Addf(1, "the text is not valid YAML")
			root = Node{}
		}
	}()
	if line := tooDeep(text); line > 0 {
		f.Addf(line, "more than %d levels of nesting", MaxDepth)
		return Node{}
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, msg := 1, "the text is not valid YAML"
		var at yaml.Error
		if errors.As(err, &at) {
			if t := at.GetToken(); t != nil && t.Position != nil {
				line = t.Position.Line
			}
			msg = fmt.Sprintf("not valid YAML: %s", at.GetMessage())
		}
		f.Addf(line, "%s", msg)
		return Node{}
	}
	bodies := make([]ast.Node, 0, 1)
	for _, d := range file.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return Node{Line: 1}
	case 1:
		return convert(bodies[0], f, 0)
	}
	f.Addf(lineOf(bodies[1]), "there must be one document in the file")
	return Node{}
}

// tooDeep finds flow collections nested beyond any sense before the library's recursive parser meets them; it returns the line or 0.
// Block nesting costs indentation, so its depth is bounded by the square root of the size and needs no check here.
func tooDeep(text []byte) int {
	line, depth := 1, 0
	for _, c := range text {
		switch c {
		case '\n':
			line++
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > 64 { // brackets inside quoted text count too, hence the margin over MaxDepth
			return line
		}
	}
	return 0
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// convert copies the library's tree into ours and refuses what the subset leaves out.
func convert(n ast.Node, f *Faults, depth int) Node {
	if n == nil {
		return Node{Line: 1}
	}
	line := lineOf(n)
	if depth > MaxDepth {
		f.Addf(line, "more than %d levels of nesting", MaxDepth)
		return Node{Line: line}
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		out := Node{Kind: Map, Line: line}
		for i, e := range v.Values {
			k := entry(e, f, depth)
			if i == 0 {
				out.Line = k.Line // the library's token is the colon or the brace
			}
			out.Keys = append(out.Keys, k)
		}
		return out
	case *ast.MappingValueNode:
		k := entry(v, f, depth)
		return Node{Kind: Map, Line: k.Line, Keys: []Key{k}}
	case *ast.SequenceNode:
		out := Node{Kind: List, Line: line}
		for _, e := range v.Values {
			out.Items = append(out.Items, convert(e, f, depth+1))
		}
		return out
	case *ast.NullNode:
		return Node{Line: line}
	case *ast.StringNode:
		return Node{Kind: Scalar, Line: line, Text: v.Value}
	case *ast.LiteralNode:
		return Node{Kind: Scalar, Line: line, Text: v.Value.Value}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		// The text as written: a key of digits must not pass through a number and lose its zeros.
		return Node{Kind: Scalar, Line: line, Text: strings.TrimSpace(n.GetToken().Value)}
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode, *ast.DirectiveNode:
		f.Addf(line, "anchors, aliases, merge keys, tags and directives are not allowed")
	default:
		f.Addf(line, "only mappings, lists and single values are allowed")
	}
	return Node{Line: line}
}

func entry(e *ast.MappingValueNode, f *Faults, depth int) Key {
	k := Key{Line: lineOf(e.Key)}
	switch key := e.Key.(type) {
	case *ast.StringNode:
		k.Name = key.Value
	case *ast.MergeKeyNode:
		f.Addf(k.Line, "anchors, aliases, merge keys, tags and directives are not allowed")
	default:
		if t := e.Key.GetToken(); t != nil && t.Type != token.MappingKeyType {
			k.Name = t.Value
		} else {
			f.Addf(k.Line, "a key must be a plain word")
		}
	}
	k.Value = convert(e.Value, f, depth+1)
	if k.Value.Kind == Null {
		k.Value.Line = k.Line
	}
	return k
}

package convert

import (
	"fmt"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// find returns the index of a name in a mapping's Content, or -1.
func find(m *yamlnode.Node, name string) int {
	if m == nil || m.Kind != yamlnode.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// child returns the value of a name in a mapping, or nil.
func child(m *yamlnode.Node, name string) *yamlnode.Node {
	if i := find(m, name); i >= 0 {
		return m.Content[i+1]
	}
	return nil
}

// text returns the text of a field, or an empty text.
func text(m *yamlnode.Node, path ...string) string {
	for _, name := range path {
		m = child(m, name)
	}
	if m == nil || m.Kind != yamlnode.ScalarNode {
		return ""
	}
	return m.Value
}

// hasOnly reports whether a node is a mapping with some of these names and no others.
func hasOnly(m *yamlnode.Node, names ...string) bool {
	if m == nil || m.Kind != yamlnode.MappingNode {
		return false
	}
	for i := 0; i < len(m.Content); i += 2 {
		if !slices.Contains(names, m.Content[i].Value) {
			return false
		}
	}
	return true
}

// isText reports whether a node is a text, which a number or a boolean is not.
func isText(n *yamlnode.Node) bool {
	return n != nil && n.Kind == yamlnode.ScalarNode && n.Tag == "!!str"
}

// scalar returns a node for a text.
func scalar(value string) *yamlnode.Node {
	n := &yamlnode.Node{}
	n.SetString(value)
	return n
}

// mapping returns a mapping in the style of a neighboring node.
func mapping(as *yamlnode.Node, content ...*yamlnode.Node) *yamlnode.Node {
	return &yamlnode.Node{Kind: yamlnode.MappingNode, Tag: "!!map", Style: as.Style & yamlnode.FlowStyle, Content: content}
}

// remove removes a pair of a mapping. A comment above it stays with the pair after it.
func remove(m *yamlnode.Node, i int) {
	m.Content = slices.Delete(m.Content, i, i+2)
}

// aliasIn returns the first node that refers to another one, or nil.
func aliasIn(n *yamlnode.Node) *yamlnode.Node {
	if n.Kind == yamlnode.AliasNode {
		return n
	}
	for _, c := range n.Content {
		if alias := aliasIn(c); alias != nil {
			return alias
		}
	}
	return nil
}

// A place is a node with its path.
type place struct {
	path string
	node *yamlnode.Node
}

// step returns the places at a name, for example tools, or tools[] for each of its items.
func (p place) step(name string) []place {
	name, isList := strings.CutSuffix(name, "[]")
	path, n := strings.TrimPrefix(p.path+"."+name, "."), child(p.node, name)
	switch {
	case n == nil, isList && n.Kind != yamlnode.SequenceNode:
		return nil
	case !isList:
		return []place{{path, n}}
	}
	var out []place
	for i, item := range n.Content {
		out = append(out, place{fmt.Sprintf("%s[%d]", path, i), item})
	}
	return out
}

// places returns the places in an object at a path such as spec.tools[].
func places(root *yamlnode.Node, path string) []place {
	at := []place{{"", root}}
	for name := range strings.SplitSeq(path, ".") {
		var next []place
		for _, p := range at {
			next = append(next, p.step(name)...)
		}
		at = next
	}
	return at
}

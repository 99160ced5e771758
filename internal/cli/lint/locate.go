package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	leadingNode   = regexp.MustCompile(`^node ([\w-]+): `)
	leadingField  = regexp.MustCompile(`^[a-z][\w.\[\]-]*`)
	leadingRule   = regexp.MustCompile(`^rule (\d+)`)
	leadingObject = regexp.MustCompile(`^(Model|Agent|Toolset|Workflow) "([^"]+)"`)
)

// locate returns the field at the beginning of a message of the operator, and the rest of the message. The path is
// empty if the message begins with no field of the object.
func (o *object) locate(message string) (path, rest string) {
	rest = message
	bases := []string{"", "spec."}
	if m := leadingNode.FindStringSubmatch(rest); m != nil {
		if node := o.nodeNamed(m[1]); node != "" {
			path, rest, bases = node, rest[len(m[0]):], []string{node + "."}
		}
	}
	token := strings.TrimRight(leadingField.FindString(rest), ".")
	for _, base := range bases {
		if _, found := o.nodes[base+token]; found && token != "" {
			path = base + token
			rest = strings.TrimPrefix(strings.TrimPrefix(rest[len(token):], ":"), " ")
			break
		}
	}
	if m := leadingRule.FindStringSubmatch(rest); m != nil && path == "spec.policy" {
		n, _ := strconv.Atoi(m[1]) // it matches digits
		path = fmt.Sprintf("spec.policy[%d]", n-1)
	}
	if m := leadingObject.FindStringSubmatch(rest); m != nil && path == "" {
		path = o.referenceTo(m[1], m[2])
	}
	return path, rest
}

// nodeNamed returns the path of a node of a Workflow.
func (o *object) nodeNamed(name string) string {
	for _, list := range []string{"nodes", "finally"} {
		for i := 0; ; i++ {
			path := fmt.Sprintf("spec.%s[%d]", list, i)
			if _, found := o.nodes[path]; !found {
				break
			}
			if at, found := o.nodes[path+".name"]; found && at.value.Value == name {
				return path
			}
		}
	}
	return ""
}

// referenceTo returns the path of the first reference to an object.
func (o *object) referenceTo(kind, name string) string {
	out := ""
	o.eachReference(func(path, k, n string) {
		if out == "" && k == kind && n == name {
			out = path
		}
	})
	return out
}

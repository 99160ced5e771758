package lint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	typeError = regexp.MustCompile(`must be of type (\S+): "(\S+)"$`)
	indexed   = regexp.MustCompile(`\.(\d+)(\.|$)`)
)

// maxShown is the maximum number of characters of a wrong value in a message.
const maxShown = 60

// problemOf turns an error of the API server into a problem. It leaves out the path, which is
// shown before, and values that are long.
func problemOf(err *field.Error) problem {
	path := indexed.ReplaceAllString(strings.TrimPrefix(err.Field, "<nil>"), "[$1]$2")
	p := problem{path: path, message: message(err, path)}
	value, _ := err.BadValue.(string)
	switch m := typeError.FindStringSubmatch(err.Detail); {
	case m != nil:
		p.kind, p.want = otherType, m[1]
		p.message = fmt.Sprintf("must be of type %s, not %s", strings.ReplaceAll(m[1], ",", " or "), m[2])
	case err.Type == field.ErrorTypeNotSupported:
		p.kind = unsupportedValue
	case strings.Contains(err.Detail, quantityPattern):
		p.message = shown(value) + ": " + quantityMessage(path, value)
	default:
		if of := unitMessage(err.Detail, value); of != "" {
			p.message = strings.TrimPrefix(shown(value)+": "+of, ": ")
		}
	}
	return p
}

func message(err *field.Error, path string) string {
	detail := strings.TrimPrefix(err.Detail, path+" in body ")
	switch {
	case err.Type == field.ErrorTypeRequired && detail == "":
		return "is required"
	case err.Type == field.ErrorTypeRequired:
		return "is required: " + detail
	case err.Type == field.ErrorTypeDuplicate:
		return fmt.Sprintf("duplicate value %s", shown(err.BadValue))
	case detail == "":
		return err.ErrorBody()
	}
	if value := shown(err.BadValue); value != "" {
		return value + ": " + detail
	}
	return detail
}

// shown returns a value as text if it is short; empty: it is not.
func shown(value any) string {
	var out string
	switch value.(type) {
	case string:
		out = fmt.Sprintf("%q", value)
	case bool, int, int32, int64, float64:
		out = fmt.Sprint(value)
	case map[string]any: // the keys of an element of a list
		data, err := json.Marshal(value)
		if err == nil {
			out = string(data)
		}
	}
	if len(out) > maxShown {
		return ""
	}
	return out
}

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

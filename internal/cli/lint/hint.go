package lint

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// withHint returns the message of a problem with what to do, if known.
func (o *object) withHint(p problem) string {
	switch p.kind {
	case unknownField:
		return p.message + o.hintForUnknown(p.path)
	case otherType:
		return p.message + o.hintForType(p)
	case unsupportedValue:
		return p.message + o.hintForValue(p)
	default:
		return p.message
	}
}

func (o *object) hintForUnknown(path string) string {
	if field, is := o.cuts()[path]; is {
		o.explained[path] = true
		return ": " + cutMessage(field)
	}
	if name := o.booleanName(path); name != "" {
		return fmt.Sprintf(": YAML reads the name %s as a boolean: write another name, or %q", name, name)
	}
	if row := o.rowFor(path, func(renamed) bool { return true }); row.instead != "" && !o.isMisplaced(path, row) {
		return ": " + cmp.Or(o.setToo(path, row.to), row.instead)
	}
	of, err := schemaOf(o.kind())
	if err != nil || of == nil {
		return ""
	}
	parent, name := splitPath(path)
	if at := schemaAt(of.structural, parent); at != nil {
		if hint := similar(name, sortedKeys(at.Properties)); hint != "" {
			return hint
		}
	}
	if places := elsewhere(of.structural, name); len(places) > 0 && len(places) <= maxPlaces {
		return ": the field is " + strings.Join(places, " or ")
	}
	return ""
}

// isMisplaced reports whether a field that is in use has the path of a row: then the row is about its values, and the
// unknown field has only its name.
func (o *object) isMisplaced(path string, row renamed) bool {
	at := o.fieldSchema("spec." + row.path)
	return path != "spec."+row.path && at != nil && replacedBy(at) == ""
}

// booleanName returns the name of a field that YAML 1.1 reads as true or false, for example on.
func (o *object) booleanName(path string) string {
	parent, name := splitPath(path)
	if _, literal := o.nodes[path]; literal || name != "true" && name != "false" {
		return ""
	}
	for _, written := range []string{"on", "yes", "y", "off", "no", "n"} {
		for _, n := range []string{written, strings.ToUpper(written[:1]) + written[1:], strings.ToUpper(written)} {
			if _, found := o.nodes[join(parent, n)]; found {
				return n
			}
		}
	}
	return ""
}

// maxPlaces is the maximum number of fields with one name that a hint lists.
const maxPlaces = 3

// elsewhere returns the fields of spec that have a name.
func elsewhere(root *schema.Structural, name string) []string {
	var out []string
	var walk func(path string, s *schema.Structural)
	walk = func(path string, s *schema.Structural) {
		for _, n := range sortedKeys(s.Properties) {
			property, at := s.Properties[n], join(path, n)
			if n == name && replacedBy(&property) == "" {
				out = append(out, at)
			}
			walk(at, &property)
		}
		if s.Items != nil {
			walk(path+"[]", s.Items)
		}
	}
	spec := root.Properties["spec"]
	walk("spec", &spec)
	return out
}

// replaced is how the description of a field begins that another one has replaced.
var replaced = regexp.MustCompile(`^\w+ was replaced by (\S+)\. It is refused`)

// replacedBy returns the field that has replaced a field; empty: it is in use, or there is none.
func replacedBy(field *schema.Structural) string {
	if field == nil {
		return ""
	}
	if m := replaced.FindStringSubmatch(strings.Join(strings.Fields(field.Description), " ")); m != nil {
		return m[1]
	}
	return ""
}

// splitPath splits the path of a field into its parent and its name.
func splitPath(path string) (parent, name string) {
	cut := strings.LastIndexByte(path, '.')
	if cut < 0 {
		return "", path
	}
	return path[:cut], path[cut+1:]
}

// schemaAt returns the schema of a field, or nil.
func schemaAt(s *schema.Structural, path string) *schema.Structural {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' }) {
		if strings.HasSuffix(name, "]") {
			s = s.Items
		} else if property, found := s.Properties[name]; found {
			s = &property
		} else {
			return nil
		}
		if s == nil {
			return nil
		}
	}
	return s
}

// fieldSchema returns the schema of a field of the object, or nil.
func (o *object) fieldSchema(path string) *schema.Structural {
	of, err := schemaOf(o.kind())
	if err != nil || of == nil {
		return nil
	}
	return schemaAt(of.structural, path)
}

// hintForType suggests quotes around a value that YAML reads as another type.
func (o *object) hintForType(p problem) string {
	node := o.nodes[p.path].value
	if node == nil {
		return ""
	}
	if field := replacedBy(o.fieldSchema(p.path)); field != "" {
		return fmt.Sprintf(": the field was replaced by %s: remove it", field)
	}
	if u := unitOfField(o.fieldSchema(p.path)); u != nil && node.Kind == yamlnode.ScalarNode {
		return u.write(node.Value)
	}
	isString := slices.Contains(strings.Split(p.want, ","), "string")
	if isString && len(strings.Split(p.want, ",")) == 1 && node.Kind == yamlnode.ScalarNode && node.Style == 0 && node.Tag != "!!null" {
		return fmt.Sprintf(": write it in quotes: %q", o.enumValue(p.path, node.Value))
	}
	instead := o.insteadOf(p.path, func(r renamed) bool { return r.value != nil && sameType(r.value, node) })
	if instead == "" {
		return o.hintByForm(p, node)
	}
	return ": " + instead
}

// hintByForm describes the form of a value in the schema: the name only, a list, or fields.
func (o *object) hintByForm(p problem, node *yamlnode.Node) string {
	_, name := splitPath(p.path)
	isScalar := node.Kind == yamlnode.ScalarNode && node.Tag != "!!null" && len(node.Value) <= maxShown
	switch at := o.fieldSchema(p.path); {
	case at == nil || strings.HasSuffix(name, "]"):
		return ""
	case p.want == "string" && o.nodes[p.path+".name"].value != nil:
		return fmt.Sprintf(": write %s: %s", name, o.nodes[p.path+".name"].value.Value)
	case p.want == "array" && isScalar && at.Items != nil && at.Items.Type == "string":
		return fmt.Sprintf(": write %s: [%s]", name, node.Value)
	case p.want == "object" && len(at.Properties) > 0 && len(at.Properties) <= maxFields:
		return ": its fields are " + strings.Join(sortedKeys(at.Properties), ", ")
	}
	return ""
}

// maxFields is the maximum number of fields that a hint lists.
const maxFields = 8

// enumValue returns the value of the field's enum that differs from value only in case, or that YAML reads as the same
// boolean. Otherwise it returns value.
func (o *object) enumValue(path, value string) string {
	at := o.fieldSchema(path)
	if at == nil || at.ValueValidation == nil {
		return value
	}
	meant := value
	for _, allowed := range at.ValueValidation.Enum {
		text, _ := allowed.Object.(string)
		if strings.EqualFold(text, value) {
			return text
		}
		if is := booleanOf(text); is != nil && is == booleanOf(value) {
			meant = text
		}
	}
	return meant
}

// booleanOf returns the boolean that YAML 1.1 reads from plain text; nil: YAML reads a string.
func booleanOf(text string) any {
	switch strings.ToLower(text) {
	case "on", "yes", "y", "true":
		return true
	case "off", "no", "n", "false":
		return false
	}
	return nil
}

// sameType reports whether a value of a page has the JSON type of a value in a manifest.
func sameType(value any, node *yamlnode.Node) bool {
	switch value.(type) {
	case map[string]any:
		return node.Kind == yamlnode.MappingNode
	case []any:
		return node.Kind == yamlnode.SequenceNode
	case string:
		return node.Kind == yamlnode.ScalarNode && node.Tag == "!!str"
	default:
		return node.Kind == yamlnode.ScalarNode && node.Tag != "!!str"
	}
}

// builtinWithTool returns the built-in that has a tool of another name, or an empty name.
func builtinWithTool(tool string) string {
	for name, b := range task.Builtins {
		hasTool := slices.ContainsFunc(b.Tools, func(t string) bool { return strings.EqualFold(t, tool) || task.ToolName(t, 1) == tool })
		if hasTool && !strings.EqualFold(name, tool) {
			return name
		}
	}
	return ""
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// hintForValue suggests one of the values that a message lists.
func (o *object) hintForValue(p problem) string {
	node := o.nodes[p.path].value
	if node == nil {
		return ""
	}
	instead := cmp.Or(
		o.insteadOf(p.path, func(r renamed) bool { return r.value == node.Value }),
		o.insteadOf(p.path, func(r renamed) bool {
			text, is := r.value.(string)
			return is && strings.EqualFold(text, node.Value)
		}))
	if instead != "" {
		return ": " + instead
	}
	if builtin := builtinWithTool(node.Value); builtin != "" && strings.HasSuffix(p.path, ".builtin") {
		return fmt.Sprintf("; %s is a tool of the built-in %s: write builtin: %s", node.Value, builtin, builtin)
	}
	_, list, _ := strings.Cut(p.message, "supported values: ")
	var values []string
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		values = append(values, m[1])
	}
	return similar(node.Value, values)
}

// cuts returns the fields that are likely the rest of a text, with the field whose text a
// comma ended: {prompt: Fix the bug, then test} has the field "then test" without a value.
func (o *object) cuts() map[string]string {
	out := map[string]string{}
	for path, at := range o.nodes {
		n := at.value
		if n.Kind != yamlnode.MappingNode || n.Style&yamlnode.FlowStyle == 0 {
			continue
		}
		whole := "" // the field whose text may continue
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			rest := value.Tag == "!!null" && value.Value == ""
			switch {
			case rest && whole != "":
				out[join(path, key.Value)] = whole
			case value.Tag == "!!str" && value.Style == 0 && strings.Contains(value.Value, " "):
				whole = key.Value
			default:
				whole = ""
			}
		}
	}
	return out
}

func cutMessage(field string) string {
	return fmt.Sprintf("in {...}, a comma ends the text of %s. Write the text in quotes, or as a block: %s: |, and the text indented on the next lines", field, field)
}

// cutTexts warns of texts that a comma cut where any field is allowed, as in spec.input. A
// name with a space is hardly a field.
func (o *object) cutTexts() []problem {
	var out []problem
	cuts := o.cuts()
	for _, path := range sortedKeys(cuts) {
		if strings.Contains(path, " ") && !o.explained[path] {
			out = append(out, problem{path: path, message: "likely not a field: " + cutMessage(cuts[path])})
		}
	}
	return out
}

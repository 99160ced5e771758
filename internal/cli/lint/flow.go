package lint

import (
	"fmt"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

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

package main

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

const chartHead = `# Chart values

What you can set when you install the chart, for example ` + "`--set replicas=2`" + `. The schema of the values refuses unknown
names and wrong types. This page is made from ` + "`charts/deckhand/values.yaml`" + ` (` + "`make generate`" + `).

| value | default | meaning |
|---|---|---|
`

// chartValues writes the page of the values of a chart: each leaf with its default and the comment above it. A comment
// above a group stands in a row of its own.
func chartValues(source []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(chartHead)
	if err := rows(&b, "", document.Content[0]); err != nil {
		return "", err
	}
	return b.String(), nil
}

func rows(b *strings.Builder, prefix string, group *yaml.Node) error {
	for i := 0; i+1 < len(group.Content); i += 2 {
		key, value := group.Content[i], group.Content[i+1]
		path, comment := prefix+key.Value, commentOf(key)
		if err := row(b, path, cell(comment), value); err != nil {
			return err
		}
	}
	return nil
}

// row writes a leaf, or a group with its rows.
func row(b *strings.Builder, path, comment string, value *yaml.Node) error {
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
		if comment != "" {
			fmt.Fprintf(b, "| `%s` | | %s |\n", path, comment)
		}
		return rows(b, path+".", value)
	}
	text, err := flow(value)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", path, text, comment)
	return nil
}

// commentOf returns the comment directly above a key, without those that a blank line divides from it.
func commentOf(key *yaml.Node) string {
	paragraphs := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.Join(words, " ")
}

func flow(value *yaml.Node) (string, error) {
	if value.Kind == yaml.ScalarNode && value.Value == "" {
		return `""`, nil
	}
	bare := *value
	bare.HeadComment, bare.LineComment, bare.FootComment, bare.Style = "", "", "", yaml.FlowStyle
	text, err := yaml.Marshal(&bare)
	return strings.TrimSpace(string(text)), err
}

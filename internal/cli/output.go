package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

const (
	outputJSON = "json"
	outputYAML = "yaml"
	outputName = "name"
	outputWide = "wide"
)

// bindOutput adds the flag -o, which accepts the given formats.
func bindOutput(c *cobra.Command, output *string, formats ...string) {
	c.Flags().StringVarP(output, "output", "o", "", "Output format: "+strings.Join(formats, ", "))
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if *output == "" || slices.Contains(formats, *output) {
			return nil
		}
		return exit.Usagef("unknown output format %q: use -o with one of %s. See: %s --help", *output, strings.Join(formats, ", "), c.CommandPath())
	}
}

// printObject prints an object as JSON or YAML.
func printObject(out io.Writer, format string, object runtime.Object) error {
	return printValue(out, format, object)
}

// printValue prints a value as JSON or YAML. Many of its texts come from a runner, so control characters are escaped as
// the format does: a terminal does not execute them, and programs read the same texts.
func printValue(out io.Writer, format string, value any) error {
	marshal := marshalJSON
	if format == outputYAML {
		marshal = marshalYAML
	}
	data, err := marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(string(data), "\n"))
	return err
}

func marshalJSON(value any) ([]byte, error) {
	data, err := encodeJSON(value)
	return untrusted.EscapeJSON(data), err
}

func encodeJSON(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return data.Bytes(), err
}

// marshalYAML returns YAML. Only texts in double quotes have escapes, so a text that needs one is quoted. The
// package reads the JSON as YAML, which may have no control characters.
func marshalYAML(value any) ([]byte, error) {
	data, err := encodeJSON(value)
	if err != nil {
		return nil, err
	}
	data, err = yaml.JSONToYAML(untrusted.EscapeYAML(data))
	if err != nil || bytes.Equal(untrusted.EscapeYAML(data), data) {
		return data, err
	}
	var root yamlnode.Node
	if err := yamlnode.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	quote(&root)
	var quoted bytes.Buffer
	encoder := yamlnode.NewEncoder(&quoted)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return untrusted.EscapeYAML(quoted.Bytes()), encoder.Close()
}

// quote puts the texts that need an escape in double quotes.
func quote(n *yamlnode.Node) {
	if n.Kind == yamlnode.ScalarNode && string(untrusted.EscapeYAML([]byte(n.Value))) != n.Value {
		n.Style = yamlnode.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		quote(child)
	}
}

// A table prints rows of cells in aligned columns.
type table struct {
	out  io.Writer
	text *bytes.Buffer
	w    *tabwriter.Writer
}

func newTable(out io.Writer, columns ...string) *table {
	text := &bytes.Buffer{}
	t := &table{out, text, tabwriter.NewWriter(text, 0, 8, 3, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row. A cell is on one line, and its text is made harmless for a terminal.
func (t *table) row(cells ...string) { t.indentedRow("", cells...) }

// indentedRow adds a row behind lines of a tree.
func (t *table) indentedRow(indent string, cells ...string) {
	const width = 400
	for i, cell := range cells {
		cells[i] = untrusted.Line(cell, width)
	}
	fmt.Fprintln(t.w, indent+strings.Join(cells, "\t")) // a row with fewer cells would end its columns
}

// print prints the rows, without blanks at their ends.
func (t *table) print() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// briefMessage returns the message of a Run without the hint how to create a Decision, because this program prints its
// own command for that.
func briefMessage(run *v1alpha1.Run) string { return decisions.TrimHint(message(run)) }

// printResult prints the text and the output of a Run.
func printResult(out io.Writer, run *v1alpha1.Run) {
	if result := progressOf(run).Result; result != nil {
		for _, text := range []string{result.Text, result.Output} {
			if text != "" {
				fmt.Fprintln(out, untrusted.Text(text))
			}
		}
	}
}

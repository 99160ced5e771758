// Command reference writes pages of docs/reference from their sources: reasons.md from the doc comments of
// api/v1alpha1/conditions.go, chart-values.md from the comments of the chart's values.yaml, metrics.md from
// internal/run/runmetrics, events.md from runner/events.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
)

func main() {
	for page, write := range map[string]func() (string, error){
		"docs/reference/reasons.md":      func() (string, error) { return fromFile("api/v1alpha1/conditions.go", reasons) },
		"docs/reference/chart-values.md": func() (string, error) { return fromFile("charts/deckhand/values.yaml", chartValues) },
		"docs/reference/metrics.md":      func() (string, error) { return metrics(runmetrics.Families()), nil },
		"docs/reference/events.md":       eventsPage,
	} {
		text, err := write()
		if err == nil {
			err = os.WriteFile(page, []byte(text), 0o600)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "reference: writing %s: %v\n", page, err)
			os.Exit(1)
		}
	}
}

func fromFile(path string, page func(source []byte) (string, error)) (string, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return page(source)
}

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

const metricsHead = `# Metrics

The operator serves these metrics at ` + "`/metrics`" + ` of port 8080. This page is made from ` + "`internal/run/runmetrics`" + `
(` + "`make generate`" + `).

Counters count what the serving process recorded since it started: what happened while another replica was the
leader is in the metrics of that replica. Sum over pods. What a Run used is counted when the Run ends; tokens and
cost of child Runs that an agent asked for count for that agent.

The label ` + "`agent`" + ` is empty for Runs of Workflows, and ` + "`model`" + ` if no Model has answered. The first 300 namespaces,
the first 1,000 Agents and the first 1,000 pairs of an Agent and a Model that a process sees have series of their own.
All later ones have the label value ` + "`other`" + `. So have Agents without any attempt, if there are more than 20 in a
namespace: a Run may name an Agent that does not exist. No label is the name of a Run.

The process also serves the metrics of Go and of controller-runtime, for example ` + "`workqueue_depth`" + ` and
` + "`controller_runtime_reconcile_errors_total`" + `.

| name | type | labels | meaning |
|---|---|---|---|
`

// metrics writes the page of metrics.
func metrics(families []runmetrics.Family) string {
	var b strings.Builder
	b.WriteString(metricsHead)
	for _, f := range families {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", f.Name, f.Type, strings.Join(f.Labels, "`, `"), cell(f.Help))
	}
	return b.String()
}

const reasonsHead = `# Conditions and reasons

Each object says in its conditions what is true of it, why in one word (the reason), and in the message the cause and what
to do. ` + "`kubectl get`" + ` prints the reason, ` + "`kubectl get -o wide`" + ` the message too. This page is made from
` + "`api/v1alpha1/conditions.go`" + ` (` + "`make generate`" + `).
`

// reasons writes the page of the conditions and reasons that Go constants document. The doc comment of a constant is its
// name, the status of its condition in parentheses, a colon, the cause, and after "Remedy:" what to do.
func reasons(source []byte) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(reasonsHead)
	for _, d := range file.Decls {
		group, isGroup := d.(*ast.GenDecl)
		if !isGroup || group.Tok != token.CONST || group.Doc == nil {
			continue
		}
		if err := reasonTable(&b, group); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func reasonTable(b *strings.Builder, group *ast.GenDecl) error {
	title, text, _ := strings.Cut(oneLine(group.Doc), ".")
	fmt.Fprintf(b, "\n## %s\n\n", strings.TrimSuffix(title, ":"))
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	b.WriteString("| name | meaning | what to do |\n|---|---|---|\n")
	for _, s := range group.Specs {
		spec, isValue := s.(*ast.ValueSpec)
		if !isValue || len(spec.Values) != 1 {
			continue
		}
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if !isLiteral {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			return err
		}
		if err := reasonRow(b, spec.Names[0].Name, value, oneLine(spec.Doc)); err != nil {
			return err
		}
	}
	return nil
}

// reasonRow writes the row of a constant. A reason without a status, a cause or a remedy is an error.
func reasonRow(b *strings.Builder, name, value, doc string) error {
	status, cause, remedy := parseReason(doc)
	if strings.HasPrefix(name, "Reason") && (status == "" || cause == "" || remedy == "") {
		return fmt.Errorf("the comment of %s has no status, cause or remedy: write %s (False): the cause. Remedy: What to do", name, name)
	}
	if status != "" {
		status = " (" + status + ")"
	}
	fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", value, status, cell(cause), cell(remedy))
	return nil
}

// reasonDoc is the form of a doc comment: ReasonX (False): cause. Remedy: what to do.
var reasonDoc = regexp.MustCompile(`^\w+(?: \((\w+(?: or \w+)?)\))?(?:, [^:]*)?:? (.*)$`)

func parseReason(doc string) (status, cause, remedy string) {
	doc, remedy, _ = strings.Cut(doc, "Remedy:")
	if m := reasonDoc.FindStringSubmatch(strings.TrimSpace(doc)); m != nil {
		status, cause = m[1], m[2]
	}
	return status, sentence(cmp.Or(cause, doc)), sentence(remedy)
}

func sentence(text string) string {
	text = strings.TrimSpace(text)
	if word, _, _ := strings.Cut(text, " "); text == "" || strings.Contains(word, ".") {
		return text // nothing, or the name of a field
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func oneLine(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

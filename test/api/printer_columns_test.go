package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// table is what kubectl get prints of the Runs of a namespace.
func table(t *testing.T, s *apitest.Server, namespace, selector string) metav1.Table {
	t.Helper()
	c, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimRight(s.Config.Host, "/") + "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/runs?labelSelector=" + selector
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out metav1.Table
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// column is the cells of one column.
func column(t *testing.T, seen metav1.Table, name string) []any {
	t.Helper()
	at := slices.IndexFunc(seen.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("there is no column %s in %+v", name, seen.ColumnDefinitions)
	}
	var out []any
	for _, row := range seen.Rows {
		out = append(out, row.Cells[at])
	}
	return out
}

// Which node of a workflow a Run is of stands beside it.
func TestRunsOfAWorkflowShowTheirNodes(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	for name, labels := range map[string]map[string]string{
		"release-build": {v1alpha1.LabelWorkflowRun: "release", v1alpha1.LabelWorkflowNode: "build"},
		"other":         nil,
	} {
		s.Create(t, gen.Run(func(r *v1alpha1.Run) {
			r.Namespace, r.Name, r.UID, r.ResourceVersion, r.Labels = namespace, name, "", "", labels
		}))
	}
	if got := column(t, table(t, s, namespace, v1alpha1.LabelWorkflowRun+"=release"), "Workflow-Node"); !slices.Equal(got, []any{"build"}) {
		t.Errorf("the nodes are %v", got)
	}
	if got := column(t, table(t, s, namespace, ""), "Workflow-Node"); len(got) != 2 || !slices.Contains(got, any("build")) {
		t.Errorf("the nodes of all are %v", got)
	}
}

// What a Run starts is shown before the operator has seen the Run.
func TestRunsShowWhatTheyStart(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	for name, spec := range map[string]v1alpha1.RunSpec{"of-agent": {Agent: "fixer", Prompt: "Fix it."}, "of-workflow": {Workflow: "release"}} {
		s.Create(t, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec})
	}
	if got := column(t, table(t, s, namespace, ""), "Target"); !slices.Equal(got, []any{"fixer", "release"}) {
		t.Errorf("the targets are %v", got)
	}
}

// A column prints no text that a terminal would act on: its schema refuses control characters.
func TestColumnsHoldNoControlCharacters(t *testing.T) {
	columns := 0
	for _, plural := range []string{"models", "agents", "runs", "decisions", "toolsets", "workflows", "schedules"} {
		for path, schema := range textColumns(crd(t, plural).Spec.Versions[0]) {
			columns++
			for _, text := range []string{"a\x1b[31mb", "a\rb", "a\u009b31mb", "a\x7fb"} {
				if !refuses(t, schema, text) {
					t.Errorf("%s%s takes %q", plural, path, text)
				}
			}
		}
	}
	if columns < 10 {
		t.Errorf("only %d columns were found", columns)
	}
}

// textColumns returns the schemas of the columns that print a text. The operator makes messages of
// conditions printable, and names, labels and enums hold no other characters.
func textColumns(version apiextensionsv1.CustomResourceDefinitionVersion) map[string]apiextensionsv1.JSONSchemaProps {
	out := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, c := range version.AdditionalPrinterColumns {
		if strings.ContainsAny(c.JSONPath, "[\\") || strings.HasPrefix(c.JSONPath, ".metadata") {
			continue
		}
		schema := *version.Schema.OpenAPIV3Schema
		for field := range strings.SplitSeq(strings.TrimPrefix(c.JSONPath, "."), ".") {
			schema = schema.Properties[field]
		}
		if schema.Type == "string" && len(schema.Enum) == 0 && schema.Format == "" {
			out[c.JSONPath] = schema
		}
	}
	return out
}

// matchRule is a rule of a schema that compares a string with a regular expression.
var matchRule = regexp.MustCompile(`(!?)self\.matches\(r?'([^']+)'\)`)

// refuses reports whether a schema refuses a text by a regular expression.
func refuses(t *testing.T, schema apiextensionsv1.JSONSchemaProps, text string) bool {
	t.Helper()
	if schema.Pattern != "" && !regexp.MustCompile(schema.Pattern).MatchString(text) {
		return true
	}
	for _, rule := range schema.XValidations {
		for _, found := range matchRule.FindAllStringSubmatch(rule.Rule, -1) {
			if regexp.MustCompile(found[2]).MatchString(text) == (found[1] == "!") {
				return true
			}
		}
	}
	return false
}

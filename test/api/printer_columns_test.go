package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apitest"
	"github.com/deckhand-dev/deckhand/internal/gen"
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

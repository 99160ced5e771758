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
	cells := func(selector, column string) []any {
		seen := table(t, s, namespace, selector)
		at := slices.IndexFunc(seen.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == column })
		if at < 0 {
			t.Fatalf("there is no column %s in %+v", column, seen.ColumnDefinitions)
		}
		var out []any
		for _, row := range seen.Rows {
			out = append(out, row.Cells[at])
		}
		return out
	}
	if got := cells(v1alpha1.LabelWorkflowRun+"=release", "Workflow-Node"); !slices.Equal(got, []any{"build"}) {
		t.Errorf("the nodes are %v", got)
	}
	if got := cells("", "Workflow-Node"); len(got) != 2 || !slices.Contains(got, any("build")) {
		t.Errorf("the nodes of all are %v", got)
	}
}

package workflowrun

import (
	"strconv"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// withExpressions returns a revision of a Workflow with so many expressions.
func withExpressions(t *testing.T, n int) *workflow.Revision {
	t.Helper()
	v := &workflow.Revision{Name: "w", Spec: v1alpha1.WorkflowSpec{Nodes: []v1alpha1.Node{{
		Name: "ask", Approval: &v1alpha1.ApprovalNode{Message: strings.Repeat("${{ 1 + 1 }} ", n)},
	}}}}
	p, err := workflow.Compile(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Expressions(); got != n {
		t.Fatalf("the revision has %d expressions, want %d", got, n)
	}
	return v
}

func TestRevisionCacheIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name                           string
		revisions, expressions, cached int
	}{
		{"by revisions", maxCachedRevisions + 10, 1, maxCachedRevisions},
		{"by expressions", 30, 50, maxCachedExpressions / 50},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c revisionCache
			v := withExpressions(t, tc.expressions)
			for i := range tc.revisions {
				c.put(strconv.Itoa(i), v)
				if c.get(strconv.Itoa(i)) != v {
					t.Fatalf("revision %d is not there after it was added", i)
				}
			}
			c.put(strconv.Itoa(tc.revisions-1), v) // again: it counts once
			if len(c.all) != tc.cached || c.expressions != tc.cached*tc.expressions {
				t.Errorf("%d revisions with %d expressions are cached, want %d with %d",
					len(c.all), c.expressions, tc.cached, tc.cached*tc.expressions)
			}
		})
	}
}

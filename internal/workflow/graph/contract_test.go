package graph_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// The graph knows no kinds, and says what they say.
func TestWordsAreThoseOfTheAPI(t *testing.T) {
	for got, want := range map[string]string{
		string(graph.Waiting):      string(v1alpha1.NodeWaiting),
		string(graph.Running):      string(v1alpha1.NodeRunning),
		string(graph.Succeeded):    string(v1alpha1.NodeSucceeded),
		string(graph.Failed):       string(v1alpha1.NodeFailed),
		string(graph.Skipped):      string(v1alpha1.NodeSkipped),
		string(graph.NotReached):   string(v1alpha1.NodeNotReached),
		graph.ReasonQueued:         v1alpha1.ReasonQueued,
		graph.ReasonQuotaExceeded:  v1alpha1.ReasonQuotaExceeded,
		graph.ReasonCancelled:      v1alpha1.NodeReasonCancelled,
		graph.ReasonRunDeleted:     v1alpha1.NodeReasonLost,
		graph.ReasonExpression:     v1alpha1.NodeReasonExpression,
		graph.ReasonTooManyItems:   v1alpha1.NodeReasonTooManyItems,
		graph.ReasonIterationLimit: v1alpha1.ReasonIterationLimit,
		graph.ReasonDenied:         v1alpha1.ReasonDenied,
		graph.ReasonNodeFailed:     v1alpha1.ReasonNodeFailed,
	} {
		if got != want {
			t.Errorf("it says %q, the API %q", got, want)
		}
	}
}

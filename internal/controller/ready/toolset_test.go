package ready

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func requesting(path string) *v1alpha1.Toolset {
	return &v1alpha1.Toolset{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "issues", UID: "toolset-uid", Generation: 2},
		Spec: v1alpha1.ToolsetSpec{Requests: &v1alpha1.Requests{
			BaseURL: "https://api.example.com",
			Tools:   []v1alpha1.RequestTool{{Name: "get", Description: "Gets an issue.", Method: "GET", Path: path}},
		}},
	}
}

func TestCheckToolset(t *testing.T) {
	cases := map[string]struct {
		toolset *v1alpha1.Toolset
		status  metav1.ConditionStatus
		reason  string
		says    string
	}{
		"well formed":                   {requesting("/issues"), metav1.ConditionTrue, v1alpha1.ReasonReady, "Valid"},
		"a value that nobody gives":     {requesting("/issues/${{ input.number }}"), metav1.ConditionFalse, v1alpha1.ReasonInvalid, "spec.requests.tools[0].path"},
		"a server, which is not called": {&v1alpha1.Toolset{Spec: v1alpha1.ToolsetSpec{HTTP: &v1alpha1.HTTPServer{URL: "https://gone.example"}}}, metav1.ConditionTrue, v1alpha1.ReasonReady, ""},
		"a placeholder that has no end": {requesting("/issues/${{ input.number"), metav1.ConditionFalse, v1alpha1.ReasonInvalid, "path"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := checkToolset(tc.toolset, none{}).ready
			if got.Type != v1alpha1.ConditionReady || got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("checkToolset() = %+v", got)
			}
		})
	}
}

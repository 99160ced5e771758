package api_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The enums of status are the constants of the runner. Reasons are no enum, so that a new one needs
// no new schema: each fits the pattern.
func TestEnumsOfStatusAreTheConstants(t *testing.T) {
	status := crd(t, "runs").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	progress := status.Properties["progress"]
	kinds := []string{task.KindModel, task.KindTool}
	for name, tc := range map[string]struct {
		field apiextensionsv1.JSONSchemaProps
		want  []string
	}{
		"progress.step.kind":    {progress.Properties["step"].Properties["kind"], kinds},
		"progress.recent.kind":  {progress.Properties["recent"].Items.Schema.Properties["kind"], kinds},
		"progress.pending.kind": {progress.Properties["pending"].Items.Schema.Properties["kind"], []string{task.PendingApproval, task.PendingQuestion, task.PendingLimit, task.PendingDelegation}},
		"progress.decided.type": {progress.Properties["decided"].Items.Schema.Properties["type"], []string{task.DecisionApprove, task.DecisionDeny, task.DecisionAnswer, task.DecisionGrant, task.DecisionMessage}},
		"progress.state": {progress.Properties["state"], []string{
			v1alpha1.ReasonWaitingForModel, v1alpha1.StateRateLimited, v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingChild, v1alpha1.ReasonPaused,
		}},
	} {
		got, want := enumOf(t, tc.field), slices.Compact(slices.Sorted(slices.Values(tc.want)))
		if !slices.Equal(got, want) {
			t.Errorf("status.%s is one of %v, and the constants are %v", name, got, want)
		}
	}
	var reasons []string // a workflow has a result too
	for _, r := range task.Reasons {
		reasons = append(reasons, string(r))
	}
	reasons = append(reasons, v1alpha1.FailureReasons...)
	for name, tc := range map[string]struct {
		field apiextensionsv1.JSONSchemaProps
		fit   []string
	}{
		"nodes.reason":           {status.Properties["nodes"].Items.Schema.Properties["reason"], v1alpha1.NodeReasons},
		"progress.result.reason": {progress.Properties["result"].Properties["reason"], reasons},
	} {
		pattern := regexp.MustCompile(tc.field.Pattern)
		for _, r := range tc.fit {
			if len(r) > int(*tc.field.MaxLength) || !pattern.MatchString(r) {
				t.Errorf("status.%s cannot be %s", name, r)
			}
		}
		for _, r := range []string{"finished", "Two words", "Line\n", ""} {
			if pattern.MatchString(r) {
				t.Errorf("status.%s can be %q", name, r)
			}
		}
	}
}

func enumOf(t *testing.T, s apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	var out []string
	for _, value := range s.Enum {
		var text string
		if err := json.Unmarshal(value.Raw, &text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// failedWorkflow is the Run of a Workflow that failed in its second node.
func failedWorkflow(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
		now := metav1.NewTime(gen.Noon)
		r.Name, r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow, r.Spec.User = "release-1", "", "", "release", "ann"
		r.Spec.MaxRetries, r.Spec.MaxDisruptions = nil, nil
		r.Labels = map[string]string{"team": "blue"}
		r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{}`)}
		r.Status.WorkflowRevision, r.Status.CompletionTime = "hash", &now
		r.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeFailed},
			{Type: v1alpha1.ConditionFinished, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodeFailed},
		}
		r.Status.Nodes = []v1alpha1.NodeStatus{{Name: "build", State: v1alpha1.NodeSucceeded}, {Name: "test", State: v1alpha1.NodeFailed}}
	}}, mods...)...)
}

func TestRetryCopiesTheWorkOfAWorkflow(t *testing.T) {
	for line, node := range map[string]string{"retry release-1": "", "retry run/release-1 --node build": "build"} {
		s := newSession(t, failedWorkflow())
		if code := s.run(t, strings.Fields(line)...); code != exit.OK {
			t.Fatalf("%s: %s", line, s.text())
		}
		runs := s.created(t, "release-1")
		if len(runs) != 1 {
			t.Fatalf("%s: %d Runs", line, len(runs))
		}
		want := failedWorkflow().Spec
		want.ContinueFrom, want.DesiredState = &v1alpha1.ContinueFrom{Run: "release-1", UID: "run-uid", Node: node}, ""
		if diff := cmp.Diff(want, runs[0].Spec); diff != "" || len(runs[0].Labels) > 0 || !strings.HasPrefix(runs[0].Name, "release-") {
			t.Errorf("%s: %s, labels %v (-want +got):\n%s", line, runs[0].Name, runs[0].Labels, diff)
		}
	}
}

func TestRetryRefusesWhatCannotBeRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		mod  func(*v1alpha1.Run)
		want string
	}{
		"a Run of an Agent":    {"retry release-1", func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "fixer", "" }, "only a workflow can be retried. To continue its work: kubectl deckhand continue release-1 -p TEXT -n team-a"},
		"an active Run":        {"retry release-1", func(r *v1alpha1.Run) { r.Status.CompletionTime, r.Status.Conditions = nil, nil }, "run release-1 has not ended"},
		"a Run without nodes":  {"retry release-1", func(r *v1alpha1.Run) { r.Status.WorkflowRevision = "" }, "run release-1 has no results to keep (NodeFailed). To do its work: kubectl deckhand run --from run/release-1 -n team-a"},
		"a node with a typo":   {"retry release-1 --node tset", nil, "run release-1 has no node tset; did you mean test?. Its nodes are build, test"},
		"a Run that succeeded": {"retry release-1", func(r *v1alpha1.Run) { r.Status.Conditions[0].Status = metav1.ConditionTrue }, "all nodes of Run release-1 succeeded: say with --node which one runs again: build, test"},
		"a chain of 20":        {"retry release-1", func(r *v1alpha1.Run) { r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: make([]string, 20)} }, "a Run can continue at most 20"},
	} {
		t.Run(name, func(t *testing.T) {
			mods := []func(*v1alpha1.Run){}
			if tc.mod != nil {
				mods = append(mods, tc.mod)
			}
			s := newSession(t, failedWorkflow(mods...))
			if code := s.run(t, strings.Fields(tc.line)...); code == exit.OK || !strings.Contains(s.text(), tc.want) {
				t.Errorf("code %d, printed %s\nwant %s", code, s.text(), tc.want)
			}
			if runs := s.created(t, "release-1"); len(runs) > 0 {
				t.Errorf("it created %s", runs[0].Name)
			}
		})
	}
}

// A loop that reached its limit has no iteration that would run again.
func TestRetryWarnsOfLoopsThatReachedTheirLimit(t *testing.T) {
	failed := failedWorkflow(func(r *v1alpha1.Run) {
		r.Status.Nodes[1].Reason, r.Status.Nodes[1].Counts = v1alpha1.ReasonIterationLimit, &v1alpha1.NodeCounts{Total: 3, Started: 3, Succeeded: 3}
	})
	const warning = "Node test has made all its 3 iterations, and they are kept: it fails again with IterationLimit, unless the Workflow has changed. Raise loop.maxIterations, or run it again with --node test\n"
	loops := func(most int32) []v1alpha1.Node {
		return []v1alpha1.Node{{Name: "build", Agent: "fixer"}, {Name: "test", Agent: "fixer", Loop: &v1alpha1.Loop{Until: "true", MaxIterations: most}}}
	}
	for name, tc := range map[string]struct {
		line  string
		run   *v1alpha1.Run
		nodes []v1alpha1.Node // of the Workflow now
		want  string
	}{
		"the limit is the same":         {"retry release-1", failed, loops(3), warning},
		"the limit was lowered":         {"retry release-1", failed, loops(2), warning},
		"the limit was raised":          {"retry release-1", failed, loops(4), ""},
		"the limit was removed":         {"retry release-1", failed, loops(0), ""},
		"it runs again":                 {"retry release-1 --node test", failed, loops(3), ""},
		"it failed otherwise":           {"retry release-1", failedWorkflow(), loops(3), ""},
		"the Workflow has no such node": {"retry release-1", failed, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, tc.run.DeepCopy())
			var w v1alpha1.Workflow
			if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "release"}, &w); err != nil {
				t.Fatal(err)
			}
			w.Spec.Nodes = tc.nodes
			if err := s.client.Update(t.Context(), &w); err != nil {
				t.Fatal(err)
			}
			if code := s.run(t, strings.Fields(tc.line)...); code != exit.OK || s.err.String() != tc.want {
				t.Errorf("code %d, printed %q, want %q", code, s.err.String(), tc.want)
			}
		})
	}
}

package runstatus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

type collected []otlp.Span

func (c *collected) Export(s otlp.Span) { *c = append(*c, s) }

// The span of a Run is sent once, when it ends, in the trace of the Run without a parent.
func TestSpanOfARun(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const root, parent, uid = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222", "33333333-3333-3333-3333-333333333333"
	ofRun := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "deckhand.dev/v1alpha1", Kind: kind, Name: "x", UID: parent, Controller: new(true)}}
	}
	cases := map[string]struct {
		change func(*v1alpha1.Run)
		want   otlp.Span
	}{
		"without a parent": {func(*v1alpha1.Run) {}, otlp.Span{Trace: otlp.TraceOf(uid), Name: "invoke_agent fixer"}},
		"of a Schedule":    {func(r *v1alpha1.Run) { r.OwnerReferences = ofRun("Schedule") }, otlp.Span{Trace: otlp.TraceOf(uid), Name: "invoke_agent fixer"}},
		"with an annotation but no parent": {func(r *v1alpha1.Run) {
			r.Annotations = map[string]string{v1alpha1.AnnotationRootRun: root}
		}, otlp.Span{Trace: otlp.TraceOf(uid), Name: "invoke_agent fixer"}},
		"of a child": {func(r *v1alpha1.Run) {
			r.OwnerReferences, r.Annotations = ofRun("Run"), map[string]string{v1alpha1.AnnotationRootRun: root}
		}, otlp.Span{Trace: otlp.TraceOf(root), Parent: otlp.SpanOf(parent), Name: "invoke_agent fixer"}},
		"of an older child": {func(r *v1alpha1.Run) { r.OwnerReferences = ofRun("Run") }, otlp.Span{Trace: otlp.TraceOf(parent), Parent: otlp.SpanOf(parent), Name: "invoke_agent fixer"}},
		"of a Workflow":     {func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "release" }, otlp.Span{Trace: otlp.TraceOf(uid), Name: "invoke_workflow release"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := gen.Run(func(r *v1alpha1.Run) { r.UID, r.CreationTimestamp = uid, metav1.NewTime(start) }, tc.change)
			scheme := fake.NewClientBuilder().Build().Scheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).WithStatusSubresource(run).Build()
			var spans collected
			updater := runstatus.Updater{Client: c, Events: events.NewFakeRecorder(10), Spans: &spans}
			running, ended := run.Status.DeepCopy(), run.Status.DeepCopy()
			running.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: "Running", LastTransitionTime: metav1.NewTime(start)}}
			end := metav1.NewTime(start.Add(time.Minute))
			ended.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "StepLimit", LastTransitionTime: end}}
			ended.CompletionTime = &end
			for _, next := range []*v1alpha1.RunStatus{running, ended} {
				if err := updater.UpdateStatus(t.Context(), run, *next); err != nil {
					t.Fatal(err)
				}
				run.Status = *next
			}
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			got := spans[0]
			if !namesWhatRan(got) {
				t.Errorf("no attribute names what ran: %v", got.Attributes)
			}
			tc.want.ID, tc.want.Start, tc.want.End, tc.want.Failed = otlp.SpanOf(uid), start, end.Time, true
			got.Attributes = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func namesWhatRan(span otlp.Span) bool {
	_, name, _ := strings.Cut(span.Name, " ")
	return slices.ContainsFunc(span.Attributes, func(a otlp.Attribute) bool {
		return (a.Key == "gen_ai.agent.name" || a.Key == "gen_ai.workflow.name") && a.Value == name
	})
}

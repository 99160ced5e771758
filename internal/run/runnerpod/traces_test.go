package runnerpod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A runner learns where to send spans and whose trace it is, and may reach the collector.
func TestTracesOfARunner(t *testing.T) {
	child := gen.Run(func(r *v1alpha1.Run) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "deckhand.dev/v1alpha1", Kind: "Run", Name: "parent", UID: "parent", Controller: new(true)}}
		r.Annotations = map[string]string{v1alpha1.AnnotationRootRun: "root"}
	})
	in := newInput(t, child, gen.Agent(), gen.Objects())
	off := EgressClass(in)
	if got := TaskOf(in).Traces; got != nil {
		t.Errorf("without an endpoint the task has %+v", got)
	}
	in.Defaults.Traces = &task.Traces{Endpoint: "http://collector.monitoring.svc:4318", Content: true, Metrics: true}
	want := &task.Traces{Endpoint: "http://collector.monitoring.svc:4318", Content: true, Metrics: true, Root: "root"}
	if diff := cmp.Diff(want, TaskOf(in).Traces); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	on := EgressClass(in)
	if off.Label() == on.Label() || !strings.Contains(string(ToJSON(on)), "monitoring") {
		t.Errorf("the pod may reach %s, without traces %s", ToJSON(on), ToJSON(off))
	}
}

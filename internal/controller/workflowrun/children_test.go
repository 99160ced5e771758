package workflowrun

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/testing/untrustedtest"
)

// What a child reports is cleaned, and one that a backup restored is no child.
func TestWhichChildrenAreRead(t *testing.T) {
	server := newRefuser(t)
	server.reconcileAll(2)
	var child v1alpha1.Run
	if err := server.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "x-a"}, &child); err != nil {
		t.Fatal(err)
	}
	child.Status.Progress = &v1alpha1.RunProgress{Attempt: 1, Result: &v1alpha1.Result{Message: untrustedtest.RawText}}
	if err := server.Status().Update(t.Context(), &child); err != nil {
		t.Fatal(err)
	}
	children, err := server.reconciler.observeChildren(t.Context(), server.get())
	if err != nil || len(children) != 1 {
		t.Fatalf("%d children: %v", len(children), err)
	}
	if text := children[0].Status.Progress.Result.Message; text == "" || untrustedtest.IsRaw(text) {
		t.Errorf("the child says %+q", text)
	}
	child.Labels["velero.io/restore-name"] = "nightly"
	if err := server.Update(t.Context(), &child); err != nil {
		t.Fatal(err)
	}
	if children, err = server.reconciler.observeChildren(t.Context(), server.get()); err != nil || len(children) != 0 {
		t.Errorf("%d children: %v", len(children), err)
	}
}

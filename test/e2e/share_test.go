//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// shareScripts are the scripts of stories about Runs that share files. A Run that continues another one begins behind
// its turns.
var shareScripts = map[string]modeltest.Dialogue{
	"sharer": turns(
		modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "notes.txt", "content": "one\n"})}},
		modeltest.Turn{Text: "Written."},
		modeltest.Turn{Calls: []modeltest.Call{call("Read", args{"path": "notes.txt"}), call("Edit", args{"path": "notes.txt", "old_string": "one", "new_string": "two"})}},
		modeltest.Turn{Text: "It said: {{.LastToolResult}}"},
		modeltest.Turn{Calls: []modeltest.Call{call("Read", args{"path": "notes.txt"})}},
		modeltest.Turn{Text: "It says: {{.LastToolResult}}"},
	),
}

// A Run works on the files of the Run that it continues, on the same volume. The files stay when the first Run is
// deleted, and a third Run copies them.
func TestRunsShareFiles(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("sharer", onVolume)
	first := p.ends(p.run("sharer"), "True Finished")
	next := func(name, of string, workspace v1alpha1.ContinueWorkspace) *v1alpha1.Run {
		return p.ends(p.run("sharer", func(r *v1alpha1.Run) {
			r.Name, r.Spec.ContinueFrom = name, &v1alpha1.ContinueFrom{Run: of, Workspace: workspace}
		}), "True Finished")
	}
	second := next("second", "sharer", v1alpha1.ContinueShare)
	claim := first.Status.Attempt.VolumeClaim
	if got := second.Status.Attempt.VolumeClaim; got != claim {
		t.Fatalf("the second Run is on %s, want %s", got, claim)
	}
	if got := second.Status.Progress.Result.Text; !strings.Contains(got, "Replaced 1") && !strings.Contains(got, "two") {
		t.Errorf("the second Run said %q", got)
	}
	p.deleteObject(&v1alpha1.Run{}, first.Name)
	err := until(t.Context(), func(ctx context.Context) (bool, error) { // the garbage collector removes the owner
		var c corev1.PersistentVolumeClaim
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: claim}, &c)
		return len(c.OwnerReferences) == 1 && c.OwnerReferences[0].UID == second.UID && c.DeletionTimestamp == nil, err
	})
	if err != nil {
		t.Fatalf("the volume is not kept for the second Run: %v", err)
	}
	third := next("third", "second", v1alpha1.ContinueCopy)
	if got := third.Status.Attempt.VolumeClaim; got == claim {
		t.Error("the third Run has no volume of its own")
	}
	if got := third.Status.Progress.Result.Text; !strings.Contains(got, "1  two") {
		t.Errorf("the third Run said %q", got)
	}
}

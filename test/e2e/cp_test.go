//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// Files of a finished Run with a volume are copied through a pod that is gone afterwards. Those of a
// Run without a volume are in the log of its pod, and cp says what to set for files that are not.
func TestFilesOfAFinishedRunAreCopied(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"scribe": turns(does(call("Shell", sh("mkdir -p log && printf 'All is well.' >log/1900.txt && ln -s /etc/passwd log/link"))), says("Written.")),
		"clerk":  turns(does(call("Shell", sh("printf 'All is well.' >1900.txt && seq 200000 >large.txt"))), says("Written.")),
	})
	s.delegatingAgent("keeper", "scribe", nil, onVolume, withShell)
	s.delegatingAgent("visitor", "clerk", nil, withShell, func(a *v1alpha1.Agent) { a.Spec.Retention.Pod = "10m" })
	durable, inPod := s.run("keeper"), s.run("visitor")
	s.settles(durable, "True Finished")
	s.settles(inPod, "True Finished")
	types := s.newShell()
	if got := types("kubectl deckhand cp " + durable.Name + ":log/1900.txt - 2>/dev/null"); got != "All is well." {
		t.Errorf("the file has %q", got)
	}
	printed := types("cd $(mktemp -d) && kubectl deckhand cp " + durable.Name + ":. files && find files -type f && find files -type l")
	if !strings.Contains(printed, "files/log/1900.txt\n") || strings.Contains(printed, "files/log/link") || !strings.Contains(printed, "log/link -> /etc/passwd") {
		t.Errorf("printed %s", printed)
	}
	if got := types("kubectl deckhand cp " + inPod.Name + ":1900.txt - 2>/dev/null"); got != "All is well." {
		t.Errorf("the file in the log has %q", got)
	}
	printed = types("kubectl deckhand cp " + inPod.Name + ":large.txt - 2>&1 || true; kubectl deckhand why " + inPod.Name)
	if !strings.Contains(printed, "set workspace.durability: Volume of Agent visitor") || !strings.Contains(printed, "Not in the log: large.txt (too large") {
		t.Errorf("printed %s", printed)
	}
	printed = types("kubectl delete pods -l " + v1alpha1.LabelRun + "=" + durable.Name + " >/dev/null && kubectl deckhand logs " + durable.Name)
	if !strings.Contains(printed, "→ s2c1 Shell") || !strings.Contains(printed, "● s4 Written.") || !strings.Contains(printed, "■ Finished") {
		t.Errorf("printed %s", printed)
	}
	var pods corev1.PodList
	if err := cluster.admin.List(t.Context(), &pods, client.InNamespace(s.name), client.MatchingLabels{"app.kubernetes.io/name": "deckhand-files"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			t.Errorf("pod %s is left", pods.Items[i].Name)
		}
	}
}

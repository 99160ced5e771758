//go:build e2e && upgrade

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Where the release is installed, as make deploy does, and what make previous built of
// the release before.
const (
	release          = "deckhand"
	releaseNamespace = "deckhand-system"
	helm             = "../../bin/tools/helm"
	chart            = "../../charts/deckhand"
	previousChart    = "../../dist/previous/tree/charts/deckhand"
	previousTag      = "previous"
)

// An installation is the release with the values that it had before the test.
type installation struct{ values string } // the name of a file

// installed is the release as it is, and will be again after the test.
func installed(t *testing.T) installation {
	t.Helper()
	if _, err := os.Stat(previousChart); err != nil {
		t.Fatalf("the previous release is not built: run make previous: %v", err)
	}
	i := installation{values: filepath.Join(t.TempDir(), "values.yaml")}
	if err := os.WriteFile(i.values, []byte(runHelm(t, "get", "values", release, "--output=yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func runHelm(t *testing.T, args ...string) string {
	t.Helper()
	var complaint strings.Builder
	c := exec.CommandContext(context.WithoutCancel(t.Context()), helm, append(args, "--namespace="+releaseNamespace)...)
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out)
}

// current installs the chart and the images of this tree.
func (i installation) current(t *testing.T) {
	t.Helper()
	runHelm(t, "upgrade", release, chart, "--values="+i.values, "--wait", "--timeout=5m")
}

// previous installs those of the release before.
func (i installation) previous(t *testing.T) {
	t.Helper()
	runHelm(t, "upgrade", release, previousChart, "--values="+i.values, "--wait", "--timeout=5m",
		"--set=image.tag="+previousTag+",runner.image.tag="+previousTag)
}

// Runs go on through an upgrade of operator, chart and runner, and through a rollback:
// one whose approval is pending in its pod, which keeps its runner, and one whose pod is
// lost meanwhile, whose next attempt has the other runner and the old journal.
func TestRunsGoOnThroughUpgradeAndRollback(t *testing.T) {
	i := installed(t)
	change := map[string]struct{ from, to func(t *testing.T) }{
		"upgrade":  {i.previous, i.current},
		"rollback": {i.current, i.previous},
	}
	t.Cleanup(func() { i.current(t) })
	for _, name := range []string{"upgrade", "rollback"} { // the operator is one
		t.Run(name, func(t *testing.T) {
			change[name].from(t)
			p := newNamespace(t)
			p.agent("writer", onVolume, func(a *v1alpha1.Agent) {
				a.Spec.Tools[0].Approval = &v1alpha1.Approval{When: `tool == "Write"`}
			})
			ann := p.as("ann", p.approverRole())
			before := map[string]v1alpha1.PendingRequest{}
			moves := p.writes("moves")
			before["moves"] = p.pendingOf(moves, 1)
			stays := p.writes("stays") // last, because its runner waits for two minutes only
			before["stays"] = p.pendingOf(stays, 1)
			image := p.pod(stays, 1).Spec.Containers[0].Image

			change[name].to(t)
			p.approves(ann, "stays", before["stays"])
			if seen := p.ends(stays, "True Finished"); seen.Status.Attempt.Number != 1 {
				t.Errorf("the Run that waited in its pod ended in attempt %d", seen.Status.Attempt.Number)
			}
			p.killPod(p.pod(moves, 1))
			if again := p.pendingOf(moves, 2); again.ID != before["moves"].ID || again.Digest != before["moves"].Digest {
				t.Errorf("attempt 2 asks %+v, attempt 1 asked %+v", again, before["moves"])
			}
			if now := p.pod(moves, 2).Spec.Containers[0].Image; now == image {
				t.Errorf("attempt 2 has the same runner %s", now)
			}
			p.approves(ann, "moves", before["moves"])
			seen := p.ends(moves, "True Finished")
			if c := seen.Status.Progress.Counts; seen.Status.Attempt.Number != 2 || c.ToolCalls != 3 || c.ModelCalls != 4 {
				t.Errorf("it ended in attempt %d with counts %+v, want attempt 2, three tool calls and four model calls", seen.Status.Attempt.Number, c)
			}
			p.ends(p.writesFreely("new"), "True Finished")
		})
	}
}

// writes starts a Run of the writer.
func (p *testNamespace) writes(name string) *v1alpha1.Run {
	p.t.Helper()
	return p.run("writer", func(r *v1alpha1.Run) { r.Name = name })
}

// writesFreely starts a Run of an Agent that needs no approval.
func (p *testNamespace) writesFreely(name string) *v1alpha1.Run {
	p.t.Helper()
	p.create(&v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "free-writer"},
		Spec:       v1alpha1.AgentSpec{Instructions: "Write.", Model: "writer", Tools: []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}},
	})
	return p.run("free-writer", func(r *v1alpha1.Run) { r.Name = name })
}

// approves has a user approve a request of a Run.
func (p *testNamespace) approves(user client.Client, run string, request v1alpha1.PendingRequest) {
	p.t.Helper()
	d := &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: run + "." + request.ID},
		Spec:       v1alpha1.DecisionSpec{Run: run, Request: request.ID, Type: v1alpha1.DecisionApprove, By: "ann"},
	}
	if err := user.Create(p.t.Context(), p.in(d)); err != nil {
		p.t.Fatal(err)
	}
}

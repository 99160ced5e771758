//go:build e2e && upgrade

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Where the release is installed, as make deploy does, and what make previous built of
// the release before.
const (
	release          = "deckhand"
	releaseNamespace = "deckhand-system"
	helm             = "../../bin/tools/helm"
	chart            = "../../charts/deckhand"
	previousChart    = "../../dist/previous/tree/charts/deckhand"
	previousContract = "../../dist/previous/tree/runner/task/paths.go"
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

// readsSnapshots reports whether the previous release reads the snapshots of this one, in which tools
// have the names of today. It may be this release itself.
func readsSnapshots(t *testing.T) bool {
	t.Helper()
	contract, err := os.ReadFile(previousContract)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(contract), fmt.Sprintf("const SnapshotVersion = %d\n", task.SnapshotVersion))
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

// Runs go on through an upgrade of operator, chart and runner, and through a rollback, where those
// of a snapshot that the operator of before does not read wait until it is upgraded again:
// one whose approval is pending in its pod, which keeps its runner, and two whose pods are
// lost meanwhile, whose next attempts have the other runner and the old journal: one
// has a pending approval as well, the other a child Run that it has read and one that waits. Runs of before whose
// Agent or Model has names and fields of before keep what these meant.
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
			p.freeWriter()
			p.agent("delegator", onVolume, func(a *v1alpha1.Agent) {
				a.Spec.Tools = nil
				for _, to := range []v1alpha1.ObjectName{"free-writer", "writer"} {
					a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: to, Delegation: &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}})
				}
			})
			parent, child := p.run("delegator"), &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "delegator-s4c1"}}
			p.await(parent, "waits for its second child Run", func(r *v1alpha1.Run) bool { return strings.Contains(message(r), child.Name) })
			before["child"] = p.pendingOf(child, 1)
			stays := p.writes("stays") // last, because its runner waits for two minutes only
			before["stays"] = p.pendingOf(stays, 1)
			isBefore := name == "upgrade" && !readsSnapshots(t)
			guarded, messages := p.guards(isBefore), p.speaksMessages(isBefore)
			image := p.pod(stays, 1).Spec.Containers[0].Image

			change[name].to(t)
			p.killPod(p.pod(parent, 1)) // before its runner leaves
			p.approves(ann, "stays", before["stays"])
			if seen := p.ends(stays, "True Finished"); seen.Status.Attempt.Number != 1 {
				t.Errorf("the Run that waited in its pod ended in attempt %d", seen.Status.Attempt.Number)
			}
			p.killPod(p.pod(moves, 1))
			waits := name == "rollback" && !readsSnapshots(t)
			if waits {
				i.awaitsUpgrade(p, moves)
			}
			if again := p.pendingOf(moves, 2); again.ID != before["moves"].ID || again.Digest != before["moves"].Digest {
				t.Errorf("attempt 2 asks %+v, attempt 1 asked %+v", again, before["moves"])
			}
			if now := p.pod(moves, 2).Spec.Containers[0].Image; !waits && now == image {
				t.Errorf("attempt 2 has the same runner %s", now)
			}
			p.approves(ann, "moves", before["moves"])
			seen := p.ends(moves, "True Finished")
			if c := seen.Status.Progress.Counts; seen.Status.Attempt.Number != 2 || c.ToolCalls != 3 || c.ModelCalls != 4 {
				t.Errorf("it ended in attempt %d with counts %+v, want attempt 2, three tool calls and four model calls", seen.Status.Attempt.Number, c)
			}
			p.await(parent, "waits again", func(r *v1alpha1.Run) bool {
				return r.Status.Progress.Attempt == 2 && len(r.Status.Progress.Pending) == 1
			})
			p.approves(ann, child.Name, before["child"])
			ended := p.ends(parent, "True Finished")
			p.ends(child, "True Finished")
			var children v1alpha1.RunList
			if err := cluster.admin.List(t.Context(), &children, client.InNamespace(p.name), client.MatchingLabels{v1alpha1.LabelParentRun: parent.Name}); err != nil || len(children.Items) != 2 || ended.Status.Attempt.Number != 2 {
				t.Errorf("the parent ended in attempt %d with %d child Runs: %v", ended.Status.Attempt.Number, len(children.Items), err)
			}
			p.ends(p.run("free-writer", func(r *v1alpha1.Run) { r.Name = "new" }), "True Finished")
			guarded.isStillGuarded(ann)
			messages.continues(ann)
		})
	}
}

// writes starts a Run of the writer.
func (p *testNamespace) writes(name string) *v1alpha1.Run {
	p.t.Helper()
	return p.run("writer", func(r *v1alpha1.Run) { r.Name = name })
}

// freeWriter makes an Agent that needs no approval.
func (p *testNamespace) freeWriter() {
	p.t.Helper()
	p.create(&v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "free-writer"},
		Spec:       v1alpha1.AgentSpec{Instructions: "Write.", Model: "writer", Tools: []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}},
	})
}

// awaitsUpgrade has a Run wait while the operator does not read its revision, as another Run does its
// work, and upgrades.
func (i installation) awaitsUpgrade(p *testNamespace, run *v1alpha1.Run) {
	p.t.Helper()
	p.await(run, "waits for an operator that reads its revision", func(r *v1alpha1.Run) bool { return strings.Contains(message(r), "of a newer operator") })
	p.ends(p.run("free-writer", func(r *v1alpha1.Run) { r.Name = "on-previous" }), "True Finished")
	i.current(p.t)
}

// A formerRun waits for an approval, in a form that only the operator of before accepts.
type formerRun struct {
	p       *testNamespace
	run     *v1alpha1.Run
	request v1alpha1.PendingRequest
}

// waiting starts a Run of an Agent that asks for an approval.
func (p *testNamespace) waiting(agent string) *formerRun {
	p.t.Helper()
	run := p.run(agent)
	return &formerRun{p, run, p.pendingOf(run, 1)}
}

// finishes replaces the runner of the Run, approves its request and returns the text of its result.
func (f *formerRun) finishes(approver client.Client) string {
	f.p.t.Helper()
	f.p.killPod(f.p.pod(f.run, 1))
	f.p.pendingOf(f.run, 2)
	f.p.approves(approver, f.run.Name, f.request)
	return f.p.ends(f.run, "True Finished").Status.Progress.Result.Text
}

// ready returns the condition Ready of an object of the namespace; nil: it has none.
func (p *testNamespace) ready(name string, into client.Object, conditions *[]metav1.Condition) *metav1.Condition {
	p.t.Helper()
	if err := cluster.admin.Get(p.t.Context(), client.ObjectKey{Namespace: p.name, Name: name}, into); err != nil {
		p.t.Fatal(err)
	}
	return meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady)
}

// guards starts a Run, if the operator of before is installed, that calls the shell after its approval, by
// the name of before. The policy of its Agent denies the call. Nil: that operator is not installed.
func (p *testNamespace) guards(isBefore bool) *formerRun {
	p.t.Helper()
	if !isBefore {
		return nil
	}
	p.agent("guarded", withShell, onVolume, func(a *v1alpha1.Agent) {
		a.Spec.Tools[0].Approval = &v1alpha1.Approval{When: `tool == "Write"`}
		a.Spec.Policy = []v1alpha1.PolicyRule{{Name: "no-deletes", When: "tool == 'shell' && shell.runs('rm')", Answer: v1alpha1.PolicyDeny}}
	})
	return p.waiting("guarded")
}

// isStillGuarded has another runner of the Run deny the call all the same.
func (f *formerRun) isStillGuarded(approver client.Client) {
	if f == nil {
		return
	}
	f.p.t.Helper()
	if text := f.finishes(approver); !strings.Contains(text, "Denied by policy rule no-deletes") {
		f.p.t.Errorf("after the upgrade the call of the shell returned %q", text)
	}
	var agent v1alpha1.Agent
	if ready := f.p.ready("guarded", &agent, &agent.Status.Conditions); ready == nil || !strings.Contains(ready.Message, "the tool shell is called Shell") {
		f.p.t.Errorf("the Agent whose rule has the former name says %+v", ready)
	}
}

// speaksMessages starts a Run, if the operator of before is installed, whose Model of DeepSeek has the
// Messages API by the field of before. Nil: that operator is not installed.
func (p *testNamespace) speaksMessages(isBefore bool) *formerRun {
	p.t.Helper()
	if !isBefore {
		return nil
	}
	if err := serve(p.t.Context(), p.name, modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{"writer": scripts["writer"]}}, nil); err != nil {
		p.t.Fatal(err)
	}
	p.create(modelOf("deep", func(m *v1alpha1.Model) {
		m.Spec.Provider, m.Spec.ModelID, m.Spec.Endpoint = v1alpha1.ProviderDeepSeek, "writer", "http://"+modelsName+"/deep"
		m.Spec.DeepSeek = &v1alpha1.ReplacedFormat{Format: "Anthropic"}
	}), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "deep"},
		Spec: v1alpha1.AgentSpec{
			Instructions: "Write.", Model: "deep", Workspace: v1alpha1.Workspace{Durability: v1alpha1.DurabilityVolume},
			Tools: []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles, Approval: &v1alpha1.Approval{When: `tool == "Write"`}}},
		},
	})
	return p.waiting("deep")
}

// continues has another runner of the Run continue over the same API, and reads on the Model what to write.
func (f *formerRun) continues(approver client.Client) {
	if f == nil {
		return
	}
	f.p.t.Helper()
	f.finishes(approver)
	asked := (&exampleFixture{testNamespace: f.p}).requestsWith("POST " + modelsName + "/deep/")
	if len(asked) < 4 || slices.ContainsFunc(asked, func(r request) bool { return !strings.HasSuffix(r.Path, "/messages") }) {
		f.p.t.Errorf("asked %+v", asked)
	}
	var model v1alpha1.Model
	if ready := f.p.ready("deep", &model, &model.Status.Conditions); ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "write api: Messages") {
		f.p.t.Errorf("the Model with the field of before says %+v", ready)
	}
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

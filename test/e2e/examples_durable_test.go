//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// removal is a model that makes a folder, and asks for its removal.
func removal() modeltest.Dialogue {
	return turns(
		does(call("Shell", args{"command": "mkdir dist && echo one >dist/a.txt && ls dist"})),
		does(call("Shell", args{"command": "rm -r dist"})),
		does(call("Shell", args{"command": "ls -A"})),
		says("There is left: {{.LastToolResult}}"),
	)
}

// durableExamples are about work that outlives its pods.
var durableExamples = map[string]example{
	"volume.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Write", args{"path": "1900.txt", "content": "Ships came in."})),
			modeltest.Turn{ // it is not answered until the pod is killed
				Text: longText, Calls: []modeltest.Call{call("Write", args{"path": "1901.txt", "content": "Ships went out."})},
				Faults: []modeltest.Fault{{Kind: modeltest.FaultIdle}},
			},
			does(call("Glob", args{"pattern": "*.txt"})),
			says("There is: {{.LastToolResult}}"),
		)},
		person: func(s *exampleFixture) {
			run := s.await(s.runs["volume"], "begins to change things", func(r *v1alpha1.Run) bool {
				return r.Status.Progress != nil && r.Status.Progress.Effects == v1alpha1.EffectsBegun
			})
			s.killPod(s.pod(run, 1))
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("volume"), "1900.txt", "1901.txt")
			run := s.runs["volume"]
			if run.Status.Attempt.Number != 2 || run.Status.Disruptions != 1 || run.Status.Failures != 0 || run.Status.Progress.Counts.ToolCalls != 3 {
				s.t.Errorf("attempt %d, %d disruptions, %d failures, %+v", run.Status.Attempt.Number, run.Status.Disruptions, run.Status.Failures, run.Status.Progress.Counts)
			}
			claim := &corev1.PersistentVolumeClaim{}
			err := cluster.admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: run.Status.Attempt.VolumeClaim}, claim)
			if err != nil || claim.DeletionTimestamp != nil || claim.Spec.Resources.Requests.Storage().String() != "2Gi" {
				s.t.Errorf("its claim is not kept: %v, %+v", err, claim.Spec)
			}
		},
	},
	"approve.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": removal()},
		person: func(s *exampleFixture) {
			run := s.awaits("approve", requestFor("s4c1", "rm -r dist"))
			request := run.Status.Progress.Pending[0]
			if request.Kind != "Approval" || request.Tool != "Shell" || request.Args != `{"command":"rm -r dist"}` || request.Rule == "" {
				s.t.Errorf("it asks %+v", request)
			}
			s.has("the message", succeeded(run), "AwaitingApproval", "rm -r dist", "approve."+request.ID)
			s.decides("decisions/approve.yaml")
		},
		check: func(s *exampleFixture) {
			s.lacks("the answer", s.says("approve"), "dist")
			s.decided("approve", "approve."+requestFor("s4c1", "rm -r dist"))
		},
	},
}

// A Run that waits for a person has no pod, and is charged for none: not when the
// runner leaves, not when the next one comes.
func TestAWaitingRunHasNoPod(t *testing.T) {
	t.Parallel()
	s := newNamespace(t).startApprovalRun()
	s.awaits("asker", requestFor("s4c1", "rm -r dist"))
	leaves := func(ctx context.Context) (bool, error) {
		pods, err := s.alive(ctx)
		return len(pods) == 0, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*waitTimeout, true, leaves); err != nil {
		t.Fatalf("the runner does not leave: %v", err)
	}
	run := s.awaits("asker", requestFor("s4c1", "rm -r dist")) // still
	before := run.Status.Progress.Usage.DurationSeconds
	request := run.Status.Progress.Pending[0]
	s.create(&v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "asker." + request.ID},
		Spec:       v1alpha1.DecisionSpec{Run: "asker", Request: request.ID, Type: v1alpha1.DecisionApprove, By: s.whoami()},
	})
	ended := s.ends(run, "True Finished")
	if strings.Contains(ended.Status.Progress.Result.Text, "dist") {
		t.Errorf("the folder is still there: %s", ended.Status.Progress.Result.Text)
	}
	if a := ended.Status; a.Attempt.Number != 2 || a.Failures != 0 || a.Disruptions != 0 {
		t.Errorf("attempt %d, %d failures, %d disruptions", a.Attempt.Number, a.Failures, a.Disruptions)
	}
	if before > 60 {
		t.Errorf("the wait cost %d s", before)
	}
}

// A Run that is paused while it works has no pod either, until it may go on.
func TestAPausedRunHasNoPod(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	endlessTurns := scripts["endless"].Turns
	script := modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{
		"walker": {Turns: append(endlessTurns[:400:400], says("Done."))},
	}}
	if err := serve(t.Context(), p.name, script, nil); err != nil {
		t.Fatal(err)
	}
	a := agentOnVolume("walker")
	a.Spec.Limits.Steps = new(int32(1000))
	p.create(modelOf("walker", func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName }), a)
	run := p.run("walker")
	p.await(run, "works", func(r *v1alpha1.Run) bool { return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls > 0 })
	p.setDesiredState(run, v1alpha1.DesiredPaused)
	held := p.await(run, "pauses", func(r *v1alpha1.Run) bool {
		pods, err := p.alive(t.Context())
		return strings.HasPrefix(succeeded(r), "Unknown Paused") && err == nil && len(pods) == 0
	})
	if held.Status.Progress.Counts.Steps >= 400 {
		t.Fatal("it was over before it paused")
	}
	p.setDesiredState(run, v1alpha1.DesiredRunning)
	again := p.await(run, "goes on", func(r *v1alpha1.Run) bool {
		return r.Status.Attempt.Number == 2 && r.Status.Progress.Counts.Steps > held.Status.Progress.Counts.Steps
	})
	if again.Status.Failures != 0 || again.Status.Disruptions != 0 {
		t.Errorf("%d failures, %d disruptions", again.Status.Failures, again.Status.Disruptions)
	}
	p.setDesiredState(run, v1alpha1.DesiredStopped)
	p.ends(run, "False Stopped")
}

// startApprovalRun starts a Run that asks for an approval.
func (p *testNamespace) startApprovalRun() *exampleFixture {
	p.t.Helper()
	script := modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{"asker": removal()}}
	if err := serve(p.t.Context(), p.name, script, nil); err != nil {
		p.t.Fatal(err)
	}
	shell := v1alpha1.Tool{Builtin: v1alpha1.BuiltinShell, Approval: &v1alpha1.Approval{When: `shell.runs("rm")`}}
	p.create(modelOf("asker", func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName }), agentOnVolume("asker", shell))
	return &exampleFixture{testNamespace: p, runs: map[string]*v1alpha1.Run{"asker": p.run("asker")}}
}

// alive are the pods of Runs that have not ended.
func (p *testNamespace) alive(ctx context.Context) ([]corev1.Pod, error) {
	var all corev1.PodList
	if err := cluster.admin.List(ctx, &all, client.InNamespace(p.name), client.HasLabels{v1alpha1.LabelRun}); err != nil {
		return nil, err
	}
	var some []corev1.Pod
	for _, pod := range all.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			some = append(some, pod)
		}
	}
	return some, nil
}

// setDesiredState changes what is desired of a Run.
func (p *testNamespace) setDesiredState(run *v1alpha1.Run, state v1alpha1.DesiredState) {
	p.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"`+string(state)+`"}}`))
	if err := cluster.admin.Patch(p.t.Context(), run.DeepCopy(), patch); err != nil {
		p.t.Fatalf("wanting it %s: %v", state, err)
	}
}

// whoami is who the tests are.
func (p *testNamespace) whoami() string {
	p.t.Helper()
	who := &authenticationv1.SelfSubjectReview{}
	if err := cluster.admin.Create(p.t.Context(), who); err != nil {
		p.t.Fatalf("asking who I am: %v", err)
	}
	return who.Status.UserInfo.Username
}

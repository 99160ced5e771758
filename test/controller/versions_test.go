package controller_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An exchange is what operator and runner wrote to each other during one Run, in one
// version of their contract. The documentation of package task says what is in it.
type exchange struct {
	t   *testing.T
	dir string
}

func exchangeOf(t *testing.T, version int) exchange {
	return exchange{t: t, dir: filepath.Join(apitest.Root(), "runner", "task", "testdata", fmt.Sprintf("v%d", version))}
}

func (e exchange) read(name string) string {
	e.t.Helper()
	data, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	return string(data)
}

// newExchangeFixture is a fixture with the Agent of the exchanges: its runner is built by
// the user, so an upgrade of the operator does not change its version.
func newExchangeFixture(t *testing.T) *fixture {
	t.Helper()
	b := newDurableFixture(t)
	m := &v1alpha1.Model{}
	if err := b.Admin.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "sonnet"}, m); err != nil {
		t.Fatal(err)
	}
	m.Spec = v1alpha1.ModelSpec{Provider: v1alpha1.ProviderCustom, Custom: &v1alpha1.CustomModel{Driver: "acme"}, ModelID: "acme-1"}
	a := b.agent()
	a.Spec.Tools[0].Approval = &v1alpha1.Approval{When: "tool == 'Write'"}
	a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "registry.example/runner:v1"}
	for _, o := range []client.Object{m, a} {
		if err := b.Admin.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// A runner refuses fields of a task or a snapshot that it does not know. So an operator
// writes a new field only for a Run that uses it, and this Run uses none. The version of the
// snapshot is new since tools have other names: what is in it for this Run is as before.
func TestOperatorWritesWhatOlderRunnersRead(t *testing.T) {
	e, b := exchangeOf(t, task.Version), newExchangeFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	was := e.read("runner.json")
	is := strings.Replace(was, `{"version":1,`, fmt.Sprintf(`{"version":%d,`, task.SnapshotVersion), 1)
	taskOfVersion := strings.Replace(e.read("task.json"), task.Hash([]byte(was)), task.Hash([]byte(is)), 1)
	written := strings.NewReplacer(b.namespace, "team-a", string(b.run.UID), "run-uid").Replace(pod.Annotations[v1alpha1.AnnotationTask])
	if diff := cmp.Diff(taskOfVersion, written+"\n"); diff != "" {
		t.Errorf("the task differs from task.json of version %d (-written before +written now):\n%s", task.Version, diff)
	}
	var revision corev1.ConfigMap
	key := client.ObjectKey{Namespace: b.namespace, Name: snapshot.Name(b.get().Status.Attempt.AgentRevision)}
	if err := b.Admin.Get(t.Context(), key, &revision); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(is, revision.Data["runner.json"]); diff != "" {
		t.Errorf("the snapshot differs from runner.json of version %d (-written before +written now):\n%s", task.Version, diff)
	}
	var before, now corev1.Container
	if err := json.Unmarshal([]byte(e.read("container.json")), &before); err != nil {
		t.Fatal(err)
	}
	now = pod.Spec.Containers[0]
	if diff := cmp.Diff(before.Args, now.Args); diff != "" {
		t.Errorf("arguments: -before +now:\n%s", diff)
	}
	if diff := cmp.Diff(before.LivenessProbe.Exec, now.LivenessProbe.Exec); diff != "" {
		t.Errorf("liveness probe: -before +now:\n%s", diff)
	}
	for _, variable := range before.Env {
		if !contains(now.Env, variable) {
			t.Errorf("the runner has no environment variable %+v", variable)
		}
	}
	for _, mount := range before.VolumeMounts {
		mount.ReadOnly = false // of a projected volume it says nothing: the kubelet mounts it read-only in any case
		if !contains(now.VolumeMounts, mount) {
			t.Errorf("the runner has no mount %+v", mount)
		}
	}
}

func contains[T any](list []T, want T) bool {
	for i := range list {
		if cmp.Equal(list[i], want) {
			return true
		}
	}
	return false
}

// The runner of a Run may be older than the operator: it asks for an approval, and
// finishes, in the words of its version.
func TestOperatorUnderstandsOlderRunners(t *testing.T) {
	for version := 1; version <= task.Version; version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			e, b := exchangeOf(t, version), newExchangeFixture(t)
			b.reconcileUntilStable()
			b.startRunner(b.onlyPod())
			b.sendExchange(e, "asks.json")
			b.reconcileUntilStable()
			b.expect("Unknown AwaitingApproval")
			pending := b.get().Status.Progress.Pending[0]
			name := "x." + pending.ID
			b.createDecision(name, v1alpha1.DecisionSpec{Request: pending.ID, Type: v1alpha1.DecisionApprove})
			b.reconcileDecision(name, nil)
			b.reconcileUntilStable()
			var before, now task.Signals
			if err := json.Unmarshal([]byte(e.read("signals.json")), &before); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(b.onlyPod().Annotations[v1alpha1.AnnotationSignals]), &now); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.Decisions, now.Decisions); diff != "" {
				t.Errorf("the decisions that the runner reads: -before +now:\n%s", diff)
			}
			b.sendExchange(e, "done.json")
			if d := b.reconcileDecision(name, nil); !strings.HasPrefix(applied(d), "True Applied") {
				t.Errorf("Applied is %s", applied(d))
			}
			b.endRunner(b.onlyPod(), 0, e.read("termination.json"))
			b.reconcileUntilStable()
			b.expect("True Finished")
			if got := b.get().Status.Progress.Result.Text; got != "Done." {
				t.Errorf("the result is %q", got)
			}
		})
	}
}

// The status may be lost with the pod: the termination message is enough.
func TestOperatorUnderstandsTheLastWordOfOlderRunners(t *testing.T) {
	for version := 1; version <= task.Version; version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			e, b := exchangeOf(t, version), newExchangeFixture(t)
			b.reconcileUntilStable()
			b.startRunner(b.onlyPod())
			b.sendExchange(e, "asks.json")
			b.reconcileUntilStable()
			name := "x." + b.get().Status.Progress.Pending[0].ID
			b.createDecision(name, v1alpha1.DecisionSpec{Request: strings.TrimPrefix(name, "x."), Type: v1alpha1.DecisionApprove})
			b.reconcileDecision(name, nil)
			b.reconcileUntilStable()
			b.endRunner(b.onlyPod(), 0, e.read("termination.json"))
			b.reconcileUntilStable()
			b.expect("True Finished")
		})
	}
}

// sendExchange has the only pod send a request as its runner sent it, which must be accepted.
func (b *fixture) sendExchange(e exchange, name string) {
	b.t.Helper()
	pod := b.onlyPod()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.RunnerServiceAccount}}
	c := b.WithToken(b.t, b.Token(b.t, account, pod))
	body := strings.Replace(e.read(name), "pod-1", string(pod.UID), 1)
	if err := c.Status().Patch(b.t.Context(), b.get(), client.RawPatch(types.JSONPatchType, []byte(body))); err != nil {
		b.t.Fatalf("%s is refused: %v", name, err)
	}
}

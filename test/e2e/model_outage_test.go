//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// newModelServer is a namespace with a model server of its own and an Agent of its one model.
func newModelServer(t *testing.T, name string, dialogue modeltest.Dialogue, mods ...func(*v1alpha1.Agent)) *testNamespace {
	t.Helper()
	p := newNamespace(t)
	if err := serve(t.Context(), p.name, modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{name: dialogue}}, nil); err != nil {
		t.Fatal(err)
	}
	agent := &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.AgentSpec{Instructions: "Do what you are told.", Model: name, Tools: []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}},
	}
	for _, mod := range mods {
		mod(agent)
	}
	p.create(modelOf(name, func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName + "/v1" }), agent)
	return p
}

// scaleModelServer starts or ends the model server of the namespace.
func (p *testNamespace) scaleModelServer(replicas int32) {
	p.t.Helper()
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: modelsName}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := cluster.admin.Patch(p.t.Context(), server, patch); err != nil {
		p.t.Fatalf("scaling the model server to %d: %v", replicas, err)
	}
}

// awaitReachable waits until the condition Reachable of a Model has a status, and returns its message.
func (p *testNamespace) awaitReachable(model string, want metav1.ConditionStatus) string {
	p.t.Helper()
	var c metav1.Condition
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		var m v1alpha1.Model
		if err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: model}, &m); err != nil {
			return false, err
		}
		if found := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReachable); found != nil {
			c = *found
		}
		return c.Status == want, nil
	})
	if err != nil {
		p.t.Fatalf("Model %s: Reachable is %s %s: %s, want %s: %v", model, c.Status, c.Reason, c.Message, want, err)
	}
	return c.Message
}

// eventsOfModel returns the reasons of the events of a Model.
func (p *testNamespace) eventsOfModel(model string) (reasons []string) {
	p.t.Helper()
	var list corev1.EventList
	if err := cluster.admin.List(p.t.Context(), &list, client.InNamespace(p.name)); err != nil {
		p.t.Fatal(err)
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.InvolvedObject.Kind == "Model" && e.InvolvedObject.Name == model {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// outage is how long the model server is away: longer than the tries within a request.
const outage = 90 * time.Second

// The model server restarts under ten Runs that keep their files in their pods and have changed
// some. All of them finish, and none does anything twice.
func TestTheModelServerRestartsUnderTenRuns(t *testing.T) {
	t.Parallel()
	write := func(file string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "/workspace/" + file, "content": file})}}
	}
	p := newModelServer(t, "phoenix", turns(write("a.txt"), slowly(longText), write("b.txt"), modeltest.Turn{Text: "All done."}))
	var runs []*v1alpha1.Run
	for _, name := range numberedNames("phoenix", 1, 10) {
		runs = append(runs, p.run("phoenix", func(r *v1alpha1.Run) { r.Name = name }))
	}
	for _, run := range runs {
		p.await(run, "changes a file", func(r *v1alpha1.Run) bool {
			return r.Status.Progress != nil && r.Status.Progress.Effects == v1alpha1.EffectsBegun
		})
	}
	p.awaitReachable("phoenix", metav1.ConditionTrue)
	p.scaleModelServer(0)
	for _, run := range runs {
		seen := p.await(run, "waits for its model", func(r *v1alpha1.Run) bool {
			return strings.HasPrefix(succeeded(r), "Unknown WaitingForModel: Model phoenix is unavailable since ")
		})
		if w := seen.Status.Progress.ModelWait; w == nil || w.Model != "phoenix" || w.NextTryAt == nil || w.Message == "" || w.Promised {
			t.Errorf("Run %s: modelWait is %+v", run.Name, w)
		}
	}
	if text := p.awaitReachable("phoenix", metav1.ConditionFalse); !strings.Contains(text, "for the Model since ") {
		t.Errorf("the Model says %q", text)
	}
	p.await(runs[0], "has waited", func(r *v1alpha1.Run) bool {
		w := r.Status.Progress.ModelWait
		return w != nil && time.Since(w.Since.Time) > outage
	})
	p.scaleModelServer(1)
	for _, run := range runs {
		seen := p.ends(run, "True Finished")
		if s := seen.Status; s.Attempt.Number != 1 || s.Failures+s.Disruptions != 0 || s.Progress.Counts.ToolCalls != 1 || s.Progress.Counts.Steps != 2 || s.Progress.ModelWait != nil {
			t.Errorf("Run %s: attempt %d, %d failures, %d disruptions, %+v", run.Name, s.Attempt.Number, s.Failures, s.Disruptions, s.Progress.Counts)
		}
		p.eventOf(seen, v1alpha1.ReasonWaitingForModel)
	}
	p.awaitReachable("phoenix", metav1.ConditionTrue)
	if got := p.eventsOfModel("phoenix"); len(got) != 2 {
		t.Errorf("the events of the Model are %v, want Unavailable and Answered once each", got)
	}
}

// A Run on a volume whose provider asks to wait for long has no pod, and keeps its place.
func TestAPromisedWaitHasNoPod(t *testing.T) {
	t.Parallel()
	const hour = "3600"
	p := newModelServer(t, "limited", turns(modeltest.Turn{Text: "Never.", Faults: []modeltest.Fault{
		{Kind: modeltest.FaultStatus, Status: 429, RetryAfter: hour, Message: "the quota of this hour is used up", Times: -1},
	}}), onVolume, func(a *v1alpha1.Agent) { a.Spec.Concurrency, a.Spec.Retention.Pod = new(int32(1)), "0s" })
	run := p.run("limited")
	seen := p.await(run, "waits for its model without a pod", func(r *v1alpha1.Run) bool {
		if !strings.HasPrefix(succeeded(r), "Unknown WaitingForModel") || r.Status.Progress.Result == nil {
			return false
		}
		var pod corev1.Pod
		err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: p.name, Name: r.Status.Attempt.Pod}, &pod)
		return apierrors.IsNotFound(err) || err == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
	})
	if w := seen.Status.Progress.ModelWait; w == nil || !w.Promised || w.NextTryAt == nil || w.NextTryAt.Sub(w.Since.Time) < 50*time.Minute {
		t.Errorf("modelWait is %+v", w)
	}
	if !strings.Contains(message(seen), "The provider asks to wait until ") || seen.Status.Attempt.Number != 1 {
		t.Errorf("attempt %d: %s", seen.Status.Attempt.Number, message(seen))
	}
	p.awaitReachable("limited", metav1.ConditionFalse)
	next := p.run("limited", func(r *v1alpha1.Run) { r.Name = "next" })
	p.await(next, "queues", func(r *v1alpha1.Run) bool { return strings.HasPrefix(succeeded(r), "Unknown Queued") })
	for _, r := range []*v1alpha1.Run{next, run} {
		if err := cluster.admin.Patch(t.Context(), r.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Stopped"}}`))); err != nil {
			t.Fatal(err)
		}
		p.ends(r, "False Stopped")
	}
}

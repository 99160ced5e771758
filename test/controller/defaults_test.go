package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// finishedRun creates a Run that finished some time ago.
func finishedRun(t *testing.T, namespace, name string, ago time.Duration, mods ...func(*v1alpha1.Run)) {
	t.Helper()
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it."}}
	for _, mod := range mods {
		mod(run)
	}
	apitest.Get(t).Create(t, run)
	ended := metav1.NewTime(time.Now().Add(-ago))
	run.Status.CompletionTime = &ended
	run.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished, Message: "done", LastTransitionTime: ended},
	}
	if err := apitest.Get(t).Admin.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

// The default TTL deletes Runs that say nothing, at the time of the installation's value.
func TestTheDefaultTTLDeletesRuns(t *testing.T) {
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	namespace := apitest.Get(t).Namespace(t)
	controls := true
	byJob := func(r *v1alpha1.Run) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.example/v1", Kind: "Job", Name: "a", UID: "a", Controller: &controls}}
	}
	forGood := func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = new(int32(2147483647)) }
	finishedRun(t, namespace, "old", week+day)
	finishedRun(t, namespace, "old-workflow", week+day, func(r *v1alpha1.Run) { r.Spec = v1alpha1.RunSpec{Workflow: "w"} })
	finishedRun(t, namespace, "recent", day)
	finishedRun(t, namespace, "kept", week+day, forGood)
	finishedRun(t, namespace, "of-a-job", week+day, byJob)
	stop := start(t, newOperator(t, namespace, func(o *operator.Options) { o.DefaultTTL = week }))
	for _, name := range []string{"old", "old-workflow"} {
		eventually(t, 1, "Run "+name+" is deleted", func() int {
			err := apitest.Get(t).Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, new(v1alpha1.Run))
			return map[bool]int{true: 1}[apierrors.IsNotFound(err)]
		})
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var list v1alpha1.RunList
	if err := apitest.Get(t).Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, r := range list.Items {
		left = append(left, r.Name)
		if r.Name == "recent" && r.Spec.TTLSecondsAfterFinished != nil {
			t.Errorf("the default was written into the Run: %d", *r.Spec.TTLSecondsAfterFinished)
		}
	}
	if want := []string{"kept", "of-a-job", "recent"}; !slices.Equal(left, want) {
		t.Errorf("the Runs %v are left, want %v", left, want)
	}
}

// durableOf waits for the condition Durable of the Agent.
func durableOf(t *testing.T, namespace string, want metav1.ConditionStatus) {
	t.Helper()
	eventually(t, 1, "condition Durable is "+string(want), func() int {
		var agent v1alpha1.Agent
		if err := apitest.Get(t).Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "fixer"}, &agent); err != nil {
			t.Fatal(err)
		}
		if agent.Spec.Workspace.Durability != "" {
			t.Fatalf("the Agent says %s", agent.Spec.Workspace.Durability)
		}
		return map[bool]int{true: 1}[meta.IsStatusConditionPresentAndEqual(agent.Status.Conditions, v1alpha1.ConditionDurable, want)]
	})
}

// claimOf returns the claim that the pod of a Run mounts.
func claimOf(t *testing.T, namespace, run string) string {
	t.Helper()
	claim := ""
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		for _, pod := range pods(t, namespace) {
			if pod.Labels[v1alpha1.LabelRun] != run || podsOfRuns(t, namespace)[run] != string(pod.UID) {
				continue
			}
			for _, v := range pod.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					claim = v.PersistentVolumeClaim.ClaimName
				}
			}
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("Run %s has no pod: %v", run, err)
	}
	return claim
}

// The default durability holds for Agents that say nothing, and a Run keeps what it started with.
func TestTheDefaultDurabilityChanges(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	with := func(d v1alpha1.Durability) (stop func() error) {
		return start(t, newOperator(t, namespace, func(o *operator.Options) { o.DefaultDurability = d }))
	}
	stop := with(v1alpha1.DurabilityVolume)
	model, agent := gen.Model(), gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Workspace.Durability = "" })
	for _, o := range []client.Object{model, agent} {
		o.SetNamespace(namespace)
		o.SetUID("")
	}
	apitest.Get(t).Create(t, model, agent)
	addRuns(t, namespace, 0, 1)
	durableOf(t, namespace, metav1.ConditionTrue)
	claim := claimOf(t, namespace, "x0")
	if claim == "" {
		t.Fatal("the Run has no volume")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	was := pods(t, namespace)[0]
	if err := apitest.Get(t).Admin.Delete(t.Context(), &was, &client.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	stop = with(v1alpha1.DurabilityPod)
	durableOf(t, namespace, metav1.ConditionFalse)
	addRuns(t, namespace, 1, 2)
	eventually(t, 1, "the next attempt has a pod", func() int {
		return len(slices.DeleteFunc(pods(t, namespace), func(p corev1.Pod) bool {
			return p.Labels[v1alpha1.LabelRun] != "x0" || string(p.UID) != podsOfRuns(t, namespace)["x0"]
		}))
	})
	if got := claimOf(t, namespace, "x0"); got != claim {
		t.Errorf("the next attempt mounts %q, want %q", got, claim)
	}
	if got := claimOf(t, namespace, "x1"); got != "" {
		t.Errorf("a Run that started later mounts %q", got)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

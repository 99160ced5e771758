package controller_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// stored is the ConfigMap of the only version of the namespace.
func (b *fixture) stored() *corev1.ConfigMap {
	b.t.Helper()
	var list corev1.ConfigMapList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace), client.HasLabels{v1alpha1.LabelRevision}); err != nil {
		b.t.Fatal(err)
	}
	if len(list.Items) != 1 {
		b.t.Fatalf("%d versions are stored", len(list.Items))
	}
	return &list.Items[0]
}

// isStored fails the test unless a version is stored, in a ConfigMap of another UID.
func (b *fixture) isStored(was *corev1.ConfigMap) {
	b.t.Helper()
	is := b.stored()
	if _, err := snapshot.Read(is, snapshot.HashOf(was)); err != nil || is.UID == was.UID {
		b.t.Errorf("the version is not stored again: %v", err)
	}
}

// replaceRevision replaces the ConfigMap of a revision, as a user who may edit ConfigMaps can.
func (b *fixture) replaceRevision(cm *corev1.ConfigMap) {
	b.t.Helper()
	if err := b.Admin.Delete(b.t.Context(), cm.DeepCopy()); err != nil {
		b.t.Fatal(err)
	}
	immutable := true
	b.Create(b.t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name},
		Immutable:  &immutable,
		Data:       map[string]string{"runner.json": "{}"},
	})
}

func TestAVersionThatIsDeletedWhileItsPodWaitsIsStoredAgain(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod, was := b.onlyPod(), b.stored()
	if err := b.Admin.Delete(t.Context(), was.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.isStored(was)
	if b.onlyPod().UID != pod.UID {
		t.Error("the pod is another")
	}
}

func TestAVersionThatIsSquattedWhileItsPodWaitsIsReplaced(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	was := b.stored()
	b.replaceRevision(was)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.isStored(was)
}

func TestAVersionThatIsSquattedBeforeThePodIsReplaced(t *testing.T) {
	b := newFixture(t)
	if err := b.reconcile(); err != nil { // claims the attempt
		t.Fatal(err)
	}
	was := b.stored()
	b.replaceRevision(was)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.isStored(was)
	b.onlyPod()
}

// Once the Agent has changed, a revision cannot be stored again: the next attempt would do other
// work, or that of whoever forged it. The Run ends, and names the ConfigMap.
func TestAVersionThatIsGoneAfterItsAgentChangedEndsTheRun(t *testing.T) {
	changed := func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do it otherwise." }
	cases := map[string]func(b *fixture, was *corev1.ConfigMap){
		"it is deleted": func(b *fixture, was *corev1.ConfigMap) {
			if err := b.Admin.Delete(b.t.Context(), was.DeepCopy()); err != nil {
				b.t.Fatal(err)
			}
		},
		"it is replaced by something else": func(b *fixture, was *corev1.ConfigMap) { b.replaceRevision(was) },
		"it is forged": func(b *fixture, was *corev1.ConfigMap) {
			if err := b.Admin.Delete(b.t.Context(), was.DeepCopy()); err != nil {
				b.t.Fatal(err)
			}
			forged := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: was.Namespace, Name: was.Name, Labels: was.Labels, Annotations: was.Annotations, OwnerReferences: was.OwnerReferences},
				Immutable:  was.Immutable,
				Data:       maps.Clone(was.Data),
			}
			forged.Data["runner.json"] = strings.Replace(forged.Data["runner.json"], "fixer", "breaker", 1)
			b.Create(b.t, forged)
		},
	}
	for name, replace := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.reconcileUntilStable()
			pod, was := b.onlyPod(), b.stored()
			b.startRunner(pod)
			if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
				t.Fatal(err)
			}
			b.now = b.now.Add(5 * time.Second)
			b.reconcileUntilStable()
			b.expect("Unknown Running")
			b.update(changed)
			replace(b, was)
			if err := b.Admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			b.reconcileUntilStable()
			b.expect("False Misconfigured")
			if got := message(b.get()); !strings.Contains(got, was.Name) {
				t.Errorf("the message is %q, want the name of the ConfigMap in it", got)
			}
			if pods := b.pods(); len(pods) > 0 {
				t.Errorf("a pod runs another revision: %s", pods[0].Name)
			}
		})
	}
}

// A rollback of the operator finds revisions that it does not understand. It waits with
// the Run, and goes on where the newer operator stood when that is back.
func TestARunWaitsForTheOperatorThatStoredItsRevision(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	was := b.stored()
	data := map[string]string{"agent.json": `{"version":3,"agents":["fixer"]}`, "runner.json": was.Data["runner.json"]}
	hash := task.Hash([]byte(task.Hash([]byte(data["agent.json"])) + task.Hash([]byte(data["runner.json"]))))
	newer := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: was.Namespace, Name: snapshot.Name(hash), Labels: was.Labels, Annotations: map[string]string{v1alpha1.AnnotationRevisionHash: hash}},
		Immutable:  was.Immutable,
		Data:       data,
	}
	b.Create(t, newer)
	b.startedWith(hash)
	if err := b.Admin.Delete(t.Context(), b.onlyPod(), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown RevisionUnsupported")
	const want = "Cannot read the revision of Agent fixer that this Run started with: the stored revision has version 3, of a newer operator; this operator reads versions up to 1. Upgrade the operator: the Run then continues"
	if got := message(b.get()); got != want {
		t.Errorf("the message is %q", got)
	}
	if pods := b.pods(); len(pods) > 0 {
		t.Errorf("it has the pod %s", pods[0].Name)
	}
	var kept corev1.ConfigMap
	if err := b.Admin.Get(t.Context(), client.ObjectKeyFromObject(newer), &kept); err != nil || !maps.Equal(kept.Data, data) {
		t.Errorf("the revision is not what was stored: %v", err)
	}
	b.startedWith(snapshot.HashOf(was)) // as an operator that reads version 3 finds it
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

// startedWith has the Run begun with another revision.
func (b *fixture) startedWith(hash string) {
	b.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"attempt":{"agentRevision":%q}}}`, hash)
	if err := b.Admin.Status().Patch(b.t.Context(), b.get(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
}

// The name of a version can be worked out before there is one.
func TestASquatterThatWasFirstIsReplaced(t *testing.T) {
	b := newFixture(t)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	was := b.stored()
	b.replaceRevision(was)
	if err := b.Admin.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}
	b.run = b.newRun()
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.isStored(was)
}

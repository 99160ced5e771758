package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A sharedClaimFixture is a workflow's Run with children that share the files of one node, as
// the workflow's controller makes them.
type sharedClaimFixture struct {
	*fixture
	parent *v1alpha1.Run
	claim  string
}

func newSharedClaimFixture(t *testing.T) *sharedClaimFixture {
	t.Helper()
	b := newFixture(t, func(r *v1alpha1.Run) {
		r.Name, r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow = "release", "", "", "release"
	})
	b.update(onVolume)
	return &sharedClaimFixture{fixture: b, parent: b.run, claim: runnerpod.SharedVolumeClaimName(b.run, "build")}
}

// child makes another of them, and the fixture reconciles it from now on.
func (b *sharedClaimFixture) child(node string) *v1alpha1.Run {
	b.t.Helper()
	b.run = b.newRun(func(r *v1alpha1.Run) {
		r.Name = "release-" + node
		r.Labels = map[string]string{v1alpha1.LabelWorkflowRun: b.parent.Name, v1alpha1.LabelWorkflowNode: node}
		r.Annotations = map[string]string{v1alpha1.AnnotationVolumeClaim: b.claim}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b.parent, v1alpha1.GroupVersion.WithKind("Run"))}
	})
	return b.run
}

// podOf is the pod of the child that is reconciled.
func (b *sharedClaimFixture) podOf() *corev1.Pod {
	b.t.Helper()
	for _, pod := range b.pods() {
		if string(pod.UID) == b.get().Status.Attempt.PodUID {
			return &pod
		}
	}
	b.t.Fatalf("Run %s has no pod: %s: %s", b.run.Name, succeeded(b.get()), message(b.get()))
	return nil
}

// works lets the child do something, and finish.
func (b *sharedClaimFixture) works() {
	b.t.Helper()
	pod := b.podOf()
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1, Effects: task.EffectsBegun, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}}); err != nil {
		b.t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("True Finished")
	b.endRunner(b.podOf(), 0, "")
	b.now = b.now.Add(2 * time.Minute)
	b.reconcileUntilStable()
}

// Children of one Run have one claim, which is their parent's: it does not go with
// any of them.
func TestChildrenShareOneClaimOfTheirParent(t *testing.T) {
	b := newSharedClaimFixture(t)
	b.restrict()
	b.child("build")
	b.reconcileUntilStable()
	first := b.podOf()
	claims := b.claims()
	if len(claims) != 1 || claims[0].Name != b.claim || !metav1.IsControlledBy(&claims[0], b.parent) || len(claims[0].OwnerReferences) != 1 {
		t.Fatalf("the claims are %+v, want %s of %s", claims, b.claim, b.parent.Name)
	}
	b.works()
	b.child("test")
	b.reconcileUntilStable()
	second := b.podOf()
	if len(b.claims()) != 1 || mounted(second) != b.claim || mounted(first) != b.claim {
		t.Errorf("the pods mount %q and %q", mounted(first), mounted(second))
	}
	if b.get().Status.Attempt.VolumeClaim != b.claim || second.Spec.Affinity == nil || second.Labels[v1alpha1.LabelVolumeClaim] != b.claim {
		t.Errorf("the attempt is %+v, the pod has the labels %v", b.get().Status.Attempt, second.Labels)
	}
	if !runnerpod.InUse(b.claim, b.pods()) {
		t.Error("nobody has the claim")
	}
	b.works()
	b.now = b.now.Add(48 * time.Hour)
	b.reconcileUntilStable()
	if len(b.claims()) != 1 || runnerpod.InUse(b.claim, b.pods()) {
		t.Error("a child freed the claim, or still has it")
	}
}

// Two that begin at once make one claim, whatever each has read.
func TestChildrenThatBeginAtOnceMakeOneClaim(t *testing.T) {
	b := newSharedClaimFixture(t)
	one := b.child("build")
	two := b.child("test")
	for range 2 {
		for _, b.run = range []*v1alpha1.Run{one, two} {
			if err := b.reconcile(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b.run = range []*v1alpha1.Run{one, two} {
		b.reconcileUntilStable()
		if mounted(b.podOf()) != b.claim {
			t.Errorf("%s mounts %q", b.run.Name, mounted(b.podOf()))
		}
	}
	if n := len(b.claims()); n != 1 {
		t.Errorf("there are %d claims", n)
	}
}

// A claim of that name is mounted only if it is the parent's.
func TestForeignSharedVolumeIsNeverMounted(t *testing.T) {
	b := newSharedClaimFixture(t)
	child := b.child("build")
	for name, owner := range map[string]*v1alpha1.Run{"nobody's": nil, "the child's own": child} {
		t.Run(name, func(t *testing.T) {
			foreign := claimOwnedBy(b.namespace, b.claim, owner)
			b.Create(t, foreign)
			b.reconcileUntilStable()
			b.expect("Unknown Pending")
			if len(b.pods()) > 0 || !strings.Contains(message(b.get()), b.claim+" exists, but this Run did not create it. Delete it") {
				t.Errorf("%d pods; message is %q", len(b.pods()), message(b.get()))
			}
			b.erase(foreign)
		})
	}
	b.now = b.now.Add(time.Minute)
	b.reconcileUntilStable()
	b.podOf()
}

// Where the volume is gone that others had worked on, the next does not begin on
// an empty one.
func TestWorkOfOthersThatIsGoneIsNotBegunAgain(t *testing.T) {
	b := newSharedClaimFixture(t)
	b.child("build")
	b.reconcileUntilStable()
	b.works()
	claims := b.claims()
	b.erase(&claims[0])
	b.child("test")
	b.reconcileUntilStable()
	b.expect("False PodLost")
	if n := len(b.claims()); n != 0 || !strings.Contains(message(b.get()), "that other Runs of the workflow had changed") {
		t.Errorf("%d claims; message is %q", n, message(b.get()))
	}
}

// claimOwnedBy is a claim that somebody made.
func claimOwnedBy(namespace, name string, owner *v1alpha1.Run) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelRun: "release"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if owner != nil {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Run"))}
	}
	return c
}

// erase deletes a claim that no controller protects here.
func (b *fixture) erase(claim *corev1.PersistentVolumeClaim) {
	b.t.Helper()
	if err := b.Admin.Delete(b.t.Context(), claim); err != nil {
		b.t.Fatal(err)
	}
	err := b.Admin.Patch(b.t.Context(), claim, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}

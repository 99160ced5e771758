package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// The user and the group of the project.
const projectUser = int64(1000620000)

func coderOnVolume(a *v1alpha1.Agent) {
	onVolume(a)
	withShell(a)
}

// annotate sets the annotations from which OpenShift assigns.
func (b *fixture) annotate(ids string) {
	b.t.Helper()
	var ns corev1.Namespace
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Name: b.namespace}, &ns); err != nil {
		b.t.Fatal(err)
	}
	ns.Labels["test.deckhand.dev/scc"] = "restricted-v2"
	ns.Annotations = map[string]string{
		"openshift.io/sa.scc.uid-range": ids, "openshift.io/sa.scc.supplemental-groups": ids, "openshift.io/sa.scc.mcs": "s0:c25,c10",
	}
	if err := b.Admin.Update(b.t.Context(), &ns); err != nil {
		b.t.Fatal(err)
	}
}

// project makes the namespace of a fixture one of OpenShift, whose operator leaves users to it.
func project(t *testing.T) *fixture {
	t.Helper()
	b := newFixture(t)
	b.supply.User = runnerpod.PodUserCluster
	objects, err := apitest.ReadObjects("../openshift/restricted-v2.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		createOnce(t, b.Server, o)
	}
	b.annotate("1000620000/10000")
	b.restrict()
	b.awaitAssigned()
	return b
}

// awaitAssigned waits until the policies of the test take effect.
func (b *fixture) awaitAssigned() {
	b.t.Helper()
	pod := runnerpod.FilesPod{Image: "deckhand.test/runner:dev", User: runnerpod.PodUserCluster}.Pod(b.run, "claim", runnerpod.WorkspaceFolder, "")
	fixed := runnerpod.FilesPod{Image: "deckhand.test/runner:dev", RunAsUser: 65532}.Pod(b.run, "claim", runnerpod.WorkspaceFolder, "")
	err := wait.PollUntilContextTimeout(b.t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		made := pod.DeepCopy()
		err := b.Admin.Create(ctx, made, client.DryRunAll)
		assigned := err == nil && made.Spec.Containers[0].SecurityContext.RunAsUser != nil
		return assigned && b.Admin.Create(ctx, fixed.DeepCopy(), client.DryRunAll) != nil, nil
	})
	if err != nil {
		b.t.Fatalf("the policies of the test take no effect: %v", err)
	}
}

// The user that Deckhand chooses is refused there, and the message says what to change.
func TestOpenShiftRefusesTheUserOfDeckhand(t *testing.T) {
	b := project(t)
	b.supply.User = runnerpod.PodUserDeckhand
	b.reconcileUntilStable()
	b.expect("False AdmissionDenied")
	for _, want := range []string{"must be in the ranges: [1000620000, 1000629999]", "podUser: Cluster"} {
		if !strings.Contains(message(b.get()), want) {
			t.Errorf("the message does not say %q: %s", want, message(b.get()))
		}
	}
}

// The cluster assigns the user of the first pod. It is recorded on the volume, and the next pod
// asks for it.
func TestOpenShiftAssignsTheUser(t *testing.T) {
	b := project(t)
	b.update(coderOnVolume)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	pod := b.onlyPod()
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if id := c.SecurityContext.RunAsUser; id == nil || *id != projectUser {
			t.Errorf("container %s has the user %v", c.Name, id)
		}
	}
	claim := b.claims()[0]
	if owner := runnerpod.FileOwnerOf(&claim); owner == nil || *owner != (runnerpod.FileOwner{User: projectUser, Group: projectUser}) {
		t.Fatalf("the claim has the annotations %v", claim.Annotations)
	}
	b.losePod(pod)
	b.reconcileUntilStable()
	second := b.onlyPod()
	if s := second.Spec.SecurityContext; second.Name == pod.Name || s.RunAsUser == nil || *s.RunAsUser != projectUser || *s.FSGroup != projectUser || s.RunAsGroup != nil {
		t.Errorf("pod %s has %+v", second.Name, s)
	}
	reads := runnerpod.FilesPodOf(&claim).Pod(b.get(), claim.Name, runnerpod.WorkspaceFolder, "")
	b.Create(t, reads)
	if s := reads.Spec.SecurityContext; *s.RunAsUser != projectUser || *s.FSGroup != projectUser || reads.Spec.Containers[0].SecurityContext.RunAsUser != nil {
		t.Errorf("the pod that reads files has %+v", s)
	}
}

func (b *fixture) losePod(pod *corev1.Pod) {
	b.t.Helper()
	now := int64(0)
	if err := b.Admin.Delete(b.t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		b.t.Fatal(err)
	}
}

// An operator that ends between the creation of a pod and its record records both afterwards.
func TestOpenShiftUserIsRecordedLater(t *testing.T) {
	b := project(t)
	b.update(coderOnVolume)
	b.faults.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if _, is := o.(*corev1.PersistentVolumeClaim); is {
			return context.DeadlineExceeded
		}
		return c.Patch(ctx, o, p, opts...)
	}
	for range 3 {
		_ = b.reconcile()
	}
	if a := b.get().Status.Attempt; a == nil || a.PodUID != "" || len(b.pods()) != 1 {
		t.Fatalf("the attempt is %+v, with %d pods", a, len(b.pods()))
	}
	b.faults.Patch = nil
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	if claim := b.claims()[0]; runnerpod.FileOwnerOf(&claim) == nil {
		t.Errorf("the claim has the annotations %v", claim.Annotations)
	}
}

// Where the range of the namespace is another, the files are not given to another user. The Run
// waits, and continues when the range is back.
func TestOpenShiftRangeChanges(t *testing.T) {
	b := project(t)
	b.update(coderOnVolume)
	b.reconcileUntilStable()
	b.annotate("1000700000/10000")
	b.losePod(b.onlyPod())
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	for _, want := range []string{"belong to user 1000620000:1000620000", "users 1000700000-1000709999", "openshift.io/sa.scc.uid-range"} {
		if !strings.Contains(message(b.get()), want) {
			t.Errorf("the message does not say %q: %s", want, message(b.get()))
		}
	}
	if pods := b.pods(); len(pods) > 0 {
		t.Errorf("there is pod %s", pods[0].Name)
	}
	b.annotate("1000620000/10000")
	b.now = b.now.Add(time.Minute)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

// An operator of chosen namespaces has no ClusterRole for Namespaces. Its Role in a namespace allows
// to get that one, and no other.
func TestARoleAllowsToGetItsNamespace(t *testing.T) {
	b := newFixture(t)
	other := b.Namespace(t)
	c := b.As(t, "reader", b.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	var ns corev1.Namespace
	if err := c.Get(t.Context(), client.ObjectKey{Name: b.namespace}, &ns); err != nil {
		t.Errorf("its own: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: other}, &ns); !apierrors.IsForbidden(err) {
		t.Errorf("another: %v", err)
	}
}

// A cluster that assigns nothing gives the sandbox and the runner the users of their images.
func TestAClusterThatAssignsNoUser(t *testing.T) {
	b := newFixture(t)
	b.supply.User = runnerpod.PodUserCluster
	b.update(withShell)
	b.reconcileUntilStable()
	b.expect("False " + v1alpha1.ReasonMisconfigured)
	if len(b.pods()) > 0 || !strings.Contains(message(b.get()), "Set podUser: Deckhand") {
		t.Errorf("%d pods: %s", len(b.pods()), message(b.get()))
	}
}

// Where podUser becomes Deckhand while a Run is active, its files keep the user that the cluster
// assigned, whom the next pod asks for.
func TestPodUserBecomesDeckhand(t *testing.T) {
	b := project(t)
	b.update(coderOnVolume)
	b.reconcileUntilStable()
	b.losePod(b.onlyPod())
	b.supply.User = runnerpod.PodUserDeckhand
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	if s := b.onlyPod().Spec.SecurityContext; *s.RunAsUser != projectUser || *s.RunAsGroup != projectUser || *s.FSGroup != projectUser {
		t.Errorf("the next pod has %+v", s)
	}
}

// Where podUser becomes Cluster while a Run is active, the Run waits, because the cluster may not
// assign the user of its files. It continues when podUser is back.
func TestPodUserBecomesCluster(t *testing.T) {
	b := newFixture(t)
	b.update(coderOnVolume)
	b.reconcileUntilStable()
	b.losePod(b.onlyPod())
	b.supply.User = runnerpod.PodUserCluster
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	for _, want := range []string{"belong to user 65532:65532", "If podUser of the chart was changed, set it back"} {
		if !strings.Contains(message(b.get()), want) {
			t.Errorf("the message does not say %q: %s", want, message(b.get()))
		}
	}
	if pods := b.pods(); len(pods) > 0 {
		t.Errorf("there is pod %s", pods[0].Name)
	}
	b.supply.User = runnerpod.PodUserDeckhand
	b.now = b.now.Add(time.Minute)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	if s := b.onlyPod().Spec.SecurityContext; *s.RunAsUser != 65532 || *s.FSGroup != 65532 {
		t.Errorf("the next pod has %+v", s)
	}
}
